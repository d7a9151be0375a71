"""Measure the time and the scratch memory of one call, from inside its own process.

    scratch  =  peak resident memory during the call  −  resident memory before  −  result

Linux records the peak (VmHWM) and can reset it, so no sampling is needed and short-lived arrays
are counted.  On other systems, scratch is None.
"""

from __future__ import annotations

import ctypes
import gc
import time
from contextlib import suppress

import numpy as np

from ._suite import Call

MIN_TIMED_SECONDS = 0.05  # shorter calls are repeated until they take this long in total


def _memory_status(field: str) -> int:
    """Return a field of /proc/self/status, such as "VmRSS" or "VmHWM", in bytes."""
    with open("/proc/self/status") as status:
        return 1024 * int(next(line.split()[1] for line in status if line.startswith(field)))


def _reset_peak_memory() -> bool:
    """Reset the recorded peak memory (VmHWM); return False if the system does not support it."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as references:
        references.write("5")
        return True
    return False


def release_freed_memory() -> None:
    """Return freed memory to the system.

    Otherwise a call that reuses memory freed by an earlier one would seem to need no memory.
    """
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # only the GNU C library has it
        ctypes.CDLL(None).malloc_trim(0)


def peak_memory(call: Call) -> int | None:
    """Return the peak resident memory of one call, relative to the memory before, in bytes."""
    if not _reset_peak_memory():
        return None
    before = _memory_status("VmRSS")
    call()
    return max(0, _memory_status("VmHWM") - before)


def measure(call: Call) -> tuple[np.ndarray | None, float, int | None]:
    """Return the result, the seconds of one call, and its scratch memory in bytes."""
    peak_available = _reset_peak_memory()
    before = _memory_status("VmRSS") if peak_available else 0
    calls, elapsed, start = 0, 0.0, time.perf_counter()
    while elapsed < MIN_TIMED_SECONDS:
        result = None  # free the previous result, so that two never exist at the same time
        result = call()
        calls, elapsed = calls + 1, time.perf_counter() - start
    result_bytes = 0 if result is None else result.nbytes
    scratch = max(0, _memory_status("VmHWM") - before - result_bytes) if peak_available else None
    return result, elapsed / calls, scratch
