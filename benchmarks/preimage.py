"""Denoising by kernel PCA and pre-images, by the two protocols of Mika et al. (NIPS 11, 1999).

USPS: 300 clean images of each digit to learn from, 50 of each to test, with Gaussian noise
(σ = 0.5) or speckle (each pixel black or white with probability p/2, p = 0.4); the Gaussian kernel
exp(−‖x − z‖² / (256 c)) with c = 0.5.  Every method has its best number of components, judged by
the error itself, as in the paper.

Toy: 11 Gaussians in R¹⁰ with centres in [−1, 1]¹⁰, 100 points to learn from and 33 to test of each,
kernel exp(−‖x − z‖² / (10 c)) with c = 2σ²; the distance to the centre is the error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

FILE = DATA / "usps" / "usps_small.npz"
GAMMA = 1 / (256 * 0.5)
SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)
ALPHAS = (1e-4, 1e-2, 1.0)
SIGMAS = (0.05, 0.1, 0.2, 0.4, 0.8)


def digits(noise: str, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training images, noisy test images, and those without the noise."""
    with np.load(FILE, allow_pickle=False) as file:
        X, y, T = file["X_train"] / 1000.0, file["y_train"], file["X_test"] / 1000.0
    X = np.concatenate([X[y == digit][:each] for digit in range(10)])
    rng = np.random.default_rng(0)
    if noise == "Gaussian":
        return X, T + 0.5 * rng.normal(size=T.shape), T
    chance = rng.random(T.shape)
    return X, np.where(chance < 0.2, -1.0, np.where(chance < 0.4, 1.0, T)), T


def mercer(method: str) -> Callable:
    """Return denoise(q), from one fit with all components: the first q scores, the rest 0."""

    def make(X: np.ndarray, noisy: np.ndarray) -> Callable[[int], np.ndarray]:
        from mercer import KernelPCA

        model = KernelPCA(min(max(SIZES), len(X) - 1), kernel="rbf", gamma=GAMMA).fit(X)
        scores = model.transform(noisy)

        def denoise(q: int) -> np.ndarray:
            kept = np.where(np.arange(scores.shape[1]) < q, scores, 0.0)
            return model.inverse_transform(kept, method, start=noisy)

        return denoise

    return make


def linear(X: np.ndarray, noisy: np.ndarray) -> Callable[[int], np.ndarray]:
    """The same by PCA."""
    from sklearn.decomposition import PCA

    model = PCA().fit(X)
    scores = model.transform(noisy)
    return lambda q: scores[:, :q] @ model.components_[:q] + model.mean_


def theirs(alpha: float) -> Callable:
    """The same by scikit-learn's kernel PCA and its learned inverse."""

    def make(X: np.ndarray, noisy: np.ndarray) -> Callable[[int], np.ndarray]:
        from sklearn.decomposition import KernelPCA

        most = min(max(SIZES), len(X) - 1)
        model = KernelPCA(most, kernel="rbf", gamma=GAMMA, alpha=alpha, eigen_solver="dense")
        scores, train = model.fit(X).transform(noisy), model.transform(X)

        def denoise(q: int) -> np.ndarray:
            model._fit_inverse_transform(train[:, :q], X)  # what fit does, for q components
            model.fit_inverse_transform = True
            return model.inverse_transform(scores[:, :q])

        return denoise

    return make


def squared(A: np.ndarray, B: np.ndarray) -> float:
    return float(np.mean(np.sum((A - B) ** 2, axis=1)))


def denoiser(make: Callable) -> Callable[..., Call]:
    """Return a contender: its call denoises all images at its best size."""

    def ready(noise: str, each: int) -> Call:
        X, noisy, clean = digits(noise, each)
        denoise = make(X, noisy)
        sizes = [q for q in SIZES if q < min(len(X), 257 if make is linear else len(X))]
        errors = {q: squared(denoise(q), clean) for q in sizes}
        best = min(errors, key=errors.__getitem__)

        def call() -> np.ndarray:
            return np.array([squared(denoise(best), clean)])

        shown = ", ".join(f"{q}: {error:.1f}" for q, error in errors.items())
        call.note = f"error {errors[best]:.2f} at {best} components ({shown})"
        return call

    return ready


