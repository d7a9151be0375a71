"""Statistics of the columns of a table, and the type of each column that follows from them.

============  ================================================  ===============================
type          values                                            default treatment
============  ================================================  ===============================
number        numbers                                           imputed, standardised
boolean       true and false                                    0 and 1
category      text with repeated values                         one-hot encoded
date          dates and times                                   elapsed time; year, week, day
text          free text: several words, rarely repeated         features of a text kernel
identifier    names of rows: keys, serial numbers, file names   not used
constant      a single value                                    not used
empty         no values                                         not used
unreadable    lists, images and other values                    not used
============  ================================================  ===============================
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from shlex import quote

import numpy as np

from ._cell_notation import (
    GRAPHS,
    NUMBER,
    TEXT,
    UNREADABLE,
    MissingMarks,
    NotationDetector,
    column_from_texts,
)
from ._column_contents import RunningStatistics, inspect_texts, is_missing
from ._column_encoders import as_numbers, stripped
from ._table import Table, TableError, as_texts, kind_of

USED_TYPES = ("number", "boolean", "category", "date", "text")  # types that become features
TYPES = (*USED_TYPES, "identifier", "constant", "empty", "unreadable", "graphs")

_MAX_DISTINCT_TEXTS = 100_000  # further distinct values of a text column are not counted
# In fewer rows, all values of a categorical column may be different.
_MIN_ROWS_OF_IDENTIFIERS = 10
_MIN_WORDS_OF_TEXT = 3  # average number of words of a text; identifiers and names have fewer
_MIN_WORDS_OF_REPEATED_TEXT = 6  # the same if most values occur several times
# A text column with at least this fraction of numbers is numeric; the other values are missing.
_MIN_FRACTION_OF_NUMBERS = 0.9
# Numbers that often stand for missing values.
_PLACEHOLDERS = (-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)
_IDENTIFIER_NAME = re.compile(
    r"(^|[_\W])(id|ids|uid|uuid|guid|key|index|idx|nr|rownames?|row|serial|code_?id)($|[_\W])"
    r"|[a-z](Id|ID|Key|Index|Nr)$",
)
_TIME_NAME = re.compile(r"year|date|time|day|month|week|hour|minute|second|age|step|epoch", re.I)


class TableSummary:
    """Statistics of the columns of a table, computed block by block.

    Parameters
    ----------
    table : Table
        The first block, which determines the kinds of the columns.
    names : list of str
        The columns to summarise.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    n_missing : dict of int
        The number of missing values of each column.
    n_unusable : dict of int
        The number of infinite values of each numeric column.
    counts : dict of Counter
        The number of occurrences of each value, for text columns.
    """

    def __init__(self, table: Table, names: list[str]) -> None:
        self.kinds = {name: kind_of(table.columns[name]) for name in names}
        self.booleans = {
            name
            for name in names
            if name in table.booleans and isinstance(table.columns[name], np.ndarray)
        }
        readable = [n for n in names if self.kinds[n] not in (UNREADABLE, GRAPHS)]
        self.texts = [n for n in readable if self.kinds[n] == TEXT]
        self.dates = [n for n in readable if table.columns[n].dtype.kind == "M"]
        self.numbers = [n for n in readable if n not in self.texts and n not in self.dates]
        self.n_rows = 0
        self.n_missing = Counter[str]()
        self.n_unusable = Counter[str]()
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in self.texts}
        self.notations: dict[str, str] = {}  # of numbers in text columns
        self.hints: dict[str, str] = {}  # why a column may have the wrong type
        self.stats = RunningStatistics(len(self.numbers))
        self._min = np.full(len(self.numbers), np.inf)
        self._max = np.full(len(self.numbers), -np.inf)
        self._integers = np.ones(len(self.numbers), dtype=bool)
        self._sums = np.zeros(len(self.numbers))
        self._n_placeholders = np.zeros((len(_PLACEHOLDERS), len(self.numbers)), dtype=np.int64)
        self._distinct: dict[str, bool] = {}
        self.date_ranges: dict[str, tuple[np.datetime64, np.datetime64]] = {}
        self._date_parts: dict[str, dict[str, set[int]]] = {
            name: {"month": set(), "day": set(), "weekday": set(), "time": set()}
            for name in self.dates
        }
        self.date_stats = RunningStatistics(len(self.dates))
        self._first_block: Table | None = table

    def update(self, table: Table) -> None:
        """Add a block of rows."""
        if self.n_rows:
            self._first_block = None
        self.n_rows += len(table)
        for name in self.kinds:
            self.n_missing[name] += int(is_missing(table.columns[name]).sum())
        if self.numbers:
            self._update_numbers(table)
        for name in self.texts:
            values = [v for v in stripped(as_texts(table.columns[name])).tolist() if v is not None]
            counter = self.counts[name]
            if len(counter) >= _MAX_DISTINCT_TEXTS:
                values = [value for value in values if value in counter]
            counter.update(values)
        if self.dates:
            self._update_dates(table)

    def _update_numbers(self, table: Table) -> None:
        X = np.column_stack([table.columns[name] for name in self.numbers])
        infinite = np.isinf(X)
        if infinite.any():
            for name, count in zip(self.numbers, infinite.sum(axis=0), strict=True):
                self.n_unusable[name] += int(count)
            X = np.where(infinite, np.nan, X)
        self.stats.update(X)
        if not len(X):
            return
        present = ~np.isnan(X)
        self._min = np.minimum(self._min, np.where(present, X, np.inf).min(axis=0))
        self._max = np.maximum(self._max, np.where(present, X, -np.inf).max(axis=0))
        filled = np.where(present, X, 0.0)
        self._integers &= (filled == np.rint(filled)).all(axis=0)
        self._sums += filled.sum(axis=0)
        for i, value in enumerate(_PLACEHOLDERS):
            self._n_placeholders[i] += np.equal(X, value).sum(axis=0)
        for name, column in zip(self.numbers, X.T, strict=True):
            if _is_identifier_name(name) and self._distinct.get(name, True):
                values = column[~np.isnan(column)]
                self._distinct[name] = len(np.unique(values)) > 0.95 * len(values)

    def _update_dates(self, table: Table) -> None:
        origin = np.datetime64(0, "us")
        seconds = np.column_stack(
            [
                np.where(np.isnat(c), np.nan, (c - origin).astype(np.int64) / 1e6)
                for c in (table.columns[name] for name in self.dates)
            ]
        )
        self.date_stats.update(seconds)
        for name in self.dates:
            dates = table.columns[name]
            dates = dates[~np.isnat(dates)].astype("datetime64[us]")
            if not len(dates):
                continue
            low, high = self.date_ranges.get(name, (dates[0], dates[0]))
            self.date_ranges[name] = (min(low, dates.min()), max(high, dates.max()))
            days = dates.astype("datetime64[D]")
            months = dates.astype("datetime64[M]")
            found = self._date_parts[name]
            found["month"] |= set((months.astype(int) % 12).tolist())
            found["day"] |= set((days - months.astype("datetime64[D]")).astype(int).tolist())
            found["weekday"] |= set(((days.astype(int) + 3) % 7).tolist())
            hours = (dates - days).astype("timedelta64[h]").astype(int)
            found["time"] |= set(hours.tolist())
            if bool(np.any(dates != days)):
                found["time"].add(-1)

    # ------------------------------------------------------------------ results

    def mean_and_scale(self, name: str) -> tuple[float, float]:
        """Return the mean and the standard deviation of a numeric column."""
        if name in self.counts:  # text that contains numbers
            counts = self.counts[name]
            values = as_numbers(column_from_texts(counts), self.notations.get(name, ""))
            stats, usable = RunningStatistics(1), np.isfinite(values)
            weights = np.array(list(counts.values()))[usable]
            stats.update(np.repeat(values[usable], weights)[:, None])
            return float(stats.mean[0]), float(stats.scale[0])
        j = self.numbers.index(name)
        return float(self.stats.mean[j]), float(self.stats.scale[j])

    def date_mean_and_scale(self, name: str) -> tuple[float, float]:
        """Return the mean and the standard deviation of dates, in seconds since 1970."""
        j = self.dates.index(name)
        return float(self.date_stats.mean[j]), float(self.date_stats.scale[j])

    def date_parts(self, name: str) -> tuple[str, ...]:
        """Return the features of a date: the elapsed time, and the periods in which dates vary."""
        low, high = self.date_ranges[name]
        found = self._date_parts[name]
        span = float((high - low) / np.timedelta64(1, "D"))
        parts = (
            []
            if high < np.datetime64("1970-01-02") and low >= np.datetime64(0, "us")
            else ["elapsed"]
        )
        if span >= 180 and len(found["month"]) > 1:
            parts.append("year")
        if span >= 7 and len(found["day"]) > 1 and len(found["weekday"]) > 2:
            parts.append("week")
        if -1 in found["time"]:
            parts.append("day")
        return tuple(parts) or ("elapsed",)

    def column_values(self, name: str) -> np.ndarray:
        """Return the values of a numeric column; raise a TableError if they are not in memory."""
        if self._first_block is None:
            raise TableError("the table has several blocks")
        return as_numbers(self._first_block.columns[name], self.notations.get(name, ""))

    def placeholder(self, name: str) -> tuple[float, int] | None:
        """Return a number such as -999 that may stand for missing values, and its count.

        It occurs at least twice, and is at least five standard deviations of the other values away
        from their mean.
        """
        if name not in self.numbers:
            return None
        j = self.numbers.index(name)
        n, mean = self.stats.count[j], self.stats.mean[j]
        for value, count in zip(_PLACEHOLDERS, self._n_placeholders[:, j].tolist(), strict=True):
            n_rest = n - count
            if count < 2 or n_rest < 2 or value not in (self._min[j], self._max[j]):
                continue
            mean_rest = (n * mean - count * value) / n_rest
            squares = n * self.stats.scale[j] ** 2 - count * (value - mean) ** 2
            squares -= n_rest * (mean_rest - mean) ** 2
            if abs(value - mean_rest) > 5 * np.sqrt(max(0.0, squares) / n_rest):
                return value, count
        return None

    def example(self, name: str) -> str:
        """Return a value that is not a finite number, and its line if it is known."""
        block = self._first_block
        column = None if block is None else block.columns[name]
        if column is None:
            texts = column_from_texts(self.counts.get(name, ()))
            is_unusable = ~np.isfinite(as_numbers(texts, self.notations.get(name, "")))
            return next(map(repr, texts[is_unusable]), "inf")
        numbers = as_numbers(column, self.notations.get(name, ""))
        rows = np.flatnonzero(~np.isfinite(numbers) & ~is_missing(column))
        row = int(rows[0])
        return f"{block.texts(name)[row]!r} on {block.where(row)}" if block is not None else ""

    def type_of(self, name: str) -> str:
        """Return the type of a column, one of `TYPES`."""
        kind, n_present = self.kinds[name], self.n_rows - self.n_missing[name]
        if kind in (UNREADABLE, GRAPHS):
            return "unreadable" if kind == UNREADABLE else "graphs"
        if n_present == 0:
            return "empty"
        if name in self.counts:
            return self._text_type(name, n_present)
        if name in self.dates:
            low, high = self.date_ranges[name]
            return "constant" if low == high else "date"
        j = self.numbers.index(name)
        if n_present == self.n_unusable[name]:
            return "empty"
        if self._min[j] == self._max[j]:
            return "constant"
        if name in self.booleans:
            return "boolean"
        return "identifier" if self._numbers_rows(j, name, n_present) else "number"

    def _numbers_rows(self, j: int, name: str, n_present: int) -> bool:
        """Return True if a numeric column contains identifiers or the numbers of the rows."""
        n = n_present
        if n < _MIN_ROWS_OF_IDENTIFIERS or not self._integers[j] or self.n_missing[name]:
            return False
        if self._distinct.get(name, False):
            return True
        low, high = self._min[j], self._max[j]
        is_range = low in (0.0, 1.0) and high - low == n - 1
        is_first = name == next(iter(self.kinds))  # row numbers are in the first column
        return bool(
            is_first
            and is_range
            and self._sums[j] == (low + high) * n / 2
            and not _TIME_NAME.search(name)
        )

    def _text_type(self, name: str, n_present: int) -> str:
        counts = self.counts[name]
        n_distinct = len(counts)
        if n_distinct == 1 and not self.n_missing[name]:
            return "constant"
        content = inspect_texts(counts)
        if content is not None and content.is_identifier:
            return "identifier"
        notation = _number_notation(counts)
        is_usable = np.isfinite(as_numbers(column_from_texts(counts), notation or ""))
        usable = int(np.array(list(counts.values())) @ is_usable)
        has_numbers = content is not None and (content.is_number or content.is_mostly_numbers)
        are_numbers = notation is not None and (notation != "" or has_numbers)
        if are_numbers and usable >= _MIN_FRACTION_OF_NUMBERS * n_present:
            self.n_unusable[name] = n_present - usable
            if notation:
                self.notations[name] = notation
            return "number"
        if content is not None and content.is_number:
            other = next((value for value in counts if not re.search(r"\d", value)), None)
            if other is not None:
                self.hints[name] = (
                    f"most values are {content.what}, such as {content.example!r}; if the others "
                    f"are missing, use --na {quote(other)}"
                )
        words = sum(len(value.split()) * count for value, count in counts.items())
        n_words = words / max(1, sum(counts.values()))
        if n_present >= _MIN_ROWS_OF_IDENTIFIERS and 2 * n_distinct > n_present:
            return "text" if n_words >= _MIN_WORDS_OF_TEXT else "identifier"
        if n_words >= _MIN_WORDS_OF_REPEATED_TEXT and n_distinct > 20:
            return "text"
        return "category"


def _number_notation(texts: Iterable[str]) -> str | None:
    """Return the notation of the texts that contain digits.

    The result is "" if these texts are plain numbers or have different notations, and None if a
    comma in them may be a decimal comma or a thousands separator.
    """
    detector = NotationDetector(MissingMarks())
    detector.update([text for text in texts if re.search(r"\d", text)])
    notation = detector.notation(None)
    if notation != detector.notation(None, comma_default=True):
        return None
    return str(notation) if notation.kind == NUMBER and notation.decimal != "." else ""


def _is_identifier_name(name: str) -> bool:
    """Return True if a column name suggests identifiers, such as "PassengerId" or "row_id"."""
    return _IDENTIFIER_NAME.search(name) is not None or name.lower() in ("id", "index")


def needs_standardising(scales: Iterable[float]) -> bool:
    """Return True if the scales of the columns differ so much that few of them dominate.

    With the variances v_j, the effective number of columns in a squared distance is
    e = (sum v_j)^2 / sum v_j^2, between 1 and the number of columns d.  The columns are
    standardised if e - 1 < (d - 1) / 4.  Columns in the same units, such as pixels, usually exceed
    that.
    """
    variances = np.array([scale for scale in scales if scale > 0]) ** 2
    if len(variances) < 2:
        return False
    variances = variances / variances.max()
    effective = variances.sum() ** 2 / (variances**2).sum()
    return bool(effective - 1 < (len(variances) - 1) / 4)
