"""The one-class support vector machine: where most of the points are."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval

from ...solvers import Dual, Duals
from .._parameters import estimator, fitting, parameter, threaded
from ._machine import SupportVectorMachine

__all__ = ["OneClassSVM"]

_SLACK = 1e-8  # times the largest |f|: by so much rho is lowered


@estimator(kw_only=True)
class OneClassSVM(OutlierMixin, SupportVectorMachine):
    """Minimise  1/2 |f|^2 - nu W rho + sum_i w_i max(0, rho - f(x_i))  over f and rho.

    A drop-in for scikit-learn's estimator of this name.  W is the sum of the weights w_i.  At most
    a share nu of the weight lies outside of the region f >= rho, and at least that share belongs to
    support vectors; for the kernel of a density this is a level set of it, from few of the points.

    Parameters
    ----------
    nu : float
        In (0, 1].

    Attributes
    ----------
    support_, support_vectors_ : ndarray of int, points
        The rows of X that are support vectors.
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support_vectors)
        v, of f = sum_i v_i k(x_i, .), between 0 and the weight of each point.
    at_bound_ : ndarray of bool
        Whether a support vector is outside, v_i = w_i; the others are on the edge, f = rho.
    offset_, intercept_ : ndarray of shape (1,)
        rho and -rho: `decision_function` is `score_samples` - `offset_`.
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

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the region; y is ignored, and a point of weight 0 or less is left out."""
        sample, _ = self._sample_of(X, sample_weight=sample_weight)
        dual = Dual.one_class(sample.counts, float(self.nu))
        found = self._learn(self._problem(sample), Duals.of([dual], np.arange(dual.n)))
        # f = rho at free support vectors; with a rho that is a little smaller, rounding cannot
        # put them outside
        slack = min(_SLACK * float(np.abs(found.values).max()), self.tol)
        self.offset_ = found.multipliers[0] - slack
        self.intercept_ = -self.offset_
        return self

    @threaded
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) - rho: positive inside.  For a precomputed kernel X is k(X, training)."""
        return self._values(X)[:, 0]

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Return f(x)."""
        return self.decision_function(X) + self.offset_

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return +1 inside of the region, and -1 outside."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
