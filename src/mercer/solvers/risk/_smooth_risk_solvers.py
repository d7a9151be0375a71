"""Solvers of smooth convex risks in whitened coordinates: Newton's method and gradient descent.

    J(w, b) = sum_i v_i loss(y_i, (F w + b)_i) + (mu / 2) |w|^2,        w (m, q),  b (q,)

F holds the whitened coordinates of the points, v_i are sample weights, and mu is the ridge penalty,
also called shift.

Newton's method
---------------
Linear systems.  Each step factors the Hessian of each output separately,

    H_c = F^T D_c F + mu I,     D_c = diag(v_i d^2 loss_i / df_c^2).

If the loss couples the outputs (Softmax), it factors one H with the mean of the D_c instead, and
uses it as a preconditioner for conjugate gradients on the coupled system.  This needs one factor
instead of q.  CG takes fewer steps than with Boehning's bound H = F^T diag(v / 2) F + mu I,
especially if the predicted probabilities are close to 0 and 1.  If CG still takes many steps and
the joint system is small, the joint system is factored.  The intercept is eliminated by centring F
with the weights D_c.

Reuse of factors.  A factor costs n m^2 operations, so each is used several times.  Each step is
followed by a few corrections: Newton steps at the new point, computed by CG with the old factor as
preconditioner (Shamanskii 1967).

Line search.  Along each direction the solver searches for the minimum, not only for a decrease, at
a cost of O(n q) per evaluation.  If the classes are separable the minimum is far away, and a full
Newton step would increase the margins only by about 1.

Continuation.  With `path`, the shift decreases in stages to mu (Marteau-Ferey, Bach, Rudi 2019).
Each stage starts at the solution of the previous one, inside the region where Newton's method
converges fast.  For this, an intermediate stage with shift mu' may stop at a Newton decrement of
sqrt(mu') / max |F_i|.

Certificate.  With the optimal b for each w, J is mu-strongly convex in w.  Thus J - min J is at
most |g|^2 / (2 mu) with g the gradient in w.  Solvers report convergence only if this is small.

Accelerated gradient descent, for the logistic and softmax losses
-----------------------------------------------------------------
Because |f| = |w|, descent in w is descent in the RKHS.  The step size is 1 / L, where
L = h |F^T diag(v) F| + mu is a bound on the second derivatives, with h = 1/4 for two classes and
1/2 for more (Boehning 1992).  Nesterov's momentum follows from L / mu.  The method takes about
sqrt(L / mu) log(1 / tol) iterations: few with strong regularisation, very many with weak
regularisation.  Each iteration multiplies by F and F^T.  Newton's method finds the intercepts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..._core import ProgressCallback, ProgressStep, entry_point
from ._losses import Logistic, Softmax
from ._regularised_risk import Minimum, RegularisedRisk, RiskSearch, Start, State

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class _NewtonTuning:
    """Numerical constants of Newton's method."""

    # If a step takes more CG products than this, the next coupled system is factored jointly.
    joint_after_products: float = 50
    # Maximum number of CG products per step, far above what is needed in practice.
    max_products: int = 500
    # Maximum number of corrections that reuse one factor.
    max_corrections: int = 5
    # Maximum number of CG products per correction, unless the step before it took more.
    correction_products: int = 8


_TUNING = _NewtonTuning()
# Constants of gradient descent.
_MAX_SECOND_DERIVATIVE = {Logistic: 0.25, Softmax: 0.5}  # Boehning's upper bounds
_ITERATIONS_PER_MESSAGE = 100


