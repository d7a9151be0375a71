"""Learning the basis vectors of a reduced expansion f = sum_j b_j k(z_j, .) + c.

    min over Z of J(Z),     J(Z) = min over B of sum_i w_i loss(y_i, f(x_i)) + alpha |f|^2

Variable projection (Golub & Pereyra 1973): L-BFGS moves only the m vectors Z, and the weights B are
always optimal for the current vectors.  At the optimal weights dJ/dB = 0, so the gradient of J(Z)
is the partial derivative with respect to Z.  The same holds for the parameters of the kernel, which
can be learned together with the vectors.

Optimising Z and B jointly needs many times more steps, because the optimal weights for one Z are
poor for the next.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    ProgressCallback,
    ProgressStep,
    Stopwatch,
    entry_point,
    one_blas_thread,
    warn_caller,
)
from ...kernels import Kernel
from .._report import Report, Status
from ._reduced_expansion import ExpansionFit, OverflowingKernelError, ReducedExpansionRisk

_LBFGS_MEMORY = 20  # number of past steps from which L-BFGS estimates the curvature
# Objective of vectors for which k overflows, relative to the initial one.  It is finite, because
# L-BFGS shortens its step if the objective increases, but ends if it is infinite.
_OVERFLOW_VALUE = 1e3
# Convergence is measured over this many iterations, because single decreases are often small.
_DECREASE_WINDOW = 10
# While the vectors are learned, the weights are fitted to a relative accuracy of this times `tol`.
_INNER_TOL = 1e-3


class BasisLearningResult(NamedTuple):
    """Result of basis learning: the fit, the objective after each iteration, and the report."""

    fit: ExpansionFit
    curve: np.ndarray
    report: Report


@entry_point
@dataclass(frozen=True)
class LearnedVectors:
    """Learn the vectors of a reduced expansion by variable projection with L-BFGS.

    It minimises the risk of f = sum_j b_j k(z_j, .) + c over the vectors z_j, with the optimal
    weights for each choice of vectors.  The result needs far fewer vectors than a kernel expansion
    on training points of the same accuracy, so that predictions are fast.  The problem is not
    convex: the result is a local minimum that depends on the initial vectors.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of L-BFGS iterations.  Each takes slightly more than one evaluation of the
        objective.  With 0, the vectors keep their initial values and only the weights are fitted.
    tol : float, default=1e-3
        Stop when the relative decrease of the objective in ten iterations is below `tol`.  Smaller
        values take more iterations.
    learn_kernel : bool, default=False
        Whether to learn the free parameters of the kernel too, within their bounds.

    See Also
    --------
    ReducedExpansionRisk : The problem.

    References
    ----------
    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate", SIAM Journal on Numerical Analysis, 1973.

    Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", Mathematical
    Programming, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import LearnedVectors, ReducedExpansionRisk, Squared
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> Y, w = RBF()(X, [[1.0]]), np.full(60, 1 / 60)
    >>> risk = ReducedExpansionRisk(RBF(), X, Y, Squared(), w, 1e-8)
    >>> found = LearnedVectors().minimize(risk, np.array([[0.0]]))
    >>> found.fit.vectors.round(2)
    array([[1.]])
    """

    max_iter: int = 1000
    tol: float = 1e-3
    learn_kernel: bool = False

    @one_blas_thread  # tiles run in parallel threads, each with one BLAS thread
    def minimize(
        self, risk: ReducedExpansionRisk, Z: np.ndarray, log: ProgressCallback | None = None
    ) -> BasisLearningResult:
        """Learn the vectors, starting from Z; the final objective is at most that of Z.

        Parameters
        ----------
        risk : ReducedExpansionRisk
            The problem.
        Z : ndarray of shape (m, d)
            The initial vectors, such as the centres of k-means.
        log : callable or None, default=None
            Called with progress messages.

        Returns
        -------
        BasisLearningResult
            Named tuple of the fit, with vectors of shape (m, d) and weights of shape (m, q), the
            objective after each iteration, and the report.
        """
        watch, message = Stopwatch(), ""
        best = risk.fit_weights(Z)
        search = _VectorSearch(risk, best, self.tol, self.learn_kernel, log or (lambda text: None))
        # If the intercept explains the targets, the objective is only rounding error.
        total_square = float(risk.weights @ np.square(risk.Y).sum(axis=1))
        if self.max_iter and best.value > np.finfo(float).eps ** 2 * total_square:
            message = search.run(self.max_iter)
            found = search.best
            exact = search.risk_with(found.kernel).fit_weights(found.vectors, found)
            best = min(found, exact, key=attrgetter("value"))
        curve = np.minimum.accumulate([*search.curve[:-1], min(search.curve[-1], best.value)])
        report = Report(
            solver=repr(self),
            status=Status.NOT_CONVERGED if message else Status.CONVERGED,
            n_iter=len(curve) - 1,
            residual=search.relative_decrease(),
            seconds=watch.seconds,
            message=message or "the residual is the relative decrease of the last ten iterations",
            certificate={"objective": best.value, "at the start": curve[0]},
        )
        return BasisLearningResult(best, curve, report)


@dataclass
class _VectorSearch:
    """State of the L-BFGS search: the risk, the best fit so far, and the past objectives."""

    risk: ReducedExpansionRisk
    best: ExpansionFit
    tol: float
    learn_kernel: bool
    log: ProgressCallback
    curve: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.curve.append(self.best.value)
        self._last_fit, self._initial_value = self.best, self.best.value

    def run(self, max_iter: int) -> str:
        """Run L-BFGS; return the warning text if it did not converge, otherwise an empty string."""
        Z = self.best.vectors
        rkhs_speed = self.risk.rkhs_speed(Z)
        # The scale of a column that the kernel ignores is arbitrary; vectors do not move along it.
        self._column_scale = 1.0 / np.where(rkhs_speed > 1e-8 * rkhs_speed.max(), rkhs_speed, 1.0)
        self.log(f"{len(Z)} vectors at the start: objective {self._initial_value:.6g}")
        vector_bounds = [(coordinate_lower_bound(self.risk.kernel, Z), None)] * Z.size
        theta_bounds = self.risk.kernel.bounds.tolist() if self.learn_kernel else []
        remaining = max_iter
        while remaining and not self.has_converged():
            n_before = len(self.curve)
            minimize(
                self._evaluate,
                self._pack(self.best.vectors / self._column_scale, self.best.kernel.theta),
                jac=True,
                method="L-BFGS-B",
                bounds=[*vector_bounds, *theta_bounds],
                callback=self._after,
                options={"maxiter": remaining, "maxcor": _LBFGS_MEMORY, "ftol": 0.0, "gtol": 0.0},
            )
            n_taken = len(self.curve) - n_before
            remaining -= n_taken
            # If L-BFGS ends after a few iterations, rounding errors made its line search fail.
            if remaining and n_taken < _DECREASE_WINDOW:
                return ""
        if self.relative_decrease() <= self.tol:
            return ""
        message = (
            f"the objective still decreased by a relative {self.relative_decrease():.1e} in the "
            f"last {min(_DECREASE_WINDOW, max_iter)} of {max_iter} iterations, more than "
            f"tol = {self.tol:g}; in total it decreased from {self._initial_value:.6g} to "
            f"{self.best.value:.6g}. The vectors found are usable; for better ones raise max_iter"
        )
        warn_caller(message, ConvergenceWarning)
        return message

    def has_converged(self) -> bool:
        """Return True if the last ten iterations reduced the objective by less than tol."""
        return len(self.curve) > _DECREASE_WINDOW and self.relative_decrease() <= self.tol

    def relative_decrease(self) -> float:
        """Return the relative decrease of the objective over the last ten iterations."""
        before = self.curve[max(0, len(self.curve) - 1 - _DECREASE_WINDOW)]
        return (before - self.curve[-1]) / before if before > 0 else 0.0

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, both divided by the initial objective."""
        size, kernel = self.best.vectors.size, self.risk.kernel
        Z = x[:size].reshape(self.best.vectors.shape) * self._column_scale
        risk = self.risk_with(kernel.with_theta(x[size:]) if self.learn_kernel else kernel)
        try:
            fit = risk.fit_weights(Z, self._last_fit, _INNER_TOL * self.tol)
        except OverflowingKernelError:
            return _OVERFLOW_VALUE, np.zeros_like(x)
        gradient = risk.vector_gradient(Z, fit.weights, fit.slopes) * self._column_scale
        theta_gradient = np.zeros(0)
        if self.learn_kernel:
            theta_gradient = risk.theta_gradient(Z, fit.weights, fit.slopes)
        self._last_fit = fit
        self.best = min(self.best, fit, key=attrgetter("value"))
        # Dividing by the initial objective makes the first step independent of the target scale.
        scale = self._initial_value
        return fit.value / scale, self._pack(gradient, theta_gradient) / scale

    def risk_with(self, kernel: Kernel) -> ReducedExpansionRisk:
        """Return the risk with this kernel; it is the current risk if the kernel is unchanged."""
        is_same = kernel is self.risk.kernel
        return self.risk if is_same else dataclasses.replace(self.risk, kernel=kernel)

    def _pack(self, Z: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the L-BFGS variables: the vectors and, if learned, the kernel parameters."""
        return np.concatenate([Z.ravel(), theta]) if self.learn_kernel else Z.ravel()

    def _after(self, intermediate_result: Any) -> None:
        """Record the objective after an iteration; stop L-BFGS on convergence."""
        self.curve.append(float(intermediate_result.fun) * self._initial_value)
        taken = len(self.curve) - 1
        if taken % _DECREASE_WINDOW == 0:
            self.log(ProgressStep(f"iteration {taken}: objective {self.curve[-1]:.6g}"))
        if self.has_converged():
            raise StopIteration


def coordinate_lower_bound(kernel: Kernel, Z: np.ndarray) -> float | None:
    """Return the lower bound of the vectors: 0 if the kernel needs non-negative values, or None."""
    try:
        kernel(-1.0 - np.abs(Z[:1]))
    except ValueError:
        return 0.0
    return None
