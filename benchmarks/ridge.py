"""One fit of kernel ridge regression, from points to coefficients, with α = 1.

The error is ‖y − (K + αI)a‖ / ‖y‖ in random rows of K, which are computed from differences.  The
last case is exact with 50 000 points in less than 8 GiB, where K alone would take 20 GB.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import _models
from ._problems import VALUES, default_gamma, describe, load_problem, problem_family
from ._suite import Call, Case, Contender, Suite
from .pca import call_with_note

N_CHECKED_ROWS = 256  # number of rows of K in which the residual is computed


def mercer(solver: str, max_memory: Any = None, **inputs: Any) -> Call:
    from mercer import KernelRidge

    X, y, *_ = load_problem(**inputs)
    options = {
        "kernel": "rbf",
        "gamma": default_gamma(X),
        "solver": solver,
        "max_memory": max_memory,
    }
    return call_with_note(
        lambda: KernelRidge(alpha=_models.ALPHA, **options).fit(X, y),
        lambda model: model.dual_coef_,
        describe_solver,
    )


def describe_solver(model: Any) -> str:
    """Return the name of the solver that was used, and its number of passes over K."""
    report = model.report_
    name = report.solver.partition("(")[0]
    return f"{name}, {report.n_iter} passes" if report.n_iter else name


def scikit(max_memory: Any = None, **inputs: Any) -> Call:
    from sklearn.kernel_ridge import KernelRidge

    X, y, *_ = load_problem(**inputs)
    options = {"kernel": "rbf", "gamma": default_gamma(X)}
    return lambda: KernelRidge(alpha=_models.ALPHA, **options).fit(X, y).dual_coef_


def checked_rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice(n, N_CHECKED_ROWS, replace=False)


def random_system_rows(max_memory: Any = None, **inputs: Any) -> np.ndarray:
    """Return random rows of K + αI, computed from differences, with y in an additional column."""
    X, y, *_ = load_problem(**inputs)
    indices = checked_rows(len(X))
    K = _models.rbf(X[indices], X, default_gamma(X))
    K[np.arange(N_CHECKED_ROWS), indices] += _models.ALPHA
    return np.column_stack([K, y[indices]])


def residual(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative residual in the checked rows."""
    A, y = reference[:, :-1], reference[:, -1]
    return float(np.linalg.norm(y - A @ result) / np.linalg.norm(y))


def cases(quick: bool) -> list[Case]:
    n, n_large, budget = (3500, 6000, "100 MiB") if quick else (10_000, 50_000, "8 GiB")
    common = {"tolerance": 1e-12, "error": residual}
    large_inputs = {"name": "normal", "n": n_large, "d": 10, "max_memory": budget}
    return [
        *(
            Case(describe(inputs), inputs, **common, family=f"`KernelRidge.fit`, {n} points")
            for inputs in problem_family(VALUES, quick, n=n)
        ),
        Case(f"n={n_large} d=10 within {budget}", large_inputs, contenders=("mercer",), **common),
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
    random_system_rows,
    max_warm_up=60.0,
)
