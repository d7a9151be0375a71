"""What searches over parameters share: folds, values to try, scores, and what was found."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ._sample import Sample

__all__ = ["Found", "Solution", "best_places", "folds", "numbers", "score"]


class Solution(NamedTuple):
    """f = sum_i A_i k(points_i, .) + b."""

    points: Any
    A: np.ndarray
    b: np.ndarray
    report: Any


class Found(NamedTuple):
    """What a kernel reaches: the scores of all alphas, and the places of the best ones."""

    scores: np.ndarray  # (alphas,), or (alphas, q) with an alpha for each target
    chosen: np.ndarray  # (q,)
    solution: Solution | None = None
    errors: np.ndarray | None = None  # (alphas, n, q)

    @property
    def best(self) -> float:
        """The best score, on average over the targets if they are scored one by one."""
        return float(np.mean(self.scores.max(axis=0)))


class _Given(RegressorMixin, BaseEstimator):
    """A model whose predictions are what it is given, for scorers."""

    def fit(self, X: Any, y: Any = None) -> Self:
        return self

    def predict(self, X: Any) -> Any:
        return X


def score(scoring: Any, values: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the score of predictions (n, q) of the targets Y."""
    scorer = check_scoring(_Given(), scoring or "neg_mean_squared_error")
    if Y.shape[1] == 1:
        values, Y = values[:, 0], Y[:, 0]
    if weights is None:
        return float(scorer(_Given(), values, Y))
    try:
        return float(scorer(_Given(), values, Y, sample_weight=weights))
    except TypeError as why:
        raise TypeError(
            f"scoring={scoring!r} does not take sample_weight ({why}); leave the weights out, or "
            f"choose a scorer that does"
        ) from why


def folds(
    cv: Any, X: Any, y: Any, sample: Sample, *, classifier: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of all points that came, as places among those of positive weight."""
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for split in check_cv(cv, y, classifier=classifier).split(X, y):
        train, test = (_places(part, sample) for part in split)
        if not (len(train) and len(test)):
            raise ValueError(
                f"fold {len(parts) + 1} has {len(train)} points to train and {len(test)} to test "
                f"with that have a weight; it needs both. Use fewer folds"
            )
        parts.append((train, test))
    if not parts:
        raise ValueError(
            f"cv={cv!r} made no folds; the usual cause is a generator that has been used up. Give "
            f"a list of its splits"
        )
    return parts


def _places(part: Any, sample: Sample) -> np.ndarray:
    """Return a part of a split, given by indices or a mask, without points that have no weight."""
    index = np.asarray(part)
    places = sample.places[index if index.dtype == bool else index.astype(np.intp)]
    return places[places >= 0]


def best_places(scores: np.ndarray, q: int) -> np.ndarray:
    """Return the place of the first best alpha for each target."""
    return np.broadcast_to(np.argmax(scores, axis=0), (q,))


def numbers(values: Any, name: str) -> np.ndarray:
    """Return positive, finite numbers as an array."""
    try:
        values = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be positive and finite numbers, got {values!r}") from None
    if values.ndim != 1 or not values.size or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"{name} must be positive and finite numbers, got {values!r}")
    return values
