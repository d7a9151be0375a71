"""Kernels on transformed points, k(x, z) = k_1(phi(x), phi(z)), and the periodic kernel.

Such a kernel is positive semidefinite whenever k_1 is, for any function phi.  A subclass of
`TransformedPoints` implements two methods: `_transform(X)` returns the points phi(X), and
`_vjp(X, G)` returns the vector-Jacobian product sum_c G_ic dphi_c(x_i) / dx_i.
"""

from __future__ import annotations

import difflib
import math
import operator
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..._core import Points, as_vectors, get_column, is_count, is_table, length
from .._base import Kernel, node, parameter
from .._dataclass import callable_name
from .._evaluation import ParameterGradients, Prepared
from .._parameter_checks import positive
from .._properties import MAP, Domain, Properties
from ..features._feature_kernels import function_pullback
from ..vectors._bandwidth_rules import scales_or_rule
from ..vectors._radial_kernels import RBF
from ..vectors._vector_kernel import VectorKernel, scalar_or_per_column
from ._wrappers import Wrapper


@node
class TransformedPoints(Wrapper):
    """Base class of the kernels k(x, z) = k_1(phi(x), phi(z))."""

    _is_linear: ClassVar[bool] = True  # whether phi is a linear function plus a constant
    # Whether phi is injective and phi(x) has as many columns as x.
    _injective: ClassVar[bool] = False

    def _properties(self, *inner: Properties) -> Properties:
        (k,) = inner
        order = k.order if k.order in (0, 1) or self._is_linear else None
        if not self._injective and not k.proves(order or 0, self._max_columns):
            order = None  # phi(x) may have more columns than the proof for k_1 allows
        stationary = k.stationary and self._is_linear
        if self._injective:
            return k.derived(MAP, order, stationary=stationary)
        unknown = {"strict": False, "columns": None, "against": None}
        return k.derived(MAP, order, stationary=stationary, **unknown)

    @property
    def _max_columns(self) -> float:
        """An upper bound on the number of columns of phi(x)."""
        return np.inf

    @abstractmethod
    def _transform(self, X: Points) -> Points:
        """Return the points phi(X)."""

    def _inner_points(self, X: Points) -> tuple[Points, None]:
        return self._transform(X), None

    @abstractmethod
    def _vjp(self, X: Points, G: np.ndarray) -> np.ndarray:
        """Return the vector-Jacobian product sum_c G_ic dphi_c(x_i) / dx_i, shape (n, d)."""

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        return self._vjp(X, super()._input_gradient(X, Z, W))


