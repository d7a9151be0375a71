"""C = K + D without an n x n matrix: conjugate gradients, and the logarithm they come with.

Everything is scaled by S = D^-1/2: C~ = S C S = S (K - noise) S + I, preconditioned by
P~ = S Q S + I, where Q is K seen through landmarks.  As Q <= K, P~ <= C~, and therefore

    0 <= b^T C~^-1 b - (b^T x + r^T x) <= r^T P~^-1 r,     r = b - C~ x

for every x: how far conjugate gradients are is known, not guessed.  The recurrence is that of
`solvers`, without its restarts, so that its coefficients are those of Lanczos' method and give the
logarithm of the preconditioned matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from .._errors import NotPositiveDefiniteError
from ..gram import TiledGram
from ..solvers.linear import Recurrence, ShiftedLowRank, columnwise
from ._projection import Projection

__all__ = ["Preconditioned", "Solution"]

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
        self._K = TiledGram(Q.kernel, Q.X, n_threads=Q.n_threads)
        self._beside = np.broadcast_to(noise, self.scale.shape) / Q.noise  # what K has not

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
