"""Read Excel workbooks (.xlsx and .xlsm) with openpyxl."""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from ._cell_notation import is_number
from ._json_files import convert_blocks, notes_about
from ._table import Table, TableError, import_openpyxl, suggest_name
from ._table_source import Source
from ._typed_columns import ObjectDetector, ObjectFormat, unique_names

# Values of cells whose formula failed.
_ERRORS = frozenset(
    {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"}
    | {"#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!"}
)
# Exceptions that openpyxl raises for damaged files.
_READ_ERRORS: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, EOFError, ParseError),
    *(zlib.error, struct.error, MemoryError),
    *(AttributeError, IndexError, NotImplementedError, RecursionError, OverflowError),
)
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"  # .xls files, and .xlsx files with a password


class ExcelSource(Source):
    """A sheet of an Excel workbook, which is read into memory.

    Empty rows and columns around the table are skipped, and so are title rows: rows with a single
    cell above the column names.

    Parameters
    ----------
    path : Path
        The file.
    name : str, default=""
        The name of the file in messages; if empty, `path` is used.
    sheet : str or int, default=None
        The name of the sheet, or its position, starting at 1.  None selects the first sheet that
        is not empty.
    header : bool, default=None
        Whether the first row of the table contains the column names.  None assumes a header if a
        cell of the row is text.
    """

    def __init__(
        self,
        path: Path,
        name: str = "",
        sheet: str | int | None = None,
        header: bool | None = None,
    ) -> None:
        super().__init__(path, name)
        self._requested_sheet, self._requested_header = sheet, header
        import_openpyxl(f"reading {self.name}")

    @cached_property
    def _content(
        self,
    ) -> tuple[dict[str, list[Any]], dict[str, ObjectFormat], tuple[str, ...], np.ndarray]:
        """The values and the format of each column, the index columns, and the row numbers."""
        rows = self._rows()
        rows = self._without_titles(rows)
        names, rows = self._header(rows)
        rows = self._without_footer(rows)
        row_numbers = np.array([number for number, _ in rows], dtype=int)
        columns = {
            n: [_cell(row[j]) for _, row in rows] for j, n in enumerate(names) if n is not None
        }
        formats = {}
        for n, values in columns.items():
            detector = ObjectDetector()
            detector.update(values)
            formats[n] = detector.format()
        self.notes += notes_about(formats)
        self._note_formulas(columns)
        first = next(iter(columns))
        is_index = first in self._unnamed and formats[first].is_integer
        return columns, formats, (first,) if is_index else (), row_numbers

    # ------------------------------------------------------------------ cells

    def _rows(self) -> list[tuple[int, Sequence[Any]]]:
        """Return the rows of the sheet that are not empty, without empty columns on the left."""
        openpyxl = import_openpyxl(f"reading {self.name}")
        try:
            with self.path.open("rb") as raw, warnings.catch_warnings():
                # openpyxl warns about features of Excel that it does not read
                warnings.simplefilter("ignore", UserWarning)
                book = openpyxl.load_workbook(raw, read_only=True, data_only=True)
                try:
                    return self._rows_of_book(book)
                finally:
                    book.close()
        except TableError:
            raise
        except _READ_ERRORS as error:
            raise self._read_error(error) from None

    def _rows_of_book(self, book: Any) -> list[tuple[int, Sequence[Any]]]:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if self._requested_sheet is not None:
            self._sheet = self._find_sheet(list(sheets))
            rows = _present_rows(sheets[self._sheet])
            if not rows:
                raise TableError(f"{self.name}: the sheet {self._sheet!r} is empty")
            return rows
        empty = []
        for title, sheet in sheets.items():
            rows = _present_rows(sheet)
            if rows:
                self._sheet = title
                others = [t for t in sheets if t != title and t not in empty]
                if others:
                    self.notes.append(
                        f"read the sheet {title!r}; the other sheets are "
                        f"{', '.join(map(repr, others))} - select one with --sheet"
                    )
                return rows
            empty.append(title)
        raise self._no_data_error("has no cells with values")

    def _find_sheet(self, titles: list[str]) -> str:
        """Return the title of the requested sheet; raise a TableError if it does not exist."""
        wanted = str(self._requested_sheet)
        if wanted in titles:
            return wanted
        if wanted.isdigit() and 1 <= int(wanted) <= len(titles):
            return titles[int(wanted) - 1]
        raise TableError(
            f"{self.name} has no sheet {wanted!r}{suggest_name(wanted, titles)} its sheets are "
            f"{', '.join(map(repr, titles))}"
        )

    def _read_error(self, error: Exception) -> TableError:
        with self.path.open("rb") as raw:
            magic = raw.read(4)
        if magic == _OLE_MAGIC:
            return TableError(
                f"{self.name} is protected by a password, or is an .xls file with another "
                f"extension - save it without a password as .xlsx or CSV"
            )
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        return TableError(
            f"{self.name} cannot be read as an Excel workbook: {text} - usually a truncated file, "
            f"or a file in another format - open it in a spreadsheet program and save it as CSV"
        )

    # ------------------------------------------------------------------ layout

    def _without_titles(
        self, rows: list[tuple[int, Sequence[Any]]]
    ) -> list[tuple[int, Sequence[Any]]]:
        """Remove the rows above the table, which have a single cell, and empty columns."""
        widest = max(_n_present(row) for _, row in rows)
        first = 0
        if widest > 1:
            first = next(i for i, (_, row) in enumerate(rows) if _n_present(row) > 1)
        if first:
            titles = ", ".join(repr(_first_present(row)) for _, row in rows[:first][:3])
            self.notes.append(
                f"skipped {first} row{'s' if first > 1 else ''} above the table: {titles}"
            )
        return rows[first:]

    def _header(
        self, rows: list[tuple[int, Sequence[Any]]]
    ) -> tuple[list[str | None], list[tuple[int, Sequence[Any]]]]:
        """Return the names of the columns, None for columns without any cell, and the data."""
        width = max(len(row) for _, row in rows)
        padded = [(number, [*row, *[None] * (width - len(row))]) for number, row in rows]
        used = [any(row[j] is not None for _, row in padded) for j in range(width)]
        cells = padded[0][1]
        has_header = self._requested_header
        if has_header is None:
            has_header = _is_header(cells, padded[1][1] if len(padded) > 1 else None)
            if not has_header:
                self.notes.append(
                    "no header: the first row contains no text, so the columns are named column1, "
                    "column2, ..."
                )
        position, titles = 0, list[str]()
        self._unnamed = set[str]()
        for j in range(width):
            position += used[j]
            cell = cells[j]
            if has_header and cell is not None and str(cell).strip():
                titles.append(_title(cell))
            else:
                titles.append(f"column{position}")
                if has_header and used[j]:
                    self._unnamed.add(f"column{position}")
        kept = [j for j in range(width) if used[j]]
        unique, notes = unique_names(titles[j] for j in kept)
        self.notes += notes
        names: list[str | None] = [None] * width
        for j, name in zip(kept, unique, strict=True):
            names[j] = name
        data = padded[1:] if has_header else padded
        if not data:
            raise self._no_data_error(f"has no rows below the header of the sheet {self._sheet!r}")
        return names, data  # type: ignore[return-value]

    def _without_footer(
        self, rows: list[tuple[int, Sequence[Any]]]
    ) -> list[tuple[int, Sequence[Any]]]:
        """Remove notes below the table: rows with a single cell of text after an empty row."""
        widest = max(_n_present(row) for _, row in rows)
        end = len(rows)
        while end > 1 and _n_present(rows[end - 1][1]) == 1:
            end -= 1
        is_separate = end < len(rows) and rows[end][0] > rows[end - 1][0] + 1
        texts = [_first_present(row) for _, row in rows[end:]]
        if widest < 3 or not is_separate or not all(isinstance(t, str) for t in texts):
            return rows
        self.notes.append(
            f"skipped {len(texts)} row{'s' if len(texts) > 1 else ''} below the table: "
            f"{', '.join(map(repr, texts[:3]))}"
        )
        return rows[:end]

    def _note_formulas(self, columns: dict[str, list[Any]]) -> None:
        """Add a note if empty columns contain formulas whose results are not in the file."""
        empty = [n for n, values in columns.items() if all(value is None for value in values)]
        if empty:
            self.notes.append(
                f"no values in {', '.join(map(repr, empty[:5]))} - if the cells contain formulas, "
                f"open the file in a spreadsheet program and save it, so that the results are "
                f"stored"
            )

    # ------------------------------------------------------------------ blocks

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._content[0])

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        columns, formats, index, row_numbers = self._content
        for table in convert_blocks(self, columns, formats, rows, kinds, index_columns=index):
            lines = row_numbers[table.start : table.start + len(table)]
            yield replace(table, lines=lines)


