"""Read JSON Lines, and JSON files that contain one table.

A nested object {"a": {"b": 1}} becomes the column "a.b".  Lists become an unreadable column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._table import Table, TableError
from ._table_source import Source
from ._text_streams import open_lines
from ._typed_columns import ObjectDetector, ObjectFormat, describe_notation, unique_names

_MAX_LISTED = 10  # lines that an error message lists
_LINES_PER_READ = 2**13  # lines that are parsed together; more lines need more memory


class JsonLinesSource(Source):
    """A JSON Lines file: one object per line; absent fields are missing values."""

    @cached_property
    def _formats(self) -> dict[str, ObjectFormat]:
        """The format of each field of the file, in the order of first occurrence."""
        detectors: dict[str, ObjectDetector] = {}
        problems: list[_InvalidLine] = []
        with open_lines(self) as lines:
            start = 0
            while block := list(islice(lines, _LINES_PER_READ)):
                _, objects = self._objects(block, start, problems)
                start += len(block)
                for name, values in _values_by_field(objects).items():
                    detectors.setdefault(name, ObjectDetector()).update(values)
        if problems:
            raise self._error(problems)
        formats = {name: detector.format() for name, detector in detectors.items()}
        self.notes += notes_about(formats)
        return formats

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._formats)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        start, read, formats = 0, 0, self._formats
        kind_of_column = kinds or dict.fromkeys(formats)
        with open_lines(self, track=True) as lines:
            while block := list(islice(lines, rows)):
                problems: list[_InvalidLine] = []
                line_numbers, objects = self._objects(block, read, problems)
                if problems:  # the file has changed since the first pass
                    raise self._error(problems)
                read += len(block)
                columns = {
                    name: found.convert([obj.get(name) for obj in objects], kind_of_column[name])
                    for name, found in formats.items()
                }
                line_array = np.array(line_numbers, dtype=int)
                table = typed_table(columns, formats, self.name, start, line_array)
                start += len(table)
                if len(table):
                    yield table

    def _objects(
        self, block: list[str], read: int, problems: list[_InvalidLine]
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """Parse lines, of which `read` lines precede; return the line numbers and the objects.

        Lines that are not objects are added to `problems`.
        """
        numbers, objects = list[int](), list[dict[str, Any]]()
        for number, line in enumerate(block, start=read + 1):
            if line.strip():
                found = _parse_line(line, number)
                if isinstance(found, _InvalidLine):
                    problems.append(found)
                else:
                    numbers.append(number)
                    objects.append(found)
        return numbers, objects

    def _error(self, problems: list[_InvalidLine]) -> TableError:
        """Return the error that lists the lines that are not objects."""
        advice = problems[0].advice
        if len(problems) == 1:
            return TableError(f"{self.name}, {problems[0].position}: {problems[0].reason}{advice}")
        shown = "; ".join(f"{p.position}: {p.reason}" for p in problems[:_MAX_LISTED])
        n_others = len(problems) - _MAX_LISTED
        more = f"; and {n_others} more" if n_others > 0 else ""
        return TableError(
            f"{self.name}: {len(problems)} lines are not JSON objects: {shown}{more}{advice}"
        )


class _InvalidLine(NamedTuple):
    """A line of a JSON Lines file that is not an object: its position, the reason and advice."""

    position: str
    reason: str
    advice: str


def _parse_line(line: str, number: int) -> dict[str, Any] | _InvalidLine:
    """Parse one line of a JSON Lines file."""
    position = f"line {number}"
    try:
        values = parse_json(line.rstrip("\r\n"))
        if isinstance(values, dict):
            return flat_object(values)
    except _RepeatedField as error:
        return _InvalidLine(
            position,
            str(error),
            " - usually because two records were merged into one object - give each value its own "
            "field",
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            position = f"{position}, column {error.colno}"
        return _InvalidLine(
            position,
            getattr(error, "msg", "brackets are nested too deeply"),
            " - usually an object on several lines, or a truncated line - write one object per "
            "line, or use --format json if the file is one array",
        )
    return _InvalidLine(
        position,
        f"a {type(values).__name__} instead of an object",
        ' - write one object per line, such as {"x": 1.5, "label": "a"}, or use --format json if '
        "the file is one array",
    )


class JsonSource(Source):
    """A JSON file that contains one table, which is read into memory.

    ==================================== ==================================================
    layout                               pandas name (argument `orient` of `to_json`)
    ==================================== ==================================================
    ``[{"x": 1}, {"x": 2}]``             records
    ``{"x": [1, 2]}``
    ``{"x": {"0": 1, "1": 2}}``          columns
    ``{"0": {"x": 1}, "1": {"x": 2}}``   index
    ``{"columns": ["x"], "data": [[1]]}`` split
    ``{"schema": ..., "data": [{...}]}`` table
    ``[[1, "a"], [2, "b"]]``             values
    ==================================== ==================================================

    An object that contains one array of objects, as in ``{"status": "ok", "results": [...]}``, is
    read as that array.
    """

    @cached_property
    def _content(self) -> tuple[dict[str, list[Any]], dict[str, ObjectFormat]]:
        """The values and the format of each column."""
        with open_lines(self) as lines:
            text = "".join(lines)
        if not text.strip():
            raise self._no_data_error("is empty")
        try:
            columns = self._columns_of(parse_json(text))
        except TableError:
            raise
        except _RepeatedField as error:
            raise TableError(
                f"{self.name}: {error} in one object - give each value its own field"
            ) from None
        except json.JSONDecodeError as error:
            raise TableError(
                f"{self.name}, line {error.lineno}, column {error.colno}: {error.msg} - usually a "
                f"truncated file, or JSON Lines with an invalid line - write the file again; use "
                f"--format jsonl for one object per line"
            ) from None
        except (ValueError, RecursionError):
            raise TableError(
                f"{self.name}: the brackets are nested too deeply, or a number has too many "
                f"digits - usually the file is not a table - write an array of objects"
            ) from None
        formats = {}
        for name, values in columns.items():
            detector = ObjectDetector()
            detector.update(values)
            formats[name] = detector.format()
        self.notes += notes_about(formats)
        return columns, formats

    def _columns_of(self, content: Any) -> dict[str, list[Any]]:
        """Return the columns of a table in one of the layouts."""
        if isinstance(content, list) and content:
            if _are_all(content, dict):
                return _columns_of_records(content)
            if _are_all(content, list):
                return self._columns_of_rows(None, content)
        if isinstance(content, dict) and content:
            rows: Any = content.get("data")
            names = content.get("columns")
            values = list(content.values())
            if isinstance(names, list) and _are_all(rows, list):
                return self._columns_of_rows(names, rows)
            if isinstance(content.get("schema"), dict) and _are_all(rows, dict):
                return _columns_of_records(rows, content["schema"])
            if all(isinstance(value, dict) and value for value in values):
                return _columns_of_objects(content)
            if all(isinstance(value, list) for value in values):
                lengths = {len(value) for value in values}
                if len(lengths) == 1 and not any(_are_all(value, dict) for value in values):
                    return {name: list(map(_scalar, values)) for name, values in content.items()}
            inner = [name for name, value in content.items() if _are_all(value, dict)]
            if len(inner) == 1:
                self.notes.append(f"the table is the array in the field {inner[0]!r}")
                return _columns_of_records(content[inner[0]])
            if not any(isinstance(value, (list, dict)) for value in values):
                return {name: [value] for name, value in content.items()}
        raise TableError(
            f"{self.name} does not contain a table: found {_describe(content)} - write an array of "
            f'objects, such as [{{"x": 1.5, "label": "a"}}, ...]'
        )

    def _columns_of_rows(self, names: list[Any] | None, rows: list[list[Any]]) -> Any:
        """Return the columns of an array of rows; without names, the first row may have them."""
        if names is None:
            has_names = len(rows) > 1 and all(isinstance(v, str) and v for v in rows[0])
            names, rows = (rows[0], rows[1:]) if has_names else (None, rows)
        width = len(rows[0]) if names is None and rows else len(names or ())
        wrong = next((i for i, row in enumerate(rows, start=1) if len(row) != width), None)
        if wrong is not None:
            raise TableError(
                f"{self.name}, row {wrong}: the row has {len(rows[wrong - 1])} values, but there "
                f"are {width} columns - usually a truncated row - correct the row"
            )
        if names is None:
            names = [f"column{i}" for i in range(1, width + 1)]
        unique, notes = unique_names(names)
        self.notes += notes
        return {n: [row[j] for row in rows] for j, n in enumerate(unique)}

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._content[0])

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        columns, formats = self._content
        yield from convert_blocks(self, columns, formats, rows, kinds)


def json_source(path: Path, name: str = "") -> Source:
    """Open a JSON file; JSON Lines are recognised by a complete object in the first line."""
    source = JsonLinesSource(path, name)
    with open_lines(source) as lines:
        present = filter(str.strip, lines)
        first, second = next(present, ""), next(present, "")
    if first.lstrip().startswith("{") and second.lstrip().startswith("{"):
        try:
            json.loads(first)
            return source
        except (ValueError, RecursionError):
            pass
    return JsonSource(path, name)


# ---------------------------------------------------------------------- columns of objects


def convert_blocks(
    source: Source,
    columns: dict[str, list[Any]],
    formats: dict[str, ObjectFormat],
    rows: int,
    kinds: dict[str, str] | None,
    **more: Any,
) -> Iterator[Table]:
    """Yield tables of `rows` rows from columns of objects; `more` are parameters of `Table`."""
    n = len(next(iter(columns.values()), ()))
    kind_of_column = kinds or dict.fromkeys(columns)
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        converted = {
            name: formats[name].convert(values[part], kind_of_column[name])
            for name, values in columns.items()
        }
        source.fraction_read = min(1.0, (start + rows) / n)
        yield typed_table(converted, formats, source.name, start, **more)


def typed_table(
    columns: dict[str, Any],
    formats: dict[str, ObjectFormat],
    name: str,
    start: int,
    lines: np.ndarray | None = None,
    index_columns: tuple[str, ...] = (),
) -> Table:
    """Return a table of converted columns, with its columns of booleans and integers."""
    booleans = tuple(n for n, found in formats.items() if found.is_boolean)
    integers = tuple(n for n, found in formats.items() if found.is_integer)
    return Table(columns, name, lines, start, index_columns, booleans, integers)


def notes_about(formats: dict[str, ObjectFormat]) -> list[str]:
    """Return notes about strings in an unusual notation."""
    described = (
        describe_notation(name, found.notation)
        for name, found in formats.items()
        if "string" in found.types and not found.unreadable
    )
    return list(filter(None, described))


def parse_json(text: str) -> Any:
    """Parse JSON; NaN becomes None, and a field that occurs twice is an error."""
    return json.loads(
        text,
        object_pairs_hook=_reject_repeated_fields,
        parse_constant=lambda name: None if name == "NaN" else float(name),
    )


def flat_object(values: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested objects: {"a": {"b": 1}} becomes {"a.b": 1}."""
    if not any(isinstance(value, dict) for value in values.values()):
        return values
    flat: dict[str, Any] = {}
    for name, value in values.items():
        pairs = {name: value}
        if isinstance(value, dict):
            pairs = {f"{name}.{inner}": v for inner, v in flat_object(value).items()}
        if repeated := flat.keys() & pairs.keys():
            raise _RepeatedField(f"the field {repeated.pop()!r} occurs twice")
        flat |= pairs
    return flat


