"""Immutable values based on frozen dataclasses: comparison, hashing and formatting."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable as Function
from functools import cache, singledispatch
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np

from .._core import explain_arguments
from ._kernel_arguments import kernel_argument_advice
from ._parameter_checks import Check

T = TypeVar("T")
FieldWriter = Function[[Any], str]  # formats the value of a field


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Class decorator that makes a kernel or basis class a frozen dataclass.

    Use it for every new kernel class with fields.  The annotated class variables become the
    parameters of the constructor; declare those that a search may change with `parameter`.
    Equality, hash and repr are inherited from the base class, which can also compare fields that
    are arrays.

    Returns
    -------
    type
        The same class, as a dataclass whose instances are immutable.

    See Also
    --------
    parameter : Declares a tunable parameter as a field.
    Kernel : The base class, and the methods that a new kernel implements.

    Examples
    --------
    >>> from mercer.kernels import RBF, node
    >>> @node
    ... class Named(RBF):
    ...     name: str = "mine"
    >>> Named(2.0), Named(2.0) == Named(2.0)
    (Named(length_scale=2.0, name='mine'), True)
    """
    frozen = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    return explain_arguments(frozen, kernel_argument_advice)


class Value:
    """Base class of immutable values, which are equal if their class and all fields are equal.

    The repr contains all digits of all fields, so that the value can be reconstructed from it; str
    is shorter.
    """

    def __post_init__(self) -> None:
        checks = _field_checks(type(self))  # type: ignore[arg-type]
        for name, check in checks.items():
            check(type(self).__name__, name, getattr(self, name))
        self._check()

    def _check(self) -> None:
        """Raise an error if values of the fields are invalid that their own checks accept."""
        return

    def _items(self) -> list[tuple[str, Any]]:
        """Return the (name, value) pairs of the fields, in order."""
        return [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(fields_equal(value, getattr(other, name)) for name, value in self._items())

    def __hash__(self) -> int:
        return hash((type(self), *(hashable_key(value) for _, value in self._items())))

    def __repr__(self) -> str:
        return format_expression(self, format_full).text

    def __str__(self) -> str:
        return format_expression(self, format_brief).text


@cache
def _field_checks(cls: type) -> dict[str, Check]:
    """Return {name: check} of the fields of a class that are declared with a check."""
    declared = {f.name: f.metadata.get("check") for f in dataclasses.fields(cls)}
    return {name: check for name, check in declared.items() if check is not None}


class FormattedExpression(NamedTuple):
    """An expression as text, with the precedence of its outermost operator."""

    text: str
    level: int = 3  # precedence: 0 sum, 1 product, 2 power, 3 never needs brackets

    def inside(self, level: int) -> str:
        """Return the text as an operand, in brackets if its precedence is below `level`."""
        return self.text if self.level >= level else f"({self.text})"


@singledispatch
def format_expression(value: Value, write: FieldWriter) -> FormattedExpression:
    """Return a value as text; `write` is the function that formats the fields.

    By default this is a call of the class.  Kernels that are written with operators register their
    own functions.
    """
    inside = [f"{name}={write(field)}" for name, field in value._items()]
    return FormattedExpression(f"{type(value).__name__}({', '.join(inside)})")


def format_call(value: Value, write: FieldWriter) -> FormattedExpression:
    """Return a value as a call of its class, also if it is usually written with operators."""
    return format_expression.registry[object](value, write)


def format_operand(value: Value, write: FieldWriter) -> FormattedExpression:
    """Return the text of a value that is an operand of an expression.

    If its class overrides `__repr__` or `__str__`, the text has the lowest precedence, because the
    actual one is unknown.
    """
    default = Value.__repr__ if write is format_full else Value.__str__
    method = getattr(type(value), default.__name__)
    if method is default:
        return format_expression(value, write)
    return FormattedExpression(write(value), 0)


def callable_name(function: Any) -> str:
    """Return the name of a function, or the repr of another callable object, for messages."""
    return getattr(function, "__name__", None) or repr(function)


def fields_equal(a: Any, b: Any) -> bool:
    """Return True if two field values are equal; arrays are compared entry by entry."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(fields_equal(v, b[k]) for k, v in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(fields_equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(hashable_key(a) == hashable_key(b)) if _has_parameters(a) else bool(a == b)


def hashable_key(value: Any) -> Any:
    """Return a hashable key of a field value; equal values have equal keys."""
    if isinstance(value, (list, tuple, np.ndarray)):
        flat = value.tolist() if isinstance(value, np.ndarray) else value
        return tuple(hashable_key(v) for v in flat) if isinstance(flat, (list, tuple)) else flat
    if isinstance(value, dict):
        return frozenset((name, hashable_key(v)) for name, v in value.items())
    if isinstance(value, slice):  # slices are not hashable before Python 3.12
        return slice, value.start, value.stop, value.step
    if _has_parameters(value):
        return type(value), hashable_key(value.get_params(deep=False))
    return value


def format_full(value: Any) -> str:
    """Format a field value with all digits; write arrays as lists, and functions as their names."""
    return _write(value, format_full) or repr(value)


def format_brief(value: Any) -> str:
    """Format a field value with six digits per number, and only the shape of long arrays."""
    if isinstance(value, dict) and len(value) > 12:
        return f"{{{len(value)} entries}}"
    if isinstance(value, (np.ndarray, list, tuple)) and math.prod(shape := _shape(value)) > 12:
        return f"[{' x '.join(map(str, shape))} entries]"
    if isinstance(value, (float, np.floating)):
        return repr(float(f"{value:.6g}"))
    return (
        str(value) if _has_parameters(value) else _write(value, format_brief) or format_full(value)
    )


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of an array or nested list, or (length,) of a ragged list."""
    try:
        return np.shape(value)
    except ValueError:  # a list that is ragged, or nested too deeply for an array
        return (len(value),)


def _write(value: Any, write: FieldWriter) -> str:
    """Return a composite value as text, with parts formatted by `write`; "" for a simple value."""
    if isinstance(value, Value):
        return repr(value) if write is format_full else str(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return repr(value.tolist()) if write is format_full else write(value.tolist())
    if isinstance(value, tuple):
        return f"({', '.join(map(write, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {write(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(write, value))}]"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    if _has_parameters(value):  # the repr of an estimator may omit parameters
        inside = (f"{name}={write(v)}" for name, v in value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(inside)})"
    return ""


def _has_parameters(value: Any) -> bool:
    """Return True for an object with `get_params`, such as an estimator of scikit-learn."""
    return hasattr(value, "get_params") and not isinstance(value, (Value, type))
