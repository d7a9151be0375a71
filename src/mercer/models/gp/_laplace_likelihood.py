"""Laplace approximation for Gaussian process classification, with a logistic or softmax link.

    log q(y) = log p(y | f) - f^T K^-1 f / 2 - log det(I + K W) / 2,

where f is the mode: the most probable values at the points.  W is the Hessian of -log p(y | f) at
the mode (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 3.4, 3.5
and 5.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._core import Stopwatch, check_budget, entry_point, warn_caller
from ...expansion import Expansion
from ...solvers import Report, Status
from ._class_likelihoods import LogisticCurvature, SoftmaxCurvature
from ._exact_likelihood import DenseObjective
from ._exact_solve import (
    dense_matrix,
    fits_one_block,
    symmetric_pullback,
    symmetric_tile,
)
from ._gp_objective import Theta
from ._posterior import Posterior


@dataclass(frozen=True)
class _LaplaceTuning:
    """Limits of the Newton iteration that finds the mode."""

    # Number of times that a step which decreases the objective is halved before it is rejected.
    max_halvings: int = 30
    # Number of additional steps that reuse a factorisation of I + K W; a new factorisation costs as
    # much as several steps.
    max_corrections: int = 3
    # The mode f has converged if |K^-1 f - (Y - P)| / |Y - P| is at most this value, for labels Y
    # and probabilities P; it is 0 at the exact mode.
    max_mode_residual: float = 1e-4
    # Relative gains of the objective below this are rounding errors.
    min_relative_gain: float = 1e-12


_TUNING = _LaplaceTuning()


@dataclass(frozen=True)
class _Mode:
    """The posterior mode f, the most probable latent values, and quantities computed at f."""

    curvature: LogisticCurvature | SoftmaxCurvature
    slope: np.ndarray  # labels minus probabilities, Y - P; equals K^-1 f at the mode
    value: float  # the approximate log marginal likelihood
    steps: int
    converged: bool
    slack: float  # |K^-1 f - (Y - P)| relative to |Y - P|; 0 at the exact mode


@entry_point
@dataclass(frozen=True, eq=False)
class LaplaceLikelihood(DenseObjective):
    """Approximate log marginal likelihood of class labels, by the Laplace approximation.

        log q(y) = log p(y | f) - f^T K^-1 f / 2 - log det(I + K W) / 2

    where f is the posterior mode and W is the Hessian of -log p(y | f) at f.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance of f.
    X : points
        The n observations.
    Y : array of shape (n,), (n, 1) or (n, C)
        The labels: for two classes one column of 0 and 1, with one function f and the logistic
        link; for C classes C indicator columns, with one function f_c per class and the softmax
        link.  All functions have the same kernel.
    max_memory : int, str or None
        The memory budget.  One column needs 3 arrays of n x n numbers, and 4 for a gradient;
        C columns need C + 4, and C + 5 for a gradient.
    max_iter : int, default=100
        Largest number of Newton steps for finding the mode.
    warm : bool, default=False
        Whether the Newton steps start at the previous mode, rather than at f = 0.

    Notes
    -----
    The gradient is d log q = sum_ij M_ij dK_ij with

        M = sum_c (a_c a_c^T - R_cc + u_c a_c^T + a_c u_c^T) / 2,
        a = K^-1 f = Y - P,    R = (K + W^-1)^-1,    u = (I - R K) s,

    where P are the probabilities, and s is the derivative of -log det(I + K W) / 2 with respect to
    f.  No array of size n x n x p is needed, for p parameters.

    Two columns 1 - y, y with the kernel k are equivalent to one column y with the kernel 2 k,
    because the probabilities depend only on the difference of the two functions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import LaplaceLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 3, 10)[:, None]
    >>> round(LaplaceLikelihood(RBF(), X, X[:, 0] > 1.0).value(), 4)
    -5.8364
    >>> thirds = np.column_stack([X < 1.0, (1.0 <= X) & (X < 2.0), 2.0 <= X])
    >>> round(LaplaceLikelihood(RBF(), X, thirds).value(), 4)
    -9.6794
    """

    max_iter: int = 100
    warm: bool = False

    remedy: ClassVar[str] = "a kernel that is positive semidefinite on all points"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_binary, Y = self.Y.shape[1] == 1, self.Y
        if not np.all((Y == 0.0) | (Y == 1.0)) or (not is_binary and np.any(Y.sum(axis=1) != 1.0)):
            raise ValueError(
                "the labels of a LaplaceLikelihood must be one column of 0 and 1, or several "
                "columns of 0 and 1 with a single 1 in each row"
            )
        n, q = Y.shape
        needed = 8 * n * n * self._link.n_square_arrays(q, gradient=False)
        text = f"a Gaussian process on {n} points{self._classes_text}"
        check_budget(needed, self.max_memory, text)

    @property
    def _link(self) -> type[LogisticCurvature] | type[SoftmaxCurvature]:
        """The class that implements the logistic or the softmax likelihood."""
        return LogisticCurvature if self.Y.shape[1] == 1 else SoftmaxCurvature

    @property
    def _classes_text(self) -> str:
        q = self.Y.shape[1]
        return "" if q == 1 else f" of {q} classes"

    @property
    def _n_square_arrays(self) -> int:
        return self._link.n_square_arrays(self.Y.shape[1], gradient=True)

    def _value(self, theta: Theta) -> float:
        return self._find_mode(dense_matrix(self._kernel_at(theta), self.X, self.max_memory)).value

    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        kernel = self._kernel_at(theta)
        block: Any = kernel.linearise(self.X) if fits_one_block(kernel, self.X) else None
        if block is None:
            K = dense_matrix(kernel, self.X, self.max_memory)
        else:
            K = np.asarray(block.values, dtype=np.float64)
        mode = self._find_mode(K)
        A = mode.slope
        U, R = mode.curvature.gradient_terms(K)

        def weights(rows: slice, cols: slice) -> np.ndarray:
            outer = (A[rows] + U[rows]) @ A[cols].T + A[rows] @ U[cols].T
            return 0.5 * (outer - symmetric_tile(R, rows, cols))

        return mode.value, symmetric_pullback(kernel, self.X, weights, block=block)

    def posterior(self, theta: Theta = None) -> Posterior:
        """Return the mean and covariance of f given the labels, by the Laplace approximation."""
        watch, kernel = Stopwatch(), self._kernel_at(theta)
        mode = self._find_mode(dense_matrix(kernel, self.X, self.max_memory))
        status = Status.CONVERGED if mode.converged else Status.NOT_CONVERGED
        if not mode.converged:
            out_of_steps = mode.steps == self.max_iter
            warn_caller(
                f"the posterior mode of f has not converged after {mode.steps} Newton steps: the "
                f"relative difference between its coefficients and y - p is {mode.slack:.2e}; "
                + (
                    "increase max_iter_predict"
                    if out_of_steps
                    else "the kernel values are too large: try a smaller constant factor"
                )
            )
        covariance = mode.curvature.covariance(kernel, self.X)
        report = Report(
            solver=type(self).__name__,
            status=status,
            residual=mode.slack,
            n_iter=mode.steps,
            seconds=watch.seconds,
            certificate={"log marginal likelihood": mode.value},
        )
        return Posterior(Expansion(kernel, self.X, mode.slope), covariance, report)

    def _find_mode(self, K: np.ndarray) -> _Mode:
        """Return the posterior mode f, found by Newton's method.

        Factorising I + K W costs as much as several solves.  Each factor is therefore used for its
        Newton step and for a few more corrections.  The iteration ends with a step that uses a
        new factor, because such a step converges quadratically.
        """
        link, Y = self._link, self.Y
        A = self.__dict__.get("_last", np.zeros(Y.shape))
        F = K @ A
        log_joint, converged, steps = self._log_joint(A, F), False, 0
        while True:
            curvature = link(K, F)
            slope = Y - curvature.P
            if converged or steps == self.max_iter:
                break
            for correction in range(1 + _TUNING.max_corrections):
                previous, step = log_joint, curvature.solve(K, Y - link.probabilities(F) - A)
                A, F, log_joint = self._line_search(K, A, F, log_joint, step)
                is_flat = log_joint - previous < _TUNING.min_relative_gain * (1.0 + abs(previous))
                converged = is_flat and not correction
                if is_flat:
                    break
            steps += 1
            del curvature  # free the memory of this factor before the next one is computed
        if self.warm:
            # The next call starts from this A; its result hardly depends on the start.
            self.__dict__["_last"] = A
        slack = float(np.linalg.norm(A - slope)) / max(float(np.linalg.norm(slope)), 1e-300)
        converged = converged and slack <= _TUNING.max_mode_residual
        return _Mode(curvature, slope, log_joint - curvature.half_logdet, steps, converged, slack)

    def _line_search(
        self, K: np.ndarray, A: np.ndarray, F: np.ndarray, log_joint: float, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return A, K A and the log joint density after a step.

        The step is halved until it does not decrease the log joint density.
        """
        lowest = log_joint - _TUNING.min_relative_gain * (1.0 + abs(log_joint))
        for _ in range(_TUNING.max_halvings):
            A_next = A + step
            F_next = K @ A_next
            value_next = self._log_joint(A_next, F_next)
            if value_next >= lowest:
                return A_next, F_next, value_next
            step = 0.5 * step
        return A, F, log_joint

    def _log_joint(self, A: np.ndarray, F: np.ndarray) -> float:
        """Return log p(y | f) - f^T K^-1 f / 2, where A = K^-1 f."""
        return float(self._link.log_likelihood(F, self.Y)) - 0.5 * float(np.sum(A * F))
