"""Newton's method for a smooth convex risk in whitened coordinates.

    J(w, b) = sum_i v_i loss(y_i, F w + b)_i + (mu / 2) |w|^2,        w (m, q),  b (q,)

A step factors the second derivatives of each output for itself,

    H_c = F^T D_c F + mu I,     D_c = diag(v_i d^2 loss_i / df_c^2),

or, where the loss couples the outputs (Softmax), H with the mean of the D_c, one for all of them:
then conjugate gradients solve the coupled system, with the factor as a preconditioner.  This takes
fewer products than Boehning's bound H = F^T diag(v / 2) F + mu I, the more so the surer the
predictions are, and one factor instead of q.  If it still takes many, a small system is factored
as a whole.  The intercept is eliminated: b_c + (mean of F under D_c) . w_c is what varies freely
beside w_c.

Factors are what costs, n m^2 operations, so each is used several times: after a step come a few
corrections, Newton steps from where it has led, whose systems are solved by CG with the factor of
the step (Shamanskii 1967).  And along a direction the minimum is sought, not only a decrease, for
O(n q) operations: where classes can be separated the minimum is far away, and a full step would
raise the margins by about 1 only.

A path of decreasing shifts mu' = large, ..., mu (Marteau-Ferey, Bach, Rudi 2019) begins each stage
where the last one has ended, within the region where Newton's method is fast; on the way a
decrement of sqrt(mu') / max |F_i| is small enough for that.

Certificate.  With b minimised out, J is mu-strongly convex in w, so that J - min J is at most
|g|^2 / (2 mu), g the gradient in w.  Nothing has converged before this says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..._runtime import Step, entry_point
from ._regularised_risk import Found, RegularisedRisk, RiskSolver, Start, State

__all__ = ["Newton"]

_MANY = 50  # after a step of more products, the next coupled system is factored as a whole
_MAX_PRODUCTS = 500  # for a step: far more than are ever needed
_CORRECTIONS = 5  # at most, with the factor of one step
_CORRECTION_PRODUCTS = 8  # at most for a correction, unless its step took more
_TINY = float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True)
class Newton(RiskSolver):
    """Newton's method, by conjugate gradients, with a search along each step.

    Parameters
    ----------
    tol : float
        Stop when J is at most this part of itself above its minimum, as |g|^2 / (2 mu) certifies;
        where rounding alone keeps that larger, 1e-6 of J are enough.
    max_iter : int
        Steps, of one factor each, on all of a path; the up to five corrections that use it again
        are not counted here, but in the report.
    path : float, optional
        The factor, less than 1, by which the shift decreases from stage to stage; None to begin
        with the shift that is wanted, as is done from a given start.
    joint : int
        Coupled systems of up to so many unknowns are factored as a whole, with two matrices of
        this size, if blocks take many products.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Logistic, Newton, RegularisedRisk
    >>> F, y = np.array([[-1.0], [0.0], [2.0]]), np.array([[-1.0], [1.0], [1.0]])
    >>> found = Newton().minimize(RegularisedRisk(F, y, Logistic(), np.ones(3)))
    >>> found.weights.round(3), found.intercept.round(3)
    (array([[0.708]]), array([0.598]))
    """

    tol: float = 1e-10
    max_iter: int = 100
    path: float | None = None
    joint: int = field(default=2500, repr=False)

    def __post_init__(self) -> None:
        if self.path is not None and not 0 < self.path < 1:
            raise ValueError(f"path must be a factor between 0 and 1, got {self.path!r}")

    @staticmethod
    def workspace(n: int, m: int, q: int) -> int:
        """Return the bytes needed beside F, with one factor: H, copies, rows of F, and vectors."""
        return 8 * (3 * m * m + min(n, 2048) * m) + 160 * n * q

    def _search(
        self, risk: RegularisedRisk, start: Start | None, say: Callable[[str], None]
    ) -> Found:
        run, state = _Run(self, say), risk.start(start)
        shifts = risk.path(state, self.path if start is None else None)
        for large in shifts[:-1]:
            state = run.descend(replace(risk, shift=large), state, final=False)
        state = risk.settle(run.descend(risk, state, final=True))
        gap = risk.gap(state)
        converged = gap <= risk.enough(state, self.tol)
        return Found(
            *risk.solution(state),
            run.steps,
            risk.residual(state),
            {
                "objective": state.value,
                "decrement": run.decrement,
                "gap": gap,
                "corrections": run.corrections,
            },
            "" if converged else run.failure(gap / max(abs(state.value), _TINY)),
            f"a path of {len(shifts)} shifts from {shifts[0]:.1e}" if shifts[1:] else "",
        )


class _Run:
    """What Newton's method has done so far, over the stages of a path."""

    def __init__(self, newton: Newton, say: Callable[[str], None]) -> None:
        self.newton, self.say = newton, say
        self.steps, self.corrections, self.products = 0, 0, 0
        self.decrement, self.stalled = np.inf, False

    def descend(self, risk: RegularisedRisk, state: State, final: bool) -> State:
        """Return where J is low enough, or as low as rounding or the number of steps allows."""
        tol, joint, last = self.newton.tol, self.newton.joint, np.inf
        state = risk.at(state.w, state.b, state.f)
        while self.steps < self.newton.max_iter:
            factor = None  # two at a time would take twice the memory
            factor = risk.precondition(state, joint if self.products > _MANY else 0)
            most = _MAX_PRODUCTS
            self.steps += 1
            for correction in range(1 + _CORRECTIONS):
                step = risk.newton_step(state, factor, most)
                enough = risk.enough(state, tol) if final else risk.near
                small = 0.5 * step.decrease <= enough
                state, size = risk.search(state, step)
                self.decrement = float(np.sqrt(max(step.decrease, 0.0)))
                most = max(_CORRECTION_PRODUCTS, step.products)
                self.corrections += correction > 0
                self.products = max(self.products, step.products)
                words = (
                    f"step {self.steps}.{correction}: objective {state.value:.8g}, decrement "
                    f"{self.decrement:.1e}, length {size:.3g}, {step.products} products"
                )
                self.say(Step(words))
                if size and not small:
                    continue
                if not final:
                    return state
                settled = risk.settle(state)
                gap = risk.gap(settled)
                if gap <= risk.enough(settled, tol):
                    return settled
                if not gap <= 0.5 * last:  # nothing but rounding is left, unless the factor is old
                    self.stalled = correction == 0
                    break
                last = gap
                if not size:
                    break
            if self.stalled:
                break
        return state

    def failure(self, above: float) -> str:
        """Return what to say when J is up to this part of itself above its minimum."""
        tol, far = self.newton.tol, f"{above:.1e} of the objective or less above the minimum"
        if self.stalled:
            return (
                f"rounding ended Newton's method after {self.steps} steps, {far}, where {tol:g} "
                f"was asked for; the usual cause is kernel values of very different, or very "
                f"large, size. Scale the features, regularise more, or raise tol"
            )
        return (
            f"Newton's method took {self.steps} steps (max_iter={self.newton.max_iter}) and ended "
            f"{far}, where {tol:g} was asked for. Raise max_iter or tol, or regularise more"
        )
