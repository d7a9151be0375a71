"""Pictures of an embedding as PNG and SVG files, and the Python code of a page."""

import struct
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sklearn.decomposition import PCA

from mercer import KernelPCA, ProbabilisticPCA, explore
from mercer.app.cli import main
from mercer.app.explorer import Explorer
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._scene import Scene
from mercer.app.explorer._view_code import view_code
from mercer.tables import Table

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</svg><script>&\x01 \"'"


def saved(page, kind, pane=0):
    page.page.get_by_role("button", name="Save a picture").nth(pane).click()
    with page.page.expect_download() as found:
        page.page.get_by_role("button", name=kind, exact=True).locator("visible=true").click()
    return found.value


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    label = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) * 0.4 + 2.0 * np.eye(4)[label]
    table = {"kind": np.array(["a", HOSTILE, "c"], dtype=object)[label], "order": np.arange(300.0)}
    model = KernelPCA(3, kernel="RBF(1.5)").fit(X)
    return explore(model, X, table=table, color="kind", title=HOSTILE)


def test_pictures_contain_points_axes_and_legend(blobs, opened, tmp_path):
    blobs.save(tmp_path / "page.html")
    page = opened.go(tmp_path / "page.html")
    svg = saved(page, "SVG")
    assert svg.suggested_filename.endswith(".svg") and "/" not in svg.suggested_filename
    root = ET.fromstring(svg.path().read_bytes())
    assert {node.tag for node in root.iter()} <= {
        SVG + tag for tag in ("svg", "title", "clipPath", "rect", "g", "path", "circle", "text")
    }
    texts = [node.text for node in root.iter(SVG + "text")]
    assert any(text.startswith("component 1 (") for text in texts)
    assert any(text.startswith("component 2 (") for text in texts)
    assert {"kind", "a (100)", "c (100)"} <= set(texts)
    assert HOSTILE.replace("\x01", "\ufffd") in root.find(SVG + "title").text
    circles = [
        node for group in root.iter(SVG + "g") if group.get("fill-opacity") for node in group
    ]
    assert len(circles) == 300
    places = np.array([[float(node.get("cx")), float(node.get("cy"))] for node in circles])
    pixels = page("""() => { const pane = ex.panes[0], p = pane.pixelRatio;
      return Array.from(pane.x, (x, i) => pane.toPixels(x, pane.y[i]).map(v => v / p)); }""")
    order = lambda rows: rows[np.lexsort(rows.T)]  # noqa: E731
    np.testing.assert_allclose(order(places), order(np.round(pixels, 2)), atol=0.011)
    assert len({node.get("fill") for node in circles}) == 3

    page("ex.select(ex.combineSelection(i => i % 3 === 0, 'set'), '')")
    root = ET.fromstring(saved(page, "SVG", 1).path().read_bytes())
    groups = [g for g in root.iter(SVG + "g") if g.get("fill-opacity")]
    assert [len(group) for group in groups] == [200, 100]  # selected points are on top

    png = saved(page, "PNG").path().read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", png[16:24])
    width, height = page(
        "[ex.panes[0].width, ex.panes[0].height].map(v => v / ex.panes[0].pixelRatio)"
    )
    assert size[0] >= 2 * width + 300 and size[1] >= 2 * height


def test_many_points_are_an_image_in_svg(opened, tmp_path):
    rng = np.random.default_rng(0)
    n = 30_000
    embeddings = (Embedding("one", IdentityEmbedding(), rng.normal(size=(n, 2))),)
    table = Table({"value": rng.normal(size=n)})
    Explorer(Scene("many", table, np.zeros((n, 1)), embeddings, color="value")).save(
        tmp_path / "many.html"
    )
    page = opened.go(tmp_path / "many.html")
    root = ET.fromstring(saved(page, "SVG").path().read_bytes())
    (image,) = root.iter(SVG + "image")
    assert image.get("href").startswith("data:image/png;base64,")
    assert not list(root.iter(SVG + "circle"))
    assert len(list(root.iter(SVG + "rect"))) > 50  # the colours of the legend