def _present_rows(sheet: Any) -> list[tuple[int, Sequence[Any]]]:
    """Return the number and the cells of each row that is not empty."""
    sheet.reset_dimensions()  # the dimensions in the file may be wrong
    rows = [
        (number, row)
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1)
        if any(cell is not None and cell != "" for cell in row)
    ]
    left = min((_position_of_first(row) for _, row in rows), default=0)
    return [(number, row[left:]) for number, row in rows]


def _is_present(cell: Any) -> bool:
    return cell is not None and cell != ""


def _n_present(row: Sequence[Any]) -> int:
    return sum(map(_is_present, row))


def _position_of_first(row: Sequence[Any]) -> int:
    return next(j for j, cell in enumerate(row) if _is_present(cell))


def _first_present(row: Sequence[Any]) -> Any:
    return row[_position_of_first(row)]


def _cell(value: Any) -> Any:
    """Return the value of a cell; None if it is empty or an error."""
    return None if value == "" or (isinstance(value, str) and value in _ERRORS) else value


def _is_header(cells: Sequence[Any], values: Sequence[Any] | None) -> bool:
    """Return True if the first row contains column names.

    It does if a cell is text that is not a number, and if the numbers 0, 1, 2, ... or consecutive
    years are above other values, as written by pandas.
    """
    present = [cell for cell in cells if _is_present(cell)]
    if any(isinstance(cell, str) and not is_number(cell) for cell in present):
        return True
    numbers = [cell for cell in present if isinstance(cell, int) and not isinstance(cell, bool)]
    if values is None or len(numbers) < len(present) or not numbers:
        return False
    is_range = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    is_year = 1900 <= numbers[0] <= 2100 and len(numbers) > 2
    follows = [v for v in values if _is_present(v)] == [n + len(numbers) for n in numbers]
    return is_range and (numbers[0] == 0 or is_year) and not follows and len(numbers) > 1


def _title(cell: Any) -> str:
    """Return a cell of the header as a column name; dates in ISO format."""
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat()).removesuffix("T00:00:00")
    return str(cell).strip()