def reference(noise: str, each: int) -> np.ndarray:
    """Return the error of PCA at its best size."""
    return denoiser(linear)(noise, each)()


def excess(error: np.ndarray, pca: np.ndarray) -> float:
    """By how much an error is above that of PCA, relatively.

    Here the error is the result: nobody is refused for a large one.
    """
    return max(0.0, float(error[0] / pca[0]) - 1.0)


def cases(quick: bool) -> list[Case]:
    if not FILE.exists():
        print(f"no USPS digits in {DATA}: set MERCER_DATA")
        return []
    each = 30 if quick else 300
    return [
        Case(f"{noise} noise", {"noise": noise, "each": each}, 10.0, excess)
        for noise in ("Gaussian", "speckle")
    ]


# ---------------------------------------------------------------------- the toy of the paper


def toy(sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training points, test points, and the centres of the latter."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, size=(11, 10))
    X = np.repeat(centres, 100, axis=0) + sigma * rng.normal(size=(1100, 10))
    C = np.repeat(centres, 33, axis=0)
    return X, C + sigma * rng.normal(size=C.shape), C


def toy_errors(kind: str) -> Callable[..., Call]:
    """Return a contender: its call gives the errors for 1, ..., 9 components, over the seeds."""

    def ready(sigma: float, seeds: int) -> Call:
        from sklearn.decomposition import PCA

        from mercer import KernelPCA

        def one(seed: int) -> list[float]:
            X, Y, C = toy(sigma, seed)
            if kind == "linear":
                pca = PCA(9).fit(X)
                T = pca.transform(Y)
                W, m = pca.components_, pca.mean_
                return [squared(T[:, :q] @ W[:q] + m, C) for q in range(1, 10)]
            model = KernelPCA(9, kernel="rbf", gamma=1 / (20 * sigma**2)).fit(X)
            T, first = model.transform(Y), np.arange(9)
            kept = [np.where(first < q, T, 0.0) for q in range(1, 10)]
            return [squared(model.inverse_transform(t, "fixed_point", start=Y), C) for t in kept]

        def call() -> np.ndarray:
            errors = np.mean([one(seed) for seed in range(seeds)], axis=0)
            call.note = "errors " + ", ".join(f"{e:.3g}" for e in errors)
            return errors

        return call

    return ready


def toy_reference(sigma: float, seeds: int) -> np.ndarray:
    """Return the errors of PCA."""
    return toy_errors("linear")(sigma, seeds)()


def worst(errors: np.ndarray, pca: np.ndarray) -> float:
    """By how much the error at nine components is above that of PCA, relatively."""
    return max(0.0, float(errors[-1] / pca[-1]) - 1.0)


def toy_cases(quick: bool) -> list[Case]:
    return [
        Case(f"σ = {sigma}", {"sigma": sigma, "seeds": 1 if quick else 5}, 0.0, worst)
        for sigma in (SIGMAS[3:4] if quick else SIGMAS)
    ]


SUITES = {
    "preimage-usps": Suite(
        "denoising USPS digits, squared error at the best number of components",
        cases,
        {
            "mercer": Contender("mercer", denoiser(mercer("fixed_point"))),
            "mercer, distance": Contender("mercer", denoiser(mercer("distance"))),
            "scikit-learn, PCA": Contender("sklearn", denoiser(linear)),
            **{
                f"scikit-learn, alpha={alpha:g}": Contender("sklearn", denoiser(theirs(alpha)))
                for alpha in ALPHAS
            },
        },
        reference,
        slow=0.0,
    ),
    "preimage-toy": Suite(
        "distance to the centre for 1, ..., 9 components, 11 Gaussians in R¹⁰",
        toy_cases,
        {
            "mercer": Contender("mercer", toy_errors("kernel")),
            "scikit-learn, PCA": Contender("sklearn", toy_errors("linear")),
        },
        toy_reference,
        slow=0.0,
    ),
}
