"""The log marginal likelihood of a Gaussian process, exactly, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._exact import Exact, log_density
from ._system import System, lower_tile, symmetric_pullback

__all__ = ["MarginalLikelihood"]


@dataclass(frozen=True, eq=False)
class MarginalLikelihood(Exact):
    """log p(Y | theta) = sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi),  C = K + noise.

        d log p = sum_ij W_ij dK_ij,     W = 1/2 (A A^T - q C^-1),     A = C^-1 Y

    for q targets that share the kernel.  The weights W of the pullback are made tile by tile from
    C^-1, which takes the place of C: one n x n array, whatever the number of parameters, beside
    tiles of 512 x 512 numbers.  Kernels whose derivatives do not come in tiles, wrapped ones of
    scikit-learn and precomputed ones, take 2 + 3 p more such arrays or so, for p parameters.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance, noise as a `White` part included; resolved.
    X : points
    Y : array of shape (n,) or (n, q)
    noise : float or array of shape (n,), default=0
        Added to the diagonal of K, and not part of theta.
    max_memory : int, str or None
        The budget for all of that; see `gram`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp import MarginalLikelihood
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> objective = MarginalLikelihood(RBF(0.3) + White(0.01), X, np.sin(6 * X))
    >>> value, gradient = objective.value_and_gradient()
    >>> round(value, 2), gradient.round(2)
    (11.77, array([ 0.58, -6.97]))
    """

    def _value(self, system: System, A: np.ndarray) -> float:
        return log_density(system, A, self.Y)

    def _value_and_gradient(self, system: System, A: np.ndarray) -> tuple[float, np.ndarray]:
        value = self._value(system, A)
        inverse, q = system.invert(), self.Y.shape[1]

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = 0.5 * A[rows] @ A[cols].T
            tile -= 0.5 * q * lower_tile(inverse, rows, cols)
            return tile

        return value, symmetric_pullback(system.kernel, self.X, weights)
