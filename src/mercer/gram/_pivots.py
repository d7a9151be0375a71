"""Randomly pivoted Cholesky of a small dense matrix, one pivot at a time.

    s ~ d / sum d,   g = K[:, s] - F^T F[:, s],   F <- [F; g^T / sqrt(g_s)],   d <- d - g^2 / g_s

with d = diag K at the start.  `rpcholesky` computes the same in blocks, to use the BLAS and
threads.  For a few hundred points blocks are so small that the overhead of the calls dominates,
and compiled loops are faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit

__all__ = ["sequential_rpcholesky"]


def sequential_rpcholesky(
    K: np.ndarray, m: int, floor: float, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Draw m pivots of the positive semidefinite array K.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    m : int
        Number of pivots.
    floor : float
        Residuals up to this value count as 0; there are fewer pivots if all residuals do.
    rng : Generator or RandomState

    Returns
    -------
    pivots : ndarray of shape (m,) or shorter
        Indices in the order in which they were drawn.
    residual : ndarray of shape (n,)
        The diagonal d of the Schur complement.  Rounding may make it slightly negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._pivots import sequential_rpcholesky
    >>> K = np.diag([1.0, 0.0, 2.0])
    >>> pivots, residual = sequential_rpcholesky(K, 3, 1e-12, np.random.default_rng(0))
    >>> sorted(pivots.tolist()), residual.tolist()
    ([0, 2], [0.0, 0.0, 0.0])
    """
    residual, pivots = K.diagonal().astype(float), np.empty(m, dtype=np.intp)
    F = np.empty((m, len(K)))
    return pivots[: _draw_pivots(K, rng.random(m), floor, F, residual, pivots)], residual


@jit()
def _draw_pivots(K: Any, uniforms: Any, floor: float, F: Any, residual: Any, pivots: Any) -> int:
    """Set the factor, the residual and the pivots; return the number of pivots."""
    n = K.shape[0]
    for k in range(pivots.shape[0]):
        total = 0.0
        for i in range(n):
            total += residual[i] if residual[i] > floor else 0.0
        if not total > 0.0:
            return k
        s, threshold = -1, uniforms[k] * total
        for i in range(n):
            if residual[i] > floor and threshold >= 0.0:
                s, threshold = i, threshold - residual[i]
        for c in range(n):
            F[k, c] = K[s, c]
        for i in range(
            0, k - k % 4, 4
        ):  # four rows at a time, so that F[k] is read and written less often
            w0, w1, w2, w3 = F[i, s], F[i + 1, s], F[i + 2, s], F[i + 3, s]
            for c in range(n):
                sums = w0 * F[i, c] + w1 * F[i + 1, c] + (w2 * F[i + 2, c] + w3 * F[i + 3, c])
                F[k, c] -= sums
        for i in range(k - k % 4, k):
            w0 = F[i, s]
            for c in range(n):
                F[k, c] -= w0 * F[i, c]
        scale = 1.0 / np.sqrt(residual[s])
        for c in range(n):
            F[k, c] *= scale
            residual[c] -= F[k, c] * F[k, c]
        residual[s] = 0.0
        pivots[k] = s
    return pivots.shape[0]
