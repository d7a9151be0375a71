"""What the exact objectives share: data, one factorisation of C = K + noise, the posterior."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._points import length
from .._runtime import Stopwatch, check_budget
from ..expansion import Expansion
from ..kernels import Kernel
from ..solvers import Report, Status, judged, warn_inaccurate
from ._objective import Objective
from ._posterior import Conditioned, Posterior
from ._system import System, pullback_workspace

__all__ = ["Exact"]

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
    def _value(self, system: System, A: np.ndarray) -> float: ...

    @abstractmethod
    def _value_and_gradient(self, system: System, A: np.ndarray) -> tuple[float, np.ndarray]: ...

    def workspace(self) -> int:
        n = length(self.X)
        return 8 * n * n * self._arrays + pullback_workspace(n, self.kernel)

    def value(self, theta: Any = None) -> float:
        """Return the objective, -inf where C is not numerically positive definite."""
        try:
            system = self._system(theta)
        except NotPositiveDefiniteError:
            return -np.inf
        return self._value(system, system.solve(self.Y))

    def value_and_gradient(self, theta: Any = None) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta; -inf and 0 where C is singular."""
        n = length(self.X)
        check_budget(self.workspace(), self.max_memory, f"a gradient on {n} points")
        try:
            system = self._system(theta)
        except NotPositiveDefiniteError:
            return -np.inf, np.zeros(self.kernel.theta.size)
        return self._value_and_gradient(system, system.solve(self.Y))

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

    def _system(self, theta: Any) -> System:
        return System(self._at(theta), self.X, self.noise, self.max_memory)

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
