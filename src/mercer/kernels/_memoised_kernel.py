"""Memoisation: store kernel values, so that no pair of points is evaluated twice within a fit.

Solvers read the same entries of K more than once: rows, then the diagonal, then blocks of
landmarks.  For most kernels, evaluating an entry again is cheaper than looking it up.  For a Python
function or a dynamic-programming algorithm it is not.

Each table contains the values of one kernel with fixed parameters.  `ValueTables` finds the table
by comparing kernels.  After a change of parameters (`with_theta`, `set_params`,
`dataclasses.replace`), a kernel therefore never reads values of the old parameters.  The tables are
emptied at the end of the fit.  A `Memoised` kernel that is used later evaluates every pair.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import Points, is_table, length, reserve
from ._base import Kernel, node
from ._dataclass import FieldWriter, FormattedExpression, format_expression, format_operand
from ._evaluation import Prepared
from ._pairwise_kernels import Callable, PairwiseKernel, get_point, pairs_from_tiles
from ._parameter_tree import child
from ._properties import SAME, Properties
from .algebra._wrappers import Wrapper
from .graphs._graph_collection import Graph

# The value of a table entry while a thread evaluates it.  NaN means that it is not evaluated yet.
_IN_PROGRESS = np.inf


class ValueTable:
    """The values of one kernel for all pairs of up to `size` different points."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.positions: dict[Any, int] = {}
        self.points: list[Any] = []  # keeps the points alive, so that their ids are not reused
        self.changed = threading.Condition()

    @cached_property
    def values(self) -> np.ndarray:
        """The values k(x_a, x_b) for a <= b; NaN for values that are not evaluated yet."""
        return np.full((self.size, self.size), np.nan)

    def positions_of(self, X: Points) -> np.ndarray:
        """Return the table row of each point, adding new points; -1 if the table is full."""
        rows = np.full(length(X), -1, dtype=np.intp)
        if not self.size:
            return rows
        with self.changed:
            for i in range(len(rows)):
                x = get_point(X, i)
                key = _key(x)
                if key not in self.positions and len(self.positions) < self.size:
                    self.positions[key] = len(self.positions)
                    self.points.append(x)
                rows[i] = self.positions.get(key, -1)
        return rows

    def clear(self) -> None:
        """Delete all values and points; nothing is stored from now on."""
        with self.changed:
            self.size = 0
            self.positions, self.points = {}, []
            self.__dict__.pop("values", None)


class ValueTables:
    """The tables of stored values for the costly parts of one kernel expression.

    There is at most one table per costly part, because a new table replaces the one of earlier
    parameter values.  Equal parts share a table.
    """

    def __init__(self, size: int, parts: int) -> None:
        self.size, self.parts = size, parts
        self.entries: list[tuple[Kernel, ValueTable]] = []  # pairs in the order of their last use
        self.lock = threading.Lock()

    def of(self, kernel: Kernel) -> ValueTable:
        """Return the table of a kernel; create one if there is none."""
        with self.lock:
            table = next((t for k, t in self.entries if k is kernel or k == kernel), None)
            if table is None:
                table = ValueTable(self.size)
            others = [(k, t) for k, t in self.entries if t is not table]
            self.entries = [*others, (kernel, table)][-self.parts :]
            return table

    def clear(self) -> None:
        """Delete all tables; nothing is stored from now on."""
        with self.lock:
            for _, table in self.entries:
                table.clear()
            self.size, self.entries = 0, []


