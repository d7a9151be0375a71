"""Kernel matrix that is not stored: every product evaluates it again, tile by tile.

For the product Y = K V, the tiles T_ij = k(X_i, Z_j) of K are evaluated in a buffer that fits the
CPU cache, and Y_i += T_ij V_j is added.

For K = k(X, X) only the tiles on and above the diagonal are evaluated, and each is used twice, also
for Y_j += T_ij^T V_i.  The columns of tiles are split into groups, whose number depends only on the
shapes.  Each group adds to a separate buffer, and the buffers are summed, both in a fixed order.
Therefore the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from .._core import (
    MemoryBudgetError,
    MemoryLimit,
    Points,
    budget_in_bytes,
    entry_point,
    format_bytes,
    map_in_threads,
    one_blas_thread,
    run_in_threads,
    slices,
)
from ..kernels import Kernel, Prepared, float32_error_bound, prepare_pair
from ._operator import GramOperator, gram_shape
from ._tile_products import (
    is_faster_than_blas,
    pad_columns,
    tile_product,
    tile_products,
    weighted_squares,
)

# Shape of a tile: about 1 MiB in float64, which fits the second-level CPU cache.  With a power of
# two, the entries of a column would compete for the same cache lines: with 512 columns, the matrix
# product takes a quarter longer.  TILE_COLUMNS must be a multiple of _TILE_ROWS, so that each tile
# is either inside or outside the squares on the diagonal.
_TILE_ROWS, TILE_COLUMNS = 384, 384


@dataclass(frozen=True)
class _TiledTuning:
    """Task sizes and limits of products with a tiled matrix."""

    # Number of rows of K that one task of a rectangular product processes.
    strip_rows: int = 1920
    # The same for products with only a few rows of K; it is small, so that all threads have work.
    short_strip_rows: int = 64
    # Maximum number of groups of columns, and memory limit in bytes of all their buffers.
    buffer_bytes: int = 10 * 2**20
    max_groups: int = 16
    # float32 is used only if the relative error of an entry of K is below this value.
    max_float32_error: float = 1e-2
    # Maximum fraction of the memory budget for a copy of the points in float32.
    max_float32_fraction: float = 0.05


_TUNING = _TiledTuning()


@entry_point
class TiledGram(GramOperator):
    """Kernel matrix that is evaluated in tiles for every product, and needs O(n d) memory.

    Use it if K does not fit the memory, or if only a few products are needed.  Products with
    several columns cost little more than one, because evaluating the kernel dominates; combine
    right-hand sides.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n points of the rows.  They may have been prepared by the kernel.
    Z : points, default None
        The m points of the columns.  None means Z = X; then only half of the tiles are evaluated.
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.
    max_memory : int, str or None, default None
        Memory budget for the result of `to_array` and the buffers of products, in the format of
        `gram`.

    See Also
    --------
    DenseGram : Store K, which makes products faster.
    DistributedGram : Compute products on a Dask cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import TiledGram
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> K = TiledGram(RBF(), X)
    >>> (K @ np.ones(1000)).shape
    (1000,)
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        Z: Points = None,
        *,
        n_threads: int | None = None,
        max_memory: MemoryLimit = None,
    ) -> None:
        if isinstance(X, Prepared):
            self._P, self._Q = X, X if Z is None else Z
        else:
            self._P, self._Q = prepare_pair(kernel, X, Z)
        self._budget = budget_in_bytes(max_memory)
        shape, dtype = (len(self._P), len(self._Q)), np.result_type(self._P.dtype, self._Q.dtype)
        super().__init__(kernel, X, Z, shape, dtype, n_threads)

    @classmethod
    def on(cls, kernel: Kernel, P: Prepared, Q: Prepared, n_threads: int | None = None) -> Self:
        """Return the operator k(P, Q) for prepared points; it offers only products and blocks.

        Parameters
        ----------
        kernel : Kernel
            The kernel that prepared the points.
        P : Prepared
            The n prepared points of the rows.
        Q : Prepared
            The m prepared points of the columns; if it is the same object as P, K is symmetric.
        n_threads : int or None, default None
            Number of threads; None means all processors.

        Returns
        -------
        TiledGram of shape (n, m)
            The operator.
        """
        return cls(kernel, P, None if P is Q else Q, n_threads=n_threads)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        P, Q = self._P[rows], self._Q[cols]
        return self.kernel.tile(P, Q, np.empty((len(P), len(Q)), dtype=self.dtype))

    def diagonal(self) -> np.ndarray:
        if self.symmetric:
            return np.asarray(self.kernel.diag(self.X))
        size = min(self.shape)
        out = np.empty(size, dtype=self.dtype)
        for part in slices(size, 64):
            out[part] = self.block(part, part).diagonal()
        return out

    def to_array(self) -> np.ndarray:
        n, m = self.shape
        if (needed := n * m * self.dtype.itemsize) > self._budget:
            raise MemoryBudgetError(
                f"the array of the {n} x {m} matrix K needs {format_bytes(needed)}, but the budget "
                f"is {format_bytes(self._budget)}; choose a solver that works on tiles (for "
                f"kernel PCA, "
                f"eigen_solver='krylov' with n_components), or increase max_memory"
            )
        out = np.empty(self.shape, dtype=self.dtype)
        fill_gram(self.kernel, self._P, self._Q, out, self.n_threads)
        return out

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        if self.symmetric:
            return self.multiply_in_parts(V, lambda part: self._symmetric_product(part)[0])
        return self.multiply_in_parts(V, partial(self._rectangular_product, self._P, self._Q))

    def multiply_in_parts(
        self, V: np.ndarray, multiply: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return K V, and limit the number of columns of V that are multiplied at a time.

        The limit follows from the memory budget.  Complex columns are split into two real ones.

        Parameters
        ----------
        V : ndarray of shape (m, c)
            The right-hand factor.
        multiply : callable
            Function that returns the product of K with some columns of V.

        Returns
        -------
        ndarray of shape (n, c)
            K V.
        """
        V = np.asarray(V)
        if np.iscomplexobj(V):
            real, imaginary = (self.multiply_in_parts(U, multiply) for U in (V.real, V.imag))
            return real + 1j * imaginary
        out = np.empty((self.shape[0], V.shape[1]), dtype=np.result_type(self.dtype, V.dtype))
        # A few buffers with n rows must fit the budget.  If V has too many columns for this, K is
        # evaluated several times.
        max_columns = max(16, self._budget // (8 * 6 * max(1, *self.shape)))
        for cols in slices(V.shape[1], max_columns):
            out[:, cols] = multiply(np.ascontiguousarray(V[:, cols], dtype=self.dtype))
        return out

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return K V and the weighted squared Frobenius norm; a symmetric K is evaluated only once.

        Parameters
        ----------
        V : ndarray of shape (n, c)
            The right-hand factor.
        weights : ndarray of shape (n,)
            Non-negative weights w of the points.

        Returns
        -------
        product : ndarray of shape (n, c)
            K V.
        squares : float
            sum_ij w_i w_j K_ij^2.
        """
        return self._symmetric_product(np.ascontiguousarray(V, dtype=self.dtype), weights)

    def rounded(self) -> TiledGram | None:
        if not self.symmetric or self.dtype != np.float64:
            return None
        error = float32_error_bound(self.kernel, self._P)
        if error is None or not error < _TUNING.max_float32_error:
            return None
        copies = 4 * len(self._P) * (self.X.shape[1] + 3) * _count_leaves(self.kernel)
        if copies > _TUNING.max_float32_fraction * self._budget:
            return None
        P, options = self._P.astype(np.float32), self._options
        return TiledGram(self.kernel, P, **options)

    def part(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        V = np.ascontiguousarray(V, dtype=self.dtype)
        return self._rectangular_product(self._P[rows], self._Q, V, strip=_TUNING.short_strip_rows)

    def _swapped(self) -> TiledGram:
        return TiledGram(self.kernel, self.Z, self.X, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"n_threads": self.n_threads, "max_memory": self._budget}

    def tile_task(
        self, V: np.ndarray, weights: np.ndarray | None
    ) -> tuple[tuple[Kernel, Prepared], TileInputs]:
        """Return the arguments of `tile_group_product` that all groups of a product share.

        Parameters
        ----------
        V : ndarray of shape (n, c)
            The right-hand factor.
        weights : ndarray of shape (n,) or None
            Weights of the squared entries of K; None if their sum is not needed.

        Returns
        -------
        static : tuple of Kernel and Prepared
            The kernel and its points, which are the same for all products with this matrix.
        inputs : TileInputs
            The operands of this product.
        """
        use_loops = is_faster_than_blas(V)
        V = pad_columns(V) if use_loops else V
        return (self.kernel, self._P), TileInputs(V, weights, use_loops, self.dtype)

    def _symmetric_product(
        self, V: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """Return K V for the symmetric K and, if weights w are given, sum_ij w_i w_j K_ij^2."""
        n, c = V.shape
        static, inputs = self.tile_task(V, weights)
        groups = pairwise(_group_starts(n, inputs.V.shape[1]))
        work = self.kernel._evaluation_work(n * n // 2, inputs.V.shape[1])
        product = partial(tile_group_product, static, inputs)
        parts = map_in_threads(product, groups, self.n_threads, work)
        total = np.zeros((n, c))
        for acc, _ in parts:
            total[: len(acc)] += acc[:, :c]
        return total, float(np.sum([squares for _, squares in parts]))

    def _rectangular_product(
        self, P: Prepared, Q: Prepared, V: np.ndarray, strip: int = _TUNING.strip_rows
    ) -> np.ndarray:
        """Return k(P, Q) V; one task processes `strip` rows."""
        c, use_loops = V.shape[1], is_faster_than_blas(V)
        V = pad_columns(V) if use_loops else V
        out = np.zeros((len(P), V.shape[1]))

        def process_strip(strip_slice: slice) -> Iterator[None]:
            scratch = np.empty(_TILE_ROWS * TILE_COLUMNS, dtype=self.dtype)
            direct = np.empty((_TILE_ROWS, V.shape[1]), dtype=self.dtype)
            for cols in slices(len(Q), TILE_COLUMNS):
                Qj, Vj = Q[cols], V[cols]
                Vt = np.ascontiguousarray(Vj.T)
                for i in range(strip_slice.start, strip_slice.stop, _TILE_ROWS):
                    yield
                    rows = slice(i, min(i + _TILE_ROWS, strip_slice.stop))
                    T = _tile(self.kernel, P[rows], Qj, scratch)
                    out[rows] += tile_product(T, Vt, direct[: len(T)]) if use_loops else T @ Vj

        work = self.kernel._evaluation_work(len(P) * len(Q), V.shape[1])
        run_in_threads(process_strip, slices(len(P), strip), self.n_threads, work)
        return out[:, :c]


class TileInputs(NamedTuple):
    """The operands of a product with a symmetric tiled matrix."""

    V: np.ndarray
    weights: np.ndarray | None  # of the squared entries of K
    use_loops: bool  # whether the loops of `_tile_products` are faster than the BLAS
    dtype: np.dtype


def tile_group_product(
    static: tuple[Kernel, Prepared], inputs: TileInputs, columns: tuple[int, int]
) -> Generator[None, None, tuple[np.ndarray, float]]:
    """Compute the contribution of a group of tile columns, and of their mirror images, to K V.

    The generator yields before each tile, so that threads can be interrupted.  It returns the
    contribution and the weighted sum of the squared entries of the tiles.
    """
    (kernel, P), (V, weights, use_loops, dtype), (start, stop) = static, inputs, columns
    n, squares_sum = len(V), 0.0
    acc = np.zeros((min(stop, n), V.shape[1]))  # tiles have no rows below the diagonal
    scratch = np.empty(_TILE_ROWS * TILE_COLUMNS, dtype=dtype)
    for j in range(start, min(stop, n), TILE_COLUMNS):
        cols = slice(j, min(j + TILE_COLUMNS, n))
        Qj, Vj = P[cols], V[cols]
        Vt = np.ascontiguousarray(Vj.T)
        direct = np.empty((_TILE_ROWS, len(Vt)), dtype=dtype)
        mirror = np.empty_like(Vt)
        for i in range(0, cols.stop, _TILE_ROWS):
            yield
            rows = slice(i, min(i + _TILE_ROWS, cols.stop))
            T = _tile(kernel, P[rows], Qj, scratch)
            if weights is not None:
                multiplicity = 1.0 if i >= j else 2.0
                squares_sum += multiplicity * weighted_squares(T, weights[rows], weights[cols])
            if i >= j:  # tiles in the square on the diagonal are not mirrored
                acc[rows] += T @ Vj
            elif use_loops:
                tile_products(T, Vt, V[rows], direct, mirror)
                acc[rows] += direct
                acc[cols] += mirror.T
            else:
                acc[rows] += T @ Vj
                acc[cols] += T.T @ V[rows]
    return acc, squares_sum


def fill_gram(
    kernel: Kernel, P: Prepared, Q: Prepared, out: np.ndarray, n_threads: int | None = None
) -> None:
    """Set out <- k(P, Q) in parallel; if P is Q, only one half is evaluated, and then mirrored.

    Parameters
    ----------
    kernel : Kernel
    P, Q : Prepared
        Points prepared by the kernel.
    out : ndarray of shape (n, m)
        Output array.
    n_threads : int, optional
        Number of threads; all processors by default.  The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import fill_gram
    >>> from mercer.kernels import RBF, prepare_pair
    >>> K = np.empty((2, 2))
    >>> fill_gram(RBF(), *prepare_pair(RBF(), [[0.0], [1.0]]), K)
    >>> K.round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    n, m = out.shape
    symmetric = P is Q

    def column(cols: slice) -> Iterator[None]:
        scratch = np.empty(_TILE_ROWS * TILE_COLUMNS, dtype=out.dtype)
        Qj = Q[cols]
        for rows in slices(cols.stop if symmetric else n, _TILE_ROWS):
            yield
            T = _tile(kernel, P[rows], Qj, scratch)
            out[rows, cols] = T
            if symmetric and rows.start < cols.start:
                out[cols, rows] = T.T

    # all of K is a single tile
    if n <= _TILE_ROWS and m <= TILE_COLUMNS and out.flags.c_contiguous:
        with one_blas_thread:
            _tile(kernel, P, Q, out.reshape(-1))
    else:
        columns, work = reversed(slices(m, TILE_COLUMNS)), kernel._evaluation_work(out.size)
        run_in_threads(column, columns, n_threads, work)
    if symmetric:
        for part in slices(n, TILE_COLUMNS):  # make the squares on the diagonal exactly symmetric
            square = out[part, part]
            np.copyto(square, square.T, where=_below_diagonal(len(square)))


@lru_cache(maxsize=4)
def _below_diagonal(n: int) -> np.ndarray:
    """Return a mask of the entries below the diagonal of an n x n matrix."""
    return np.tri(n, k=-1, dtype=bool)


def working_bytes(kernel: Kernel, X: Points, Z: Points, columns: int, threads: int) -> int:
    """Estimate the bytes needed for a product of k(X, Z) with `columns` columns.

    The estimate includes prepared points, tiles and buffers.  With `columns=0` it is the memory
    needed by `fill_gram`.  If all of K fits one tile, the tile is not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import working_bytes
    >>> from mercer.kernels import RBF
    >>> working_bytes(RBF(), np.zeros((10_000, 5)), None, columns=1, threads=1) < 2**24
    True
    """
    n, m = gram_shape(X, Z)
    width = X.shape[1] + 3 if hasattr(X, "shape") and len(X.shape) == 2 else 1
    points = (n if Z is None else n + m) * width * 8 * _count_leaves(kernel)
    tile = 2 * _TILE_ROWS * TILE_COLUMNS + TILE_COLUMNS * width if max(n, m) > TILE_COLUMNS else 0
    buffers = min(_TUNING.buffer_bytes, 8 * n * columns * _TUNING.max_groups)
    return points + threads * 8 * tile + buffers


def _count_leaves(kernel: Kernel) -> int:
    """Return the number of elementary kernels in a kernel; each prepares its own points."""
    return sum(_count_leaves(child) for _, child in kernel._children()) or 1


def _tile(kernel: Kernel, P: Prepared, Q: Prepared, scratch: np.ndarray) -> np.ndarray:
    """Return k(P, Q) in the memory of `scratch`."""
    T = scratch[: len(P) * len(Q)].reshape(len(P), len(Q))
    with np.errstate(over="ignore", invalid="ignore"):  # solvers check for overflow
        kernel._tile(P, Q, T)
    return T


def _group_starts(n: int, columns: int) -> list[int]:
    """Return the first column of each group of a symmetric product, and the end of the last one.

    The first c columns contain the fraction c^2 / n^2 of the upper triangle.  For equal work, the
    g-th group therefore ends at the column n sqrt(g / groups), and the buffers have 2/3 n rows on
    average.
    """
    max_buffers = int(_TUNING.buffer_bytes / max(1.0, 8 * n * columns * 2 / 3))
    groups = max(2, min(_TUNING.max_groups, max_buffers, -(-n // TILE_COLUMNS)))
    ends = n * np.sqrt(np.arange(groups) / groups)
    tiles = {int(end / TILE_COLUMNS + 0.5) for end in ends} | {-(-n // TILE_COLUMNS)}
    return [tile * TILE_COLUMNS for tile in sorted(tiles)]
