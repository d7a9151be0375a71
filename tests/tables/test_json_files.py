"""JSON Lines and JSON files: layouts, nested objects, types and messages."""

import datetime as dt
import gzip
import json

import numpy as np
import pytest

from mercer.tables import TableError, open_table, read_table

RECORDS = [
    {"x": 1, "y": 2.5, "city": "Bonn", "ok": True, "day": "2024-05-31"},
    {"x": 2, "city": "Ulm", "ok": None, "day": "2024-06-01"},
    {"x": 3, "y": -1e3, "city": "Bonn", "ok": False, "day": None},
]


def write(folder, name, content):
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def check(table):
    assert table.kinds == {
        "x": "numbers",
        "y": "numbers",
        "city": "text",
        "ok": "numbers",
        "day": "dates",
    }
    np.testing.assert_array_equal(table.columns["x"], [1, 2, 3])
    np.testing.assert_array_equal(table.columns["y"], [2.5, np.nan, -1000])
    np.testing.assert_array_equal(table.columns["ok"], [1, np.nan, 0])
    assert table.columns["city"].tolist() == ["Bonn", "Ulm", "Bonn"]
    days = np.array(["2024-05-31", "2024-06-01", "NaT"], dtype="M8[us]")
    np.testing.assert_array_equal(table.columns["day"], days)
    assert table.booleans == ("ok",) and table.integers == ("x",)


def columns():
    return {name: [record.get(name) for record in RECORDS] for name in RECORDS[0]}


LAYOUTS = {
    "records": RECORDS,
    "lists": columns(),
    "columns": {n: dict(zip("012", values, strict=True)) for n, values in columns().items()},
    "index": {str(i): record for i, record in enumerate(RECORDS)},
    "split": {
        "columns": list(columns()),
        "index": [0, 1, 2],
        "data": [list(row) for row in zip(*columns().values(), strict=True)],
    },
    "values with names": [list(columns()), *map(list, zip(*columns().values(), strict=True))],
    "wrapped": {"status": "ok", "count": 3, "results": RECORDS},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path, layout):
    check(read_table(write(tmp_path, "a.json", LAYOUTS[layout])))
    check(read_table(write(tmp_path, "b.json", json.dumps(LAYOUTS[layout], indent=2))))
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(LAYOUTS[layout]).encode()))
    check(read_table(packed))


def test_json_lines(tmp_path):
    lines = "\n".join(map(json.dumps, RECORDS))
    for name in ("a.jsonl", "a.ndjson", "a.json"):  # .json files often contain JSON Lines
        check(read_table(write(tmp_path, name, lines)))
    one = read_table(write(tmp_path, "a.json", '{"x": 1, "city": "Bonn"}\n'))
    assert one.kinds == {"x": "numbers", "city": "text"} and len(one) == 1


@pytest.mark.parametrize("orient", ["records", "columns", "split", "table", "index", "values"])
def test_what_pandas_writes(tmp_path, orient):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(RECORDS).astype({"ok": "boolean"})
    frame["day"] = pd.to_datetime(frame["day"])
    path = tmp_path / "a.json"
    frame.to_json(path, orient=orient, date_format="iso")
    found = read_table(path)
    if orient == "values":
        found = type(found)(
            dict(zip(frame.columns, found.columns.values(), strict=True)),
            booleans=("ok",),
            integers=("x",),
        )
    check(found)
    frame.to_json(path, orient="records", lines=True, date_format="iso")
    check(read_table(path))


def test_nested_objects_and_lists(tmp_path):
    rows = [
        {"id": 1, "place": {"city": "Bonn", "at": {"lat": 50.7, "lon": 7.1}}, "tags": ["a"]},
        {"id": 2, "place": {"city": "Ulm"}, "tags": [], "more": {}},
        {"id": 3, "place": None},
    ]
    kinds = {
        "id": "numbers",
        "place.city": "text",
        "place.at.lat": "numbers",
        "place.at.lon": "numbers",
        "tags": "unreadable",
        "place": "numbers",
    }
    for name, text in (
        ("a.json", json.dumps(rows)),
        ("a.jsonl", "\n".join(map(json.dumps, rows))),
    ):
        table = read_table(write(tmp_path, name, text))
        assert table.kinds == kinds | {"place": "nothing"}
        np.testing.assert_array_equal(table.columns["place.at.lat"], [50.7, np.nan, np.nan])
        assert table.columns["tags"].reason == "values of type list"
        assert open_table(tmp_path / name).shape.kinds == kinds


