"""Base classes of classifiers, which encode labels and decode decision values."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from .._core import Points
from ..solvers import CustomLoss, Hinge, Logistic, Loss, Softmax, SquaredHinge
from ._kernel_estimator import DualEstimator, DualFunctions
from ._parameters import estimator, fitted, parameter, predict_method
from ._training_sample import Sample

_LOG_LOSS = {"log_loss", "logistic"}  # two names of the same loss
CLASSIFICATION_LOSSES = {*_LOG_LOSS, "squared_hinge"}


def encode_targets(
    labels: np.ndarray, n_classes: int, loss: Any = "log_loss"
) -> tuple[np.ndarray, Loss]:
    """Return the targets that encode class labels for a loss, and the loss object.

    Two classes are encoded in one column of +1 and -1. More classes have one such column per class
    (one versus rest), or one-hot rows for the multinomial log-loss.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Class indices 0, 1, ..., n_classes - 1.
    n_classes : int
    loss : str or object
        One of `CLASSIFICATION_LOSSES`, "hinge", or a user-defined loss.

    Returns
    -------
    targets : ndarray of shape (n, q)
    loss : Loss
    """
    one_hot = np.eye(n_classes)[labels]
    is_name = isinstance(loss, str)
    if is_name and loss in _LOG_LOSS and n_classes > 2:
        return one_hot, Softmax()
    signs = 2.0 * (one_hot[:, 1:] if n_classes == 2 else one_hot) - 1.0
    if not is_name:
        return signs, CustomLoss(loss)
    if loss in _LOG_LOSS:
        return signs, Logistic()
    return signs, Hinge() if loss == "hinge" else SquaredHinge()


@estimator(kw_only=True)
class DecisionFunctions(ClassifierMixin, DualFunctions):
    """Base class of classifiers that predict from decision values.

    A subclass of another estimator class names that class first, because its defaults of parameters
    take precedence.

    `_values(X)` returns one column for two classes, otherwise one column per class. If the loss is
    a log-loss, the values are log-odds and probabilities are available.
    """

    classes_: np.ndarray = fitted()

    @property
    def _decision_loss(self) -> str | Loss:
        """The loss of the fitted model or, before the fit, the parameter of the estimator."""
        return "log_loss"

    def _has_probabilities(self) -> bool:
        """Return True if the loss is a log-loss, otherwise raise an AttributeError."""
        loss = self._decision_loss
        if isinstance(loss, Logistic | Softmax) or (isinstance(loss, str) and loss in _LOG_LOSS):
            return True
        default_loss = self._defaults["loss"]
        raise AttributeError(
            f"loss={loss!r} gives no probabilities; use loss={default_loss!r}, or decision_function"
        )

    @predict_method
    def decision_function(self, X: Points) -> np.ndarray:
        """Return the decision values f(x) + b, from which `predict` derives the class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            One value per point for two classes, where positive values mean `classes_[1]`; otherwise
            one column per class, in the order of `classes_`.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict the class of each point, the one with the largest decision value.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            Labels from `classes_`.
        """
        values = self.decision_function(X)
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[best]

    @available_if(lambda model: model._has_probabilities())
    @predict_method
    def predict_proba(self, X: Points) -> np.ndarray:
        """Return the probability of each class.

        Only available if the loss is a log-loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities in the order of `classes_`; each row sums to 1.
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        return softmax(values, axis=1)

    @available_if(lambda model: model._has_probabilities())
    @predict_method
    def predict_log_proba(self, X: Points) -> np.ndarray:
        """Return the logarithm of the probability of each class.

        Only available if the loss is a log-loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Log-probabilities in the order of `classes_`. They are finite even if the probabilities
            underflow to 0.
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([log_expit(-values), log_expit(values)])
        return log_softmax(values, axis=1)


@estimator(kw_only=True)
class DecisionMixin(DecisionFunctions, DualEstimator):
    """Base class of classifiers with decision values whose kernel may be given by name."""


@estimator(kw_only=True)
class WeightedClassifierMixin(DecisionMixin):
    """Mixin for classifiers with class weights.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Positive weights of the classes, which multiply the weights of their points. "balanced"
        gives all classes the same total weight, which helps if small classes are important. None
        means weight 1 for each class.
    """

    class_weight: dict | str | None = parameter(dict, {"balanced"}, None, default=None)

    _learn: ClassVar[Any]

    def _learn_labels(self, sample: Sample, spec: Any) -> None:
        """Fit the functions to the labels of a sample.

        The labels are encoded for the loss `spec` and passed to `_learn`, which the subclass
        implements for targets and a loss.
        """
        Y, loss = encode_targets(sample.labels, len(sample.classes), spec)
        self._learn(sample, Y, loss)
        self.classes_ = sample.classes
        if isinstance(loss, Softmax):
            # Adding the same constant to all intercepts does not change the softmax.
            self.intercept_ -= self.intercept_.mean()
