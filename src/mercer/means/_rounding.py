"""What rounding may leave of a statistic in which large sums cancel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import Kernel

__all__ = ["margin_of", "not_negative", "rounding"]


def rounding(dtype: Any) -> float:
    """Return the part of the sums that cancel in a statistic which rounding may have left."""
    return max(1e-12, 100.0 * float(np.finfo(dtype).eps))


def margin_of(dtype: Any, sums: Any, entries: Any) -> Any:
    """Return what rounding may have left of sums of this size over entries of K of that size."""
    eps = float(np.finfo(dtype).eps)
    return rounding(dtype) * sums + 8.0 * eps * entries


def not_negative(value: Any, margin: float, square: str, *kernels: Kernel) -> Any:
    """Return a number, or an array of them, that `square` says is a square, without rounding < 0.

    Far below 0 it is no square: one of the kernels is not positive definite enough.
    """
    if np.min(value) < -100.0 * margin:
        remedy = "a Mercer kernel" if len(kernels) == 1 else "Mercer kernels"
        raise ValueError(
            f"{square} is {np.min(value):.3g} < 0: {' or '.join(map(str, kernels))} is not "
            f"conditionally positive definite of order 1 on these points; choose {remedy}, or "
            f"Distance()"
        )
    return np.maximum(value, 0.0) if np.ndim(value) else max(float(value), 0.0)
