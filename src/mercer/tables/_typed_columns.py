"""Convert typed values to columns: Python objects, Arrow arrays and columns of DataFrames.

The result is the same as for the values in a CSV file: booleans become the numbers 0 and 1, dates
and times become datetime64[us] in UTC, durations become seconds, and strings in the notation of
dates, booleans or amounts are converted.  The exception are strings that are all plain numbers.
They stay text, because a typed format would contain numbers if numbers were meant.  Values of any
other type become an `UnreadableColumn`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from ._cell_notation import MAX_EXACT, NUMBER, TEXT, MissingMarks, Notation, NotationDetector
from ._table import UnreadableColumn, as_texts, integer_column

_MARKS = MissingMarks()
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # names that pandas gives to an unnamed index
# Python classes of each type of value, in the order in which they are tried: a bool is also an int,
# numpy.timedelta64 is also numpy.integer, and a datetime is also a date.
_TYPES: tuple[tuple[str, Any], ...] = (
    ("string", (str, UUID, PurePath)),
    ("boolean", (bool, np.bool_)),
    ("duration", (dt.timedelta, np.timedelta64)),
    ("integer", (int, np.integer)),
    ("float", (Real, Decimal)),
    ("date", (dt.date, np.datetime64)),
    ("time", dt.time),
)
# A string in the notation of each type.  It represents the values of that type in a column that
# also contains strings.
_EXAMPLES = {
    "boolean": "True",
    "integer": "7",
    "float": "0.5",
    "date": "2024-05-31",
    "time": "00:00",
    "duration": "1 days 00:00:00",
}


class TypedColumn(NamedTuple):
    """A column of a `Table`, and what its dtype does not show."""

    values: Any
    is_boolean: bool = False
    is_integer: bool = False
    note: str = ""


def is_missing_value(value: object) -> bool:
    """Return True if a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


# ---------------------------------------------------------------------- strings


class TextDetector:
    """Determine the notation of a column of strings, given its distinct values block by block."""

    def __init__(self) -> None:
        self._detector = NotationDetector(_MARKS)
        self._has_marks = False  # whether a string is a mark of a missing value

    @property
    def is_text(self) -> bool:
        """Whether no other kind than text is possible."""
        return self._detector.is_text

    def update(self, cells: Iterable[str | None]) -> None:
        """Add strings, without repetitions."""
        present = [cell for cell in cells if cell is not None]
        self._has_marks = self._has_marks or bool(_MARKS.of(present))
        self._detector.update(present)

    def notation(self, *, keep_numbers: bool = True) -> Notation:
        """Return the notation; strings that are all plain numbers stay text by default."""
        notation = self._detector.notation(None)
        is_plain_number = notation.decimal == "." and not self._detector.is_undecided
        if keep_numbers and is_plain_number and not self._has_marks:
            return Notation(TEXT)
        return notation


def describe_notation(name: str, notation: Notation) -> str:
    """Return a note about the unusual notation of a column; empty if there is none."""
    if not notation.note:
        return ""
    return f"column {name!r}: {notation.note}, such as {notation.example!r}"


def _convert_texts(cells: Sequence[str | None], notation: Notation, kind: str | None) -> np.ndarray:
    """Convert strings by their notation; to text if `kind` is TEXT."""
    column = (Notation(TEXT) if kind == TEXT else notation).convert(cells, _MARKS)
    return Notation(TEXT).convert(cells, _MARKS) if isinstance(column, int) else column  # type: ignore[return-value]


# ---------------------------------------------------------------------- Python objects


