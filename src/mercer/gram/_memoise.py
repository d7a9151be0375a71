"""Costly kernels remember their values, where a table of them takes little of the budget."""

from __future__ import annotations

from typing import Any

from .._runtime import budget_in_bytes, reserve
from ..kernels import Kernel, memoise, table_bytes

__all__ = ["memoise_if_affordable"]

_SHARE = 4  # a table may take this part of the budget: K and what solvers work in need the rest


def memoise_if_affordable(kernel: Kernel, n: int, max_memory: Any = None) -> Kernel:
    """Return the kernel so that no pair of n points is evaluated twice, if there is room.

    What the table takes is reserved: budgets that are asked for later do not count on it.

    Examples
    --------
    >>> from mercer.gram import memoise_if_affordable
    >>> from mercer.kernels import RBF
    >>> memoise_if_affordable(RBF(), 100)
    RBF(length_scale=1.0)
    """
    size = table_bytes(kernel, n)
    if not size or _SHARE * size > budget_in_bytes(max_memory):
        return kernel
    reserve(size)
    return memoise(kernel, n)
