"""Denoising by kernel PCA and pre-images, with the two protocols of Mika et al. (NIPS 11, 1999).

USPS: 300 clean images of each digit for training, 50 of each for testing, with Gaussian noise
(σ = 0.5) or speckle (each pixel black or white with probability p/2, p = 0.4).  The kernel is
exp(−‖x − z‖² / (256 c)) with c = 0.5.  As in the paper, every method uses the number of components
with the smallest test error.

Toy: 11 Gaussians in R¹⁰ with centres in [−1, 1]¹⁰, 100 training points and 33 test points each.
The kernel is exp(−‖x − z‖² / (10 c)) with c = 2σ².  The error is the distance to the centre.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

USPS_FILE = DATA / "usps" / "usps_small.npz"
GAMMA = 1 / (256 * 0.5)
COMPONENT_NUMBERS = (8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)
ALPHAS = (1e-4, 1e-2, 1.0)
SIGMAS = (0.05, 0.1, 0.2, 0.4, 0.8)


def load_digits(noise: str, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training images, noisy test images, and the clean test images."""
    with np.load(USPS_FILE, allow_pickle=False) as file:
        X, y, T = file["X_train"] / 1000.0, file["y_train"], file["X_test"] / 1000.0
    X = np.concatenate([X[y == digit][:each] for digit in range(10)])
    rng = np.random.default_rng(0)
    if noise == "Gaussian":
        return X, T + 0.5 * rng.normal(size=T.shape), T
    uniform = rng.random(T.shape)
    return X, np.where(uniform < 0.2, -1.0, np.where(uniform < 0.4, 1.0, T)), T


def make_mercer_denoiser(method: str) -> Callable:
    """Return make(X, noisy), which returns denoise(q).

    The model is fitted once with all components; denoise(q) sets all but the first q scores to 0.
    """

    def make(X: np.ndarray, noisy: np.ndarray) -> Callable[[int], np.ndarray]:
        from mercer import KernelPCA

        model = KernelPCA(min(max(COMPONENT_NUMBERS), len(X) - 1), kernel="rbf", gamma=GAMMA).fit(X)
        scores = model.transform(noisy)

        def denoise(q: int) -> np.ndarray:
            truncated = np.where(np.arange(scores.shape[1]) < q, scores, 0.0)
            return model.inverse_transform(truncated, method, start=noisy)

        return denoise

    return make


def make_pca_denoiser(X: np.ndarray, noisy: np.ndarray) -> Callable[[int], np.ndarray]:
    """Return denoise(q) for linear PCA."""
    from sklearn.decomposition import PCA

    model = PCA().fit(X)
    scores = model.transform(noisy)
    return lambda q: scores[:, :q] @ model.components_[:q] + model.mean_


def make_sklearn_denoiser(alpha: float) -> Callable:
    """Return make(X, noisy) for scikit-learn's kernel PCA with its learned inverse transform."""

    def make(X: np.ndarray, noisy: np.ndarray) -> Callable[[int], np.ndarray]:
        from sklearn.decomposition import KernelPCA

        n_components = min(max(COMPONENT_NUMBERS), len(X) - 1)
        model = KernelPCA(
            n_components, kernel="rbf", gamma=GAMMA, alpha=alpha, eigen_solver="dense"
        )
        scores, train = model.fit(X).transform(noisy), model.transform(X)

        def denoise(q: int) -> np.ndarray:
            model._fit_inverse_transform(train[:, :q], X)  # what `fit` does, but with q components
            model.fit_inverse_transform = True
            return model.inverse_transform(scores[:, :q])

        return denoise

    return make


def mean_squared_distance(A: np.ndarray, B: np.ndarray) -> float:
    """Return the mean over rows of the squared distance."""
    return float(np.mean(np.sum((A - B) ** 2, axis=1)))


def denoising_contender(make: Callable) -> Callable[..., Call]:
    """Return the `make` function of a contender that denoises all images at its best size."""

    def prepare(noise: str, each: int) -> Call:
        X, noisy, clean = load_digits(noise, each)
        denoise = make(X, noisy)
        sizes = [
            q
            for q in COMPONENT_NUMBERS
            if q < min(len(X), 257 if make is make_pca_denoiser else len(X))
        ]
        errors = {q: mean_squared_distance(denoise(q), clean) for q in sizes}
        best = min(errors, key=errors.__getitem__)

        def call() -> np.ndarray:
            return np.array([mean_squared_distance(denoise(best), clean)])

        errors_by_size = ", ".join(f"{q}: {error:.1f}" for q, error in errors.items())
        call.note = f"error {errors[best]:.2f} at {best} components ({errors_by_size})"
        return call

    return prepare


