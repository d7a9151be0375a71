"""Cache the values of costly kernels if the cache fits the memory budget."""

from __future__ import annotations

from typing import Any

from .._runtime import budget_in_bytes
from ..kernels import Kernel, memoise, table_bytes

__all__ = ["memoise_if_affordable"]

_BUDGET_DIVISOR = 4  # tables may use 1/4 of the budget, because K and the solver need the rest


def memoise_if_affordable(kernel: Kernel, n: int, max_memory: Any = None) -> Kernel:
    """Return a kernel that caches its values on n points, if the cache fits the memory budget.

    Only parts of the kernel that are marked as costly are cached.  A kernel without such parts is
    returned unchanged.

    Examples
    --------
    >>> from mercer.gram import memoise_if_affordable
    >>> from mercer.kernels import RBF
    >>> memoise_if_affordable(RBF(), 100)
    RBF(length_scale=1.0)
    """
    size = table_bytes(kernel, n)
    if not size or _BUDGET_DIVISOR * size > budget_in_bytes(max_memory):
        return kernel
    return memoise(kernel, n)
