"""JSON Lines: one object in each line, whose fields are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ._delimited import lines_of
from ._source import Source
from ._table import MAX_EXACT, NUMBER, TEXT, Table, TableError, column_from_texts, is_rounded

__all__ = ["JsonLines"]

_PLAIN = (str, int, float, bool, type(None))


class JsonLines(Source):
    """Objects of numbers and texts; a field that an object lacks is missing there."""

    @cached_property
    def _fields(self) -> dict[str, None]:
        """All fields of the file, in the order in which they come."""
        fields: dict[str, None] = {}
        other = set[str]()  # fields with a value that is not a boolean
        with lines_of(self) as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    values = self._object(line, number)
                    fields |= dict.fromkeys(values)
                    other |= {n for n, v in values.items() if not isinstance(v, (bool, type(None)))}
        self._booleans = tuple(name for name in fields if name not in other)
        return fields

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._fields)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        start, read = 0, 0
        with lines_of(self, track=True) as lines:
            while block := list(islice(lines, rows)):
                places = [read + i for i, line in enumerate(block, start=1) if line.strip()]
                objects = [self._object(block[line - read - 1], line) for line in places]
                read += len(block)
                columns = {
                    name: self._column(name, objects, kinds[name] if kinds else None)
                    for name in self._fields
                }
                lines_read = np.array(places, dtype=int)
                table = Table(columns, self.name, lines_read, start, booleans=self._booleans)
                start += len(table)
                if len(table):
                    yield table

    def _object(self, line: str, number: int) -> dict[str, Any]:
        try:
            found = json.loads(line, object_pairs_hook=_unique)
        except _RepeatedField as error:
            raise TableError(
                f"{self.name}, line {number}: {error} - usually two records in one object - give "
                f"each value its own field"
            ) from None
        except (ValueError, RecursionError) as error:
            text = getattr(error, "msg", "brackets too deep")
            column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise TableError(
                f"{self.name}, line {number}{column}: {text} - usually JSON over several lines, "
                f"or a line that was cut off - write one object per line"
            ) from None
        if not isinstance(found, dict):
            raise TableError(
                f"{self.name}, line {number}: a {type(found).__name__} in place of an object - "
                f'write one object per line, {{"x": 1.5, "label": "a"}}'
            )
        for name, value in found.items():
            if not isinstance(value, _PLAIN):
                raise TableError(
                    f"{self.name}, line {number}, field {name!r}: a {type(value).__name__} in "
                    f"place of a number or a text - give each entry a field of its own"
                )
        return found

    @staticmethod
    def _column(name: str, objects: list[dict[str, Any]], kind: str | None) -> np.ndarray:
        values = [one.get(name) for one in objects]
        texts = kind == TEXT or any(isinstance(v, str) or _is_rounded(v) for v in values)
        if texts and kind != NUMBER:
            return column_from_texts(
                v if v is None or isinstance(v, str) else str(v) for v in values
            )
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object, each of which must occur once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RepeatedField(f"the field {twice!r} occurs twice")
    return found


class _RepeatedField(ValueError):
    """An object with two values of one field."""


def _is_rounded(value: Any) -> bool:
    """Whether a value is an integer that float64 cannot represent."""
    return isinstance(value, int) and abs(value) > MAX_EXACT and is_rounded(str(value))
