"""Differences between platforms: those that mercer supports, and those without threads.

Model files and integer codes assume little-endian byte order.  On processors with 32-bit addresses,
the indices of NumPy have 32 bits, so that numbers of pairs of points overflow; Pyodide, which runs
in a browser with at most 4 GiB of memory, is accepted nevertheless.
"""

from __future__ import annotations

import sys

# Platforms on which Python cannot start threads.
_WITHOUT_THREADS = ("emscripten", "wasi")


def check_platform() -> None:
    """Raise an ImportError on platforms that mercer does not support."""
    if sys.byteorder != "little":
        raise ImportError(
            "mercer does not support processors with big-endian byte order, such as s390x; use a "
            "little-endian system. Arrays with big-endian dtypes are accepted as input"
        )
    if sys.maxsize < 2**32 and has_threads():
        raise ImportError(
            "mercer does not support 32-bit builds of Python; install a 64-bit build of Python "
            "(or use Pyodide in a browser)"
        )


def has_threads() -> bool:
    """Return False if Python cannot start threads: in Pyodide and other WebAssembly builds."""
    return sys.platform not in _WITHOUT_THREADS
