"""The one-class support vector machine, for outlier detection."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval

from ...solvers import Dual, Duals
from .._parameters import estimator, fit_method, parameter, predict_method
from ._svm_base import SupportVectorMachine

__all__ = ["OneClassSVM"]

# The threshold rho is lowered by this fraction of the largest |f|, so that rounding errors do not
# turn support vectors on the boundary, where f = rho, into outliers.
_RHO_SLACK = 1e-8


@estimator(kw_only=True)
class OneClassSVM(OutlierMixin, SupportVectorMachine):
    """One-class support vector machine: finds a region that contains most of the points.

        minimise  1/2 |f|^2 - nu W rho + sum_i w_i max(0, rho - f(x_i))   over f and rho

    W is the sum of the weights w_i.  Points with f(x) < rho are outliers.  At most a fraction nu
    of the total weight lies outside the region f >= rho, and the support vectors have at least
    the fraction nu of it.  For a density kernel such as the Gaussian, the region estimates a level
    set of the density.  A drop-in replacement for scikit-learn's `OneClassSVM`.

    Parameters
    ----------
    nu : float
        Upper bound on the fraction of training outliers, in (0, 1].

    Attributes
    ----------
    support_ : ndarray of int
        The rows of X that are support vectors.
    support_vectors_ : points
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_support_vectors)
        Coefficients v_i of f = sum_i v_i k(x_i, .), between 0 and the weight w_i of each point.
    at_bound_ : ndarray of bool
        True for support vectors outside the region, where v_i = w_i.  The others are on its
        boundary, where f = rho.
    offset_, intercept_ : ndarray of shape (1,)
        The threshold rho and its negative; `decision_function` is `score_samples` - `offset_`.
    coef_, expansion_, n_iter_, fit_status_, report_, reports_, shape_fit_, gamma_, kernel_, solver_
        As in SVR.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> bool(abs(np.mean(model.predict(X) == -1) - 0.1) < 0.05)
    True
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    nu: float = parameter(Interval(Real, 0, 1, closed="right"), default=0.5)

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the region that contains most of the points.

        Parameters
        ----------
        X : points
            Training points; the kernel matrix for a precomputed kernel.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points; points of weight 0 or less are ignored.

        Returns
        -------
        self : OneClassSVM
        """
        sample, _ = self._sample_of(X, sample_weight=sample_weight)
        dual = Dual.one_class(sample.counts, float(self.nu))
        solutions = self._solve_and_set(self._problem(sample), Duals.of([dual], np.arange(dual.n)))
        slack = min(_RHO_SLACK * float(np.abs(solutions.values).max()), self.tol)
        self.offset_ = solutions.multipliers[0] - slack
        self.intercept_ = -self.offset_
        return self

    @predict_method
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) - rho, which is positive inside the region.

        For a precomputed kernel, X is the kernel matrix between the points and the training points.
        """
        return self._values(X)[:, 0]

    @predict_method
    def score_samples(self, X: Any) -> np.ndarray:
        """Return f(x) for each point, without subtracting the threshold rho."""
        return self.decision_function(X) + self.offset_

    @predict_method
    def predict(self, X: Any) -> np.ndarray:
        """Return +1 for points inside the region and -1 for outliers."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
