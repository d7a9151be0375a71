"""Sizes and positions of the parts of the explorer."""

import numpy as np
import pytest

from mercer import KernelPCA, explore


@pytest.fixture(scope="module")
def served():
    pytest.importorskip("tornado")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    kind = np.array(["a", "b"], dtype=object)[np.arange(60) % 2]
    day = np.datetime64("2023-01-01") + np.linspace(0, 790, 60).astype(int)
    table = {"kind": kind, "size": X[:, 0], "day": day}
    model = KernelPCA(2, kernel="RBF(1.5)").fit(X)
    explorer = explore(model, X, table=table, color="kind", title="Plant data.csv")
    server = explorer.show(open_browser=False)
    yield server
    server.stop()


@pytest.fixture
def page(opened, served):
    return opened.go(served.url)


def heights(page):
    return page("ex.panes.map(pane => pane.over.clientHeight)")


def test_jobs_and_search_errors_do_not_resize_the_embeddings(page):
    before = heights(page)
    page("ex.jobs.show({id: 1, title: 'Fitting', text: '5 of 10 rows', fraction: 0.5})")
    page("ex.runSearch('unknown > 3')")
    page.page.get_by_text("There is no column").first.wait_for()
    assert page.page.get_by_role("button", name="Cancel: Fitting").is_visible()
    assert heights(page) == before
    page.page.get_by_role("combobox", name="Search").fill("kind")  # typing hides the error
    assert page("ex.searchError.textContent") == ""


def test_the_name_of_a_stored_selection_has_its_own_line(page):
    page("ex.select(ex.selected.slice().fill(1, 0, 9), '')")
    page("(ex.named.add(), ex.tabs.show('Selection'))")
    field = page.page.get_by_role("textbox", name="Name of the selection").bounding_box()
    item = page.page.locator(".named li").bounding_box()
    assert field["width"] == pytest.approx(item["width"], abs=1)
    assert page("ex.sidebar.scrollWidth <= ex.sidebar.clientWidth")


def test_the_ramp_after_a_legend_with_two_columns(page):
    assert page("ex.legend.list.matches('.short')")
    page("ex.colourBy('size')")
    page.until("ex.color === 'size' && document.querySelector('.ramp')")
    ramp, ends, legend = (
        page.page.locator(one).bounding_box() for one in (".ramp", ".ends", ".legend")
    )
    assert ramp["width"] == pytest.approx(legend["width"], abs=1)
    assert ends["y"] >= ramp["y"] + ramp["height"]


def test_the_help_starts_at_its_top_and_is_complete(page):
    page.page.set_viewport_size({"width": 1000, "height": 500})
    page.page.get_by_role("button", name="Keyboard and mouse").click()
    assert page("ex.help.scrollTop === 0 && ex.help.scrollHeight > ex.help.clientHeight")
    assert page("[...ex.help.querySelectorAll('dt')].every(e => e.scrollWidth <= e.clientWidth)")


def test_files_are_named_after_the_title(page):
    page.page.get_by_role("button", name="Save or open the session").click()
    with page.page.expect_download() as found:
        page.page.get_by_role("button", name="Save session …").click()
    assert found.value.suggested_filename == "plant-data-session.json"


def test_the_tabs_fit_in_one_line(page):
    page("['Model', 'Notes'].forEach(name => ex.tabs.setAvailable(name, true))")
    page("(ex.tabs.setCount('Notes', 5), ex.tabs.show('Selection'))")
    page("ex.tabs.setCount('Selection', 123456)")
    tabs = [one.bounding_box()["y"] for one in page.page.get_by_role("tab").all()]
    assert len(tabs) == 5 and len(set(tabs)) == 1
    assert page.page.get_by_role("tab", name="Selection 123K").is_visible()


@pytest.mark.parametrize("size", [(640, 400), (844, 390), (390, 500)])
def test_the_parts_do_not_overlap_in_low_windows(page, size):
    """640 x 400 is a window of 1280 x 800 at 200 % zoom; the page scrolls."""
    page.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.until("['phone', 'narrow'].includes(ex.layout.name)")
    parts = [".top", ".maps", ".drawer-toggle", "aside:not(.pinned)", "footer"]
    boxes = [page.page.locator(one).first.bounding_box() for one in parts]
    ends = [box["y"] + box["height"] for box in boxes]
    assert all(end <= box["y"] + 1 for end, box in zip(ends, boxes[1:], strict=False))
    assert boxes[3]["height"] > 120  # the details
    assert page("document.documentElement.scrollHeight") == pytest.approx(ends[-1], abs=1)
    tools = [one.bounding_box()["y"] for one in page.page.locator(".top > button").all()]
    assert len(set(tools)) == 1  # in one line


@pytest.mark.parametrize("size", [(390, 844), (950, 800)])
def test_the_buttons_of_small_embeddings_are_above_them(page, size):
    page.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.page.locator(".drawer-toggle").click()
    zoom, stage = (page.page.locator(one).first.bounding_box() for one in (".zoom", ".stage"))
    top = page.page.locator(".top").bounding_box()
    assert top["y"] + top["height"] <= zoom["y"] and zoom["y"] + zoom["height"] <= stage["y"]


def test_the_end_of_a_fit_is_announced(page):
    page("ex.requestFit({kernel: 'unknown'}, 0)")
    page.until("ex.form.error.textContent !== ''")
    page("ex.requestFit({kernel: 'RBF(2)'}, 0)")
    page.until("ex.status.textContent === 'The embeddings were updated.'")
    assert page("ex.form.error.textContent") == ""


@pytest.mark.parametrize("size", [(390, 844), (700, 900), (1000, 700), (1280, 800)])
def test_titles_and_axes_of_small_embeddings(page, size):
    """Titles are not cut off, and each axis has at least two labels."""
    page.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page("ex.requestFit({components: 3}, 0)")
    page.page.get_by_role("button", name="Components").first.wait_for()
    assert page("ex.panes.map(pane => pane.heading.textContent)") == [
        "kernel PCA",
        "probabilistic PCA",
    ]
    page.until("ex.panes.every(pane => !pane.stale)")
    cut_off = "ex.panes.filter(({heading: one}) => one.scrollWidth > one.clientWidth).length"
    assert page(cut_off) == 0
    cut_off = """ex.panes[0].axes.filter(label =>
      label.scrollWidth > label.clientWidth || label.scrollHeight > label.clientHeight).length"""
    assert page(cut_off) == 0
    assert page("ex.panes[0].axes[0].textContent").startswith("component 1 (")
    labels = """(() => { const pen = ex.panes[0].over.getContext("2d"), texts = [];
      pen.fillText = (text, x, y) => texts.push([x, y]);
      ex.panes[0].drawOverlay();
      delete pen.fillText;
      return texts; })()"""
    x = [one for one, _ in page(labels)]
    left = 21 * page("ex.panes[0].pixelRatio")  # the position of all labels of the vertical axis
    assert len(set(x) - {left}) >= 2 and x.count(left) >= 2


def test_names_of_options_in_notes_are_not_broken(page):
    note = "The points are coloured by kind; --color NAME and --no-browser are options - see x--y."
    page("note => ex.load({...ex.scene, notes: [note]})", note)
    item = page.page.locator(".notes li")
    assert item.text_content() == note
    assert item.locator(".option").all_text_contents() == ["--color", "--no-browser"]


def test_the_labels_of_dates_have_equal_steps(page):
    day = page.page.locator('.card[aria-label="day"]')
    day.scroll_into_view_if_needed()
    day.locator(".ticks span").first.wait_for()
    assert day.locator(".ticks span").all_inner_texts() == ["2024", "2025"]
