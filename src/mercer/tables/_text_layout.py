"""Detect the layout of delimited text files: delimiter, comments, header, and records."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain, count, islice
from typing import Any

import numpy as np

from ._cell_notation import NUMBER, TEXT, MissingMarks, detect_notation, is_number
from ._table import TableError
from ._table_source import Source
from ._text_streams import open_lines

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "spaces"}
# Names for delimiters that are hard to type on a command line.
_DELIMITER_NAMES = {"\\t": "\t", "tab": "\t", "space": " "}
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_DECLARED_DELIMITER = re.compile(r'"?sep=(?P<delimiter>[^"])"?', re.IGNORECASE)  # by Excel
_BLANK = ' \t\r\n,;|"'  # characters of a line without cells
# Lines in which the header is searched.  Fewer lines are read if they are long.
_MIN_HEAD_LINES, _MAX_HEAD_LINES, _MAX_HEAD_CHARACTERS = 16, 1000, 2**20
_MAX_HEAD_ROWS = 20  # rows that are compared with the header
_MAX_TITLE_LINES = 12  # lines in which a title above the table is searched
_MAX_LISTED = 20  # lines that an error message lists


class TextLayout:
    """The layout of a delimited text file, detected from its first lines.

    Parameters
    ----------
    source : Source
        The file.
    missing : MissingMarks
        The cells that are missing values.
    delimiter, header, comment : default=None
        As in `CsvSource`; None detects them.

    Attributes
    ----------
    delimiter : str
        The character that separates cells; " " stands for any number of spaces.
    header : bool
        Whether the file has a header.
    names : list of str
        The column names.
    unnamed : list of str
        The columns without a name in the header.
    body : tuple of int
        The number of bytes and of lines before the first row.
    comment : str or None
        The user-supplied start of comments.
    detected_comment : str
        The start of the comments above the header; empty if there are none.
    notes : list of str
        Messages about what was detected.
    """

    def __init__(
        self,
        source: Source,
        missing: MissingMarks,
        delimiter: str | None = None,
        header: bool | None = None,
        comment: str | None = None,
    ) -> None:
        self.name, self.comment, self._missing = source.name, comment, missing
        self.unnamed, self.notes = list[str](), list[str]()
        with open_lines(source) as lines:
            head = _first_lines(lines)
        if any("\0" in line for line in head[:2]):
            raise TableError(
                f"{self.name}, line 1: the line contains the byte 0 - usually the file is not a "
                f"text file, or is UTF-16 without a byte-order mark - specify the encoding, for "
                f"example with --encoding utf-16-le"
            )
        if not any(map(str.strip, head)):
            raise source._no_data_error("is empty")
        self._skipped, self._header_mark, self.detected_comment = 0, "", ""
        declared = _DECLARED_DELIMITER.fullmatch(head[0].strip())
        if declared:
            delimiter = delimiter or declared["delimiter"]
            self._skipped = 1
        self.delimiter = "," if delimiter is None else _parse_delimiter(delimiter)
        self._skip_comments(head, delimiter is None, header is not False)
        self._skip_title(head, delimiter is None)
        if delimiter is None:
            first = head[self._skipped].removeprefix(self._header_mark)
            self.delimiter = self._guess([first, *head[self._skipped + 1 :]])
            if self.delimiter != ",":
                self.notes.append(
                    f"cells are separated by {_DELIMITERS[self.delimiter]} (detected) - if this "
                    f"is wrong, specify the character with --delimiter"
                )
        with open_lines(source) as lines:
            self._set_header(lines, header)

    def _guess(self, lines: list[str]) -> str:
        """Guess the delimiter from the first lines."""
        mark = self.comment or self.detected_comment
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
        mark = "#" if self.comment is None else self.comment
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
        self.detected_comment = mark if self.comment is None else ""
        if guess:
            self.delimiter = self._guess(head[self._skipped :])
        row = self._split(head[self._skipped])
        text = head[last_comment].removeprefix(mark)
        names = self._split(text if self.delimiter == " " else head[last_comment])
        has_numbers = any(is_number(cell) for cell in row)
        # "#,name,size" and "# x y", as written by numpy.savetxt, are names above numbers.
        is_header = (
            may_have_names
            and self.comment is None
            and 1 < len(names) == len(row)
            and has_numbers
            and not any(is_number(cell) for cell in names)
            and (all(is_number(cell) for cell in row) or not text.startswith((" ", "\t")))
        )
        if is_header:
            self._skipped = last_comment
            self._header_mark = "" if names[0].strip() == mark else mark
            if n_comments == 1 and not self._header_mark:
                self.detected_comment = ""  # "#" is the name of a column

    def _skip_title(self, head: list[str], guess: bool) -> None:
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
            self.notes.append(f"the title {shown!r} above the table is skipped")

    def _set_header(self, lines: Iterator[str], header: bool | None) -> None:
        """Set the names of the columns, and the position of the first row."""
        consumed = list[str]()

        def recorded() -> Iterator[str]:
            for line in lines:
                consumed.append(line)
                yield line

        recorded_lines = recorded()
        list(islice(recorded_lines, self._skipped))
        self.body = sum(len(line.encode()) for line in consumed), len(consumed)
        if self._header_mark:
            line = next(recorded_lines)
            recorded_lines = chain([line.removeprefix(self._header_mark).lstrip()], recorded_lines)
        records = (r for r in self.parse(recorded_lines, self._skipped) if not self._is_left(r[2]))
        _, last, cells = next(records, (0, 0, [""]))
        after_header = sum(len(line.encode()) for line in consumed), last
        rows = [row for _, _, row in islice(records, _MAX_HEAD_ROWS)]
        rows = [row for row in rows if not self.is_comment(row, len(cells))]
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
                self.notes.append(
                    f"no header: {why}, so the columns are named column1 to column{width} - if "
                    f"the first line contains names, use --header"
                )
            return
        self.body = after_header
        # R writes row names without a name in the header, and some programs write a delimiter at
        # the end of every line except the header, or only in the header.
        widths = {len(row) for row in rows}
        if widths == {len(cells) + 1} and any(row[-1].strip() for row in rows):
            cells = ["", *cells]
        while rows and len(cells) > max(widths) and len(cells) > 1 and not cells[-1].strip():
            cells = cells[:-1]
        self._set_names(cells, why)

    def _is_left(self, row: list[str]) -> bool:
        """Return True if a record before the first row is skipped: no values, or a comment."""
        return not any(map(str.strip, row)) or (
            bool(self.comment) and row[0].startswith(str(self.comment))
        )

    def is_comment(self, row: list[str], n_columns: int) -> bool:
        """Return True if a record is a comment, given that there are comments before the header.

        A record such as "#12,3.5", with a cell for each column, is a row.
        """
        mark = self.detected_comment
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

    def _set_names(self, cells: list[str], why: str) -> None:
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
            self.notes.append(
                f"{len(renamed)} column{'s have' if len(renamed) > 1 else ' has'} the same name "
                f"as an earlier column and {'are' if len(renamed) > 1 else 'is'} renamed to {shown}"
            )
        self.unnamed = [
            name for name, cell in zip(self.names, cells, strict=True) if not cell.strip()
        ]
        if why:
            self.notes.append(why)

    # ------------------------------------------------------------------ records

    def _csv_reader(self, lines: Iterable[str], strict: bool = False) -> Any:
        """Return a CSV reader of the lines."""
        if self.delimiter == " ":
            lines = map(_collapse_spaces, lines)
        return csv.reader(lines, delimiter=self.delimiter, strict=strict)

    def parse(self, lines: Iterable[str], read: int = 0) -> Iterator[tuple[int, int, list[str]]]:
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
            except csv.Error:  # without `strict`, a long cell is the only error
                raise TableError(
                    f"{self.name}, line {first}: a cell has more than 131072 characters - usually "
                    f"a quote opens in this line but is not closed - close it, or put the cell in "
                    f'quotes and write "" for each " inside'
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
    def empty_line_searches(self) -> list[Callable[[bytes], Any]]:
        """Functions that find a line of only delimiters, spaces and quotes in data.

        The first function tests the first line.  The second one finds other lines; it is fast,
        because its pattern starts with a fixed character.
        """
        blank = b'[ \t\r"' + re.escape(self.delimiter.encode()) + b"]"
        line = rb"(?:%b*\n|%b+\Z)" % (blank, blank)
        return [re.compile(line).match, re.compile(rb"\n" + line).search]

    def width_error(self, problems: list[tuple[int, int]]) -> TableError:
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


def _are_numbered_names(numbers: list[str]) -> bool:
    """Return True if numbers in a header are probably names: 1, 2, 3, years or an ordered list."""
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return False
    values = np.array([float(number) for number in numbers])
    if np.all((values >= 1900) & (values <= 2100)):
        return True
    steps = np.diff(values)
    return bool(np.all(steps == 1) if len(values) < 3 else np.all(steps > 0)) and len(values) > 1


def _cell_kind(cell: str, missing: MissingMarks) -> str:
    """Return the kind of a single cell: numbers, dates or text; "" if it is missing."""
    if cell.strip().lower() in missing.texts:
        return ""
    notation = detect_notation([cell], missing)
    return TEXT if notation.unit else notation.kind  # "7 days" may be the name of a column


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
