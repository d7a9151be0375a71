"""Herding: a sample summarised greedily, point after point.

    x_(t+1) minimises  sum_(s <= t) k(x, x_s) + k(x, x) / 2 - (t + 1) mu(x):

of all candidates the one with which t + 1 points of equal weight come closest to the mean mu.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._points import concatenate
from .._runtime import entry_point, is_count, one_blas_thread
from ..expansion import Expansion
from ._mmd import squared_norm
from ._recentred import recentred
from ._summary import Mean, Summary, check_summary, optimal_weights

__all__ = ["herd"]


@entry_point
@one_blas_thread
def herd(
    X: Any,
    n_points: int,
    kernel: Any = None,
    *,
    weights: str = "equal",
    refine: int = 0,
    max_memory: int | str | None = None,
) -> Summary:
    """Summarise X by m of its points, chosen one after the other for the least MMD^2 to X.

    The first j points are the herding of j points.  Each step reads one column of K; the mean at
    all points takes one pass over K, in tiles.

    Parameters
    ----------
    X, n_points, kernel, weights, max_memory
        As in `thin`.
    refine : int
        Then move all points at once by so many steps of L-BFGS, at most, down the gradient of
        MMD^2, away from the data: for vectors and differentiable kernels.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import herd
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> few = herd(X, 20)
    >>> few.points.shape, bool(few.mmd < 0.002)
    ((20, 2), True)
    """
    if not is_count(refine, 0):
        raise ValueError(f"refine must be a number of steps, 0 or more, got {refine!r}")
    mean = Mean.of(X, kernel, max_memory)
    m = check_summary(n_points, len(mean), weights, max_memory)
    chosen = np.empty(m, dtype=np.intp)
    score = 0.5 * mean.diagonal  # sum over those chosen + k(x, x) / 2; infinite at those chosen
    for t in range(m):
        chosen[t] = np.argmin(score - (t + 1) * mean.values)
        score += mean.column(chosen[t])
        score[chosen[t]] = np.inf
    found = mean.summary(chosen, weights)
    return _refined(mean, found, weights, refine) if refine else found


def _refined(mean: Mean, start: Summary, weights: str, steps: int) -> Summary:
    """Move the points down the gradient 2 w_i (f - mu)'(p_i), f = sum_i w_i k(p_i, .)."""
    kernel, m = start.kernel, len(start.weights)
    points = start.points.toarray() if hasattr(start.points, "toarray") else start.points
    if not isinstance(points, np.ndarray) or points.ndim != 2:
        raise ValueError(
            f"refine={steps} moves points down a gradient, which only vectors have; leave it out"
        )
    mu = Expansion.mean(kernel, mean.X)
    square = float(np.mean(mu(mean.X)))

    def fitted(P: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weights for points, and MMD^2."""
        K, at = kernel(P), mu(P)[:, 0]
        w = optimal_weights(K, at) if weights == "optimal" else np.full(m, 1.0 / m)
        return w, float(w @ K @ w - 2.0 * w @ at + square)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        P = flat.reshape(points.shape)
        w, value = fitted(P)  # equal weights do not change, and optimal ones have slope 0
        slope = (Expansion(kernel, P, w).gradient(P) - mu.gradient(P))[:, 0]
        return value, (2.0 * w[:, None] * slope).ravel()

    # MMD^2 is far below 1, and tolerances made for values near 1 would stop too early.
    options = {"maxiter": int(steps), "ftol": 1e-14, "gtol": 0.0}
    found = minimize(objective, points.ravel(), jac=True, method="L-BFGS-B", options=options)
    P = found.x.reshape(points.shape)
    w, _ = fitted(P)
    # The objective cancels far from the origin; what is reported and compared is the MMD itself.
    K = recentred(kernel, concatenate(P, mean.X))
    value = squared_norm(K, np.append(w, np.full(len(mean), -1.0 / len(mean))))
    return Summary(P, None, w, value, kernel) if value < start.mmd else start
