"""A kernel that stores its values, so that no pair of points is evaluated twice within a fit.

Solvers read the same entries of K more than once: rows, then the diagonal, then blocks of
landmarks.  For most kernels evaluating an entry again is cheaper than looking it up.  For a Python
function or a dynamic programme it is not.

A table of values belongs to the kernel at which they were computed.  `Tables` finds it by comparing
kernels, so a kernel with other parameters, however it was made (`with_theta`, `set_params`,
`dataclasses.replace`), never reads values of another one.  The tables are emptied when the memory
scope of the fit ends, and a `Memoised` kernel that outlives them evaluates every pair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable as Function
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._points import is_table, length
from .._runtime import reserve
from ._base import Kernel, node
from ._callable import point
from ._claims import SAME, Claims
from ._fields import Written, written
from ._graph_collection import Graph
from ._prepared import Prepared
from ._wrappers import Wrapper

__all__ = ["Memoised", "memoise", "table_bytes", "unwrap"]

_IN_PROGRESS = np.inf  # an entry that a thread is evaluating; NaN: not evaluated yet


class Table:
    """The values of one kernel at pairs of up to `size` different points."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.positions: dict[Any, int] = {}
        self.points: list[Any] = []  # keeps points alive, so that their id is not reused
        self.changed = threading.Condition()

    @cached_property
    def values(self) -> np.ndarray:
        """The values k(x_a, x_b) for a <= b; NaN where they are not known."""
        return np.full((self.size, self.size), np.nan)

    def positions_of(self, X: Any) -> np.ndarray:
        """Return the row of each point in the table, -1 for points beyond its size."""
        found = np.full(length(X), -1, dtype=np.intp)
        if not self.size:
            return found
        with self.changed:
            for i in range(len(found)):
                x = point(X, i)
                key = _key(x)
                if key not in self.positions and len(self.positions) < self.size:
                    self.positions[key] = len(self.positions)
                    self.points.append(x)
                found[i] = self.positions.get(key, -1)
        return found

    def clear(self) -> None:
        """Free the values and the points; from now on the table holds none."""
        with self.changed:
            self.size = 0
            self.positions, self.points = {}, []
            self.__dict__.pop("values", None)


class Tables:
    """The tables of the costly parts of one kernel expression.

    There is one table per costly part at most: the tables of earlier parameters are dropped.
    Equal parts share a table.
    """

    def __init__(self, size: int, parts: int) -> None:
        self.size, self.parts = size, parts
        self.known: list[tuple[Kernel, Table]] = []  # most recently used last
        self.lock = threading.Lock()

    def of(self, kernel: Kernel) -> Table:
        """Return the table of a kernel, a new one if its values are not stored."""
        with self.lock:
            table = next((t for k, t in self.known if k is kernel or k == kernel), None)
            if table is None:
                table = Table(self.size)
            others = [(k, t) for k, t in self.known if t is not table]
            self.known = [*others, (kernel, table)][-self.parts :]
            return table

    def clear(self) -> None:
        """Free all values; from now on none are stored."""
        with self.lock:
            for _, table in self.known:
                table.clear()
            self.size, self.known = 0, []


