"""What all maps ask of a number of dimensions, and of places that are to be led back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

__all__ = ["check_places", "number_of_components"]


def number_of_components(given: int | None, X: np.ndarray) -> int:
    """Return the number of dimensions of a map of these vectors: not more than they have."""
    n, d = X.shape
    q = max(1, min(2, d - 1)) if given is None else int(given)
    if q > d:
        raise ValueError(f"n_components={q}, but X has only n_features={d}: ask for at most {d}")
    if np.all(X[0] == X):
        raise ValueError(
            f"all {n} rows of X are equal, and have no variance to be mapped; the usual cause is "
            f"columns that are constant"
        )
    return q


def check_places(model: Any, Z: Any, q: int) -> np.ndarray:
    """Return places in a map of q dimensions, checked."""
    Z = np.asarray(check_array(Z, dtype=np.float64, input_name="X", estimator=model))
    if Z.shape[1] != q:
        raise ValueError(f"places have {q} coordinates, but X has {Z.shape[1]} columns")
    return Z
