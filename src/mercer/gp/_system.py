"""C = K + noise, factorised in place: what every exact objective needs of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._points import length, take
from .._runtime import ENTRY_WORK, check_threads, jit, run
from .._runtime.linalg import lapack
from ..gram import DenseGram, gram
from ..kernels import Kernel, reads_all
from ..solvers.linear import Triangle, relative

__all__ = [
    "System",
    "dense_matrix",
    "fits_at_once",
    "pullback_workspace",
    "symmetric_pullback",
    "symmetric_tile",
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
    at_once : bool
        Whether K is made together with its `derivatives`, from the same distances, which takes
        `fits_at_once`; otherwise these are made when they are asked for.

    Raises
    ------
    NotPositiveDefiniteError
        If a pivot is not positive.
    """

    def __init__(
        self, kernel: Kernel, X: Any, noise: Any, max_memory: Any = None, *, at_once: bool = False
    ) -> None:
        self.kernel, self.X = kernel, X
        self._block: Any = None
        if at_once:
            self._block = kernel.linearise(X)
            K = np.array(self._block.values, dtype=np.float64)
        else:
            K = dense_matrix(kernel, X, max_memory)
        self._C = Triangle(K, noise)
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

    def derivatives(
        self, weights: Any, A: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_ij W_ij dK_ij / d theta, and dK / d theta A if A is given."""
        return derivatives(self.kernel, self.X, weights, A, block=self._block)

    def invert(self) -> np.ndarray:
        """Return C^-1, of which the lower triangle is right, in the array of L, which is gone."""
        inverse, _ = lapack.dpotri(self.L, lower=1, overwrite_c=1)
        del self.L, self._C
        return np.asarray(inverse)


def dense_matrix(kernel: Kernel, X: Any, max_memory: Any) -> np.ndarray:
    """Return K as an array of its own."""
    if fits_at_once(kernel, X):
        return np.asarray(kernel(X), dtype=np.float64)
    K = gram(kernel, X, storage="dense", max_memory=max_memory)
    array = K.release() if isinstance(K, DenseGram) else K.to_array()
    return array.astype(np.float64, copy=False)


def fits_at_once(kernel: Kernel, X: Any) -> bool:
    """Tell whether K and its derivatives are one block: of few points, and of any of them."""
    return length(X) <= _SMALL and not reads_all(kernel)


def symmetric_tile(A: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
    """Return a tile, on or above the diagonal, of a symmetric matrix known by its lower half.

    What LAPACK leaves is stored by columns, so that these are rows.
    """
    tile = A.T[rows, cols]
    if rows == cols:
        tile = np.array(tile)
        _mirror(tile)
    return tile


@jit()
def _mirror(A: Any) -> None:
    """Copy the upper triangle of A to the lower one."""
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] = A[j, i]


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
    kernel: Kernel, X: Any, weights: Any, n_threads: int | None = None, *, block: Any = None
) -> np.ndarray:
    """Return sum_ij W_ij dk(x_i, x_j) / d theta for a symmetric W, from half of its tiles.

    `weights(rows, cols)` returns the tile of W, which is on or above the diagonal.  Nothing of
    the size of W is formed here, but for kernels whose derivatives do not come in tiles.
    """
    return derivatives(kernel, X, weights, None, n_threads, block)[0]


def derivatives(
    kernel: Kernel,
    X: Any,
    weights: Any,
    A: np.ndarray | None,
    n_threads: int | None = None,
    block: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `symmetric_pullback` does, and dK / d theta A, shape (p, n, q), if A is given.

    Both in one pass over the tiles of K, in which each is evaluated once.  `block` is
    ``kernel.linearise(X)`` if that is known.
    """
    p, n, q = kernel._freedom, length(X), 0 if A is None else A.shape[1]
    if not p:
        return np.zeros(0), np.zeros((0, n, q))
    if block is None and fits_at_once(kernel, X):
        block = kernel.linearise(X)
    if block is not None:
        pulled = block.pullback(weights(slice(0, n), slice(0, n)))
        return pulled, np.zeros((p, n, 0)) if A is None else block.tangents(A)
    if not _in_tiles(kernel):
        W = np.empty((n, n))
        for i in range(0, n, _TILE):
            for j in range(i, n, _TILE):
                rows, cols = slice(i, min(i + _TILE, n)), slice(j, min(j + _TILE, n))
                W[rows, cols] = weights(rows, cols)
                W[cols, rows] = W[rows, cols].T
        block = kernel.linearise(X)
        return block.pullback(W), np.zeros((p, n, 0)) if A is None else block.tangents(A)
    parts = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    # each row of tiles by itself, so that sums do not depend on which thread was first
    pulled, moved = np.zeros((len(parts), p)), np.zeros((len(parts), p, n, q))

    def row(r: int) -> Iterator[None]:
        rows, T = parts[r], moved[r]
        Xi = take(X, rows)
        for cols in parts[r:]:
            yield
            W, same = weights(rows, cols), cols == rows
            # the same observations on both sides are one collection, as White must see
            block = kernel.linearise(Xi, None if same else take(X, cols))
            pulled[r] += block.pullback(W) if same else 2.0 * block.pullback(W)
            if A is not None:
                T[:, rows] += block.tangents(A[cols])
                if not same:
                    T[:, cols] += block.tangents(A[rows], transposed=True)

    run(row, range(len(parts)), n_threads, work=ENTRY_WORK * p * n * n)
    return pulled.sum(axis=0), moved.sum(axis=0)
