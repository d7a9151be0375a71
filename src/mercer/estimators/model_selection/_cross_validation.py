"""Helpers for hyper-parameter searches: folds, candidate values, scores and results."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ..._core import Points
from .._training_sample import Sample


class ExpansionSolution(NamedTuple):
    """Fitted functions f = sum_i A_i k(points_i, .) + b, and the report of the solver."""

    points: Any
    A: np.ndarray
    b: np.ndarray
    report: Any


class AlphaSearchResult(NamedTuple):
    """The result of a search over alpha for one kernel.

    Contains the scores of all candidates and the index of the best alpha for each target.
    """

    scores: np.ndarray  # shape (n_alphas,), or (n_alphas, q) with one alpha per target
    chosen: np.ndarray  # index of the best alpha for each target, of shape (q,)
    solution: ExpansionSolution | None = None
    errors: np.ndarray | None = None  # leave-one-out errors, of shape (n_alphas, n, q)

    @property
    def best(self) -> float:
        """The best score; if each target has its own scores, the mean of their best scores."""
        return float(np.mean(self.scores.max(axis=0)))


class _IdentityModel(RegressorMixin, BaseEstimator):
    """A model that returns its input as prediction, so that scorers can score predictions."""

    def fit(self, X: Points, y: Any = None) -> Self:
        """Return self; there is nothing to fit."""
        return self

    def predict(self, X: Points) -> Any:
        """Return X."""
        return X


def score_predictions(
    scoring: Any, predictions: np.ndarray, Y: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the score of predictions.

    Parameters
    ----------
    scoring : str, callable or None
        A scorer; None means "neg_mean_squared_error".
    predictions : ndarray of shape (n, q)
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """
    scorer = check_scoring(_IdentityModel(), scoring or "neg_mean_squared_error")
    if Y.shape[1] == 1:
        predictions, Y = predictions[:, 0], Y[:, 0]
    if weights is None:
        return float(scorer(_IdentityModel(), predictions, Y))
    try:
        return float(scorer(_IdentityModel(), predictions, Y, sample_weight=weights))
    except TypeError as error:
        raise TypeError(
            f"scoring={scoring!r} does not accept sample_weight ({error}); omit the weights, or "
            f"choose a scorer that accepts them"
        ) from error


def split_folds(
    cv: Any, X: Points, y: Any, sample: Sample, *, classifier: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the train and test indices of each fold.

    The splitter is applied to all points that were passed to `fit`. The returned indices refer to
    the points of positive weight only.
    """
    splits: list[tuple[np.ndarray, np.ndarray]] = []
    for split in check_cv(cv, y, classifier=classifier).split(X, y):
        train, test = (_retained_indices(rows, sample) for rows in split)
        if not (len(train) and len(test)):
            raise ValueError(
                f"fold {len(splits) + 1} has {len(train)} training and {len(test)} test points of "
                f"positive weight, but needs at least one of each; use fewer folds"
            )
        splits.append((train, test))
    if not splits:
        raise ValueError(
            f"cv={cv!r} yields no folds; the usual cause is an exhausted generator. Pass a list of "
            f"splits instead"
        )
    return splits


def _retained_indices(rows: Any, sample: Sample) -> np.ndarray:
    """Convert the rows of a split to indices into the points of positive weight.

    The rows may be indices or a boolean mask. Points of weight 0 are dropped.
    """
    index = np.asarray(rows)
    indices = sample.places[index if index.dtype == bool else index.astype(np.intp)]
    return indices[indices >= 0]


def best_indices(scores: np.ndarray, q: int) -> np.ndarray:
    """Return the index of the best alpha for each of q targets, the first one in case of ties."""
    return np.broadcast_to(np.argmax(scores, axis=0), (q,))


def check_positive_numbers(values: Any, name: str) -> np.ndarray:
    """Return values as a 1-D array; raise an error unless all are positive and finite."""
    try:
        values = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be positive and finite numbers, got {values!r}") from None
    if values.ndim != 1 or not values.size or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"{name} must be positive and finite numbers, got {values!r}")
    return values