@dataclass(frozen=True)
class ObjectFormat:
    """How the objects of a column are converted.

    Parameters
    ----------
    types : frozenset of str
        The types of the values, as in `_TYPES`.
    notation : Notation
        The notation of the values as strings; used if there are strings or several types.
    unreadable : str, default=""
        Why the column cannot be read; empty if it can.
    has_large : bool, default=False
        Whether float64 cannot represent all integers exactly.
    """

    types: frozenset[str]
    notation: Notation
    unreadable: str = ""
    has_large: bool = False

    @property
    def is_boolean(self) -> bool:
        """Whether all values are booleans, or strings such as "true"."""
        if self.unreadable:
            return False
        return self.types == {"boolean"} or (self._is_text and self.notation.is_boolean)

    @property
    def is_integer(self) -> bool:
        """Whether all values are integers that float64 represents exactly."""
        return self.types == {"integer"} and not self.has_large

    @property
    def _is_text(self) -> bool:
        return bool(self.types) and (
            "string" in self.types
            or self.types > {"boolean"}
            or not (self.types <= {"integer", "float"} or len(self.types) == 1)
        )

    def convert(self, values: Sequence[Any], kind: str | None = None) -> Any:
        """Convert values, in which None is a missing value, to a column.

        If `kind` is TEXT, the values become strings.
        """
        if self.unreadable:
            return UnreadableColumn(self.unreadable, len(values))
        if self._is_text or (kind == TEXT and self.types):
            cells = [None if value is None else _text_of(value) for value in values]
            return _convert_texts(cells, self.notation, kind)
        if self.types == {"integer"}:
            return integer_column(
                [None if v is None else int(v) for v in values], TEXT if self.has_large else NUMBER
            )
        if self.types in ({"date"}, {"time"}):
            return np.array([_date_of(value) for value in values], dtype="datetime64[us]")
        if self.types == {"duration"}:
            return np.array([_seconds_of(value) for value in values], dtype=np.float64)
        return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)


class ObjectDetector:
    """Determine the format of a column of Python objects, given its values block by block."""

    def __init__(self) -> None:
        self._types = set[str]()
        self._texts = TextDetector()
        self._unreadable = ""
        self._has_large = False
        self._type_of = dict[type, str]()

    def update(self, values: Iterable[Any]) -> None:
        """Add values, in which None is a missing value."""
        by_type: dict[type, list[Any]] = {}
        for value in values:
            by_type.setdefault(type(value), []).append(value)
        by_type.pop(type(None), None)
        for cls, members in by_type.items():
            kind = self._type_of.setdefault(cls, _type_of(members[0]))
            if not kind:
                self._unreadable = self._unreadable or f"values of type {cls.__name__}"
                continue
            self._types.add(kind)
            if kind == "string" and not self._texts.is_text:
                self._texts.update(dict.fromkeys(map(str, members)))
            elif kind == "integer" and not self._has_large:
                large = max(map(abs, map(int, (max(members), min(members))))) > MAX_EXACT
                self._has_large = large and any(int(float(v)) != int(v) for v in _finite(members))

    def format(self) -> ObjectFormat:
        """Return the format."""
        types = self._types
        is_mixed = len(types) > 1
        if is_mixed and "string" in types:
            self._texts.update([_EXAMPLES[kind] for kind in sorted(types - {"string"})])
        notation = self._texts.notation(keep_numbers=not is_mixed)
        if (is_mixed and "string" not in types) or ("string" in types and self._has_large):
            notation = Notation(TEXT)
        if types == {"integer", "float"} and self._has_large:
            types = {"float"}  # the column is rounded, as in a CSV file with decimal points
        return ObjectFormat(frozenset(types), notation, self._unreadable, self._has_large)


def _finite(integers: list[Any]) -> list[Any]:
    """Return the integers, or the first one above the range of float64 as a rounded example."""
    beyond = [v for v in integers if abs(int(v)) > 2**1023]
    return [2**53 + 1] if beyond else integers


def _type_of(value: Any) -> str:
    """Return the type of a value, as in `_TYPES`; empty if it cannot be read."""
    if hasattr(value, "to_timestamp"):  # pandas.Period
        return "date"
    if type(value).__name__ == "Interval":  # pandas.Interval
        return "string"
    return next((name for name, classes in _TYPES if isinstance(value, classes)), "")


