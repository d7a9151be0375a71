"""Kernel herding: summarise a sample by greedily selected points.

    x_(t+1) minimises  sum_(s <= t) k(x, x_s) + k(x, x) / 2 - (t + 1) mu(x)

mu is the mean embedding of the sample, and x_1, ..., x_t are the points selected so far.  This
choice brings the mean embedding of the t + 1 selected points, with equal weights, as close to mu as
possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..._core import concatenate, entry_point, is_count, one_blas_thread
from ...expansion import Expansion
from ._centred_gram_of_sample import recentred_gram
from ._mmd import squared_norm
from ._weighted_coreset import MeanEmbedding, Summary, check_summary_options, optimal_weights

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
    """Summarise X by `n_points` of its points, selected greedily to minimise MMD^2 to X.

    The selection is nested: its first j points are the result for n_points=j.  Evaluating the mean
    embedding at all points takes one tiled pass over the kernel matrix K; after that, each step
    reads one column of K.

    Parameters
    ----------
    X, n_points, kernel, weights, max_memory
        As in `thin`.
    refine : int, default=0
        The maximum number of L-BFGS steps.  They move all selected points jointly to reduce MMD^2.
        The refined points are no longer points of X.  Requires vectors and a differentiable
        kernel.

    Returns
    -------
    Summary
        The points, their weights, and their MMD^2 to X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import herd
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> summary = herd(X, 20)
    >>> summary.points.shape, bool(summary.mmd < 0.002)
    ((20, 2), True)
    """
    if not is_count(refine, 0):
        raise ValueError(f"refine must be a number of steps (an integer >= 0), got {refine!r}")
    mean = MeanEmbedding.of(X, kernel, max_memory)
    m = check_summary_options(n_points, len(mean), weights, max_memory)
    selected = np.empty(m, dtype=np.intp)
    # The loop adds k(x, x_s) for each selected x_s; inf prevents selecting a point twice.
    score = 0.5 * mean.diagonal
    for t in range(m):
        selected[t] = np.argmin(score - (t + 1) * mean.values)
        score += mean.column(selected[t])
        score[selected[t]] = np.inf
    summary = mean.summary(selected, weights)
    return _refine_points(mean, summary, weights, refine) if refine else summary


def _refine_points(mean: MeanEmbedding, initial: Summary, weights: str, steps: int) -> Summary:
    """Minimise MMD^2 over the positions of the selected points by L-BFGS.

    The gradient with respect to the point p_i is 2 w_i (f - mu)'(p_i), with f = sum_i w_i k(p_i, .)
    and the weights w_i.
    """
    kernel, m = initial.kernel, len(initial.weights)
    points = initial.points.toarray() if hasattr(initial.points, "toarray") else initial.points
    if not isinstance(points, np.ndarray) or points.ndim != 2:
        raise ValueError(
            f"refine={steps} moves points along a gradient, which requires vectors; use refine=0 "
            f"for other kinds of points"
        )
    mu = Expansion.mean(kernel, mean.X)
    mu_norm2 = float(np.mean(mu(mean.X)))

    def weights_and_mmd(P: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weights of the points P, and MMD^2."""
        K, mu_P = kernel(P), mu(P)[:, 0]
        w = optimal_weights(K, mu_P) if weights == "optimal" else np.full(m, 1.0 / m)
        return w, float(w @ K @ w - 2.0 * w @ mu_P + mu_norm2)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        P = flat.reshape(points.shape)
        # w needs no derivative: equal weights are constant, and at optimal weights the
        # derivative of MMD^2 in w is 0.
        w, value = weights_and_mmd(P)
        gradients = (Expansion(kernel, P, w).gradient(P) - mu.gradient(P))[:, 0]
        return value, (2.0 * w[:, None] * gradients).ravel()

    # MMD^2 is far below 1, so the default tolerances of L-BFGS would stop too early.
    options = {"maxiter": int(steps), "ftol": 1e-14, "gtol": 0.0}
    result = minimize(objective, points.ravel(), jac=True, method="L-BFGS-B", options=options)
    P = result.x.reshape(points.shape)
    w, _ = weights_and_mmd(P)
    # Far from the origin the objective suffers from cancellation.  Report and compare the MMD that
    # is computed from the recentred kernel instead.
    K = recentred_gram(kernel, concatenate(P, mean.X))
    value = squared_norm(K, np.append(w, np.full(len(mean), -1.0 / len(mean))))
    return Summary(P, None, w, value, kernel) if value < initial.mmd else initial
