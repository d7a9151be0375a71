"""Choosing alpha: a search over 30 of them with leave-one-out, against as many single fits.

The result that is checked is the solution for the alpha that leave-one-out prefers.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import VALUES, draw, family, title, width
from ._suite import Call, Case, Contender, Suite

ALPHAS = np.geomspace(1e-3, 1e3, 30)


def options(gamma: float, m: int) -> dict:
    common = {"kernel": "rbf", "gamma": gamma}
    return common | ({"solver": "nystroem", "rank": m, "random_state": 0} if m else {})


def search(m: int, **size) -> Call:
    from mercer import KernelRidgeCV

    X, y, *_ = draw(**size)
    return lambda: KernelRidgeCV(ALPHAS, **options(width(X), m)).fit(X, y).predict(X[:100])


def fits(library: str, count: int, m: int, **size) -> Call:
    """The fits alone, for `count` alphas with the best among them, and no scores."""
    X, y, *_ = draw(**size)
    best = best_alpha(m, **size)
    if library == "mercer":
        from mercer import KernelRidge

        make = partial(KernelRidge, **options(width(X), m))
    else:
        from sklearn.kernel_ridge import KernelRidge

        make = partial(KernelRidge, kernel="rbf", gamma=width(X))

    def fit() -> np.ndarray:
        for alpha in ALPHAS[: count - 1]:
            make(alpha).fit(X, y)
        return make(best).fit(X, y).predict(X[:100])

    return fit


def best_alpha(m: int, **size) -> float:
    from mercer import KernelRidgeCV

    X, y, *_ = draw(**size)
    return KernelRidgeCV(ALPHAS, **options(width(X), m)).fit(X, y).alpha_


def reference(m: int, **size) -> np.ndarray:
    from mercer import KernelRidge

    X, y, *_ = draw(**size)
    exact = KernelRidge(best_alpha(m, **size), **options(width(X), m)).fit(X, y)
    return exact.predict(X[:100])


def cases(quick: bool) -> list[Case]:
    n, many, m = (1500, 4000, 300) if quick else (5000, 20_000, 1000)
    exact, landmarks = ("mercer", "30 fits", "30 fits, scikit-learn"), ("mercer", "1 fit")
    common = {"tolerance": 1e-8}
    return [
        *(
            Case(
                f"exact, {title(inputs)}",
                inputs,
                **common,
                contenders=exact,
                family=f"`KernelRidgeCV.fit`, 30 alphas by leave-one-out, {n} points",
            )
            for inputs in family(VALUES, quick, n=n, m=0)
        ),
        *(
            Case(
                f"{m} landmarks, {title(inputs)}",
                inputs,
                **common,
                contenders=landmarks,
                family=f"the same on {m} landmarks of {many} points",
            )
            for inputs in family(VALUES, quick, n=many, m=m)
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
