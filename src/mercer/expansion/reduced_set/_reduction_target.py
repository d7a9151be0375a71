"""The functions that a reduced set approximates, and their projection on the span of new points.

    |f - g|^2  =  a^T K a  -  2 b^T K_zx a  +  b^T K_zz b         b = K_zz^-1 K_zx a

f = sum_i a_i k(x_i, .) is approximated by g = sum_j b_j k(z_j, .), and K = k(X, X), K_zx = k(Z, X),
K_zz = k(Z, Z).  The formula holds for every b, not only for the optimal one.  It is evaluated in
float64 with the b that is returned, so that the error includes the effect of rounding in b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import (
    NotPositiveDefiniteError,
    as_csr,
    as_float64,
    length,
    not_finite_error,
    one_blas_thread,
    take,
)
from ..._core.linalg import solve_triangular
from ...gram import NystroemMap, gram
from ...kernels import Kernel

__all__ = ["SpanProjection", "TargetFunctions"]

# Bound on the rounding error of a squared norm, relative to size^2.  Measured errors are at most
# half of it.
_RELATIVE_ROUNDING = 8.0 * np.finfo(float).eps
# If a squared norm violates its bounds by more than this times size^2, the kernel is indefinite.
_INDEFINITE_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class TargetFunctions:
    """The functions f_c = sum_i A_ic k(x_i, .) to approximate, and quantities computed from them.

    Attributes
    ----------
    kernel : Kernel
    X : points
        The points, in float64 if they are numeric.
    A : ndarray of shape (n, m)
        The coefficients.
    values : ndarray of shape (n, m)
        The values f_c(x_i), without the noise of a `White` kernel, because new points at x_i do not
        have the same noise.
    squares : ndarray of shape (m,)
        Squared norms |f_c|^2.
    size : ndarray of shape (m,)
        sum_i |A_ic| sqrt(k(x_i, x_i)).  Because |k(x, z)|^2 <= k(x, x) k(z, z), its square bounds
        the sum of the absolute values of all terms of |f_c|^2, even if they cancel.
    max_memory : int, str or None
        Memory budget.
    """

    kernel: Kernel
    X: Any
    A: np.ndarray
    values: np.ndarray
    squares: np.ndarray
    size: np.ndarray
    max_memory: Any = None

    @classmethod
    def of(cls, kernel: Kernel, X: Any, A: np.ndarray, max_memory: Any = None) -> TargetFunctions:
        """Return the target functions with coefficients A; needs one product with K."""
        X, A = as_float64(as_csr(X)), np.asarray(A, dtype=np.float64)
        options: dict[str, Any] = {"storage": "tiled", "max_memory": max_memory}
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
            values = np.asarray(gram(kernel, X, **options) @ A)
            size = _coefficient_scale(kernel, X, A)
        if not (np.isfinite(values).all() and np.isfinite(size).all()):
            raise not_finite_error(kernel)
        squares = np.einsum("ic,ic->c", A, values)
        _check_squared_norms(squares, size, kernel)
        if kernel.distinguishes_observations:
            values = np.asarray(gram(kernel, X, take(X, slice(None)), **options) @ A)
        return cls(kernel, X, A, values, np.maximum(squares, 0.0), size, max_memory)

    @property
    def rounding(self) -> np.ndarray:
        """Bound on the rounding errors of the squared norms, shape (m,)."""
        return _rounding(self.size)

    def project(self, Z: Any) -> SpanProjection:
        """Return the projection on the span of the points Z.

        Points that are linearly dependent on others in feature space are dropped.
        """
        phi = NystroemMap.on(self.kernel, Z)
        if not len(phi):  # k(z, z) = 0 at all points, and the projection is 0
            zeros = np.zeros((1, self.A.shape[1]))
            return SpanProjection(take(Z, np.array([0])), zeros, self.squares, self.rounding)
        L, options = phi.factor, {"storage": "tiled", "max_memory": self.max_memory}
        C = np.asarray(gram(self.kernel, phi.points, self.X, **options) @ self.A)
        with one_blas_thread:  # results must not depend on the number of threads
            B = solve_triangular(L, solve_triangular(L, C, lower=True), trans="T", lower=True)
            D = np.asarray(gram(self.kernel, phi.points, **options) @ B)
            squares = self.squares + np.einsum("jc,jc->c", B, D - 2.0 * C)
            size = self.size + _coefficient_scale(self.kernel, phi.points, B)
        return SpanProjection(phi.points, B, np.maximum(squares, 0.0), _rounding(size))


@dataclass(frozen=True, eq=False)
class SpanProjection:
    """The approximations g_c = sum_j B_jc k(z_j, .) of the target functions f_c.

    `squares` are the squared errors |f_c - g_c|^2, and `rounding` bounds their rounding errors.
    """

    points: Any
    coefficients: np.ndarray
    squares: np.ndarray
    rounding: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """Upper bounds on |f_c - g_c|; they include rounding."""
        return np.sqrt(self.squares + self.rounding)

    @property
    def total(self) -> float:
        """The total squared error sum_c |f_c - g_c|^2, used to compare methods."""
        return float((self.squares + self.rounding).sum())

    def __len__(self) -> int:
        return length(self.points)


def _coefficient_scale(kernel: Kernel, X: Any, A: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.abs(kernel.diag(X))) @ np.abs(A))


def _rounding(size: np.ndarray) -> np.ndarray:
    return np.asarray(_RELATIVE_ROUNDING * size**2)


def _check_squared_norms(squares: np.ndarray, size: np.ndarray, kernel: Kernel) -> None:
    """Raise NotPositiveDefiniteError if a squared norm is not between 0 and size^2."""
    tolerance = _INDEFINITE_TOL * size**2
    if np.any(squares < -tolerance):
        raise NotPositiveDefiniteError(
            f"a squared norm is {squares.min():.3g} < 0: {kernel} is not positive semidefinite on "
            f"these points, so that the approximation error is not defined; choose a Mercer kernel"
        )
    excess = squares - size**2
    if np.any(excess > tolerance):
        c = int(excess.argmax())
        raise NotPositiveDefiniteError(
            f"a squared norm is {squares[c]:.3g}, but the values k(x, x) allow at most "
            f"{size[c] ** 2:.3g}: {kernel} is not positive semidefinite on these points (it may be "
            f"conditionally positive definite); choose a Mercer kernel"
        )
