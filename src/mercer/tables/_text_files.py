"""Read delimited text files, such as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from ._cell_notation import (
    DATES,
    NUMBER,
    TEXT,
    MissingMarks,
    Notation,
    NotationDetector,
    parse_floats,
)
from ._row_blocks import Cells, RowBlock
from ._table import Table, TableError
from ._table_source import Shape, Source
from ._text_layout import TextLayout
from ._text_streams import TextStream, WrongEncoding, parse_encoding, use_windows_1252

_INDEX_NAME = re.compile(r"Unnamed: 0(\.[0-9]+)*")  # of an index that pandas wrote and read
_MAX_NOTED = 5  # lines that a note lists
# Rows of the first block and of the other blocks in the first pass, and the number of cells.
_FIRST_SCAN_ROWS, _SCAN_ROWS = 2**10, 2**15
_FIRST_SCAN_CELLS, _SCAN_CELLS = 2**17, 2**21
_MIN_SCAN_ROWS = 2**5


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
        self._decimal = decimal
        self._left_out = set[int]()  # indices of columns without a name or values
        self._notations: list[Notation] = []
        self._expected: dict[str, Notation] = {}
        self._n_first_notes = 0  # the number of notes before those about the columns
        # The blocks and the cells of the first pass, if all cells of the file were parsed in it.
        self._scanned: list[tuple[RowBlock, dict[int, Any]]] | None = None
        self._index_columns: tuple[str, ...] = ()
        try:
            self.layout = TextLayout(self, self._missing, delimiter, header, comment)
        except WrongEncoding as error:
            use_windows_1252(self, error)
            self.layout = TextLayout(self, self._missing, delimiter, header, comment)
        self.notes += self.layout.notes
        self.names = self.layout.names

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
        separators = [
            self._decimal or (expected.decimal_separator if expected else None)
            for expected in map(self._expected.get, self.names)
        ]
        # A few rows are sufficient to decide which columns are probably plain numbers.
        first = min(_FIRST_SCAN_ROWS, max(_MIN_SCAN_ROWS, _FIRST_SCAN_CELLS // self.width))
        rows = min(_SCAN_ROWS, max(_MIN_SCAN_ROWS, _SCAN_CELLS // self.width))
        for block in self._blocks(rows, first):
            block.problems = problems
            modes = {}
            for j, detector in enumerate(detectors):
                is_inspected = not n_rows or j in careful
                plain = None if is_inspected else detector.plain_decimal(separators[j] or assumed)
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
            raise self.layout.width_error(problems)
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
        return (j == 0 and name in self.layout.unnamed[:1]) or _INDEX_NAME.fullmatch(
            name
        ) is not None

    @staticmethod
    def _file_decimal(detectors: list[NotationDetector]) -> str | None:
        """Return the decimal separator that the cells of all columns prove, if it is unique."""
        found = {detector.decimal for detector in detectors} - {None}
        return found.pop() if len(found) == 1 else None

    def _decide(self, detectors: list[NotationDetector], decimal: str | None) -> None:
        """Select the notation of each column."""
        orders = {detector.day_first for detector in detectors} - {None}
        file_order = orders.pop() if len(orders) == 1 else None
        semicolon = self.layout.delimiter == ";"
        self._notations = []
        for name, detector in zip(self.names, detectors, strict=True):
            separator, day_first = decimal, file_order
            if expected := self._expected.get(name):
                separator = self._decimal or expected.decimal_separator or decimal
                day_first = file_order if expected.day_first is None else expected.day_first
            self._notations.append(
                detector.notation(separator, comma_default=semicolon, day_first=day_first)
            )

    @property
    def notations(self) -> dict[str, str]:
        """The notation of each column in which a part of the cells could be misread."""
        _ = self.shape
        return {
            name: str(notation)
            for j, (name, notation) in enumerate(zip(self.names, self._notations, strict=True))
            if notation.is_special and j not in self._left_out
        }

    def expect_notations(self, notations: Mapping[str, str]) -> None:
        expected = {
            name: Notation.parse(text) for name, text in notations.items() if name in self.names
        }
        if expected == self._expected:
            return
        self._expected = expected
        if "shape" in self.__dict__:  # read the file again
            del self.shape, self.notes[self._n_first_notes :]
            self._cached_block, self._notations = None, []

    def _report(self, detectors: list[NotationDetector], index: list[int]) -> None:
        """Leave out empty columns without a name, and add notes about the columns."""
        self._left_out = {
            j
            for j, (name, detector) in enumerate(zip(self.names, detectors, strict=True))
            if detector.is_undecided and name in self.layout.unnamed
        }
        self._index_columns = tuple(self.names[j] for j in index)
        self._n_first_notes = len(self.notes)
        unnamed = [
            name
            for j, name in enumerate(self.names)
            if name in self.layout.unnamed
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
        for name, detector, found in zip(self.names, detectors, self._notations, strict=True):
            expected = self._expected.get(name)
            if expected is not None and detector.contradicts(expected, found):
                self.notes.append(
                    f"column {name!r}: the notation of the cells is {found}, but that of the "
                    f"training rows is {expected} - usually the values come from another program "
                    f"or have another unit - convert them if they do"
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

    def _blocks(self, rows: int, first: int | None = None) -> Iterator[RowBlock]:
        """Yield the lines of the file in blocks of `rows` lines (`first` in the first block)."""
        offset, read = self.layout.body
        with TextStream(self, track=True) as stream:
            stream.skip(offset, read)
            while data := stream.read_lines(first or rows):
                first = None
                yield RowBlock(self.layout, self._missing, data, stream)
                del data

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
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


def _are_integers(found: np.ndarray | Cells) -> bool:
    """Return True if all cells are integers; a missing value is not an integer."""
    try:
        floats = found if isinstance(found, np.ndarray) else parse_floats(found.uniques)
    except ValueError:
        return False
    return bool(np.all(floats == np.round(floats)))


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
