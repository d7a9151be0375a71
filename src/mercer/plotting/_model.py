"""Check that a model has the fitted attributes and components that a plot needs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from sklearn.exceptions import NotFittedError

__all__ = ["check_components", "require_attribute"]


def require_attribute(model: Any, name: str) -> Any:
    """Return a fitted attribute of a model; raise a NotFittedError if it does not exist."""
    try:
        return getattr(model, name)
    except AttributeError:
        raise NotFittedError(
            f"this {type(model).__name__} has no {name} - usually because it was not fitted yet, "
            f"or is another kind of model - try fit(X) first"
        ) from None


def check_components(components: Sequence[int], available: int) -> list[int]:
    """Return components as a list of int; raise a ValueError if one does not exist."""
    for j in components:
        if isinstance(j, bool) or not isinstance(j, Integral) or not 0 <= j < available:
            raise ValueError(
                f"component {j!r} does not exist, because there are {available}, counted from 0 - "
                f"usually the model was fitted with a smaller n_components - "
                f"try components below {available}, or fit with more"
            )
    return [int(j) for j in components]
