"""Columns of typed values: Arrow, pandas, polars and Python objects become the same columns."""

import datetime as dt
import uuid
import zoneinfo
from decimal import Decimal

import numpy as np
import pytest

from mercer.tables import open_table, read_table
from mercer.tables._table import UnreadableColumn
from mercer.tables._typed_columns import combined_chunks

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
MOMENTS = [dt.datetime(2024, 5, 31, 18, 30, 0, 250), None, dt.datetime(1969, 12, 31, 23)]
EXPECTED = np.array(["2024-05-31T18:30:00.000250", "NaT", "1969-12-31T23:00"], "M8[us]")


def dates(*texts):
    return np.array(texts, dtype="datetime64[us]")


def same(found, expected):
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    if found.dtype == object:
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_array_equal(found, expected)


def every_library(values):
    """Return the same column of objects as frames of three libraries."""
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    yield pd.DataFrame({"a": pd.Series(values, dtype=object)})
    yield pd.DataFrame({"a": pd.Series(values)})
    yield pl.DataFrame({"a": values}, strict=False)
    yield pa.table({"a": values})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], np.array([1.0, np.nan, 3.0])),
        ([0.5, None, -1e300], np.array([0.5, np.nan, -1e300])),
        ([True, None, False], np.array([1.0, np.nan, 0.0])),
        ([None, None, None], np.full(3, np.nan)),
        (["", None, "NA"], np.full(3, np.nan)),
        ([Decimal("0.1"), None, Decimal("12.30")], np.array([0.1, np.nan, 12.3])),
        (["Bonn", None, "Ulm"], np.array(["Bonn", None, "Ulm"], dtype=object)),
        (["Bonn", "", "Ulm"], np.array(["Bonn", None, "Ulm"], dtype=object)),
        (["01", "02", None], np.array(["01", "02", None], dtype=object)),
        (["1.5", "-", "NA"], np.array([1.5, np.nan, np.nan])),
        (["true", None, "FALSE"], np.array([1.0, np.nan, 0.0])),
        (["2024-05-31", None, "2023-01-01"], dates("2024-05-31", "NaT", "2023-01-01")),
        (["1.234,50 €", None, "2,50 €"], np.array([1234.5, np.nan, 2.5])),
        ([2**53 + 1, -2, 3], np.array([str(2**53 + 1), "-2", "3"], dtype=object)),
        (MOMENTS, EXPECTED),
        ([m and m.replace(tzinfo=dt.UTC) for m in MOMENTS], EXPECTED),
        ([m and m.replace(tzinfo=dt.UTC).astimezone(BERLIN) for m in MOMENTS], EXPECTED),
        (
            [dt.date(2024, 5, 31), None, dt.date(1, 1, 1)],
            dates("2024-05-31", "NaT", "0001-01-01"),
        ),
        ([dt.time(18, 30), None, dt.time(0)], dates("1970-01-01T18:30", "NaT", "1970-01-01")),
        ([dt.timedelta(days=1, seconds=2), None, dt.timedelta(0)], np.array([86402.0, np.nan, 0])),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_scalars(values, expected):
    for frame in every_library(values):
        table = read_table(frame)
        same(table.columns["a"], expected)
        is_boolean = isinstance(values[0], bool) or values[0] == "true"
        assert table.booleans == (("a",) if is_boolean else ())


def test_categories():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    cities = ["Ulm", None, "Bonn", "Ulm"]
    expected = np.array(cities, dtype=object)
    for frame in (
        pd.DataFrame({"a": pd.Categorical(cities)}),
        pl.DataFrame({"a": pl.Series(cities, dtype=pl.Categorical)}),
        pl.DataFrame({"a": pl.Series(cities, dtype=pl.Enum(["Bonn", "Ulm"]))}),
        pa.table({"a": pa.array(cities).dictionary_encode()}),
    ):
        same(read_table(frame).columns["a"], expected)
    for values, expected in (
        ([3, None, 1], np.array([3.0, np.nan, 1.0])),
        ([True, None, False], np.array([1.0, np.nan, 0.0])),
        ([dt.datetime(2024, 5, 31), None], dates("2024-05-31", "NaT")),
        (["2024-05-31", None], dates("2024-05-31", "NaT")),
        ([None, None], np.full(2, np.nan)),
    ):
        for frame in (
            pd.DataFrame({"a": pd.Categorical(values)}),
            pa.table({"a": pa.array(values).dictionary_encode()}),
        ):
            found = read_table(frame)
            same(found.columns["a"], expected)
            assert found.booleans == (("a",) if values[0] is True else ())
    bins = pd.DataFrame({"a": pd.cut([1.0, 5.0, np.nan], [0, 2, 6])})
    assert read_table(bins).columns["a"].tolist() == ["(0, 2]", "(2, 6]", None]


