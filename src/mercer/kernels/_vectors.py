"""What all kernels on vectors share: checks, and products of dense and sparse rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from .._points import as_vectors
from .._runtime import blas_threads, slices
from ._bandwidth import RULES, gamma_from_rule
from ._base import Kernel, node, parameter
from ._prepared import Prepared, pair
from ._sparse import shared_products

__all__ = [
    "SCALED_DISTANCE",
    "LengthScaled",
    "Profiled",
    "VectorKernel",
    "check_positive",
    "check_scale",
    "far_middle",
    "inner_products",
    "middle",
    "per_column",
]

SCALED_DISTANCE = r"\left\|\frac{x - z}{<length_scale>}\right\|"  # in LaTeX
_MEDIAN = 100  # evenly spaced rows that the middle of points is the median of
_CHUNK = 1024  # rows whose differences from the middle are held at a time
# Points are far from the origin if the square of their middle is that many times their variance.
# Squared distances from inner products then lose more than four digits.
_FAR = 1e4
_DENSE = 1 << 22  # entries of sparse rows that are made dense at a time: 32 MiB
_SHARE = 0.02  # of the pairs of rows: a column in which more of them meet is for a BLAS


@node
class VectorKernel(Kernel):
    """A kernel whose points are the rows of a 2-D array or CSR matrix."""

    on_vectors: ClassVar[bool] = True
    domain: ClassVar[str] = "vectors"

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        X = self._vectors(X, like)
        return Prepared((X,), dtype=X.dtype)

    def _vectors(self, X: Any, like: Prepared | None = None) -> Any:
        """Check X and, against `like`, its number of columns."""
        X = as_vectors(X, type(self).__name__)
        if like is not None:
            self._same_width(like.arrays[0].shape[1], X.shape[1])
        return X

    def _operands(self, X: Any, Z: Any) -> tuple[Any, Any]:
        X = self._vectors(X)
        if Z is None:
            return X, X
        Z = self._vectors(Z)
        self._same_width(X.shape[1], Z.shape[1])
        return X, Z

    def _same_width(self, p: int, q: int) -> None:
        if p != q:
            raise ValueError(
                f"{type(self).__name__} compares points with {p} and with {q} columns; "
                f"both sides need the same features"
            )


@node
class Profiled(VectorKernel):
    """k(x, z) = profile(s), for a number s of each pair of points: a distance, an inner product.

    A base class says how s follows from the points; a kernel is its profile and its slope.
    """

    _summed_in: ClassVar[Any] = np.float32  # s of derivatives has at least this precision

    @abstractmethod
    def profile(self, s: np.ndarray) -> np.ndarray:
        """Return the kernel at s, which may be overwritten."""

    @abstractmethod
    def slope(self, s: np.ndarray) -> np.ndarray:
        """Return d profile / ds."""

    def parameter_slopes(self, s: np.ndarray) -> dict[str, np.ndarray]:
        """Return d profile / d log(parameter), by name, for parameters that do not change s."""
        return {}

    @abstractmethod
    def _statistic(
        self, P: Prepared, Q: Prepared, out: np.ndarray, exact: bool = True
    ) -> np.ndarray:
        """Set out <- s and return it; `exact` asks for digits that derivatives need."""

    @abstractmethod
    def _pulled(self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return sum_j M_ij ds_ij / dx_i, overwriting M."""

    def _inner_pullback(
        self, P: Prepared, Q: Prepared, s: np.ndarray, W: np.ndarray
    ) -> dict[str, Any]:
        """Return the part of the pullback of the parameters that s depends on."""
        return {}

    def _finite_slope(self, s: np.ndarray) -> np.ndarray:
        """Return the slope, finite also at a kink."""
        return self.slope(s)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        result = self.profile(self._statistic(P, Q, out, exact=False))
        if result is not out:
            out[...] = result

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        P, Q, s = self._statistics(X, Z)
        own = {name: np.sum(W * g) for name, g in self.parameter_slopes(s).items()}
        return self._inner_pullback(P, Q, s, W) | own

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        P, Q, s = self._statistics(X, Z)
        return self._pulled(P, Q, s, W * self._finite_slope(s))

    def _statistics(self, X: Any, Z: Any) -> tuple[Prepared, Prepared, np.ndarray]:
        P, Q = pair(self, X, Z)
        dtype = np.result_type(P.dtype, Q.dtype, self._summed_in)
        return P, Q, self._statistic(P, Q, np.empty((len(P), len(Q)), dtype=dtype))

    def _at_zero(self) -> float:
        """Return the kernel where s = 0."""
        return float(self.profile(np.zeros((1, 1)))[0, 0]) + 0.0  # no minus before a zero


