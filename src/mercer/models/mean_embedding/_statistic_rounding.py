"""Bounds on the rounding error of statistics that are differences of large sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import Kernel

__all__ = ["clip_negative", "relative_rounding", "rounding_margin"]


def relative_rounding(dtype: Any) -> float:
    """Return the rounding error of a statistic, relative to the sums that cancel in it."""
    return max(1e-12, 100.0 * float(np.finfo(dtype).eps))


def rounding_margin(dtype: Any, sums: Any, entries: Any) -> Any:
    """Return the possible rounding error of a statistic.

    `sums` is the magnitude of the sums that cancel, `entries` that of the entries of K before K was
    centred.
    """
    eps = float(np.finfo(dtype).eps)
    return relative_rounding(dtype) * sums + 8.0 * eps * entries


def clip_negative(value: Any, margin: float, quantity: str, *kernels: Kernel) -> Any:
    """Clip rounding errors below 0 from squared quantities; `value` is a number or an array.

    A value below -100 margin is more than rounding: then one of the kernels is not positive
    definite, and a ValueError names `quantity`, the quantity that should have been a square.
    """
    if np.min(value) < -100.0 * margin:
        remedy = "a Mercer kernel" if len(kernels) == 1 else "Mercer kernels"
        raise ValueError(
            f"{quantity} is {np.min(value):.3g} < 0: {' or '.join(map(str, kernels))} is not "
            f"conditionally positive definite of order 1 on these points; choose {remedy}, or "
            f"Distance()"
        )
    return np.maximum(value, 0.0) if np.ndim(value) else max(float(value), 0.0)
