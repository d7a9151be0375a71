"""Two classes: the Laplace approximation of a Gaussian process through the logistic function.

    log q(y) = log p(y | f) - f^T K^-1 f / 2 - log det B / 2,     B = I + W^1/2 K W^1/2,

f the most probable values at the points, W = p (1 - p) the curvature of the log-loss there
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 3.4 and 5.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.special import expit

from .._errors import NotPositiveDefiniteError, warn_caller
from .._points import length
from .._runtime import Stopwatch, check_budget, slices
from ..expansion import Expansion
from ..solvers import Report, Status
from ._objective import Objective
from ._posterior import Conditioned, Posterior
from ._system import dense_matrix, pullback_workspace, symmetric_pullback

__all__ = ["LaplaceLikelihood", "expected_probability"]

_HALVINGS = 30  # of a step that does not climb
_REACH = 9.0  # standard deviations that an expectation looks at
_WIDEST = 100.0  # the standard deviation up to which it has all its digits
_LEAST_CURVATURE = 1e-200  # so that its root has an inverse


@dataclass(frozen=True)
class _Mode:
    """The most probable f, and what is known there."""

    f: np.ndarray
    a: np.ndarray  # K^-1 f, which is the slope y - p of the log likelihood
    p: np.ndarray
    root: np.ndarray  # W^1/2
    L: np.ndarray  # of B
    value: float
    steps: int
    converged: bool
    slack: float  # |a - (y - p)| relative to |y - p|


@dataclass(frozen=True, eq=False)
class LaplaceLikelihood(Objective):
    """log q(y | theta) of labels y in {0, 1}; see the module.

    Parameters
    ----------
    kernel : Kernel
    X : points
    Y : array of shape (n,)
        0 or 1.
    max_memory : int, str or None
    max_iter : int
        Newton steps to the mode.
    warm : bool
        Whether they begin where the last ones ended, rather than at f = 0.

    Notes
    -----
    The gradient is one pullback: d log q = sum_ij M_ij dK_ij with

        M = (a a^T - R + u a^T + a u^T) / 2,    R = W^1/2 B^-1 W^1/2,    u = (I - R K) s,
        s = -diag((K^-1 + W)^-1) W' / 2,

    so that no array of n x n x p exists.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import LaplaceLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 3, 10)[:, None]
    >>> round(LaplaceLikelihood(RBF(), X, X[:, 0] > 1.0).value(), 4)
    -5.8364
    """

    max_memory: Any = None
    max_iter: int = 100
    warm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.all((self.Y == 0.0) | (self.Y == 1.0)) or self.Y.shape[1] != 1:
            raise ValueError("the labels of a LaplaceLikelihood are one column of 0 and 1")
        n = length(self.X)
        check_budget(8 * n * n * 3, self.max_memory, f"a Gaussian process on {n} points")

    def workspace(self) -> int:
        n = length(self.X)
        return 8 * n * n * 5 + pullback_workspace(n, self.kernel)

    def _require_gradient(self) -> None:
        text = f"a gradient on {length(self.X)} points"
        check_budget(self.workspace(), self.max_memory, text)

    def _value(self, theta: Any) -> float:
        return self._mode(dense_matrix(self._at(theta), self.X, self.max_memory)).value

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        kernel = self._at(theta)
        K = dense_matrix(kernel, self.X, self.max_memory)
        mode = self._mode(K)
        a, p = mode.a, mode.p
        C = solve_triangular(mode.L, mode.root[:, None] * K, lower=True, overwrite_b=True)
        left = np.diag(K) - np.einsum("ij,ij->j", C, C)  # of (K^-1 + W)^-1, the diagonal
        del C
        s = -0.5 * left * p * (1.0 - p) * (1.0 - 2.0 * p)
        t = lapack.dpotrs(mode.L, mode.root * (K @ s), lower=1)[0]
        u = s - mode.root * t
        R, _ = lapack.dpotri(mode.L, lower=1, overwrite_c=1)
        R *= mode.root
        R *= mode.root[:, None]

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = R[rows, cols]
            if rows == cols:
                tile = np.tril(tile) + np.tril(tile, -1).T
            outer = np.outer(a[rows] + u[rows], a[cols]) + np.outer(a[rows], u[cols])
            return 0.5 * (outer - tile)

        return mode.value, symmetric_pullback(kernel, self.X, weights)

    def posterior(self, theta: Any = None) -> Posterior:
        """Return mean and covariance of f given the labels, as Laplace has them."""
        watch, kernel = Stopwatch(), self._at(theta)
        mode = self._mode(dense_matrix(kernel, self.X, self.max_memory))
        status = Status.CONVERGED if mode.converged else Status.NOT_CONVERGED
        report = Report(
            solver=type(self).__name__,
            status=status,
            residual=mode.slack,
            n_iter=mode.steps,
            seconds=watch.seconds,
            certificate={"log marginal likelihood": mode.value},
        )
        if not mode.converged:
            warn_caller(
                f"the most probable f has not converged after {mode.steps} Newton steps: its "
                f"coefficients miss y - p by {mode.slack:.2e}, relatively; raise max_iter_predict"
            )
        factor = np.tril(mode.L) / np.maximum(mode.root, np.sqrt(_LEAST_CURVATURE))[:, None]
        slope = self.Y - mode.p[:, None]
        return Posterior(
            Expansion(kernel, self.X, slope), Conditioned(kernel, self.X, factor), report
        )

    def _mode(self, K: np.ndarray) -> _Mode:
        """Climb to the most probable f by Newton's method; a step that does not climb is halved."""
        y = self.Y[:, 0]
        a = self.__dict__.get("_last", np.zeros(len(y)))
        f = K @ a
        height, converged, steps = _log_sum(f, y) - 0.5 * float(a @ f), False, 0
        while True:
            p, root, L = self._curvature(K, f)
            slack = float(np.linalg.norm(a - (y - p)))
            size = float(np.linalg.norm(y - p))
            if converged or steps == self.max_iter:
                break
            b = root**2 * f + (y - p)
            new = b - root * lapack.dpotrs(L, root * (K @ b), lower=1)[0]
            step = new - a
            for _ in range(_HALVINGS):
                a_next = a + step
                f_next = K @ a_next
                reached = _log_sum(f_next, y) - 0.5 * float(a_next @ f_next)
                if reached >= height:
                    break
                step *= 0.5
            else:
                a_next, f_next, reached = a, f, height
            converged = reached - height < 1e-12 * (1.0 + abs(height))
            a, f, height, steps = a_next, f_next, reached, steps + 1
        if self.warm:
            self.__dict__["_last"] = a  # a hint, no part of the value
        value = height - float(np.sum(np.log(np.diag(L))))
        return _Mode(f, y - p, p, root, L, value, steps, converged, slack / max(size, 1e-300))

    @staticmethod
    def _curvature(K: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return p, W^1/2 and the factor of B, whose eigenvalues are at least 1."""
        p = expit(f)
        root = np.sqrt(p * (1.0 - p))
        B = root[:, None] * K
        B *= root
        B[np.diag_indices_from(B)] += 1.0
        L, info = lapack.dpotrf(B, lower=1, clean=0, overwrite_a=1)
        if info != 0 or not np.isfinite(L[-1, -1]):
            raise NotPositiveDefiniteError(
                f"I + W^1/2 K W^1/2 is not positive definite: pivot {info} of {len(L)}; the kernel "
                f"is no Mercer kernel on these points"
            )
        return p, root, L


def _log_sum(f: np.ndarray, y: np.ndarray) -> float:
    """Return sum_i log p(y_i | f_i)."""
    return -float(np.sum(np.logaddexp(0.0, np.where(y > 0, -f, f))))


def expected_probability(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return E[1 / (1 + exp(-f))] of f normal with this mean and variance.

    By the trapezoidal rule, which converges exponentially for such functions: the logistic function
    has its nearest pole pi / sigma away from the real line, so that a step of 0.8 / sigma leaves an
    error of exp(-2 pi^2 / 0.8) = 2e-11.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import expected_probability
    >>> expected_probability(np.array([0.0, 2.0]), np.array([1.0, 4.0])).round(4)
    array([0.5   , 0.7752])
    """
    sigma = np.sqrt(np.maximum(variance, 0.0))
    widest = min(float(sigma.max(initial=0.0)), _WIDEST)
    nodes = np.linspace(-_REACH, _REACH, 2 * int(np.ceil(_REACH * max(1.7, widest / 0.8))) + 1)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    out = np.empty(len(sigma))
    for rows in slices(len(out), max(1, 2**20 // len(nodes))):
        out[rows] = expit(mean[rows, None] + sigma[rows, None] * nodes) @ weights
    return out
