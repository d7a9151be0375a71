"""What travels to a view: one value, as JSON and after it the bytes of its arrays.

    size of the JSON (4 bytes, and 4 of zeros) | JSON | zeros up to a multiple of 8 | arrays

In the JSON an array is ``{"$": [type, offset, count]}``; each begins at a multiple of 8.  The same
bytes go to a page over a socket, into a notebook, and into a saved page.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

__all__ = ["column_on_wire", "large_integers", "pack"]

_DIGITS = 9  # after the point, up to which numbers are looked at as decimals
_SOME = 1000  # numbers that are looked at before all are


def pack(value: Any) -> bytes:
    r"""Return the bytes of a value made of dicts, lists, texts, numbers and arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.explorer._wire import pack
    >>> pack({"x": np.array([1, 2], dtype="u1")})[8:].rstrip(bytes(1))
    b'{"x":{"$":["u1",0,2]}}  \x01\x02'
    """
    parts: list[bytes] = []
    size = 0

    def plain(one: Any) -> Any:
        nonlocal size
        if isinstance(one, np.ndarray):
            found = np.ascontiguousarray(one, dtype=one.dtype.newbyteorder("<"))
            place, bytes_ = size, found.tobytes()
            filled = bytes_ + bytes(-len(bytes_) % 8)
            parts.append(filled)
            size += len(filled)
            return {"$": [found.dtype.str[1:], place, found.size]}
        if isinstance(one, dict):
            return {str(key): plain(inner) for key, inner in one.items()}
        if isinstance(one, (list, tuple)):
            return [plain(inner) for inner in one]
        if isinstance(one, np.generic):
            one = one.item()
        return None if isinstance(one, float) and not math.isfinite(one) else one

    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<II", len(text), 0), text, *parts])


def column_on_wire(name: str, values: Any, *, derived: bool = False) -> dict[str, Any]:
    """Return a column for `pack`: texts by codes, numbers without loss in few bytes.

    Integers that float64, the number type of the browser, cannot hold are sent as text.  Decimals
    of few digits are sent as integers with a power of ten, by which the browser divides to get the
    same float64 again.
    """
    told: dict[str, Any] = {"name": name, "derived": derived}
    large = large_integers(values)
    if large is not None:
        values = np.array([None if cell is None else str(cell) for cell in large], dtype=object)
    if not isinstance(values, np.ndarray) or values.dtype.kind in "OUS":
        texts = ["" if value is None else str(value) for value in _cells(values)]
        known, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
        absent = np.array([value is None for value in _cells(values)])
        codes, missing = _smallest(codes.astype(np.int64), absent)
        return told | {"type": "text", "values": known.tolist(), "data": codes, "missing": missing}
    numbers = values.astype(np.float64)
    absent = np.isnan(numbers)
    for digits in range(_DIGITS + 1):
        over = 10.0**digits
        if not _whole(numbers[:_SOME], over)[1]:
            continue
        whole, exact = _whole(numbers, over)
        if exact:
            data, missing = _smallest(whole.astype(np.int64), absent)
            return told | {"type": "numbers", "data": data, "over": over, "missing": missing}
    with np.errstate(over="ignore"):
        short = numbers.astype(np.float32)
    data = short if np.array_equal(short, numbers, equal_nan=True) else numbers
    return told | {"type": "numbers", "data": data}


def large_integers(values: Any) -> list[int | None] | None:
    """Return a column as Python integers if float64 cannot hold all of them, else None.

    `values` is an array, or a column of a data frame; missing values become None.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iu" or not len(values):
            return None
        largest = max(-int(values.min()), int(values.max()))
        return values.tolist() if largest > 2**53 else None
    if not str(getattr(values, "dtype", "")).lower().startswith(("int", "uint")):
        return None
    cells = [int(cell) if isinstance(cell, (int, np.integer)) else None for cell in values]
    return cells if any(cell is not None and abs(cell) > 2**53 for cell in cells) else None


def _whole(numbers: np.ndarray, over: float) -> tuple[np.ndarray, bool]:
    """Return numbers times a power of ten, rounded, and whether these tell them without loss."""
    absent = np.isnan(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.rint(np.where(absent, 0.0, numbers) * over)
        fits = np.abs(whole).max(initial=0) < 2**31
        return whole, bool(fits and np.all(absent | (whole / over == numbers)))


def _cells(values: Any) -> list[Any]:
    """Return the cells of a column of texts; what is no text, a graph say, by its repr."""
    if isinstance(values, np.ndarray):
        return values.tolist()
    return [repr(one) for one in values]


def _smallest(values: np.ndarray, absent: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Return integers in the fewest bytes, and the one that stands for what is missing."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in ("u1", "i1", "u2", "i2", "i4", "u4"):
        room = np.iinfo(kind)
        top = room.max - bool(absent.any())
        if room.min <= low and high <= top:
            found = values.astype(kind)
            if not absent.any():
                return found, None
            found[absent] = room.max
            return found, int(room.max)
    raise OverflowError(f"integers from {low} to {high} do not fit 32 bits")
