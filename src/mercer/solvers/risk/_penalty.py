"""Any increasing penalty of the norm, by way of the ridge.

    min_f  R(f) + alpha g(|f|)          R the sum of the losses, g increasing

At the minimum  R'(f) + alpha g'(|f|) f / |f| = 0,  which is also what holds at the minimum f_mu of
the ridge problem  R(f) + mu/2 |f|^2  with

    mu |f_mu| = alpha g'(|f_mu|).

As mu grows |f_mu| falls, and mu |f_mu|, the slope of R in the norm, rises: for convex g the two
sides cross once, and a bracket on mu always closes.  (For other g a crossing is a local minimum
along the norm.)  No crossing however large mu is means that f = 0 is the minimum: then the slope of
R at 0 is at most alpha g'(0), as with g(t) = t it may be.  Where R has a kink at 0 it has many
slopes; then a tangent at f_mu proves it: R is nowhere below, so that if mu |f_mu| <= alpha g'(0)

    R(f) + alpha g(|f|) >= R(f_mu) + mu |f_mu|^2 + alpha g(0)     for convex g,

and as mu grows this bound rises to the objective at f = 0.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from .._report import Report, Status

__all__ = ["Penalised", "Penalty", "Ridged"]

_FAR = 50.0  # a logarithm that stands for infinity
_FACTOR = np.log(10.0)  # between shifts that are tried
_TRIES = 25
_NOTHING = 1e-8  # of R(0): what f = 0 may lie above the bound


class Ridged(NamedTuple):
    """The minimum of R + shift/2 |f|^2, whatever found it."""

    weights: np.ndarray  # w, with |f| = |w|
    intercept: np.ndarray
    dual: np.ndarray  # a = minus the weighted slopes of the losses: shift w = F^T a
    pull: float  # |F^T a|, the slope of R in the norm
    risk: float  # R
    n_iter: int
    report: Report

    @property
    def norm(self) -> float:
        """|f|."""
        return float(np.linalg.norm(self.weights))


class Penalised(NamedTuple):
    """The minimum of R + alpha g(|f|), which is one of a ridge problem."""

    found: Ridged
    shift: float  # inf if f = 0
    n_iter: int  # steps of all ridge problems


Solve = Callable[[float, Ridged | None], Ridged]


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

    # ------------------------------------------------------------------ the search

    def minimize(self, solve: Solve) -> Penalised:
        """Return the minimum; `solve(shift, start)` returns those of ridge problems.

        The start is the solution for another shift, or None.  A shift of inf asks for f = 0 and
        the best intercept.
        """
        if self.name == "ridge":
            found = solve(2.0 * self.alpha, None)
            return Penalised(found, 2.0 * self.alpha, found.n_iter)
        return _Search(self, solve).run()


class _Search:
    """A bracket on x = log mu, and all the ridge problems solved on the way."""

    def __init__(self, penalty: Penalty, solve: Solve) -> None:
        self.penalty, self.solve = penalty, solve
        self.known: dict[float, Ridged] = {}

    def run(self) -> Penalised:
        """Return what there is where both sides agree best."""
        x = float(np.log(self.penalty.slope(1.0) or self.penalty.alpha))
        way = -np.sign(self.excess(x))
        for _ in range(_TRIES * int(abs(way))):
            if way > 0 and (zero := self.nothing(x)) is not None:
                return self.end(zero, np.inf)
            last, x = x, x + way * _FACTOR
            if way * self.excess(x) >= 0:
                brentq(self.excess, last, x, xtol=1e-13, rtol=1e-13)
                x = min(self.known, key=lambda at: abs(self.excess(at)))
                break
        return self.end(self.at(x), float(np.exp(x)))

    def end(self, found: Ridged, shift: float) -> Penalised:
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(found.report.message, ConvergenceWarning)
        return Penalised(found, shift, sum(found.n_iter for found in self.known.values()))

    def at(self, x: float) -> Ridged:
        """Return the solution for mu = exp(x), from the nearest one that is known."""
        if x not in self.known:
            near = min(self.known, key=lambda at: abs(at - x), default=None)
            self.known[x] = self.quietly(np.exp(x), None if near is None else self.known[near])
        return self.known[x]

    @cached_property
    def zero(self) -> Ridged:
        """F = 0, with the best intercept."""
        return self.quietly(np.inf, None)

    def quietly(self, shift: float, start: Ridged | None) -> Ridged:
        with warnings.catch_warnings():  # only the last one counts, and its report says it
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.solve(float(shift), start)

    def excess(self, x: float) -> float:
        """Return log(mu |f|) - log(alpha g'(|f|))."""
        t = self.at(x).norm
        pull, push = float(np.exp(x)) * t, self.penalty.slope(t)
        if not pull or not push:
            return _FAR * ((pull > 0) - (push > 0))
        return float(np.clip(np.log(pull / push), -_FAR, _FAR))

    def nothing(self, x: float) -> Ridged | None:
        """Return f = 0 if slopes there, or else at mu = exp(x), prove that it is the minimum."""
        steepest = self.penalty.slope(0.0)
        if not steepest > 0.0:
            return None
        zero, near = self.zero, self.at(x)
        if zero.pull <= steepest:
            return zero
        gap = max(zero.risk - near.risk - near.pull * near.norm, 0.0)
        slack = _NOTHING * abs(zero.risk) + near.report.certificate["gap"]
        if near.pull > steepest or gap > slack:
            return None
        report = dataclasses.replace(zero.report, certificate={"gap": gap})
        return zero._replace(dual=near.dual, pull=near.pull, report=report)


_NAMED: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "ridge": (lambda t: t * t, lambda t: 2.0 * t),
    "norm": (lambda t: t, lambda t: 1.0),
}
