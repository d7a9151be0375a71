"""The memory budget: how many bytes a computation may allocate."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from ._errors import MemoryBudgetError

__all__ = ["budget_in_bytes", "check_budget", "format_bytes", "memory_scope", "reserve"]

_REAL_TYPES = (int, float, np.integer, np.floating)
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {f"{u}i": 1024**i for i, u in enumerate("kmgt", start=1)}


_reserved: ContextVar[int | None] = ContextVar("reserved", default=None)
# Functions that free the memory reserved in the innermost `memory_scope` block.
_releases: ContextVar[list[Callable[[], None]]] = ContextVar("releases")
# The budget for max_memory=None inside a `memory_scope` block; None outside of such blocks.
_scope_budget: ContextVar[Any] = ContextVar("scope_budget", default=None)


@contextmanager
def memory_scope(max_memory: Any = None) -> Iterator[None]:
    """Set the memory budget that `max_memory=None` means inside the block.

    Memory that is reserved inside the block with `reserve` is released at its end.
    """
    token = _reserved.set(_reserved.get() or 0)
    releases = _releases.set([])
    previous = _scope_budget.set(_scope_budget.get() if max_memory is None else max_memory)
    try:
        yield
    finally:
        for release in _releases.get():
            release()
        _scope_budget.reset(previous)
        _releases.reset(releases)
        _reserved.reset(token)


def reserve(size: int, release: Callable[[], None] | None = None) -> None:
    """Subtract `size` bytes from all budgets until the enclosing `memory_scope` block ends.

    When the block ends, `release` is called to free the reserved memory.  Outside of such a block
    this function does nothing, and `release` is never called.
    """
    reserved = _reserved.get()
    if reserved is not None:
        _reserved.set(reserved + size)
        if release is not None:
            _releases.get().append(release)


@cache
def _half_of_physical_memory() -> int:
    """Return half of the physical memory in bytes, the default budget.

    The default does not depend on how much memory is currently free.  Otherwise other processes
    could affect the choice of the algorithm, and with it the rounding errors of the result.
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 * 1024**3


def budget_in_bytes(max_memory: Any) -> int:
    """Return the number of bytes that may still be allocated within the budget `max_memory`.

    `max_memory` is a number of bytes, a string such as "2 GiB", or None.  None means the budget of
    the enclosing `memory_scope` block or, without one, half of the physical memory.  Bytes that
    have been reserved with `reserve` are subtracted.
    """
    return max(1, _parse_bytes(max_memory) - (_reserved.get() or 0))


def _parse_bytes(max_memory: Any) -> int:
    if max_memory is None:
        inherited = _scope_budget.get()
        return _half_of_physical_memory() if inherited is None else _parse_bytes(inherited)
    if isinstance(max_memory, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([kmgt]i?|)b?\s*", max_memory.lower())
        if match and (size := int(float(match[1]) * _UNITS[match[2]])):
            return size
    elif (
        isinstance(max_memory, _REAL_TYPES) and max_memory is not True and 1 <= max_memory < np.inf
    ):
        return int(max_memory)
    raise ValueError(
        f"max_memory must be a positive number of bytes, a string like '2 GiB', or None, "
        f"got {max_memory!r}"
    )


def check_budget(needed: int, max_memory: Any, what: str) -> None:
    """Raise a MemoryBudgetError if `needed` bytes exceed the budget; call it before allocating."""
    if needed > (budget := budget_in_bytes(max_memory)):
        raise MemoryBudgetError(
            f"{what} needs {format_bytes(needed)}, but the budget is {format_bytes(budget)}; "
            f"choose another solver, request less, or increase max_memory"
        )


def format_bytes(size: float) -> str:
    """Format a number of bytes in a readable unit.

    Examples
    --------
    >>> format_bytes(3_435_973_837)
    '3.2 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