@node
class LengthScaled(Profiled):
    """A kernel of differences of points in units of a length scale, one or one per column."""

    length_scale: Any = parameter(1.0)

    def _check(self) -> None:
        check_scale(type(self).__name__, "length_scale", self.length_scale, vector=True)

    @staticmethod
    @abstractmethod
    def _length(gamma: float) -> float:
        """Return the length scale that a gamma stands for."""

    @classmethod
    def from_gamma(cls, gamma: float | str, **options: Any) -> Self:
        """Return the kernel with gamma in place of the length scale, the other common spelling."""
        if not isinstance(gamma, str):
            check_positive(cls.__name__, "gamma", gamma)
            gamma = cls._length(gamma)
        return cls(length_scale=gamma, **options)

    def _scale(self, columns: int) -> Any:
        return per_column(type(self).__name__, self.length_scale, columns)

    def _resolve_own(self, X: Any, weights: np.ndarray | None) -> dict[str, Any]:
        if not isinstance(self.length_scale, str):
            return {}
        gamma = gamma_from_rule(self.length_scale, self._vectors(X), weights)
        return {"length_scale": self._length(gamma)}


def inner_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Set out <- X Z^T, for any mixture of dense and CSR rows."""
    if sp.issparse(X) and sp.issparse(Z):
        _sparse_products(X, Z, out)
    elif sp.issparse(X) or sp.issparse(Z):
        out[...] = X @ Z.T
    else:
        np.matmul(X, Z.T, out=out)


def _sparse_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Set out <- X Z^T of sparse rows.

    A multiplication takes a sparse product some 50 times as long as a BLAS (measured: 2 to 6 ns
    against 0.05), but it does only those of two stored entries.  So columns that many rows have go
    to the one, and all others to the other.
    """
    columns = X.shape[1]
    in_X, in_Z = (np.bincount(A.indices, minlength=columns) for A in (X, Z))
    common = in_X * in_Z > _SHARE * out.size
    if not common.any():
        shared_products(X, Z, out)
    elif common.all():
        _dense_products(X, Z, out)
    else:
        _dense_products(X[:, common], Z[:, common], out)
        shared_products(X[:, ~common], Z[:, ~common], out, add=True)


def _dense_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Set out <- X Z^T of sparse rows, made dense a few at a time."""
    step = max(1, _DENSE // X.shape[1])
    with blas_threads(min(out.shape)):
        for i in range(0, X.shape[0], step):
            A = X[i : i + step].toarray()
            for j in range(0, Z.shape[0], step):
                np.matmul(A, Z[j : j + step].toarray().T, out=out[i : i + step, j : j + step])


def check_positive(
    owner: str, name: str, value: Any, *, zero: bool = False, vector: bool = False
) -> None:
    """Refuse a parameter that is not a positive (with `zero`: non-negative) finite number."""
    if type(value) is float and 0.0 < value < math.inf:
        return
    unfit = isinstance(value, (bool, np.bool_)) or np.iscomplexobj(value)
    if unfit or (np.ndim(value) > 0 and not vector):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}")
    try:
        lowest = float(np.min(value))
        finite = bool(np.all(np.isfinite(value)))
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}") from None
    if math.isnan(lowest) or not finite or lowest < 0 or (lowest == 0 and not zero):
        wanted = "non-negative" if zero else "positive"
        raise ValueError(f"{owner}: {name} must be {wanted} and finite, got {value!r}")


def check_scale(owner: str, name: str, value: Any, *, vector: bool = False) -> None:
    """Refuse a scale that is neither a rule nor positive: a number, or a `vector` of them."""
    if isinstance(value, str) and value not in RULES:
        wanted = "positive numbers" if vector else "a positive number"
        raise ValueError(f"{owner}: {name} must be {wanted} or one of {RULES}, got {value!r}")
    if vector and (np.ndim(value) > 1 or np.size(value) == 0):
        raise ValueError(
            f"{owner}: {name} must be a number or one number per column, "
            f"got shape {np.shape(value)}"
        )
    if not isinstance(value, str):
        check_positive(owner, name, value, vector=vector)


def middle(X: np.ndarray) -> np.ndarray:
    """Return the median of each column, which outliers do not move; of a few evenly spaced rows."""
    some = X if len(X) <= _MEDIAN else X[np.linspace(0, len(X) - 1, _MEDIAN).astype(int)]
    half = len(some) // 2
    ranked = np.partition(some, [half - 1, half] if half else 0, axis=0)
    centre = ranked[half] if len(some) % 2 else 0.5 * (ranked[half - 1] + ranked[half])
    return np.asarray(centre.astype(np.float64))


def far_middle(X: np.ndarray) -> np.ndarray | None:
    """Return the middle of points that are far from the origin, compared with their spread.

    None if they are not, or if all points are equal.
    """
    if not len(X):
        return None
    centre = middle(X)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = sum(float(np.sum((X[rows] - centre) ** 2)) for rows in slices(len(X), _CHUNK))
        far = 0.0 < _FAR * squares / len(X) < float(centre @ centre) < np.inf
    return centre if far else None


def per_column(owner: str, value: Any, columns: int, what: str = "length scales") -> Any:
    """Return a length scale as a float, or as an array with one entry for each column."""
    if np.ndim(value) == 0:
        return float(value)
    scale = np.asarray(value, dtype=float)
    if scale.size != columns:
        raise ValueError(f"{owner} has {scale.size} {what}, but the points have {columns} columns")
    return scale
