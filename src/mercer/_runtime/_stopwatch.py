"""A timer that excludes the time numba spends on compilation."""

from __future__ import annotations

import time

from ._jit import compile_seconds

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measure the seconds since its creation, excluding compilation by numba.

    Examples
    --------
    >>> from mercer._runtime import Stopwatch
    >>> Stopwatch().seconds < 1.0
    True
    """

    def __init__(self) -> None:
        self._start = time.perf_counter() - compile_seconds()

    @property
    def seconds(self) -> float:
        """Seconds since the stopwatch was created, excluding compilation."""
        return time.perf_counter() - compile_seconds() - self._start
