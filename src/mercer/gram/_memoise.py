"""Store the values of costly kernels where their tables fit into the memory budget."""

from __future__ import annotations

from typing import Any

from .._runtime import budget_in_bytes
from ..kernels import Kernel, memoise, table_bytes

__all__ = ["memoise_if_affordable"]

_FRACTION = 4  # tables take at most 1/4 of the budget: K and the solver need the rest


def memoise_if_affordable(kernel: Kernel, n: int, max_memory: Any = None) -> Kernel:
    """Return the kernel so that no pair of n points is evaluated twice, if the tables fit.

    Examples
    --------
    >>> from mercer.gram import memoise_if_affordable
    >>> from mercer.kernels import RBF
    >>> memoise_if_affordable(RBF(), 100)
    RBF(length_scale=1.0)
    """
    size = table_bytes(kernel, n)
    if not size or _FRACTION * size > budget_in_bytes(max_memory):
        return kernel
    return memoise(kernel, n)
