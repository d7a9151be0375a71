"""The `Table` class: named columns, the position of each row in its file, and output files."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from .._core import concatenate, length, take
from ._cell_notation import DATES as DATES
from ._cell_notation import EMPTY as EMPTY
from ._cell_notation import GRAPHS as GRAPHS
from ._cell_notation import MAX_EXACT as MAX_EXACT
from ._cell_notation import MISSING as MISSING
from ._cell_notation import NUMBER as NUMBER
from ._cell_notation import TEXT as TEXT
from ._cell_notation import UNREADABLE as UNREADABLE
from ._cell_notation import column_from_texts as column_from_texts
from ._cell_notation import is_number as is_number
from ._cell_notation import is_rounded as is_rounded


class TableError(ValueError):
    """Error for a file that cannot be used; the message states where the problem is."""


class MissingPackageError(TableError, ImportError):
    """Error for a file that needs an optional package, which is not installed."""


@dataclass(frozen=True, eq=False)
class UnreadableColumn:
    """A column whose values are neither numbers, text nor dates, such as lists or images.

    It stands in for the values, so that the other columns of the file can be used.

    Parameters
    ----------
    reason : str
        The type of the values, for messages, such as "values of type list<double>".
    count : int
        The number of rows.
    """

    reason: str
    count: int

    def __len__(self) -> int:
        return self.count

    def take(self, rows: Any) -> UnreadableColumn:
        """Return the column for a selection of rows."""
        return replace(self, count=len(np.arange(self.count)[rows]))


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of the same length.

    Parameters
    ----------
    columns : dict
        The columns by name.  Numbers are a float64 array, in which NaN is a missing value.  Text is
        an array of objects, in which None is a missing value.  Dates and times are an array of
        dtype datetime64[us], in which NaT is a missing value.  Graphs are a `Graphs` object.  Any
        other values are replaced by an `UnreadableColumn`.
    source : str, default="the table"
        The name of the file that contains the rows, for messages.
    lines : array of int, default=None
        The line number of each row in the file; None if the file is not a text file.
    start : int, default=0
        The number of rows of the file that precede this table.
    index_columns : tuple of str, default=()
        Columns that identify the rows, such as row numbers.  They are used as features only if the
        recipe lists them.
    booleans : tuple of str, default=()
        Columns whose values 0 and 1 represent booleans; converted to text, they become "False" and
        "True".
    integers : tuple of str, default=()
        Columns of numbers whose values are integers in the file, so that they are written as
        integers.
    notations : dict of str, default={}
        The notations of columns of a text file, as in `Source.notations`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tables import Table
    >>> table = Table({"x": np.array([1.0, 2.0]), "city": np.array(["Bonn", None], dtype=object)})
    >>> len(table), table.kinds
    (2, {'x': 'numbers', 'city': 'text'})
    """

    columns: dict[str, Any]
    source: str = "the table"
    lines: np.ndarray | None = None
    start: int = 0
    index_columns: tuple[str, ...] = ()
    booleans: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()
    notations: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return next((length(column) for column in self.columns.values()), 0)

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column: "numbers", "text", "dates", "graphs" or "unreadable".

        The kind of a column of numbers or dates without any value is "nothing".
        """
        return {name: kind_of(column) for name, column in self.columns.items()}

    def take(self, rows: Any) -> Table:
        """Return a table of the selected rows; `rows` is a slice, an index array or a mask."""
        indices = np.arange(len(self))[rows]
        lines = None if self.lines is None else self.lines[indices]
        columns = {name: take_rows(column, indices) for name, column in self.columns.items()}
        start = self.start + int(indices[0]) if len(indices) else self.start
        return replace(self, columns=columns, lines=lines, start=start)

    def column(self, name: str) -> Any:
        """Return a column by name; the error for an unknown name suggests a similar one."""
        if name not in self.columns:
            raise TableError(
                f"{self.source} has no column {name!r}{suggest_name(name, self.columns)} "
                f"{_column_list(self.columns)}"
            )
        return self.columns[name]

    def texts(self, name: str) -> np.ndarray:
        """Return a column as text: 3.0 becomes "3", booleans become "True" and "False"."""
        column = self.column(name)
        if name not in self.booleans or column.dtype == object:
            return as_texts(column)
        return column_from_texts(None if v != v else str(bool(v)) for v in column.tolist())

    def where(self, row: int) -> str:
        """Return the position of a row in the file: "line 7", or "row 7" if it has no lines."""
        if self.lines is not None:
            return f"line {self.lines[row]}"
        return f"row {self.start + row + 1}"

    def error(self, text: str, column: str | None = None, row: int | None = None) -> TableError:
        """Return an error about the table, or about one of its columns, rows or cells."""
        place = self.source if row is None else f"{self.source}, {self.where(row)}"
        return TableError(f"{place}{'' if column is None else f', column {column!r}'}: {text}")

    def write(self, file: TextIO, *, header: bool = True, delimiter: str = ",") -> None:
        """Write the table as CSV, with enough digits to restore all numbers exactly."""
        writer = csv.writer(_UnixLines(file), lineterminator="\r\n", delimiter=delimiter)
        if header:
            writer.writerow(self.columns)
        writer.writerows(zip(*(self._cells(name, "") for name in self.columns), strict=True))

    def write_json(self, file: TextIO) -> None:
        """Write the table as JSON Lines: one object per row, with null for missing values."""
        for line in self._json_objects():
            file.write(line + "\n")

    def _json_objects(self) -> Iterator[str]:
        """Yield each row as a JSON object."""
        cells = [self._cells(name) for name in self.columns]
        for row in zip(*cells, strict=True):
            line = dict(zip(self.columns, row, strict=True))
            yield json.dumps(line, allow_nan=False, ensure_ascii=False)

    def _cells(self, name: str, missing: str | None = None) -> list[Any]:
        """Return the values of a column for a text file; `missing` replaces missing values.

        Booleans and integers of the input are written as such.
        """
        column = self._output_column(name)
        values = as_texts(column) if column.dtype.kind == "M" else column
        return [missing if _is_missing_cell(value) else value for value in values.tolist()]

    def _output_column(self, name: str) -> np.ndarray:
        """Return a column as it is written to a file.

        Columns of booleans and integers are arrays of bool or int64; with missing values, they are
        arrays of objects, in which None is a missing value.
        """
        column = self.columns[name]
        if not isinstance(column, np.ndarray):
            what = column.reason if isinstance(column, UnreadableColumn) else "graphs"
            raise TableError(
                f"{self.source}, column {name!r}: {what} cannot be written to a table - leave out "
                f"this column"
            )
        is_boolean, is_integer = name in self.booleans, name in self.integers
        if column.dtype.kind != "f" or not (is_boolean or is_integer):
            return column
        is_missing = np.isnan(column)
        present = column[~is_missing]
        if np.any(present != np.round(present)) or np.any(np.abs(present) > MAX_EXACT):
            return column
        dtype = np.bool_ if is_boolean else np.int64
        if not is_missing.any():
            return column.astype(dtype)
        cells = np.full(len(column), None, dtype=object)
        cells[~is_missing] = present.astype(dtype)
        return cells

    @staticmethod
    def joined(tables: Sequence[Table]) -> Table:
        """Concatenate the rows of several tables with the same columns."""
        first = tables[0]
        if len(tables) == 1:
            return first
        columns = {name: _joined([t.columns[name] for t in tables]) for name in first.columns}
        lines = None
        if first.lines is not None:
            lines = np.concatenate([t.lines for t in tables if t.lines is not None])
        return replace(first, columns=columns, lines=lines)


class _UnixLines:
    r"""Wrap a file for `csv.writer`, and end each row with "\n" instead of "\r\n".

    CSV readers also treat a carriage return as the end of a line, so a cell that contains one must
    be quoted.  `csv.writer` does this only if its line terminator is "\r\n".
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(row.removesuffix("\r\n") + "\n")


