"""Run a function that is written for numba as Python code, with the arithmetic of numba.

Without numba, compiled loops run in the interpreter.  Compiled code and Python differ in their
arithmetic, and the functions here remove these differences:

* Floating-point literals, constants and arguments become `numpy.float64`.  A division by zero is
  then inf or NaN instead of an exception, and a sum of a literal and a float32 is a float64.
* NumPy's warnings are suppressed, because integers wrap around and floats overflow in compiled code
  without warnings.
* Results are Python numbers.

Integers of less than 64 bits are the remaining difference: numba computes with 64 bits, and NumPy
does not.  Loops convert such numbers explicitly where a sum or product could overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np


def own_copy(function: Callable[..., Any]) -> FunctionType:
    """Return a copy of a function with separate global names and a separate closure.

    The copy has the same code, name and file.
    """
    cells = function.__closure__
    if cells is not None:
        cells = tuple(CellType(cell.cell_contents) for cell in cells)
    copy = FunctionType(
        *(function.__code__, {**function.__globals__}, function.__name__),
        *(function.__defaults__, cells),
    )
    copy.__kwdefaults__, copy.__doc__ = function.__kwdefaults__, function.__doc__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def substitute_names(copy: FunctionType, substitute: Callable[[Any], Any]) -> None:
    """Replace the values of the global names and closure variables that a copy uses.

    This is a separate step, because functions can call themselves: the copy must exist before names
    are replaced by it.

    Parameters
    ----------
    copy : function
        A result of `own_copy` or `interpreted_copy`, which is changed.
    substitute : callable
        Function that returns the new value for the value of a global name or closure variable.

    Examples
    --------
    >>> from mercer._core._interpreted import own_copy, substitute_names
    >>> rate = 2.0
    >>> def scaled(x):
    ...     return rate * x
    >>> copy = own_copy(scaled)
    >>> substitute_names(copy, lambda value: 10.0 * value)
    >>> copy(1.0), scaled(1.0)
    (20.0, 2.0)
    """
    scope = copy.__globals__
    for name in _names(copy.__code__) & scope.keys():
        scope[name] = substitute(scope[name])
    for cell in copy.__closure__ or ():
        cell.cell_contents = substitute(cell.cell_contents)


def interpreted_copy(function: Callable[..., Any]) -> FunctionType:
    """Return a copy of a function that computes in Python as the compiled function does.

    It is complete when `substitute_names` has converted the global numbers with `as_double`.
    """
    copy = own_copy(function)
    copy.__code__ = _with_double_constants(copy.__code__)
    copy.__defaults__ = as_double(copy.__defaults__)
    return copy


def as_entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an interpreted function that converts its arguments, and suppresses warnings."""

    @wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return _as_builtin(function(*map(as_double, args)))

    return run


def _names(code: CodeType) -> set[str]:
    """Return the global names and attributes in a function, and in the functions inside it."""
    inner = (_names(value) for value in code.co_consts if isinstance(value, CodeType))
    return set(code.co_names).union(*inner)


def _with_double_constants(code: CodeType) -> CodeType:
    """Convert the floating-point literals in a function, and in the functions inside it."""
    constants = (
        _with_double_constants(value) if isinstance(value, CodeType) else as_double(value)
        for value in code.co_consts
    )
    return code.replace(co_consts=tuple(constants))


def as_double(value: Any) -> Any:
    """Convert Python floats, also those in tuples, to `numpy.float64`."""
    if type(value) is float:
        return np.float64(value)
    if isinstance(value, tuple):
        items = map(as_double, value)
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    return value


def _as_builtin(value: Any) -> Any:
    """Convert NumPy numbers, also those in tuples, to the Python numbers that numba returns."""
    if isinstance(value, tuple):
        return tuple(map(_as_builtin, value))
    return value.item() if isinstance(value, np.generic) else value
