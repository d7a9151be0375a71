"""Stress: how far the distances of a map are from dissimilarities.

    S(Z) = sum_(i<j) w_ij (|z_i - z_j| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2.

With w = 1 it is the raw stress of metric scaling, over what it is where all places are one; with
w = 1 / delta it is Sammon's.  Only one half of a symmetric matrix is held.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._runtime import ENTRY_WORK, jit, ordered_sum

__all__ = ["Stress"]

_PAIRS = 2**17  # of a part, about
_GROUPS = 4  # of parts; the number of threads has no say in the order of sums
_NUMBERS = 2**19  # of distances of new points at a time


class Stress:
    """S as a function of the places Z, with its gradient.

    Parameters
    ----------
    delta : ndarray of shape (n (n - 1) / 2,)
        Dissimilarities of pairs, in the order of SciPy's `pdist`.
    weights : ndarray or None
        w, in the same order; None stands for 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import Stress
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
        # rows, in parts of about as many pairs
        parts = max(1, len(delta) // _PAIRS)
        ends = self.n * (1.0 - np.sqrt(1.0 - np.arange(parts + 1) / parts))
        ends = np.round(ends).astype(int)
        self._rows = [(int(a), int(b)) for a, b in pairwise(ends) if a < b]

    def __call__(self, Z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return S and its gradient, (n, q)."""
        columns = np.ascontiguousarray(Z.T)

        def term(rows: tuple[int, int]) -> np.ndarray:
            found = np.zeros(columns.size + 1)
            G, scratch = found[1:].reshape(columns.shape), np.empty(self.n)
            found[0] = _add(self.delta, self._w, columns, *rows, G, scratch)
            return found

        found = (
            ordered_sum(term, self._rows, _GROUPS, work=ENTRY_WORK * len(self.delta)) / self.total
        )
        return float(found[0]), 2.0 * found[1:].reshape(columns.shape).T

    def _sums(self, pairs: np.ndarray) -> np.ndarray:
        """Return for each point the sum over its pairs."""
        total = np.zeros(self.n)
        start = 0
        for i in range(self.n - 1):
            row = pairs[start : start + self.n - 1 - i]
            total[i] += row.sum()
            total[i + 1 :] += row
            start += len(row)
        return total


@jit("reassoc", "nsz")
def _add(delta, weights, Z, first, last, G, row):  # type: ignore[no-untyped-def]
    """Add to G half of the gradient of the pairs i < j with first <= i < last; return their sum."""
    q, n = Z.shape
    total = 0.0
    for i in range(first, last):
        start, m = i * n - (i * (i + 1)) // 2, n - 1 - i
        there, w = delta[start : start + m], weights[start : start + m]
        for k in range(m):
            row[k] = 0.0
        for c in range(q):
            z, others = Z[c, i], Z[c, i + 1 :]
            for k in range(m):
                row[k] += (others[k] - z) * (others[k] - z)
        # places that agree have no direction: 1e-300 lets their term be 0
        if len(weights):
            for k in range(m):
                d = np.sqrt(row[k])
                r = d - there[k]
                total += w[k] * r * r
                row[k] = w[k] * r / (d + 1e-300)
        else:
            for k in range(m):
                d = np.sqrt(row[k])
                r = d - there[k]
                total += r * r
                row[k] = r / (d + 1e-300)
        for c in range(q):
            z, others, g, own = Z[c, i], Z[c, i + 1 :], G[c, i + 1 :], 0.0
            for k in range(m):
                pull = row[k] * (others[k] - z)
                g[k] += pull
                own += pull
            G[c, i] -= own
    return total
