"""A regularised convex risk in whitened coordinates, and where it is least.

    J(w, b) = sum_i v_i loss(y_i, F w + b)_i + (mu / 2) |w|^2,        w (m, q),  b (q,)

What all solvers of risks are given and return; and for smooth losses the derivatives, Newton steps
and searches along them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Stopwatch
from .._report import Report, Status
from ._curvature import Blocks, Joint, coupled, newton_direction
from ._losses import Local, Loss

__all__ = ["Found", "Minimum", "RegularisedRisk", "RiskSolver", "Start", "State"]

_MAX_EVALUATIONS = 30  # along one step
_FLAT = 0.1  # a search ends where the slope is this part of that at its start
_LONGEST_STEP = 64.0
_ROUNDING = 1e-12  # two evaluations of J may differ by this part of it
_EXCUSED_GAP = 1e-6  # rounding excuses a gap of up to this part of J
_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


Start = tuple[np.ndarray, np.ndarray]  # w and b


class State(NamedTuple):
    """A point (w, b) with the values f and the loss there."""

    w: np.ndarray
    b: np.ndarray
    f: np.ndarray
    local: Local
    value: float


class Step(NamedTuple):
    """A direction in w, b and f, what J loses along it, and how many products it took."""

    w: np.ndarray
    b: np.ndarray
    f: np.ndarray
    decrease: float  # -gradient . step, the squared Newton decrement
    products: int


class Minimum(NamedTuple):
    """Where a risk is least: f = F weights + intercept at the points.

    The coefficients of the representer theorem are `dual` / mu, (n, q): minus the weighted slopes
    of the losses, so that mu weights = F^T dual.  `dual` is None where rounding spoils them.

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

    @property
    def n_iter(self) -> int:
        """The steps taken."""
        return self.report.n_iter

    @property
    def gap(self) -> float:
        """The value is at most this much above the minimum."""
        return float(self.report.certificate["gap"])

    @property
    def norm(self) -> float:
        """|f|."""
        return float(np.linalg.norm(self.weights))


class Found(NamedTuple):
    """Where a search has ended: w, b, the dual and J there, and what its report is to say."""

    w: np.ndarray
    b: np.ndarray
    dual: Any
    value: float
    n_iter: int
    residual: float
    certificate: dict[str, Any]
    failure: str = ""  # why this is not the minimum
    note: str = ""


class RiskSolver(ABC):
    """A method that minimises a `RegularisedRisk`."""

    def minimize(
        self,
        risk: RegularisedRisk,
        start: Start | None = None,
        say: Callable[[str], None] | None = None,
        *,
        warn: bool = True,
    ) -> Minimum:
        """Return the minimum of J.

        Parameters
        ----------
        risk : RegularisedRisk
            With a loss that the method can use.
        start : (w, b), optional
            Where to begin; 0 by default.
        say : function of a text, optional
            Told about the progress.
        warn : bool
            Whether to warn of what has not converged; the report says so in any case.
        """
        watch = Stopwatch()
        found = self._search(risk, start, say or (lambda _: None))
        if found.failure and warn:
            warn_caller(found.failure, ConvergenceWarning)
        report = Report(
            repr(self),
            Status.NOT_CONVERGED if found.failure else Status.CONVERGED,
            found.n_iter,
            found.residual,
            watch.seconds,
            "; ".join(filter(None, [found.note, found.failure])),
            found.certificate,
        )
        return Minimum(*found[:4], report)

    @abstractmethod
    def _search(
        self, risk: RegularisedRisk, start: Start | None, say: Callable[[str], None]
    ) -> Found: ...


