"""Argument checks that many functions share."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_generator", "check_choice", "is_count", "seeded_generator"]


def check_choice(name: str, value: Any, *options: str) -> None:
    """Raise a ValueError unless the value is one of the options."""
    if value not in options:
        names = ", ".join(map(repr, options[:-1]))
        raise ValueError(f"{name} must be {names} or {options[-1]!r}, got {value!r}")


def is_count(value: Any, minimum: float = 1) -> bool:
    """Return True if the value is an integer (not a bool) and at least `minimum`."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(integer and value >= minimum)


# --- Conversion of a `random_state` argument into a random number generator.


def as_generator(random_state: Any) -> Any:
    """Return a random number generator; a Generator or RandomState is returned unchanged."""
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    return np.random.default_rng(random_state)


def seeded_generator(random_state: Any) -> np.random.Generator:
    """Return a `numpy.random.Generator` for a random_state; None means the fixed seed 0.

    If `random_state` is a RandomState, it draws the seed of the generator.
    """
    rng = as_generator(0 if random_state is None else random_state)
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(2**31))
    return rng
