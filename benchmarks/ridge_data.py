"""All rows of five real sets: kernel ridge regression on landmarks, and what it reaches.

Fold 0 of the UCI sets is for testing; columns and targets are standardised by the other folds.  γ
and α come from leave-one-out, over the same grid for all.  The figure is the RMSE, in units of the
targets' deviation; mercer may not be worse.
"""

from __future__ import annotations

import numpy as np

from ._models import excess
from ._problems import draw, there
from ._suite import Call, Case, Contender, Suite

SETS = ("kin40k", "protein", "tamielectric", "parkinsons", "bike")
GAMMAS = (0.1, 0.3, 1.0)
ALPHAS = np.geomspace(1e-4, 10.0, 11)


def noted(fit, X_test: np.ndarray, y_test: np.ndarray) -> Call:
    def call() -> np.ndarray:
        model, gamma, alpha = fit()
        error = float(np.sqrt(np.mean(np.square(model.predict(X_test) - y_test))))
        call.note = f"RMSE {error:.4f}, γ = {gamma:g}, α = {alpha:.2g}"
        return np.array([error])

    return call


def mercer(name: str, m: int, **_) -> Call:
    from mercer import KernelRidgeCV

    X, y, *test = draw(name)
    search = KernelRidgeCV(
        ALPHAS, kernel="rbf", gammas=GAMMAS, solver="nystroem", rank=m, fit_intercept=True
    )

    def fit():
        model = search.fit(X, y)
        return model, model.gamma_, model.alpha_

    return noted(fit, *test)


def scikit(name: str, m: int, **_) -> Call:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline

    X, y, *test = draw(name)

    def fit():
        tried = [
            make_pipeline(
                Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=0),
                RidgeCV(ALPHAS),
            ).fit(X, y)
            for gamma in GAMMAS
        ]
        best = max(range(len(tried)), key=lambda j: tried[j][-1].best_score_)
        return tried[best], GAMMAS[best], tried[best][-1].alpha_

    return noted(fit, *test)


def cases(quick: bool) -> list[Case]:
    m = 100 if quick else 1000
    words = f"`KernelRidgeCV.fit`, {m} landmarks, 11 alphas, 3 gammas, up to 41 000 rows"
    return [
        Case(f"{name}, {m} landmarks", {"name": name, "m": m}, 0.01, excess, family=words)
        for name in filter(there, SETS[3:] if quick else SETS)
    ]


SUITE = Suite(
    "kernel ridge regression on landmarks",
    cases,
    {"mercer": Contender("mercer", mercer), "scikit-learn": Contender("sklearn", scikit)},
    lambda name, m: scikit(name, m)(),
    slow=0.0,
)
