"""The variational lower bound on the log marginal likelihood with m inducing points.

It costs O(n m^2) operations and O(n q + m^2) memory, for n points and q targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...._core import Stopwatch, entry_point, one_blas_thread, warn_caller
from ....expansion import Expansion
from ....solvers import Report, Status
from .._inducing_projection import (
    Projection,
    TriangularFactor,
    describe_landmarks,
    rounding_certificate,
)
from .._noise_split import diagonal_pullback
from .._posterior import Conditioned, Posterior
from ._gp_objective import InducingPointObjective

__all__ = ["InducingBound"]

# Largest mean ratio of the variance that the landmarks do not explain to the noise, without a
# warning: beyond it, the trace term dominates the bound.
_MAX_RESIDUAL_TO_NOISE = 10.0


@entry_point
@dataclass(frozen=True, eq=False)
class InducingBound(InducingPointObjective):
    """Variational lower bound on the log marginal likelihood, from m inducing points.

        log p(Y) >= sum_c log N(y_c | 0, Q + D) - q/2 tr D^-1 (K - Q),  Q = K_nS K_SS^-1 K_Sn

    D is the noise, which K and Q do not contain.  S are the m inducing points, here called
    landmarks (Titsias, AISTATS 2009).  The bound uses only the values of f at S.  It
    never exceeds log p, and equals log p for S = X.  Maximising it over theta therefore cannot
    exploit a poor approximation.

    Parameters
    ----------
    kernel, X, Y, noise
        See `MarginalLikelihood`.
    rank : int, optional
        The number of landmarks; by default 500, or all points if there are fewer.
    landmarks : str or points
        "kmeans" (centroids, for a radial kernel on dense vectors), a method of
        `mercer.gram.choose_landmarks`, or the landmarks themselves.  "auto" uses "kmeans" where
        possible, and otherwise "rpcholesky".
    random_state : int, Generator, RandomState or None
        Random seed for choosing the landmarks; None means 0.
    max_memory : int, str or None
        The memory budget: bytes, a string such as "2 GiB", or None for the default of `gram`.
    n_threads : int, optional
        Number of threads; by default, all processors.  The result does not depend on it.

    Attributes
    ----------
    points : points
        The landmarks S.

    Notes
    -----
    If the variance that the landmarks do not explain is much larger than the noise, the trace term
    dominates the bound, and its optimum says little about the data.  `posterior` then warns.

    The landmarks are chosen once, for the initial kernel, and do not change with theta.  The points
    are processed in strips; no array is larger than n x q or m x m.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import InducingBound, MarginalLikelihood
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> Y = np.sin(9 * X)
    >>> kernel = RBF(0.3) + White(0.1)
    >>> exact = MarginalLikelihood(kernel, X, Y).value()
    >>> for rank in 4, 8:
    ...     gap = exact - InducingBound(kernel, X, Y, rank=rank).value()
    ...     print(f"{rank} landmarks: {gap:.0e} below")
    4 landmarks: 2e+02 below
    8 landmarks: 2e-03 below
    """

    @one_blas_thread
    def _value(self, theta: Any) -> float:
        Q = self._projection(theta)
        return self._bound(Q, Q.factorize(self.Y))

    @one_blas_thread
    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        Q = self._projection(theta)
        factor = Q.factorize(self.Y)
        return self._bound(Q, factor), self._gradient(Q, factor)

    @one_blas_thread
    def posterior(self, theta: Any = None) -> Posterior:
        """Return the approximate mean and covariance of f given the data.

        The report contains a lower and an upper bound on log p.  The lower one is the objective,
        and the upper one is

            log p(Y) <= sum_c -1/2 (log det (Q + D) + y_c^T (Q + D + t I)^-1 y_c + n log 2 pi)

        with t = tr(K - Q), which is an upper bound on the eigenvalues of K - Q.
        """
        watch = Stopwatch()
        Q = self._projection(theta)
        factor = Q.factorize(self.Y)
        lower, unexplained = self._bound(Q, factor), float(factor.residual.sum())
        text = (
            f"{describe_landmarks(Q)}; they do not explain {unexplained:.3e} of the trace of K, "
            f"{Q.latent.sum():.3e}"
        )
        _warn_poor_landmarks(Q, factor)
        above = factor._replace(V=Q.factorize(self.Y, extra_noise=unexplained).V)
        report = Report(
            solver=f"InducingBound(rank={len(Q.map)})",
            status=Status.APPROXIMATE,
            seconds=watch.seconds,
            message=text,
            certificate={
                "log p >=": lower,
                "log p <=": self._gaussian(Q, above),
                **rounding_certificate(Q),
            },
        )
        # For a precomputed kernel, Q.kernel takes indices; the posterior needs the user's kernel.
        kernel = self._kernel_at(theta)
        mean = Expansion(kernel, Q.map.points, Q.whiten(factor.weights))
        covariance = Conditioned(kernel, Q.map.points, Q.map.factor, factor.R.T)
        return Posterior(mean, covariance, report)

    # ------------------------------------------------------------------ computations

    def _gaussian(self, Q: Projection, factor: TriangularFactor) -> float:
        """Return sum_c log N(y_c | 0, Q + D)."""
        n, q = self.Y.shape
        logdet = factor.logdet + float(np.sum(np.log(Q.noise)))
        fit = float(np.sum(factor.V**2))
        return -0.5 * float(fit + q * (logdet + n * np.log(2.0 * np.pi)))

    def _bound(self, Q: Projection, factor: TriangularFactor) -> float:
        trace_term = 0.5 * self.Y.shape[1] * float(np.sum(factor.residual / Q.noise))
        return self._gaussian(Q, factor) - trace_term

    def _gradient(self, Q: Projection, factor: TriangularFactor) -> np.ndarray:
        """Return the gradient in theta.

        With alpha = (Q + D)^-1 Y, and A, F, L and w as in the module docstring of `Projection`, the
        derivatives of the bound are

        d/dQ = M = 1/2 (alpha alpha^T + q D^-1 F A^-1 F^T D^-1),    F^T alpha = w
        d/dK_nS = 2 M F L^-1 = (alpha w^T + q D^-1 F (I - A^-1)) L^-1
        d/dK_SS = -L^-T F^T M F L^-1 = -1/2 L^-T (w w^T + q (A - 2 I + A^-1)) L^-1
        """
        q, w, D = self.Y.shape[1], factor.weights, Q.noise
        inverse = factor.inverse
        one = np.eye(len(w))
        outer = Q.whiten(w)
        E = q * Q.whiten(one - inverse).T
        A = factor.R.T @ factor.R
        inner = -0.5 * Q.whiten_twice(w @ w.T + q * (A - 2.0 * one + inverse))
        alpha = np.empty(self.Y.shape)

        def left(rows: slice, F: np.ndarray) -> np.ndarray:
            alpha[rows] = (self.Y[rows] - F @ w) / D[rows, None]
            return alpha[rows]

        root = np.asfortranarray(factor.R.T)
        gradient, leverage = Q.pullback(root, E, left, outer, inner)
        if not gradient.size:
            return gradient
        on_noise = 0.5 * np.einsum("ic,ic->i", alpha, alpha)
        on_noise += 0.5 * q * (factor.residual + leverage - D) / D**2
        return gradient + diagonal_pullback(Q.kernel, Q.X, -0.5 * q / D, on_noise)


def _warn_poor_landmarks(Q: Projection, factor: TriangularFactor) -> None:
    """Warn if the landmarks explain too little, or if rounding makes the bound inexact."""
    ratio = float(np.mean(factor.residual / Q.noise))
    if ratio > _MAX_RESIDUAL_TO_NOISE:
        warn_caller(
            f"{describe_landmarks(Q)} leave {ratio:.1e} times the noise unexplained, on average "
            f"over {len(Q)} points: this term dominates the bound, so that its optimal theta says "
            f"little about the data. The usual cause is noise in the data that the kernel does not "
            f"model. Add White() to the kernel, or try more landmarks (rank), or a larger alpha",
            ConvergenceWarning,
        )
    elif Q.lost > Q.noise.min():
        warn_caller(
            f"{describe_landmarks(Q)}, which may leave {Q.lost:.1e} of their variance unexplained, "
            f"but the smallest noise is {Q.noise.min():.1e}: the result is not exact even if all "
            f"points are landmarks. Try a larger alpha, or White() in the kernel",
            ConvergenceWarning,
        )
