"""The working set of block SMO: its variables, and their block of K."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import jit
from ...gram import RowsView
from ._dual_problem import Dual

__all__ = ["WorkingSet"]

_MAX_VARIABLES = 2048  # largest size of the working set; its block takes 16 MiB in float32
# Memory as a multiple of the block size: the block, and new rows before they are copied into it.
_MEMORY_FACTOR = 1.5
_MAX_NEW_VARIABLES = 512  # largest number of variables that are exchanged at a time


class WorkingSet:
    """The variables W of the current block, and the matrix K[W, W].

    Each variable has a slot: a row and the same column of the block.  A new variable takes the slot
    of another one, preferably one at its correct bound, and among several such variables that which
    has been in the set longest.  Only the rows and columns of new variables are evaluated.

    Attributes
    ----------
    W : ndarray of int of shape (size,)
        The variable in each slot; -1 for an empty slot.
    K : ndarray of shape (size, size)
        The block of K of these variables.
    starts : ndarray of int
        The first slot of each group, followed by the number of slots.
    """

    def __init__(self, view: RowsView, dual: Dual) -> None:
        self.view, self.dual = view, dual
        counts, entries = np.diff(dual.starts), view.rows.block_bytes / view.rows.dtype.itemsize
        max_size = min(_MAX_VARIABLES, int(np.sqrt(entries / _MEMORY_FACTOR)))
        sizes = np.minimum(counts, max(2, max_size // len(counts)))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(self.starts[-1])
        self.clear()

    def clear(self) -> None:
        """Remove all variables, and free the memory of the block until the next choice."""
        self.K = np.zeros((0, 0), dtype=self.view.rows.dtype)
        self.W = np.full(self.size, -1, dtype=np.intp)
        self._is_member = np.zeros(len(self.dual), dtype=bool)
        self._entered = np.full(self.size, -1)
        self._round = 0

    def choose(self, g: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Add the variables that violate the optimality conditions most, and return W."""
        dual, self._round = self.dual, self._round + 1
        slots, variables = [], []
        for k, (_, m_low, m_high) in enumerate(dual.multiplier_bounds(v, g)):
            if not m_low > m_high:
                continue
            group = slice(*dual.starts[k : k + 2])
            n_slots = int(self.starts[k + 1] - self.starts[k])
            max_new = max(1, min(_MAX_NEW_VARIABLES // (2 * dual.n_groups), (n_slots - 2) // 2))
            should_increase = (v[group] < dual.upper[group]) & (g[group] < m_low)
            should_decrease = (v[group] > dual.lower[group]) & (g[group] > m_high)
            new = self._most_violating(should_increase, g[group], max_new, group)
            new = np.concatenate(
                [new, self._most_violating(should_decrease, -g[group], max_new, group)]
            )
            ordered_slots = self._slots_in_order(k, should_increase | should_decrease, group, g, v)
            variables.append(new)
            slots.append(ordered_slots[: len(new)])
        self._assign(np.concatenate(slots), np.concatenate(variables))
        return self.W

    def _most_violating(
        self, candidates: np.ndarray, g: np.ndarray, count: int, group: slice
    ) -> np.ndarray:
        """Return the candidates with the smallest g, and mark them as members of the set."""
        chosen = np.flatnonzero(candidates & ~self._is_member[group])
        if len(chosen) > count:
            chosen = chosen[np.argpartition(g[chosen], count)[:count]]
        chosen += group.start
        self._is_member[chosen] = True
        return chosen

    def _slots_in_order(
        self, k: int, violates: np.ndarray, group: slice, g: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """Return the slots of a group, in the order in which new variables may take them."""
        first_slot, last = self.starts[k], self.starts[k + 1]
        W, entered = self.W[first_slot:last], self._entered[first_slot:last].astype(float)
        occupied = W >= 0
        members = W[occupied]
        entered[occupied] += self._round * (
            self.dual.free(v)[members] | violates[members - group.start]
        )
        order = np.argsort(entered, kind="stable")
        # The pair of variables with the largest violation is replaced last: without it, there might
        # be no possible step.
        g_increasing = np.where(v[members] < self.dual.upper[members], g[members], np.inf)
        g_decreasing = np.where(v[members] > self.dual.lower[members], g[members], -np.inf)
        if not len(members):
            return first_slot + order
        protected = np.flatnonzero(occupied)[[g_increasing.argmin(), g_decreasing.argmax()]]
        last = np.isin(order, protected)
        return first_slot + np.concatenate([order[~last], order[last]])

    def _assign(self, slots: np.ndarray, variables: np.ndarray) -> None:
        """Assign slots to new variables, and evaluate their rows and columns of the block."""
        removed = self.W[slots]
        self._is_member[removed[removed >= 0]] = False
        self._is_member[variables] = True
        self.W[slots], self._entered[slots] = variables, self._round
        occupied = np.flatnonzero(self.W >= 0)
        points = self.dual.points
        if not self.K.size:
            self.K = np.zeros((self.size, self.size), dtype=self.K.dtype)
        block = self.view.block(points[variables], points[self.W[occupied]])
        _write_symmetric(self.K, slots, occupied, block)


@jit()
def _write_symmetric(K: Any, rows: Any, columns: Any, T: Any) -> None:
    """Set K[rows, columns] <- T and K[columns, rows] <- T^T."""
    for i in range(len(rows)):
        for j in range(len(columns)):
            K[rows[i], columns[j]] = T[i, j]
    for j in range(len(columns)):
        for i in range(len(rows)):
            K[columns[j], rows[i]] = T[i, j]
