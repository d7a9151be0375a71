"""Argument checks that many functions share."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_choice", "is_count"]


def check_choice(name: str, value: Any, *options: str) -> None:
    """Raise a ValueError unless the value is one of the options."""
    if value not in options:
        names = ", ".join(map(repr, options[:-1]))
        raise ValueError(f"{name} must be {names} or {options[-1]!r}, got {value!r}")


def is_count(value: Any, minimum: float = 1) -> bool:
    """Return True if the value is an integer (not a bool) and at least `minimum`."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(integer and value >= minimum)
