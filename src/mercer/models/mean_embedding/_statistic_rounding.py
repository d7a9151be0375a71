"""Bounds on the rounding error of statistics that are differences of large sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import Kernel

__all__ = ["clip_negative", "relative_rounding", "rounding_margin"]


def relative_rounding(dtype: Any) -> float:
    """Return a bound on the rounding error of a statistic, relative to the sums that cancel."""
    return max(1e-12, 100.0 * float(np.finfo(dtype).eps))


def rounding_margin(dtype: Any, sums: Any, entries: Any) -> Any:
    """Return a bound on the rounding error of a statistic.

    `sums` is the magnitude of the sums that cancel, and `entries` is the magnitude of the entries
    of K before centring.
    """
    eps = float(np.finfo(dtype).eps)
    return relative_rounding(dtype) * sums + 8.0 * eps * entries


def clip_negative(value: Any, margin: float, quantity: str, *kernels: Kernel) -> Any:
    """Set small negative values of a squared quantity to 0; `value` is a number or an array.

    `margin` is a bound on the rounding error.  A value below -100 * margin means that one of the
    kernels is not positive definite; a ValueError is then raised, which names the `quantity`.
    """
    if np.min(value) < -100.0 * margin:
        remedy = "a Mercer kernel" if len(kernels) == 1 else "Mercer kernels"
        raise ValueError(
            f"{quantity} is {np.min(value):.3g} < 0: {' or '.join(map(str, kernels))} is not "
            f"conditionally positive definite of order 1 on these points; choose {remedy}, or "
            f"Distance()"
        )
    return np.maximum(value, 0.0) if np.ndim(value) else max(float(value), 0.0)
