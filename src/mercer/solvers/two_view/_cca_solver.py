"""Kernel canonical correlation analysis (CCA): the most correlated functions f, g of two views.

    max  cov(f(x), g(y))      with      var f + alpha |f|^2 = 1 = var g + beta |g|^2

Let u and v be the coefficients of f and g in whitened coordinates, with covariance matrices C_x,
C_y and C_xy.  The solution is the singular value decomposition of

    (C_x + alpha)^-1/2  C_xy  (C_y + beta)^-1/2

(Hardoon, Szedmak and Shawe-Taylor 2004; Fukumizu, Bach and Gretton 2007).  Without the penalties,
two views with high-dimensional feature spaces always have functions of correlation 1, which are
meaningless.  For large penalties, the solution approaches the functions of largest covariance with
|f| = |g| = 1, as in partial least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core import Stopwatch, entry_point, warn_caller
from .._report import Report, Status, status_of
from ..eigen import canonical_signs
from ._views import TwoViewResult, View, check_views, leading_singular_vectors


@entry_point
@dataclass(frozen=True)
class CanonicalCorrelations:
    """Kernel CCA: find the pairs of functions with the largest regularised correlations.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.
    alpha, alpha_y : float, default=1e-3
        Positive penalties on the squared norms |f|^2 and |g|^2 of the functions of the first and
        second view.  Larger values give smoother functions with smaller correlations.

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
        """Return the memory in bytes for the covariances, their factors and the scores.

        The views have n points with m and m_y coordinates, and k components are computed.

        The coordinates of the two views are not included.
        """
        return 8 * (3 * (m * m + m_y * m_y) + 3 * m * m_y + 6 * n * k + (1 << 19))

    def relate(self, x: View, y: View) -> TwoViewResult:
        """Return the pairs of directions and their correlations.

        They are scaled such that var f + alpha |f|^2 = 1, and likewise for the second view.
        """
        watch = Stopwatch()
        check_views(x, y)
        B, B_y = self._whitener(x, self.alpha), self._whitener(y, self.alpha_y)
        k, ranks = self.n_components, (B.shape[1], B_y.shape[1])
        if k > min(ranks):
            raise ValueError(
                f"n_components={k}, but in feature space X has {ranks[0]} and y has {ranks[1]} "
                f"directions whose variance exceeds rounding errors; use at most {min(ranks)}"
            )
        M = B.T @ x.covariance(y) @ B_y
        U, values, V = leading_singular_vectors(M, k)
        U, V = B @ U, B_y @ V
        signs = canonical_signs(x.scores(U))
        U, V = U * signs, V * signs
        residual = self._residual(x, y, U, V, values)
        status, message = status_of(Status.DIRECT, "", residual)
        if message:
            warn_caller(f"{message}. The usual cause is a very small alpha. Increase alpha")
        values = np.clip(values, 0.0, 1.0)
        report = Report(
            repr(self), status, residual=residual, seconds=watch.seconds, message=message
        )
        return TwoViewResult.of(x, y, U, V, values=values, report=report)

    @staticmethod
    def _whitener(view: View, alpha: float) -> np.ndarray:
        """Return B with B^T (C + alpha I) B = I, where C is the covariance matrix of the view.

        Directions without variance are omitted.
        """
        values, Q = view.spectrum()
        Q /= np.sqrt(values + alpha)
        return Q

    def _residual(
        self, x: View, y: View, U: np.ndarray, V: np.ndarray, values: np.ndarray
    ) -> float:
        """Return the largest violation of the CCA equations by the directions U and V."""
        S, T, c, one = x.scores(U), y.scores(V), x.weights[:, None], np.eye(len(values))
        violations = (
            S.T @ (c * S) + self.alpha * (U.T @ U) - one,
            T.T @ (c * T) + self.alpha_y * (V.T @ V) - one,
            S.T @ (c * T) - np.diag(values),
        )
        return float(max(np.abs(E).max() for E in violations))
