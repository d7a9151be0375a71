"""Kernels on transformed points, k(x, z) = k_1(phi(x), phi(z)).

Positive definite whenever k_1 is, for any map phi of the points.  A new one needs
`_inner_points(X)`, the points phi(X), and `_pull(X, G)`, the vector-Jacobian product
sum_c G_ic dphi_c(x_i) / dx_i.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._points import as_vectors, column, is_table, length
from .._runtime import is_count
from ._base import Kernel, node, parameter
from ._claims import MAP, Claims
from ._features import pulled_back
from ._fields import name_of
from ._prepared import Prepared
from ._stationary import RBF
from ._vectors import VectorKernel, check_positive, check_scale, per_column
from ._wrappers import Wrapper

__all__ = ["Map", "Periodic", "Select", "Shift", "Stretch"]


@node
class _Mapped(Wrapper):
    """k(x, z) = k_1(phi(x), phi(z))."""

    _keeps_distances: ClassVar[bool] = True
    _linear: ClassVar[bool] = True  # phi is: polynomials of phi(x) are polynomials of x

    def _claims(self, *inner: Claims) -> Claims:
        (k,) = inner
        order = k.order if k.order in (0, 1) or self._linear else None
        if not self._injective and not k.proves(order or 0, self._width):
            order = None  # phi(x) may have more columns than k is known for
        return Claims.of(
            inner,
            MAP,
            order,
            strict=k.strict and self._injective,
            nonnegative=k.nonnegative,
            unit_diagonal=k.unit_diagonal,
            infinitely_divisible=k.infinitely_divisible,
            stationary=k.stationary and self._linear,
            columns=k.columns if self._injective else None,
            against=k.against if self._injective else None,
        )

    @property
    def _injective(self) -> bool:
        """Whether different points stay different, in as many columns as before."""
        return False

    @property
    def _width(self) -> float:
        """How many columns phi(x) has at most."""
        return np.inf

    @abstractmethod
    def _pull(self, X: Any, G: np.ndarray) -> np.ndarray:
        """Return sum_c G_ic dphi_c(x_i) / dx_i, shape (n, d)."""

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        return self._pull(X, super()._input_gradient(X, Z, W))


@node
class Select(_Mapped):
    """k(x, z) = k_1(x[columns], z[columns]): a kernel that sees some of the columns.

    Parameters
    ----------
    kernel : Kernel
        The kernel on the selected columns.
    columns : int, str, slice or list of them
        Places of columns, or, for the rows of a data frame (pandas or polars), their names.  A
        single name of a column that holds no numbers gives `kernel` its entries as they are:
        strings, sets, ...

    Examples
    --------
    >>> from mercer.kernels import Linear, Select
    >>> k = Select(Linear(), [0]) * Select(Linear(), [1, 2])
    >>> k([[2.0, 1.0, 1.0]], [[3.0, 1.0, 2.0]])
    array([[18.]])
    """

    columns: Any = None

    def _check(self) -> None:
        given = self.columns
        if isinstance(given, (str, slice)) or _is_place(given):
            return
        if np.ndim(given) != 1 or not len(given):
            raise TypeError(
                f"Select: columns must be places, names or a slice of columns, got {given!r}"
            )
        if not (all(map(_is_place, given)) or all(isinstance(c, str) for c in given)):
            raise TypeError(f"Select: columns must be all places or all names, got {given!r}")

    @property
    def domain(self) -> str:
        """Vectors, or nothing that is known: rows of a table have entries of all kinds."""
        return self.kernel.domain if self.on_vectors else ""

    @property
    def _width(self) -> float:
        return np.inf if isinstance(self.columns, slice) else float(np.size(self.columns))

    def _inner_points(self, X: Any) -> Any:
        X = X if hasattr(X, "shape") else as_vectors(X, "Select")
        X = X.tocsr() if sp.issparse(X) else X
        places = self._places(X)
        if is_table(X) and isinstance(self.columns, str):
            one = column(X, places[0])
            if getattr(one.dtype, "kind", one[:0].to_numpy().dtype.kind) not in "biuf":
                return one
        return X.iloc[:, places] if hasattr(X, "iloc") else X[:, places]

    def _reads_names(self) -> bool:
        named = np.asarray(self.columns).dtype.kind == "U"  # then points are rows of a data frame
        return named or self.kernel._reads_names()

    def _places(self, X: Any) -> list[int]:
        """Return the places of the columns in X, from 0."""
        if len(X.shape) != 2:
            raise ValueError(f"Select takes points with columns, got an array of shape {X.shape}")
        width = X.shape[1]
        if isinstance(self.columns, slice):
            return list(range(width))[self.columns]
        given = [self.columns] if np.ndim(self.columns) == 0 else list(self.columns)
        if isinstance(given[0], str):
            return self._places_of_names(X, given)
        places = [operator.index(c) for c in given]
        beyond = [c for c in places if not -width <= c < width]
        if beyond:
            raise ValueError(
                f"Select: there is no column {beyond[0]}, the points have {width} columns "
                f"(0 to {width - 1})"
            )
        return [c % width for c in places]

    @staticmethod
    def _places_of_names(X: Any, names: list[str]) -> list[int]:
        if not hasattr(X, "columns"):
            raise TypeError(
                f"Select: the columns {names} are named, but the points are the rows of "
                f"{type(X).__name__}, which has no names; pass a data frame, or give the places"
            )
        known = list(X.columns)
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"Select: there is no column {missing[0]!r} among {known}")
        return [known.index(name) for name in names]

    def _pull(self, X: Any, G: np.ndarray) -> np.ndarray:
        X = X if hasattr(X, "shape") else as_vectors(X, "Select")
        out = np.zeros((length(X), X.shape[1]))
        for place, g in zip(self._places(X), G.T, strict=True):
            out[:, place] += g  # a column may be selected twice
        return out


@node
class Stretch(_Mapped):
    """k(x, z) = k_1(x / l, z / l), with length scales l, one or one per column.

    Gives any kernel on vectors a tunable scale, or automatic relevance determination.

    Examples
    --------
    >>> from mercer.kernels import Linear, Stretch
    >>> Stretch(Linear(), length_scale=(1.0, 10.0))([[1.0, 10.0]], [[2.0, 10.0]])
    array([[3.]])
    """

    length_scale: Any = parameter(1.0)

    on_vectors: ClassVar[bool] = True

    def _check(self) -> None:
        if isinstance(self.length_scale, str):
            raise TypeError(
                f"Stretch: length_scale must be positive numbers, got {self.length_scale!r}"
            )
        check_scale("Stretch", "length_scale", self.length_scale, vector=True)

    @property
    def _injective(self) -> bool:
        return True

    def _inner_points(self, X: Any) -> Any:
        X = as_vectors(X, "Stretch")
        scale = per_column("Stretch", self.length_scale, X.shape[1])
        if sp.issparse(X):
            return sp.csr_array(X.multiply(1.0 / scale), dtype=X.dtype)
        return np.divide(X, scale, dtype=X.dtype, casting="same_kind")

    def _pull(self, X: Any, G: np.ndarray) -> np.ndarray:
        return G / per_column("Stretch", self.length_scale, G.shape[1])

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        # d/d log l of k(y, w), y = x / l, is -(y . d_1 k + w . d_2 k), d_2 k(y, w) = d_1 k(w, y)
        Y, V = self._both(X, Z)
        left, right = _both_gradients(self.kernel, Y, V, W)
        total = -_column_sums(Y, left) - _column_sums(Y if V is None else V, right)
        scalar = np.ndim(self.length_scale) == 0
        return {
            "kernel": self.kernel.pullback(Y, V, W),
            "length_scale": total.sum() if scalar else total,
        }


@node
class Shift(_Mapped):
    """k(x, z) = k_1(x - c, z - c), with an offset c for each column.

    A kernel that depends on x - z alone does not change.  The linear kernel keeps its distances in
    feature space, which are then computed without the digits that large points have in common:
    `KernelKMeans`, `KernelPCA` and the nearest neighbours use it for points far from the origin.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the differences x - c.
    offset : float or array-like of shape (n_features,)
        c.

    Examples
    --------
    >>> from mercer.kernels import Linear, Shift
    >>> Shift(Linear(), offset=(10.0, 20.0))([[11.0, 22.0]], [[13.0, 20.0]])
    array([[3.]])
    """

    offset: Any = 0.0

    on_vectors: ClassVar[bool] = True

    def _check(self) -> None:
        try:
            offset = np.asarray(self.offset, dtype=float)
        except (TypeError, ValueError):
            offset = np.full(1, np.nan)
        if offset.ndim > 1 or not offset.size or not np.isfinite(offset).all():
            raise ValueError(
                f"Shift: offset must be a finite number, or one for each column, got "
                f"{self.offset!r}"
            )
        if offset.ndim:
            object.__setattr__(self, "offset", tuple(offset.tolist()))

    @property
    def _injective(self) -> bool:
        return True

    def _claims(self, *inner: Claims) -> Claims:
        known = super()._claims(*inner)
        if known.against is None:
            return known
        missing = max(0, np.size(self.offset) - known.against.shape[1])
        points = np.pad(known.against, ((0, 0), (0, missing)))
        return replace(known, against=points + np.asarray(self.offset))

    def _inner_points(self, X: Any) -> Any:
        X = as_vectors(X, "Shift")
        X = X.toarray() if sp.issparse(X) else X
        return (X - self._per_column(X.shape[1])).astype(X.dtype, copy=False)

    def _pull(self, X: Any, G: np.ndarray) -> np.ndarray:
        return G

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        found = self.kernel._preimage(self._inner_points(X), C)
        if found is None or not isinstance(found, np.ndarray):
            return None
        return found + self._per_column(found.shape[1])

    def _about(self, X: Any) -> Kernel:
        return self

    def _per_column(self, columns: int) -> Any:
        return per_column("Shift", self.offset, columns, "offsets")


@node
class Map(_Mapped):
    """k(x, z) = k_1(phi(x), phi(z)) for any function phi, called on all points at once.

    `function(X)` returns as many points as X has, of whatever kind `kernel` takes.  If it has a
    method `pullback(X, G)` returning sum_c G_ic dphi_c(x_i) / dx_i, the kernel has gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, Map
    >>> Map(Linear(), np.log2)([[2.0, 4.0]], [[8.0, 2.0]])
    array([[5.]])
    """

    function: Any = None

    on_vectors: ClassVar[bool] = False  # whatever the function takes
    domain: ClassVar[str] = ""
    _linear: ClassVar[bool] = False

    def _check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"Map needs a function of the points, got {self.function!r}")

    def _inner_points(self, X: Any) -> Any:
        points = self.function(X)
        if length(points) != length(X):
            raise ValueError(
                f"Map: {name_of(self.function)} returned {length(points)} points for {length(X)}; "
                f"it must map each point to one"
            )
        return points

    def _pull(self, X: Any, G: np.ndarray) -> np.ndarray:
        return pulled_back("Map", self.function, X, G, "k(phi(x), phi(z))")


@node
class Periodic(VectorKernel):
    """k(x, z) = exp(-2 sum_c sin^2(pi (x_c - z_c) / period) / l^2).

    The RBF of points wound around circles, [cos(2 pi x / period), sin(2 pi x / period)], whose
    squared distance is 4 sin^2(pi (x - z) / period).  It is evaluated as one, and is a kernel
    because the RBF is.

    The textbook form has the Euclidean distance |x - z| inside the sine (scikit-learn's
    `ExpSineSquared`).  With one column it is the same; with more it is not a Mercer kernel: points
    one period apart, in whatever direction, would be equal in feature space, and then so would
    any two points that share such a neighbour, which all close ones do.

    Examples
    --------
    >>> from mercer.kernels import Periodic
    >>> Periodic(period=2.0)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])
    """

    _latex: ClassVar[str] = (
        r"\exp\left(-\frac{2}{<length_scale>^2} "
        r"\sum_c \sin^2 \frac{\pi (x_c - z_c)}{<period>}\right)"
    )

    period: float = parameter(1.0)
    length_scale: float = parameter(1.0)

    diagonal_bound: ClassVar[float] = 1.0

    def _claims(self, *inner: Claims) -> Claims:
        rule = f"{MAP}, an RBF of points wound around circles"
        known = {"nonnegative": True, "unit_diagonal": True, "infinitely_divisible": True}
        return Claims(rule, 0, stationary=True, **known)

    def _check(self) -> None:
        check_positive("Periodic", "period", self.period)
        check_positive("Periodic", "length_scale", self.length_scale)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        frame = like.children[0] if like is not None else None
        X = self._vectors(X)
        if frame is not None:
            self._same_width(frame.frame.columns // 2, X.shape[1])
        return Prepared.around(self._circular()._prepare(self._circles(X), frame))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._circular()._tile(P.children[0], Q.children[0], out)

    def _diag(self, X: Any) -> np.ndarray:
        return self._circular().diag(self._circles(self._vectors(X)))

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        # the angles 2 pi x / period move by minus themselves with log period, on both sides
        (A, B), (C, D) = self._operands(X, Z), self._both(X, Z)
        left, right = _both_gradients(self._circular(), C, D, W)
        moved = _column_sums(A, self._turn(C, left)).sum()
        moved += _column_sums(B, self._turn(C if D is None else D, right)).sum()
        return {"period": -moved, "length_scale": self._circular().pullback(C, D, W)[0]}

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        C, D = self._both(X, Z)
        return self._turn(C, self._circular().input_gradient(C, D, W))

    def _circular(self) -> RBF:
        return RBF(length_scale=float(self.length_scale))

    def _both(self, X: Any, Z: Any) -> tuple[np.ndarray, np.ndarray | None]:
        A, B = self._operands(X, Z)
        return self._circles(A), None if Z is None else self._circles(B)

    def _circles(self, X: Any) -> np.ndarray:
        """Return [cos u, sin u], u = 2 pi x / period, with whole turns taken off exactly."""
        dense = X.toarray() if sp.issparse(X) else X
        u = np.fmod(dense.astype(np.float64, copy=False), self.period)
        u *= 2.0 * np.pi / self.period
        return np.concatenate([np.cos(u), np.sin(u)], axis=1).astype(X.dtype, copy=False)

    def _turn(self, C: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the gradient in x of a function with gradient G in the points [cos u, sin u]."""
        d = C.shape[1] // 2
        return (2.0 * np.pi / self.period) * (C[:, :d] * G[:, d:] - C[:, d:] * G[:, :d])


def _is_place(value: Any) -> bool:
    return is_count(value, -math.inf)


def _both_gradients(kernel: Kernel, X: Any, Z: Any, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_j W_ij dk(x_i, z_j) / dx_i and sum_i W_ij dk(x_i, z_j) / dz_j.

    The second is the first of the transposed block, because k is symmetric.
    """
    left = kernel.input_gradient(X, Z, W)
    if Z is None:
        return left, kernel.input_gradient(X, None, W.T)
    return left, kernel.input_gradient(Z, X, W.T)


def _column_sums(Y: Any, G: np.ndarray) -> np.ndarray:
    """Return sum_i Y_ic G_ic for every column c."""
    return np.asarray((Y.multiply(G) if sp.issparse(Y) else Y * G).sum(axis=0)).ravel()
