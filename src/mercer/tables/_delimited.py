"""CSV and its kin: cells between delimiters, a header in the first line or none."""

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

from ._source import Source
from ._table import MAX_EXACT, MISSING, TEXT, Table, TableError, column_of, is_number

__all__ = ["Delimited", "lines_of"]

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "spaces"}
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_SPELLED = {"\\t": "\t", "tab": "\t", "space": " "}  # as they are typed in a shell


class Delimited(Source):
    """Rows of cells: CSV, TSV, and what spreadsheets write.

    Parameters
    ----------
    delimiter : str, optional
        The one that is most frequent in the first line, unless given; " " stands for any number
        of spaces, and may be written "space", as a tab may be written "tab".
    header : bool, optional
        Whether the first line has the names; if it has anything but numbers, unless given.
    """

    def __init__(
        self, path: Path, name: str = "", delimiter: str | None = None, header: bool | None = None
    ) -> None:
        super().__init__(path, name)
        self.unnamed: list[str] = []
        with self._lines() as lines:
            first, second = (_joined_lines(filter(str.strip, lines)) for _ in range(2))
        if not first:
            raise self._without("is empty")
        self.delimiter = _delimiter(first, second) if delimiter is None else _one(delimiter)
        if delimiter is None and self.delimiter != ",":
            self.notes.append(
                f"cells are separated by {_DELIMITERS[self.delimiter]} - if not, name the "
                f"character: --delimiter"
            )
        with self._lines() as lines:
            rows = (row for _, _, row in self._parse(lines) if not self._is_blank(row))
            cells = next(rows, [first.strip()])
            values = next(rows, []) if header is None else []
        numbered = header is None and self._is_numbered_header(cells, values)
        named = numbered or not all(is_number(cell) for cell in cells)
        self.header = named if header is None else header
        if not self.header:
            self.names = [f"column{i}" for i in range(1, len(cells) + 1)]
            if header is None:
                self.notes.append(
                    f"no header: the first line holds numbers alone, so the columns are called "
                    f"column1 to column{len(cells)}"
                )
            return
        self._name(cells, header is None)

    def _is_numbered_header(self, cells: list[str], values: list[str]) -> bool:
        """Whether a first line of numbers holds the names of columns.

        pandas calls columns 0, 1, 2, ... if they have no names, and pivot tables call them by
        years.  A line that may as well be the first row is an error.
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
            return True  # a number above text is a name
        if start == 0 and n > 2 and sorted(values) != sorted(names) and not follows:
            return True
        if start == 0 or (1900 <= start <= 2100 and n > 2 and not follows):
            raise TableError(
                f"{self.name}, line 1: {','.join(names[:6])}{',...' if n > 6 else ''} may be names "
                f"of columns, as pandas numbers them, or the first row - choose: --header or "
                f"--no-header"
            )
        return False

    def _name(self, cells: list[str], guessed: bool) -> None:
        """Take the names of columns from a header, and say what is odd about them."""
        self.names = [cell.strip() or f"column{i}" for i, cell in enumerate(cells, start=1)]
        numbers = sum(bool(cell.strip()) and is_number(cell) for cell in cells)
        unless = "if the first line is a row like the others: --no-header"
        for place, name in enumerate(self.names, start=1):
            if self.names.index(name) != place - 1:
                raise TableError(
                    f"{self.name}, line 1: column {place} is called {name!r} as an earlier one is "
                    f"- usually a header that was cut or pasted together - give each column a name "
                    f"of its own{f', or {unless}' if numbers else ''}"
                )
        unnamed = [name for name, cell in zip(self.names, cells, strict=True) if not cell.strip()]
        self.unnamed = unnamed
        if unnamed:
            called = ",".join(unnamed)
            self.notes.append(
                f"the header has no name for {called} - whole numbers in the first column, as "
                f"pandas and R number rows, are not features unless --columns names them; leave "
                f"out others: --ignore {called}"
            )
        if numbers and guessed:
            self.notes.append(
                f"names are taken from the first line, though {numbers} of its {len(cells)} cells "
                f"are numbers - {unless}"
            )

    def _rows(self, lines: Iterable[str], strict: bool = False) -> Any:
        """Return a reader of cells."""
        if self.delimiter == " ":  # several of them separate two cells, and those at the ends none
            lines = (" ".join(line.split()) + "\n" for line in lines)
        return csv.reader(lines, delimiter=self.delimiter, strict=strict)

    def _parse(self, lines: Iterable[str], read: int = 0) -> Iterator[tuple[int, int, list[str]]]:
        """Yield the first line, the last line and the cells of each record.

        `read` is the number of lines before `lines`.  The cells of an empty line are [].
        """
        record = list[str]()  # the lines of a record; then "" if the file ends inside quotes

        def recorded() -> Iterator[str]:
            for line in lines:
                record.append(line)
                yield line
            record.append("")

        reader = self._rows(recorded())
        while True:
            first = read + reader.line_num + 1
            record.clear()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise TableError(f"{self.name}, line {first}: {_why(error)}") from None
            if len(record) > 1:
                self._refuse_open_quote(record, row, first)
            yield first, read + reader.line_num, row

    def _is_blank(self, row: list[str]) -> bool:
        """Whether a record before the first row is a line of spaces or tabs."""
        return not self.delimiter.join(row).strip()

    def _refuse_open_quote(self, record: list[str], row: list[str], first: int) -> None:
        """Raise a TableError if a record spans several lines because of an unclosed quote.

        Then the file ends inside quotes, or text follows the quote that closes the cell, because
        that quote was meant to open another cell.  In a single line, text after a closing quote
        is accepted.
        """
        try:
            next(self._rows(record, strict=True))
        except csv.Error:
            breaks = [len(_LINE_BREAK.findall(cell)) for cell in row]
            last = max((i for i, n in enumerate(breaks) if n), default=0)
            opened = first + sum(breaks[:last])
            end = first + sum(map(bool, record)) - 1
            raise TableError(
                f"{self.name}, line {opened}: a quote opens here and is not closed in its cell, "
                f'which would extend to line {end} - usually a single " at the start of a text, or '
                f'a file that was cut off - close the quote, or write the text in quotes with "" '
                f'for each " inside'
            ) from None

    @cached_property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        numbers = kinds is None or TEXT not in kinds.values()
        start, read = 0, 0
        with self._lines(track=True) as lines:
            if self.header:
                parsed = self._parse(lines)
                read = next((last for _, last, row in parsed if not self._is_blank(row)), 0)
            while block := list(islice(lines, rows)):
                matrix = self._matrix(block) if numbers else None
                if matrix is not None:
                    columns: dict[str, Any] = dict(zip(self.names, matrix.T.copy(), strict=True))
                    places = np.arange(read + 1, read + 1 + len(block))
                    read += len(block)
                else:
                    cells, places, read = self._records(block, lines, read)
                    columns = self._typed(cells, places, kinds)
                table = Table(columns, self.name, places, start, self._row_numbers(columns))
                start += len(table)
                if len(table):
                    yield table

    def _row_numbers(self, columns: dict[str, Any]) -> tuple[str, ...]:
        """Return the first column if it has no name and holds whole numbers, as pandas writes it.

        They may be repeated, as in a sample drawn with replacement.
        """
        if not self.unnamed or self.unnamed[0] != self.names[0]:
            return ()
        column = columns[self.names[0]]
        whole = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
        return (self.names[0],) if whole else ()

    def _matrix(self, block: list[str]) -> np.ndarray | None:
        """Return a block of plain numbers, by a loop in C; None if it has anything else.

        Numbers beyond 2^53 are left to `column_of`, which looks at their digits.
        """
        if not any(map(str.strip, block)):
            return None  # blank lines alone, of which NumPy would warn
        try:
            mark = None if self.delimiter == " " else self.delimiter
            matrix = np.loadtxt(block, delimiter=mark, comments=None, ndmin=2)
        except ValueError:
            return None
        if matrix.shape != (len(block), len(self.names)) or np.any(np.abs(matrix) >= MAX_EXACT):
            return None
        return matrix

    def _records(self, block: list[str], more: Iterator[str], read: int) -> Any:
        """Return cells by columns, the line of each row, and how many lines have been read."""
        wanted, cells, places = len(self.names), list[list[str]](), list[int]()
        end = read + len(block)
        for line, last, row in self._parse(chain(block, more), read):
            read = last
            if row and (len(row) > 1 or wanted == 1 or row[0].strip()):  # not a blank line
                if len(row) != wanted:
                    raise TableError(
                        f"{self.name}, line {line}: {len(row)} cells, but there are {wanted} "
                        f"columns - usually {_DELIMITERS.get(self.delimiter, 'a delimiter')} "
                        f"inside a text without quotes, or a line that was cut off - fix the line, "
                        f"or name what separates the cells: --delimiter"
                    )
                cells.append(row)
                places.append(line)
            if read >= end:
                break
        return list(zip(*cells, strict=True)), np.array(places, dtype=int), read

    def _typed(self, cells: Any, places: np.ndarray, kinds: dict[str, str] | None) -> Any:
        found: dict[str, Any] = {}
        for place, name in enumerate(self.names):
            given = cells[place] if cells else ()
            column = column_of(given, kinds[name] if kinds else None)
            if isinstance(column, int):
                raise TableError(
                    f"{self.name}, line {places[column]}, column {name!r}: "
                    f"{given[column]!r} is no number"
                )
            found[name] = column
        return found

    @contextmanager
    def _lines(self, track: bool = False) -> Iterator[Iterator[str]]:
        with lines_of(self, track) as lines:
            yield lines


@contextmanager
def lines_of(source: Source, track: bool = False) -> Iterator[Iterator[str]]:
    """Open the text of a source, gzipped or not, and name the line where it is none."""
    size = max(1, source.path.stat().st_size)
    with source.path.open("rb") as raw:
        magic = raw.read(2)
        raw.seek(0)
        unzipped: Any = gzip.GzipFile(fileobj=raw) if magic == b"\x1f\x8b" else raw
        marked = magic in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # "Unicode text" of Excel
        encoding = "utf-16" if marked else "utf-8-sig"
        with io.TextIOWrapper(unzipped, encoding=encoding, newline="") as text:
            yield _checked(text, source, raw if track else None, size)


def _checked(text: TextIO, source: Source, raw: Any, size: int) -> Iterator[str]:
    for number in count(1):
        try:
            line = next(text)
        except StopIteration:
            return
        except UnicodeDecodeError as error:
            raise TableError(
                f"{source.name}, near line {number}: byte {error.object[error.start]:#04x} is no "
                f"text in UTF-8 - usually a file in another encoding, or no text at all - convert "
                f"it with: iconv -f latin1 -t utf-8"
            ) from None
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(
                f"{source.name}, after line {number - 1}: {error} - usually a gzipped file that "
                f"was cut off - fetch it again"
            ) from None
        if raw is not None and not number % 1000:
            source.share = raw.tell() / size
        yield line


def _joined_lines(lines: Iterator[str]) -> str:
    """Return the next line, with those that follow while a quote is open; "" at the end."""
    first = text = next(lines, "")
    while text.count('"') % 2 and len(text) < csv.field_size_limit():
        more = next(lines, "")
        if not more:
            return first
        text += more
    return text


def _delimiter(first: str, second: str) -> str:
    """Return what seems to separate the cells of two lines."""
    plain = "".join(first.split('"')[::2])  # what stands outside of quotes
    if ";" in plain:
        plain = re.sub(r"(?<=\d),(?=\d)", "", plain)  # decimal commas
    counts = {mark: plain.count(mark) for mark in _DELIMITERS if mark != " "}
    most = max(counts, key=lambda mark: counts[mark])
    cells = (second or first).split()
    spaced = len(first.split()) == len(cells) > 1 and all(is_number(cell) for cell in cells)
    return " " if spaced and not counts[most] else most


def _one(delimiter: str) -> str:
    """Return a delimiter that was named."""
    mark = _SPELLED.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise TableError(
            f"the delimiter {delimiter!r} is not one character - write it as , ; | tab or space"
        )
    return mark


def _why(error: Exception) -> str:
    if "field larger" in str(error):
        return (
            "a cell of more than 131072 characters - usually a quote that opens in this line and "
            'is not closed - close it, or write the text in quotes with "" for each " inside'
        )
    return f"{error} - usually no text file - look at it with: head -c 200"
