"""What all maps ask of a number of dimensions, and of places that are to be led back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

__all__ = ["check_places", "number_of_components", "refuse_equal"]


def number_of_components(given: int | None, d: int) -> int:
    """Return the number of dimensions of a map of vectors: not more than they have."""
    q = max(1, min(2, d - 1)) if given is None else int(given)
    if q > d:
        raise ValueError(f"n_components={q}, but X has only n_features={d}: ask for at most {d}")
    return q


def refuse_equal(n: int, equal: bool) -> None:
    """Refuse points of which no map can be made."""
    if equal:
        raise ValueError(
            f"all {n} rows of X are equal, and there is nothing to be mapped; the usual cause is "
            f"columns that are constant"
        )


def check_places(model: Any, Z: Any, q: int) -> np.ndarray:
    """Return places in a map of q dimensions, checked."""
    Z = np.asarray(check_array(Z, dtype=np.float64, input_name="X", estimator=model))
    if Z.shape[1] != q:
        raise ValueError(f"places have {q} coordinates, but X has {Z.shape[1]} columns")
    return Z
