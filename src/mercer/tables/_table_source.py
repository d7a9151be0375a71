"""The base class `Source`, which reads rows in blocks, and tables in memory, such as DataFrames."""

from __future__ import annotations

import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from ._cell_notation import DATES, EMPTY, GRAPHS, NUMBER, TEXT, UNREADABLE, MissingMarks, Notation
from ._table import Table, TableError, array_column
from ._typed_columns import (
    TypedColumn,
    arrow_column,
    combined_chunks,
    is_missing_value,
    pandas_column,
    pandas_index_columns,
    polars_column,
    unique_names,
)

STANDARD_INPUT = "standard input"  # the name of the file "-" in messages
# Limits of the block size.  Larger blocks need more memory; smaller blocks take more time per row.
_MAX_BLOCK_ENTRIES, _MAX_BLOCK_ROWS, _MIN_BLOCK_ROWS = 2**22, 2**16, 2**10


# Descriptions of columns that are not numeric, for messages.
_CONTENTS = {
    TEXT: "contains text",
    DATES: "contains dates",
    GRAPHS: "contains graphs",
    UNREADABLE: "contains values that are neither numbers nor text",
}


class Shape(NamedTuple):
    """Number of rows of a source, and kind of each column, as in `Table.kinds`."""

    rows: int
    kinds: dict[str, str]


