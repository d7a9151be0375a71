"""C = K + D without an n x n matrix: conjugate gradients, and the logarithm they come with.

Everything is scaled by S = D^-1/2: C~ = S C S = S (K - noise) S + I, preconditioned by
P~ = S Q S + I, where Q is K seen through landmarks.  As Q <= K, P~ <= C~, and therefore

    0 <= b^T C~^-1 b - (b^T x + r^T x) <= r^T P~^-1 r,     r = b - C~ x

for every x: how far conjugate gradients are is known, not guessed.  The recurrence is that of
`solvers`, without its restarts, so that its coefficients are those of Lanczos' method and give the
logarithm of the preconditioned matrix.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning

from .._errors import NotPositiveDefiniteError, warn_caller
from .._points import doubled, length, take
from .._runtime import budget_in_bytes, check_budget, one_blas_thread
from ..gram import TiledGram
from ..kernels import Prepared, node
from ..solvers.linear import Recurrence, ShiftedLowRank, columnwise
from ._posterior import GivenData
from ._projection import Projection

__all__ = ["Preconditioned", "Solution", "Solved"]

_LEAST_VARIANCE = 1e-12  # a smaller posterior variance, relative to k(x, x), is rounding
_MOST_ROUNDING = 1e-3  # relative error of log p beyond which the noise is called lost
_INDEFINITE = (
    "K + noise is not positive definite: step {step} of conjugate gradients met v with "
    "v^T (K + noise) v = {curvature}. The usual cause is a kernel that is not positive "
    "semidefinite: choose a Mercer kernel"
)


class Solution(NamedTuple):
    """C~ X = B, solved for all columns in lockstep."""

    X: np.ndarray  # (n, c)
    R: np.ndarray  # (n, c), B - C~ X, recomputed
    forms: np.ndarray  # (c,), b^T x + r^T x
    gaps: np.ndarray  # (c,), r^T P~^-1 r
    sizes: np.ndarray  # (c,), b^T P~^-1 b
    goals: np.ndarray  # (c,), what r^T P~^-1 r should not exceed
    steps: list[np.ndarray]  # the coefficients (a_k, b_k) of each column, (t, 2)
    n_iter: int

    @property
    def error(self) -> float:
        """The largest |r| in the norm of P~^-1, in units of what was to be reached."""
        goals = np.where(self.goals > 0.0, self.goals, 1.0)
        return float(np.sqrt(np.max(np.maximum(self.gaps, 0.0) / goals, initial=0.0)))

    @property
    def converged(self) -> bool:
        """Whether the true residuals are at most twice what was to be reached.

        The recurrence stops by a residual of its own, which rounding lets drift from the true one.
        """
        return self.error <= 2.0

    def logarithm(self, c: int) -> float:
        """Return b^T P~^-1/2 log(P~^-1/2 C~ P~^-1/2) P~^-1/2 b for column c, by quadrature.

        The coefficients of conjugate gradients are those of Lanczos' method for that matrix.
        """
        a, b = self.steps[c].T
        if not len(a):
            return 0.0
        diagonal = 1.0 / a
        diagonal[1:] += b[:-1] / a[:-1]
        nodes, vectors = eigh_tridiagonal(diagonal, np.sqrt(np.maximum(b[:-1], 0.0)) / a[:-1])
        # no eigenvalue of that matrix is below 1
        return float(self.sizes[c] * (vectors[0] ** 2 @ np.log(np.maximum(nodes, 1.0))))


class Preconditioned:
    """C~ and P~ at one theta.

    Parameters
    ----------
    Q : Projection
        The kernel, its points and noise, and the landmarks.
    noise : float or ndarray of shape (n,)
        The part of the noise that is not in the kernel.
    """

    def __init__(self, Q: Projection, noise: Any) -> None:
        self.Q, self.scale = Q, 1.0 / np.sqrt(Q.noise)
        F = Q.map.features(Q.X, n_threads=Q.n_threads)
        F *= self.scale[:, None]
        self.P = ShiftedLowRank(F.T, 1.0, n_threads=Q.n_threads)
        # P~^-1 cancels the digits of |P~|; measured: less than a fifth of `rounding` of log p
        size = float(np.abs(self.P._square).sum(axis=0).max(initial=0.0))
        self.rounding = 0.1 * float(np.finfo(float).eps) * size
        if not self.rounding < _MOST_ROUNDING:
            raise NotPositiveDefiniteError(
                f"the noise is lost in rounding: it goes down to {Q.noise.min():.3g}, with k(x, x) "
                f"up to {Q.latent.max():.3g} and in the median {np.median(Q.latent):.3g}, for "
                f"{len(Q)} points. The usual cause is a small noise, or an outlier with a large "
                f"k(x, x). Try a larger noise (alpha), White() in the kernel, scaled features, or "
                f"solver='cholesky'"
            )
        self._beside = np.broadcast_to(noise, self.scale.shape) / Q.noise  # what K has not

    @cached_property
    def _K(self) -> TiledGram:
        return TiledGram(self.Q.kernel, self.Q.X, n_threads=self.Q.n_threads)

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return C~ V."""
        out = np.asarray(self._K @ (self.scale[:, None] * V))
        out *= self.scale[:, None]
        out += self._beside[:, None] * V
        return out

    def solve(
        self, B: np.ndarray, tol: Any, max_iter: int, prior: np.ndarray | None = None
    ) -> Solution:
        """Return C~^-1 B; each column stops at |r| <= tol |b|, with its tol, in the norm of P~^-1.

        With `prior`, k(x, x) for columns b = S k_X(x), it stops at |r|^2 <= tol^2 times the
        posterior variance, prior - b^T C~^-1 b.
        """
        run = Recurrence(self.times, self.P.solve, B, _INDEFINITE)
        size, fit = run.rz.copy(), np.zeros(B.shape[1])  # b^T P~^-1 b, and b^T x
        goals = tol**2 * size
        steps: list[list[tuple[float, float]]] = [[] for _ in fit]
        active = np.flatnonzero(size > 0.0)
        while len(active) and run.n_iter < max_iter:
            before = run.rz[active]
            coefficients = run.step(active)
            fit[active] += coefficients[0] * before
            for column, a, b in zip(active, *coefficients, strict=True):
                steps[column].append((float(a), float(b)))
            if prior is not None:
                goals = tol**2 * np.maximum(prior - fit, _LEAST_VARIANCE * prior)
            active = active[run.rz[active] > goals[active]]
        R = run.residual() if run.n_iter else run.R  # the recurrence drifts
        return Solution(
            run.X,
            R,
            forms=columnwise(B + R, run.X),
            gaps=columnwise(R, self.P.solve(R)),
            sizes=size,
            goals=goals,
            steps=[np.array(s).reshape(-1, 2) for s in steps],
            n_iter=run.n_iter,
        )


