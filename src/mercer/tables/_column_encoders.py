"""Encoders that convert one column of a table to features.

Each encoder is a frozen dataclass with the fitted preprocessing of a column.  `encode` returns an
array of shape (rows, len(feature_names)), and `cleaned` the column for kernels that select columns
by name.  A value that the encoder cannot use, such as an unknown category, is handled as missing,
and `unusable` marks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..estimators import Nystroem
from ._cell_notation import TEXT, Notation, column_from_texts, is_number
from ._table import Table, as_texts, kind_of

OTHER, MISSING_LEVEL = "(other)", "(missing)"  # levels in the names of one-hot encoded features
_MICROSECONDS_PER_DAY = 86_400_000_000
DAYS_PER_YEAR = 365.2425
_MIN_WEIGHT = 0.005  # smaller weights of a level would be written as 0.00
_MAX_DATE_YEARS = 5000  # dates are limited to this many years before and after 1970


@dataclass(frozen=True)
class NumberColumn:
    """A number x becomes (x - mean) / scale; a boolean is the number 0 or 1.

    Parameters
    ----------
    name : str
        The name of the column.
    type : {"number", "boolean"}, default="number"
        The type of the column.
    fill : float, default=None
        The value that replaces missing values, in the units of the column.  If None, rows with
        missing values must be dropped before.
    mean, scale : float, default=0.0, 1.0
        The mean and the standard deviation for standardisation.
    has_unusable : bool, default=False
        Whether the training rows contain values that are not finite numbers.
    notation : str, default=""
        The notation of the numbers in a column of text, such as "numbers:comma" or
        "numbers:point:kg"; empty for plain numbers.
    """

    name: str
    type: str = "number"
    fill: float | None = None
    mean: float = 0.0
    scale: float = 1.0
    has_unusable: bool = False
    notation: str = ""

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [self.name]

    def values(self, table: Table) -> np.ndarray:
        """Return the numbers of the column; NaN is missing, or a value that is not a number."""
        return as_numbers(table.column(self.name), self.notation)

    def unusable(self, table: Table) -> np.ndarray:
        """Return a mask of the values that are present, but not finite numbers."""
        column = table.column(self.name)
        if kind_of(column) == TEXT:
            present = np.array([value is not None for value in column], dtype=bool)
            return present & ~np.isfinite(self.values(table))
        if column.dtype.kind == "M":
            return ~np.isnat(column)
        return np.isinf(column)

    def encode(self, table: Table) -> np.ndarray:
        """Return the features of all rows."""
        return ((self._filled(table) - self.mean) / self.scale)[:, None]

    def cleaned(self, table: Table) -> np.ndarray:
        """Return the column for a kernel that selects it by name."""
        return self.encode(table)[:, 0]

    def _filled(self, table: Table) -> np.ndarray:
        values = self.values(table)
        fill = np.nan if self.fill is None else self.fill
        return np.where(np.isfinite(values), values, fill)

    def inverse(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Return the features in the units of the column."""
        return {self.name: features[:, 0] * self.scale + self.mean}

    def to_texts(self, features: np.ndarray) -> list[str]:
        """Return one text per row in the units of the column, such as "1.78" or "true (0.93)"."""
        values = self.inverse(features)[self.name]
        if self.type == "boolean":
            return [f"{'true' if value >= 0.5 else 'false'} ({value:.2f})" for value in values]
        return [f"{value:.5g}" for value in values]


