"""K held as nothing but its points: every product evaluates it again, tile by tile.

    acc_i += T_ij V_j,     T_ij = k(X_i, Z_j)  in a buffer that stays in the cache

For K = k(X, X) only the tiles on and above the diagonal are evaluated, and each serves twice:
acc_j += T_ij^T V_i.  The tile columns are dealt to groups whose number depends on the shapes
alone; each group adds into a buffer of its own, in order, and the buffers are summed in order.
So the result does not depend on how many threads ran.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self

import numpy as np

from .._errors import MemoryBudgetError
from .._runtime import budget_in_bytes, entry_point, in_words, one_blas_thread, run, slices
from ..kernels import Kernel, Prepared, pair
from ._operator import GramOperator, gram_shape
from ._products import few_columns, padded, product, products, weighted_squares

__all__ = ["TiledGram", "elsewhere", "fill", "working_bytes"]

# A tile: about 1 MiB in float64, at home in the second-level cache.  A power of two would put the
# entries of a column into the same few cache lines: at 512 columns the GEMM takes a quarter longer.
# _ROWS divides _COLS, so that no tile straddles the edge of a square on the diagonal.
_ROWS, _COLS = 384, 384
_STRIP = 1920  # rows of K that one task of a rectangular product works on
_FEW_ROWS = 64  # the same, where there are few of them
_BUFFERS = 10 * 2**20  # bytes for the buffers of the groups
_MOST_GROUPS = 16
_MOST_ROUNDED = 1e-2  # the relative error of an entry up to which float32 is worth a trial
_SHARE_ROUNDED = 0.05  # of the budget, for points in float32
_MOST_ELSEWHERE = 64  # groups that other processes work on

_elsewhere: ContextVar[Any] = ContextVar("who does the products", default=None)


@entry_point
class TiledGram(GramOperator):
    """K as an operator that needs O(n d) memory.

    Parameters
    ----------
    kernel : Kernel
    X, Z : points
        `Z=None` means X: then half of the tiles are evaluated.
    n_threads : int, optional
        All processors by default.  The result does not depend on it.
    max_memory : int, str or None
        What `to_array` may allocate; see `gram`.

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
        X: Any,
        Z: Any = None,
        *,
        n_threads: int | None = None,
        max_memory: Any = None,
    ) -> None:
        self._hold(kernel, X, Z, *pair(kernel, X, Z), n_threads, budget_in_bytes(max_memory))

    @classmethod
    def on(cls, kernel: Kernel, P: Prepared, Q: Prepared, n_threads: int | None = None) -> Self:
        """Return k(P, Q) of points that are prepared already: products and blocks, no more."""
        self = cls.__new__(cls)
        self._hold(kernel, P, None if P is Q else Q, P, Q, n_threads, budget_in_bytes(None))
        return self

    def _hold(
        self,
        kernel: Kernel,
        X: Any,
        Z: Any,
        P: Prepared,
        Q: Prepared,
        n_threads: int | None,
        budget: int,
    ) -> None:
        self._P, self._Q, self.n_threads, self._budget = P, Q, n_threads, budget
        dtype = np.result_type(P.dtype, Q.dtype)
        GramOperator.__init__(self, kernel, X, Z, (len(P), len(Q)), dtype)

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
                f"the array of the {n} x {m} matrix K needs {in_words(needed)}, but the budget is "
                f"{in_words(self._budget)}; choose a solver that works on tiles (for kernel PCA, "
                f"eigen_solver='krylov' with n_components), or raise max_memory"
            )
        out = np.empty(self.shape, dtype=self.dtype)
        fill(self.kernel, self._P, self._Q, out, self.n_threads)
        return out

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        V = np.asarray(V)
        if np.iscomplexobj(V):
            return self._matmat(V.real) + 1j * self._matmat(V.imag)
        product = self._half if self.symmetric else self._full
        out = np.empty((self.shape[0], V.shape[1]), dtype=np.result_type(self.dtype, V.dtype))
        # a few buffers of n rows must fit the budget, so very many columns go in several passes
        most = max(16, self._budget // (8 * 6 * max(1, *self.shape)))
        for cols in slices(V.shape[1], most):
            part = np.ascontiguousarray(V[:, cols], dtype=self.dtype)
            out[:, cols] = product(self._P, self._Q, part)
        return out

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return K V and sum_ij w_i w_j K_ij^2 from one evaluation of a symmetric K."""
        if not self.symmetric:
            return super().with_squares(V, weights)
        squares: list[float] = []
        V = np.ascontiguousarray(V, dtype=self.dtype)
        return self._half(self._P, self._Q, V, weights, squares), float(np.sum(squares))

    def rounded(self) -> TiledGram | None:
        if _elsewhere.get() is not None or not self.symmetric or self.dtype != np.float64:
            return None  # elsewhere, other points would have to be sent
        error = self.kernel._single_error(self._P)
        if error is None or not error < _MOST_ROUNDED:
            return None
        copies = 4 * len(self._P) * (self.X.shape[1] + 3) * _leaves(self.kernel)
        if copies > _SHARE_ROUNDED * self._budget:
            return None
        P = self._P.astype(np.float32)
        single = TiledGram.on(self.kernel, P, P, self.n_threads)
        single._budget = self._budget
        return single

    def part(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        V = np.ascontiguousarray(V, dtype=self.dtype)
        return self._full(self._P[rows], self._Q, V, strip=_FEW_ROWS)

    def _swapped(self) -> TiledGram:
        return TiledGram(
            self.kernel, self.Z, self.X, n_threads=self.n_threads, max_memory=self._budget
        )

    def _half(
        self,
        P: Prepared,
        Q: Prepared,
        V: np.ndarray,
        weights: np.ndarray | None = None,
        squares: list[float] | None = None,
    ) -> np.ndarray:
        """Return K V; with weights, put the groups' shares of sum w_i w_j K_ij^2 into `squares`."""
        n, c = V.shape
        few = few_columns(V)
        V = padded(V) if few else V
        kept, given = (self.kernel, P), (V, weights, few, self.dtype)
        if (there := _elsewhere.get()) is not None:
            acc, share = there(_of_group, _added, kept, given, _groups_elsewhere(n))
            if squares is not None:
                squares.append(share)
            return np.asarray(acc[:, :c])
        groups = list(pairwise(_group_starts(n, V.shape[1])))
        parts: list[Any] = [None] * len(groups)

        def group(g: int) -> Iterator[None]:
            parts[g] = yield from group_of_tiles(kept, given, groups[g])

        work = self.kernel._evaluation_work(n * n // 2, V.shape[1])
        run(group, range(len(groups)), self.n_threads, work)
        total = np.zeros((n, c))
        for acc, _ in parts:
            total[: len(acc)] += acc[:, :c]
        if squares is not None:
            squares.extend(share for _, share in parts)
        return total

    def _full(self, P: Prepared, Q: Prepared, V: np.ndarray, strip: int = _STRIP) -> np.ndarray:
        c, few = V.shape[1], few_columns(V)
        V = padded(V) if few else V
        out = np.zeros((len(P), V.shape[1]))

        def rows_of(some: slice) -> Iterator[None]:
            scratch = np.empty(_ROWS * _COLS, dtype=self.dtype)
            direct = np.empty((_ROWS, V.shape[1]), dtype=self.dtype)
            for cols in slices(len(Q), _COLS):
                Qj, Vj = Q[cols], V[cols]
                Vt = np.ascontiguousarray(Vj.T)
                for i in range(some.start, some.stop, _ROWS):
                    yield
                    rows = slice(i, min(i + _ROWS, some.stop))
                    T = _tile(self.kernel, P[rows], Qj, scratch)
                    out[rows] += product(T, Vt, direct[: len(T)]) if few else T @ Vj

        work = self.kernel._evaluation_work(len(P) * len(Q), V.shape[1])
        run(rows_of, slices(len(P), strip), self.n_threads, work)
        return out[:, :c]


def _of_group(kept: Any, given: Any, columns: tuple[int, int]) -> tuple[np.ndarray, float]:
    """Return a group of tiles, all at once: what another process does."""
    tiles = group_of_tiles(kept, given, columns)
    while True:
        try:
            next(tiles)
        except StopIteration as done:
            result: tuple[np.ndarray, float] = done.value
            return result


def _added(
    one: tuple[np.ndarray, float], other: tuple[np.ndarray, float]
) -> tuple[np.ndarray, float]:
    """Return the sum of two groups, of which the later one reaches further down."""
    total = other[0].copy()
    total[: len(one[0])] += one[0]
    return total, one[1] + other[1]


def _groups_elsewhere(n: int) -> list[tuple[int, int]]:
    """Return groups of columns with equal work, as many as points allow, but no more than 64."""
    tiles = -(-n // _COLS)
    count = max(1, min(_MOST_ELSEWHERE, tiles // 2))
    ends = {round(tiles * float(np.sqrt(g / count))) for g in range(count + 1)}
    return [(a * _COLS, b * _COLS) for a, b in pairwise(sorted(ends))]


@contextmanager
def elsewhere(work: Any) -> Iterator[None]:
    """Let work(f, merge, kept, given, jobs) do the products with a symmetric K inside of the block.

    It is to return the f(kept, given, job) of all jobs, merged.  `kept` is the same for all
    products: the kernel and its points.  Which jobs there are depends on the number of points.

    Examples
    --------
    >>> from functools import reduce
    >>> import numpy as np
    >>> from mercer.gram import TiledGram, elsewhere
    >>> from mercer.kernels import RBF
    >>> K = TiledGram(RBF(), np.linspace(0, 1, 9)[:, None])
    >>> def in_turn(f, merge, kept, given, jobs):
    ...     return reduce(merge, [f(kept, given, job) for job in jobs])
    >>> with elsewhere(in_turn):
    ...     there = K @ np.ones(9)
    >>> np.allclose(there, K @ np.ones(9))
    True
    """
    token = _elsewhere.set(work)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def group_of_tiles(
    kept: tuple[Kernel, Prepared], given: tuple[Any, ...], columns: tuple[int, int]
) -> Generator[None, None, tuple[np.ndarray, float]]:
    """Return what tiles of some columns, and those that mirror them, add to K V and to the squares.

    It yields between two tiles.
    """
    (kernel, P), (V, weights, few, dtype), (start, stop) = kept, given, columns
    n, share = len(V), 0.0
    acc = np.zeros((min(stop, n), V.shape[1]))  # these tiles reach no row beyond their last column
    scratch = np.empty(_ROWS * _COLS, dtype=dtype)
    for j in range(start, min(stop, n), _COLS):
        cols = slice(j, min(j + _COLS, n))
        Qj, Vj = P[cols], V[cols]
        Vt = np.ascontiguousarray(Vj.T)
        direct = np.empty((_ROWS, len(Vt)), dtype=dtype)
        mirror = np.empty_like(Vt)
        for i in range(0, cols.stop, _ROWS):
            yield
            rows = slice(i, min(i + _ROWS, cols.stop))
            T = _tile(kernel, P[rows], Qj, scratch)
            if weights is not None:
                twice = 1.0 if i >= j else 2.0
                share += twice * weighted_squares(T, weights[rows], weights[cols])
            if i >= j:  # in the square on the diagonal T stands for itself alone
                acc[rows] += T @ Vj
            elif few:
                products(T, Vt, V[rows], direct, mirror)
                acc[rows] += direct
                acc[cols] += mirror.T
            else:
                acc[rows] += T @ Vj
                acc[cols] += T.T @ V[rows]
    return acc, share


def fill(
    kernel: Kernel, P: Prepared, Q: Prepared, out: np.ndarray, n_threads: int | None = None
) -> None:
    """Set out <- k(P, Q) with threads over tiles; if P is Q one half mirrors the other.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import fill
    >>> from mercer.kernels import RBF, pair
    >>> K = np.empty((2, 2))
    >>> fill(RBF(), *pair(RBF(), [[0.0], [1.0]]), K)
    >>> K.round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    n, m = out.shape
    symmetric = P is Q

    def column(cols: slice) -> Iterator[None]:
        scratch = np.empty(_ROWS * _COLS, dtype=out.dtype)
        Qj = Q[cols]
        for rows in slices(cols.stop if symmetric else n, _ROWS):
            yield
            T = _tile(kernel, P[rows], Qj, scratch)
            out[rows, cols] = T
            if symmetric and rows.start < cols.start:
                out[cols, rows] = T.T

    if n <= _ROWS and m <= _COLS and out.flags.c_contiguous:  # one tile
        with one_blas_thread:
            _tile(kernel, P, Q, out.reshape(-1))
    else:
        run(column, reversed(slices(m, _COLS)), n_threads, kernel._evaluation_work(out.size))
    if symmetric:
        for part in slices(n, _COLS):  # the squares on the diagonal, bit by bit
            square = out[part, part]
            np.copyto(square, square.T, where=_below(len(square)))


@lru_cache(maxsize=4)
def _below(n: int) -> np.ndarray:
    """Return which entries of a matrix of n rows are below its diagonal."""
    return np.tri(n, k=-1, dtype=bool)


def working_bytes(kernel: Kernel, X: Any, Z: Any, columns: int, threads: int) -> int:
    """Estimate the memory of one product with `columns` columns: rows, tiles and buffers.

    With no columns it is that of filling an array.  Tiles are not counted where one is all of K.

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
    points = (n if Z is None else n + m) * width * 8 * _leaves(kernel)
    tile = 2 * _ROWS * _COLS + _COLS * width if max(n, m) > _COLS else 0
    return points + threads * 8 * tile + min(_BUFFERS, 8 * n * columns * _MOST_GROUPS)


def _leaves(kernel: Kernel) -> int:
    """Return the number of kernels in the tree that prepare rows of their own."""
    return sum(_leaves(child) for _, child in kernel._children()) or 1


def _tile(kernel: Kernel, P: Prepared, Q: Prepared, scratch: np.ndarray) -> np.ndarray:
    T = scratch[: len(P) * len(Q)].reshape(len(P), len(Q))
    with np.errstate(over="ignore", invalid="ignore"):  # the solvers and estimators check and say
        kernel._tile(P, Q, T)
    return T


def _group_starts(n: int, columns: int) -> list[int]:
    """Return the column at which each group of a symmetric product starts, and n.

    Columns up to c hold c^2 / n^2 of the upper half, so equal work ends at n sqrt(g / groups);
    buffers that end there take 2/3 of n rows on average.
    """
    fits = int(_BUFFERS / max(1.0, 8 * n * columns * 2 / 3))
    groups = max(2, min(_MOST_GROUPS, fits, -(-n // _COLS)))
    ends = n * np.sqrt(np.arange(groups + 1) / groups)
    return sorted({int(e / _COLS + 0.5) * _COLS for e in ends[:-1]} | {-(-n // _COLS) * _COLS})
