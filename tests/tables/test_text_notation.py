"""Messy delimited text: notations of numbers and dates, encodings, headers, and both parsers."""

import bz2
import csv
import gzip
import io
import lzma
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer.tables import TableError, open_table, read_table
from mercer.tables._cell_notation import MissingMarks, Notation, NotationDetector, detect_notation

nan = np.nan


def column_of(cells):
    """Convert the cells of a text file to a column, in the notation that all cells have."""
    return detect_notation(cells).convert(cells, MissingMarks())


@pytest.fixture
def make(tmp_path):
    """Return a function that writes text to a file and opens it."""

    def make(text, name="a.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return open_table(path, **options)

    return make


def values(column):
    """Return a column as a list, with dates as text."""
    return column.astype(str).tolist() if column.dtype.kind == "M" else column.tolist()


def check(source, **expected):
    table = source.table()
    assert list(table.columns) == list(expected)
    for name, cells in expected.items():
        found = table.columns[name]
        if found.dtype.kind == "f":
            np.testing.assert_array_equal(found, cells)
        elif found.dtype.kind == "M":
            np.testing.assert_array_equal(found, np.array(cells, dtype="datetime64[us]"))
        else:
            assert found.tolist() == cells
    return table


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1.234,50", "2,5", "7"], [1234.5, 2.5, 7]),
        (["1,234.50", "2.5"], [1234.5, 2.5]),
        (["1,234,567", "8"], [1234567, 8]),
        (["1.234.567", "8"], [1234567, 8]),
        (["12,34,567.5", "8"], [1234567.5, 8]),
        (["1 234,5", "12\u202f345", "1\u00a0000"], [1234.5, 12345, 1000]),
        (["1'234.50", "1’000"], [1234.5, 1000]),
        (["12 %", "-3.5%", "0"], [12, -3.5, 0]),
        (["$1,200.50", "-$3", "$-4", "5"], [1200.5, -3, -4, 5]),
        (["1.200,50 €", "3 €"], [1200.5, 3]),
        (["CHF 1'200.00", "CHF 5"], [1200, 5]),
        (["(1,200.00)", "300.00"], [-1200, 300]),
        (["\u22125", "3"], [-5, 3]),
        (["0,123", "1,234"], [0.123, 1.234]),
        (["0.123", "1.234"], [0.123, 1.234]),
        (["1,5e3", "2"], [1500, 2]),
        (["#DIV/0!", "#VALUE!", "NULL", "\\N", "NaT", "-", "--", ".", "1,5"], [nan] * 8 + [1.5]),
        (["TRUE", "false", "True", "NA"], [1, 0, 1, nan]),
        (["0 days 00:01:30", "1 days 00:00:00", "-1 days +23:59:59"], [90, 86400, -1]),
    ],
)
def test_numbers(cells, expected):
    np.testing.assert_array_equal(column_of(cells), expected)


@pytest.mark.parametrize(
    "cells",
    [
        ["5 €", "7 $"],  # two currencies
        ["5 %", "0.07"],  # a fraction next to percentages
        ["(1)", "(2)"],  # labels
        ["1,5", "1.5"],  # two decimal separators
        ["1,23,4", "5"],
        ["12 34", "5"],
        ["1_000", "5"],
        ["yes", "no"],
        ["true", "1"],
        ["9,007,199,254,740,993", "5"],  # float64 would round it
        ["5", "-", "x"],
        ["1.2.3", "1.2.10"],  # versions
        ["192.168.0.1", "10.0.0.1"],
        ["2024-02-30", "2024-02-01"],
        ["2024", "2024-05"],
        ["25:00", "12:00"],
        ["13:00 pm", "12:00"],
        ["31/05/2024", "05/31/2024"],
        ["1.2.24", "3.4.24"],
    ],
)
def test_texts(cells):
    assert column_of(cells).tolist() == cells


