"""alpha g(|f|): an increasing penalty of the norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Penalty"]


@dataclass(frozen=True)
class Penalty:
    """alpha g(t) with its derivative.

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
        """Return the penalty of a name, a pair (g, dg), or an object with value and derivative."""
        if isinstance(penalty, str):
            g, dg = _NAMED[penalty]
            return cls(g, dg, alpha, penalty)
        if hasattr(penalty, "value") and hasattr(penalty, "derivative"):
            return cls(penalty.value, penalty.derivative, alpha, repr(penalty))
        pair = tuple(penalty)
        if len(pair) != 2 or not all(callable(part) for part in pair):
            raise ValueError(
                f"a penalty of one's own is a pair of functions (g, dg) of the norm, g and its "
                f"derivative, got {penalty!r}"
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
                f"penalty must increase with the norm: finite and not negative"
            )
        return self.alpha * slope

    def check(self, t: float) -> None:
        """Refuse a derivative that differences of g contradict at t > 0."""
        h = 1e-5 * t
        want, got = (float(self.g(t + h)) - float(self.g(t - h))) / (2.0 * h), float(self.dg(t))
        if not abs(got - want) <= 1e-4 * max(abs(got), abs(want)) + 1e-9 * abs(self.g(t)) / h:
            raise ValueError(
                f"the derivative of the penalty {self.name} is {got:.6g} at |f| = {t:.6g}, but "
                f"differences of its value say {want:.6g}; give (g, dg) with dg = g'"
            )


_NAMED: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "ridge": (lambda t: t * t, lambda t: 2.0 * t),
    "norm": (lambda t: t, lambda t: 1.0),
}
