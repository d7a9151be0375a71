"""Randomly pivoted Cholesky of a small matrix that is held, one pivot after the other.

    s ~ d / sum d,   g = K[:, s] - F^T F[:, s],   F <- [F; g^T / sqrt(g_s)],   d <- d - g^2 / g_s

What `rpcholesky` does in blocks, for the BLAS and for threads.  Of a few hundred points a block is
so small that the calls take longer than the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit

__all__ = ["pivots_one_by_one"]


def pivots_one_by_one(
    K: np.ndarray, m: int, floor: float, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return m pivots, or fewer if no d is above the floor, and d, which may be below 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._pivots import pivots_one_by_one
    >>> K = np.diag([1.0, 0.0, 2.0])
    >>> pivots, left = pivots_one_by_one(K, 3, 1e-12, np.random.default_rng(0))
    >>> sorted(pivots.tolist()), left.tolist()
    ([0, 2], [0.0, 0.0, 0.0])
    """
    left, pivots = K.diagonal().astype(float), np.empty(m, dtype=np.intp)
    F = np.empty((m, len(K)))
    return pivots[: _draw(K, rng.random(m), floor, F, left, pivots)], left


@jit()
def _draw(K: Any, coins: Any, floor: float, F: Any, left: Any, pivots: Any) -> int:
    n = K.shape[0]
    for k in range(pivots.shape[0]):
        total = 0.0
        for i in range(n):
            total += left[i] if left[i] > floor else 0.0
        if not total > 0.0:
            return k
        s, goal = -1, coins[k] * total
        for i in range(n):
            if left[i] > floor and goal >= 0.0:
                s, goal = i, goal - left[i]
        for c in range(n):
            F[k, c] = K[s, c]
        for i in range(0, k - k % 4, 4):  # four at a time: so the row is loaded and stored less
            w0, w1, w2, w3 = F[i, s], F[i + 1, s], F[i + 2, s], F[i + 3, s]
            for c in range(n):
                sums = w0 * F[i, c] + w1 * F[i + 1, c] + (w2 * F[i + 2, c] + w3 * F[i + 3, c])
                F[k, c] -= sums
        for i in range(k - k % 4, k):
            w0 = F[i, s]
            for c in range(n):
                F[k, c] -= w0 * F[i, c]
        scale = 1.0 / np.sqrt(left[s])
        for c in range(n):
            F[k, c] *= scale
            left[c] -= F[k, c] * F[k, c]
        left[s] = 0.0
        pivots[k] = s
    return pivots.shape[0]