def test_commas_that_are_ambiguous(make):
    semicolons, commas = "a;b\nx;1,234\ny;2,345\n", 'a,b\nx,"1,234"\ny,"2,345"\n'
    source = make(semicolons)
    check(source, a=["x", "y"], b=[1.234, 2.345])
    assert source.notes[1].startswith(
        "column 'b': read as numbers with decimal commas, such as 1,234 - "
    )
    assert source.notes[1].endswith("specify the decimal separator with --decimal")
    source = make(commas)
    check(source, a=["x", "y"], b=[1234, 2345])
    assert "commas as thousands separators, such as 1,234" in source.notes[0]
    check(make(semicolons, decimal="."), a=["x", "y"], b=[1234, 2345])
    check(make(commas, decimal=","), a=["x", "y"], b=[1.234, 2.345])
    # Cells with only one reading take precedence over the option.
    check(make("a;b\n0,5;1,234\n", decimal="."), a=[0.5], b=[1234])
    with pytest.raises(TableError, match="decimal=';' must be"):
        make(commas, decimal=";")


def test_the_decimal_separator_of_other_columns(make):
    source = make("a;p;n\nx;1,5;1.234\ny;2,25;12.345\nz;3;345\n")
    check(source, a=["x", "y", "z"], p=[1.5, 2.25, 3], n=[1234, 12345, 345])
    assert any("'n': read as numbers with points as thousands" in note for note in source.notes)
    check(make("p;n\n1.5;1,234\n2.25;2,345\n"), p=[1.5, 2.25], n=[1234, 2345])
    # Commas after many rows change the reading of another column from its first row.
    text = "n;p\n" + "1.234;5\n" * 3000 + "1.234;5,25\n"
    table = make(text).table()
    assert set(table.columns["n"]) == {1234.0} and table.columns["p"][-1] == 5.25


@pytest.mark.parametrize(
    ("early", "late", "kind"),
    [
        (["0.5"], ["1,5"], "text"),
        (["2.0"], ["1,5"], "text"),
        (["1.000", "2.345"], ["1,5"], "numbers"),
        (["0,5"], ["1.5"], "text"),
        (["1,5"], ["1.000", "2.345"], "numbers"),
        (["1.5"], ["1,000", "2,345"], "numbers"),
        (["1.5"], ["x"], "text"),
        (["1.5"], ["31.05.2024"], "text"),
    ],
)
def test_a_notation_that_is_contradicted_late(make, early, late, kind):
    """The first rows are integers, so that the column is at first read as plain numbers."""
    integers = ["7"] * 1500
    for column in (
        [*integers, *early * 1500, *late],
        [*integers, *late * 1500, *early],
        [*early, *integers, *late],
    ):
        source = make("a;x\n" + "".join(f"z;{cell}\n" for cell in column))
        assert source.shape.kinds["x"] == kind
        found = source.table().columns["x"]
        assert values(found) == values(column_of(column))


def test_notes_about_conversions(make):
    source = make(
        "price;share;when;n\n1.234,50;12 %;31.05.2024;1\n2,5;13 %;01.06.2024;2\n", decimal=None
    )
    assert source.shape.kinds == dict(price="numbers", share="numbers", when="dates", n="numbers")
    assert source.notes[1:] == [
        "column 'price': read as numbers with decimal commas, such as 1.234,50",
        "column 'share': read as numbers with percent signs, such as 12 %",
        "column 'when': read as dates with the day first, such as 31.05.2024",
    ]
    many = ";".join(f"x{i}" for i in range(8)) + "\n" + ";".join(["1,5"] * 8) + "\n"
    source = make(many)
    assert source.shape.rows == 1
    assert "columns 'x0', 'x1', 'x2', 'x3', 'x4' and 3 more: read" in source.notes[1]


def test_a_few_texts_among_numbers_leave_a_column_text(make):
    table = make("x\n" + "1,5\n" * 50 + "unknown\n", delimiter=";").table()
    assert table.kinds == {"x": "text"} and table.columns["x"][0] == "1,5"


def test_booleans(make):
    source = make("a,b\nTRUE,yes\nfalse,no\n,yes\n")
    table = check(source, a=[1, 0, nan], b=["yes", "no", "yes"])
    assert table.booleans == ("a",) and table.texts("a").tolist() == ["True", "False", None]
    assert next(source.blocks(["a"])).columns["a"].tolist() == ["TRUE", "false", None]


def test_more_missing_marks(make):
    text = "a,b,c\n-999,x,1\n-999.0,unknown,2\n5,y,missing\n"
    expected = dict(a=[nan, nan, 5], b=["x", None, "y"], c=[1, 2, nan])
    check(make(text, na="-999,Unknown,missing"), **expected)
    check(make(text, na=["-999", "unknown", "MISSING"]), **expected)


