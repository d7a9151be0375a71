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
from types import CellType, FunctionType
from typing import Any

import numpy as np


def with_substitutes(
    function: Callable[..., Any], substitute: Callable[[Any], Any]
) -> FunctionType:
    """Return a copy of a function in which the global names that it uses have other values.

    Parameters
    ----------
    function : callable
        A Python function.
    substitute : callable
        Function that returns the new value for the value of a global name or closure variable.

    Returns
    -------
    function
        The copy.  It has the same code, name and file.

    Examples
    --------
    >>> import math
    >>> from mercer._core._interpreted import with_substitutes
    >>> def root(x):
    ...     return math.sqrt(x)
    >>> with_substitutes(root, lambda value: abs if callable(value) else value)(4.0)
    2.0
    """
    code, scope = function.__code__, function.__globals__
    replaced = {name: substitute(scope[name]) for name in code.co_names if name in scope}
    cells = function.__closure__
    if cells is not None:
        cells = tuple(CellType(substitute(cell.cell_contents)) for cell in cells)
    copy = FunctionType(
        code, {**scope, **replaced}, function.__name__, function.__defaults__, cells
    )
    copy.__kwdefaults__, copy.__doc__ = function.__kwdefaults__, function.__doc__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def as_interpreted(function: Callable[..., Any], substitute: Callable[[Any], Any]) -> FunctionType:
    """Return a copy of a function that computes in Python as the compiled function does.

    `substitute` is that of `with_substitutes`; it is called before constants are converted.
    """
    copy = with_substitutes(function, lambda value: _as_double(substitute(value)))
    constants = tuple(map(_as_double, copy.__code__.co_consts))
    copy.__code__ = copy.__code__.replace(co_consts=constants)
    return copy


def as_entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an interpreted function that converts its arguments, and suppresses warnings."""

    @wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return _as_builtin(function(*map(_as_double, args)))

    return run


def _as_double(value: Any) -> Any:
    """Convert Python floats, also those in tuples, to `numpy.float64`."""
    if type(value) is float:
        return np.float64(value)
    if isinstance(value, tuple):
        items = map(_as_double, value)
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    return value


def _as_builtin(value: Any) -> Any:
    """Convert NumPy numbers, also those in tuples, to the Python numbers that numba returns."""
    if isinstance(value, tuple):
        return tuple(map(_as_builtin, value))
    return value.item() if isinstance(value, np.generic) else value
