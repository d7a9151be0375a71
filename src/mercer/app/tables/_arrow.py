"""Read Parquet and Arrow files with pyarrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ._table import MAX_EXACT, TEXT, Table, TableError, integer_column, refuse_repeated_names
from ._table_source import Source

__all__ = ["ArrowSource", "arrow_column"]


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
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise TableError(
                f"reading {self.name} requires pyarrow, which is not installed - try: "
                f"pip install 'mercer[cli]'"
            ) from None
        try:
            if self.parquet:
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
                    name: self._column(
                        name, column.combine_chunks(), kinds[name] if kinds else None
                    )
                    for name, column in zip(schema.names, batch.columns, strict=True)
                }
                index = tuple(name for name in columns if _PANDAS_INDEX.fullmatch(name))
                table = Table(columns, self.name, None, start, index, booleans)
                start += len(table)
                self.fraction_read = start / total
                if len(table):
                    yield table

    def _column(self, name: str, column: Any, kind: str | None = None) -> np.ndarray:
        return arrow_column(self.name, name, column, kind)


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
    if types.is_integer(value_type) or (types.is_decimal(value_type) and value_type.scale <= 0):
        floats = np.asarray(
            column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float
        )
        if kind != TEXT and not np.any(np.abs(floats) >= MAX_EXACT):
            return floats
        values = [None if v is None else int(v) for v in column.to_pylist()]
        return integer_column(values, kind)
    if types.is_decimal(value_type):  # use float(), which rounds correctly, unlike pyarrow
        return np.array([np.nan if v is None else float(v) for v in column.to_pylist()], float)
    if types.is_boolean(value_type) or types.is_floating(value_type):
        return np.asarray(
            column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float
        )
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
        texts = np.empty(len(column), dtype=object)
        texts[:] = column.to_pylist()
        return texts
    raise TableError(
        f"{source}, column {name!r}: values of type {column.type} are neither numbers nor "
        f"text - convert the column, or remove it from the file"
    )
