"""The byte budget: how much memory a plan may take, and how to say so."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from .._errors import MemoryBudgetError

__all__ = ["budget_in_bytes", "check_budget", "in_words", "reserve", "reserving"]

_NUMBERS = (int, float, np.integer, np.floating)
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {f"{u}i": 1024**i for i, u in enumerate("kmgt", start=1)}


_reserved: ContextVar[int | None] = ContextVar("reserved", default=None)
_releases: ContextVar[list[Callable[[], None]]] = ContextVar("releases")  # of the innermost scope
_stated: ContextVar[Any] = ContextVar("stated", default=None)  # what None stands for


@contextmanager
def reserving(max_memory: Any = None) -> Iterator[None]:
    """Scope memory reservations to this block; inside it, None stands for this budget.

    At the end the reserved memory is released.
    """
    token = _reserved.set(_reserved.get() or 0)
    releases = _releases.set([])
    before = _stated.set(_stated.get() if max_memory is None else max_memory)
    try:
        yield
    finally:
        for release in _releases.get():
            release()
        _stated.reset(before)
        _releases.reset(releases)
        _reserved.reset(token)


def reserve(size: int, release: Callable[[], None] | None = None) -> None:
    """Subtract bytes from all budgets until the end of the enclosing `reserving` block.

    `release` is called at that end, and frees the memory that was reserved.  Outside of such a
    block nothing is reserved, and `release` is not called.
    """
    reserved = _reserved.get()
    if reserved is not None:
        _reserved.set(reserved + size)
        if release is not None:
            _releases.get().append(release)


@cache
def _half_of_memory() -> int:
    """Half of the physical memory: a property of the machine, not of the moment.

    What is free at the moment would make the choice of an algorithm, hence the last bits of a
    result, depend on what else is running.
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 * 1024**3


def budget_in_bytes(max_memory: Any) -> int:
    """Return the budget in bytes, from bytes, a text like "2 GiB", or None for half the memory.

    What has been reserved is taken off; and inside of a fit, None stands for its own budget.
    """
    return max(1, _in_bytes(max_memory) - (_reserved.get() or 0))


def _in_bytes(max_memory: Any) -> int:
    if max_memory is None:
        stated = _stated.get()
        return _half_of_memory() if stated is None else _in_bytes(stated)
    if isinstance(max_memory, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([kmgt]i?|)b?\s*", max_memory.lower())
        if match and (size := int(float(match[1]) * _UNITS[match[2]])):
            return size
    elif isinstance(max_memory, _NUMBERS) and max_memory is not True and 1 <= max_memory < np.inf:
        return int(max_memory)
    raise ValueError(
        f"max_memory must be a positive number of bytes, a text like '2 GiB', or None, "
        f"got {max_memory!r}"
    )


def check_budget(needed: int, max_memory: Any, what: str) -> None:
    """Refuse, before anything is allocated, what needs more bytes than the budget has."""
    if needed > (budget := budget_in_bytes(max_memory)):
        raise MemoryBudgetError(
            f"{what} needs {in_words(needed)}, but the budget is {in_words(budget)}; "
            f"choose another solver, ask for less, or raise max_memory"
        )


def in_words(size: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> in_words(3_435_973_837)
    '3.2 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