@node
class Select(TransformedPoints):
    """Apply a kernel to some of the columns only.

        k(x, z) = k_1(x[columns], z[columns])

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 on the selected columns.
    columns : int, str, slice, list of int or list of str
        The indices of the columns or, for a data frame (pandas or polars), their names.  If a
        single name selects a column that is not numeric, `kernel` receives its values (for example
        strings or sets) unchanged.  Rules such as `RBF("median")` are computed from the selected
        columns.

    See Also
    --------
    Stretch : Weights of the columns instead of a selection.
    Map : Any function of the points.
    Product : Combines kernels of different columns.

    Examples
    --------
    >>> from mercer.kernels import Linear, Select
    >>> k = Select(Linear(), [0]) * Select(Linear(), [1, 2])
    >>> k([[2.0, 1.0, 1.0]], [[3.0, 1.0, 2.0]])
    array([[18.]])

    Numbers, a category and a text in one expression:

    >>> import pandas as pd
    >>> from mercer.kernels import RBF, Equal, Normalized, Spectrum
    >>> X = pd.DataFrame({"age": [30, 40, 31], "sex": ["f", "m", "f"], "note": ["abc", "abd", ""]})
    >>> k = Select(RBF(10.0), "age") * Select(Equal(), "sex")
    >>> k += Select(Normalized(Spectrum(2)), "note")
    >>> k(X).round(3)
    array([[2.   , 0.5  , 0.995],
           [0.5  , 2.   , 0.   ],
           [0.995, 0.   , 1.   ]])
    """

    columns: Any = None

    def _check(self) -> None:
        columns = self.columns
        if isinstance(columns, (str, slice)) or _is_column_index(columns):
            return
        if np.ndim(columns) != 1 or not len(columns):
            raise TypeError(
                f"Select: columns must be column indices, names or a slice, got {columns!r}"
            )
        if not (all(map(_is_column_index, columns)) or all(isinstance(c, str) for c in columns)):
            raise TypeError(f"Select: columns must be all indices or all names, got {columns!r}")

    def _domain(self, *inner: Domain) -> Domain:
        # Names are possible only if the points are the rows of a data frame.
        by_name = inner[0].selects_by_name or np.asarray(self.columns).dtype.kind == "U"
        objects = inner[0].selects_objects or not inner[0].accepts_matrix
        on_vectors = inner[0].on_vectors and not by_name
        # Tables with other columns have no common kind of points.
        kind = inner[0].kind if on_vectors else ""
        return replace(
            inner[0],
            kind=kind,
            on_vectors=on_vectors,
            selects_by_name=by_name,
            selects_objects=objects,
        )

    @property
    def _max_columns(self) -> float:
        return np.inf if isinstance(self.columns, slice) else float(np.size(self.columns))

    def _transform(self, X: Points) -> Points:
        X = self._as_rows(X)
        X = X.tocsr() if sp.issparse(X) else X
        indices = self._column_indices(X)
        if is_table(X) and self.kernel.domain.on_vectors:
            self._reject_missing(X, indices)
        if is_table(X) and isinstance(self.columns, str):
            values = get_column(X, indices[0])
            if getattr(values.dtype, "kind", values[:0].to_numpy().dtype.kind) not in "biuf":
                return values
        return X.iloc[:, indices] if hasattr(X, "iloc") else X[:, indices]

    def _as_rows(self, X: Points) -> Points:
        """Return points without a shape, such as a list of rows, as an array."""
        if hasattr(X, "shape"):
            return X
        try:
            is_numeric = np.asarray(X).dtype.kind in "biuf"
        except ValueError:  # the rows have different lengths
            is_numeric = True
        return as_vectors(X, "Select") if is_numeric else np.array(X, dtype=object)

    def _reject_missing(self, X: Points, indices: list[int]) -> None:
        """Raise a ValueError if a selected column has missing values, because they have no number.

        scikit-learn's message would not name the columns.
        """
        counts = {X.columns[j]: _count_missing(get_column(X, j)) for j in indices}
        missing = {name: count for name, count in counts.items() if count}
        if missing:
            listed = ", ".join(f"column {name!r} ({count})" for name, count in missing.items())
            raise ValueError(
                f"Select: values are missing in {listed} of the {length(X)} rows, but the kernel "
                f"{self.kernel} needs numbers. Replace them, for example by the mean of the column "
                f"(sklearn.impute.SimpleImputer), or drop these rows; only kernels on categories, "
                f"such as Equal(), accept missing values"
            )

    def _column_indices(self, X: Points) -> list[int]:
        """Return the indices of the selected columns in X, all >= 0."""
        if len(X.shape) != 2:
            raise ValueError(
                f"Select requires points with columns, got an array of shape {X.shape}"
            )
        width = X.shape[1]
        if isinstance(self.columns, slice):
            return list(range(width))[self.columns]
        columns = [self.columns] if np.ndim(self.columns) == 0 else list(self.columns)
        if isinstance(columns[0], str):
            return self._indices_of_names(X, columns)
        indices = [operator.index(c) for c in columns]
        invalid = [c for c in indices if not -width <= c < width]
        if invalid:
            raise ValueError(
                f"Select: there is no column {invalid[0]}; the points have {width} columns "
                f"(0 to {width - 1})"
            )
        return [c % width for c in indices]

    @staticmethod
    def _indices_of_names(X: Points, names: list[str]) -> list[int]:
        if not hasattr(X, "columns"):
            raise TypeError(
                f"Select: the columns {names} are selected by name, but the points are "
                f"{type(X).__name__}, which has no column names; pass a data frame, or select "
                f"columns by index"
            )
        known = list(X.columns)
        for name in names:
            if name not in known:
                raise ValueError(_unknown_column(name, known))
            if known.count(name) > 1:
                raise ValueError(
                    f"Select: {known.count(name)} columns have the name {name!r}; rename them, or "
                    f"select columns by index"
                )
        return [known.index(name) for name in names]

    def _vjp(self, X: Points, G: np.ndarray) -> np.ndarray:
        X = self._as_rows(X)
        out = np.zeros((length(X), X.shape[1]))
        for index, g in zip(self._column_indices(X), G.T, strict=True):
            out[:, index] += g  # a column may be selected twice
        return out


