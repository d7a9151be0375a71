"""The regularised convex risk in whitened coordinates, and the base class of its solvers.

    J(w, b) = sum_i v_i loss(y_i, (F w + b)_i) + (mu / 2) |w|^2,        w (m, q),  b (q,)

F holds the whitened coordinates of the points, v_i are sample weights and mu is the ridge penalty,
called `shift` in the code.

This module defines the problem and the result type that all risk solvers share.  For smooth losses
it also provides derivatives, Newton steps and line searches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import ProgressCallback, Stopwatch, warn_caller
from .._report import Report, Status
from ._hessian import BlockPreconditioner, JointPreconditioner, is_coupled, newton_direction
from ._losses import LocalLoss, Loss

if TYPE_CHECKING:
    from ._newton_blockwise import RiskSums


@dataclass(frozen=True)
class _LineSearchTuning:
    """Numerical constants of the line search and of the stopping rule."""

    # Maximum number of evaluations of J in a line search, and of Newton steps for the intercept.
    max_evaluations: int = 30
    # The line search stops once the slope has fallen to this fraction of its initial value.
    slope_reduction: float = 0.1
    # Maximum length of a step, in units of the Newton step.
    longest_step: float = 64.0
    # Relative difference that rounding can cause between two evaluations of J.
    rounding: float = 1e-12
    # Relative gap to the minimum that is accepted if rounding prevents a smaller one.
    excused_gap: float = 1e-6


_TUNING = _LineSearchTuning()
_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


Start = tuple[np.ndarray, np.ndarray]  # initial w and b


class State(NamedTuple):
    """A point (w, b) of the search, its predictions f, the loss at f and the objective."""

    w: np.ndarray
    b: np.ndarray
    f: np.ndarray
    local: LocalLoss
    value: float


class NewtonStep(NamedTuple):
    """A Newton step: its components in w, b and f, the decrement, and the cost of computing it."""

    w: np.ndarray
    b: np.ndarray
    f: np.ndarray
    decrease: float  # squared Newton decrement, minus the product of gradient and step
    products: int  # number of Hessian products that conjugate gradients took


class Minimum(NamedTuple):
    """The minimum of a regularised risk: f = F weights + intercept at the points.

    F holds the whitened coordinates of the points, and mu is the ridge penalty.

    Attributes
    ----------
    weights : ndarray of shape (m, q)
        Weights of the coordinates, one column for each output.
    intercept : ndarray of shape (q,)
        Intercepts; 0 if none are fitted.
    dual : ndarray of shape (n, q) or None
        Minus the weighted slopes of the losses, so that mu weights = F^T dual.  The coefficients of
        the kernel expansion of f on the training points are dual / mu.  None if rounding makes it
        useless.
    value : float
        The objective.
    report : Report
        Status, number of iterations, and the certified gap.
    sums : RiskSums or None, default=None
        The sums over the points at the last evaluation, if the solver does not store F
        (`OutOfCoreNewton`).

    See Also
    --------
    RegularisedRisk : The problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Newton, RegularisedRisk, Squared
    >>> F, Y = np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])
    >>> found = Newton().minimize(RegularisedRisk(F, Y, Squared(), np.ones(2), 1e-9, False))
    >>> found.weights.round(6), found.gap < 1e-9
    (array([[1.]]), True)
    """

    weights: np.ndarray
    intercept: np.ndarray
    dual: Any
    value: float
    report: Report
    sums: RiskSums | None = None

    @property
    def n_iter(self) -> int:
        """The number of iterations."""
        return self.report.n_iter

    @property
    def gap(self) -> float:
        """Upper bound on the difference between `value` and the true minimum."""
        return float(self.report.certificate["gap"])

    @property
    def norm(self) -> float:
        """The RKHS norm |f| of the solution."""
        return float(np.linalg.norm(self.weights))


Risk = TypeVar("Risk")  # the form of the risk: in memory, or in blocks


class RiskSearch(ABC, Generic[Risk]):
    """Base class of solvers that minimise a regularised risk, and report how they ended."""

    def minimize(
        self,
        risk: Risk,
        start: Start | None = None,
        log: ProgressCallback | None = None,
        *,
        warn: bool = True,
    ) -> Minimum:
        """Minimise the regularised risk.

        Parameters
        ----------
        risk : RegularisedRisk or OutOfCoreRisk
            The problem; its loss must be one that the solver supports.
        start : tuple (w, b) or None, default=None
            Initial point, arrays of shape (m, q) and (q,); None means 0.
        log : callable or None, default=None
            Called with progress messages.
        warn : bool, default=True
            Whether to warn if the solver did not converge.  The report always contains the status.

        Returns
        -------
        Minimum
            Weights of shape (m, q), intercepts of shape (q,), the objective and its certified gap.
        """
        watch = Stopwatch()
        found, failure = self._search(risk, start, log or (lambda _: None))
        if failure and warn:
            warn_caller(failure, ConvergenceWarning)
        report = replace(
            found.report,
            status=Status.NOT_CONVERGED if failure else Status.CONVERGED,
            seconds=watch.seconds,
            message="; ".join(filter(None, [found.report.message, failure])),
        )
        return found._replace(report=report)

    @abstractmethod
    def _search(
        self, risk: Risk, start: Start | None, log: ProgressCallback
    ) -> tuple[Minimum, str]:
        """Return the minimum, and a warning text if the solver did not converge."""

    def _report(
        self, n_iter: int, residual: float, certificate: dict[str, Any], message: str = ""
    ) -> Report:
        """Return a report, to which `minimize` adds the status and the elapsed time."""
        numbers = n_iter, residual, 0.0
        return Report(repr(self), Status.CONVERGED, *numbers, message, certificate)


@dataclass(frozen=True, eq=False)
class RegularisedRisk:
    """A convex loss with a ridge penalty, in whitened coordinates.

        J(w, b) = sum_i v_i loss(y_i, (F w + b)_i) + (mu / 2) |w|^2

    The norm of w is the RKHS norm of f, so that this is the problem of kernel logistic regression,
    kernel quantile regression and similar methods.  `Newton` minimises it for smooth losses, and
    `InteriorPoint` for losses of bounded slope.

    Parameters
    ----------
    F : ndarray of shape (n, m)
        Whitened coordinates of the points.
    Y : ndarray of shape (n, q)
        Targets.
    loss : Loss
        The loss, convex in the predictions.
    weights : ndarray of shape (n,)
        Sample weights v_i, positive.
    shift : float, default=1.0
        Ridge penalty mu, positive.  A larger penalty gives a smoother f.
    intercept : bool, default=True
        Whether to fit the intercept b; otherwise it is 0.
    ordered : bool, default=False
        Whether to constrain the outputs to be in ascending order at every training point.  Only for
        losses of bounded slope.

    See Also
    --------
    whiten : Compute the coordinates F.
    Newton : The solver for smooth losses.
    InteriorPoint : The solver for losses of bounded slope.

    References
    ----------
    Schölkopf and Smola, "Learning with kernels", MIT Press, 2002,
    chapter 4.

    Boyd and Vandenberghe, "Convex optimization", Cambridge University Press, 2004,
    chapter 9.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import RegularisedRisk, Squared
    >>> F, Y = np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])
    >>> risk = RegularisedRisk(F, Y, Squared(), weights=np.ones(2), shift=0.5, intercept=False)
    >>> risk.F.shape, risk.shift
    ((2, 1), 0.5)
    """

    F: np.ndarray
    Y: np.ndarray
    loss: Loss
    weights: np.ndarray
    shift: float = 1.0
    intercept: bool = True
    ordered: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.shift) and self.shift > 0):
            raise ValueError(f"shift must be positive and finite, got {self.shift!r}")

    def losses(self, w: np.ndarray, b: np.ndarray) -> float:
        """Return the weighted sum of the losses.

        Parameters
        ----------
        w : ndarray of shape (m, q)
            Weights of the coordinates.
        b : ndarray of shape (q,)
            Intercepts.

        Returns
        -------
        float
            The objective without the ridge penalty.
        """
        return float(self.weights @ self.loss(self.F @ w + b, self.Y).values)

    def dual(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return minus the weighted slopes of the losses.

        Parameters
        ----------
        w : ndarray of shape (m, q)
            Weights of the coordinates.
        b : ndarray of shape (q,)
            Intercepts.

        Returns
        -------
        ndarray of shape (n, q)
            At the minimum, mu w = F^T dual.
        """
        slopes: np.ndarray = -self.weights[:, None] * self.loss(self.F @ w + b, self.Y).slopes
        return slopes

    def loss_slope(self, dual: np.ndarray) -> float:
        """Return |F^T dual|, the slope of the losses with respect to the norm of f.

        Parameters
        ----------
        dual : ndarray of shape (n, q)
            Minus the weighted slopes of the losses.

        Returns
        -------
        float
            The slope.
        """
        return float(np.linalg.norm(self.F.T @ dual))

    def minimum(self, state: State, report: Report) -> Minimum:
        """Return the result of a solver that ended in a state.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.
        report : Report
            The report of the solver.

        Returns
        -------
        Minimum
            The result.
        """
        return Minimum(state.w, state.b, self.dual(state.w, state.b), state.value, report)

    def initial_state(self, start: Start | None) -> State:
        """Return the state at `start`, or at 0 if the objective is smaller there.

        Parameters
        ----------
        start : tuple (w, b) or None
            Initial weights of shape (m, q) and intercepts of shape (q,); None means 0.

        Returns
        -------
        State
            The state.
        """
        m, q = self.F.shape[1], self.Y.shape[1]
        origin = self.evaluate(np.zeros((m, q)), np.zeros(q), np.zeros(self.Y.shape))
        if start is None:
            return origin
        w = np.array(start[0], dtype=float).reshape(m, q)
        b = np.array(start[1], dtype=float).reshape(q) if self.intercept else np.zeros(q)
        state = self.evaluate(w, b, self.F @ w + b)
        return state if state.value < origin.value else origin

    def evaluate(self, w: np.ndarray, b: np.ndarray, f: np.ndarray) -> State:
        """Return the state at (w, b), given the predictions there.

        Parameters
        ----------
        w : ndarray of shape (m, q)
            Weights of the coordinates.
        b : ndarray of shape (q,)
            Intercepts.
        f : ndarray of shape (n, q)
            The predictions F w + b.

        Returns
        -------
        State
            The point with its losses and objective, which is inf if it overflows.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # J is inf if a step is too long
            local = self.loss(f, self.Y)
            value = float(self.weights @ local.values) + 0.5 * self.shift * float(np.sum(w * w))
        return State(w, b, f, local, value if np.isfinite(value) else np.inf)

    def gradient(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients dJ/dw and dJ/db.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.

        Returns
        -------
        weight_gradient : ndarray of shape (m, q)
            dJ/dw.
        intercept_gradient : ndarray of shape (q,)
            dJ/db; 0 without an intercept.
        """
        slopes = self.weights[:, None] * state.local.slopes
        return self.F.T @ slopes + self.shift * state.w, self.intercept * slopes.sum(axis=0)

    def gap(self, state: State) -> float:
        """Return |dJ/dw|^2 / (2 mu), which bounds J - min J if the intercept is optimal.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.

        Returns
        -------
        float
            The bound, possibly inf far from the minimum.
        """
        with np.errstate(over="ignore"):  # far from the minimum the bound may be infinite
            return 0.5 * float(np.sum(np.square(self.gradient(state)[0] / np.sqrt(self.shift))))

    def gap_tolerance(self, state: State, tol: float) -> float:
        """Return the gap to the minimum of J at which a solver stops.

        It is tol J, or the gap that rounding causes if that is larger.  The latter is used only if
        J is then still accurate to six digits, or if J is negligible compared with its value at f =
        0.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.
        tol : float
            Relative tolerance of the solver.

        Returns
        -------
        float
            The gap.
        """
        local, value = state.local, abs(state.value)
        rounding = local.diagonal * np.abs(state.f) + np.abs(local.slopes)
        rounding = _EPS * self.weights[:, None] * rounding
        squares = self._squared_norms @ np.square(rounding).sum(axis=1)
        rounding_gap = 0.5 * float(squares) / self.shift
        losses_at_zero = np.abs(self.loss(np.zeros(self.Y.shape), self.Y).values)
        excused = max(_TUNING.excused_gap * value, _EPS * float(self.weights @ losses_at_zero))
        return max(max(tol, _TUNING.rounding) * value, min(10.0 * rounding_gap, excused))

    def residual(self, state: State) -> float:
        """Return the largest entry of dJ/dw, relative to its loss and ridge terms.

        The two terms cancel at the minimum.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.

        Returns
        -------
        float
            The relative residual.
        """
        g, ridge = self.gradient(state)[0], self.shift * state.w
        scale = max(np.abs(part).max(initial=0.0) for part in (ridge, g - ridge))
        return float(np.abs(g).max(initial=0.0) / scale) if scale > 0 else 0.0

    # ------------------------------------------------------------------ path of shifts

    def shift_path(self, state: State, factor: float | None) -> list[float]:
        """Return decreasing ridge penalties that end with `shift`.

        The first is so large that it dominates the loss.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.
        factor : float or None
            Each penalty is `factor` times the previous one; None means that only `shift` is
            returned.

        Returns
        -------
        list of float
            The penalties.
        """
        if factor is None:
            return [self.shift]
        curvature = self.weights * state.local.diagonal.max(axis=1)
        shifts, largest = [self.shift], float(curvature @ self._squared_norms)
        while shifts[-1] / factor <= largest:
            shifts.append(shifts[-1] / factor)
        return shifts[::-1]

    @property
    def newton_region(self) -> float:
        """Half the squared Newton decrement below which Newton's method converges fast.

        The value is valid for the logistic and softmax losses.
        """
        return 0.5 * self.shift / max(float(self._squared_norms.max(initial=0.0)), _TINY)

    @cached_property
    def _squared_norms(self) -> np.ndarray:
        norms: np.ndarray = np.einsum("ij,ij->i", self.F, self.F)
        return norms

    # ------------------------------------------------------------------ Newton step

    def preconditioner(self, state: State, joint: int) -> BlockPreconditioner | JointPreconditioner:
        """Return a factorisation of the Hessian at a state.

        All outputs are factored jointly if the loss couples them and the system is small; otherwise
        each output is factored separately.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.
        joint : int
            Largest number of unknowns of a system that is factored jointly.

        Returns
        -------
        BlockPreconditioner or JointPreconditioner
            The inverse of the Hessian, exact or approximate.
        """
        size = (self.F.shape[1] + 1) * self.Y.shape[1]
        is_joint = size <= joint and is_coupled(state.local)
        preconditioner = JointPreconditioner if is_joint else BlockPreconditioner
        return preconditioner(self.F, self.weights, state.local, self.shift, self.intercept)

    def newton_step(
        self,
        state: State,
        preconditioner: BlockPreconditioner | JointPreconditioner,
        max_products: int,
    ) -> NewtonStep:
        """Return the Newton step at a state, computed by conjugate gradients.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.
        preconditioner : BlockPreconditioner or JointPreconditioner
            Preconditions the conjugate gradients.
        max_products : int
            Largest number of Hessian products.  If it is reached, the step is less accurate but
            still a descent direction.

        Returns
        -------
        NewtonStep
            The step in w, b and f, its decrement and its number of products.
        """

        def hessian_product(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            change = self.F @ P[:-1] + P[-1]
            weighted = self.weights[:, None] * state.local.times(change)
            gradient = self.F.T @ weighted + self.shift * P[:-1]
            return np.vstack([gradient, self.intercept * weighted.sum(axis=0)]), change

        def relative_tol(decrement: float) -> float:
            # Far from the minimum, low accuracy suffices; near it, high accuracy preserves the
            # fast convergence of Newton's method.
            return float(np.clip(decrement / max(abs(state.value), 1e-300), 1e-10, 1e-2))

        g = np.vstack(self.gradient(state))
        d, f, products = newton_direction(
            hessian_product,
            lambda R: np.vstack(preconditioner(R[:-1], R[-1])),
            g,
            relative_tol,
            max_products,
        )
        f = np.broadcast_to(f, self.Y.shape)  # f is the scalar 0 if CG made no product
        return NewtonStep(d[:-1], d[-1], f, -float(np.sum(g * d)), products)

    def line_search(self, state: State, step: NewtonStep) -> tuple[State, float]:
        """Return the state near the minimum of J along a step, and the length of the step.

        J is convex, so its slope along the step increases with the length and is 0 at the minimum.
        A bracketed Newton iteration finds this zero.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.
        step : NewtonStep
            The direction.

        Returns
        -------
        state : State
            The new state.
        length : float
            The length in units of the step; 0 if J does not decrease.
        """
        initial_slope, rounding = -step.decrease, _TUNING.rounding * abs(state.value)
        low, high, trial_length = 0.0, _TUNING.longest_step, 1.0
        best, length = state, 0.0
        for _ in range(_TUNING.max_evaluations):
            trial = self.evaluate(
                state.w + trial_length * step.w,
                state.b + trial_length * step.b,
                state.f + trial_length * step.f,
            )
            if trial.value < best.value:
                best, length = trial, trial_length
            if not np.isfinite(trial.value):
                high, trial_length = trial_length, 0.5 * (low + trial_length)
                continue
            slope, curvature = self._directional_derivatives(trial, step)
            if abs(slope) <= -_TUNING.slope_reduction * initial_slope:
                # Near the minimum, differences of J are only rounding, but slopes are accurate.
                if trial.value <= best.value + rounding:
                    best, length = trial, trial_length
                break
            if high - low <= 1e-3 * high:
                break
            low, high = (trial_length, high) if slope < 0 else (low, trial_length)
            trial_length = trial_length - slope / curvature if curvature > 0 else np.inf
            # If J increased, bisect: for an exponential loss, Newton's method would be slow.
            if trial.value > state.value:
                trial_length = 0.5 * (low + high)
            elif not low < trial_length < high:
                is_unbounded = high == _TUNING.longest_step
                trial_length = min(2.0 * low, high) if is_unbounded else 0.5 * (low + high)
        return best, length

    def _directional_derivatives(self, state: State, step: NewtonStep) -> tuple[float, float]:
        """Return the first and second derivative of J along a step."""
        local = state.local
        first = float(self.weights @ np.einsum("ij,ij->i", local.slopes, step.f))
        second = float(self.weights @ np.einsum("ij,ij->i", local.times(step.f), step.f))
        ridge = self.shift * float(np.sum(step.w * state.w))
        return first + ridge, second + self.shift * float(np.sum(step.w * step.w))

    def with_best_intercept(self, state: State) -> State:
        """Return the state with the optimal intercept for its w.

        Parameters
        ----------
        state : State
            A point (w, b) of the search.

        Returns
        -------
        State
            The state with the same w.
        """
        # Recompute f, because updates along the steps have accumulated rounding errors.
        state = self.evaluate(state.w, state.b, self.F @ state.w + state.b)
        if not self.intercept:
            return state
        units = [np.broadcast_to(e, self.Y.shape) for e in np.eye(len(state.b))]
        for _ in range(_TUNING.max_evaluations):
            gradient = self.weights @ state.local.slopes
            if np.all(np.abs(gradient) <= 1e-14 * (self.weights @ np.abs(state.local.slopes))):
                break
            hessian = np.column_stack([self.weights @ state.local.times(e) for e in units])
            # Scale the system, so that `lstsq` does not discard classes of small weight as
            # rounding errors.
            scale = np.sqrt(np.where(hessian.diagonal() > _TINY, hessian.diagonal(), np.inf))
            scaled = hessian / np.outer(scale, scale)
            step = -np.linalg.lstsq(scaled, gradient / scale, rcond=1e-10)[0] / scale
            for _ in range(_TUNING.max_evaluations):
                trial = self.evaluate(state.w, state.b + step, state.f + step)
                if trial.value <= state.value:
                    break
                step = 0.5 * step
            else:
                break
            state = trial
        return state
