"""Length scale and ridge by `mercer.tune` against a grid of 50 points with five folds.

`tune` follows the gradient of leave-one-out.  The peer is scikit-learn's grid search over its own
KernelRidge, 10 widths × 5 ridges.  Scores are R² on the test rows; a result below the grid's by
more than two standard errors of the difference is refused.  The row `mercer, ARD` has a length
scale for each column, another model, and is not held to that: its note says what it gains.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from ._problems import draw, family, width
from ._suite import Call, Case, Contender, Suite

SETS = tuple({"name": name} for name in ("concrete", "kin40k", "airfoil", "energy", "sml"))
SETS += ({"name": "protein"}, {"name": "friedman", "d": 10, "noise": 0.1})
GRID = {"gamma": np.geomspace(1e-2, 10.0, 10), "alpha": np.geomspace(1e-3, 10.0, 5)}


def _noted(fit: Any, Q: np.ndarray, truth: np.ndarray, checked: bool = True) -> Call:
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

    X, y, *test = draw(**inputs)
    start = float(np.sqrt(0.5 / width(X)))
    kernel = RBF([start] * X.shape[1] if ard else start)
    fit = lambda: tune(KernelRidge(kernel=kernel), X, y).estimator.fit(X, y)  # noqa: E731
    return _noted(fit, *test, checked=not ard)


def scikit(**inputs: Any) -> Call:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    X, y, *test = draw(**inputs)
    grid = GRID | {"gamma": width(X) * GRID["gamma"]}
    return _noted(lambda: GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(X, y), *test)


def behind(result: np.ndarray, reference: np.ndarray) -> float:
    """The mean of the squared errors above the grid's, in standard errors of the difference."""
    apart = result - reference
    return max(0.0, float(apart.mean() / (apart.std(ddof=1) / np.sqrt(len(apart)) + 1e-300)))


def gain(cases: list[dict]) -> str:
    """What a length scale for each column gains, over all sets."""
    lines = []
    for case in cases:
        notes = {who: record["note"] for who, record in case["contenders"].items()}
        lines.append(f"* {case['name']}: " + "; ".join(f"{who} {n}" for who, n in notes.items()))
    return "\n".join(lines)


def cases(quick: bool) -> list[Case]:
    return [
        Case(
            inputs["name"],
            inputs,
            tolerance=2.0,
            error=behind,
            family=f"`tune` on {inputs['n']} points, to the score of a grid of 50",
        )
        for inputs in family(SETS, quick, n=300 if quick else 1000, queries=2000)
    ]


SUITE = Suite(
    "tuning by gradients, against a grid search",
    cases,
    {
        "mercer": Contender("mercer", partial(mercer, False)),
        "mercer, ARD": Contender("mercer", partial(mercer, True)),
        "scikit-learn, grid": Contender("sklearn", scikit),
    },
    lambda **inputs: scikit(**inputs)(),
    slow=60.0,
    remarks=gain,
)
