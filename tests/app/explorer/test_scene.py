"""Scenes for points of every kind, and errors for points that cannot be shown."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Graphs, KernelPCA, ProbabilisticPCA
from mercer.datasets import circles

X, y = circles(60, random_state=0)
MODEL = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)


def test_a_model_is_explored_by_itself():
    explorer = MODEL.explore(color=y)
    assert repr(explorer) == "<Explorer: 60 points, kernel PCA and the data>"
    assert list(explorer.scene.table.columns) == ["x1", "x2", "color"]
    assert explorer.selection.tolist() == []
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
