"""Classes: the Laplace approximation of Gaussian processes seen through a logistic or a softmax.

    log q(y) = log p(y | f) - f^T K^-1 f / 2 - log det(I + K W) / 2,

f the most probable values at the points, W the curvature of -log p(y | f) there (Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, chapters 3.4, 3.5 and 5.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._errors import warn_caller
from .._points import length
from .._runtime import Stopwatch, check_budget, entry_point
from ..expansion import Expansion
from ..solvers import Report, Status
from ._logistic import LogisticCurvature
from ._objective import Objective
from ._posterior import Posterior
from ._softmax import SoftmaxCurvature
from ._system import (
    dense_matrix,
    fits_at_once,
    pullback_workspace,
    symmetric_pullback,
    symmetric_tile,
)

__all__ = ["LaplaceLikelihood"]

_HALVINGS = 30  # of a step that does not climb
_CORRECTIONS = 3  # of a step, with its factor
_SLACK = 1e-4  # that coefficients at the mode may have
_ROUNDING = 1e-12  # a climb less than this part of the height is none


@dataclass(frozen=True)
class _Mode:
    """The most probable f, and what is known there."""

    curvature: Any
    slope: np.ndarray  # Y - P, which is K^-1 f
    value: float
    steps: int
    converged: bool
    slack: float  # |K^-1 f - (Y - P)| relative to |Y - P|


@entry_point
@dataclass(frozen=True, eq=False)
class LaplaceLikelihood(Objective):
    """log q(y | theta) of labels; see the module.

    Parameters
    ----------
    kernel : Kernel
    X : points
    Y : array of shape (n,), (n, 1) or (n, C)
        Two classes, 0 or 1, told apart by one f through the logistic function; or for each of C
        classes a column with 1 for its points and 0 for others, and an f of its own, the softmax of
        which are the probabilities.  All have the same kernel.
    max_memory : int, str or None
        For one column 3 arrays of n x n, 4 for a gradient; for C columns C + 4 and C + 5.
    max_iter : int
        Newton steps to the mode.
    warm : bool
        Whether they begin where the last ones ended, rather than at f = 0.

    Notes
    -----
    The gradient is one pullback: d log q = sum_ij M_ij dK_ij with

        M = sum_c (a_c a_c^T - R_cc + u_c a_c^T + a_c u_c^T) / 2,
        a = K^-1 f = Y - P,    R = (K + W^-1)^-1,    u = (I - R K) s,

    s the slope of -log det(I + K W) / 2 in f, so that no array of n x n x p exists.

    Two columns 1 - y, y with the kernel k are one column y with the kernel 2 k: what counts is the
    difference of both f.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import LaplaceLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 3, 10)[:, None]
    >>> round(LaplaceLikelihood(RBF(), X, X[:, 0] > 1.0).value(), 4)
    -5.8364
    >>> thirds = np.column_stack([X < 1.0, (1.0 <= X) & (X < 2.0), 2.0 <= X])
    >>> round(LaplaceLikelihood(RBF(), X, thirds).value(), 4)
    -9.6794
    """

    max_memory: Any = None
    max_iter: int = 100
    warm: bool = False

    remedy: ClassVar[str] = "a kernel that is positive semidefinite on all points"

    def __post_init__(self) -> None:
        super().__post_init__()
        one, Y = self.Y.shape[1] == 1, self.Y
        if not np.all((Y == 0.0) | (Y == 1.0)) or (not one and np.any(Y.sum(axis=1) != 1.0)):
            raise ValueError(
                "the labels of a LaplaceLikelihood are one column of 0 and 1, or several with one "
                "1 in each row"
            )
        n = length(self.X)
        text = f"a Gaussian process on {n} points"
        check_budget(self._bytes(gradient=False), self.max_memory, text + self._of_classes)

    @property
    def _link(self) -> Any:
        return LogisticCurvature if self.Y.shape[1] == 1 else SoftmaxCurvature

    @property
    def _of_classes(self) -> str:
        q = self.Y.shape[1]
        return "" if q == 1 else f" of {q} classes"

    def _bytes(self, *, gradient: bool) -> int:
        n, q = self.Y.shape
        return 8 * n * n * self._link.arrays(q, gradient)

    def workspace(self) -> int:
        return self._bytes(gradient=True) + pullback_workspace(length(self.X), self.kernel)

    def _require_gradient(self) -> None:
        text = f"a gradient on {length(self.X)} points"
        check_budget(self.workspace(), self.max_memory, text + self._of_classes)

    def _value(self, theta: Any) -> float:
        return self._mode(dense_matrix(self._at(theta), self.X, self.max_memory)).value

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        kernel = self._at(theta)
        block: Any = kernel.linearise(self.X) if fits_at_once(kernel, self.X) else None
        if block is None:
            K = dense_matrix(kernel, self.X, self.max_memory)
        else:
            K = np.asarray(block.values, dtype=np.float64)
        mode = self._mode(K)
        A = mode.slope
        U, R = mode.curvature.pull(K)

        def weights(rows: slice, cols: slice) -> np.ndarray:
            outer = (A[rows] + U[rows]) @ A[cols].T + A[rows] @ U[cols].T
            return 0.5 * (outer - symmetric_tile(R, rows, cols))

        return mode.value, symmetric_pullback(kernel, self.X, weights, block=block)

    def posterior(self, theta: Any = None) -> Posterior:
        """Return mean and covariance of f given the labels, as Laplace has them."""
        watch, kernel = Stopwatch(), self._at(theta)
        mode = self._mode(dense_matrix(kernel, self.X, self.max_memory))
        status = Status.CONVERGED if mode.converged else Status.NOT_CONVERGED
        if not mode.converged:
            few = mode.steps == self.max_iter
            warn_caller(
                f"the most probable f has not converged after {mode.steps} Newton steps: its "
                f"coefficients miss y - p by {mode.slack:.2e}, relatively; "
                + ("raise max_iter_predict" if few else "K is too large: try a smaller factor")
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

    def _mode(self, K: np.ndarray) -> _Mode:
        """Climb to the most probable f by Newton's method.

        A factor of I + K W costs as much as several solutions, and serves a few corrections after
        its own step.  The last step is one of Newton's, which squares what is left.
        """
        link, Y = self._link, self.Y
        A = self.__dict__.get("_last", np.zeros(Y.shape))
        F = K @ A
        height, converged, steps = self._height(A, F), False, 0
        while True:
            here = link(K, F)
            slope = Y - here.P
            if converged or steps == self.max_iter:
                break
            for correction in range(1 + _CORRECTIONS):
                start, step = height, here.solve(K, Y - link.probabilities(F) - A)
                A, F, height = self._climb(K, A, F, height, step)
                level = height - start < _ROUNDING * (1.0 + abs(start))
                converged = level and not correction
                if level:
                    break
            steps += 1
            del here  # before the next one is made
        if self.warm:
            self.__dict__["_last"] = A  # a hint, no part of the value
        slack = float(np.linalg.norm(A - slope)) / max(float(np.linalg.norm(slope)), 1e-300)
        converged = converged and slack <= _SLACK
        return _Mode(here, slope, height - here.half_logdet, steps, converged, slack)

    def _climb(
        self, K: np.ndarray, A: np.ndarray, F: np.ndarray, height: float, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return A, K A and the height after a step, halved until it does not descend."""
        least = height - _ROUNDING * (1.0 + abs(height))
        for _ in range(_HALVINGS):
            A_next = A + step
            F_next = K @ A_next
            reached = self._height(A_next, F_next)
            if reached >= least:
                return A_next, F_next, reached
            step = 0.5 * step
        return A, F, height

    def _height(self, A: np.ndarray, F: np.ndarray) -> float:
        """Return log p(y | f) - f^T K^-1 f / 2."""
        return float(self._link.log_likelihood(F, self.Y)) - 0.5 * float(np.sum(A * F))