def test_mixed_values(tmp_path):
    rows = [
        {"a": 1, "b": True, "c": "1.5", "d": "x", "e": 2**60 + 1, "f": "2024-05-31", "g": "01"},
        {"a": "n/a", "b": 2, "c": 2, "d": 7, "e": 1, "f": "soon", "g": "02"},
        {"a": 2.5, "b": False, "c": None, "d": True, "e": None, "f": None, "g": None},
    ]
    for name, text in (
        ("a.json", json.dumps(rows)),
        ("a.jsonl", "\n".join(map(json.dumps, rows))),
    ):
        found = read_table(write(tmp_path, name, text)).columns
        np.testing.assert_array_equal(found["a"], [1, np.nan, 2.5])
        assert found["b"].tolist() == ["True", "2", "False"]
        np.testing.assert_array_equal(found["c"], [1.5, 2, np.nan])
        assert found["d"].tolist() == ["x", "7", "True"]
        assert found["e"].tolist() == [str(2**60 + 1), "1", None]
        assert found["f"].tolist() == ["2024-05-31", "soon", None]
        assert found["g"].tolist() == ["01", "02", None]


def test_numbers_as_text_and_special_numbers(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"x": NaN, "y": Infinity}\n{"x": 1.0, "y": 2}\n')
    found = open_table(path)
    np.testing.assert_array_equal(found.table().columns["x"], [np.nan, 1.0])
    assert found.table().columns["y"].tolist() == [np.inf, 2.0]
    assert found.table(["x"]).columns["x"].tolist() == [None, "1.0"]


def test_fields_that_appear_late(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables._json_files._LINES_PER_READ", 3)
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 4)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    rows = [{"i": i, "flag": True} for i in range(8)] + [{"i": "x", "late": "31/12/2024"}]
    rows += [{"late": "01/02/2024", "flag": False}] * 4
    source = open_table(write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))))
    assert source.shape.kinds == {"i": "text", "flag": "numbers", "late": "dates"}
    table = source.table()
    assert table.columns["i"].tolist() == [*map(str, range(8)), "x", *[None] * 4]
    assert table.columns["late"][-1] == np.datetime64("2024-02-01") and table.booleans == ("flag",)
    assert "column 'late'" in source.notes[0] and len(source.notes) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.json is empty"),
        ("[]", "does not contain a table: found an empty array"),
        ("[1, 2]", "found an array of int - write an array of objects"),
        ("3", "found a int"),
        ('{"a": [1], "b": {"c": 1}}', "an object with the fields 'a', 'b'"),
        ('[{"x": 1},\n{"x": 2', r"a.json, line 2, column \d+: .*truncated"),
        ('[{"x": 1, "x": 2}]', "the field 'x' occurs twice"),
        ('[["a", "b"], [1]]', "row 1: the row has 1 values, but there are 2 columns"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_messages(tmp_path, content, message):
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path, "a.json", content))


def test_dates_of_python_objects_keep_their_zone(tmp_path):
    moment = dt.datetime(2024, 5, 31, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    path = write(tmp_path, "a.json", [{"at": moment.isoformat()}, {"at": "2024-05-31T12:00:00Z"}])
    found = read_table(path).columns["at"]
    np.testing.assert_array_equal(found, np.array(["2024-05-31T10", "2024-05-31T12"], "M8[us]"))


def test_all_invalid_lines_are_listed(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"x": i}) for i in range(40)]
    lines[3], lines[30], lines[35] = '{"x": 3', "[1]", '{"x": 1, "x": 2}'
    path.write_text("\n".join(lines))
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path}: 3 lines are not JSON objects: line 4, column 8: Expecting ',' delimiter; "
        f"line 31: a list instead of an object; line 36: the field 'x' occurs twice - usually an "
        f"object on several lines, or a truncated line - write one object per line, or use "
        f"--format json if the file is one array"
    )
    path.write_text("{\n" * 12)
    with pytest.raises(
        TableError, match=r"12 lines are .* line 10, column .*; and 2 more - usually"
    ):
        read_table(path)


def test_layouts_that_are_recognised_by_their_first_lines(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a":\n{"x": 1, "y": 2}, "b":\n{"x": 3, "y": 4}}')
    assert sorted(read_table(path).columns) == ["a", "b"]
    path.write_text('{"a": [1], "b": [1, 2]}')
    with pytest.raises(TableError, match="does not contain a table: found an object with the fie"):
        read_table(path)


def test_lines_that_are_blank_or_change(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 2)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n{"x": 2}\n\n\n\n\n{"x": 3}\n')
    source = open_table(path)
    assert [len(block) for block in source.blocks()] == [2, 1]
    path.write_text('{"x": 1}\n{"x": 2}\n[3]\n')
    with pytest.raises(TableError, match="line 3: a list instead of an object"):
        source.table()
