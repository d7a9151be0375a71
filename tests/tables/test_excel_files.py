"""Excel workbooks: sheets, headers, titles, errors and types of cells."""

import datetime as dt
import sys

import numpy as np
import pytest

from mercer.tables import TableError, open_table, read_table

openpyxl = pytest.importorskip("openpyxl")
HEADER = ["x", "y", "city", "day", "ok"]
ROWS = [
    [1, 2.5, "Bonn", dt.datetime(2024, 5, 31), True],
    [2, None, "Ulm", dt.datetime(2024, 6, 1, 18, 30), None],
    [3, -1000, "Bonn", None, False],
]


def book(folder, sheets, name="a.xlsx"):
    """Write a workbook; `sheets` are the rows of each sheet by title."""
    written = openpyxl.Workbook()
    written.remove(written.active)
    for title, rows in sheets.items():
        sheet = written.create_sheet(title)
        for row in rows:
            sheet.append(row)
    written.save(folder / name)
    return folder / name


def check(table):
    kinds = dict(zip(HEADER, ["numbers", "numbers", "text", "dates", "numbers"], strict=True))
    assert table.kinds == kinds
    np.testing.assert_array_equal(table.columns["x"], [1, 2, 3])
    np.testing.assert_array_equal(table.columns["y"], [2.5, np.nan, -1000])
    assert table.columns["city"].tolist() == ["Bonn", "Ulm", "Bonn"]
    days = np.array(["2024-05-31", "2024-06-01T18:30", "NaT"], dtype="M8[us]")
    np.testing.assert_array_equal(table.columns["day"], days)
    np.testing.assert_array_equal(table.columns["ok"], [1, np.nan, 0])
    assert table.booleans == ("ok",) and table.integers == ("x",)


def test_a_table(tmp_path):
    source = open_table(book(tmp_path, {"Sheet1": [HEADER, *ROWS]}))
    check(source.table())
    assert not source.notes and source.table().where(0) == "line 2"
    check(read_table(book(tmp_path, {"Sheet1": [HEADER, *ROWS]}, "a.xlsm")))


def test_sheets(tmp_path):
    path = book(
        tmp_path, {"cover": [], "data": [HEADER, *ROWS], "more": [["a"], [1]], "empty": [[]]}
    )
    source = open_table(path)
    check(source.table())
    assert source.notes == [
        "read the sheet 'data'; the other sheets are 'more', 'empty' - select one with --sheet"
    ]
    for sheet in ("more", 3, "3"):
        assert read_table(path, sheet=sheet).columns["a"].tolist() == [1.0]
    with pytest.raises(TableError, match=r"no sheet 'mor'; did you mean 'more'\? its sheets are"):
        read_table(path, sheet="mor")
    with pytest.raises(TableError, match="the sheet 'empty' is empty"):
        read_table(path, sheet="empty")
    with pytest.raises(TableError, match="has no cells with values"):
        read_table(book(tmp_path, {"a": [], "b": [[]]}))
    numbered = book(tmp_path, {"2": [["a"], [1]], "b": [["b"], [2]]})
    assert list(read_table(numbered, sheet="2").columns) == ["a"]  # a name precedes a position


def test_titles_empty_rows_and_columns_and_footers(tmp_path):
    rows = [
        [],
        [None, None, "Sales of the year"],
        [None, None, "all figures in euro"],
        [],
        [None, None, *HEADER],
        *([None, None, *row] for row in ROWS[:2]),
        [],
        [None, None, *ROWS[2]],
        [],
        [None, None, "Source: the finance department"],
    ]
    source = open_table(book(tmp_path, {"Sheet1": rows}))
    check(source.table())
    assert source.notes == [
        "skipped 2 rows above the table: 'Sales of the year', 'all figures in euro'",
        "skipped 1 row below the table: 'Source: the finance department'",
    ]
    assert source.table().lines.tolist() == [6, 7, 9]
    merged = openpyxl.Workbook()
    merged.active.append(["A title"])
    merged.active.merge_cells("A1:E1")
    for row in [HEADER, *ROWS]:
        merged.active.append(row)
    merged.save(tmp_path / "merged.xlsx")
    check(read_table(tmp_path / "merged.xlsx"))
    one = read_table(book(tmp_path, {"Sheet1": [["name"], ["Ada"], ["Max"]]}))
    assert one.columns["name"].tolist() == ["Ada", "Max"]


