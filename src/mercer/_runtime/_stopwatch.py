"""Seconds since it was made."""

from __future__ import annotations

import time

__all__ = ["Stopwatch"]


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start
