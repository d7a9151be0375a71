"""Support vector regression: epsilon-SVR and nu-SVR."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval

from ...solvers import Dual, Duals, DualSolutions
from .._parameters import NON_NEGATIVE, POSITIVE, estimator, fit_method, parameter, predict_method
from ._svm_base import SupportVectorMachine
from ._svm_training import SVMProblem

__all__ = ["SVR", "NuSVR"]


class _SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """Base class of SVR and NuSVR."""

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y.

        Parameters
        ----------
        X : points
            Training points; the kernel matrix for a precomputed kernel.
        y : array-like of shape (n,)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which multiply C for each point.  Points of weight 0 or less are ignored.

        Returns
        -------
        self : estimator
        """
        sample, y = self._sample_of(X, y, sample_weight)
        y = np.asarray(y, dtype=float)[sample.kept]
        sample = replace(sample, targets=y[:, None])
        dual = self._dual(y, sample.counts)
        self._solve_and_set(self._problem(sample), Duals.of([dual], np.arange(dual.n)))
        return self

    @predict_method
    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point.

        For a precomputed kernel, X is the kernel matrix between the points and the training points.
        """
        return self._values(X)[:, 0]

    @abstractmethod
    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        """Return the dual problem for the targets y and the weights w of the points."""


@estimator(kw_only=True)
class SVR(_SupportVectorRegressor):
    """Support vector regression with the epsilon-insensitive loss.

        minimise  1/2 |f|^2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)

    Points closer to f + b than epsilon, inside the "tube", do not contribute to f; the other
    points are the support vectors.  A drop-in replacement for scikit-learn's `SVR`.

    Parameters
    ----------
    C : float
        The penalty of points outside the tube; positive, may be infinite.  A smaller C means
        stronger regularisation.
    epsilon : float
        Half of the width of the tube, in units of y.

    Attributes
    ----------
    support_ : ndarray of int
        The rows of X that are support vectors.
    support_vectors_ : points
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_support_vectors)
        Coefficients v_i of f = sum_i v_i k(x_i, .).
    at_bound_ : ndarray of bool, shape (n_support_vectors,)
        True for support vectors outside the tube, where |v_i| = C w_i; the others are on its
        boundary.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    coef_ : ndarray of shape (1, n_features)
        The weights of a linear kernel: f(x) = <coef_, x>.
    expansion_ : Expansion
        The function f, without the intercept; an expansion in landmarks for "nystroem".
    n_iter_ : int
        Number of solver steps.
    fit_status_ : int
        0 if the solver converged, otherwise 1.
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
    epsilon: float = parameter(NON_NEGATIVE, default=0.1)

    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        return Dual.regress(y, self.C * w, float(self.epsilon))


@estimator(kw_only=True)
class NuSVR(_SupportVectorRegressor):
    """Support vector regression that learns the width of the tube (nu-SVR).

        minimise  1/2 |f|^2 + C (nu W epsilon + sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon))

    W is the sum of the weights w_i, and epsilon, half of the width of the tube around f + b, is
    optimised together with f and b.  At most a fraction nu of the total weight lies outside the
    tube, and the support vectors have at least the fraction nu of it.  A drop-in replacement for
    scikit-learn's `NuSVR`.

    Parameters
    ----------
    nu : float
        Upper bound on the fraction of points outside the tube, in (0, 1].
    C : float
        The penalty of points outside the tube; positive and finite.

    Attributes
    ----------
    epsilon_ : float
        Half of the width of the tube, in units of y.
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

    def _set_extra_attributes(self, problem: SVMProblem, solutions: DualSolutions) -> str:
        m = solutions.multipliers[0]
        self.epsilon_ = float(max(0.5 * (m[1] - m[0]), 0.0))
        return ""
