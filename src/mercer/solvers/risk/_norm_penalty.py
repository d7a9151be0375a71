"""Penalties alpha g(|f|) of the RKHS norm, and a solver for any convex loss with any of them.

    min_{f, b}  R(f) + alpha g(|f|),        R(f) = sum_i c_i loss(y_i, f(x_i) + b)

By the representer theorem the minimiser is f = sum_i a_i k(x_i, .), because a component orthogonal
to all k(x_i, .) changes no f(x_i) and only increases the norm.  In whitened coordinates w in R^m,
|f| = |w|, so this is a problem in R^m.  The method depends on the loss and on the penalty:

    loss        smooth: Newton's method             bounded slope: interior point
    penalty     g(t) = t^2: one ridge problem       other g: search for an equivalent ridge problem

At the minimum  R'(f) + alpha g'(|f|) f / |f| = 0.  The minimiser f_mu of the ridge problem
R(f) + mu/2 |f|^2  satisfies the same equation if

    mu |f_mu| = alpha g'(|f_mu|).

As the shift mu grows, |f_mu| decreases and mu |f_mu|, the slope of R in the norm, increases.  For
convex g the two sides therefore cross exactly once, and a bracketing search on mu finds the
crossing.  (For non-convex g a crossing is a local minimum along the norm.)

If there is no crossing for any mu, f = 0 is the minimum.  Then the slope of R at 0 is at most
alpha g'(0), which is possible for g(t) = t.  If R has a kink at 0, it has many slopes there, and a
tangent at f_mu gives the proof instead.  R lies above its tangent, so if mu |f_mu| <= alpha g'(0),

    R(f) + alpha g(|f|) >= R(f_mu) + mu |f_mu|^2 + alpha g(0)     for convex g,

and as mu grows this lower bound rises to the objective at f = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from ..._core import ProgressCallback, Stopwatch, entry_point, warn_caller
from .._report import Status
from ._loss_interior_point import InteriorPoint
from ._losses import PiecewiseQuadratic, Poisson
from ._regularised_risk import Minimum, RegularisedRisk
from ._smooth_risk_solvers import Newton

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class _NormPenaltyTuning:
    """Numerical constants of the search for the equivalent ridge problem."""

    # Warn if the stationarity residual, relative to alpha g', is larger than this.
    stationarity_tol: float = 1e-4
    # The dual coefficients are returned only if recomputing w from them increases the objective by
    # at most this fraction; the increase is caused by rounding.
    dual_rounding: float = 1e-10
    # Finite value that stands for an infinite logarithm, because `brentq` needs finite numbers.
    infinite_log: float = 50.0
    # Distance in log(mu) between the trial shifts of the initial bracket: powers of 10.
    log_shift_step: float = float(np.log(10.0))
    # Number of trial shifts before the search for a bracket stops.
    max_shifts: int = 25
    # f = 0 is accepted as the minimum if its objective exceeds the lower bound by at most this
    # times R(0).
    zero_tol: float = 1e-8


_TUNING = _NormPenaltyTuning()


@dataclass(frozen=True)
class Penalty:
    """Penalty alpha g(t) of the norm t = |f|, with its derivative.

    g must not decrease; then the minimiser is a kernel expansion on the training points, by the
    representer theorem.  Use `Penalty.of` to create a penalty.

    Parameters
    ----------
    g, dg : callable
        The penalty and its derivative, functions of a float t >= 0.
    alpha : float
        Factor by which g is multiplied.
    name : str
        Name of the penalty in messages.

    See Also
    --------
    NormPenaltySolver : Minimise a loss with a penalty.

    References
    ----------
    Schölkopf, Herbrich and Smola, "A generalized representer theorem", COLT 2001.

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

        Returns
        -------
        Penalty
            The penalty.
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
        """Return alpha g(t).

        Parameters
        ----------
        t : float
            The norm |f|.

        Returns
        -------
        float
            The penalty.
        """
        return self.alpha * float(self.g(t))

    def slope(self, t: float) -> float:
        """Return alpha g'(t).

        Parameters
        ----------
        t : float
            The norm |f|.

        Returns
        -------
        float
            The derivative of the penalty.

        Raises
        ------
        ValueError
            If the derivative is negative or not finite.
        """
        slope = float(self.dg(t))
        if not (np.isfinite(slope) and slope >= 0):
            raise ValueError(
                f"the derivative of the penalty {self.name} is {slope:g} at |f| = {t:.6g}, but a "
                f"penalty must not decrease with the norm: its derivative must be finite and not "
                f"negative"
            )
        return self.alpha * slope

    def check(self, t: float) -> None:
        """Check that dg agrees with finite differences of g.

        Parameters
        ----------
        t : float
            A positive norm at which they are compared.

        Raises
        ------
        ValueError
            If they differ.
        """
        h = 1e-5 * t
        expected = (float(self.g(t + h)) - float(self.g(t - h))) / (2.0 * h)
        derivative, rounding = float(self.dg(t)), 1e-9 * abs(self.g(t)) / h
        tolerance = 1e-4 * max(abs(derivative), abs(expected)) + rounding
        if not abs(derivative - expected) <= tolerance:
            raise ValueError(
                f"the derivative of the penalty {self.name} is {derivative:.6g} at |f| = {t:.6g}, "
                f"but finite differences of its value give {expected:.6g}; pass a pair (g, dg) in "
                f"which dg is the derivative of g"
            )


