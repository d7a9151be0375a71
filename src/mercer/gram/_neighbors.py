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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import (
    Points,
    entry_point,
    ignore_overflow,
    jit,
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

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X, Z : points
        `Z=None` means Z = X; then a point is not a neighbour of itself.
    k : int
        Number of neighbours, at most the number of points z other than x.
    norms : array of shape (n_z,)
        The values k(z, z).
    own : array of shape (n_x,), optional
        The values k(x, x).  If None, k(z, z) - 2 k(x, z) is returned instead of the squared
        distance; the order of the neighbours is the same.
    n_threads : int, optional
        Number of threads; all processors by default.  The result does not depend on it.

    Returns
    -------
    squared : ndarray of shape (n_x, k)
        Squared distances in feature space, in ascending order.
    index : ndarray of shape (n_x, k)
        Indices of the neighbours in Z.  Ties are in the order of Z, except that points so far away
        that k(x, z) rounds to 0 are sorted by their distance in R^d.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import nearest_neighbors
    >>> from mercer.kernels import Linear
    >>> Z = np.array([[0.0], [1.0], [5.0]])
    >>> nearest_neighbors(Linear(), np.array([[4.0]]), Z, 2, Linear().diag(Z), np.array([16.0]))
    (array([[1., 9.]]), array([[2, 1]]))
    """
    norms = np.asarray(norms, dtype=np.float64)
    if (
        own is not None
        and isinstance(X, np.ndarray)
        and X.ndim == 2
        and X.shape[1] <= _TUNING.max_difference_features
    ):
        stable = as_distance_kernel(kernel)
        if stable is not kernel:
            kernel, norms = stable, np.asarray(stable.diag(X if Z is None else Z), dtype=np.float64)
            own = norms if Z is None else np.asarray(stable.diag(X), dtype=np.float64)
    P, Q = prepare_pair(kernel, X, Z)
    best, index = _scan(kernel, P, Q, k, norms, Z is None, n_threads)
    if not np.isfinite(best.sum() + (0.0 if own is None else own.sum())):
        raise not_finite_error(kernel)
    if own is None:
        return best, index
    squared = _squared_distances(best, norms[index], own[:, None])
    rows = _inaccurate_rows(kernel, X, Z, squared, index, norms, own)
    if not len(rows):
        return squared, index
    stable = as_distance_kernel(kernel)
    if stable is not kernel:
        P, Q = prepare_pair(stable, X, Z)
        norms = np.asarray(stable.diag(X if Z is None else Z), dtype=np.float64)
        own = np.asarray(norms if Z is None else stable.diag(X), dtype=np.float64)
        best, index[rows] = _scan(stable, P[rows], Q, k, norms, Z is None, n_threads)
        squared[rows] = _squared_distances(best, norms[index[rows]], own[rows, None])
    pairs = np.repeat(rows, k), index[rows].ravel()
    _warn_if_lost(kernel, X, Z, pairs, squared[rows].ravel(), norms, own)
    return squared, index


def _scan(
    kernel: Kernel,
    P: Prepared,
    Q: Prepared,
    k: int,
    norms: np.ndarray,
    exclude_self: bool,
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return k(z, z) - 2 k(x, z) for the k nearest z of each x, and their indices.

    If `exclude_self` is True, a point is not its own neighbour.
    """
    factor, radial = _decreasing(kernel)
    while radial is not None and kernel is not radial:
        kernel, P, Q = kernel.kernel, P.children[0], Q.children[0]  # type: ignore[attr-defined]
    best = np.full((len(P), k), np.inf)
    index = np.full((len(P), k), -1, dtype=np.intp)
    dtype = np.result_type(P.dtype, Q.dtype)
    columns = [(cols, Q[cols]) for cols in slices(len(Q), _TUNING.tile_columns)]
    sign, terms = (-2.0, norms) if radial is None else (1.0, np.zeros(len(Q)))

    def strip(rows: slice) -> Iterator[None]:
        Pi = P[rows]
        scratch = np.empty(len(Pi) * _TUNING.tile_columns, dtype=dtype)
        for cols, Qj in columns:
            yield
            T = scratch[: len(Pi) * len(Qj)].reshape(len(Pi), len(Qj))
            if radial is None:
                kernel._tile(Pi, Qj, T)
            else:
                radial._statistic(Pi, Qj, T, exact=False)
            if exclude_self:
                T[Pi.coincidences(Qj)] = sign * np.inf  # set the distance to infinity
            _insert(T, terms[cols], sign, cols.start, best[rows], index[rows])

    run_in_threads(
        strip,
        slices(len(P), _TUNING.tile_rows),
        n_threads,
        kernel._evaluation_work(len(P) * len(Q)),
    )
    if radial is not None and np.isfinite(best.sum()):
        best = norms[index] - 2.0 * factor * radial.profile(np.maximum(best, 0.0))
        # make the order ascending despite rounding errors
        np.maximum.accumulate(best, axis=1, out=best)
    return best, index


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

    Parameters
    ----------
    kernel, X, Z, norms, own, n_threads
        As in `nearest_neighbors`.
    radius : float
        Maximum distance d(x, z) in feature space.

    Returns
    -------
    ends : ndarray of shape (n_x + 1,)
        The neighbours of x_i are the entries ends[i] to ends[i + 1] - 1 of the other arrays.
    squared : ndarray
        Squared distances.
    index : ndarray
        Indices of the neighbours in Z, ascending for each x.

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
    counts, squared, index = _scan_within(
        kernel, *prepare_pair(kernel, X, Z), radius, norms, own, Z is None, n_threads
    )
    rows = _inaccurate_rows_within(kernel, X, Z, radius, counts, squared, index, norms, own)
    if len(rows):
        stable, i = as_distance_kernel(kernel), np.repeat(np.arange(len(counts)), counts)
        if stable is not kernel:
            P, Q = prepare_pair(stable, X, Z)
            norms = np.asarray(stable.diag(X if Z is None else Z), dtype=np.float64)
            own = np.asarray(norms if Z is None else stable.diag(X), dtype=np.float64)
            new_counts, new_squared, new_index = _scan_within(
                stable, P[rows], Q, radius, norms, own[rows], Z is None, n_threads
            )
            unchanged = np.isin(i, rows, invert=True)
            i = np.concatenate([i[unchanged], np.repeat(rows, new_counts)])
            order = np.argsort(i, kind="stable")
            squared = np.concatenate([squared[unchanged], new_squared])[order]
            index = np.concatenate([index[unchanged], new_index])[order]
            i, counts = i[order], np.bincount(i, minlength=len(counts))
        _warn_if_lost(kernel, X, Z, (i, index), squared, norms, own, radius)
    return np.concatenate([[0], np.cumsum(counts)]), squared, index


def _scan_within(
    kernel: Kernel,
    P: Prepared,
    Q: Prepared,
    radius: float,
    norms: np.ndarray,
    own: np.ndarray,
    exclude_self: bool,
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of neighbours of each x, and their squared distances and indices."""
    dtype = np.result_type(P.dtype, Q.dtype)
    columns = [(cols, Q[cols]) for cols in slices(len(Q), _TUNING.tile_columns)]
    strips = slices(len(P), _TUNING.tile_rows)
    results: list[Any] = [None] * len(strips)

    def strip(number: int) -> Iterator[None]:
        rows = strips[number]
        Pi, parts = P[rows], []
        scratch = np.empty(len(Pi) * _TUNING.tile_columns, dtype=dtype)
        for cols, Qj in columns:
            yield
            T = scratch[: len(Pi) * len(Qj)].reshape(len(Pi), len(Qj))
            kernel._tile(Pi, Qj, T)
            if not np.isfinite(T.sum()):
                raise not_finite_error(kernel)
            squared = _squared_distances(norms[cols] - 2.0 * T, norms[cols], own[rows, None])
            if exclude_self:
                squared[Pi.coincidences(Qj)] = np.inf
            i, j = np.nonzero(squared <= radius**2)
            parts.append((i, squared[i, j], j + cols.start))
        i, squared, j = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(i, kind="stable")
        results[number] = np.bincount(i, minlength=len(Pi)), squared[order], j[order]

    run_in_threads(strip, range(len(strips)), n_threads, kernel._evaluation_work(len(P) * len(Q)))
    counts, squared, index = (np.concatenate(each) for each in zip(*results, strict=True))
    return counts, squared, index


# ---------------------------------------------------------------------- rounding


def _inaccurate_rows(
    kernel: Kernel,
    X: Points,
    Z: Points,
    squared: np.ndarray,
    index: np.ndarray,
    norms: np.ndarray,
    own: np.ndarray,
) -> np.ndarray:
    """Return the rows with an inaccurate squared distance between different points."""
    if kernel.domain.discrete or _decreasing(kernel)[1] is not None:
        return np.empty(0, dtype=np.intp)  # k is exact, or points were sorted by distances in R^d
    i, position = np.nonzero(
        squared * _TUNING.max_relative_error < _rounding_of(norms[index], own[:, None])
    )
    return np.unique(i[points_differ(X, X if Z is None else Z, i, index[i, position])])


def _inaccurate_rows_within(
    kernel: Kernel,
    X: Points,
    Z: Points,
    radius: float,
    counts: np.ndarray,
    squared: np.ndarray,
    index: np.ndarray,
    norms: np.ndarray,
    own: np.ndarray,
) -> np.ndarray:
    """Return the rows in which a squared distance or its comparison with `radius` is inaccurate."""
    if kernel.domain.discrete or not len(norms):
        return np.empty(0, dtype=np.intp)
    i = np.repeat(np.arange(len(counts)), counts)
    inaccurate = np.flatnonzero(
        squared * _TUNING.max_relative_error < _rounding_of(norms[index], own[i])
    )
    inaccurate = i[inaccurate][
        points_differ(X, X if Z is None else Z, i[inaccurate], index[inaccurate])
    ]
    error = _rounding_of(np.abs(norms).max(initial=0.0), own)
    boundary = (
        np.flatnonzero(radius**2 * _TUNING.max_relative_error < error)
        if radius > 0.0
        else inaccurate
    )
    return np.union1d(inaccurate, boundary)


def _warn_if_lost(
    kernel: Kernel,
    X: Points,
    Z: Points,
    pairs: tuple[np.ndarray, np.ndarray],
    squared: np.ndarray,
    norms: np.ndarray,
    own: np.ndarray,
    radius: float = np.inf,
) -> None:
    """Warn if the neighbours of many points are decided by rounding errors."""
    i, j = pairs
    Z = X if Z is None else Z
    error = _rounding_of(norms[j], own[i])
    lost = np.flatnonzero(np.minimum(squared, radius**2) * MAX_CANCELLATION_ERROR < error)
    lost = lost[points_differ(X, Z, i[lost], j[lost])]
    count = len(np.unique(i[lost]))
    if not count > _TUNING.warn_fraction * len(own) or not is_cancelled(
        kernel, X, Z, i[lost], j[lost]
    ):
        return
    what = f"the neighbours of {count} of {len(own)} points are determined by rounding errors"
    size = float(np.median(squared[lost]))
    warn_about_cancellation(kernel, what, size, float(np.median(error[lost])))


def _squared_distances(partial: np.ndarray, norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Add k(x, x) to k(z, z) - 2 k(x, z); results within the rounding error are set to 0."""
    squared = partial + own
    squared[squared <= _rounding_of(norms, own)] = 0.0
    return squared


def _rounding_of(norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return a bound on the rounding error of k(z, z) - 2 k(x, z) + k(x, x)."""
    return np.asarray(ROUNDING_UNITS * np.finfo(np.float64).eps * (np.abs(norms) + np.abs(own)))


@jit()
def _insert(T: Any, terms: Any, factor: float, start: int, best: Any, index: Any) -> None:
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


@jit()
def _minimum(row: Any, terms: Any, factor: float) -> float:
    """Return the minimum of terms + factor * row; without branches, the compiler vectorises it."""
    minimum = np.inf
    for j in range(len(row)):
        d = terms[j] + factor * row[j]
        minimum = d if d < minimum else minimum
    return minimum
