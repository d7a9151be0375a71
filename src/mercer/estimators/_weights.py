"""Weights of points: what they must be, and a quantile that respects them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from .._points import length, take

__all__ = ["Positive", "check_weights", "some_points", "weighted_quantile"]


def check_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """Return one weight per point: finite, not negative, not all 0."""
    if hasattr(X, "shape"):
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
    else:
        w = np.asarray(sample_weight, dtype=float)
        if w.shape not in ((), (length(X),)):
            raise ValueError(f"sample_weight has shape {w.shape}, but there are {length(X)} points")
        w = np.broadcast_to(w, (length(X),))
        if not np.isfinite(w).all():
            raise ValueError("sample_weight contains NaN or infinity")
    if np.any(w < 0):
        raise ValueError(f"sample_weight must be non-negative, got a minimum of {w.min():g}")
    if not np.any(w > 0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return w


def some_points(X: Any, rows: np.ndarray, precomputed: bool) -> Any:
    """Return these points; of a matrix that the user computed, their rows and columns."""
    return take(X, rows)[:, rows] if precomputed else take(X, rows)


class Positive(NamedTuple):
    """The points of positive weight, among n: all others have no part in a fit."""

    n: int
    kept: np.ndarray
    weights: np.ndarray | None  # of the points kept; None if no weights are given

    @classmethod
    def of(cls, sample_weight: Any, X: Any) -> Self:
        n = length(X)
        if sample_weight is None:
            return cls(n, np.arange(n), None)
        w = check_weights(sample_weight, X)
        kept = np.flatnonzero(w)
        return cls(n, kept, w[kept])

    def points(self, X: Any, precomputed: bool = False) -> Any:
        """Return those of X."""
        return X if self.weights is None else some_points(X, self.kept, precomputed)

    def scatter(self, A: np.ndarray) -> np.ndarray:
        """Return rows for all points, 0 for those without weight."""
        if len(self.kept) == self.n:
            return A
        out = np.zeros((self.n, *A.shape[1:]))
        out[self.kept] = A
        return out

    @property
    def places(self) -> np.ndarray:
        """The place of each point among those kept, -1 if it is not."""
        place = np.full(self.n, -1)
        place[self.kept] = np.arange(len(self.kept))
        return place


def weighted_quantile(values: np.ndarray, q: float, weights: np.ndarray | None = None) -> float:
    """Return the smallest value that a share q of the weight does not exceed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators._weights import weighted_quantile
    >>> weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), 0.5)
    2.0
    >>> weighted_quantile(np.array([1.0, 2.0]), 0.5, np.array([1.0, 3.0]))
    2.0
    """
    order = np.argsort(values, kind="stable")
    w = np.ones(len(values)) if weights is None else weights
    share = np.cumsum(w[order]) / w.sum()
    return float(values[order][np.searchsorted(share, q - 1e-12)])