def _is_missing_cell(value: Any) -> bool:
    return value is None or value != value


def kind_of(column: Any) -> str:
    """Return the kind of a column; EMPTY for numbers or dates that are all missing."""
    if isinstance(column, UnreadableColumn):
        return UNREADABLE
    if not isinstance(column, np.ndarray):
        return GRAPHS
    if column.dtype.kind in "OUS":
        return TEXT
    if len(column) and np.isnan(column).all():
        return EMPTY
    return DATES if column.dtype.kind == "M" else NUMBER


def take_rows(column: Any, rows: Any) -> Any:
    """Return the selected rows of a column of any kind."""
    return column.take(rows) if isinstance(column, UnreadableColumn) else take(column, rows)


def _joined(columns: Sequence[Any]) -> Any:
    """Concatenate the parts of a column, which are all of the same kind."""
    first = columns[0]
    if isinstance(first, UnreadableColumn):
        return replace(first, count=sum(map(len, columns)))
    return (
        np.concatenate(columns) if isinstance(first, np.ndarray) else reduce(concatenate, columns)
    )


def array_column(array: np.ndarray, kind: str | None = None) -> np.ndarray:
    """Convert an array to a column: text to an array of objects, and numbers to float64.

    Integers become text if `kind` is TEXT, or if float64 cannot represent all of them.
    """
    if array.dtype.kind in "OUS":
        array = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
        return array.astype(object, copy=False)
    floats = np.asarray(array, dtype=np.float64)
    if array.dtype.kind in "iu" and (kind == TEXT or np.any(np.abs(floats) >= MAX_EXACT)):
        return integer_column(array.tolist(), kind)
    return floats


