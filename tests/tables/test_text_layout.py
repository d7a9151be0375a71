"""Layout of text files: spaces, comments, lines without values, archives and pages."""

import io
import zipfile

import numpy as np
import pytest

from mercer.tables import TableError, open_table


@pytest.fixture
def make(tmp_path):
    """Return a function that writes content to a file and opens it."""

    def make(content, name="a.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return open_table(path, **options)

    return make


def columns(source):
    return {name: column.tolist() for name, column in source.table().columns.items()}


# ---------------------------------------------------------------------- spaces


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  x   label\n1.5       a\n 20       b\n", {"x": [1.5, 20], "label": ["a", "b"]}),
        (
            "city   name\nBonn   Anna\nUlm    Otto\n",
            {"city": ["Bonn", "Ulm"], "name": ["Anna", "Otto"]},
        ),
        ("x label\n1.5 a\n20 b\n", {"x": [1.5, 20], "label": ["a", "b"]}),
        ("x y label\n1 2 a\n20 3 b\n", {"x": [1, 20], "y": [2, 3], "label": ["a", "b"]}),
        (
            '"x" "label"\n"1" 1 "New York"\n"2" 2 "b"\n',
            {"column1": [1, 2], "x": [1, 2], "label": ["New York", "b"]},
        ),
        (
            '"x" "label"\n"car A" 1 "a"\n"car B" 2 "b"\n',
            {"column1": ["car A", "car B"], "x": [1, 2], "label": ["a", "b"]},
        ),
        (
            "mpg cyl\nMazda 21.0 6\nDatsun 22.8 4\n",
            {"column1": ["Mazda", "Datsun"], "mpg": [21, 22.8], "cyl": [6, 4]},
        ),
        (
            "   area  city\n0  12.5  Bonn\n1   8.0  Ulm\n",
            {"column1": [0, 1], "area": [12.5, 8], "city": ["Bonn", "Ulm"]},
        ),
    ],
)
def test_cells_separated_by_spaces(make, text, expected):
    source = make(text, "a.txt")
    assert columns(source) == expected
    assert "cells are separated by spaces (detected)" in source.notes[0]


@pytest.mark.parametrize(
    "lines",
    [
        ["full name", "Anna Smith", "Otto Jones"],
        ["full name", "Anna Maria Smith", "Otto Emil Jones"],
        ["review", "very good", "not good"],
        ["the review", "a good film", "bad"],
        ["product name", "Phone 12", "Tablet 7"],
        ["home address", "12 Main Street", "7 Elm Road"],
        ["one name"],
    ],
)
def test_a_column_of_texts_is_not_split_at_spaces(make, lines):
    source = make("\n".join([*lines, "x"] if len(lines) == 1 else lines))
    assert columns(source) == {lines[0]: lines[1:] or ["x"]}


# ---------------------------------------------------------------------- lines that are skipped


COMMENTS = "# version 2\n# units: m2\nx,label\n1,a\n# measured, again\n#,\n2,b\n#end\n#7,c\n"


@pytest.mark.parametrize("use_arrow", [True, False])
def test_comments_between_rows(make, monkeypatch, use_arrow):
    if not use_arrow:
        monkeypatch.setattr("mercer.tables._row_blocks.pyarrow_csv", lambda: None)
    source = make(COMMENTS)
    assert columns(source) == {"x": ["1", "#", "2", "#7"], "label": ["a", None, "b", "c"]}
    assert source.notes == ["comments that start with # are skipped: lines 5, 8"]
    assert source.table().lines.tolist() == [4, 6, 7, 9]


def test_rows_that_start_with_a_number_sign_without_comments_above_the_header(make):
    source = make("tag,x\n# a,1\n#b,2\n")
    assert columns(source) == {"tag": ["# a", "#b"], "x": [1, 2]}
    assert not source.notes
    source = make("#,name\n1,a\n# 2,b\n")
    assert columns(source) == {"#": ["1", "# 2"], "name": ["a", "b"]}


def test_comments_between_rows_that_are_separated_by_spaces(make):
    source = make("# x y\n1 2\n# second part\n3 4\n5 6\n", "a.txt")
    assert columns(source) == {"x": [1, 3, 5], "y": [2, 4, 6]}
    assert source.notes[-1] == "comments that start with # are skipped: line 3"


def test_a_comment_inside_quotes_is_part_of_a_cell(make):
    source = make('# version 2\nx,text\n1,"one\n# two"\n2,b\n')
    assert columns(source) == {"x": [1, 2], "text": ["one\n# two", "b"]}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("empty", [",,", " , ,", '"",""," "', ",,,,"])
def test_lines_that_contain_only_delimiters(make, empty, end):
    lines = [empty, "x,y,label", "1,2,a", empty, "2,3,b", "", "3,,", *[empty] * 6]
    for text in (end.join(lines), end.join(lines) + end):
        source = make(text)
        assert columns(source)["x"] == [1, 2, 3]
        assert columns(source)["label"] == ["a", "b", None]
        assert source.notes == [
            "lines that contain only delimiters are skipped: lines 4, 8, 9, 10, 11 and 2 more"
        ]
        assert source.shape.rows == 3
        assert source.table().lines.tolist() == [3, 5, 7]