def run(code, X=None):
    names = {"X": X}
    exec(compile(code, "view", "exec"), names)
    return names


def test_the_code_computes_the_same_coordinates(blobs):
    first, second = blobs.scene.embeddings
    flipped = first.with_signs([1, -1, -1]).oriented((2, 0), [1, -1, -1])
    scene = blobs.scene.with_embeddings((flipped, second))
    code = view_code(scene, np.array([3, 5]))
    names = run(code, scene.points)
    expected = np.column_stack([flipped.axis_values(side) for side in (0, 1)])
    np.testing.assert_allclose(names["embedding"], expected, rtol=1e-5, atol=1e-6)
    expected = np.column_stack([second.axis_values(side) for side in (0, 1)])
    np.testing.assert_allclose(names["second_embedding"], expected, rtol=1e-4, atol=1e-5)
    assert names["selected"] == [3, 5]
    assert "selected" not in view_code(scene, np.arange(300))


def test_the_code_of_a_file_runs_in_another_process(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = ["kind;a;b;day"]
    lines += [
        f"{'xyz'[i % 3]};{v:.3f};{w:.2f};{1 + i % 28:02d}.03.2024".replace(".", ",", 2)
        for i, (v, w) in enumerate(rng.normal(size=(60, 2)) * [1, 50])
    ]
    (tmp_path / "flowers.csv").write_text("\n".join(lines) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    seen = {}
    monkeypatch.setattr(
        "mercer.app.explorer.Explorer.html",
        lambda self, **options: seen.setdefault("scene", self.scene) and "page",
    )
    options = ["--delimiter", ";", "--ignore", "kind", "--color", "kind", "--export", "page.html"]
    with pytest.raises(SystemExit) as status:
        monkeypatch.setattr(sys, "argv", ["mercer", "explore", "flowers.csv", *options])
        main()
    assert status.value.code in (0, None)
    scene = seen["scene"]
    code = view_code(scene) + "import numpy\nnumpy.save('embedding.npy', embedding)\n"
    assert "open_table('flowers.csv'" in code and "'kind'" in code
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    first = scene.embeddings[0]
    expected = np.column_stack([first.axis_values(side) for side in (0, 1)])
    np.testing.assert_allclose(np.load("embedding.npy"), expected, rtol=1e-4, atol=1e-5)


def test_code_of_other_models(blobs):
    X = blobs.scene.points[:30]
    model = KernelPCA(2, kernel=lambda x, y: float(x @ y)).fit(X)
    code = view_code(explore(model, X, second=None).scene)
    assert "# The parameters kernel were passed as Python objects.\nmodel = KernelPCA(n_c" in code
    model = ProbabilisticPCA(n_components=1).fit(X)
    names = run(view_code(explore(model, X, second="data").scene), X)
    np.testing.assert_allclose(names["embedding"], model.transform(X), rtol=1e-6)
    assert names["second_embedding"].shape == (30, 2)


class Plane:
    """A model that is not a scikit-learn estimator."""

    def transform(self, X):
        return X[:, :2]


def test_code_of_models_of_other_libraries():
    X = np.random.default_rng(0).normal(size=(40, 3))
    seed = np.random.RandomState(0)
    for model, lines in (
        (
            PCA(2, tol=np.float64(0.5), random_state=seed),
            [
                "from sklearn.decomposition import PCA",
                "# The parameters random_state were passed as Python objects.",
                "model = PCA(n_components=2, tol=0.5).fit(X)",
            ],
        ),
        (Plane(), ["# The model Plane was passed to explore."]),
    ):
        fitted = model.fit(X) if hasattr(model, "fit") else model
        embedding = Embedding("a model", fitted, fitted.transform(X))
        scene = explore(KernelPCA(2).fit(X), X).scene.with_embeddings((embedding,))
        assert set(lines) <= set(view_code(scene).splitlines())
