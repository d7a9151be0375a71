"""Nearest neighbours in feature space, computed from tiles of the kernel matrix.

    d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z)

k(x, x) is the same for all z and is added at the end.  Only points that are closer than the current
k-th neighbour are inserted into the list of neighbours, so that processing a tile costs little more
than reading it.
If the kernel decreases with the distance in R^d, points are sorted by that distance, and the kernel
is evaluated only for the nearest ones.

The three terms cancel if d^2 is small compared with k(x, x).  Rows in which this happens are
searched again with an equivalent kernel that computes distances from differences of points, if
there is one (`as_distance_kernel`).  Otherwise a warning reports the loss of precision.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._core import (
    Points,
    entry_point,
    ignore_overflow,
    jit,
    map_in_threads,
    not_finite_error,
    run_in_threads,
    slices,
)
from ..kernels import Kernel, Prepared, Radial, Scale, as_distance_kernel, prepare_pair
from ._cancellation import (
    MAX_CANCELLATION_ERROR,
    ROUNDING_UNITS,
    is_cancelled,
    points_differ,
    warn_about_cancellation,
)

# Number of entries of a row that are compared with the k-th neighbour in one vectorised step.  This
# is a global constant, and not a field of _NeighborTuning, because compiled code reads it.
_CHUNK = 64


@dataclass(frozen=True)
class _NeighborTuning:
    """Tile sizes and accuracy thresholds of the neighbour search."""

    # Shape of a tile of K; a tile of 384 x 384 entries in float64 fits the second-level cache.
    tile_rows: int = 384
    tile_columns: int = 384
    # Up to this number of features, differences of points are as fast as inner products.
    max_difference_features: int = 2
    # A squared distance with a larger relative error is computed again from differences.
    max_relative_error: float = 1e-6
    # A warning is issued if the neighbours of more than this fraction of points depend on rounding.
    warn_fraction: float = 0.01


_TUNING = _NeighborTuning()


@entry_point
@ignore_overflow
def nearest_neighbors(
    kernel: Kernel,
    X: Points,
    Z: Points,
    k: int,
    norms: np.ndarray,
    own: np.ndarray | None = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k nearest neighbours of each x among the points Z, in feature space.

    The squared distance is d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z).  All distances are computed
    in tiles, so that the result is exact, and the memory is O(n_x k).

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n_x points whose neighbours are searched.
    Z : points or None
        The n_z candidates.  None means Z = X; then a point is not a neighbour of itself.
    k : int
        Number of neighbours, at most the number of points z other than x.
    norms : array of shape (n_z,)
        The values k(z, z).
    own : array of shape (n_x,) or None, default None
        The values k(x, x).  If None, k(z, z) - 2 k(x, z) is returned instead of the squared
        distances; the order of the neighbours is the same.
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.

    Returns
    -------
    squared : ndarray of shape (n_x, k)
        Squared distances in feature space, in ascending order.
    index : ndarray of shape (n_x, k)
        Indices of the neighbours in Z.  Ties are in the order of Z, except that points so far away
        that k(x, z) rounds to 0 are sorted by their distance in R^d.

    See Also
    --------
    radius_neighbors : All points within a radius.

    References
    ----------
    Schölkopf, "The kernel trick for distances", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import nearest_neighbors
    >>> from mercer.kernels import Linear
    >>> Z = np.array([[0.0], [1.0], [5.0]])
    >>> nearest_neighbors(Linear(), np.array([[4.0]]), Z, 2, Linear().diag(Z), np.array([16.0]))
    (array([[1., 9.]]), array([[2, 1]]))
    """
    search = _Search(kernel, X, Z, np.asarray(norms, dtype=np.float64), own, n_threads)
    if own is None:
        best, index = search.scan(k)
        if not np.isfinite(best.sum()):
            raise not_finite_error(kernel)
        return best, index
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] <= _TUNING.max_difference_features:
        search = search.from_differences() or search
    squared, index = search.nearest(k)
    rows = search.inaccurate_rows(squared, index)
    if len(rows):
        accurate = search.from_differences()
        if accurate is not None:
            squared[rows], index[rows] = accurate.nearest(k, rows)
        pairs = np.repeat(rows, k), index[rows].ravel()
        (accurate or search).warn_if_lost(search.kernel, pairs, squared[rows].ravel())
    return squared, index


