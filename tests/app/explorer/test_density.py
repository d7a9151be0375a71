"""Drawings of many points do not depend on their order; single points are visible."""

import numpy as np
import pytest

from mercer.app.explorer import Explorer
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._scene import Scene
from mercer.tables import Table

N = 60_000


@pytest.fixture(scope="module")
def page(shared, tmp_path_factory):
    """Two panes: the same points, and two classes at the same places, one after the other."""
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(N, 2)) * np.where(np.arange(N) % 2, 0.05, 2.0)[:, None]
    spread[0] = 12.0, 12.0  # a single point
    table = Table({"half": (np.arange(N) < N // 2).astype(float), "row": np.arange(float(N))})
    half = np.concatenate([spread[: N // 2]] * 2)
    embeddings = [
        Embedding(name, IdentityEmbedding(), Z) for name, Z in (("a", spread), ("b", half))
    ]
    scene = Scene("many", table, np.zeros((N, 1)), tuple(embeddings), color="half")
    path = tmp_path_factory.mktemp("page") / "density.html"
    Explorer(scene).save(path)
    return shared.go(path)


def test_the_picture_does_not_depend_on_the_order_of_points(page):
    same = page("""() => [0, 1].map(k => {
      const pane = ex.panes[k];
      const draw = () => { pane.draw(); pane.render(); return pane.pixels.slice(); };
      const before = draw(), old = [pane.x, pane.y, ex.colours];
      [pane.x, pane.y, ex.colours] = old.map(values => values.slice().reverse());
      const after = draw();
      [pane.x, pane.y, ex.colours] = old;
      return [before.every((pixel, p) => pixel === after[p]), new Set(before).size];
    })""")
    assert [equal for equal, _ in same] == [True, True]
    assert min(colours for _, colours in same) > 20


def test_two_classes_in_the_same_places_have_their_mean_colour(page):
    """The last class of the file does not cover the first one."""
    channels = "c => [c & 0xff, c >>> 8 & 0xff, c >>> 16 & 0xff]"
    first, last = page(f"[0, ex.n - 1].map(i => ex.colours[i]).map({channels})")
    seen = np.array(
        page(f"""() => {{ const pane = ex.panes[1]; pane.fit(); pane.render();
      const [px, py] = pane.toPixels(0, 0), w = pane.image.width, margin = (w - pane.width) / 2;
      const at = (Math.round(py) + margin) * w + Math.round(px) + margin;
      return ({channels})(pane.pixels[at]); }}""")
    )
    np.testing.assert_allclose(seen, (np.array(first) + last) / 2, atol=2)


def test_a_single_point_is_visible_and_dense_regions_are_graded(page):
    """The opacity increases with the number of points, from 40 % to 100 %."""
    page("ex.colourBy('')")
    single, dense, sparse = page("""() => { const pane = ex.panes[0]; pane.fit(); pane.render();
      const w = pane.image.width, margin = (w - pane.width) / 2, at = (x, y, r) => {
        const [px, py] = pane.toPixels(x, y).map(p => Math.floor(p) + margin), reds = [];
        for (let dy = -r; dy <= r; dy++)
          for (let dx = -r; dx <= r; dx++)
            reds.push(pane.pixels[(py + dy) * w + px + dx] & 0xff);
        return reds;
      };
      return [Math.min(...at(12, 12, 2)), Math.max(...at(0, 0, 1)), at(3, 0, 12)]; }""")
    colour = page("ex.colours[0] & 0xff")
    assert colour == dense == 0
    assert single < 255 * 0.62
    assert min(sparse) < max(sparse) and len(set(sparse)) > 5


def test_filtered_points_are_faint_and_selected_points_are_coloured(page):
    page("ex.colourBy('half')")
    reds = """() => { const pane = ex.panes[0]; pane.draw(); pane.render();
      return [...new Set(pane.pixels)].filter(c => {
        const [r, g, b] = [c & 0xff, c >>> 8 & 0xff, c >>> 16 & 0xff];
        return Math.max(r, g, b) - Math.min(r, g, b) > 60;
      }).length; }"""
    before = page(reds)
    page("ex.setFilter(ex.column('row'), {low: -2, high: -1, missing: false})")
    assert before > 20 and page(reds) == 0  # all points are filtered out, so they are grey
    page("ex.setFilter(ex.column('row'), null)")
    page("ex.setSelection(ex.combineSelection(i => i === 7, 'set'), 'row 8')")
    assert 0 < page(reds) < 20
    page("ex.clear()")


def test_the_spatial_order_of_more_points_does_not_change_the_picture(opened, tmp_path):
    """With selected and filtered points, with all points visible and zoomed in."""
    rng = np.random.default_rng(0)
    n = 210_000
    Z = rng.normal(size=(n, 2))
    Z[5] = np.nan
    table = Table({"class": rng.integers(0, 5, n).astype(float), "row": np.arange(float(n))})
    embedding = Embedding("a", IdentityEmbedding(), Z)
    Explorer(Scene("many", table, np.zeros((n, 1)), (embedding,), color="class")).save(
        tmp_path / "many.html"
    )
    page = opened.go(tmp_path / "many.html")
    same = """() => [1, 4].map(zoom => {
      const pane = ex.panes[0], draw = () => {
        pane.fit(); pane.zoom(zoom); pane.pan(40, 25); pane.render();
        return pane.pixels.slice();
      };
      const before = draw();
      pane.spatialOrder = () => null;
      const after = draw();
      delete pane.spatialOrder;
      return before.every((pixel, p) => pixel === after[p]);
    })"""
    assert page("ex.panes[0].order.rows.length") == n - 1
    assert page(same) == [True, True]
    page("ex.setFilter(ex.column('row'), {low: 0, high: 150000, missing: false})")
    page("ex.setSelection(ex.combineSelection(i => i % 7 === 0, 'set'), '')")
    assert page(same) == [True, True]
    page("ex.colourBy('row')")
    assert page(same) == [True, True]
