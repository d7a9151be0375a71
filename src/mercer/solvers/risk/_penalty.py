"""Penalties alpha g(|f|) that increase with the RKHS norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Penalty:
    """Penalty alpha g(t) of the norm t = |f|, with its derivative.

    Parameters
    ----------
    g, dg : function
        The penalty and its derivative, functions of a float t >= 0.
    alpha : float
        Factor by which g is multiplied.
    name : str
        Name of the penalty in messages.

    Examples
    --------
    >>> from mercer.solvers import Penalty
    >>> Penalty.of("ridge", 0.5).slope(3.0)
    3.0
    >>> Penalty.of((lambda t: t**4, lambda t: 4 * t**3), 1.0).value(2.0)
    16.0
    """

    g: Callable[[float], float]
    dg: Callable[[float], float]
    alpha: float
    name: str

    @classmethod
    def of(cls, penalty: Any, alpha: float) -> Penalty:
        """Create a penalty from its name, from a pair of functions or from an object.

        Parameters
        ----------
        penalty : {"ridge", "norm"}, pair of functions (g, dg), or object
            "ridge" is g(t) = t^2 and "norm" is g(t) = t.  An object must have the methods
            value(t) and derivative(t).
        alpha : float
            Factor by which g is multiplied.
        """
        if isinstance(penalty, str):
            g, dg = _PENALTIES[penalty]
            return cls(g, dg, alpha, penalty)
        if hasattr(penalty, "value") and hasattr(penalty, "derivative"):
            return cls(penalty.value, penalty.derivative, alpha, repr(penalty))
        pair = tuple(penalty)
        if len(pair) != 2 or not all(callable(part) for part in pair):
            raise ValueError(
                f"a custom penalty must be a pair of functions (g, dg), where g(norm) is the "
                f"penalty and dg its derivative, got {penalty!r}"
            )
        return cls(*pair, alpha, "g")

    def value(self, t: float) -> float:
        """Return alpha g(t)."""
        return self.alpha * float(self.g(t))

    def slope(self, t: float) -> float:
        """Return alpha g'(t)."""
        slope = float(self.dg(t))
        if not (np.isfinite(slope) and slope >= 0):
            raise ValueError(
                f"the derivative of the penalty {self.name} is {slope:g} at |f| = {t:.6g}, but a "
                f"penalty must not decrease with the norm: its derivative must be finite and not "
                f"negative"
            )
        return self.alpha * slope

    def check(self, t: float) -> None:
        """Raise ValueError if dg differs from finite differences of g at t > 0."""
        h = 1e-5 * t
        expected, derivative = (
            (float(self.g(t + h)) - float(self.g(t - h))) / (2.0 * h),
            float(self.dg(t)),
        )
        if (
            not abs(derivative - expected)
            <= 1e-4 * max(abs(derivative), abs(expected)) + 1e-9 * abs(self.g(t)) / h
        ):
            raise ValueError(
                f"the derivative of the penalty {self.name} is {derivative:.6g} at |f| = {t:.6g}, "
                f"but finite differences of its value give {expected:.6g}; pass a pair (g, dg) in "
                f"which dg is the derivative of g"
            )


_PENALTIES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "ridge": (lambda t: t * t, lambda t: 2.0 * t),
    "norm": (lambda t: t, lambda t: 1.0),
}
