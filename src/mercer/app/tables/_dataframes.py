"""Convert pandas and polars DataFrames and pyarrow tables to `Table` objects."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from ._arrow import arrow_column
from ._table import (
    MAX_EXACT,
    Table,
    TableError,
    column_from_texts,
    integer_column,
    refuse_repeated_names,
)
from ._table_source import Source

__all__ = ["InMemorySource", "as_table", "is_frame", "table_from_frame"]

_FRAME_TYPES = ("pandas.DataFrame", "polars.DataFrame", "pyarrow.Table")


def is_frame(data: Any) -> bool:
    """Return True if data is a pandas or polars DataFrame, or a pyarrow table."""
    return _library(data) is not None


def _library(data: Any) -> str | None:
    """Return "pandas", "polars" or "pyarrow" for a table of that library, otherwise None."""
    for cls in type(data).__mro__:
        library = cls.__module__.partition(".")[0]
        if f"{library}.{cls.__name__}" in _FRAME_TYPES:
            return library
    return None


class InMemorySource(Source):
    """A source of rows for a `Table` that is already in memory.

    Blocks have the same number of rows as those of a file with the same columns, so that a model
    gives bit-for-bit identical results for both.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(Path(), table.source)
        self._table = table

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._table.columns)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        n = len(self._table)
        for start in range(0, n, rows):
            self.fraction_read = min(1.0, (start + rows) / n)
            yield self._table.take(slice(start, start + rows))

    def fingerprint(self) -> str:
        """Return the SHA-256 of the table as CSV."""
        file = io.StringIO()
        self._table.write(file)
        return hashlib.sha256(file.getvalue().encode()).hexdigest()


def table_from_frame(frame: Any, name: str = "the DataFrame") -> Table:
    """Convert a DataFrame to a `Table`: numbers to float64, everything else to text.

    Integers that float64 would round become text, as when a file is read.  The index of a pandas
    DataFrame does not become a column.
    """
    library = _library(frame)
    names = [str(n) for n in (frame.column_names if library == "pyarrow" else frame.columns)]
    refuse_repeated_names(name, names)
    convert = {"pandas": _from_pandas, "polars": _from_polars, "pyarrow": _from_arrow}
    columns, booleans = dict[str, np.ndarray](), list[str]()
    for column_name, (values, kind) in zip(names, convert[str(library)](frame), strict=True):
        columns[column_name] = _column(name, column_name, values, kind)
        if columns[column_name].dtype != object and _is_boolean(values):
            booleans.append(column_name)
    return Table(columns, name, booleans=tuple(booleans))


def as_table(data: Any) -> Table:
    """Convert a source or a DataFrame to a `Table`; return a `Table` unchanged."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Source):
        return data.table()
    if is_frame(data):
        return table_from_frame(data)
    raise TypeError(
        f"a recipe requires a Table, a pandas or polars DataFrame or a source from open_table, got "
        f"{type(data).__name__} - put an array into a DataFrame to give its columns names"
    )


def _column(source: str, name: str, values: Any, kind: str) -> np.ndarray:
    """Return values as a column of a `Table`: float64, or objects for text."""
    if kind == "float":
        return np.asarray(values, dtype=np.float64)
    if kind == "arrow":
        return arrow_column(source, name, values)
    cleaned = [None if _is_missing(value) else value for value in values]
    present = [value for value in cleaned if value is not None]
    if present and all(isinstance(v, (Real, Decimal, np.bool_)) for v in present):
        if all(isinstance(v, (int, np.integer)) for v in present):
            return integer_column([None if v is None else int(v) for v in cleaned])
        return np.array([np.nan if v is None else float(v) for v in cleaned])
    nested_types = (list, tuple, set, dict, np.ndarray)
    nested_value = next((value for value in present if isinstance(value, nested_types)), None)
    if nested_value is not None:
        raise TableError(
            f"{source}, column {name!r}: a {type(nested_value).__name__} is neither a number nor "
            f"text - give each of its entries its own column, or remove the column"
        )
    return column_from_texts(None if v is None else str(v) for v in cleaned)


def _from_pandas(frame: Any) -> Iterator[tuple[Any, str]]:
    """Yield the values of each column, and the conversion to apply to them."""
    from pandas.api import types

    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        dtype = column.dtype
        if types.is_float_dtype(dtype):
            yield column.to_numpy(dtype=np.float64, na_value=np.nan), "float"
        elif types.is_integer_dtype(dtype):
            floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
            yield _exact_integers(floats, column.astype(object).tolist)
        else:
            yield column.astype(object).tolist(), "object"


def _from_polars(frame: Any) -> Iterator[tuple[Any, str]]:
    """Yield the values of each column, and the conversion to apply to them."""
    for column in frame.get_columns():
        if column.dtype.is_float():
            yield column.fill_null(float("nan")).to_numpy(), "float"
        elif column.dtype.is_integer():
            floats = column.cast(float).fill_null(float("nan")).to_numpy()
            yield _exact_integers(floats, column.to_list)
        else:
            yield column.to_list(), "object"


def _exact_integers(floats: np.ndarray, exact: Callable[[], list[Any]]) -> tuple[Any, str]:
    """Return integers as floats if float64 represents them exactly, otherwise as a list."""
    if not np.any(np.abs(floats) >= MAX_EXACT):
        return floats, "float"
    return exact(), "object"


def _from_arrow(table: Any) -> Iterator[tuple[Any, str]]:
    """Yield the values of each column, and the conversion to apply to them."""
    for column in table.columns:
        yield column.combine_chunks(), "arrow"


def _is_boolean(values: Any) -> bool:
    """Return True if the values of a column are True, False or missing."""
    if isinstance(values, list):
        present = [value for value in values if not _is_missing(value)]
        return bool(present) and all(isinstance(value, (bool, np.bool_)) for value in present)
    return str(getattr(values, "type", "")) == "bool"  # values is a pyarrow array


def _is_missing(value: Any) -> bool:
    """Return True if a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))