_PENALTIES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "ridge": (lambda t: t * t, lambda t: 2.0 * t),
    "norm": (lambda t: t, lambda t: 1.0),
}


@entry_point
@dataclass(frozen=True)
class NormPenaltySolver:
    """Minimise a convex loss with an increasing penalty of the norm.

        min_{w, b}  sum_i c_i loss(y_i, (F w + b)_i) + alpha g(|w|)

    For the ridge penalty g(t) = t^2, one problem is solved by `Newton` or `InteriorPoint`.  For
    other penalties, a search on mu finds the ridge problem with the same minimiser, mu |f| = alpha
    g'(|f|).  It solves several ridge problems, each from the solution of the previous one.

    Parameters
    ----------
    tol : float, default=1e-10
        Relative accuracy of the objective: stop when the certified gap to the minimum is at most
        `tol` times the objective.  See `Newton` (smooth losses) and `InteriorPoint` (losses of
        bounded slope) for how the gap is computed.
    max_iter : int, default=100
        Maximum number of Newton or interior-point steps for each ridge problem.

    See Also
    --------
    Newton : Ridge penalty and smooth losses.
    InteriorPoint : Ridge penalty and losses of bounded slope.

    References
    ----------
    Schölkopf, Herbrich and Smola, "A generalized representer theorem", COLT 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Absolute, NormPenaltySolver, Penalty, RegularisedRisk
    >>> F, y = np.array([[-1.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> risk = RegularisedRisk(F, y, Absolute(), np.ones(3))
    >>> found = NormPenaltySolver().minimize(risk, Penalty.of("ridge", 0.1))
    >>> found.weights.round(6), found.intercept.round(6)
    (array([[1.]]), array([1.]))
    """

    tol: float = 1e-10
    max_iter: int = 100

    @staticmethod
    def workspace(n: int, m: int, q: int) -> int:
        """Return the memory that the solver needs.

        It counts the coordinates F and two arrays of the same shape, the linear systems, and the
        values at the points.

        Parameters
        ----------
        n : int
            Number of points.
        m : int
            Number of coordinates.
        q : int
            Number of outputs.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * (3 * n * m + (2 * q + 2) * m * m + 50 * n * q)

    def minimize(
        self, risk: RegularisedRisk, penalty: Penalty, log: ProgressCallback | None = None
    ) -> Minimum:
        """Return the minimum of the loss of `risk` plus `penalty`.

        Parameters
        ----------
        risk : RegularisedRisk
            The loss and the data.  Its ridge penalty `shift` is ignored; `penalty` replaces it.
        penalty : Penalty
            The penalty of the norm.
        log : callable or None, default=None
            Called with progress messages.

        Returns
        -------
        Minimum
            Weights of shape (m, q) and intercepts of shape (q,).  Its `dual` holds the coefficients
            a_i of f = sum_i a_i k(x_i, .); they are already divided by the shift, unlike those of
            the other solvers.
        """
        watch = Stopwatch()
        search = _ShiftSearch(self, risk, penalty, log)
        solution, shift, n_iter = search.run()
        W, b, t = solution.weights, solution.intercept, solution.norm
        if t > 0:
            penalty.check(t)
            dual, loss_slope = solution.dual / shift, shift * t
        else:  # the coefficients of f = 0 are 0, even if a kink of the loss allows others
            dual, loss_slope = np.zeros_like(solution.dual), risk.loss_slope(solution.dual)
        penalty_slope = penalty.slope(t)
        stationarity = _stationarity(risk, solution, penalty_slope)
        not_stationary = (
            abs(loss_slope - penalty_slope) > _TUNING.stationarity_tol * penalty_slope
            if t > 0
            else stationarity > _TUNING.stationarity_tol
        )
        if not_stationary:
            warn_caller(
                f"at |f| = {t:.6g} the slope of the losses in the norm is {loss_slope:.6g}, but "
                f"the slope of the penalty {penalty.name} is {penalty_slope:.6g}; at a minimum "
                f"they are equal. The usual cause is a penalty that is flat, or so small that "
                f"rounding errors exceed it. Raise alpha, or lower tol",
                ConvergenceWarning,
            )
        objective = risk.losses(W, b) + penalty.value(t)
        V = risk.F.T @ dual
        with np.errstate(over="ignore", invalid="ignore"):  # inf or nan fails the comparison below
            dual_objective = risk.losses(V, b) + penalty.value(float(np.linalg.norm(V)))
        tolerance = max(self.tol, _TUNING.dual_rounding) * abs(objective)
        dual_is_accurate = dual_objective - objective <= tolerance
        report = replace(
            solution.report,
            status=Status.NOT_CONVERGED if not_stationary else solution.report.status,
            n_iter=n_iter,
            residual=stationarity,
            seconds=watch.seconds,
            certificate={
                "objective": objective,
                "norm": t,
                "shift": shift,
                "slope": loss_slope,
                "stationarity": stationarity,
                "gap": solution.gap,
            },
        )
        return Minimum(W, b, dual if dual_is_accurate else None, objective, report)


def _stationarity(risk: RegularisedRisk, solution: Minimum, penalty_slope: float) -> float:
    """Return the norm of R' + alpha g' f / |f| relative to alpha g'; it is 0 at the minimum."""
    if t := solution.norm:
        gradient = risk.F.T @ solution.dual - (penalty_slope / t) * solution.weights
        return float(np.linalg.norm(gradient)) / max(penalty_slope, _TINY)
    # If alpha g'(0) is 0, the slope of the losses at the minimum is only rounding error.
    # Compare it with the size of the terms from which it is computed.
    scale = penalty_slope or float(np.linalg.norm(risk.F) * np.linalg.norm(solution.dual))
    return max(risk.loss_slope(solution.dual) - penalty_slope, 0.0) / max(scale, _TINY)