def test_lines_of_delimiters_in_large_files(make):
    rows = [f"{i},{i % 3}" for i in range(3000)]
    source = make("\n".join(["x,y", *rows, ",", *rows, *[","] * 3000]))
    assert source.shape.rows == 6000
    assert source.table().columns["x"].tolist() == [*range(3000), *range(3000)]
    assert source.notes[-1].endswith("lines 3002, 6003, 6004, 6005, 6006 and 2996 more")


def test_empty_cells_in_one_column_are_missing_values(make):
    assert np.isnan(columns(make('x\n1\n""\n2\n'))["x"]).tolist() == [False, True, False]


# ---------------------------------------------------------------------- archives


def archive(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name, text)
    return content.getvalue()


CSV, TSV = "x,label\n1,a\n2,b\n", "x\tlabel\n1\ta\n2\tb\n"


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("a.zip", {"houses.csv": CSV}),
        ("a.csv.zip", {"data/": "", "data/houses.csv": CSV, "__MACOSX/data/._houses.csv": "\0"}),
        ("a.zip", {"houses.csv": CSV, "LICENSE": "free", "notes.md": "# Notes"}),
        ("a.zip", {"houses": CSV}),
        ("a", {"houses.tsv": TSV}),
        ("a.zip", {"houses.json": '[{"x": 1, "label": "a"}, {"x": 2, "label": "b"}]'}),
    ],
)
def test_an_archive_of_one_table(make, name, files):
    source = make(archive(files), name)
    assert columns(source) == {"x": [1, 2], "label": ["a", "b"]}
    assert source.title == name


def test_an_archive_with_a_format(make):
    source = make(archive({"houses.dump": CSV}), "a.zip", format="csv")
    assert columns(source) == {"x": [1, 2], "label": ["a", "b"]}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"train.csv": CSV, "test.csv": CSV, "readme.md": ""},
            r"a\.zip contains 2 tables: train\.csv, test\.csv - only an archive of one table can "
            r"be read - extract the archive, and use one of these files",
        ),
        (
            {f"{i}.csv": CSV for i in range(13)},
            r"contains 13 tables: 0\.csv.* 9\.csv and 3 more - ",
        ),
        ({"a.png": "", "b.png": ""}, r"a\.zip contains no file with a known extension: a\.png, b"),
        ({}, r"a\.zip is an empty archive - download or create it again"),
    ],
)
def test_archives_without_a_single_table(make, files, message):
    with pytest.raises(TableError, match=message):
        make(archive(files), "a.zip")


def test_a_damaged_archive(make):
    content = bytearray(archive({"houses.csv": CSV * 100}))
    content[45] ^= 255
    message = r"a\.zip, houses\.csv: .* - usually a truncated or damaged archive - download"
    with pytest.raises(TableError, match=message):
        make(bytes(content), "a.zip")


def test_an_archive_with_a_password(make):
    content = bytearray(archive({"houses.csv": CSV}))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + offset] |= 1  # the flag of encrypted files
    with pytest.raises(TableError, match=r"a\.zip has a password - extract .* houses\.csv"):
        make(bytes(content), "a.zip")


def test_an_archive_of_graphs(make):
    files = {
        "G/G_A.txt": "1, 2\n2, 1\n",
        "G/G_graph_indicator.txt": "1\n1\n",
        "G/G_graph_labels.txt": "1\n",
    }
    assert make(archive(files), "G.zip").table().kinds == {"graph": "graphs", "label": "numbers"}


# ---------------------------------------------------------------------- HTML


@pytest.mark.parametrize(
    "name", ["a.csv", "a", "a.jsonl", "a.json", "a.parquet", "a.xlsx", "a.txt"]
)
@pytest.mark.parametrize(
    "start",
    ["<!DOCTYPE html>", "\n <!doctype HTML PUBLIC>", "<html>", "<!-- 1 -->\n<html lang='de'>"],
)
def test_a_page_instead_of_a_table(make, name, start):
    message = (
        r"is an HTML page instead of a table - usually the login or error page of a download - "
        r"open it in a browser to see its text, and download the file again"
    )
    with pytest.raises(TableError, match=message):
        make(f"{start}<head><title>404</title></head>\n<body></body></html>", name)


def test_text_with_tags_is_not_a_page(make):
    source = make("text\n<html>\n<b>\n")
    assert columns(source) == {"text": ["<html>", "<b>"]}


# ---------------------------------------------------------------------- titles


@pytest.mark.parametrize("rows", [["w;w", "w;w"], ["a;b", "a;c"], ["1;b", "2;c"]])
def test_a_column_of_texts_with_delimiters_has_no_title(make, rows):
    source = make("\n".join(["words", *rows]))
    assert columns(source) == {"words": rows}
    assert not source.notes


# ---------------------------------------------------------------------- several blocks of lines


