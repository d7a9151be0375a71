"""The objective of the GPLVM: a likelihood that is a function of the latent points and theta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...._core import NotPositiveDefiniteError, check_budget, entry_point
from ....kernels import Kernel
from ....solvers.linear import mirror_lower_triangle
from .._exact_solve import FactorizedCovariance
from ._exact_likelihood import log_density
from ._gp_objective import Capabilities

__all__ = ["LatentLikelihood"]

# Number of n x n arrays that a gradient needs: the covariance, the weights of its derivatives, and
# temporary arrays for the gradient in the points.
_N_SQUARE_ARRAYS = 8


@entry_point
@dataclass(frozen=True, eq=False)
class LatentLikelihood:
    """Log likelihood of data Y as a function of latent points Z and theta, for the GPLVM.

        log p(Y | Z, theta) + log p(Z) = sum_c log N(y_c; 0, K(Z)) + sum_i log N(z_i; 0, I)
        d log p(Y | Z, theta) = sum_ij W_ij dK_ij,   W = 1/2 (A A^T - d K^-1),   A = K^-1 Y

    for the d columns of Y.  The gradient in z_i is 2 sum_j W_ij dk(z_i, z_j)/dz_i - z_i.  All
    parameters are stored in one vector u: the rows of Z, followed by theta.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the latent points, with the noise as a `White` term.  Its parameters must be
        numbers, not rules that depend on data, such as gamma="scale".
    Y : array of shape (n, d)
        The observed data.
    n_components : int
        The number of columns of Z.
    prior : bool, default=True
        Whether to add log p(Z).  If False, the objective is log p(Y | Z, theta).
    max_memory : int, str or None
        The memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import LatentLikelihood
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
        check_budget(
            8 * n * n * _N_SQUARE_ARRAYS, self.max_memory, f"a latent variable model of {n} points"
        )

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    def X(self) -> np.ndarray:
        """The data Y; `maximise` needs only its number of rows."""
        return self.Y

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of u: infinite for the points, and those of the kernel for theta."""
        unbounded = np.tile([-np.inf, np.inf], (len(self.Y) * self.n_components, 1))
        return np.concatenate([unbounded, self.kernel.bounds])

    def joined(self, Z: np.ndarray) -> np.ndarray:
        """Return the parameter vector u: the points Z, followed by the theta of the kernel."""
        return np.concatenate([Z.ravel(), self.kernel.theta])

    def split(self, u: np.ndarray) -> tuple[np.ndarray, Kernel]:
        """Return the points Z and the kernel that the parameter vector u describes."""
        size = len(self.Y) * self.n_components
        return u[:size].reshape(-1, self.n_components), self.kernel.with_theta(u[size:])

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient; -inf and 0 if K is not positive definite."""
        (Z, kernel), (_, d) = self.split(u), self.Y.shape
        try:
            system = FactorizedCovariance(kernel, Z, 0.0, self.max_memory)
        except NotPositiveDefiniteError:
            return -np.inf, np.zeros_like(u)
        A = system.solve(self.Y)
        value = log_density(system, A, self.Y)
        W = system.invert()
        mirror_lower_triangle(W)
        W *= -0.5 * d
        W += 0.5 * (A @ A.T)
        on_theta = system.derivatives(lambda rows, cols: W[rows, cols])[0]
        on_Z = 2.0 * kernel.input_gradient(Z, Z, W)
        if self.prior:
            value -= 0.5 * float(np.sum(Z**2) + Z.size * np.log(2.0 * np.pi))
            on_Z -= Z
        return value, np.concatenate([on_Z.ravel(), on_theta])
