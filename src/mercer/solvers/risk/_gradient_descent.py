"""Accelerated gradient descent in the RKHS for the logistic and softmax losses.

    R(f) = min over b of sum_i v_i loss(y_i, f(x_i) + b) + (mu / 2) |f|^2
    grad R = sum_i v_i loss'_i k(x_i, .) + mu f,      at the best b

Here v_i are sample weights and mu is the ridge penalty.  The solver works in whitened coordinates:
the values of f at the points are F w, and |f| = |w|, so that descent in w is descent in f.

The step size is 1 / L, where L = h |F^T diag(v) F| + mu is a bound on the second derivatives, with
h = 1/4 for two classes and 1/2 for more (Boehning 1992).  Nesterov's momentum follows from L / mu.

The method takes about sqrt(L / mu) log(1 / tol) iterations: few with strong regularisation, very
many with weak regularisation.  Each iteration multiplies by F and F^T, and finds the intercepts by
Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..._core import ProgressCallback, ProgressStep, entry_point
from ._losses import Logistic, Softmax
from ._regularised_risk import Minimum, RegularisedRisk, RiskSearch, Start

_MAX_SECOND_DERIVATIVE = {Logistic: 0.25, Softmax: 0.5}  # Boehning's upper bounds
_ITERATIONS_PER_MESSAGE = 100
_TINY = float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True)
class GradientDescent(RiskSearch[RegularisedRisk]):
    """Accelerated gradient descent for the losses `Logistic` and `Softmax`.

    Parameters
    ----------
    tol : float, default=1e-10
        Relative accuracy of the objective J: stop when the certified bound |g|^2 / (2 mu) on the
        distance of J to its minimum is at most `tol` times J.  g is the gradient and mu the ridge
        penalty.
    max_iter : int, default=10000
        Maximum number of iterations.

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
        """Return the memory in bytes that is needed in addition to the coordinates F.

        It counts the kernel matrix and its factor, which give F, and vectors of length n.
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
