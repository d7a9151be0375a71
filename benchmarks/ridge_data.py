"""Test error of kernel ridge regression with landmarks, on all rows of five real data sets.

Fold 0 of the UCI sets is used for testing; columns and targets are standardised with the other
folds.  γ and α are chosen by leave-one-out from the same grid.  The result is the RMSE in units of
the standard deviation of the targets; that of mercer must not be larger.
"""

from __future__ import annotations

import numpy as np

from ._models import relative_excess
from ._problems import is_available, load_problem
from ._suite import Call, Case, Contender, Suite

SETS = ("kin40k", "protein", "tamielectric", "parkinsons", "bike")
GAMMAS = (0.1, 0.3, 1.0)
ALPHAS = np.geomspace(1e-4, 10.0, 11)


def test_error_call(fit, X_test: np.ndarray, y_test: np.ndarray) -> Call:
    """Return a call that fits, computes the RMSE on the test rows and sets its note."""

    def call() -> np.ndarray:
        model, gamma, alpha = fit()
        error = float(np.sqrt(np.mean(np.square(model.predict(X_test) - y_test))))
        call.note = f"RMSE {error:.4f}, γ = {gamma:g}, α = {alpha:.2g}"
        return np.array([error])

    return call


def mercer(name: str, m: int, **_) -> Call:
    from mercer import KernelRidgeCV

    X, y, *test = load_problem(name)
    search = KernelRidgeCV(
        ALPHAS, kernel="rbf", gammas=GAMMAS, solver="nystroem", rank=m, fit_intercept=True
    )

    def fit():
        model = search.fit(X, y)
        return model, model.gamma_, model.alpha_

    return test_error_call(fit, *test)


def scikit(name: str, m: int, **_) -> Call:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline

    X, y, *test = load_problem(name)

    def fit():
        pipelines = [
            make_pipeline(
                Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=0),
                RidgeCV(ALPHAS),
            ).fit(X, y)
            for gamma in GAMMAS
        ]
        best = max(range(len(pipelines)), key=lambda j: pipelines[j][-1].best_score_)
        return pipelines[best], GAMMAS[best], pipelines[best][-1].alpha_

    return test_error_call(fit, *test)


def cases(quick: bool) -> list[Case]:
    m = 100 if quick else 1000
    family = f"`KernelRidgeCV.fit`, {m} landmarks, 11 alphas, 3 gammas, up to 41 000 rows"
    return [
        Case(f"{name}, {m} landmarks", {"name": name, "m": m}, 0.01, relative_excess, family=family)
        for name in filter(is_available, SETS[3:] if quick else SETS)
    ]


SUITE = Suite(
    "kernel ridge regression with landmarks",
    cases,
    {"mercer": Contender("mercer", mercer), "scikit-learn": Contender("sklearn", scikit)},
    lambda name, m: scikit(name, m)(),
    max_warm_up=0.0,
)
