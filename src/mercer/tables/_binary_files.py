"""Read binary files: Parquet, Arrow and NumPy (.npy, .npz)."""

from __future__ import annotations

import re
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ._table import (
    Table,
    TableError,
    array_column,
    import_pyarrow,
    kind_of,
    refuse_repeated_names,
    suggest_name,
)
from ._table_source import Source, arrow_column

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # names that pandas gives to an unnamed index


class ArrowSource(Source):
    """A Parquet file, or an Arrow file or stream (including Feather files)."""

    def __init__(self, path: Path, name: str = "", *, parquet: bool) -> None:
        super().__init__(path, name)
        self.parquet = parquet

    @cached_property
    def width(self) -> int:
        """The number of columns."""
        with self._open() as (_, schema):
            return len(schema)

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        """Yield the reader of the file, and the schema of its columns."""
        pa = import_pyarrow(f"reading {self.name}")
        try:
            if self.parquet:
                import pyarrow.parquet as pq

                with pq.ParquetFile(self.path) as file:
                    yield file, file.schema_arrow
                return
            with pa.memory_map(str(self.path)) as raw:
                is_file = raw.read(6) == b"ARROW1"
                raw.seek(0)
                reader = pa.ipc.open_file(raw) if is_file else pa.ipc.open_stream(raw)
                yield reader, reader.schema
        except (pa.ArrowException, OSError) as error:
            kind = "Parquet" if self.parquet else "Arrow"
            raise TableError(
                f"{self.name} cannot be read as {kind}: {error} - usually a file in another "
                f"format, or a truncated file - specify the format with --format"
            ) from None

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        import pyarrow as pa

        start = 0
        with self._open() as (file, schema):
            refuse_repeated_names(self.name, schema.names)
            booleans = tuple(f.name for f in schema if pa.types.is_boolean(f.type))
            if self.parquet:
                batches = _regroup_batches(file.iter_batches(batch_size=rows), schema, rows)
                total = max(1, file.metadata.num_rows)
            else:
                full_table = file.read_all()  # refers to the memory-mapped file, without a copy
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
        with self._open() as (_, schema):
            return list(schema.names)

    @cached_property
    def _rows_in_metadata(self) -> int:
        with self._open() as (file, _):
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
        with self._open() as (file, _):
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


# ---------------------------------------------------------------------- NumPy

# Words in array names that identify a training, validation or test set.  A letter may precede the
# word, as in "Xtrain".
_SET_PATTERNS = {
    "train": "(train|training|trn)",
    "valid": "(valid|validation|val|dev)",
    "test": "(test|testing|tst)",
}

