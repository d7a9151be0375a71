"""Layout of text files: spaces, comments, lines without values, archives and pages."""

import numpy as np
import pytest

from mercer.tables import open_table


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
        monkeypatch.setattr("mercer.tables._text_files.pyarrow_csv", lambda: None)
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
