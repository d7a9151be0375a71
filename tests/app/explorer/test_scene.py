"""Scenes for points of every kind, and errors for points that cannot be shown."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Graphs, KernelPCA, ProbabilisticPCA
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding, embedding_of
from mercer.app.explorer._neighbour_columns import point_neighbours
from mercer.app.explorer._scene import Scene
from mercer.datasets import circles
from mercer.kernels import RBF, Select, Spectrum
from mercer.tables import Recipe, Table

X, y = circles(60, random_state=0)
MODEL = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)


def test_a_model_is_explored_by_itself():
    explorer = MODEL.explore(color=y)
    assert repr(explorer) == "<Explorer: 60 points, kernel PCA and the data>"
    assert list(explorer.scene.table.columns) == ["x1", "x2", "color"]
    assert explorer.selection.tolist() == []
    assert explorer.filtered.tolist() == list(range(60))
    other = ProbabilisticPCA(1).fit(X)
    with pytest.raises(
        ValueError, match="does not store the points it was fitted to; pass the poi"
    ):
        other.explore()
    message = other.explore(X).scene.to_message(live=False)
    assert message["panes"][0]["axes"][1] == "none (the embedding has only one dimension)"
    assert message["panes"][0]["y"].tolist() == [0.0] * 60


def test_kinds_of_points():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    scene = (
        KernelPCA(2, kernel="rbf")
        .fit(frame)
        .explore(frame, color=pandas.Series(y, name="ring"))
        .scene
    )
    assert list(scene.table.columns) == ["a", "b", "ring"] and scene.color == "ring"
    assert not scene.can_project
    words = ["GATTACA", "GATTACC", "TTTT", "TTTTT", "CCGG", "CCGGA"]
    scene = (
        KernelPCA(2, kernel="Normalized(Spectrum(2))").fit(words).explore(words, second="mds").scene
    )
    assert (
        len(scene.embeddings) == 2
        and scene.embeddings[1].title == "metric MDS"
        and scene.table.columns["text"].tolist() == words
    )
    answer = scene.embeddings[0].preimages(scene.embeddings[0].coordinates[2:3])[0]
    assert scene.record(answer.points)[0][0] == "text"
    found = scene.column("trustworthiness in kernel PCA")["data"]
    assert len(found) == 6 and np.isfinite(found).all()
    graphs = Graphs.from_edges(
        [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)], [(0, 1), (2, 3)]]
    )
    scene = KernelPCA(2, kernel="WeisfeilerLehman(2)").fit(graphs).explore(graphs).scene
    assert len(scene.to_message(live=False)["columns"][0]["values"]) >= 1
    sparse = sp.csr_array(np.abs(X))
    scene = KernelPCA(2, kernel="linear").fit(sparse).explore(sparse).scene
    np.testing.assert_allclose(scene.table.columns["norm"], np.linalg.norm(X, axis=1))


def test_values_that_are_missing():
    gaps = np.column_stack([X, X[:, 0] * X[:, 1]])
    gaps[3, 0] = np.nan
    scene = ProbabilisticPCA(2).fit(gaps).explore(gaps).scene  # which can take them
    assert np.isfinite(scene.embeddings[0].coordinates).all()
    assert np.isnan(scene.table.columns["x1"][3])
    with pytest.raises(ValueError, match="NaN"):
        MODEL.explore(np.where(np.arange(60)[:, None] == 3, np.nan, X))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"color": "ring"}, "the table has no column 'ring'; its columns are 'x1', 'x2'"),
        ({"color": y[:5]}, "a column has 5 values, but there are 60 points"),
        ({"color": X}, r"a column needs one value per point, but its shape is \(60, 2\)"),
        (
            {"second": "ppca"},
            "second embedding 'ppca' is not available for these points; the options are none, data",
        ),
        ({"image_shape": (8, 8)}, "images of 8x8 have 64 pixels, but points have 2 columns"),
    ],
    ids=["no column", "short", "flat", "second", "pixels"],
)
def test_what_cannot_be_shown(options, words):
    with pytest.raises(ValueError, match=words):
        MODEL.explore(X, **options)


@pytest.mark.parametrize("points", [np.zeros((1, 2)), np.ones((20, 2))], ids=["one", "equal"])
def test_points_without_components(points):
    model = KernelPCA(2, kernel="rbf").fit(points)
    with pytest.raises(ValueError, match=f"considers all {len(points)} points equal"):
        model.explore(points)


def test_a_page_says_what_it_leaves_out():
    scene = MODEL.explore(X).scene
    notes = scene.to_message(live=False)["notes"]
    assert "This page contains no model. Not available: pre-images" in notes[-1]
    assert "trustworthiness in kernel PCA" in notes[-1]
    scene.column("trustworthiness in kernel PCA")  # asked for once, it is on the page
    message = scene.to_message(live=False)
    assert "trustworthiness in kernel PCA" not in message["notes"][-1]
    assert message["columns"][-1]["name"] == "trustworthiness in kernel PCA"


def test_large_data_travel_in_columns_that_are_asked_for(monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._scene._MAX_INITIAL_VALUES", 100)
    columns = MODEL.explore(X).scene.to_message(live=True)["columns"]
    assert ["data" in one for one in columns[:2]] == [True, True]
    monkeypatch.setattr("mercer.app.explorer._scene._MAX_INITIAL_VALUES", 60)
    columns = MODEL.explore(X).scene.to_message(live=True)["columns"]
    assert ["data" in one for one in columns[:2]] == [True, False]
    assert all(
        "data" in one for one in MODEL.explore(X).scene.to_message(live=False)["columns"][:2]
    )


def test_the_same_scene_is_the_same_page():
    assert MODEL.explore(X, color=y).html() == MODEL.explore(X, color=y).html()


def test_columns_of_dates_and_booleans():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-03-01", periods=60, tz="Europe/Berlin")
    flags = [True, None, False] * 20
    table = {"day": days, "flag": flags, "date": [d.date() for d in days], "even": y > 0}
    scene = MODEL.explore(X, table=table).scene
    kinds = {name: scene.table.columns[name].dtype.kind for name in table}
    assert kinds == {"day": "M", "flag": "f", "date": "M", "even": "f"}
    assert scene.column("day")["type"] == scene.column("date")["type"] == "dates"
    for name in ("flag", "even"):
        assert scene.column(name)["values"][-2:] == ["false", "true"]
    assert scene.column("flag")["missing"] is not None
    again = MODEL.explore(X, table=scene.table).scene
    assert again.table.booleans == ("flag", "even")
    new = replace(scene.table.take(slice(0, 2)), booleans=("flag", "even"))
    more = scene.projected(new)
    assert more.column("day")["type"] == "dates" and more.table.booleans == ("flag", "even")
    texts = dict(new.columns) | {"day": np.array(["now", None], dtype=object)}
    del texts["date"]
    more = scene.projected(replace(new, columns=texts))
    assert more.table.columns["day"][-3:].tolist() == ["2024-04-28T22:00", "now", None]
    assert np.isnat(more.table.columns["date"][-2:]).all()


def test_preimages_of_mixed_tables_have_one_text_per_column():
    city = np.array(["Bonn", "Köln", "Ulm"], dtype=object)[np.arange(60) % 3]
    table = Table({"x": X[:, 0], "city": city, "member": y * 1.0}, booleans=("member",))
    recipe = Recipe(standardize=True, onehot="all").fit(table)
    points = recipe.transform(table)
    embedding = embedding_of(ProbabilisticPCA(2).fit(points), points)
    scene = Scene("mixed", table, points, (embedding,), recipe)
    names, texts = zip(*scene.record(points[1:2]), strict=True)
    assert names == ("x", "city", "member") and texts[1] == "Köln (1.00)"
    assert texts[2] == f"{'true' if y[1] else 'false'} ({y[1]:.2f})"
    stored = scene.to_message(live=False, preimages=3)["panes"][0]["preimages"]
    positions, _ = embedding.grid(3, 0.0)
    expected = scene.record(embedding.preimages(positions[4:5])[0].points)
    assert len(stored["records"]) == 9 and stored["records"][4] == expected


def test_duplicates_outliers_and_wrong_labels_have_columns():
    X, y = circles(200, noise=0.03, random_state=0)
    X[[150, 151, 152]] = X[[7, 8, 8]]  # copies
    X[199] = [3.0, 3.0]  # an outlier
    kind = np.where(y == 0, "outer", "inner").astype(object)
    kind[[150, 151, 152]] = kind[[7, 8, 8]]
    wrong = [20, 40, 60, 80]
    kind[wrong] = np.where(kind[wrong] == "inner", "outer", "inner")
    kind[100] = None
    model = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)
    scene = model.explore(X, table={"kind": kind}, color="kind").scene
    nearest = scene.column("distance to the nearest point")["data"]
    assert np.flatnonzero(nearest == 0.0).tolist() == [7, 8, 150, 151, 152]
    assert np.argmax(nearest) == 199
    K = model.kernel_(X)
    squared = np.maximum(0.0, K.diagonal()[:, None] - 2 * K + K.diagonal())
    np.fill_diagonal(squared, np.inf)
    np.testing.assert_allclose(nearest, np.sqrt(squared.min(axis=1)), atol=1e-6)
    different = scene.column("neighbours with another kind")["data"]
    assert set(wrong) <= set(np.flatnonzero(different >= 0.9))
    assert np.isnan(different[100])
    order = np.argsort(squared, axis=1, kind="stable")[:, :10]
    known = np.array([[kind[j] for j in row if kind[j] is not None] for row in order[[20, 3]]])
    expected = [np.mean(row != kind[i]) for i, row in zip([20, 3], known, strict=True)]
    np.testing.assert_allclose(different[[20, 3]], expected, rtol=1e-6)


def test_neighbour_columns_of_classes_that_the_embedding_does_not_use():
    rng = np.random.default_rng(0)
    table = Table(
        {
            "kind": np.array(["a", "b"], dtype=object)[np.arange(60) % 2],
            "length": rng.normal(size=60),
            "grade": np.arange(60.0) % 3,
            **{f"part {j}": np.arange(60.0) % 21 - j for j in range(2)},  # too many classes
            **{f"half {j}": np.arange(60.0) % 2 for j in range(5)},
        }
    )
    recipe = Recipe(columns=("kind", "length")).fit(table)
    points = recipe.transform(table)
    embedding = embedding_of(KernelPCA(2, kernel="rbf", gamma=1.0).fit(points), points)
    scene = Scene("plants", table, points, (embedding,), recipe)
    start = "neighbours with another "
    found = [name.removeprefix(start) for name in scene.derived if name.startswith(start)]
    assert found == ["grade", "half 0", "half 1", "half 2"]
    scene = replace(scene, color="kind", version="coloured")
    found = [name.removeprefix(start) for name in scene.derived if name.startswith(start)]
    assert found == ["kind", "grade", "half 0", "half 1"]
    neighbours = point_neighbours(embedding.model.kernel_, points)
    for name in ("kind", "grade"):  # each column has its own labels
        labels = table.columns[name]
        expected = (labels[neighbours.rows] != labels[:, None]).mean(axis=1)
        np.testing.assert_allclose(scene.column(f"{start}{name}")["data"], expected, rtol=1e-6)


def test_columns_of_neighbours_that_are_not_offered(monkeypatch):
    nearest, labels = "distance to the nearest point", "neighbours with another {}"
    grade, value = np.arange(60.0) % 3, X[:, 0]
    scenes = {name: MODEL.explore(color=name, table={"grade": grade, "value": value}).scene
              for name in ("grade", "value")}  # fmt: skip
    assert {nearest, labels.format("grade")} <= set(scenes["grade"].derived)
    assert nearest in scenes["value"].derived  # a column of numbers has no classes
    assert labels.format("value") not in scenes["value"].derived
    assert labels.format("grade") in scenes["value"].derived  # classes without being the colour
    words = list("abcdef")
    embedding = Embedding("plane", IdentityEmbedding(), X[:6])
    scene = Scene("words", Table({"w": np.array(words, object)}), words, (embedding,))
    assert nearest not in scene.derived  # without a kernel, words have no distances
    monkeypatch.setattr("mercer.app.explorer._scene.MAX_NEIGHBOUR_POINTS", 59)
    assert nearest not in replace(scenes["grade"], version="limited").derived


def test_tables_of_several_types_as_points():
    pandas = pytest.importorskip("pandas")
    words = ["GATTACA", "GATTACC", "TTTT", "TTTTT", "CCGG", "CCGGA"]
    frame = pandas.DataFrame({"word": words, "x": np.arange(6.0)})
    kernel = Select(Spectrum(2), "word") + Select(RBF(2.0), ["x"])
    scene = KernelPCA(2, kernel=kernel).fit(frame).explore(frame, second=None).scene
    assert list(scene.table.columns) == ["word", "x"]
    assert scene.record(frame[1:2]) == [("word", "GATTACC"), ("x", "1")]


def test_columns_of_graphs_and_of_other_objects():
    graphs = Graphs.from_edges([[(0, 1)]] * 60)
    table = {"graph": graphs, "record": [{"a": i} for i in range(60)], "missing": [None] * 60}
    scene = MODEL.explore(X, table=table).scene
    assert scene.table.kinds["graph"] == "graphs"
    assert scene.column("graph")["values"] == ["2 nodes, 1 edges"]
    assert scene.column("record")["values"][:2] == ["{'a': 0}", "{'a': 10}"]
    with pytest.raises(ValueError, match="one value per point, but it contains sequences; convert"):
        MODEL.explore(X, table={"list": [list(range(i)) for i in range(60)]})


def test_saved_drawings_are_limited(monkeypatch):
    graphs = Graphs.from_edges([[(0, 1), (1, j)] for j in range(2, 42)])
    scene = KernelPCA(2, kernel="WeisfeilerLehman(1)").fit(graphs).explore(graphs).scene
    note = "This page does not contain the drawings of the points, to save space."
    for limit, count in ((40, 40), (20, 0), (9, 0)):
        monkeypatch.setattr("mercer.app.explorer._scene._MAX_SAVED_DRAWINGS", limit)
        message = scene.to_message(live=False)
        assert len(message["drawings"]["items"]) == count
        assert (note in message["notes"]) == (count == 0)
    monkeypatch.setattr("mercer.app.explorer._scene._MAX_SAVED_DRAWINGS", 20)
    monkeypatch.setattr("mercer.app.explorer._scene._MAX_DRAWING_FRACTION", 1.0)
    assert len(scene.to_message(live=False)["drawings"]["items"]) == 40


def test_preimages_of_images_and_drawings_of_series(monkeypatch):
    rng = np.random.default_rng(0)
    table = Table({f"pixel{j}": column for j, column in enumerate(rng.uniform(size=(4, 30)))})
    recipe = Recipe(standardize=False).fit(table)
    points = recipe.transform(table)
    embedding = embedding_of(ProbabilisticPCA(2).fit(points), points)
    scene = Scene("images", table, points, (embedding,), recipe, image=(2, 2))
    np.testing.assert_allclose(scene.pixels(points[3:4]), points[3], rtol=1e-6)
    assert replace(scene, image=None).pixels(points[3:4]) is None
    time = np.linspace(0, 1, 40)
    curves = np.sin(6 * time + rng.uniform(size=(30, 1))) + rng.normal(size=(30, 40)) / 100
    curves = Table({str(j): column for j, column in enumerate(curves.T)})
    recipe = Recipe(standardize=False).fit(curves)
    points = recipe.transform(curves)
    embedding = embedding_of(ProbabilisticPCA(2).fit(points), points)
    scene = Scene("curves", curves, points, (embedding,), recipe)
    drawn = scene.to_message(live=True)["drawings"]
    assert drawn == {"kind": "series", "columns": list(range(40))}
    site = np.array(["a", "b"], dtype=object)[np.arange(30) % 2]
    mixed = Table({"site": site, **curves.columns, "10 days": rng.uniform(size=30)})
    mixed.columns["3"][:5] = np.nan  # rows with missing values are not used for the decision
    recipe = Recipe().fit(mixed)
    points = recipe.transform(mixed)
    embedding = embedding_of(ProbabilisticPCA(2).fit(points), points)
    scene = Scene("curves and other columns", mixed, points, (embedding,), recipe)
    drawn = scene.to_message(live=True)["drawings"]
    assert drawn == {"kind": "series", "columns": list(range(1, 41))}
    scene = replace(scene, recipe=Recipe(columns=("site", "10 days")).fit(mixed))
    assert scene.to_message(live=True)["drawings"] is None


def test_columns_that_are_requested_later_have_a_type(monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._scene._MAX_INITIAL_VALUES", 100)
    days = np.datetime64("2024-01-01") + np.arange(60)
    scene = MODEL.explore(X, table={"day": days, "flag": y > 0, "z": y * 1.5}).scene
    columns = {c["name"]: c for c in scene.to_message(live=True)["columns"]}
    later = {n: c["type"] for n, c in columns.items() if n in ("day", "flag", "z")}
    assert later == {"day": "dates", "flag": "text", "z": "numbers"}
    assert "data" not in columns["z"]
