"""Notations of cells in text files: numbers, booleans, dates and times, and missing values.

The kind of a column depends on all of its cells: "1,234" is a decimal number next to "1,5", and an
integer next to "1,234.5".  A `NotationDetector` therefore collects the readings that are possible
for all cells of a column.  The `Notation` that it selects converts the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np

# Kinds of columns.
NUMBER, TEXT, EMPTY, GRAPHS = "numbers", "text", "nothing", "graphs"
DATES, UNREADABLE = "dates", "unreadable"
# Cells that mean a missing value, in lower case: marks of Excel, pandas, R and SQL.
MISSING = frozenset(
    {"", "na", "n/a", "nan", "-nan", "nat", "null", "none", "?", "<na>", "\\n", "#n/a", "#n/a n/a"}
    | {"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!", "1.#qnan", "-1.#ind", "1.#ind"}
)
# These cells are missing values only in columns of numbers, booleans or dates.
_MISSING_NUMBERS = frozenset({"-", "--", ".", "\u2013", "\u2014"})
MAX_EXACT = 2**53  # float64 represents all integers from -2^53 to 2^53 exactly
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")

# ---------------------------------------------------------------------- missing values


class MissingMarks:
    """Cells that mean a missing value.

    Parameters
    ----------
    extra : iterable of str, default=()
        Marks in addition to the usual ones, in any case.  A mark that is a number also matches
        equal numbers: "-999" matches "-999.0".
    """

    def __init__(self, extra: Iterable[str] = ()) -> None:
        marks = [mark.strip() for mark in extra]
        self.texts = MISSING | {mark.lower() for mark in marks}
        self.numbers = np.array([float(mark) for mark in marks if is_number(mark)])
        spelled = {*self.texts, *marks}
        # All common spellings, for readers that do not ignore case.
        self.spellings = sorted(
            {s for mark in spelled for s in (mark, mark.lower(), mark.upper(), mark.capitalize())}
            | {"NaN", "-NaN", "NaT"}
        )

    def of(self, cells: Iterable[str]) -> set[str]:
        """Return the cells that are missing values in every column."""
        return {cell for cell in cells if cell.strip().lower() in self.texts}

    def clear(self, floats: np.ndarray) -> np.ndarray:
        """Replace the numbers that are marks of missing values by NaN."""
        if len(self.numbers):
            floats = np.where(np.isin(floats, self.numbers), np.nan, floats)
        return floats


# ---------------------------------------------------------------------- numbers


def is_rounded(cell: Any) -> bool:
    """Return True if a cell is an integer that float64 cannot represent exactly."""
    if not isinstance(cell, str) or not _INTEGER.fullmatch(cell):
        return False
    try:
        return int(float(cell)) != int(cell)
    except (OverflowError, ValueError):  # the number exceeds 1e308 or has too many digits for int()
        return True


def is_number(cell: str | None) -> bool:
    """Return True if a cell is missing or can be parsed as a number."""
    try:
        return cell is None or parse_floats([cell]) is not None
    except ValueError:
        return False


def parse_floats(cells: Sequence[Any]) -> np.ndarray:
    """Parse all cells as plain numbers; raise a ValueError if one is not a number."""
    if "_" in "".join(cells):  # Python accepts 1_000 as a number, but other programs do not
        raise ValueError("an underscore")
    return np.array(cells, dtype=np.float64)


_SPACES = " \u00a0\u2009\u202f"
_MINUS = {ord("\u2212"): "-"}  # the minus sign of typeset text
_CURRENCY = (
    r"(?:US|R|A|C|HK|NZ)?\$|[€£¥₹₩₽₺₪₫฿₴₦]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK"
    r"|PLN|CZK|HUF|BRL|MXN|SGD|HKD|KRW|TRY)|[Kk]r\.?|zł|Kč|Fr\.|Rs\.?"
)
# A unit of one or two words, such as "kg", "km/h", "m^2", "mm Hg" or "°C".
_POWER = r"(?:\^?-?[23]|[⁻¹²³]+)?"
_WORD = rf"[^\W\d_]+{_POWER}"
_UNIT = rf"°\s?[CFK]?|{_WORD}(?:[/·*.]{_WORD})*\.?(?: {_WORD})?"
_MAX_UNITS = 5  # more units in a column are words of a text
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-])?(?:(?P<before>{_CURRENCY})[{_SPACES}]*(?P<inner>[+-])?)?"
    rf"(?P<body>(?=[.,]?[0-9])[0-9][0-9.,'’{_SPACES}]*?|[.,][0-9]+)(?P<exponent>[eE][+-]?[0-9]+)?"
    rf"(?:(?P<space>[{_SPACES}]*)(?:(?P<after>%|‰|{_CURRENCY})|(?P<unit>{_UNIT})))?(?P<close>\))?"
)


def _body_pattern(separators: str, decimal: str) -> re.Pattern[str]:
    """Return the pattern of the digits of a number, with or without thousands separators."""
    mark, group = rf"(?P<mark>[{separators}'’{_SPACES}])", "[0-9]{3}"
    groups = rf"[1-9][0-9]{{0,2}}{mark}{group}(?:(?P=mark){group})*"
    indian = r"|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}" if separators == "," else ""
    return re.compile(rf"(?:[0-9]+|{groups}{indian})?(?:{decimal}[0-9]*)?")


# Readings of a cell, as bits.
_POINT, _COMMA, _BOOLEAN, _YMD, _DMY, _MDY, _NAMED, _TIME, _DURATION = (1 << i for i in range(9))
_NUMBERS, _ALL = _POINT | _COMMA, (1 << 9) - 1
_BODY = {_POINT: _body_pattern(",", r"\."), _COMMA: _body_pattern(".", ",")}
_UNITLESS = {
    reading: re.compile(rf"(?=[+-]?[.,]?[0-9])[+-]?{pattern.pattern}")
    for reading, pattern in _BODY.items()
}
_MAX_EXACT_LENGTH = 15  # integers with this number of digits are less than 2^53
_DELETED = {_POINT: ",'’" + _SPACES, _COMMA: ".'’" + _SPACES}  # thousands separators
_TO_PLAIN = {
    reading: {ord(sign): None for sign in signs} | ({ord(","): "."} if reading == _COMMA else {})
    for reading, signs in _DELETED.items()
}


@dataclass(frozen=True)
class _NumberCell:
    """A cell that is a number, in one or both readings.

    Attributes
    ----------
    readings : int
        `_POINT`, `_COMMA` or both.
    sign_of_amount : str
        The percent sign or the currency; empty if there is none.
    unit : str
        Any other unit, such as "kg"; empty if there is none.
    is_spaced : bool
        Whether a space precedes the unit.
    in_parentheses : bool
        Whether the number is in parentheses, which mean a negative number in accounting.
    separators : str
        The points and commas in the number.
    """

    readings: int
    sign_of_amount: str
    unit: str
    is_spaced: bool
    in_parentheses: bool
    sign: str
    body: str
    exponent: str

    @property
    def separators(self) -> str:
        return "".join(mark for mark in ".," if mark in self.body)

    def plain(self, reading: int) -> str:
        """Return the number in plain notation."""
        return f"{self.sign}{self.body.translate(_TO_PLAIN[reading])}{self.exponent}"


def _parse_number(cell: str) -> _NumberCell | None:
    """Parse a cell that may have thousands separators, a unit or parentheses."""
    match = _NUMBER.fullmatch(cell.strip().translate(_MINUS))
    if match is None:
        return None
    part = match.groupdict(default="")
    in_parentheses = bool(part["open"])
    sign = part["sign"] + part["inner"]
    if (
        in_parentheses != bool(part["close"])
        or (part["before"] and (part["after"] or part["unit"]))
        or (in_parentheses and part["unit"])
        or len(sign) + in_parentheses > 1
    ):
        return None
    body = part["body"]
    readings = sum(reading for reading, pattern in _BODY.items() if pattern.fullmatch(body))
    if not readings:
        return None
    return _NumberCell(
        readings,
        part["before"] or part["after"],
        part["unit"],
        bool(part["space"]),
        in_parentheses,
        "-" if in_parentheses else sign,
        body,
        part["exponent"],
    )


# ---------------------------------------------------------------------- dates and times

_CLOCK = (
    r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,](?P<f>[0-9]{1,9}))?)?"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_ZONE = r"(?:\s?(?P<zone>Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?"
_REST = rf"(?:(?:[Tt]|,?\s+){_CLOCK}{_ZONE})?"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
_YEAR_FIRST = re.compile(
    r"(?P<y>[0-9]{4})(?:-(?P<month>[0-9]{2})|(?P<mark>[-/.])(?P<m>[0-9]{1,2})(?P=mark)"
    rf"(?P<d>[0-9]{{1,2}}){_REST})"
)
_YEAR_LAST = re.compile(
    r"(?P<one>[0-9]{1,2})(?P<mark>[-/.])(?P<two>[0-9]{1,2})(?P=mark)(?P<y>[0-9]{4}|[0-9]{2})"
    + _REST
)
_NAMED_MONTH = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WEEKDAY}(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?[ -]{_MONTH}[ ,-]\s*(?P<y>[0-9]{{4}})"
        + _REST,
        rf"(?P<d>[0-9]{{1,2}})-{_MONTH}-(?P<y>[0-9]{{2}}){_REST}",
        rf"{_WEEKDAY}{_MONTH}\s(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s(?P<y>[0-9]{{4}}){_REST}",
    )
)
_TIME_ONLY = re.compile(_CLOCK)
_DAYS = re.compile(
    r"(?:(?P<days>[+-]?[0-9]+) days?,? \+?)(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})"
    r"(?:\.(?P<f>[0-9]{1,9}))?"
)
# Dates that NumPy parses, possibly after the order of year, month and day has been changed.
_ISO_REST = r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?Z?)?"
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + _ISO_REST)
_ISO_REVERSED = re.compile(r"[0-9]{2}(?P<mark>[-/.])[0-9]{2}(?P=mark)[0-9]{4}" + _ISO_REST)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_LAST_YEAR_OF_2000 = 68  # as in POSIX: 69 to 99 mean 1969 to 1999, and 00 to 68 mean 2000 to 2068


def _clock(part: dict[str, Any]) -> timedelta:
    """Return the time of day; raise a ValueError if it is invalid."""
    if part.get("H") is None:
        return timedelta(0)
    hour, minute, second = int(part["H"]), int(part["M"]), int(part["S"] or 0)
    if half := part.get("half"):
        if not 1 <= hour <= 12:
            raise ValueError("an hour outside 1 to 12")
        hour = hour % 12 + (12 if half in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("an invalid time")
    micro = int((part["f"] or "").ljust(6, "0")[:6])
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)


def _moment(year: str, month: int, day: int, part: dict[str, Any]) -> int:
    """Return the microseconds since 1970; raise a ValueError if the date is invalid."""
    y = int(year)
    if len(year) == 2:
        y += 2000 if y <= _LAST_YEAR_OF_2000 else 1900
    moment = datetime(y, month, day) + _clock(part)
    zone = part.get("zone")
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        shifted = moment.replace(tzinfo=timezone(offset if zone[0] == "+" else -offset))
        moment = shifted.astimezone(UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // _MICROSECOND


def _dates_of(cell: str) -> dict[int, int]:
    """Return the microseconds since 1970 for each reading of a cell as a date or time."""
    text = cell.strip()
    found: dict[int, int] = {}

    def add(reading: int, *date: Any) -> None:
        with suppress(ValueError, OverflowError):
            found[reading] = _moment(*date)

    if match := _YEAR_FIRST.fullmatch(text):
        part = match.groupdict()
        add(_YMD, part["y"], int(part["month"] or part["m"]), int(part["d"] or 1), part)
    elif match := _YEAR_LAST.fullmatch(text):
        part = match.groupdict()
        one, two, year = part["one"], part["two"], part["y"]
        # "1.2.10" is more likely a version number than a date, and "24-05-31" has the year first.
        if len(year) == 4 or part["mark"] == "/" or (part["mark"] == "." and len(one + two) == 4):
            add(_DMY, year, int(two), int(one), part)
            add(_MDY, year, int(one), int(two), part)
    elif match := _TIME_ONLY.fullmatch(text):
        with suppress(ValueError):
            found[_TIME] = _clock(match.groupdict()) // _MICROSECOND
    else:
        for pattern in _NAMED_MONTH:
            if match := pattern.fullmatch(text):
                part = match.groupdict()
                month = _MONTHS.index(part["m"][:3].lower()) + 1
                add(_NAMED, part["y"], month, int(part["d"]), part)
                break
    return found


def _seconds_of(cell: str) -> float | None:
    """Return the seconds of a duration such as "1 days 02:30:00"; None for other cells."""
    match = _DAYS.fullmatch(cell.strip())
    if match is None:
        return None
    part = match.groupdict()
    try:
        return (timedelta(days=int(part["days"])) + _clock(part)) / timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None


# ---------------------------------------------------------------------- notations of columns

_READING_NAMES = {
    _POINT: "point",
    _COMMA: "comma",
    _BOOLEAN: "boolean",
    _YMD: "year-month-day",
    _DMY: "day-month-year",
    _MDY: "month-day-year",
    _NAMED: "month-name",
    _TIME: "time",
    _DURATION: "duration",
}

_WITHOUT_UNITS = dict.fromkeys(map(ord, "%€£¥$₹")) | _MINUS


@dataclass(frozen=True)
class Notation:
    """How the cells of a column are converted.

    Parameters
    ----------
    kind : {"numbers", "text", "dates"}
        The kind of the column.
    reading : int, default=_POINT
        The reading of the cells.
    is_plain : bool, default=True
        Whether the cells are plain numbers, with decimal points or with decimal commas.
    note : str, default=""
        What is unusual about the notation, for a note; the name of the column precedes it.
    example : str, default=""
        A cell with this notation, for the note.
    unit : str, default=""
        The unit at the end of each cell, such as "kg".
    """

    kind: str
    reading: int = _POINT
    is_plain: bool = True
    note: str = ""
    example: str = ""
    unit: str = ""

    def __str__(self) -> str:
        """Return the notation as text that `parse` accepts, such as "numbers:comma:kg"."""
        parts = (self.kind, _READING_NAMES[self.reading], self.unit)
        return ":".join(parts if self.unit else parts[:2])

    @classmethod
    def parse(cls, text: str) -> Notation:
        """Return the notation that `str` converted to text."""
        kind, name, unit = (text + "::").split(":")[:3]
        readings = {name: reading for reading, name in _READING_NAMES.items()}
        if kind not in (NUMBER, TEXT, DATES) or name not in readings:
            raise ValueError(f"{text!r} is not a notation, such as 'numbers:comma'")
        return cls(kind, readings[name], False, unit=unit)

    @property
    def is_boolean(self) -> bool:
        """Whether the cells are "true" and "false"."""
        return self.kind == NUMBER and self.reading == _BOOLEAN

    @property
    def decimal(self) -> str | None:
        """The decimal separator of plain numbers; None if the column has another notation."""
        return self.decimal_separator if self.is_plain else None

    @property
    def decimal_separator(self) -> str | None:
        """The decimal separator of numbers; None for other columns."""
        marks = {_POINT: ".", _COMMA: ","}
        return marks.get(self.reading) if self.kind == NUMBER else None

    @property
    def day_first(self) -> bool | None:
        """Whether the day precedes the month in dates of numbers; None for other columns."""
        return {_DMY: True, _MDY: False}.get(self.reading)

    @property
    def is_special(self) -> bool:
        """Whether a part of the cells may have another notation, so that it should be stored."""
        if self.day_first is not None:
            return True
        return self.decimal_separator is not None and self.decimal != "."

    def convert(self, cells: Sequence[str | None], missing: MissingMarks) -> np.ndarray | int:
        """Convert cells to a column; return the index of the first cell that does not match."""
        if self.decimal == ".":
            with suppress(ValueError, TypeError):  # a cell is missing, or is not a number
                return missing.clear(parse_floats(cells))
        marks = missing.of(cell for cell in cells if cell is not None)
        cleaned = [None if cell is None or cell in marks else cell for cell in cells]
        if self.kind == TEXT:
            return column_from_texts(cleaned)
        if _MISSING_NUMBERS.intersection(cell.strip() for cell in cleaned if cell is not None):
            cleaned = [None if c is None or c.strip() in _MISSING_NUMBERS else c for c in cleaned]
        if self.kind == DATES:
            return self._convert_dates(cleaned)
        if self.decimal is not None:
            texts = ["nan" if cell is None else cell for cell in cleaned]
            try:
                if self.decimal == ",":
                    texts = [text.replace(",", ".") for text in texts]
                return missing.clear(parse_floats(texts))
            except ValueError:
                pass  # find the cell that is not a number
        elif self.reading in _TO_PLAIN:
            texts = ["nan" if cell is None else cell for cell in cleaned]
            if self.unit:
                texts = [text.strip().removesuffix(self.unit) for text in texts]
            # The cells were checked when the notation was detected.
            plain = "\n".join(texts).translate(_TO_PLAIN[self.reading] | _WITHOUT_UNITS)
            try:
                return missing.clear(parse_floats(plain.split("\n")))
            except ValueError:
                pass  # some numbers have a currency code or parentheses
        floats = np.full(len(cleaned), np.nan)
        for i, cell in enumerate(cleaned):
            if cell is not None:
                value = _value_of(cell, self.reading, self.unit)
                if value is None:
                    return i
                floats[i] = value
        return missing.clear(floats)

    def number(self, cell: str) -> float:
        """Return the number in a single cell; NaN if the cell has another notation or unit."""
        value = _value_of(cell, self.reading, self.unit)
        return np.nan if value is None else value

    def _convert_dates(self, cells: list[str | None]) -> np.ndarray | int:
        present = [cell for cell in cells if cell is not None]
        dates = np.full(len(cells), "NaT", dtype="datetime64[us]")
        if (values := _parse_dates(present, self.reading)) is not None:
            dates[[cell is not None for cell in cells]] = values
            return dates
        for i, cell in enumerate(cells):
            if cell is not None:
                value = _dates_of(cell).get(self.reading)
                if value is None:
                    return i
                dates[i] = np.datetime64(value, "us")
        return dates


def _value_of(cell: str, reading: int, unit: str = "") -> float | None:
    """Return the number in a cell; None if the cell does not have this reading and unit."""
    if reading == _BOOLEAN:
        return {"true": 1.0, "false": 0.0}.get(cell.strip().lower())
    if reading == _DURATION:
        return _seconds_of(cell)
    if (reading == _POINT or "." not in cell) and is_number(cell):
        return float(cell)
    number = _parse_number(cell)
    if number is None or not number.readings & reading or number.unit not in ("", unit):
        return None
    return float(number.plain(reading))


def _parse_dates(cells: list[str], reading: int) -> np.ndarray | None:
    """Return dates of fixed width as an array; None if a cell has another format or is invalid."""
    pattern = {_YMD: _ISO_DATE, _DMY: _ISO_REVERSED, _MDY: _ISO_REVERSED}.get(reading)
    if pattern is None or not cells or not all(map(pattern.fullmatch, cells)):
        return None
    if reading == _DMY:
        cells = [f"{c[6:10]}-{c[3:5]}-{c[:2]}{c[10:]}" for c in cells]
    elif reading == _MDY:
        cells = [f"{c[6:10]}-{c[:2]}-{c[3:5]}{c[10:]}" for c in cells]
    try:
        dates = np.array([cell.rstrip("Z") for cell in cells], dtype="datetime64[us]")
    except ValueError:  # a day such as 2024-02-30
        return None
    # Python's dates start with the year 1; other formats are checked with them.
    return None if np.any(dates < np.datetime64("0001-01-01")) else dates


class NotationDetector:
    """Collect the readings that are possible for all cells of a column.

    Parameters
    ----------
    missing : MissingMarks
        The cells that are missing values.
    """

    def __init__(self, missing: MissingMarks) -> None:
        self._missing = missing
        self._readings = _ALL
        self._has_values = False
        # Whether all numbers are plain, given decimal points and given decimal commas.
        self._is_plain, self._is_plain_comma = True, True
        self._separators = set[str]()
        self._signs = dict[str, None]()  # percent signs and currencies
        self._units, self._has_spaced_unit = dict[str, None](), False
        # Numbers without a unit (except 0) and numbers without parentheses.
        self._has_bare, self._has_parentheses, self._has_no_parentheses = False, False, False
        self._date_marks = set[str]()
        self._example = self._ambiguous = ""
        self._examples = dict[int, str]()
        self.read_decimals = set[str]()  # decimal separators of cells that `add_numbers` added

    @property
    def is_text(self) -> bool:
        """Whether no other kind than text is possible."""
        return not self._readings

    @property
    def is_undecided(self) -> bool:
        """Whether the column has no values yet."""
        return not self._has_values

    def plain_decimal(self, file_decimal: str | None) -> str | None:
        """Return the decimal separator if all numbers so far are plain, otherwise None."""
        if not self._has_values:
            return file_decimal or "."
        if (
            self._readings & _POINT
            and self._is_plain
            and (file_decimal != "," or not self._readings & _COMMA)
        ):
            return "."
        if (
            self._readings & _COMMA
            and self._is_plain_comma
            and (file_decimal == "," or not self._readings & _POINT)
        ):
            return ","
        return None

    def add_numbers(self, floats: np.ndarray, decimal: str) -> bool:
        """Add cells that were parsed as plain numbers; return False if one may be rounded.

        If the result is False, the cells must be added with `update`.
        """
        if np.any(np.abs(floats) >= MAX_EXACT):
            return False
        if not self._has_values:
            self._has_values = not np.isnan(floats).all()
        if self._has_values:
            self._readings &= _NUMBERS
        self.read_decimals.add(decimal)
        return True

    def update(self, cells: Iterable[str]) -> None:
        """Add cells, without repetitions."""
        if self.is_text:
            return
        cells = list(cells)
        if self._readings & _POINT and self._is_plain and self._add_plain(cells):
            return
        missing = self._missing.of(cells)
        if missing:
            cells = [cell for cell in cells if cell not in missing]
        if any(cell.strip() in _MISSING_NUMBERS for cell in cells):
            cells = [cell for cell in cells if cell.strip() not in _MISSING_NUMBERS]
        if not cells:
            return
        self._has_values = True
        if self._readings & _POINT and self._is_plain and self._add_plain(cells):
            return
        if self._readings & _YMD and _parse_dates(cells, _YMD) is not None:
            self._readings &= _YMD
            return
        if self._readings in (_DMY, _MDY) and _parse_dates(cells, self._readings) is not None:
            return
        if self._are_similar(cells):
            return
        for cell in cells:
            self._add(cell)
            if not self._readings:
                return

    def _are_similar(self, cells: list[str]) -> bool:
        """Return True if cells are numbers without a unit, in a notation that is already known."""
        pattern = _UNITLESS.get(self._readings)
        if pattern is None or not self._separators or not self._has_bare:
            return False
        is_plain = self._is_plain if self._readings == _POINT else self._is_plain_comma
        if is_plain and any(mark in "".join(cells) for mark in _DELETED[self._readings]):
            return False  # the first thousands separators
        # Longer numbers may be integers that float64 would round.
        return max(map(len, cells)) <= _MAX_EXACT_LENGTH and all(map(pattern.fullmatch, cells))

    def _add_plain(self, cells: list[str]) -> bool:
        """Add cells if all are plain numbers with decimal points, and return True."""
        try:
            floats = parse_floats(cells)
        except ValueError:
            return False
        if np.isnan(floats).all():
            return True  # cells such as "nan" are missing values
        self._has_values = True
        self._readings &= _NUMBERS
        if not (self._has_bare and self._has_no_parentheses):
            self._has_bare = self._has_bare or bool(np.any(floats != 0))
            self._has_no_parentheses = True
        if any(map(is_rounded, (cells[i] for i in np.flatnonzero(np.abs(floats) >= MAX_EXACT)))):
            self._readings = 0
            return True
        if self._readings & _COMMA or not self._separators:
            for cell in cells:
                if "." in cell:
                    self._separators.add(".")
                    self._is_plain_comma = False
                    number = _parse_number(cell)
                    if number is None or not number.readings & _COMMA:
                        self._readings &= ~_COMMA
                        break
                    self._ambiguous = self._ambiguous or cell.strip()
        return True

    def _add(self, cell: str) -> None:
        """Add one cell, which is not missing."""
        readings = 0
        if self._readings & _NUMBERS:
            readings |= self._number_readings(cell)
        if self._readings & _BOOLEAN and cell.strip().lower() in ("true", "false"):
            readings |= _BOOLEAN
        if self._readings & (_YMD | _DMY | _MDY | _NAMED | _TIME) and not readings:
            readings |= sum(_dates_of(cell))
            if readings & (_DMY | _MDY):
                self._date_marks |= {mark for mark in "-/." if mark in cell.strip()[:3]}
        if self._readings & _DURATION and not readings and _seconds_of(cell) is not None:
            readings |= _DURATION
        if readings & ~_NUMBERS and not self._example:
            self._example = cell.strip()
        for reading in (_DMY, _MDY):  # an example that is a date in only one order
            if readings & (_DMY | _MDY) == reading:
                self._examples.setdefault(reading, cell.strip())
        self._readings &= readings

    def _number_readings(self, cell: str) -> int:
        """Return the readings of a cell as a number, and record its notation."""
        is_plain = is_number(cell)
        if is_plain and "." not in cell:
            self._has_bare = self._has_bare or float(cell) != 0
            self._has_no_parentheses = True
            if is_rounded(cell):
                self._readings = 0
                return 0
            return _NUMBERS
        number = _parse_number(cell)
        if number is None:
            return _POINT if is_plain else 0
        readings = number.readings
        self._is_plain = self._is_plain and is_plain
        self._is_plain_comma = self._is_plain_comma and (
            "." not in cell and is_number(cell.replace(",", "."))
        )
        self._separators |= set(number.separators)
        if readings == _NUMBERS and number.separators:
            self._ambiguous = self._ambiguous or cell.strip()
        for reading in (_POINT, _COMMA):
            if readings & reading:
                plain = number.plain(reading)
                if is_rounded(plain) and abs(float(plain)) >= MAX_EXACT:
                    self._readings = 0
                    return 0
                if not number.sign_of_amount and not number.unit and float(plain) != 0:
                    self._has_bare = True
        if number.sign_of_amount:
            self._signs[number.sign_of_amount] = None
        if number.unit:
            self._units[number.unit] = None
            self._has_spaced_unit |= number.is_spaced
            if len(self._units) > _MAX_UNITS:
                self._readings = 0
                return 0
        self._has_parentheses |= number.in_parentheses
        self._has_no_parentheses |= not number.in_parentheses
        if not is_plain:
            # Prefer an example that has only one reading.
            for reading in (_POINT, _COMMA):
                if readings == reading:
                    self._examples.setdefault(reading, cell.strip())
            self._example = self._example or cell.strip()
        return readings

    # ------------------------------------------------------------------ decisions

    @property
    def decimal(self) -> str | None:
        """The decimal separator that the cells prove, if any."""
        if not self._separators or not self._has_values:
            return None
        return {_POINT: ".", _COMMA: ","}.get(self._readings & _NUMBERS)

    @property
    def day_first(self) -> bool | None:
        """Whether the cells prove that the day precedes the month; None if they do not."""
        return {_DMY: True, _MDY: False}.get(self._readings & (_DMY | _MDY))

    def contradicts(self, expected: Notation, found: Notation) -> bool:
        """Return True if the cells prove another notation, or have another unit, than expected."""
        if not self._has_values or found.kind == TEXT:
            return False
        proven = self.decimal or self.day_first
        other = expected.decimal_separator if self.decimal else expected.day_first
        return found.unit != expected.unit or (
            proven is not None and other is not None and proven != other
        )

    def was_misread(self, notation: Notation) -> bool:
        """Return True if `add_numbers` assumed another decimal separator than the notation has."""
        other = {_POINT: ",", _COMMA: "."}.get(notation.reading)
        return notation.kind == NUMBER and other in self.read_decimals

    def notation(
        self, decimal: str | None, *, comma_default: bool = False, day_first: bool | None = None
    ) -> Notation:
        """Return the notation of the column.

        Parameters
        ----------
        decimal : {".", ","} or None
            The decimal separator if the cells do not determine it.
        comma_default : bool, default=False
            Whether "1,234" is a decimal number if `decimal` is None.
        day_first : bool, default=None
            Whether the day is first in dates such as 01/02/2024, if the cells do not determine it.
        """
        if not self._has_values:
            return Notation(NUMBER)
        readings = self._readings
        if readings & _NUMBERS:
            return self._number_notation(decimal, comma_default)
        if readings & _BOOLEAN:
            return Notation(NUMBER, _BOOLEAN, False)
        if readings & _DURATION:
            note = "durations are read as numbers of seconds"
            return Notation(NUMBER, _DURATION, False, note, self._example)
        for reading in (_YMD, _NAMED, _TIME):
            if readings & reading:
                return Notation(DATES, reading, False)
        if readings & (_DMY | _MDY):
            return self._date_notation(day_first)
        return Notation(TEXT)

    def _number_notation(self, decimal: str | None, comma_default: bool) -> Notation:
        has_percent = bool({"%", "‰"}.intersection(self._signs))
        n_units = len(self._signs) + len(self._units)
        if n_units > 1 or (self._has_bare and (has_percent or self._units)):
            return self._mixed_notation()
        if self._has_parentheses and not self._has_no_parentheses:
            return Notation(TEXT)
        unit = "".join(self._units)
        reading = self._readings & _NUMBERS
        because = ""
        if reading == _NUMBERS:
            if not self._separators:
                has_commas = "," in self.read_decimals if self.read_decimals else decimal == ","
                reading = _COMMA if has_commas else _POINT
            else:
                if decimal is None:
                    decimal = "," if comma_default and "," in self._separators else "."
                reading = _COMMA if decimal == "," else _POINT
                because = " - if this is wrong, specify the decimal separator with --decimal"
        is_plain = self._is_plain if reading == _POINT else self._is_plain_comma
        if reading == _POINT and is_plain:
            return Notation(NUMBER)
        example = self._examples.get(reading) or self._ambiguous or self._example
        if not example:
            return Notation(NUMBER, reading, is_plain)
        return Notation(NUMBER, reading, is_plain, self._describe(reading) + because, example, unit)

    def _mixed_notation(self) -> Notation:
        """Return the notation of numbers with different units, which are text."""
        if self._units and not self._has_spaced_unit:
            return Notation(TEXT)  # codes such as "1a" and "2b"
        units = ", ".join([*self._signs, *self._units])
        what = f"different units ({units})"
        if len(self._signs) + len(self._units) == 1:
            what = f"the unit {units} in some cells and no unit in others"
        note = f"read as text, because the numbers have {what}"
        return Notation(
            TEXT, note=f"{note} - convert them to one unit to use numbers", example=self._example
        )

    def _describe(self, reading: int) -> str:
        """Return a description of the notation of numbers."""
        details = []
        number = _parse_number(self._example or self._ambiguous)
        if reading == _COMMA and "," in self._separators:
            details.append("decimal commas")
        if reading == _COMMA and "," not in self._separators and "." in self._separators:
            details.append("points as thousands separators")
        if reading == _POINT and "," in self._separators:
            details.append("commas as thousands separators")
        if {"%", "‰"}.intersection(self._signs):
            details.append("percent signs")
        elif self._signs:
            details.append("currency signs")
        if self._units:
            details.append(f"the unit {''.join(self._units)}")
        if self._has_parentheses:
            details.append("parentheses for negative numbers")
        if not details and number is not None:
            details.append("separators")
        return f"read as numbers with {' and '.join(details)}"

    def _date_notation(self, day_first: bool | None) -> Notation:
        readings = self._readings & (_DMY | _MDY)
        if readings == _DMY | _MDY:
            if day_first is None and self._date_marks == {"."}:
                day_first = True
            if day_first is None:
                return Notation(
                    DATES,
                    _MDY,
                    False,
                    "the order of day and month is ambiguous; read as month first",
                    self._example,
                )
            readings = _DMY if day_first else _MDY
        note = f"read as dates with the {'day' if readings == _DMY else 'month'} first"
        return Notation(DATES, readings, False, note, self._examples.get(readings, self._example))


def detect_notation(cells: Iterable[str | None], missing: MissingMarks | None = None) -> Notation:
    """Return the notation of a column, given all its cells."""
    detector = NotationDetector(missing or MissingMarks())
    detector.update(dict.fromkeys(cell for cell in cells if cell is not None))
    return detector.notation(None)


def column_from_texts(cells: Iterable[str | None]) -> np.ndarray:
    """Return strings as an array of objects, in which None is a missing value."""
    column = np.empty(len(cells := list(cells)), dtype=object)
    column[:] = cells
    return column
