"""Classification with m learned support vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from .._points import take
from ..solvers import Logistic, Loss, Softmax, SquaredHinge
from ._decisions import Decisions
from ._fitting import fitting
from ._parameters import estimator, parameter
from ._sparse import SparseKernelEstimator
from ._weights import check_weights

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
    loss : {"logistic", "squared_hinge"}
    class_weight : dict, "balanced" or None
        Weights of classes, which multiply those of the points.

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
    loss: str = parameter(StrOptions({"logistic", "squared_hinge"}), default="logistic")
    class_weight: dict | str | None = parameter(dict, StrOptions({"balanced"}), None, default=None)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        X, y = self._check_vectors(X, y, reset=True)
        check_classification_targets(y)
        w = check_weights(sample_weight, X) * compute_sample_weight(self.class_weight, y)
        if np.any(w < 0):
            raise ValueError(
                f"class_weight must be non-negative, but {self.class_weight!r} gives points a "
                f"weight of {w.min():g}"
            )
        some = np.flatnonzero(w)
        self.classes_, labels = np.unique(y[some], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs points of at least 2 classes, but those of positive "
                f"weight are all of one class: {self.classes_.tolist()}"
            )
        Y, loss = _coded(labels, self.loss)
        self._learn(take(X, some), Y, w[some], loss)
        if isinstance(loss, Softmax):
            self.intercept_ -= self.intercept_.mean()  # a common constant is not seen by it
        return self

    def _has_probabilities(self) -> bool:
        if self.loss != "logistic":
            raise AttributeError(
                f"loss={self.loss!r} has no probabilities; use loss='logistic', or "
                f"decision_function"
            )
        return True


def _coded(labels: np.ndarray, loss: str) -> tuple[np.ndarray, Loss]:
    """Return the targets for labels 0, 1, ..., and the loss they are for."""
    unit = np.eye(labels.max() + 1)[labels]
    signs = 2.0 * unit - 1.0
    two = unit.shape[1] == 2
    if loss == "squared_hinge":
        return signs[:, 1:] if two else signs, SquaredHinge()
    return (signs[:, 1:], Logistic()) if two else (unit, Softmax())
