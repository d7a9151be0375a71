"""The alignment of a kernel with the targets, as an objective for its hyper-parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..._core import check_budget, entry_point, length, not_finite_error, take
from ...gram import gram
from ...kernels import Kernel
from ..gp import Capabilities

__all__ = ["TargetAlignment"]

_N_MATRICES = 6  # number of n x n matrices in memory, including temporary ones


@entry_point
@dataclass(frozen=True, eq=False)
class TargetAlignment:
    """The centred alignment of a kernel with the targets, as a function of theta.

    The objective is n <A, T> / (|A| |T|), where A is the centred kernel matrix and T the centred
    Y Y^T.  The factor n gives it the scale of a log likelihood.  Its derivatives are

        d value = sum_ij W_ij dK_ij,     W = n / |A| (T / |T| - c A / |A|)

    where c = <A, T> / (|A| |T|) is the alignment.

    Parameters
    ----------
    kernel : Kernel
        The kernel, whose `theta` is the starting point.
    X : points
        The n training points.
    Y : ndarray of shape (n, q)
        The targets.
    weights : ndarray of shape (n,), optional
        Weights of the points; a point of weight 2 counts as two points.
    max_memory : int, str or None, default=None
        The memory budget; see `mercer.gram.gram`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.kernel_learning import TargetAlignment
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> value, gradient = TargetAlignment(RBF(1.0), X, np.sin(3 * X)).value_and_gradient()
    >>> round(value / 30, 3)
    0.729
    """

    kernel: Kernel
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None = None
    max_memory: Any = None

    capabilities: ClassVar[Capabilities] = Capabilities(subset=True)

    @property
    def start(self) -> np.ndarray:
        """The theta of `kernel`, where the optimisation starts."""
        return self.kernel.theta

    def subset(self, rows: np.ndarray) -> Self:
        """Return the objective restricted to the points with these indices."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=take(self.X, rows), Y=self.Y[rows], weights=weights)

    def value(self, theta: Any = None) -> float:
        """Return the objective at theta; None means the theta of `kernel`."""
        return self.value_and_gradient(theta)[0]

    def value_and_gradient(self, theta: Any = None) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient with respect to theta."""
        n = length(self.X)
        check_budget(8 * _N_MATRICES * n * n, self.max_memory, f"an alignment of {n} points")
        kernel = self.kernel if theta is None else self.kernel.with_theta(theta)
        w = np.ones(n) if self.weights is None else self.weights
        fractions = w / w.sum()
        A = gram(kernel, self.X, max_memory=self.max_memory).to_array().astype(float, copy=False)
        if not np.isfinite(A).all():
            raise not_finite_error(kernel)
        means = A @ fractions
        A = A - means
        A -= means[:, None] - means @ fractions
        Y = self.Y - fractions @ self.Y
        T = Y @ Y.T
        pair_weights = w[:, None] * w
        a, t = np.sqrt(np.sum(pair_weights * A * A)), np.sqrt(np.sum(pair_weights * T * T))
        if not (a > 0 and t > 0):
            return 0.0, np.zeros(self.start.size)
        cosine = float(np.sum(pair_weights * A * T) / (a * t))
        W = T / t
        W -= cosine / a * A
        W *= pair_weights
        W *= n / a
        return n * cosine, kernel.pullback(self.X, None, W)
