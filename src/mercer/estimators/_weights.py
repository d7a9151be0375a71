"""Weights of points: what they must be, and a quantile that respects them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from .._points import length

__all__ = ["check_weights", "weighted_quantile"]


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
