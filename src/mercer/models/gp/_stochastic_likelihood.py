"""Stochastic estimate of the log marginal likelihood, without an n x n matrix.

Linear systems are solved by conjugate gradients, and the log determinant is estimated from random
vectors, the probes.  `choose_objective` chooses between this estimate, the exact likelihood and the
bound from inducing points.

The matrix C = K + D is scaled by S = D^-1/2: C~ = S C S = S (K - noise) S + I.  The preconditioner
is P~ = S Q S + I, where Q is the Nyström approximation of K without noise.  Because Q <= K, we
have P~ <= C~, and therefore

    0 <= b^T C~^-1 b - (b^T x + r^T x) <= r^T P~^-1 r,     r = b - C~ x

for every x.  The error of conjugate gradients is thus bounded, not estimated.  The recurrence is
that of `CGRecurrence` without restarts: its coefficients are then those of the Lanczos method, and
give the logarithm of the preconditioned matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    MemoryLimit,
    NotPositiveDefiniteError,
    Points,
    Stopwatch,
    as_float64,
    as_generator,
    budget_in_bytes,
    check_budget,
    entry_point,
    format_bytes,
    is_count,
    length,
    one_blas_thread,
    take,
    warn_caller,
)
from ..._core.linalg import cho_solve
from ...expansion import Expansion
from ...gram import TiledGram
from ...kernels import Prepared, node
from ...solvers import Report, Status, use_landmarks
from ...solvers.linear import CGRecurrence, ShiftedLowRank, columnwise_dot
from ._exact_likelihood import MarginalLikelihood
from ._exact_solve import derivatives, pullback_workspace
from ._gp_objective import UNDEFINED, Capabilities, Objective, Theta
from ._inducing_bound import (
    InducingBound,
    InducingPointObjective,
    Projection,
    Strip,
    describe_landmarks,
    rounding_certificate,
)
from ._posterior import Posterior, PosteriorKernel

# --- Preconditioned conjugate gradients, and the posterior that they give.


@dataclass(frozen=True)
class _CGPosteriorTuning:
    """Tolerances and limits of the posterior that is computed by conjugate gradients."""

    # Posterior variances below this, relative to k(x, x), are rounding errors.
    min_relative_variance: float = 1e-12
    # Largest relative rounding error of log p; beyond it, the noise is too small for float64.
    max_rounding: float = 1e-3
    # Largest number of points whose systems are solved together; more columns per product with K
    # are faster, but need more memory.
    max_columns: int = 64
    # Memory of the solver in bytes, per column and observation.
    bytes_per_entry: int = 8 * 24
    # Tolerance of conjugate gradients for a variance, whose relative error is at most its square.
    variance_tol: float = 0.03
    # Tolerance of conjugate gradients for derivatives; it is small, because their error is of first
    # order in it.
    gradient_tol: float = 1e-4


_TUNING = _CGPosteriorTuning()
_INDEFINITE_MESSAGE = (
    "K + noise is not positive definite: step {step} of conjugate gradients found v with "
    "v^T (K + noise) v = {curvature}. The usual cause is a kernel that is not positive "
    "semidefinite: choose a Mercer kernel"
)


class CGSolution(NamedTuple):
    """Solution of C~ X = B by conjugate gradients, for all c columns b of B at the same time.

    C~ is the scaled matrix and P~ its preconditioner, as in `Preconditioned`.
    """

    X: np.ndarray  # (n, c), the solutions x
    R: np.ndarray  # (n, c), the residuals B - C~ X, recomputed from X
    forms: np.ndarray  # (c,), b^T x + r^T x, which approximates b^T C~^-1 b from below
    gaps: np.ndarray  # (c,), r^T P~^-1 r, the bound on the error of `forms`
    sizes: np.ndarray  # (c,), the squared norms b^T P~^-1 b of the right-hand sides
    goals: np.ndarray  # (c,), the upper limits of r^T P~^-1 r that the tolerance requires
    steps: list[np.ndarray]  # CG coefficients (a_k, b_k) of each column, shape (t, 2)
    n_iter: int

    @property
    def error(self) -> float:
        """The largest |r| in the norm of P~^-1, divided by the requested tolerance."""
        goals = np.where(self.goals > 0.0, self.goals, 1.0)
        return float(np.sqrt(np.max(np.maximum(self.gaps, 0.0) / goals, initial=0.0)))

    @property
    def converged(self) -> bool:
        """Whether the recomputed residuals are at most twice the requested tolerance.

        The factor of two is needed because the recurrence stops by an updated residual, which
        differs from the recomputed one by rounding errors.
        """
        return self.error <= 2.0

    def logarithm(self, c: int) -> float:
        """Return b^T P~^-1/2 log(P~^-1/2 C~ P~^-1/2) P~^-1/2 b, where b is column c of B.

        This is Lanczos quadrature: the CG coefficients are the Lanczos coefficients of the matrix
        in the logarithm.
        """
        a, b = self.steps[c].T
        if not len(a):
            return 0.0
        diagonal = 1.0 / a
        diagonal[1:] += b[:-1] / a[:-1]
        nodes, vectors = _tridiagonal_eigh(diagonal, np.sqrt(np.maximum(b[:-1], 0.0)) / a[:-1])
        # the eigenvalues are at least 1 in exact arithmetic, because P~ <= C~
        return float(self.sizes[c] * (vectors[0] ** 2 @ np.log(np.maximum(nodes, 1.0))))


def _tridiagonal_eigh(diagonal: np.ndarray, off_diagonal: np.ndarray) -> tuple[Any, Any]:
    """Return all eigenvalues and eigenvectors of a symmetric tridiagonal matrix.

    MRRR, SciPy's default, is faster than the QR algorithm, but in some versions of LAPACK it fails
    for matrices with clustered eigenvalues.
    """
    try:
        return eigh_tridiagonal(diagonal, off_diagonal)
    except LinAlgError:
        return eigh_tridiagonal(diagonal, off_diagonal, lapack_driver="stev")


class Preconditioned:
    """The scaled matrix C~ and its preconditioner P~ at one theta; see the module docstring.

    Parameters
    ----------
    Q : Projection
        The Nyström approximation: kernel, points, noise and landmarks.
    """

    def __init__(self, Q: Projection) -> None:
        D = Q.total_noise
        self.Q, self.scale = Q, 1.0 / np.sqrt(D)
        F = Q.map.features(Q.X, n_threads=Q.n_threads)
        F *= self.scale[:, None]
        self.P = ShiftedLowRank(F.T, 1.0, n_threads=Q.n_threads)
        # Cancellation in applying P~^-1 reduces the precision, in proportion to the norm of P~.
        # The measured relative error of log p was less than a fifth of `rounding`.
        norm = float(np.abs(self.P._square).sum(axis=0).max(initial=0.0))
        self.rounding = 0.1 * float(np.finfo(float).eps) * norm
        if not self.rounding < _TUNING.max_rounding:
            raise NotPositiveDefiniteError(
                f"the noise is lost in rounding errors: its smallest value is "
                f"{D.min():.3g}, while k(x, x) has the maximum {Q.latent.max():.3g} and the "
                f"median {np.median(Q.latent):.3g}, for {len(Q)} points. The usual cause is a "
                f"small noise, or an outlier with a large k(x, x). Try a larger noise (alpha), "
                f"White() in the kernel, scaled features, or solver='cholesky'"
            )
        # The scaled noise that is not part of the kernel.  The name is a key of saved models.
        self._beside = np.broadcast_to(Q.noise, D.shape) / D

    @cached_property
    def _K(self) -> TiledGram:
        return TiledGram(self.Q.kernel, self.Q.X, n_threads=self.Q.n_threads)

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return the product of the scaled matrix C~ with V."""
        out = np.asarray(self._K @ (self.scale[:, None] * V))
        out *= self.scale[:, None]
        out += self._beside[:, None] * V
        return out

    def solve(
        self, B: np.ndarray, tol: Any, max_iter: int, prior: np.ndarray | None = None
    ) -> CGSolution:
        """Solve C~ X = B by conjugate gradients, for all columns b of B at the same time.

        A column stops when its residual r satisfies |r| <= tol |b|, in the norm of P~^-1.

        Parameters
        ----------
        B : ndarray of shape (n, c)
        tol : float or ndarray of shape (c,)
            The tolerance, or one for each column.
        max_iter : int
        prior : ndarray of shape (c,), optional
            The prior variances k(x, x), if the columns are b = S k_X(x).  The columns then stop at
            |r|^2 <= tol^2 (prior - b^T C~^-1 b), that is, relative to the posterior variance.
        """
        run = CGRecurrence(self.times, self.P.solve, B, _INDEFINITE_MESSAGE)
        # sizes is b^T P~^-1 b, and fit is b^T x, for each column b with its solution x.
        sizes, fit = run.rz.copy(), np.zeros(B.shape[1])
        goals = tol**2 * sizes
        steps: list[list[tuple[float, float]]] = [[] for _ in fit]
        active = np.flatnonzero(sizes > 0.0)
        while len(active) and run.n_iter < max_iter:
            previous_rz = run.rz[active]
            coefficients = run.step(active)
            fit[active] += coefficients[0] * previous_rz
            for column, a, b in zip(active, *coefficients, strict=True):
                steps[column].append((float(a), float(b)))
            if prior is not None:
                goals = tol**2 * np.maximum(prior - fit, _TUNING.min_relative_variance * prior)
            active = active[run.rz[active] > goals[active]]
        # Recompute the residual, because the updated one accumulates rounding errors.
        R = run.residual() if run.n_iter else run.R
        return CGSolution(
            run.X,
            R,
            forms=columnwise_dot(B + R, run.X),
            gaps=columnwise_dot(R, self.P.solve(R)),
            sizes=sizes,
            goals=goals,
            steps=[np.array(s).reshape(-1, 2) for s in steps],
            n_iter=run.n_iter,
        )