@node
class Stretch(TransformedPoints):
    """Divide the points by a length scale before a kernel is applied.

        k(x, z) = k_1(x / l, z / l)

    This adds a tunable length scale to any kernel on vectors.  With one length scale per column it
    performs automatic relevance determination (ARD).

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 on the scaled points.
    length_scale : float or array-like of shape (d,), default=1.0
        The length scale l > 0, one number or one number per column.  Tunable.  Start with the
        standard deviations of the columns.

    See Also
    --------
    Select : Uses some of the columns only.
    LinearMap : Multiplies by a matrix.
    Shift : Subtracts an offset.
    RBF : Has its own length scale, one number or one per column.

    References
    ----------
    Neal, "Bayesian learning for neural networks", Springer, 1996 (automatic relevance
    determination). Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press,
    2006, section 5.1.

    Examples
    --------
    >>> from mercer.kernels import Linear, Stretch
    >>> Stretch(Linear(), length_scale=(1.0, 10.0))([[1.0, 10.0]], [[2.0, 10.0]])
    array([[3.]])
    """

    length_scale: Any = parameter(1.0)

    _injective: ClassVar[bool] = True

    def _domain(self, *inner: Domain) -> Domain:
        return replace(inner[0], on_vectors=True)

    def _check(self) -> None:
        if isinstance(self.length_scale, str):
            raise TypeError(
                f"Stretch: length_scale must be positive numbers, got {self.length_scale!r}"
            )
        scales_or_rule("Stretch", "length_scale", self.length_scale)

    def _transform(self, X: Points) -> Points:
        X = as_vectors(X, "Stretch")
        scale = scalar_or_per_column("Stretch", self.length_scale, X.shape[1])
        if sp.issparse(X):
            return sp.csr_array(X.multiply(1.0 / scale), dtype=X.dtype)
        return np.divide(X, scale, dtype=X.dtype, casting="same_kind")

    def _vjp(self, X: Points, G: np.ndarray) -> np.ndarray:
        return G / scalar_or_per_column("Stretch", self.length_scale, G.shape[1])

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        # With y = x / l and w = z / l, the derivative of k_1(y, w) with respect to log l is
        # -(y . dk_1/dy + w . dk_1/dw), and by symmetry dk_1/dw is dk_1/dy at (w, y).
        Y, V = self._both(X, Z)
        left, right = _both_gradients(self.kernel, Y, V, W)
        total = -_column_sums(Y, left) - _column_sums(Y if V is None else V, right)
        scalar = np.ndim(self.length_scale) == 0
        return {
            "kernel": self.kernel.pullback(Y, V, W),
            "length_scale": total.sum() if scalar else total,
        }


