"""Overlays: contours of the density of points, and labels of clusters."""

import numpy as np
import pytest

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import Explorer, serve


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(3), [200, 120, 80])
    X = rng.normal(size=(400, 2)) * 0.4 + np.array([[0, 0], [4, 0], [0, 4]])[group]
    city = np.array(["Bonn", "Köln", "Ulm"], dtype=object)[group]
    model = KernelPCA(2, kernel="linear").fit(X)
    return explore(model, X, second="data", table={"city": city, "row": np.arange(400.0)})


@pytest.fixture(scope="module")
def page(shared, blobs):
    serving = serve(lambda: blobs.scene, title="blobs")
    serving.start()
    yield shared.go(serving.url)
    serving.stop()


def toggle(page, name, pane=0):
    page.page.get_by_role("button", name=name).nth(pane).click()


def test_contours_enclose_their_fraction_of_the_points(page, blobs):
    toggle(page, "Contours of the density")
    page.until("ex.panes[0].densityCache && ex.panes[0].densityCache.field.lines")
    field = page("(f => ({...f, values: [...f.values], lines: null}))(ex.panes[0].density())")
    assert field["labels"] == ["10 %", "30 %", "50 %", "70 %", "90 %"]
    values = np.reshape(field["values"], (field["rows"], field["columns"]))
    assert values.sum() == pytest.approx(400, rel=5e-3)
    Z = blobs.scene.embeddings[0].coordinates
    c = (Z[:, 0] - field["left"]) / (field["right"] - field["left"]) * (field["columns"] - 1)
    r = (Z[:, 1] - field["low"]) / (field["high"] - field["low"]) * (field["rows"] - 1)
    at_points = values[np.rint(r).astype(int), np.rint(c).astype(int)]
    enclosed = [np.mean(at_points >= level) for level in field["levels"]]
    np.testing.assert_allclose(enclosed, [0.1, 0.3, 0.5, 0.7, 0.9], atol=0.08)


def test_the_density_is_that_of_the_points_that_satisfy_the_filters(page):
    page("ex.setFilter(ex.column('row'), {low: 0, high: 199, missing: false})")
    assert page("ex.panes[0].density().values.reduce((a, b) => a + b)") == pytest.approx(200, 5e-3)
    page("ex.setFilter(ex.column('row'), null)")
    assert page("ex.panes[0].density().values.reduce((a, b) => a + b)") == pytest.approx(400, 5e-3)


def test_labels_of_clusters(page, blobs, tmp_path):
    toggle(page, "Labels of clusters")
    page.until("ex.panes[0].placedLabels")
    clusters = page("ex.panes[0].clusters")
    assert sum(clusters["sizes"]) == 400 and set(clusters["texts"]) == {"Bonn", "Köln", "Ulm"}
    assert page.status.startswith(f"Clusters: {clusters['texts'][0]} ({clusters['sizes'][0]}")
    boxes = page("ex.panes[0].placedLabels")
    for k, a in enumerate(boxes):
        for b in boxes[:k]:
            assert a["size"] <= b["size"]
            apart = a["right"] < b["left"] or a["left"] > b["right"]
            assert apart or a["bottom"] < b["top"] or a["top"] > b["bottom"]
    # Zoomed out, fewer labels fit.
    page("() => { ex.panes[0].zoom(0.1); ex.panes[0].render(); }")
    assert 0 < page("ex.panes[0].placedLabels.length") < len(boxes)
    page("() => { ex.panes[0].fit(); ex.panes[0].render(); }")
    # The derived column agrees with the labels.
    page("ex.colourBy('cluster in kernel PCA')")
    page.until("ex.colourScale.kind === 'classes'")
    counts = [one["count"] for one in page("ex.colourScale.classes")]
    assert counts == clusters["sizes"]
    # A saved page contains the labels that were computed before.
    Explorer(blobs.scene).save(tmp_path / "saved.html")
    page.go(tmp_path / "saved.html")
    buttons = "[...document.querySelectorAll('[aria-label=\"Labels of clusters\"]')]"
    assert page(f"{buttons}.map(b => b.hidden)") == [False, True]
    toggle(page, "Labels of clusters")
    page.until("ex.panes[0].placedLabels")
    assert page("ex.panes[0].placedLabels.map(one => one.text)") == [one["text"] for one in boxes]
