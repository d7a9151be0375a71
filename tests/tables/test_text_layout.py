"""Layout of text files: spaces, comments, lines without values, archives and pages."""


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
