"""What columns contain: running statistics of numbers, classification of texts, and checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from ._table import TEXT, Table, is_number, is_rounded, kind_of


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
# If a text column has more distinct values than this, the error message suggests a string kernel
# instead of one-hot encoding.
_MAX_CATEGORIES = 100
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


class TextColumn(NamedTuple):
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


def inspect_texts(counts: Mapping[str, int]) -> TextColumn | None:
    """Classify the values of a text column; return None if they seem to be categories.

    Parameters
    ----------
    counts : mapping of str to int
        The number of occurrences of each value, in the order of first occurrence.
    """
    total = sum(counts.values())
    large = [value for value in counts if is_rounded(value)]
    if large:
        return TextColumn(
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
            return TextColumn(what, matching[0], remedy, matches is not _is_date)
    numbers = sum(count for value, count in counts.items() if is_number(value))
    if 2 * numbers > total:
        first_text = next((value for value in counts if not is_number(value)), None)
        if first_text is None and all(value.strip().lstrip("+-").isdigit() for value in counts):
            return None  # assume that integers are codes of categories
        if first_text is None:
            remedy = "write them as numbers"
            return TextColumn("numbers written as text", next(iter(counts)), remedy)
        return TextColumn(
            f"numbers in {numbers} of {total} rows and text in the others",
            first_text,
            "correct the text, or leave the cell empty if the value is missing",
            is_number=False,
            is_mostly_numbers=True,
        )
    if total >= _MIN_ROWS_OF_IDENTIFIERS and 2 * len(counts) > total:
        return TextColumn(
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


def refuse_text(table: Table, numeric: list[str], *, fitted: bool) -> None:
    """Raise a TableError with advice if a column that should be numeric contains text."""
    for name in numeric:
        column = table.columns[name]
        if kind_of(column) != TEXT:
            continue
        texts = [i for i, cell in enumerate(column) if not is_number(cell)]
        row = texts[0] if texts else 0
        quoted = quote(name)
        exclude = f"exclude the column with --ignore {quoted}"
        counts = Counter(cell for cell in column if cell is not None)
        content = inspect_texts(counts)
        first = f"{truncated(column[row])} on {table.where(row)}"
        if content is not None and content.is_number:
            row = column.tolist().index(content.example)
            what = (
                f"contains {content.what}; the first is {truncated(content.example)} on "
                f"{table.where(row)} - {content.remedy}{'' if fitted else f', or {exclude}'}"
            )
        elif fitted:
            what = (
                f"contains text ({first}), but the model was fitted to numbers - usually a "
                f"typo or a placeholder for a missing value - fix the file"
            )
        elif not texts:
            what = (
                f"contains numbers stored as text ({first}) - write them as numbers, or {exclude}"
            )
        elif len(texts) <= len(column) // 10:
            what = (
                f"{len(texts)} of {len(column)} values are not numbers; the first is {first} - "
                f"usually a typo or a placeholder for a missing value - fix the file, or {exclude}"
            )
        else:
            advice = f"one-hot encode it ({len(counts)} different values) with --onehot {quoted}"
            if len(counts) > _MAX_CATEGORIES:
                advice = f"compare the texts with a string kernel: --columns {quoted} --kernel"
                advice += " 'Normalized(Spectrum(3))'"
            what = (
                f"contains text ({first}), but a kernel on vectors requires numbers - "
                f"usually a name or a category - exclude it with --ignore {quoted}; {advice}; "
                f"or use it as the colour with --color {quoted}"
            )
        raise table.error(what, name)


def refuse_unlikely_categories(table: Table, counts: dict[str, Counter[str]]) -> None:
    """Raise a TableError if columns that onehot="all" selects do not look like categories.

    `counts` contains the number of occurrences of each value, for each of these columns.
    """
    contents = {name: inspect_texts(values) for name, values in counts.items()}
    unlikely = {name: content for name, content in contents.items() if content is not None}
    if not unlikely:
        return
    listed = "; ".join(
        f"{name!r} contains {content.what}, such as {truncated(content.example)} ({content.remedy})"
        for name, content in unlikely.items()
    )
    names = quote(",".join(unlikely))
    raise table.error(
        f"--onehot all found text columns that do not look like categories: {listed} - correct "
        f"the file, exclude them with --ignore {names}, or one-hot encode them anyway with "
        f"--onehot all,{names}"
    )


def refuse_empty(
    table: Table, n_complete: int, n_missing: Counter[str], empty: list[str], target: str | None
) -> None:
    """Raise a TableError if a column has no values, or if no row is complete."""
    if not n_complete:
        name, count = n_missing.most_common(1)[0] if n_missing else (target or "", 0)
        most = f", or exclude the column with most missing values: --ignore {quote(name)}"
        raise table.error(
            f"every row has a missing value, so no rows remain - replace missing values, for "
            f"example with --impute mean instead of --impute drop{most if count else ''}"
        )
    if empty:
        raise table.error(
            f"all values are missing, so the column contains no information - exclude it with "
            f"--ignore {quote(empty[0])}",
            empty[0],
        )


def refuse_missing(table: Table, names: list[str], *, fitted: bool) -> None:
    """Raise a TableError if values are missing."""
    for name in names:
        rows = np.flatnonzero(is_missing(table.columns[name]))
        if len(rows):
            advice = (
                "fill them in, or fit the model again with --impute"
                if fitted
                else f"replace them with --impute mean, median or a number, drop these rows with "
                f"--impute drop, or exclude the column with --ignore {quote(name)}"
            )
            raise table.error(
                f"{len(rows)} of {len(table)} values are missing; the first is on "
                f"{table.where(rows[0])} - {advice}",
                name,
            )


def refuse_infinite(table: Table, names: list[str], *, fitted: bool) -> None:
    """Raise a TableError if a value is infinite."""
    for name in names:
        infinite = np.flatnonzero(np.isinf(table.columns[name]))
        if len(infinite):
            unless = f", or exclude the column with --ignore {quote(name)}"
            raise table.error(
                f"the value is infinite - usually a division by zero or a placeholder for a "
                f"missing value - fix it{'' if fitted else unless}",
                name,
                infinite[0],
            )


def truncated(cell: str | None, max_length: int = 60) -> str:
    """Return a cell for an error message, truncated if it is long."""
    text = repr(cell)
    return text if len(text) <= max_length else f"{text[:max_length]}..."
