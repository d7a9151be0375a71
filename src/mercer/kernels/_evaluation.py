"""Evaluation of kernels: prepared points, and blocks of K together with their derivatives.

Tiles (rectangular blocks) of K are computed from points that the kernel has preprocessed once
(`Prepared`).  A `KernelLinearisation` is a block K = k(X, Z) with its derivatives with respect to
theta:

    total(W) = sum_ij W_ij K_ij,     pullback(W) = sum_ij W_ij dK_ij / d theta,
    products(V) = K V,               tangents(V) = (dK / d theta) V

All four methods share the same distances and exponentials, which are computed once per block.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .._core import Points, length, take

if TYPE_CHECKING:
    from ._base import Kernel

# {path of a parameter: derivative}, a number or an array; for a child, its part of theta.
ParameterGradients: TypeAlias = dict[str, Any]

_NO_PAIRS = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass(eq=False, slots=True)
class Prepared:
    """Points that a kernel has preprocessed, from which it computes tiles of K.

    Rows can be selected with slices, indices or masks, as in an array.

    `Kernel.prepare` returns it.  Only authors of new kernels construct it, in `_prepare`.

    Parameters
    ----------
    arrays : tuple, default=()
        Arrays or other collections with one row per point, from which `_tile` computes values.
    children : tuple of Prepared, default=()
        The same points, prepared by the child kernels.
    frame : object, default=None
        Data that both operands of a tile must share, such as a common centre, and that belong to
        the whole collection, not to single points.
    dtype : dtype, default=float64
        The precision in which tiles of these points should be computed, float32 or float64.
    source : object, optional
        An object that identifies the collection from which the rows were taken.  By default a new
        object, so that the rows are different from all other points.
    positions : range or ndarray of int of shape (n,), optional
        The positions of the rows in that collection.  Two rows are the *same point* if their
        source and position are the same; equal values are not sufficient.  By default 0, ...,
        n - 1.

    See Also
    --------
    Kernel.prepare : Returns the prepared points of a kernel.
    Kernel.tile : Computes kernel values of prepared points.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> P = RBF().prepare([[0.0], [1.0], [2.0]])
    >>> len(P), len(P[:2])
    (3, 2)
    """

    arrays: tuple[Any, ...] = ()
    children: tuple[Prepared, ...] = ()
    frame: Any = None
    dtype: DTypeLike = np.float64
    source: Any = field(default_factory=object)
    positions: Any = None
    cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.positions is None:
            self.positions = range(length(self.arrays[0]) if self.arrays else len(self.children[0]))
        self.dtype = np.dtype(self.dtype)

    @classmethod
    def from_children(cls, *children: Prepared, arrays: tuple[Any, ...] = ()) -> Self:
        """Return the prepared points of a kernel, given those of its child kernels.

        Parameters
        ----------
        *children : Prepared
            The same n points, prepared by each child kernel.  The precision is the highest of
            theirs.
        arrays : tuple, default=()
            Additional arrays of this kernel, with one row per point.

        Returns
        -------
        Prepared
            The n points, with the source and the positions of the first child.
        """
        dtype = np.result_type(*(c.dtype for c in children))
        return cls(arrays, children, None, dtype, children[0].source, children[0].positions)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def index(self) -> np.ndarray:
        """The positions of the rows in the source collection, an integer array of shape (n,)."""
        return np.asarray(self.positions, dtype=np.intp)

    def __getitem__(self, rows: Any) -> Prepared:
        return Prepared(
            tuple(take(a, rows) for a in self.arrays),
            tuple(c[rows] for c in self.children),
            self.frame,
            self.dtype,
            self.source,
            self.positions[rows] if isinstance(rows, slice) else self._positions_of(rows),
        )

    def _positions_of(self, rows: Any) -> np.ndarray:
        """Return the positions of some rows; a range is converted to an array only if necessary."""
        rows = np.asarray(rows)
        rows = rows if rows.size else rows.astype(np.intp)
        if isinstance(self.positions, range) and rows.dtype.kind == "i" and np.all(rows >= 0):
            return np.asarray(self.positions.start + self.positions.step * rows)
        positions: np.ndarray = self.index[rows]
        return positions

    def astype(self, dtype: DTypeLike) -> Prepared:
        """Return the same points in another precision.

        Parameters
        ----------
        dtype : dtype
            The precision, float32 or float64.  Floating-point arrays are rounded to it.

        Returns
        -------
        Prepared
            The n points with their arrays in this precision.
        """
        arrays = tuple(a.astype(dtype) if _is_numeric(a) else a for a in self.arrays)
        children = tuple(c.astype(dtype) for c in self.children)
        return replace(self, arrays=arrays, children=children, dtype=dtype)

    def cached(self, key: str, make: Function[[], Any]) -> Any:
        """Return a value that is computed once for these points and then reused by later tiles.

        Parameters
        ----------
        key : str
            The name of the value.
        make : callable
            The function without arguments that computes the value.  It is called only if there is
            no value of this name yet.

        Returns
        -------
        object
            The result of `make()`.
        """
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    def coincidences(self, other: Prepared) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of rows that are the same point of the same collection.

        Kernels need them where a formula is inaccurate or different for equal points; for example,
        `White` adds noise to these pairs only.

        Parameters
        ----------
        other : Prepared
            The other operand of a tile.

        Returns
        -------
        i, j : ndarray of int of shape (n_pairs,)
            Row i[t] of this operand and row j[t] of `other` are the same point.
        """
        if self.source is not other.source:
            return _NO_PAIRS
        a, b = self.positions, other.positions
        # Usually both operands are consecutive rows, so that their common positions are a range.
        if isinstance(a, range) and isinstance(b, range) and a.step == b.step == 1:
            common = np.arange(max(a.start, b.start), min(a.stop, b.stop))
            return common - a.start, common - b.start
        a, b = self.index, other.index
        order = np.argsort(b, kind="stable")
        first = np.searchsorted(b, a, side="left", sorter=order)
        count = np.searchsorted(b, a, side="right", sorter=order) - first
        i = np.repeat(np.arange(len(a)), count)  # a point may occur several times in `other`
        within = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
        return i, order[np.repeat(first, count) + within]