# ---------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2024-05-31", "2024-06-01"], ["2024-05-31", "2024-06-01"]),
        (["2024-05-31 18:30", "2024-06-01"], ["2024-05-31T18:30", "2024-06-01"]),
        (["2024-05-31T18:30:05.25Z"], ["2024-05-31T18:30:05.25"]),
        (["2024-05-31T18:30:05+02:00"], ["2024-05-31T16:30:05"]),
        (["2024-05-31T00:30-0130"], ["2024-05-31T02:00"]),
        (["2024/5/31", "NA"], ["2024-05-31", "NaT"]),
        (["2024-05", "-"], ["2024-05-01", "NaT"]),
        (["31.05.2024", "1.6.2024 07:05"], ["2024-05-31", "2024-06-01T07:05"]),
        (["05.06.2024"], ["2024-06-05"]),
        (["31/05/2024", "01/06/2024"], ["2024-05-31", "2024-06-01"]),
        (["05/31/2024", "01/06/2024"], ["2024-05-31", "2024-01-06"]),
        (["5/31/24 6:30 PM", "1/6/69 12:00 am"], ["2024-05-31T18:30", "1969-01-06"]),
        (["31-05-2024", "01-06-2024"], ["2024-05-31", "2024-06-01"]),
        (["31 May 2024", "1 June 2024"], ["2024-05-31", "2024-06-01"]),
        (["May 31, 2024", "Sept 1, 2024 9:05"], ["2024-05-31", "2024-09-01T09:05"]),
        (["31-May-24", "01-Jun-24"], ["2024-05-31", "2024-06-01"]),
        (["Fri, 31 May 2024 18:30:00 +0000"], ["2024-05-31T18:30"]),
        (
            ["18:30", "6:15 pm", "00:00:01.5"],
            ["1970-01-01T18:30", "1970-01-01T18:15", "1970-01-01T00:00:01.5"],
        ),
    ],
)
def test_dates(cells, expected):
    found = column_of(cells)
    assert found.dtype == "datetime64[us]"
    np.testing.assert_array_equal(found, np.array(expected, dtype="datetime64[us]"))


def test_the_order_of_day_and_month(make):
    source = make("t,x\n05/01/2024,1\n06/01/2024,2\n")
    check(source, t=["2024-05-01", "2024-06-01"], x=[1, 2])
    assert "the order of day and month is ambiguous; read as month first" in source.notes[0]
    # Another column of the file decides.
    source = make("t,u\n05/01/2024,31/12/2023\n06/01/2024,30/12/2023\n")
    check(source, t=["2024-01-05", "2024-01-06"], u=["2023-12-31", "2023-12-30"])
    assert source.notes[0].startswith("columns 't', 'u': read as dates with the day first, such")


def test_dates_as_text(make):
    source = make("t,x\n31.05.2024,1\nNA,2\n")
    assert next(source.blocks(["t"])).columns["t"].tolist() == ["31.05.2024", None]


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("text", "names", "lines"),
    [
        ("sep=;\na;b\n1;2\n3;4\n", "ab", [3, 4]),
        ('"sep=;"\r\na;b\r\n1;2\r\n3;4\r\n', "ab", [3, 4]),
        ("# made by x\n# on y, z\n\na,b\n1,2\n3,4\n", "ab", [5, 6]),
        ("# a b\n1 2\n3 4\n", "ab", [2, 3]),
        ("#a,b\n1,2\n3,4\n", "ab", [2, 3]),
        ("Sales report 2024\n\na,b\n1,2\n3,4\n", "ab", [4, 5]),
        ("Sales report;\n;\na;b\n1;2\n3;4\n", "ab", [4, 5]),
        ("Report\nby me\n\na,b\n1,2\n3,4\n", "ab", [5, 6]),
        ("Report\na,b\n1,2\n3,4\n", "ab", [3, 4]),
        ("a,b,\n1,2,\n3,4,\n", "ab", [2, 3]),
        ("a,b,,,\n1,2,,,\n3,4,,,\n", "ab", [2, 3]),
        ("a,b\n1,2,\n3,4,\n", "ab", [2, 3]),
        ("a,b,\n1,2\n3,4\n", "ab", [2, 3]),
        ("\n\na,b\n\n1,2\n  \n3,4\n\n", "ab", [5, 7]),
        ("a,b\r1,2\r3,4\r", "ab", [2, 3]),
        ("a,b\r\n1,2\r\n\r\n3,4", "ab", [2, 4]),
        ("\ufeffa,b\n1,2\n3,4\n", "ab", [2, 3]),
    ],
)
def test_what_surrounds_a_table(make, text, names, lines):
    table = make(text).table()
    assert list(table.columns) == list(names) and table.lines.tolist() == lines
    assert table.columns["a"].tolist() == [1, 3] and table.columns["b"].tolist() == [2, 4]


