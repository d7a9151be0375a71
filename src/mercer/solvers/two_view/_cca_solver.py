"""Kernel canonical correlation analysis (CCA): most correlated functions of two views.

    max  cov(f(x), g(y))      with      var f + alpha |f|^2 = 1 = var g + beta |g|^2

In whitened coordinates f = Phi u, g = Psi v the solution is the singular value decomposition of

    (C_x + alpha)^-1/2  C_xy  (C_y + beta)^-1/2

(Hardoon, Szedmak and Shawe-Taylor 2004; Fukumizu, Bach and Gretton 2007).  Without the penalties,
two views with high-dimensional feature spaces always have functions of correlation 1, which are
meaningless.  For large penalties the problem becomes the maximum covariance with |f| = |g| = 1:
partial least squares by one SVD.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core import Stopwatch, entry_point, warn_caller
from .._report import Report, Status, status_of
from ..eigen import canonical_signs
from ._views import TwoViewResult, View, check_views, leading_singular_vectors

__all__ = ["CanonicalCorrelations"]


@entry_point
@dataclass(frozen=True)
class CanonicalCorrelations:
    """Kernel CCA: find the pairs of directions with the largest regularised correlations.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.
    alpha, alpha_y : float, default=1e-3
        Penalties of |f|^2 and |g|^2 relative to the variances; positive.  Larger values give
        smoother functions with smaller correlations.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import CanonicalCorrelations, View
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(100, 3))
    >>> G = F[:, :2] + 0.1 * rng.normal(size=(100, 2))
    >>> found = CanonicalCorrelations(2, 1e-6, 1e-6).relate(View.of(F), View.of(G))
    >>> found.values.round(3)
    array([0.996, 0.995])
    """

    n_components: int = 2
    alpha: float = 1e-3
    alpha_y: float = 1e-3

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and self.alpha_y > 0):
            raise ValueError(
                f"alpha and alpha_y must be positive, got {self.alpha:g} and {self.alpha_y:g}: "
                f"without regularisation, views in high-dimensional feature spaces always "
                f"correlate perfectly"
            )

    @staticmethod
    def workspace(n: int, m: int, m_y: int, k: int) -> int:
        """Return the memory in bytes for covariances, their factors and scores.

        The coordinates of the two views are not included.
        """
        return 8 * (3 * (m * m + m_y * m_y) + 3 * m * m_y + 6 * n * k + (1 << 19))

    def relate(self, x: View, y: View) -> TwoViewResult:
        """Return the directions, scaled to var f + alpha |f|^2 = 1, and their correlations."""
        watch = Stopwatch()
        check_views(x, y)
        B, B_y = self._whitener(x, self.alpha), self._whitener(y, self.alpha_y)
        k, ranks = self.n_components, (B.shape[1], B_y.shape[1])
        if k > min(ranks):
            raise ValueError(
                f"n_components={k}, but X has {ranks[0]} and y has {ranks[1]} directions with a "
                f"variance above rounding in feature space; use at most {min(ranks)}"
            )
        M = B.T @ x.covariance(y) @ B_y
        U, values, V = leading_singular_vectors(M, k)
        U, V = B @ U, B_y @ V
        signs = canonical_signs(x.scores(U))
        U, V = U * signs, V * signs
        residual = self._residual(x, y, U, V, values)
        status, message = status_of(Status.DIRECT, "", residual)
        if message:
            warn_caller(f"{message}; the usual cause is a very small alpha. Raise alpha")
        values = np.clip(values, 0.0, 1.0)
        report = Report(
            repr(self), status, residual=residual, seconds=watch.seconds, message=message
        )
        return TwoViewResult.of(x, y, U, V, values=values, report=report)

    @staticmethod
    def _whitener(view: View, alpha: float) -> np.ndarray:
        """Return B with B^T (C + alpha) B = I on all directions of nonzero variance."""
        values, Q = view.spectrum()
        Q /= np.sqrt(values + alpha)
        return Q

    def _residual(
        self, x: View, y: View, U: np.ndarray, V: np.ndarray, values: np.ndarray
    ) -> float:
        """Return the largest violation of the CCA constraints, computed from the scores."""
        S, T, c, one = x.scores(U), y.scores(V), x.weights[:, None], np.eye(len(values))
        violations = (
            S.T @ (c * S) + self.alpha * (U.T @ U) - one,
            T.T @ (c * T) + self.alpha_y * (V.T @ V) - one,
            S.T @ (c * T) - np.diag(values),
        )
        return float(max(np.abs(E).max() for E in violations))
