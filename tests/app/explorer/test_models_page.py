"""The page with two models: controls, aligned signs, transitions, the panel of components."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import serve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [1.0, 0.8, 0.6, 0.5] + 2.0 * np.eye(4)[np.arange(60) % 3]
MODEL = KernelPCA(4, kernel="RBF(1.5)").fit(X)


@pytest.fixture(scope="module")
def blobs():
    return explore(MODEL, X, table={"group": np.arange(60) % 3}, color="group", title="blobs")


@pytest.fixture(scope="module")
def served(blobs):
    serving = serve(lambda: blobs.scene, title="blobs").start()
    yield serving
    serving.stop()


@pytest.fixture
def page(opened, served):
    opened.go(served.url)
    opened("ex.tabs.show('Model')")
    return opened


def shown(page, pane=0):
    """Return the coordinates of a pane as an array of shape (n, 2)."""
    return np.array(page(f"[Array.from(ex.panes[{pane}].x), Array.from(ex.panes[{pane}].y)]")).T


def test_a_second_kernel_pca_with_its_own_kernel(page):
    assert not page.page.get_by_label("kernel, right").is_visible()
    page.page.get_by_label("Second embedding").select_option("kernel-pca")
    page.until("ex.panes[1].message.title === 'second kernel PCA'")
    box = page.page.get_by_label("kernel, right")
    box.fill("Polynomial(degree=2")
    page.until("ex.form.other.error.textContent.includes('expected')")
    assert box.get_attribute("aria-invalid") == "true"
    assert page("ex.form.error.textContent") == ""
    box.fill("Polynomial(degree=2)")
    page.until("ex.form.message.other.kernel.startsWith('Polynomial')")
    assert page("ex.form.other.error.textContent") == ""
    assert page("ex.root.getRootNode().activeElement === ex.form.other.kernel")
    expected = KernelPCA(4, kernel="Polynomial(degree=2)").fit(X)
    np.testing.assert_allclose(
        page("ex.panes[1].message.spectrum.values"), expected.eigenvalues_, rtol=1e-6
    )
    assert page("ex.form.message.kernel") == "RBF(length_scale=1.5)"
    page.page.get_by_label("Right vertical axis").select_option(label="4")
    page.until("ex.panes[1].message.shown[1] === 3")
    assert page("ex.panes[0].message.shown") == [0, 1]
    np.testing.assert_allclose(
        np.abs(shown(page, 1)), np.abs(expected.training_scores_[:, [0, 3]]), rtol=1e-4, atol=1e-6
    )
    page.page.get_by_label("Contours in kernel PCA", exact=True).select_option("eigenfunction 2")
    page.until("ex.panes[0].field")
    assert page.status == "Contours of eigenfunction 2 of second kernel PCA."
    page.page.get_by_label("Second embedding").select_option("ppca")
    page.until("ex.panes[1].message.title === 'probabilistic PCA'")
    assert not box.is_visible()


def test_t_sne(page):
    page.page.get_by_label("Second embedding").select_option("t-sne")
    page.until("ex.panes[1].message.title === 't-SNE'")
    Z = shown(page, 1)
    distances = np.linalg.norm(Z[:, None] - Z, axis=2) + np.diag(np.full(60, np.inf))
    nearest = distances.argmin(axis=1)
    assert np.mean(nearest % 3 == np.arange(60) % 3) > 0.8  # the groups are apart
    page.page.mouse.click(*page.place(*Z[0].tolist(), pane=1))
    page.until("ex.status.textContent.includes('has no inverse transform')")


def test_signs_stay_during_a_sweep_of_a_slider(page):
    maps = [shown(page)]
    for value in np.linspace(-1.0, 2.5, 15):
        page(
            """value => { const {slider} = ex.form.sliders[0]; slider.value = value;
              window.before = ex.panes[0].message; slider.dispatchEvent(new Event("input")); }""",
            float(value),
        )
        page.until("ex.panes[0].message !== window.before")
        maps.append(shown(page))
    found = [
        [np.corrcoef(a, b)[0, 1] for a, b in zip(old.T, new.T, strict=True)]
        for old, new in pairwise(maps)
    ]
    assert np.min(found) > 0.0, found
    assert np.abs(maps[-1] - maps[0]).max() > 0.1


FRAMES = """() => { window.frames = []; const pane = ex.panes[0], draw = pane.draw.bind(pane);
  pane.draw = () => { window.frames.push([pane.x[5], pane.scale]); draw(); }; }"""


def test_points_move_to_the_exact_final_positions(page):
    page.page.emulate_media(reduced_motion="no-preference")
    page("ex.transitions = 2000")  # other processes may delay the frames
    page(FRAMES)
    before, scale = shown(page)[5, 0], page("ex.panes[0].scale")
    page("ex.link.send({type: 'axes', pane: 0, axes: [2, 3]})")
    page.until("ex.panes[0].message.shown[0] === 2 && !ex.panes[0].transition")
    np.testing.assert_array_equal(shown(page), MODEL.training_scores_[:, [2, 3]].astype(np.float32))
    moving = np.array(page("window.frames"))
    first, last = np.float32(before), np.float32(MODEL.training_scores_[5, 2])
    between = [x for x in moving[:, 0] if min(first, last) < x < max(first, last)]
    assert between and np.all(np.diff(between) * np.sign(last - first) >= 0)
    expected = page("(ex.panes[0].fit(), ex.panes[0].scale)")
    assert moving[-1, 1] == pytest.approx(expected) and expected > 1.1 * scale


def test_a_change_during_a_transition_starts_at_the_current_positions(page):
    page.page.emulate_media(reduced_motion="no-preference")
    page("ex.transitions = 4000")  # other processes may delay the frames
    found = page(
        """async () => {
          const pane = ex.panes[0], old = pane.message, n = old.x.length;
          const at = value => ({...old, x: new Float32Array(n).fill(value), y: old.y});
          pane.update(at(10));
          const begun = performance.now();
          while (performance.now() < begun + 100) await new Promise(requestAnimationFrame);
          const middle = pane.x[0];
          pane.update(at(-10));
          const next = pane.x[0];
          while (pane.transition) await new Promise(requestAnimationFrame);
          return [old.x[0], middle, next, pane.x[0], pane.x === pane.message.x];
        }"""
    )
    start, middle, after, final, is_exact = found
    assert start < middle < 10 and after == pytest.approx(middle, abs=2.0)
    assert final == -10 and is_exact
    page.page.emulate_media(reduced_motion="reduce")
    still = """() => { const pane = ex.panes[0], {message} = pane;
      pane.update({...message, x: message.x.map(v => v + 1)});
      return [pane.x[0], pane.transition]; }"""
    assert page(still) == [-9, None]


def choose_by_keys(page):
    page.page.get_by_role("button", name="Components").first.focus()
    page.page.keyboard.press("Enter")
    page.until("ex.components.plots.length === 6")
    assert page("document.activeElement.getAttribute('aria-label')") == "components 1 and 2"
    colours = page(
        """ex.components.plots.map(({canvas: {width, height}, canvas}) => new Set(new Uint32Array(
          canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer)).size)"""
    )
    assert min(colours) > 3
    ratios = "ex.components.plots.map(({canvas: one}) => one.width / one.clientWidth)"
    ratio = page("devicePixelRatio")
    np.testing.assert_allclose(page(ratios), ratio, rtol=0.01)  # the plots are not blurred
    while page("document.activeElement.getAttribute('aria-label')") != "components 3 and 4":
        page.page.keyboard.press("Tab")
    page.page.keyboard.press("Enter")
    page.until("ex.panes[0].message.shown[0] === 2")
    assert page("ex.panes[0].message.shown") == [2, 3]
    assert page.status == "kernel PCA shows components 3 and 4."
    assert page("document.activeElement === ex.panes[0].componentsButton")
    np.testing.assert_array_equal(shown(page), MODEL.training_scores_[:, [2, 3]].astype(np.float32))
    assert page("ex.panes[0].message.axes[0]").startswith("component 3 (")


def test_components_by_keyboard(page):
    choose_by_keys(page)


def test_components_of_a_saved_page(opened, blobs, tmp_path):
    blobs.save(tmp_path / "blobs.html", preimages=3)
    opened.go(tmp_path / "blobs.html")
    choose_by_keys(opened)
    assert not opened("ex.panes[0].message.preimages")  # they belong to other axes
    opened("ex.showComponents(ex.panes[0], 0, 1)")
    assert opened("ex.panes[0].message.preimages.count") == 3


def test_a_saved_page_that_would_grow_too_much_has_no_components(
    opened, blobs, tmp_path, monkeypatch
):
    path = tmp_path / "blobs.html"
    blobs.save(path)
    large = path.stat().st_size
    monkeypatch.setattr("mercer.app.explorer._serialize._MAX_COMPONENTS_FRACTION", 1e-4)
    blobs.save(path)
    assert 0 < large - path.stat().st_size < 0.2 * large
    opened.go(path)
    opened.page.get_by_role("button", name="Components").first.click()
    assert (
        "does not contain the other components"
        in opened.page.locator("dialog.components").inner_text()
    )
    opened.page.keyboard.press("Escape")
    opened.page.locator("dialog.components").wait_for(state="detached")
