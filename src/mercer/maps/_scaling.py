"""Metric scaling: places whose distances are as near to dissimilarities as can be.

L-BFGS descends on S in the units u_i = sqrt(v_i) z_i with v_i = sum_j w_ij, in which a step of
majorisation (SMACOF) is half the gradient, if weights are equal.  The length of that step relative
to u is the certificate of a minimum: it does not depend on units.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse.linalg import ArpackError, eigsh
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import Step, Stopwatch, entry_point, one_blas_thread
from .._runtime.linalg import eigh
from ..solvers import Report, Status
from ._ppca import signed
from ._stress import Stress

__all__ = ["Scaled", "classical", "scale"]

_FEW = 200  # points up to which all eigenvectors are computed
_MEMORY = 10  # steps that L-BFGS remembers
_ASIDE = 1e-3  # of the spread, how far points are moved along an axis without any


class Scaled(NamedTuple):
    """Places, the S of all descents, and what was done."""

    Z: np.ndarray
    stresses: np.ndarray
    report: Report


@entry_point
def classical(delta: np.ndarray, q: int) -> np.ndarray:
    """Return the places of classical scaling, which is kernel PCA of -delta^2 / 2.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.maps import classical
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    >>> np.allclose(pdist(classical(pdist(X), 2)), pdist(X))
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
            if n <= max(_FEW, 3 * q):
                raise ArpackError(0)
            start = np.random.default_rng(0).standard_normal(n)
            values, vectors = eigsh(B, k=q, which="LA", v0=start, tol=1e-4, maxiter=20 * n)
        except ArpackError:  # or few points
            which = [max(0, n - q), n - 1]
            values, vectors = eigh(B, subset_by_index=which, overwrite_a=True, check_finite=False)
    order = np.argsort(-values)[:q]
    Z = np.zeros((n, q))
    Z[:, : len(order)] = signed(vectors[:, order]) * np.sqrt(np.maximum(values[order], 0.0))
    return Z


@entry_point
def scale(
    S: Stress,
    q: int,
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 1000,
    rng: np.random.Generator | None = None,
    say: Function[[str], None] | None = None,
) -> Scaled:
    """Return places of least stress: from classical scaling, or n_init - 1 random places.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.maps import Stress, scale
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> found = scale(Stress(pdist(X)), 2)
    >>> np.allclose(pdist(found.Z), pdist(X), atol=1e-3)
    True
    """
    rng = np.random.default_rng(0) if rng is None else rng
    watch = Stopwatch()
    ends = []
    for k in range(n_init):
        if k:
            start = rng.standard_normal((S.n, q)) * np.sqrt(S.total / (S.mass.sum() * q))
        else:
            start = _aside(classical(S.delta, q), rng)
        ends.append(_descend(S, start, tol, max_iter, k, n_init, say))
    stresses = np.array([end.fun for end in ends])
    best = ends[int(stresses.argmin())]
    left = best.left
    if left > tol:
        warn_caller(
            f"L-BFGS has ended after {best.nit} steps (max_iter={max_iter}), where a step of "
            f"majorisation would still move the map by {left:.1e} of its size, more than "
            f"tol={tol:.1e}; raise max_iter or tol",
            ConvergenceWarning,
        )
    report = Report(
        f"L-BFGS(n_init={n_init})",
        Status.CONVERGED if left <= tol else Status.NOT_CONVERGED,
        int(best.nit),
        float(left),
        watch.seconds,
        "",
        {"stress": float(stresses.min()), "spread": float(np.ptp(stresses)), "restarts": n_init},
    )
    Z = best.Z - best.Z.mean(axis=0)
    return Scaled(Z @ signed(np.linalg.eigh(Z.T @ Z)[1][:, ::-1]), stresses, report)


def _aside(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move points along axes on which they are all 0: stress has no slope along these."""
    spread = np.sqrt(np.mean(Z * Z, axis=0))
    flat = spread <= _ASIDE * spread.max()
    Z[:, flat] += _ASIDE * spread.max() * rng.standard_normal((len(Z), int(flat.sum())))
    return Z


def _descend(
    S: Stress,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    k: int,
    n_init: int,
    say: Function[[str], None] | None,
) -> OptimizeResult:
    """Return where L-BFGS ends, with the places Z and the certificate `left`."""
    unit = np.sqrt(S.total / S.mass)[:, None]
    last: dict[str, float] = {"left": np.inf, "steps": 0}

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = S(u.reshape(start.shape) * unit)
        g = (slope * unit).ravel()
        last["left"] = 0.5 * float(np.linalg.norm(g)) / max(float(np.linalg.norm(u)), 1e-300)
        return value, g

    def tell(intermediate_result: OptimizeResult) -> None:
        last["steps"] += 1
        if say is not None:
            value = intermediate_result.fun
            say(Step(f"descent {k + 1} of {n_init}, step {last['steps']}: stress {value:.6g}"))
        if last["left"] <= tol:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": _MEMORY, "ftol": 0.0}
    found = minimize(
        objective,
        (start / unit).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=tell,
        options={**options, "gtol": 0.0},
    )
    objective(found.x)
    return OptimizeResult(
        Z=found.x.reshape(start.shape) * unit, fun=found.fun, nit=found.nit, left=last["left"]
    )
