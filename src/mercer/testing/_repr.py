"""The names that occur in the repr of a kernel, for parsing it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import Kernel

__all__ = ["parts", "vocabulary"]


def parts(kernel: Kernel) -> list[Any]:
    """Return the kernel and all its parameter values, including nested kernels and functions."""
    return [kernel, *kernel.get_params(deep=True).values()]


def vocabulary(kernel: Kernel) -> dict[str, Any]:
    """Return the classes and functions that the repr of a kernel may mention, by name."""
    names: dict[str, Any] = {"nan": np.nan}
    for part in parts(kernel):
        if callable(part) and hasattr(part, "__name__"):
            names[part.__name__] = part
        else:
            names[type(part).__name__] = type(part)
    return names
