"""Values: frozen dataclasses, and how their fields are compared, hashed and shown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable as Function
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np

from .._runtime import slices

__all__ = [
    "SYMMETRIC",
    "Value",
    "Written",
    "asymmetry",
    "brief",
    "frozen_matrix",
    "frozen_parameter",
    "key",
    "name_of",
    "node",
    "same",
    "show",
    "written",
]

T = TypeVar("T")

SYMMETRIC = 1e-8  # a matrix and its transpose may differ by this part of the largest entry


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Make `cls` a node: a frozen dataclass whose equality and repr come from Value.

    Examples
    --------
    >>> from mercer.kernels import RBF, node
    >>> class Named(RBF):
    ...     name: str = "mine"
    >>> Named(2.0), Named(2.0) == Named(2.0)
    (Named(length_scale=2.0), True)
    """
    return dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)


class Value:
    """What is known by its class and its fields: equal for equal ones, and can be read back."""

    def _items(self) -> list[tuple[str, Any]]:
        """Return the fields in order, each with its name."""
        return [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(same(value, getattr(other, name)) for name, value in self._items())

    def __hash__(self) -> int:
        return hash((type(self), *(key(value) for _, value in self._items())))

    def __repr__(self) -> str:
        return self._written(show).text

    def __str__(self) -> str:
        return self._written(brief).text

    def _written(self, write: Function[[Any], str]) -> Written:
        """Return how this is written, its fields by `write`: `show` all of it, or `brief`ly."""
        inside = [f"{name}={write(value)}" for name, value in self._items()]
        return Written(f"{type(self).__name__}({', '.join(inside)})")


class Written(NamedTuple):
    """An expression as text, and the operation that is done last in it."""

    text: str
    level: int = 3  # 0: a sum, 1: a product, 2: a power, 3: what needs no brackets

    def inside(self, level: int) -> str:
        """Return the text as an operand: in brackets if it binds less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"


def written(value: Value, write: Function[[Any], str]) -> Written:
    """Return how a value is written as an operand; where it has words of its own, in brackets."""
    plain = Value.__repr__ if write is show else Value.__str__
    own = getattr(type(value), plain.__name__)
    return value._written(write) if own is plain else Written(write(value), 0)


def name_of(function: Any) -> str:
    """Return the name of a function for messages, or how an object that is called is written."""
    return getattr(function, "__name__", None) or repr(function)


def same(a: Any, b: Any) -> bool:
    """Tell whether two fields are equal, arrays by their entries."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(key(a) == key(b)) if _has_parameters(a) else bool(a == b)


def key(value: Any) -> Any:
    """Return something hashable that is equal for equal fields."""
    if isinstance(value, (list, tuple, np.ndarray)):
        flat = value.tolist() if isinstance(value, np.ndarray) else value
        return tuple(key(v) for v in flat) if isinstance(flat, (list, tuple)) else flat
    if isinstance(value, dict):
        return frozenset((name, key(v)) for name, v in value.items())
    if isinstance(value, slice):  # not hashable before Python 3.12
        return slice, value.start, value.stop, value.step
    if _has_parameters(value):
        return type(value), key(value.get_params(deep=False))
    return value


def show(value: Any) -> str:
    """Write a field so that it can be read back: arrays as lists, functions by name."""
    return _write(value, show) or repr(value)


def brief(value: Any) -> str:
    """Write a field for people: six digits of a number, a long array by its shape."""
    if isinstance(value, dict) and len(value) > 12:
        return f"{{{len(value)} entries}}"
    if isinstance(value, (np.ndarray, list, tuple)) and math.prod(shape := _shape(value)) > 12:
        return f"[{' x '.join(map(str, shape))} entries]"
    if isinstance(value, (float, np.floating)):
        return repr(float(f"{value:.6g}"))
    return str(value) if _has_parameters(value) else _write(value, brief) or show(value)


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:  # ragged, or too deep for an array
        return (len(value),)


def _write(value: Any, write: Function[[Any], str]) -> str:
    """Write a value that has parts, those by `write`; "" for others."""
    if isinstance(value, Value):
        return repr(value) if write is show else str(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return repr(value.tolist()) if write is show else write(value.tolist())
    if isinstance(value, tuple):
        return f"({', '.join(map(write, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {write(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(write, value))}]"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    if _has_parameters(value):  # with all digits, and with what its own repr leaves out
        inside = (f"{name}={write(v)}" for name, v in value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(inside)})"
    return ""


def _has_parameters(value: Any) -> bool:
    """Tell whether a value is an object of scikit-learn, known by its class and its parameters."""
    return hasattr(value, "get_params") and not isinstance(value, (Value, type))


def frozen_parameter(value: Any) -> Any:
    """Return numbers in a form that nobody else can change: one number, or a tuple of them."""
    if not (isinstance(value, (list, tuple)) or hasattr(value, "__array__")):
        return value
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return value  # not numbers: the check of the kernel says so
    if array.ndim > 1:
        return value
    return array.item() if array.ndim == 0 else tuple(array.tolist())


def asymmetry(A: np.ndarray) -> tuple[float, float]:
    """Return the largest |A_ij - A_ji| and the largest |A_ij|, without a second matrix."""
    parts = slices(len(A), 512)
    gap = max((float(np.abs(A[rows] - A[:, rows].T).max()) for rows in parts), default=0.0)
    return gap, max((float(np.abs(A[rows]).max()) for rows in parts), default=0.0)


def lowest_eigenvalue(A: np.ndarray) -> float:
    """Return the smallest eigenvalue of a symmetric matrix; 0 if rounding may make it negative."""
    values = np.linalg.eigvalsh(np.asarray(A, dtype=float))
    unit = np.finfo(A.dtype).eps
    return 0.0 if 0 > values[0] >= -16 * len(A) * unit * values[-1] else float(values[0])


def frozen_matrix(value: Any, owner: str, name: str) -> np.ndarray:
    """Return a symmetric matrix of finite numbers as an array that cannot be written to."""
    if hasattr(value, "tocsr"):
        raise TypeError(f"{owner}: {name} must be a dense array, got a sparse one; use .toarray()")
    A = np.asarray(value)
    A = A if A.dtype in (np.float32, np.float64) else A.astype(float)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.size:
        raise ValueError(f"{owner}: {name} must be square, got shape {A.shape}")
    if not np.all(np.isfinite(A)):
        raise ValueError(f"{owner}: {name} has entries that are not finite")
    gap, largest = asymmetry(A)
    if gap > SYMMETRIC * largest:
        raise ValueError(
            f"{owner}: {name} must be symmetric, but it and its transpose differ by {gap:.3g}; "
            f"symmetrise it as (A + A.T) / 2"
        )
    if A.flags.writeable:
        A = A.copy()
        A.setflags(write=False)
    return A
