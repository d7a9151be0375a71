"""One-hot encoding of the columns of a data frame that are not numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Points, get_column, length

_NUMBER_KINDS = "biuf"  # NumPy kinds of columns that are used as numbers


def has_categories(X: Points) -> bool:
    """Return True if a data frame has a column that is not numeric."""
    return any(not _is_numeric(get_column(X, j)) for j in range(X.shape[1]))


def learn_categories(X: Points) -> list[list[Any] | None]:
    """Return the categories of each column of a data frame; None for a numeric column.

    Missing values of a column that is not numeric are a separate category.
    """
    columns = (get_column(X, j) for j in range(X.shape[1]))
    return [None if _is_numeric(c) else _distinct(_values(c)) for c in columns]


def encode_columns(X: Points, categories: list[list[Any] | None], owner: str) -> np.ndarray:
    """Return a data frame as a matrix, with one column of 0 and 1 for each category.

    A category that is not in the list is encoded by zeros only.  Missing values in numeric columns
    raise an error.
    """
    blocks, missing = [], dict[Any, int]()
    for j, known in enumerate(categories):
        column = get_column(X, j)
        if known is None:
            numbers = np.asarray(column.to_numpy(), dtype=float)
            missing |= {X.columns[j]: int(n)} if (n := np.isnan(numbers).sum()) else {}
            blocks.append(numbers[:, None])
        else:
            position = {value: k for k, value in enumerate(known)}
            index = np.array([position.get(v, -1) for v in _values(column)], dtype=np.intp)
            blocks.append((index[:, None] == np.arange(len(known))).astype(float))
    if missing:
        raise missing_values_error(missing, length(X), owner)
    return np.hstack(blocks)


def missing_values_error(missing: dict[Any, int], n: int, owner: str) -> ValueError:
    """Return the error for missing values; `missing` contains their number in each column."""
    listed = ", ".join(f"column {name!r} ({count})" for name, count in list(missing.items())[:10])
    more = f" and {len(missing) - 10} other columns" if len(missing) > 10 else ""
    return ValueError(
        f"Input X contains NaN: values are missing in {listed}{more} of the {n} rows, and {owner} "
        f"needs numbers. Replace them and mark the rows, for example with "
        f"make_pipeline(SimpleImputer(add_indicator=True), {owner}()), or drop these rows"
    )


def _is_numeric(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", None)
    kind = kind if isinstance(kind, str) else column[:0].to_numpy().dtype.kind
    return kind in _NUMBER_KINDS and not hasattr(column.dtype, "categories")


def _values(column: Any) -> list[Any]:
    """Return the values of a column as strings, numbers or None (missing)."""
    values = column.tolist() if hasattr(column, "tolist") else column.to_list()
    return [
        None if _is_missing(v) else v if isinstance(v, (bool, int, float)) else str(v)
        for v in values
    ]


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _distinct(values: list[Any]) -> list[Any]:
    """Return the distinct values, sorted by type and value."""
    return sorted(set(values), key=lambda v: (str(type(v)), v if v is not None else ""))