def test_comments_everywhere(make):
    text = "% first\na,b\n1,2\n% second, with, commas\n3,4\n"
    table = check(make(text, comment="%"), a=[1, 3], b=[2, 4])
    assert table.lines.tolist() == [3, 5]
    assert make("#a,b\n1,2\n3,4\n", header=False).table().columns["column1"].tolist() == [1, 3]
    assert make("#,b\n1,x\n2,y\n").shape.kinds == {"#": "numbers", "b": "text"}
    with pytest.raises(TableError, match="has no rows"):
        make("# only\n# comments\n").table()


def test_duplicate_names(make):
    source = make("a,a,a_2,a\n1,2,3,4\n")
    check(source, a=[1], a_3=[2], a_2=[3], a_4=[4])
    assert source.notes == [
        "2 columns have the same name as an earlier column and are renamed to 'a_3', 'a_4'"
    ]
    check(make("x,x\n1,2\n"), x=[1], x_2=[2])


def test_index_columns(make):
    for head in ("", "Unnamed: 0", '""'):
        table = make(f"{head},x\n0,1.5\n1,2.5\n").table()
        assert len(table.index_columns) == 1 and list(table.columns)[1] == "x"
    assert make(",x\na,1.5\nb,2.5\n").table().index_columns == ()
    both = make("Unnamed: 0.1,Unnamed: 0,x\n0,3,1.5\n1,2,2.5\n")
    assert both.table().index_columns == ("Unnamed: 0.1", "Unnamed: 0")
    assert "contain row numbers and are not used" in both.notes[0]
    table = make('"x","y"\n"1",2,3\n"2",4,5\n').table()  # written by R
    assert table.index_columns == ("column1",) and table.columns["x"].tolist() == [2, 4]
    table = make('"x","y"\n"Fiat",2,3\n"VW",4,5\n').table()
    assert table.columns["column1"].tolist() == ["Fiat", "VW"]
    # The last row decides.
    rows = "".join(f"{i},{i}\n" for i in range(3000))
    assert make(",x\n" + rows).table().index_columns == ("column1",)
    assert make(",x\n" + rows + "z,1\n").table().index_columns == ()


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("39, State-gov, 77516\n50, Self-emp, 83311\n", False),
        ("5.1;setosa\n4,9;virginica\n4,7;setosa\n", False),
        ("1,5;2,5\n2,5;3,5\n", False),
        ("m,1,F\nf,2,F\nm,3,M\n", False),
        ("2024-05-31,1.5,a\n2024-06-01,2.5,b\n", False),
        ("country,2019,2020\nDE,1,2\n", True),
        ("dose,10,20,50\nx,1.5,2.5,3\n", True),
        ("name,1\na,b\n", True),
        (",0,1\n0,1.5,2\n1,2.5,3\n", True),
        ("x\n1\n", True),
    ],
)
def test_headers(make, text, header):
    assert make(text).layout.header == header


def test_all_ragged_rows_are_listed(make, monkeypatch):
    monkeypatch.setattr("mercer.tables._text_files._FIRST_SCAN_ROWS", 2)
    monkeypatch.setattr("mercer.tables._text_files._SCAN_ROWS", 2)
    with pytest.raises(
        TableError, match=r"3 lines .*: line 3 \(1\), line 4 \(3\), line 7 \(1\) - "
    ):
        make("a,b\n1,2\n3\n4,5,6\n7,8\n9,10\n11\n12,13\n").table()
    with pytest.raises(TableError, match=r"40 lines .*line 21 \(1\) and 20 more - usually a comma"):
        make("a,b\n" + "1\n" * 40).table()


def test_a_single_column_of_decimal_commas(make):
    check(make("x\n1,5\n2,5\n3,7\n"), x=[1.5, 2.5, 3.7])


