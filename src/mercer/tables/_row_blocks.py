"""Parse blocks of lines of delimited text files, with pyarrow, NumPy or the csv module."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ._cell_notation import MissingMarks
from ._text_layout import TextLayout
from ._text_streams import TextStream, split_lines

_MIN_ENCODED_ROWS = 2**12  # minimum number of rows for which pyarrow encodes repeated text
# pyarrow needs about 30 KB per column, so that NumPy and the csv module need less memory for blocks
# of more columns if all are numbers, or if there are few rows.
_MAX_ARROW_COLUMNS, _FEW_ROWS = 2**10, 2**8


class Cells(NamedTuple):
    """The cells of a column: the distinct cells, and the index of each cell among them."""

    uniques: list[str]
    codes: np.ndarray

    @classmethod
    def of(cls, cells: Iterable[str]) -> Cells:
        """Return the distinct cells in the order of their first occurrence."""
        index: dict[str, int] = {}
        codes = [index.setdefault(cell, len(index)) for cell in cells]
        return cls(list(index), np.array(codes, dtype=np.int64))


class RowBlock:
    """Consecutive lines of a delimited text file.

    Parameters
    ----------
    layout : TextLayout
        The layout of the file.
    missing : MissingMarks
        The cells that are missing values.
    data : bytes
        The lines, in UTF-8.
    stream : TextStream
        The file, after these lines; more lines are read if a quoted cell extends beyond `data`.
    """

    def __init__(
        self, layout: TextLayout, missing: MissingMarks, data: bytes, stream: TextStream
    ) -> None:
        self._layout, self._missing = layout, missing
        self._data, self._stream = data, stream
        self._first_line = stream.lines_before + 1
        self._n_lines = stream.n_lines - stream.lines_before
        # Rows with a wrong number of cells are added to this list; None raises an error instead.
        self.problems: list[tuple[int, int]] | None = None
        self.n_rows = 0
        self.line_numbers = np.empty(0, dtype=int)
        # The numbers of the lines that were skipped, except for blank lines.
        self.empty_lines, self.comment_lines = list[int](), list[int]()

    def read(self, modes: dict[int, str]) -> dict[int, Any]:
        """Return columns as arrays of numbers or as `Cells`.

        `modes` is "." or "," for columns that are probably plain numbers with this decimal
        separator, and "text" for others.  A column that is not plain is returned as `Cells`.
        """
        if self._is_simple:
            columns = self._read_with_arrow(modes) if pyarrow_csv() else self._read_numbers(modes)
            if columns is not None:
                self.n_rows = self._n_lines
                self.line_numbers = np.arange(self._first_line, self._first_line + self._n_lines)
                return columns
        cells = self._parse_records()
        return {j: cells[j] for j in modes}

    @cached_property
    def _is_simple(self) -> bool:
        r"""Whether each line is one record, which the fast parsers handle like the csv module."""
        data, layout = self._data, self._layout
        mark = (layout.comment or layout.detected_comment).encode()
        if mark and (data.startswith(mark) or b"\n" + mark in data):
            return False
        if any(find(data) for find in layout.empty_line_searches):
            return False
        # A search for one byte is much faster than a search for two.
        if b"\0" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
            return False
        if b'"' not in data:
            return True
        characters = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(characters == ord("\n"))
        quotes = np.searchsorted(np.flatnonzero(characters == ord('"')), ends)
        return not np.any(quotes % 2) and not (data.count(b'"') % 2)

    def _read_with_arrow(self, modes: dict[int, str]) -> dict[int, Any] | None:
        """Parse the lines with pyarrow; return None if a row has a wrong number of cells."""
        layout = self._layout
        n = len(layout.names)
        are_numbers = len(modes) == n and set(modes.values()) == {"."}
        is_wide = n > _MAX_ARROW_COLUMNS and (are_numbers or self._n_lines <= _FEW_ROWS)
        if is_wide or layout.delimiter == " " or not layout.delimiter.isascii():
            return self._read_numbers(modes)
        columns: dict[int, Any] = {}
        for decimal in (".", ","):
            selected = [j for j, mode in modes.items() if mode == decimal]
            if selected:
                found = self._arrow_columns(selected, decimal)
                if isinstance(found, str):
                    return None
                columns |= found or {}
        rest = [j for j in modes if j not in columns]
        if rest or not modes:
            found = self._arrow_columns(rest, None)
            if not isinstance(found, dict):
                return None
            columns |= found
        # Columns that were expected to be plain numbers, but are not, are Cells.
        return {j: columns[j] for j in modes}

    def _arrow_columns(self, selected: list[int], decimal: str | None) -> Any:
        """Parse columns as numbers, or as text if `decimal` is None.

        Returns None if a cell is not a number, and an error message if the lines cannot be parsed.
        """
        pa, pc = pyarrow_csv()
        is_encoded = self._n_lines >= _MIN_ENCODED_ROWS
        text = pa.dictionary(pa.int32(), pa.string()) if is_encoded else pa.string()
        kind = text if decimal is None else pa.float64()
        n = len(self._layout.names)
        names = [str(j) for j in range(n)]
        # If no column is selected, the number of cells of each row is checked nevertheless.
        included = [names[j] for j in selected] or names[:1]
        try:
            table = pc.read_csv(
                pa.BufferReader(self._data),
                pc.ReadOptions(
                    use_threads=False, block_size=len(self._data) + 1, column_names=names
                ),
                pc.ParseOptions(delimiter=self._layout.delimiter),
                pc.ConvertOptions(
                    column_types=dict.fromkeys(included, kind),
                    include_columns=included,
                    null_values=self._missing.spellings,
                    strings_can_be_null=False,
                    decimal_point=decimal or ".",
                ),
            )
        except pa.ArrowInvalid as error:
            message = str(error)
            return None if "conversion error" in message else message
        if len(table) != self._n_lines:
            return "blank lines"
        columns: dict[int, Any] = {}
        for j in selected:
            column = table.column(names[j])
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if decimal is None and not is_encoded:
                columns[j] = Cells.of(column.to_pylist())
            elif decimal is None:
                codes = column.indices.to_numpy(zero_copy_only=False)
                columns[j] = Cells(column.dictionary.to_pylist(), codes)
            else:
                columns[j] = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        return columns

    def _read_numbers(self, modes: dict[int, str]) -> dict[int, Any] | None:
        """Parse lines of plain numbers with `numpy.loadtxt`; return None if it fails."""
        if set(modes.values()) != {"."} or not self._data.strip():
            return None
        delimiter = self._layout.delimiter
        try:
            lines = self._data.decode().split("\n")
            matrix = np.loadtxt(
                lines[:-1] if not lines[-1] else lines,
                delimiter=None if delimiter == " " else delimiter,
                comments=None,
                ndmin=2,
            )
        except ValueError:
            return None
        if matrix.shape != (self._n_lines, len(self._layout.names)):
            return None
        return {j: matrix[:, j].copy() for j in modes}

    def _parse_records(self) -> list[Cells]:
        """Parse the lines with the csv module, which accepts cells of several lines."""
        layout = self._layout
        n_columns, rows, line_numbers = len(layout.names), list[list[str]](), list[int]()
        lines = split_lines(self._data.decode())
        before = self._first_line - 1
        end = before + len(lines)
        more = self._stream.more_lines()
        if layout.comment:
            # A comment inside quotes is part of a cell; such files are not supported.
            marked = ("\n" if line.startswith(layout.comment) else line for line in lines)
            lines = list(marked)
        last = before
        # The record that contains the last line ends the loop.
        for line, last, row in layout.parse(chain(lines, more), before):  # pragma: no branch
            if n_columns > 1 and not any(map(str.strip, row)):
                self.empty_lines += [line] * (len(row) > 1)  # blank lines are skipped silently
            elif layout.is_comment(row, n_columns):
                self.comment_lines.append(line)
            elif row:
                if len(row) > n_columns and not any(map(str.strip, row[n_columns:])):
                    row = row[:n_columns]  # delimiters at the end of the line
                if len(row) == n_columns:
                    rows.append(row)
                    line_numbers.append(line)
                elif self.problems is None:
                    raise layout.width_error([(line, len(row))])
                else:
                    self.problems.append((line, len(row)))
            if last >= end:
                break
        self._stream.n_lines = max(last, end)
        self.n_rows, self.line_numbers = len(rows), np.array(line_numbers, dtype=int)
        if not rows:
            return [Cells([], np.empty(0, dtype=int))] * n_columns
        return [Cells.of(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=1)
def pyarrow_csv() -> Any:
    """Return the modules pyarrow and pyarrow.csv; None if they are not installed."""
    try:
        import pyarrow as pa
        from pyarrow import csv as pc
    except ImportError:
        return None
    return pa, pc
