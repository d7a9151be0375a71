"""Radial kernels: functions of the squared scaled distance s = |(x - z) / l|^2.

A subclass of `Radial` needs `profile(s)` and `slope(s)` = profile'(s).  If it has parameters other
than the length scale, it also needs `parameter_slopes(s)`.  The base class computes distances,
diagonal, derivatives and tiles (blocks of K).  All s of a tile are computed by one matrix product
of augmented rows,

    s = [y, |y|^2, 1] . [-2 w, 1, |w|^2],      y = (x - c) / l,  w = (z - c) / l,

where c is the centre of the points.  Distances do not depend on c, but rounding errors do.
Sparse rows cannot be centred and use the same formula with c = 0.  If s is small relative to
|y|^2 + |w|^2, the three terms cancel.  If the rounding error then matters, because the norms are
large or the kernel is steep at 0, s is computed again from the differences y - w
(`recompute_close_pairs`).

For up to eight columns, the squares ((x_c - z_c) / l_c)^2 are summed directly, which is faster and
does not cancel.  In this case c is 0 unless the subtraction x - c is exact, and the division by l
comes last, so that s is accurate even if the points are far from 0.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..._core import Points, jit, slices
from .._base import node
from .._evaluation import KernelLinearisation, ParameterGradients, Prepared, linearisation
from .._properties import Properties
from ._close_pairs import add_close_moments, recompute_close_pairs
from ._dot_product import squared_norms
from ._vector_kernel import LengthScaleKernel, column_medians, inner_products

# Up to this many columns, summing squared differences is faster than the matrix product.
_MAX_DIRECT_COLUMNS = 8
_CHUNK_ROWS = 1024  # number of rows converted at a time, to limit temporary memory
# Largest squared norm |y|^2 for matrix products in float32.  The exponent of an RBF then has an
# absolute error of about 4e-7 |y|^2 / 2 = 1e-4.  For larger norms float64 is used.
_MAX_FLOAT32_NORM = 500.0
# Largest squared norm |y|^2 for sums of squared differences in float32, which must not overflow.
_MAX_FLOAT32_DIRECT = 1e30
# Largest squared norm |y|^2 in float64, so that no squared distance, nor a small multiple of it,
# overflows.
_MAX_SQUARED_NORM = 1e300


class _RadialFrame(NamedTuple):
    """The form of the rows, centre and length scale that both operands of a tile share."""

    form: str  # "direct", "augmented" or "inner", see `_prepare_rows`
    centre: np.ndarray
    inverse: np.ndarray  # 1 / l for each column, where l is the length scale

    @property
    def columns(self) -> int:
        return len(self.inverse)


@node
class Radial(LengthScaleKernel):
    """Base class of kernels that are functions of the scaled distance between two points.

        k(x, z) = profile(|(x - z) / length_scale|^2)

    A subclass defines `profile(s)` and its derivative `slope(s)` for arrays of squared distances s.
    `from_gamma(gamma)` is an alternative constructor, with gamma = 1 / (2 length_scale^2).

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        One number, one number per column, or a rule such as "median", which `resolve` replaces by a
        value for the data; the notes of `RBF` define the rules.  Tunable.

    See Also
    --------
    RBF : The Gaussian kernel, and the definition of the rules for the length scale.
    DotProduct : Base class of functions of the inner product.
    Kernel : The base class of all kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Radial, node
    >>> class Bump(Radial):
    ...     def profile(self, s):
    ...         return np.exp(-s)
    ...     def slope(self, s):
    ...         return -np.exp(-s)
    >>> Bump(2.0)([[0.0], [2.0]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    # Whether the profile behaves like sqrt(s) near 0.  This magnifies rounding errors of a small s,
    # so that s must have a small relative error, and float32 is never used.
    _has_kink_at_zero: ClassVar[bool] = False
    # Whether profile(s) treats an s that is negative by rounding like 0.
    _profile_accepts_negative: ClassVar[bool] = False
    is_decreasing: ClassVar[bool] = False  # whether k decreases with the distance

    def _properties(self, *inner: Properties) -> Properties:
        at_zero = self._value_at_zero()
        # If k(x, x) <= 0, k is not a Mercer kernel, and no bound is needed.
        return Properties(stationary=True, diagonal_bound=at_zero if at_zero > 0.0 else np.inf)

    @staticmethod
    def _length_from_gamma(gamma: float) -> float:
        return float(np.sqrt(0.5 / gamma))

    # ------------------------------------------------------------------ tiles

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = self._vectors(X)
        scale = self._scale(X.shape[1])
        if like is None:
            frame = _choose_frame(X, np.full(X.shape[1:], 1.0 / np.asarray(scale)))
        else:
            self._check_same_columns(like.frame.columns, X.shape[1])
            frame = like.frame
        if sp.issparse(X) and frame.form != "inner":
            raise ValueError(
                "sparse points cannot be centred in the same way as the dense points `like`; "
                "prepare the sparse points first, and pass the result as `like`"
            )
        single = X.dtype == np.float32 and not self._has_kink_at_zero
        single = single and (like is None or like.dtype == np.float32)
        single = single and bool(np.all(frame.inverse < np.finfo(np.float32).max))
        rows, norms = _prepare_rows(X, frame, np.float32 if single else np.float64)
        limit = _MAX_FLOAT32_DIRECT if frame.form == "direct" else _MAX_FLOAT32_NORM
        if single and not norms.max(initial=0.0) <= limit:
            rows, norms = _prepare_rows(X, frame, np.float64)
        if not norms.max(initial=0.0) <= _MAX_SQUARED_NORM:
            raise ValueError(
                f"{type(self).__name__}: squared distances overflow, because points have entries "
                f"up to {np.abs(X).max():.3g} and the length scale is {np.min(scale):.3g}; "
                f"scale the features, or increase length_scale"
            )
        arrays = (rows, norms.astype(rows.dtype)) if frame.form == "inner" else (rows,)
        return Prepared(arrays, frame=frame, dtype=rows.dtype)

    def _statistic(
        self, P: Prepared, Q: Prepared, out: np.ndarray, exact: bool = True
    ) -> np.ndarray:
        """Write the squared scaled distances s of the prepared rows to `out`, and return it.

        In float64, the error is about 1e-11: relative to s if `exact` or if the kernel has a kink
        at 0, and relative to max(s, 1) otherwise.  With more than eight columns, the prepared rows
        also have a rounding error, of eps times their distance from the centre.  In float32, the
        error is 5e-7 times the squared norms.  Rounding may make s slightly negative; it is clipped
        at 0 unless the profile accepts negative values.
        """
        A, B, frame, relative = P.arrays[0], Q.arrays[0], P.frame, exact or self._has_kink_at_zero
        if frame.form == "direct":
            inverse = frame.inverse.astype(A.dtype, copy=False)
            _direct_squared_distances(
                A, Q.cached("columns", lambda: np.ascontiguousarray(B.T)), inverse, out
            )
            return out
        if frame.form == "augmented":
            np.matmul(A, Q.cached("right", lambda: _right_factor(B)).T, out=out)
        else:
            inner_products(A, B, out)
            out *= -2.0
            out += P.arrays[1][:, None]
            out += Q.arrays[1]
        same = P.coincidences(Q)
        if same[0].size:
            out[same] = 0.0
        recompute_close_pairs(
            A, B, frame.columns, prepared_squared_norms(P), prepared_squared_norms(Q), out, relative
        )
        if not relative and not self._profile_accepts_negative:
            np.maximum(out, 0.0, out=out)
        return out

    def _diag(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        self._scale(X.shape[1])  # raises an error if the number of columns is wrong
        return np.full(X.shape[0], self._value_at_zero(), dtype=X.dtype)

    # ------------------------------------------------------------------ derivatives

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        P, Q, s = self._statistics(X, Z)
        others = {name: np.vdot(W, g) for name, g in self.parameter_slopes(s).items()}
        return {
            "length_scale": self._length_scale_pullback(P, Q, s, W, self._finite_slope(s))
        } | others

    def _length_scale_pullback(
        self, P: Prepared, Q: Prepared, s: np.ndarray, W: np.ndarray, slope: np.ndarray
    ) -> float | np.ndarray:
        """Return sum_ij W_ij dk_ij / d log l, one number or one per entry of the length scale l."""
        M = W * slope
        return -2.0 * (
            self._moments(P, Q, s, M)[1] if np.ndim(self.length_scale) else np.vdot(M, s)
        )

    def _jet(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Return profile(s), slope(s) and parameter_slopes(s), computed together to share work.

        The array s is not modified.
        """
        return self.profile(s.copy()), self._finite_slope(s), self.parameter_slopes(s)

    def _squared_difference_products(
        self, P: Prepared, Q: Prepared, M: np.ndarray, A: np.ndarray
    ) -> np.ndarray:
        """Return sum_j M_ij (y_i - w_j)_c^2 A_jq, shape (d, n, q), for scaled points y and w."""
        Y, V = (R.arrays[0][:, : P.frame.columns] for R in (P, Q))
        if P.frame.form == "direct":
            Y, V = Y * P.frame.inverse, V * P.frame.inverse
        columns = [V[:, c, None] ** r * A for r in (1, 2) for c in range(V.shape[1])]
        order_0 = M @ A
        sums = (M @ np.concatenate(columns, axis=1)).reshape(len(Y), 2, V.shape[1], -1)
        order_1, order_2 = np.moveaxis(sums, (1, 2), (0, 1))
        Y = Y.T[:, :, None]
        return np.asarray(Y**2 * order_0 - 2.0 * Y * order_1 + order_2)

    def _statistic_gradient(
        self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray
    ) -> np.ndarray:
        gradient: np.ndarray = 2.0 * self._moments(P, Q, s, M)[0] * P.frame.inverse
        return gradient

    def _moments(
        self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_j M_ij (y_i - w_j)_c and sum_ij M_ij (y_i - w_j)_c^2; M is overwritten.

        y and w are the scaled points, and c is a column.  The sums are computed by matrix products,
        without an array of shape (n, m, d).  Pairs that are so close that the products would cancel
        are summed separately.
        """
        frame = P.frame
        first, second = np.zeros((len(P), frame.columns)), np.zeros(frame.columns)
        Y, V = (R.arrays[0][:, : frame.columns] for R in (P, Q))
        if frame.form == "direct":
            columns = Q.cached("columns", lambda: np.ascontiguousarray(V.T))
            _direct_moments(np.ascontiguousarray(M), Y, columns, frame.inverse, first, second)
            return first, second
        # Pass entire rows, because Numba would compile the loop again for the memory layout of Y
        # and V, which are slices of columns.
        add_close_moments(
            M,
            P.arrays[0],
            Q.arrays[0],
            prepared_squared_norms(P),
            prepared_squared_norms(Q),
            s,
            first,
            second,
        )
        rows, cross = M.sum(axis=1), np.asarray(M @ V)
        second += _square(Y).T @ rows + _square(V).T @ M.sum(axis=0)
        second -= 2.0 * (Y.multiply(cross) if sp.issparse(Y) else Y * cross).sum(axis=0)
        first += (Y.toarray() if sp.issparse(Y) else Y) * rows[:, None]
        first -= cross
        return first, second

    def _finite_slope(self, s: np.ndarray) -> np.ndarray:
        """Return the slope, with 0 in place of infinite values at s = 0.

        The kernel has a symmetric kink at distance 0, so that 0 is the mean of its one-sided
        derivatives.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.slope(s)
        slope[(s == 0) & ~np.isfinite(slope)] = 0.0
        return slope


class _RadialLinearisation(KernelLinearisation):
    """The linearisation of a radial kernel: values and derivatives share the distances s."""

    kernel: Radial

    def __init__(self, kernel: Radial, X: Points, Z: Points) -> None:
        super().__init__(kernel, X, Z)
        self.P, self.Q, self.s = kernel._statistics(X, Z)
        self.profile, self.slope, self.others = kernel._jet(self.s)

    @property
    def values(self) -> np.ndarray:
        return self.profile

    def total(self, W: np.ndarray) -> float:
        return float(np.vdot(W, self.profile))

    def pullback(self, W: np.ndarray) -> np.ndarray:
        length_scale = self.kernel._length_scale_pullback(self.P, self.Q, self.s, W, self.slope)
        others = {name: np.vdot(W, g) for name, g in self.others.items()}
        return self._in_order({"length_scale": length_scale} | others)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        M, s, P, Q = self.slope, self.s, self.P, self.Q
        if transposed:
            M, s, P, Q = M.T, s.T, Q, P
        if np.ndim(self.kernel.length_scale):
            scale_terms = self.kernel._squared_difference_products(P, Q, M, V)
        else:
            scale_terms = ((M * s) @ V)[None]
        others = {name: ((g.T if transposed else g) @ V)[None] for name, g in self.others.items()}
        return self._in_order({"length_scale": -2.0 * scale_terms} | others)

    def _in_order(self, parts: ParameterGradients) -> np.ndarray:
        """Concatenate derivatives, given by parameter name, in the order of theta."""
        return np.concatenate([np.atleast_1d(parts[path]) for path, _ in self.kernel._parts])


@linearisation.register
def _(kernel: Radial, X: Points, Z: Points) -> KernelLinearisation:
    sparse = sp.issparse(X) or sp.issparse(Z)
    return (KernelLinearisation if sparse else _RadialLinearisation)(kernel, X, Z)


# ---------------------------------------------------------------------- prepared rows


def _choose_frame(X: Points, inverse: np.ndarray) -> _RadialFrame:
    """Choose the form of the rows and the centre for points X; other operands share them."""
    form = "direct" if X.shape[1] <= _MAX_DIRECT_COLUMNS else "augmented"
    if sp.issparse(X) or not len(X):
        return _RadialFrame("inner" if sp.issparse(X) else form, np.zeros(X.shape[1]), inverse)
    centre = column_medians(X)
    if form == "augmented":
        return _RadialFrame(form, centre, inverse)
    # The subtraction x - c is exact if c / 2 <= x <= 2 c.  Otherwise c is not large relative to the
    # differences of the points, and centring would gain little.
    with np.errstate(over="ignore"):
        far = np.maximum(X.max(axis=0) - centre, centre - X.min(axis=0)) > np.abs(0.5 * centre)
    return _RadialFrame("direct", np.where(far, 0.0, centre), inverse)


def _prepare_rows(X: Points, frame: _RadialFrame, dtype: DTypeLike) -> tuple[Points, np.ndarray]:
    """Return the prepared rows and the squared norms |y|^2, with y = (x - c) / l.

    The rows are x - c for the form "direct", [y, |y|^2, 1] for "augmented" and y for "inner".
    """
    if sp.issparse(X):
        rows = sp.csr_array(X.multiply(frame.inverse), dtype=dtype)
        rows.sum_duplicates()  # sum_duplicates also sorts the indices
        return rows, squared_norms(rows.astype(np.float64, copy=False))
    n, d = X.shape
    rows = np.empty((n, d + 2 if frame.form == "augmented" else d), dtype=dtype)
    norms = np.empty(n)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the norms
        for part in slices(n, _CHUNK_ROWS):
            Y = X[part] - frame.centre  # Y is in float64, like the centre
            if frame.form == "direct":
                rows[part] = Y
                Y *= frame.inverse
            else:
                Y *= frame.inverse
                rows[part, :d] = Y
                Y[...] = rows[part, :d]
            norms[part] = squared_norms(Y)
    if frame.form == "augmented":
        rows[:, d], rows[:, d + 1] = norms, 1.0
    return rows, norms


def _right_factor(rows: np.ndarray) -> np.ndarray:
    """Return [-2 w, 1, |w|^2] for the augmented rows [w, |w|^2, 1]."""
    out = -2.0 * rows
    out[:, -2], out[:, -1] = 1.0, rows[:, -2]
    return out


@jit()
def _direct_squared_distances(
    A: np.ndarray, Bt: np.ndarray, inverse: np.ndarray, out: np.ndarray
) -> None:
    """Write sum_c ((A_ic - B_jc) inverse_c)^2 to out_ij; Bt is the transpose of B.

    The inner loop runs over j, so that it is vectorised.
    """
    for i in range(A.shape[0]):
        row = out[i]
        a, weight = A[i, 0], inverse[0]
        for j in range(row.shape[0]):
            t = (a - Bt[0, j]) * weight
            row[j] = t * t
        for c in range(1, A.shape[1]):
            a, weight = A[i, c], inverse[c]
            for j in range(row.shape[0]):
                t = (a - Bt[c, j]) * weight
                row[j] += t * t


@_direct_squared_distances.without_numba
def _direct_squared_distances_numpy(
    A: np.ndarray, Bt: np.ndarray, inverse: np.ndarray, out: np.ndarray
) -> None:
    out[...] = 0.0
    for c in range(A.shape[1]):
        out += ((A[:, c, None] - Bt[c]) * inverse[c]) ** 2


@jit("reassoc", "nsz")
def _direct_moments(
    M: np.ndarray,
    A: np.ndarray,
    Bt: np.ndarray,
    inverse: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Add sum_j M_ij (y_i - w_j)_c to `first` and sum_ij M_ij (y_i - w_j)_c^2 to `second`.

    The scaled points are y_i = A_i * inverse and w_j = B_j * inverse; Bt is the transpose of B.
    """
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            a, total, square = A[i, c], 0.0, 0.0
            for j in range(M.shape[1]):
                t = (a - Bt[c, j]) * inverse[c]
                total += M[i, j] * t
                square += M[i, j] * (t * t)
            first[i, c] += total
            second[c] += square


@_direct_moments.without_numba
def _direct_moments_numpy(
    M: np.ndarray,
    A: np.ndarray,
    Bt: np.ndarray,
    inverse: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    for c in range(A.shape[1]):
        t = (A[:, c, None] - Bt[c]) * inverse[c]
        first[:, c] += np.sum(M * t, axis=1, dtype=first.dtype)
        second[c] += np.sum(M * (t * t), dtype=second.dtype)


def prepared_squared_norms(P: Prepared) -> np.ndarray:
    """Return the squared norms |(x - c) / l|^2 of prepared rows x, with centre c."""
    if P.frame.form == "direct":
        return squared_norms(P.arrays[0] * P.frame.inverse)
    norms: np.ndarray
    if P.frame.form == "inner":
        norms = P.arrays[1]
    else:
        norms = P.cached("norms", lambda: P.arrays[0][:, P.frame.columns].copy())
    return norms


def _square(Y: Points) -> Points:
    return Y.multiply(Y) if sp.issparse(Y) else Y * Y