@node
class Shift(TransformedPoints):
    """Subtract an offset from the points before a kernel is applied.

        k(x, z) = k_1(x - c, z - c)

    This does not change a stationary kernel, which depends only on x - z.  For the linear kernel,
    it does not change the distances in feature space, but they are computed with less cancellation.
    `KernelKMeans`, `KernelPCA` and the nearest-neighbour estimators therefore use it for points
    that are far from the origin.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 on the shifted points.
    offset : float or array-like of shape (d,), default=0.0
        The offset c, one number or one number per column.  Usually the mean or the median of the
        training points.

    See Also
    --------
    Stretch : Divides the points by a length scale.
    Map : Any function of the points.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import Linear, Shift
    >>> Shift(Linear(), offset=(10.0, 20.0))([[11.0, 22.0]], [[13.0, 20.0]])
    array([[3.]])
    """

    offset: Any = 0.0

    _injective: ClassVar[bool] = True

    def _domain(self, *inner: Domain) -> Domain:
        return replace(inner[0], on_vectors=True)

    def _check(self) -> None:
        try:
            offset = np.asarray(self.offset, dtype=float)
        except (TypeError, ValueError):
            offset = np.full(1, np.nan)
        if offset.ndim > 1 or not offset.size or not np.isfinite(offset).all():
            raise ValueError(
                f"Shift: offset must be a finite number, or one per column, got {self.offset!r}"
            )
        if offset.ndim:
            object.__setattr__(self, "offset", tuple(offset.tolist()))

    def _properties(self, *inner: Properties) -> Properties:
        known = super()._properties(*inner)
        if known.against is None:
            return known
        missing = max(0, np.size(self.offset) - known.against.shape[1])
        points = np.pad(known.against, ((0, 0), (0, missing)))
        return replace(known, against=points + np.asarray(self.offset))

    def _transform(self, X: Points) -> Points:
        X = as_vectors(X, "Shift")
        X = X.toarray() if sp.issparse(X) else X
        return (X - self._per_column(X.shape[1])).astype(X.dtype, copy=False)

    def _vjp(self, X: Points, G: np.ndarray) -> np.ndarray:
        return G

    def _per_column(self, columns: int) -> float | np.ndarray:
        return scalar_or_per_column("Shift", self.offset, columns, "offsets")


