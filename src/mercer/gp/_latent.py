"""The likelihood of targets whose points are not known: an objective in the points as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._runtime import check_budget, entry_point
from ..kernels import Kernel
from ..solvers.linear import mirror
from ._capabilities import Capabilities
from ._exact import log_density
from ._system import System

__all__ = ["LatentLikelihood"]

_ARRAYS = 8  # of n x n that a gradient takes: C, W, and what the gradient in points is made of


@entry_point
@dataclass(frozen=True, eq=False)
class LatentLikelihood:
    """log p(Y | Z, theta) + log p(Z) = sum_c log N(y_c; 0, K(Z)) + sum_i log N(z_i; 0, I).

        d log p = sum_ij W_ij dK_ij,     W = 1/2 (A A^T - d K^-1),     A = K^-1 Y

    for the d columns of Y: in theta by a pullback, in z_i by 2 sum_j W_ij dk(z_i, z_j)/dz_i, less
    z_i itself.  What is searched for is one vector, all of Z row by row and then theta.

    Parameters
    ----------
    kernel : Kernel
        Resolved, with the noise as a `White` part.
    Y : array of shape (n, d)
    n_components : int
        The columns of Z.
    prior : bool, default=True
        Whether log p(Z) is there; without it, it is the likelihood of Z and theta alone.
    max_memory : int, str or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import LatentLikelihood
    >>> from mercer.kernels import RBF, White
    >>> likelihood = LatentLikelihood(RBF() + White(0.1), np.array([[0.0], [1.0]]), 1)
    >>> u = likelihood.joined(np.array([[0.0], [1.0]]))
    >>> value, gradient = likelihood.value_and_gradient(u)
    >>> round(value, 3), gradient.shape
    (-4.743, (4,))
    """

    kernel: Kernel
    Y: np.ndarray
    n_components: int
    prior: bool = True
    max_memory: Any = None

    def __post_init__(self) -> None:
        n = len(self.Y)
        check_budget(8 * n * n * _ARRAYS, self.max_memory, f"a latent map of {n} points")

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    def X(self) -> np.ndarray:
        """The observations, of which there are as many as points."""
        return self.Y

    @property
    def bounds(self) -> np.ndarray:
        """Those of theta; points have none."""
        free = np.tile([-np.inf, np.inf], (len(self.Y) * self.n_components, 1))
        return np.concatenate([free, self.kernel.bounds])

    def joined(self, Z: np.ndarray) -> np.ndarray:
        """Return points and the theta of the kernel as one vector."""
        return np.concatenate([Z.ravel(), self.kernel.theta])

    def split(self, u: np.ndarray) -> tuple[np.ndarray, Kernel]:
        """Return the points, and the kernel at theta."""
        size = len(self.Y) * self.n_components
        return u[:size].reshape(-1, self.n_components), self.kernel.with_theta(u[size:])

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives; -inf and 0 where K is not definite."""
        (Z, kernel), (_, d) = self.split(u), self.Y.shape
        try:
            system = System(kernel, Z, 0.0, self.max_memory)
        except NotPositiveDefiniteError:
            return -np.inf, np.zeros_like(u)
        A = system.solve(self.Y)
        value = log_density(system, A, self.Y)
        W = system.invert()
        mirror(W)
        W *= -0.5 * d
        W += 0.5 * (A @ A.T)
        theta = system.derivatives(lambda rows, cols: W[rows, cols])[0]
        moved = 2.0 * kernel.input_gradient(Z, Z, W)
        if self.prior:
            value -= 0.5 * float(np.sum(Z**2) + Z.size * np.log(2.0 * np.pi))
            moved -= Z
        return value, np.concatenate([moved.ravel(), theta])
