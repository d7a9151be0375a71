"""What a ridge is chosen by: errors of leave-one-out, their generalisation, and the likelihood.

    min_f,b  sum_i w_i |y_i - f(x_i) - b|^2 + alpha |f|^2,     C = K + alpha diag(1/w)
    P = C^-1 - u u^T / 1^T u,  u = C^-1 1   (without b, P = C^-1),     a = P y,     p = diag P

    "loo"         sum_i w_i e_i^2 / sum w,    e_i = a_i / p_i: the error of a fit without point i
    "gcv"         n sum_i w_i r_i^2 / (sum_i 1 - h_i)^2,  r_i = alpha a_i / w_i the residuals,
                  h_i = 1 - alpha p_i / w_i: leave-one-out that does not depend on the coordinates
    "likelihood"  det(C / c)^-1/2 exp(-y^T C^-1 y / 2 c), with the best c; b is integrated out

All three are functions of a, p and log det C (with an intercept the determinant that restricted
likelihood has, det C times 1^T u).  Since dP = -P dC P, one formula gives all gradients: with
U, v and c the derivatives in a, p and the log determinant, and B = P U,

    d value = sum_ij W_ij dC_ij,     W = -1/2 (B a^T + a B^T) - P diag(v) P + c P
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._points import length
from .._runtime import check_budget, check_choice, entry_point
from .._runtime.linalg import blas
from ..kernels import Kernel
from ..solvers.linear import mirror
from ._capabilities import Capabilities
from ._objective import Objective
from ._system import System, pullback_workspace, symmetric_pullback, symmetric_tile

__all__ = ["CRITERIA", "RidgeCriterion"]

CRITERIA = ("loo", "gcv", "likelihood")


class _Judgement(NamedTuple):
    """A value with its derivatives in a, in p, and in the log determinant."""

    value: float
    by_a: np.ndarray
    by_p: np.ndarray | None
    by_logdet: float


@entry_point
@dataclass(frozen=True, eq=False)
class RidgeCriterion(Objective):
    """-N/2 log of the mean squared error of leave-one-out, or of another criterion: see the module.

    As a logarithm it is on the scale of a log likelihood, which `maximise` expects.  N is the
    number of targets, n q.  theta is that of the kernel and then, if it is searched for, log alpha.

    Parameters
    ----------
    kernel, X, Y, max_memory
        As those of `MarginalLikelihood`.
    noise : float or array of shape (n,), default=0
        1 / w; 0 stands for 1.
    alpha : float
    free : bool
        Whether alpha is a part of theta.
    intercept : bool
    criterion : {"loo", "gcv", "likelihood"}

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import RidgeCriterion
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
        check_choice("criterion", self.criterion, *CRITERIA)
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
        own = self.kernel.theta
        return np.append(own, np.log(self.alpha)) if self.free else own

    @property
    def count(self) -> int:
        """N: targets, less one of each column for an intercept that is integrated out."""
        n, q = self.Y.shape
        return q * (n - (self.intercept and self.criterion == "likelihood"))

    def error(self, value: float) -> float:
        """Return the mean squared error that a value stands for; the value itself, a likelihood."""
        if self.criterion == "likelihood":
            return value
        return float(np.exp(-2.0 * value / self.count))

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that a search may call."""
        return Capabilities(subset=True, standard_error=True)

    def standard_error(self, theta: Any = None) -> float:
        """Return about how much the value would differ for other data of the same kind.

        The mean of N squares of normal errors is known to a part sqrt(2 / N) of it.  A search that
        gains much less than this has nothing left to find.
        """
        return float(np.sqrt(0.5 * self.count))

    def split(self, theta: Any) -> tuple[Kernel, float]:
        """Return the kernel and the alpha of a theta."""
        theta = self.start if theta is None else np.asarray(theta, dtype=float)
        own = theta[:-1] if self.free else theta
        return self.kernel.with_theta(own), float(np.exp(theta[-1])) if self.free else self.alpha

    def _value(self, theta: Any) -> float:
        return self._projected(theta)[-1].value

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        kernel, shift, A, P, found = self._projected(theta)
        B = blas.dsymm(1.0, P, found.by_a, lower=1)
        diagonal = found.by_logdet * P.diagonal() - np.einsum("ic,ic->i", A, B)
        squares: Any = None
        if found.by_p is not None:
            mirror(P)
            root = np.multiply(P, np.sqrt(found.by_p), out=P)
            squares = blas.dsyrk(1.0, root, lower=1)
            diagonal -= squares.diagonal()

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = A[rows] @ B[cols].T
            tile += B[rows] @ A[cols].T
            tile *= -0.5
            if squares is None:
                return tile + found.by_logdet * symmetric_tile(P, rows, cols)
            return tile - symmetric_tile(squares, rows, cols)

        gradient = symmetric_pullback(kernel, self.X, weights)
        if self.free:
            gradient = np.append(gradient, np.sum(diagonal * shift))
        return found.value, gradient

    def _projected(self, theta: Any) -> tuple[Kernel, np.ndarray, np.ndarray, Any, _Judgement]:
        """Return the kernel, alpha / w, a, P (its lower half is right), and what they are worth."""
        kernel, alpha = self.split(theta)
        n, Y = length(self.X), self.Y
        shift = np.broadcast_to(alpha * np.asarray(self.noise), (n,))
        system = System(kernel, self.X, shift, self.max_memory)
        logdet = system.logdet()
        solved = system.solve(np.column_stack([np.ones(n), Y]))
        P, u, A = system.invert(), solved[:, 0], solved[:, 1:]
        if self.intercept:
            total = float(u.sum())
            A = A - np.outer(u, u @ Y / total)
            P = blas.dsyr(-1.0 / total, u, lower=1, a=P, overwrite_a=1)
            logdet += np.log(total)
        found = self._judge(A, P.diagonal().copy(), logdet)
        if not np.isfinite(found.value):
            raise NotPositiveDefiniteError("the criterion is lost in rounding")
        return kernel, shift, A, P, found

    def _judge(self, A: np.ndarray, p: np.ndarray, logdet: float) -> _Judgement:
        n, N = len(A), self.count
        w = np.broadcast_to(1.0 / np.asarray(self.noise), (n,))
        with np.errstate(all="ignore"):
            if self.criterion == "likelihood":
                S, q = float(np.sum(self.Y * A)), self.Y.shape[1]
                value = -0.5 * (N * (np.log(2.0 * np.pi * S / N) + 1.0) + q * logdet)
                return _Judgement(value, -0.5 * N / S * self.Y, None, -0.5 * q)
            if self.criterion == "loo":
                errors = w[:, None] * A**2 / p[:, None] ** 2
                S = float(errors.sum())
                by_a = -N / S * w[:, None] * A / p[:, None] ** 2
                by_p, mean = N / S * errors.sum(axis=1) / p, S / (w.sum() * A.shape[1])
            else:
                S, T = float(np.sum(A**2 / w[:, None])), float(np.sum(p / w))
                by_a = -N / S * A / w[:, None]
                by_p, mean = N / (T * w), n * S / (T**2 * A.shape[1])
            return _Judgement(-0.5 * N * np.log(mean), by_a, by_p, 0.0)