@node
class LinearMap(TransformedPoints):
    """Apply a kernel to the products of the points with a matrix, such as a learned metric.

        k(x, z) = k_1(A^T x, A^T z)

    A radial kernel k_1 becomes a function of the Mahalanobis distance with the metric M = A A^T,
    |A^T (x - z)|^2 = (x - z)^T M (x - z).  If A has fewer columns than rows, the kernel ignores
    the directions that are orthogonal to the columns of A.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 on the mapped points, which have r columns.
    A : array-like of shape (d, r)
        The matrix.  It is not tunable.

    See Also
    --------
    Stretch : A is diagonal, with tunable length scales.
    Bilinear : The inner product x^T M z.
    mercer.RFMRegressor : Learns A from the gradients of the fitted function.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural networks
    and backpropagation-free machine learning models", Science 383, 2024.

    Examples
    --------
    >>> from mercer.kernels import RBF, LinearMap
    >>> k = LinearMap(RBF(), A=[[1.0], [1.0]])  # depends only on x_1 + x_2
    >>> k([[1.0, 2.0]], [[2.0, 1.0], [2.0, 2.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    A: Any = ()

    def _check(self) -> None:
        A = np.array(self.A, dtype=float)  # a copy, which is read-only
        if A.ndim != 2 or not A.size:
            raise ValueError(f"LinearMap: A must have shape (d, r), got {A.shape}")
        if not np.isfinite(A).all():
            raise ValueError("LinearMap: A contains NaN or infinite entries")
        A.setflags(write=False)
        object.__setattr__(self, "A", A)

    def _domain(self, *inner: Domain) -> Domain:
        return replace(inner[0], kind="vectors", on_vectors=True)

    @property
    def _max_columns(self) -> float:
        return float(self.A.shape[1])

    def _transform(self, X: Points) -> Points:
        X = as_vectors(X, "LinearMap")
        if X.shape[1] != len(self.A):
            raise ValueError(
                f"LinearMap: A has {len(self.A)} rows, but the points have {X.shape[1]} columns"
            )
        return np.asarray(X @ self.A.astype(X.dtype, copy=False))

    def _vjp(self, X: Points, G: np.ndarray) -> np.ndarray:
        return np.asarray(G @ self.A.T)


@node
class Map(TransformedPoints):
    """Apply a function to the points before a kernel is applied.

        k(x, z) = k_1(phi(x), phi(z))

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 on the transformed points.
    function : callable
        The function phi, which is called with all points at once.  `function(X)` must return one
        transformed point for each point of X, in a form that `kernel` accepts.  If it has a method
        `pullback(X, G)` that returns sum_c G_ic dphi_c(x_i) / dx_i, the kernel is differentiable
        with respect to its points.

    See Also
    --------
    Features : The inner product of features, the same as `Map(Linear(), basis)`.
    Select : Selects columns.
    Callable : A kernel that is itself a function of two points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, Map
    >>> Map(Linear(), np.log2)([[2.0, 4.0]], [[8.0, 2.0]])
    array([[5.]])
    """

    function: Any = None

    _is_linear: ClassVar[bool] = False

    def _domain(self, *inner: Domain) -> Domain:
        # The points may be anything that the function accepts.
        return replace(inner[0], kind="", on_vectors=False)

    def _check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"Map needs a function of the points, got {self.function!r}")

    def _transform(self, X: Points) -> Points:
        points = self.function(X)
        if length(points) != length(X):
            raise ValueError(
                f"Map: {callable_name(self.function)} returned {length(points)} points "
                f"for {length(X)}; "
                f"it must return one point for each point"
            )
        return points

    def _vjp(self, X: Points, G: np.ndarray) -> np.ndarray:
        return function_pullback("Map", self.function, X, G, "k(phi(x), phi(z))")


@node
class Periodic(VectorKernel):
    """Periodic kernel, for functions that repeat with a known or learned period.

        k(x, z) = exp(-2 sum_c sin^2(pi (x_c - z_c) / period) / l^2)

    Parameters
    ----------
    period : float, default=1.0
        The period, > 0, the same for all columns.  Tunable.  Set it to a known period, such as 12
        for monthly data, because a search for an unknown period has many local optima.
    length_scale : float, default=1.0
        The length scale l > 0.  Tunable.  If it is small, functions can vary more within one
        period; 0.5 to 2 is usual.

    See Also
    --------
    RBF : For functions that do not repeat; `Periodic() * RBF()` repeats with slow changes.
    FourierBasis : Cosines and sines of given frequencies as explicit features.

    Notes
    -----
    The kernel is an RBF of points on circles, [cos(2 pi x / period), sin(2 pi x / period)], which
    have the squared distance 4 sin^2(pi (x - z) / period).  It is evaluated in this form, which
    also proves that it is positive definite.

    scikit-learn's `ExpSineSquared` has the Euclidean distance |x - z| inside the sine.  For one
    column both are equal.  For more columns `ExpSineSquared` is not a Mercer kernel: all points at
    a distance of one period from x would have the same feature vector as x, and therefore k = 1
    with each other, although their distances are arbitrary.

    References
    ----------
    MacKay, "Introduction to Gaussian processes", in Neural Networks and Machine Learning, Springer,
    1998. Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press, 2006,
    section 4.2.

    Examples
    --------
    >>> from mercer.kernels import Periodic
    >>> Periodic(period=2.0)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])
    """

    period: float = parameter(1.0, positive)
    length_scale: float = parameter(1.0, positive)

    def _properties(self, *inner: Properties) -> Properties:
        return Properties.exponential(f"{MAP}, an RBF of points on circles", stationary=True)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        frame = like.children[0] if like is not None else None
        X = self._vectors(X)
        if frame is not None:
            self._check_same_columns(frame.frame.columns // 2, X.shape[1])
        return Prepared.from_children(self._rbf()._prepare(self._on_circles(X), frame))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._rbf()._tile(P.children[0], Q.children[0], out)

    def _diag(self, X: Points) -> np.ndarray:
        return self._rbf().diag(self._on_circles(self._vectors(X)))

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        # The derivative of the angle u = 2 pi x / period with respect to log period is -u; this
        # holds for both arguments of k.
        (A, B), (C, D) = self._operands(X, Z), self._both(X, Z)
        left, right = _both_gradients(self._rbf(), C, D, W)
        total = _column_sums(A, self._gradient_from_circles(C, left)).sum()
        total += _column_sums(B, self._gradient_from_circles(C if D is None else D, right)).sum()
        return {"period": -total, "length_scale": self._rbf().pullback(C, D, W)[0]}

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        C, D = self._both(X, Z)
        return self._gradient_from_circles(C, self._rbf().input_gradient(C, D, W))

    def _rbf(self) -> RBF:
        """Return the RBF that is evaluated at the points on circles."""
        return RBF(length_scale=float(self.length_scale))

    def _both(self, X: Points, Z: Points) -> tuple[np.ndarray, np.ndarray | None]:
        A, B = self._operands(X, Z)
        return self._on_circles(A), None if Z is None else self._on_circles(B)

    def _on_circles(self, X: Points) -> np.ndarray:
        """Return [cos u, sin u] for u = 2 pi x / period; x is first reduced modulo the period."""
        dense = X.toarray() if sp.issparse(X) else X
        u = np.fmod(dense.astype(np.float64, copy=False), self.period)
        u *= 2.0 * np.pi / self.period
        return np.concatenate([np.cos(u), np.sin(u)], axis=1).astype(X.dtype, copy=False)

    def _gradient_from_circles(self, C: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Convert a gradient G with respect to [cos u, sin u] to a gradient with respect to x."""
        d = C.shape[1] // 2
        gradient: np.ndarray = (2.0 * np.pi / self.period) * (
            C[:, :d] * G[:, d:] - C[:, d:] * G[:, :d]
        )
        return gradient


