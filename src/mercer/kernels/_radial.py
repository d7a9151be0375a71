"""Kernels that are functions of the squared scaled distance s = |(x - z) / l|^2.

A new one needs `profile(s)` and `slope(s)` = profile'(s), and, for parameters beside the length
scale, `shape_slopes(s)`.  The base class owns distances, diagonal, derivatives and the tile:

    s = [y, |y|^2, 1] . [-2 w, 1, |w|^2],      y = (x - c) / l,  w = (z - c) / l,

one GEMM of augmented rows, with c in the middle of the points (distances do not depend on it,
rounding does).  In up to eight dimensions differences are summed directly, which is faster and
does not cancel.  Sparse rows cannot be centred and use the same formula with c = 0.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from .._runtime import jit
from ._bandwidth import gamma_from_rule
from ._base import node, parameter
from ._dot import squared_norms
from ._prepared import Prepared, pair
from ._vectors import (
    VectorKernel,
    check_length_scale,
    check_positive,
    inner_products,
    per_column,
)

__all__ = ["Radial"]

_DIRECT = 8  # up to this many columns differences beat the GEMM
_CHUNK = 1024  # rows converted at a time, so that float64 temporaries stay small
# A float32 exponent is off by about 4e-7 |y|^2 / 2; beyond this many digits lost, use float64.
_FLOAT32_NORM = 500.0


class _Frame(NamedTuple):
    """What both operands of a radial tile share."""

    form: str  # "direct" | "augmented" | "inner"
    centre: np.ndarray | float
    columns: int


@node
class Radial(VectorKernel):
    """k(x, z) = profile(|(x - z) / length_scale|^2); length_scale a number or one per column."""

    length_scale: Any = parameter(1.0)

    # sqrt(s) near 0 magnifies rounding: never in float32, and s that rounding explains is 0
    _kink: ClassVar[bool] = False
    _takes_negative: ClassVar[bool] = False  # profile itself reads s < 0 (rounding) as 0

    def _check(self) -> None:
        check_length_scale(type(self).__name__, self.length_scale)
        self._check_shape()

    def _check_shape(self) -> None:
        """Refuse values of the further parameters that make no kernel."""

    @classmethod
    def from_gamma(cls, gamma: float | str, **options: Any) -> Self:
        """Return the kernel with gamma = 1 / (2 length_scale^2), the other common spelling."""
        if isinstance(gamma, str):
            return cls(length_scale=gamma, **options)
        check_positive(cls.__name__, "gamma", gamma)
        return cls(length_scale=float(np.sqrt(0.5 / gamma)), **options)

    # ------------------------------------------------------------------ the mathematics

    @abstractmethod
    def profile(self, s: np.ndarray) -> np.ndarray:
        """Return the kernel at squared distances s, which may be overwritten."""

    @abstractmethod
    def slope(self, s: np.ndarray) -> np.ndarray:
        """Return d profile / ds."""

    def shape_slopes(self, s: np.ndarray) -> dict[str, np.ndarray]:
        """Return d profile / d log(parameter) for the parameters beside the length scale."""
        return {}

    # ------------------------------------------------------------------ tiles

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        X = self._vectors(X)
        scale = self._scale(X.shape[1])
        if like is not None:
            self._same_width(like.frame.columns, X.shape[1])
            frame = like.frame
        elif sp.issparse(X):
            frame = _Frame("inner", 0.0, X.shape[1])
        else:
            form = "direct" if X.shape[1] <= _DIRECT else "augmented"
            frame = _Frame(form, _centre(X), X.shape[1])
        if frame.form == "inner":
            rows = sp.csr_array(X.multiply(1.0 / scale)) if sp.issparse(X) else X / scale
            norms = squared_norms(rows)
        else:
            if sp.issparse(X):
                raise ValueError(
                    "a sparse operand must be prepared first, so that no centre is used"
                )
            rows, norms = self._scaled_rows(X, frame, scale, X.dtype)
        single = X.dtype == np.float32 and not self._kink
        single = single and norms.max(initial=0.0) <= _FLOAT32_NORM
        single = single and (like is None or like.dtype == np.float32)
        dtype = np.dtype(np.float32 if single else np.float64)
        if rows.dtype != dtype:
            if frame.form == "inner":
                rows = rows.astype(dtype)
                norms = squared_norms(rows)
            else:  # from the input again: rounding to float32 cannot be undone
                rows, norms = self._scaled_rows(X, frame, scale, dtype)
        if not np.all(np.isfinite(norms)):
            raise ValueError(
                f"{type(self).__name__}: squared distances overflow, because points are up to "
                f"{np.abs(X).max():.3g} in size for a length scale of {np.min(scale):.3g}; "
                f"scale the features, or raise length_scale"
            )
        arrays = (rows, norms) if frame.form == "inner" else (rows,)
        return Prepared(arrays, frame=frame, dtype=dtype)

    def _scaled_rows(
        self, X: np.ndarray, frame: _Frame, scale: Any, dtype: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (X - c) / l, augmented by |y|^2 and 1 where the form asks for it."""
        n, d = X.shape
        rows = np.empty((n, d + 2 if frame.form == "augmented" else d), dtype=dtype)
        norms = np.empty(n)
        for start in range(0, n, _CHUNK):
            part = slice(start, start + _CHUNK)
            Y = X[part] - frame.centre  # in float64: the centre is
            Y /= scale
            rows[part, :d] = Y
            norms[part] = squared_norms(rows[part, :d].astype(np.float64, copy=False))
        if frame.form == "augmented":
            rows[:, d], rows[:, d + 1] = norms, 1.0
        return rows, norms

    def _distances(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Set out <- squared scaled distances; rounding may leave them slightly negative."""
        A, B = P.arrays[0], Q.arrays[0]
        if P.frame.form == "direct":
            _direct(A, Q.once("columns", lambda: np.ascontiguousarray(B.T)), out)
        elif P.frame.form == "augmented":
            np.matmul(A, Q.once("right", lambda: _right(B)).T, out=out)
        else:
            inner_products(A, B, out)
            out *= -2.0
            out += P.arrays[1][:, None]
            out += Q.arrays[1]

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._distances(P, Q, out)
        same = P.coincidences(Q)
        if same[0].size:
            out[same] = 0.0
        if not self._takes_negative and P.frame.form != "direct":
            self._clip(P, Q, out)
        result = self.profile(out)
        if result is not out:
            out[...] = result

    def _clip(self, P: Prepared, Q: Prepared, s: np.ndarray) -> np.ndarray:
        """Set to 0 what is negative, and at a kink also what rounding alone may have left."""
        if self._kink:
            norms, others = _norms(P), _norms(Q)
            unit = 4.0 * np.finfo(s.dtype).eps
            s[s <= unit * (norms[:, None] + others)] = 0.0
        return np.maximum(s, 0.0, out=s)

    def _diag(self, X: Any) -> np.ndarray:
        X = self._vectors(X)
        self._scale(X.shape[1])  # as many columns as length scales
        return np.full(X.shape[0], self.profile(np.zeros((1, 1)))[0, 0], dtype=X.dtype)

    @property
    def diagonal_bound(self) -> float:
        at_zero = float(self.profile(np.zeros((1, 1)))[0, 0])
        return at_zero if at_zero > 0.0 else np.inf  # not positive semidefinite

    # ------------------------------------------------------------------ derivatives

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        P, Q, s = self._squared(X, Z)
        M = W * self._finite_slope(s)
        gradient: dict[str, Any] = {}
        if np.ndim(self.length_scale) == 0:
            gradient["length_scale"] = -2.0 * np.sum(M * s)
        else:
            # -2 sum_ij M_ij (y_ic - w_jc)^2, column by column, without the (n, m, d) array
            Y, V = _coordinates(P), _coordinates(Q)
            cross = np.asarray(M @ V)
            cross = Y.multiply(cross).sum(axis=0) if sp.issparse(Y) else (Y * cross).sum(axis=0)
            squares = _square(Y).T @ M.sum(axis=1) + _square(V).T @ M.sum(axis=0)
            gradient["length_scale"] = -2.0 * (squares - 2.0 * np.asarray(cross).ravel())
        return gradient | {name: np.sum(W * g) for name, g in self.shape_slopes(s).items()}

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        P, Q, s = self._squared(X, Z)
        M = W * self._finite_slope(s)
        Y, V = _coordinates(P), _coordinates(Q)
        Y = Y.toarray() if sp.issparse(Y) else Y
        return 2.0 * (M.sum(axis=1)[:, None] * Y - np.asarray(M @ V)) / self._scale(Y.shape[1])

    def _squared(self, X: Any, Z: Any) -> tuple[Prepared, Prepared, np.ndarray]:
        P, Q = pair(self, X, Z)
        s = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        self._distances(P, Q, s)
        s[P.coincidences(Q)] = 0.0
        return P, Q, s if P.frame.form == "direct" else self._clip(P, Q, s)

    def _finite_slope(self, s: np.ndarray) -> np.ndarray:
        """Return the slope, 0 at s = 0 where it is infinite: there the kink is symmetric."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.slope(s)
        slope[(s == 0) & ~np.isfinite(slope)] = 0.0
        return slope

    # ------------------------------------------------------------------ length scale

    def _scale(self, columns: int) -> Any:
        return per_column(type(self).__name__, self.length_scale, columns)

    def _resolve_own(self, X: Any, weights: np.ndarray | None) -> dict[str, Any]:
        if not isinstance(self.length_scale, str):
            return {}
        gamma = gamma_from_rule(self.length_scale, self._vectors(X), weights)
        return {"length_scale": float(np.sqrt(0.5 / gamma))}


# ---------------------------------------------------------------------- rows


def _centre(X: np.ndarray) -> np.ndarray | float:
    """Return the median of each column, over 1000 evenly spaced rows: outliers do not move it."""
    if not len(X):
        return 0.0
    rows = np.linspace(0, len(X) - 1, min(len(X), 1000)).astype(int)
    return np.median(X[rows], axis=0).astype(np.float64)


def _right(rows: np.ndarray) -> np.ndarray:
    """Return [-2 w, 1, |w|^2] for the augmented rows [w, |w|^2, 1]."""
    out = -2.0 * rows
    out[:, -2], out[:, -1] = 1.0, rows[:, -2]
    return out


@jit()
def _direct(A: Any, Bt: Any, out: Any) -> None:
    """out_ij <- sum_c (A_ic - B_jc)^2, along j so that the sum is vectorised."""
    for i in range(A.shape[0]):
        row = out[i]
        a = A[i, 0]
        for j in range(row.shape[0]):
            row[j] = (a - Bt[0, j]) * (a - Bt[0, j])
        for c in range(1, A.shape[1]):
            a = A[i, c]
            for j in range(row.shape[0]):
                row[j] += (a - Bt[c, j]) * (a - Bt[c, j])


def _coordinates(P: Prepared) -> Any:
    """Return the scaled rows y of prepared points, without the augmentation."""
    return P.arrays[0][:, : P.frame.columns]


def _norms(P: Prepared) -> np.ndarray:
    """Return |y|^2 of rows in the "augmented" or "inner" form."""
    return P.arrays[1] if P.frame.form == "inner" else P.arrays[0][:, P.frame.columns]


def _square(Y: Any) -> Any:
    return Y.multiply(Y) if sp.issparse(Y) else Y * Y