@node
class Memoised(Wrapper):
    """k(x, z) = k_1(x, z), where no pair of points is evaluated twice.

    Parameters, equality and text are those of k_1.
    """

    tables: Any = None

    def _claims(self, *inner: Claims) -> Claims:
        return replace(inner[0], rule=SAME)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        inner = self.kernel._prepare(X, like.children[0] if like is not None else None)
        table = self.tables.of(self.kernel) if like is None else like.frame
        return Prepared(
            (table.positions_of(X),),
            (inner,),
            frame=table,
            dtype=inner.dtype,
            source=inner.source,
            places=inner.places,
        )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if not self._is_stored(P, Q) or self.kernel._by_blocks(Q.children[0]):
            self.kernel._tile(P.children[0], Q.children[0], out)
            return
        i, j = np.indices(out.shape).reshape(2, -1)
        out[...] = self._pairs(P, Q, i, j).reshape(out.shape)

    def _diag(self, X: Any) -> np.ndarray:
        P = self._prepare(X, None)
        return self._diag_prepared(P) if self._is_stored(P, P) else self.kernel._diag(X)

    def _is_stored(self, P: Prepared, Q: Prepared) -> bool:
        """Whether values of these points may be in a table."""
        return P.frame is Q.frame and P.frame.size > 0

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if not self._is_stored(P, Q):
            return self.kernel._pairs(P.children[0], Q.children[0], i, j)
        rows, columns = P.arrays[0][i], Q.arrays[0][j]
        values = np.empty(len(i))
        beyond = (rows < 0) | (columns < 0)
        if beyond.any():
            values[beyond] = self._evaluated(P, Q, i[beyond], j[beyond])
        stored = np.flatnonzero(~beyond)
        if not stored.size:
            return values
        a = np.minimum(rows[stored], columns[stored])  # k is symmetric: one triangle is stored
        b = np.maximum(rows[stored], columns[stored])
        table, changed = P.frame.values, P.frame.changed
        pairs = a * len(table) + b
        first = np.unique(pairs, return_index=True)[1]
        with changed:
            mine = first[np.isnan(table[a[first], b[first]])]
            table[a[mine], b[mine]] = _IN_PROGRESS
        try:
            new = self._evaluated(P, Q, i[stored[mine]], j[stored[mine]])
        except BaseException:
            new = np.full(len(mine), np.nan)  # threads that wait for them evaluate them
            raise
        finally:
            with changed:
                table[a[mine], b[mine]] = new
                changed.notify_all()
        with changed:
            changed.wait_for(lambda: not np.isinf(table[a[first], b[first]]).any())
            values[stored] = table[a, b]
        lost = np.isnan(values)
        if lost.any():  # another thread failed on them, and this one raises the same error
            values[lost] = self._evaluated(P, Q, i[lost], j[lost])
        return values

    def _evaluated(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return k_1(p_i, q_j), evaluated with the point first that entered the table first.

        Points beyond the table follow, in the order of their collections.  A function need not be
        symmetric in its last bits, and these must not depend on the order of tiles.
        """
        p, q = P.children[0], Q.children[0]
        size, values = P.frame.size, np.empty(len(i))
        rows, columns = P.arrays[0][i], Q.arrays[0][j]
        rows = np.where(rows < 0, size + P.index[i], rows)
        columns = np.where(columns < 0, size + Q.index[j], columns)
        swapped = rows > columns
        for chosen, left, right in ((~swapped, (p, i), (q, j)), (swapped, (q, j), (p, i))):
            if chosen.any():
                (a, at), (b, to) = left, right
                values[chosen] = self.kernel._pairs(a, b, at[chosen], to[chosen])
        return values

    # ------------------------------------------------------------------ a value like k_1

    def __eq__(self, other: object) -> bool:
        return self.kernel == (other.kernel if isinstance(other, Memoised) else other)

    def __hash__(self) -> int:
        return hash(self.kernel)

    def __reduce__(self) -> Any:
        return unwrap, (self.kernel,)  # files and copies hold the kernel alone

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of k_1."""
        return self.kernel.get_params(deep)

    def set_params(self, **params: Any) -> Self:
        """Return a new kernel with these parameters of k_1."""
        return replace(self, kernel=self.kernel.set_params(**params))

    @property
    def theta_names(self) -> list[str]:
        """The names of k_1."""
        return self.kernel.theta_names

    def _written(self, write: Function[[Any], str]) -> Written:
        return written(self.kernel, write)


def memoise(kernel: Kernel, n: int) -> Kernel:
    """Return the kernel with the values of each costly part stored, for up to n points.

    Inside of a memory scope, as every fit is one, the tables are reserved and emptied at its end.

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
    tables = Tables(n, _count_costly(kernel))
    reserve(table_bytes(kernel, n), release=tables.clear)
    return _memoise(kernel, tables)


def _memoise(kernel: Kernel, tables: Tables) -> Kernel:
    if not kernel.costly:
        return kernel
    costly = _costly_children(kernel)
    if costly:
        return kernel._with({p: _memoise(child, tables) for p, child in costly.items()})
    return Memoised(kernel, tables)


def unwrap(kernel: Kernel) -> Kernel:
    """Return the kernel that `memoise` was given.

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
    """Return the bytes of the tables of `memoise` for n points.

    Examples
    --------
    >>> from mercer.kernels import RBF, LocalAlignment, table_bytes
    >>> table_bytes(RBF(), 1000), table_bytes(LocalAlignment(), 1000)
    (0, 8000000)
    """
    return 8 * n * n * _count_costly(kernel)


def _costly_children(kernel: Kernel) -> dict[str, Kernel]:
    return {name: child for name, child in kernel._children() if child.costly}


def _count_costly(kernel: Kernel) -> int:
    """Return the number of costly nodes without costly children."""
    parts = _costly_children(kernel).values()
    return sum(map(_count_costly, parts)) if parts else int(kernel.costly)


_EXACT = (str, bytes, int, bool, complex, type(None))  # equal only if they are the same value


def _key(x: Any) -> Any:
    """Return a hashable value that two points share only if no kernel can tell them apart.

    That is more than equality: 1, 1.0 and True are equal, but a Python function may treat them in
    different ways.  Objects of unknown classes are identified by their id.
    """
    kind = type(x)
    if kind in _EXACT:
        return kind, x
    if kind is float:
        return kind, x.hex()  # tells 0.0 from -0.0, and NaN is equal to itself
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
    if is_table(x) and len(x.shape) == 1:  # a row or an entry of a data frame, new at each access
        names = x.index if hasattr(x, "index") else ()
        return kind, _key(x.name), tuple(map(_key, names)), tuple(map(_key, x))
    return kind, id(x)