# Exceptions that `numpy.load` raises for damaged files.
_READ_ERRORS: tuple[type[Exception], ...] = (
    *(ValueError, EOFError, OSError, TypeError, SyntaxError, OverflowError, MemoryError),
    *(KeyError, IndexError, AttributeError, NotImplementedError, RecursionError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)


class NumpySource(Source):
    """Table of the array in a .npy file, or of the arrays of equal length in a .npz file.

    A .npy file is memory-mapped.

    Parameters
    ----------
    path : Path
        The file.
    name : str, default=""
        The name of the file in messages; if empty, `path` is used.
    arrays : sequence of str, default=()
        Names of the arrays of a .npz file to read; all arrays by default.  "X=X_test" reads the
        array X_test under the name X.
    """

    def __init__(self, path: Path, name: str = "", arrays: Sequence[str] = ()) -> None:
        super().__init__(path, name)
        self.arrays = tuple(arrays)

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        """The columns by name, as views of the arrays."""
        columns: dict[str, np.ndarray] = {}
        arrays = self._load()
        if not self.arrays:
            self._check_one_table(arrays)
        rows = {name: len(array) for name, array in arrays.items()}
        if len(set(rows.values())) > 1:
            lengths = ", ".join(f"{name} {count}" for name, count in rows.items())
            common_length = max(rows.values(), key=list(rows.values()).count)
            same_length = ",".join(name for name, count in rows.items() if count == common_length)
            raise TableError(
                f"{self.name} has arrays of different lengths: {lengths} - usually training and "
                f"test sets in one file - select the arrays of one set: --arrays {same_length}"
            )
        origins: dict[str, str] = {}
        for name, array in arrays.items():
            if array.dtype.names:
                new_columns = {field: array[field] for field in array.dtype.names}
            elif array.ndim == 1:
                new_columns = {name: array}
            else:
                new_columns = {f"{name}{j + 1}": array[:, j] for j in range(array.shape[1])}
            for column_name in new_columns:
                if column_name in origins:
                    raise TableError(
                        f"{self.name}: the arrays {origins[column_name]!r} and {name!r} both have "
                        f"a column {column_name!r} - the columns of a matrix 'x' are named x1, x2, "
                        f"... - rename one of the arrays: --arrays "
                        f"{origins[column_name]},other={name}"
                    )
            origins |= dict.fromkeys(new_columns, name)
            columns |= new_columns
        for name, column in columns.items():
            if column.ndim != 1 or column.dtype.kind not in "biufUS":
                raise TableError(
                    f"{self.name}, field {name!r}: values of type {column.dtype} and shape "
                    f"{column.shape[1:]} are neither numbers nor text - convert them to float"
                )
        return columns

    def _check_one_table(self, arrays: dict[str, np.ndarray]) -> None:
        """Raise a TableError if arrays of equal length seem to belong to several tables."""
        sets = {name: _set_of(name) for name in arrays}
        matrices = [n for n, array in arrays.items() if array.ndim == 2 and not array.dtype.names]
        rows = {len(array) for array in arrays.values()}
        has_several_sets = len(set(sets.values()) - {""}) > 1
        if len(rows) > 1 or (len(matrices) < 2 and not has_several_sets):
            return
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        first = matrices[0] if matrices else next(iter(arrays))
        suggested = [
            n for n in arrays if sets[n] == sets[first] and (n == first or n not in matrices)
        ]
        what = (
            "arrays of several sets" if has_several_sets else f"{len(matrices)} arrays with columns"
        )
        cause = "training and test sets in one file" if has_several_sets else "features and targets"
        raise TableError(
            f"{self.name} has {what}: {shapes} - usually {cause}, which do not form one table - "
            f"select the arrays of one table: --arrays {','.join(suggested)}"
        )

    def _load(self) -> dict[str, np.ndarray]:
        """Return the selected arrays by name, renamed as requested."""
        which = ""
        try:
            with self.path.open("rb") as raw:
                if raw.read(6) == b"\x93NUMPY":
                    array = np.load(self.path, mmap_mode="r", allow_pickle=False)
                    return {"x": self._check_shape("", array)}
                raw.seek(0)
                with np.load(raw, allow_pickle=False) as file:
                    arrays = {}
                    for new_name, name in self._array_names(file.files):
                        which = f", array {name!r}"
                        arrays[new_name] = self._check_shape(which, file[name])
                    return arrays
        except TableError:
            raise
        except _READ_ERRORS as error:
            raise self._read_error(which, error) from None

    def _array_names(self, available: list[str]) -> list[tuple[str, str]]:
        """Return pairs of the name to use for an array and its name in the file."""
        wanted = [(text.split("=")[0], text.split("=")[-1]) for text in self.arrays or available]
        for _, name in wanted:
            if name not in available:
                raise TableError(
                    f"{self.name} has no array {name!r}{suggest_name(name, available)} its "
                    f"arrays are "
                    f"{', '.join(available)}"
                )
        if not available:
            raise TableError(f"{self.name} contains no arrays; save it again with numpy.savez")
        origins: dict[str, str] = {}
        for new_name, name in wanted:
            if new_name in origins:
                raise TableError(
                    f"{self.name}: the arrays {origins[new_name]!r} and {name!r} would both be "
                    f"named {new_name!r} - usually because a name is given twice - give each array "
                    f"a different name: --arrays {new_name}={origins[new_name]},NAME={name}"
                )
            origins[new_name] = name
        return wanted

    def _check_shape(self, which: str, array: np.ndarray) -> np.ndarray:
        """Return the array if it has one or two dimensions; raise a TableError otherwise."""
        if array.ndim not in (1, 2):
            raise TableError(
                f"{self.name}{which}: the array has shape {array.shape}, but a table needs "
                f"one row per point - reshape it to (rows, columns)"
            )
        return array

    def _read_error(self, which: str, error: Exception) -> TableError:
        """Return the error for an array that cannot be read."""
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in text or "Python objects" in text:
            text = "it contains Python objects, which are not read because they could run code"
        return TableError(
            f"{self.name}{which}: the header or the data cannot be read: {text} - usually a file "
            f"in another format, or a truncated file - save it again with numpy.save"
        )

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._columns)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        n = len(next(iter(self._columns.values()), ()))
        booleans = tuple(name for name, c in self._columns.items() if c.dtype.kind == "b")
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            columns = {
                name: array_column(column[part], kinds[name] if kinds else None)
                for name, column in self._columns.items()
            }
            self.fraction_read = min(1.0, (start + rows) / n)
            yield Table(columns, self.name, None, start, booleans=booleans)


def _set_of(name: str) -> str:
    """Return "train", "valid" or "test" if an array name contains such a word, else ""."""
    for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name):
        for kind, pattern in _SET_PATTERNS.items():
            if re.fullmatch(rf"[a-z]?{pattern}", word.lower()):
                return kind
    return ""
