"""mercer explore opens tables as users have them, and states what it decided."""

import base64
import gzip
import re

import numpy as np
import pytest
from wire import unpack

from mercer import Graphs
from mercer.app.explorer import first_look
from mercer.tables import Recipe, Table, TableError

pandas = pytest.importorskip("pandas")
N = 60
rng = np.random.default_rng(0)
WORDS = np.array(["a", "quick", "fox", "reads", "long", "reports", "on", "kernels", "today"])
TEXTS = [" ".join(rng.choice(WORDS, 12)) + f" {i}" for i in range(N)]
X = rng.normal(size=(N, 3)).round(3)
KIND = np.array(["a", "b", "c"] * 20)
DAYS = pandas.date_range("2024-01-01", periods=N)
PASSENGERS = pandas.DataFrame(
    {
        "PassengerId": np.arange(1, N + 1),
        "Survived": rng.integers(0, 2, N),
        "Name": [f"{i}, {i * 7 % N}" for i in range(N)],
        "Sex": rng.choice(["male", "female"], N),
        "Age": np.where(rng.random(N) < 0.2, np.nan, rng.uniform(1, 80, N).round(1)),
        "Embarked": rng.choice(["S", "C", None], N),
    }
)
MIXED = pandas.DataFrame(
    {
        "id": [f"u{i:05d}" for i in range(N)],
        "comment": TEXTS,
        "joined": DAYS,
        "active": rng.random(N) < 0.5,
        "score": np.where(rng.random(N) < 0.1, np.nan, X[:, 0]),
        "constant": 1,
        "Target": KIND,
    }
)
COLOURED = "The points are coloured by {}, which is not used for the embedding"
SET_ASIDE = "comment (free text; use --type comment=text to include it)"
CASES = {  # writes a file; colour, options, features, notes
    "passengers.csv": (
        PASSENGERS,
        (),
        "Sex",
        ["Survived", "Sex", "Age", "Embarked"],
        ["The points are coloured by Sex; --color", "PassengerId (identifier), Name (identifier)."],
    ),
    "mixed.csv": (
        MIXED,
        (),
        "Target",
        ["joined", "active", "score"],
        [COLOURED.format("Target"), f"id (identifier), constant (constant), {SET_ASIDE}."],
    ),
    "mixed.parquet": (MIXED, (), "Target", ["joined", "active", "score"], [SET_ASIDE]),
    "typed.csv": (
        MIXED,
        ("--type", "comment=text", "--color", "score"),
        "score",
        ["comment", "joined", "active", "Target"],
        ["embedding: id (identifier), constant (constant)."],
    ),
    "listed.csv": (MIXED, ("--columns", "score,Target"), "Target", ["score", "Target"], []),
    "iris.csv": (
        pandas.DataFrame(X, columns=["a", "b", "c"]).assign(species=KIND),
        (),
        "species",
        ["a", "b", "c"],
        [COLOURED.format("species")],
    ),
    "texts.csv": (
        pandas.DataFrame({"title": TEXTS, "body": TEXTS[::-1]}),
        (),
        None,
        ["title", "body"],
        [],
    ),
    "only_labels.csv": (
        pandas.DataFrame({"name": [f"n{i}" for i in range(N)], "label": KIND}),
        (),
        "label",
        ["label"],
        ["The points are coloured by label; --color"],
    ),
    "plane.csv": (pandas.DataFrame({"x": X[:, 0], "y": X[:, 1]}), (), None, ["x", "y"], []),
    "constant.csv": (
        pandas.DataFrame({"u": X[:, 0] * 9, "k": 3, "flag": X[:, 1] > 0}),
        (),
        "flag",
        ["u", "flag"],
        ["coloured by flag; --color", "embedding: k (constant)."],
    ),
    "series.csv": (
        pandas.DataFrame({"day": DAYS, "sales": X[:, 0]}),
        (),
        None,
        ["day", "sales"],
        [],
    ),
    "labels.npz": (
        {"X": X, "y": np.arange(N) % 3},
        (),
        "y",
        ["X1", "X2", "X3"],
        [COLOURED.format("y")],
    ),
    "points.npy": (X, (), None, ["x1", "x2", "x3"], []),
}  # fmt: skip


def write(path, content):
    if isinstance(content, dict):
        np.savez(path, **content)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        content.to_parquet(path)
    else:
        content.to_csv(path, index=False)


def scene_of(page):
    """Return the message in an exported page."""
    return unpack(gzip.decompress(base64.b64decode(re.search('id="data">([^<]*)', page)[1])))


