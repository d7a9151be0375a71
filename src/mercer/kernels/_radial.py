"""Kernels that are functions of the squared scaled distance s = |(x - z) / l|^2.

A new one needs `profile(s)` and `slope(s)` = profile'(s), and, for parameters beside the length
scale, `parameter_slopes(s)`.  The base class owns distances, diagonal, derivatives and the tile:

    s = [y, |y|^2, 1] . [-2 w, 1, |w|^2],      y = (x - c) / l,  w = (z - c) / l,

one GEMM of augmented rows, with c in the middle of the points (distances do not depend on it,
rounding does).  Sparse rows cannot be centred and use the same formula with c = 0.  Where the
three terms cancel, the pair is computed again from its differences (`_close.py`): that is where s
is small beside |y|^2 + |w|^2, and the norms are so large, or the kernel so steep at 0, that their
rounding shows.

In up to eight dimensions the differences ((x_c - z_c) / l_c)^2 are summed directly, which is faster
and does not cancel.  There c is 0 unless x - c is exact, and the division by l comes last, so that
s has all its digits wherever the points are.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._runtime import jit, slices
from ._base import node
from ._claims import Claims
from ._close import close_moments, refine
from ._dot import squared_norms
from ._linearised import Linearised
from ._prepared import Prepared
from ._vectors import LengthScaled, inner_products, middle

__all__ = ["Radial", "row_norms"]

_DIRECT = 8  # up to this many columns differences beat the GEMM
_CHUNK = 1024  # rows converted at a time, so that float64 temporaries stay small
# A float32 exponent is off by about 4e-7 |y|^2 / 2; beyond this many digits lost, use float64.
_FLOAT32_NORM = 500.0
_FLOAT32_RANGE = 1e30  # direct differences lose no digits, but must not overflow
_LARGEST = 1e300  # of |y|^2: so that neither s nor a small multiple of it overflows


class _Frame(NamedTuple):
    """What both operands of a radial tile share."""

    form: str  # "direct" | "augmented" | "inner"
    centre: np.ndarray
    inverse: np.ndarray  # 1 / l of each column

    @property
    def columns(self) -> int:
        return len(self.inverse)


@node
class Radial(LengthScaled):
    """k(x, z) = profile(|(x - z) / length_scale|^2); length_scale a number or one per column.

    `from_gamma(gamma)` takes gamma = 1 / (2 length_scale^2), the other common spelling.

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

    # sqrt(s) near 0 magnifies rounding: never in float32, and s needs all its digits there
    _kink: ClassVar[bool] = False
    _takes_negative: ClassVar[bool] = False  # profile itself reads s < 0 (rounding) as 0
    falls: ClassVar[bool] = False  # profile never rises: nearer points have the larger k

    def _check(self) -> None:
        super()._check()
        self._check_shape()

    def _check_shape(self) -> None:
        """Refuse values of the further parameters that make no kernel."""

    def _claims(self, *inner: Claims) -> Claims:
        return Claims(stationary=True)

    @staticmethod
    def _length(gamma: float) -> float:
        return float(np.sqrt(0.5 / gamma))

    # ------------------------------------------------------------------ tiles

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        X = self._vectors(X)
        scale = self._scale(X.shape[1])
        if like is None:
            frame = _frame(X, np.full(X.shape[1:], 1.0 / np.asarray(scale)))
        else:
            self._same_width(like.frame.columns, X.shape[1])
            frame = like.frame
        if sp.issparse(X) and frame.form != "inner":
            raise ValueError("a sparse operand must be prepared first, so that no centre is used")
        single = X.dtype == np.float32 and not self._kink
        single = single and (like is None or like.dtype == np.float32)
        single = single and bool(np.all(frame.inverse < np.finfo(np.float32).max))
        rows, norms = _rows(X, frame, np.float32 if single else np.float64)
        limit = _FLOAT32_RANGE if frame.form == "direct" else _FLOAT32_NORM
        if single and not norms.max(initial=0.0) <= limit:
            rows, norms = _rows(X, frame, np.float64)
        if not norms.max(initial=0.0) <= _LARGEST:
            raise ValueError(
                f"{type(self).__name__}: squared distances overflow, because points are up to "
                f"{np.abs(X).max():.3g} in size for a length scale of {np.min(scale):.3g}; "
                f"scale the features, or raise length_scale"
            )
        arrays = (rows, norms.astype(rows.dtype)) if frame.form == "inner" else (rows,)
        return Prepared(arrays, frame=frame, dtype=rows.dtype)

    def _statistic(
        self, P: Prepared, Q: Prepared, out: np.ndarray, exact: bool = True
    ) -> np.ndarray:
        """Set out <- squared scaled distances, and return it.

        In float64 they are exact to about 1e-11, relative to themselves if that is asked for or if
        the kernel has a kink at 0, otherwise relative to max(s, 1), for the rows as they are
        prepared: of more than eight columns these are rounded, by eps times their distance from the
        centre.  In float32 tiles the error is 5e-7 of the squared norms.  They are not negative
        only if `profile` asks for that.
        """
        A, B, frame, relative = P.arrays[0], Q.arrays[0], P.frame, exact or self._kink
        if frame.form == "direct":
            inverse = frame.inverse.astype(A.dtype, copy=False)
            _direct(A, Q.once("columns", lambda: np.ascontiguousarray(B.T)), inverse, out)
            return out
        if frame.form == "augmented":
            np.matmul(A, Q.once("right", lambda: _right(B)).T, out=out)
        else:
            inner_products(A, B, out)
            out *= -2.0
            out += P.arrays[1][:, None]
            out += Q.arrays[1]
        same = P.coincidences(Q)
        if same[0].size:
            out[same] = 0.0
        refine(A, B, frame.columns, row_norms(P), row_norms(Q), out, relative)
        if not relative and not self._takes_negative:
            np.maximum(out, 0.0, out=out)
        return out

    def _diag(self, X: Any) -> np.ndarray:
        X = self._vectors(X)
        self._scale(X.shape[1])  # as many columns as length scales
        return np.full(X.shape[0], self._at_zero(), dtype=X.dtype)

    @property
    def diagonal_bound(self) -> float:
        at_zero = self._at_zero()
        return at_zero if at_zero > 0.0 else np.inf  # not positive semidefinite

    # ------------------------------------------------------------------ derivatives

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        P, Q, s = self._statistics(X, Z)
        own = {name: np.vdot(W, g) for name, g in self.parameter_slopes(s).items()}
        return {"length_scale": self._pulled_width(P, Q, s, W, self._finite_slope(s))} | own

    def _pulled_width(
        self, P: Prepared, Q: Prepared, s: np.ndarray, W: np.ndarray, slope: np.ndarray
    ) -> Any:
        """Return sum_ij W_ij dk_ij / d log l, of each length scale."""
        M = W * slope
        return -2.0 * (
            self._moments(P, Q, s, M)[1] if np.ndim(self.length_scale) else np.vdot(M, s)
        )

    def _linearise(self, X: Any, Z: Any) -> Linearised:
        if sp.issparse(X) or sp.issparse(Z):
            return super()._linearise(X, Z)
        return _LinearisedRadial(self, X, Z)

    def _jet(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Return profile, slope and slopes in further parameters at s, which is kept."""
        return self.profile(s.copy()), self._finite_slope(s), self.parameter_slopes(s)

    def _moved(self, P: Prepared, Q: Prepared, M: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Return sum_j M_ij (y_i - w_j)_c^2 A_jq, shape (d, n, q), from three products."""
        Y, V = (R.arrays[0][:, : P.frame.columns] for R in (P, Q))
        if P.frame.form == "direct":
            Y, V = Y * P.frame.inverse, V * P.frame.inverse
        columns = [V[:, c, None] ** r * A for r in (1, 2) for c in range(V.shape[1])]
        none, sums = M @ A, (M @ np.concatenate(columns, axis=1)).reshape(len(Y), 2, V.shape[1], -1)
        one, two = np.moveaxis(sums, (1, 2), (0, 1))
        Y = Y.T[:, :, None]
        return np.asarray(Y**2 * none - 2.0 * Y * one + two)

    def _pulled(self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray) -> np.ndarray:
        return 2.0 * self._moments(P, Q, s, M)[0] * P.frame.inverse

    def _moments(
        self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_j M_ij (y_i - w_j)_c and sum_ij M_ij (y_i - w_j)_c^2, overwriting M.

        By matrix products, without the (n, m, d) array, but for pairs that would cancel in them.
        """
        frame = P.frame
        first, second = np.zeros((len(P), frame.columns)), np.zeros(frame.columns)
        Y, V = (R.arrays[0][:, : frame.columns] for R in (P, Q))
        if frame.form == "direct":
            columns = Q.once("columns", lambda: np.ascontiguousarray(V.T))
            _direct_moments(np.ascontiguousarray(M), Y, columns, frame.inverse, first, second)
            return first, second
        # the whole rows, as columns of them are of another layout, to be compiled for by itself
        close_moments(M, P.arrays[0], Q.arrays[0], row_norms(P), row_norms(Q), s, first, second)
        rows, cross = M.sum(axis=1), np.asarray(M @ V)
        second += _square(Y).T @ rows + _square(V).T @ M.sum(axis=0)
        second -= 2.0 * (Y.multiply(cross) if sp.issparse(Y) else Y * cross).sum(axis=0)
        first += (Y.toarray() if sp.issparse(Y) else Y) * rows[:, None]
        first -= cross
        return first, second

    def _finite_slope(self, s: np.ndarray) -> np.ndarray:
        """Return the slope, 0 at s = 0 where it is infinite: there the kink is symmetric."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.slope(s)
        slope[(s == 0) & ~np.isfinite(slope)] = 0.0
        return slope


class _LinearisedRadial(Linearised):
    """profile(s) with its slopes, from one s."""

    kernel: Radial

    def __init__(self, kernel: Radial, X: Any, Z: Any) -> None:
        super().__init__(kernel, X, Z)
        self.P, self.Q, self.s = kernel._statistics(X, Z)
        self.profile, self.slope, self.others = kernel._jet(self.s)

    @property
    def values(self) -> np.ndarray:
        return self.profile

    def total(self, W: np.ndarray) -> float:
        return float(np.vdot(W, self.profile))

    def pullback(self, W: np.ndarray) -> np.ndarray:
        width = self.kernel._pulled_width(self.P, self.Q, self.s, W, self.slope)
        own = {name: np.vdot(W, g) for name, g in self.others.items()}
        return self._in_order({"length_scale": width} | own)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        M, s, P, Q = self.slope, self.s, self.P, self.Q
        if transposed:
            M, s, P, Q = M.T, s.T, Q, P
        if np.ndim(self.kernel.length_scale):
            width = self.kernel._moved(P, Q, M, V)
        else:
            width = ((M * s) @ V)[None]
        own = {name: ((g.T if transposed else g) @ V)[None] for name, g in self.others.items()}
        return self._in_order({"length_scale": -2.0 * width} | own)

    def _in_order(self, parts: dict[str, Any]) -> np.ndarray:
        return np.concatenate([np.atleast_1d(parts[path]) for path, _ in self.kernel._parts])


# ---------------------------------------------------------------------- rows


def _frame(X: Any, inverse: np.ndarray) -> _Frame:
    """Return the frame that points X set for others."""
    if sp.issparse(X) or not len(X):
        form = "inner" if sp.issparse(X) else "direct" if X.shape[1] <= _DIRECT else "augmented"
        return _Frame(form, np.zeros(X.shape[1]), inverse)
    centre = middle(X)
    if X.shape[1] > _DIRECT:
        return _Frame("augmented", centre, inverse)
    # x - c is exact where c / 2 <= x <= 2 c.  Otherwise c is not large beside the differences of
    # the points, and there is little to gain from it.
    with np.errstate(over="ignore"):
        far = np.maximum(X.max(axis=0) - centre, centre - X.min(axis=0)) > np.abs(0.5 * centre)
    return _Frame("direct", np.where(far, 0.0, centre), inverse)


def _rows(X: Any, frame: _Frame, dtype: Any) -> tuple[Any, np.ndarray]:
    """Return the rows that a form wants, and the |y|^2, y = (x - c) / l.

    They are y, augmented by |y|^2 and 1 or not; where differences come first, x - c.
    """
    if sp.issparse(X):
        rows = sp.csr_array(X.multiply(frame.inverse), dtype=dtype)
        rows.sum_duplicates()  # and sorted
        return rows, squared_norms(rows.astype(np.float64, copy=False))
    n, d = X.shape
    rows = np.empty((n, d + 2 if frame.form == "augmented" else d), dtype=dtype)
    norms = np.empty(n)
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite norm is for the caller
        for part in slices(n, _CHUNK):
            Y = X[part] - frame.centre  # in float64: the centre is
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


def _right(rows: np.ndarray) -> np.ndarray:
    """Return [-2 w, 1, |w|^2] for the augmented rows [w, |w|^2, 1]."""
    out = -2.0 * rows
    out[:, -2], out[:, -1] = 1.0, rows[:, -2]
    return out


@jit()
def _direct(A: Any, Bt: Any, inverse: Any, out: Any) -> None:
    """out_ij <- sum_c ((A_ic - B_jc) inverse_c)^2, along j so that the sum is vectorised."""
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


@jit("reassoc", "nsz")
def _direct_moments(M: Any, A: Any, Bt: Any, inverse: Any, first: Any, second: Any) -> None:
    """Add to both what they sum, with y - w = (A - B) inverse."""
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            a, total, square = A[i, c], 0.0, 0.0
            for j in range(M.shape[1]):
                t = (a - Bt[c, j]) * inverse[c]
                total += M[i, j] * t
                square += M[i, j] * (t * t)
            first[i, c] += total
            second[c] += square


def row_norms(P: Prepared) -> np.ndarray:
    """Return the |y|^2 of prepared rows."""
    if P.frame.form == "direct":
        return squared_norms(P.arrays[0] * P.frame.inverse)
    if P.frame.form == "inner":
        return P.arrays[1]
    return P.once("norms", lambda: P.arrays[0][:, P.frame.columns].copy())


def _square(Y: Any) -> Any:
    return Y.multiply(Y) if sp.issparse(Y) else Y * Y