@entry_point
@dataclass(frozen=True)
class Newton(RiskSearch[RegularisedRisk]):
    """Newton's method for smooth losses, with conjugate gradients and a line search.

    It minimises a `RegularisedRisk` with a loss such as `Logistic`, `Softmax`, `Poisson` or
    `SquaredHinge`.  Each step takes O(n m^2) operations for F of shape (n, m), and rarely
    more than ten steps are needed.  For losses with kinks, such as `Absolute`, use `InteriorPoint`.

    The reported gap is a proved bound on the distance of the objective from its minimum, because
    the objective is strongly convex.

    Parameters
    ----------
    tol : float, default=1e-10
        Relative accuracy of the objective J: stop when the certified bound |g|^2 / (2 mu) on the
        distance of J to its minimum is at most `tol` times J.  g is the gradient and mu the ridge
        penalty.  If rounding prevents that, a relative gap of 1e-6 is accepted.
    max_iter : int, default=100
        Maximum number of steps, each with one factorisation, over all stages of a path.  The
        corrections that reuse a factor (at most five per step) do not count; the report lists
        their number.
    path : float or None, default=None
        If given, the problem is solved in stages with decreasing ridge penalties.  The value is the
        factor between 0 and 1 by which the penalty decreases from stage to stage.  If None, and
        whenever a start is passed to `minimize`, the solver uses the final penalty at once.  Stages
        help only for tiny penalties.
    joint : int, default=2500
        A coupled system with at most this many unknowns is factored jointly if CG takes many
        steps.  This needs memory for two square matrices of that size.

    See Also
    --------
    GradientDescent : First-order method, for comparison.
    InteriorPoint : Losses of bounded slope.

    References
    ----------
    Boyd and Vandenberghe, "Convex optimization", Cambridge University Press, 2004,
    chapter 9.

    Marteau-Ferey, Bach and Rudi, "Globally convergent Newton methods for ill-conditioned
    generalized self-concordant losses", NeurIPS 2019, for `path`.

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
        """Return the memory that is needed in addition to the coordinates F.

        It counts the Hessian of one output and two copies, a block of rows of F, and vectors of
        length n.

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
        return 8 * (3 * m * m + min(n, 2048) * m) + 160 * n * q

    def _search(
        self, risk: RegularisedRisk, start: Start | None, log: ProgressCallback
    ) -> tuple[Minimum, str]:
        run, state = _NewtonRun(self, log), risk.initial_state(start)
        shifts = risk.shift_path(state, self.path if start is None else None)
        for stage_shift in shifts[:-1]:
            state = run.descend(replace(risk, shift=stage_shift), state, final=False)
        state = risk.with_best_intercept(run.descend(risk, state, final=True))
        gap = risk.gap(state)
        converged = gap <= risk.gap_tolerance(state, self.tol)
        failure = "" if converged else run.failure_message(gap / max(abs(state.value), _TINY))
        certificate = {
            "objective": state.value,
            "decrement": run.decrement,
            "gap": gap,
            "corrections": run.corrections,
        }
        note = f"a path of {len(shifts)} shifts from {shifts[0]:.1e}" if shifts[1:] else ""
        report = self._report(run.steps, risk.residual(state), certificate, note)
        return risk.minimum(state, report), failure


class _NewtonRun:
    """State and counters of a run of Newton's method over all stages of a path."""

    def __init__(self, newton: Newton, log: ProgressCallback) -> None:
        self.newton, self.log = newton, log
        self.steps, self.corrections, self.max_cg_products = 0, 0, 0
        self.decrement, self.stalled = np.inf, False

    def descend(self, risk: RegularisedRisk, state: State, final: bool) -> State:
        """Take Newton steps until J has converged, or until rounding or max_iter stops progress.

        If `final` is False, stop once Newton's method converges fast, for a stage of a path.
        """
        tol, joint, last_gap = self.newton.tol, self.newton.joint, np.inf
        state = risk.evaluate(state.w, state.b, state.f)
        while self.steps < self.newton.max_iter:
            factor = None  # free the memory of the old factor first
            factor = risk.preconditioner(
                state, joint if self.max_cg_products > _TUNING.joint_after_products else 0
            )
            max_products = _TUNING.max_products
            self.steps += 1
            for correction in range(1 + _TUNING.max_corrections):
                step = risk.newton_step(state, factor, max_products)
                tolerance = risk.gap_tolerance(state, tol) if final else risk.newton_region
                is_small = 0.5 * step.decrease <= tolerance
                state, length = risk.line_search(state, step)
                self.decrement = float(np.sqrt(max(step.decrease, 0.0)))
                max_products = max(_TUNING.correction_products, step.products)
                self.corrections += correction > 0
                self.max_cg_products = max(self.max_cg_products, step.products)
                text = (
                    f"step {self.steps}.{correction}: objective {state.value:.8g}, decrement "
                    f"{self.decrement:.1e}, length {length:.3g}, {step.products} products"
                )
                self.log(ProgressStep(text))
                if length and not is_small:
                    continue
                if not final:
                    return state
                exact = risk.with_best_intercept(state)
                gap = risk.gap(exact)
                if gap <= risk.gap_tolerance(exact, tol):
                    return exact
                # If the gap does not decrease with a new factor, rounding is the cause; otherwise
                # the factor may be too old.
                if not gap <= 0.5 * last_gap:
                    self.stalled = correction == 0
                    break
                last_gap = gap
                if not length:
                    break
            if self.stalled:
                break
        return state

    def failure_message(self, relative_gap: float) -> str:
        """Return the warning text for a run that ended with this relative gap."""
        tol, gap = self.newton.tol, f"with a relative gap of at most {relative_gap:.1e}"
        if self.stalled:
            return (
                f"rounding stopped Newton's method after {self.steps} steps, {gap} between the "
                f"objective and its minimum, but tol={tol:g}; the usual cause is kernel values "
                f"of very different, or very large, size. Scale the features, regularise more, or "
                f"raise tol"
            )
        return (
            f"Newton's method stopped after {self.steps} steps (max_iter={self.newton.max_iter}), "
            f"{gap} between the objective and its minimum, but tol={tol:g}. Raise max_iter or "
            f"tol, or regularise more"
        )


