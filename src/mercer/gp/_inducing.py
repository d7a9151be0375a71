"""The variational bound on the log marginal likelihood: n m^2 work, n q + m^2 memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import Stopwatch, entry_point, one_blas_thread
from ..expansion import Expansion
from ..solvers import Report, Status
from ._noise import diagonal_pullback
from ._objective import Landmarked
from ._posterior import Conditioned, Posterior
from ._projection import Projection, Triangle, describe, rounding_certificate

__all__ = ["InducingBound"]

_MUCH = 10.0  # landmarks that leave more than this many times the noise are worth a warning


@entry_point
@dataclass(frozen=True, eq=False)
class InducingBound(Landmarked):
    """log p(Y) >= sum_c log N(y_c | 0, Q + D) - 1/2 tr D^-1 (K - Q),  Q = K_nS K_SS^-1 K_Sn.

    D is the noise, K and Q are without it; S are m landmarks (Titsias, AISTATS 2009).  The bound is
    that of a process which knows of f only what its values on S tell; it is exact for S = X, and
    never above log p.  A search over theta can therefore not gain from a poor approximation.

    Where the landmarks leave much more of K than the noise, that trace is all the bound sees, and
    its optimum says little about the data; `posterior` warns of it.

    The landmarks are chosen once, for the kernel given, and held still while theta moves.  The
    points are read in strips, and nothing larger than n q or m m is held.

    Parameters
    ----------
    kernel, X, Y, noise
        As those of `MarginalLikelihood`.
    rank : int, optional
        Landmarks; 500 by default, or all points if there are fewer.
    landmarks : str or points
        "kmeans" (centroids, for a radial kernel on dense vectors), a method of
        `mercer.gram.choose_landmarks`, or the landmarks themselves.  "auto": "kmeans" where that is
        possible, else "rpcholesky".
    random_state : int, Generator, RandomState or None
        For the choice of landmarks; None stands for 0.
    max_memory : int, str or None
        The budget; see `gram`.
    n_threads : int, optional
        All processors by default.  The result does not depend on it.

    Attributes
    ----------
    points : points
        The landmarks S.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp import InducingBound, MarginalLikelihood
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
        return self._bound(Q, Q.triangle(self.Y))

    @one_blas_thread
    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        Q = self._projection(theta)
        triangle = Q.triangle(self.Y)
        return self._bound(Q, triangle), self._gradient(Q, triangle)

    @one_blas_thread
    def posterior(self, theta: Any = None) -> Posterior:
        """Return mean and covariance of f given the data, as far as the landmarks can tell.

        The report brackets log p: the bound, and one from above,

            log p(Y) <= sum_c -1/2 (log det (Q + D) + y_c^T (Q + D + t I)^-1 y_c + n log 2 pi)

        with t = tr(K - Q): no eigenvalue of K - Q is larger.
        """
        watch = Stopwatch()
        Q = self._projection(theta)
        triangle = Q.triangle(self.Y)
        lower, left = self._bound(Q, triangle), float(triangle.residual.sum())
        text = f"{describe(Q)} leave {left:.3e} of the trace of K, {Q.latent.sum():.3e}"
        _warn(Q, triangle)
        above = triangle._replace(V=Q.triangle(self.Y, more=left).V)
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
        kernel = self._at(theta)  # with values given by the user, points are known by their places
        mean = Expansion(kernel, Q.map.points, Q.whiten(triangle.weights))
        covariance = Conditioned(kernel, Q.map.points, Q.map.factor, triangle.R.T)
        return Posterior(mean, covariance, report)

    # ------------------------------------------------------------------ parts

    def _gaussian(self, Q: Projection, triangle: Triangle) -> float:
        """Return sum_c log N(y_c | 0, Q + D)."""
        n, q = self.Y.shape
        logdet = triangle.logdet + float(np.sum(np.log(Q.noise)))
        fit = float(np.sum(triangle.V**2))
        return -0.5 * float(fit + q * (logdet + n * np.log(2.0 * np.pi)))

    def _bound(self, Q: Projection, triangle: Triangle) -> float:
        lost = 0.5 * self.Y.shape[1] * float(np.sum(triangle.residual / Q.noise))
        return self._gaussian(Q, triangle) - lost

    def _gradient(self, Q: Projection, triangle: Triangle) -> np.ndarray:
        """Return the derivative, with alpha = (Q + D)^-1 Y and w as in the module _projection.

        d/dQ = M = 1/2 (alpha alpha^T + q D^-1 F A^-1 F^T D^-1),    F^T alpha = w
        d/dK_nS = 2 M F L^-1 = (alpha w^T + q D^-1 F (I - A^-1)) L^-1
        d/dK_SS = -L^-T F^T M F L^-1 = -1/2 L^-T (w w^T + q (A - 2 I + A^-1)) L^-1
        """
        q, w, D = self.Y.shape[1], triangle.weights, Q.noise
        inverse = triangle.inverse
        one = np.eye(len(w))
        outer = Q.whiten(w)
        E = q * Q.whiten(one - inverse).T
        A = triangle.R.T @ triangle.R
        inner = -0.5 * Q.whiten_twice(w @ w.T + q * (A - 2.0 * one + inverse))
        alpha = np.empty(self.Y.shape)

        def left(rows: slice, F: np.ndarray) -> np.ndarray:
            alpha[rows] = (self.Y[rows] - F @ w) / D[rows, None]
            return alpha[rows]

        root = np.asfortranarray(triangle.R.T)
        gradient, leverage = Q.pullback(root, E, left, outer, inner)
        if not gradient.size:
            return gradient
        on_noise = 0.5 * np.einsum("ic,ic->i", alpha, alpha)
        on_noise += 0.5 * q * (triangle.residual + leverage - D) / D**2
        return gradient + diagonal_pullback(Q.kernel, Q.X, -0.5 * q / D, on_noise)


def _warn(Q: Projection, triangle: Triangle) -> None:
    """Say it if the landmarks cannot do what is asked of them."""
    left = float(np.mean(triangle.residual / Q.noise))
    if left > _MUCH:
        warn_caller(
            f"{describe(Q)} leave {left:.1e} times the noise unexplained, in the mean over "
            f"{len(Q)} points: the bound is about that alone, and so is a theta found with it. The "
            f"usual cause is a noise that the kernel has no part for. Add White() to the kernel, "
            f"or try more landmarks (rank), or a larger alpha",
            ConvergenceWarning,
        )
    elif Q.lost > Q.noise.min():
        warn_caller(
            f"{describe(Q)}, which may leave {Q.lost:.1e} of their variance unexplained, and the "
            f"noise goes down to {Q.noise.min():.1e}: the result is not exact even if all points "
            f"are landmarks. Try a larger alpha, or White() in the kernel",
            ConvergenceWarning,
        )
