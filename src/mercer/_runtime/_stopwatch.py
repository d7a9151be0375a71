"""Seconds since it was made, without those spent on compiling."""

from __future__ import annotations

import time

from ._jit import compile_seconds

__all__ = ["Stopwatch"]


class Stopwatch:
    """Seconds since it was made, without those spent on compiling.

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
        """Seconds since the start."""
        return time.perf_counter() - compile_seconds() - self._start
