"""Exact objectives of a Gaussian process, from a Cholesky factorisation of C = K + noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable as Function
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...._core import NotPositiveDefiniteError, Stopwatch, check_budget, entry_point, length
from ...._core.linalg import blas
from ....expansion import Expansion
from ....kernels import Kernel
from ....solvers import Report, Status, status_of, warn_inaccurate
from ....solvers.linear import mirror_lower_triangle
from .._exact_solve import FactorizedCovariance, fits_one_block, pullback_workspace, symmetric_tile
from .._noise_split import noise_parameter_mask
from .._posterior import Conditioned, Posterior
from ._gp_objective import UNDEFINED, Capabilities, Objective

__all__ = ["LeaveOneOut", "MarginalLikelihood"]

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class ExactObjective(Objective):
    """Base class of the objectives that factorise C = K + noise exactly."""

    max_memory: Any = None

    _n_square_arrays: ClassVar[int] = 1  # number of n x n arrays that a gradient needs

    def __post_init__(self) -> None:
        super().__post_init__()
        n = length(self.X)
        check_budget(8 * n * n, self.max_memory, f"a Gaussian process on {n} points")

    @abstractmethod
    def _log_objective(self, system: FactorizedCovariance, A: np.ndarray) -> float:
        """Return the objective, given A = C^-1 Y."""

    @abstractmethod
    def _log_objective_and_gradient(
        self, system: FactorizedCovariance, A: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta, given A = C^-1 Y."""

    def workspace(self) -> int:
        n = length(self.X)
        return 8 * n * n * self._n_square_arrays + pullback_workspace(n, self.kernel)

    def _value(self, theta: Any) -> float:
        system = self._system(theta)
        return self._log_objective(system, system.solve(self.Y))

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        system = self._system(theta, with_derivatives=True)
        return self._log_objective_and_gradient(system, system.solve(self.Y))

    def _require_gradient(self) -> None:
        text = f"a gradient on {length(self.X)} points"
        check_budget(self._workspace, self.max_memory, text)

    @cached_property
    def _workspace(self) -> int:
        return self.workspace()

    def posterior(self, theta: Any = None) -> Posterior:
        """Return the mean and covariance of f given the data.

        If K + noise is numerically singular although the noise is positive, the noise is smaller
        than the rounding errors of K.  A jitter of the size of these errors is then added to the
        diagonal and recorded in the report.
        """
        watch = Stopwatch()
        kernel = self._kernel_at(theta)
        system, jitter = self._jittered_system(kernel)
        A = system.solve(self.Y)
        certificate = {"log marginal likelihood": log_density(system, A, self.Y)}
        residual, message = system.residual(A, self.Y), ""
        if jitter:
            certificate["jitter"] = jitter
            message = (
                f"K + noise was numerically singular: {jitter:.2e} was added to its diagonal, "
                f"in addition to a noise of {np.min(self.noise):.2e}"
            )
        status, message = status_of(Status.DIRECT, message, residual)
        report = Report(
            solver="Cholesky()",
            status=status,
            residual=residual,
            seconds=watch.seconds,
            message=message,
            certificate=certificate,
        )
        if status is Status.INACCURATE:
            warn_inaccurate(report)
        covariance = Conditioned(kernel, self.X, system.lower())
        return Posterior(Expansion(kernel, self.X, A), covariance, report)

    def leave_one_out(self, theta: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (n, q) and variances (n,) of each y_i given all other targets."""
        system = self._system(theta)
        A = system.solve(self.Y)
        inverse = system.invert().diagonal()
        return self.Y - A / inverse[:, None], 1.0 / inverse

    def _system(self, theta: Any, *, with_derivatives: bool = False) -> FactorizedCovariance:
        single_block = with_derivatives and self._is_single_block
        return FactorizedCovariance(
            self._kernel_at(theta), self.X, self.noise, self.max_memory, single_block=single_block
        )

    @cached_property
    def _is_single_block(self) -> bool:
        return fits_one_block(self.kernel, self.X)

    def _jittered_system(self, kernel: Kernel) -> tuple[FactorizedCovariance, float]:
        """Factorise C = K + noise, with a jitter if needed; return the factors and the jitter.

        The jitter starts at the size of the rounding errors of K and grows by factors of 10.  If
        an observation has no noise, no jitter is tried.
        """
        n, smallest_noise = length(self.X), float(np.min(self.noise))
        rounding = 4.0 * _EPS * float(np.sum(np.abs(kernel.diag(self.X))))
        jitters = [rounding * 10.0**i for i in range(4)] if smallest_noise > 0.0 else []
        for jitter in (0.0, *jitters):
            try:
                return FactorizedCovariance(
                    kernel, self.X, self.noise + jitter, self.max_memory
                ), jitter
            except NotPositiveDefiniteError as error:
                reason = error
        raise NotPositiveDefiniteError(
            f"{reason}, with a noise of {smallest_noise:.3g} for {n} points. The usual causes are "
            f"repeated or nearby points without noise, and a kernel that is not positive "
            f"semidefinite. Try a larger noise (alpha), or add White() to the kernel"
        )


def log_density(system: FactorizedCovariance, A: np.ndarray, Y: np.ndarray) -> float:
    """Return sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi), given A = C^-1 Y."""
    n, q = Y.shape
    fit = float(np.einsum("ic,ic->", Y, A))
    return float(-0.5 * (fit + q * (system.logdet() + n * np.log(2.0 * np.pi))))


@entry_point
@dataclass(frozen=True, eq=False)
class MarginalLikelihood(ExactObjective):
    """Exact log marginal likelihood of a Gaussian process, with its gradient.

        log p(Y | theta) = sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi),  C = K + noise
        d log p = sum_ij W_ij dK_ij,     W = 1/2 (A A^T - q C^-1),     A = C^-1 Y

    for q targets that share the kernel.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance, including the noise as a `White` term if theta should contain it.
        Its parameters must be numbers, not rules that depend on data, such as gamma="scale".
    X : points
        The n observations, in any form that the kernel accepts.
    Y : array of shape (n,) or (n, q)
        The targets; the prior mean is 0.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K.  It is not part of theta.
    max_memory : int, str or None
        The memory budget: bytes, a string such as "2 GiB", or None for the default of `gram`.

    Notes
    -----
    The weights W are computed tile by tile from C^-1, which overwrites C.  A gradient therefore
    needs one n x n array and some tiles of 512 x 512 numbers, for any number of parameters.
    Kernels whose derivatives cannot be computed by tiles (wrapped scikit-learn kernels and
    precomputed ones) need about 2 + 3 p more n x n arrays, for p parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import MarginalLikelihood
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> objective = MarginalLikelihood(RBF(0.3) + White(0.01), X, np.sin(6 * X))
    >>> value, gradient = objective.value_and_gradient()
    >>> round(value, 2), gradient.round(2)
    (11.77, array([ 0.58, -6.97]))
    """

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        cheap = self.kernel.pullback_in_tiles and not self.kernel.costly
        return Capabilities(subset=True, information=True, cheap_information=cheap)

    @property
    def noise_mask(self) -> np.ndarray:
        """Mask of the entries of theta that are noise variances."""
        return noise_parameter_mask(self.kernel)

    def with_information(
        self, theta: Any = None, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the objective, its gradient, and the average information matrix B.

            B_ij = 1/2 sum_c a_c^T dK_i C^-1 dK_j a_c,     a_c = C^-1 y_c,   dK_i = dK / d theta_i

        B approximates minus the second derivatives.  If K is linear in its parameters, it is the
        average of the observed and the expected (Fisher) information (Gilmour, Thompson & Cullis,
        1995).  It is positive semidefinite at every theta, and needs only products with vectors.

        Parameters
        ----------
        theta : array of shape (p,), optional
            By default, the parameters of `kernel`.
        above : float, optional
            Derivatives are computed only if the value is greater than this.  Otherwise the
            gradient and B are 0, which costs a third as much.

        Returns
        -------
        tuple of float, ndarray of shape (p,) and ndarray of shape (p, p)
            The value, the gradient and B; -inf, 0 and 0 if K + noise is not positive definite.
        """
        self._require_gradient()
        p = self.kernel.theta.size
        try:
            system = self._system(theta, with_derivatives=True)
        except UNDEFINED:
            return -np.inf, np.zeros(p), np.zeros((p, p))
        A = system.solve(self.Y)
        value = self._log_objective(system, A)
        if not value > above:
            return value, np.zeros(p), np.zeros((p, p))
        inverse = system.invert()
        gradient, T = system.derivatives(self._weights(inverse, A), A)
        # R has q p columns, the products (dK / d theta_i) a_c.
        R = np.asfortranarray(np.moveaxis(T, 0, 2).reshape(len(A), -1))
        solved = blas.dsymm(1.0, inverse, R, lower=1)
        B = np.einsum("icp,icr->pr", R.reshape(len(A), -1, p), solved.reshape(len(A), -1, p))
        return value, gradient, 0.5 * B

    def _log_objective(self, system: FactorizedCovariance, A: np.ndarray) -> float:
        return log_density(system, A, self.Y)

    def _log_objective_and_gradient(
        self, system: FactorizedCovariance, A: np.ndarray
    ) -> tuple[float, np.ndarray]:
        value, weights = self._log_objective(system, A), self._weights(system.invert(), A)
        return value, system.derivatives(weights)[0]

    def _weights(self, inverse: np.ndarray, A: np.ndarray) -> Function[[slice, slice], np.ndarray]:
        """Return a function that computes tiles of W = 1/2 (A A^T - q C^-1)."""
        q = self.Y.shape[1]

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = A[rows] @ A[cols].T
            tile -= (
                symmetric_tile(inverse, rows, cols)
                if q == 1
                else q * symmetric_tile(inverse, rows, cols)
            )
            tile *= 0.5
            return tile

        return weights