def object_column(values: Iterable[Any], kind: str | None = None) -> TypedColumn:
    """Convert Python objects to a column."""
    cleaned = [None if is_missing_value(value) else value for value in values]
    detector = ObjectDetector()
    detector.update(cleaned)
    found = detector.format()
    column = found.convert(cleaned, kind)
    uses_notation = not found.unreadable and "string" in found.types
    note = _note_of(found.notation) if uses_notation else ""
    return TypedColumn(column, found.is_boolean, found.is_integer, note)


def _note_of(notation: Notation) -> str:
    return f"{notation.note}, such as {notation.example!r}" if notation.note else ""


def _text_of(value: Any) -> str:
    """Return a value as in a CSV file: dates in ISO format, and floats with all digits."""
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _date_of(value: Any) -> Any:
    """Return a date, or a time on 1970-01-01, as datetime64[us] in UTC; NaT for None."""
    if value is None:
        return np.datetime64("NaT", "us")
    if hasattr(value, "to_timestamp"):
        value = value.to_timestamp()
    if hasattr(value, "to_datetime64"):  # pandas.Timestamp; the result is in UTC
        return value.to_datetime64().astype("datetime64[us]")
    if isinstance(value, dt.time):
        value = dt.datetime.combine(dt.date(1970, 1, 1), value.replace(tzinfo=None))
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _seconds_of(value: Any) -> float:
    """Return a duration in seconds; NaN for None."""
    if value is None:
        return np.nan
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    return float(value / dt.timedelta(seconds=1))


# ---------------------------------------------------------------------- arrays


def as_microseconds(dates: np.ndarray) -> Any:
    """Convert an array of datetime64 to microseconds; unreadable if a date is out of range."""
    unit = np.datetime_data(dates.dtype)[0]
    if unit not in ("us", "ns", "ps", "fs", "as", "generic"):
        present = dates[~np.isnat(dates)]
        limit = np.datetime64(2**62, "us").astype(dates.dtype).astype(np.int64)
        if np.any(np.abs(present.astype(np.int64)) > limit):
            return UnreadableColumn("dates beyond the year 146000", len(dates))
    return dates.astype("datetime64[us]")


def durations_in_seconds(durations: np.ndarray) -> np.ndarray:
    """Convert an array of timedelta64 to seconds."""
    return durations / np.timedelta64(1, "s")


def take_categories(column: TypedColumn, codes: np.ndarray) -> TypedColumn:
    """Return a column of categories, given the index of each row; -1 means a missing value."""
    values, is_missing = column.values, codes < 0
    if isinstance(values, UnreadableColumn):
        return column._replace(values=UnreadableColumn(values.reason, len(codes)))
    missing_values = {"f": np.nan, "M": np.datetime64("NaT", "us")}
    missing: Any = missing_values.get(values.dtype.kind)  # None for text
    if not len(values):
        return column._replace(values=np.full(len(codes), missing, dtype=values.dtype))
    taken = values[np.where(is_missing, 0, codes)]
    taken[is_missing] = missing
    return column._replace(values=taken)


# ---------------------------------------------------------------------- Arrow


def combined_chunks(column: Any) -> Any:
    """Return a chunked array as one array."""
    combined = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(combined, "chunks"):  # too large for one array of this type
        import pyarrow as pa

        combined = pa.concat_arrays(combined.cast(pa.large_string()).chunks)
    return combined