def _values_by_field(objects: list[dict[str, Any]]) -> dict[str, list[Any]]:
    fields: dict[str, list[Any]] = {}
    for values in objects:
        for name, value in values.items():
            fields.setdefault(name, []).append(value)
    return fields


def _columns_of_records(
    records: Sequence[dict[str, Any]], schema: dict[str, Any] | None = None
) -> dict[str, list[Any]]:
    """Return the columns of an array of objects; a schema determines their order."""
    flat = [flat_object(record) for record in records]
    fields = (schema or {}).get("fields", [])
    known = [f["name"] for f in fields if isinstance(f, dict) and isinstance(f.get("name"), str)]
    names = dict.fromkeys(name for record in flat for name in record)
    ordered = dict.fromkeys([name for name in known if name in names] + list(names))
    if schema is not None and "index" in ordered and schema.get("primaryKey") == ["index"]:
        del ordered["index"]  # the row numbers of pandas
    return {name: [record.get(name) for record in flat] for name in ordered}


def _columns_of_objects(content: dict[str, dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of an object of columns, or of an object of rows.

    The keys of rows are row numbers.  If both kinds of keys could be row numbers, or neither, the
    outer keys are the columns, as in pandas.
    """
    rows = dict.fromkeys(key for column in content.values() for key in column)
    if all(map(str.isdigit, content)) and not all(map(str.isdigit, rows)):
        return _columns_of_records(list(content.values()))
    columns = {}
    for name, column in content.items():
        columns[name] = [_scalar(column.get(row)) for row in rows]
    return columns


def _scalar(value: Any) -> Any:
    """Return a value of a column; nested objects are replaced by lists, which are unreadable."""
    return [value] if isinstance(value, dict) else value


def _are_all(values: Any, cls: type) -> bool:
    """Return True if `values` is an array, not empty, of instances of a class."""
    return isinstance(values, list) and bool(values) and all(isinstance(v, cls) for v in values)


def _describe(content: Any) -> str:
    """Return a short description of the content of a JSON file, for an error message."""
    if isinstance(content, list):
        types = dict.fromkeys(type(value).__name__ for value in content)
        return f"an array of {' and '.join(types)}" if types else "an empty array"
    if isinstance(content, dict):
        names = ", ".join(map(repr, list(content)[:5]))
        return f"an object with the fields {names}" if names else "an empty object"
    return f"a {type(content).__name__}"


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