def test_many_columns(make):
    """pyarrow is not used for many columns of numbers, because it would need more memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1100)).round(3)
    names = ",".join(f"x{j}" for j in range(1100))
    rows = [",".join(map(str, row)) for row in X.tolist()]
    found = make("\n".join([names, *rows])).table()
    np.testing.assert_array_equal(np.column_stack(list(found.columns.values())), X)
    rows = [f"s{i},{row}" for i, row in enumerate(rows)]
    found = make("\n".join([f"id,{names}", *rows])).table()
    assert found.columns["id"].tolist() == [f"s{i}" for i in range(600)]
    np.testing.assert_array_equal(np.column_stack(list(found.columns.values())[1:]), X)


def test_delimiters(make):
    check(make("a, b;c\nx, y;5\n"), **{"a, b": ["x, y"], "c": [5]})
    check(make("a\tb\n1,5\t2,5\n"), a=[1.5], b=[2.5])
    check(make('a,b\n"x;y",1\n"x;z",2\n'), a=["x;y", "x;z"], b=[1, 2])


# ---------------------------------------------------------------------- encodings


def test_encodings(make):
    text = "näme,x\nKöln,1\n“Ulm”,2\n"
    expected = {"näme": ["Köln", "“Ulm”"], "x": [1, 2]}
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        source = make(text.encode(encoding))
        check(source, **expected)
        assert len(source.notes) == (encoding == "cp1252")
    assert source.notes[0].startswith("the file is not UTF-8 (near line 1) and is read as Windows")
    for encoding in ("utf-16-le", "utf-16-be", "mac_roman", "utf-8"):
        source = make(text.encode(encoding), encoding=encoding)
        check(source, **expected)
        assert not source.notes
    with pytest.raises(TableError, match="--encoding utf-16-le"):
        make("x,y\n1,2\n".encode("utf-16-le"))
    with pytest.raises(TableError, match="'utf-9' is unknown - use for example utf-8"):
        make(text, encoding="utf-9")
    with pytest.raises(TableError, match=r"line 1: byte 0xe4 is not valid utf-8 .*--encoding"):
        make(text.encode("cp1252"), encoding="utf-8").table()
    for n in (1, 200_000):  # in the first bytes, and after more than 1 MB
        lines = b"\n".join([b"x,y", *[b"1,abc"] * n, b"2,\x81\xff", b""])
        with pytest.raises(
            TableError, match=rf"near line {n + 2}: byte 0x81 is not valid shift_jis .*--encoding"
        ):
            make(lines, encoding="shift_jis").table()
    # The first byte that is not UTF-8 is far from the header; byte 0x81 is undefined in cp1252.
    late = make(b"name,x\n" + b"a,1\n" * 5000 + b"\xfc\x81,2\n")
    table = late.table()
    assert table.columns["name"][-1] == "ü\x81" and table.lines[-1] == 5002
    assert "near line 5002" in late.notes[0]
    with pytest.raises(TableError, match="it is not a text file"):
        make(bytes(range(256)))


def test_compressed_files(make):
    data = b"a,b\n1,2\n3,4\n"
    for name, compressed in (
        ("a.csv.gz", gzip.compress(data)),
        ("a.csv.bz2", bz2.compress(data)),
        ("a.csv.xz", lzma.compress(data)),
    ):
        check(make(compressed, name), a=[1, 3], b=[2, 4])
        with pytest.raises(TableError, match="truncated"):
            make(compressed[:-14], name).table()
    check(make(bz2.compress(b"a\tb\n1,5\t2\n"), "a.tsv.bz2"), a=[1.5], b=[2])


# ---------------------------------------------------------------------- both parsers

_parsers = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(path, **options):
    """Return everything that was read from a file, or the error message."""
    try:
        source = open_table(path, **options)
        tables = list(source.blocks())
    except TableError as error:
        return str(error)
    return [
        (
            {n: (c.dtype, values(c)) for n, c in table.columns.items()},
            table.lines.tolist(),
            table.start,
            table.index_columns,
            table.booleans,
        )
        for table in tables
    ], source.notes


@_parsers
@given(st.text('a1,;."\n\r -#', max_size=60), st.sampled_from([1, 3, 1000]))
def test_the_fast_parser_reads_what_the_careful_parser_reads(tmp_path, monkeypatch, text, rows):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_bytes(("x,y\n1,2\n" + text).encode())
    reads = []
    for name, value in (
        ("RowBlock.__doc__", None),  # no change
        ("RowBlock._is_simple", False),  # the careful parser
        ("pyarrow_csv", lambda: None),  # pyarrow is not installed
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"mercer.tables._row_blocks.{name}", value)
            patch.setattr("mercer.tables._text_files._SCAN_ROWS", rows)
            patch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", rows)
            patch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
            reads.append(repr(outcome(path, header=True)))
    assert reads[1] == reads[0] and reads[2] == reads[0]


@_parsers
@given(st.lists(st.floats(), min_size=3, max_size=30), st.sampled_from(".,"))
def test_floats_are_read_exactly(tmp_path, numbers, decimal):
    path = tmp_path / "a.csv"
    cells = ["" if x != x else repr(x).replace(".", decimal) for x in numbers]
    path.write_text("i;x\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(cells)))
    found = read_table(path, decimal=decimal).columns["x"]
    expected = np.array(numbers)
    assert found[~np.isnan(expected)].tobytes() == expected[~np.isnan(expected)].tobytes()
    assert np.array_equal(np.isnan(found), np.isnan(expected))


# ---------------------------------------------------------------------- random notations

_cents = st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2))


def spelled(value, decimal, thousands, unit):
    """Write a number with two decimals."""
    text = f"{abs(value):,.2f}".replace(",", "T").replace(".", decimal).replace("T", thousands)
    before, after = unit
    return f"{'-' if value < 0 else ''}{before}{text}{after}"


@_parsers
@given(
    numbers=st.lists(_cents, min_size=1, max_size=40),
    notation=st.sampled_from(
        [(".", ","), (".", ""), (".", "'"), (".", " "), (",", "."), (",", ""), (",", "\u00a0")]
    ),
    unit=st.sampled_from([("", ""), ("$", ""), ("€ ", ""), ("", " €"), ("", "%"), ("", " USD")]),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    missing=st.sampled_from(["", "NA", "#N/A", "NULL", "-", "?"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_a_table_in_a_random_notation(
    tmp_path, numbers, notation, unit, delimiter, end, encoding, missing, quoting
):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(["größe", "label", "n"])
    for i, value in enumerate(numbers):
        writer.writerow([spelled(value, *notation, unit), f"row {i}, é", str(i)])
    writer.writerow([missing, "last", str(len(numbers))])
    path = tmp_path / "a.csv"
    path.write_bytes(file.getvalue().encode(encoding))
    table = read_table(path)
    assert table.kinds == {"größe": "numbers", "label": "text", "n": "numbers"}
    np.testing.assert_array_equal(table.columns["größe"], [*map(float, numbers), np.nan])
    np.testing.assert_array_equal(table.columns["n"], np.arange(len(numbers) + 1))
    assert table.columns["label"].tolist() == [
        *(f"row {i}, é" for i in range(len(numbers))),
        "last",
    ]


_moments = st.datetimes(datetime(1970, 1, 2), datetime(2060, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0)
)
_FORMATS = {
    "%Y-%m-%d": "D", "%Y-%m-%dT%H:%M:%S": "s", "%Y-%m-%d %H:%M:%S": "s", "%Y-%m-%d %H:%MZ": "m",
    "%Y/%m/%d": "D", "%d.%m.%Y": "D", "%d.%m.%y": "D", "%d.%m.%Y %H:%M": "m", "%d/%m/%Y": "D",
    "%m/%d/%Y": "D", "%m/%d/%y %I:%M %p": "m", "%d-%m-%Y": "D", "%d %b %Y": "D", "%d %B %Y": "D",
    "%B %d, %Y": "D", "%d-%b-%y": "D", "%a, %d %b %Y %H:%M:%S +0000": "s", "%Y-%m": "M",
}  # fmt: skip


@_parsers
@given(st.lists(_moments, min_size=1, max_size=30), st.sampled_from(list(_FORMATS)))
def test_dates_in_a_random_format(moments, format):
    # A day that cannot be a month determines the order of day and month.
    moments = [datetime(2024, 5, 31), *moments]
    found = column_of([moment.strftime(format) for moment in moments])
    assert found.dtype == "datetime64[us]"
    expected = np.array(moments, dtype=f"datetime64[{_FORMATS[format]}]")
    np.testing.assert_array_equal(found, expected)


@_parsers
@given(_moments, st.integers(-14 * 4, 14 * 4))
def test_zones(moment, quarters):
    offset = timedelta(minutes=15 * quarters)
    sign = "-" if quarters < 0 else "+"
    zone = f"{sign}{abs(quarters) // 4:02d}:{abs(quarters) % 4 * 15:02d}"
    found = column_of([f"{moment:%Y-%m-%dT%H:%M:%S}{zone}"])
    assert found[0] == np.datetime64(moment - offset)


@_parsers
@given(
    st.lists(
        st.sampled_from(
            ["1", "1,5", "1.5", "1,234", "1.234", "-", "NA", "x", "true", "5 %", "31.05.2024"]
        ),
        min_size=1,
        max_size=6,
    ),
    st.randoms(use_true_random=False),
)
def test_the_notation_does_not_depend_on_the_order_or_the_division_of_cells(cells, random):
    whole = detect_notation(cells)
    shuffled = random.sample(cells, len(cells))
    detector = NotationDetector(MissingMarks())
    for cell in shuffled:
        detector.update([cell])
    parts = detector.notation(None)
    assert (parts.kind, parts.reading) == (whole.kind, whole.reading)
    first, second = (n.convert(cells, MissingMarks()) for n in (whole, parts))
    assert values(first) == values(second) or repr(first) == repr(second)


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("cells", "expected", "unit"),
    [
        (["12.5 C", "-3 C", "0.5 C"], [12.5, -3, 0.5], "C"),
        (["5.1 °C", "4.0°C", ""], [5.1, 4, nan], "°C"),
        (["3 kg", "1,200.5 kg", "NA"], [3, 1200.5, nan], "kg"),
        (["3,5 kg", "1.200,5 kg", "-"], [3.5, 1200.5, nan], "kg"),
        (["12 km/h", "7.5 km/h", "0"], [12, 7.5, 0], "km/h"),
        (["80 mm Hg", "120 mm Hg"], [80, 120], "mm Hg"),
        (["50m2", "1e2m2"], [50, 100], "m2"),
        (["9.8 m/s^2", "\u22121 m/s^2"], [9.8, -1], "m/s^2"),
        (["12 µg", "3 µg"], [12, 3], "µg"),
        (["3 rooms", "4 rooms"], [3, 4], "rooms"),
    ],
)
def test_numbers_with_one_unit(make, cells, expected, unit):
    rows = [f'"{cell}",{i}' for i, cell in enumerate(cells)]
    source = make("\n".join(["x,y", *rows]))
    np.testing.assert_array_equal(source.table().columns["x"], expected)
    (note,) = source.notes
    assert note.startswith("column 'x': read as numbers with ")
    assert f"the unit {unit}, such as " in note


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (
            ["12 kg", "3 lb", "4 kg"],
            "column 'x': read as text, because the numbers have different units (kg, lb), such as "
            "12 kg - convert them to one unit to use numbers",
        ),
        (
            ["12 kg", "3", "4 kg"],
            "column 'x': read as text, because the numbers have the unit kg in some cells and no "
            "unit in others, such as 12 kg - convert them to one unit to use numbers",
        ),
        (
            ["12 €", "3 $"],
            "column 'x': read as text, because the numbers have different units (€, $), such as "
            "12 € - convert them to one unit to use numbers",
        ),
        (["1a", "2b"], None),
        (["12 Main Street", "7 Elm Road", "3 A B C", "1 c"], None),
        ([f"12 {word}" for word in "abcdef"], None),
        (["12 kg", "heavy"], None),
        (["1st", "2nd", "3rd"], None),
        (["0x1F", "0xB2"], None),
        (["2024 Q1", "2024 Q2"], None),
        (["(3 kg)", "4 kg"], None),
    ],
)
def test_numbers_with_different_units_are_text(make, cells, note):
    source = make("\n".join(["x,y", *(f"{cell},1" for cell in cells)]))
    assert source.table().columns["x"].tolist() == cells
    assert source.notes == ([] if note is None else [note])


def test_units_in_later_blocks(make):
    rows = [f"{i} kg" for i in range(5000)]
    assert make("\n".join(["x", *rows])).table().columns["x"][-1] == 4999
    assert make("\n".join(["x", *rows, "3 lb"])).table().columns["x"][-1] == "3 lb"
    bare = [str(i) for i in range(5000)]
    source = make("\n".join(["x", *bare, "3 kg"]))
    assert source.table().columns["x"][-1] == "3 kg"
    assert "no unit in others, such as 3 kg" in source.notes[0]


def test_names_that_look_like_numbers_with_units(make):
    check(make("7 days,30 days\n1,2\n3,4\n"), **{"7 days": [1, 3], "30 days": [2, 4]})


# ---------------------------------------------------------------------- notations of other files


@pytest.mark.parametrize(
    ("training", "code", "new", "alone", "expected"),
    [
        (
            ["31/05/2024", "03/07/2024"],
            "dates:day-month-year",
            "03/07/2024",
            "2024-03-07",
            "2024-07-03",
        ),
        (["05/31/2024"], "dates:month-day-year", "03.07.2024", "2024-07-03", "2024-03-07"),
        (["1.234,5", "2,5"], "numbers:comma", "1.234", 1.234, 1234),
        (["1,5"], "numbers:comma", "1,234", 1234, 1.234),
        (["1,234.5"], "numbers:point", "1,234", 1234, 1234),
        (["3,5 kg"], "numbers:comma:kg", "1.234 kg", 1.234, 1234),
    ],
)
def test_notations_of_the_training_file(make, training, code, new, alone, expected):
    def text(cells):
        return "\n".join(["x,y", *(f'"{cell}",1' for cell in cells)])

    notations = make(text(training)).notations
    assert notations["x"] == code
    for is_opened_before in (False, True):
        source = make(text([new]))
        if is_opened_before:
            dates = isinstance(alone, str)
            found = source.table().columns["x"][0]
            assert found == (np.datetime64(alone) if dates else alone)
        found = source.table(notations=notations).columns["x"][0]
        assert found == (np.datetime64(expected) if isinstance(expected, str) else expected)
        assert len(source.notes) == len(set(source.notes)) <= 1
        assert source.table(notations=notations).columns["x"][0] == found


def test_cells_that_contradict_the_expected_notation(make):
    expected = {"x": "numbers:comma", "d": "dates:day-month-year", "w": "numbers:point:kg"}
    source = make('x,d,w,e\n1.5,05/31/2024,"3 lb",\n7,06/01/2024,"4 lb",\n')
    table = source.table(notations=expected | {"e": "numbers:comma", "absent": "numbers:comma"})
    assert table.columns["x"].tolist() == [1.5, 7] and table.columns["w"].tolist() == [3, 4]
    assert table.columns["d"].astype("M8[D]").astype(str).tolist() == ["2024-05-31", "2024-06-01"]
    assert [note for note in source.notes if "training rows" in note] == [
        f"column {name!r}: the notation of the cells is {found}, but that of the training rows is "
        f"{expected[name]} - usually the values come from another program or have another unit - "
        f"convert them if they do"
        for name, found in (
            ("x", "numbers:point"),
            ("d", "dates:month-day-year"),
            ("w", "numbers:point:lb"),
        )
    ]


def test_expected_notations_in_several_blocks(make):
    cells = [str(i) for i in range(3000)] + ["1.234"] * 3000
    source = make("\n".join(["x", *cells]))
    assert source.table(notations={"x": "numbers:comma"}).columns["x"][[0, -1]].tolist() == [
        0,
        1234,
    ]
    assert source.table(notations={"x": "numbers:point"}).columns["x"][-1] == 1.234
    source = make("\n".join(["x", *cells, "1.5"]))
    assert source.table(notations={"x": "numbers:comma"}).columns["x"][-2:].tolist() == [1.234, 1.5]


def test_notations_as_text():
    for text in ("numbers:comma:km/h", "dates:time", "numbers:boolean", "text:point"):
        assert str(Notation.parse(text)) == text
    for text in ("", "numbers", "numbers:semicolon", "words:point"):
        with pytest.raises(
            ValueError, match=f"{text!r} is not a notation, such as 'numbers:comma'"
        ):
            Notation.parse(text)


@pytest.mark.parametrize(
    "cells", [["1 days 02:30:00", "2 days 30:00:00"], ["1,5", "9007199254740993"]]
)
def test_invalid_durations_and_rounded_integers_are_text(cells):
    assert column_of(cells).tolist() == cells