def pandas_index_columns(schema: Any) -> list[str]:
    """Return the columns of an Arrow table that were the index of a pandas DataFrame."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # the metadata is not valid JSON, or has another layout
        index = []
    by_metadata = {name for name in index if isinstance(name, str)}
    return [n for n in schema.names if n in by_metadata or _UNNAMED_INDEX.fullmatch(n)]


def is_arrow_text(type_: Any) -> bool:
    """Return True if an Arrow type, or the type of its categories, is a string."""
    from pyarrow import types

    if types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def is_arrow_readable(type_: Any) -> bool:
    """Return True if values of an Arrow type can be converted to a column."""
    import pyarrow as pa

    return not isinstance(arrow_column(pa.nulls(0, type_)).values, UnreadableColumn)


def arrow_column(
    column: Any, kind: str | None = None, notation: Notation | None = None
) -> TypedColumn:
    """Convert a pyarrow array to a column.

    Parameters
    ----------
    column : pyarrow.Array
        The values.
    kind : str, default=None
        TEXT converts integers and dates to text.
    notation : Notation, default=None
        The notation of strings; detected if None.

    Returns
    -------
    TypedColumn
        The column.
    """
    import pyarrow as pa

    types, value_type = pa.types, column.type
    if isinstance(value_type, pa.BaseExtensionType):
        if "uuid" in str(value_type):
            return object_column(column.to_pylist(), kind)
        return arrow_column(column.storage, kind, notation)
    if types.is_run_end_encoded(value_type):
        import pyarrow.compute as pc

        return arrow_column(pc.run_end_decode(column), kind, notation)
    if types.is_dictionary(value_type):
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return take_categories(arrow_column(column.dictionary, kind, notation), codes)
    if is_arrow_text(value_type):
        return _arrow_texts(column, kind, notation)
    if types.is_integer(value_type) or (types.is_decimal(value_type) and value_type.scale <= 0):
        return _arrow_integers(column, kind)
    if types.is_decimal(value_type):  # use float(), which rounds correctly, unlike pyarrow
        values = [np.nan if v is None else float(v) for v in column.to_pylist()]
        return TypedColumn(np.array(values, dtype=np.float64))
    if types.is_boolean(value_type) or types.is_floating(value_type):
        return TypedColumn(_arrow_floats(column), types.is_boolean(value_type))
    if types.is_null(value_type):
        return TypedColumn(np.full(len(column), np.nan))
    if types.is_duration(value_type):
        units_per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[value_type.unit]
        return TypedColumn(_arrow_floats(column.cast(pa.int64())) / units_per_second)
    if types.is_timestamp(value_type) or types.is_date(value_type) or types.is_time(value_type):
        return TypedColumn(_dates_or_texts(_arrow_dates(column), kind))
    return TypedColumn(UnreadableColumn(f"values of type {value_type}", len(column)))


def _arrow_floats(column: Any) -> np.ndarray:
    import pyarrow as pa

    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.float64)


def _arrow_integers(column: Any, kind: str | None) -> TypedColumn:
    floats = _arrow_floats(column)
    if kind != TEXT and not np.any(np.abs(floats) >= MAX_EXACT):
        return TypedColumn(floats, is_integer=True)
    values = [None if v is None else int(v) for v in column.to_pylist()]
    found = integer_column(values, kind)
    return TypedColumn(found, is_integer=found.dtype != object)


def _arrow_texts(column: Any, kind: str | None, notation: Notation | None) -> TypedColumn:
    """Convert an array of strings; each distinct string is converted once."""
    import pyarrow as pa

    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    encoded = column.dictionary_encode()
    cells = encoded.dictionary
    if notation is None:
        detector = TextDetector()
        detector.update(cells.to_pylist())
        notation = detector.notation()
    if TEXT in (kind, notation.kind):
        values = _strings(cells)
    else:
        values = _convert_texts(cells.to_pylist(), notation, kind)
    is_boolean = notation.is_boolean and values.dtype != object
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return take_categories(TypedColumn(values, is_boolean, note=_note_of(notation)), codes)


def _strings(cells: Any) -> np.ndarray:
    """Convert an Arrow array of strings to text; marks of missing values become None.

    This is `Notation(TEXT).convert`, but faster.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
    is_mark = pc.is_in(trimmed, value_set=pa.array(sorted(_MARKS.texts), cells.type))
    column = np.empty(len(cells), dtype=object)
    column[:] = cells.to_pylist()
    column[is_mark.to_numpy(zero_copy_only=False).astype(bool)] = None
    return column


def _arrow_dates(column: Any) -> Any:
    """Convert timestamps, dates and times to datetime64[us] in UTC."""
    import pyarrow as pa

    if pa.types.is_time(column.type):
        microseconds = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
        column = microseconds.cast(pa.timestamp("us"))
    elif pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    return as_microseconds(column.to_numpy(zero_copy_only=False))


