"""A kernel that remembers its values, so that none is computed twice within a fit.

Solvers ask for the same entries of K more than once: rows of it, then its diagonal, then blocks of
landmarks.  For most kernels evaluating them again is cheaper than finding them; for a Python
function or a dynamic programme it is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable as Function
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import length
from ._base import Kernel, node
from ._callable import point
from ._claims import SAME, Claims
from ._fields import Written, written
from ._prepared import Prepared
from ._wrappers import Wrapper

__all__ = ["Memoised", "memoise", "table_bytes", "unwrap"]

_EVALUATING = np.inf  # marks an entry that some thread has taken on; NaN: nobody has


class Table:
    """The values of one kernel at pairs of up to `size` different points, as they become known."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.places: dict[Any, int] = {}
        self.kept: list[Any] = []  # so that the identity of a point is not given to another
        self.changed = threading.Condition()

    @cached_property
    def values(self) -> np.ndarray:
        """What is known, in the upper triangle."""
        return np.full((self.size, self.size), np.nan)

    def places_of(self, X: Any) -> np.ndarray:
        """Return the rows of points in the table; -1 for points for which there is no room."""
        found = np.empty(length(X), dtype=np.intp)
        with self.changed:
            for i in range(len(found)):
                x = point(X, i)
                name = _name(x)
                if name not in self.places and len(self.places) < self.size:
                    self.places[name] = len(self.places)
                    self.kept.append(x)
                found[i] = self.places.get(name, -1)
        return found


@node
class Memoised(Wrapper):
    """k(x, z) = k_1(x, z), where no pair of points is evaluated twice."""

    table: Any = None

    def _claims(self, *inner: Claims) -> Claims:
        return replace(inner[0], rule=SAME)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        inner = self.kernel._prepare(X, like.children[0] if like is not None else None)
        return Prepared(
            (self.table.places_of(X),),
            (inner,),
            dtype=inner.dtype,
            source=inner.source,
            places=inner.places,
        )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if self.kernel._by_blocks(Q.children[0]):
            self.kernel._tile(P.children[0], Q.children[0], out)
            return
        i, j = np.indices(out.shape).reshape(2, -1)
        out[...] = self._pairs(P, Q, i, j).reshape(out.shape)

    def _diag(self, X: Any) -> np.ndarray:
        return self._diag_prepared(self._prepare(X, None))

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        rows, columns = P.arrays[0][i], Q.arrays[0][j]
        values = np.empty(len(i))
        strange = (rows < 0) | (columns < 0)
        if strange.any():
            values[strange] = self._evaluated(P, Q, i[strange], j[strange])
        known = np.flatnonzero(~strange)
        if not known.size:
            return values
        a = np.minimum(rows[known], columns[known])  # k is symmetric: one of both is kept
        b = np.maximum(rows[known], columns[known])
        table, changed = self.table.values, self.table.changed
        pairs = a * len(table) + b
        first = np.unique(pairs, return_index=True)[1]
        with changed:
            mine = first[np.isnan(table[a[first], b[first]])]
            table[a[mine], b[mine]] = _EVALUATING
        try:
            new = self._evaluated(P, Q, i[known[mine]], j[known[mine]])
        except BaseException:
            new = np.full(len(mine), np.nan)  # others who wait for them will evaluate them
            raise
        finally:
            with changed:
                table[a[mine], b[mine]] = new
                changed.notify_all()
        with changed:
            changed.wait_for(lambda: not np.isinf(table[a[first], b[first]]).any())
            values[known] = table[a, b]
        lost = np.isnan(values)
        if lost.any():  # another thread failed on them: so will this one, with the same message
            values[lost] = self._evaluated(P, Q, i[lost], j[lost])
        return values

    def __reduce__(self) -> Any:
        return unwrap, (self.kernel,)  # what is stored or copied is the kernel alone

    def _written(self, write: Function[[Any], str]) -> Written:
        return written(self.kernel, write)

    def _evaluated(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return k_1(p_i, q_j), evaluated with the point first that the table knows longer.

        A function need not be symmetric in its last bits, and they must not depend on which tile
        comes first.
        """
        p, q = P.children[0], Q.children[0]
        swapped, values = P.arrays[0][i] > Q.arrays[0][j], np.empty(len(i))
        for chosen, left, right in ((~swapped, (p, i), (q, j)), (swapped, (q, j), (p, i))):
            if chosen.any():
                (a, at), (b, to) = left, right
                values[chosen] = self.kernel._pairs(a, b, at[chosen], to[chosen])
        return values


def memoise(kernel: Kernel, n: int, known: dict[Kernel, Kernel] | None = None) -> Kernel:
    """Return the kernel with each costly part made to remember its values at n points.

    Parts that are equal share what they remember; `known` are those met so far.

    Examples
    --------
    >>> from mercer.kernels import RBF, LocalAlignment, memoise
    >>> memoise(RBF(), 10)
    RBF(length_scale=1.0)
    >>> k = memoise(LocalAlignment(), 10)
    >>> k(["abc", "abd"]).shape
    (2, 2)
    """
    if not kernel.costly:
        return kernel
    known = {} if known is None else known
    costly = {name: child for name, child in kernel._children() if child.costly}
    if costly:
        return kernel.set_params(**{p: memoise(child, n, known) for p, child in costly.items()})
    return known.setdefault(kernel, Memoised(kernel, Table(n)))


def unwrap(kernel: Kernel) -> Kernel:
    """Return the kernel that `memoise` was given.

    Examples
    --------
    >>> from mercer.kernels import LocalAlignment, unwrap, memoise
    >>> k = 2.0 * LocalAlignment()
    >>> unwrap(memoise(k, 10)) == k
    True
    """
    if isinstance(kernel, Memoised):
        return kernel.kernel
    parts = {name: unwrap(child) for name, child in kernel._children() if child.costly}
    return kernel.set_params(**parts) if parts else kernel


def table_bytes(kernel: Kernel, n: int) -> int:
    """Return what `memoise` takes for n points.

    Examples
    --------
    >>> from mercer.kernels import RBF, LocalAlignment, table_bytes
    >>> table_bytes(RBF(), 1000), table_bytes(LocalAlignment(), 1000)
    (0, 8000000)
    """
    parts = [child for _, child in kernel._children() if child.costly]
    return sum(table_bytes(child, n) for child in parts) if parts else 8 * n * n * kernel.costly


def _name(x: Any) -> Any:
    """Return what a point is known by: its value if that can be had cheaply, else its identity."""
    if isinstance(x, (str, bytes, int, float, tuple, frozenset)):
        try:
            return type(x), hash(x), x
        except TypeError:  # a tuple of what has no hash
            return id(x)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return x.shape, x.dtype.str, x.tobytes()
    if sp.issparse(x):
        return x.shape, x.indices.tobytes(), x.data.tobytes()
    return id(x)
