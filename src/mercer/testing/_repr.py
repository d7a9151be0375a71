"""What the repr of a kernel mentions by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import Kernel

__all__ = ["parts", "vocabulary"]


def parts(kernel: Kernel) -> list[Any]:
    """Return the kernel, the kernels and functions inside it, and the values of all fields."""
    return [kernel, *kernel.get_params(deep=True).values()]


def vocabulary(kernel: Kernel) -> dict[str, Any]:
    """Return what the repr may mention by name: its classes and its functions."""
    names: dict[str, Any] = {"nan": np.nan}
    for part in parts(kernel):
        if callable(part) and hasattr(part, "__name__"):
            names[part.__name__] = part
        else:
            names[type(part).__name__] = type(part)
    return names
