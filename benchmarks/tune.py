"""Tuning of length scale and ridge by `mercer.tune`, compared with a grid search.

`tune` follows the gradient of the leave-one-out error.  The peer is scikit-learn's grid search with
five folds over its own KernelRidge, with 10 values of γ × 5 of α.  Scores are R² on the test rows.
A result is rejected if it is worse than that of the grid by more than two standard errors of the
difference.  The row `mercer, ARD` uses one length scale per column.  It is a different model and is
not checked; its note shows what it gains.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from ._problems import default_gamma, load_problem, problem_family
from ._suite import Call, Case, Contender, Suite

SETS = tuple({"name": name} for name in ("concrete", "kin40k", "airfoil", "energy", "sml"))
SETS += ({"name": "protein"}, {"name": "friedman", "d": 10, "noise": 0.1})
GRID = {"gamma": np.geomspace(1e-2, 10.0, 10), "alpha": np.geomspace(1e-3, 10.0, 5)}


def _test_score_call(fit: Any, Q: np.ndarray, truth: np.ndarray, checked: bool = True) -> Call:
    """Return a call that fits, predicts the test rows and sets its note."""

    def call() -> np.ndarray | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            squares = np.square(fit().predict(Q) - truth)
        call.note = f"R² {1 - squares.mean() / truth.var():.4f}"
        return squares if checked else None

    return call


def mercer(ard: bool, **inputs: Any) -> Call:
    from mercer import KernelRidge, tune
    from mercer.kernels import RBF

    X, y, *test = load_problem(**inputs)
    start = float(np.sqrt(0.5 / default_gamma(X)))
    kernel = RBF([start] * X.shape[1] if ard else start)
    fit = lambda: tune(KernelRidge(kernel=kernel), X, y).estimator.fit(X, y)  # noqa: E731
    return _test_score_call(fit, *test, checked=not ard)


def scikit(**inputs: Any) -> Call:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    X, y, *test = load_problem(**inputs)
    grid = GRID | {"gamma": default_gamma(X) * GRID["gamma"]}
    return _test_score_call(
        lambda: GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(X, y), *test
    )


def error_increase(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the increase of the mean squared error over the grid's, in standard errors."""
    difference = result - reference
    return max(
        0.0, float(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)) + 1e-300))
    )


def format_scores(cases: list[dict]) -> str:
    """Return a list of the test scores of all contenders on all sets."""
    lines = []
    for case in cases:
        notes = {contender: record["note"] for contender, record in case["contenders"].items()}
        lines.append(
            f"* {case['name']}: " + "; ".join(f"{contender} {n}" for contender, n in notes.items())
        )
    return "\n".join(lines)


def cases(quick: bool) -> list[Case]:
    return [
        Case(
            inputs["name"],
            inputs,
            tolerance=2.0,
            error=error_increase,
            family=f"`tune` on {inputs['n']} points, to the score of a grid of 50",
        )
        for inputs in problem_family(SETS, quick, n=300 if quick else 1000, queries=2000)
    ]


SUITE = Suite(
    "tuning by gradients, compared with a grid search",
    cases,
    {
        "mercer": Contender("mercer", partial(mercer, False)),
        "mercer, ARD": Contender("mercer", partial(mercer, True)),
        "scikit-learn, grid": Contender("sklearn", scikit),
    },
    lambda **inputs: scikit(**inputs)(),
    max_warm_up=60.0,
    postprocess=format_scores,
)
