"""Code that the searches for embeddings share: scaling of the data, restarts, reports and signs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from ..._core import ProgressCallback, ProgressStep, Stopwatch, warn_caller
from ...solvers import Report, Status
from ..gp import Optimum


def standardise(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return X centred and scaled to a mean variance of 1, the mean of X, and the scale.

    The scale is computed relative to the largest entry, because squares of entries may overflow.
    """
    mean = X.mean(axis=0)
    Y = X - mean
    largest = float(max(Y.max(), -Y.min()))
    squares = Y / largest
    np.square(squares, out=squares)
    unit = largest * float(np.sqrt(np.mean(squares)))
    Y /= unit
    return Y, mean, unit


class RestartResult(NamedTuple):
    """The best of several runs of L-BFGS, the final values of all runs, and the report."""

    best: OptimizeResult
    values: np.ndarray
    report: Report


def minimise_from_starts(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    starts: Iterable[np.ndarray],
    *,
    name: str,
    max_iter: int,
    memory: int,
    residual: Callable[[OptimizeResult], float],
    tol: float,
    describe: Callable[[int, int, float], str],
    log: ProgressCallback | None,
    gtol: float = 0.0,
    has_converged: Callable[[], bool] = lambda: False,
) -> RestartResult:
    """Minimise a function by L-BFGS from each of several starts; return the best result.

    Parameters
    ----------
    objective : callable
        Returns the value and the gradient at a vector of parameters.
    starts : iterable of ndarrays
        The initial parameters of each run.
    name : str
        The name of the objective in the report.
    max_iter : int
        The maximum number of steps per run.
    memory : int
        The number of past steps that L-BFGS stores.
    residual : callable
        ``residual(run)`` returns the residual of the best run, which is compared with `tol`.
    tol : float
        The largest residual of a run that has converged.
    describe : callable
        ``describe(run, step, value)`` returns the progress message of a step; runs and steps count
        from 1.
    log : callable or None
        Function that is called with the progress messages.
    gtol : float, default=0
        A run ends when all entries of the gradient are below this value in modulus.
    has_converged : callable
        Another criterion, which is checked after each step.
    """
    watch, steps = Stopwatch(), 0
    runs: list[OptimizeResult] = []
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": memory, "ftol": 0.0}
    solver = {"jac": True, "method": "L-BFGS-B", "options": {**options, "gtol": gtol}}

    def report_step(intermediate_result: OptimizeResult) -> None:
        nonlocal steps
        steps += 1
        if log is not None:
            log(ProgressStep(describe(len(runs) + 1, steps, intermediate_result.fun)))
        if has_converged():
            raise StopIteration

    for start in starts:
        steps = 0
        runs.append(minimize(objective, start, callback=report_step, **solver))
    values = np.array([run.fun for run in runs])
    best = runs[int(values.argmin())]
    size = residual(best)
    spread = {"spread": float(np.ptp(values)), "restarts": len(values)}
    report = Report(
        solver=f"L-BFGS(n_init={len(values)})",
        status=Status.CONVERGED if size <= tol else Status.NOT_CONVERGED,
        n_iter=int(best.nit),
        residual=size,
        seconds=watch.seconds,
        certificate={name: float(values.min()), **spread},
    )
    return RestartResult(best, values, report)


def search_report(result: Optimum, watch: Stopwatch, solver: str, name: str, limits: str) -> Report:
    """Return the report of a search for latent coordinates; warn if it has not converged.

    `name` is the name of the objective in messages, and `limits` names the parameters that the user
    can increase.
    """
    if not result.converged:
        warn_caller(
            f"the search for latent coordinates ended after {result.evaluations} evaluations at a "
            f"{name} of {result.value:.6g} and may not have converged: {result.message}; raise "
            f"{limits}",
            ConvergenceWarning,
        )
    return Report(
        solver=solver,
        status=Status.CONVERGED if result.converged else Status.NOT_CONVERGED,
        n_iter=result.evaluations,
        seconds=watch.seconds,
        message=result.message,
        certificate={name: result.value},
    )


def fix_signs(W: np.ndarray) -> np.ndarray:
    """Return W with the largest entry of each column made positive, for reproducible signs."""
    largest = np.abs(W).argmax(axis=0)
    signs = np.sign(W[largest, np.arange(W.shape[1])])
    return np.asarray(W * np.where(signs == 0.0, 1.0, signs))
