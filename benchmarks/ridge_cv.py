"""Choose alpha among 30 values by leave-one-out, compared with as many single fits.

The result that is checked is the prediction for the alpha that leave-one-out chooses.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import VALUES, default_gamma, describe, load_problem, problem_family
from ._suite import Call, Case, Contender, Suite

ALPHAS = np.geomspace(1e-3, 1e3, 30)


def ridge_options(gamma: float, m: int) -> dict:
    """Return the parameters of the estimator; with m landmarks if m is positive."""
    common = {"kernel": "rbf", "gamma": gamma}
    return common | ({"solver": "nystroem", "rank": m, "random_state": 0} if m else {})


def make_search(m: int, **inputs) -> Call:
    """Return a call of `KernelRidgeCV.fit`."""
    from mercer import KernelRidgeCV

    X, y, *_ = load_problem(**inputs)
    return lambda: (
        KernelRidgeCV(ALPHAS, **ridge_options(default_gamma(X), m)).fit(X, y).predict(X[:100])
    )


def make_fits(library: str, count: int, m: int, **inputs) -> Call:
    """Return a call that makes `count` single fits, the last one with the best alpha."""
    X, y, *_ = load_problem(**inputs)
    best = best_alpha(m, **inputs)
    if library == "mercer":
        from mercer import KernelRidge

        make = partial(KernelRidge, **ridge_options(default_gamma(X), m))
    else:
        from sklearn.kernel_ridge import KernelRidge

        make = partial(KernelRidge, kernel="rbf", gamma=default_gamma(X))

    def fit() -> np.ndarray:
        for alpha in ALPHAS[: count - 1]:
            make(alpha).fit(X, y)
        return make(best).fit(X, y).predict(X[:100])

    return fit


def best_alpha(m: int, **inputs) -> float:
    """Return the alpha that leave-one-out chooses."""
    from mercer import KernelRidgeCV

    X, y, *_ = load_problem(**inputs)
    return KernelRidgeCV(ALPHAS, **ridge_options(default_gamma(X), m)).fit(X, y).alpha_


def reference(m: int, **inputs) -> np.ndarray:
    """Return predictions for the best alpha."""
    from mercer import KernelRidge

    X, y, *_ = load_problem(**inputs)
    exact = KernelRidge(best_alpha(m, **inputs), **ridge_options(default_gamma(X), m)).fit(X, y)
    return exact.predict(X[:100])


def cases(quick: bool) -> list[Case]:
    n, n_large, m = (1500, 4000, 300) if quick else (5000, 20_000, 1000)
    exact, landmarks = ("mercer", "30 fits", "30 fits, scikit-learn"), ("mercer", "1 fit")
    common = {"tolerance": 1e-8}
    return [
        *(
            Case(
                f"exact, {describe(inputs)}",
                inputs,
                **common,
                contenders=exact,
                family=f"`KernelRidgeCV.fit`, 30 alphas by leave-one-out, {n} points",
            )
            for inputs in problem_family(VALUES, quick, n=n, m=0)
        ),
        *(
            Case(
                f"{m} landmarks, {describe(inputs)}",
                inputs,
                **common,
                contenders=landmarks,
                family=f"`KernelRidgeCV.fit`, 30 alphas, {m} landmarks of {n_large} points",
            )
            for inputs in problem_family(VALUES, quick, n=n_large, m=m)
        ),
    ]


SUITE = Suite(
    "30 alphas by leave-one-out",
    cases,
    {
        "mercer": Contender("mercer", make_search),
        "30 fits": Contender("mercer", partial(make_fits, "mercer", 30)),
        "1 fit": Contender("mercer", partial(make_fits, "mercer", 1)),
        "30 fits, scikit-learn": Contender("sklearn", partial(make_fits, "scikit-learn", 30)),
    },
    reference,
    max_warm_up=0.0,
)