def test_types_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "sparse": pd.arrays.SparseArray([0.0, 0.0, 2.0]),
            "nullable": pd.array([True, None, False], dtype="boolean"),
            "float": pd.array([1.5, None, 2.5], dtype="Float32"),
            "period": pd.PeriodIndex(["2024-05", "NaT", "2024-07"], freq="M"),
            "zone": pd.to_datetime(["2024-05-31T12:00+02:00", None, "2024-05-31T00:00+02:00"]),
            "string": pd.array(["a", None, "b"], dtype="string"),
            "complex": np.array([1j, 2, 3]),
            "uuid": [uuid.UUID(int=1), None, uuid.UUID(int=2)],
            "both": [True, 2, None],
            "amounts": [1.5, "n/a", "2,000"],
            "moments": [pd.Timestamp("2024-05-31", tz="UTC"), pd.NaT, dt.date(2024, 6, 1)],
        }
    )
    found = read_table(frame).columns
    same(found["sparse"], np.array([0.0, 0.0, 2.0]))
    same(found["nullable"], np.array([1.0, np.nan, 0.0]))
    same(found["float"], np.array([1.5, np.nan, 2.5]))
    same(found["period"], dates("2024-05-01", "NaT", "2024-07-01"))
    same(found["zone"], dates("2024-05-31T10:00", "NaT", "2024-05-30T22:00"))
    same(found["string"], np.array(["a", None, "b"], dtype=object))
    assert found["complex"].reason == "values of type complex128"
    same(found["uuid"], np.array([f"{uuid.UUID(int=1)}", None, f"{uuid.UUID(int=2)}"], object))
    same(found["both"], np.array(["True", "2", None], dtype=object))
    same(found["amounts"], np.array([1.5, np.nan, 2000.0]))
    same(found["moments"], dates("2024-05-31", "NaT", "2024-06-01"))


@pytest.mark.parametrize(
    "values",
    [[[1.0], None], [{"x": 1}, None], [b"abc", None], [{1, 2}, None], [object(), None]],
    ids=["list", "dict", "bytes", "set", "object"],
)
def test_objects_that_cannot_be_read(values):
    pd = pytest.importorskip("pandas")
    table = read_table(pd.DataFrame({"a": values, "x": [1.0, 2.0]}))
    assert table.kinds == {"a": "unreadable", "x": "numbers"}
    assert table.columns["a"].reason == f"values of type {type(values[0]).__name__}"
    assert isinstance(table.take([1]).columns["a"], UnreadableColumn)


def test_arrow_types_that_cannot_be_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {
        "list": pa.array([[1.0], None]),
        "struct": pa.array([{"b": 1.5}, None]),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "binary": pa.array([b"\x89PNG", None]),
        "fixed": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "struct.b": pa.array([1.5, 2.5]),
        "x": pa.array([1, None], pa.uint8()),
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    for data in (table, tmp_path / "a.parquet", tmp_path / "a.arrow"):
        source = open_table(data)
        kinds = source.shape.kinds
        assert [n for n, kind in kinds.items() if kind == "unreadable"] == list(columns)[:5]
        found = source.table().columns
        assert found["list"].reason.startswith("values of type list<")
        same(found["x"], np.array([1.0, np.nan]))
        same(found["struct.b"], np.array([1.5, 2.5]))


def test_rare_arrow_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.compute as pc

    table = pa.table(
        {
            "runs": pc.run_end_encode(pa.array(["a", "a", "b"])),
            "view": pa.array(["x", None, "y"], pa.string_view()),
            "half": pa.array(np.array([1, 2, 3], dtype=np.float16)),
            "whole": pa.array([Decimal(5), None, Decimal(7)], pa.decimal128(20, 0)),
            "date64": pa.array([dt.date(2024, 5, 31), None, None], pa.date64()),
            "seconds": pa.array([1, None, 90], pa.time32("s")),
            "far": pa.array([2**55, None, 0], pa.timestamp("s")),
            "id": pa.array([uuid.UUID(int=1).bytes, None, None], pa.uuid()),
        }
    )
    found = read_table(table)
    assert found.columns["runs"].tolist() == ["a", "a", "b"]
    assert found.columns["view"].tolist() == ["x", None, "y"]
    same(found.columns["half"], np.array([1.0, 2.0, 3.0]))
    same(found.columns["whole"], np.array([5.0, np.nan, 7.0]))
    same(found.columns["date64"], dates("2024-05-31", "NaT", "NaT"))
    same(found.columns["seconds"], dates("1970-01-01T00:00:01", "NaT", "1970-01-01T00:01:30"))
    assert found.kinds["far"] == "unreadable"
    assert found.columns["id"].tolist() == [str(uuid.UUID(int=1)), None, None]
    assert found.integers == ("whole",)


def test_the_index_of_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    plain = pd.DataFrame({"x": [1.5, 2.5]})
    named = plain.set_index(pd.Index(["p", "q"], name="id"))
    levels = plain.set_index(pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["i", "j"]))
    for frame, index in (
        (plain, ()),
        (plain.set_axis(["a", "b"]), ()),
        (named, ("id",)),
        (levels, ("i", "j")),
    ):
        found = read_table(frame)
        assert found.index_columns == index and list(found.columns) == ["x", *index]
        if index:
            frame.to_parquet(tmp_path / "a.parquet")
            again = read_table(tmp_path / "a.parquet")
            assert again.index_columns == index
            for name in index:
                same(again.columns[name], found.columns[name])
    same_name = plain.set_index(pd.Index([7, 9], name="x"))
    assert list(read_table(same_name).columns) == ["x"]


