"""Kernel matrix whose products are computed by the workers that hold the points.

Each worker receives all points once, and evaluates groups of columns of tiles of K, as `TiledGram`
does in threads.  The groups depend only on the number of points, and their results are added over
a fixed binary tree.  Therefore the result is bit-for-bit identical for any number of workers, also
if a worker is lost and its groups are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._core import MemoryLimit, Points, entry_point
from ..blocks import Blocks, SpreadTask
from ..kernels import Kernel, Prepared
from ._operator import GramOperator
from ._tiled import TILE_COLUMNS, TiledGram, TileInputs, tile_group_product

_MAX_GROUPS = 64  # number of tasks of a product; workers with many cores need at least this many


@entry_point
class DistributedGram(GramOperator):
    """Symmetric kernel matrix whose products are computed by Dask workers, or in threads.

    Only products are distributed; entries and rows of K are evaluated in this process.  Each worker
    receives all points once.  Use it if one computer needs too long for a product with K, but all
    points fit the memory of each worker.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points or Blocks
        The n points.  Blocks are gathered in memory.
    workers : Blocks or None, default None
        Blocks that determine where the products are computed: `Blocks.spread` sends them to the
        Dask cluster, or runs them in threads of this process.  None means X, which must be Blocks.
    n_threads : int or None, default None
        Number of threads of the computations in this process; None means all processors.
    max_memory : int, str or None, default None
        Memory budget for the points, the result of `to_array` and the buffers of products, in the
        format of `gram`.

    Attributes
    ----------
    tiles : TiledGram
        The same matrix, with products in this process.

    See Also
    --------
    TiledGram : Products in the threads of one process.
    mercer.Blocks : Rows of a data set in files or on a Dask cluster.

    Notes
    -----
    The result is bit-for-bit identical for any number of workers, because the tasks and the order
    of their sum depend only on the number of points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks
    >>> from mercer.gram import gram
    >>> K = gram("RBF()", Blocks.of(np.linspace(0, 1, 9)[:, None], rows=3))
    >>> K
    <DistributedGram 9x9, float64, RBF(length_scale=1.0)>
    >>> np.allclose(K @ np.ones(9), K.to_array().sum(axis=1))
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        workers: Blocks | None = None,
        *,
        n_threads: int | None = None,
        max_memory: MemoryLimit = None,
    ) -> None:
        if isinstance(X, Blocks):
            X, workers = X.to_array(max_memory), X if workers is None else workers
        if workers is None:
            raise TypeError("workers must be Blocks if X is not; see Blocks.of and open_blocks")
        self.tiles = TiledGram(kernel, X, n_threads=n_threads, max_memory=max_memory)
        self._workers = workers
        super().__init__(kernel, X, None, self.tiles.shape, self.tiles.dtype, n_threads)

    def block(self, rows: Points, cols: Points) -> np.ndarray:
        return self.tiles.block(rows, cols)

    def diagonal(self) -> np.ndarray:
        return self.tiles.diagonal()

    def to_array(self) -> np.ndarray:
        return self.tiles.to_array()

    def part(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.tiles.part(rows, V)

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        return self._multiply(np.ascontiguousarray(V, dtype=self.dtype), weights)

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        return self.tiles.multiply_in_parts(V, lambda part: self._multiply(part)[0])

    def _multiply(
        self, V: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """Return K V and, if weights w are given, sum_ij w_i w_j K_ij^2."""
        n, c = V.shape
        static, inputs = self.tiles.tile_task(V, weights)
        task = SpreadTask(_run_group, _add_parts, static, inputs)
        total = self._workers.spread(task, _groups(n))
        return np.asarray(total.product[:, :c]), total.squares


@dataclass(frozen=True)
class _Part:
    """Contribution of some groups to the product and to the sum of squares."""

    product: np.ndarray
    squares: float


def _run_group(
    static: tuple[Kernel, Prepared], inputs: TileInputs, columns: tuple[int, int]
) -> _Part:
    """Compute one group; this runs on a worker, without interruptions."""
    tiles = tile_group_product(static, inputs, columns)
    while True:
        try:
            next(tiles)
        except StopIteration as done:
            return _Part(*done.value)


def _add_parts(one: _Part, other: _Part) -> _Part:
    """Return the sum of two parts; `other` has at least as many rows as `one`."""
    product = other.product.copy()
    product[: len(one.product)] += one.product
    return _Part(product, one.squares + other.squares)


def _groups(n: int) -> list[tuple[int, int]]:
    """Return at most 64 groups of columns with about equal work, one for each task."""
    tiles = -(-n // TILE_COLUMNS)
    count = max(1, min(_MAX_GROUPS, tiles // 2))
    ends = {round(tiles * float(np.sqrt(g / count))) for g in range(count + 1)}
    return [(a * TILE_COLUMNS, b * TILE_COLUMNS) for a, b in pairwise(sorted(ends))]
