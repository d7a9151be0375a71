"""Nearest points in feature space: d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z), tile by tile.

k(x, x) is the same for all z and is left for the end.  Of each tile only what is nearer than the
k-th nearest so far is looked at closer, so that a pass over a tile is little more than reading it.
Where k falls with the distance in R^d, that says who is nearest, and k is evaluated for them alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._errors import not_finite
from .._runtime import entry_point, jit, quiet, run, slices
from ..kernels import Kernel, Radial, pair

__all__ = ["nearest", "within"]

_ROWS, _COLS = 384, 384  # of a tile
_AHEAD = 64  # points of a row that are looked at together
_ROUNDING = 32  # units of it: a squared distance that is smaller, relative to its terms, is 0


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
    P, Q = pair(kernel, X, Z)
    norms = np.asarray(norms, dtype=np.float64)
    best = np.full((len(P), k), np.inf)
    index = np.full((len(P), k), -1, dtype=np.intp)
    dtype = np.result_type(P.dtype, Q.dtype)
    columns = [(cols, Q[cols]) for cols in slices(len(Q), _COLS)]
    falling = kernel if isinstance(kernel, Radial) and kernel.falls else None
    factor, terms = (-2.0, norms) if falling is None else (1.0, np.zeros(len(Q)))

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
            if Z is None:
                T[Pi.coincidences(Qj)] = factor * np.inf  # infinitely far
            _insert(T, terms[cols], factor, cols.start, best[rows], index[rows])

    run(strip, slices(len(P), _ROWS), n_threads, kernel._evaluation_work(len(P) * len(Q)))
    if not np.isfinite(best.sum() + (0.0 if own is None else own.sum())):
        raise not_finite(kernel)
    if falling is not None:
        best = norms[index] - 2.0 * falling.profile(np.maximum(best, 0.0))
        np.maximum.accumulate(best, axis=1, out=best)  # ascending, but for rounding
    return (best if own is None else _finished(best, norms[index], own[:, None])), index


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
    P, Q = pair(kernel, X, Z)
    norms, own = np.asarray(norms, dtype=np.float64), np.asarray(own, dtype=np.float64)
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
            if Z is None:
                squared[Pi.coincidences(Qj)] = np.inf
            i, j = np.nonzero(squared <= radius**2)
            parts.append((i, squared[i, j], j + cols.start))
        i, squared, j = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(i, kind="stable")
        found[number] = np.bincount(i, minlength=len(Pi)), squared[order], j[order]

    run(strip, range(len(strips)), n_threads, kernel._evaluation_work(len(P) * len(Q)))
    counts, squared, places = (np.concatenate(each) for each in zip(*found, strict=True))
    return np.concatenate([[0], np.cumsum(counts)]), squared, places


def _finished(partial: np.ndarray, norms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the squared distances with k(x, x) added; 0 where rounding leaves nothing of them."""
    squared = partial + own
    squared[squared <= _ROUNDING * np.finfo(np.float64).eps * (np.abs(norms) + np.abs(own))] = 0.0
    return squared


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