def test_names_that_are_not_strings_or_repeated():
    pd = pytest.importorskip("pandas")
    source = open_table(pd.DataFrame([[1, 2, 3, 4, 5]], columns=["a", "a", 0, "a_2", "a"]))
    assert source.column_names == ["a", "a_3", "0", "a_2", "a_4"]
    assert source.notes[0].startswith("several columns have the same name")
    assert source.notes[0].endswith("renamed 'a' to 'a_3', 'a' to 'a_4'")
    pairs = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    assert read_table(pairs).kinds == {"('a', 'x')": "numbers", "('a', 'y')": "numbers"}


def test_strings_are_converted_by_the_whole_file(tmp_path, monkeypatch):
    """The blocks of a file agree on the notation, even if a block alone is ambiguous."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 4)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    days = ["01/02/2024"] * 5 + [None] * 5 + ["31/02/2024".replace("31/02", "31/01")] * 3
    flags = ["true"] * 6 + ["1"] * 7
    words = [None] * 6 + ["a"] * 7
    table = pa.table(
        {
            "day": days,
            "flag": flags,
            "word": pa.array(words).dictionary_encode(),
            "empty": pa.array([None] * 13, pa.string()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        source = open_table(tmp_path / name)
        kinds = {"day": "dates", "flag": "text", "word": "text", "empty": "numbers"}
        assert source.shape.kinds == kinds
        found = source.table()
        assert found.columns["day"][0] == np.datetime64("2024-02-01")
        assert found.columns["flag"].tolist() == flags
        assert found.columns["word"].tolist() == words
        assert "column 'day': read as dates with the day first" in source.notes[0]
        texts = source.table(["day"])
        assert texts.columns["day"].tolist() == days


def test_objects_of_numpy():
    pd = pytest.importorskip("pandas")
    values = [np.datetime64("2024-05-31"), np.datetime64("NaT", "D"), None]
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    same(read_table(frame).columns["a"], dates("2024-05-31", "NaT", "NaT"))
    values = [np.timedelta64(2, "m"), np.timedelta64("NaT", "m"), None]
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    same(read_table(frame).columns["a"], np.array([120, np.nan, np.nan]))
    frame = pd.DataFrame({"a": pd.Series([2**53 + 1, 1.5], dtype=object)})
    same(read_table(frame).columns["a"], np.array([2.0**53, 1.5]))


def test_other_types_of_arrow():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": pd.Series(["x", None], dtype=pd.ArrowDtype(pa.string()))})
    same(read_table(frame).columns["a"], np.array(["x", None], dtype=object))
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    same(read_table(pa.table({"a": flags})).columns["a"], np.array([1, 0, np.nan]))
    pairs = pa.DictionaryArray.from_arrays(pa.array([0, 0, None]), pa.array([[1, 2]]))
    found = read_table(pa.table({"a": pairs, "x": [1, 2, 3]})).columns["a"]
    assert isinstance(found, UnreadableColumn) and len(found) == 3
    for metadata in (b"{", b"[]"):  # not valid JSON, and another layout
        table = pa.table({"a": [1.5]}).replace_schema_metadata({b"pandas": metadata})
        assert read_table(table).index_columns == ()


def test_chunks_that_do_not_fit_into_one_array():
    pa = pytest.importorskip("pyarrow")

    class Large:
        """Strings of more than 2 GB, which pyarrow does not combine."""

        def combine_chunks(self):
            return pa.chunked_array([["a"], ["b", None]])

    assert combined_chunks(Large()).to_pylist() == ["a", "b", None]
