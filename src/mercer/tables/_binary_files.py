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

from ._cell_notation import DATES, EMPTY, MAX_EXACT, NUMBER, TEXT, UNREADABLE, Notation
from ._file_formats import format_of
from ._table import (
    Table,
    TableError,
    UnreadableColumn,
    array_column,
    as_texts,
    import_pyarrow,
    kind_of,
    suggest_name,
)
from ._table_source import Source
from ._typed_columns import (
    TextDetector,
    arrow_column,
    as_microseconds,
    combined_chunks,
    describe_notation,
    durations_in_seconds,
    is_arrow_readable,
    is_arrow_text,
    pandas_index_columns,
    unique_names,
)


class ArrowSource(Source):
    """A Parquet file, or an Arrow file or stream (including Feather files)."""

    def __init__(self, path: Path, name: str = "", *, parquet: bool) -> None:
        super().__init__(path, name)
        self.parquet = parquet
        with self._open() as (_, schema):
            self._schema = schema
        self._names, notes = unique_names(schema.names)
        self.notes += notes
        self._index = tuple(
            new
            for new, old in zip(self._names, schema.names, strict=True)
            if new == old and old in pandas_index_columns(schema)
        )

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._names)

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
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._read_error(error) from None

    def _read_error(self, error: Exception) -> TableError:
        """Return the error for a file that pyarrow cannot read."""
        kind, magic = ("Parquet", b"PAR1") if self.parquet else ("Arrow", b"ARROW1")
        with self.path.open("rb") as raw:
            has_magic = raw.read(len(magic)) == magic
        text = str(error).strip().splitlines()[0].rstrip(".")
        if has_magic:
            return TableError(
                f"{self.name} cannot be read as {kind}: {text} - usually a truncated file, such as "
                f"an incomplete download or copy - download or write it again"
            )
        try:
            found = f"--format {format_of(self.path, self.name, use_extension=False)}"
        except TableError:
            found = "--format"
        return TableError(
            f"{self.name} cannot be read as {kind}: {text} - usually a file in another "
            f"format, or a truncated file - specify the format with {found}"
        )

    @cached_property
    def _notations(self) -> dict[int, Notation]:
        """The notation of each column of strings, by its position."""
        types = self._schema.types
        detectors = {j: TextDetector() for j, t in enumerate(types) if is_arrow_text(t)}
        if not detectors:
            return {}
        with self._open() as (file, _):
            for batch in self._batches(file, list(detectors), self.rows_per_block):
                for j, column in zip(detectors, batch.columns, strict=True):
                    if not detectors[j].is_text:
                        detectors[j].update(combined_chunks(column).unique().to_pylist())
                if all(detector.is_text for detector in detectors.values()):
                    break
        notations = {j: detector.notation() for j, detector in detectors.items()}
        described = (describe_notation(self._names[j], n) for j, n in notations.items())
        self.notes += filter(None, described)
        return notations

    def _batches(self, file: Any, positions: Sequence[int], rows: int) -> Iterator[Any]:
        """Yield tables of `rows` rows that contain the columns at these positions."""
        names = self._schema.names
        selected = [names[j] for j in positions]
        if self.parquet:
            # Parquet selects columns by name; "a.b" is a column, or the field "b" of a struct "a".
            prefixes = {name[:i] for name in names for i, c in enumerate(name) if c == "."}
            is_unique = len(set(names)) == len(names) and prefixes.isdisjoint(names)
            columns = selected if is_unique else None
            batches = file.iter_batches(batch_size=rows, columns=columns)
            for table in _regroup_batches(batches, rows):
                yield table if is_unique else table.select(list(positions))
            return
        full_table = file.read_all()  # refers to the memory-mapped file, without a copy
        full_table = full_table.select(list(positions))
        for start in range(0, len(full_table), rows):
            yield full_table.slice(start, rows)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        start, total, notations = 0, max(1, self._n_rows), self._notations
        types, names = self._schema.types, self._names
        # Columns that cannot be read, such as images, are not loaded.
        readable = [j for j, type_ in enumerate(types) if is_arrow_readable(type_)]
        if not readable:
            raise TableError(
                f"{self.name} has no column of numbers, text or dates; the types are "
                f"{', '.join(map(str, dict.fromkeys(types)))}"
            )
        with self._open() as (file, _):
            for batch in self._batches(file, readable, rows):
                typed = {
                    j: arrow_column(
                        combined_chunks(column),
                        kinds[names[j]] if kinds else None,
                        notations.get(j),
                    )
                    for j, column in zip(readable, batch.columns, strict=True)
                }
                columns = {
                    name: typed[j].values
                    if j in typed
                    else UnreadableColumn(f"values of type {types[j]}", len(batch))
                    for j, name in enumerate(names)
                }
                booleans = tuple(names[j] for j, column in typed.items() if column.is_boolean)
                integers = tuple(names[j] for j, column in typed.items() if column.is_integer)
                table = Table(columns, self.name, None, start, self._index, booleans, integers)
                start += len(table)
                self.fraction_read = start / total
                yield table

    # An Arrow or Parquet file states its columns and the number of rows.

    @property
    def column_names(self) -> list[str]:
        """The names of all columns."""
        return list(self._names)

    @cached_property
    def _n_rows(self) -> int:
        with self._open() as (file, _):
            return int(file.metadata.num_rows) if self.parquet else len(file.read_all())

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._n_rows

    def pieces(self, names: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        """Yield the columns `names` in pieces of a few rows; several columns must be numeric."""
        positions = [self._names.index(name) for name in names]
        kinds = {name: self._kind_of_piece(j) for name, j in zip(names, positions, strict=True)}
        self._refuse_large_integers(kinds)
        self._refuse_text(kinds)
        with self._open() as (file, _):
            for batch in self._batches(file, positions, rows):
                yield [
                    arrow_column(combined_chunks(column), kinds[name], self._notation(j)).values
                    for name, j, column in zip(names, positions, batch.columns, strict=True)
                ]

    def _refuse_large_integers(self, kinds: dict[str, str]) -> None:
        """Raise a TableError if one of several columns contains integers that would be rounded."""
        for name, kind in kinds.items():
            type_ = self._schema.types[self._names.index(name)]
            if len(kinds) > 1 and kind == TEXT and not is_arrow_text(type_):
                raise TableError(
                    f"{self.name}: the column {name!r} contains integers above 2^53, which 64-bit "
                    f"floats cannot represent exactly, but points must be numeric - usually "
                    f"identifiers - select the other columns: "
                    f"columns={[n for n, k in kinds.items() if k == NUMBER]}"
                )

    def _notation(self, position: int) -> Notation | None:
        """Return the notation of a column of strings; None for other columns."""
        is_text = is_arrow_text(self._schema.types[position])
        return self._notations[position] if is_text else None

    def _kind_of_piece(self, position: int) -> str:
        """Return the kind of a column, which is read completely only if its type is not enough."""
        import pyarrow as pa

        type_ = self._schema.types[position]
        if notation := self._notation(position):
            return notation.kind
        if not is_arrow_readable(type_):
            return UNREADABLE
        if pa.types.is_temporal(type_) and not pa.types.is_duration(type_):
            return DATES
        if not (pa.types.is_int64(type_) or pa.types.is_uint64(type_)) or (
            self.parquet and self._has_small_integers(position)
        ):
            is_decimal = pa.types.is_decimal(type_) or pa.types.is_dictionary(type_)
            if not is_decimal:
                return NUMBER
        with self._open() as (file, _):
            found = (
                kind_of(arrow_column(combined_chunks(batch.columns[0])).values)
                for batch in self._batches(file, [position], self.rows_per_block)
            )
            kinds = set(found) - {EMPTY}
        return TEXT if TEXT in kinds else kinds.pop() if kinds else NUMBER

    def _has_small_integers(self, position: int) -> bool:
        """Return True if the statistics of a Parquet column show that float64 is exact."""
        with self._open() as (file, _):
            metadata = file.metadata
            # Other leaves are fields of nested columns.
            leaves = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
            leaf = leaves.index(self._schema.names[position])
            for group in range(metadata.num_row_groups):
                statistics = metadata.row_group(group).column(leaf).statistics
                if statistics is None or not statistics.has_min_max:
                    return False
                if max(abs(statistics.min), abs(statistics.max)) > MAX_EXACT:
                    return False
        return True


def _regroup_batches(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Regroup record batches into tables of `rows` rows; the last table may have fewer."""
    import pyarrow as pa

    pending, count = list[Any](), 0
    for batch in batches:
        pending.append(batch)
        count += len(batch)
        while count >= rows:
            table = pa.Table.from_batches(pending)
            yield table.slice(0, rows)
            pending, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(pending)


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
            groups: dict[tuple[str, int], list[str]] = {}
            for name, count in rows.items():
                groups.setdefault((_set_of(name), count), []).append(name)
            _, one_set = max(groups.items(), key=lambda group: (len(group[1]), group[0][1]))
            raise TableError(
                f"{self.name} has arrays of different lengths: {lengths} - usually training and "
                f"test sets in one file - select the arrays of one set: "
                f"--arrays {','.join(one_set)}"
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
                name: _numpy_column(column[part], kinds[name] if kinds else None)
                for name, column in self._columns.items()
            }
            integers = tuple(
                name
                for name, column in self._columns.items()
                if column.dtype.kind in "iu" and kind_of(columns[name]) == NUMBER
            )
            self.fraction_read = min(1.0, (start + rows) / n)
            yield Table(columns, self.name, None, start, (), booleans, integers)


def _numpy_column(array: np.ndarray, kind: str | None) -> Any:
    """Convert a part of a NumPy array to a column."""
    if array.ndim == 1 and array.dtype.kind == "M":
        dates = as_microseconds(array)
        return as_texts(dates) if kind == TEXT and isinstance(dates, np.ndarray) else dates
    if array.ndim == 1 and array.dtype.kind == "m":
        return durations_in_seconds(array)
    if array.ndim != 1 or array.dtype.kind not in "biufUS":
        shape = f" and shape {array.shape[1:]}" if array.ndim != 1 else ""
        return UnreadableColumn(f"values of type {array.dtype}{shape}", len(array))
    return array_column(array, kind)


def _set_of(name: str) -> str:
    """Return "train", "valid" or "test" if an array name contains such a word, else ""."""
    for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name):
        for kind, pattern in _SET_PATTERNS.items():
            if re.fullmatch(rf"[a-z]?{pattern}", word.lower()):
                return kind
    return ""
