"""Read JSON Lines files: one object per line, whose fields are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ._csv import open_lines
from ._table import MAX_EXACT, NUMBER, TEXT, Table, TableError, column_from_texts, is_rounded
from ._table_source import Source

__all__ = ["JsonLinesSource"]

_SCALAR_TYPES = (str, int, float, bool, type(None))


class JsonLinesSource(Source):
    """A JSON Lines file of numbers and strings; absent fields are missing values."""

    @cached_property
    def _fields(self) -> dict[str, None]:
        """All fields of the file, in the order of first occurrence."""
        fields: dict[str, None] = {}
        not_boolean = set[str]()  # fields with at least one value that is not a boolean
        with open_lines(self) as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    values = self._object(line, number)
                    fields |= dict.fromkeys(values)
                    not_boolean |= {
                        n for n, v in values.items() if not isinstance(v, (bool, type(None)))
                    }
        self._booleans = tuple(name for name in fields if name not in not_boolean)
        return fields

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._fields)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        start, read = 0, 0
        with open_lines(self, track=True) as lines:
            while block := list(islice(lines, rows)):
                line_numbers = [read + i for i, line in enumerate(block, start=1) if line.strip()]
                objects = [self._object(block[line - read - 1], line) for line in line_numbers]
                read += len(block)
                columns = {
                    name: self._column(name, objects, kinds[name] if kinds else None)
                    for name in self._fields
                }
                line_array = np.array(line_numbers, dtype=int)
                table = Table(columns, self.name, line_array, start, booleans=self._booleans)
                start += len(table)
                if len(table):
                    yield table

    def _object(self, line: str, number: int) -> dict[str, Any]:
        """Parse one line; raise a TableError if it is not an object of numbers and strings."""
        try:
            values = json.loads(line, object_pairs_hook=_reject_repeated_fields)
        except _RepeatedField as error:
            raise TableError(
                f"{self.name}, line {number}: {error} - usually because two records were "
                f"merged into one object - give each value its own field"
            ) from None
        except (ValueError, RecursionError) as error:
            text = getattr(error, "msg", "brackets are nested too deeply")
            column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise TableError(
                f"{self.name}, line {number}{column}: {text} - usually an object on several "
                f"lines, or a truncated line - write one object per line"
            ) from None
        if not isinstance(values, dict):
            raise TableError(
                f"{self.name}, line {number}: a {type(values).__name__} instead of an object - "
                f'write one object per line, such as {{"x": 1.5, "label": "a"}}'
            )
        for name, value in values.items():
            if not isinstance(value, _SCALAR_TYPES):
                raise TableError(
                    f"{self.name}, line {number}, field {name!r}: expected a number or a string, "
                    f"found a {type(value).__name__} - give each entry its own field"
                )
        return values

    @staticmethod
    def _column(name: str, objects: list[dict[str, Any]], kind: str | None) -> np.ndarray:
        """Return the values of one field as numbers, or as text if any of them is text."""
        values = [obj.get(name) for obj in objects]
        has_text = kind == TEXT or any(isinstance(v, str) or _is_rounded(v) for v in values)
        if has_text and kind != NUMBER:
            return column_from_texts(
                v if v is None or isinstance(v, str) else str(v) for v in values
            )
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _reject_repeated_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object; raise `_RepeatedField` if one occurs twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _RepeatedField(f"the field {repeated!r} occurs twice")
    return fields


class _RepeatedField(ValueError):
    """Error for a JSON object that contains the same field twice."""


def _is_rounded(value: Any) -> bool:
    """Return True if a value is an integer that float64 cannot represent exactly."""
    return isinstance(value, int) and abs(value) > MAX_EXACT and is_rounded(str(value))
