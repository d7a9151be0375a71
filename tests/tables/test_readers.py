"""Reading tables from files; errors name the file, the line, the column, and a remedy."""

import gzip
import io
import json
import sys
from decimal import Decimal

import numpy as np
import pytest

from mercer.tables import Recipe, Table, TableError, open_blocks, open_table, read_table

CSV = "x,y,city\n1,2.5,Bonn\n2,,Ulm\n3,-1e3,Bonn\n"
# The bytes are part of the test id, so they must not contain the current time (mtime).
CUT_OFF = gzip.compress(CSV.encode() * 99, mtime=0)[:-20]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def check(table):
    assert table.kinds == {"x": "numbers", "y": "numbers", "city": "text"}
    np.testing.assert_array_equal(table.columns["x"], [1, 2, 3])
    np.testing.assert_array_equal(table.columns["y"], [2.5, np.nan, -1000])
    assert table.columns["city"].tolist() == ["Bonn", "Ulm", "Bonn"]


def test_csv_with_other_delimiters_quotes_gzip_and_a_byte_order_mark(tmp_path):
    for mark in ",;|\t":
        check(read_table(write(tmp_path, "a.csv", CSV.replace(",", mark))))
    check(read_table(write(tmp_path, "a.csv", "\ufeff" + CSV.replace("Bonn", '"Bonn"'))))
    check(read_table(write(tmp_path, "a.csv", CSV.replace("\n", "\r\n"))))
    check(read_table(write(tmp_path, "a.csv.gz", gzip.compress(CSV.encode()))))
    check(read_table(write(tmp_path, "a.tsv", CSV.replace(",", "\t"))))


def test_a_delimiter_and_a_missing_header_are_reported(tmp_path):
    source = open_table(write(tmp_path, "a.csv", "1;2\n3;4\n"))
    assert source.notes[0].startswith("cells are separated by a semicolon (detected) - ")
    assert "--delimiter" in source.notes[0]
    assert "no header" in source.notes[1]
    assert source.table().columns["column2"].tolist() == [2.0, 4.0]
    mixed = open_table(write(tmp_path, "iris.data", "5.1,0.2,setosa\n4.9,0.3,virginica\n"))
    assert "no header: the first line has numbers" in mixed.notes[0]
    assert "use --header" in mixed.notes[0] and len(mixed.table()) == 2
    years = open_table(write(tmp_path, "a.csv", "country,2020,2021\nDE,1,2\nFR,3,4\n"))
    assert "although 2 of its 3 cells are numbers" in years.notes[0]
    assert "--no-header" in years.notes[0]
    named = open_table(write(tmp_path, "a.csv", "1,2\n3,4\n"), header=True)
    assert named.table().columns["2"].tolist() == [4.0] and not named.notes


def test_a_column_without_a_name_gets_one(tmp_path):
    """As in row numbers written by pandas and R."""
    source = open_table(write(tmp_path, "a.csv", ",x,y\n0,1.5,2\n1,2.5,3\n"))
    table = source.table()
    assert list(table.columns) == ["column1", "x", "y"] and table.index_columns == ("column1",)
    assert source.notes == [
        "column1 contains row numbers and is not used, unless --columns includes it"
    ]
    source = open_table(write(tmp_path, "a.csv", "x,,y\n0,1.5,2\n1,2.5,3\n"))
    assert list(source.table().columns) == ["x", "column2", "y"]
    assert "are named column2" in source.notes[0] and "--ignore column2" in source.notes[0]


def test_spaces_and_tabs_as_delimiters(tmp_path):
    for content in (" 1.0  2 \n\t3.5   4\n", "1.0 2\n3.5 4"):
        source = open_table(write(tmp_path, "housing.data", content))
        assert source.notes[0].startswith("cells are separated by spaces")
        assert source.table().columns["column1"].tolist() == [1.0, 3.5]
    rows = read_table(write(tmp_path, "a.txt", 'x city\n1 "New York"\n2  Ulm\n'), delimiter="space")
    assert rows.columns["city"].tolist() == ["New York", "Ulm"]
    names = read_table(write(tmp_path, "a.csv", "full name\nAda Lovelace\n"))
    assert names.columns["full name"].tolist() == ["Ada Lovelace"]
    for spelled in ("tab", "\\t", "\t"):
        path = write(tmp_path, "a.csv", CSV.replace(",", "\t"))
        check(read_table(path, delimiter=spelled))
    with pytest.raises(TableError, match="delimiter ';;' is not one character - use"):
        read_table(path, delimiter=";;")


