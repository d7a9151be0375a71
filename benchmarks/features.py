"""Feature maps: the error at equal numbers of features, and the time of fit_transform.

The error of Nyström features is the trace of K − FFᵀ over that of K, the error of random ones
‖K − FFᵀ‖ / ‖K‖; both are means over seeds, on standardised columns, with the Gaussian kernel of
γ = 1 / E‖x − z‖².  All parameters but the number of features and the seed are the defaults.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._models import Library, excess, rbf
from ._problems import draw, there, width
from ._suite import Call, Case, Contender, Suite

SETS = ("letter", "kin40k", "pendigits", "usps", "protein")
MAPS = ("Nystroem", "RBFSampler")


def errors_of(library: str) -> Callable[..., Call]:
    """Return a contender whose call gives the error for each seed."""

    def ready(name: str, model: str, n: int, m: int, seeds: int) -> Call:
        X, make = draw(name, n).X, getattr(Library(library), model)
        gamma = width(X)
        K = rbf(X, X, gamma)

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
    return errors_of("scikit-learn")(name, model, n, m, seeds)()


def error_cases(quick: bool) -> list[Case]:
    n, seeds = (500, 2) if quick else (3000, 5)
    return [
        Case(
            f"{model} {name} m={m}",
            {"name": name, "model": model, "n": n, "m": m, "seeds": seeds},
            1e-9,
            excess,
            family=f"`{model}`, error at equal numbers of features",
        )
        for model in MAPS
        for name in filter(there, SETS[:1] if quick else SETS)
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
        make = getattr(Library(library), model)

        def call() -> np.ndarray:
            F = make(**options).fit_transform(X)
            return np.array([F.shape[1]], dtype=float)

        return call

    return ready


def count(model: str, n: int, d: int, m: int) -> np.ndarray:
    """Return how many features there are to be; their errors are those of the other suite."""
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
        for model in (*MAPS, "SkewedChi2Sampler", "PolynomialCountSketch", "AdditiveChi2Sampler")
        for n, d, m in (shapes[:1] if quick else shapes)
    ]


SUITES = {
    "features-error": Suite(
        "error at m features",
        error_cases,
        {
            "mercer": Contender("mercer", errors_of("mercer")),
            "scikit-learn": Contender("sklearn", errors_of("scikit-learn")),
        },
        reference,
        slow=0.0,
    ),
    "features-time": Suite(
        "fit_transform to m features",
        time_cases,
        {
            "mercer": Contender("mercer", timed("mercer")),
            "scikit-learn": Contender("sklearn", timed("scikit-learn")),
        },
        count,
    ),
}
