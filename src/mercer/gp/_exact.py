"""The exact objectives, from one factorisation of C = K + noise, with their gradients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable as Function
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._points import length
from .._runtime import Stopwatch, check_budget, entry_point
from .._runtime.linalg import blas
from ..expansion import Expansion
from ..kernels import Kernel
from ..solvers import Report, Status, judged, warn_inaccurate
from ..solvers.linear import mirror
from ._capabilities import Capabilities
from ._noise import noises
from ._objective import UNDEFINED, Objective
from ._posterior import Conditioned, Posterior
from ._system import System, fits_at_once, pullback_workspace, symmetric_tile

__all__ = ["LeaveOneOut", "MarginalLikelihood"]

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Exact(Objective):
    """An objective in theta, from a Cholesky factorisation of C = K + noise."""

    max_memory: Any = None

    _arrays: ClassVar[int] = 1  # how many n x n arrays a gradient takes

    def __post_init__(self) -> None:
        super().__post_init__()
        n = length(self.X)
        check_budget(8 * n * n, self.max_memory, f"a Gaussian process on {n} points")

    @abstractmethod
    def _log(self, system: System, A: np.ndarray) -> float:
        """Return the objective, with A = C^-1 Y."""

    @abstractmethod
    def _log_and_gradient(self, system: System, A: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives."""

    def workspace(self) -> int:
        n = length(self.X)
        return 8 * n * n * self._arrays + pullback_workspace(n, self.kernel)

    def _value(self, theta: Any) -> float:
        system = self._system(theta)
        return self._log(system, system.solve(self.Y))

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        system = self._system(theta, slopes=True)
        return self._log_and_gradient(system, system.solve(self.Y))

    def _require_gradient(self) -> None:
        text = f"a gradient on {length(self.X)} points"
        check_budget(self._workspace, self.max_memory, text)

    @cached_property
    def _workspace(self) -> int:
        return self.workspace()

    def posterior(self, theta: Any = None) -> Posterior:
        """Return mean and covariance of f given the data.

        If K + noise is singular to rounding although the noise is not 0, the noise is below what
        rounding leaves of K; it is raised to that, and the report says so.
        """
        watch = Stopwatch()
        kernel = self._at(theta)
        system, jitter = self._steady_system(kernel)
        A = system.solve(self.Y)
        certificate = {"log marginal likelihood": log_density(system, A, self.Y)}
        residual, message = system.residual(A, self.Y), ""
        if jitter:
            certificate["jitter"] = jitter
            message = (
                f"K + noise was singular to rounding: {jitter:.2e} was added to its diagonal, "
                f"beside a noise of {np.min(self.noise):.2e}"
            )
        status, message = judged(Status.DIRECT, message, residual)
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
        """Return means (n, q) and variances (n,) of each y_i given all the others."""
        system = self._system(theta)
        A = system.solve(self.Y)
        inverse = system.invert().diagonal()
        return self.Y - A / inverse[:, None], 1.0 / inverse

    def _system(self, theta: Any, *, slopes: bool = False) -> System:
        at_once = slopes and self._at_once
        return System(self._at(theta), self.X, self.noise, self.max_memory, at_once=at_once)

    @cached_property
    def _at_once(self) -> bool:
        return fits_at_once(self.kernel, self.X)

    def _steady_system(self, kernel: Kernel) -> tuple[System, float]:
        n, least = length(self.X), float(np.min(self.noise))
        rounding = 4.0 * _EPS * float(np.sum(np.abs(kernel.diag(self.X))))
        steps = [rounding * 10.0**i for i in range(4)] if least > 0.0 else []
        for jitter in (0.0, *steps):
            try:
                return System(kernel, self.X, self.noise + jitter, self.max_memory), jitter
            except NotPositiveDefiniteError as error:
                why = error
        raise NotPositiveDefiniteError(
            f"{why}, with a noise of {least:.3g} for {n} points. The usual causes are repeated or "
            f"close points without noise, and a kernel that is not positive semidefinite. Try a "
            f"larger noise (alpha), or add White() to the kernel"
        )


