"""Conditionally positive definite functions of the distance.

A kernel is conditionally positive definite of order m if c^T K c >= 0 for all vectors c that are
orthogonal to the polynomials of degree below m.  For order 1 the condition on c is sum c_i = 0; a
centred kernel matrix is then positive semidefinite.  The kernels have minus signs because without
them they would not have this property.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from .._base import node, option
from .._parameter_checks import require
from .._properties import Properties
from ._radial import Radial


@node
class _ConditionallyPositiveDefinite(Radial):
    """Base class of functions of the distance that are only conditionally positive definite."""

    @property
    @abstractmethod
    def _proof(self) -> tuple[str, int, list[float]]:
        """A triple: the rule that proves the order, the order, and a counterexample.

        The counterexample is a list of positions on a line, in units of the length scale; the
        matrix of these points is not positive semidefinite.
        """

    def _properties(self, *inner: Properties) -> Properties:
        rule, order, positions = self._proof
        against: Any = None
        if not isinstance(self.length_scale, str):
            scale = np.atleast_1d(np.asarray(self.length_scale, dtype=float))
            against = np.outer(positions, scale / np.sqrt(scale.size))
        return Properties(rule, order, stationary=True, against=against)


@node
class Multiquadric(_ConditionallyPositiveDefinite):
    """Multiquadric kernel: minus a smooth function that grows with the distance.

        k(x, z) = -sqrt(1 + |x - z|^2 / l^2)

    It is not a Mercer kernel, but conditionally positive definite of order 1.

    Parameters
    ----------
    length_scale : float or array-like of shape (d,), default 1.0
        The length scale l, or one per column.  Tunable.  A rule such as "median" is also possible;
        `resolve` replaces it by a value for the data.

    Examples
    --------
    >>> from mercer.kernels import Multiquadric
    >>> Multiquadric()([[0.0]], [[3.0**0.5]])
    array([[-2.]])
    """

    is_decreasing: ClassVar[bool] = True

    @property
    def _proof(self) -> tuple[str, int, list[float]]:
        return "Bernstein: sqrt(1 + |x - z|^2) is conditionally negative definite", 1, [0.0]

    def profile(self, s: np.ndarray) -> np.ndarray:
        s += 1.0
        np.sqrt(s, out=s)
        return np.negative(s, out=s)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -0.5 / np.sqrt(1.0 + s)


@node
class ThinPlate(_ConditionallyPositiveDefinite):
    """Thin-plate spline kernel, for smooth interpolation of scattered data.

        k(x, z) = r^2 log r (degree 2) or -r^4 log r (degree 4),  r = |x - z| / l

    It is not a Mercer kernel, but conditionally positive definite: of order 2 for degree 2, and of
    order 3 for degree 4.  With the opposite signs it would not have this property.

    Parameters
    ----------
    length_scale : float or array-like of shape (d,), default 1.0
        The length scale l, or one per column.  Tunable.  A rule such as "median" is also possible;
        `resolve` replaces it by a value for the data.
    degree : {2, 4}, default 2
        The power of r.  Degree 4 gives smoother functions.

    Examples
    --------
    >>> from mercer.kernels import ThinPlate
    >>> ThinPlate()([[0.0]], [[0.0], [2.0]]).round(4)
    array([[0.    , 2.7726]])
    """

    degree: int = option(2, require(lambda degree: degree in (2, 4), "2 or 4"))

    _has_kink_at_zero: ClassVar[bool] = True

    @property
    def _proof(self) -> tuple[str, int, list[float]]:
        rule = "Micchelli: a derivative of the profile in |x - z|^2 is completely monotone"
        return rule, 1 + self.degree // 2, [0.0, 2.0 if self.degree == 2 else 0.5]

    def profile(self, s: np.ndarray) -> np.ndarray:
        return 0.5 * xlogy(s, s) if self.degree == 2 else -0.5 * xlogy(s * s, s)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return 0.5 * (np.log(s) + 1.0) if self.degree == 2 else -(xlogy(s, s) + 0.5 * s)


@node
class Distance(_ConditionallyPositiveDefinite):
    """Minus a power of the distance.

        k(x, z) = -|x - z|^b / l^b,  0 < b <= 2

    It is not a Mercer kernel, but conditionally positive definite of order 1.  For b = 1 it is the
    kernel of the energy distance; for b = 2, centring it gives twice the linear kernel (for l = 1).

    Parameters
    ----------
    length_scale : float or array-like of shape (d,), default 1.0
        The length scale l, or one per column.  Tunable.  A rule such as "median" is also possible;
        `resolve` replaces it by a value for the data.
    exponent : float, default 1.0
        The exponent b, in (0, 2].

    Examples
    --------
    >>> from mercer.kernels import Distance
    >>> Distance()([[0.0, 0.0]], [[3.0, 4.0]])
    array([[-5.]])
    """

    exponent: float = 1.0

    is_decreasing: ClassVar[bool] = True
    _has_kink_at_zero: ClassVar[bool] = True

    def _check(self) -> None:
        if not (isinstance(self.exponent, (int, float, np.number)) and 0 < self.exponent <= 2):
            raise ValueError(
                f"Distance: exponent must lie in (0, 2], got {self.exponent!r}; "
                f"with an exponent above 2, the kernel is not conditionally positive definite of "
                f"order 1"
            )

    @property
    def _proof(self) -> tuple[str, int, list[float]]:
        rule = "Schoenberg: |x - z|^b, 0 < b <= 2, is conditionally negative definite"
        return rule, 1, [0.0, 1.0]

    def profile(self, s: np.ndarray) -> np.ndarray:
        np.sqrt(s, out=s) if self.exponent == 1 else np.power(s, 0.5 * self.exponent, out=s)
        return np.negative(s, out=s)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -0.5 * self.exponent * s ** (0.5 * self.exponent - 1.0)
