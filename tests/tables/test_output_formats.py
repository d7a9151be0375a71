"""Tables that are written: types of columns, and formats that contain the same table."""

import io
import json
import sys

import numpy as np
import pytest

from mercer.tables import Table, TableError, read_table, table_writer
from mercer.tables._table import UnreadableColumn

DAYS = np.array(["2024-05-31T18:30", "NaT", "1969-12-31"], dtype="datetime64[us]")


def table():
    return Table(
        {
            "id": np.array([1.0, 2.0, 3.0]),
            "count": np.array([1.0, np.nan, 3.0]),
            "x": np.array([0.1, np.nan, 3.0]),
            "ok": np.array([1.0, 0.0, 1.0]),
            "maybe": np.array([1.0, np.nan, 0.0]),
            "day": DAYS,
            "city": np.array(["Bonn", None, "Köln"], dtype=object),
        },
        booleans=("ok", "maybe"),
        integers=("id", "count"),
    )


def write(path, *blocks):
    with table_writer(path) as writer:
        for block in blocks:
            writer.write(block)
    return path


def same(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name, column in expected.columns.items():
        if column.dtype == object:
            assert found.columns[name].tolist() == column.tolist(), name
        else:
            np.testing.assert_array_equal(found.columns[name], column, err_msg=name)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.jsonl", "a.json", "a.xlsx"])
def test_formats_with_types(tmp_path, name):
    pytest.importorskip("openpyxl" if "xlsx" in name else "pyarrow")
    for blocks in ((table(),), (table().take([0]), table().take([1, 2]))):
        found = read_table(write(tmp_path / name, *blocks))
        same(found, table())
        assert found.booleans == ("ok", "maybe") and found.integers[:2] == ("id", "count")


def test_types_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    found = pq.read_table(write(tmp_path / "a.parquet", table()))
    types = [pa.int64(), pa.int64(), pa.float64(), pa.bool_(), pa.bool_(), pa.timestamp("us")]
    assert found.schema.types == [*types, pa.string()]
    assert found.column("count").to_pylist() == [1, None, 3]
    assert found.column("maybe").to_pylist() == [True, None, False]


def test_types_in_text(tmp_path):
    assert write(tmp_path / "a.csv", table()).read_text("utf-8").splitlines() == [
        "id,count,x,ok,maybe,day,city",
        "1,1,0.1,True,True,2024-05-31T18:30,Bonn",
        "2,,,False,,,",
        "3,3,3.0,True,False,1969-12-31,Köln",
    ]
    lines = write(tmp_path / "a.jsonl", table()).read_text("utf-8").splitlines()
    assert json.loads(lines[1]) == {
        **{"id": 2, "count": None, "x": None, "ok": False, "maybe": None, "day": None},
        "city": None,
    }
    assert json.loads(write(tmp_path / "b.json").read_text()) == []


def test_types_in_npz(tmp_path):
    with np.load(write(tmp_path / "a.npz", table())) as found:
        kinds = {name: found[name].dtype.kind for name in found.files}
        assert kinds == dict(zip(table().columns, "iffbfMU", strict=True))
        np.testing.assert_array_equal(found["day"], DAYS)
    found, expected = read_table(tmp_path / "a.npz"), table()
    for name in ("day", "id"):
        np.testing.assert_array_equal(found.columns[name], expected.columns[name])


def test_numbers_that_are_not_integers_after_all(tmp_path):
    halves = Table({"n": np.array([1.5, 2.0]), "b": np.array([0.5, 1.0])}, integers=("n",))
    halves = Table(halves.columns, booleans=("b",), integers=("n",))
    halves.write(file := io.StringIO())
    assert file.getvalue() == "n,b\n1.5,0.5\n2.0,1.0\n"


def test_what_cannot_be_written(tmp_path, monkeypatch):
    nested = Table({"x": np.ones(2), "a": UnreadableColumn("values of type list", 2)}, "in.json")
    for name in ("a.csv", "a.jsonl", "a.npz", "a.parquet"):
        with pytest.raises(
            TableError, match=r"in\.json, column 'a': values of type list cannot be written"
        ):
            write(tmp_path / name, nested)
        assert not (tmp_path / name).exists()
    with pytest.raises(TableError, match="the file extension is unknown - use one of"):
        write(tmp_path / "a.xls", table())
    monkeypatch.setattr("mercer.tables._table._MAX_EXCEL_ROWS", 3)
    if pytest.importorskip("openpyxl"):
        with pytest.raises(TableError, match="the table has 3 rows, but a sheet"):
            write(tmp_path / "a.xlsx", table())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"writing .*a\.xlsx requires openpyxl"):
        write(tmp_path / "a.xlsx", table())


def test_values_that_excel_does_not_have(tmp_path):
    pytest.importorskip("openpyxl")
    odd = Table(
        {
            "t": np.array(["a\x00b", "=1+1"], dtype=object),
            "x": np.array([np.inf, 1.0]),
            "d": np.array(["1800-01-01", "2024-01-01"], dtype="M8[us]"),
        }
    )
    found = read_table(write(tmp_path / "a.xlsx", odd))
    assert found.columns["t"].tolist() == ["ab", "=1+1"]
    np.testing.assert_array_equal(found.columns["x"], odd.columns["x"])
