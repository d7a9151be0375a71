"""Kernel partial least squares: pairs of functions of two views with maximal covariance."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils import RegressorTags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ..._core import Points
from ...solvers import PartialLeastSquares
from .._blockwise import in_memory
from .._kernel_estimator import KernelLike
from .._parameters import (
    POSITIVE_INTEGER,
    estimator,
    fit_method,
    fitted_attribute,
    parameter,
    predict_method,
)
from ._two_view_estimator import TwoViewEstimator


@estimator()
class KernelPLS(TwoViewEstimator):
    """Partial least squares in the feature spaces of two kernels.

        maximise  cov(f(x), g(y))  over  |f| = |g| = 1,   then deflate both views and repeat

    Each component is a pair of functions of maximal covariance (Rosipal and Trejo 2001).  In the
    regression mode, deflation removes from both views the part that the score of x explains, and
    `predict` is the least-squares regression of y on the scores.  A few components often predict
    as well as ridge regression with a well-chosen alpha.  In the canonical mode, each view is
    deflated by its own score.

    With linear kernels these are scikit-learn's `PLSRegression` and `PLSCanonical` with
    scale=False: columns are not scaled.

    Parameters
    ----------
    mode : {"regression", "canonical"}
        "regression" is for predicting y; "canonical" treats both views alike and has no `predict`.

    Attributes
    ----------
    covariances_ : ndarray of shape (n_components_,)
        The maximal covariance of each component.
    expansion_, intercept_
        The functions f_j, which apply to x itself, not to the deflated view.  Scores
        are expansion_(X) + intercept_, where intercept_ is minus the mean of f_j.
    expansion_y_, intercept_y_
        The functions g_j of y, in the same form.  In the regression mode they have norm 1 and are
        not deflated.
    n_components_ : int
        The number of components.  It is smaller than n_components, with a warning, if no
        covariance remains after deflation.
    X_fit_, dual_coef_
        The points of `expansion_` (indices for a precomputed kernel) and its coefficients.
    kernel_, kernel_y_ : Kernel
        The kernels of the two views with all parameters resolved.
    report_ : Report
        The report of the solver.

    Notes
    -----
    Sample weights count as repetitions of points, up to a common factor.

    See Also
    --------
    KernelCCA : Maximises correlations instead of covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPLS
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.c_[np.sin(X), np.cos(X)]
    >>> model = KernelPLS(4).fit(X, y)
    >>> model.transform(X).shape, bool(model.score(X, y) > 0.99)
    ((100, 4), True)
    """

    n_components: int = parameter(POSITIVE_INTEGER, default=2)
    _: KW_ONLY
    mode: str = parameter(StrOptions({"regression", "canonical"}), default="regression")
    kernel_y: KernelLike = "linear"

    covariances_: np.ndarray = fitted_attribute()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.mode == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    @fit_method
    def fit(self, X: Points, y: Any, sample_weight: Any = None) -> Self:
        """Compute the components of two views of the same points.

        Parameters
        ----------
        X : points
            The first view.
        y : points or array-like of shape (n,) or (n, n_targets)
            The second view, of the same points in the same order.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which count as repetitions.

        Returns
        -------
        self : KernelPLS
        """
        sample, second = self._samples(X, y, sample_weight)
        relation = self._fit_views(sample, second, self._two_view_solver())
        self.covariances_ = relation.values
        self._regression = None
        targets = in_memory(second.points)
        if self.mode == "regression" and isinstance(targets, np.ndarray) and targets.ndim == 2:
            self._regression = relation.regression(np.asarray(targets, dtype=float))
            self._flat = second.flat
        return self

    _planned_arrays = 3.0, (2.0, 0.5, 3.0)

    def _two_view_solver(self) -> PartialLeastSquares:
        return PartialLeastSquares(int(self.n_components), self.mode)

    def _can_predict(self) -> bool:
        """Return True in the regression mode; raise AttributeError otherwise."""
        if self.mode != "regression":
            raise AttributeError(f"mode={self.mode!r} cannot predict; use mode='regression'")
        return True

    @available_if(_can_predict)
    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Return predictions of a numeric y, of shape (n,) or (n, n_targets)."""
        scores = self._values(X)
        if self._regression is None:
            raise ValueError(
                "predict needs a model that was fitted to a dense numeric array y; for other types "
                "of y, compare the scores that transform(X, y) returns"
            )
        B, b = self._regression
        values = scores @ B + b
        return values[:, 0] if self._flat else values

    def score(self, X: Points, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions, or in the canonical mode the mean correlation of scores.

        Parameters
        ----------
        X : points
            The first view.
        y : points
            The second view.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points.

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        if self.mode == "regression":
            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        return float(np.mean(self._correlations(X, y, sample_weight)))
