"""Seconds and scratch memory of one call, seen from inside its own process.

    scratch  =  peak resident memory during the call  −  resident memory before  −  result

Linux keeps the peak (VmHWM) and forgets it on request, so nothing is sampled and no short-lived
array is missed.  Where that is not offered, scratch is None rather than a guess.
"""

from __future__ import annotations

import ctypes
import gc
import time
from contextlib import suppress

import numpy as np

from ._suite import Call

SHORTEST = 0.05  # seconds; a shorter call is repeated until they are filled


def _resident(field: str) -> int:
    with open("/proc/self/status") as status:
        return 1024 * int(next(line.split()[1] for line in status if line.startswith(field)))


def _forget_peak() -> bool:
    with suppress(OSError), open("/proc/self/clear_refs", "w") as references:
        references.write("5")
        return True
    return False


def settle() -> None:
    """Give freed memory back, or a call that finds it again would seem to need none."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # not the GNU C library
        ctypes.CDLL(None).malloc_trim(0)


def measure(call: Call) -> tuple[np.ndarray | None, float, int | None]:
    """Return the result, the seconds of one call, and its scratch memory in bytes."""
    known = _forget_peak()
    before = _resident("VmRSS") if known else 0
    calls, elapsed, start = 0, 0.0, time.perf_counter()
    while elapsed < SHORTEST:
        result = None  # two results must not be alive at once
        result = call()
        calls, elapsed = calls + 1, time.perf_counter() - start
    held = 0 if result is None else result.nbytes
    scratch = max(0, _resident("VmHWM") - before - held) if known else None
    return result, elapsed / calls, scratch