def integer_column(values: Sequence[int | None], kind: str | None = None) -> np.ndarray:
    """Convert integers to float64 if all can be represented exactly, otherwise to text."""
    rounded = (v is not None and abs(v) > MAX_EXACT and is_rounded(str(v)) for v in values)
    if kind == TEXT or (kind is None and any(rounded)):
        return column_from_texts(None if v is None else str(v) for v in values)
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def as_texts(column: np.ndarray) -> np.ndarray:
    """Convert a column to text: 3.0 becomes "3", and missing values become None.

    Dates become text in ISO format: "2024-05-31", or "2024-05-31T18:30:00" if a time is present.
    """
    if column.dtype == object:
        return column
    if column.dtype.kind == "M":
        present = column[~np.isnat(column)]
        days = present.astype("datetime64[D]")
        is_date = np.array_equal(days, present)
        texts = np.datetime_as_string(column, "D" if is_date else "auto").tolist()
        return column_from_texts(None if text == "NaT" else text for text in texts)
    values = column.astype(np.float64).tolist()
    return column_from_texts(
        None if v != v else str(int(v)) if v.is_integer() else repr(v) for v in values
    )


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean 'label'?" for an error message, or ";" if no name is similar."""
    by_lower = {original.lower(): original for original in names}
    matches = difflib.get_close_matches(name.lower(), by_lower, 1, cutoff=0.6)
    return f"; did you mean {by_lower[matches[0]]!r}?" if matches else ";"


def _column_list(names: Iterable[str], max_shown: int = 12) -> str:
    """Return a list of the first column names, for an error message."""
    names = list(names)
    more = f" and {len(names) - max_shown} more" if len(names) > max_shown else ""
    return f"its columns are {', '.join(map(repr, names[:max_shown]))}{more}"


# ---------------------------------------------------------------------- output files

WRITABLE = {  # file extensions of each format
    "csv": (".csv", ".txt", ".dat", ".data"),
    "tsv": (".tsv",),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "excel": (".xlsx",),
    "npy": (".npy",),
    "npz": (".npz",),
}
_MAX_EXCEL_ROWS = 2**20  # rows of a sheet, including the header
# Control characters, which are not allowed in cells of Excel, for `str.translate`.
_CONTROL = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])
_TEXT_FORMATS = ("csv", "tsv", "jsonl", "json")  # these formats are written row by row


def output_format(path: str | os.PathLike[str]) -> str:
    """Return the format for the extension of a file name; CSV if it has no extension."""
    name = Path(path).name.lower()
    uncompressed = name.removesuffix(".gz")
    for kind, extensions in WRITABLE.items():
        if uncompressed.endswith(extensions) and (uncompressed == name or kind in _TEXT_FORMATS):
            return kind
    if not Path(name).suffix:
        return "csv"
    known = ", ".join(extension for extensions in WRITABLE.values() for extension in extensions)
    raise TableError(
        f"{os.fspath(path)}: cannot write a table, because the file extension is "
        f"unknown - use one of {known}, or add .gz to a text format"
    )


class TableWriter:
    """Write the blocks of a table to an open file.

    Text formats are written immediately.  The other formats require the types of all rows, so
    their blocks are stored in memory until `close`.
    """

    def __init__(self, file: BinaryIO, kind: str, compressed: bool) -> None:
        self._file, self._kind, self._blocks = file, kind, list[Table]()
        self._n_blocks_written = 0
        self._zipped = _deterministic_gzip(file) if compressed else None
        self._text = io.TextIOWrapper(
            self._zipped or file, encoding="utf-8", newline="", write_through=True
        )

    def write(self, block: Table) -> None:
        """Write a block of rows."""
        if self._kind not in _TEXT_FORMATS:
            self._blocks.append(block)
        elif self._kind == "jsonl":
            block.write_json(self._text)
        elif self._kind == "json":
            for number, line in enumerate(block._json_objects()):
                is_first = not self._n_blocks_written and not number
                self._text.write(f"{'[' if is_first else ','}\n{line}")
        else:
            delimiter = "\t" if self._kind == "tsv" else ","
            block.write(self._text, header=self._n_blocks_written == 0, delimiter=delimiter)
        self._n_blocks_written += 1

    def close(self) -> None:
        """Write the stored blocks and flush the output; the file itself stays open."""
        if self._kind == "json":
            self._text.write("\n]\n" if self._n_blocks_written else "[]\n")
        self._text.flush()
        self._text.detach()
        if self._zipped is not None:
            self._zipped.close()
        if self._blocks:
            _write_arrays(self._file, self._kind, Table.joined(self._blocks))


