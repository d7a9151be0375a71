"""A cache of rows: which row is in which slot, and which made room last."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit

__all__ = ["RowCache", "add_rows"]

_STRIP = 2048  # columns that are summed at a time: they stay in the first cache of the processor


class RowCache:
    """Some rows over the same columns, each in a slot.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._row_cache import RowCache
    >>> cache = RowCache(np.empty((2, 5)), 9)  # two of nine rows
    >>> cache.place(np.array([7, 3]))  # slots, and which of the rows are to be evaluated
    (array([0, 1]), array([0, 1]))
    >>> cache.place(np.array([3]))
    (array([1]), array([], dtype=int64))
    >>> cache.place(np.array([8]))  # takes the place of 7
    (array([0]), array([0]))
    """

    def __init__(self, array: np.ndarray, n: int) -> None:
        self.array = array
        self.slot = np.full(n, -1, dtype=np.intp)  # the slot of each row, or -1
        self.row = np.full(len(array), -1, dtype=np.intp)  # the row in each slot, or -1
        self.stamp = np.zeros(len(array), dtype=np.int64)
        self.used, self.now = 0, 0
        self.owned = True

    @classmethod
    def of(cls, K: np.ndarray) -> RowCache:
        """Hold a matrix that is there already."""
        cache = cls(K, len(K))
        cache.slot[:] = cache.row[:] = np.arange(len(K))
        cache.used, cache.owned = len(K), False
        return cache

    @property
    def bytes(self) -> int:
        return self.used * self.array.shape[1] * self.array.itemsize

    def place(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return slots for rows, and which of them have to be evaluated."""
        self.now += 1
        slots = self.slot[rows]
        missing = np.flatnonzero(slots < 0)
        self.stamp[slots[slots >= 0]] = self.now
        if len(missing):
            fresh = np.arange(self.used, min(self.used + len(missing), len(self.array)))
            self.used += len(fresh)
            self.stamp[fresh] = self.now
            if short := len(missing) - len(fresh):
                oldest = np.argpartition(self.stamp, short - 1)[:short]
                gone = self.row[oldest]
                self.slot[gone[gone >= 0]] = -1
                self.stamp[oldest] = self.now
                fresh = np.concatenate([fresh, oldest])
            slots[missing] = fresh
            self.slot[rows[missing]], self.row[fresh] = fresh, rows[missing]
        return slots, missing


@jit()
def add_rows(array: Any, slots: Any, weights: Any, out: Any) -> None:
    """out_j <- out_j + sum_i weights_i array[slots_i, j], eight rows at a time, in float64."""
    n, m = len(slots), len(out)
    for start in range(0, m, _STRIP):
        end = min(start + _STRIP, m)
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
