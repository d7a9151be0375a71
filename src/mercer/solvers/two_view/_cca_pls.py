"""Kernel CCA and PLS: functions f, g of two views with the largest correlation or covariance.

Canonical correlation analysis (CCA) solves

    max  cov(f(x), g(y))      with      var f + alpha |f|^2 = 1 = var g + beta |g|^2

Let u and v be the coefficients of f and g in whitened coordinates, with covariance matrices C_x,
C_y and C_xy.  The solution is the singular value decomposition of

    (C_x + alpha)^-1/2  C_xy  (C_y + beta)^-1/2

(Hardoon, Szedmak and Shawe-Taylor 2004; Fukumizu, Bach and Gretton 2007).  Without the penalties,
two views with high-dimensional feature spaces always have functions of correlation 1, which are
meaningless.  For large penalties, the solution approaches the functions of largest covariance with
|f| = |g| = 1, as in partial least squares.

Partial least squares (PLS) solves

    max  cov(f(x), g(y))      with      |f| = |g| = 1

Let F and G be whitened coordinates of the views, centred, and M = F^T G their covariance.  The
solution is the pair of singular vectors of the largest singular value of M.  Before the next pair
is computed, the views are deflated (Rosipal and Trejo 2001).  Let P be the projection on the
previous scores t of x, and Q the projection on

    mode "regression": the same t          mode "canonical": the previous scores of y.

Then F becomes (1 - P) F, G becomes (1 - Q) G, and M becomes F^T (1 - P) (1 - Q) G.  For each pair,
this changes M by a matrix of low rank, so that neither K nor F need be modified.  The scores of x
are uncorrelated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core import Stopwatch, entry_point, warn_caller
from ..._core.linalg import solve_triangular
from .._report import Report, Status, status_of
from ..eigen import canonical_signs
from ._views import TwoViewResult, View, check_views, leading_singular_vectors


@entry_point
@dataclass(frozen=True)
class CanonicalCorrelations:
    """Kernel CCA: find the pairs of functions with the largest regularised correlations.

    It maximises cov(f(x), g(y)) subject to var f + alpha |f|^2 = 1 = var g + alpha_y |g|^2.  Use it
    to find what two descriptions of the same points have in common, such as images and their
    captions.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.
    alpha, alpha_y : float, default=1e-3
        Positive penalties on the squared norms |f|^2 and |g|^2 of the functions of the first and
        second view.  Larger values give smoother functions with smaller correlations.  Choose them
        by the correlations on points that were not used in the fit, because those of the fit
        approach 1 for small penalties.

    See Also
    --------
    PartialLeastSquares : The largest covariances instead of correlations.

    References
    ----------
    Hotelling, "Relations between two sets of variates", Biometrika, 1936.

    Hardoon, Szedmak and Shawe-Taylor, "Canonical correlation analysis: an overview with application
    to learning methods", Neural Computation, 2004.

    Fukumizu, Bach and Gretton, "Statistical consistency of kernel canonical correlation analysis",
    Journal of Machine Learning Research, 2007.

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
        """Return the memory for the covariances, their factors and the scores.

        The coordinates of the two views are not included.

        Parameters
        ----------
        n : int
            Number of points.
        m, m_y : int
            Numbers of coordinates of the two views.
        k : int
            Number of components.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * (3 * (m * m + m_y * m_y) + 3 * m * m_y + 6 * n * k + (1 << 19))

    def relate(self, x: View, y: View) -> TwoViewResult:
        """Return the pairs of directions and their correlations.

        They are scaled such that var f + alpha |f|^2 = 1, and likewise for the second view.

        Parameters
        ----------
        x, y : View
            The two views of the same n points, with m and m' coordinates.

        Returns
        -------
        TwoViewResult
            Directions of shape (m, k) and (m', k) for k = n_components, and correlations of shape
            (k,).
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


@entry_point
@dataclass(frozen=True)
class PartialLeastSquares:
    """Kernel PLS: find pairs of functions with the largest covariance, one after the other.

    It maximises cov(f(x), g(y)) subject to |f| = |g| = 1, and deflates both views after each pair.
    In the regression mode, the scores of x are good predictors of y, and few components often
    suffice.  Unlike CCA, it has no penalty; the number of components regularises.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.  For a regression, choose it by cross-validation.
    mode : {"regression", "canonical"}, default="regression"
        After each pair, a component of y is removed: its regression on the score of x
        ("regression"), or on the score of y ("canonical").

    See Also
    --------
    CanonicalCorrelations : The largest correlations instead of covariances.

    References
    ----------
    Rosipal and Trejo, "Kernel partial least squares regression in reproducing kernel Hilbert
    space", Journal of Machine Learning Research, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import PartialLeastSquares, View
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(100, 3))
    >>> y = F @ [[1.0], [2.0], [0.0]] + 5.0
    >>> found = PartialLeastSquares(3).relate(View.of(F), View.of(y))
    >>> B, b = found.regression(y)
    >>> (found.x @ B)[:, 0].round(6) + 0.0
    array([1., 2., 0.])
    """

    n_components: int = 2
    mode: str = "regression"

    @staticmethod
    def workspace(n: int, m: int, m_y: int, k: int) -> int:
        """Return the memory for the covariances, their squares and the scores.

        The coordinates of the two views are not included.

        Parameters
        ----------
        n : int
            Number of points.
        m, m_y : int
            Numbers of coordinates of the two views.
        k : int
            Number of components.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * (5 * m * m_y + 2 * min(m, m_y) ** 2 + 8 * n * k + (1 << 19))

    def relate(self, x: View, y: View) -> TwoViewResult:
        """Return the directions and their covariances.

        The scores are (F - mean) times the directions, where F are the coordinates of a view.  In
        the regression mode, the directions of y are singular vectors of the deflated covariance
        matrix; in the canonical mode, they are corrected for the deflation.

        Parameters
        ----------
        x, y : View
            The two views of the same n points, with m and m' coordinates.

        Returns
        -------
        TwoViewResult
            Directions of shape (m, k) and (m', k) for k = n_components, and covariances of shape
            (k,).
        """
        watch, k, deflate_both = Stopwatch(), self.n_components, self.mode == "canonical"
        check_views(x, y)
        self._check(x, y)
        M, values, V = x.covariance(y), np.zeros(k), np.zeros((y.F.shape[1], k))
        floor = float(np.sqrt(x.rounding_variance * y.rounding_variance))
        X, Y = _DeflatedView(x), _DeflatedView(y)
        for j in range(k):
            w, s, v = (part[..., 0] for part in leading_singular_vectors(M, 1))
            if s <= floor:
                break
            values[j], V[:, j] = s, v
            t, a = X.add_component(w)
            M -= np.outer(a, y.weighted_adjoint(Y.orthogonalise(t)))
            if deflate_both:
                u, b = Y.add_component(v)
                M -= np.outer(x.weighted_adjoint(X.orthogonalise(u)), b)
        n_found = len(X.loadings)
        U, V = X.rotations(), Y.rotations() if deflate_both else V[:, :n_found]
        signs = canonical_signs(x.scores(U))
        residual = X.residual(U)
        status, message = status_of(Status.DIRECT, "", residual)
        if n_found < k:
            message = (
                f"only {n_found} of n_components={k} components exist: after these, no covariance "
                f"between the views remains. Use a smaller n_components"
            )
        if message:
            warn_caller(message)
        report = Report(
            repr(self), status, residual=residual, seconds=watch.seconds, message=message
        )
        return TwoViewResult.of(x, y, U * signs, V * signs, values=values[:n_found], report=report)

    def _check(self, x: View, y: View) -> None:
        """Raise ValueError if n_components exceeds the largest possible number of components."""
        n, k = x.F.shape[0], self.n_components
        max_components = min(n - 1, x.F.shape[1], y.F.shape[1] if self.mode == "canonical" else n)
        if k > max_components:
            raise ValueError(
                f"n_components={k}, but {n} points with {x.F.shape[1]} coordinates in X and "
                f"{y.F.shape[1]} in y have at most {max_components} components; use fewer"
            )


class _DeflatedView:
    """A view together with the scores by which it has been deflated."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.directions: list[np.ndarray] = []
        # the scores, which are uncorrelated and have unit variance
        self.scores: list[np.ndarray] = []
        self.scales: list[float] = []  # standard deviations of the scores before normalisation
        self.loadings: list[np.ndarray] = []

    def orthogonalise(self, t: np.ndarray) -> np.ndarray:
        """Return the vector t minus its projection on the previous scores."""
        for previous in self.scores:
            t = t - previous * float(self.view.weights @ (previous * t))
        return t

    def add_component(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the direction w, and return its score t and its loadings F^T diag(c) t.

        F are the centred coordinates and c the weights of the points.  The score has unit variance.
        """
        # orthogonalise twice, for full accuracy
        t = self.orthogonalise(self.orthogonalise(self.view.scores(w)))
        scale = float(np.sqrt(self.view.weights @ np.square(t)))
        t /= scale
        a = self.view.weighted_adjoint(t)
        self.directions.append(w)
        self.scores.append(t)
        self.scales.append(scale)
        self.loadings.append(a / scale)
        return t, a

    def rotations(self) -> np.ndarray:
        """Return R = W (P^T W)^-1 for the directions W and the loadings P.

        (F - mean) R are the scores of the deflated view, for its original coordinates F.
        """
        W, P = np.column_stack(self.directions), np.column_stack(self.loadings)
        return np.asarray(solve_triangular(P.T @ W, W.T, trans="T").T)

    def residual(self, R: np.ndarray) -> float:
        """Return the largest RMS difference between the scores (F - mean) R and the stored scores.

        The scores are normalised to unit variance.
        """
        difference = self.view.scores(R) / self.scales - np.column_stack(self.scores)
        return float(np.sqrt(self.view.weights @ np.square(difference)).max())
