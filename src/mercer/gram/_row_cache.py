"""Least-recently-used cache of rows of a kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import jit

__all__ = ["RowCache", "add_weighted_rows"]

_STRIP_COLUMNS = 2048  # number of columns summed at a time; they fit the first-level CPU cache


class RowCache:
    """Cache for some of the n rows of a matrix, which replaces the least recently used rows.

    Parameters
    ----------
    array : ndarray of shape (n_slots, n_columns)
        Memory for the cached rows; each row occupies one slot.
    n : int
        Number of rows of the complete matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._row_cache import RowCache
    >>> cache = RowCache(np.empty((2, 5)), 9)  # room for two of nine rows
    >>> cache.assign_slots(np.array([7, 3]))  # slots of the rows, and which of them are missing
    (array([0, 1]), array([0, 1]))
    >>> cache.assign_slots(np.array([3]))
    (array([1]), array([], dtype=int64))
    >>> cache.assign_slots(np.array([8]))  # replaces row 7
    (array([0]), array([0]))
    """

    def __init__(self, array: np.ndarray, n: int) -> None:
        self.array = array
        self.slot = np.full(n, -1, dtype=np.intp)  # the slot of each row, or -1
        self.row = np.full(len(array), -1, dtype=np.intp)  # the row in each slot, or -1
        # number of the request that last used each slot
        self.last_used = np.zeros(len(array), dtype=np.int64)
        self.n_used, self.clock = 0, 0  # number of slots in use, and number of requests so far
        self.owned = True  # False if the array belongs to the user

    @classmethod
    def from_matrix(cls, K: np.ndarray) -> RowCache:
        """Return a cache in which all rows of an existing matrix are present."""
        cache = cls(K, len(K))
        cache.slot[:] = cache.row[:] = np.arange(len(K))
        cache.n_used, cache.owned = len(K), False
        return cache

    @property
    def bytes(self) -> int:
        """Number of bytes of the slots in use."""
        return self.n_used * self.array.shape[1] * self.array.itemsize

    def assign_slots(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Assign slots to rows, replacing the least recently used ones if necessary.

        Returns
        -------
        slots : ndarray of shape (len(rows),)
            The slot of each row.
        missing : ndarray
            Positions in `rows` of the rows that are not in the cache and must be evaluated.
        """
        self.clock += 1
        slots = self.slot[rows]
        missing = np.flatnonzero(slots < 0)
        self.last_used[slots[slots >= 0]] = self.clock
        if len(missing):
            fresh = np.arange(self.n_used, min(self.n_used + len(missing), len(self.array)))
            self.n_used += len(fresh)
            self.last_used[fresh] = self.clock
            if n_replaced := len(missing) - len(fresh):
                oldest = np.argpartition(self.last_used, n_replaced - 1)[:n_replaced]
                replaced = self.row[oldest]
                self.slot[replaced[replaced >= 0]] = -1
                self.last_used[oldest] = self.clock
                fresh = np.concatenate([fresh, oldest])
            slots[missing] = fresh
            self.slot[rows[missing]], self.row[fresh] = fresh, rows[missing]
        return slots, missing


@jit()
def add_weighted_rows(array: Any, slots: Any, weights: Any, out: Any) -> None:
    """Add a weighted sum of cached rows to `out`, eight rows at a time.

    out_j <- out_j + sum_i weights_i array[slots_i, j]
    """
    n, m = len(slots), len(out)
    for start in range(0, m, _STRIP_COLUMNS):
        end = min(start + _STRIP_COLUMNS, m)
        sums = out[start:end]
        i = 0
        while i + 8 <= n:
            w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            w4, w5, w6, w7 = weights[i + 4], weights[i + 5], weights[i + 6], weights[i + 7]
            r0, r1 = array[slots[i], start:end], array[slots[i + 1], start:end]
            r2, r3 = array[slots[i + 2], start:end], array[slots[i + 3], start:end]
            r4, r5 = array[slots[i + 4], start:end], array[slots[i + 5], start:end]
            r6, r7 = array[slots[i + 6], start:end], array[slots[i + 7], start:end]
            for j in range(end - start):
                a = w0 * r0[j] + w1 * r1[j] + w2 * r2[j] + w3 * r3[j]
                b = w4 * r4[j] + w5 * r5[j] + w6 * r6[j] + w7 * r7[j]
                sums[j] += a + b
            i += 8
        while i < n:
            w, row = weights[i], array[slots[i], start:end]
            for j in range(end - start):
                sums[j] += w * row[j]
            i += 1
