"""Choosing alpha: a search over 30 of them with leave-one-out, against as many single fits.

The result that is checked is the solution for the alpha that leave-one-out prefers.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from . import _models
from ._suite import Call, Case, Contender, Suite

ALPHAS = np.geomspace(1e-3, 1e3, 30)


def options(gamma: float, m: int) -> dict:
    common = {"kernel": "rbf", "gamma": gamma}
    return common | ({"solver": "nystroem", "rank": m, "random_state": 0} if m else {})


def search(m: int, **size) -> Call:
    from mercer import KernelRidgeCV

    X, y, gamma = _models.problem(**size)
    return lambda: KernelRidgeCV(ALPHAS, **options(gamma, m)).fit(X, y).predict(X[:100])


def fits(library: str, count: int, m: int, **size) -> Call:
    """The fits alone, for `count` alphas with the best among them, and no scores."""
    X, y, gamma = _models.problem(**size)
    best = best_alpha(m, **size)
    if library == "mercer":
        from mercer import KernelRidge

        make = partial(KernelRidge, **options(gamma, m))
    else:
        from sklearn.kernel_ridge import KernelRidge

        make = partial(KernelRidge, kernel="rbf", gamma=gamma)

    def fit() -> np.ndarray:
        for alpha in ALPHAS[: count - 1]:
            make(alpha).fit(X, y)
        return make(best).fit(X, y).predict(X[:100])

    return fit


def best_alpha(m: int, **size) -> float:
    from mercer import KernelRidgeCV

    X, y, gamma = _models.problem(**size)
    return KernelRidgeCV(ALPHAS, **options(gamma, m)).fit(X, y).alpha_


def reference(m: int, **size) -> np.ndarray:
    from mercer import KernelRidge

    X, y, gamma = _models.problem(**size)
    exact = KernelRidge(best_alpha(m, **size), **options(gamma, m)).fit(X, y)
    return exact.predict(X[:100])


def cases(quick: bool) -> list[Case]:
    exact = {"n": 1500 if quick else 5000, "d": 20, "seed": 0, "m": 0}
    landmarks = {"n": 4000 if quick else 20_000, "d": 20, "seed": 0, "m": 300 if quick else 1000}
    return [
        Case(
            f"exact, n={exact['n']}",
            exact,
            tolerance=1e-8,
            contenders=("mercer", "30 fits", "30 fits, scikit-learn"),
        ),
        Case(
            f"{landmarks['m']} landmarks, n={landmarks['n']}",
            landmarks,
            tolerance=1e-8,
            contenders=("mercer", "1 fit"),
        ),
    ]


SUITE = Suite(
    "30 alphas by leave-one-out",
    cases,
    {
        "mercer": Contender("mercer", search),
        "30 fits": Contender("mercer", partial(fits, "mercer", 30)),
        "1 fit": Contender("mercer", partial(fits, "mercer", 1)),
        "30 fits, scikit-learn": Contender("sklearn", partial(fits, "scikit-learn", 30)),
    },
    reference,
    slow=0.0,
)