def test_an_unclosed_quote_is_an_error_that_names_its_line(tmp_path):
    rows = "x,city\n1,Bonn\n2,Ulm\n"
    for text, line, end in (
        (rows + '3,"Bo\n4,Ulm\n5,Bonn\n', 4, 6),  # the quote extends to the end of the file
        (rows + '3,"Bo\n4,"Ulm"\n5,Bonn\n', 4, 5),  # the next quote closes it
        (rows + '3,"Bo', 4, 4),
        (rows + '3,"Bo\nnn"\n4,"Ulm\n', 6, 6),
        ('x,"city\n1,Bonn\n', 1, 2),
        ('x,"two\nlines",city\n1,2,"Bonn\n', 3, 3),
    ):
        message = f"line {line}: a quote opens here but is not closed.* to line {end} - "
        with pytest.raises(TableError, match=message):
            read_table(write(tmp_path, "a.csv", text))
    long = rows + '3,"Bo\n' + "4,Ulm\n" * 30000
    with pytest.raises(TableError, match="line 4: a cell has more than 131072 characters"):
        read_table(write(tmp_path, "a.csv", long))
    text = rows + '3,"Bo"nn\n4,5" pipe\n5,"Bo\r\nnn"\n6,"Ulm"x'
    table = read_table(write(tmp_path, "a.csv", text))
    assert table.columns["city"].tolist() == ["Bonn", "Ulm", "Bonn", '5" pipe', "Bo\r\nnn", "Ulmx"]
    assert table.lines.tolist() == [2, 3, 4, 5, 6, 8]


def test_records_of_several_lines_next_to_the_header(tmp_path):
    numbered = read_table(write(tmp_path, "a.csv", '0,1,2\n1.5,"two\nlines",3\n2.5,one,4\n'))
    assert list(numbered.columns) == ["0", "1", "2"] and len(numbered) == 2
    text = '\n"first\nname";"b;c";d\n1;2;3\n4;5;6\n'
    named = read_table(write(tmp_path, "a.csv", text))
    assert list(named.columns) == ["first\nname", "b;c", "d"]
    assert named.columns["d"].tolist() == [3, 6] and named.lines.tolist() == [4, 5]
    unnamed = read_table(write(tmp_path, "a.csv", ",,\n1,2,3\n"))
    assert list(unnamed.columns) == ["column1", "column2", "column3"] and len(unnamed) == 1


def test_decimal_commas_and_utf_16(tmp_path):
    source = open_table(write(tmp_path, "a.csv", "1,5;2,5\n2,5;3,5\n"), header=False)
    assert len(source.notes) == 1 and source.width == 2
    assert source.notes[0].startswith("cells are separated by a semicolon")
    check(read_table(write(tmp_path, "a.txt", CSV.replace(",", "\t").encode("utf-16"))))


def test_integers_beyond_2_to_the_53_stay_exact(tmp_path, monkeypatch):
    """They are read as strings in every format, because float64 would make some of them equal."""
    pa = pytest.importorskip("pyarrow")
    pq, feather = (pytest.importorskip(f"pyarrow.{part}") for part in ("parquet", "feather"))
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 4)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    large = [2**53 + 1, -(2**53) - 3, 2**60, 2**63 - 1]
    for ids in ([7, 8, 9, 10, *large], [*large, 7, 8, 9, 10]):
        columns = {"id": ids, "x": [float(i) for i in range(8)]}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        cells = "\n".join(f"{row['id']},{row['x']}" for row in rows)
        write(tmp_path, "a.csv", f"id,x\n{cells}\n")
        write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        feather.write_feather(pa.table(columns), tmp_path / "a.arrow", compression="uncompressed")
        np.savez(tmp_path / "a.npz", **columns)
        for name in ("a.csv", "a.jsonl", "a.parquet", "a.arrow", "a.npz"):
            found = read_table(tmp_path / name)
            assert found.kinds == {"id": "text", "x": "numbers"}, name
            assert found.columns["id"].tolist() == [str(i) for i in ids], name
    exact = write(tmp_path, "b.csv", f"id,x\n{2**53},1\n{2**60},nan\n")
    assert read_table(exact).columns["id"].tolist() == [2.0**53, 2.0**60]
    digits = write(tmp_path, "c.csv", f"id\n{'9' * 5000}\n1\n")
    assert read_table(digits).kinds == {"id": "text"}
    with pytest.raises(
        TableError, match=r"the column 'id' contains integers above 2\^53.*columns=\['x'\]"
    ):
        list(open_blocks(tmp_path / "a.parquet"))


