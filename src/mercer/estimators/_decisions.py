"""From the values of functions to classes and probabilities: the same for every classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

__all__ = ["Decisions"]


class Decisions(ClassifierMixin):
    """A classifier with `_values(X)`: one f for two classes, else one for each.

    `_has_probabilities` says whether the f are log-odds, or raises an AttributeError that does.
    """

    classes_: np.ndarray
    _values: Any

    def _has_probabilities(self) -> bool:
        return True

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b: (n,) for two classes, positive for `classes_[1]`; else (n, n_classes).

        For a precomputed kernel X is k(X, training points), here and in all predictions.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the largest f."""
        values = self.decision_function(X)
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[best]

    @available_if(lambda model: model._has_probabilities())
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes), if the loss is logistic."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        return softmax(values, axis=1)

    @available_if(lambda model: model._has_probabilities())
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities, finite however small those are."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([log_expit(-values), log_expit(values)])
        return log_softmax(values, axis=1)
