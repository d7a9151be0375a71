"""Fields of values: how they are compared, hashed and shown."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["key", "same", "show"]


def same(a: Any, b: Any) -> bool:
    """Tell whether two fields are equal, arrays by their entries."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def key(value: Any) -> Any:
    """Return something hashable that is equal for equal fields."""
    if isinstance(value, (list, tuple, np.ndarray)):
        flat = value.tolist() if isinstance(value, np.ndarray) else value
        return tuple(key(v) for v in flat) if isinstance(flat, (list, tuple)) else flat
    if isinstance(value, dict):
        return frozenset((name, key(v)) for name, v in value.items())
    if isinstance(value, slice):  # not hashable before Python 3.12
        return slice, value.start, value.stop, value.step
    return value


def show(value: Any) -> str:
    """Write a field so that it can be read back: arrays as lists, functions by name."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, tuple):
        return f"({', '.join(show(v) for v in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {show(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(show(v) for v in value)}]"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value)
