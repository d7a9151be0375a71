"""Read delimited text files, such as CSV."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import chain, count, islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._cell_notation import (
    DATES,
    NUMBER,
    TEXT,
    MissingMarks,
    Notation,
    NotationDetector,
    detect_notation,
    is_number,
    parse_floats,
)
from ._table import Table, TableError
from ._table_source import Shape, Source

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "spaces"}
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_DECLARED_DELIMITER = re.compile(r'"?sep=(?P<delimiter>[^"])"?', re.IGNORECASE)  # by Excel
_INDEX_NAME = re.compile(r"Unnamed: 0(\.[0-9]+)*")  # of an index that pandas wrote and read
_BLANK = ' \t\r\n,;|"'  # characters of a line without cells
# Lines in which the header is searched.  Fewer lines are read if they are long.
_MIN_HEAD_LINES, _MAX_HEAD_LINES, _MAX_HEAD_CHARACTERS = 16, 1000, 2**20
_MAX_HEAD_ROWS = 20  # rows that are compared with the header
_MAX_TITLE_LINES = 12  # lines in which a title above the table is searched
_MAX_LISTED = 20  # lines that an error message lists
_MAX_NOTED = 5  # lines that a note lists
# Rows of the first block and of the other blocks in the first pass, and the number of cells.
_FIRST_SCAN_ROWS, _SCAN_ROWS = 2**10, 2**15
_FIRST_SCAN_CELLS, _SCAN_CELLS = 2**17, 2**21
_MIN_SCAN_ROWS = 2**5
_MIN_ENCODED_ROWS = 2**12  # minimum number of rows for which pyarrow encodes repeated text
# pyarrow needs about 30 KB per column, so that NumPy and the csv module need less memory for blocks
# of more columns if all are numbers, or if there are few rows.
_MAX_ARROW_COLUMNS, _FEW_ROWS = 2**10, 2**8
_CHUNK_BYTES = 2**20  # bytes that are read at once
_FIRST_LINES_PER_READ, _LINES_PER_READ = 2**3, 2**7  # lines that are decoded at once
# Names for delimiters that are hard to type on a command line.
_DELIMITER_NAMES = {"\\t": "\t", "tab": "\t", "space": " "}


class CsvSource(Source):
    """A delimited text file, such as CSV, TSV or the text export of a spreadsheet.

    The kind of a column is determined from all its cells, so that the file is read once before
    its rows are available.  The list `notes` is complete after this pass.  Blocks of rows are
    parsed by pyarrow, if it is installed.  If pyarrow cannot parse a block, the csv module does,
    which is slower but reports the line of an error.

    Parameters
    ----------
    path : Path
        The file, which may be compressed.
    name : str, default=""
        The name of the file in messages; if empty, `path` is used.
    delimiter : str, default=None
        The character that separates cells.  " " or "space" stands for any number of spaces, and
        "tab" for a tab.  None detects the delimiter from the first lines.
    header : bool, default=None
        Whether the first line contains the column names.  None detects it.
    na : str or sequence of str, default=()
        Cells that mean a missing value, in addition to the usual ones such as "NA" and "".  A
        string is split at commas.
    decimal : {".", ","}, default=None
        The decimal separator of columns whose cells do not determine it, such as "1,234".
    encoding : str, default=None
        The encoding.  None detects UTF-8 and UTF-16, and uses Windows-1252 otherwise.
    comment : str, default=None
        Lines that start with this text are skipped.  None skips lines that start with "#" before
        the header and, if there are any, between the rows.
    """

    def __init__(
        self,
        path: Path,
        name: str = "",
        delimiter: str | None = None,
        header: bool | None = None,
        na: str | Sequence[str] = (),
        decimal: str | None = None,
        encoding: str | None = None,
        comment: str | None = None,
    ) -> None:
        super().__init__(path, name)
        if decimal not in (None, ".", ","):
            raise TableError(f"decimal={decimal!r} must be '.' or ','")
        self.encoding = parse_encoding(encoding)
        self._missing = MissingMarks(na.split(",") if isinstance(na, str) else na)
        self._decimal, self._comment = decimal, comment
        self.unnamed: list[str] = []
        self._left_out = set[int]()  # indices of columns without a name or values
        self._notations: list[Notation] = []
        # The blocks and the cells of the first pass, if all cells of the file were parsed in it.
        self._scanned: list[tuple[RowBlock, dict[int, Any]]] | None = None
        self._index_columns: tuple[str, ...] = ()
        try:
            self._open(delimiter, header)
        except WrongEncoding as error:
            use_windows_1252(self, error)
            self._open(delimiter, header)

    # ------------------------------------------------------------------ the first lines

    def _open(self, delimiter: str | None, header: bool | None) -> None:
        """Determine the delimiter and the column names from the first lines."""
        notes = list[str]()
        with open_lines(self) as lines:
            head = _first_lines(lines)
        if any("\0" in line for line in head[:2]):
            raise TableError(
                f"{self.name}, line 1: the line contains the byte 0 - usually the file is not a "
                f"text file, or is UTF-16 without a byte-order mark - specify the encoding, for "
                f"example with --encoding utf-16-le"
            )
        if not any(map(str.strip, head)):
            raise self._no_data_error("is empty")
        self._skipped, self._header_mark, self._detected_comment = 0, "", ""
        declared = _DECLARED_DELIMITER.fullmatch(head[0].strip())
        if declared:
            delimiter = delimiter or declared["delimiter"]
            self._skipped = 1
        self.delimiter = "," if delimiter is None else _parse_delimiter(delimiter)
        self._skip_comments(head, delimiter is None, header is not False)
        self._skip_title(head, delimiter is None, notes)
        if delimiter is None:
            first = head[self._skipped].removeprefix(self._header_mark)
            self.delimiter = self._guess([first, *head[self._skipped + 1 :]])
            if self.delimiter != ",":
                notes.append(
                    f"cells are separated by {_DELIMITERS[self.delimiter]} (detected) - if this "
                    f"is wrong, specify the character with --delimiter"
                )
        with open_lines(self) as lines:
            self._set_header(lines, header, notes)
        self.notes += notes

    def _guess(self, lines: list[str]) -> str:
        """Guess the delimiter from the first lines."""
        mark = self._comment or self._detected_comment
        present = [
            line
            for i, line in enumerate(lines)
            if line.strip() and not (i and mark and line.startswith(mark))
        ]
        if _are_spaced(present[:_MAX_HEAD_ROWS]):
            return " "
        remaining = iter(present)
        first, second = _next_record(remaining), _next_record(remaining)
        return _guess_delimiter(first, second)

    def _split(self, line: str) -> list[str]:
        """Return the cells of one line; [] if it is blank."""
        try:
            cells: list[str] = next(iter(self._csv_reader([line])), [])
        except csv.Error:
            cells = [line]
        return cells if any(map(str.strip, cells)) else []

    def _skip_comments(self, head: list[str], guess: bool, may_have_names: bool) -> None:
        """Skip the comments before the header, unless the last of them contains the names."""
        mark = "#" if self._comment is None else self._comment
        last_comment, n_comments = None, 0
        while mark and self._skipped < len(head):
            line = head[self._skipped]
            if line.startswith(mark):
                last_comment = self._skipped
                n_comments += 1
            elif line.strip():
                break
            self._skipped += 1
        if last_comment is None:
            return
        if self._skipped == len(head):
            self._skipped = last_comment  # there is nothing but comments
            return
        self._detected_comment = mark if self._comment is None else ""
        if guess:
            self.delimiter = self._guess(head[self._skipped :])
        row = self._split(head[self._skipped])
        text = head[last_comment].removeprefix(mark)
        names = self._split(text if self.delimiter == " " else head[last_comment])
        has_numbers = any(is_number(cell) for cell in row)
        # "#,name,size" and "# x y", as written by numpy.savetxt, are names above numbers.
        is_header = (
            may_have_names
            and self._comment is None
            and 1 < len(names) == len(row)
            and has_numbers
            and not any(is_number(cell) for cell in names)
            and (all(is_number(cell) for cell in row) or not text.startswith((" ", "\t")))
        )
        if is_header:
            self._skipped = last_comment
            self._header_mark = "" if names[0].strip() == mark else mark
            if n_comments == 1 and not self._header_mark:
                self._detected_comment = ""  # "#" is the name of a column

    def _skip_title(self, head: list[str], guess: bool, notes: list[str]) -> None:
        """Skip a title above the table, if it is followed by a blank line or is a single cell."""
        if self._header_mark:
            return
        lines = head[self._skipped : self._skipped + _MAX_TITLE_LINES]
        if guess:
            candidates = [i for i, line in enumerate(lines) if not line.strip(_BLANK)]
            after = next((i for i in candidates if any(map(str.strip, lines[:i]))), 0)
            tail = head[self._skipped + (after or 1) :]
            if not any(map(str.strip, tail)):
                return
            self.delimiter = self._guess(tail)
        rows = [self._split(line) for line in lines]
        start = next((i for i, row in enumerate(rows) if row), 0)
        end = next((i for i in range(start, len(rows)) if not rows[i]), start + 1)
        body = [
            row
            for row in map(self._split, head[self._skipped + end : self._skipped + end + 50])
            if row
        ][:2]
        if len(body) < 2 or len(body[0]) != len(body[1]) or len(body[0]) < 2:
            return
        title = [[cell for cell in row if cell.strip()] for row in rows[start:end]]
        width = len(body[0])
        is_followed_by_blank = end < len(rows) and not rows[end]
        if any(line.count('"') % 2 for line in lines[start:end]):
            return
        if is_followed_by_blank:
            is_title = all(len(row) <= 2 < width or len(row) == 1 for row in title)
        else:
            # A single column of texts may contain delimiters; its texts are rarely all different.
            has_names = (
                not any(map(is_number, body[0]))
                and len(set(body[0])) == width
                and not any(name == cell for name, cell in zip(*body, strict=True))
            )
            is_title = has_names and all(len(row) == 1 for row in rows[start:end])
        if is_title:
            shown = " ".join(title[0])
            while end < len(rows) and not rows[end]:
                end += 1
            self._skipped += end
            notes.append(f"the title {shown!r} above the table is skipped")

    def _set_header(self, lines: Iterator[str], header: bool | None, notes: list[str]) -> None:
        """Set the names of the columns, and the position of the first row."""
        consumed = list[str]()

        def recorded() -> Iterator[str]:
            for line in lines:
                consumed.append(line)
                yield line

        recorded_lines = recorded()
        list(islice(recorded_lines, self._skipped))
        self._body = sum(len(line.encode()) for line in consumed), len(consumed)
        if self._header_mark:
            line = next(recorded_lines)
            recorded_lines = chain([line.removeprefix(self._header_mark).lstrip()], recorded_lines)
        records = (r for r in self._parse(recorded_lines, self._skipped) if not self._is_left(r[2]))
        _, last, cells = next(records, (0, 0, [""]))
        after_header = sum(len(line.encode()) for line in consumed), last
        rows = [row for _, _, row in islice(records, _MAX_HEAD_ROWS)]
        rows = [row for row in rows if not self._is_comment(row, len(cells))]
        if header is None:
            header, why = self._has_header(cells, rows)
        else:
            why = ""
        self.header = header or bool(self._header_mark)
        if not self.header:
            width = len(cells)
            while width > 1 and not any(row[width - 1 :] != [""] for row in [cells, *rows]):
                width -= 1  # a delimiter at the end of every line
            self.names = [f"column{i}" for i in range(1, width + 1)]
            if why:
                notes.append(
                    f"no header: {why}, so the columns are named column1 to column{width} - if "
                    f"the first line contains names, use --header"
                )
            return
        self._body = after_header
        # R writes row names without a name in the header, and some programs write a delimiter at
        # the end of every line except the header, or only in the header.
        widths = {len(row) for row in rows}
        if widths == {len(cells) + 1} and any(row[-1].strip() for row in rows):
            cells = ["", *cells]
        while rows and len(cells) > max(widths) and len(cells) > 1 and not cells[-1].strip():
            cells = cells[:-1]
        self._set_names(cells, why, notes)

    def _is_left(self, row: list[str]) -> bool:
        """Return True if a record before the first row is skipped: no values, or a comment."""
        return not any(map(str.strip, row)) or (
            bool(self._comment) and row[0].startswith(str(self._comment))
        )

    def _is_comment(self, row: list[str], n_columns: int) -> bool:
        """Return True if a record is a comment, given that there are comments before the header.

        A record such as "#12,3.5", with a cell for each column, is a row.
        """
        mark = self._detected_comment
        if not mark or not row or not row[0].startswith(mark):
            return False
        return len(row) != n_columns or row[0].removeprefix(mark).startswith((" ", "\t"))

    def _has_header(self, cells: list[str], rows: list[list[str]]) -> tuple[bool, str]:
        """Return whether the first line contains names, and the reason for a note."""
        names = [cell.strip() for cell in cells]
        values = [cell.strip() for cell in rows[0]] if rows else []
        kinds = [_cell_kind(name, self._missing) for name in names]
        numbers = [name for name, kind in zip(names, kinds, strict=True) if kind == NUMBER]
        unless = "if the first line is data, use --no-header"
        if len(numbers) == len(names):
            if self._is_numbered_header(names, values):
                return True, f"the first line is used as the header - {unless}"
            return False, "the first line contains only numbers"
        index = names[1:] if not names[0] else names
        if not numbers or index == [str(i) for i in range(len(index))]:
            return True, ""
        why = (
            f"the first line is used as the header, although {len(numbers)} of its {len(cells)} "
            f"cells are numbers - {unless}"
        )
        if not rows or any(len(row) != len(names) for row in rows):
            return True, why
        columns = list(zip(*rows, strict=True))
        # The first line is data if one of its texts occurs again in the same column.
        texts = [j for j, kind in enumerate(kinds) if kind == TEXT]
        if any(cells[j] in columns[j] for j in texts):
            return False, "the texts of the first line occur again in the other lines"
        if _are_numbered_names(numbers):
            return True, why
        # The first line is also data if it has numbers exactly where the other lines have numbers.
        for kind, column in zip(kinds, columns, strict=True):
            others = {_cell_kind(cell, self._missing) for cell in column} - {""}
            if kind and others and kind not in others:
                return True, why
        return False, "the first line has numbers in the same columns as the other lines"

    def _is_numbered_header(self, names: list[str], values: list[str]) -> bool:
        """Return True if a first line of numbers contains column names.

        pandas writes the names 0, 1, 2, ... for unnamed columns, and the columns of pivot tables
        are often years.
        """
        if not all(name.isascii() and name.isdigit() for name in names):
            return False
        n, start = len(names), int(names[0])
        if names != [str(i) for i in range(start, start + n)] or len(values) != n:
            return False
        present = [value for value in values if value.lower() not in self._missing.texts]
        if start == 0 and any(not is_number(value) for value in present):
            return True  # a number above text must be a column name
        if values == [str(i) for i in range(start + n, start + 2 * n)]:
            return False  # the second line continues the first
        if start == 0 and n == 1:
            return any(not value.lstrip("+-").isdigit() for value in present)
        if start == 0:
            return sorted(values) != sorted(names)
        return 1900 <= start <= 2100 and n > 2

    def _set_names(self, cells: list[str], why: str, notes: list[str]) -> None:
        """Set the column names from a header, and add notes about unusual names."""
        taken = {cell.strip() for cell in cells}
        names: dict[str, None] = {}
        renamed = list[str]()
        for i, cell in enumerate(cells, start=1):
            name = cell.strip() or f"column{i}"
            if name in names:
                spellings = (f"{name}_{k}" for k in count(2))
                name = next(n for n in spellings if n not in taken and n not in names)
                renamed.append(name)
            names[name] = None
        self.names = list(names)
        if renamed:
            shown = ", ".join(map(repr, renamed[:6])) + (", ..." if len(renamed) > 6 else "")
            notes.append(
                f"{len(renamed)} column{'s have' if len(renamed) > 1 else ' has'} the same name "
                f"as an earlier column and {'are' if len(renamed) > 1 else 'is'} renamed to {shown}"
            )
        self.unnamed = [
            name for name, cell in zip(self.names, cells, strict=True) if not cell.strip()
        ]
        if why:
            notes.append(why)

    # ------------------------------------------------------------------ records

    def _csv_reader(self, lines: Iterable[str], strict: bool = False) -> Any:
        """Return a CSV reader of the lines."""
        if self.delimiter == " ":
            lines = map(_collapse_spaces, lines)
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
    def _empty_line_searches(self) -> list[Callable[[bytes], Any]]:
        """Functions that find a line of only delimiters, spaces and quotes in data.

        The first function tests the first line.  The second one finds other lines; it is fast,
        because its pattern starts with a fixed character.
        """
        blank = b'[ \t\r"' + re.escape(self.delimiter.encode()) + b"]"
        line = rb"(?:%b*\n|%b+\Z)" % (blank, blank)
        return [re.compile(line).match, re.compile(rb"\n" + line).search]

    @cached_property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names)

    # ------------------------------------------------------------------ all rows

    @cached_property
    def shape(self) -> Shape:
        """The number of rows and the kinds of the columns.

        The file is read once to determine them.  If it fits into one block, the block is cached.
        """
        try:
            rows = self._scan()
        except WrongEncoding as error:
            use_windows_1252(self, error)
            rows = self._scan()
        if rows <= self.rows_per_block:
            self._cached_block = self._scanned_table() or Table.joined(
                list(self._read(self.rows_per_block, None))
            )
        self._scanned = None
        kinds = [notation.kind for notation in self._notations]
        return Shape(
            rows,
            {
                name: kind
                for j, (name, kind) in enumerate(zip(self.names, kinds, strict=True))
                if j not in self._left_out
            },
        )

    def _scan(self, decimal: str | None = None, careful: frozenset[int] = frozenset()) -> int:
        """Determine the notation of each column, and return the number of rows.

        `decimal` is the decimal separator that other columns of the file have.  The cells of the
        columns in `careful` are all inspected, even if they seem to be plain numbers.
        """
        detectors = [NotationDetector(self._missing) for _ in self.names]
        problems, skipped, comments = list[tuple[int, int]](), list[int](), list[int]()
        n_rows = 0
        self._scanned = []
        # Leading columns that may contain row numbers.
        index = set(takewhile(self._may_be_index, range(len(self.names))))
        assumed = self._decimal or decimal
        # A few rows are sufficient to decide which columns are probably plain numbers.
        first = min(_FIRST_SCAN_ROWS, max(_MIN_SCAN_ROWS, _FIRST_SCAN_CELLS // self.width))
        rows = min(_SCAN_ROWS, max(_MIN_SCAN_ROWS, _SCAN_CELLS // self.width))
        for block in self._blocks(rows, first):
            block.problems = problems
            modes = {}
            for j, detector in enumerate(detectors):
                is_inspected = not n_rows or j in careful
                plain = None if is_inspected else detector.plain_decimal(assumed)
                if not detector.is_text or j in index:
                    modes[j] = plain or TEXT
            cells = block.read(modes)
            n_rows += block.n_rows
            if self._scanned is not None:
                is_complete = len(cells) == self.width and n_rows <= self.rows_per_block
                self._scanned = [*self._scanned, (block, cells)] if is_complete else None
            skipped += block.empty_lines
            comments += block.comment_lines
            for j, found in cells.items():
                if not isinstance(found, np.ndarray):
                    detectors[j].update(found.uniques)
                elif not detectors[j].add_numbers(found, modes[j]):
                    detectors[j].update(block.read({j: TEXT})[j].uniques)
                if j in index and not _are_integers(found):
                    index.remove(j)
            if assumed is None:
                assumed = self._file_decimal(detectors)
        if problems:
            raise self._width_error(problems)
        if not n_rows:
            raise self._no_data_error("has no rows")
        final = self._decimal or self._file_decimal(detectors)
        self._decide(detectors, final)
        # Commas may be found after columns have been read with decimal points, and vice versa.
        misread = {
            j
            for j, (detector, notation) in enumerate(zip(detectors, self._notations, strict=True))
            if detector.was_misread(notation)
        }
        is_late = final == "," and "." in set().union(*(d.read_decimals for d in detectors))
        if misread - careful or (is_late and self._decimal is None and decimal is None):
            return self._scan(final, careful | misread)
        self._report(detectors, sorted(index))
        if comments:
            self.notes.append(f"comments that start with # are skipped: {_list_lines(comments)}")
        if skipped:
            self.notes.append(
                f"lines that contain only delimiters are skipped: {_list_lines(skipped)}"
            )
        return n_rows

    def _scanned_table(self) -> Table | None:
        """Return all rows from the cells of the first pass; None if they must be read again."""
        if self._scanned is None:
            return None
        for _, cells in self._scanned:
            for found, notation in zip(cells.values(), self._notations, strict=True):
                if isinstance(found, np.ndarray) and notation.kind != NUMBER:
                    return None
        used = [j for j in range(len(self.names)) if j not in self._left_out]
        columns = {
            self.names[j]: _concatenate(
                [
                    self._convert(j, cells[j], self._notations[j], block)
                    for block, cells in self._scanned
                    if block.n_rows
                ]
            )
            for j in used
        }
        lines = np.concatenate([block.line_numbers for block, _ in self._scanned])
        booleans = tuple(self.names[j] for j in used if self._notations[j].is_boolean)
        return Table(columns, self.name, lines, 0, self._index_columns, booleans)

    def _may_be_index(self, j: int) -> bool:
        """Return True if the name of a column is that of row numbers of pandas or R."""
        name = self.names[j]
        return (j == 0 and name in self.unnamed[:1]) or _INDEX_NAME.fullmatch(name) is not None

    @staticmethod
    def _file_decimal(detectors: list[NotationDetector]) -> str | None:
        """Return the decimal separator that the cells of all columns prove, if it is unique."""
        found = {detector.decimal for detector in detectors} - {None}
        return found.pop() if len(found) == 1 else None

    def _decide(self, detectors: list[NotationDetector], decimal: str | None) -> None:
        """Select the notation of each column."""
        orders = {detector.day_first for detector in detectors} - {None}
        day_first = orders.pop() if len(orders) == 1 else None
        semicolon = self.delimiter == ";"
        self._notations = [
            detector.notation(decimal, comma_default=semicolon, day_first=day_first)
            for detector in detectors
        ]

    def _report(self, detectors: list[NotationDetector], index: list[int]) -> None:
        """Leave out empty columns without a name, and add notes about the columns."""
        self._left_out = {
            j
            for j, (name, detector) in enumerate(zip(self.names, detectors, strict=True))
            if detector.is_undecided and name in self.unnamed
        }
        if len(self._left_out) == len(self.names):
            self._left_out = set()
        self._index_columns = tuple(self.names[j] for j in index)
        unnamed = [
            name
            for j, name in enumerate(self.names)
            if name in self.unnamed
            if j not in self._left_out
        ]
        if index:
            listed = ",".join(self._index_columns)
            contain = (
                "contains row numbers and is" if len(index) == 1 else "contain row numbers and are"
            )
            it = "it" if len(index) == 1 else "them"
            self.notes.append(f"{listed} {contain} not used, unless --columns includes {it}")
            unnamed = [name for name in unnamed if name not in self._index_columns]
        if unnamed:
            listed = ",".join(unnamed)
            self.notes.append(
                f"columns without a name in the header are named {listed} - exclude them with "
                f"--ignore {listed}"
            )
        by_note: dict[str, list[int]] = {}
        for j, notation in enumerate(self._notations):
            if notation.note:
                by_note.setdefault(notation.note, []).append(j)
        for note, columns in by_note.items():
            what, dash, advice = note.partition(" - ")
            shown = ", ".join(repr(self.names[j]) for j in columns[:5])
            more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
            example = self._notations[columns[0]].example
            self.notes.append(
                f"column{'s' if len(columns) > 1 else ''} {shown}{more}: {what}, such as "
                f"{example}{dash}{advice}"
            )

    def _width_error(self, problems: list[tuple[int, int]]) -> TableError:
        """Return the error for rows with a wrong number of cells: (line, number of cells)."""
        n = len(self.names)
        usually = (
            f"usually {_DELIMITERS.get(self.delimiter, 'a delimiter')} inside a cell without "
            f"quotes, or a truncated line"
        )
        if len(problems) == 1:
            line, width = problems[0]
            return TableError(
                f"{self.name}, line {line}: the line has {width} cells, but there are "
                f"{n} columns - {usually} - correct the line, or specify the delimiter with "
                f"--delimiter"
            )
        shown = ", ".join(f"line {line} ({width})" for line, width in problems[:_MAX_LISTED])
        more = f" and {len(problems) - _MAX_LISTED} more" if len(problems) > _MAX_LISTED else ""
        return TableError(
            f"{self.name}, line {problems[0][0]}: the line has {problems[0][1]} cells, but there "
            f"are {n} columns; {len(problems)} lines have a wrong number of cells: {shown}{more} - "
            f"{usually} - correct these lines, or specify the delimiter with --delimiter"
        )

    def _blocks(self, rows: int, first: int | None = None) -> Iterator[RowBlock]:
        """Yield the lines of the file in blocks of `rows` lines (`first` in the first block)."""
        offset, read = self._body
        with TextStream(self, track=True) as stream:
            stream.skip(offset, read)
            while data := stream.read_lines(first or rows):
                first = None
                yield RowBlock(self, data, stream)
                del data

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        if not self._notations:
            _ = self.shape
        notations = [
            Notation(TEXT) if kinds and kinds.get(name) == TEXT else notation
            for name, notation in zip(self.names, self._notations, strict=True)
        ]
        used = [j for j in range(len(self.names)) if j not in self._left_out]
        modes = {j: notations[j].decimal or TEXT for j in used}
        booleans = tuple(self.names[j] for j in used if notations[j].is_boolean)
        return _regroup(self._tables(rows, notations, modes, booleans), rows)

    def _tables(
        self, rows: int, notations: list[Notation], modes: dict[int, str], booleans: tuple[str, ...]
    ) -> Iterator[Table]:
        """Yield the rows in blocks of `rows` lines."""
        start = 0
        for block in self._blocks(rows):
            cells = block.read(modes)
            if not block.n_rows:
                continue
            columns = {
                self.names[j]: self._convert(j, found, notations[j], block)
                for j, found in cells.items()
            }
            lines = block.line_numbers
            del block, cells  # the text is not needed while the table is in use
            yield Table(columns, self.name, lines, start, self._index_columns, booleans)
            start += len(lines)

    def _convert(
        self, j: int, found: np.ndarray | Cells, notation: Notation, block: RowBlock
    ) -> np.ndarray:
        """Convert the cells of a column; raise a TableError if one does not match."""
        if isinstance(found, np.ndarray):
            return self._missing.clear(found)
        values = notation.convert(found.uniques, self._missing)
        if isinstance(values, int):
            row = int(np.argmax(found.codes == values))
            what = "a date" if notation.kind == DATES else "a number"
            raise TableError(
                f"{self.name}, line {block.line_numbers[row]}, column {self.names[j]!r}: "
                f"{found.uniques[values]!r} is not {what}"
            )
        return values[found.codes]


def _concatenate(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _list_lines(lines: list[int]) -> str:
    """Return line numbers for a note, such as "lines 3, 8 and 20 more"."""
    shown = ", ".join(map(str, lines[:_MAX_NOTED]))
    more = f" and {len(lines) - _MAX_NOTED} more" if len(lines) > _MAX_NOTED else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"


def _are_numbered_names(numbers: list[str]) -> bool:
    """Return True if numbers in a header are probably names: 1, 2, 3, years or an ordered list."""
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return False
    values = np.array([float(number) for number in numbers])
    if np.all((values >= 1900) & (values <= 2100)):
        return True
    steps = np.diff(values)
    return bool(np.all(steps == 1) if len(values) < 3 else np.all(steps > 0)) and len(values) > 1


def _are_integers(found: np.ndarray | Cells) -> bool:
    """Return True if all cells are integers; a missing value is not an integer."""
    try:
        floats = found if isinstance(found, np.ndarray) else parse_floats(found.uniques)
    except ValueError:
        return False
    return bool(np.all(floats == np.round(floats)))


def _cell_kind(cell: str, missing: MissingMarks) -> str:
    """Return the kind of a single cell: numbers, dates or text; "" if it is missing."""
    if cell.strip().lower() in missing.texts:
        return ""
    notation = detect_notation([cell], missing)
    return TEXT if notation.unit else notation.kind  # "7 days" may be the name of a column


def _regroup(tables: Iterator[Table], rows: int) -> Iterator[Table]:
    """Regroup tables into tables of `rows` rows.

    Blocks of lines have fewer rows if there are blank lines or cells of several lines.
    """
    pending: Table | None = None
    for table in tables:
        joined = table if pending is None else Table.joined([pending, table])
        pending = None
        while len(joined) >= rows:
            yield joined if len(joined) == rows else joined.take(slice(0, rows))
            joined = joined.take(slice(rows, None)) if len(joined) > rows else joined.take([])
        if len(joined):
            pending = joined
    if pending is not None:
        yield pending


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
    source : CsvSource
        The file.
    data : bytes
        The lines, in UTF-8.
    stream : TextStream
        The file, after these lines; more lines are read if a quoted cell extends beyond `data`.
    """

    def __init__(self, source: CsvSource, data: bytes, stream: TextStream) -> None:
        self._source, self._data, self._stream = source, data, stream
        self._first_line = stream.lines_before + 1
        self._n_lines = stream.n_lines - stream.lines_before
        self._columns: list[Cells] | None = None
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
        if self._columns is None and self._is_simple:
            columns = self._read_with_arrow(modes) if pyarrow_csv() else self._read_numbers(modes)
            if columns is not None:
                self.n_rows = self._n_lines
                self.line_numbers = np.arange(self._first_line, self._first_line + self._n_lines)
                return columns
        if self._columns is None:
            self._columns = self._parse_records()
        return {j: self._columns[j] for j in modes}

    @cached_property
    def _is_simple(self) -> bool:
        r"""Whether each line is one record, which the fast parsers handle like the csv module."""
        data, source = self._data, self._source
        mark = (source._comment or source._detected_comment).encode()
        if mark and (data.startswith(mark) or b"\n" + mark in data):
            return False
        if any(find(data) for find in source._empty_line_searches):
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
        source = self._source
        n = len(source.names)
        are_numbers = len(modes) == n and set(modes.values()) == {"."}
        is_wide = n > _MAX_ARROW_COLUMNS and (are_numbers or self._n_lines <= _FEW_ROWS)
        if is_wide or source.delimiter == " " or not source.delimiter.isascii():
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
        n = len(self._source.names)
        names = [str(j) for j in range(n)]
        # If no column is selected, the number of cells of each row is checked nevertheless.
        included = [names[j] for j in selected] or names[:1]
        try:
            table = pc.read_csv(
                pa.BufferReader(self._data),
                pc.ReadOptions(
                    use_threads=False, block_size=len(self._data) + 1, column_names=names
                ),
                pc.ParseOptions(delimiter=self._source.delimiter),
                pc.ConvertOptions(
                    column_types=dict.fromkeys(included, kind),
                    include_columns=included,
                    null_values=self._source._missing.spellings,
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
        delimiter = self._source.delimiter
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
        if matrix.shape != (self._n_lines, len(self._source.names)):
            return None
        return {j: matrix[:, j].copy() for j in modes}

    def _parse_records(self) -> list[Cells]:
        """Parse the lines with the csv module, which accepts cells of several lines."""
        source = self._source
        n_columns, rows, line_numbers = len(source.names), list[list[str]](), list[int]()
        lines = split_lines(self._data.decode())
        before = self._first_line - 1
        end = before + len(lines)
        more = self._stream.more_lines()
        if source._comment:
            # A comment inside quotes is part of a cell; such files are not supported.
            marked = ("\n" if line.startswith(source._comment) else line for line in lines)
            lines = list(marked)
        last = before
        for line, last, row in source._parse(chain(lines, more), before):
            if n_columns > 1 and not any(map(str.strip, row)):
                self.empty_lines += [line] * (len(row) > 1)  # blank lines are skipped silently
            elif source._is_comment(row, n_columns):
                self.comment_lines.append(line)
            elif row:
                if len(row) > n_columns and not any(map(str.strip, row[n_columns:])):
                    row = row[:n_columns]  # delimiters at the end of the line
                if len(row) == n_columns:
                    rows.append(row)
                    line_numbers.append(line)
                elif self.problems is None:
                    raise source._width_error([(line, len(row))])
                else:
                    self.problems.append((line, len(row)))
            if last >= end:
                break
        self._stream.n_lines = max(last, end)
        self.n_rows, self.line_numbers = len(rows), np.array(line_numbers, dtype=int)
        if not rows:
            return [Cells([], np.empty(0, dtype=int))] * n_columns
        return [Cells.of(column) for column in zip(*rows, strict=True)]


# ---------------------------------------------------------------------- lines


@lru_cache(maxsize=1)
def pyarrow_csv() -> Any:
    """Return the modules pyarrow and pyarrow.csv; None if they are not installed."""
    try:
        import pyarrow as pa
        from pyarrow import csv as pc
    except ImportError:
        return None
    return pa, pc


class WrongEncoding(Exception):
    """Raised if a file without a declared encoding is not valid UTF-8."""

    def __init__(self, line: int, data: bytes, position: int) -> None:
        super().__init__(line, data, position)
        self.line, self.data, self.position = line, data, position


def _latin1_fallback(error: Any) -> tuple[str, int]:
    """Decode the five bytes that Windows-1252 does not define as in Latin-1."""
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("mercer_latin1", _latin1_fallback)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")  # bytes that text files do not contain


def use_windows_1252(source: Any, error: WrongEncoding) -> None:
    """Read a file that is not UTF-8 as Windows-1252; raise a TableError if it is not text."""
    if _CONTROL.search(error.data):
        example = " utf-16-le" if b"\0" in error.data else ""
        raise TableError(
            f"{source.name}, near line {error.line}: byte {error.data[error.position]:#04x} is not "
            f"valid UTF-8, and the file contains control characters - usually it is not a text "
            f"file - inspect it with: head -c 200, or specify its encoding with --encoding"
            f"{example}"
        ) from None
    source.encoding = "cp1252"
    source.notes.append(
        f"the file is not UTF-8 (near line {error.line}) and is read as Windows-1252 (Latin-1) - "
        f"if this is wrong, specify the encoding with --encoding"
    )


def parse_encoding(encoding: str | None) -> str | None:
    """Return the normalised name of an encoding; raise a TableError if it is unknown."""
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise TableError(
            f"the encoding {encoding!r} is unknown - use for example utf-8, utf-16, latin-1, "
            f"cp1252 or shift_jis"
        ) from None
    return "utf-8-sig" if name == "utf-8" else name


_DECOMPRESSORS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
with suppress(ImportError):  # Python 3.14 and later
    _DECOMPRESSORS[b"\x28\xb5\x2f\xfd"] = import_module("compression.zstd").ZstdFile


def split_lines(text: str) -> list[str]:
    """Split text into lines, which keep their line ends, as files do."""
    return list(io.StringIO(text, newline=""))


class TextStream:
    """The lines of a text file as UTF-8, without compression and byte-order mark.

    Parameters
    ----------
    source : Source
        The file; its attribute `encoding` is the encoding, or None to detect UTF-8 and UTF-16.
    track : bool, default=False
        Whether to update the attribute `fraction_read` of the source.

    Attributes
    ----------
    n_lines : int
        The number of lines that have been read.
    lines_before : int
        The number of lines before the last block.
    """

    def __init__(self, source: Any, track: bool = False) -> None:
        self._source, self._track = source, track
        self._size = max(1, source.path.stat().st_size)
        self.n_lines = self.lines_before = 0
        self._buffer, self._has_ended = b"", False
        self._decoder: Any = None
        self._is_first, self._is_mac, self._skip_mark = True, False, False

    def __enter__(self) -> TextStream:
        self._raw = self._source.path.open("rb")
        magic = self._raw.read(6)
        self._raw.seek(0)
        self._file: Any = self._raw
        for start, opener in _DECOMPRESSORS.items():
            if magic.startswith(start):
                self._file = opener(self._raw)
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def _fill(self) -> bool:
        """Read the next bytes into the buffer; return False at the end of the file."""
        if self._has_ended:
            return False
        try:
            chunk = self._file.read(_CHUNK_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            lines = self.n_lines + self._buffer.count(b"\n")
            raise TableError(
                f"{self._source.name}, after line {lines}: {error} - usually a truncated "
                f"compressed file - download or create it again"
            ) from None
        if self._track:
            self._source.fraction_read = self._raw.tell() / self._size
        self._has_ended = not chunk
        if self._is_first:
            self._is_first = False
            self._choose_encoding(chunk)
        if self._decoder is not None:
            try:
                chunk = self._decoder.decode(chunk, not chunk).encode("utf-8", "replace")
            except UnicodeDecodeError as error:
                line = self.n_lines + self._buffer.count(b"\n") + 1
                raise self._decoding_error(error, line) from None
        elif self._skip_mark:
            self._skip_mark = False
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        if self._is_mac:
            chunk = chunk.replace(b"\r", b"\n")
        self._buffer += chunk
        return not self._has_ended or bool(chunk)

    def _choose_encoding(self, chunk: bytes) -> None:
        encoding = getattr(self._source, "encoding", None)
        if encoding is None and chunk[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "utf-16"  # Excel writes it if a sheet is saved as "Unicode text"
        self._skip_mark = encoding in (None, "utf-8-sig")
        if not self._skip_mark and encoding is not None:
            errors = "mercer_latin1" if encoding == "cp1252" else "strict"
            self._decoder = codecs.getincrementaldecoder(encoding)(errors)
            chunk = self._decoder.decode(chunk).encode("utf-8", "replace")
            self._decoder.reset()
        # Old Macs end lines with a carriage return.
        self._is_mac = b"\n" not in chunk and b"\r" in chunk[:-1]

    def _decoding_error(self, error: UnicodeDecodeError, line: int) -> TableError:
        return TableError(
            f"{self._source.name}, near line {line}: byte {error.object[error.start]:#04x} is not "
            f"valid {error.encoding} - usually the file has another encoding, or is not a text "
            f"file - specify the encoding with --encoding"
        )

    def _check(self, data: bytes, line: int) -> bytes:
        """Return data if it is valid UTF-8; raise `WrongEncoding` or a TableError otherwise."""
        if not data.isascii() and self._decoder is None:
            try:
                data.decode()
            except UnicodeDecodeError as error:
                line += data[: error.start].count(b"\n")
                if getattr(self._source, "encoding", "utf-8") is not None:
                    raise self._decoding_error(error, line) from None
                raise WrongEncoding(line, data, error.start) from None
        return data

    def skip(self, n_bytes: int, n_lines: int) -> None:
        """Skip bytes of the UTF-8 text, which contain the given number of lines."""
        while len(self._buffer) < n_bytes and self._fill():
            pass
        self._buffer = self._buffer[n_bytes:]
        self.n_lines = self.lines_before = n_lines

    def read_lines(self, count: int) -> bytes:
        """Return at most `count` lines; b"" at the end of the file."""
        parts, n_found = list[bytes](), 0
        while n_found < count and (self._buffer or self._fill()):
            ends = np.flatnonzero(np.frombuffer(self._buffer, np.uint8) == ord("\n"))
            if n_found + len(ends) >= count:
                cut = int(ends[count - n_found - 1]) + 1
                parts.append(self._buffer[:cut])
                self._buffer = self._buffer[cut:]
                n_found = count
                break
            n_found += len(ends)
            parts.append(self._buffer)
            self._buffer = b""
        data = b"".join(parts)
        self.lines_before = self.n_lines
        if data and not data.endswith(b"\n"):
            n_found += 1  # the last line has no line end
        self.n_lines += n_found
        return self._check(data, self.lines_before + 1)

    def more_lines(self) -> Iterator[str]:
        """Yield further lines as text; lines that are not consumed remain in the stream."""
        while True:
            end = self._buffer.find(b"\n")
            while end < 0 and self._fill():
                end = self._buffer.find(b"\n")
            data = self._buffer[: end + 1] if end >= 0 else self._buffer
            if not data:
                return
            line = split_lines(self._check(data, self.n_lines + 1).decode())[0]
            self._buffer = self._buffer[len(line.encode()) :]
            yield line


@contextmanager
def open_lines(source: Source, track: bool = False) -> Iterator[Iterator[str]]:
    """Open a text file, which may be compressed; error messages state the line number.

    If `track` is True, the attribute `fraction_read` of the source is updated during reading.
    """
    with TextStream(source, track) as stream:
        yield _lines(stream)


def _lines(stream: TextStream) -> Iterator[str]:
    n_lines = _FIRST_LINES_PER_READ  # often only the first lines are needed
    while data := stream.read_lines(n_lines):
        yield from split_lines(data.decode())
        n_lines = min(2 * n_lines, _LINES_PER_READ)


def _first_lines(lines: Iterator[str]) -> list[str]:
    """Return the lines in which the header is searched."""
    head, n_characters = list[str](), 0
    for line in islice(lines, _MAX_HEAD_LINES):
        head.append(line)
        n_characters += len(line)
        if n_characters > _MAX_HEAD_CHARACTERS and len(head) >= _MIN_HEAD_LINES:
            break
    return head


def _next_record(lines: Iterator[str]) -> str:
    """Return the next record, up to its closing quote; return "" at the end of the file."""
    first = text = next(lines, "")
    while text.count('"') % 2 and len(text) < csv.field_size_limit():
        more = next(lines, "")
        if not more:
            return first
        text += more
    return text


def _collapse_spaces(line: str) -> str:
    """Replace repeated spaces by one, and remove the spaces at both ends of a line."""
    return " ".join(line.split()) + "\n"


def _are_spaced(lines: list[str]) -> bool:
    """Return True if the cells of the first lines are separated by spaces.

    All lines after the header have the same number of cells; the header has the same number, or one
    less if the rows have names, as in R.  Text of several words may also have the same number of
    words in each line.  Therefore the cells must be aligned, or have quoted names, or two columns
    of numbers, or one column of decimal numbers.
    """
    if not lines or any(_delimiter_counts(lines[0]).values()):
        return False
    if len(lines) == 1:
        return len(lines[0].split()) > 1 and all(map(is_number, lines[0].split()))
    try:
        names, *rows = csv.reader(map(_collapse_spaces, lines), delimiter=" ")
    except csv.Error:
        return False
    n = len(rows[0]) if rows else 0
    has_row_names = len(names) == n - 1
    if len(names) < 2 or len(names) not in (n - 1, n) or any(len(row) != n for row in rows):
        return False
    numbers = [column for column in zip(*rows, strict=True) if all(map(is_number, column))]
    if len(numbers) == n:
        return True
    header = lines[0].strip()
    if header.count('"') == 2 * len(names):
        return True
    has_decimals = any("." in cell for column in numbers for cell in column)
    if has_row_names:  # one column of numbers may be the first word of a text
        return len(numbers) > 1 or has_decimals
    return "  " in header or len(numbers) > 1 or has_decimals


def _guess_delimiter(first: str, second: str) -> str:
    """Guess the delimiter from the first two lines, if it is not a space."""
    counts, others = _delimiter_counts(first), _delimiter_counts(second or first)
    # The number of delimiters may differ by 1: there may be one at the end of only some lines.
    consistent = [
        mark for mark, n in counts.items() if n and others[mark] and abs(n - others[mark]) < 2
    ]
    if not any(counts.values()):
        # A single column of decimal commas must not be separated at the commas.
        has_commas = "," in second and detect_notation([second.strip()]).kind == NUMBER
        return ";" if has_commas else ","
    # A text is more likely to contain a comma than another delimiter.
    return max(consistent or [*counts], key=lambda mark: (counts[mark], mark != ","))


def _delimiter_counts(line: str) -> dict[str, int]:
    """Return how often each delimiter except the space occurs outside quotes."""
    unquoted = "".join(line.split('"')[::2])
    if ";" in unquoted or "\t" in unquoted:
        unquoted = re.sub(r"(?<=\d),(?=\d)", "", unquoted)  # remove decimal commas
    return {mark: unquoted.count(mark) for mark in _DELIMITERS if mark != " "}


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
