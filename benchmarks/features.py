"""Feature maps: the error with equal numbers of features, and the time of fit_transform.

The error of Nyström features is the trace of K − FFᵀ relative to that of K.  The error of random
features is ‖K − FFᵀ‖ / ‖K‖.  Both are averaged over seeds, on standardised columns, with the
Gaussian kernel of γ = 1 / E‖x − z‖².  All other parameters are defaults.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._models import Library, rbf, relative_excess
from ._problems import default_gamma, is_available, load_problem
from ._suite import Call, Case, Contender, Suite

SETS = ("letter", "kin40k", "pendigits", "usps", "protein")
FEATURE_MAPS = ("Nystroem", "RBFSampler")


def error_contender(library: str) -> Callable[..., Call]:
    """Return the `make` function of a contender whose call returns the error for each seed."""

    def prepare(name: str, model: str, n: int, m: int, seeds: int) -> Call:
        X, make = load_problem(name, n).X, getattr(Library(library), model)
        gamma = default_gamma(X)
        K = rbf(X, X, gamma)

        def error(F: np.ndarray) -> float:
            if model == "Nystroem":
                return 1.0 - float((F**2).sum() / np.trace(K))
            return float(np.linalg.norm(K - F @ F.T) / np.linalg.norm(K))

        def call() -> np.ndarray:
            samplers = (make(gamma=gamma, n_components=m, random_state=s) for s in range(seeds))
            errors = np.array([error(sampler.fit_transform(X)) for sampler in samplers])
            call.note = f"error {errors.mean():.4f} ± {errors.std(ddof=1):.4f} ({seeds} seeds)"
            return errors

        return call

    return prepare


def reference(name: str, model: str, n: int, m: int, seeds: int) -> np.ndarray:
    """Return the errors of scikit-learn; mercer's must not be larger."""
    return error_contender("scikit-learn")(name, model, n, m, seeds)()


def error_cases(quick: bool) -> list[Case]:
    n, seeds = (500, 2) if quick else (3000, 5)
    return [
        Case(
            f"{model} {name} m={m}",
            {"name": name, "model": model, "n": n, "m": m, "seeds": seeds},
            1e-9,
            relative_excess,
            family=f"`{model}`, error with equal numbers of features",
        )
        for model in FEATURE_MAPS
        for name in filter(is_available, SETS[:1] if quick else SETS)
        for m in ((50,) if quick else (50, 100, 200))
    ]


def timed_contender(library: str) -> Callable[..., Call]:
    """Return the `make` function of a contender whose call is fit_transform.

    The call returns the number of features.
    """

    def prepare(model: str, n: int, d: int, m: int) -> Call:
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
        make = getattr(Library(library), model)

        def call() -> np.ndarray:
            F = make(**options).fit_transform(X)
            return np.array([F.shape[1]], dtype=float)

        return call

    return prepare


def expected_features(model: str, n: int, d: int, m: int) -> np.ndarray:
    """Return the expected number of features; the suite `features-error` compares their errors."""
    return np.array([3 * d if model == "AdditiveChi2Sampler" else m], dtype=float)


def time_cases(quick: bool) -> list[Case]:
    n, d = (5000 if quick else 100_000), 20
    shapes = ((n, d, 100), (n, d, 300), (n // 10, 100, 300), (n // 3, 5, 50), (n, 3, 1000))
    return [
        Case(
            f"{model} n={n} d={d} m={m}",
            {"model": model, "n": n, "d": d, "m": m},
            family=f"`{model}.fit_transform`",
        )
        for model in (
            *FEATURE_MAPS,
            "SkewedChi2Sampler",
            "PolynomialCountSketch",
            "AdditiveChi2Sampler",
        )
        for n, d, m in (shapes[:1] if quick else shapes)
    ]


SUITES = {
    "features-error": Suite(
        "error with m features",
        error_cases,
        {
            "mercer": Contender("mercer", error_contender("mercer")),
            "scikit-learn": Contender("sklearn", error_contender("scikit-learn")),
        },
        reference,
        max_warm_up=0.0,
    ),
    "features-time": Suite(
        "fit_transform with m features",
        time_cases,
        {
            "mercer": Contender("mercer", timed_contender("mercer")),
            "scikit-learn": Contender("sklearn", timed_contender("scikit-learn")),
        },
        expected_features,
    ),
}
