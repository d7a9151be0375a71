"""The working set of a block solver: which variables are in it, and their block of K."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._runtime import jit
from ...gram import RowsView
from ._dual import Dual

__all__ = ["WorkingSet"]

_MAX_SIZE = 2048  # variables; their block in float32 has 16 MiB
_BLOCKS_HELD = 1.5  # the block, and the rows of new variables before they are copied to it
_NEW_VARIABLES = 512  # at most, in each choice


class WorkingSet:
    """Variables with places in a block K[W, W]; a place without one has the number -1.

    A new variable takes the place of one that is at the right bound, or else of any; in both cases
    of the one that came first.  So only the rows and columns of new variables are evaluated.

    Attributes
    ----------
    K : ndarray of shape (size, size)
    starts : ndarray
        Where the places of each group begin, and the size.
    """

    def __init__(self, view: RowsView, dual: Dual) -> None:
        self.view, self.dual = view, dual
        counts, entries = np.diff(dual.starts), view.rows.block_bytes / view.rows.dtype.itemsize
        most = min(_MAX_SIZE, int(np.sqrt(entries / _BLOCKS_HELD)))
        sizes = np.minimum(counts, max(2, most // len(counts)))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(self.starts[-1])
        self.clear()

    def clear(self) -> None:
        """Let go of all variables, and of the memory of the block until the next are chosen."""
        self.K = np.zeros((0, 0), dtype=self.view.rows.dtype)
        self.W = np.full(self.size, -1, dtype=np.intp)
        self._inside = np.zeros(len(self.dual), dtype=bool)
        self._since = np.full(self.size, -1)
        self._now = 0

    def choose(self, g: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return W, with the variables in it that violate the conditions most."""
        dual, self._now = self.dual, self._now + 1
        places, variables = [], []
        for k, (_, low, up) in enumerate(dual.multiplier_bounds(v, g)):
            if not low > up:
                continue
            part = slice(*dual.starts[k : k + 2])
            room = int(self.starts[k + 1] - self.starts[k])
            half = max(1, min(_NEW_VARIABLES // (2 * dual.n_groups), (room - 2) // 2))
            rises = (v[part] < dual.upper[part]) & (g[part] < low)
            falls = (v[part] > dual.lower[part]) & (g[part] > up)
            new = self._most(rises, g[part], half, part)
            new = np.concatenate([new, self._most(falls, -g[part], half, part)])
            seats = self._seats(k, rises | falls, part, g, v)
            variables.append(new)
            places.append(seats[: len(new)])
        self._seat(np.concatenate(places), np.concatenate(variables))
        return self.W

    def _most(self, may: np.ndarray, g: np.ndarray, count: int, part: slice) -> np.ndarray:
        """Return the variables with the smallest g among those that may enter."""
        some = np.flatnonzero(may & ~self._inside[part])
        if len(some) > count:
            some = some[np.argpartition(g[some], count)[:count]]
        some += part.start
        self._inside[some] = True
        return some

    def _seats(
        self, k: int, wants: np.ndarray, part: slice, g: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """Return the places of a group in the order in which they may be given away."""
        first, last = self.starts[k], self.starts[k + 1]
        W, since = self.W[first:last], self._since[first:last].astype(float)
        taken = W >= 0
        own = W[taken]
        since[taken] += self._now * (self.dual.free(v)[own] | wants[own - part.start])
        order = np.argsort(since, kind="stable")
        # The two that violate most stay together, because otherwise nothing might move.
        worst = np.where(v[own] < self.dual.upper[own], g[own], np.inf)
        best = np.where(v[own] > self.dual.lower[own], g[own], -np.inf)
        if not len(own):
            return first + order
        keep = np.flatnonzero(taken)[[worst.argmin(), best.argmax()]]
        last = np.isin(order, keep)
        return first + np.concatenate([order[~last], order[last]])

    def _seat(self, places: np.ndarray, variables: np.ndarray) -> None:
        """Give places to variables, and bring the block in line."""
        gone = self.W[places]
        self._inside[gone[gone >= 0]] = False
        self._inside[variables] = True
        self.W[places], self._since[places] = variables, self._now
        live = np.flatnonzero(self.W >= 0)
        points = self.dual.points
        if not self.K.size:
            self.K = np.zeros((self.size, self.size), dtype=self.K.dtype)
        T = self.view.block(points[variables], points[self.W[live]])
        _write(self.K, places, live, T)


@jit()
def _write(K: Any, rows: Any, columns: Any, T: Any) -> None:
    """Set K[rows, columns] <- T and K[columns, rows] <- T^T."""
    for i in range(len(rows)):
        for j in range(len(columns)):
            K[rows[i], columns[j]] = T[i, j]
    for j in range(len(columns)):
        for i in range(len(rows)):
            K[columns[j], rows[i]] = T[i, j]
