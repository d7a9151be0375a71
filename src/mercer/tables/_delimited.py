"""CSV and its kin: cells between delimiters, a header in the first line or none."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ._source import Source
from ._table import TEXT, Table, TableError, column_of, is_number

__all__ = ["Delimited", "lines_of"]

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


class Delimited(Source):
    """Rows of cells: CSV, TSV, and what spreadsheets write.

    Parameters
    ----------
    delimiter : str, optional
        The one that is most frequent in the first line, unless given.
    header : bool, optional
        Whether the first line has the names; if it has anything but numbers, unless given.
    """

    def __init__(
        self, path: Path, name: str = "", delimiter: str | None = None, header: bool | None = None
    ) -> None:
        super().__init__(path, name)
        with self._lines() as lines:
            first = next((line for line in lines if line.strip()), "")
        if not first:
            raise TableError(
                f"{self.name} is empty - usually a file that was cut off, or the output of a "
                f"command that failed - look at it with: head {self.name}"
            )
        counts = {mark: _unquoted(first).count(mark) for mark in _DELIMITERS}
        self.delimiter = delimiter or max(counts, key=lambda mark: counts[mark])
        if delimiter is None and self.delimiter != "," and counts[self.delimiter]:
            self.notes.append(f"cells are separated by {_DELIMITERS[self.delimiter]}")
        cells = self._cells(first)
        self.header = not all(is_number(cell) for cell in cells) if header is None else header
        if not self.header:
            self.names = [f"column{i}" for i in range(1, len(cells) + 1)]
            if header is None:
                self.notes.append(
                    f"no header: the first line holds numbers alone, so the columns are called "
                    f"column1 to column{len(cells)}"
                )
            return
        self.names = [cell.strip() for cell in cells]
        for place, cell in enumerate(self.names, start=1):
            if not cell or self.names.index(cell) != place - 1:
                what = f"is called {cell!r} as an earlier one is" if cell else "has no name"
                raise TableError(
                    f"{self.name}, line 1: column {place} {what} - usually a header that was cut "
                    f"or pasted together - give each column a name of its own"
                )

    def _cells(self, line: str) -> list[str]:
        try:
            return next(csv.reader([line], delimiter=self.delimiter))
        except (csv.Error, StopIteration) as error:
            raise TableError(f"{self.name}, line 1: {_why(error)}") from None

    @cached_property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        numbers = kinds is None or TEXT not in kinds.values()
        start, read = 0, 0
        with self._lines(track=True) as lines:
            if self.header:
                read = _skip_header(lines)
            while block := list(islice(lines, rows)):
                matrix = self._matrix(block) if numbers else None
                if matrix is not None:
                    columns: dict[str, Any] = dict(zip(self.names, matrix.T.copy(), strict=True))
                    places = np.arange(read + 1, read + 1 + len(block))
                    read += len(block)
                else:
                    cells, places, read = self._records(block, lines, read)
                    columns = self._typed(cells, places, kinds)
                table = Table(columns, self.name, places, start)
                start += len(table)
                if len(table):
                    yield table

    def _matrix(self, block: list[str]) -> np.ndarray | None:
        """Return a block of plain numbers, by a loop in C; None if it has anything else."""
        try:
            matrix = np.loadtxt(block, delimiter=self.delimiter, comments=None, ndmin=2)
        except ValueError:
            return None
        return matrix if matrix.shape == (len(block), len(self.names)) else None

    def _records(self, block: list[str], more: Iterator[str], read: int) -> Any:
        """Return cells by columns, the line of each row, and how many lines have been read."""
        wanted, cells, places = len(self.names), list[list[str]](), list[int]()
        reader = csv.reader(chain(block, more), delimiter=self.delimiter)
        try:
            while reader.line_num < len(block):
                line = read + reader.line_num + 1
                row = next(reader)
                if not row:
                    continue  # a blank line
                if len(row) != wanted:
                    raise TableError(
                        f"{self.name}, line {line}: {len(row)} cells, but there are {wanted} "
                        f"columns - usually a {_DELIMITERS.get(self.delimiter, 'delimiter')[2:]} "
                        f"inside a text without quotes, or a line that was cut off - mend the line"
                    )
                cells.append(row)
                places.append(line)
        except csv.Error as error:
            line = read + reader.line_num + 1
            raise TableError(f"{self.name}, near line {line}: {_why(error)}") from None
        except StopIteration:
            pass
        return list(zip(*cells, strict=True)), np.array(places, dtype=int), read + reader.line_num

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
        with io.TextIOWrapper(unzipped, encoding="utf-8-sig", newline="") as text:
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


def _skip_header(lines: Iterator[str]) -> int:
    for read, line in enumerate(lines, start=1):
        if line.strip():
            return read
    return 0


def _unquoted(line: str) -> str:
    return "".join(line.split('"')[::2])


def _why(error: Exception) -> str:
    if "field larger" in str(error):
        return (
            "a cell of more than 131072 characters - usually a quote that was opened and never "
            'closed - look for a single " before this line'
        )
    return f"{error} - usually no text file - look at it with: head -c 200"
