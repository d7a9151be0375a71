"""A saved page: everything that works without a model and without a network."""

import csv
import io
import os

import numpy as np
import pytest

from mercer import KernelPCA, explore
from mercer.app.explorer import Explorer
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._scene import Scene
from mercer.datasets import circles
from mercer.tables import Table

HOSTILE = (
    "</script><script>document.title = 'caught'</script><img src=x onerror=document.title='caught'>"
)


def inside(x, y, polygon):
    """Return which points are inside a polygon, by the even-odd rule."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    odd = np.zeros(len(x), dtype=bool)
    for (ax, ay), (bx, by) in zip(polygon, np.roll(polygon, 1, axis=0), strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            odd ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return odd


@pytest.fixture(scope="module")
def rings():
    X, y = circles(300, random_state=0)
    names = np.array([f"point {i}" for i in range(300)], dtype=object)
    names[7], names[8] = HOSTILE, 'a "quoted", one'
    decimals = np.round(np.linspace(-1, 2, 300), 3)
    decimals[3] = np.nan
    days = np.datetime64("2024-01-01") + np.arange(300) // 10
    table = {
        "ring": np.where(y > 0, "outer", "inner"),
        "name": names,
        "decimal": decimals,
        "date": days,
        "time": days + np.arange(300) * np.timedelta64(1500, "ms") - np.timedelta64(30_000, "D"),
        "length (cm)": np.arange(300) % 7,
        "id": 2**60 + np.arange(300),
        "and": np.arange(300),
    }
    model = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)
    return explore(model, X, table=table, color="ring", title=HOSTILE)


@pytest.fixture
def page(shared, saved):
    """The page of the rings in its initial state; loaded once per module."""
    if not shared.asked:
        shared.go(saved)
    shared("""() => { ex.clear(); ex.setTool('move'); ex.colourBy('ring');
      ex.tabs.show('Selection'); ex.table.setOpen(false);
      ex.panes.forEach(pane => { pane.cursor = null; pane.fit(); });
      document.activeElement.blur(); }""")
    return shared


@pytest.fixture(scope="module")
def saved(rings, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "rings.html"
    rings.save(path)
    return path


def test_a_page_asks_nowhere_and_hostile_text_stays_text(page, saved):
    page("ex.setSelection(ex.combineSelection(i => i === 7 || i === 8, 'set'), '')")
    page("ex.hover(ex.panes[0], 7)")
    page.page.get_by_label("Colour by").select_option("name")  # the legend shows its values
    assert page.asked == [saved.as_uri()]
    assert page.page.title() == HOSTILE
    assert page.page.locator("h1").inner_text() == HOSTILE
    page("ex.table.setOpen(true)")
    assert page.page.locator("tbody td", has_text="onerror").inner_text() == HOSTILE
    assert page.page.locator(".tip dd", has_text="onerror").count() == 1
    assert page("document.images.length + document.scripts.length") == 2


def test_a_lasso_holds_what_numpy_says_and_is_saved_as_csv(page, rings):
    coordinates = rings.scene.embeddings[0].coordinates.astype(np.float32)
    middle, reach = coordinates.mean(axis=0), np.ptp(coordinates, axis=0)
    turn = np.linspace(0, 2 * np.pi, 7)
    # intersects itself
    polygon = middle + 0.5 * reach * np.column_stack([np.cos(turn), np.sin(2 * turn)])
    seen = np.array(page.lasso(polygon.tolist()))
    expected = np.flatnonzero(inside(*coordinates.T, seen))
    assert 5 < len(expected) < 295
    assert page("Array.from(ex.selectedRows())") == expected.tolist()
    assert page.status.startswith(f"{len(expected)} of 300 points selected: inside the lasso.")
    with page.page.expect_download() as found:
        page.page.get_by_role("button", name="Save as CSV").click()
    assert found.value.suggested_filename == "selection.csv"
    rows = list(csv.DictReader(io.StringIO(found.value.path().read_text("utf-8"))))
    assert [int(row["row"]) - 1 for row in rows] == expected.tolist()
    table = rings.scene.table.columns
    assert list(rows[0]) == ["row", *table]
    for name, values in table.items():
        if values.dtype.kind == "M":  # ISO dates; all of a column have the same length
            texts = [row[name] for row in rows]
            assert np.array(texts, "M8[us]").tolist() == values[expected].tolist()
            assert {len(text) for text in texts} == {10 if name == "date" else 23}
        elif values.dtype == object:
            assert [row[name] for row in rows] == values[expected].tolist()
        else:  # bit-for-bit identical
            numbers = [float(row[name] or "nan") for row in rows]
            np.testing.assert_array_equal(numbers, values[expected])


def test_panes_share_selection_and_hover_and_the_rest_is_grey(page, rings):
    page.page.get_by_role("button", name="Select ring outer").click()
    outer = np.flatnonzero(rings.scene.table.columns["ring"] == "outer")
    assert page("Array.from(ex.selectedRows())") == outer.tolist()
    page.until("ex.panes.every(pane => !pane.stale)")
    colours = "k => new Set(ex.panes[k].pixels).size"
    assert page(colours, 0) > 3 and page(colours, 1) > 3
    inner = "ffb27200"  # colour of the first class, not selected
    count = "([k, c]) => ex.panes[k].pixels.filter(p => p.toString(16) === c).length"
    assert page(count, [0, inner]) == page(count, [1, inner]) == 0
    x, y = rings.scene.embeddings[0].coordinates[5]
    page.page.mouse.move(*page.place(x, y))
    page.until("ex.hovered >= 0")
    assert "point" in page.page.locator(".tip").inner_text()
    page.page.get_by_role("button", name="Clear").click()
    assert page("ex.count") == 0


def test_search(page):
    box = page.page.get_by_label("Search")
    for text, count in [
        ("point 29", 11),
        ("ring = outer", page("ex.columns.find(c => c.name === 'ring').values.length") and None),
        ("decimal > 1.9", 10),
        ("nowhere", 0),
    ]:
        box.fill(text)
        box.press("Enter")
        page.until("/selected|Nothing/.test(ex.status.textContent)")
        if count is not None:
            assert page("ex.count") == count, text
    assert page.status == 'Nothing found for "nowhere".'


ROW = np.arange(300)
DAY = ROW // 10 + 1
DECIMAL = np.round(np.linspace(-1, 2, 300), 3)
DECIMAL[3] = np.nan


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("date < 2024-01-05", DAY < 5),
        ("date <= 2024-01-05", DAY <= 5),
        ("date > 2024-01-05", DAY > 5),
        ("date >= 2024-01-05T00:00:00Z", DAY >= 5),
        ("date < 2024-01-05 01:00", DAY <= 5),
        ("date < 2024-01-05T00:00+01:00", DAY < 5),
        ("date < 2024-02", DAY < 32),
        ("date > 2023", DAY > 0),
        ("date = 2024-01-05", DAY == 5),
        ("date != 2024-01-05", DAY != 5),
        ("date : 01-05", DAY == 5),
        ("date >= 2024-01-02 and date < 2024-01-04", (DAY >= 2) & (DAY < 4)),
        ("date < 2024-01-03 or date > 2024-01-28", (DAY < 3) | (DAY > 28)),
        ("not date < 2024-01-05", DAY >= 5),
        ("(date < 2024-01-03 OR date > 2024-01-28) AND Length (cm) = 3",
         ((DAY < 3) | (DAY > 28)) & (ROW % 7 == 3)),
        ("date < 2024-01-03 or date > 2024-01-28 and length (cm) = 3",
         (DAY < 3) | ((DAY > 28) & (ROW % 7 == 3))),
        ("not (decimal > 0 and not (length (cm)=3))", ~((DECIMAL > 0) & (ROW % 7 != 3))),
        ('"length (cm)" <= 1', ROW % 7 <= 1),
        ("decimal > -0.5 and decimal < .5", (DECIMAL > -0.5) & (DECIMAL < 0.5)),
        ("decimal != 2", (DECIMAL != 2) & ~np.isnan(DECIMAL)),
        ("decimal < 1e9", ~np.isnan(DECIMAL)),
        ("decimal > -inf", ~np.isnan(DECIMAL)),
        ("id = 1152921504606846978", ROW == 2),
        ("id > 1152921504606846977", ROW > 1),
        ("and >= 290", ROW >= 290),
        ('name : "quoted"', ROW == 8),
        ('name = "a ""quoted"", one"', ROW == 8),
        ('"quoted"', ROW == 8),
        ("point 29", (ROW == 29) | (ROW >= 290)),
        ("point 29 and not point 295", ((ROW == 29) | (ROW >= 290)) & (ROW != 295)),
        ("name = POINT 17", ROW == 17),
        ("nowhere", ROW < 0),
    ],
)  # fmt: skip
def test_queries(page, query, expected):
    box = page.page.get_by_label("Search")
    box.fill(query)
    box.press("Enter")
    page.until("/selected|Nothing/.test(ex.status.textContent)")
    assert page("Array.from(ex.selectedRows())") == np.flatnonzero(expected).tolist()
    assert page("ex.searchError.textContent") == ""
    assert box.get_attribute("aria-invalid") == "false"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("ring < outer", '"ring" contains text, for example "inner", which < cannot compare.'),
        ("ring >= 3", "< and > compare numbers and ISO dates such as 2024-01-31; for text use ="),
        ("name > point 3", '"name" contains text'),
        ("date < yesterday", 'but "yesterday" is not an ISO date such as 2024-01-31.'),
        ("date < 2024-02-30", 'but "2024-02-30" is not an ISO date'),
        ("id > 2024-01-05", 'but "2024-01-05" is not an integer.'),
        ("decimal > many", '"decimal" contains numbers, but "many" is not a number.'),
        ("decimal > 1,5", '"1,5" is not a number.'),
        ("decimal > 2024-01-05", '"2024-01-05" is not a number.'),
        ("decimal >", 'A value is missing after "decimal >".'),
        ("decimal > and ring = outer", 'A value is missing after "decimal >".'),
        ("dat < 2024-01-05", 'There is no column "dat"; did you mean "date"?'),
        ("days < 3", 'There is no column "days". Columns are and, date, decimal'),
        ("12:30", 'There is no column "12".'),
        ("ring = outer and", "A condition is missing at the end."),
        ("ring = outer and or decimal > 1", 'A condition is missing before "or decimal > 1".'),
        ("(ring = outer", 'A parenthesis is not closed: ")" is missing.'),
        ("()", "A condition is missing"),
        ('name = "x', "is not closed."),
        ("not", "A condition is missing at the end."),
    ],
)
def test_queries_with_mistakes(page, query, words):
    page("ex.setSelection(ex.combineSelection(i => i < 3, 'set'), '')")
    box = page.page.get_by_label("Search")
    box.fill(query)
    box.press("Enter")
    page.until("ex.searchError.textContent !== ''")
    assert words in page("ex.searchError.textContent")
    assert box.get_attribute("aria-invalid") == "true"
    assert page("Array.from(ex.selectedRows())") == [0, 1, 2]  # as before
    box.fill("")
    box.press("Enter")
    assert page("ex.searchError.textContent") == ""


def test_the_help_explains_queries(page):
    page.page.get_by_role("button", name="Keyboard and mouse").click()
    assert "date < 2024-01-31" in page.page.locator("dialog").inner_text()
    page.page.keyboard.press("Escape")
    assert "and, or, not" in page.page.get_by_label("Search").get_attribute("title")


def test_zoom_pan_theme_and_size(page):
    box, before = page.box(), page("ex.panes[0].scale")
    x, y = round(box["x"]) + 200, round(box["y"]) + 200

    def under(x, y):
        """Return the data coordinates under the mouse pointer."""
        return page(
            "([x, y]) => ex.panes[0].toData(...ex.panes[0].eventPixels({clientX: x, clientY: y}))",
            [x, y],
        )

    there = under(x, y)
    page.page.mouse.move(x, y)
    page.page.mouse.wheel(0, -400)
    page.until(f"ex.panes[0].scale > {before} * 1.5")
    # zooming keeps the point under the pointer
    np.testing.assert_allclose(under(x, y), there, atol=1e-9)
    page.page.mouse.down()
    page.page.mouse.move(x + 60, y + 30, steps=3)
    page.page.mouse.up()
    np.testing.assert_allclose(under(x + 60, y + 30), there, atol=1e-9)
    page.page.get_by_role("button", name="Show all points").first.click()
    assert page("ex.panes[0].scale") == before
    page.page.get_by_label("Dark").click()
    assert page("ex.root.dataset.theme") == "dark"
    page.page.get_by_label("Light").click()
    page.page.get_by_role("button", name="Keyboard and mouse").click()
    assert "show the pre-image" in page.page.locator("dialog").inner_text()
    page.page.keyboard.press("Escape")
    assert not page("ex.help.open")


def test_a_walk_by_keys_alone(page, rings):
    key = page.page.keyboard.press

    def tab_to(what):
        for _ in range(40):
            key("Tab")
            if page(f"document.activeElement.matches({what!r})"):
                return
        raise AssertionError(f"no Tab leads to {what}")

    tab_to("input[type=search]")
    page.page.keyboard.type("ring = outer")
    key("Enter")
    outer = page("ex.count")
    assert outer and "points selected" in page.status
    tab_to("canvas.over")
    key("ArrowRight")
    assert page.status.startswith(("Row", "No point near"))
    across, up = page("ex.panes[0].toPixels(ex.panes[0].x[5], ex.panes[0].y[5])")
    x, y = page("ex.panes[0].toPixels(...ex.panes[0].cursor)")
    for _ in range(round(abs(across - x) / 24)):
        key("ArrowRight" if across > x else "ArrowLeft")
    for _ in range(round(abs(up - y) / 24)):
        key("ArrowDown" if up > y else "ArrowUp")
    here = page("ex.hovered")
    assert here >= 0
    assert page.status == page(f"ex.describe({here})")
    key(" ")
    assert page("ex.count") in (outer - 1, outer + 1)
    key("Escape")
    assert page.status == "No points selected."
    scale = page("ex.panes[0].scale")
    key("+")
    assert page("ex.panes[0].scale") > scale
    key("Shift+ArrowLeft")
    key("0")
    assert page("ex.panes[0].scale") == scale
    key("l")
    for move in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        for _ in range(9):
            key(move)
        key("Enter")
    key("l")
    chosen = inside(
        *rings.scene.embeddings[0].coordinates.astype(np.float32).T, np.array(page("ex.polygon"))
    )
    assert page("Array.from(ex.selectedRows())") == np.flatnonzero(chosen).tolist()
    key("Enter")
    assert page.status.startswith("A saved page contains no model. Nearest point: Row")
    tab_to("aside select")
    page.page.keyboard.type("deci")
    page.until("ex.color === 'decimal'")


def plain(n, columns=None, **more):
    """Return a scene with random coordinates and without a model."""
    rng = np.random.default_rng(0)
    table = Table({"class": rng.integers(0, 8, n).astype(float), **(columns or {})})
    embeddings = [
        Embedding(name, IdentityEmbedding(), rng.normal(size=(n, 2))) for name in ("one", "two")
    ]
    return Scene("many", table, np.zeros((n, 1)), tuple(embeddings), color="class", **more)


def test_a_million_points(opened, tmp_path):
    scene = plain(1_000_000)
    Explorer(scene).save(tmp_path / "many.html")
    page = opened.go(tmp_path / "many.html")
    moving = """async () => { const times = [], pane = ex.panes[0];
      for (let k = 0; k < 12; k++) {
        pane.pan(7, 3); pane.render(); times.push(pane.renderTime);
        await new Promise(requestAnimationFrame);
      }
      return times.sort((a, b) => a - b)[6]; }"""
    turn = np.linspace(0, 2 * np.pi, 61)[:-1]
    polygon = np.column_stack([np.cos(turn), np.sin(turn) * (1 + 0.5 * np.cos(5 * turn))])
    around = "polygon => { ex.selectInside(ex.panes[0], polygon, 'set'); return ex.lassoTime; }"
    # In ms.  On an idle computer, a frame takes 25 ms and the lasso 150 ms.
    frames, taken, frame_limit, lasso_limit = [], [], 50, 500
    while len(taken) < 5 and not (
        min(frames, default=np.inf) < frame_limit and min(taken, default=np.inf) < lasso_limit
    ):
        frames.append(page(moving))
        taken.append(page(around, polygon.tolist()))
    found = page(
        "() => [ex.count, ex.selectedRows().reduce((code, i) => (code * 31 + i) % 1000003, 7)]"
    )
    expected = np.flatnonzero(
        inside(*scene.embeddings[0].coordinates.astype(np.float32).T, polygon)
    )
    code = 7
    for i in expected.tolist():
        code = (code * 31 + i) % 1000003
    assert found == [len(expected), code]
    assert min(frames) < frame_limit, frames
    assert min(taken) < lasso_limit, taken


@pytest.mark.parametrize("kind", ["integers", "decimals", "floats", "texts"])
def test_a_page_is_not_much_larger_than_its_data(kind, tmp_path):
    rng = np.random.default_rng(1)
    n = 20_000
    columns = {
        "integers": {f"x{j}": rng.integers(0, 17, n).astype(float) for j in range(30)},
        "decimals": {f"x{j}": np.round(rng.normal(size=n), 4) for j in range(6)},
        "floats": {f"x{j}": rng.normal(size=n) for j in range(6)},
        "texts": {"words": np.array([f"word {k}" for k in rng.integers(0, 9999, n)], dtype=object)},
    }[kind]
    scene = plain(n, columns)
    held = sum(one.axis_values(side).nbytes for one in scene.embeddings for side in (0, 1))
    file = io.StringIO()
    scene.table.write(file)
    size = len(Explorer(scene).html().encode())
    assert size <= 1.4 * (held + len(file.getvalue())) + 300_000
    assert size >= held  # all of them are included
    assert os.listdir(tmp_path) == []


def test_places_that_were_looked_at_beforehand(rings, opened, tmp_path):
    rings.save(tmp_path / "grid.html", preimages=5)
    page = opened.go(tmp_path / "grid.html")
    one = rings.scene.embeddings[0]
    coordinates, _ = one.grid(5, 0.0)
    x, y = coordinates[7]
    page.page.mouse.click(*page.place(x + 0.02, y - 0.02))
    expected = one.preimages(coordinates[7:8])[0]
    message = [float(text) for text in page.page.locator(".preimage dd").all_inner_texts()]
    np.testing.assert_allclose(message, expected.points[0], rtol=1e-3, atol=1e-5)
    assert f"= {expected.residual:.4g} in the feature space" in page.status
    assert "Nearest of the 5 × 5 stored positions" in page.status


def test_filters_limit_selections_and_are_undone(page, rings):
    """Points that do not satisfy all filters are faint and cannot be selected."""
    table = rings.scene.table.columns
    page("ex.setFilter(ex.column('ring'), {excluded: ['inner'], missing: true})")
    page("ex.setFilter(ex.column('decimal'), {low: 0, high: 1, missing: true})")
    page("ex.commit('filters')")
    decimal = table["decimal"]
    in_range = np.isnan(decimal) | ((decimal >= 0) & (decimal <= 1))
    expected = (table["ring"] == "outer") & in_range
    assert page("Array.from(ex.filters.active)") == expected.astype(int).tolist()
    assert page("ex.filters.count") == expected.sum()
    page("() => { window.test = ex.filters.passesOthers('ring'); }")
    passes = page("Array.from(ex.filters.active, (_, i) => window.test(i))")
    assert passes == in_range.tolist()
    page.page.get_by_role("button", name="Select ring outer").click()
    assert page("Array.from(ex.selectedRows())") == np.flatnonzero(expected).tolist()
    undo, redo = (page.page.get_by_role("button", name=name) for name in ("Undo", "Redo"))
    undo.click()
    assert page.status == "Undone: selection: ring outer."
    assert page("ex.count") == 0
    undo.click()
    assert page("[ex.filters.count, ex.filters.byName.size]") == [300, 0]
    redo.click()
    redo.click()
    assert page("Array.from(ex.selectedRows())") == np.flatnonzero(expected).tolist()
    assert redo.is_disabled()
    page("() => { ex.setFilters(new Map()); ex.clear(); }")


def test_tabs_by_keyboard(page):
    page.page.get_by_role("tab", name="Selection").click()
    page.page.keyboard.press("ArrowRight")
    assert page("ex.tabs.current") == "Point"
    assert page.page.get_by_role("tab", name="Point").get_attribute("aria-selected") == "true"
    page.page.keyboard.press("Home")
    assert page("ex.tabs.current") == "Columns"


def test_rare_classes_are_drawn_last_and_equal_ones_mixed(page):
    """Common classes would hide a few points with another label."""
    rank = """([colours, mask]) => { ex.colours.set(colours); ex.selected = Uint8Array.from(mask);
      ex.count = mask.reduce((a, b) => a + b); ex.order = null; const order = ex.paintOrder();
      ex.clear(); return Array.from(order); }"""
    rare = np.isin(np.arange(300), [5, 17, 200])
    order = np.array(page(rank, [np.where(rare, 7, 9).tolist(), [0] * 300]))
    assert sorted(order) == list(range(300))
    assert set(order[-3:]) == {5, 17, 200}
    half = np.arange(300) >= 150
    order = np.array(page(rank, [np.where(half, 7, 9).tolist(), [0] * 300]))
    assert 50 < np.sum(half[order[:150]]) < 100  # two classes of equal size are mixed
    chosen = half | (np.arange(300) < 4)  # of the first class, only four points are selected
    order = np.array(page(rank, [np.where(half, 7, 9).tolist(), chosen.astype(int).tolist()]))
    assert np.all(half[order[:150]])
    page("ex.colourBy('ring')")


def test_undo_restores_the_text_of_the_search(page):
    box = page.page.get_by_label("Search")
    for query in ("ring = inner", "ring = outer"):
        box.fill(query)
        box.press("Enter")
        page.until(f"ex.status.textContent.includes({query!r})")
    page.page.get_by_role("button", name="Undo").click()
    assert box.input_value() == "ring = inner"
    assert page("ex.selectionText").endswith("points selected: ring = inner.")
    page("() => { ex.clear(); ex.search.value = ''; }")