class Source(ABC):
    """Abstract base class of sources that yield the rows of a file as `Table` blocks.

    A column is numeric only if all its values are numbers, which is not known before the last row.
    Therefore the file is first read once to determine its shape, and then in blocks.  The number
    of rows of a block depends only on the number of columns.

    Attributes
    ----------
    name : str
        The name of the file in messages, as the user wrote it.
    path : Path
        The file.
    fraction_read : float
        The fraction of the file that has been read in the current pass, from 0 to 1.
    notes : list of str
        Messages about what was detected, such as the delimiter or a missing header.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path, self.name = path, name or str(path)
        self.fraction_read, self.notes = 0.0, list[str]()
        self._cached_block: Table | None = None

    @abstractmethod
    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        """Yield tables of `rows` rows; `kinds` is the kind of each column, or None to detect it."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of columns."""

    @property
    def rows_per_block(self) -> int:
        """The number of rows of a block."""
        return int(
            np.clip(_MAX_BLOCK_ENTRIES // max(1, self.width), _MIN_BLOCK_ROWS, _MAX_BLOCK_ROWS)
        )

    @cached_property
    def shape(self) -> Shape:
        """The number of rows and the kinds of the columns.

        The file is read once to determine them.  If it fits into one block, the block is cached.
        """
        rows, kinds, n_blocks = 0, dict[str, str](), 0
        for table in self._read(self.rows_per_block, None):
            rows, n_blocks = rows + len(table), n_blocks + 1
            for name, kind in table.kinds.items():
                kinds[name] = _merge_kinds(kinds.get(name, EMPTY), kind)
            self._cached_block = table if n_blocks == 1 else None
        if not rows:
            raise self._no_data_error("has no rows")
        return Shape(rows, {n: NUMBER if kind == EMPTY else kind for n, kind in kinds.items()})

    def _no_data_error(self, what: str) -> TableError:
        """Return the error for a file without data."""
        inspect_hint = f" - inspect it with: head {quote(self.name)}"
        return TableError(
            f"{self.name} {what} - usually a truncated file, or the output of a command "
            f"that failed{'' if self.name == STANDARD_INPUT else inspect_hint}"
        )

    @property
    def title(self) -> str:
        """The name of the file without its folder."""
        return Path(self.name).name or self.name

    @property
    def notations(self) -> dict[str, str]:
        """The notation of each column of text in which a part of the cells could be misread.

        An example is "dates:day-month-year".  The notations of the training file are passed to
        `blocks` for other files, in which 03/07/2024 may be ambiguous.
        """
        return {}

    def expect_notations(self, notations: Mapping[str, str]) -> None:
        """Use notations for columns whose cells do not determine them.

        The base class ignores them, because the values of most formats have types.
        """
        _ = notations

    def blocks(
        self, texts: Iterable[str] = (), notations: Mapping[str, str] | None = None
    ) -> Iterator[Table]:
        """Yield the rows in blocks; a column has the same kind in all blocks.

        Parameters
        ----------
        texts : iterable of str, default=()
            Columns to read as text, exactly as written in the file, even if all values are
            numbers or dates.
        notations : mapping of str to str, default=None
            The attribute `notations` of the source of the training rows.  It decides the decimal
            separator and the order of day and month if the cells of a column do not.

        Yields
        ------
        Table
            The next rows.
        """
        if notations:
            self.expect_notations(notations)
        kinds = self.shape.kinds
        changed = {name for name in texts if kinds.get(name) in (NUMBER, DATES)}
        blocks: Iterable[Table]
        if changed:
            blocks = self._read(self.rows_per_block, kinds | dict.fromkeys(changed, TEXT))
        elif self._cached_block is not None:
            self.fraction_read = 1.0
            blocks = [self._cached_block]
        else:
            blocks = self._read(self.rows_per_block, kinds)
        found = self.notations
        for block in blocks:
            yield replace(block, notations=found)

    @property
    def column_names(self) -> list[str]:
        """The names of all columns."""
        return list(self.shape.kinds)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.shape.rows

    def pieces(self, names: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        """Yield the columns `names` in pieces of a few rows; several columns must be numeric.

        A source that can choose the number of rows of a piece uses `rows`.
        """
        self._refuse_text({name: self.shape.kinds[name] for name in names})
        for table in self.blocks():
            yield [table.columns[name] for name in names]

    def _refuse_text(self, kinds: dict[str, str]) -> None:
        """Raise a TableError if a column is unreadable, or if one of several is not numeric."""
        text = [name for name, kind in kinds.items() if kind not in (NUMBER, EMPTY)]
        if text and (len(kinds) > 1 or kinds[text[0]] == UNREADABLE):
            raise TableError(
                f"{self.name}: the column {text[0]!r} {_CONTENTS[kinds[text[0]]]}, but points must "
                f"be numeric; select the numeric columns: "
                f"columns={[n for n in kinds if n not in text]}"
            )

    def table(self, texts: Iterable[str] = (), notations: Mapping[str, str] | None = None) -> Table:
        """Return all rows as one table; the parameters are those of `blocks`."""
        return Table.joined(list(self.blocks(texts, notations)))

    def sample(self, count: int, random_state: int = 0) -> Table:
        """Return a random sample of rows in their original order, drawn without replacement.

        Parameters
        ----------
        count : int
            Number of rows to draw.  If the source has fewer rows, all rows are returned.
        random_state : int, default=0
            Seed of the random generator.

        Returns
        -------
        Table
            The sampled rows.
        """
        n = self.shape.rows
        if count >= n:
            return self.table()
        drawn = np.sort(np.random.default_rng(random_state).choice(n, count, replace=False))
        parts, start = [], 0
        for block in self.blocks():
            indices = drawn[(drawn >= start) & (drawn < start + len(block))] - start
            parts.append(block.take(indices))
            start += len(block)
        return Table.joined(parts)

    def fingerprint(self) -> str:
        """Return the SHA-256 hash of the file, or of the concatenated files of a folder."""
        digest = hashlib.sha256()
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        for file in files:
            with file.open("rb") as stream:
                while chunk := stream.read(2**20):
                    digest.update(chunk)
        return digest.hexdigest()


def _merge_kinds(one: str, other: str) -> str:
    """Return the kind of a column, given the kinds of two parts of the column."""
    if EMPTY in (one, other):
        return other if one == EMPTY else one
    if UNREADABLE in (one, other):
        return UNREADABLE
    return one if one == other else TEXT


# ---------------------------------------------------------------------- tables in memory

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

    def __init__(self, table: Table, notes: Iterable[str] = (), frame: Any = None) -> None:
        super().__init__(Path(), table.source)
        self._table, self._frame = table, frame
        self.notes += notes

    @property
    def notations(self) -> dict[str, str]:
        """The notations of the file from which the table was read."""
        return dict(self._table.notations)

    def expect_notations(self, notations: Mapping[str, str]) -> None:
        """Convert strings of a DataFrame in the given notations, as those of a file."""
        if self._frame is None:
            return
        columns = dict(self._table.columns)
        for name, text in notations.items():
            if name not in columns or name not in self._frame_columns:
                continue
            values = list(
                self._frame[name].to_pylist()
                if _library(self._frame) == "pyarrow"
                else self._frame[name]
            )
            cells = [None if is_missing_value(value) else value for value in values]
            if not all(cell is None or isinstance(cell, str) for cell in cells):
                continue
            column = Notation.parse(text).convert(cells, MissingMarks())
            if isinstance(column, np.ndarray):
                columns[name] = column
        self._table, self._cached_block = replace(self._table, columns=columns), None
        self.__dict__.pop("shape", None)

    @property
    def _frame_columns(self) -> list[Any]:
        is_arrow = _library(self._frame) == "pyarrow"
        return list(self._frame.column_names if is_arrow else self._frame.columns)

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


def table_from_frame(
    frame: Any, name: str = "the DataFrame", notes: list[str] | None = None
) -> Table:
    """Convert a DataFrame to a `Table`, with the columns that a CSV file of the frame would have.

    Parameters
    ----------
    frame : DataFrame
        A pandas or polars DataFrame, or a pyarrow table.  The named levels of a pandas index become
        columns, which are listed in `Table.index_columns`; an unnamed index is ignored.
    name : str, default="the DataFrame"
        The name of the table in messages.
    notes : list of str, default=None
        A list to which messages about converted columns are appended.

    Returns
    -------
    Table
        The rows.
    """
    library = _library(frame)
    notes = [] if notes is None else notes
    names, new_notes = unique_names(frame.column_names if library == "pyarrow" else frame.columns)
    notes += new_notes
    values: list[TypedColumn]
    index: list[str] = []
    if library == "pandas":
        values = [pandas_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
        index = [str(level) for level in frame.index.names if level is not None]
        index = [level for level in dict.fromkeys(index) if level not in names]
        values += [
            pandas_column(frame.index.get_level_values(frame.index.names.index(level)))
            for level in frame.index.names
            if level is not None and str(level) in index
        ]
    elif library == "polars":
        values = [polars_column(column) for column in frame.get_columns()]
    else:
        values = [arrow_column(combined_chunks(column)) for column in frame.columns]
        index = [level for level in pandas_index_columns(frame.schema) if level in names]
    typed = dict(zip(dict.fromkeys([*names, *index]), values, strict=True))
    notes += [f"column {n!r}: {column.note}" for n, column in typed.items() if column.note]
    columns = {n: column.values for n, column in typed.items()}
    return Table(
        columns,
        name,
        index_columns=tuple(index),
        booleans=tuple(n for n, column in typed.items() if column.is_boolean),
        integers=tuple(n for n, column in typed.items() if column.is_integer),
    )


def as_table(data: Any) -> Table:
    """Convert a source or a DataFrame to a `Table`; return a `Table` unchanged."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Source):
        return data.table()
    if is_frame(data):
        return table_from_frame(data)
    if getattr(data, "ndim", 0) == 2:
        columns = {f"x{j}": array_column(column) for j, column in enumerate(np.asarray(data).T)}
        return Table(columns, "the array")
    raise TypeError(
        f"a recipe requires a Table, a pandas or polars DataFrame or a source from open_table, got "
        f"{type(data).__name__} - put the data into a DataFrame to give its columns names"
    )
