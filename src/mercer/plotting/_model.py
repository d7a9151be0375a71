"""What the pictures ask of a fitted model, and how they refuse one that has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

__all__ = ["check_components", "component_label", "learned", "scores_of"]


def learned(model: Any, name: str) -> Any:
    """Return the attribute `name`, which a fitted model has."""
    try:
        return getattr(model, name)
    except AttributeError:
        raise NotFittedError(
            f"this {type(model).__name__} has no {name} - usually because it was not fitted yet, "
            f"or is another kind of model - try fit(X) first"
        ) from None


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Return the scores of X, or for None those of the training points."""
    if X is not None:
        check_is_fitted(
            model,
            msg="this %(name)s gives no scores - usually because it was not fitted yet - "
            "try fit(X) first",
        )
        return np.asarray(model.transform(X))
    if hasattr(model, "training_scores_"):  # of ours, which weights and whitening may have changed
        return np.asarray(model.training_scores_)
    return learned(model, "eigenvectors_") * np.sqrt(learned(model, "eigenvalues_"))


def check_components(components: Sequence[int], available: int) -> list[int]:
    """Return components, counted from 0, that exist."""
    for j in components:
        if isinstance(j, bool) or not isinstance(j, Integral) or not 0 <= j < available:
            raise ValueError(
                f"component {j!r} is asked for, but there are {available}, counted from 0 - "
                f"usually the model was fitted with a smaller n_components - "
                f"try components below {available}, or fit with more"
            )
    return [int(j) for j in components]


def component_label(j: int, ratios: np.ndarray | None) -> str:
    """Return "component 1 (34.2 %)"; people count from 1."""
    share = "" if ratios is None else f" ({100.0 * ratios[j]:.1f} %)"
    return f"component {j + 1}{share}"
