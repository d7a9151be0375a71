"""Kernel canonical correlation analysis: correlated functions of two views of the same points."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from ..._core import Points
from ...solvers import CanonicalCorrelations
from .._parameters import (
    POSITIVE,
    POSITIVE_INTEGER,
    estimator,
    fit_method,
    fitted_attribute,
    parameter,
)
from ._two_view_estimator import TwoViewEstimator


@estimator()
class KernelCCA(TwoViewEstimator):
    """Kernel canonical correlation analysis.

    Finds pairs of functions, f of the first view X and g of the second view y, that maximise the
    regularised correlation

        cov(f(x), g(y)) / sqrt((var f + alpha |f|^2) (var g + alpha_y |g|^2)).

    The views may be of different types, such as strings and vectors, or texts and graphs, if each
    has a kernel. Each pair is uncorrelated with the previous pairs, up to the effect of
    alpha. The linear kernel with a small alpha is equivalent to scikit-learn's `CCA`, with scores
    of variance 1. With a large alpha, the covariance of functions of norm 1 is maximised, as in
    partial least squares without deflation.

    Parameters
    ----------
    alpha : float
        The weight of the penalty |f|^2 relative to the variance of f, in units of k(x, x). It must
        be positive: without a penalty, any two high-dimensional views are perfectly correlated.
        Choose it by cross-validation, see Notes.
    alpha_y : float or None
        The weight of the penalty |g|^2; None means alpha.

    Attributes
    ----------
    canonical_correlations_ : ndarray of shape (n_components_,)
        The maxima of the regularised correlation. Because of alpha they are smaller than the
        correlations of the scores, which `correlations` computes for training points or new points.
    expansion_, intercept_
        The functions f_j. Scores are ``expansion_(X) + intercept_``, where the intercept is minus
        the mean of f_j.
    expansion_y_, intercept_y_
        The functions g_j of the second view, in the same form.
    n_components_ : int
        The number of pairs of functions.
    X_fit_, dual_coef_
        The points of `expansion_` (their indices for a precomputed kernel) and its coefficients.
    kernel_, kernel_y_ : Kernel
        The kernels of the two views with all parameters resolved.
    report_ : Report
        The report of the solver.

    Notes
    -----
    The penalty is that of Hardoon, Szedmak and Shawe-Taylor (2004). Bach and Jordan (2002) use
    (K + kappa I)^2 = K^2 + 2 kappa K + kappa^2 I instead, which agrees with it for
    kappa = n alpha / 2, up to the term kappa^2.

    Sample weights are treated as repetitions of points, up to a common factor.

    To choose alpha and the kernels by cross-validation, use `score`, the mean correlation on new
    points: ``GridSearchCV(KernelCCA(), {"alpha": [0.001, 0.01, 0.1]}).fit(X, Y)``.

    See Also
    --------
    KernelPLS : Maximises covariances instead, and predicts y.

    Examples
    --------
    On a circle the two coordinates are not linearly related, but their squares are.

    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> x, y = np.cos(angle)[:, None], np.sin(angle)[:, None]
    >>> linear = KernelCCA(1, kernel="linear", kernel_y="linear").fit(x, y)
    >>> bool(linear.score(x, y) < 0.2)
    True
    >>> model = KernelCCA(1).fit(x[:100], y[:100])
    >>> bool(model.score(x[100:], y[100:]) > 0.99)
    True
    """

    n_components: int = parameter(POSITIVE_INTEGER, default=2)
    _: KW_ONLY
    alpha: float = parameter(POSITIVE, default=1e-3)
    alpha_y: float | None = parameter(POSITIVE, None, default=None)

    canonical_correlations_: np.ndarray = fitted_attribute()

    @fit_method
    def fit(self, X: Points, y: Any, sample_weight: Any = None) -> Self:
        """Find correlated functions of two views of the same points.

        Parameters
        ----------
        X : points
            The first view.
        y : points
            The second view, of the same points in the same order.
        sample_weight : array of shape (n,), optional
            Weights of the points.

        Returns
        -------
        self : KernelCCA
        """
        solver = self._two_view_solver()
        relation = self._fit_views(*self._samples(X, y, sample_weight), solver)
        self.canonical_correlations_ = relation.values
        return self

    _planned_arrays = 9.0, (2.0, 1.0, 8.0)

    def _two_view_solver(self) -> CanonicalCorrelations:
        alpha_y = self.alpha if self.alpha_y is None else self.alpha_y
        return CanonicalCorrelations(int(self.n_components), float(self.alpha), float(alpha_y))

    def correlations(self, X: Points, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return the correlation between f_j(x) and g_j(y) over these points, for each pair j.

        Parameters
        ----------
        X, y : points
            The two views of the same points.
        sample_weight : array of shape (n,), optional
            Weights of the points.

        Returns
        -------
        ndarray of shape (n_components_,)
        """
        return self._correlations(X, y, sample_weight)

    def score(self, X: Points, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of `correlations`, with the same arguments."""
        return float(np.mean(self._correlations(X, y, sample_weight)))
