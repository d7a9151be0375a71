"""Rows of K, evaluated when first asked for and kept as long as there is room.

    K[i, :] = k(x_i, X)      a row, evaluated with many others at a time: GEMM and exp

Support vector machines read few rows of K, but those again and again.  Rows are kept in float32
where the kernel knows how much that costs, up to a number of bytes; the least recently used make
room.  If all of K fits it is held, and still only what is asked for is evaluated.

For several classes the points are sorted by class, and the machine of classes a and b reads rows
and columns of a and of b alone.  What it reads of k(X_a, X_a) and k(X_b, X_b) serves the machines
of a or b and every other class, and is kept for them; k(X_a, X_b) serves no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from .._points import length
from .._runtime import budget_in_bytes, check_budget, check_threads, run, slices
from ..kernels import Kernel, Precomputed, Prepared
from ._row_cache import RowCache, add_rows
from ._tiled import TiledGram, working_bytes

__all__ = ["KernelRows", "RowsView"]

_TILE_ROWS, _TILE_COLUMNS = 384, 384
_SMALL_MATRIX = 2**26  # bytes; a smaller K is held in float64
_FEW_ENTRIES = 2**18  # a product with so few entries is evaluated in one tile
_LEAST_ROWS = 64  # in a cache, whatever cache_bytes is
_COPIES_OF_POINTS = 4  # in float64 and float32, as columns, and of a subset
_VECTORS = 40  # numbers for each point that a solver has beside K
_LEAST_BLOCK, _MOST_BLOCK = 2**19, 2**26  # bytes for the blocks of K of a solver


class KernelRows:
    """Rows of K = k(X, X) through a cache.

    Parameters
    ----------
    kernel : Kernel
        With all its values resolved.
    X : points
        Sorted by class, if there are several `sizes`.
    sizes : sequence of int, optional
        How many points each class has.
    cache_bytes : int, optional
        How much the rows may take; by default all that `max_memory` leaves for them.
    max_memory : int, str or None
        Of all that a solver has: copies of the points, tiles, some numbers for each point, a third
        of the rest (up to 64 MiB) for blocks of K, and rows.
    n_threads : int, optional

    Attributes
    ----------
    n : int
    room, block_bytes : int
        What `max_memory` leaves for blocks and rows of K, and for the blocks.
    entries : int
        How many entries of K were evaluated.
    requests, hits : int
        How many rows were asked for, and how many of them were there.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import KernelRows
    >>> from mercer.kernels import Linear
    >>> rows = KernelRows(Linear(), np.arange(6.0)[:, None], sizes=[2, 2, 2])
    >>> view = rows.view(0, 2)
    >>> out = np.zeros(4)
    >>> view.fetch(np.array([1, 3]))
    >>> view.add(np.array([1, 3]), np.array([1.0, 2.0]), out)
    >>> out  # x (1 * 1 + 5 * 2) at 0, 1, 4, 5
    array([ 0., 11., 44., 55.])
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        *,
        sizes: Sequence[int] | None = None,
        cache_bytes: int | None = None,
        max_memory: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel, self.n_threads = kernel, n_threads
        self.n = length(X)
        self.sizes = [self.n] if sizes is None else [int(s) for s in sizes]
        self.ends = np.concatenate([[0], np.cumsum(self.sizes)])
        held, budget = _fixed_bytes(kernel, X, n_threads), budget_in_bytes(max_memory)
        limit = budget if cache_bytes is None else int(cache_bytes)
        self.P: Prepared = kernel.prepare(X)
        small = 8 * self.n**2 <= min(_SMALL_MATRIX, (budget - held) // 2, limit)
        self._small = small
        self._whole: np.ndarray | None = None  # all of K
        error = None if small else kernel._single_error(self.P)
        self.dtype = np.dtype(np.float64 if error is None else np.float32)
        self.error = 1e-15 if error is None else error  # relative error of an entry
        least = _LEAST_ROWS * self.n * self.dtype.itemsize * (2 if len(self.sizes) > 1 else 1)
        what = f"a support vector machine on {self.n} points"
        check_budget(held + least + _LEAST_BLOCK, max_memory, what)
        self.room = budget - held
        self.block_bytes = min(_MOST_BLOCK, self.room // 3, self.room - least)
        self._bytes = min(self.room - self.block_bytes, limit)
        self.tiles: Prepared = self.P if error is None else self.P.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            self.largest = float(np.abs(kernel.diag(X)).max(initial=0.0))  # bounds all entries
        if not np.isfinite(self.largest):
            raise ValueError(
                f"The dual coefficients or intercepts are not finite: {kernel} is {self.largest} "
                f"at a point. The usual cause are features that are huge; scale them"
            )
        self._columns: dict[int, list[Prepared]] = {}
        self._classes: dict[int, Prepared] = {}
        self._own: dict[int, RowCache] = {}  # k(X_a, X_a)
        self._pool: dict[Any, np.ndarray] = {}  # memory that is used again and again
        if isinstance(kernel, Precomputed) and len(self.sizes) == 1:
            self._hold_given(kernel, X)
        self.entries = self.requests = self.hits = self.turn = 0

    def _hold_given(self, kernel: Precomputed, X: Any) -> None:
        """Take the matrix of the user as the cache, if it is that of these points in order."""
        K = np.asarray(kernel.matrix)
        if K.dtype == np.float64 and np.array_equal(X, np.arange(len(K))):
            self._own[0] = RowCache.of(K)

    def view(self, *classes: int) -> RowsView:
        """Return the rows and columns of these classes, in this order; of all by default."""
        return RowsView(self, classes or tuple(range(len(self.sizes))))

    def whole(self, variables: int) -> np.ndarray | None:
        """Return all of K in float64, if that is small: beside systems of so many variables."""
        if not self._small or 8 * (self.n**2 + 4 * variables**2) > self.room:
            return None
        if self._whole is None:
            given = self._own.get(0)
            if given is not None and not given.owned:
                self._whole = given.array
                return self._whole
            self._whole = K = np.empty((self.n, self.n))
            for rows in slices(self.n, _TILE_ROWS):  # as long as K: new memory is slow to write to
                P = self.P if rows.stop - rows.start == self.n else self.P[rows]
                self.kernel._tile(P, self.P, K[rows])
            self.entries += K.size
        return self._whole

    def lanes(self, pairs: np.ndarray) -> int:
        """Return at how many pairs of classes one can work at a time, each with all of its K.

        That is in float64, and k(X_a, X_a) of every class is held for all of them.
        """
        sizes = np.array(self.sizes)[pairs]
        own = sum(size**2 for size in self.sizes)
        each = int((sizes.prod(axis=1) + sizes.sum(axis=1) ** 2).max())
        return max(0, (self._bytes // 8 - own) // each)

    def between(self, a: int, b: int, out: np.ndarray) -> np.ndarray:
        """Return out, set to k(X_a, X_b) in float64; it is for the caller to count the entries."""
        (first, last), there = self.ends[a : a + 2].tolist(), self._class(b)
        for rows in slices(last - first, _TILE_ROWS):
            self.kernel._tile(self.P[first + rows.start : first + rows.stop], there, out[rows])
        return out

    def _class(self, a: int) -> Prepared:
        """Return the points of a class, what a tile prepares kept with them."""
        if a not in self._classes:
            self._classes[a] = self.P[int(self.ends[a]) : int(self.ends[a + 1])]
        return self._classes[a]

    def subset(self, index: np.ndarray) -> KernelRows:
        """Return the rows and columns of some points; what is cached here is dropped for them."""
        some = copy(self)
        some.n, some.sizes, some.ends = len(index), [len(index)], np.array([0, len(index)])
        some.P = self.P[index]
        some.tiles = some.P if self.tiles is self.P else self.tiles[index]
        some._columns, some._classes, some._own, some._pool = {}, {}, {}, {}
        some._small, some._whole = False, None
        some.entries = some.requests = some.hits = 0
        for a, cache in list(self._own.items()):
            if cache.owned:
                del self._own[a]
        self._pool.clear()
        return some

    def caches(self, classes: tuple[int, ...]) -> list[list[RowCache]]:
        """Return caches for rows (first index) and columns of these classes."""
        self.turn += 1  # the memory of earlier views is used again
        others = len(self.sizes) > len(classes)  # of them as much is kept as one cache takes
        share, places = self._bytes // (len(classes) ** 2 + others), list(enumerate(classes))
        for old in [c for c in self._own if c not in classes]:
            kept = sum(c.bytes for a, c in self._own.items() if a not in classes)
            if kept <= share:
                break
            del self._own[old]  # the least recently used first
        for a in classes:
            own = self._own.pop(a, None)
            if own is None:
                shape = self._room(a, a, share), self.sizes[a]
                own = RowCache(np.empty(shape, dtype=self.dtype), self.sizes[a])
            self._own[a] = own  # the last one is the most recent
        return [
            [self._own[a] if a == b else self._between(a, b, share, (i, j)) for j, b in places]
            for i, a in places
        ]

    def _room(self, a: int, b: int, share: int) -> int:
        """Return how many rows of k(X_a, X_b) there is room for."""
        most = share // max(1, self.sizes[b] * self.dtype.itemsize)
        return min(self.sizes[a], max(_LEAST_ROWS, most))

    def _between(self, a: int, b: int, share: int, place: tuple[int, int]) -> RowCache:
        """Return a cache for k(X_a, X_b), empty, in memory that the last such one has left."""
        rows = self._room(a, b, share)
        array = self.memory(place, rows * self.sizes[b]).reshape(rows, self.sizes[b])
        return RowCache(array, self.sizes[a])

    def memory(self, name: Any, size: int) -> np.ndarray:
        """Return memory for so many entries: the same for the same name, as long as it is enough.

        Memory that was never touched is slow to write to, and pairs of classes are many.
        """
        if name not in self._pool or self._pool[name].size < size:
            self._pool[name] = np.empty(size, dtype=self.dtype)
        return self._pool[name][:size]

    def columns(self, segment: int) -> list[Prepared]:
        """Return the points of a class in runs of a tile, what a tile prepares kept with them."""
        if segment not in self._columns:
            first, last = int(self.ends[segment]), int(self.ends[segment + 1])
            starts = range(first, last, _TILE_COLUMNS)
            self._columns[segment] = [self.tiles[j : min(j + _TILE_COLUMNS, last)] for j in starts]
        return self._columns[segment]

    def tile(self, P: Prepared, Q: Prepared) -> np.ndarray:
        """Return k(P, Q), in float32 if both the points and the rows are."""
        T = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, self.dtype))
        self.kernel._tile(P, Q, T)
        self.entries += T.size
        return T

    def evaluate(self, rows: np.ndarray, segment: int, cache: RowCache, slots: np.ndarray) -> None:
        """Set the slots of a cache to k(rows, points of the class)."""
        if len(rows) > _TILE_ROWS:  # keeps the working memory of a tile small
            for part in slices(len(rows), _TILE_ROWS):
                self.evaluate(rows[part], segment, cache, slots[part])
            return
        R, runs = self.tiles[rows], self.columns(segment)
        self.entries += len(rows) * self.sizes[segment]
        where: Any = slots
        if len(slots) == slots[-1] - slots[0] + 1 and np.all(np.diff(slots) == 1):
            where = slice(slots[0], slots[-1] + 1)  # faster to write to

        def some(first: int) -> Iterator[None]:
            scratch = np.empty(len(rows) * _TILE_COLUMNS, dtype=self.dtype)
            for run_, Q in enumerate(runs[first : first + 8], start=first):
                yield
                T = scratch[: len(rows) * len(Q)].reshape(len(rows), len(Q))
                self.kernel._tile(R, Q, T)  # the solver checks that f is finite
                cache.array[where, run_ * _TILE_COLUMNS : run_ * _TILE_COLUMNS + len(Q)] = T

        work = self.kernel._evaluation_work(len(rows) * sum(map(len, runs)))
        run(some, range(0, len(runs), 8), self.n_threads, work)


def _fixed_bytes(kernel: Kernel, X: Any, n_threads: int | None) -> int:
    """Return what is held beside rows and blocks of K, whatever their number."""
    tiles = working_bytes(kernel, X, None, 0, check_threads(n_threads))
    points = working_bytes(kernel, X, None, 0, 0)
    return tiles + (_COPIES_OF_POINTS - 1) * points + 8 * _VECTORS * length(X)


class RowsView:
    """The rows and columns of some classes, numbered 0, 1, ... n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import KernelRows
    >>> from mercer.kernels import RBF
    >>> rows = KernelRows(RBF(), np.arange(4.0)[:, None])
    >>> rows.view().n
    4
    """

    def __init__(self, rows: KernelRows, classes: tuple[int, ...]) -> None:
        self.rows, self.classes = rows, classes
        self.ends = np.concatenate([[0], np.cumsum([rows.sizes[c] for c in classes])])
        self.n = int(self.ends[-1])
        self.index = np.concatenate([np.arange(*rows.ends[c : c + 2]) for c in classes])
        self._renew()
        self._before = rows.entries, rows.hits, rows.requests

    def subset(self, points: np.ndarray) -> RowsView:
        """Return the rows and columns of some points, in a cache of their own; ours is emptied."""
        some = self.rows.subset(self.index[points])
        self._caches: list[list[RowCache]] = []
        return some.view()

    def restore(self, other: RowsView) -> None:
        """Take the memory back that a subset has used, and count what it did."""
        rows, done = self.rows, other.rows
        rows.entries += done.entries
        rows.requests += done.requests
        rows.hits += done.hits
        other._caches = []
        self._renew()

    def _renew(self) -> None:
        self._caches = self.rows.caches(self.classes)
        self._turn = self.rows.turn

    @property
    def capacity(self) -> int:
        """How many rows can be held at the same time, whatever their classes."""
        short = [
            len(c.array) for caches in self._caches for c in caches if len(c.array) < len(c.slot)
        ]
        return min(short, default=self.n)

    def holds(self, variables: int) -> bool:
        """Tell whether all of K fits, twice for several classes, and systems of the variables."""
        matrices = (2 if len(self.classes) > 1 else 1) * self.n**2
        systems = (3 if variables == self.n else 4) * variables**2
        return 8 * (matrices + systems) <= self.rows.room

    @property
    def counts(self) -> tuple[int, int, int]:
        """The entries evaluated, the hits and the requests since this view was made."""
        rows, (e, h, r) = self.rows, self._before
        return rows.entries - e, rows.hits - h, rows.requests - r

    def fetch(self, points: np.ndarray) -> None:
        """Make sure that the rows of these points are there: different ones, up to `capacity`.

        They are there until another view is made.
        """
        if self._turn != self.rows.turn:
            self._renew()
        for a, inside in self._split(points):
            for b in range(len(self.classes)):
                self._fetch(a, b, points[inside] - self.ends[a])

    def _fetch(self, a: int, b: int, wanted: np.ndarray) -> None:
        """Bring rows of the a-th class over the columns of the b-th to their cache."""
        rows, cache = self.rows, self._caches[a][b]
        slots, missing = cache.place(wanted)
        rows.requests += len(wanted)
        rows.hits += len(wanted) - len(missing)
        if not len(missing):
            return
        index = rows.ends[self.classes[a]] + wanted[missing]
        try:
            rows.evaluate(index, self.classes[b], cache, slots[missing])
        except BaseException:  # rows that were not evaluated must not be found in the cache
            cache.slot[wanted[missing]] = cache.row[slots[missing]] = -1
            cache.stamp[slots[missing]] = 0
            raise

    def add(self, points: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Set out <- out + K[:, points] weights, of rows that were fetched."""
        if self._turn != self.rows.turn:
            raise RuntimeError("another view has taken the memory of these rows; fetch them again")
        for a, inside in self._split(points):
            local = points[inside] - self.ends[a]
            for b, cache in enumerate(self._caches[a]):
                part = out[self.ends[b] : self.ends[b + 1]]
                add_rows(cache.array, cache.slot[local], weights[inside], part)

    def block(self, points: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return K[points][:, others], evaluated: entries far apart in memory are slow to find."""
        rows = self.rows
        out = np.empty((len(points), len(others)), dtype=rows.dtype)
        P = rows.tiles[self.index[points]]
        for cols in slices(len(others), _TILE_COLUMNS):
            out[:, cols] = rows.tile(P, rows.tiles[self.index[others[cols]]])
        return out

    def matrix(self) -> np.ndarray:
        """Return all of K, to be read until the next one is asked for."""
        rows, n = self.rows, self.n
        if rows._whole is not None:
            return rows._whole if n == rows.n else rows._whole[np.ix_(self.index, self.index)]
        if self._turn != rows.turn:
            self._renew()
        if len(self.classes) == 1 and self.capacity == n:
            self.fetch(np.arange(n))
            own = self._caches[0][0]
            return own.array if np.array_equal(own.slot, np.arange(n)) else own.array[own.slot]
        out = rows.memory("matrix", n * n).reshape(n, n)
        for a, segment in enumerate(self.classes):
            here = slice(*self.ends[a : a + 2])
            own = self._caches[a][a]
            held = len(own.array) == len(own.slot)
            if held:
                self._fetch(a, a, np.arange(len(own.slot)))
                out[here, here] = own.array[own.slot]
            P = rows.tiles[int(rows.ends[segment]) : int(rows.ends[segment + 1])]
            for b in range(a if held else a + 1):  # the rest by symmetry
                start = int(self.ends[b])
                for Q in rows.columns(self.classes[b]):
                    there = slice(start, start + len(Q))
                    out[here, there] = T = rows.tile(P, Q)
                    out[there, here] = T.T
                    start += len(Q)
        return out

    def product(self, weights: np.ndarray, points: Any = None) -> np.ndarray:
        """Return K weights, at some points, in float64: nothing is left of float32."""
        rows, some = self.rows, np.flatnonzero(weights)
        index = self.index if points is None else self.index[points]
        if not (len(some) and len(index)):
            return np.zeros(len(index))
        if len(index) * len(some) <= _FEW_ENTRIES:
            return np.asarray(rows.tile(rows.P[index], rows.P[self.index[some]]) @ weights[some])
        rows.entries += len(index) * len(some)
        P = rows.P if len(index) == rows.n and len(self.classes) == 1 else rows.P[index]
        K = TiledGram.on(rows.kernel, P, rows.P[self.index[some]], rows.n_threads)
        return np.asarray(K @ weights[some])

    def _split(self, points: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield for each class its number here, and where its points are among these."""
        if len(self.classes) == 1:
            yield 0, np.arange(len(points))
            return
        which = np.searchsorted(self.ends, points, side="right") - 1
        for a in range(len(self.classes)):
            if len(inside := np.flatnonzero(which == a)):
                yield a, inside
