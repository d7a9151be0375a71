"""The log marginal likelihood without an n x n matrix: solves by iteration, log det by probes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._points import length
from .._runtime import Stopwatch, entry_point, generator, one_blas_thread
from .._runtime.linalg import cho_solve
from ..expansion import Expansion
from ..solvers import Report, Status
from ._capabilities import Capabilities
from ._iterative import Preconditioned, Solution, Solved
from ._noise import diagonal_pullback
from ._objective import UNDEFINED, Landmarked
from ._posterior import Posterior
from ._projection import describe, rounding_certificate
from ._system import pullback_workspace, symmetric_pullback

__all__ = ["Estimate", "StochasticLikelihood"]

_POSTERIOR_TOL = 1e-8  # a posterior mean is kept, and solved for more exactly than in a search


class Estimate(NamedTuple):
    """An estimated log marginal likelihood, and how sure it is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import StochasticLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> found = StochasticLikelihood(RBF(), X, np.sin(6 * X[:, 0]), noise=0.1).estimate()
    >>> type(found).__name__, found.standard_error >= 0
    ('Estimate', True)
    """

    value: float
    standard_error: float  # over the probes; 0 where the landmarks leave nothing to estimate
    gradient: np.ndarray | None
    n_iter: int  # products with K
    gap: float  # how far the value may be off since the iteration ended, and by rounding


@entry_point
@dataclass(frozen=True, eq=False)
class StochasticLikelihood(Landmarked):
    """log p(Y) = sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi),  C = K + D, by iteration.

        log det C = log det P + E u^T log(P^-1/2 C P^-1/2) u,     P = Q + D,  Q = K_nS K_SS^-1 K_Sn

    with D the noise, S landmarks, and u uniform on the sphere |u|^2 = n.  C^-1 Y, and C^-1 z for
    the probes z = P^1/2 u, come from one run of conjugate gradients preconditioned by P, whose
    coefficients are those of Lanczos' method and give the logarithm (Gardner et al., NeurIPS 2018);
    P also takes most of the variance (Wenger et al., ICML 2022), and with as many landmarks as
    points all of it.  The gradient follows the same way:

        tr C^-1 dC = tr P^-1 dP + E (C^-1 z)^T dC (P^-1 z) - (P^-1 z)^T dP (P^-1 z)

    Landmarks and probes are drawn once and held still while theta moves, so that values can be
    compared.  The gradient estimates that of log p: from the derivative of the estimated value it
    differs by the errors of both, and near an optimum a search cannot tell more than they let it.
    K is evaluated in tiles, again for every product.

    Parameters
    ----------
    kernel, X, Y, noise
        As those of `MarginalLikelihood`.
    rank, landmarks, max_memory, n_threads
        As those of `InducingBound`.
    probes : int, default=16
    tol : float, default=1e-4
        Stop when |r| in the norm of P^-1 is at most this part of that of the right-hand side.
        The error of y^T C^-1 y is of the order of its square.
    max_iter : int, default=1000
    random_state : int, Generator, RandomState or None
        For landmarks and probes; None stands for 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp import MarginalLikelihood, StochasticLikelihood
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.sin(X[:, 0])
    >>> kernel = RBF(0.7) + White(0.1)
    >>> estimate = StochasticLikelihood(kernel, X, Y, rank=50).estimate()
    >>> exact = MarginalLikelihood(kernel, X, Y).value()
    >>> bool(abs(estimate.value - exact) < 3 * estimate.standard_error)
    True
    """

    probes: int = 16
    tol: float = 1e-4
    max_iter: int = 1000

    def __post_init__(self) -> None:
        for name, least, why in (
            ("probes", 2, ", as one has no standard error"),
            ("max_iter", 1, ""),
        ):
            value = getattr(self, name)
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not (whole and value >= least):
                raise ValueError(
                    f"{name} must be an integer of at least {least}{why}, got {value!r}"
                )
        if not (isinstance(self.tol, Real) and 0.0 < self.tol < 1.0):
            raise ValueError(f"tol must be a number in (0, 1), got {self.tol!r}")
        super().__post_init__()

    def workspace(self) -> int:
        (n, q), m = self.Y.shape, self._chosen.count(len(self.Y))
        held = 8 * n * (m + 8 * (q + self.probes))
        tiles = pullback_workspace(n, n_threads=self.n_threads)
        return held + tiles + super().workspace()

    def _value(self, theta: Any) -> float:
        return self._estimate(theta, gradient=False).value

    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        estimate = self._estimate(theta, gradient=True)
        return estimate.value, np.asarray(estimate.gradient)

    def estimate(self, theta: Any = None) -> Estimate:
        """Return the estimates of log p and of its derivatives, with the standard error."""
        self._require_gradient()
        return self._estimate(theta, gradient=True)

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that a search may call."""
        return Capabilities(subset=True, standard_error=True)

    def standard_error(self, theta: Any = None) -> float:
        """Return the standard error of the value at theta: what a search cannot see beyond."""
        return self._estimate(theta, gradient=False).standard_error

    @one_blas_thread
    def posterior(self, theta: Any = None) -> Posterior:
        """Return mean and covariance of f given the data: exact, up to the end of the iteration.

        The covariance is solved for where it is asked, with n equations for every new point; see
        `Solved`.  That is slow, but the landmarks alone would not do: as the covariance given an
        `InducingBound` they forget in the data what they cannot represent, and err to either side.
        """
        watch = Stopwatch()
        kernel, q = self._at(theta), self.Y.shape[1]
        tol = np.repeat([min(_POSTERIOR_TOL, self.tol), self.tol], [q, self.probes])
        system, probes, solution = self._solve(theta, tol)
        estimate = self._estimated(system, probes, solution, gradient=False)
        # R is S (y - C a): in the units of y, as everywhere in reports
        size = float(np.linalg.norm(self.Y)) or 1.0
        gap = float(np.linalg.norm(solution.R[:, :q] / system.scale[:, None])) / size
        report = Report(
            solver=f"StochasticLikelihood(rank={len(system.Q.map)}, probes={self.probes})",
            status=Status.CONVERGED if solution.converged else Status.NOT_CONVERGED,
            n_iter=solution.n_iter,
            residual=gap,
            seconds=watch.seconds,
            message=describe(system.Q),
            certificate={
                "log marginal likelihood": estimate.value,
                "standard error": estimate.standard_error,
                **rounding_certificate(system.Q),
            },
        )
        mean = Expansion(kernel, system.Q.X, system.scale[:, None] * solution.X[:, :q])
        covariance = Solved(kernel, system.Q.X, system, self.max_iter, self.max_memory)
        return Posterior(mean, covariance, report)

    # ------------------------------------------------------------------ parts

    @cached_property
    def _draws(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal numbers for the probes, one row for each point and each landmark."""
        seed = 0 if self.random_state is None else self.random_state
        rng = generator([seed, 1] if isinstance(seed, (int, np.integer)) else seed)
        draws = rng.standard_normal((len(self.Y) + length(self.points), self.probes))
        return draws[: len(self.Y)], draws[len(self.Y) :]

    def _probes(self, system: Preconditioned) -> tuple[np.ndarray, np.ndarray]:
        """Return z ~ N(0, P~), scaled to z^T P~^-1 z = n, and P~^-1 z."""
        on_points, on_landmarks = self._draws
        Z = on_points + system.P.F.T @ on_landmarks[system.Q.map.kept]
        solved = system.P.solve(Z)
        radius = np.sqrt(len(Z) / np.einsum("ic,ic->c", Z, solved))
        return Z * radius, solved * radius

    def _solve(self, theta: Any, tol: Any) -> tuple[Preconditioned, np.ndarray, Solution]:
        """Return C~, P~^-1 z, and C~^-1 of targets and probes z, each column to its own tol."""
        system = Preconditioned(self._projection(theta), self.noise)
        Z, solved = self._probes(system)
        right = np.hstack([system.scale[:, None] * self.Y, Z])
        solution = system.solve(right, tol, self.max_iter)
        if not solution.converged:
            warn_caller(
                f"conjugate gradients did not converge: after {solution.n_iter} steps |r| is "
                f"{solution.error:.1e} times what tol allows, in the norm of the preconditioner. "
                f"The usual cause is a noise that is small beside what the landmarks leave. Try "
                f"more of them (rank), a larger noise (alpha, or White() in the kernel), or "
                f"solver='cholesky'",
                ConvergenceWarning,
            )
        return system, solved, solution

    @one_blas_thread
    def _estimate(self, theta: Any, gradient: bool) -> Estimate:
        try:
            parts = self._solve(theta, self.tol)
        except UNDEFINED:
            return Estimate(-np.inf, np.nan, np.zeros(self.kernel.theta.size), 0, np.nan)
        return self._estimated(*parts, gradient)

    def _estimated(
        self, system: Preconditioned, probes: np.ndarray, solution: Solution, gradient: bool
    ) -> Estimate:
        (n, q), N = self.Y.shape, self.probes
        logs = np.array([solution.logarithm(q + c) for c in range(N)])
        logdet = system.P.logdet() + logs.mean() + float(np.sum(np.log(system.Q.noise)))
        value = -0.5 * (solution.forms[:q].sum() + q * (logdet + n * np.log(2.0 * np.pi)))
        return Estimate(
            float(value),
            0.5 * q * float(logs.std(ddof=1) / np.sqrt(N)),
            self._gradient(system, solution.X, probes) if gradient else None,
            solution.n_iter,
            0.5 * float(np.sum(solution.gaps[:q])) + system.rounding * abs(float(value)),
        )

    def _gradient(
        self, system: Preconditioned, solution: np.ndarray, solved: np.ndarray
    ) -> np.ndarray:
        """Return 1/2 tr(alpha alpha^T dC) - q/2 tr(C^-1 dC), the last as in the class.

        With Y = P^-1 Z for the probes, B = F^T Y / sqrt(N), and A as in the module _projection,

            M = -q/2 (P^-1 - Y Y^T / N)  meets dP = dQ + dD:
            2 M F L^-1        = -q (D^-1 F A^-1 - Y B^T / sqrt(N)) L^-1   meets dK_nS
            -L^-T F^T M F L^-1 = q/2 L^-T (I - A^-1 - B B^T) L^-1          meets dK_SS
        """
        Q, kernel, (_, q) = system.Q, system.Q.kernel, self.Y.shape
        if not kernel.theta.size:
            return np.zeros(0)
        solution, Y = solution * system.scale[:, None], solved * system.scale[:, None]
        alpha, X = solution[:, :q], solution[:, q:]
        share = 0.25 * q / self.probes
        left = np.hstack([0.5 * alpha, -share * X, -share * Y])
        right = np.hstack([alpha, Y, X])
        total = symmetric_pullback(kernel, Q.X, lambda i, j: left[i] @ right[j].T, self.n_threads)

        root, D = np.asfortranarray(np.tril(system.P._factor[0])), Q.noise
        inverse = cho_solve((root, True), np.eye(len(root)))
        B = system.P.F @ (solved / np.sqrt(self.probes))
        E, outer = -q * Q.whiten(inverse).T, q * Q.whiten(B) / np.sqrt(self.probes)
        inner = 0.5 * q * Q.whiten_twice(np.eye(len(root)) - inverse - B @ B.T)
        more, leverage = Q.pullback(root, E, lambda rows, F: Y[rows], outer, inner)
        total += more
        on_noise = -0.5 * q * ((D - leverage) / D**2 - np.mean(Y**2, axis=1))
        return total + diagonal_pullback(kernel, Q.X, np.zeros_like(D), on_noise)