def _dates_or_texts(dates: Any, kind: str | None) -> Any:
    is_text = kind == TEXT and not isinstance(dates, UnreadableColumn)
    return as_texts(dates) if is_text else dates


# ---------------------------------------------------------------------- DataFrames


def pandas_column(column: Any) -> TypedColumn:
    """Convert a pandas Series or Index."""
    from pandas.api import types

    dtype = column.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        import pyarrow as pa

        return arrow_column(combined_chunks(pa.array(column.array)))
    if hasattr(dtype, "categories"):
        categories = pandas_column(dtype.categories)
        accessor = getattr(column, "cat", column)
        return take_categories(categories, np.asarray(accessor.codes, dtype=np.int64))
    if types.is_bool_dtype(dtype):
        return TypedColumn(_pandas_floats(column), is_boolean=True)
    if types.is_float_dtype(dtype):
        return TypedColumn(_pandas_floats(column))
    if types.is_integer_dtype(dtype):
        floats = _pandas_floats(column)
        if not np.any(np.abs(floats) >= MAX_EXACT):
            return TypedColumn(floats, is_integer=True)
    elif types.is_complex_dtype(dtype):
        return TypedColumn(UnreadableColumn(f"values of type {dtype}", len(column)))
    elif isinstance(dtype, np.dtype) and dtype.kind == "M":
        return TypedColumn(as_microseconds(column.to_numpy()))
    elif hasattr(dtype, "tz"):
        return TypedColumn(as_microseconds(column.to_numpy(f"M8[{dtype.unit}]")))
    elif isinstance(dtype, np.dtype) and dtype.kind == "m":
        return TypedColumn(durations_in_seconds(column.to_numpy()))
    return object_column(column.astype(object).tolist())


def _pandas_floats(column: Any) -> np.ndarray:
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if hasattr(column.dtype, "fill_value"):  # a sparse column
        return np.asarray(column, dtype=np.float64)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def polars_column(column: Any) -> TypedColumn:
    """Convert a polars Series."""
    dtype = column.dtype
    name = type(dtype).__name__
    if dtype.is_float():
        return TypedColumn(_polars_floats(column))
    if dtype.is_integer():
        floats = _polars_floats(column)
        if not np.any(np.abs(floats) >= MAX_EXACT):
            return TypedColumn(floats, is_integer=True)
    elif name == "Boolean":
        return TypedColumn(_polars_floats(column), is_boolean=True)
    elif name in ("Date", "Datetime"):
        if getattr(dtype, "time_zone", None):
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return TypedColumn(as_microseconds(column.to_numpy()))
    elif name == "Duration":
        return TypedColumn(durations_in_seconds(column.to_numpy()))
    elif dtype.is_nested() or name in ("Binary", "Unknown"):
        return TypedColumn(UnreadableColumn(f"values of type {dtype}", len(column)))
    return object_column(column.to_list())


def _polars_floats(column: Any) -> np.ndarray:
    floats = column.cast(float).fill_null(float("nan")).to_numpy()
    return np.asarray(floats, dtype=np.float64)


# ---------------------------------------------------------------------- names


def unique_names(names: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Return column names as distinct strings, and a note if some had to be renamed.

    Names that are not strings are converted; an empty name of position i becomes "column{i}".  The
    second column x becomes x_2.
    """
    texts = [str(name) for name in names]
    texts = [text if text.strip() else f"column{i}" for i, text in enumerate(texts, start=1)]
    taken, unique, renamed = set(texts), list[str](), list[str]()
    for text in texts:
        new, number = text, 2
        if text in unique:
            while (new := f"{text}_{number}") in taken:
                number += 1
            taken.add(new)
            renamed.append(f"{text!r} to {new!r}")
        unique.append(new)
    if not renamed:
        return unique, []
    more = f" and {len(renamed) - 3} more" if len(renamed) > 3 else ""
    return unique, [
        f"several columns have the same name - usually the result of joining two tables - "
        f"renamed {', '.join(renamed[:3])}{more}"
    ]