_COLUMNS = 64  # points whose systems are solved in lockstep, at most
_COLUMN = 8 * 24  # bytes that the solution takes for each of these and each observation
_TOL = 0.03  # its square is the relative error allowed in a variance
_FINE_TOL = 1e-4  # derivatives have errors of first order, not of second


@node
class Solved(GivenData):
    """k(x, z | data) = k(x, z) - k_X(x)^T C^-1 k_X(z),  C = K + noise, by conjugate gradients.

    With v(x) ~ C^-1 k_X(x) and the residual r(x) = k_X(x) - C v(x),

        k(x, z) - k_X(x)^T v(z) - v(x)^T r(z)

    is the covariance of the errors f(x) - v(x)^T y: a kernel for whatever v, and on its diagonal
    never below the posterior variance.  It exceeds that by less than 0.2%, unless a warning says
    otherwise.  Each new point costs a system of n equations; with the factor of an exact
    solver, or with landmarks (`Conditioned`), it costs one product.

    `theta` is empty.

    Parameters
    ----------
    kernel : Kernel
        The prior k.
    points : points
        X.
    system : Preconditioned
    max_iter : int
    max_memory : int, str or None
    """

    system: Any = None
    max_iter: int = 1000
    max_memory: Any = None

    def _check(self) -> None:
        if not isinstance(self.system, Preconditioned):
            raise TypeError(f"Solved needs the Preconditioned system, got {self.system!r}")

    # ------------------------------------------------------------------ evaluation

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out -= P.arrays[0] @ Q.arrays[1].T
        out -= P.arrays[1] @ Q.arrays[2].T

    def _diag(self, X: Any) -> np.ndarray:
        X = doubled(X)
        out = np.array(self.kernel.diag(X), dtype=float)
        for start in range(0, len(out), self._columns):
            rows = slice(start, start + self._columns)
            b, v, r = self._features(take(X, rows))
            out[rows] -= np.einsum("ij,ij->i", v, b + r)
        return np.maximum(out, 0.0, out=out)  # a variance: below 0 by rounding alone

    @property
    def _columns(self) -> int:
        """Points whose systems are solved in lockstep: as many as the budget has room for."""
        fit = budget_in_bytes(self.max_memory) // (_COLUMN * length(self.points))
        return int(np.clip(fit, 1, _COLUMNS))

    @one_blas_thread
    def _features(self, X: Any, tol: float = _TOL) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows S k_X(x), S^-1 v(x) and S r(x), S the scale of the system."""
        n, c, system = length(self.points), length(X), self.system
        check_budget(
            24 * n * c, self.max_memory, f"the posterior covariance of {c} points given {n}"
        )
        B = np.asarray(self.kernel(X, self.points), dtype=float).T * system.scale[:, None]
        prior = np.asarray(self.kernel.diag(X), dtype=float)
        V, R = np.zeros_like(B), B.copy()
        for start in range(0, c, self._columns):
            cols = slice(start, start + self._columns)
            solved = system.solve(B[:, cols], tol, self.max_iter, prior[cols])
            V[:, cols], R[:, cols] = solved.X, solved.R
            left = np.maximum(prior[cols] - solved.forms, 1e-10 * prior[cols])
            excess = float(np.max(solved.gaps / left, initial=0.0))
            if excess > 2.0 * _TOL**2:
                warn_caller(
                    f"posterior variances may be too large by {excess:.1%} after {solved.n_iter} "
                    f"steps of conjugate gradients; the usual cause is a noise that is small "
                    f"beside what the landmarks leave. Try more of them (rank), a larger noise "
                    f"(alpha, or White() in the kernel), or solver='cholesky'",
                    ConvergenceWarning,
                )
        return B.T, V.T, R.T

    # ------------------------------------------------------------------ derivatives

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        _, v, _ = self._features(doubled(X if Z is None else Z), _FINE_TOL)
        direct = self.kernel.input_gradient(X, Z, W)
        return direct - self.kernel.input_gradient(X, self.points, (W @ v) * self.system.scale)

    # ------------------------------------------------------------------ a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solved):
            return NotImplemented
        return self.kernel == other.kernel and self.system is other.system

    def __hash__(self) -> int:
        return hash((Solved, self.kernel, id(self.system)))

    def __repr__(self) -> str:
        return f"<{self}>"
