"""Tables from Parquet and Arrow files, pyarrow tables, and pandas and polars DataFrames."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from ._table import (
    MAX_EXACT,
    TEXT,
    Table,
    TableError,
    column_from_texts,
    import_pyarrow,
    integer_column,
    kind_of,
    refuse_repeated_names,
)
from ._table_source import Source

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # names that pandas gives to an unnamed index


class ArrowSource(Source):
    """A Parquet file, or an Arrow file or stream (including Feather files)."""

    def __init__(self, path: Path, name: str = "", *, parquet: bool) -> None:
        super().__init__(path, name)
        self.parquet = parquet

    @cached_property
    def width(self) -> int:
        """The number of columns."""
        with self._open() as (_, schema, _):
            return len(schema)

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any, int]]:
        """Yield the reader, its schema, and the number of record batches (0 if unknown)."""
        pa = import_pyarrow(f"reading {self.name}")
        try:
            if self.parquet:
                import pyarrow.parquet as pq

                with pq.ParquetFile(self.path) as file:
                    yield file, file.schema_arrow, 0
                return
            with pa.memory_map(str(self.path)) as raw:
                if raw.read(6) == b"ARROW1":
                    raw.seek(0)
                    file = pa.ipc.open_file(raw)
                    yield file, file.schema, file.num_record_batches
                    return
                raw.seek(0)
                stream = pa.ipc.open_stream(raw)
                yield stream, stream.schema, 0
        except (pa.ArrowException, OSError) as error:
            kind = "Parquet" if self.parquet else "Arrow"
            raise TableError(
                f"{self.name} cannot be read as {kind}: {error} - usually a file in another "
                f"format, or a truncated file - specify the format with --format"
            ) from None

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        import pyarrow as pa

        start = 0
        with self._open() as (file, schema, n_batches):
            refuse_repeated_names(self.name, schema.names)
            booleans = tuple(f.name for f in schema if pa.types.is_boolean(f.type))
            if self.parquet:
                batches = _regroup_batches(file.iter_batches(batch_size=rows), schema, rows)
                total = max(1, file.metadata.num_rows)
            else:
                # The table refers to the memory-mapped file; nothing is copied.
                full_table = pa.Table.from_batches(
                    [file.get_batch(i) for i in range(n_batches)] if n_batches else list(file),
                    schema=file.schema,
                )
                batches = (full_table.slice(i, rows) for i in range(0, len(full_table), rows))
                total = max(1, len(full_table))
            for batch in batches:
                columns = {
                    name: arrow_column(
                        self.name, name, column.combine_chunks(), kinds[name] if kinds else None
                    )
                    for name, column in zip(schema.names, batch.columns, strict=True)
                }
                index = tuple(name for name in columns if _PANDAS_INDEX.fullmatch(name))
                table = Table(columns, self.name, None, start, index, booleans)
                start += len(table)
                self.fraction_read = start / total
                if len(table):
                    yield table

    # A Parquet file states its columns and the number of rows, and reads single columns.

    @property
    def column_names(self) -> list[str]:
        """The names of all columns."""
        if not self.parquet:
            return super().column_names
        with self._open() as (_, schema, _):
            return list(schema.names)

    @cached_property
    def _rows_in_metadata(self) -> int:
        with self._open() as (file, _, _):
            return int(file.metadata.num_rows)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._rows_in_metadata if self.parquet else super().row_count

    def pieces(self, names: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        """Yield the columns `names` in pieces of a few rows; several columns must be numeric."""
        if not self.parquet:
            yield from super().pieces(names, rows)
            return
        with self._open() as (file, _, _):
            for batch in file.iter_batches(batch_size=rows, columns=names):
                columns = {n: arrow_column(self.name, n, batch.column(n)) for n in names}
                self._refuse_text({n: kind_of(column) for n, column in columns.items()})
                yield list(columns.values())


def _regroup_batches(batches: Iterable[Any], schema: Any, rows: int) -> Iterator[Any]:
    """Regroup record batches into tables of `rows` rows; the last table may have fewer."""
    import pyarrow as pa

    pending, count = list[Any](), 0
    for batch in batches:
        pending.append(batch)
        count += len(batch)
        while count >= rows:
            table = pa.Table.from_batches(pending, schema=schema)
            yield table.slice(0, rows)
            pending, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(pending, schema=schema)


def arrow_column(source: str, name: str, column: Any, kind: str | None = None) -> np.ndarray:
    """Return a pyarrow array as numbers or text; dates and times become text in ISO format."""
    import pyarrow as pa

    types = pa.types
    value_type = column.type.value_type if types.is_dictionary(column.type) else column.type

    def floats_of(array: Any) -> np.ndarray:
        numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(numbers, dtype=float)

    if types.is_integer(value_type) or (types.is_decimal(value_type) and value_type.scale <= 0):
        floats = floats_of(column)
        if kind != TEXT and not np.any(np.abs(floats) >= MAX_EXACT):
            return floats
        values = [None if v is None else int(v) for v in column.to_pylist()]
        return integer_column(values, kind)
    if types.is_decimal(value_type):  # use float(), which rounds correctly, unlike pyarrow
        return np.array([np.nan if v is None else float(v) for v in column.to_pylist()], float)
    if types.is_boolean(value_type) or types.is_floating(value_type):
        return floats_of(column)
    if types.is_null(value_type):
        return np.full(len(column), np.nan)
    if (
        types.is_temporal(value_type)
        and not types.is_duration(value_type)
        and not types.is_interval(value_type)
    ):
        column = column.cast(pa.string())
        value_type = column.type
    if (
        types.is_string(value_type)
        or types.is_large_string(value_type)
        or types.is_string_view(value_type)
    ):
        return column_from_texts(column.to_pylist())
    raise TableError(
        f"{source}, column {name!r}: values of type {column.type} are neither numbers nor "
        f"text - convert the column, or remove it from the file"
    )


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
    values: Iterable[Any]
    if library == "pandas":
        values = (_pandas_values(frame.iloc[:, j]) for j in range(frame.shape[1]))
    elif library == "polars":
        values = map(_polars_values, frame.get_columns())
    else:
        values = (column.combine_chunks() for column in frame.columns)
    columns, booleans = dict[str, np.ndarray](), list[str]()
    for column_name, cells in zip(names, values, strict=True):
        column = _column(name, column_name, cells)
        columns[column_name] = column
        if column.dtype != object and _is_boolean(cells):
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


def _column(source: str, name: str, values: Any) -> np.ndarray:
    """Return floats, a list of objects or a pyarrow array as a column of a `Table`."""
    if isinstance(values, np.ndarray):
        return np.asarray(values, dtype=np.float64)
    if not isinstance(values, list):
        return arrow_column(source, name, values)
    cleaned = [None if is_missing_value(value) else value for value in values]
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


def _pandas_values(column: Any) -> np.ndarray | list[Any]:
    """Return a pandas column as floats if they represent it exactly, otherwise as a list."""
    from pandas.api import types

    if types.is_float_dtype(column.dtype) or types.is_integer_dtype(column.dtype):
        floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if types.is_float_dtype(column.dtype) or _are_exact(floats):
            return floats
    return column.astype(object).tolist()


def _polars_values(column: Any) -> np.ndarray | list[Any]:
    """Return a polars column as floats if they represent it exactly, otherwise as a list."""
    if column.dtype.is_float() or column.dtype.is_integer():
        floats = column.cast(float).fill_null(float("nan")).to_numpy()
        if column.dtype.is_float() or _are_exact(floats):
            return floats
    return column.to_list()


def _are_exact(floats: np.ndarray) -> bool:
    """Return True if floats that were integers are so small that float64 did not round them."""
    return not np.any(np.abs(floats) >= MAX_EXACT)


def _is_boolean(values: Any) -> bool:
    """Return True if the values of a column are True, False or missing."""
    if isinstance(values, list):
        present = [value for value in values if not is_missing_value(value)]
        return bool(present) and all(isinstance(value, (bool, np.bool_)) for value in present)
    return str(getattr(values, "type", "")) == "bool"  # values is a pyarrow array


def is_missing_value(value: object) -> bool:
    """Return True if a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))
