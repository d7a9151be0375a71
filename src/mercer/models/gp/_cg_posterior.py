"""Preconditioned conjugate gradients for C = K + D, without an n x n matrix.

Everything is scaled by S = D^-1/2: C~ = S C S = S (K - noise) S + I.  The preconditioner is
P~ = S Q S + I, where Q is the Nyström approximation of K without noise.  Because Q <= K, we
have P~ <= C~, and therefore

    0 <= b^T C~^-1 b - (b^T x + r^T x) <= r^T P~^-1 r,     r = b - C~ x

for every x.  The error of conjugate gradients is thus bounded, not estimated.  The recurrence is
that of `CGRecurrence` without restarts: its coefficients are then those of the Lanczos method, and
give the logarithm of the preconditioned matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    NotPositiveDefiniteError,
    Points,
    as_float64,
    budget_in_bytes,
    check_budget,
    length,
    one_blas_thread,
    take,
    warn_caller,
)
from ...gram import TiledGram
from ...kernels import Prepared, node
from ...solvers.linear import CGRecurrence, ShiftedLowRank, columnwise_dot
from ._inducing_bound import Projection
from ._posterior import PosteriorKernel


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
        nodes, vectors = eigh_tridiagonal(diagonal, np.sqrt(np.maximum(b[:-1], 0.0)) / a[:-1])
        # the eigenvalues are at least 1 in exact arithmetic, because P~ <= C~
        return float(self.sizes[c] * (vectors[0] ** 2 @ np.log(np.maximum(nodes, 1.0))))


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

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        _, v, _ = self._features(as_float64(X if Z is None else Z), _TUNING.gradient_tol)
        prior_gradient = self.kernel.input_gradient(X, Z, W)
        return prior_gradient - self.kernel.input_gradient(
            X, self.points, (W @ v) * self.system.scale
        )

    # ------------------------------------------------------------------ equality and repr

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solved):
            return NotImplemented
        return self.kernel == other.kernel and self.system is other.system

    def __hash__(self) -> int:
        return hash((Solved, self.kernel, id(self.system)))

    def __repr__(self) -> str:
        return f"<{self}>"
