"""The functions to be approximated, and their projection on the span of new points.

    |f - g|^2  =  a^T K a  -  2 b^T K_zx a  +  b^T K_zz b         b = K_zz^-1 K_zx a

The formula holds for every b, not only for the best one: it is evaluated with the b that is
returned, in float64, so that a b damaged by rounding shows in the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import NotPositiveDefiniteError, not_finite
from .._points import doubled, length, sliceable, take
from .._runtime import one_blas_thread
from .._runtime.linalg import solve_triangular
from ..gram import NystroemMap, gram
from ..kernels import Kernel

__all__ = ["Functions", "Projection"]

_ROUNDING = 8.0 * np.finfo(float).eps  # times size^2, may be rounding; half as much was measured
_INDEFINITE = 1e-10  # times size^2, cannot be rounding


@dataclass(frozen=True, eq=False)
class Functions:
    """f_c = sum_i A_ic k(x_i, .), with what every method needs to know of them.

    Attributes
    ----------
    kernel, X, A
        X in float64, if it holds numbers.
    values : ndarray of shape (n, m)
        <f_c, k(z, .)> for a new point z at each x_i; without noise (`White`), which new points do
        not share.
    squares : ndarray of shape (m,)
        |f_c|^2.
    size : ndarray of shape (m,)
        sum_i |A_ic| sqrt(k(x_i, x_i)).  As |k(x, z)|^2 <= k(x, x) k(z, z), its square is not below
        the sum of the moduli of all terms of |f_c|^2, however much these cancel.
    """

    kernel: Kernel
    X: Any
    A: np.ndarray
    values: np.ndarray
    squares: np.ndarray
    size: np.ndarray
    max_memory: Any = None

    @classmethod
    def of(cls, kernel: Kernel, X: Any, A: np.ndarray, max_memory: Any = None) -> Functions:
        """Evaluate the functions in their own points, with one product K A."""
        X, A = doubled(sliceable(X)), np.asarray(A, dtype=np.float64)
        options: dict[str, Any] = {"storage": "tiled", "max_memory": max_memory}
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is looked for below
            values = np.asarray(gram(kernel, X, **options) @ A)
            size = _size(kernel, X, A)
        if not (np.isfinite(values).all() and np.isfinite(size).all()):
            raise not_finite(kernel)
        squares = np.einsum("ic,ic->c", A, values)
        _check(squares, size, kernel)
        if kernel.tells_observations_apart:
            values = np.asarray(gram(kernel, X, take(X, slice(None)), **options) @ A)
        return cls(kernel, X, A, values, np.maximum(squares, 0.0), size, max_memory)

    @property
    def rounding(self) -> np.ndarray:
        """What rounding may have changed in the squares, shape (m,)."""
        return _rounding(self.size)

    def project(self, Z: Any) -> Projection:
        """Return the best approximation in the points Z, without those that depend on others."""
        phi = NystroemMap.on(self.kernel, Z)
        if not len(phi):  # k(z, z) = 0 everywhere: the span of these points is 0
            nothing = np.zeros((1, self.A.shape[1]))
            return Projection(take(Z, np.array([0])), nothing, self.squares, self.rounding)
        L, options = phi.factor, {"storage": "tiled", "max_memory": self.max_memory}
        C = np.asarray(gram(self.kernel, phi.points, self.X, **options) @ self.A)
        with one_blas_thread:  # the bits depend on nothing else
            B = solve_triangular(L, solve_triangular(L, C, lower=True), trans="T", lower=True)
            D = np.asarray(gram(self.kernel, phi.points, **options) @ B)
            squares = self.squares + np.einsum("jc,jc->c", B, D - 2.0 * C)
            size = self.size + _size(self.kernel, phi.points, B)
        return Projection(phi.points, B, np.maximum(squares, 0.0), _rounding(size))


@dataclass(frozen=True, eq=False)
class Projection:
    """g_c = sum_j B_jc k(z_j, .), with |f_c - g_c|^2 and what rounding may add to it."""

    points: Any
    coefficients: np.ndarray
    squares: np.ndarray
    rounding: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """|f_c - g_c|, not below the true one."""
        return np.sqrt(self.squares + self.rounding)

    @property
    def total(self) -> float:
        """sum_c |f_c - g_c|^2, by which methods are compared."""
        return float((self.squares + self.rounding).sum())

    def __len__(self) -> int:
        return length(self.points)


def _size(kernel: Kernel, X: Any, A: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.abs(kernel.diag(X))) @ np.abs(A))


def _rounding(size: np.ndarray) -> np.ndarray:
    return np.asarray(_ROUNDING * size**2)


def _check(squares: np.ndarray, size: np.ndarray, kernel: Kernel) -> None:
    """Refuse kernels whose squares are not between 0 and size^2, as those of a norm are."""
    slack = _INDEFINITE * size**2
    if np.any(squares < -slack):
        raise NotPositiveDefiniteError(
            f"a squared norm is {squares.min():.3g} < 0: {kernel} is not positive semidefinite "
            f"on these points, and without a norm there is no error to keep small"
        )
    above = squares - size**2
    if np.any(above > slack):
        c = int(above.argmax())
        raise NotPositiveDefiniteError(
            f"a squared norm is {squares[c]:.3g}, above the {size[c] ** 2:.3g} that the values "
            f"k(x, x) allow: {kernel} is not positive semidefinite on these points, at most "
            f"conditionally so; choose a Mercer kernel"
        )
