"""The resources of a computation: memory budget, number of threads, progress output, random seed.

A function that needs several of them takes one `Resources`.  Public functions and estimators keep
the parameters `max_memory`, `n_threads` and `random_state`, and combine them with `Resources.of`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Self

import numpy as np

from ._arguments import MemoryLimit, ProgressCallback, RandomState, is_count, seeded_generator
from ._errors import MemoryBudgetError
from ._platform import has_threads

_REAL_TYPES = (int, float, np.integer, np.floating)
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {f"{u}i": 1024**i for i, u in enumerate("kmgt", start=1)}


@dataclass
class _Reservations:
    """Memory that is reserved in a `resource_scope` block, and functions that free it."""

    size: int = 0
    releases: list[Callable[[], None]] = field(default_factory=list)


@dataclass(frozen=True)
class Resources:
    """Memory budget, number of threads, progress output and random seed of a computation.

    `Resources.of` takes the values that are not given from the fit that is running.

    Attributes
    ----------
    max_memory : int, str or None
        Memory budget: a number of bytes, a string such as "2 GiB", or None for half of the
        physical memory.
    n_threads : int or None
        Number of threads; None means all processors.
    progress : callable or None
        Called with progress messages; None for no output.
    random_state : int, Generator, RandomState or None
        Random seed; None means a fixed seed.
    checkpoint : callable or None
        Called between the steps of a long loop, in any thread; it may raise an exception, which
        stops the computation.

    Examples
    --------
    >>> from mercer._core import Resources
    >>> resources = Resources.of(max_memory="1 MiB", n_threads=2)
    >>> resources.budget, resources.threads
    (1048576, 2)
    >>> resources.check(2**20, "a matrix")  # raises MemoryBudgetError for more bytes
    """

    max_memory: MemoryLimit = None
    n_threads: int | None = None
    progress: ProgressCallback | None = None
    random_state: RandomState = None
    checkpoint: Callable[[], None] | None = None
    _reservations: _Reservations | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        max_memory: MemoryLimit = None,
        n_threads: int | None = None,
        progress: ProgressCallback | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Return the given resources; None stands for the budget and threads of the running fit."""
        running = _running.get()
        return cls(
            running.max_memory if max_memory is None else max_memory,
            running.n_threads if n_threads is None else n_threads,
            progress,
            random_state,
            running.checkpoint,
            running._reservations,
        )

    def __getstate__(self) -> dict[str, object]:
        # Another process has its own output, and does not have the reserved memory.
        return {**self.__dict__, "progress": None, "checkpoint": None, "_reservations": None}

    @property
    def budget(self) -> int:
        """Number of bytes that may still be allocated; reserved bytes are subtracted."""
        reserved = 0 if self._reservations is None else self._reservations.size
        return max(1, _parse_bytes(self.max_memory) - reserved)

    def check(self, needed: int, what: str) -> None:
        """Raise a MemoryBudgetError if `needed` bytes exceed the budget; call before allocating."""
        if needed > (budget := self.budget):
            raise MemoryBudgetError(
                f"{what} needs {format_bytes(needed)}, but the budget is {format_bytes(budget)}; "
                f"choose another solver, request less, or increase max_memory"
            )

    def reserve(self, size: int, release: Callable[[], None] | None = None) -> None:
        """Subtract `size` bytes from all budgets until the enclosing `resource_scope` block ends.

        When the block ends, `release` is called to free the reserved memory.  Outside of such a
        block this method does nothing, and `release` is never called.
        """
        if self._reservations is not None:
            self._reservations.size += size
            if release is not None:
                self._reservations.releases.append(release)

    @property
    def threads(self) -> int:
        """Number of threads to use, after validation."""
        if self.n_threads is None:
            return thread_count()
        if not is_count(self.n_threads):
            raise ValueError(
                f"n_threads must be a positive integer or None, got {self.n_threads!r}"
            )
        return int(self.n_threads)

    @property
    def generator(self) -> np.random.Generator:
        """A new random number generator for `random_state`; see `seeded_generator`."""
        return seeded_generator(self.random_state)

    def log(self, text: str) -> None:
        """Report progress: a message, or a `ProgressStep`."""
        if self.progress is not None:
            self.progress(text)


_DEFAULTS = Resources()
# The resources of the fit that is running.  This is the only context variable of the package.  It
# exists because some code cannot receive them as an argument: compiled loops and kernels, which
# users call as k(X, Z), read the number of threads; numba reports compilations to a listener; the
# progress of an estimator inside another one, such as a pipeline, goes to the same output.  Fits
# that run at the same time in several threads of the user must not affect each other, so that a
# global variable would be wrong.  `run_in_threads` copies the context into its threads.
_running: ContextVar[Resources] = ContextVar("resources", default=_DEFAULTS)


def running_resources() -> Resources:
    """Return the resources of the running fit; without one, the defaults."""
    return _running.get()


@contextmanager
def entered(resources: Resources) -> Iterator[None]:
    """Make these the resources of the running fit inside the block."""
    token = _running.set(resources)
    try:
        yield
    finally:
        _running.reset(token)


@contextmanager
def resource_scope(
    max_memory: MemoryLimit = None, n_threads: int | None = None
) -> Iterator[Resources]:
    """Set what `max_memory=None` and `n_threads=None` mean inside the block.

    None keeps the value of the enclosing block.  Memory that is reserved inside the block is
    released at its end.  The setting does not apply to other threads of the user.

    Examples
    --------
    >>> from mercer._core import budget_in_bytes, check_threads, resource_scope
    >>> with resource_scope("1 MiB", n_threads=3):
    ...     budget_in_bytes(None), check_threads(None), check_threads(2)
    (1048576, 3, 2)
    """
    outer = _running.get()
    before = 0 if outer._reservations is None else outer._reservations.size
    reservations = _Reservations(before)
    inner = replace(Resources.of(max_memory, n_threads, outer.progress), _reservations=reservations)
    with entered(inner):
        try:
            yield inner
        finally:
            for release in reservations.releases:
                release()


# --- The same for functions that need only one of the resources.


def budget_in_bytes(max_memory: MemoryLimit) -> int:
    """Return the number of bytes that may still be allocated within the budget `max_memory`.

    `max_memory` is a number of bytes, a string such as "2 GiB", or None.  None means the budget of
    the running fit or, without one, half of the physical memory.  Bytes that have been reserved
    are subtracted.
    """
    return Resources.of(max_memory).budget


def check_budget(needed: int, max_memory: MemoryLimit, what: str) -> None:
    """Raise a MemoryBudgetError if `needed` bytes exceed the budget; call it before allocating."""
    Resources.of(max_memory).check(needed, what)


def reserve(size: int, release: Callable[[], None] | None = None) -> None:
    """Reserve memory until the running fit ends; see `Resources.reserve`."""
    _running.get().reserve(size, release)


def check_threads(n_threads: int | None) -> int:
    """Validate `n_threads` and return the number of threads to use.

    None means the number of the running fit or, without one, all processors.
    """
    return (_running.get() if n_threads is None else Resources(n_threads=n_threads)).threads


def thread_count() -> int:
    """Return the number of processors that this process may use; 1 if there are no threads."""
    if not has_threads():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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


def _parse_bytes(max_memory: MemoryLimit) -> int:
    if max_memory is None:
        return _half_of_physical_memory()
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