def _deterministic_gzip(file: BinaryIO) -> gzip.GzipFile:
    """Return a gzip stream without the time and the name of a temporary file in its header."""
    return gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)


@contextmanager
def table_writer(path: str | os.PathLike[str]) -> Iterator[TableWriter]:
    """Context manager that yields a `TableWriter` for a file.

    The rows are written to a temporary file, which replaces `path` when it is complete.
    """
    kind, target = output_format(path), Path(path)
    if kind in ("parquet", "arrow"):
        import_pyarrow(f"writing {target}")
    if kind == "excel":
        import_openpyxl(f"writing {target}")
    with atomic_file(target) as file:
        writer = TableWriter(file, kind, target.name.lower().endswith(".gz"))
        yield writer
        writer.close()


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces `target` once it has been written completely."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write_arrays(file: BinaryIO, kind: str, table: Table) -> None:
    """Write a table in a binary format: NPY, NPZ, Excel, Parquet or Arrow."""
    if kind == "excel":
        _write_excel(file, table)
        return
    if kind in ("npy", "npz"):
        columns = {name: _array(table._output_column(name)) for name in table.columns}
        if kind == "npz":
            # This replaces np.savez, which does not accept an array named "file".
            with zipfile.ZipFile(file, "w") as archive:
                for name, column in columns.items():
                    entry = zipfile.ZipInfo(f"{name}.npy")
                    entry.create_system = 3  # Unix, so that the bytes are equal on all platforms
                    with archive.open(entry, "w") as member:
                        np.lib.format.write_array(member, column, allow_pickle=False)
            return
        rows = np.empty(len(table), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            rows[name] = column
        np.save(file, rows, allow_pickle=False)
        return
    pa = import_pyarrow("writing the table")
    written = {name: table._output_column(name) for name in table.columns}
    columns = {
        name: pa.array(column.tolist() if column.dtype.kind in "OUS" else column)
        for name, column in written.items()
    }
    arrow_table = pa.table(columns)
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(arrow_table, file)
        return
    with pa.ipc.new_file(file, arrow_table.schema) as writer:
        writer.write_table(arrow_table)


def _write_excel(file: BinaryIO, table: Table) -> None:
    """Write a table to the first sheet of an Excel workbook."""
    if len(table) >= _MAX_EXCEL_ROWS:
        raise TableError(
            f"the table has {len(table)} rows, but a sheet of an Excel workbook holds "
            f"{_MAX_EXCEL_ROWS - 1} rows and the header - write .csv or .parquet instead"
        )
    book = import_openpyxl("writing the table").Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    sheet.append(list(table.columns))
    cells = [table._output_column(name).tolist() for name in table.columns]
    for row in zip(*cells, strict=True):
        sheet.append([None if _is_missing_cell(v) else _excel_cell(sheet, v) for v in row])
    book.save(file)


def _excel_cell(sheet: Any, value: Any) -> Any:
    """Return a value as Excel stores it: no infinity, dates before 1900 or control characters."""
    is_infinite = isinstance(value, float) and abs(value) == float("inf")
    is_early = isinstance(value, datetime) and value.year < 1900
    if is_early:
        return value.isoformat()
    if isinstance(value, str):
        from openpyxl.cell import WriteOnlyCell

        cell = WriteOnlyCell(sheet, value.translate(_CONTROL))
        cell.data_type = "s"  # text, even if it looks like a formula
        return cell
    return str(value) if is_infinite else value


def _array(column: np.ndarray) -> np.ndarray:
    """Return a column as numbers or strings: missing numbers are NaN, missing strings are ""."""
    if column.dtype != object:
        return column
    values = column.tolist()
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def import_pyarrow(action: str) -> Any:
    """Import pyarrow; raise a TableError if it is not installed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingPackageError(
            f"{action} requires pyarrow, which is not installed - try: pip install 'mercer[cli]'"
        ) from None
    return pa


def import_openpyxl(action: str) -> Any:
    """Import openpyxl; raise a TableError if it is not installed."""
    try:
        import openpyxl
    except ImportError:
        raise TableError(
            f"{action} requires openpyxl, which is not installed - try: pip install 'mercer[cli]', "
            f"or use CSV instead"
        ) from None
    return openpyxl
