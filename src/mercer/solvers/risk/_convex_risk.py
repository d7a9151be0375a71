"""The representer theorem in general: any convex loss, any increasing penalty of the norm.

    min_{f, b}  R(f) + alpha g(|f|),        R(f) = sum_i c_i loss(y_i, f(x_i) + b)

The minimum is f = sum_i a_i k(x_i, .): what is orthogonal to the k(x_i, .) changes no f(x_i), and
only adds to the norm.  In whitened coordinates f = Phi w, |f| = |w|, that is a problem in R^m.

    the loss           smooth: Newton's method          of bounded slope: an interior point
    the penalty        g(t) = t^2: one ridge problem    else: a search for the shift of one

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

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Stopwatch, entry_point
from .._report import Status
from ._interior_point import InteriorPoint
from ._losses import PiecewiseQuadratic, Poisson
from ._newton import Newton
from ._penalty import Penalty
from ._regularised_risk import Minimum, RegularisedRisk

__all__ = ["Machine"]

_UNMET = 1e-4  # a stationarity, relative to alpha g', that is worth a warning
_ROUNDING = 1e-10  # the part of the objective that rounding of coefficients times K may cost
_INFINITE = 50.0  # a logarithm that stands for infinity
_BETWEEN_SHIFTS = np.log(10.0)  # the first bracket tries powers of 10
_MAX_SHIFTS = 25
_NEGLIGIBLE = 1e-8  # f = 0 is the minimum if it lies above the bound by this part of R(0)
_TINY = float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True)
class Machine:
    """Minimise  sum_i c_i loss(y_i, (F w + b)_i) + alpha g(|w|).

    Parameters
    ----------
    tol : float
        Stop when the objective is known, or for a smooth loss promises, to be higher than its
        minimum by no more than this part of it; see InteriorPoint.
    max_iter : int
        Steps of Newton's method, or of the interior point, for each shift.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Absolute, Machine, Penalty, RegularisedRisk
    >>> F, y = np.array([[-1.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> risk = RegularisedRisk(F, y, Absolute(), np.ones(3))
    >>> found = Machine().minimize(risk, Penalty.of("ridge", 0.1))
    >>> found.weights.round(6), found.intercept.round(6)
    (array([[1.]]), array([1.]))
    """

    tol: float = 1e-10
    max_iter: int = 100

    @staticmethod
    def workspace(n: int, m: int, q: int) -> int:
        """Return the bytes for q functions: F and two like it, systems, values at the points."""
        return 8 * (3 * n * m + (2 * q + 2) * m * m + 50 * n * q)

    def minimize(
        self, risk: RegularisedRisk, penalty: Penalty, say: Callable[[str], None] | None = None
    ) -> Minimum:
        """Return the minimum of a risk with this penalty in place of its own.

        The `dual` of the minimum holds the coefficients of the theorem themselves.
        """
        watch = Stopwatch()
        search = _Search(self, risk, penalty, say)
        found, shift, n_iter = search.run()
        W, b, t = found.weights, found.intercept, found.norm
        if t > 0:
            penalty.check(t)
            dual, pull = found.dual / shift, shift * t
        else:  # at a kink the losses have many slopes, and the coefficients are 0
            dual, pull = np.zeros_like(found.dual), risk.pull(found.dual)
        push = penalty.slope(t)
        stationarity = _stationarity(risk, found, push)
        unmet = abs(pull - push) > _UNMET * push if t > 0 else stationarity > _UNMET
        if unmet:
            warn_caller(
                f"at |f| = {t:.6g} the losses have a slope of {pull:.6g} in the norm, and the "
                f"penalty {penalty.name} one of {push:.6g}; the usual cause is that it is flat, "
                f"or too small to be told from rounding. Raise alpha, or lower tol",
                ConvergenceWarning,
            )
        objective = risk.losses(W, b) + penalty.value(t)
        V = risk.F.T @ dual
        with np.errstate(over="ignore", invalid="ignore"):  # inf and nan do not agree
            other = risk.losses(V, b) + penalty.value(float(np.linalg.norm(V)))
        agree = other - objective <= max(self.tol, _ROUNDING) * abs(objective)
        report = replace(
            found.report,
            status=Status.NOT_CONVERGED if unmet else found.report.status,
            n_iter=n_iter,
            residual=stationarity,
            seconds=watch.seconds,
            certificate={
                "objective": objective,
                "norm": t,
                "shift": shift,
                "slope": pull,
                "stationarity": stationarity,
                "gap": found.gap,
            },
        )
        return Minimum(W, b, dual if agree else None, objective, report)


def _stationarity(risk: RegularisedRisk, found: Minimum, push: float) -> float:
    """Return |R' + alpha g' f / |f|| relative to alpha g'."""
    if t := found.norm:
        gap = float(np.linalg.norm(risk.F.T @ found.dual - (push / t) * found.weights))
        return gap / max(push, _TINY)
    # alpha g'(0) may well be 0, and the slopes 0 but for rounding
    scale = push or float(np.linalg.norm(risk.F) * np.linalg.norm(found.dual))
    return max(risk.pull(found.dual) - push, 0.0) / max(scale, _TINY)


@dataclass(frozen=True, eq=False)
class _Search:
    """A bracket on x = log mu, and all the ridge problems solved on the way."""

    machine: Machine
    risk: RegularisedRisk
    penalty: Penalty
    say: Callable[[str], None] | None
    known: dict[float, Minimum] = field(default_factory=dict)

    def run(self) -> tuple[Minimum, float, int]:
        """Return the best ridge problem's minimum, its shift, and the steps for all of them."""
        if self.penalty.name == "ridge":
            shift = 2.0 * self.penalty.alpha
            found = self.ridge(self.risk, shift, warn=True)
            return found, shift, found.n_iter
        found, shift = self.crossing()
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(found.report.message, ConvergenceWarning)
        return found, shift, sum(found.n_iter for found in self.known.values())

    def ridge(
        self,
        risk: RegularisedRisk,
        shift: float,
        start: Minimum | None = None,
        *,
        warn: bool = False,
    ) -> Minimum:
        """Return the minimum of R + shift/2 |f|^2."""
        risk, options = replace(risk, shift=shift), (self.machine.tol, self.machine.max_iter)
        if isinstance(risk.loss, PiecewiseQuadratic):
            return InteriorPoint(*options).minimize(risk, None, self.say, warn=warn)
        begin = None
        if start is not None:
            begin = start.weights, start.intercept
        elif isinstance(risk.loss, Poisson) and risk.intercept:
            best = np.log(np.average(risk.Y, axis=0, weights=risk.weights))
            begin = np.zeros((risk.F.shape[1], risk.Y.shape[1])), best
        return Newton(*options).minimize(risk, begin, self.say, warn=warn)

    def crossing(self) -> tuple[Minimum, float]:
        """Return the minimum where both sides agree best, and its shift; inf for f = 0."""
        x = float(np.log(self.penalty.slope(1.0) or self.penalty.alpha))
        way = -np.sign(self.excess(x))
        for _ in range(_MAX_SHIFTS * int(abs(way))):
            if way > 0 and (zero := self.proved_zero(x)) is not None:
                return zero, np.inf
            last, x = x, x + way * _BETWEEN_SHIFTS
            if way * self.excess(x) >= 0:
                brentq(self.excess, last, x, xtol=1e-13, rtol=1e-13)
                x = min(self.known, key=lambda at: abs(self.excess(at)))
                break
        return self.at(x), float(np.exp(x))

    def at(self, x: float) -> Minimum:
        """Return the solution for mu = exp(x), from the nearest one that is known."""
        if x not in self.known:
            near = min(self.known, key=lambda at: abs(at - x), default=None)
            start = None if near is None else self.known[near]
            self.known[x] = self.ridge(self.risk, float(np.exp(x)), start)
        return self.known[x]

    @cached_property
    def zero(self) -> Minimum:
        """F = 0, with the best intercept."""
        found = self.ridge(replace(self.risk, F=self.risk.F[:, :0]), 1.0)
        shape = self.risk.F.shape[1], self.risk.Y.shape[1]
        return found._replace(weights=np.zeros(shape))

    def excess(self, x: float) -> float:
        """Return log(mu |f|) - log(alpha g'(|f|))."""
        t = self.at(x).norm
        pull, push = float(np.exp(x)) * t, self.penalty.slope(t)
        if not pull or not push:
            return _INFINITE * ((pull > 0) - (push > 0))
        return float(np.clip(np.log(pull / push), -_INFINITE, _INFINITE))

    def proved_zero(self, x: float) -> Minimum | None:
        """Return f = 0 if slopes there, or else at mu = exp(x), prove that it is the minimum."""
        steepest = self.penalty.slope(0.0)
        if not steepest > 0.0:
            return None
        risk, zero, near = self.risk, self.zero, self.at(x)
        if risk.pull(zero.dual) <= steepest:
            return zero
        pull, level = risk.pull(near.dual), risk.losses(zero.weights, zero.intercept)
        gap = max(level - risk.losses(near.weights, near.intercept) - pull * near.norm, 0.0)
        if pull > steepest or gap > _NEGLIGIBLE * abs(level) + near.gap:
            return None
        return zero._replace(dual=near.dual, report=replace(zero.report, certificate={"gap": gap}))
