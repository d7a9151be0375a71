"""Nearest points in feature space: d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z), tile by tile.

k(x, x) is the same for all z and is added at the end.  Only entries of a tile that are nearer than
the k-th nearest so far are inserted, so that a pass over a tile costs little more than reading it.
Where k decreases with the distance in R^d, points are ordered by that distance, and k is evaluated
only for the nearest.

The three terms cancel where d^2 is small compared with k(x, x).  Rows in which that happens are
searched again with a kernel that has the same distances and computes them from differences of
points, if there is one (`Kernel._by_differences`).  Otherwise a warning reports the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._errors import not_finite
from .._runtime import entry_point, jit, quiet, run, slices
from ..kernels import Kernel, Prepared, Radial, Scale, pair
from ._cancellation import LOST, ROUNDING, differ, is_lost, warn_of_cancellation

__all__ = ["nearest", "within"]

_ROWS, _COLS = 384, 384  # of a tile
_AHEAD = 64  # points of a row that are looked at together
_FEW_COLUMNS = 2  # up to which differences are as fast as inner products
_EXACT = 1e-6  # relative error of a squared distance from which it is computed by differences
_MANY = 0.01  # fraction of points whose neighbours are lost from which on a warning is given


@entry_point
@quiet
def nearest(
    kernel: Kernel,
    X: Any,
    Z: Any,
    k: int,
    norms: np.ndarray,
    own: np.ndarray | None = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared distances of the k nearest z of each x, ascending, and their places.

    Of equals the first is nearer; points so far away that k is 0 differ by their distance in R^d.

    Parameters
    ----------
    kernel : Kernel
    X, Z : points
        `Z=None` means X: then a point is no neighbour of itself.
    k : int
        At most the number of points z, other than x itself.
    norms : array
        k(z, z).
    own : array, optional
        k(x, x); without it, the distances are less this, and only their order is known.
    n_threads : int, optional
        All processors by default.  The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import nearest
    >>> from mercer.kernels import Linear
    >>> Z = np.array([[0.0], [1.0], [5.0]])
    >>> nearest(Linear(), np.array([[4.0]]), Z, 2, Linear().diag(Z), np.array([16.0]))
    (array([[1., 9.]]), array([[2, 1]]))
    """
    norms = np.asarray(norms, dtype=np.float64)
    if own is not None and isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] <= _FEW_COLUMNS:
        stable = kernel._by_differences()
        if stable is not kernel:
            kernel, norms = stable, np.asarray(stable.diag(X if Z is None else Z), dtype=np.float64)
            own = norms if Z is None else np.asarray(stable.diag(X), dtype=np.float64)
    P, Q = pair(kernel, X, Z)
    best, index = _scan(kernel, P, Q, k, norms, Z is None, n_threads)
    if not np.isfinite(best.sum() + (0.0 if own is None else own.sum())):
        raise not_finite(kernel)
    if own is None:
        return best, index
    squared = _finished(best, norms[index], own[:, None])
    rows = _doubtful(kernel, X, Z, squared, index, norms, own)
    if not len(rows):
        return squared, index
    stable = kernel._by_differences()
    if stable is not kernel:
        P, Q = pair(stable, X, Z)
        norms = np.asarray(stable.diag(X if Z is None else Z), dtype=np.float64)
        own = np.asarray(norms if Z is None else stable.diag(X), dtype=np.float64)
        best, index[rows] = _scan(stable, P[rows], Q, k, norms, Z is None, n_threads)
        squared[rows] = _finished(best, norms[index[rows]], own[rows, None])
    pairs = np.repeat(rows, k), index[rows].ravel()
    _warn_if_lost(kernel, X, Z, pairs, squared[rows].ravel(), norms, own)
    return squared, index