@entry_point
@dataclass(frozen=True, eq=False)
class LeaveOneOut(ExactObjective):
    """Leave-one-out log predictive density of a Gaussian process, with its gradient.

        sum_ic log p(y_ic | all other y_jc, theta)

    from one factorisation of C = K + noise: given the others, y_i is normal with mean
    y_i - a_i / g_i and variance 1 / g_i, where a = C^-1 y and g is the diagonal of C^-1.

    It measures how well the model predicts, whereas the marginal likelihood measures how probable
    the data are under the model.  It is more robust if the model is wrong (Rasmussen and Williams,
    2006, section 5.4).

    Parameters
    ----------
    kernel, X, Y, noise, max_memory
        See `MarginalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import LeaveOneOut
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> value, gradient = LeaveOneOut(RBF(0.3) + White(0.01), X, np.sin(6 * X)).value_and_gradient()
    >>> round(value, 2), gradient.round(2)
    (23.67, array([ 1.85, -9.61]))
    """

    _n_square_arrays: ClassVar[int] = 2

    def _log_objective(self, system: FactorizedCovariance, A: np.ndarray) -> float:
        # The value alone also needs C^-1, and therefore costs nearly as much as a gradient.
        return _log_predictive(A, system.invert().diagonal())

    def _log_objective_and_gradient(
        self, system: FactorizedCovariance, A: np.ndarray
    ) -> tuple[float, np.ndarray]:
        inverse = system.invert()
        g = inverse.diagonal().copy()
        # The derivative with respect to a is -a / g, with da = -C^-1 dC a; the derivative with
        # respect to g is v, with dg_i = -(C^-1 dC C^-1)_ii.
        v = 0.5 * (A.shape[1] / g + np.einsum("ic,ic->i", A, A) / g**2)
        B = -blas.dsymm(1.0, inverse, A / g[:, None], lower=1)
        mirror_lower_triangle(inverse)
        root = np.multiply(inverse, np.sqrt(v), out=inverse)
        squares = blas.dsyrk(1.0, root, lower=1)

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = A[rows] @ B[cols].T
            tile += B[rows] @ A[cols].T
            return -0.5 * tile - symmetric_tile(squares, rows, cols)

        return _log_predictive(A, g), system.derivatives(weights)[0]


def _log_predictive(A: np.ndarray, g: np.ndarray) -> float:
    """Return the leave-one-out log density, given A = C^-1 Y and g = diag C^-1."""
    logs = A.shape[1] * np.sum(np.log(g) - np.log(2.0 * np.pi))
    return 0.5 * float(logs - np.sum(A**2 / g[:, None]))