def log_density(system: System, A: np.ndarray, Y: np.ndarray) -> float:
    """Return sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi), A = C^-1 Y."""
    n, q = Y.shape
    fit = float(np.einsum("ic,ic->", Y, A))
    return float(-0.5 * (fit + q * (system.logdet() + n * np.log(2.0 * np.pi))))


@entry_point
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

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that a search may call."""
        cheap = self.kernel.pullback_in_tiles and not self.kernel.costly
        return Capabilities(subset=True, information=True, cheap_information=cheap)

    @property
    def noises(self) -> np.ndarray:
        """Which parameters are variances of noise."""
        return noises(self.kernel)

    def with_information(
        self, theta: Any = None, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the objective, its derivatives, and minus its second derivatives, roughly.

            B_ij = 1/2 sum_c a_c^T dK_i C^-1 dK_j a_c,     a = C^-1 y

        the average of what the data tell and of Fisher's expectation of it, where K is linear in
        its parameters (Gilmour, Thompson & Cullis, 1995).  It is positive semidefinite wherever
        theta is, and costs products with vectors alone.  Only for a value `above` another are
        there derivatives; otherwise they are 0, at a third of the cost.
        """
        self._require_gradient()
        p = self.kernel.theta.size
        try:
            system = self._system(theta, slopes=True)
        except UNDEFINED:
            return -np.inf, np.zeros(p), np.zeros((p, p))
        A = system.solve(self.Y)
        value = self._log(system, A)
        if not value > above:
            return value, np.zeros(p), np.zeros((p, p))
        inverse = system.invert()
        gradient, T = system.derivatives(self._weights(inverse, A), A)
        R = np.asfortranarray(np.moveaxis(T, 0, 2).reshape(len(A), -1))  # q times p columns
        solved = blas.dsymm(1.0, inverse, R, lower=1)
        B = np.einsum("icp,icr->pr", R.reshape(len(A), -1, p), solved.reshape(len(A), -1, p))
        return value, gradient, 0.5 * B

    def _log(self, system: System, A: np.ndarray) -> float:
        return log_density(system, A, self.Y)

    def _log_and_gradient(self, system: System, A: np.ndarray) -> tuple[float, np.ndarray]:
        value, weights = self._log(system, A), self._weights(system.invert(), A)
        return value, system.derivatives(weights)[0]

    def _weights(self, inverse: np.ndarray, A: np.ndarray) -> Function[[slice, slice], np.ndarray]:
        """Return the tiles of W."""
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

    def _log(self, system: System, A: np.ndarray) -> float:
        # C^-1 is needed even for a value, which costs as much as a gradient but for one product.
        return _log_predictive(A, system.invert().diagonal())

    def _log_and_gradient(self, system: System, A: np.ndarray) -> tuple[float, np.ndarray]:
        inverse = system.invert()
        g = inverse.diagonal().copy()
        # The derivative in a is -a / g, and a moves by -C^-1 dC a; the derivative in g is v, and
        # g moves by -(C^-1 dC C^-1)_ii.
        v = 0.5 * (A.shape[1] / g + np.einsum("ic,ic->i", A, A) / g**2)
        B = -blas.dsymm(1.0, inverse, A / g[:, None], lower=1)
        mirror(inverse)
        root = np.multiply(inverse, np.sqrt(v), out=inverse)
        squares = blas.dsyrk(1.0, root, lower=1)

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile = A[rows] @ B[cols].T
            tile += B[rows] @ A[cols].T
            return -0.5 * tile - symmetric_tile(squares, rows, cols)

        return _log_predictive(A, g), system.derivatives(weights)[0]


def _log_predictive(A: np.ndarray, g: np.ndarray) -> float:
    logs = A.shape[1] * np.sum(np.log(g) - np.log(2.0 * np.pi))
    return 0.5 * float(logs - np.sum(A**2 / g[:, None]))
