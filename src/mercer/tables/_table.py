"""A table: columns by name, and where in a file each row came from."""

from __future__ import annotations

import csv
import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TextIO

import numpy as np

from .._points import concatenate, length, take

__all__ = [
    "MAX_EXACT",
    "NUMBER",
    "TEXT",
    "Table",
    "TableError",
    "as_texts",
    "column_of",
    "integer_column",
    "is_rounded",
    "kind_of",
    "nearest",
    "refuse_repeated_names",
]

NUMBER, TEXT, EMPTY, GRAPHS = "numbers", "text", "nothing", "graphs"
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "#n/a", "<na>"})  # lower case
_MISSING_NUMBERS = frozenset({"-", "--", "."})  # missing values, unless the column is text
MAX_EXACT = 2**53  # float64 represents every integer up to here
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


class TableError(ValueError):
    """A file, or what is in it, cannot be used as it is; the message says where and what to try."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length, by name.

    Parameters
    ----------
    columns : dict
        Numbers are float64, NaN for what is missing; texts an array of objects, None for what is
        missing; graphs a `Graphs`.
    source : str
        The file they came from.
    lines : array of int, optional
        The line of each row in the file.
    start : int
        Rows of the file before these.
    beside : tuple of str
        Columns that name the rows, and become points only if they are asked for.
    booleans : tuple of str
        Columns of numbers that stand for True and False, which is how they are written as text.

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
    beside: tuple[str, ...] = ()
    booleans: tuple[str, ...] = ()

    def __len__(self) -> int:
        return next((length(column) for column in self.columns.values()), 0)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds: "numbers", "text", "graphs", or "nothing" but missing values."""
        return {name: kind_of(column) for name, column in self.columns.items()}

    def take(self, rows: Any) -> Table:
        """Return the table of some rows, a slice, an index array or a mask."""
        places = np.arange(len(self))[rows]
        lines = None if self.lines is None else self.lines[places]
        columns = {name: take(column, places) for name, column in self.columns.items()}
        start = self.start + int(places[0]) if len(places) else self.start
        return replace(self, columns=columns, lines=lines, start=start)

    def column(self, name: str) -> Any:
        """Return a column by its name, or say which is nearest."""
        if name not in self.columns:
            raise TableError(
                f"{self.source} has no column {name!r}{nearest(name, self.columns)} "
                f"{_listed(self.columns)}"
            )
        return self.columns[name]

    def texts(self, name: str) -> np.ndarray:
        """Return a column as text: 3.0 as "3", booleans as "True" and "False"."""
        column = self.column(name)
        if name not in self.booleans or column.dtype == object:
            return as_texts(column)
        return column_from_texts(None if v != v else str(bool(v)) for v in column.tolist())

    def where(self, row: int) -> str:
        """Return where a row stands in the file: "line 7", or "row 7" where there are no lines."""
        if self.lines is not None:
            return f"line {self.lines[row]}"
        return f"row {self.start + row + 1}"

    def write(self, file: TextIO, *, header: bool = True, delimiter: str = ",") -> None:
        """Write the table as CSV, numbers with all their digits."""
        writer = csv.writer(_UnixLines(file), lineterminator="\r\n", delimiter=delimiter)
        if header:
            writer.writerow(self.columns)
        writer.writerows(zip(*(_written(c) for c in self.columns.values()), strict=True))

    def write_json(self, file: TextIO) -> None:
        """Write the table as JSON Lines: an object for each row, null for what is missing."""
        cells = [_written(column, None) for column in self.columns.values()]
        for row in zip(*cells, strict=True):
            line = dict(zip(self.columns, row, strict=True))
            file.write(json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n")

    @staticmethod
    def joined(tables: Sequence[Table]) -> Table:
        """Return the rows of several tables with the same columns, one after the other."""
        first = tables[0]
        if len(tables) == 1:
            return first
        columns = {
            name: reduce(concatenate, (t.columns[name] for t in tables))
            if kind_of(column) == GRAPHS
            else np.concatenate([t.columns[name] for t in tables])
            for name, column in first.columns.items()
        }
        lines = None
        if first.lines is not None:
            lines = np.concatenate([t.lines for t in tables if t.lines is not None])
        return replace(first, columns=columns, lines=lines)


class _UnixLines:
    """A file for `csv.writer`, which replaces the line end of each row by a newline.

    The writer quotes the cells that contain a character of its line end.  A reader takes a carriage
    return for a line end, too, so that cells with one must be quoted.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(row.removesuffix("\r\n") + "\n")


def _written(column: Any, nothing: str | None = "") -> list[Any]:
    """Return cells: texts, whole numbers, and others by the fewest digits that tell them apart."""
    if kind_of(column) == GRAPHS:
        raise TypeError("graphs have no place in a table of text")
    return [nothing if value is None or value != value else value for value in column.tolist()]


def kind_of(column: Any) -> str:
    """Return what a column holds."""
    if not isinstance(column, np.ndarray):
        return GRAPHS
    if column.dtype.kind in "OUS":
        return TEXT
    return EMPTY if len(column) and np.isnan(column).all() else NUMBER


def column_of(cells: Sequence[str | None], kind: str | None = None) -> np.ndarray | int:
    """Return cells of text as a column: numbers if every cell is a number, otherwise text.

    Integers that float64 would round stay text, because different identifiers would become equal.
    If `kind` is NUMBER and a cell is not a number, the index of that cell is returned.
    """
    known = [None if c is None or c.strip().lower() in MISSING else c for c in cells]
    if kind != TEXT:
        try:
            cells = [None if c is None or c.strip() in _MISSING_NUMBERS else c for c in known]
            found = _floats(["nan" if cell is None else cell for cell in cells])
            large = np.flatnonzero(np.abs(found) >= MAX_EXACT)
            if kind == NUMBER or not any(is_rounded(cells[i]) for i in large.tolist()):
                return found
        except ValueError:
            if kind == NUMBER:
                return next(i for i, cell in enumerate(cells) if not is_number(cell))
    return column_from_texts(known)


def integer_column(values: Sequence[int | None], kind: str | None = None) -> np.ndarray:
    """Return integers as float64 if it represents all of them exactly, otherwise as text."""
    rounded = (v is not None and abs(v) > MAX_EXACT and is_rounded(str(v)) for v in values)
    if kind == TEXT or (kind is None and any(rounded)):
        return column_from_texts(None if v is None else str(v) for v in values)
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def is_rounded(cell: Any) -> bool:
    """Whether a cell holds an integer that float64 cannot represent."""
    if not isinstance(cell, str) or not _INTEGER.fullmatch(cell):
        return False
    try:
        return int(float(cell)) != int(cell)
    except (OverflowError, ValueError):  # beyond 1e308, or too many digits for int()
        return True


def is_number(cell: str | None) -> bool:
    """Whether a cell is missing or the text of a number."""
    try:
        return cell is None or _floats([cell]) is not None
    except ValueError:
        return False


def _floats(cells: Sequence[Any]) -> np.ndarray:
    if "_" in "".join(cells):  # Python reads 1_000 as a number, nobody else does
        raise ValueError("an underscore")
    return np.array(cells, dtype=np.float64)


def as_texts(column: np.ndarray) -> np.ndarray:
    """Return values as texts, 3.0 as "3"; None where they are missing."""
    if column.dtype == object:
        return column
    values = column.astype(np.float64).tolist()
    return column_from_texts(
        None if v != v else str(int(v)) if v.is_integer() else repr(v) for v in values
    )


def column_from_texts(cells: Iterable[str | None]) -> np.ndarray:
    found = np.empty(len(cells := list(cells)), dtype=object)
    found[:] = cells
    return found


def refuse_repeated_names(source: str, names: Sequence[str]) -> None:
    """Raise a TableError if two columns have the same name."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            raise TableError(
                f"{source}: column {place} is called {name!r}, as is column {seen[name]} - usually "
                f"two tables that were joined - give each column a different name"
            )
        seen[name] = place


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'label'?" for 'lable', or ";"."""
    table = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), table, 1, cutoff=0.6)
    return f"; did you mean {table[near[0]]!r}?" if near else ";"


def _listed(names: Iterable[str], most: int = 12) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"its columns are {', '.join(map(repr, names[:most]))}{more}"