@node
class Solved(PosteriorKernel):
    """Posterior covariance of a Gaussian process, computed by conjugate gradients.

        k(x, z | data) = k(x, z) - k_X(x)^T C^-1 k_X(z),     C = K + noise

    With an approximate solution v(x) of C v(x) = k_X(x), and its residual r(x) = k_X(x) - C v(x),
    the value is computed as

        k(x, z) - k_X(x)^T v(z) - v(x)^T r(z)

    This is the covariance of the errors f(x) - v(x)^T y.  For every v it is a kernel, and its
    diagonal is at least the posterior variance.  If it may exceed the posterior variance by more
    than 0.2%, there is a warning.  Each new point requires solving a system of n equations, whereas
    `Conditioned` requires one triangular solve.

    `theta` is empty, because the system is valid only for these parameters of the prior.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance k.
    points : points
        The observations X.
    system : Preconditioned
        The scaled matrix C and its preconditioner.
    max_iter : int
        Largest number of conjugate gradient steps.
    max_memory : int, str or None
        The memory budget.
    """

    system: Any = None
    max_iter: int = 1000
    max_memory: Any = None

    def _check(self) -> None:
        if not isinstance(self.system, Preconditioned):
            raise TypeError(f"Solved needs a Preconditioned system, got {self.system!r}")

    # ------------------------------------------------------------------ evaluation

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out -= P.arrays[0] @ Q.arrays[1].T
        out -= P.arrays[1] @ Q.arrays[2].T

    def _diag(self, X: Points) -> np.ndarray:
        X = as_float64(X)
        out = np.array(self.kernel.diag(X), dtype=float)
        for start in range(0, len(out), self._lockstep_columns):
            rows = slice(start, start + self._lockstep_columns)
            b, v, r = self._features(take(X, rows))
            out[rows] -= np.einsum("ij,ij->i", v, b + r)
        return np.maximum(out, 0.0, out=out)  # negative variances are rounding errors

    @property
    def _lockstep_columns(self) -> int:
        """The number of points whose systems are solved together, limited by the memory budget."""
        bytes_per_column = _TUNING.bytes_per_entry * length(self.points)
        affordable = budget_in_bytes(self.max_memory) // bytes_per_column
        return int(np.clip(affordable, 1, _TUNING.max_columns))

    @one_blas_thread
    def _features(
        self, X: Points, tol: float = _TUNING.variance_tol
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows S k_X(x), S^-1 v(x) and S r(x) for each x in X.

        S is diag(system.scale), v(x) is the solution of C v(x) = k_X(x), and r(x) is its residual.
        """
        n, c, system = length(self.points), length(X), self.system
        check_budget(
            24 * n * c, self.max_memory, f"the posterior covariance of {c} points given {n}"
        )
        B = np.asarray(self.kernel(X, self.points), dtype=float).T * system.scale[:, None]
        prior = np.asarray(self.kernel.diag(X), dtype=float)
        V, R = np.zeros_like(B), B.copy()
        for start in range(0, c, self._lockstep_columns):
            cols = slice(start, start + self._lockstep_columns)
            solved = system.solve(B[:, cols], tol, self.max_iter, prior[cols])
            V[:, cols], R[:, cols] = solved.X, solved.R
            variances = np.maximum(prior[cols] - solved.forms, 1e-10 * prior[cols])
            excess = float(np.max(solved.gaps / variances, initial=0.0))
            if excess > 2.0 * _TUNING.variance_tol**2:
                warn_caller(
                    f"posterior variances may be too large by {excess:.1%} after {solved.n_iter} "
                    f"steps of conjugate gradients; the usual cause is a noise that is small "
                    f"relative to the variance that the landmarks do not explain. Try more "
                    f"landmarks (rank), a larger noise (alpha, or White() in the kernel), or "
                    f"solver='cholesky'",
                    ConvergenceWarning,
                )
        return B.T, V.T, R.T

    # ------------------------------------------------------------------ derivatives

    def _point_weights(self, Z: Points, W: np.ndarray) -> np.ndarray:
        _, v, _ = self._features(Z, _TUNING.gradient_tol)
        return np.asarray((W @ v) * self.system.scale)

    # ------------------------------------------------------------------ equality and repr

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solved):
            return NotImplemented
        return self.kernel == other.kernel and self.system is other.system

    def __hash__(self) -> int:
        return hash((Solved, self.kernel, id(self.system)))

    def __repr__(self) -> str:
        return f"<{self}>"


# --- The estimate of the likelihood.

# Tolerance of conjugate gradients for the posterior mean.  It is smaller than the default `tol`,
# because the mean is part of the result.
_POSTERIOR_TOL = 1e-8


class Estimate(NamedTuple):
    """Estimate of the log marginal likelihood, with its standard error.

    `StochasticLikelihood.estimate` returns it.

    Attributes
    ----------
    value : float
        The estimate of log p.
    standard_error : float
        The standard error of `value`, estimated from the probes; 0 if the preconditioner is exact.
    gradient : ndarray of shape (p,) or None
        The estimate of the gradient of log p in theta.
    n_iter : int
        The number of products with K.
    gap : float
        A bound on the error of `value` from the tolerance of conjugate gradients and from rounding.

    See Also
    --------
    StochasticLikelihood : Compute an estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import StochasticLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> found = StochasticLikelihood(RBF(), X, np.sin(6 * X[:, 0]), noise=0.1).estimate()
    >>> type(found).__name__, found.standard_error >= 0
    ('Estimate', True)
    """

    value: float
    standard_error: float  # estimated from the probes; 0 if the preconditioner is exact
    gradient: np.ndarray | None
    n_iter: int  # number of products with K
    gap: float  # bound on the error of `value` from the CG tolerance and rounding


@entry_point
@dataclass(frozen=True, eq=False)
class StochasticLikelihood(InducingPointObjective):
    """Stochastic estimate of the log marginal likelihood, by conjugate gradients.

        log p(Y) = sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi),     C = K + D
        log det C = log det P + E u^T log(P^-1/2 C P^-1/2) u,     P = Q + D,  Q = K_nS K_SS^-1 K_Sn

    Use it if there are too many points for the exact likelihood, and too many landmarks would be
    needed for `InducingBound`.

    D is the noise, S are landmarks, E is the expectation, and u is uniform on the sphere |u|^2 = n.
    No n x n array is needed: for every product with K, its tiles are evaluated again.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance, including the noise as a `White` term if theta should contain it.
    X : points
        The n observations.
    Y : array of shape (n,) or (n, q)
        The targets; the prior mean is 0.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K.  It is not part of theta.  The total noise must be
        positive.
    rank : int, optional
        The number of landmarks of the preconditioner; by default 500, or all points if there are
        fewer.  More landmarks reduce the number of steps and the standard error.
    landmarks : str or points, default="auto"
        The landmarks, or how to choose them; see `InducingBound`.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.
    n_threads : int, optional
        Number of threads; by default, all processors.
    candidates : points, optional
        The points among which the landmarks are chosen; by default X.
    probes : int, default=16
        The number of random vectors for log det.  The standard error is proportional to
        1 / sqrt(probes).
    tol : float, default=1e-4
        Conjugate gradients stop when the residual r satisfies |r| <= tol |b| in the norm of P^-1,
        where b is the right-hand side.  The relative error of y^T C^-1 y is of the order of tol^2.
    max_iter : int, default=1000
        Largest number of conjugate gradient steps.
    random_state : int, Generator, RandomState or None, default=None
        Random seed for landmarks and probes; None means 0.

    See Also
    --------
    MarginalLikelihood : Exact likelihood, for fewer points.
    InducingBound : Deterministic lower bound.
    choose_objective : Choose between the three.

    Notes
    -----
    C^-1 Y, and C^-1 z for the probes z = P^1/2 u, come from one run of conjugate gradients
    preconditioned by P.  The coefficients of this run are those of the Lanczos method and give the
    logarithm (Gardner et al.).  The preconditioner also removes most of the variance of the
    estimate (Wenger et al.); if all points are landmarks, it removes all of it.  The gradient uses
    the same identity:

        tr C^-1 dC = tr P^-1 dP + E (C^-1 z)^T dC (P^-1 z) - (P^-1 z)^T dP (P^-1 z)

    Landmarks and probes are drawn once and do not change with theta, so that values can be
    compared.  The gradient is an estimate of the gradient of log p; it is not the derivative of
    the estimated value.  An optimisation can therefore converge only up to the errors of both.

    References
    ----------
    Gardner, Pleiss, Bindel, Weinberger and Wilson, "GPyTorch: blackbox matrix-matrix Gaussian
    process inference with GPU acceleration", NeurIPS 2018.

    Wenger, Pleiss, Hennig, Cunningham and Gardner, "Preconditioning for scalable Gaussian process
    hyperparameter optimization", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import MarginalLikelihood, StochasticLikelihood
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
        if not is_count(self.probes, 2):
            raise ValueError(
                f"probes must be an integer of at least 2, because a single probe has no standard "
                f"error, got {self.probes!r}"
            )
        if not is_count(self.max_iter):
            raise ValueError(f"max_iter must be an integer of at least 1, got {self.max_iter!r}")
        if not (isinstance(self.tol, Real) and 0.0 < self.tol < 1.0):
            raise ValueError(f"tol must be a number in (0, 1), got {self.tol!r}")
        super().__post_init__()

    def workspace(self) -> int:
        (n, q), m = self.Y.shape, self._landmark_choice.count(len(self.Y))
        solver_bytes = 8 * n * (m + 8 * (q + self.probes))
        tile_bytes = pullback_workspace(n, n_threads=self.n_threads)
        return solver_bytes + tile_bytes + super().workspace()

    def _value(self, theta: Theta) -> float:
        return self._estimate(theta, gradient=False).value

    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        estimate = self._estimate(theta, gradient=True)
        return estimate.value, np.asarray(estimate.gradient)

    def estimate(self, theta: Theta = None) -> Estimate:
        """Return the estimates of log p and of its gradient, with the standard error.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        Estimate
            The value, its standard error, and the gradient of shape (p,).
        """
        self._require_gradient()
        return self._estimate(theta, gradient=True)

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        return Capabilities(subset=True, standard_error=True)

    def standard_error(self, theta: Theta = None) -> float:
        """Return the standard error of the value at theta.

        An optimisation cannot distinguish values that differ by much less than this.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        float
            The standard error.
        """
        return self._estimate(theta, gradient=False).standard_error

    @one_blas_thread
    def posterior(self, theta: Theta = None) -> Posterior:
        """Return the mean and covariance of f given the data, up to the CG tolerance.

        The covariance solves a system of n equations for every new point; see `Solved`.  This is
        slow.  The covariance of `InducingBound` is faster but approximate: it ignores the part of
        the data that the landmarks cannot represent, and can be too small or too large.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        Posterior
            The mean as an `Expansion` of q functions on the n observations, and the covariance as a
            kernel.
        """
        watch = Stopwatch()
        kernel, q = self._kernel_at(theta), self.Y.shape[1]
        tol = np.repeat([min(_POSTERIOR_TOL, self.tol), self.tol], [q, self.probes])
        system, probes, solution = self._solve(theta, tol)
        estimate = self._estimate_from_solution(system, probes, solution, gradient=False)
        # solution.R is scaled by D^-1/2; the report contains the residual in the units of Y,
        # relative to |Y|
        norm = float(np.linalg.norm(self.Y)) or 1.0
        residual = float(np.linalg.norm(solution.R[:, :q] / system.scale[:, None])) / norm
        report = Report(
            solver=f"StochasticLikelihood(rank={len(system.Q.map)}, probes={self.probes})",
            status=Status.CONVERGED if solution.converged else Status.NOT_CONVERGED,
            n_iter=solution.n_iter,
            residual=residual,
            seconds=watch.seconds,
            message=describe_landmarks(system.Q),
            certificate={
                "log marginal likelihood": estimate.value,
                "standard error": estimate.standard_error,
                **rounding_certificate(system.Q),
            },
        )
        mean = Expansion(kernel, system.Q.X, system.scale[:, None] * solution.X[:, :q])
        covariance = Solved(kernel, system.Q.X, system, self.max_iter, self.max_memory)
        return Posterior(mean, covariance, report)

    # ------------------------------------------------------------------ computations

    @cached_property
    def _normal_draws(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal numbers for the probes, of shapes (n, probes) and (m, probes)."""
        seed = 0 if self.random_state is None else self.random_state
        rng = as_generator([seed, 1] if isinstance(seed, (int, np.integer)) else seed)
        draws = rng.standard_normal((len(self.Y) + length(self.points), self.probes))
        return draws[: len(self.Y)], draws[len(self.Y) :]

    def _probes(self, system: Preconditioned) -> tuple[np.ndarray, np.ndarray]:
        """Return the probes z ~ N(0, P~), scaled to z^T P~^-1 z = n, and P~^-1 z.

        C~ and P~ are C and P, multiplied by D^-1/2 from both sides; see `Preconditioned`.
        """
        on_points, on_landmarks = self._normal_draws
        Z = on_points + system.P.F.T @ on_landmarks[system.Q.map.kept]
        P_inv_Z = system.P.solve(Z)
        radius = np.sqrt(len(Z) / np.einsum("ic,ic->c", Z, P_inv_Z))
        return Z * radius, P_inv_Z * radius

    def _solve(self, theta: Theta, tol: Any) -> tuple[Preconditioned, np.ndarray, CGSolution]:
        """Return C~, P~^-1 z, and the solution of C~ X = [targets, probes z].

        C~ and P~ are C and P, multiplied by D^-1/2 from both sides.  `tol` is one tolerance, or
        one for each column.
        """
        system = Preconditioned(self._projection(theta))
        Z, P_inv_Z = self._probes(system)
        right = np.hstack([system.scale[:, None] * self.Y, Z])
        solution = system.solve(right, tol, self.max_iter)
        if not solution.converged:
            warn_caller(
                f"conjugate gradients did not converge: after {solution.n_iter} steps the residual "
                f"is {solution.error:.1e} times as large as tol allows. "
                f"The usual cause is a noise that is small relative to the variance that the "
                f"landmarks do not explain. Try more landmarks (rank), a larger noise (alpha, or "
                f"White() in the kernel), or solver='cholesky'",
                ConvergenceWarning,
            )
        return system, P_inv_Z, solution

    @one_blas_thread
    def _estimate(self, theta: Theta, gradient: bool) -> Estimate:
        try:
            results = self._solve(theta, self.tol)
        except UNDEFINED:
            return Estimate(-np.inf, np.nan, np.zeros(self.kernel.theta.size), 0, np.nan)
        return self._estimate_from_solution(*results, gradient)

    def _estimate_from_solution(
        self, system: Preconditioned, probes: np.ndarray, solution: CGSolution, gradient: bool
    ) -> Estimate:
        (n, q), N = self.Y.shape, self.probes
        logs = np.array([solution.logarithm(q + c) for c in range(N)])
        logdet = system.P.logdet() + logs.mean() + float(np.sum(np.log(system.Q.total_noise)))
        value = -0.5 * (solution.forms[:q].sum() + q * (logdet + n * np.log(2.0 * np.pi)))
        return Estimate(
            float(value),
            0.5 * q * float(logs.std(ddof=1) / np.sqrt(N)),
            self._gradient(system, solution.X, probes) if gradient else None,
            solution.n_iter,
            0.5 * float(np.sum(solution.gaps[:q])) + system.rounding * abs(float(value)),
        )

    def _gradient(
        self, system: Preconditioned, solution: np.ndarray, P_inv_Z: np.ndarray
    ) -> np.ndarray:
        """Return the gradient 1/2 tr(alpha alpha^T dC) - q/2 tr(C^-1 dC).

        The second term is estimated as in the class docstring.  Here Y = P^-1 Z for the N probes Z,
        B = F^T Y / sqrt(N), and A, D, F and L are as in the module of `InducingBound`.  The weights
        of the derivatives are

            dP = dQ + dD:   M = -q/2 (P^-1 - Y Y^T / N)
            dK_nS:          2 M F L^-1 = -q (D^-1 F A^-1 - Y B^T / sqrt(N)) L^-1
            dK_SS:          -L^-T F^T M F L^-1 = q/2 L^-T (I - A^-1 - B B^T) L^-1
        """
        Q, kernel, (_, q) = system.Q, system.Q.kernel, self.Y.shape
        if not kernel.theta.size:
            return np.zeros(0)
        solution, Y = solution * system.scale[:, None], P_inv_Z * system.scale[:, None]
        alpha, X = solution[:, :q], solution[:, q:]
        scale = 0.25 * q / self.probes
        left = np.hstack([0.5 * alpha, -scale * X, -scale * Y])
        right = np.hstack([alpha, Y, X])
        total, _ = derivatives(
            kernel, Q.X, lambda i, j: left[i] @ right[j].T, n_threads=self.n_threads
        )

        root = np.asfortranarray(np.tril(system.P._factor[0]))
        inverse = cho_solve((root, True), np.eye(len(root)))
        B = system.P.F @ (P_inv_Z / np.sqrt(self.probes))
        E, outer = -q * Q.whiten(inverse).T, q * Q.whiten(B) / np.sqrt(self.probes)
        inner = 0.5 * q * Q.whiten_twice(np.eye(len(root)) - inverse - B @ B.T)
        return total + Q.pullback(Y, root, E, outer, inner, partial(_probe_terms, q))


def _probe_terms(
    q: int, strip: Strip, leverage: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Y = P^-1 Z for the probes Z, and the derivatives in latent variance and noise."""
    Y, D = strip.Y, strip.D
    on_noise = -0.5 * q * ((D - leverage) / D**2 - np.mean(Y**2, axis=1))
    return Y, np.zeros_like(D), on_noise


# --- Choice of the objective from the name of a solver.

_OBJECTIVES: dict[str, type[Objective]] = {
    "cholesky": MarginalLikelihood,
    "exact": MarginalLikelihood,
    "nystroem": InducingBound,
    "cg": StochasticLikelihood,
}


def exact_likelihood_memory(n: int) -> int:
    """Return the bytes for the exact likelihood of n points.

    They are the stored Cholesky factor, one n x n array for evaluating the likelihood, and tiles.
    """
    return 16 * n * n + pullback_workspace(n)


def choose_objective(spec: str, n: int, max_memory: MemoryLimit = None) -> type[Objective]:
    """Return the objective class for a solver name and a number of points.

    Gaussian process estimators call it to interpret their `solver` parameter.

    Parameters
    ----------
    spec : {"auto", "cholesky", "exact", "nystroem", "cg"}
        The solver name; see the table.  "auto" is exact whenever that is affordable.
    n : int
        The number of points.
    max_memory : int, str or None, default=None
        The memory budget, in bytes or as a string such as "2 GiB"; used by "auto" only.  None means
        half of the memory of this computer.

    Returns
    -------
    type
        A subclass of `Objective`.

    See Also
    --------
    MarginalLikelihood : The exact objective.
    InducingBound : Lower bound from inducing points.
    StochasticLikelihood : Estimate by conjugate gradients.

    Notes
    -----
    =========== ======================================== ====================
    spec        when                                     objective
    =========== ======================================== ====================
    "auto"      n <= 10 000, and two n x n arrays fit    MarginalLikelihood
                otherwise, with a warning                InducingBound
    "cholesky"                                           MarginalLikelihood
    "exact"                                              MarginalLikelihood
    "nystroem"                                           InducingBound
    "cg"                                                 StochasticLikelihood
    =========== ======================================== ====================

    Examples
    --------
    >>> from mercer.models.gp import choose_objective
    >>> choose_objective("auto", 100).__name__
    'MarginalLikelihood'
    """
    if spec != "auto":
        return _OBJECTIVES[spec]
    needed = exact_likelihood_memory(n)
    if not use_landmarks(spec, n, "likelihood", needed <= budget_in_bytes(max_memory)):
        return MarginalLikelihood
    warn_caller(
        f"an exact Gaussian process on {n} points takes {format_bytes(needed)} and about "
        f"{n**3:.0e} operations for each evaluation of the likelihood, so inducing points are "
        f"used: the result is approximate. Set solver='nystroem' to choose this approximation "
        f"explicitly, with `rank` inducing points, or solver='cholesky' for the exact result"
    )
    return InducingBound
