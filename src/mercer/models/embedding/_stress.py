"""Stress: the deviation of the distances in an embedding from given dissimilarities.

    S(Z) = sum_(i<j) w_ij (|z_i - z_j| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2

z_i are the coordinates, delta_ij the dissimilarities, and w_ij the weights of the pairs.  With w =
1 this is the raw stress of metric MDS, divided by its value when all points coincide.  With w = 1 /
delta it is Sammon's stress.  Only one triangle of the symmetric matrices is stored.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..._core import ENTRY_WORK, jit, ordered_sum

__all__ = ["Stress"]

_PAIRS_PER_TASK = 2**17  # approximate number of pairs of points in a parallel task
# Tasks are summed in this fixed number of groups, so that the result does not depend on the number
# of threads.
_N_GROUPS = 4


class Stress:
    """The stress S of an embedding and its gradient, as a function of the coordinates Z.

    Parameters
    ----------
    delta : ndarray of shape (n (n - 1) / 2,)
        Dissimilarities of all pairs, in the order of SciPy's `pdist`.
    weights : ndarray of shape (n (n - 1) / 2,) or None, default=None
        Weights of the pairs, in the same order; None means 1 for all pairs.

    Attributes
    ----------
    n : int
        The number of points.
    mass : ndarray of shape (n,)
        For each point, the sum of the weights of its pairs.
    total : float
        sum_(i<j) w_ij delta_ij^2, the denominator of S.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import Stress
    >>> S = Stress(np.array([3.0, 4.0, 5.0]))
    >>> value, slope = S(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]))
    >>> value, bool(np.all(slope == 0.0))
    (0.0, True)
    >>> S(np.zeros((3, 2)))[0]
    1.0
    """

    def __init__(self, delta: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.n = round(0.5 + np.sqrt(0.25 + 2 * len(delta)))
        self.delta, self.weights = delta, weights
        self._w = np.empty(0) if weights is None else weights
        self.mass = self._sums(self._w) if len(self._w) else np.full(self.n, self.n - 1.0)
        w = 1.0 if weights is None else weights
        self.total = float(np.sum(w * delta * delta))
        # Split the rows into tasks with about equal numbers of pairs.
        n_tasks = max(1, len(delta) // _PAIRS_PER_TASK)
        ends = self.n * (1.0 - np.sqrt(1.0 - np.arange(n_tasks + 1) / n_tasks))
        ends = np.round(ends).astype(int)
        self._rows = [(int(a), int(b)) for a, b in pairwise(ends) if a < b]

    def __call__(self, Z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the stress S, and its gradient of shape (n, q)."""
        columns = np.ascontiguousarray(Z.T)

        def term(rows: tuple[int, int]) -> np.ndarray:
            total = np.zeros(columns.size + 1)
            G, scratch = total[1:].reshape(columns.shape), np.empty(self.n)
            total[0] = _add_pairs(self.delta, self._w, columns, *rows, G, scratch)
            return total

        total = (
            ordered_sum(term, self._rows, _N_GROUPS, work=ENTRY_WORK * len(self.delta)) / self.total
        )
        return float(total[0]), 2.0 * total[1:].reshape(columns.shape).T

    def _sums(self, pairs: np.ndarray) -> np.ndarray:
        """Return, for each point, the sum of a pairwise quantity over all pairs with this point."""
        total = np.zeros(self.n)
        start = 0
        for i in range(self.n - 1):
            row = pairs[start : start + self.n - 1 - i]
            total[i] += row.sum()
            total[i + 1 :] += row
            start += len(row)
        return total


@jit("reassoc", "nsz")
def _add_pairs(delta, weights, Z, first, last, G, row):  # type: ignore[no-untyped-def]
    """Add half of the gradient of the stress to G, for the pairs i < j with first <= i < last.

    Returns the sum of their weighted squared residuals.  `row` is scratch memory.
    """
    q, n = Z.shape
    total = 0.0
    for i in range(first, last):
        start, m = i * n - (i * (i + 1)) // 2, n - 1 - i
        targets, w = delta[start : start + m], weights[start : start + m]
        for k in range(m):
            row[k] = 0.0
        for c in range(q):
            z, others = Z[c, i], Z[c, i + 1 :]
            for k in range(m):
                row[k] += (others[k] - z) * (others[k] - z)
        # Coinciding points have no direction; adding 1e-300 makes their gradient 0 instead of NaN.
        if len(weights):
            for k in range(m):
                d = np.sqrt(row[k])
                r = d - targets[k]
                total += w[k] * r * r
                row[k] = w[k] * r / (d + 1e-300)
        else:
            for k in range(m):
                d = np.sqrt(row[k])
                r = d - targets[k]
                total += r * r
                row[k] = r / (d + 1e-300)
        for c in range(q):
            z, others, g, sum_i = Z[c, i], Z[c, i + 1 :], G[c, i + 1 :], 0.0
            for k in range(m):
                term = row[k] * (others[k] - z)
                g[k] += term
                sum_i += term
            G[c, i] -= sum_i
    return total