def _scan(
    kernel: Kernel,
    P: Prepared,
    Q: Prepared,
    k: int,
    norms: np.ndarray,
    others: bool,
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return k(z, z) - 2 k(x, z) of the k nearest z of each x, and their indices.

    With `others`, a point is not its own neighbour.
    """
    factor, falling = _decreasing(kernel)
    while falling is not None and kernel is not falling:
        kernel, P, Q = kernel.kernel, P.children[0], Q.children[0]  # type: ignore[attr-defined]
    best = np.full((len(P), k), np.inf)
    index = np.full((len(P), k), -1, dtype=np.intp)
    dtype = np.result_type(P.dtype, Q.dtype)
    columns = [(cols, Q[cols]) for cols in slices(len(Q), _COLS)]
    sign, terms = (-2.0, norms) if falling is None else (1.0, np.zeros(len(Q)))

    def strip(rows: slice) -> Iterator[None]:
        Pi = P[rows]
        scratch = np.empty(len(Pi) * _COLS, dtype=dtype)
        for cols, Qj in columns:
            yield
            T = scratch[: len(Pi) * len(Qj)].reshape(len(Pi), len(Qj))
            if falling is None:
                kernel._tile(Pi, Qj, T)
            else:
                falling._statistic(Pi, Qj, T, exact=False)
            if others:
                T[Pi.coincidences(Qj)] = sign * np.inf  # infinitely far
            _insert(T, terms[cols], sign, cols.start, best[rows], index[rows])

    run(strip, slices(len(P), _ROWS), n_threads, kernel._evaluation_work(len(P) * len(Q)))
    if falling is not None and np.isfinite(best.sum()):
        best = norms[index] - 2.0 * factor * falling.profile(np.maximum(best, 0.0))
        np.maximum.accumulate(best, axis=1, out=best)  # ascending, but for rounding
    return best, index


def _decreasing(kernel: Kernel) -> tuple[float, Radial | None]:
    """Return the factor and the radial kernel that decreases with the distance, if k is both."""
    factor = 1.0
    while isinstance(kernel, Scale) and kernel.factor > 0.0:
        factor, kernel = factor * kernel.factor, kernel.kernel
    return (factor, kernel) if isinstance(kernel, Radial) and kernel.is_decreasing else (1.0, None)


@entry_point
@quiet
def within(
    kernel: Kernel,
    X: Any,
    Z: Any,
    radius: float,
    norms: np.ndarray,
    own: np.ndarray,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the z with d(x, z) <= radius: ends, squared distances, places, in the order of Z.

    Those of x_i are from ends[i] to ends[i + 1], as in a CSR matrix.  Parameters as in `nearest`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import within
    >>> from mercer.kernels import Linear
    >>> Z = np.array([[0.0], [1.0], [5.0]])
    >>> within(Linear(), np.array([[4.0], [9.0]]), Z, 3.0, Linear().diag(Z), np.array([16.0, 81.0]))
    (array([0, 2, 2]), array([9., 1.]), array([1, 2]))
    """
    norms, own = np.asarray(norms, dtype=np.float64), np.asarray(own, dtype=np.float64)
    counts, squared, places = _scan_within(
        kernel, *pair(kernel, X, Z), radius, norms, own, Z is None, n_threads
    )
    rows = _doubtful_within(kernel, X, Z, radius, counts, squared, places, norms, own)
    if len(rows):
        stable, i = kernel._by_differences(), np.repeat(np.arange(len(counts)), counts)
        if stable is not kernel:
            P, Q = pair(stable, X, Z)
            norms = np.asarray(stable.diag(X if Z is None else Z), dtype=np.float64)
            own = np.asarray(norms if Z is None else stable.diag(X), dtype=np.float64)
            new, fresh, there = _scan_within(
                stable, P[rows], Q, radius, norms, own[rows], Z is None, n_threads
            )
            kept = np.isin(i, rows, invert=True)
            i = np.concatenate([i[kept], np.repeat(rows, new)])
            order = np.argsort(i, kind="stable")
            squared = np.concatenate([squared[kept], fresh])[order]
            places = np.concatenate([places[kept], there])[order]
            i, counts = i[order], np.bincount(i, minlength=len(counts))
        _warn_if_lost(kernel, X, Z, (i, places), squared, norms, own, radius)
    return np.concatenate([[0], np.cumsum(counts)]), squared, places


def _scan_within(
    kernel: Kernel,
    P: Prepared,
    Q: Prepared,
    radius: float,
    norms: np.ndarray,
    own: np.ndarray,
    others: bool,
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each x the number of z within the radius, their squared distances and indices."""
    dtype = np.result_type(P.dtype, Q.dtype)
    columns = [(cols, Q[cols]) for cols in slices(len(Q), _COLS)]
    strips = slices(len(P), _ROWS)
    found: list[Any] = [None] * len(strips)

    def strip(number: int) -> Iterator[None]:
        rows = strips[number]
        Pi, parts = P[rows], []
        scratch = np.empty(len(Pi) * _COLS, dtype=dtype)
        for cols, Qj in columns:
            yield
            T = scratch[: len(Pi) * len(Qj)].reshape(len(Pi), len(Qj))
            kernel._tile(Pi, Qj, T)
            if not np.isfinite(T.sum()):
                raise not_finite(kernel)
            squared = _finished(norms[cols] - 2.0 * T, norms[cols], own[rows, None])
            if others:
                squared[Pi.coincidences(Qj)] = np.inf
            i, j = np.nonzero(squared <= radius**2)
            parts.append((i, squared[i, j], j + cols.start))
        i, squared, j = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(i, kind="stable")
        found[number] = np.bincount(i, minlength=len(Pi)), squared[order], j[order]

    run(strip, range(len(strips)), n_threads, kernel._evaluation_work(len(P) * len(Q)))
    counts, squared, places = (np.concatenate(each) for each in zip(*found, strict=True))
    return counts, squared, places


# ---------------------------------------------------------------------- rounding


def _doubtful(
    kernel: Kernel,
    X: Any,
    Z: Any,
    squared: np.ndarray,
    index: np.ndarray,
    norms: np.ndarray,
    own: np.ndarray,
) -> np.ndarray:
    """Return the rows with a distance that has lost digits; one of equal points has not."""
    if kernel.discrete or _decreasing(kernel)[1] is not None:
        return np.empty(0, dtype=np.intp)  # ordered by integers, or by the distance in R^d
    i, place = np.nonzero(squared * _EXACT < _rounding_of(norms[index], own[:, None]))
    return np.unique(i[differ(X, X if Z is None else Z, i, index[i, place])])


def _doubtful_within(
    kernel: Kernel,
    X: Any,
    Z: Any,
    radius: float,
    counts: np.ndarray,
    squared: np.ndarray,
    places: np.ndarray,
    norms: np.ndarray,
    own: np.ndarray,
) -> np.ndarray:
    """Return the rows with such a distance, or with a radius that is lost to rounding."""
    if kernel.discrete or not len(norms):
        return np.empty(0, dtype=np.intp)
    i = np.repeat(np.arange(len(counts)), counts)
    some = np.flatnonzero(squared * _EXACT < _rounding_of(norms[places], own[i]))
    some = i[some][differ(X, X if Z is None else Z, i[some], places[some])]
    error = _rounding_of(np.abs(norms).max(initial=0.0), own)
    boundary = np.flatnonzero(radius**2 * _EXACT < error) if radius > 0.0 else some
    return np.union1d(some, boundary)


def _warn_if_lost(
    kernel: Kernel,
    X: Any,
    Z: Any,
    pairs: tuple[np.ndarray, np.ndarray],
    squared: np.ndarray,
    norms: np.ndarray,
    own: np.ndarray,
    radius: float = np.inf,
) -> None:
    """Warn if the neighbours of many points are decided by rounding."""
    i, j = pairs
    Z = X if Z is None else Z
    error = _rounding_of(norms[j], own[i])
    lost = np.flatnonzero(np.minimum(squared, radius**2) * LOST < error)
    lost = lost[differ(X, Z, i[lost], j[lost])]
    count = len(np.unique(i[lost]))
    if not count > _MANY * len(own) or not is_lost(kernel, X, Z, i[lost], j[lost]):
        return
    what = f"the neighbours of {count} of {len(own)} points are decided by rounding"
    size = float(np.median(squared[lost]))
    warn_of_cancellation(kernel, what, size, float(np.median(error[lost])))


def _finished(partial: np.ndarray, norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the squared distances with k(x, x) added; 0 where rounding leaves nothing of them."""
    squared = partial + own
    squared[squared <= _rounding_of(norms, own)] = 0.0
    return squared


def _rounding_of(norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return a bound of the rounding error of k(z, z) - 2 k(x, z) + k(x, x)."""
    return np.asarray(ROUNDING * np.finfo(np.float64).eps * (np.abs(norms) + np.abs(own)))


@jit()
def _insert(T: Any, terms: Any, factor: float, start: int, best: Any, index: Any) -> None:
    """Bring points of a tile into the lists of the nearest: ascending, and of equals the first.

    How near they are is terms + factor * T: the less, the nearer.
    """
    k, m = best.shape[1], T.shape[1]
    for i in range(T.shape[0]):
        row, worst = T[i], best[i, k - 1]
        for first in range(0, m, _AHEAD):
            last = min(first + _AHEAD, m)
            if not _least(row[first:last], terms[first:last], factor) < worst:
                continue
            for j in range(first, last):
                d = terms[j] + factor * row[j]
                if d < worst:
                    place = k - 1
                    while place > 0 and best[i, place - 1] > d:
                        best[i, place] = best[i, place - 1]
                        index[i, place] = index[i, place - 1]
                        place -= 1
                    best[i, place] = d
                    index[i, place] = start + j
                    worst = best[i, k - 1]


@jit()
def _least(row: Any, terms: Any, factor: float) -> float:
    """Return the least terms + factor * row: without a branch, so that it is done in vectors."""
    least = np.inf
    for j in range(len(row)):
        d = terms[j] + factor * row[j]
        least = d if d < least else least
    return least
