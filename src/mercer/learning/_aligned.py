"""Alignment with the targets as a function of theta."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from .._errors import not_finite
from .._points import length, take
from .._runtime import check_budget, entry_point
from ..gp import Capabilities
from ..gram import gram
from ..kernels import Kernel

__all__ = ["TargetAlignment"]

_ARRAYS = 6  # of the size of K: K, T, and what a pullback takes


@entry_point
@dataclass(frozen=True, eq=False)
class TargetAlignment:
    """n <A, T> / (|A| |T|), of the centred matrices A of the kernel and T of y y^T.

        d value = sum_ij W_ij dK_ij,     W = n / |A| (T / |T| - cos A / |A|),  cos the alignment

    The factor n puts it on the scale of a log likelihood.

    Parameters
    ----------
    kernel : Kernel
    X : points
    Y : ndarray of shape (n, q)
    weights : ndarray of shape (n,), optional
    max_memory : int, str or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.learning import TargetAlignment
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
        """The theta that was given."""
        return self.kernel.theta

    def subset(self, rows: np.ndarray) -> Self:
        """Return the objective of some of the points."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=take(self.X, rows), Y=self.Y[rows], weights=weights)

    def value(self, theta: Any = None) -> float:
        """Return the objective."""
        return self.value_and_gradient(theta)[0]

    def value_and_gradient(self, theta: Any = None) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta."""
        n = length(self.X)
        check_budget(8 * _ARRAYS * n * n, self.max_memory, f"an alignment of {n} points")
        kernel = self.kernel if theta is None else self.kernel.with_theta(theta)
        w = np.ones(n) if self.weights is None else self.weights
        share = w / w.sum()
        A = gram(kernel, self.X, max_memory=self.max_memory).to_array().astype(float, copy=False)
        if not np.isfinite(A).all():
            raise not_finite(kernel)
        means = A @ share
        A = A - means
        A -= means[:, None] - means @ share
        Y = self.Y - share @ self.Y
        T = Y @ Y.T
        both = w[:, None] * w
        a, t = np.sqrt(np.sum(both * A * A)), np.sqrt(np.sum(both * T * T))
        if not (a > 0 and t > 0):
            return 0.0, np.zeros(self.start.size)
        cosine = float(np.sum(both * A * T) / (a * t))
        W = T / t
        W -= cosine / a * A
        W *= both
        W *= n / a
        return n * cosine, kernel.pullback(self.X, None, W)
