"""The format of a file is detected by its first bytes if its name does not show it."""

import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pytest

from mercer.tables import TableError, open_table, read_table

CSV = "x,y,city\n1,2.5,Bonn\n2,,Ulm\n3,-1e3,Bonn\n"
ROWS = [
    {"x": 1, "y": 2.5, "city": "Bonn"},
    {"x": 2, "city": "Ulm"},
    {"x": 3, "y": -1e3, "city": "Bonn"},
]


def check(table):
    np.testing.assert_array_equal(table.columns["x"], [1, 2, 3])
    np.testing.assert_array_equal(table.columns["y"], [2.5, np.nan, -1000])
    assert table.columns["city"].tolist() == ["Bonn", "Ulm", "Bonn"]


def contents():
    """Return the bytes of the same table in every format."""
    yield "csv", CSV.encode()
    yield "csv with BOM", b"\xef\xbb\xbf" + CSV.encode()
    yield "csv.gz", gzip.compress(CSV.encode())
    yield "json", json.dumps(ROWS, indent=1).encode()
    yield "json.gz", gzip.compress(json.dumps(ROWS).encode())
    yield "jsonl", "\n".join(map(json.dumps, ROWS)).encode()
    yield "utf-16", CSV.replace(",", "\t").encode("utf-16")
    np.savez(file := io.BytesIO(), x=[1, 2, 3], y=[2.5, np.nan, -1e3], city=["Bonn", "Ulm", "Bonn"])
    yield "npz", file.getvalue()
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["x", "y", "city"])
    for row in ROWS:
        book.active.append([row.get(name) for name in ("x", "y", "city")])
    book.save(file := io.BytesIO())
    yield "xlsx", file.getvalue()
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(
        ROWS, pa.schema([("x", "int64"), ("y", "float64"), ("city", "string")])
    )
    pq.write_table(table, file := io.BytesIO())
    yield "parquet", file.getvalue()
    for kind, new in (("arrow", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with new(file := io.BytesIO(), table.schema) as writer:
            writer.write_table(table)
        yield kind, file.getvalue()


def test_standard_input_and_names_without_extension(tmp_path, monkeypatch):
    for kind, content in contents():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        source = open_table("-")
        assert source.name == "standard input"
        check(source.table())
        for name in ("table", "table.2024", "table.csv.part"):
            (tmp_path / name).write_bytes(content)
            check(read_table(tmp_path / name)), kind
    for name, content, column in (
        ("a", b">one\nGATT\n>two\nACA\n", "sequence"),
        ("b", b"\x93NUMPY", None),
    ):
        (tmp_path / name).write_bytes(content)
        if column:
            assert len(read_table(tmp_path / name).columns[column]) == 2
        else:
            with pytest.raises(TableError, match="the header or the data cannot be read"):
                read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.xls", b"", r"save the sheet as \.xlsx or CSV, or pass pandas\.read_excel"),
        ("a.ods", b"", r"save the sheet as \.xlsx or CSV"),
        ("a.dta", b"", r"pandas\.read_stata, and pass the DataFrame"),
        ("a.sqlite", b"", r"pandas\.read_sql,"),
        ("a.db", b"", r"pandas\.read_sql,"),
        ("a.sas7bdat", b"", r"pandas\.read_sas,"),
        ("a.sav", b"", r"pandas\.read_spss,"),  # codespell:ignore sav
        ("a.h5", b"", r"pandas\.read_hdf,"),
        ("a.pkl", b"", r"pandas\.read_pickle,"),
        ("a.rds", b"", r"write\.csv"),
        ("a.graphml", b"<?xml version='1.0'?>", r"Graphs\.from_graphml\(paths\)"),
        ("a", b"SQLite format 3\0", r"a: \.sqlite files are not supported; .*pandas\.read_sql"),
        ("a", b"\xd0\xcf\x11\xe0", r"a: \.xls files are not supported"),
        ("a", b"<!DOCTYPE html>", r"pandas\.read_html"),
        ("a", b"%PDF-1.7", "copy the table to a spreadsheet"),
        ("a.foo", b"\0\1\2\3", r"a\.foo: the file is not a text file, .*--format: csv, jsonl"),
    ],
)
def test_other_formats(tmp_path, name, content, advice):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=advice):
        read_table(tmp_path / name)


def test_zip_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "book", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<a/>")
    with pytest.raises(TableError, match=r"\.ods files are not supported"):
        read_table(tmp_path / "book")
    (tmp_path / "cut").write_bytes(b"PK\x03\x04")
    pytest.importorskip("openpyxl")
    with pytest.raises(TableError, match="cannot be read as an Excel workbook"):
        read_table(tmp_path / "cut")


def test_a_truncated_parquet_file(tmp_path):
    """The message does not recommend another format, because the first bytes are right."""
    pytest.importorskip("pyarrow")
    whole = dict(contents())["parquet"]
    (tmp_path / "a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="usually a truncated file") as found:
        read_table(tmp_path / "a.parquet")
    assert "--format" not in str(found.value)
    (tmp_path / "a.parquet").write_text(CSV)
    with pytest.raises(TableError, match=r"a file in another format.* --format csv"):
        read_table(tmp_path / "a.parquet")


def test_a_damaged_compressed_file_without_extension(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(CSV.encode() * 50)[:40])
    with pytest.raises(TableError, match="usually a truncated compressed file"):
        read_table(tmp_path / "a")
