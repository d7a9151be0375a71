"""C = K + noise, factorised in place: what every exact objective needs of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._errors import NotPositiveDefiniteError
from .._points import length, take
from .._runtime import check_threads, run
from ..gram import DenseGram, gram
from ..kernels import Kernel, reads_all
from ..solvers.linear import Triangle, relative

__all__ = [
    "System",
    "dense_matrix",
    "lower_tile",
    "pullback_workspace",
    "symmetric_pullback",
    "tangents",
]

_TILE = 512  # rows and columns of a tile of a pullback, so large that the cost per tile is small
_SMALL = _TILE  # points that are not worth the start of threads
_ARRAYS = 8  # arrays of the size of a tile that a pullback holds in each thread


class System:
    """C = K + diag(noise) = L L^T in one n x n array, and what follows from it.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X : points
    noise : float or ndarray of shape (n,)
    max_memory : int, str or None

    Raises
    ------
    NotPositiveDefiniteError
        If a pivot is not positive.
    """

    def __init__(self, kernel: Kernel, X: Any, noise: Any, max_memory: Any = None) -> None:
        self.kernel = kernel
        self._C = Triangle(dense_matrix(kernel, X, max_memory), noise)
        self.L, info = lapack.dpotrf(self._C.work, lower=1, clean=0, overwrite_a=1)
        if info != 0 or not np.isfinite(self.L[-1, -1]):
            where = f"pivot {info} of {len(self.L)} is not positive" if info > 0 else "not finite"
            raise NotPositiveDefiniteError(f"K + noise is not positive definite: {where}")

    def solve(self, Y: np.ndarray) -> np.ndarray:
        """Return C^-1 Y."""
        return np.asarray(lapack.dpotrs(self.L, Y, lower=1)[0])

    def halve(self, Y: np.ndarray) -> np.ndarray:
        """Return L^-1 Y."""
        return np.asarray(lapack.dtrtrs(self.L, Y, lower=1)[0])

    def residual(self, A: np.ndarray, Y: np.ndarray) -> float:
        """Return the largest |Y - C A| / |Y| of a column, with C itself; before `lower`."""
        return relative(Y - self._C.times(A), Y)

    def logdet(self) -> float:
        """Return log det C."""
        return 2.0 * float(np.sum(np.log(self.L.diagonal())))

    def lower(self) -> np.ndarray:
        """Return L with zeros above its diagonal, in the array itself."""
        for start in range(0, len(self.L), _TILE):
            rows = slice(start, start + _TILE)
            self.L[rows, start + _TILE :] = 0.0
            square = self.L[rows, rows]
            square[np.triu_indices(len(square), 1)] = 0.0
        return self.L

    def invert(self) -> np.ndarray:
        """Return C^-1, of which the lower triangle is right, in the array of L, which is gone."""
        inverse, _ = lapack.dpotri(self.L, lower=1, overwrite_c=1)
        del self.L, self._C
        return np.asarray(inverse)


def dense_matrix(kernel: Kernel, X: Any, max_memory: Any) -> np.ndarray:
    """Return K as an array of its own."""
    if length(X) <= _SMALL and not reads_all(kernel):
        return np.asarray(kernel(X), dtype=np.float64)
    K = gram(kernel, X, storage="dense", max_memory=max_memory)
    array = K.release() if isinstance(K, DenseGram) else K.to_array()
    return array.astype(np.float64, copy=False)


def lower_tile(A: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
    """Return a tile, on or below the diagonal, of a symmetric matrix known by its lower half."""
    if rows != cols:
        return A[rows, cols]
    lower = np.tril(A[rows, rows])
    return lower + np.tril(lower, -1).T


def pullback_workspace(
    n: int, kernel: Kernel | None = None, *, n_threads: int | None = None
) -> int:
    """Return the bytes that `symmetric_pullback` takes: a few tiles in each thread.

    For a kernel whose derivatives do not come in tiles, the tensor, its temporaries, and W.
    """
    if kernel is not None and not _in_tiles(kernel):
        return 8 * n * n * (2 + 3 * kernel.theta.size)
    return 8 * _ARRAYS * min(n, _TILE) ** 2 * min(check_threads(n_threads), -(-n // _TILE))


def _in_tiles(kernel: Kernel) -> bool:
    return kernel.pullback_in_tiles and not reads_all(kernel)


def symmetric_pullback(
    kernel: Kernel, X: Any, weights: Any, n_threads: int | None = None
) -> np.ndarray:
    """Return sum_ij W_ij dk(x_i, x_j) / d theta for a symmetric W, from half of its tiles.

    `weights(rows, cols)` returns the tile of W, which is on or below the diagonal.  Nothing of
    the size of W is formed here, but for kernels whose derivatives do not come in tiles.
    """
    p = kernel.theta.size
    n = length(X)
    if not p:
        return np.zeros(0)
    if not _in_tiles(kernel):
        W = np.empty((n, n))
        for i in range(0, n, _TILE):
            for j in range(0, i + 1, _TILE):
                rows, cols = slice(i, min(i + _TILE, n)), slice(j, min(j + _TILE, n))
                W[rows, cols] = weights(rows, cols)
                W[cols, rows] = W[rows, cols].T
        return kernel.pullback(X, None, W)
    starts = range(0, n, _TILE)
    parts = np.zeros((len(starts), p))

    def row(r: int) -> Iterator[None]:
        rows = slice(starts[r], min(starts[r] + _TILE, n))
        Xi = take(X, rows)
        for j in starts[: r + 1]:
            yield
            cols = slice(j, min(j + _TILE, n))
            W = weights(rows, cols)
            if j == starts[r]:  # the same observations on both sides, which White must see
                parts[r] += kernel.pullback(Xi, None, W)
            else:
                parts[r] += 2.0 * kernel.pullback(Xi, take(X, cols), W)

    if n <= _SMALL:
        for _ in row(0):
            pass
    else:
        run(row, reversed(range(len(starts))), n_threads)
    return parts.sum(axis=0)


def tangents(kernel: Kernel, X: Any, A: np.ndarray) -> np.ndarray:
    """Return dK/d theta A, shape (p, n, q), tile by tile."""
    n = length(X)
    parts = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    T = np.zeros((kernel.theta.size, *A.shape))

    def row(rows: slice) -> Iterator[None]:
        Xi = take(X, rows)
        for cols in parts:
            yield
            T[:, rows] += kernel.pushforward(Xi, None if rows == cols else take(X, cols), A[cols])

    run(row, parts, 1 if n <= _SMALL else None)
    return T
