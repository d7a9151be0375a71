"""Points made ready for tiles, once per operand."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._points import length, take

if TYPE_CHECKING:
    from ._base import Kernel

__all__ = ["Prepared", "pair"]

_NOWHERE = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass(eq=False, slots=True)
class Prepared:
    """Points made ready for tiles.

    Parameters
    ----------
    arrays : tuple
        Row-aligned collections, sliced together.
    children : tuple of Prepared
        What the child kernels prepared, row-aligned too.
    frame : object
        What both operands of a tile must share (a centre, say); not row-aligned.
    dtype : dtype
        The precision in which tiles of these points are worth computing.
    source, places
        Which collection the rows come from, and their places in it (a range as long as rows are
        taken by slices): two rows are the *same point* when both agree, not when their values
        happen to.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> P = RBF().prepare([[0.0], [1.0], [2.0]])
    >>> len(P), len(P[:2])
    (3, 2)
    """

    arrays: tuple = ()
    children: tuple[Prepared, ...] = ()
    frame: Any = None
    dtype: Any = np.float64
    source: Any = field(default_factory=object)
    places: Any = None
    memo: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.places is None:
            self.places = range(length(self.arrays[0]) if self.arrays else len(self.children[0]))
        self.dtype = np.dtype(self.dtype)

    @classmethod
    def around(cls, *children: Prepared, arrays: tuple = ()) -> Self:
        """Return the Prepared of a node over children, with arrays of its own if it has any."""
        dtype = np.result_type(*(c.dtype for c in children))
        return cls(arrays, children, None, dtype, children[0].source, children[0].places)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def index(self) -> np.ndarray:
        """The places of the rows in their collection, as an array."""
        return np.asarray(self.places, dtype=np.intp)

    def __getitem__(self, rows: Any) -> Prepared:
        return Prepared(
            tuple(take(a, rows) for a in self.arrays),
            tuple(c[rows] for c in self.children),
            self.frame,
            self.dtype,
            self.source,
            self.places[rows] if isinstance(rows, slice) else self._places(rows),
        )

    def _places(self, rows: Any) -> np.ndarray:
        """Return the places of some rows; a range is not written out if it need not be."""
        rows = np.asarray(rows)
        rows = rows if rows.size else rows.astype(np.intp)
        if isinstance(self.places, range) and rows.dtype.kind == "i" and np.all(rows >= 0):
            return np.asarray(self.places.start + self.places.step * rows)
        return self.index[rows]

    def astype(self, dtype: Any) -> Prepared:
        """Return the same points in another precision: the arrays of numbers are rounded to it."""
        arrays = tuple(a.astype(dtype) if _is_numeric(a) else a for a in self.arrays)
        children = tuple(c.astype(dtype) for c in self.children)
        return replace(self, arrays=arrays, children=children, dtype=dtype)

    def once(self, key: str, make: Function[[], Any]) -> Any:
        """Return `make()`, computed at the first call and kept with these rows."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def coincidences(self, other: Prepared) -> tuple[np.ndarray, np.ndarray]:
        """Return the (i, j) for which row i here and row j of `other` are the same point."""
        if self.source is not other.source:
            return _NOWHERE
        a, b = self.places, other.places
        if isinstance(a, range) and isinstance(b, range) and a.step == b.step == 1:  # as in tiles
            common = np.arange(max(a.start, b.start), min(a.stop, b.stop))
            return common - a.start, common - b.start
        a, b = self.index, other.index
        order = np.argsort(b, kind="stable")
        first = np.searchsorted(b, a, side="left", sorter=order)
        count = np.searchsorted(b, a, side="right", sorter=order) - first
        i = np.repeat(np.arange(len(a)), count)  # a point may have been taken several times
        within = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
        return i, order[np.repeat(first, count) + within]


def _is_numeric(a: Any) -> bool:
    return hasattr(a, "dtype") and a.dtype in (np.float32, np.float64)


def pair(kernel: Kernel, X: Any, Z: Any = None) -> tuple[Prepared, Prepared]:
    """Prepare both operands of k(X, Z) in one frame; `Z=None` means X itself.

    Examples
    --------
    >>> from mercer.kernels import RBF, pair
    >>> P, Q = pair(RBF(), [[0.0], [1.0]], [[2.0]])
    >>> len(P), len(Q)
    (2, 1)
    """
    if Z is None:
        P = kernel.prepare(X)
        return P, P
    if hasattr(Z, "tocsr") and not hasattr(X, "tocsr"):
        # A sparse operand cannot be centred, so it sets the frame for the dense one.
        Q, P = pair(kernel, Z, X)
        return P, Q
    P = kernel.prepare(X)
    Q = kernel.prepare(Z, like=P)
    if Q.dtype != P.dtype and Q.dtype == np.float64:
        P = kernel.prepare(X, like=Q)  # Z needs the precision: X gets it too
    return P, Q