_MAX_LISTED_COLUMNS = 12  # number of column names in an error message


def _unknown_column(name: str, known: list[Any]) -> str:
    """Return the message for a column name that does not occur, with the most similar name."""
    lower = {str(other).lower(): other for other in reversed(known)}
    similar = difflib.get_close_matches(name.lower(), lower, 1)
    hint = f"; did you mean {lower[similar[0]]!r}?" if similar else ""
    listed = ", ".join(map(repr, known[:_MAX_LISTED_COLUMNS]))
    more = len(known) - _MAX_LISTED_COLUMNS
    return (
        f"Select: there is no column {name!r} among {listed}"
        f"{f' and {more} others' if more > 0 else ''}{hint}"
    )


def _count_missing(column: Any) -> int:
    """Return the number of missing values (null, NaN) in a numeric column; 0 for other columns."""
    kind = getattr(column.dtype, "kind", None) or column[:0].to_numpy().dtype.kind
    if kind not in "biuf":
        return 0
    if hasattr(column, "isna"):
        return int(column.isna().sum())
    return int(column.null_count() + (column.is_nan().sum() if kind == "f" else 0))


def _is_column_index(value: object) -> bool:
    """Whether `value` is an integer, positive or negative."""
    return is_count(value, -math.inf)


def _both_gradients(
    kernel: Kernel, X: Points, Z: Points, W: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_j W_ij dk(x_i, z_j) / dx_i and sum_i W_ij dk(x_i, z_j) / dz_j.

    k is symmetric, so the second sum is the first one with X and Z exchanged and W transposed.
    """
    left = kernel.input_gradient(X, Z, W)
    if Z is None:
        return left, kernel.input_gradient(X, None, W.T)
    return left, kernel.input_gradient(Z, X, W.T)


def _column_sums(Y: Points, G: np.ndarray) -> np.ndarray:
    """Return sum_i Y_ic G_ic for every column c of the matrices Y and G."""
    return np.asarray((Y.multiply(G) if sp.issparse(Y) else Y * G).sum(axis=0)).ravel()
