"""Kernels that are functions of a sum over the columns, s = sum_c w_c g(x_c, z_c).

A new kernel defines the term g, the weights w_c of the columns, `profile(s)` and `slope(s)` =
profile'(s).  The terms |x - z|, (x - z)^2 / (x + z) and min(x, z) are not inner products, so that
s cannot be computed by a matrix product.  It is summed directly, for one row and a few hundred
others at a time, in loops that compile to vector instructions.  Sparse rows are converted to dense
ones in batches, except for min(x, z), which is 0 unless both entries are nonzero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..._core import Points, jit, slices
from .._base import Kernel, node, parameter
from .._evaluation import ParameterGradients, Prepared
from .._properties import FEATURES, SCHOENBERG, Domain, Properties
from ._bandwidth_rules import gamma_from_rule, median_distance, scale_or_rule
from ._fast_math import exp_inplace
from ._vector_kernel import LengthScaleKernel, ProfileKernel, sparse_min_sums

_ABSOLUTE, _CHI2, _MINIMUM = range(3)  # the terms g: |x - z|, (x - z)^2 / (x + z), min(x, z)

_SUM_WIDTH = 512  # entries of a row summed at a time, so that they stay in the level-1 cache
_MAX_DENSE_ENTRIES = 1 << 20  # entries of a sparse operand converted to a dense array at a time


@node
class Elementwise(ProfileKernel):
    """Base class of kernels k(x, z) = profile(s) with s = sum_c w_c g(x_c, z_c)."""

    _kind: ClassVar[int]  # the term g: _ABSOLUTE, _CHI2 or _MINIMUM
    _nonnegative: ClassVar[bool] = False  # whether the entries of points must be >= 0
    _min_statistic_dtype: ClassVar[DTypeLike] = np.float64

    def _domain(self, *inner: Domain) -> Domain:
        return Domain("nonnegative" if self._nonnegative else "vectors", on_vectors=True)

    def _weights(self, columns: int) -> float | np.ndarray:
        """Return the weights w_c as one number, or as an array with one entry per column."""
        return 1.0

    # ------------------------------------------------------------------ tiles

    def _statistic(
        self, P: Prepared, Q: Prepared, out: np.ndarray, exact: bool = True
    ) -> np.ndarray:
        X, Z = P.arrays[0], Q.arrays[0]
        if self._kind == _MINIMUM and sp.issparse(X) and sp.issparse(Z):
            sparse_min_sums(X, Z, out)  # min(x, z) = 0 where x or z is 0
            return out
        weights = np.full(X.shape[1], self._weights(X.shape[1]), dtype=out.dtype)
        for rows, A in _dense_rows(X):
            if sp.issparse(Z):
                for columns, B in _dense_rows(Z):
                    _sum_terms(self._kind, A, _transposed(B), weights, out[rows, columns])
            else:
                Bt = Q.cached("columns", lambda: _transposed(Z))
                _sum_terms(self._kind, A, Bt, weights, out[rows])
        return out

    def _diag(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        self._weights(X.shape[1])  # raises an error if the number of length scales is wrong
        return np.full(X.shape[0], self._value_at_zero(), dtype=X.dtype)

    def _vectors(self, X: Points, like: Prepared | None = None) -> Points:
        """Return X as a matrix; raise an error if entries must be >= 0 and one is negative."""
        X = super()._vectors(X, like)
        if self._nonnegative:
            lowest = min((X.data if sp.issparse(X) else X).min(initial=0.0), 0.0)
            if lowest < 0:
                raise ValueError(
                    f"{type(self).__name__} compares histograms, whose entries cannot be negative, "
                    f"but X contains {lowest:.6g}; if the features were standardised, pass the "
                    f"original counts or frequencies instead"
                )
        return X

    # ------------------------------------------------------------------ derivatives

    def _statistic_gradient(
        self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray
    ) -> np.ndarray:
        return self._per_column(True, P, Q, M) * self._weights(P.arrays[0].shape[1])

    def _per_column(self, slopes: bool, P: Prepared, Q: Prepared, M: np.ndarray) -> np.ndarray:
        """Return sums over the points z_j, weighted by M_ij, for each x_i and column; shape (n, d).

        The function `add` computes the sums: `_sum_slopes` or `_sum_terms_by_column`.
        """
        X, Z = P.arrays[0], Q.arrays[0]
        out = np.zeros(X.shape)
        for rows, A in _dense_rows(X):
            for columns, B in _dense_rows(Z):
                part = np.ascontiguousarray(M[rows, columns], dtype=np.float64)
                _sum_by_column(self._kind, slopes, part, A, _transposed(B), out[rows])
        return out


@node
class _ExponentialSum(Elementwise):
    """Base class of kernels k(x, z) = exp(-s), where s = 0 for equal points."""

    def _properties(self, *inner: Properties) -> Properties:
        # Strict, because s > 0 for different points.
        return Properties.exponential(SCHOENBERG, strict=True, stationary=not self._nonnegative)

    def profile(self, s: np.ndarray) -> np.ndarray:
        return exp_inplace(s, -1.0)

    def slope(self, s: np.ndarray) -> np.ndarray:
        slope: np.ndarray = -np.exp(-s)
        return slope


@node
class Laplacian(LengthScaleKernel, _ExponentialSum):
    """Laplacian kernel: exponential of the L1 distance.

        k(x, z) = exp(-sum_c |x_c - z_c| / l_c)

    With one column it is the covariance of the Ornstein-Uhlenbeck process; with several columns it
    is the product of such kernels.

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The length scale l, or one l_c per column.  Tunable.  It can also be a rule that `resolve`
        replaces by a value for the data: "median" (l is the median L1 distance), or, with
        gamma = 1 / l, "auto" (gamma = 1 / d), "scale" (gamma = 1 / (d Var X)), "scott" or
        "silverman", see `RBF`.  Use `Laplacian.from_gamma` to pass gamma instead.  "median" is a
        good first guess.

    See Also
    --------
    RBF : For smooth functions.
    Matern : With nu = 1/2 the exponential of the Euclidean distance.
    Chi2 : For histograms.

    References
    ----------
    Chapelle, Haffner and Vapnik, "Support vector machines for histogram-based image
    classification", IEEE Transactions on Neural Networks 10, 1999. Rasmussen and Williams,
    "Gaussian processes for machine learning", MIT Press, 2006, section 4.2.

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> Laplacian(length_scale=2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    _kind: ClassVar[int] = _ABSOLUTE

    @staticmethod
    def _length_from_gamma(gamma: float) -> float:
        return float(1.0 / gamma)

    def _weights(self, columns: int) -> float | np.ndarray:
        return 1.0 / self._scale(columns)

    def _statistic_pullback(
        self, P: Prepared, Q: Prepared, s: np.ndarray, W: np.ndarray
    ) -> ParameterGradients:
        M = W * self.slope(s)
        if np.ndim(self.length_scale) == 0:
            return {"length_scale": -np.sum(M * s)}
        terms = self._per_column(False, P, Q, M).sum(axis=0)
        return {"length_scale": -terms * self._weights(terms.size)}

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        if isinstance(self.length_scale, str) and self.length_scale == "median":
            median = median_distance(self._vectors(X), "cityblock", weights)
            return replace(self, length_scale=median)
        return super()._resolve(X, weights, targets)


@node
class Chi2(_ExponentialSum):
    """Exponential chi-squared kernel for histograms (vectors with entries >= 0).

        k(x, z) = exp(-gamma sum_c (x_c - z_c)^2 / (x_c + z_c))

    A column that is 0 in both points adds 0 to the sum.

    Parameters
    ----------
    gamma : float or str, default=1.0
        The factor of the sum, > 0.  Tunable.  It can also be a rule that `resolve` replaces by a
        value for the data: "median" (1 / the median of the sum over pairs of points), or "scale",
        "auto", "scott" or "silverman" as for `RBF`.  Prefer "median", because it depends on the
        chi-squared distance; the other rules were made for the Euclidean distance.

    See Also
    --------
    AdditiveChi2 : The exponent; only conditionally positive definite, without a parameter.
    HistogramIntersection : Without a parameter, and the fastest for sparse histograms.
    Laplacian : For vectors that may be negative.
    MinMax : For counts whose total matters.

    References
    ----------
    Chapelle, Haffner and Vapnik, "Support vector machines for histogram-based image
    classification", IEEE Transactions on Neural Networks 10, 1999. Zhang, Marszałek, Lazebnik and
    Schmid, "Local features and kernels for classification of texture and object categories: a
    comprehensive study", International Journal of Computer Vision 73, 2007 (the rule 1 / mean, of
    which "median" is a robust form).

    Examples
    --------
    >>> from mercer.kernels import Chi2
    >>> Chi2(gamma=0.6)([[1.0, 2.0, 0.0]], [[2.0, 1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    gamma: float | str = parameter(1.0, scale_or_rule)

    _kind: ClassVar[int] = _CHI2
    _nonnegative: ClassVar[bool] = True

    def _weights(self, columns: int) -> float | np.ndarray:
        return float(self.gamma)

    def parameter_slopes(self, s: np.ndarray) -> dict[str, np.ndarray]:
        return {"gamma": s * self.slope(s)}

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        X, rule = self._vectors(X), str(self.gamma)
        if rule == "median":
            return replace(self, gamma=1.0 / median_distance(X, _chi2_sums, weights))
        return replace(self, gamma=gamma_from_rule(rule, X, weights))


@node
class AdditiveChi2(Elementwise):
    """Additive chi-squared kernel for histograms (vectors with entries >= 0).

        k(x, z) = -sum_c (x_c - z_c)^2 / (x_c + z_c)

    It is not a Mercer kernel, but conditionally positive definite of order 1, because
    (x - z)^2 / (x + z) = x + z - 4 xz / (x + z), and xz / (x + z) is a kernel.  The exponential of
    gamma times this kernel is `Chi2`.  It has no parameters.

    See Also
    --------
    Chi2 : The exponential, a Mercer kernel; usually more accurate.
    HistogramIntersection : A Mercer kernel without parameters.

    References
    ----------
    Vedaldi and Zisserman, "Efficient additive kernels via explicit feature maps", IEEE PAMI 34,
    2012.

    Examples
    --------
    >>> from mercer.kernels import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 2.0, 0.0]], [[2.0, 1.0, 1.0]]).round(4)
    array([[-1.6667]])
    """

    _kind: ClassVar[int] = _CHI2
    _nonnegative: ClassVar[bool] = True

    def _properties(self, *inner: Properties) -> Properties:
        rule = "4 xz / (x + z), a kernel, minus x and z, which centring removes"
        return Properties(rule, 1, against=np.array([[0.0], [1.0]]))

    def profile(self, s: np.ndarray) -> np.ndarray:
        values: np.ndarray = np.negative(s, out=s)
        return values

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.full_like(s, -1.0)


@node
class HistogramIntersection(Elementwise):
    """Histogram intersection kernel for histograms (vectors with entries >= 0).

        k(x, z) = sum_c min(x_c, z_c)

    This is the mass that two histograms have in common.  It is a Mercer kernel, because min(x, z)
    is the inner product of the indicator functions of [0, x] and [0, z].  It has no parameters.

    See Also
    --------
    MinMax : Divides by the union, so that k(x, x) = 1.
    Intersection : The same for sets.
    Chi2 : With a width that can be tuned.

    References
    ----------
    Swain and Ballard, "Color indexing", International Journal of Computer Vision 7, 1991. Barla,
    Odone and Verri, "Histogram intersection kernel for image classification", ICIP 2003.

    Examples
    --------
    >>> from mercer.kernels import HistogramIntersection
    >>> HistogramIntersection()([[1.0, 2.0, 0.0]], [[2.0, 1.0, 1.0]])
    array([[2.]])
    """

    _kind: ClassVar[int] = _MINIMUM
    _nonnegative: ClassVar[bool] = True

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(f"min(x, z), an {FEATURES}: indicators of [0, x]", 0, nonnegative=True)

    def profile(self, s: np.ndarray) -> np.ndarray:
        return s

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.ones_like(s)

    def _diag(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        return np.asarray(X.sum(axis=1)).ravel()


# ---------------------------------------------------------------------- dense rows


def _dense_rows(X: Points) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (rows, X[rows] as a dense array); a dense X is not split into batches."""
    n, d = X.shape
    size = max(1, _MAX_DENSE_ENTRIES // d) if sp.issparse(X) else max(n, 1)
    for rows in slices(n, size):
        part = X[rows].toarray() if sp.issparse(X) else X
        yield rows, np.ascontiguousarray(part)


def _transposed(B: np.ndarray) -> np.ndarray:
    """Return the transpose as a contiguous array, so that the loops run along its rows."""
    return np.ascontiguousarray(B.T)


def _chi2_sums(sample: np.ndarray) -> np.ndarray:
    """Return sum_c (x_c - z_c)^2 / (x_c + z_c) for all pairs of rows, in the order of `pdist`."""
    return -AdditiveChi2()(sample)[np.triu_indices(len(sample), k=1)]


# ---------------------------------------------------------------------- compiled loops
#
# `kind` is constant within a loop, so that the compiler evaluates the conditions only once.
# The expressions contain no float64 constants, so that float32 input is computed in float32.


@jit()
def _term(kind: int, a: float, b: float) -> float:
    """Return the term g(a, b), where `kind` is _ABSOLUTE, _CHI2 or _MINIMUM."""
    if kind == _ABSOLUTE:
        return abs(a - b)
    if kind == _CHI2:
        total = a + b
        return (a - b) * (a - b) / (total + (total == 0))  # the result is 0 if a = b = 0
    return min(a, b)


@jit()
def _slope(kind: int, a: float, b: float) -> float:
    """Return dg(a, b) / da; at a kink, the midpoint of the subgradients."""
    if kind == _ABSOLUTE:
        return 1.0 if a > b else (-1.0 if a < b else 0.0)
    if kind == _CHI2:
        total = a + b
        u = (a - b) / (total + (total == 0))
        return u * (2.0 - u)
    return 1.0 if a < b else (0.5 if a == b else 0.0)


@jit()
def _sum_terms(
    kind: int, A: np.ndarray, Bt: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """Write sum_c weights_c g(A_ic, B_jc) to out_ij; Bt is the transpose of B."""
    sums = np.empty(_SUM_WIDTH, dtype=out.dtype)
    for start in range(0, Bt.shape[1], _SUM_WIDTH):
        size = min(_SUM_WIDTH, Bt.shape[1] - start)
        for i in range(A.shape[0]):
            sums[:size] = 0
            for c in range(A.shape[1]):
                a, weight = A[i, c], weights[c]
                column = Bt[c, start : start + size]
                for j in range(size):
                    sums[j] += weight * _term(kind, a, column[j])
            out[i, start : start + size] = sums[:size]


# "reassoc" allows the compiler to reorder the sums over j; otherwise they are not vectorised.
@jit("reassoc", "nsz")
def _sum_by_column(
    kind: int, slopes: bool, M: np.ndarray, A: np.ndarray, Bt: np.ndarray, out: np.ndarray
) -> None:
    """Add sum_j M_ij g(A_ic, B_jc) to out_ic, or, with `slopes`, sum_j M_ij dg(A_ic, B_jc) / dA_ic.

    Bt is the transpose of B.
    """
    for i in range(A.shape[0]):
        row = M[i]
        for c in range(A.shape[1]):
            a, column, total = A[i, c], Bt[c], 0.0
            if slopes:
                for j in range(row.shape[0]):
                    total += row[j] * _slope(kind, a, column[j])
            else:
                for j in range(row.shape[0]):
                    total += row[j] * _term(kind, a, column[j])
            out[i, c] += total


def _terms_numpy(kind: int, a: np.ndarray, b: np.ndarray) -> Any:
    """Return g(a, b) for arrays; see `_term`."""
    if kind == _ABSOLUTE:
        return abs(a - b)
    if kind == _CHI2:
        total = a + b
        return (a - b) ** 2 / np.where(total == 0, 1, total)
    return np.minimum(a, b)


def _slopes_numpy(kind: int, a: np.ndarray, b: np.ndarray) -> Any:
    """Return dg(a, b) / da for arrays; see `_slope`."""
    if kind == _ABSOLUTE:
        return np.sign(a - b)
    if kind == _CHI2:
        total = a + b
        u = (a - b) / np.where(total == 0, 1, total)
        return u * (2.0 - u)
    return 0.5 * (1.0 - np.sign(a - b))


@_sum_terms.without_numba
def _sum_terms_numpy(
    kind: int, A: np.ndarray, Bt: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    out[...] = 0
    for c in range(A.shape[1]):
        out += weights[c] * _terms_numpy(kind, A[:, c, None], Bt[c])


@_sum_by_column.without_numba
def _sum_by_column_numpy(
    kind: int, slopes: bool, M: np.ndarray, A: np.ndarray, Bt: np.ndarray, out: np.ndarray
) -> None:
    function = _slopes_numpy if slopes else _terms_numpy
    for c in range(A.shape[1]):
        out[:, c] += np.sum(M * function(kind, A[:, c, None], Bt[c]), axis=1, dtype=np.float64)
