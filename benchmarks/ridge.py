"""Kernel ridge regression: one fit, from points to coefficients, α = 1.

The error is ‖y − (K + αI)a‖ / ‖y‖ in random rows of K, which come from differences.  The last case
is exact with 50 000 points in less than 8 GiB, where K alone has 20 GB.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import _models
from ._problems import VALUES, draw, family, title, width
from ._suite import Call, Case, Contender, Suite
from .pca import noted

PROBES = 256  # rows of K in which the residual is looked at


def mercer(solver: str, max_memory: Any = None, **inputs: Any) -> Call:
    from mercer import KernelRidge

    X, y, *_ = draw(**inputs)
    options = {"kernel": "rbf", "gamma": width(X), "solver": solver, "max_memory": max_memory}
    return noted(
        lambda: KernelRidge(alpha=_models.ALPHA, **options).fit(X, y),
        lambda model: model.dual_coef_,
        work,
    )


def work(model: Any) -> str:
    """Which solver it was in the end, and how many passes over K it took."""
    report = model.report_
    name = report.solver.partition("(")[0]
    return f"{name}, {report.n_iter} passes" if report.n_iter else name


def scikit(max_memory: Any = None, **inputs: Any) -> Call:
    from sklearn.kernel_ridge import KernelRidge

    X, y, *_ = draw(**inputs)
    options = {"kernel": "rbf", "gamma": width(X)}
    return lambda: KernelRidge(alpha=_models.ALPHA, **options).fit(X, y).dual_coef_


def probes(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice(n, PROBES, replace=False)


def rows(max_memory: Any = None, **inputs: Any) -> np.ndarray:
    """Random rows of K + αI, from differences, and beside them those of y."""
    X, y, *_ = draw(**inputs)
    some = probes(len(X))
    K = _models.rbf(X[some], X, width(X))
    K[np.arange(PROBES), some] += _models.ALPHA
    return np.column_stack([K, y[some]])


def residual(result: np.ndarray, reference: np.ndarray) -> float:
    A, y = reference[:, :-1], reference[:, -1]
    return float(np.linalg.norm(y - A @ result) / np.linalg.norm(y))


def cases(quick: bool) -> list[Case]:
    n, many, budget = (3500, 6000, "100 MiB") if quick else (10_000, 50_000, "8 GiB")
    common = {"tolerance": 1e-12, "error": residual}
    whole = {"name": "normal", "n": many, "d": 10, "max_memory": budget}
    return [
        *(
            Case(title(inputs), inputs, **common, family=f"`KernelRidge.fit`, {n} points")
            for inputs in family(VALUES, quick, n=n)
        ),
        Case(f"n={many} d=10 within {budget}", whole, contenders=("mercer",), **common),
    ]


SUITE = Suite(
    "kernel ridge regression",
    cases,
    {
        "mercer": Contender("mercer", partial(mercer, "auto")),
        "mercer, mixed": Contender("mercer", partial(mercer, "mixed")),
        "mercer, cholesky": Contender("mercer", partial(mercer, "cholesky")),
        "scikit-learn": Contender("sklearn", scikit),
    },
    rows,
    slow=60.0,
)
