"""Regression with m learned support vectors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ..solvers import Squared
from ._fitting import fitting
from ._parameters import estimator
from ._sparse import SparseKernelEstimator

__all__ = ["SparseKernelRegressor"]


@estimator()
class SparseKernelRegressor(MultiOutputMixin, RegressorMixin, SparseKernelEstimator):
    """Minimise  mean_i |y_i - f(x_i)|^2 + alpha |f|^2  over f = sum_j b_j k(z_j, .) + c.

    Not only the weights b_j are learned but also the m vectors z_j, which may lie anywhere: the
    model takes m (d + n_targets) numbers, and a prediction m evaluations of k, however many
    training points there are.  At the same m it is at least as close to the training data as a
    Nyström approximation on the vectors it starts from, and usually far closer.

    The vectors are moved by L-BFGS, with the best weights for each position (`LearnedVectors`);
    J is not convex in them, and what is found is a local minimum that depends on the start.

    Parameters
    ----------
    alpha : float
        The weight of |f|^2 against the *mean* loss: `KernelRidge`'s alpha, divided by n.

    Attributes
    ----------
    vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
    intercept_ : float or ndarray of shape (n_targets,)
    expansion_ : Expansion
        The fitted f without the intercept, as a value.
    kernel_ : Kernel
        The kernel with all its values, learned or not.
    objective_curve_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never rises.
    n_iter_ : int
    solver_, report_
        The solver, and what it did.

    See Also
    --------
    KernelRidge : f with all training points in it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SparseKernelRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(12 * X[:, 0] ** 2)
    >>> model = SparseKernelRegressor(n_vectors=8, gamma=40, alpha=1e-7).fit(X, y)
    >>> model.vectors_.shape
    (8, 1)
    >>> bool(model.score(X, y) > 0.999)
    True
    """

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,) or (n, n_targets); weights multiply the squared errors."""
        self._require_vectors(X)
        sample = self._sample(X, y, sample_weight, copy=False)
        self._learn(sample, sample.targets, Squared())
        if sample.flat:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], float(self.intercept_[0])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for each point."""
        values = self._values(X)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values