@dataclass(frozen=True, eq=False)
class _ShiftSearch:
    """Search for the equivalent ridge penalty mu = exp(x), with a cache of all ridge solutions."""

    solver: NormPenaltySolver
    risk: RegularisedRisk
    penalty: Penalty
    log: ProgressCallback | None
    solutions: dict[float, Minimum] = field(default_factory=dict)

    def run(self) -> tuple[Minimum, float, int]:
        """Return the minimum, the equivalent ridge shift, and the total number of iterations."""
        if self.penalty.name == "ridge":
            shift = 2.0 * self.penalty.alpha
            result = self.solve_ridge(self.risk, shift, warn=True)
            return result, shift, result.n_iter
        result, shift = self.find_crossing()
        if result.report.status is Status.NOT_CONVERGED:
            warn_caller(result.report.message, ConvergenceWarning)
        return result, shift, sum(result.n_iter for result in self.solutions.values())

    def solve_ridge(
        self,
        risk: RegularisedRisk,
        shift: float,
        start: Minimum | None = None,
        *,
        warn: bool = False,
    ) -> Minimum:
        """Return the minimum of R + shift/2 |f|^2."""
        risk, options = replace(risk, shift=shift), (self.solver.tol, self.solver.max_iter)
        if isinstance(risk.loss, PiecewiseQuadratic):
            return InteriorPoint(*options).minimize(risk, None, self.log, warn=warn)
        initial = None
        if start is not None:
            initial = start.weights, start.intercept
        elif isinstance(risk.loss, Poisson) and risk.intercept:
            best = np.log(np.average(risk.Y, axis=0, weights=risk.weights))
            initial = np.zeros((risk.F.shape[1], risk.Y.shape[1])), best
        return Newton(*options).minimize(risk, initial, self.log, warn=warn)

    def find_crossing(self) -> tuple[Minimum, float]:
        """Find the ridge penalty at which the slopes of the losses and of the penalty agree.

        Returns the minimum and this ridge penalty, which is inf if the minimum is f = 0.
        """
        x = float(np.log(self.penalty.slope(1.0) or self.penalty.alpha))
        direction = -np.sign(self.log_slope_excess(x))
        for _ in range(_TUNING.max_shifts * int(abs(direction))):
            if direction > 0 and (zero_minimum := self.certify_zero(x)) is not None:
                return zero_minimum, np.inf
            previous, x = x, x + direction * _TUNING.log_shift_step
            if direction * self.log_slope_excess(x) >= 0:
                brentq(self.log_slope_excess, previous, x, xtol=1e-13, rtol=1e-13)
                x = min(self.solutions, key=lambda candidate: abs(self.log_slope_excess(candidate)))
                break
        return self.solution_at(x), float(np.exp(x))

    def solution_at(self, x: float) -> Minimum:
        """Return the ridge solution for mu = exp(x), starting from the nearest known solution."""
        if x not in self.solutions:
            nearest = min(self.solutions, key=lambda other: abs(other - x), default=None)
            start = None if nearest is None else self.solutions[nearest]
            self.solutions[x] = self.solve_ridge(self.risk, float(np.exp(x)), start)
        return self.solutions[x]

    @cached_property
    def zero_solution(self) -> Minimum:
        """The solution f = 0 with the optimal intercept."""
        solution = self.solve_ridge(replace(self.risk, F=self.risk.F[:, :0]), 1.0)
        shape = self.risk.F.shape[1], self.risk.Y.shape[1]
        return solution._replace(weights=np.zeros(shape))

    def log_slope_excess(self, x: float) -> float:
        """Return log(mu |f|) - log(alpha g'(|f|)) for mu = exp(x), which is 0 at the minimum."""
        t = self.solution_at(x).norm
        loss_slope, penalty_slope = float(np.exp(x)) * t, self.penalty.slope(t)
        if not loss_slope or not penalty_slope:
            return _TUNING.infinite_log * ((loss_slope > 0) - (penalty_slope > 0))
        limit = _TUNING.infinite_log
        return float(np.clip(np.log(loss_slope / penalty_slope), -limit, limit))

    def certify_zero(self, x: float) -> Minimum | None:
        """Return the solution f = 0 if it is proved to be the minimum, otherwise None.

        The proof uses the slope of the losses at 0.  If that does not suffice, it uses the tangent
        of the losses at the ridge solution for mu = exp(x).
        """
        slope_at_zero = self.penalty.slope(0.0)
        if not slope_at_zero > 0.0:
            return None
        risk, zero, tangent = self.risk, self.zero_solution, self.solution_at(x)
        if risk.loss_slope(zero.dual) <= slope_at_zero:
            return zero
        loss_slope = risk.loss_slope(tangent.dual)
        risk_at_zero = risk.losses(zero.weights, zero.intercept)
        decrease = risk_at_zero - risk.losses(tangent.weights, tangent.intercept)
        gap = max(decrease - loss_slope * tangent.norm, 0.0)
        if loss_slope > slope_at_zero or gap > _TUNING.zero_tol * abs(risk_at_zero) + tangent.gap:
            return None
        report = replace(zero.report, certificate={"gap": gap})
        return zero._replace(dual=tangent.dual, report=report)