@entry_point
@dataclass(frozen=True)
class GradientDescent(RiskSearch[RegularisedRisk]):
    """Accelerated gradient descent for the losses `Logistic` and `Softmax`.

    It takes about sqrt(L / mu) log(1 / tol) iterations, where L is a bound on the second
    derivatives and mu the ridge penalty: few with strong regularisation, very many with weak
    regularisation.  Each iteration multiplies by F and F^T.  `Newton` is usually much faster.

    Parameters
    ----------
    tol : float, default=1e-10
        Relative accuracy of the objective J: stop when the certified bound |g|^2 / (2 mu) on the
        distance of J to its minimum is at most `tol` times J.  g is the gradient and mu the ridge
        penalty.  A larger value, such as 1e-4, saves many iterations.
    max_iter : int, default=10000
        Maximum number of iterations.

    See Also
    --------
    Newton : Second-order method.

    References
    ----------
    Nesterov, "A method of solving a convex programming problem with convergence rate O(1/k^2)",
    Soviet Mathematics Doklady, 1983.

    Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical
    Mathematics, 1992, for the bound L.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import GradientDescent, Logistic, RegularisedRisk
    >>> F, y = np.array([[-1.0], [0.0], [2.0]]), np.array([[-1.0], [1.0], [1.0]])
    >>> found = GradientDescent().minimize(RegularisedRisk(F, y, Logistic(), np.ones(3)))
    >>> found.weights.round(3), found.intercept.round(3)
    (array([[0.708]]), array([0.598]))
    """

    tol: float = 1e-10
    max_iter: int = 10_000

    @staticmethod
    def workspace(n: int, m: int, q: int) -> int:
        """Return the memory that is needed in addition to the coordinates F.

        It counts the kernel matrix and its factor, which give F, and vectors of length n.

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
        return 16 * n * n + 160 * n * q

    def _search(
        self, risk: RegularisedRisk, start: Start | None, log: ProgressCallback
    ) -> tuple[Minimum, str]:
        if type(risk.loss) not in _MAX_SECOND_DERIVATIVE:
            raise TypeError(
                f"GradientDescent supports only Logistic and Softmax, whose Lipschitz constants "
                f"are known, got {risk.loss!r}; use Newton"
            )
        F, state = risk.F, risk.initial_state(start)
        largest = _largest_eigenvalue(F, risk.weights)
        L = _MAX_SECOND_DERIVATIVE[type(risk.loss)] * largest + risk.shift
        condition_root = np.sqrt(risk.shift / L)
        momentum = (1.0 - condition_root) / (1.0 + condition_root)
        previous, n_iter = state.w, 0
        gap = risk.gap(state := risk.with_best_intercept(state))
        while n_iter < self.max_iter and gap > self.tol * state.value:
            extrapolated = state.w + momentum * (state.w - previous)
            ahead = risk.evaluate(extrapolated, state.b, F @ extrapolated + state.b)
            g, _ = risk.gradient(risk.with_best_intercept(ahead))
            previous, w = state.w, extrapolated - g / L
            state = risk.with_best_intercept(risk.evaluate(w, state.b, F @ w + state.b))
            gap, n_iter = risk.gap(state), n_iter + 1
            if n_iter % _ITERATIONS_PER_MESSAGE == 0:
                text = f"iteration {n_iter}: objective {state.value:.8g}, gap at most {gap:.1e}"
                log(ProgressStep(text))
        failure = ""
        if not gap <= self.tol * state.value:
            failure = (
                f"gradient descent stopped after {n_iter} iterations (max_iter={self.max_iter}) "
                f"with a relative gap of at most {gap / max(state.value, _TINY):.1e} between the "
                f"objective and its minimum, but tol={self.tol:g}. The usual cause is a large "
                f"condition number, L / mu = {L / risk.shift:.1e}: use solver='newton', raise "
                f"max_iter or tol, or regularise more"
            )
        numbers = {"objective": state.value, "gap": gap, "L / mu": L / risk.shift}
        return risk.minimum(state, self._report(n_iter, risk.residual(state), numbers)), failure


def _largest_eigenvalue(F: np.ndarray, weights: np.ndarray) -> float:
    """Return an upper bound on the largest eigenvalue of F^T diag(weights) F.

    The eigenvalue is computed approximately and increased by 1 %.
    """
    m = F.shape[1]
    if m < 3:
        return float(np.linalg.eigvalsh(F.T @ (weights[:, None] * F)).max(initial=0.0))
    H = LinearOperator((m, m), lambda u: F.T @ (weights * (F @ np.ravel(u))), dtype=float)
    values = eigsh(H, k=1, v0=np.ones(m), tol=1e-3, return_eigenvectors=False)
    return 1.01 * float(values[0])