def _is_numeric(a: Any) -> bool:
    """Whether `a` is an array of floating-point numbers."""
    return hasattr(a, "dtype") and a.dtype in (np.float32, np.float64)


def prepare_pair(kernel: Kernel, X: Points, Z: Points = None) -> tuple[Prepared, Prepared]:
    """Prepare X and Z so that k(X, Z) can be computed from them; `Z=None` means X itself.

    Returns
    -------
    P, Q : Prepared
        The prepared points of X and Z.

    Examples
    --------
    >>> from mercer.kernels import RBF, prepare_pair
    >>> P, Q = prepare_pair(RBF(), [[0.0], [1.0]], [[2.0]])
    >>> len(P), len(Q)
    (2, 1)
    """
    if Z is None:
        P = kernel.prepare(X)
        return P, P
    if hasattr(Z, "tocsr") and not hasattr(X, "tocsr"):
        # Sparse points cannot be centred.  Prepare them first, so that the dense points are not
        # centred either.
        Q, P = prepare_pair(kernel, Z, X)
        return P, Q
    P = kernel.prepare(X)
    Q = kernel.prepare(Z, like=P)
    if Q.dtype != P.dtype and Q.dtype == np.float64:
        P = kernel.prepare(X, like=Q)  # Z requires float64, so X must use it, too
    return P, Q


# ---------------------------------------------------------------------- blocks with derivatives


# Step of the finite differences with respect to theta.  It balances truncation error and
# cancellation, so that about six digits are correct.
_STEP = 1e-6


