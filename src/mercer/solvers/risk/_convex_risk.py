"""The representer theorem in general: any convex loss, any increasing penalty of the norm.

    min_{f, b}  sum_i c_i loss(y_i, f(x_i) + b) + alpha g(|f|)

The minimum is f = sum_i a_i k(x_i, .): what is orthogonal to the k(x_i, .) changes no f(x_i), and
only adds to the norm.  In whitened coordinates f = Phi w, |f| = |w|, that is a problem in R^m.

    the loss           smooth: Newton's method          of bounded slope: an interior point
    the penalty        g(t) = t^2: one ridge problem    else: a search for the shift of one
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Stopwatch
from .._report import Report, Status
from ._interior_point import InteriorPoint, Program
from ._losses import Loss, PiecewiseQuadratic, Poisson
from ._newton import Minimum, Newton
from ._penalty import Penalty, Ridged

__all__ = ["Machine", "Represented"]

_UNMET = 1e-4  # of alpha g': a stationarity that is worth a warning
_ROUNDING = 1e-10  # of the objective, where coefficients are multiplied with K
_TINY = float(np.finfo(float).tiny)


class Represented(NamedTuple):
    """The minimum: f = F weights + intercept at the points, or sum_i dual_i k(x_i, .)."""

    weights: np.ndarray  # (m, q)
    intercept: np.ndarray  # (q,)
    # (n, q), the coefficients of the theorem: weights = F^T dual; None if with these, as rounding
    # may have it, the objective is higher by more than tol
    dual: np.ndarray | None
    report: Report


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
    >>> from mercer.solvers import Absolute
    >>> from mercer.solvers import Machine
    >>> from mercer.solvers import Penalty
    >>> F, y = np.array([[-1.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> found = Machine().minimize(F, y, Absolute(), np.ones(3), Penalty.of("ridge", 0.1))
    >>> found.weights.round(6), found.intercept.round(6)
    (array([[1.]]), array([1.]))
    """

    tol: float = 1e-10
    max_iter: int = 100

    def minimize(
        self,
        F: np.ndarray,
        Y: np.ndarray,
        loss: Loss,
        weights: np.ndarray,
        penalty: Penalty,
        *,
        intercept: bool = True,
        ordered: bool = False,
        say: Callable[[str], None] | None = None,
    ) -> Represented:
        """Return the minimum for weights c > 0 and Y of shape (n, q).

        With `ordered` the q outputs of a loss of bounded slope do not cross at any point.
        """
        watch = Stopwatch()
        ridge = _Ridge(F, Y, loss, weights, intercept, ordered, self.tol, self.max_iter, say)
        found, shift, n_iter = penalty.minimize(ridge)
        t = found.norm
        if t > 0:
            penalty.check(t)
            W, dual, pull = found.weights, found.dual / shift, shift * t
        else:  # whatever slopes the losses may have at a kink
            W, dual = np.zeros((F.shape[1], Y.shape[1])), np.zeros_like(found.dual)
            pull = found.pull
        push = penalty.slope(t)
        stationarity = _stationarity(F, found, push)
        unmet = abs(pull - push) > _UNMET * push if t > 0 else stationarity > _UNMET
        if unmet:
            warn_caller(
                f"at |f| = {t:.6g} the losses have a slope of {pull:.6g} in the norm, and the "
                f"penalty {penalty.name} one of {push:.6g}; the usual cause is that it is flat, "
                f"or too small to be told from rounding. Raise alpha, or lower tol",
                ConvergenceWarning,
            )
        objective = found.risk + penalty.value(t)
        V = F.T @ dual
        with np.errstate(over="ignore", invalid="ignore"):  # inf and nan do not agree
            other = ridge.risk(V, found.intercept) + penalty.value(float(np.linalg.norm(V)))
        agree = other - objective <= max(self.tol, _ROUNDING) * abs(objective)
        report = dataclasses.replace(
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
                "gap": found.report.certificate["gap"],
            },
        )
        return Represented(W, found.intercept, dual if agree else None, report)


def _stationarity(F: np.ndarray, found: Ridged, push: float) -> float:
    """Return |R' + alpha g' f / |f|| relative to alpha g'."""
    if t := found.norm:
        gap = float(np.linalg.norm(F.T @ found.dual - (push / t) * found.weights))
        return gap / max(push, _TINY)
    # alpha g'(0) may well be 0, and the slopes 0 but for rounding
    scale = push or float(np.linalg.norm(F) * np.linalg.norm(found.dual))
    return max(found.pull - push, 0.0) / max(scale, _TINY)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """The ridge problems R + shift/2 |f|^2, for any shift; f = 0 for a shift of inf."""

    F: np.ndarray
    Y: np.ndarray
    loss: Loss
    weights: np.ndarray
    intercept: bool
    ordered: bool
    tol: float
    max_iter: int
    say: Callable[[str], None] | None

    def __call__(self, shift: float, start: Ridged | None) -> Ridged:
        if shift == np.inf:
            found = dataclasses.replace(self, F=self.F[:, :0])(1.0, None)
            return found._replace(pull=self._pull(found.dual))
        if isinstance(self.loss, PiecewiseQuadratic):
            return self._bounded(self.loss, shift)
        return self._smooth(shift, start)

    def _smooth(self, shift: float, start: Ridged | None) -> Ridged:
        begin = None
        if start is not None:
            begin = start.weights, start.intercept
        elif isinstance(self.loss, Poisson) and self.intercept:
            best = np.log(np.average(self.Y, axis=0, weights=self.weights))
            begin = np.zeros((self.F.shape[1], self.Y.shape[1])), best
        found = Newton(self.tol, self.max_iter).minimize(
            self.F, self.Y, self.loss, self.weights, shift, self.intercept, begin, self.say
        )
        slopes = self.loss(self.F @ found.weights + found.intercept, self.Y).slopes
        return self._ridged(found, -self.weights[:, None] * slopes)

    def _bounded(self, loss: PiecewiseQuadratic, shift: float) -> Ridged:
        found = InteriorPoint(self.tol, self.max_iter).minimize(
            self.F,
            self.Y,
            loss,
            self.weights,
            shift,
            intercept=self.intercept,
            ordered=self.ordered,
            say=self.say,
        )
        return self._ridged(found, found.dual)

    def _ridged(self, found: Minimum | Program, dual: np.ndarray) -> Ridged:
        W, b = found.weights, found.intercept
        pull, risk = self._pull(dual), self.risk(W, b)
        return Ridged(W, b, dual, pull, risk, found.n_iter, found.report)

    def _pull(self, dual: np.ndarray) -> float:
        return float(np.linalg.norm(self.F.T @ dual))

    def risk(self, W: np.ndarray, b: np.ndarray) -> float:
        """Return R at f = F W + b."""
        return float(self.weights @ self.loss(self.F @ W + b, self.Y).values)