def test_headers(tmp_path):
    none = open_table(book(tmp_path, {"a": [[1, 2.5], [3, 4.5]]}))
    assert list(none.table().columns) == ["column1", "column2"] and "no header" in none.notes[0]
    named = read_table(tmp_path / "a.xlsx", header=True)
    assert list(named.columns) == ["1", "2.5"] and len(named) == 1
    text = read_table(book(tmp_path, {"a": [["a", "b"], ["c", "d"]]}), header=False)
    assert text.columns["column1"].tolist() == ["a", "c"]
    numbers = read_table(book(tmp_path, {"a": [[0, 1, 2], [1.5, 2.5, 3.5]]}))
    assert list(numbers.columns) == ["0", "1", "2"]
    years = read_table(book(tmp_path, {"a": [["city", 2023, 2024], ["Bonn", 1, 2]]}))
    assert list(years.columns) == ["city", "2023", "2024"]
    months = [[dt.datetime(2024, 1, 1), "b", "b", None], [1, 2, 3, 4], [1, 2, 3, None]]
    source = open_table(book(tmp_path, {"a": months}))
    assert list(source.table().columns) == ["2024-01-01", "b", "b_2", "column4"]
    assert "renamed 'b' to 'b_2'" in source.notes[0]


def test_the_index_of_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.5, 2.5], "y": [0.5, 1.5]}, index=[7, 3])
    frame.to_excel(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx")
    assert table.index_columns == ("column1",) and list(table.columns) == ["column1", "x", "y"]
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    assert read_table(tmp_path / "a.xlsx").index_columns == ()


def test_cells(tmp_path):
    rows = [
        ["error", "mixed", "time", "duration", "text", "formula", "none"],
        [1.5, 1, dt.time(18, 30), dt.timedelta(hours=1), "01", "=1+1", "#N/A"],
        ["#DIV/0!", "2,500", None, dt.timedelta(0), "02", "=1+1", ""],
        ["#N/A", "n/a", dt.time(0), None, "", "=1+1", None],
    ]
    source = open_table(book(tmp_path, {"a": rows}))
    found = source.table()
    np.testing.assert_array_equal(found.columns["error"], [1.5, np.nan, np.nan])
    np.testing.assert_array_equal(found.columns["mixed"], [1, 2500, np.nan])
    times = np.array(["1970-01-01T18:30", "NaT", "1970-01-01"], dtype="M8[us]")
    np.testing.assert_array_equal(found.columns["time"], times)
    np.testing.assert_array_equal(found.columns["duration"], [3600, 0, np.nan])
    assert found.columns["text"].tolist() == ["01", "02", None]
    assert np.isnan(found.columns["none"]).all() and np.isnan(found.columns["formula"]).all()
    assert "no values in 'formula', 'none' - if the cells contain formulas" in source.notes[-1]


def test_messages(tmp_path, monkeypatch):
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"PK\x03\x04 junk")
    with pytest.raises(TableError, match=r"a\.xlsx cannot be read as an Excel workbook: .*CSV"):
        read_table(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0 protected")
    with pytest.raises(TableError, match=r"is protected by a password, or is an \.xls file"):
        read_table(path)
    whole = book(tmp_path, {"Sheet1": [HEADER, *ROWS]}, "b.xlsx").read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(TableError, match=r"a\.xlsx cannot be read as an Excel workbook"):
            read_table(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole) - 9, 40):  # damaged bytes
        damaged = bytearray(whole)
        damaged[place : place + 9] = rng.integers(0, 256, 9, dtype=np.uint8).tobytes()
        path.write_bytes(damaged)
        try:
            read_table(path)
        except TableError as error:
            assert "a.xlsx" in str(error)
    with pytest.raises(TableError, match="has no rows below the header of the sheet 'Sheet1'"):
        read_table(book(tmp_path, {"Sheet1": [HEADER]}))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"requires openpyxl.*pip install 'mercer\[cli\]'"):
        read_table(tmp_path / "b.xlsx")


def test_blocks_of_a_sheet(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 2)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    source = open_table(book(tmp_path, {"Sheet1": [HEADER, *ROWS]}))
    blocks = list(source.blocks())
    assert [len(block) for block in blocks] == [2, 1] and blocks[1].lines.tolist() == [4]
    check(source.table())
    assert source.table(["x", "day"]).columns["x"].tolist() == ["1", "2", "3"]


def test_a_sheet_that_is_a_chart(tmp_path):
    path = book(tmp_path, {"Sheet1": [HEADER, *ROWS]})
    written = openpyxl.load_workbook(path)
    chart = openpyxl.chart.BarChart()
    chart.add_data(openpyxl.chart.Reference(written["Sheet1"], min_col=1, min_row=2, max_row=4))
    written.create_chartsheet("Chart").add_chart(chart)
    written.save(path)
    check(read_table(path))
    with pytest.raises(TableError, match=r"has no sheet 'Chart'.* its sheets are 'Sheet1'"):
        read_table(path, sheet="Chart")