class KernelLinearisation:
    """The block K = k(X, Z) with its derivatives with respect to theta, for any kernel.

    The tangents are finite differences with about six correct digits.  Subclasses for particular
    kernels compute them analytically.
    """

    def __init__(self, kernel: Kernel, X: Points, Z: Points) -> None:
        self.kernel, self.X, self.Z = kernel, X, Z

    @cached_property
    def values(self) -> np.ndarray:
        """The block k(X, Z), shape (n, m)."""
        return self.kernel(self.X, self.Z)

    def add_to(self, total: np.ndarray) -> None:
        """Add k(X, Z) to an array, in place."""
        total += self.values

    def total(self, W: np.ndarray) -> float:
        """Return sum_ij W_ij K_ij."""
        return float(np.sum(W * self.values))

    def pullback(self, W: np.ndarray) -> np.ndarray:
        """Return sum_ij W_ij dK_ij / d theta, shape (p,)."""
        return self.kernel.pullback(self.X, self.Z, W)

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Return K V, or K^T V if `transposed`."""
        return np.asarray((self.values.T if transposed else self.values) @ V)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Return (dK / d theta) V, shape (p, n, q), or (dK^T / d theta) V if `transposed`."""
        theta = self.kernel.theta
        rows = length(self.X) if self.Z is None or not transposed else length(self.Z)
        differences = np.empty((theta.size, rows, V.shape[1]))
        for i, step in enumerate(_STEP * np.eye(theta.size)):
            shifted = KernelLinearisation(self.kernel.with_theta(theta + step), self.X, self.Z)
            differences[i] = shifted.products(V, transposed) - self.products(V, transposed)
        return differences / _STEP


@singledispatch
def linearisation(kernel: Kernel, X: Points, Z: Points) -> KernelLinearisation:
    """Return the linearisation of a kernel; classes with a faster one register a function."""
    return KernelLinearisation(kernel, X, Z)


class SumLinearisation(KernelLinearisation):
    """The linearisation of a sum k_1 + ... + k_m; its theta concatenates those of the terms."""

    @cached_property
    def terms(self) -> list[KernelLinearisation]:
        """The linearisations of the terms."""
        return [child.linearise(self.X, self.Z) for _, child in self.kernel._children()]

    @cached_property
    def values(self) -> np.ndarray:
        total = np.array(self.terms[0].values)
        for term in self.terms[1:]:
            term.add_to(total)
        return total

    def total(self, W: np.ndarray) -> float:
        return sum(term.total(W) for term in self.terms)

    def pullback(self, W: np.ndarray) -> np.ndarray:
        return np.concatenate([term.pullback(W) for term in self.terms])

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return np.asarray(sum(term.products(V, transposed) for term in self.terms))

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return np.concatenate([term.tangents(V, transposed) for term in self.terms])


class ScaleLinearisation(KernelLinearisation):
    """The linearisation of c k_1; its derivative with respect to log c is c k_1 itself."""

    kernel: Any

    @cached_property
    def inner(self) -> KernelLinearisation:
        """The linearisation of k_1."""
        inner: KernelLinearisation = self.kernel.kernel.linearise(self.X, self.Z)
        return inner

    @cached_property
    def values(self) -> np.ndarray:
        values: np.ndarray = self.kernel.factor * self.inner.values
        return values

    def total(self, W: np.ndarray) -> float:
        total: float = self.kernel.factor * self.inner.total(W)
        return total

    def pullback(self, W: np.ndarray) -> np.ndarray:
        gradient: np.ndarray = self.kernel.factor * np.append(
            self.inner.pullback(W), self.inner.total(W)
        )
        return gradient

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        products: np.ndarray = self.kernel.factor * self.inner.products(V, transposed)
        return products

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        in_log_c = self.inner.products(V, transposed)[None]
        tangents = [self.inner.tangents(V, transposed), in_log_c]
        scaled: np.ndarray = self.kernel.factor * np.concatenate(tangents)
        return scaled
