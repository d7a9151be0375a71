"""In-place Cholesky factorisation of C = K + noise, and derivatives of K tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from ..._core import (
    ENTRY_WORK,
    MemoryLimit,
    NotPositiveDefiniteError,
    Points,
    check_threads,
    jit,
    length,
    run_in_threads,
    take,
)
from ..._core.linalg import lapack
from ...gram import DenseGram, gram
from ...kernels import Kernel, expects_precomputed_rows
from ...solvers.linear import InPlaceSymmetric, max_relative_residual

_TILE = 512  # rows and columns of a tile; large enough to make the overhead per tile negligible
_MAX_SINGLE_BLOCK_POINTS = _TILE  # for up to this many points, threads cost more than they save
_TILE_ARRAYS_PER_THREAD = 8  # number of tile-sized arrays that a pullback needs in each thread

# `weights(rows, cols)` returns a tile of a symmetric matrix W, on or above the diagonal.
TileWeights: TypeAlias = Callable[[slice, slice], np.ndarray]


class FactorizedCovariance:
    """Cholesky factorisation of C = K + diag(noise) = L L^T in one n x n array.

    Parameters
    ----------
    kernel : Kernel
        Its parameters must be numbers, not rules that depend on data, such as gamma="scale".
    X : points
    noise : float or ndarray of shape (n,)
        Added to the diagonal of K.
    max_memory : int, str or None
        The memory budget.
    single_block : bool
        Whether to compute K together with its derivatives, from the same distances.  This
        requires `fits_one_block`.  Otherwise, `derivatives` evaluates the kernel again.

    Raises
    ------
    NotPositiveDefiniteError
        If a pivot is not positive.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        noise: float | np.ndarray,
        max_memory: MemoryLimit = None,
        *,
        single_block: bool = False,
    ) -> None:
        self.kernel, self.X = kernel, X
        self._block = kernel.linearise(X) if single_block else None
        K = dense_matrix(kernel, X, max_memory, self._block)
        self._C = InPlaceSymmetric(K, noise)
        self.L, info = lapack.dpotrf(self._C.work, lower=1, clean=0, overwrite_a=1)
        if info != 0 or not np.isfinite(self.L[-1, -1]):
            reason = f"pivot {info} of {len(self.L)} is not positive" if info > 0 else "not finite"
            raise NotPositiveDefiniteError(f"K + noise is not positive definite: {reason}")

    def solve(self, Y: np.ndarray) -> np.ndarray:
        """Return C^-1 Y."""
        return np.asarray(lapack.dpotrs(self.L, Y, lower=1)[0])

    def residual(self, A: np.ndarray, Y: np.ndarray) -> float:
        """Return the largest relative residual |Y - C A| / |Y| of all columns.

        Call it before `lower`, which overwrites C.
        """
        return max_relative_residual(Y - self._C.times(A), Y)

    def logdet(self) -> float:
        """Return log det C."""
        return 2.0 * float(np.sum(np.log(self.L.diagonal())))

    def lower(self) -> np.ndarray:
        """Set the entries above the diagonal of L to 0, in place, and return L."""
        for start in range(0, len(self.L), _TILE):
            rows = slice(start, start + _TILE)
            self.L[rows, start + _TILE :] = 0.0
            diagonal_tile = self.L[rows, rows]
            diagonal_tile[np.triu_indices(len(diagonal_tile), 1)] = 0.0
        return self.L

    def derivatives(
        self, weights: TileWeights, A: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_ij W_ij dK_ij / d theta, and (dK / d theta) A if A is given.

        `weights(rows, cols)` returns a tile of the symmetric matrix W.
        """
        return derivatives(self.kernel, self.X, weights, A, self._block)

    def invert(self) -> np.ndarray:
        """Return C^-1, valid in its lower triangle only; this overwrites L."""
        inverse, _ = lapack.dpotri(self.L, lower=1, overwrite_c=1)
        del self.L, self._C
        return np.asarray(inverse)


def dense_matrix(
    kernel: Kernel, X: Points, max_memory: MemoryLimit, block: Any = None
) -> np.ndarray:
    """Return K as a new float64 array; `block` is ``kernel.linearise(X)`` if it is known."""
    if block is not None:
        return np.array(block.values, dtype=np.float64)
    if fits_one_block(kernel, X):
        return np.asarray(kernel(X), dtype=np.float64)
    K = gram(kernel, X, storage="dense", max_memory=max_memory)
    array = K.release() if isinstance(K, DenseGram) else K.to_array()
    return array.astype(np.float64, copy=False)


def fits_one_block(kernel: Kernel, X: Points) -> bool:
    """Whether K and its derivatives can be computed as a single block.

    This requires few points, and a kernel that can be evaluated on any subset of them.
    """
    return length(X) <= _MAX_SINGLE_BLOCK_POINTS and not expects_precomputed_rows(kernel)


def symmetric_tile(A: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
    """Return a tile on or above the diagonal of a symmetric matrix A.

    Only the lower triangle of A is valid, so the tile is read from A.T.  A comes from LAPACK in
    Fortran order, so the rows of A.T are contiguous.
    """
    tile = A.T[rows, cols]
    if rows == cols:
        tile = np.array(tile)
        _mirror(tile)
    return tile


@jit()
def _mirror(A: np.ndarray) -> None:
    """Copy the upper triangle of A to the lower one."""
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] = A[j, i]


@_mirror.without_numba
def _mirror_numpy(A: np.ndarray) -> None:
    for i in range(1, len(A)):
        A[i, :i] = A[:i, i]


def pullback_workspace(
    n: int, kernel: Kernel | None = None, *, n_threads: int | None = None
) -> int:
    """Return the memory that `derivatives` needs, in bytes.

    Each thread needs a few tiles.  A kernel whose derivatives cannot be computed by tiles needs
    the whole tensor dK / d theta, temporary arrays, and the whole weight matrix.
    """
    if kernel is not None and not _has_tiled_derivatives(kernel):
        return 8 * n * n * (2 + 3 * kernel.theta.size)
    n_running = min(check_threads(n_threads), -(-n // _TILE))
    return 8 * _TILE_ARRAYS_PER_THREAD * min(n, _TILE) ** 2 * n_running


def _has_tiled_derivatives(kernel: Kernel) -> bool:
    """Whether the derivatives of K can be computed tile by tile."""
    return kernel.domain.pullback_in_tiles and not expects_precomputed_rows(kernel)


def derivatives(
    kernel: Kernel,
    X: Points,
    weights: TileWeights,
    A: np.ndarray | None = None,
    block: Any = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_ij W_ij dk(x_i, x_j) / d theta for a symmetric W, and (dK / d theta) A.

    `weights(rows, cols)` returns a tile of W on or above the diagonal.  The whole W is formed only
    for kernels whose derivatives cannot be computed by tiles.

    The products with A have shape (p, n, q), with q = 0 if A is None.  Both results come from one
    pass over the tiles of K.  `block` is ``kernel.linearise(X)`` if the caller has computed it.
    """
    p, n, q = kernel._n_free_parameters, length(X), 0 if A is None else A.shape[1]
    if not p:
        return np.zeros(0), np.zeros((0, n, q))
    if block is None and fits_one_block(kernel, X):
        block = kernel.linearise(X)
    if block is not None:
        pulled = block.pullback(weights(slice(0, n), slice(0, n)))
        return pulled, np.zeros((p, n, 0)) if A is None else block.tangents(A)
    if not _has_tiled_derivatives(kernel):
        W = np.empty((n, n))
        for i in range(0, n, _TILE):
            for j in range(i, n, _TILE):
                rows, cols = slice(i, min(i + _TILE, n)), slice(j, min(j + _TILE, n))
                W[rows, cols] = weights(rows, cols)
                W[cols, rows] = W[rows, cols].T
        block = kernel.linearise(X)
        return block.pullback(W), np.zeros((p, n, 0)) if A is None else block.tangents(A)
    tile_slices = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    # One accumulator per row of tiles, so that the sums do not depend on the order of the threads.
    pulled, products = np.zeros((len(tile_slices), p)), np.zeros((len(tile_slices), p, n, q))

    def process_tile_row(r: int) -> Iterator[None]:
        rows, T = tile_slices[r], products[r]
        Xi = take(X, rows)
        for cols in tile_slices[r:]:
            yield
            W, is_diagonal_tile = weights(rows, cols), cols == rows
            # In a diagonal tile both arguments are the same observations, which the second
            # argument None indicates.  White is nonzero only for the same observations.
            block = kernel.linearise(Xi, None if is_diagonal_tile else take(X, cols))
            pulled[r] += block.pullback(W) if is_diagonal_tile else 2.0 * block.pullback(W)
            if A is not None:
                T[:, rows] += block.tangents(A[cols])
                if not is_diagonal_tile:
                    T[:, cols] += block.tangents(A[rows], transposed=True)

    run_in_threads(
        process_tile_row, range(len(tile_slices)), n_threads, work=ENTRY_WORK * p * n * n
    )
    return pulled.sum(axis=0), products.sum(axis=0)
