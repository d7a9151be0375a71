"""Kernel canonical correlation analysis: what two views of the same points have in common."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from ..solvers import CanonicalCorrelations
from ._parameters import COUNT, POSITIVE, estimator, fitting, learned, parameter
from ._two_views import TwoViews

__all__ = ["KernelCCA"]


@estimator()
class KernelCCA(TwoViews):
    """Maximise  cov(f(x), g(y)) / sqrt((var f + alpha |f|^2) (var g + alpha_y |g|^2)).

    f is a function of the first view, X, and g one of the second, y: strings and vectors, texts and
    graphs, or whatever two kernels can compare.  Further pairs are uncorrelated with those before,
    up to alpha.  The linear kernel and a small alpha lead back to scikit-learn's `CCA`, with scores
    of variance 1; a large alpha, to the covariance of functions of norm 1: partial least squares by
    one singular value decomposition.

    Parameters
    ----------
    alpha : float
        What |f|^2 counts beside the *variance* of f; in units of k(x, x).  Positive: without it
        views in many dimensions correlate perfectly, whatever they are.
    alpha_y : float or None
        The same for g; None for alpha.

    Attributes
    ----------
    canonical_correlations_ : ndarray of shape (n_components_,)
        The maxima; alpha takes them below the correlations of the scores, which `correlations` has,
        of training and of new points.
    expansion_, intercept_
        The functions f_j, as a value; scores are these plus `intercept_`, which is minus their
        mean.
    expansion_y_, intercept_y_
        The functions g_j, likewise.
    n_components_ : int
    X_fit_, dual_coef_
        The points of `expansion_` (indices of them for a precomputed kernel) and its coefficients.
    kernel_, kernel_y_ : Kernel
    report_ : Report

    Notes
    -----
    The norm is that of Hardoon, Szedmak and Shawe-Taylor (2004).  The blocks (K + kappa)^2 of Bach
    and Jordan (2002), K^2 + 2 kappa K + kappa^2, have one term more; up to this second order theirs
    is n alpha / 2.

    Weights count as repetitions, up to a common factor.

    To choose alpha and kernels, `score` is the correlation of new points:
    ``GridSearchCV(KernelCCA(), {"alpha": [0.001, 0.01, 0.1]}).fit(X, Y)``.

    See Also
    --------
    KernelPLS : the same with covariances, and predictions.

    Examples
    --------
    A circle: neither coordinate is a line in the other, but the squares are.

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

    n_components: int = parameter(COUNT, default=2)
    _: KW_ONLY
    alpha: float = parameter(POSITIVE, default=1e-3)
    alpha_y: float | None = parameter(POSITIVE, None, default=None)

    canonical_correlations_: np.ndarray = learned()

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find functions of the views X and y of the same points, one of each in every place."""
        alpha_y = self.alpha if self.alpha_y is None else self.alpha_y
        how = CanonicalCorrelations(int(self.n_components), float(self.alpha), float(alpha_y))
        found = self._relate(*self._samples(X, y, sample_weight), how)
        self.canonical_correlations_ = found.values
        return self

    def correlations(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return the correlation of f_j(x) with g_j(y) over these points, (n_components_,)."""
        return self._correlations(X, y, sample_weight)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of `correlations`."""
        return float(np.mean(self._correlations(X, y, sample_weight)))