@dataclass(frozen=True)
class _Search:
    """The points of a neighbour search, with the values k(z, z) and, if known, k(x, x)."""

    kernel: Kernel
    X: Points
    Z: Points  # None for Z = X; then a point is not a neighbour of itself
    norms: np.ndarray
    own: np.ndarray | None
    n_threads: int | None

    @property
    def candidates(self) -> Points:
        """The points among which neighbours are searched."""
        return self.X if self.Z is None else self.Z

    def from_differences(self) -> Self | None:
        """Return the search with an equivalent kernel that uses differences of points, or None."""
        kernel = as_distance_kernel(self.kernel)
        if kernel is self.kernel:
            return None
        norms = np.asarray(kernel.diag(self.candidates), dtype=np.float64)
        own = norms if self.Z is None else np.asarray(kernel.diag(self.X), dtype=np.float64)
        return replace(self, kernel=kernel, norms=norms, own=own)

    def prepared(self, rows: np.ndarray | None) -> tuple[Prepared, Prepared]:
        """Return the prepared points x with the indices `rows`, and the prepared candidates."""
        P, Q = prepare_pair(self.kernel, self.X, self.Z)
        return P if rows is None else P[rows], Q

    def own_of(self, rows: np.ndarray | slice | None) -> np.ndarray:
        """Return the values k(x, x) of some rows, or of all rows."""
        own = np.asarray(self.own, dtype=np.float64)
        return own if rows is None else own[rows]

    # ------------------------------------------------------------------ nearest neighbours

    def nearest(self, k: int, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared distances and the indices of the k nearest neighbours."""
        best, index = self.scan(k, rows)
        own = self.own_of(rows)
        if not np.isfinite(best.sum() + own.sum()):
            raise not_finite_error(self.kernel)
        return _squared_distances(best, self.norms[index], own[:, None]), index

    def scan(self, k: int, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return k(z, z) - 2 k(x, z) for the k nearest z of each x, and their indices."""
        (P, Q), kernel = self.prepared(rows), self.kernel
        factor, radial = _decreasing(kernel)
        while radial is not None and kernel is not radial:
            kernel, P, Q = kernel.kernel, P.children[0], Q.children[0]  # type: ignore[attr-defined]
        best = np.full((len(P), k), np.inf)
        index = np.full((len(P), k), -1, dtype=np.intp)
        sign, terms = (-2.0, self.norms) if radial is None else (1.0, np.zeros(len(Q)))

        def evaluate(Pi: Prepared, Qj: Prepared, T: np.ndarray) -> None:
            if radial is None:
                kernel._tile(Pi, Qj, T)
            else:
                radial._statistic(Pi, Qj, T, exact=False)

        def strip(part: slice) -> Iterator[None]:
            for cols, Pi, Qj, T in _tiles(P[part], columns, evaluate):
                yield
                if self.Z is None:
                    T[Pi.coincidences(Qj)] = sign * np.inf  # set the distance to infinity
                _insert(T, terms[cols], sign, cols.start, best[part], index[part])

        columns, work = _columns(Q), kernel._evaluation_work(len(P) * len(Q))
        run_in_threads(strip, slices(len(P), _TUNING.tile_rows), self.n_threads, work)
        if radial is not None and np.isfinite(best.sum()):
            best = self.norms[index] - 2.0 * factor * radial.profile(np.maximum(best, 0.0))
            # make the order ascending despite rounding errors
            np.maximum.accumulate(best, axis=1, out=best)
        return best, index

    def inaccurate_rows(self, squared: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return the rows with an inaccurate squared distance between different points."""
        if self.kernel.domain.discrete or _decreasing(self.kernel)[1] is not None:
            # k is exact, or points were sorted by distances in R^d
            return np.empty(0, dtype=np.intp)
        error = _rounding_of(self.norms[index], self.own_of(None)[:, None])
        i, position = np.nonzero(squared * _TUNING.max_relative_error < error)
        return np.unique(i[points_differ(self.X, self.candidates, i, index[i, position])])

    # ------------------------------------------------------------------ neighbours in a radius

    def within(
        self, radius: float, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each x the number of z in the radius, their squared distances and indices."""
        (P, Q), own = self.prepared(rows), self.own_of(rows)

        def strip(part: slice) -> Generator[None, None, tuple[np.ndarray, ...]]:
            found, n_rows = [], part.stop - part.start
            for cols, Pi, Qj, T in _tiles(P[part], columns, self.kernel._tile):
                yield
                if not np.isfinite(T.sum()):
                    raise not_finite_error(self.kernel)
                norms = self.norms[cols]
                squared = _squared_distances(norms - 2.0 * T, norms, own[part, None])
                if self.Z is None:
                    squared[Pi.coincidences(Qj)] = np.inf
                i, j = np.nonzero(squared <= radius**2)
                found.append((i, squared[i, j], j + cols.start))
            i, squared, j = (np.concatenate(each) for each in zip(*found, strict=True))
            order = np.argsort(i, kind="stable")
            return np.bincount(i, minlength=n_rows), squared[order], j[order]

        columns, work = _columns(Q), self.kernel._evaluation_work(len(P) * len(Q))
        strips = slices(len(P), _TUNING.tile_rows)
        results = map_in_threads(strip, strips, self.n_threads, work)
        counts, squared, index = (np.concatenate(each) for each in zip(*results, strict=True))
        return counts, squared, index

    def inaccurate_rows_within(
        self, radius: float, i: np.ndarray, squared: np.ndarray, index: np.ndarray
    ) -> np.ndarray:
        """Return the rows in which a distance or its comparison with `radius` is inaccurate.

        The points index[m] are the neighbours of the points x_i with i = i[m].
        """
        if self.kernel.domain.discrete or not len(self.norms):
            return np.empty(0, dtype=np.intp)
        own = self.own_of(None)
        error = _rounding_of(self.norms[index], own[i])
        pairs = np.flatnonzero(squared * _TUNING.max_relative_error < error)
        rows = i[pairs][points_differ(self.X, self.candidates, i[pairs], index[pairs])]
        if not radius > 0.0:
            return np.unique(rows)
        error = _rounding_of(np.abs(self.norms).max(initial=0.0), own)
        return np.union1d(rows, np.flatnonzero(radius**2 * _TUNING.max_relative_error < error))

    # ------------------------------------------------------------------ rounding

    def warn_if_lost(
        self,
        kernel: Kernel,
        pairs: tuple[np.ndarray, np.ndarray],
        squared: np.ndarray,
        radius: float = np.inf,
    ) -> None:
        """Warn if the neighbours of many points are decided by rounding errors of the kernel."""
        (i, j), n = pairs, len(self.own_of(None))
        error = _rounding_of(self.norms[j], self.own_of(i))
        lost = np.flatnonzero(np.minimum(squared, radius**2) * MAX_CANCELLATION_ERROR < error)
        lost = lost[points_differ(self.X, self.candidates, i[lost], j[lost])]
        count = len(np.unique(i[lost]))
        if not count > _TUNING.warn_fraction * n or not is_cancelled(
            kernel, self.X, self.candidates, i[lost], j[lost]
        ):
            return
        what = f"the neighbours of {count} of {n} points are determined by rounding errors"
        size = float(np.median(squared[lost]))
        warn_about_cancellation(kernel, what, size, float(np.median(error[lost])))


def _columns(Q: Prepared) -> list[tuple[slice, Prepared]]:
    """Split the candidates into the columns of tiles."""
    return [(cols, Q[cols]) for cols in slices(len(Q), _TUNING.tile_columns)]


def _tiles(
    P: Prepared,
    columns: list[tuple[slice, Prepared]],
    evaluate: Callable[[Prepared, Prepared, np.ndarray], object],
) -> Iterator[tuple[slice, Prepared, Prepared, np.ndarray]]:
    """Yield for each column of tiles its slice, the points of its rows and columns, and the tile.

    All tiles share the same memory.
    """
    dtype = np.result_type(P.dtype, columns[0][1].dtype) if columns else np.float64
    scratch = np.empty(len(P) * _TUNING.tile_columns, dtype=dtype)
    for cols, Q in columns:
        T = scratch[: len(P) * len(Q)].reshape(len(P), len(Q))
        evaluate(P, Q, T)
        yield cols, P, Q, T


def _decreasing(kernel: Kernel) -> tuple[float, Radial | None]:
    """Split k into a positive factor and a radial kernel that decreases with the distance.

    The result is (1.0, None) if k does not have this form.
    """
    factor = 1.0
    while isinstance(kernel, Scale) and kernel.factor > 0.0:
        factor, kernel = factor * kernel.factor, kernel.kernel
    return (factor, kernel) if isinstance(kernel, Radial) and kernel.is_decreasing else (1.0, None)


@entry_point
@ignore_overflow
def radius_neighbors(
    kernel: Kernel,
    X: Points,
    Z: Points,
    radius: float,
    norms: np.ndarray,
    own: np.ndarray,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find all points z within a radius of each x, in feature space.

    The squared distance is d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z).

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n_x points whose neighbours are searched.
    Z : points or None
        The n_z candidates.  None means Z = X; then a point is not a neighbour of itself.
    radius : float
        Maximum distance d(x, z) in feature space; for a kernel with k(x, x) = 1 and k >= 0, all
        distances are at most sqrt(2).
    norms : array of shape (n_z,)
        The values k(z, z).
    own : array of shape (n_x,)
        The values k(x, x).
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.

    Returns
    -------
    ends : ndarray of shape (n_x + 1,)
        The neighbours of x_i are the entries ends[i] to ends[i + 1] - 1 of the other arrays.
    squared : ndarray of shape (ends[-1],)
        Squared distances.
    index : ndarray of shape (ends[-1],)
        Indices of the neighbours in Z, ascending for each x.

    See Also
    --------
    nearest_neighbors : A fixed number of neighbours.

    References
    ----------
    Schölkopf, "The kernel trick for distances", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import radius_neighbors
    >>> from mercer.kernels import Linear
    >>> Z = np.array([[0.0], [1.0], [5.0]])
    >>> X = np.array([[4.0], [9.0]])
    >>> radius_neighbors(Linear(), X, Z, 3.0, Linear().diag(Z), Linear().diag(X))
    (array([0, 2, 2]), array([9., 1.]), array([1, 2]))
    """
    norms, own = np.asarray(norms, dtype=np.float64), np.asarray(own, dtype=np.float64)
    search = _Search(kernel, X, Z, norms, own, n_threads)
    counts, squared, index = search.within(radius)
    i = np.repeat(np.arange(len(counts)), counts)
    rows = search.inaccurate_rows_within(radius, i, squared, index)
    if len(rows):
        accurate = search.from_differences()
        if accurate is not None:
            new_counts, new_squared, new_index = accurate.within(radius, rows)
            unchanged = np.isin(i, rows, invert=True)
            i = np.concatenate([i[unchanged], np.repeat(rows, new_counts)])
            order = np.argsort(i, kind="stable")
            squared = np.concatenate([squared[unchanged], new_squared])[order]
            index = np.concatenate([index[unchanged], new_index])[order]
            i, counts = i[order], np.bincount(i, minlength=len(counts))
        (accurate or search).warn_if_lost(kernel, (i, index), squared, radius)
    return np.concatenate([[0], np.cumsum(counts)]), squared, index


def _squared_distances(partial: np.ndarray, norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Add k(x, x) to k(z, z) - 2 k(x, z); results within the rounding error are set to 0."""
    squared: np.ndarray = partial + own
    squared[squared <= _rounding_of(norms, own)] = 0.0
    return squared


def _rounding_of(norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return a bound on the rounding error of k(z, z) - 2 k(x, z) + k(x, x)."""
    return np.asarray(ROUNDING_UNITS * np.finfo(np.float64).eps * (np.abs(norms) + np.abs(own)))


@jit()
def _insert(
    T: np.ndarray, terms: np.ndarray, factor: float, start: int, best: np.ndarray, index: np.ndarray
) -> None:
    """Insert the points of a tile into the sorted lists of nearest neighbours.

    A smaller value of terms + factor * T means a nearer point; ties are in the order of the points.
    """
    k, m = best.shape[1], T.shape[1]
    for i in range(T.shape[0]):
        row, worst = T[i], best[i, k - 1]
        for first in range(0, m, _CHUNK):
            last = min(first + _CHUNK, m)
            if not _minimum(row[first:last], terms[first:last], factor) < worst:
                continue
            for j in range(first, last):
                d = terms[j] + factor * row[j]
                if d < worst:
                    position = k - 1
                    while position > 0 and best[i, position - 1] > d:
                        best[i, position] = best[i, position - 1]
                        index[i, position] = index[i, position - 1]
                        position -= 1
                    best[i, position] = d
                    index[i, position] = start + j
                    worst = best[i, k - 1]


@_insert.without_numba
def _insert_numpy(
    T: np.ndarray, terms: np.ndarray, factor: float, start: int, best: np.ndarray, index: np.ndarray
) -> None:
    values = np.hstack([best, terms + factor * T])
    columns = np.broadcast_to(np.arange(start, start + T.shape[1]), T.shape)
    order = np.argsort(values, axis=1, kind="stable")[:, : best.shape[1]]
    index[...] = np.take_along_axis(np.hstack([index, columns]), order, axis=1)
    best[...] = np.take_along_axis(values, order, axis=1)


@jit()
def _minimum(row: np.ndarray, terms: np.ndarray, factor: float) -> float:
    """Return the minimum of terms + factor * row; without branches, the compiler vectorises it."""
    minimum = np.inf
    for j in range(len(row)):
        d = terms[j] + factor * row[j]
        minimum = d if d < minimum else minimum
    return minimum