def reference(noise: str, each: int) -> np.ndarray:
    """Return the error of linear PCA at its best size."""
    return denoising_contender(make_pca_denoiser)(noise, each)()


def excess_over_pca(error: np.ndarray, pca: np.ndarray) -> float:
    """Return the relative amount by which an error exceeds that of linear PCA.

    In this suite the error is the result to report, so the tolerance of the cases is very large.
    """
    return max(0.0, float(error[0] / pca[0]) - 1.0)


def cases(quick: bool) -> list[Case]:
    if not USPS_FILE.exists():
        print(f"the USPS digits were not found in {DATA}: set MERCER_DATA")
        return []
    each = 30 if quick else 300
    return [
        Case(f"{noise} noise", {"noise": noise, "each": each}, 10.0, excess_over_pca)
        for noise in ("Gaussian", "speckle")
    ]


# ----------------------------------------------------------------- the toy data of the paper


def toy_data(sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training points, test points, and the centres of the test points."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, size=(11, 10))
    X = np.repeat(centres, 100, axis=0) + sigma * rng.normal(size=(1100, 10))
    C = np.repeat(centres, 33, axis=0)
    return X, C + sigma * rng.normal(size=C.shape), C


def toy_errors(kind: str) -> Callable[..., Call]:
    """Return the `make` function of a contender.

    Its call returns the errors for 1, ..., 9 components, averaged over seeds.
    """

    def prepare(sigma: float, seeds: int) -> Call:
        from sklearn.decomposition import PCA

        from mercer import KernelPCA

        def errors_for_seed(seed: int) -> list[float]:
            X, Y, C = toy_data(sigma, seed)
            if kind == "linear":
                pca = PCA(9).fit(X)
                T = pca.transform(Y)
                W, m = pca.components_, pca.mean_
                return [mean_squared_distance(T[:, :q] @ W[:q] + m, C) for q in range(1, 10)]
            model = KernelPCA(9, kernel="rbf", gamma=1 / (20 * sigma**2)).fit(X)
            T, first = model.transform(Y), np.arange(9)
            truncated = [np.where(first < q, T, 0.0) for q in range(1, 10)]
            return [
                mean_squared_distance(model.inverse_transform(t, "fixed_point", start=Y), C)
                for t in truncated
            ]

        def call() -> np.ndarray:
            errors = np.mean([errors_for_seed(seed) for seed in range(seeds)], axis=0)
            call.note = "errors " + ", ".join(f"{e:.3g}" for e in errors)
            return errors

        return call

    return prepare


def toy_reference(sigma: float, seeds: int) -> np.ndarray:
    """Return the errors of linear PCA."""
    return toy_errors("linear")(sigma, seeds)()


def excess_at_nine(errors: np.ndarray, pca: np.ndarray) -> float:
    """Return the relative amount by which the error with nine components exceeds that of PCA."""
    return max(0.0, float(errors[-1] / pca[-1]) - 1.0)


def toy_cases(quick: bool) -> list[Case]:
    return [
        Case(f"σ = {sigma}", {"sigma": sigma, "seeds": 1 if quick else 5}, 0.0, excess_at_nine)
        for sigma in (SIGMAS[3:4] if quick else SIGMAS)
    ]


SUITES = {
    "preimage-usps": Suite(
        "denoising USPS digits, squared error at the best number of components",
        cases,
        {
            "mercer": Contender("mercer", denoising_contender(make_mercer_denoiser("fixed_point"))),
            "mercer, distance": Contender(
                "mercer", denoising_contender(make_mercer_denoiser("distance"))
            ),
            "scikit-learn, PCA": Contender("sklearn", denoising_contender(make_pca_denoiser)),
            **{
                f"scikit-learn, alpha={alpha:g}": Contender(
                    "sklearn", denoising_contender(make_sklearn_denoiser(alpha))
                )
                for alpha in ALPHAS
            },
        },
        reference,
        max_warm_up=0.0,
    ),
    "preimage-toy": Suite(
        "distance to the centre for 1, ..., 9 components, 11 Gaussians in R¹⁰",
        toy_cases,
        {
            "mercer": Contender("mercer", toy_errors("kernel")),
            "scikit-learn, PCA": Contender("sklearn", toy_errors("linear")),
        },
        toy_reference,
        max_warm_up=0.0,
    ),
}
