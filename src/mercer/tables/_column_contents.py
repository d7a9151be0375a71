"""What columns contain: running statistics of numbers, and classification of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from ._cell_notation import is_number, is_rounded


class RunningStatistics:
    """Count, mean and standard deviation of each column, updated block by block.

    For the non-missing values of each column, it stores their number n, their mean m and
    S = sum (x - m)^2.  Two blocks of n_1 and n_2 values are merged by

        m = m_1 + (m_2 - m_1) n_2 / n,    S = S_1 + S_2 + (m_2 - m_1)^2 n_1 n_2 / n

    with n = n_1 + n_2.  All values of a column may be missing in a block.
    """

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width)
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)

    def update(self, X: np.ndarray) -> None:
        """Update the statistics with a block of rows; NaN is a missing value."""
        is_present = ~np.isnan(X)
        n = is_present.sum(axis=0)
        mean = np.where(is_present, X, 0.0).sum(axis=0) / np.maximum(n, 1)
        deviations = np.where(is_present, X - mean, 0.0)
        # The sum of the deviations would be 0 without rounding errors; use it to correct the mean.
        mean += deviations.sum(axis=0) / np.maximum(n, 1)
        deviations = np.where(is_present, X - mean, 0.0)
        total = np.maximum(self.count + n, 1)
        delta = np.where(n > 0, mean - self.mean, 0.0)
        self.mean += delta * (n / total)
        # Do not warn if squares of values above 1e154 overflow; the scale is then infinite.
        with np.errstate(over="ignore"):
            self._squares += (deviations**2).sum(axis=0) + delta * (self.count * n / total) * delta
        self.count += n

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of each column; 1 if its values differ only by rounding errors."""
        n, eps = np.maximum(self.count, 1), np.finfo(float).eps
        variance = self._squares / n
        with np.errstate(over="ignore"):
            constant = variance <= n * eps * variance + (n * self.mean * eps) ** 2
        constant &= np.isfinite(variance)
        return np.where(constant, 1.0, np.sqrt(variance))


# A column with fewer rows is not reported as identifiers: in so few rows, all values of a
# categorical column may be different.
_MIN_ROWS_OF_IDENTIFIERS = 10
_SIGNS = "%€$£¥ \u00a0\u202f'"  # percent signs, currency signs and digit separators
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?|[+-]?\d{1,3}(\.\d{3})+,\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?|[+-]?\d{1,3}(\.\d{3}){2,}")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ,].*)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[ap]m)?"
    rf"|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}.*|{_MONTH} \d{{1,2}},? \d{{4}}.*",
    re.IGNORECASE,
)


class TextContent(NamedTuple):
    """Description of a text column that does not contain categories, for error messages.

    Attributes
    ----------
    what : str
        What most of the values are, such as "dates or times".
    example : str
        The first such value.
    remedy : str
        What the user can do.
    is_number : bool
        Whether the values are numbers in another notation.
    is_identifier : bool
        Whether the values are integers that float64 cannot represent exactly.
    is_mostly_numbers : bool
        Whether most values are plain numbers, but some are text.
    """

    what: str
    example: str
    remedy: str
    is_number: bool = True
    is_identifier: bool = False
    is_mostly_numbers: bool = False


def inspect_texts(counts: Mapping[str, int]) -> TextContent | None:
    """Classify the values of a text column; return None if they seem to be categories.

    Parameters
    ----------
    counts : mapping of str to int
        The number of occurrences of each value, in the order of first occurrence.
    """
    total = sum(counts.values())
    large = [value for value in counts if is_rounded(value)]
    if large:
        return TextContent(
            "integers above 2^53, which 64-bit floats cannot represent exactly",
            large[0],
            "exclude identifiers; convert quantities to larger units, such as seconds instead of "
            "nanoseconds",
            is_identifier=True,
        )
    for what, remedy, matches in (
        ("dates or times", "convert them to numbers, such as days since the first date", _is_date),
        ("numbers with decimal commas", "write decimal points", _is_decimal_comma),
        ("numbers with thousands separators", "remove the separators", _is_thousands),
        ("numbers with symbols or spaces", "write plain numbers", _is_decorated),
    ):
        matching = [value for value in counts if matches(value)]
        plain_numbers = [value for value in counts if is_number(value)]
        n_covered = sum(counts[value] for value in {*matching, *plain_numbers})
        if matching and 2 * n_covered > total:
            if all(map(_is_thousands, matching)) and all(map(_is_decimal_comma, matching)):
                what = "numbers with commas, which are decimal commas or thousands separators"
                remedy = "write decimal points, or remove the separators"
            return TextContent(what, matching[0], remedy, matches is not _is_date)
    numbers = sum(count for value, count in counts.items() if is_number(value))
    if 2 * numbers > total:
        first_text = next((value for value in counts if not is_number(value)), None)
        if first_text is None and all(value.strip().lstrip("+-").isdigit() for value in counts):
            return None  # assume that integers are codes of categories
        if first_text is None:
            remedy = "write them as numbers"
            return TextContent("numbers written as text", next(iter(counts)), remedy)
        return TextContent(
            f"numbers in {numbers} of {total} rows and text in the others",
            first_text,
            f"correct the text, or mark it as a missing value with --na {quote(first_text)}",
            is_number=False,
            is_mostly_numbers=True,
        )
    if total >= _MIN_ROWS_OF_IDENTIFIERS and 2 * len(counts) > total:
        return TextContent(
            f"{len(counts)} different values in {total} rows",
            next(iter(counts)),
            "identifiers, names and free text are not categories",
            is_number=False,
        )
    return None


def _is_date(value: str) -> bool:
    return _DATE.fullmatch(value.strip()) is not None and not is_number(value)


def _is_decimal_comma(value: str) -> bool:
    return _DECIMAL_COMMA.fullmatch(value.strip()) is not None


def _is_thousands(value: str) -> bool:
    return _THOUSANDS.fullmatch(value.strip()) is not None


def _is_decorated(value: str) -> bool:
    bare = value.translate({ord(sign): None for sign in _SIGNS})
    return (
        bare != value
        and bool(bare)
        and not is_number(value)
        and (is_number(bare) or _is_decimal_comma(bare) or _is_thousands(bare))
    )


# ---------------------------------------------------------------------- checks


def is_missing(column: Any) -> np.ndarray:
    """Return a boolean array that is True where the value of a column is missing."""
    if not isinstance(column, np.ndarray):
        return np.zeros(len(column), dtype=bool)
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column)  # also True for a missing date, NaT


def truncated(cell: str | None, max_length: int = 60) -> str:
    """Return a cell for an error message, truncated if it is long."""
    text = repr(cell)
    return text if len(text) <= max_length else f"{text[:max_length]}..."
