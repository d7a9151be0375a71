"""Feature maps: the error at equal numbers of features, and the time of fit_transform.

The error of Nyström features is the trace of K − FFᵀ over that of K, the error of random ones
‖K − FFᵀ‖ / ‖K‖; both are means over seeds, on standardised columns, with the Gaussian kernel of
γ = 1 / (2 d).  All parameters but the number of features and the seed are the defaults.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ._suite import Call, Case, Contender, Suite

DATA = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
FILES = {
    "letter": "libsvm/letter.npz",
    "pendigits": "libsvm/pendigits.npz",
    "usps": "usps/usps.npz",
    "kin40k": "regression/uci_datasets/kin40k.csv.gz",
    "protein": "regression/uci_datasets/protein.csv.gz",
}
MAPS = ("Nystroem", "RBFSampler")


def points(name: str, n: int) -> np.ndarray:
    """Return n rows of a data set, drawn once, columns standardised."""
    path = DATA / FILES[name]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            X = file["X_train"].astype(float)
    else:
        X = np.loadtxt(path, delimiter=",")[:, :-1]
    X = X[np.random.default_rng(0).permutation(len(X))[:n]]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _maker(library: str, model: str) -> Callable:
    import importlib

    module = "mercer" if library == "mercer" else "sklearn.kernel_approximation"
    return getattr(importlib.import_module(module), model)


def errors_of(library: str) -> Callable[..., Call]:
    """Return a contender whose call gives the error for each seed."""

    def ready(name: str, model: str, n: int, m: int, seeds: int) -> Call:
        X, make = points(name, n), _maker(library, model)
        gamma = 0.5 / X.shape[1]
        squares = (X**2).sum(axis=1)
        K = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0))

        def error(F: np.ndarray) -> float:
            if model == "Nystroem":
                return 1.0 - float((F**2).sum() / np.trace(K))
            return float(np.linalg.norm(K - F @ F.T) / np.linalg.norm(K))

        def call() -> np.ndarray:
            draws = (make(gamma=gamma, n_components=m, random_state=s) for s in range(seeds))
            errors = np.array([error(phi.fit_transform(X)) for phi in draws])
            call.note = f"error {errors.mean():.4f} ± {errors.std(ddof=1):.4f} ({seeds} seeds)"
            return errors

        return call

    return ready


def reference(name: str, model: str, n: int, m: int, seeds: int) -> np.ndarray:
    """Return the errors of scikit-learn's: ours may not be above."""
    return errors_of("sklearn")(name, model, n, m, seeds)()


def excess(errors: np.ndarray, reference: np.ndarray) -> float:
    """By how much, relatively, the mean error is above scikit-learn's."""
    return max(0.0, float(errors.mean() / reference.mean()) - 1.0)


def error_cases(quick: bool) -> list[Case]:
    there = [name for name in FILES if (DATA / FILES[name]).exists()]
    if not there:
        print(f"no data for the suite features-error in {DATA}: set MERCER_DATA")
    n, seeds = (500, 2) if quick else (3000, 5)
    return [
        Case(
            f"{model} {name} m={m}",
            {"name": name, "model": model, "n": n, "m": m, "seeds": seeds},
            1e-9,
            excess,
        )
        for model in MAPS
        for name in (there[:1] if quick else there)
        for m in ((50,) if quick else (50, 100, 200))
    ]


def timed(library: str) -> Callable[..., Call]:
    """Return a contender whose call is fit_transform; it returns a few products of features."""

    def ready(model: str, n: int, d: int, m: int) -> Call:
        X = np.random.default_rng(0).standard_normal((n, d))
        options = {"random_state": 0, "n_components": m}
        if model == "PolynomialCountSketch":
            options |= {"degree": 2}
        elif model == "AdditiveChi2Sampler":
            X, options = np.abs(X), {"sample_steps": 2}
        elif model == "SkewedChi2Sampler":
            X = np.abs(X)
        else:
            options |= {"gamma": 0.5 / d}
        make = _maker(library, model)

        def call() -> np.ndarray:
            F = make(**options).fit_transform(X)
            return np.array([F.shape[1]], dtype=float)

        return call

    return ready


def width(model: str, n: int, d: int, m: int) -> np.ndarray:
    """Return how many features there are to be; their errors are those of the other suite."""
    return np.array([3 * d if model == "AdditiveChi2Sampler" else m], dtype=float)


def time_cases(quick: bool) -> list[Case]:
    n, d = (5000 if quick else 100_000), 20
    models = [(model, m) for model in MAPS for m in (100, 300)]
    models += [("SkewedChi2Sampler", 100), ("PolynomialCountSketch", 100)]
    models += [("AdditiveChi2Sampler", 3 * d)]
    return [
        Case(f"{model} n={n} d={d} m={m}", {"model": model, "n": n, "d": d, "m": m})
        for model, m in models
    ]


SUITES = {
    "features-error": Suite(
        "error at m features",
        error_cases,
        {
            "mercer": Contender("mercer", errors_of("mercer")),
            "scikit-learn": Contender("sklearn", errors_of("sklearn")),
        },
        reference,
        slow=0.0,
    ),
    "features-time": Suite(
        "fit_transform to m features",
        time_cases,
        {
            "mercer": Contender("mercer", timed("mercer")),
            "scikit-learn": Contender("sklearn", timed("sklearn")),
        },
        width,
    ),
}