@pytest.mark.parametrize("name", CASES)
def test_a_table_opens_at_once(mercer, tmp_path, name):
    content, options, color, features, notes = CASES[name]
    write(tmp_path / name, content)
    done = mercer("explore", name, *options, "--second", "none", "--export", "page.html")
    assert done.code == 0, done
    scene = scene_of((tmp_path / "page.html").read_text("utf-8"))
    assert scene["color"] == color
    page_notes = "\n".join(scene["notes"])
    for note in notes:
        assert note in done.err and note in page_notes
    listed = [line.split("  ")[0] for line in done.err.splitlines() if "not used" not in line]
    assert [n for n in listed if n in {c["name"] for c in scene["columns"]}] == features
    types = {column["name"]: column["type"] for column in scene["columns"]}
    if isinstance(content, pandas.DataFrame):  # columns that are not used are shown, too
        assert set(types) == set(content.columns)
    dates = {"joined", "day"} & set(types)
    assert all(types[name] == "dates" for name in dates)
    assert all(types[name] == "text" for name in {"active", "flag"} & set(types))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X_train": 30, "X_valid": 15, "X_test": 15}, "--arrays X_train"),
        ({"X_train": 30, "y_train": 0, "X_test": 15}, "--arrays X_train,y_train"),
        ({"X_train": 30, "X_test": 30}, "--arrays X_train"),
        ({"trainX": 30, "trainY": 0, "testX": 30}, "--arrays trainX,trainY"),
    ],
)
def test_arrays_of_several_sets_are_not_one_table(mercer, tmp_path, arrays, words):
    shapes = {name: (X[:rows] if rows else np.arange(30) % 2) for name, rows in arrays.items()}
    write(tmp_path / "sets.npz", shapes)
    done = mercer("explore", "sets.npz", "--export", "page.html")
    assert done.code == 1 and all(name in done.err for name in arrays), done
    assert done.err.rstrip().endswith(words)
    done = mercer(
        "explore", "sets.npz", *words.split(), "--second", "none", "--export", "page.html"
    )
    assert done.code == 0, done
    assert scene_of((tmp_path / "page.html").read_text("utf-8"))["rows"] == 30


def images(**columns):
    pixels = {f"pixel{k}": rng.integers(0, 17, N) for k in range(4)}
    return pandas.DataFrame(pixels | columns)


IMAGES = images(height=X[:, 0], day=DAYS, digit=np.arange(N) % 5, scanner=KIND)
NO_PIXELS = "embedding: height (not a pixel), day (not a pixel)"


@pytest.mark.parametrize(
    ("content", "options", "color", "notes"),
    [
        (IMAGES, (), "scanner", [COLOURED.format("scanner"), f"{NO_PIXELS}, digit (not a pixel)."]),
        (IMAGES, ("--color", "digit"), "digit", [f"{NO_PIXELS}, scanner (not a pixel)."]),
        (IMAGES.drop(columns="scanner"), (), "digit", [COLOURED.format("digit"), NO_PIXELS]),
        (images(x1=X[:, 0]), (), None, ["embedding: x1 (not a pixel)."]),
        (images(), (), None, []),
    ],
)
def test_only_pixels_are_used_for_images(mercer, tmp_path, content, options, color, notes):
    write(tmp_path / "images.csv", content)
    options = (*options, "--image-shape", "2x2", "--second", "none", "--export", "page.html")
    done = mercer("explore", "images.csv", *options)
    assert done.code == 0, done
    scene = scene_of((tmp_path / "page.html").read_text("utf-8"))
    assert scene["color"] == color and scene["image"]["shape"] == [2, 2]
    assert [scene["columns"][k]["name"] for k in scene["image"]["columns"]] == [
        f"pixel{k}" for k in range(4)
    ]
    assert all(note in done.err and note in "\n".join(scene["notes"]) for note in notes)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (IMAGES, ("--columns", "pixel0,pixel1,pixel2,pixel3,height")),
        (IMAGES.rename(columns={"pixel3": "corner"}), ()),
        (IMAGES.assign(**{f"x{k}": X[:, 0] + k for k in range(4)}), ()),
    ],
)
def test_pixels_that_are_not_clear(mercer, tmp_path, content, options):
    write(tmp_path / "images.csv", content)
    done = mercer("explore", "images.csv", *options, "--image-shape", "2x2", "--export", "x.html")
    assert done.code == 1 and "images of 2x2 have 4 pixels, but points have" in done.err


def test_strict_decides_nothing(mercer, tmp_path):
    write(tmp_path / "iris.csv", CASES["iris.csv"][0])
    done = mercer("explore", "iris.csv", "--strict", "--export", "page.html")
    assert done.code == 1 and "'species' contains categories" in done.err


def test_points_other_than_vectors():
    texts = {"text": np.array(TEXTS, dtype=object), "label": KIND.astype(object)}
    table = Table(texts)
    look = first_look(table, Recipe(points="texts", columns=("text",)))
    assert look.color == "label" and look.recipe.transform(table) == TEXTS
    look = first_look(table, Recipe(points="texts", ignore=("label",)))
    assert look.color == "label" and "coloured by label" in look.notes[0]
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]])
    table = Table({"graph": graphs, "class": np.array([0.0, 1.0, 1.0])})
    look = first_look(table, Recipe(points="graphs"))
    assert look.color == "class" and look.notes[0].startswith("The points are coloured by class")
    with pytest.raises(TableError, match="no columns to use as features"):
        first_look(Table({"name": np.array([f"n{i}" for i in range(60)], object)}), Recipe())
