"""Integer codes of categories, for one or several columns of values.

A category is a string, an integer, a bool, another number, or a tuple of these.  The same category
has the same 64-bit code in all collections of points, so that no list of levels has to be learned
from the training points.  All missing values (None, NaN, pandas.NA, null) have one common code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import Points, as_numpy, get_column, is_table, reject_masked
from .._sparse_features import hash_codes, splitmix64

_MISSING = hash_codes([None], "", "")[0]  # the code of all missing values
_MAX_EXACT_FLOAT = 2.0**53  # floats up to this size are converted to integers without rounding


def category_codes(X: Points, owner: str) -> np.ndarray:
    """Return the codes of all values in X, an array of shape (n, d) of 64-bit integers.

    X is a data frame, a 2-D array or a list of rows, with d columns of categories.  A 1-D array, a
    column of a data frame or a list of values is one column.  `owner` names the kernel in messages.
    """
    columns, names = _split_columns(X, owner)
    n = len(columns[0]) if columns else 0
    codes = np.empty((n, len(columns)), dtype=np.uint64)
    for j, (values, name) in enumerate(zip(columns, names, strict=True)):
        codes[:, j] = _column_codes(values, owner, f"the values of {name}" if name else "values")
    return codes


def _split_columns(X: Points, owner: str) -> tuple[list[Any], list[str]]:
    """Return the columns of X, and their names for error messages."""
    if sp.issparse(X):
        raise TypeError(
            f"{owner} compares categories, but X is a sparse matrix. The usual cause is one-hot "
            f"encoding, which this kernel does not need: pass the columns of categories, or use a "
            f"kernel on vectors, such as Linear()"
        )
    X = as_numpy(X)
    reject_masked(X, "X")
    if is_table(X):
        if len(X.shape) == 1:
            return [X], [""]
        return [get_column(X, j) for j in range(X.shape[1])], [f"column {c!r}" for c in X.columns]
    if isinstance(X, np.ndarray):
        if X.ndim not in (1, 2):
            raise ValueError(
                f"{owner} requires values of shape (n,) or rows of shape (n, d), got an array of "
                f"shape {X.shape}"
            )
        return [X] if X.ndim == 1 else list(X.T), _column_names(1 if X.ndim == 1 else X.shape[1])
    rows = list(X)
    if not rows or not isinstance(rows[0], (list, tuple, np.ndarray)):
        return [rows], [""]
    widths = [len(row) if isinstance(row, (list, tuple, np.ndarray)) else -1 for row in rows]
    bad = next((i for i, width in enumerate(widths) if width != widths[0]), None)
    if bad is not None:
        raise ValueError(
            f"{owner}: row 0 has {widths[0]} values, but row {bad} is {rows[bad]!r}; all rows must "
            f"have the same length"
        )
    return [list(column) for column in zip(*rows, strict=True)], _column_names(widths[0])


def _column_names(count: int) -> list[str]:
    """Return the names of columns without names, for error messages."""
    return [""] if count == 1 else [f"column {j}" for j in range(count)]


def _column_codes(values: Any, owner: str, what: str) -> np.ndarray:
    """Return the codes of the values of one column."""
    if hasattr(values, "cat") and hasattr(values.dtype, "categories") and hasattr(values, "iloc"):
        # A categorical column of pandas stores its levels, which are few, and their positions.
        levels = _column_codes(values.cat.categories.to_numpy(), owner, what)
        position = values.cat.codes.to_numpy()
        found: np.ndarray = np.append(levels, _MISSING)[
            position
        ]  # the position of missing values is -1
        return found
    if hasattr(values, "null_count") and values.null_count():  # a column of polars
        values = values.to_list()  # to_numpy() would convert integers to floats
    elif is_table(values):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        return _object_codes(values, owner, what)
    if values.dtype.kind in "bi":
        return hash_codes(values, owner, what)
    if values.dtype.kind == "f":
        return _float_codes(values, owner, what)
    if values.dtype.kind in "mMc":
        raise TypeError(
            f"{owner}: {what} are of type {values.dtype}, which is not a type of categories; "
            f"convert them to strings or integers, for example to the year or the weekday, or use "
            f"a kernel on numbers"
        )
    return _object_codes(values.tolist(), owner, what)


def _float_codes(values: np.ndarray, owner: str, what: str) -> np.ndarray:
    """Return the codes of floating-point numbers; 1.0 has the same code as the integer 1."""
    missing = np.isnan(values)
    known = values[~missing]
    codes = np.full(len(values), _MISSING)
    if np.all(np.abs(known) < _MAX_EXACT_FLOAT) and np.all(known == np.trunc(known)):
        codes[~missing] = hash_codes(known.astype(np.int64), owner, what)
    else:
        levels, position = np.unique(known, return_inverse=True)
        codes[~missing] = hash_codes(levels, owner, what)[position]
    return codes


def _object_codes(values: Sequence[Any], owner: str, what: str) -> np.ndarray:
    """Return the codes of Python objects."""
    return hash_codes([None if _is_missing(v) else v for v in values], owner, what)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, pandas.NA or NaT."""
    if value is None or isinstance(value, str):
        return value is None
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def feature_codes(codes: np.ndarray) -> np.ndarray:
    """Return codes that also differ between columns, so that each pair of both is one feature."""
    return np.stack([splitmix64(column, j) for j, column in enumerate(codes.T)], axis=1)
