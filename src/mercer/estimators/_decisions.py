"""From labels to targets, and from the values of functions to classes and probabilities."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ..solvers import Given, Logistic, Loss, Softmax, SquaredHinge
from ._parameters import estimator, learned, parameter, threaded
from ._sample import Sample

__all__ = ["LOSSES", "Decisions", "Outputs", "coded"]

_LOG_LOSS = {"log_loss", "logistic"}
LOSSES = {*_LOG_LOSS, "squared_hinge"}


def coded(labels: np.ndarray, n_classes: int, loss: Any = "log_loss") -> tuple[np.ndarray, Loss]:
    """Return targets for the labels 0, 1, ..., and the loss that they are for.

    One column of +1 and -1 for two classes; for more, a column of these for each, or for the
    multinomial log-loss unit vectors.
    """
    unit = np.eye(n_classes)[labels]
    by_name = isinstance(loss, str)
    if by_name and loss in _LOG_LOSS and n_classes > 2:
        return unit, Softmax()
    signs = 2.0 * (unit[:, 1:] if n_classes == 2 else unit) - 1.0
    if not by_name:
        return signs, Given(loss)
    return signs, Logistic() if loss in _LOG_LOSS else SquaredHinge()


@estimator(kw_only=True)
class Outputs(ClassifierMixin, BaseEstimator):
    """A classifier with `_values(X)`: one f for two classes, else one for each.

    The f are log-odds, and there are probabilities, if its `loss` is a log-loss, or it has none.
    """

    classes_: np.ndarray = learned()
    _values: ClassVar[Any]

    def _has_probabilities(self) -> bool:
        loss = getattr(self, "loss_", None) or getattr(self, "loss", "log_loss")
        if isinstance(loss, Logistic | Softmax) or (isinstance(loss, str) and loss in _LOG_LOSS):
            return True
        named = getattr(type(self), "loss", "log_loss")
        raise AttributeError(
            f"loss={loss!r} has no probabilities; use loss={named!r}, or decision_function"
        )

    @threaded
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b: (n,) for two classes, positive for `classes_[1]`; else (n, n_classes).

        For a precomputed kernel X is k(X, training points), here and in all predictions.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the largest f."""
        values = self.decision_function(X)
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[best]

    @available_if(lambda model: model._has_probabilities())
    @threaded
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes), if the loss is logistic."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        return softmax(values, axis=1)

    @available_if(lambda model: model._has_probabilities())
    @threaded
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities, finite however small those are."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([log_expit(-values), log_expit(values)])
        return log_softmax(values, axis=1)


@estimator(kw_only=True)
class Decisions(Outputs):
    """A classifier whose classes may have weights.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights of classes, positive, which multiply those of the points; "balanced" makes the sums
        of the weights of all classes equal.
    """

    class_weight: dict | str | None = parameter(dict, StrOptions({"balanced"}), None, default=None)

    intercept_: Any = learned()
    _learn: ClassVar[Any]

    def _learn_labels(self, sample: Sample, spec: Any) -> None:
        """Learn f from the labels of a sample, by a `_learn` that takes targets and their loss."""
        Y, loss = coded(sample.labels, len(sample.classes), spec)
        self._learn(sample, Y, loss)
        self.classes_ = sample.classes
        if isinstance(loss, Softmax):
            self.intercept_ -= self.intercept_.mean()  # the loss does not see a common constant
