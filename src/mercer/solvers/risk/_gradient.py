"""Gradient descent in the RKHS, accelerated, for the log-losses.

    R(f) = min over b of sum_i v_i loss(y_i, f(x_i) + b) + (mu / 2) |f|^2
    grad R = sum_i v_i loss'_i k(x_i, .) + mu f,      at the best b

In whitened coordinates f = Phi w is isometric to w, so that descent in w is descent in f.  The step
1 / L comes from a bound of the second derivatives, L = h |F^T diag(v) F| + mu with h = 1/4 for two
classes and 1/2 for more (Boehning 1992), and the momentum, Nesterov's, from L / mu.  That takes
about sqrt(L / mu) log(1 / tol) iterations of two products with F each, and an intercept, by
Newton's method in q variables: few for small C, very many for large C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..._runtime import Step, entry_point
from ._losses import Logistic, Softmax
from ._regularised_risk import Found, RegularisedRisk, RiskSolver, Start

__all__ = ["GradientDescent"]

_CURVATURE = {Logistic: 0.25, Softmax: 0.5}  # the largest second derivative
_ITERATIONS_PER_MESSAGE = 100
_TINY = float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True)
class GradientDescent(RiskSolver):
    """Accelerated gradient descent for `Logistic` and `Softmax`.

    Parameters
    ----------
    tol : float
        Stop when J is at most this part of itself above its minimum, as |g|^2 / (2 mu) certifies.
    max_iter : int

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
        """Return the bytes needed beside F: K and its factor before it, and vectors."""
        return 16 * n * n + 160 * n * q

    def _search(
        self, risk: RegularisedRisk, start: Start | None, say: Callable[[str], None]
    ) -> Found:
        if type(risk.loss) not in _CURVATURE:
            raise TypeError(
                f"GradientDescent knows no Lipschitz constant of {risk.loss!r}; use Newton"
            )
        F, state = risk.F, risk.start(start)
        L = _CURVATURE[type(risk.loss)] * _largest(F, risk.weights) + risk.shift
        root = np.sqrt(risk.shift / L)
        share = (1.0 - root) / (1.0 + root)
        last, taken = state.w, 0
        gap = risk.gap(state := risk.settle(state))
        while taken < self.max_iter and gap > self.tol * state.value:
            ahead = state.w + share * (state.w - last)
            g, _ = risk.gradient(risk.settle(risk.at(ahead, state.b, F @ ahead + state.b)))
            last, moved = state.w, ahead - g / L
            state = risk.settle(risk.at(moved, state.b, F @ moved + state.b))
            gap, taken = risk.gap(state), taken + 1
            if taken % _ITERATIONS_PER_MESSAGE == 0:
                words = f"iteration {taken}: objective {state.value:.8g}, gap at most {gap:.1e}"
                say(Step(words))
        failure = ""
        if not gap <= self.tol * state.value:
            failure = (
                f"gradient descent took {taken} iterations (max_iter={self.max_iter}) and ended "
                f"{gap / max(state.value, _TINY):.1e} of the objective or less above the minimum, "
                f"where {self.tol:g} was asked for. L / mu is {L / risk.shift:.1e}: use "
                f"solver='newton', raise max_iter or tol, or regularise more"
            )
        numbers = {"objective": state.value, "gap": gap, "L / mu": L / risk.shift}
        return Found(*risk.solution(state), taken, risk.residual(state), numbers, failure)


def _largest(F: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest eigenvalue of F^T diag(v) F, a little more rather than less."""
    m = F.shape[1]
    if m < 3:
        return float(np.linalg.eigvalsh(F.T @ (weights[:, None] * F)).max(initial=0.0))
    H = LinearOperator((m, m), lambda u: F.T @ (weights * (F @ np.ravel(u))), dtype=float)
    values = eigsh(H, k=1, v0=np.ones(m), tol=1e-3, return_eigenvectors=False)
    return 1.01 * float(values[0])