@node
class Memoised(Wrapper):
    """A kernel k_1 whose values are stored and reused: k(x, z) = k_1(x, z).

    Parameters, equality, hash and repr are those of k_1.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1.
    tables : ValueTables
        The tables in which the values are stored.
    """

    kernel: Kernel = child(transparent=True)
    tables: Any = None

    def _properties(self, *inner: Properties) -> Properties:
        return replace(inner[0], rule=SAME)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        inner = self.kernel._prepare(X, like.children[0] if like is not None else None)
        table = self.tables.of(self.kernel) if like is None else like.frame
        return Prepared(
            (table.positions_of(X),),
            (inner,),
            frame=table,
            dtype=inner.dtype,
            source=inner.source,
            positions=inner.positions,
        )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        # Evaluating a block of a function of matrices is faster than reading stored values.
        by_blocks = isinstance(self.kernel, Callable) and Q.children[0].frame == "matrix"
        if not self._is_stored(P, Q) or by_blocks:
            self.kernel._tile(P.children[0], Q.children[0], out)
            return
        i, j = np.indices(out.shape).reshape(2, -1)
        out[...] = self._pairs(P, Q, i, j).reshape(out.shape)

    def _diag(self, X: Points) -> np.ndarray:
        P, i = self._prepare(X, None), np.arange(length(X))
        return self._pairs(P, P, i, i) if self._is_stored(P, P) else self.kernel._diag(X)

    def _is_stored(self, P: Prepared, Q: Prepared) -> bool:
        """Whether both operands belong to the same table, and this table still stores values."""
        return P.frame is Q.frame and P.frame.size > 0

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        rows, columns = P.arrays[0][i], Q.arrays[0][j]
        values = np.empty(len(i))
        outside = (rows < 0) | (columns < 0)
        if outside.any():
            values[outside] = self._evaluated(P, Q, i[outside], j[outside])
        stored = np.flatnonzero(~outside)
        if not stored.size:
            return values
        # k is symmetric, so that only the upper triangle is stored.
        a = np.minimum(rows[stored], columns[stored])
        b = np.maximum(rows[stored], columns[stored])
        table, changed = P.frame.values, P.frame.changed
        pairs = a * len(table) + b
        first = np.unique(pairs, return_index=True)[1]
        with changed:  # `own` are the entries that this thread evaluates
            own = first[np.isnan(table[a[first], b[first]])]
            table[a[own], b[own]] = _IN_PROGRESS
        try:
            new = self._evaluated(P, Q, i[stored[own]], j[stored[own]])
        except BaseException:
            # Mark the entries as not evaluated; threads that wait for them will evaluate them.
            new = np.full(len(own), np.nan)
            raise
        finally:
            with changed:
                table[a[own], b[own]] = new
                changed.notify_all()
        with changed:
            changed.wait_for(lambda: not np.isinf(table[a[first], b[first]]).any())
            values[stored] = table[a, b]
        failed = np.isnan(values)
        if failed.any():  # another thread failed here, so this one should raise the error too
            values[failed] = self._evaluated(P, Q, i[failed], j[failed])
        return values

    def _evaluated(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return k_1(p_i, q_j); of the two points, the one added to the table first comes first.

        Points that are not in the table come after those that are, ordered by their index.  The
        order matters because a user-supplied function may be symmetric only up to rounding, and the
        result must not depend on the order in which tiles are computed.
        """
        p, q = P.children[0], Q.children[0]
        size, values = P.frame.size, np.empty(len(i))
        rows, columns = P.arrays[0][i], Q.arrays[0][j]
        rows = np.where(rows < 0, size + P.index[i], rows)
        columns = np.where(columns < 0, size + Q.index[j], columns)
        swapped = rows > columns
        for chosen, left, right in ((~swapped, (p, i), (q, j)), (swapped, (q, j), (p, i))):
            if chosen.any():
                (first, left_rows), (second, right_rows) = left, right
                values[chosen] = _pair_values(
                    self.kernel, first, second, left_rows[chosen], right_rows[chosen]
                )
        return values

    # ------------------------------------------------------------------ behave like k_1

    def __eq__(self, other: object) -> bool:
        return self.kernel == (other.kernel if isinstance(other, Memoised) else other)

    def __hash__(self) -> int:
        return hash(self.kernel)

    def __reduce__(self) -> Any:
        return unwrap, (self.kernel,)  # copies and pickles contain only k_1, without its values


@format_expression.register
def _(value: Memoised, write: FieldWriter) -> FormattedExpression:
    return format_operand(value.kernel, write)


def _pair_values(
    kernel: Kernel, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return k(p_i, q_j) for index arrays i and j."""
    if isinstance(kernel, PairwiseKernel):
        return kernel._pairs(P, Q, i, j)
    return pairs_from_tiles(kernel, P, Q, i, j)


def memoise(kernel: Kernel, n: int) -> Kernel:
    """Return the kernel with its costly parts memoised, for up to n points.

    Kernels that are cheap to evaluate are returned unchanged.  If this is called during a fit, the
    memory of the tables counts towards its memory limit, and is freed when the fit ends.

    Parameters
    ----------
    kernel : Kernel
    n : int
        The largest number of different points whose values are stored.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from mercer.kernels import RBF, LocalAlignment, memoise
    >>> memoise(RBF(), 10)
    RBF(length_scale=1.0)
    >>> k = memoise(LocalAlignment(), 10)
    >>> k(["abc", "abd"]).shape
    (2, 2)
    """
    kernel = unwrap(kernel)
    tables = ValueTables(n, _count_costly(kernel))
    reserve(table_bytes(kernel, n), release=tables.clear)
    return _memoise(kernel, tables)


def _memoise(kernel: Kernel, tables: ValueTables) -> Kernel:
    """Wrap the innermost costly parts of an expression in `Memoised`."""
    if not kernel.domain.costly:
        return kernel
    costly = _costly_children(kernel)
    if costly:
        return kernel._with({p: _memoise(child, tables) for p, child in costly.items()})
    return Memoised(kernel, tables)


def unwrap(kernel: Kernel) -> Kernel:
    """Return the kernel without memoisation; the inverse of `memoise`.

    Examples
    --------
    >>> from mercer.kernels import LocalAlignment, memoise, unwrap
    >>> k = 2.0 * LocalAlignment()
    >>> unwrap(memoise(k, 10)) == k
    True
    """
    if isinstance(kernel, Memoised):
        return kernel.kernel
    parts = {name: unwrap(child) for name, child in _costly_children(kernel).items()}
    changed = any(parts[name] is not child for name, child in kernel._children() if name in parts)
    return kernel._with(parts) if changed else kernel


def table_bytes(kernel: Kernel, n: int) -> int:
    """Return the memory, in bytes, that `memoise` reserves for n points.

    Examples
    --------
    >>> from mercer.kernels import RBF, LocalAlignment, table_bytes
    >>> table_bytes(RBF(), 1000), table_bytes(LocalAlignment(), 1000)
    (0, 8000000)
    """
    return 8 * n * n * _count_costly(kernel)


def _costly_children(kernel: Kernel) -> dict[str, Kernel]:
    return {name: child for name, child in kernel._children() if child.domain.costly}


def _count_costly(kernel: Kernel) -> int:
    """Return the number of costly nodes without costly children; each of them needs a table."""
    parts = _costly_children(kernel).values()
    return sum(map(_count_costly, parts)) if parts else int(kernel.domain.costly)


# Types of points for which no kernel can distinguish two equal values of the same type.
_EXACT_TYPES = (str, bytes, int, bool, complex, type(None))


def _key(x: Any) -> Any:
    """Return a hashable key, equal for two points only if no kernel can distinguish them.

    This is stricter than equality: 1, 1.0 and True are equal, but a Python function may treat them
    differently.  Objects of unknown classes are identified by their id.
    """
    kind = type(x)
    if kind in _EXACT_TYPES:
        return kind, x
    if kind is float:
        return kind, x.hex()  # hex() distinguishes 0.0 from -0.0, and all NaN are equal
    if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.dtype.kind in "biufcSUmM"):
        return kind, x.shape, x.dtype.str, x.tobytes()
    if isinstance(x, np.ndarray):
        return kind, x.shape, x.dtype.str, tuple(map(_key, x.ravel().tolist()))
    if sp.issparse(x):
        A = x.tocsr()
        return kind, A.shape, A.dtype.str, *(v.tobytes() for v in (A.indptr, A.indices, A.data))
    if kind in (tuple, list):
        return kind, tuple(map(_key, x))
    if kind in (set, frozenset):
        return kind, frozenset(map(_key, x))
    if kind is dict:
        return kind, tuple((_key(name), _key(value)) for name, value in x.items())
    if kind is Graph:
        return kind, tuple(map(_key, x._arrays()))
    if is_table(x) and len(x.shape) == 1:  # a data frame row, a new object at each access
        names = x.index if hasattr(x, "index") else ()
        # The name of the same row is an int or a np.int64, depending on the index of the table.
        name = x.name.item() if isinstance(x.name, np.generic) else x.name
        return kind, _key(name), tuple(map(_key, names)), tuple(map(_key, x))
    return kind, id(x)
