"""Criteria for choosing the parameters of kernel ridge regression, with gradients.

    min_f,b  sum_i w_i |y_i - f(x_i) - b|^2 + alpha |f|^2,     C = K + alpha diag(1/w)
    P = C^-1 - u u^T / 1^T u,  u = C^-1 1   (without b, P = C^-1),     a = P y,     p = diag P

    "loo"         leave-one-out: sum_i w_i e_i^2 / sum w, where e_i = a_i / p_i is the error at
                  point i of a fit without this point
    "gcv"         generalised cross-validation: n sum_i w_i r_i^2 / (sum_i 1 - h_i)^2, with the
                  residuals r_i = alpha a_i / w_i and the leverages h_i = 1 - alpha p_i / w_i; it is
                  invariant to rotations of the observations
    "likelihood"  marginal likelihood det(C / c)^-1/2 exp(-y^T C^-1 y / 2 c), maximised over the
                  scale c; the intercept b is integrated out

All three criteria are functions of a, p and log det C.  (With an intercept, det C is replaced by
the determinant of the restricted likelihood, det C times 1^T u.)  Because dP = -P dC P, one formula
gives all gradients: if U, v and c are the derivatives in a, p and the log determinant, and B = P U,

    d value = sum_ij W_ij dC_ij,     W = -1/2 (B a^T + a B^T) - P diag(v) P + c P
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...._core import NotPositiveDefiniteError, check_budget, check_choice, entry_point, length
from ...._core.linalg import blas
from ....kernels import Kernel
from ....solvers.linear import mirror_lower_triangle
from .._exact_solve import (
    FactorizedCovariance,
    pullback_workspace,
    symmetric_pullback,
    symmetric_tile,
)
from ._gp_objective import Capabilities, Objective

__all__ = ["RIDGE_CRITERIA", "RidgeCriterion"]

RIDGE_CRITERIA = ("loo", "gcv", "likelihood")


class _CriterionValue(NamedTuple):
    """A criterion, with its derivatives in a, p and log det C (see the module docstring)."""

    value: float
    by_a: np.ndarray
    by_p: np.ndarray | None
    by_logdet: float


@entry_point
@dataclass(frozen=True, eq=False)
class RidgeCriterion(Objective):
    """Objective for choosing kernel parameters and alpha of kernel ridge regression.

    For "loo" and "gcv" the value is -N/2 log(mean squared error), where N = n q is the number of
    targets; this is on the scale of a log likelihood, as `maximise` expects.  For "likelihood" it
    is the log marginal likelihood.  theta contains the parameters of the kernel and, if `free`,
    log alpha.

    Parameters
    ----------
    kernel, X, Y, max_memory
        See `MarginalLikelihood`.
    noise : float or array of shape (n,), default=0
        The inverse sample weights 1 / w; 0 means that all weights are 1.
    alpha : float, default=1
        The regularisation parameter.
    free : bool, default=True
        Whether log alpha is part of theta.
    intercept : bool, default=False
        Whether the model has an intercept.
    criterion : {"loo", "gcv", "likelihood"}, default="loo"
        Leave-one-out error, generalised cross-validation, or marginal likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import RidgeCriterion
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> objective = RidgeCriterion(RBF(0.3), X, np.sin(6 * X), alpha=0.01)
    >>> value, gradient = objective.value_and_gradient()
    >>> f"{objective.error(value):.5f}", gradient.round(2)
    ('0.00117', array([-12.06,  -9.19]))
    """

    max_memory: Any = None
    alpha: float = 1.0
    free: bool = True
    intercept: bool = False
    criterion: str = "loo"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("criterion", self.criterion, *RIDGE_CRITERIA)
        if not np.any(self.noise):
            self.__dict__["noise"] = 1.0

    def workspace(self) -> int:
        n, arrays = length(self.X), 1 if self.criterion == "likelihood" else 2
        return 8 * n * n * arrays + pullback_workspace(n, self.kernel)

    def _require_gradient(self) -> None:
        text = f"a gradient on {length(self.X)} points"
        check_budget(self.workspace(), self.max_memory, text)

    @property
    def start(self) -> np.ndarray:
        kernel_theta = self.kernel.theta
        return np.append(kernel_theta, np.log(self.alpha)) if self.free else kernel_theta

    @property
    def n_targets(self) -> int:
        """The number N of targets, minus one per column if an intercept is integrated out."""
        n, q = self.Y.shape
        return q * (n - (self.intercept and self.criterion == "likelihood"))

    def error(self, value: float) -> float:
        """Convert a value of the objective to a mean squared error; "likelihood" is unchanged."""
        if self.criterion == "likelihood":
            return value
        return float(np.exp(-2.0 * value / self.n_targets))

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        return Capabilities(subset=True, standard_error=True)

    def standard_error(self, theta: Any = None) -> float:
        """Return the approximate standard error of the value, over random data sets of this size.

        The mean of N squared normal errors has a relative standard error of sqrt(2 / N).  An
        optimisation can stop when its steps gain much less than this.
        """
        return float(np.sqrt(0.5 * self.n_targets))

    def split(self, theta: Any) -> tuple[Kernel, float]:
        """Return the kernel and alpha for theta."""
        theta = self.start if theta is None else np.asarray(theta, dtype=float)
        kernel_theta = theta[:-1] if self.free else theta
        return self.kernel.with_theta(kernel_theta), float(
            np.exp(theta[-1])
        ) if self.free else self.alpha

    def _value(self, theta: Any) -> float:
        return self._solve(theta)[-1].value

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        kernel, regularisation, A, P, result = self._solve(theta)
        B = blas.dsymm(1.0, P, result.by_a, lower=1)
        diagonal = result.by_logdet * P.diagonal() - np.einsum("ic,ic->i", A, B)
        squares: Any = None
        if result.by_p is not None:
            mirror_lower_triangle(P)
            root = np.multiply(P, np.sqrt(result.by_p), out=P)
            squares = blas.dsyrk(1.0, root, lower=1)
            diagonal -= squares.diagonal()

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = A[rows] @ B[cols].T
            tile += B[rows] @ A[cols].T
            tile *= -0.5
            if squares is None:
                return tile + result.by_logdet * symmetric_tile(P, rows, cols)
            return tile - symmetric_tile(squares, rows, cols)

        gradient = symmetric_pullback(kernel, self.X, weights)
        if self.free:
            gradient = np.append(gradient, np.sum(diagonal * regularisation))
        return result.value, gradient

    def _solve(self, theta: Any) -> tuple[Kernel, np.ndarray, np.ndarray, Any, _CriterionValue]:
        """Return the kernel, alpha / w, a = P y, P (lower triangle only), and the criterion."""
        kernel, alpha = self.split(theta)
        n, Y = length(self.X), self.Y
        regularisation = np.broadcast_to(alpha * np.asarray(self.noise), (n,))
        system = FactorizedCovariance(kernel, self.X, regularisation, self.max_memory)
        logdet = system.logdet()
        solved = system.solve(np.column_stack([np.ones(n), Y]))
        P, u, A = system.invert(), solved[:, 0], solved[:, 1:]
        if self.intercept:
            total = float(u.sum())
            A = A - np.outer(u, u @ Y / total)
            P = blas.dsyr(-1.0 / total, u, lower=1, a=P, overwrite_a=1)
            logdet += np.log(total)
        result = self._evaluate(A, P.diagonal().copy(), logdet)
        if not np.isfinite(result.value):
            raise NotPositiveDefiniteError("the criterion is not finite because of rounding errors")
        return kernel, regularisation, A, P, result

    def _evaluate(self, A: np.ndarray, p: np.ndarray, logdet: float) -> _CriterionValue:
        """Compute the criterion from the coefficients A, p = diag P and the log determinant."""
        n, N = len(A), self.n_targets
        w = np.broadcast_to(1.0 / np.asarray(self.noise), (n,))
        with np.errstate(all="ignore"):
            if self.criterion == "likelihood":
                S, q = float(np.sum(self.Y * A)), self.Y.shape[1]
                value = -0.5 * (N * (np.log(2.0 * np.pi * S / N) + 1.0) + q * logdet)
                return _CriterionValue(value, -0.5 * N / S * self.Y, None, -0.5 * q)
            if self.criterion == "loo":
                errors = w[:, None] * A**2 / p[:, None] ** 2
                S = float(errors.sum())
                by_a = -N / S * w[:, None] * A / p[:, None] ** 2
                by_p, mean = N / S * errors.sum(axis=1) / p, S / (w.sum() * A.shape[1])
            else:
                S, T = float(np.sum(A**2 / w[:, None])), float(np.sum(p / w))
                by_a = -N / S * A / w[:, None]
                by_p, mean = N / (T * w), n * S / (T**2 * A.shape[1])
            return _CriterionValue(-0.5 * N * np.log(mean), by_a, by_p, 0.0)
