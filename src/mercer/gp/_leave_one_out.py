"""The leave-one-out log predictive probability, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dsyrk

from ..solvers.linear import mirror
from ._exact import Exact
from ._system import System, lower_tile, symmetric_pullback

__all__ = ["LeaveOneOut"]


@dataclass(frozen=True, eq=False)
class LeaveOneOut(Exact):
    """sum_ic log p(y_ic | all other y_jc, theta), from one factorisation of C = K + noise.

        y_i given the others is normal, with mean y_i - a_i / g_i and variance 1 / g_i,
        a = C^-1 y,     g = the diagonal of C^-1

    It asks how well the model predicts, where the marginal likelihood asks whether the data look
    like a draw of it: more robust when they do not (Rasmussen and Williams, 2006, section 5.4).

    Parameters
    ----------
    kernel, X, Y, noise, max_memory
        As those of `MarginalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp import LeaveOneOut
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> value, gradient = LeaveOneOut(RBF(0.3) + White(0.01), X, np.sin(6 * X)).value_and_gradient()
    >>> round(value, 2), gradient.round(2)
    (23.67, array([ 1.85, -9.61]))
    """

    _arrays: ClassVar[int] = 2

    def _value(self, system: System, A: np.ndarray) -> float:
        # C^-1 is needed even for a value, which costs as much as a gradient but for one product.
        return _log_predictive(A, system.invert().diagonal())

    def _value_and_gradient(self, system: System, A: np.ndarray) -> tuple[float, np.ndarray]:
        inverse = system.invert()
        g = inverse.diagonal().copy()
        # The derivative in a is -a / g, and a moves by -C^-1 dC a; the derivative in g is v, and
        # g moves by -(C^-1 dC C^-1)_ii.
        v = 0.5 * (A.shape[1] / g + np.einsum("ic,ic->i", A, A) / g**2)
        B = -system.times_inverse(inverse, A / g[:, None])
        mirror(inverse)
        root = np.multiply(inverse, np.sqrt(v), out=inverse)
        squares = dsyrk(1.0, root, lower=1)

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = A[rows] @ B[cols].T
            tile += B[rows] @ A[cols].T
            return -0.5 * tile - lower_tile(squares, rows, cols)

        return _log_predictive(A, g), symmetric_pullback(system.kernel, self.X, weights)


def _log_predictive(A: np.ndarray, g: np.ndarray) -> float:
    logs = A.shape[1] * np.sum(np.log(g) - np.log(2.0 * np.pi))
    return 0.5 * float(logs - np.sum(A**2 / g[:, None]))