def test_marks_of_missing_numbers(tmp_path):
    rows = "".join(f"{mark},x\n" for mark in ("-", "--", ".", "#N/A", "<NA>", "1.5"))
    found = read_table(write(tmp_path, "a.csv", f"a,b\n{rows}")).columns["a"]
    assert np.isnan(found).tolist() == [True] * 5 + [False]
    strands = read_table(write(tmp_path, "b.csv", "strand\n+\n-\n+\n"))
    assert strands.columns["strand"].tolist() == ["+", "-", "+"]


def test_row_numbers_are_not_points(tmp_path):
    """pandas writes them as an unnamed first column in CSV, and as an unnamed index in Parquet."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.5, 2.5, 9.0], "y": [1.0, 0.0, 1.0]}, index=[7, 3, 5])
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        table = read_table(tmp_path / name)
        assert len(table.columns) == 3 and Recipe().fit(table).features == ["x", "y"]
    frame.set_axis([7, 3, 7]).to_csv(tmp_path / "b.csv")  # a bootstrap sample
    assert Recipe().fit(read_table(tmp_path / "b.csv")).features == ["x", "y"]
    source = open_table(tmp_path / "b.csv")
    assert source.shape.rows == 3 and "contains row numbers" in source.notes[0]
    frame.set_axis([1.5, 2.5, 2.5]).to_csv(tmp_path / "b.csv")
    assert Recipe().fit(read_table(tmp_path / "b.csv")).features == ["column1", "x", "y"]


def test_dates_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    days = pa.array([19000, None], pa.date32())
    pq.write_table(pa.table({"day": days, "x": [1.0, 2.0]}), tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet")
    assert found.kinds["day"] == "dates"
    np.testing.assert_array_equal(found.columns["day"], np.array(["2022-01-08", "NaT"], "M8[us]"))
    as_text = open_table(tmp_path / "a.parquet").table(["day"])
    assert as_text.columns["day"].tolist() == ["2022-01-08", None]


def test_a_table_as_json_lines():
    given = Table({"x": np.array([1.5, np.nan]), "t": np.array([None, "Köln"], dtype=object)})
    given.write_json(file := io.StringIO())
    assert file.getvalue() == '{"x": 1.5, "t": null}\n{"x": null, "t": "Köln"}\n'


def test_jsonl_parquet_arrow_and_npz_hold_the_same(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq, feather = (pytest.importorskip(f"pyarrow.{part}") for part in ("parquet", "feather"))

    rows = [
        {"x": 1, "y": 2.5, "city": "Bonn"},
        {"x": 2, "city": "Ulm"},
        {"x": 3, "y": -1e3, "city": "Bonn"},
    ]
    check(read_table(write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))))
    table = pa.table({n: [row.get(n) for row in rows] for n in ("x", "y", "city")})
    pq.write_table(table, tmp_path / "a.parquet")
    check(read_table(tmp_path / "a.parquet"))
    feather.write_feather(table, tmp_path / "a.arrow", compression="uncompressed")
    check(read_table(tmp_path / "a.arrow"))
    with pa.ipc.new_stream(tmp_path / "b.arrow", table.schema) as stream:
        stream.write_table(table)
    check(read_table(tmp_path / "b.arrow"))
    city = table.column("city").combine_chunks().dictionary_encode()
    pq.write_table(table.set_column(2, "city", city), tmp_path / "a.parquet")
    check(read_table(tmp_path / "a.parquet"))
    np.savez(tmp_path / "a.npz", x=[1, 2, 3], y=[2.5, np.nan, -1e3], city=["Bonn", "Ulm", "Bonn"])
    check(read_table(tmp_path / "a.npz"))


def test_two_columns_of_the_same_name_in_parquet_and_arrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table([[1.0, 2.0], [3.0, 4.0]], names=["x", "x"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    for data in (tmp_path / "a.parquet", tmp_path / "a.arrow", table):
        source = open_table(data)
        assert "renamed 'x' to 'x_2'" in source.notes[0]
        found = source.table()
        assert {name: column.tolist() for name, column in found.columns.items()} == {
            "x": [1.0, 2.0],
            "x_2": [3.0, 4.0],
        }


def test_two_arrays_of_an_npz_with_the_same_columns(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.ones((3, 2)), x1=np.zeros(3))
    with pytest.raises(TableError, match="arrays 'x' and 'x1' both have a column 'x1' - "):
        read_table(path)
    assert list(read_table(path, arrays=["x", "z=x1"]).columns) == ["x1", "x2", "z"]
    with pytest.raises(TableError, match="arrays 'x' and 'x1' would both be named 'X' - "):
        read_table(path, arrays=["X=x", "X=x1"])
    fields = np.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
    np.savez(path, one=fields, two=fields)
    with pytest.raises(TableError, match="arrays 'one' and 'two' both have a column 'a' - "):
        read_table(path)


def test_decimals_are_rounded_as_by_python(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    cents = [None, *np.random.default_rng(0).integers(-(10**7), 10**7, 500).tolist()]
    values = [None if c is None else Decimal(c).scaleb(-2) for c in cents]
    table = pa.table({"x": pa.array(values, pa.decimal128(12, 2))})
    pq.write_table(table, tmp_path / "a.parquet")
    expected = [np.nan if v is None else float(v) for v in values]
    for data in (tmp_path / "a.parquet", table):
        np.testing.assert_array_equal(read_table(data).columns["x"], expected)


def test_blocks_do_not_depend_on_how_a_file_is_divided(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    n = 3000
    texts = np.array(["a", "b", "c"])[np.arange(n) % 3]
    table = pa.table({"x": np.arange(n, dtype=float), "y": pa.array(texts).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=70)
    with pa.ipc.new_stream(tmp_path / "b.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=70)
    for name in ("a.parquet", "a.arrow", "b.arrow"):
        source = open_table(tmp_path / name)
        assert len(list(source.blocks())) == 1
        tables = list(source._read(1024, None))
        assert [len(t) for t in tables] == [1024, 1024, 952]
        assert [t.start for t in tables] == [0, 1024, 2048]
        for whole in (source.table(), Table.joined(tables)):
            np.testing.assert_array_equal(whole.columns["x"], np.arange(n))
            assert whole.columns["y"].tolist() == texts.tolist()


def test_cells_with_carriage_returns_are_quoted(tmp_path):
    texts = ["a\rb", "c\nd", "e\r\nf", "g"]
    table = Table({"x\ry": np.arange(4.0), "text": np.array(texts, dtype=object)})
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        file = io.StringIO()
        table.write(file, delimiter=delimiter)
        again = read_table(write(tmp_path, name, file.getvalue()))
        assert again.columns["text"].tolist() == texts and list(again.columns) == ["x\ry", "text"]
        assert file.getvalue().endswith(f"3.0{delimiter}g\n")


def test_npy_and_the_arrays_of_an_npz(tmp_path):
    X = np.arange(6).reshape(3, 2)
    np.save(tmp_path / "a.npy", X)
    assert read_table(tmp_path / "a.npy").columns["x2"].tolist() == [1.0, 3.0, 5.0]
    np.savez(tmp_path / "a.npz", X=X, y=[1, 2, 3], X_test=X[:1])
    with pytest.raises(TableError, match=r"different lengths: X 3, y 3, X_test 1.*--arrays X,y"):
        read_table(tmp_path / "a.npz")
    assert list(read_table(tmp_path / "a.npz", arrays=["X", "y"]).columns) == ["X1", "X2", "y"]
    renamed = read_table(tmp_path / "a.npz", arrays=["X=X_test"])
    assert list(renamed.columns) == ["X1", "X2"] and len(renamed) == 1
    with pytest.raises(TableError, match="no array 'Z'"):
        read_table(tmp_path / "a.npz", arrays=["Z"])


@pytest.mark.parametrize(
    ("shapes", "what", "choice"),
    [
        ({"X_train": (3, 2), "y_train": 3, "X_valid": (3, 2), "y_valid": 3, "X_test": (3, 2),
          "y_test": 3}, "arrays of several sets: X_train (3, 2), y_train (3,), X_valid (3, 2)",
         "X_train,y_train"),
        ({"XTrain": (3, 2), "XTest": (3, 2)}, "arrays of several sets", "XTrain"),
        ({"ytrain": 3, "ytest": 3}, "arrays of several sets: ytrain (3,), ytest (3,)", "ytrain"),
        ({"X": (3, 2), "Y": (3, 4), "id": 3}, "2 arrays with columns: X (3, 2), Y (3, 4)", "X,id"),
    ],
    ids=["three sets", "capitals", "columns", "features and targets"],
)  # fmt: skip
def test_several_tables_of_equal_length_in_one_npz(tmp_path, shapes, what, choice):
    np.savez(tmp_path / "a.npz", **{name: np.zeros(shape) for name, shape in shapes.items()})
    with pytest.raises(TableError) as found:
        read_table(tmp_path / "a.npz")
    assert what in str(found.value) and str(found.value).endswith(f"--arrays {choice}")
    assert len(read_table(tmp_path / "a.npz", arrays=choice.split(","))) == 3
    assert len(read_table(tmp_path / "a.npz", arrays=list(shapes))) == 3  # the user may insist


def test_columns_next_to_one_matrix_in_an_npz(tmp_path):
    X = np.zeros((3, 2))
    np.savez(tmp_path / "a.npz", X=X, y=X[:, 0], val=X[:, 1], contest=X[:, 1])
    assert list(read_table(tmp_path / "a.npz").columns) == ["X1", "X2", "y", "val", "contest"]


def test_fasta_and_graphs(tmp_path):
    table = read_table(write(tmp_path, "a.fasta", ">one\nGATT\nACA\n>two\nACGT\n"))
    assert table.columns["sequence"].tolist() == ["GATTACA", "ACGT"]
    folder = tmp_path / "DS"
    folder.mkdir()
    write(folder, "DS_A.txt", "1, 2\n2, 1\n3, 4\n4, 3\n")
    write(folder, "DS_graph_indicator.txt", "1\n1\n2\n2\n")
    write(folder, "DS_graph_labels.txt", "1\n-1\n")
    table = read_table(folder)
    assert table.kinds == {"graph": "graphs", "label": "numbers"} and len(table) == 2


def test_the_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    source = open_table("-")
    check(source.table())
    assert source.name == "standard input"


def test_blocks_are_the_table_and_a_late_text_makes_a_column_text(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 7)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    rng = np.random.default_rng(0)
    lines = [f"{a!r},{i}" for i, a in enumerate(rng.normal(size=50).tolist())]
    lines[40] = '"a ""quoted""\ntext",40'
    source = open_table(write(tmp_path, "a.csv", "x,i\n" + "\n".join(lines)))
    blocks = list(source.blocks())
    assert len(blocks) > 5 and source.shape == (50, {"x": "text", "i": "numbers"})
    whole = source.table()
    assert whole.columns["x"][40] == 'a "quoted"\ntext' and whole.columns["x"][3] == lines[3][:-2]
    np.testing.assert_array_equal(whole.columns["i"], np.arange(50))
    assert whole.where(40) == "line 42" and whole.where(41) == "line 44"  # one row spans two lines
    assert [b.start for b in blocks] == np.cumsum([0, *map(len, blocks)])[:-1].tolist()
    some = source.sample(9, 0)
    assert len(some) == 9 and np.all(np.diff(some.columns["i"]) > 0)
    np.testing.assert_array_equal(source.sample(9, 0).columns["i"], some.columns["i"])


def test_a_table_written_and_read_has_the_same_bits(tmp_path):
    x = np.random.default_rng(0).normal(size=20) * 10.0 ** np.arange(-10, 10)
    with (tmp_path / "a.csv").open("w") as file:
        Table({"x": x, "t": np.array(["a,b", None] * 10, dtype=object)}).write(file)
    again = read_table(tmp_path / "a.csv").columns
    assert again["x"].tobytes() == x.tobytes()
    assert again["t"].tolist() == ["a,b", None] * 10


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "x,y\n", "a.csv has no rows"),
        ("a.csv", "x,y\n\n \n", "a.csv has no rows"),
        ("a.csv", "x,y\n1,2\n3\n", "a.csv, line 3: the line has 1 cells, but .* comma inside"),
        ("a.csv", b"x,y\n1,2\n\xff\x00,3\n", "near line 3: byte 0xff is not valid UTF-8"),
        (
            "a.csv",
            'x,y\n1,"' + "2\n" * 80_000,
            "cell has more than 131072 characters.*is not closed",
        ),
        ("a.csv.gz", CUT_OFF, "a.csv.gz, after line .*truncated"),
        ("a.jsonl", '{"x": 1}\n{"x": \n', "a.jsonl, line 2, column .: Expecting value"),
        ("a.jsonl", '{"x": 1, "x": 2}\n', "a.jsonl, line 1: the field 'x' occurs twice"),
        ("a.jsonl", "[1, 2]\n", "line 1: a list instead of an object"),
        ("a.jsonl", '{"x": 1, "a": {"b": 1}, "a.b": 2}', "line 1: the field 'a.b' occurs twice"),
        ("a.jsonl", "[" * 100_000, "line 1.*: "),
        ("a.npy", b"\x93NUMPY\x01\x00", "a.npy: the header or the data cannot be read"),
        ("a.npz", b"PK\x03\x04 nothing", "a.npz: the header or the data cannot be read"),
        ("a.parquet", b"PAR1", "a.parquet cannot be read as Parquet"),
        ("a.arrow", b"ARROW1\0\0junk", "a.arrow cannot be read as Arrow"),
        (
            "a.fasta",
            "ACGT\n",
            r"a.fasta: line 1 \('ACGT'\) precedes the first line",
        ),
        ("a.zip", b"junk", "a.zip is neither a folder nor a zip file"),
        ("a.xyz", b"1\0", "its format is unknown.*with --format: csv"),
        (
            "a.parquet",
            b"PAR1" + bytes(20),
            "usually a truncated file.* - download or write it again",
        ),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, text):
    if "parquet" in name or "arrow" in name:
        pytest.importorskip("pyarrow")
    path = write(tmp_path, name, content)
    with pytest.raises(TableError, match=f"(?s){text}"):
        read_table(path)


def test_objects_in_an_npy_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="Python objects, which are not read"):
        read_table(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.zeros((2, 2, 2)))
    with pytest.raises(TableError, match=r"shape \(2, 2, 2\), but a table needs one row per point"):
        read_table(tmp_path / "b.npy")


def test_a_file_that_is_not_there_and_the_one_that_is_meant(tmp_path):
    write(tmp_path, "houses.csv", CSV)
    with pytest.raises(TableError, match=r"hoses.csv does not exist; did you mean .*houses.csv\?"):
        open_table(tmp_path / "hoses.csv")
    with pytest.raises(TableError, match="no column 'citty'; did you mean 'city'"):
        read_table(tmp_path / "houses.csv").column("citty")


def fuzzed(good, rng):
    """Return the bytes of a file with some of them removed, changed or repeated."""
    data = bytearray(good)
    for _ in range(int(rng.integers(1, 6))):
        a, b = np.sort(rng.integers(0, len(data) + 1, 2))
        b = min(b, a + 9)
        match rng.integers(3):
            case 0:
                del data[a:b]
            case 1:
                data[a:b] = rng.integers(0, 256, b - a, dtype=np.uint8).tobytes()
            case _:
                data[a:a] = data[a:b]
    return bytes(data)


def test_fuzzed_files_are_read_or_refused_by_name(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "good.npy", rng.normal(size=(5, 3)))
    np.savez(tmp_path / "good.npz", X=rng.normal(size=(5, 3)), y=np.arange(5))
    samples = {
        "a.csv": CSV.encode(),
        "a.jsonl": b'{"x": 1, "y": "a"}\n{"x": 2.5, "y": "b"}\n',
        "a.json": b'[{"x": 1, "y": {"a": "b"}}, {"x": 2.5, "z": "2024-01-01"}]',
        "a.npy": (tmp_path / "good.npy").read_bytes(),
        "a.npz": (tmp_path / "good.npz").read_bytes(),
        "a.fasta": b">one\nGATT\nACA\n>two\nACGT\n",
    }
    refused = dict.fromkeys(samples, 0)
    for name, good in samples.items():
        for _ in range(150):
            path = write(tmp_path, name, fuzzed(good, rng))
            try:
                read_table(path)
            except TableError as error:
                refused[name] += 1
                assert name in str(error) and len(str(error)) > len(str(path)) + 10
    assert min(refused.values()) > 5, refused


def test_fuzzed_graphs_are_read_or_refused_by_name(tmp_path):
    rng = np.random.default_rng(1)
    parts = {
        "A": b"1, 2\n2, 1\n3, 4\n4, 3\n",
        "graph_indicator": b"1\n1\n2\n2\n",
        "graph_labels": b"1\n-1\n",
        "node_labels": b"1\n2\n1\n2\n",
    }
    refused = 0
    for _ in range(150):
        spoiled = rng.choice(list(parts))
        for part, good in parts.items():
            write(tmp_path, f"DS_{part}.txt", fuzzed(good, rng) if part == spoiled else good)
        try:
            read_table(tmp_path)
        except TableError as error:
            refused += 1
            assert tmp_path.name in str(error) or "graph" in str(error)
    assert refused > 20


def test_graphs_with_several_targets(tmp_path):
    folder = tmp_path / "DS"
    folder.mkdir()
    write(folder, "DS_A.txt", "1, 2\n2, 1\n3, 4\n4, 3\n")
    write(folder, "DS_graph_indicator.txt", "1\n1\n2\n2\n")
    write(folder, "DS_graph_attributes.txt", "1.5, 2\n-1, 3\n")
    found = read_table(folder).columns
    assert found["label1"].tolist() == [1.5, -1] and found["label2"].tolist() == [2, 3]


def test_an_unknown_format(tmp_path):
    path = write(tmp_path, "a.csv", CSV)
    with pytest.raises(TableError, match="unknown format 'xml'; the formats are csv, jsonl"):
        open_table(path, format="xml")


def test_arrays_of_other_types(tmp_path):
    np.savez(tmp_path / "a.npz", wait=np.array([1, 60], "m8[m]"), z=np.array([1j, 2]))
    table = read_table(tmp_path / "a.npz")
    assert table.columns["wait"].tolist() == [60.0, 3600.0]
    assert table.columns["z"].reason == "values of type complex128"
    np.save(tmp_path / "a.npy", np.zeros((0, 2)))
    with pytest.raises(TableError, match=r"a\.npy has no rows"):
        read_table(tmp_path / "a.npy")
    np.savez(tmp_path / "b.npz")
    with pytest.raises(TableError, match=r"b\.npz contains no arrays; save it again with"):
        read_table(tmp_path / "b.npz", format="npy")


def test_unreadable_columns_in_several_blocks(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 2)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    lists = [[1], [2], [3]]
    parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0], "list": lists}), tmp_path / "a.parquet")
    source = open_table(tmp_path / "a.parquet")
    assert source.shape.kinds == {"x": "numbers", "list": "unreadable"}
    # The values have types, so that notations of another file do not change them.
    assert len(source.table(notations={"x": "numbers:comma"}).columns["list"]) == 3
    parquet.write_table(pa.table({"list": lists}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="no column of numbers, text or dates; the types are list"):
        read_table(tmp_path / "a.parquet")


def test_binary_data_that_are_not_parquet(tmp_path):
    (tmp_path / "a.parquet").write_bytes(bytes(range(8)) * 9)
    with pytest.raises(TableError, match=r"cannot be read as Parquet.* the format with --format$"):
        read_table(tmp_path / "a.parquet")


def test_tables_in_memory_are_sources():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": ["1,5", "2,5"], "y": ["a", "b"], "n": [1, 2]})
    source = open_table(frame)
    table = source.table(notations=dict.fromkeys("xynz", "numbers:comma"))
    assert table.columns["x"].tolist() == [1.5, 2.5]
    assert table.columns["y"].tolist() == ["a", "b"]  # not numbers in any notation
    again = open_table(table)
    assert again.table(notations={"x": "numbers:point"}).columns["x"].tolist() == [1.5, 2.5]
    assert again.fingerprint() == source.fingerprint() != open_table(frame[:1]).fingerprint()
