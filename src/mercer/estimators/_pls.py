"""Kernel partial least squares: functions of two views with large covariances, and predictions."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils import RegressorTags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ..solvers import PartialLeastSquares
from ._base import KernelLike
from ._parameters import COUNT, estimator, fitting, learned, parameter
from ._two_views import TwoViews

__all__ = ["KernelPLS"]


@estimator()
class KernelPLS(TwoViews):
    """Maximise  cov(f(x), g(y))  over  |f| = |g| = 1, take off what that explains, and go on.

    Partial least squares in the spaces of two kernels (Rosipal and Trejo 2001).  In the regression
    mode what the score of x explains is taken off both views, and `predict` is the least squares of
    y on the scores: with one or two components it often does what ridge regression does with a
    well-chosen alpha.  In the canonical mode each view loses what its own score explains.

    With linear kernels these are scikit-learn's `PLSRegression` and `PLSCanonical`, of the columns
    as they are: compare with scale=False, or scale the columns beforehand.

    Parameters
    ----------
    mode : {"regression", "canonical"}

    Attributes
    ----------
    covariances_ : ndarray of shape (n_components_,)
        The maxima.
    expansion_, intercept_
        The functions f_j of all of x, as a value, whose scores are those of what was left of it;
        scores are these plus `intercept_`, which is minus their mean.
    expansion_y_, intercept_y_
        The functions g_j, likewise; in the regression mode of norm 1 and with nothing taken off.
    n_components_ : int
        Less than n_components, with a warning, if no covariance is left.
    X_fit_, dual_coef_
        The points of `expansion_` (indices of them for a precomputed kernel) and its coefficients.
    kernel_, kernel_y_ : Kernel
    report_ : Report

    Notes
    -----
    Weights count as repetitions, up to a common factor.

    See Also
    --------
    KernelCCA : the same with correlations.

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

    n_components: int = parameter(COUNT, default=2)
    _: KW_ONLY
    mode: str = parameter(StrOptions({"regression", "canonical"}), default="regression")
    kernel_y: KernelLike = "linear"

    covariances_: np.ndarray = learned()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.mode == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find functions of the views X and y of the same points, one of each in every place."""
        sample, second = self._samples(X, y, sample_weight)
        how = PartialLeastSquares(int(self.n_components), self.mode)
        found = self._relate(sample, second, how)
        self.covariances_ = found.values
        self._regression = None
        targets = second.points
        if self.mode == "regression" and isinstance(targets, np.ndarray) and targets.ndim == 2:
            self._regression = found.regression(np.asarray(targets, dtype=float))
            self._flat = second.flat
        return self

    def _can_predict(self) -> bool:
        if self.mode != "regression":
            raise AttributeError(f"mode={self.mode!r} makes no predictions; use mode='regression'")
        return True

    @available_if(_can_predict)
    def predict(self, X: Any) -> np.ndarray:
        """Return y as the scores of X predict it, (n,) or (n, n_targets), if it was numbers."""
        scores = self._values(X)
        if self._regression is None:
            raise ValueError(
                "y was no dense matrix of numbers, and there is nothing to add up for a "
                "prediction; compare the scores of transform(X, y)"
            )
        B, b = self._regression
        values = scores @ B + b
        return values[:, 0] if self._flat else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions; in the canonical mode, the mean correlation of scores."""
        from sklearn.metrics import r2_score

        if self.mode == "regression":
            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        return float(np.mean(self._correlations(X, y, sample_weight)))