@dataclass(frozen=True, eq=False)
class RegularisedRisk:
    """J and, for a smooth loss, its derivatives.

    Parameters
    ----------
    F : ndarray of shape (n, m)
        Whitened coordinates of the points.
    Y : ndarray of shape (n, q)
    loss : Loss
    weights : ndarray of shape (n,)
        The v_i, positive.
    shift : float
        mu, positive.
    intercept : bool
        Whether b varies; else it is 0.
    ordered : bool
        For a loss of bounded slope: whether the outputs are not to cross at any point.

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
        """Return sum_i v_i loss_i."""
        return float(self.weights @ self.loss(self.F @ w + b, self.Y).values)

    def dual(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return minus the weighted slopes of the losses."""
        return -self.weights[:, None] * self.loss(self.F @ w + b, self.Y).slopes

    def pull(self, dual: np.ndarray) -> float:
        """Return |F^T dual|, the slope of the losses in the norm."""
        return float(np.linalg.norm(self.F.T @ dual))

    def solution(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return w, b, the dual and J of a state."""
        return state.w, state.b, self.dual(state.w, state.b), state.value

    def start(self, given: Start | None) -> State:
        m, q = self.F.shape[1], self.Y.shape[1]
        origin = self.at(np.zeros((m, q)), np.zeros(q), np.zeros(self.Y.shape))
        if given is None:
            return origin
        w = np.array(given[0], dtype=float).reshape(m, q)
        b = np.array(given[1], dtype=float).reshape(q) if self.intercept else np.zeros(q)
        state = self.at(w, b, self.F @ w + b)
        return state if state.value < origin.value else origin

    def at(self, w: np.ndarray, b: np.ndarray, f: np.ndarray) -> State:
        with np.errstate(over="ignore", invalid="ignore"):  # J is inf, a step too far
            local = self.loss(f, self.Y)
            value = float(self.weights @ local.values) + 0.5 * self.shift * float(np.sum(w * w))
        return State(w, b, f, local, value if np.isfinite(value) else np.inf)

    def gradient(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return dJ/dw and dJ/db, which is 0 without an intercept."""
        slopes = self.weights[:, None] * state.local.slopes
        return self.F.T @ slopes + self.shift * state.w, self.intercept * slopes.sum(axis=0)

    def gap(self, state: State) -> float:
        """Return |dJ/dw|^2 / (2 mu); with the best intercept, J is no more above its minimum."""
        with np.errstate(over="ignore"):  # far from the minimum
            return 0.5 * float(np.sum(np.square(self.gradient(state)[0] / np.sqrt(self.shift))))

    def enough(self, state: State, tol: float) -> float:
        """Return the gap that ends a search: tol J, or what rounding alone makes of it.

        The latter only if J is then known to six digits, or is rounding itself beside its value
        for f = 0.
        """
        local = state.local
        rounded = (
            _EPS * self.weights[:, None] * (local.diagonal * np.abs(state.f) + np.abs(local.slopes))
        )
        noise = 0.5 * float(self._squares @ np.square(rounded).sum(axis=1)) / self.shift
        origin = float(self.weights @ np.abs(self.loss(np.zeros(self.Y.shape), self.Y).values))
        value = abs(state.value)
        return max(
            max(tol, _ROUNDING) * value, min(10.0 * noise, max(_EXCUSED_GAP * value, _EPS * origin))
        )

    def residual(self, state: State) -> float:
        """Return dJ/dw relative to its two parts, which cancel at the minimum."""
        g, ridge = self.gradient(state)[0], self.shift * state.w
        size = max(np.abs(part).max(initial=0.0) for part in (ridge, g - ridge))
        return float(np.abs(g).max(initial=0.0) / size) if size > 0 else 0.0

    # ------------------------------------------------------------------ the path

    def path(self, state: State, factor: float | None) -> list[float]:
        """Return decreasing shifts that end with mu; the first outweighs the loss."""
        if factor is None:
            return [self.shift]
        curvature = self.weights * state.local.diagonal.max(axis=1)
        shifts, large = [self.shift], float(curvature @ self._squares)
        while shifts[-1] / factor <= large:
            shifts.append(shifts[-1] / factor)
        return shifts[::-1]

    @property
    def near(self) -> float:
        """Half of a squared decrement within which Newton's method is fast, for log-losses."""
        return 0.5 * self.shift / max(float(self._squares.max(initial=0.0)), _TINY)

    @cached_property
    def _squares(self) -> np.ndarray:
        return np.einsum("ij,ij->i", self.F, self.F)

    # ------------------------------------------------------------------ the step

    def precondition(self, state: State, joint: int) -> Blocks | Joint:
        """Return factors of the second derivatives; as a whole if coupled and small enough."""
        size = (self.F.shape[1] + 1) * self.Y.shape[1]
        kind = Joint if size <= joint and coupled(state.local) else Blocks
        return kind(self.F, self.weights, state.local, self.shift, self.intercept)

    def newton_step(self, state: State, precondition: Blocks | Joint, most: int) -> Step:
        """Return the solution of the second derivatives times the step = - the gradient.

        It is exact enough, or what `most` products give: that, too, is a direction of descent.
        """

        def times(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            moved = self.F @ P[:-1] + P[-1]
            bent = self.weights[:, None] * state.local.times(moved)
            pulled = self.F.T @ bent + self.shift * P[:-1]
            return np.vstack([pulled, self.intercept * bent.sum(axis=0)]), moved

        def digits(left: float) -> float:
            # few while far away, many when close: then Newton's method keeps its speed
            return float(np.clip(left / max(abs(state.value), 1e-300), 1e-10, 1e-2))

        g = np.vstack(self.gradient(state))
        d, f, products = newton_direction(
            times, lambda R: np.vstack(precondition(R[:-1], R[-1])), g, digits, most
        )
        f = np.broadcast_to(f, self.Y.shape)  # without a product it is 0
        return Step(d[:-1], d[-1], f, -float(np.sum(g * d)), products)

    def search(self, state: State, step: Step) -> tuple[State, float]:
        """Return the state near the minimum along a step, and its length; 0 if there is none.

        The minimum is where the slope along the step is 0; it grows with the length.  Newton's
        method in one variable finds it, kept within what is known to hold it.
        """
        first, slack = -step.decrease, _ROUNDING * abs(state.value)
        low, high, size = 0.0, _LONGEST_STEP, 1.0
        best, length = state, 0.0
        for _ in range(_MAX_EVALUATIONS):
            tried = self.at(
                state.w + size * step.w, state.b + size * step.b, state.f + size * step.f
            )
            if tried.value < best.value:
                best, length = tried, size
            if not np.isfinite(tried.value):
                high, size = size, 0.5 * (low + size)
                continue
            along, bend = self._along(tried, step)
            if abs(along) <= -_FLAT * first:
                # close to the minimum slopes still tell what values, rounded, do not
                if tried.value <= best.value + slack:
                    best, length = tried, size
                break
            if high - low <= 1e-3 * high:
                break
            low, high = (size, high) if along < 0 else (low, size)
            size = size - along / bend if bend > 0 else np.inf
            # uphill, Newton's method takes steps of 1 in the exponent of a loss that has one
            if tried.value > state.value:
                size = 0.5 * (low + high)
            elif not low < size < high:
                size = min(2.0 * low, high) if high == _LONGEST_STEP else 0.5 * (low + high)
        return best, length

    def _along(self, state: State, step: Step) -> tuple[float, float]:
        """Return the first two derivatives of J along a step."""
        local = state.local
        first = float(self.weights @ np.einsum("ij,ij->i", local.slopes, step.f))
        second = float(self.weights @ np.einsum("ij,ij->i", local.times(step.f), step.f))
        ridge = self.shift * float(np.sum(step.w * state.w))
        return first + ridge, second + self.shift * float(np.sum(step.w * step.w))

    def settle(self, state: State) -> State:
        """Return the state with the best intercept for its w."""
        # values f that were added up along the steps have their rounding in them
        state = self.at(state.w, state.b, self.F @ state.w + state.b)
        if not self.intercept:
            return state
        units = [np.broadcast_to(e, self.Y.shape) for e in np.eye(len(state.b))]
        for _ in range(_MAX_EVALUATIONS):
            h = self.weights @ state.local.slopes
            if np.all(np.abs(h) <= 1e-14 * (self.weights @ np.abs(state.local.slopes))):
                break
            H = np.column_stack([self.weights @ state.local.times(e) for e in units])
            # scaled, so that classes of little weight count as others do
            size = np.sqrt(np.where(H.diagonal() > _TINY, H.diagonal(), np.inf))
            move = -np.linalg.lstsq(H / np.outer(size, size), h / size, rcond=1e-10)[0] / size
            for _ in range(_MAX_EVALUATIONS):
                moved = self.at(state.w, state.b + move, state.f + move)
                if moved.value <= state.value:
                    break
                move = 0.5 * move
            else:
                break
            state = moved
        return state
