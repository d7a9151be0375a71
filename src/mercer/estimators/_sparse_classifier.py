"""Classification with m learned support vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

from sklearn.utils._param_validation import StrOptions

from ..solvers import Softmax
from ._decisions import LOSSES, Decisions, coded
from ._fitting import fitting
from ._parameters import estimator, parameter
from ._sparse import SparseKernelEstimator

__all__ = ["SparseKernelClassifier"]


@estimator()
class SparseKernelClassifier(Decisions, SparseKernelEstimator):
    """Minimise  mean_i loss(y_i, f(x_i)) + alpha |f|^2  over f = sum_j b_j k(z_j, .) + c.

    Not only the weights b_j are learned but also the m vectors z_j, which may lie anywhere: the
    model takes m (d + n_functions) numbers, and a prediction m evaluations of k, however many
    training points there are.  All classes share the vectors.

    ================= ======================================== ===================================
    loss              two classes: one f, y = +1 or -1         more: one f_c for each class
    ================= ======================================== ===================================
    "logistic"        log(1 + exp(-y f))                       -log softmax(f)_y: multinomial
    "squared_hinge"   max(0, 1 - y f)^2                        the sum of that over one vs. rest
    ================= ======================================== ===================================

    The vectors are moved by L-BFGS, with the best weights for each position (`LearnedVectors`);
    J is not convex in them, and what is found is a local minimum that depends on the start.

    Parameters
    ----------
    alpha : float
        The weight of |f|^2 against the mean loss; 1 / (2 n C) in terms of scikit-learn's C.
    loss : {"logistic", "log_loss", "squared_hinge"}
        See the table; "log_loss" is another name of "logistic".

    Attributes
    ----------
    classes_ : ndarray
        The classes that have a positive weight.
    vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (m, n_functions)
        n_functions is 1 for two classes, else the number of classes.
    intercept_ : ndarray of shape (n_functions,)
    expansion_ : Expansion
        The fitted functions without intercepts, as a value.
    kernel_ : Kernel
        The kernel with all its values, learned or not.
    objective_curve_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never rises.
    n_iter_ : int
    solver_, report_
        The solver, and what it did.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseKernelClassifier(n_vectors=5, alpha=1e-3).fit(X, y)
    >>> model.vectors_.shape
    (5, 4)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _: KW_ONLY
    loss: str = parameter(StrOptions(LOSSES), default="logistic")

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        self._require_vectors(X)
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        Y, loss = coded(sample.labels, len(sample.classes), self.loss)
        self._learn(sample, Y, loss)
        self.classes_ = sample.classes
        if isinstance(loss, Softmax):
            self.intercept_ -= self.intercept_.mean()  # the loss does not see a common constant
        return self