@dataclass(frozen=True)
class CategoryColumn:
    """A category is one-hot encoded.

    A value that did not occur in the training rows belongs to the level "(other)" if there is one;
    otherwise all its features are 0.

    Parameters
    ----------
    name : str
        The name of the column.
    categories : tuple of str
        The categories, each with its own feature.
    has_other : bool, default=False
        Whether there is a level "(other)" for the remaining categories.
    has_missing : bool, default=False
        Whether there is a level "(missing)".
    fill : str, default=None
        The category that replaces missing values.
    text : bool, default=True
        Whether the column was text in the training rows, so that "01" and "1" are different.
    """

    name: str
    categories: tuple[str, ...]
    has_other: bool = False
    has_missing: bool = False
    fill: str | None = None
    text: bool = True

    type: ClassVar[str] = "category"

    @property
    def levels(self) -> list[str]:
        """All levels, in the order of the features."""
        levels = [*self.categories, *[OTHER] * self.has_other]
        return [*levels, *[MISSING_LEVEL] * self.has_missing]

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [f"{self.name}={level}" for level in self.levels]

    def _indices(self, table: Table) -> np.ndarray:
        """Return the index of the level of each row; -1 for missing and -2 for unknown values."""
        positions: dict[str | None, int] = {c: j for j, c in enumerate(self.categories)}
        positions[None] = positions.get(self.fill, -1) if self.fill is not None else -1
        if self.has_missing:
            positions[None] = len(self.levels) - 1
        unknown = len(self.categories) if self.has_other else -2
        column = stripped(table.texts(self.name))
        if self.text and kind_of(table.column(self.name)) != TEXT:
            # The column was text: find the category "01" or "1.0" that a number 1 stands for.
            positions |= {
                as_texts(np.array([float(c)]))[0]: j
                for j, c in reversed(list(enumerate(self.categories)))
                if is_number(c) and as_texts(np.array([float(c)]))[0] not in positions
            }
        return np.array([positions.get(value, unknown) for value in column], dtype=np.intp)

    def unusable(self, table: Table) -> np.ndarray:
        """Return a mask of the values that did not occur in the training rows."""
        if self.has_other:
            return np.zeros(len(table), dtype=bool)
        return self._indices(table) == -2

    def encode(self, table: Table) -> np.ndarray:
        """Return the features of all rows."""
        indices = self._indices(table)
        encoded = np.zeros((len(table), len(self.levels)))
        rows = np.flatnonzero(indices >= 0)
        encoded[rows, indices[rows]] = 1.0
        return encoded

    def cleaned(self, table: Table) -> np.ndarray:
        """Return the column for a kernel that selects it by name."""
        texts = stripped(table.texts(self.name))
        fill = MISSING_LEVEL if self.fill is None else self.fill
        return column_from_texts(fill if value is None else value for value in texts)

    def inverse(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Return one column for each category."""
        return dict(zip(self.feature_names, features.T, strict=True))

    def to_texts(self, features: np.ndarray) -> list[str]:
        """Return the two levels with the largest weights, such as "Bonn (0.52), Köln (0.31)".

        A second level with a weight below 0.005 is left out.
        """
        levels = self.levels
        order = np.argsort(-features, axis=1, kind="stable")[:, :2]
        return [
            ", ".join(
                f"{levels[j]} ({row[j]:.2f})"
                for rank, j in enumerate(best)
                if rank == 0 or row[j] >= _MIN_WEIGHT
            )
            for row, best in zip(features, order, strict=True)
        ]


@dataclass(frozen=True)
class DateColumn:
    """A date becomes the elapsed time, and its position in the year, the week and the day.

    The elapsed time is measured in years and standardised.  A position in a period is the point
    (cos, sin) on a circle, so that December is close to January.

    Parameters
    ----------
    name : str
        The name of the column.
    start : int
        The first date in the training rows, in microseconds since 1970.
    parts : tuple of {"elapsed", "year", "week", "day"}
        The features: the elapsed time, and the periods in which positions are computed.
    mean, scale : float, default=0.0, 1.0
        The mean and the standard deviation of the elapsed time.
    """

    name: str
    start: int
    parts: tuple[str, ...] = ("elapsed",)
    mean: float = 0.0
    scale: float = 1.0

    type: ClassVar[str] = "date"

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [
            f"{self.name}:{name}"
            for part in self.parts
            for name in (["elapsed"] if part == "elapsed" else [f"cos({part})", f"sin({part})"])
        ]

    def _dates(self, table: Table) -> np.ndarray:
        column = table.column(self.name)
        if column.dtype.kind == "M":
            return column
        return np.full(len(table), np.datetime64("NaT", "us"))

    def unusable(self, table: Table) -> np.ndarray:
        """Return a mask of the values that are present, but not dates."""
        column = table.column(self.name)
        if column.dtype.kind == "M":
            return np.zeros(len(table), dtype=bool)
        return np.array([value is not None and value == value for value in column], dtype=bool)

    def encode(self, table: Table) -> np.ndarray:
        """Return the features of all rows; those of a missing date are 0."""
        dates = self._dates(table)
        columns = list[np.ndarray]()
        for part in self.parts:
            if part == "elapsed":
                columns.append((self._elapsed(dates) - self.mean) / self.scale)
            else:
                angle = 2 * np.pi * phase(dates, part)
                columns += [np.cos(angle), np.sin(angle)]
        return np.nan_to_num(np.column_stack(columns), nan=0.0)

    def _elapsed(self, dates: np.ndarray) -> np.ndarray:
        return elapsed_years(dates, self.start)

    def cleaned(self, table: Table) -> np.ndarray:
        """Return the column for a kernel that selects it by name: the elapsed time."""
        elapsed = (self._elapsed(self._dates(table)) - self.mean) / self.scale
        return np.nan_to_num(elapsed, nan=0.0)

    def inverse(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Return the elapsed time in years, and the positions as they are."""
        columns = dict(zip(self.feature_names, features.T, strict=True))
        if "elapsed" in self.parts:
            columns[f"{self.name}:elapsed"] = features[:, 0] * self.scale + self.mean
        return columns

    def to_texts(self, features: np.ndarray) -> list[str]:
        """Return the dates of the elapsed times, such as "2024-05-17".

        If the column has times of day, they are included: "2024-05-17T08:30".  If the
        elapsed time is not a feature, the text lists the other features, such as "cos(year) 0.5".
        """
        if "elapsed" not in self.parts:
            names = [name.partition(":")[2] for name in self.feature_names]
            pairs = (zip(names, row, strict=True) for row in features)
            return [", ".join(f"{name} {value:.3g}" for name, value in pair) for pair in pairs]
        years = self.inverse(features)[f"{self.name}:elapsed"]
        seconds = years * DAYS_PER_YEAR * 86400 + self.start / 1e6
        limit = _MAX_DATE_YEARS * DAYS_PER_YEAR * 86400
        rounded = np.rint(np.clip(seconds, -limit, limit)).astype("datetime64[s]")
        unit = "m" if "day" in self.parts else "D"
        return np.datetime_as_string(rounded.astype(f"datetime64[{unit}]")).tolist()


@dataclass(frozen=True)
class TextColumn:
    """A text becomes features of the bag-of-words kernel, by the Nyström method.

    Parameters
    ----------
    name : str
        The name of the column.
    features : Nystroem
        The fitted features of the kernel.
    """

    name: str
    features: Any

    type: ClassVar[str] = "text"

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        count = len(self.features.get_feature_names_out())
        return [f"{self.name}:text{j + 1}" for j in range(count)]

    def unusable(self, table: Table) -> np.ndarray:
        """Return a mask without any True, because every text can be used."""
        return np.zeros(len(table), dtype=bool)

    def encode(self, table: Table) -> np.ndarray:
        """Return the features of all rows; those of a missing text are 0."""
        return np.asarray(self.features.transform(self.cleaned(table).tolist()))

    def cleaned(self, table: Table) -> np.ndarray:
        """Return the column for a kernel that selects it by name; a missing text is empty."""
        texts = table.texts(self.name)
        return column_from_texts("" if value is None else value for value in texts)

    def inverse(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Return the features as they are."""
        return dict(zip(self.feature_names, features.T, strict=True))

    def to_texts(self, features: np.ndarray) -> list[str]:
        """Return for each row the most similar of the texts that define the features."""
        texts = list(self.features.components_)
        known = np.asarray(self.features.transform(texts))
        distances = np.sum((features[:, None, :] - known) ** 2, axis=2)
        return [f"similar to {texts[j]!r}" for j in np.argmin(distances, axis=1)]


ColumnEncoder = NumberColumn | CategoryColumn | DateColumn | TextColumn


def text_features(counts: dict[str, int], n_components: int, seed: int) -> Nystroem:
    """Fit the features of the bag-of-words kernel to the distinct texts of a column."""
    from ..kernels import BagOfWords

    texts = sorted(counts)
    kernel = BagOfWords(sublinear_tf=True)
    return Nystroem(
        kernel=kernel, n_components=min(n_components, len(texts)), random_state=seed
    ).fit(texts)


def as_numbers(column: np.ndarray, notation: str = "") -> np.ndarray:
    """Return a column as numbers; a text that is not a number in the notation becomes NaN."""
    if column.dtype.kind == "M":
        return np.full(len(column), np.nan)
    if column.dtype != object:
        return column
    convert = Notation.parse(notation).number if notation else _plain_number
    return np.array([np.nan if text is None else convert(text) for text in column], dtype=float)


def _plain_number(text: str) -> float:
    """Return a text as a number; NaN if it is not a number with a decimal point."""
    return float(text) if is_number(text) else np.nan


def stripped(texts: np.ndarray) -> np.ndarray:
    """Return texts without leading and trailing spaces."""
    return column_from_texts(None if value is None else value.strip() for value in texts)


def elapsed_years(dates: np.ndarray, start: int) -> np.ndarray:
    """Return the time since `start` (in microseconds since 1970) in years; NaN if missing."""
    microseconds = dates.astype("datetime64[us]").astype(np.int64) - start
    years = microseconds / (_MICROSECONDS_PER_DAY * DAYS_PER_YEAR)
    return np.where(np.isnat(dates), np.nan, years)


def phase(dates: np.ndarray, period: str) -> np.ndarray:
    """Return the position of dates in a year, week or day, from 0 to 1; NaN if missing."""
    dates = dates.astype("datetime64[us]")
    if period == "year":
        start = dates.astype("datetime64[Y]")
        end = (start + np.timedelta64(1, "Y")).astype("datetime64[us]")
        start = start.astype("datetime64[us]")
        length = (end - start).astype(np.int64)
    else:
        start = dates.astype("datetime64[W]" if period == "week" else "datetime64[D]")
        start = start.astype("datetime64[us]")
        length = np.int64(_MICROSECONDS_PER_DAY * (7 if period == "week" else 1))
    position = (dates - start).astype(np.int64)
    return np.where(np.isnat(dates), np.nan, position / length)
