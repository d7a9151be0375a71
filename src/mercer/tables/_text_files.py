"""Read delimited text files, such as CSV."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ._table import (
    MAX_EXACT,
    MISSING,
    TEXT,
    Table,
    TableError,
    column_of,
    is_number,
)
from ._table_source import Source

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "spaces"}
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
# Names for delimiters that are hard to type on a command line.
_DELIMITER_NAMES = {"\\t": "\t", "tab": "\t", "space": " "}


class CsvSource(Source):
    """A delimited text file, such as CSV, TSV or the text export of a spreadsheet.

    Parameters
    ----------
    path : Path
        The file, which may be gzipped.
    name : str, default=""
        The name of the file in messages; if empty, `path` is used.
    delimiter : str, default=None
        The character that separates cells.  " " or "space" stands for any number of spaces, and
        "tab" for a tab.  None detects the delimiter from the first two lines.
    header : bool, default=None
        Whether the first line contains the column names.  None assumes a header if a cell of the
        first line is not a number.
    """

    def __init__(
        self, path: Path, name: str = "", delimiter: str | None = None, header: bool | None = None
    ) -> None:
        super().__init__(path, name)
        self.unnamed: list[str] = []
        with open_lines(self) as lines:
            first, second = (_next_record(filter(str.strip, lines)) for _ in range(2))
        if not first:
            raise self._no_data_error("is empty")
        self.delimiter = (
            _guess_delimiter(first, second) if delimiter is None else _parse_delimiter(delimiter)
        )
        if delimiter is None and self.delimiter != ",":
            self.notes.append(
                f"cells are separated by {_DELIMITERS[self.delimiter]} (detected) - if this is "
                f"wrong, specify the character with --delimiter"
            )
        with open_lines(self) as lines:
            rows = (row for _, _, row in self._parse(lines) if not self._is_blank(row))
            cells = next(rows, [first.strip()])
            values = next(rows, []) if header is None else []
        numbered = header is None and self._is_numbered_header(cells, values)
        has_names = numbered or not all(is_number(cell) for cell in cells)
        self.header = has_names if header is None else header
        if not self.header:
            self.names = [f"column{i}" for i in range(1, len(cells) + 1)]
            if header is None:
                self.notes.append(
                    f"no header: the first line contains only numbers, so the columns are named "
                    f"column1 to column{len(cells)}"
                )
            return
        self._set_names(cells, header is None)

    def _is_numbered_header(self, cells: list[str], values: list[str]) -> bool:
        """Return True if a first line of numbers contains column names.

        pandas writes the names 0, 1, 2, ... for unnamed columns, and the columns of pivot tables
        are often years.  A TableError is raised if the line could equally well be data.
        """
        names = [cell.strip() for cell in cells]
        if not all(name.isascii() and name.isdigit() for name in names):
            return False
        n, start = len(names), int(names[0])
        values = [cell.strip() for cell in values]
        if names != [str(i) for i in range(start, start + n)] or len(values) != n:
            return False
        text = any(not is_number(v) for v in values if v.lower() not in MISSING)
        follows = values == [str(i) for i in range(start + n, start + 2 * n)]
        if start == 0 and text:
            return True  # a number above text must be a column name
        if start == 0 and n > 2 and sorted(values) != sorted(names) and not follows:
            return True
        if start == 0 or (1900 <= start <= 2100 and n > 2 and not follows):
            raise TableError(
                f"{self.name}, line 1: {','.join(names[:6])}{',...' if n > 6 else ''} may be "
                f"column names, as written by pandas, or the first row - choose with --header or "
                f"--no-header"
            )
        return False

    def _set_names(self, cells: list[str], guessed: bool) -> None:
        """Set the column names from a header, and add notes about unusual names."""
        self.names = [cell.strip() or f"column{i}" for i, cell in enumerate(cells, start=1)]
        numbers = sum(bool(cell.strip()) and is_number(cell) for cell in cells)
        unless = "if the first line is data, use --no-header"
        for position, name in enumerate(self.names, start=1):
            if self.names.index(name) != position - 1:
                raise TableError(
                    f"{self.name}, line 1: column {position} has the same name, {name!r}, as an "
                    f"earlier column - usually because the header was edited by hand - give "
                    f"each column a different name{f', or {unless}' if numbers else ''}"
                )
        unnamed = [name for name, cell in zip(self.names, cells, strict=True) if not cell.strip()]
        self.unnamed = unnamed
        if unnamed:
            unnamed_list = ",".join(unnamed)
            self.notes.append(
                f"columns without a name in the header are named {unnamed_list} - integers in an "
                f"unnamed first column are assumed to be row numbers and are not used unless "
                f"--columns includes it; exclude other columns with --ignore {unnamed_list}"
            )
        if numbers and guessed:
            self.notes.append(
                f"the first line is used as the header, although {numbers} of its {len(cells)} "
                f"cells are numbers - {unless}"
            )

    def _csv_reader(self, lines: Iterable[str], strict: bool = False) -> Any:
        """Return a CSV reader of the lines."""
        if self.delimiter == " ":  # collapse repeated spaces, and strip those at both ends
            lines = (" ".join(line.split()) + "\n" for line in lines)
        return csv.reader(lines, delimiter=self.delimiter, strict=strict)

    def _parse(self, lines: Iterable[str], read: int = 0) -> Iterator[tuple[int, int, list[str]]]:
        """Yield the first line number, the last line number and the cells of each record.

        `read` is the number of lines that were read before.  An empty line has the cells [].
        """
        # Lines of the current record; "" is appended if the file ends inside quotes.
        record = list[str]()

        def recorded_lines() -> Iterator[str]:
            for line in lines:
                record.append(line)
                yield line
            record.append("")

        reader = self._csv_reader(recorded_lines())
        while True:
            first = read + reader.line_num + 1
            record.clear()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise TableError(
                    f"{self.name}, line {first}: {_explain_csv_error(error)}"
                ) from None
            if len(record) > 1:
                self._refuse_open_quote(record, row, first)
            yield first, read + reader.line_num, row

    def _is_blank(self, row: list[str]) -> bool:
        """Return True if a record contains only spaces and tabs."""
        return not self.delimiter.join(row).strip()

    def _refuse_open_quote(self, record: list[str], row: list[str], first: int) -> None:
        """Raise a TableError if a record spans several lines because of an unclosed quote.

        The quote counts as unclosed if the file ends inside quotes, or if text follows the closing
        quote, which was then meant to open another cell.  If the record is a single line, text
        after a closing quote is accepted.
        """
        try:
            next(self._csv_reader(record, strict=True))
        except csv.Error:
            breaks = [len(_LINE_BREAK.findall(cell)) for cell in row]
            last = max((i for i, n in enumerate(breaks) if n), default=0)
            opened = first + sum(breaks[:last])
            end = first + sum(map(bool, record)) - 1
            raise TableError(
                f"{self.name}, line {opened}: a quote opens here but is not closed, so that "
                f'the cell would extend to line {end} - usually a single " at the start of a cell, '
                f'or a truncated file - close the quote, or put the cell in quotes and write "" '
                f'for each " inside'
            ) from None

    @cached_property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        try_numbers = kinds is None or TEXT not in kinds.values()
        start, read = 0, 0
        with open_lines(self, track=True) as lines:
            if self.header:
                parsed = self._parse(lines)
                read = next((last for _, last, row in parsed if not self._is_blank(row)), 0)
            while block := list(islice(lines, rows)):
                matrix = self._parse_numbers(block) if try_numbers else None
                if matrix is not None:
                    columns: dict[str, Any] = dict(zip(self.names, matrix.T.copy(), strict=True))
                    line_numbers = np.arange(read + 1, read + 1 + len(block))
                    read += len(block)
                else:
                    cells, line_numbers, read = self._parse_records(block, lines, read)
                    columns = self._convert_columns(cells, line_numbers, kinds)
                table = Table(columns, self.name, line_numbers, start, self._row_numbers(columns))
                start += len(table)
                if len(table):
                    yield table

    def _row_numbers(self, columns: dict[str, Any]) -> tuple[str, ...]:
        """Return the name of the first column if it contains row numbers, otherwise an empty tuple.

        A first column contains row numbers if it has no name and all its values are integers.
        Integers may be repeated, as in a sample drawn with replacement.
        """
        if not self.unnamed or self.unnamed[0] != self.names[0]:
            return ()
        column = columns[self.names[0]]
        is_integer = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
        return (self.names[0],) if is_integer else ()

    def _parse_numbers(self, block: list[str]) -> np.ndarray | None:
        """Parse a block of numbers with `numpy.loadtxt`, which is fast; return None if it fails.

        It also returns None if a number is 2^53 or larger; `column_of` then checks whether float64
        represents it exactly.
        """
        if not any(map(str.strip, block)):
            return None  # NumPy would warn about a block of blank lines
        try:
            delimiter = None if self.delimiter == " " else self.delimiter
            matrix = np.loadtxt(block, delimiter=delimiter, comments=None, ndmin=2)
        except ValueError:
            return None
        if matrix.shape != (len(block), len(self.names)) or np.any(np.abs(matrix) >= MAX_EXACT):
            return None
        return matrix

    def _parse_records(self, block: list[str], more: Iterator[str], read: int) -> Any:
        """Return the cells by column, the line number of each row, and the number of lines read."""
        n_columns, cells, line_numbers = len(self.names), list[list[str]](), list[int]()
        end = read + len(block)
        for line, last, row in self._parse(chain(block, more), read):
            read = last
            if row and (len(row) > 1 or n_columns == 1 or row[0].strip()):  # skip blank lines
                if len(row) != n_columns:
                    raise TableError(
                        f"{self.name}, line {line}: the line has {len(row)} cells, but there are "
                        f"{n_columns} columns - usually "
                        f"{_DELIMITERS.get(self.delimiter, 'a delimiter')} inside a "
                        f"cell without quotes, or a truncated line - correct the line, or "
                        f"specify the delimiter with --delimiter"
                    )
                cells.append(row)
                line_numbers.append(line)
            if read >= end:
                break
        return list(zip(*cells, strict=True)), np.array(line_numbers, dtype=int), read

    def _convert_columns(
        self, cells: Any, line_numbers: np.ndarray, kinds: dict[str, str] | None
    ) -> Any:
        """Return the columns by name, converted to numbers or text."""
        columns: dict[str, Any] = {}
        for j, name in enumerate(self.names):
            values = cells[j] if cells else ()
            column = column_of(values, kinds[name] if kinds else None)
            if isinstance(column, int):
                raise TableError(
                    f"{self.name}, line {line_numbers[column]}, column {name!r}: "
                    f"{values[column]!r} is not a number"
                )
            columns[name] = column
        return columns


@contextmanager
def open_lines(source: Source, track: bool = False) -> Iterator[Iterator[str]]:
    """Open a text file, which may be gzipped; error messages state the line number.

    If `track` is True, the attribute `fraction_read` of the source is updated during reading.
    """
    size = max(1, source.path.stat().st_size)
    with source.path.open("rb") as raw:
        magic = raw.read(2)
        raw.seek(0)
        unzipped: Any = gzip.GzipFile(fileobj=raw) if magic == b"\x1f\x8b" else raw
        # Excel writes UTF-16 if a sheet is saved as "Unicode text".
        is_utf16 = magic in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding = "utf-16" if is_utf16 else "utf-8-sig"
        with io.TextIOWrapper(unzipped, encoding=encoding, newline="") as text:
            yield _checked_lines(text, source, raw if track else None, size)


def _checked_lines(text: TextIO, source: Source, raw: Any, size: int) -> Iterator[str]:
    """Yield the lines of a text file; raise a TableError where it cannot be decoded or read.

    If `raw` is not None, `source.fraction_read` is updated to its position divided by `size`.
    """
    for number in count(1):
        try:
            line = next(text)
        except StopIteration:
            return
        except UnicodeDecodeError as error:
            raise TableError(
                f"{source.name}, near line {number}: byte {error.object[error.start]:#04x} is not "
                f"valid UTF-8 - usually the file has another encoding, or is not a text file - "
                f"convert it to UTF-8, for example with: iconv -f latin1 -t utf-8"
            ) from None
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(
                f"{source.name}, after line {number - 1}: {error} - usually a truncated gzip "
                f"file - download or create it again"
            ) from None
        if raw is not None and not number % 1000:
            source.fraction_read = raw.tell() / size
        yield line


def _next_record(lines: Iterator[str]) -> str:
    """Return the next record, up to its closing quote; return "" at the end of the file."""
    first = text = next(lines, "")
    while text.count('"') % 2 and len(text) < csv.field_size_limit():
        more = next(lines, "")
        if not more:
            return first
        text += more
    return text


def _guess_delimiter(first: str, second: str) -> str:
    """Guess the delimiter from the first two lines."""
    unquoted = "".join(first.split('"')[::2])  # the parts of the line that are outside quotes
    if ";" in unquoted:
        unquoted = re.sub(r"(?<=\d),(?=\d)", "", unquoted)  # remove decimal commas
    counts = {candidate: unquoted.count(candidate) for candidate in _DELIMITERS if candidate != " "}
    most_frequent = max(counts, key=lambda candidate: counts[candidate])
    cells = (second or first).split()
    is_spaced = len(first.split()) == len(cells) > 1 and all(is_number(cell) for cell in cells)
    return " " if is_spaced and not counts[most_frequent] else most_frequent


def _parse_delimiter(delimiter: str) -> str:
    """Return the character for a user-supplied delimiter, which may be a name such as "tab"."""
    character = _DELIMITER_NAMES.get(delimiter, delimiter)
    if len(character) != 1 or character in '"\r\n':
        raise TableError(
            f"the delimiter {delimiter!r} is not one character - use , ; | tab or space"
        )
    return character


def _explain_csv_error(error: Exception) -> str:
    """Return the cause and the remedy for an error of the csv module."""
    if "field larger" in str(error):
        return (
            "a cell has more than 131072 characters - usually a quote opens in this line but is "
            'not closed - close it, or put the cell in quotes and write "" for each " inside'
        )
    return f"{error} - usually the file is not a text file - inspect it with: head -c 200"
