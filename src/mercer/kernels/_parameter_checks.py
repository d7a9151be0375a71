"""Checks of the fields of kernels, and conversion of their values to an immutable form.

A check is a function of the name of the kernel class, the name of the field, and its value.  It
raises an error if the value is invalid.  `parameter` and `option` attach a check to a field:

    decay: float = parameter(0.1, positive)
    kind: str = option("exponential", one_of("exponential", "geometric"))
"""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core import is_count, slices

Check = Function[[str, str, Any], None]

# A matrix counts as symmetric if it differs from its transpose by at most this factor times its
# largest entry.
SYMMETRY_TOLERANCE = 1e-8


def require(
    is_valid: Function[[Any], bool], expected: str, error: type[Exception] = ValueError
) -> Check:
    """Return the check that `is_valid(value)` is True; `expected` describes valid values."""

    def check(owner: str, name: str, value: Any) -> None:
        if not is_valid(value):
            raise error(f"{owner}: {name} must be {expected}, got {value!r}")

    return check


def is_bool(value: object) -> bool:
    """Return True for a bool of Python or NumPy."""
    return isinstance(value, (bool, np.bool_))


def one_of(*choices: Any) -> Check:
    """Return the check that a value is one of these choices."""
    return require(lambda value: value in choices, f"one of {choices}")


flag = require(is_bool, "True or False", TypeError)
boolean = require(is_bool, "a bool", TypeError)
positive_integer = require(is_count, "a positive integer")
optional_dict = require(lambda value: value is None or isinstance(value, dict), "a dict", TypeError)


def count(least: int = 1) -> Check:
    """Return the check that a value is an integer, and at least `least`."""

    def check(owner: str, name: str, value: Any) -> None:
        if is_bool(value) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{owner}: {name} must be an integer, got {value!r}")
        if value < least:
            raise ValueError(f"{owner}: {name} must be at least {least}, got {value!r}")

    return check


def positive(
    owner: str, name: str, value: Any, *, zero: bool = False, vector: bool = False
) -> None:
    """Raise an error if a value is not a positive finite number.

    With `zero`, 0 is also allowed; with `vector`, an array of such numbers is also allowed.
    """
    if type(value) is float and 0.0 < value < math.inf:
        return
    not_real = is_bool(value) or np.iscomplexobj(value)
    if not_real or (np.ndim(value) > 0 and not vector):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}")
    try:
        lowest = float(np.min(value))
        finite = bool(np.all(np.isfinite(value)))
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}") from None
    if math.isnan(lowest) or not finite or lowest < 0 or (lowest == 0 and not zero):
        sign = "non-negative" if zero else "positive"
        raise ValueError(f"{owner}: {name} must be {sign} and finite, got {value!r}")


nonnegative = partial(positive, zero=True)


# ---------------------------------------------------------------------- immutable values


def frozen_parameter(value: Any) -> Any:
    """Return numbers in an immutable form: a float, or a tuple of floats for a 1-D array."""
    if not (isinstance(value, (list, tuple)) or hasattr(value, "__array__")):
        return value
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return value  # not numbers; the check of the field will raise an error
    if array.ndim > 1:
        return value
    return array.item() if array.ndim == 0 else tuple(array.tolist())


def asymmetry(A: np.ndarray) -> tuple[float, float]:
    """Return the largest |A_ij - A_ji| and the largest |A_ij|, without a copy of the matrix."""
    parts = slices(len(A), 512)  # blocks of rows, to limit temporary memory
    gap = max((float(np.abs(A[rows] - A[:, rows].T).max()) for rows in parts), default=0.0)
    return gap, max((float(np.abs(A[rows]).max()) for rows in parts), default=0.0)


def lowest_eigenvalue(A: np.ndarray) -> float:
    """Return the smallest eigenvalue of a symmetric matrix.

    If it is negative, but within rounding error of 0, it is returned as 0.
    """
    values = np.linalg.eigvalsh(np.asarray(A, dtype=float))
    eps = np.finfo(A.dtype).eps
    return 0.0 if 0 > values[0] >= -16 * len(A) * eps * values[-1] else float(values[0])


def frozen_matrix(value: ArrayLike, owner: str, name: str) -> np.ndarray:
    """Return a symmetric matrix of finite numbers as a read-only array.

    `owner` (the kernel) and `name` (the parameter) appear in the error messages.
    """
    if hasattr(value, "tocsr"):
        raise TypeError(
            f"{owner}: {name} must be a dense array, got a sparse one; convert it with .toarray()"
        )
    A = np.asarray(value)
    A = A if A.dtype in (np.float32, np.float64) else A.astype(float)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.size:
        raise ValueError(f"{owner}: {name} must be square, got shape {A.shape}")
    if not np.all(np.isfinite(A)):
        raise ValueError(f"{owner}: {name} contains NaN or infinite entries")
    gap, largest = asymmetry(A)
    if gap > SYMMETRY_TOLERANCE * largest:
        raise ValueError(
            f"{owner}: {name} must be symmetric, but differs from its transpose by {gap:.3g}; "
            f"symmetrise it as (A + A.T) / 2"
        )
    if A.flags.writeable:
        A = A.copy()
        A.setflags(write=False)
    return A
