"""Support vector regression with a tube of given width, or of given share of points outside."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval

from ...solvers import Dual, Duals, DualSolutions
from .._parameters import AT_LEAST_0, POSITIVE, estimator, fitting, parameter, threaded
from ._machine import SupportVectorMachine
from ._problem import Problem

__all__ = ["SVR", "NuSVR"]


class _SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """A machine of one f for real targets."""

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,).

        Weights multiply C, point by point; a point of weight 0 or less is left out.
        """
        sample, y = self._sample_of(X, y, sample_weight)
        y = np.asarray(y, dtype=float)[sample.kept]
        sample = replace(sample, targets=y[:, None])
        dual = self._dual(y, sample.counts)
        self._learn(self._problem(sample), Duals.of([dual], np.arange(dual.n)))
        return self

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point; for a precomputed kernel X is k(X, training points)."""
        return self._values(X)[:, 0]

    @abstractmethod
    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        """Return the dual for targets and weights of the points."""


@estimator(kw_only=True)
class SVR(_SupportVectorRegressor):
    """Minimise  1/2 |f|^2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)  over the RKHS.

    A drop-in for scikit-learn's estimator of this name.  Points inside of the tube of half-width
    epsilon around f + b have no part in f: the others are the support vectors.

    Parameters
    ----------
    C : float
        The price of a point outside of the tube; positive, may be infinite.
    epsilon : float
        Half of the width of the tube, in units of y.

    Attributes
    ----------
    support_, support_vectors_ : ndarray of int, points
        The rows of X that are support vectors.
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support_vectors)
        v, of f = sum_i v_i k(x_i, .).
    at_bound_ : ndarray of bool
        Whether a support vector is outside of the tube, |v_i| = C w_i; the others are on its edge.
    intercept_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, n_features)
        For a linear kernel: f(x) = <coef_, x>.
    expansion_ : Expansion
        f as a value, without the intercept; on landmarks for "nystroem".
    n_iter_, fit_status_ : int
    report_, reports_, shape_fit_, gamma_, kernel_, solver_
        As in SVC.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = SVR(C=100.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    >>> len(model.support_) < 20
    True
    """

    C: float = parameter(Interval(Real, 0, None, closed="right"), default=1.0)
    epsilon: float = parameter(AT_LEAST_0, default=0.1)

    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        return Dual.regress(y, self.C * w, float(self.epsilon))


@estimator(kw_only=True)
class NuSVR(_SupportVectorRegressor):
    """Minimise  1/2 |f|^2 + C (nu W epsilon + sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)).

    A drop-in for scikit-learn's estimator of this name.  W is the sum of the weights w_i, and
    epsilon is found together with f and b: at most a share nu of the weight lies outside of the
    tube, and at least that share belongs to support vectors.

    Parameters
    ----------
    nu : float
        In (0, 1].
    C : float
        The price of a point outside of the tube; positive and finite.

    Attributes
    ----------
    epsilon_ : float
        Half of the width of the tube.
    support_, support_vectors_, n_support_, dual_coef_, at_bound_, intercept_, coef_
        As in SVR.
    expansion_, n_iter_, fit_status_, report_, reports_, shape_fit_, gamma_, kernel_, solver_
        As in SVR.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = NuSVR(nu=0.2, C=10.0).fit(X, y)
    >>> outside = np.abs(y - model.predict(X)) > model.epsilon_ + 0.01
    >>> bool(np.mean(outside) <= 0.2)
    True
    """

    nu: float = parameter(Interval(Real, 0, 1, closed="right"), default=0.5)
    C: float = parameter(POSITIVE, default=1.0)

    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        return Dual.nu_regress(y, self.C * w, float(self.nu))

    def _read(self, problem: Problem, found: DualSolutions) -> str:
        m = found.multipliers[0]
        self.epsilon_ = float(max(0.5 * (m[1] - m[0]), 0.0))
        return ""