@pytest.fixture(params=[2, 1000])
def small_blocks(request, monkeypatch):
    """Let files be read in pieces of 7 bytes, inspected in blocks of two lines, and converted in
    blocks of two or many rows."""
    monkeypatch.setattr("mercer.tables._text_streams._CHUNK_BYTES", 7)
    for name in ("_text_files._FIRST_SCAN_ROWS", "_text_files._SCAN_ROWS"):
        monkeypatch.setattr(f"mercer.tables.{name}", 2)
    monkeypatch.setattr("mercer.tables._text_files._MIN_SCAN_ROWS", 1)
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", request.param)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ('x,y\n1,a\n2,"b\nc\nd"\n3,e', {}, {"x": [1, 2, 3], "y": ["a", "b\nc\nd", "e"]}),
        ("x\n1\n\n2\n3\n", {}, {"x": [1, 2, 3]}),
        ('x\n"a"\n\n"b\nc"\n', {}, {"x": ["a", "b\nc"]}),
        (
            "x y\n1 2\n3 4\n5 a\n6 7\n",
            {"delimiter": "space"},
            {"x": [1, 3, 5, 6], "y": ["2", "4", "a", "7"]},
        ),
        (
            "x y\n1 2\n3 4\n\n5 6\n",
            {"delimiter": "space"},
            {"x": [1, 3, 5], "y": [2, 4, 6]},
        ),
        (
            "x,y\n1,2\n3,4\n# a\n# b\n# c\n5,6\n",
            {"comment": "#"},
            {"x": [1, 3, 5], "y": [2, 4, 6]},
        ),
        ("x,y\n,1\n,2\n,3\n7,4\n", {}, {"x": [None, None, None, 7], "y": [1, 2, 3, 4]}),
        ("x,y\n,1\n,2\n,3\n,4\n", {}, {"x": [None] * 4, "y": [1, 2, 3, 4]}),
        (
            "x,y\n1,2\n3,4\n9007199254740993,6\n",
            {},
            {"x": ["1", "3", "9007199254740993"], "y": [2, 4, 6]},
        ),
        (
            "x,y\n1,2\n3,4\n5,6\n7,8\na,b\n",
            {},
            {"x": ["1", "3", "5", "7", "a"], "y": ["2", "4", "6", "8", "b"]},
        ),
        (
            'x;y\n7;1.500\n7;2.500\n7;3.500\n7;4.500\n"0,5";5.500\n',
            {},
            {"x": [7, 7, 7, 7, 0.5], "y": [1500, 2500, 3500, 4500, 5500]},
        ),
    ],
)
def test_files_of_several_blocks(make, text, options, expected):
    found = columns(make(text, **options))
    assert {
        name: [None if v != v else v for v in values] for name, values in found.items()
    } == expected


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("lines", ["5 6\n7 8 9\n", "5 6 7\n7 8 9\n"])
def test_rows_of_another_width_in_a_later_block(make, lines):
    with pytest.raises(TableError, match=r"line \d: the line has 3 cells, but there are 2 columns"):
        make(f"x y\n1 2\n3 4\n{lines}", delimiter="space").table()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("end", ['a"b,"c\nd"e"\n', '1,"c\nd\n'])
def test_quotes_in_the_last_lines_do_not_join_them_silently(make, end):
    with pytest.raises(TableError, match="line 32: a quote opens here but is not closed"):
        make("x,y\n" + "1,a\n" * 30 + end).table()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("small_blocks", [2], indirect=True)
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "1,2024-01-01\n" * 6,
            "1,2024-01-01\n" * 5 + "1,x\n",
            "line 7, column 'y': 'x' is not a date",
        ),
        ("1,2\n" * 6, "1,2\n" * 5 + "x,2\n", "line 7, column 'x': 'x' is not a number"),
        ('"1,5",2\n' * 6, '"1,5",2\n' * 5 + "x,2\n", "line 7, column 'x': 'x' is not a number"),
        ("1,2\n" * 6, "1,2\n" * 5 + "1\n", "line 7: the line has 1 cells, but there are 2 columns"),
    ],
)
def test_a_file_that_changes_after_its_inspection(make, tmp_path, before, after, message):
    source = make(f"x,y\n{before}")
    assert source.shape.rows == 6
    (tmp_path / "a.csv").write_text(f"x,y\n{after}")
    with pytest.raises(TableError, match=message):
        source.table()


@pytest.mark.parametrize(
    "text",
    [
        "# c\n1,{}\n",
        "x y\n1 {}\n2 1\n",
        "x,y\n1,{}\n",
    ],
    ids=["after a comment", "spaces", "commas"],
)
def test_cells_of_many_characters(make, text):
    with pytest.raises(TableError, match="line 2: a cell has more than 131072 characters"):
        make(text.format("a" * 200_000)).table()


def test_a_comment_with_a_given_delimiter_or_without_a_header(make):
    assert columns(make("# c\nx;y\n1;2\n", delimiter=";")) == {"x": [1], "y": [2]}
    assert columns(make("1,2,\n3,4,\n", header=False)) == {"column1": [1, 3], "column2": [2, 4]}
