"""Rows of a kernel matrix for SVM solvers, evaluated on demand and cached.

    K[i, :] = k(x_i, X)

Many rows are evaluated together, by matrix products.

SVM solvers read few rows of K, but read these repeatedly.  Rows are cached up to a memory limit,
and the least recently used ones are replaced.  They are stored in float32 if the kernel provides a
bound on the resulting error.  Even if all of K fits the cache, only requested rows are evaluated.

For several classes the points are sorted by class, and X_a denotes the points of class a.  The SVM
for the classes a and b reads only the rows and columns of these two.  The blocks k(X_a, X_a) and
k(X_b, X_b) are cached, because the SVMs for other pairs of classes with a or b need them, too.  The
block k(X_a, X_b) is used by one SVM only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from .._core import (
    MemoryLimit,
    Points,
    budget_in_bytes,
    check_budget,
    check_threads,
    jit,
    length,
    run_in_threads,
    slices,
)
from ..kernels import (
    Kernel,
    Precomputed,
    Prepared,
    float32_error_bound,
    has_float32_error_bound,
)
from ._tiled import TiledGram, working_bytes


@dataclass(frozen=True)
class _KernelRowsTuning:
    """Tile sizes, and how the memory budget of an SVM solver is divided."""

    # Rows are evaluated in tiles of this shape, which limits the temporary memory.
    tile_rows: int = 384
    tile_columns: int = 384
    # A matrix K of at most this size in bytes is stored in float64, without rounding to float32.
    small_matrix_bytes: int = 2**26
    # A product with at most this number of entries of K is evaluated in one tile.
    one_tile_entries: int = 2**18
    # Minimum number of cached rows, even if they need more memory than `cache_bytes`; solvers use
    # several rows at the same time.
    min_cached_rows: int = 64
    # Number of copies of the points: in float64, in float32, as columns, and of a subset.
    copies_of_points: int = 4
    # Number of vectors of length n (in float64) that a solver needs in addition to K.
    solver_vectors: int = 40
    # Minimum and maximum size in bytes of the blocks of K that a solver works on.
    min_block_bytes: int = 2**19
    max_block_bytes: int = 2**26


_TUNING = _KernelRowsTuning()
_STRIP_COLUMNS = 2048  # number of columns summed at a time; they fit the first-level CPU cache


class KernelRows:
    """Cached access to the rows of K = k(X, X), for SVM solvers.

    SVM solvers read few rows of K, but read these repeatedly.  Rows are evaluated on demand, many
    at a time, and cached up to a memory limit; the least recently used ones are replaced.  They are
    stored in float32 if the kernel provides a bound on the resulting error.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n points, sorted by class if `sizes` has several entries.
    sizes : sequence of int or None, default None
        Number of points in each class; None means one class.
    cache_bytes : int or None, default None
        Memory limit for the cached rows; None means all memory that `max_memory` leaves.
    max_memory : int, str or None, default None
        Memory budget of the solver, for copies of the points, tiles and vectors, in the format of
        `gram`.  Of the rest, one third (at most 64 MiB) is used for blocks of K, and the remainder
        for cached rows.
    n_threads : int or None, default None
        Number of threads; None means all processors.

    Attributes
    ----------
    n : int
        Number of points.
    available_bytes : int
        The part of `max_memory` that is available for blocks and rows of K.
    block_bytes : int
        The part of `available_bytes` that is reserved for blocks.
    entries : int
        Number of entries of K that were evaluated.
    requests, hits : int
        Number of rows that were requested, and how many of them were found in the cache.

    See Also
    --------
    RowsView : The rows and columns of some classes.
    mercer.solvers.BlockSMO : The solver that reads these rows.

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
        X: Points,
        *,
        sizes: Sequence[int] | None = None,
        cache_bytes: int | None = None,
        max_memory: MemoryLimit = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel, self.n_threads = kernel, n_threads
        self.n = length(X)
        self.sizes = [self.n] if sizes is None else [int(s) for s in sizes]
        self.ends = np.concatenate([[0], np.cumsum(self.sizes)])
        fixed_bytes, budget = _fixed_bytes(kernel, X, n_threads), budget_in_bytes(max_memory)
        limit = budget if cache_bytes is None else int(cache_bytes)
        self.P: Prepared = kernel.prepare(X)
        small = 8 * self.n**2 <= min(_TUNING.small_matrix_bytes, (budget - fixed_bytes) // 2, limit)
        self._is_small = small
        self._whole: np.ndarray | None = None  # all of K, once `whole` has evaluated it
        error = None if small else float32_error_bound(kernel, self.P)
        self.dtype = np.dtype(np.float64 if error is None else np.float32)
        self.error = 1e-15 if error is None else error  # relative error of an entry of K
        n_caches = 2 if len(self.sizes) > 1 else 1
        min_bytes = _TUNING.min_cached_rows * self.n * self.dtype.itemsize * n_caches
        what = f"a support vector machine on {self.n} points"
        check_budget(fixed_bytes + min_bytes + _TUNING.min_block_bytes, max_memory, what)
        self.available_bytes = budget - fixed_bytes
        limits = self.available_bytes // 3, self.available_bytes - min_bytes
        self.block_bytes = min(_TUNING.max_block_bytes, *limits)
        self._cache_limit = min(self.available_bytes - self.block_bytes, limit)
        self.tiles: Prepared = self.P if error is None else self.P.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            # upper bound on the absolute values of all entries of K
            self.largest = float(np.abs(kernel.diag(X)).max(initial=0.0))
        if not np.isfinite(self.largest):
            raise ValueError(
                f"The dual coefficients or intercepts are not finite: k(x, x) is {self.largest} "
                f"for a point x and {kernel}. The usual cause is huge feature values; scale the "
                f"features"
            )
        self._columns: dict[int, list[Prepared]] = {}
        self._classes: dict[int, Prepared] = {}
        self._class_caches: dict[int, RowCache] = {}  # rows of k(X_a, X_a) for each class a
        self._buffers: dict[Any, np.ndarray] = {}  # buffers that are reused, by name
        if isinstance(kernel, Precomputed) and len(self.sizes) == 1:
            self._use_precomputed(kernel, X)
        self.entries = self.requests = self.hits = self.generation = 0

    @staticmethod
    def workspace(
        kernel: Kernel,
        X: Points,
        n_classes: int = 1,
        cache_bytes: int | None = None,
        max_memory: MemoryLimit = None,
    ) -> tuple[int, int]:
        """Predict the memory of an SVM solver.

        The prediction assumes that half of the rows are used, unless K is small and stored.

        Parameters
        ----------
        kernel : Kernel
            A kernel whose parameters are all numbers.
        X : points
            The n points.
        n_classes : int, default 1
            Number of classes.
        cache_bytes : int or None, default None
            Memory limit for the cached rows; None means no separate limit.
        max_memory : int, str or None, default None
            Memory budget, in the format of `gram`.

        Returns
        -------
        predicted : int
            The predicted memory in bytes.
        minimum : int
            The smallest budget in bytes that is accepted.
        """
        n, budget = length(X), budget_in_bytes(max_memory)
        fixed_bytes = _fixed_bytes(kernel, X, None)
        limit = budget if cache_bytes is None else int(cache_bytes)
        small = 8 * n**2 <= min(_TUNING.small_matrix_bytes, (budget - fixed_bytes) // 2, limit)
        itemsize = 8 if small or not has_float32_error_bound(kernel) else 4
        min_bytes = _TUNING.min_cached_rows * n * itemsize * (2 if n_classes > 1 else 1)
        block_bytes = 0 if small else min(_TUNING.max_block_bytes, itemsize * n * n // 4)
        cached = min(itemsize * n * n, limit, max(0, budget - fixed_bytes - block_bytes))
        cached = cached if small else cached // 2
        return fixed_bytes + cached + block_bytes, fixed_bytes + min_bytes + _TUNING.min_block_bytes

    def _use_precomputed(self, kernel: Precomputed, X: Points) -> None:
        """Use a precomputed matrix as the cache if X contains all of its indices in order."""
        K = np.asarray(kernel.matrix)
        if K.dtype == np.float64 and np.array_equal(X, np.arange(len(K))):
            self._class_caches[0] = RowCache.from_matrix(K)

    def view(self, *classes: int) -> RowsView:
        """Return a view of the rows and columns of some classes.

        Parameters
        ----------
        *classes : int
            Indices of the classes; all classes by default.

        Returns
        -------
        RowsView
            The view.  Earlier views become invalid, because their memory is reused.
        """
        return RowsView(self, classes or tuple(range(len(self.sizes))))

    def whole(self, variables: int) -> np.ndarray | None:
        """Return all of K in float64 if it is small and the memory suffices.

        Parameters
        ----------
        variables : int
            Number of unknowns of linear systems that need memory in addition to K.

        Returns
        -------
        ndarray of shape (n, n) or None
            K, which must not be modified, or None.
        """
        if not self._is_small or 8 * (self.n**2 + 4 * variables**2) > self.available_bytes:
            return None
        if self._whole is None:
            cached = self._class_caches.get(0)
            if cached is not None and not cached.owned:
                self._whole = cached.array
                return self._whole
            self._whole = K = np.empty((self.n, self.n))
            # Complete rows are evaluated directly into K.
            for rows in slices(self.n, _TUNING.tile_rows):
                P = self.P if rows.stop - rows.start == self.n else self.P[rows]
                self.kernel._tile(P, self.P, K[rows])
            self.entries += K.size
        return self._whole

    def concurrent_pairs(self, pairs: np.ndarray) -> int:
        """Return the number of pairs of classes whose matrices fit the cache at the same time.

        Each pair needs its complete matrix in float64.  In addition, the blocks k(X_a, X_a) of all
        classes a are stored once and shared by the pairs.

        Parameters
        ----------
        pairs : ndarray of int of shape (n_pairs, 2)
            The two classes of each pair.

        Returns
        -------
        int
            Number of pairs that can be solved concurrently, possibly 0.
        """
        sizes = np.array(self.sizes)[pairs]
        own = sum(size**2 for size in self.sizes)
        each = int((sizes.prod(axis=1) + sizes.sum(axis=1) ** 2).max())
        return max(0, (self._cache_limit // 8 - own) // each)

    def between(self, a: int, b: int, out: np.ndarray) -> np.ndarray:
        """Evaluate the block k(X_a, X_b) for two classes, in float64.

        The caller must add the number of evaluated entries to `entries`.

        Parameters
        ----------
        a, b : int
            Indices of the classes.
        out : ndarray of shape (n_a, n_b)
            Output array.

        Returns
        -------
        ndarray of shape (n_a, n_b)
            The array `out`.
        """
        (first, last), there = self.ends[a : a + 2].tolist(), self._class(b)
        for rows in slices(last - first, _TUNING.tile_rows):
            self.kernel._tile(self.P[first + rows.start : first + rows.stop], there, out[rows])
        return out

    def _class(self, a: int) -> Prepared:
        """Return the prepared points of a class; they are cached."""
        if a not in self._classes:
            self._classes[a] = self.P[int(self.ends[a]) : int(self.ends[a + 1])]
        return self._classes[a]

    def subset(self, index: np.ndarray) -> KernelRows:
        """Return cached access to the rows and columns of a subset of the points.

        The caches of this object are cleared, to make their memory available.

        Parameters
        ----------
        index : ndarray of int of shape (r,)
            Indices of the points.

        Returns
        -------
        KernelRows
            Access to the (r, r) matrix of these points, as one class.
        """
        sub = copy(self)
        sub.n, sub.sizes, sub.ends = len(index), [len(index)], np.array([0, len(index)])
        sub.P = self.P[index]
        sub.tiles = sub.P if self.tiles is self.P else self.tiles[index]
        sub._columns, sub._classes, sub._class_caches, sub._buffers = {}, {}, {}, {}
        sub._is_small, sub._whole = False, None
        sub.entries = sub.requests = sub.hits = 0
        for a, cache in list(self._class_caches.items()):
            if cache.owned:
                del self._class_caches[a]
        self._buffers.clear()
        return sub

    def caches(self, classes: tuple[int, ...]) -> list[list[RowCache]]:
        """Return caches for the blocks k(X_a, X_b) of some classes.

        Parameters
        ----------
        classes : tuple of int
            Indices of the classes, c of them.

        Returns
        -------
        list of lists of RowCache
            c x c caches, indexed by the positions of a and b in `classes`.
        """
        self.generation += 1  # earlier views are now invalid, because their memory is reused
        # The caches of all other classes together may use as much memory as one of these caches.
        others = len(self.sizes) > len(classes)
        limit, pairs = self._cache_limit // (len(classes) ** 2 + others), list(enumerate(classes))
        for old_class in [c for c in self._class_caches if c not in classes]:
            stored_bytes = sum(c.bytes for a, c in self._class_caches.items() if a not in classes)
            if stored_bytes <= limit:
                break
            del self._class_caches[old_class]  # the least recently used class comes first
        for a in classes:
            own = self._class_caches.pop(a, None)
            if own is None:
                shape = self._max_rows(a, a, limit), self.sizes[a]
                own = RowCache(np.empty(shape, dtype=self.dtype), self.sizes[a])
            self._class_caches[a] = own  # the most recently used class comes last

        def cache(i: int, a: int, j: int, b: int) -> RowCache:
            return self._class_caches[a] if a == b else self._cross_cache(a, b, limit, (i, j))

        return [[cache(i, a, j, b) for j, b in pairs] for i, a in pairs]

    def _max_rows(self, a: int, b: int, limit: int) -> int:
        """Return the number of rows of k(X_a, X_b) that are cached in `limit` bytes."""
        n_rows = limit // max(1, self.sizes[b] * self.dtype.itemsize)
        return min(self.sizes[a], max(_TUNING.min_cached_rows, n_rows))

    def _cross_cache(self, a: int, b: int, limit: int, position: tuple[int, int]) -> RowCache:
        """Return an empty cache for k(X_a, X_b), which reuses the memory of the previous one."""
        rows = self._max_rows(a, b, limit)
        array = self.memory(position, rows * self.sizes[b]).reshape(rows, self.sizes[b])
        return RowCache(array, self.sizes[a])

    def memory(self, name: Any, size: int) -> np.ndarray:
        """Return an uninitialised buffer, which is reused for the same name.

        The first write to newly allocated memory is slow.  A buffer avoids it for all pairs of
        classes but the first.

        Parameters
        ----------
        name : hashable
            Name of the buffer.
        size : int
            Number of entries.

        Returns
        -------
        ndarray of shape (size,)
            The buffer, in the precision of the cached rows.
        """
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size, dtype=self.dtype)
        return self._buffers[name][:size]

    def columns(self, segment: int) -> list[Prepared]:
        """Return the prepared points of a class, split into columns of tiles; they are cached.

        Parameters
        ----------
        segment : int
            Index of the class.

        Returns
        -------
        list of Prepared
            Consecutive points of the class, one element per column of tiles.
        """
        if segment not in self._columns:
            first, last = int(self.ends[segment]), int(self.ends[segment + 1])
            parts = slices(last - first, _TUNING.tile_columns)
            self._columns[segment] = [self.tiles[first + p.start : first + p.stop] for p in parts]
        return self._columns[segment]

    def tile(self, P: Prepared, Q: Prepared) -> np.ndarray:
        """Return k(P, Q), in float32 if both the points and the cached rows are float32.

        Parameters
        ----------
        P, Q : Prepared
            Prepared points of the rows and of the columns, p and q of them.

        Returns
        -------
        ndarray of shape (p, q)
            The kernel values.
        """
        T = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, self.dtype))
        self.kernel._tile(P, Q, T)
        self.entries += T.size
        return T

    def evaluate(self, rows: np.ndarray, segment: int, cache: RowCache, slots: np.ndarray) -> None:
        """Evaluate rows of K at the columns of one class, and store them in a cache.

        Parameters
        ----------
        rows : ndarray of int of shape (r,)
            Indices of the rows in K.
        segment : int
            Index of the class of the columns.
        cache : RowCache
            Cache of this block.
        slots : ndarray of int of shape (r,)
            Slot of the cache for each row.
        """
        if len(rows) > _TUNING.tile_rows:  # split the rows, to limit the working memory of a tile
            for part in slices(len(rows), _TUNING.tile_rows):
                self.evaluate(rows[part], segment, cache, slots[part])
            return
        prepared_rows, runs = self.tiles[rows], self.columns(segment)
        self.entries += len(rows) * self.sizes[segment]
        target: Any = slots
        if len(slots) == slots[-1] - slots[0] + 1 and np.all(np.diff(slots) == 1):
            target = slice(slots[0], slots[-1] + 1)  # slices are faster than index arrays

        def evaluate_runs(first: int) -> Iterator[None]:
            scratch = np.empty(len(rows) * _TUNING.tile_columns, dtype=self.dtype)
            for run_, Q in enumerate(runs[first : first + 8], start=first):
                yield
                T = scratch[: len(rows) * len(Q)].reshape(len(rows), len(Q))
                self.kernel._tile(prepared_rows, Q, T)  # the solver checks for overflow
                start = run_ * _TUNING.tile_columns
                cache.array[target, start : start + len(Q)] = T

        work = self.kernel._evaluation_work(len(rows) * sum(map(len, runs)))
        run_in_threads(evaluate_runs, range(0, len(runs), 8), self.n_threads, work)


def _fixed_bytes(kernel: Kernel, X: Points, n_threads: int | None) -> int:
    """Return the number of bytes that a solver needs in addition to rows and blocks of K."""
    tiles = working_bytes(kernel, X, None, 0, check_threads(n_threads))
    points = working_bytes(kernel, X, None, 0, 0)
    return tiles + (_TUNING.copies_of_points - 1) * points + 8 * _TUNING.solver_vectors * length(X)


class RowsView:
    """View of the rows and columns of K that belong to some classes.

    The points of the view are numbered from 0 to n - 1.  Use `KernelRows.view` to make a view.

    Parameters
    ----------
    rows : KernelRows
        The object that evaluates and caches the rows.
    classes : tuple of int
        The classes of the view.

    Attributes
    ----------
    n : int
        Number of points in the view.
    index : ndarray of shape (n,)
        Index of each point of the view among the points X of `rows`.

    See Also
    --------
    KernelRows : The rows of all classes.

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
        self._initial_counts = rows.entries, rows.hits, rows.requests

    def subset(self, points: np.ndarray) -> RowsView:
        """Return a view of some points with its own cache; the cache of this view is cleared.

        Parameters
        ----------
        points : ndarray of int of shape (r,)
            Points of this view.

        Returns
        -------
        RowsView
            View of the r points; pass it to `restore` after use.
        """
        sub = self.rows.subset(self.index[points])
        self._caches: list[list[RowCache]] = []
        return sub.view()

    def restore(self, other: RowsView) -> None:
        """Reclaim the memory of a view made by `subset`, and add its counters to this view.

        Parameters
        ----------
        other : RowsView
            The view made by `subset`; it is unusable afterwards.
        """
        rows, done = self.rows, other.rows
        rows.entries += done.entries
        rows.requests += done.requests
        rows.hits += done.hits
        other._caches = []
        self._renew()

    def _renew(self) -> None:
        """Request new caches for this view, because another view has used their memory."""
        self._caches = self.rows.caches(self.classes)
        self._generation = self.rows.generation

    @property
    def capacity(self) -> int:
        """Number of rows that can be cached at the same time, whatever their classes are."""
        caches = chain.from_iterable(self._caches)
        return min((len(c.array) for c in caches if len(c.array) < len(c.slot)), default=self.n)

    def holds(self, variables: int) -> bool:
        """Return True if the memory suffices for all of K and for linear systems.

        For several classes there must be memory for two copies of K.

        Parameters
        ----------
        variables : int
            Number of unknowns of the linear systems.

        Returns
        -------
        bool
            Whether the memory suffices.
        """
        matrices = (2 if len(self.classes) > 1 else 1) * self.n**2
        systems = (3 if variables == self.n else 4) * variables**2
        return 8 * (matrices + systems) <= self.rows.available_bytes

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of entries evaluated, cache hits and requests since this view was made."""
        rows, (e, h, r) = self.rows, self._initial_counts
        return rows.entries - e, rows.hits - h, rows.requests - r

    def fetch(self, points: np.ndarray) -> None:
        """Evaluate the rows of the given points, unless they are in the cache.

        The rows stay available until the next call of `fetch` or until another view is made.

        Parameters
        ----------
        points : ndarray of int of shape (r,)
            Distinct points of the view, at most `capacity` of them.
        """
        if self._generation != self.rows.generation:
            self._renew()
        for a, inside in self._split(points):
            for b in range(len(self.classes)):
                self._fetch(a, b, points[inside] - self.ends[a])

    def _fetch(self, a: int, b: int, wanted: np.ndarray) -> None:
        """Evaluate missing rows of class a, at the columns of class b, into their cache."""
        rows, cache = self.rows, self._caches[a][b]
        slots, missing = cache.assign_slots(wanted)
        rows.requests += len(wanted)
        rows.hits += len(wanted) - len(missing)
        if not len(missing):
            return
        index = rows.ends[self.classes[a]] + wanted[missing]
        try:
            rows.evaluate(index, self.classes[b], cache, slots[missing])
        except BaseException:  # rows that were not evaluated must not count as cached
            cache.slot[wanted[missing]] = cache.row[slots[missing]] = -1
            cache.last_used[slots[missing]] = 0
            raise

    def add(self, points: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Add a linear combination of rows of K to an array, out <- out + K[:, points] weights.

        The rows must have been fetched before.

        Parameters
        ----------
        points : ndarray of int of shape (r,)
            Points of the view.
        weights : ndarray of shape (r,)
            Weight of each row.
        out : ndarray of shape (n,)
            Array that is updated in place.
        """
        if self._generation != self.rows.generation:
            raise RuntimeError("another view has reused the memory of these rows; fetch them again")
        for a, inside in self._split(points):
            local = points[inside] - self.ends[a]
            for b, cache in enumerate(self._caches[a]):
                part = out[self.ends[b] : self.ends[b + 1]]
                add_weighted_rows(cache.array, cache.slot[local], weights[inside], part)

    def block(self, points: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return some entries of K, K[points][:, others].

        The block is evaluated again, because reading scattered entries of the cache is slower.

        Parameters
        ----------
        points : ndarray of int of shape (r,)
            Rows of the block.
        others : ndarray of int of shape (c,)
            Columns of the block.

        Returns
        -------
        ndarray of shape (r, c)
            The kernel values, in the precision of the cached rows.
        """
        rows = self.rows
        out = np.empty((len(points), len(others)), dtype=rows.dtype)
        P = rows.tiles[self.index[points]]
        for cols in slices(len(others), _TUNING.tile_columns):
            out[:, cols] = rows.tile(P, rows.tiles[self.index[others[cols]]])
        return out

    def matrix(self) -> np.ndarray:
        """Return all of K for the points of the view.

        Returns
        -------
        ndarray of shape (n, n)
            K, which must not be modified.  The next call may overwrite it.
        """
        rows, n = self.rows, self.n
        if rows._whole is not None:
            return rows._whole if n == rows.n else rows._whole[np.ix_(self.index, self.index)]
        if self._generation != rows.generation:
            self._renew()
        if len(self.classes) == 1 and self.capacity == n:
            self.fetch(np.arange(n))
            own = self._caches[0][0]
            return own.array if np.array_equal(own.slot, np.arange(n)) else own.array[own.slot]
        out = rows.memory("matrix", n * n).reshape(n, n)
        for a, segment in enumerate(self.classes):
            here = slice(*self.ends[a : a + 2])
            own = self._caches[a][a]
            is_complete = len(own.array) == len(own.slot)
            if is_complete:
                self._fetch(a, a, np.arange(len(own.slot)))
                out[here, here] = own.array[own.slot]
            P = rows.tiles[int(rows.ends[segment]) : int(rows.ends[segment + 1])]
            # both blocks, (a, b) and its transpose (b, a), are set
            for b in range(a if is_complete else a + 1):
                start = int(self.ends[b])
                for Q in rows.columns(self.classes[b]):
                    there = slice(start, start + len(Q))
                    out[here, there] = T = rows.tile(P, Q)
                    out[there, here] = T.T
                    start += len(Q)
        return out

    def product(self, weights: np.ndarray, points: Points = None) -> np.ndarray:
        """Return a product with K, evaluated in float64.

        Cached rows are not used, because they may be in float32.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            The vector to multiply; only its nonzero entries need evaluations of the kernel.
        points : ndarray of int of shape (r,) or None, default None
            Rows of the result; None means all points.

        Returns
        -------
        ndarray of shape (r,)
            K[points] weights.
        """
        rows, support = self.rows, np.flatnonzero(weights)
        index = self.index if points is None else self.index[points]
        if not (len(support) and len(index)):
            return np.zeros(len(index))
        if len(index) * len(support) <= _TUNING.one_tile_entries:
            tile = rows.tile(rows.P[index], rows.P[self.index[support]])
            return np.asarray(tile @ weights[support])
        rows.entries += len(index) * len(support)
        P = rows.P if len(index) == rows.n and len(self.classes) == 1 else rows.P[index]
        K = TiledGram.on(rows.kernel, P, rows.P[self.index[support]], rows.n_threads)
        return np.asarray(K @ weights[support])

    def _split(self, points: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield pairs (position of the class in this view, positions of its points in `points`)."""
        if len(self.classes) == 1:
            yield 0, np.arange(len(points))
            return
        which = np.searchsorted(self.ends, points, side="right") - 1
        for a in range(len(self.classes)):
            if len(inside := np.flatnonzero(which == a)):
                yield a, inside


# --- Least-recently-used cache of rows.


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
    >>> from mercer.gram._kernel_rows import RowCache
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
        bytes_per_slot: int = self.array.shape[1] * self.array.itemsize
        return self.n_used * bytes_per_slot

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
def add_weighted_rows(
    array: np.ndarray, slots: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
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


@add_weighted_rows.without_numba
def _add_weighted_rows_numpy(
    array: np.ndarray, slots: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    for start in range(0, len(slots), 8):
        out += weights[start : start + 8] @ array[slots[start : start + 8], : len(out)]
