"""Arguments that several functions check alike."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_choice", "is_count"]


def check_choice(name: str, value: Any, *options: str) -> None:
    """Refuse a value that is none of the options."""
    if value not in options:
        names = ", ".join(map(repr, options[:-1]))
        raise ValueError(f"{name} must be {names} or {options[-1]!r}, got {value!r}")


def is_count(value: Any, least: float = 1) -> bool:
    """Tell whether a value is an integer of at least `least`."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(integer and value >= least)
