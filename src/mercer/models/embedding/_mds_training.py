"""Multidimensional scaling (MDS): coordinates whose distances approximate given dissimilarities.

Metric MDS minimises the stress S by L-BFGS over u_i = sqrt(v_i) z_i, for the coordinates z_i and
the weights w_ij of the pairs, with v_i = sum_j w_ij.  In these variables, with equal weights, a
majorisation step (SMACOF) is half the negative gradient.  The length of that step relative to |u|
measures how close a result is to a stationary point, independently of units; the report contains it
as the residual.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse.linalg import ArpackError, eigsh
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning

from ..._core import ProgressStep, Stopwatch, entry_point, one_blas_thread, warn_caller
from ..._core.linalg import eigh
from ...solvers import Report, Status
from ._ppca_training import fix_signs
from ._stress import Stress

__all__ = ["MDSResult", "classical_mds", "metric_mds"]

_MAX_DENSE_POINTS = 200  # up to this many points, a dense eigensolver replaces ARPACK
_LBFGS_MEMORY = 10  # number of past steps that L-BFGS stores
_DISPLACEMENT = 1e-3  # random displacement along constant axes, relative to the largest spread


class MDSResult(NamedTuple):
    """The coordinates Z, the final stress of each run, and the report of the solver."""

    Z: np.ndarray
    stresses: np.ndarray
    report: Report


@entry_point
def classical_mds(delta: np.ndarray, q: int) -> np.ndarray:
    """Return the coordinates of classical MDS: kernel PCA of the matrix -delta^2 / 2.

    Parameters
    ----------
    delta : ndarray of shape (n (n - 1) / 2,)
        Dissimilarities of all pairs, in the order of SciPy's `pdist`.
    q : int
        The number of dimensions.

    Returns
    -------
    ndarray of shape (n, q)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.models.embedding import classical_mds
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    >>> np.allclose(pdist(classical_mds(pdist(X), 2)), pdist(X))
    True
    """
    B = squareform(delta)
    np.multiply(B, B, out=B)
    B *= -0.5
    mean = B.mean(axis=0)
    B -= mean
    B -= (mean - mean.mean())[:, None]
    n = len(B)
    with one_blas_thread:
        try:
            if n <= max(_MAX_DENSE_POINTS, 3 * q):
                raise ArpackError(0)
            start = np.random.default_rng(0).standard_normal(n)
            values, vectors = eigsh(B, k=q, which="LA", v0=start, tol=1e-4, maxiter=20 * n)
        except ArpackError:  # ARPACK did not converge, or was skipped because of few points
            subset = [max(0, n - q), n - 1]
            values, vectors = eigh(B, subset_by_index=subset, overwrite_a=True, check_finite=False)
    order = np.argsort(-values)[:q]
    Z = np.zeros((n, q))
    Z[:, : len(order)] = fix_signs(vectors[:, order]) * np.sqrt(np.maximum(values[order], 0.0))
    return Z


@entry_point
def metric_mds(
    S: Stress,
    q: int,
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 1000,
    rng: np.random.Generator | None = None,
    log: Function[[str], None] | None = None,
) -> MDSResult:
    """Return the coordinates of metric MDS, which minimise the stress S.

    The first run starts from classical MDS, the other n_init - 1 runs from random coordinates.  The
    result of the best run is centred and rotated to its principal axes.

    Parameters
    ----------
    S : Stress
        The stress as a function of the coordinates.
    q : int
        The number of dimensions.
    n_init : int, default=1
        The number of runs.
    tol : float, default=1e-5
        A run has converged when a majorisation step would change the coordinates by less than this
        relative amount.
    max_iter : int, default=1000
        The maximum number of L-BFGS steps per run.
    rng : Generator, optional
        The random generator; by default, one with the seed 0.
    log : function, optional
        Function that is called with a progress message after each step.

    Returns
    -------
    MDSResult
        The coordinates `Z`, the `stresses` of all runs, and the `report`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.models.embedding import Stress, metric_mds
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> result = metric_mds(Stress(pdist(X)), 2)
    >>> np.allclose(pdist(result.Z), pdist(X), atol=1e-3)
    True
    """
    rng = np.random.default_rng(0) if rng is None else rng
    watch = Stopwatch()
    runs = []
    for k in range(n_init):
        if k:
            start = rng.standard_normal((S.n, q)) * np.sqrt(S.total / (S.mass.sum() * q))
        else:
            start = _displace_constant_axes(classical_mds(S.delta, q), rng)
        runs.append(_run_lbfgs(S, start, tol, max_iter, k, n_init, log))
    stresses = np.array([run.fun for run in runs])
    best = runs[int(stresses.argmin())]
    relative_step = best.relative_step
    if relative_step > tol:
        warn_caller(
            f"L-BFGS stopped after {best.nit} steps (max_iter={max_iter}) without convergence: a "
            f"majorisation step would change the coordinates by {relative_step:.1e}, relative to "
            f"their size, which is more than tol={tol:.1e}; raise max_iter or tol",
            ConvergenceWarning,
        )
    report = Report(
        f"L-BFGS(n_init={n_init})",
        Status.CONVERGED if relative_step <= tol else Status.NOT_CONVERGED,
        int(best.nit),
        float(relative_step),
        watch.seconds,
        "",
        {"stress": float(stresses.min()), "spread": float(np.ptp(stresses)), "restarts": n_init},
    )
    Z = best.Z - best.Z.mean(axis=0)
    return MDSResult(Z @ fix_signs(np.linalg.eigh(Z.T @ Z)[1][:, ::-1]), stresses, report)


def _displace_constant_axes(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add small random displacements along axes on which all points are 0.

    The gradient of the stress vanishes along these axes, so that L-BFGS would never use them.
    """
    spread = np.sqrt(np.mean(Z * Z, axis=0))
    constant = spread <= _DISPLACEMENT * spread.max()
    Z[:, constant] += (
        _DISPLACEMENT * spread.max() * rng.standard_normal((len(Z), int(constant.sum())))
    )
    return Z


def _run_lbfgs(
    S: Stress,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    k: int,
    n_init: int,
    log: Function[[str], None] | None,
) -> OptimizeResult:
    """Run L-BFGS from `start`; return the coordinates and the relative majorisation step."""
    unit = np.sqrt(S.total / S.mass)[:, None]
    last: dict[str, float] = {"relative_step": np.inf, "steps": 0}

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = S(u.reshape(start.shape) * unit)
        g = (gradient * unit).ravel()
        last["relative_step"] = (
            0.5 * float(np.linalg.norm(g)) / max(float(np.linalg.norm(u)), 1e-300)
        )
        return value, g

    def report_step(intermediate_result: OptimizeResult) -> None:
        last["steps"] += 1
        if log is not None:
            value = intermediate_result.fun
            log(ProgressStep(f"run {k + 1} of {n_init}, step {last['steps']}: stress {value:.6g}"))
        if last["relative_step"] <= tol:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": _LBFGS_MEMORY, "ftol": 0.0}
    result = minimize(
        objective,
        (start / unit).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=report_step,
        options={**options, "gtol": 0.0},
    )
    objective(result.x)
    return OptimizeResult(
        Z=result.x.reshape(start.shape) * unit,
        fun=result.fun,
        nit=result.nit,
        relative_step=last["relative_step"],
    )
