"""Histograms and bars of the columns, filters with mouse and keyboard, and the legend."""

import re

import numpy as np
import pytest

from mercer import KernelPCA, explore
from mercer.app.explorer import Explorer, serve
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._scene import Scene
from mercer.datasets import circles
from mercer.tables import Table

N = 300
RNG = np.random.default_rng(0)
AGE = np.round(RNG.normal(40, 12, N), 1)
AGE[RNG.random(N) < 0.1] = np.nan
CITY = RNG.choice(np.array(["Bonn", "Köln", "Aachen"], dtype=object), N, p=[0.5, 0.3, 0.2])
CITY[:9] = None
DATE = np.datetime64("2023-03-01") + RNG.integers(0, 500, N)
DATE[20:24] = "NaT"
TIME = np.datetime64("2024-05-01T08:00:00") + RNG.integers(0, 40_000, N)
STATION = np.array([f"station {k:02d}" for k in np.sort(RNG.geometric(0.05, N) % 43)], dtype=object)
VISITS = RNG.poisson(9, N)
TABLE = {
    "age": AGE,
    "city": CITY,
    "date": DATE,
    "time": TIME,
    "visits": VISITS,
    "grade": np.where(AGE > 50, np.nan, np.arange(N) % 5),
    "note": np.array([f"note {i} of the list" for i in range(N)], dtype=object),
    "station": STATION,
    "nothing": np.full(N, np.nan),
    "constant": np.full(N, 2.5),
}
X, RING = circles(N, random_state=0)


@pytest.fixture(scope="module")
def explorer():
    model = KernelPCA(3, kernel="rbf", gamma=2.0).fit(X)
    return explore(model, X, table=TABLE, color="city", title="Columns")


@pytest.fixture(scope="module")
def saved(explorer, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "columns.html"
    explorer.save(path)
    return path


@pytest.fixture
def page(shared, saved):
    """The page in its initial state; loaded once per module."""
    if not shared.asked:
        shared.go(saved)
    shared("""() => { ex.setFilters(new Map()); ex.setHideFiltered(false); ex.clear();
      ex.colourBy('city'); ex.tabs.show('Columns'); ex.history.reset();
      document.activeElement.blur(); }""")
    return shared


def card(page, name):
    """Return the locator of a card after its values have been drawn."""
    found = page.page.locator(f'.card[aria-label="{name}"]')
    found.evaluate("element => element.scrollIntoView({block: 'center'})")
    page.until(f"ex.columnsPanel.cards.get('{name}').plot !== null")
    return found


def drag(page, name, start, end):
    """Drag in a histogram, from and to fractions of its width; return the bounds of the filter."""
    box = card(page, name).locator(".plot").bounding_box()
    y = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + start * box["width"], y)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + end * box["width"], y, steps=7)
    page.page.mouse.up()
    return page(f"(f => [f?.low ?? null, f?.high ?? null])(ex.filters.byName.get('{name}'))")


def active(page):
    """Return the mask of the rows that pass, which must agree with all texts."""
    mask = np.array(page("Array.from(ex.filters.active)"), dtype=bool)
    count = page("ex.filters.byName.size")
    shown = page("ex.columnsPanel.text.textContent")
    if count:
        assert shown == f"{mask.sum()} of {N} points pass {count} filter{'s' * (count > 1)}"
        assert page("ex.total.textContent") == f"{mask.sum()} of {N} points"
    else:
        assert mask.all()
    return mask


def micros(dates):
    return dates.astype("M8[us]").astype(np.int64).astype(float)


def between(values, bounds):
    low, high = bounds
    with np.errstate(invalid="ignore"):
        return (values >= (-np.inf if low is None else low)) & (
            values <= (np.inf if high is None else high)
        )


def test_brushing_two_histograms_equals_numpy_and_is_undone(page):
    masks = [np.ones(N, dtype=bool)]
    bounds = drag(page, "age", 0.3, 0.7)
    low, high = np.nanmin(AGE), np.nanmax(AGE)
    assert abs(bounds[0] - (low + 0.3 * (high - low))) < 0.05 * (high - low)
    assert abs(bounds[1] - (low + 0.7 * (high - low))) < 0.05 * (high - low)
    masks.append(between(AGE, bounds))  # missing values do not pass
    assert 20 < masks[-1].sum() < 280
    assert active(page).tolist() == masks[-1].tolist()

    bounds = drag(page, "date", 0.62, 0.2)  # from right to left
    in_dates = between(micros(DATE), bounds) & ~np.isnat(DATE)
    days = np.array(bounds).astype("M8[us]")
    assert np.array_equal(days.astype("M8[D]"), days)  # whole days
    info = card(page, "date").locator(".info").inner_text()
    assert info == f"{days[0].astype('M8[D]')} to {days[1].astype('M8[D]')}"
    masks.append(masks[-1] & in_dates)
    assert active(page).tolist() == masks[-1].tolist()

    card(page, "age").get_by_role("checkbox", name="Show age missing").click()
    in_ages = masks[1] | np.isnan(AGE)
    masks.append(in_ages & in_dates)
    assert active(page).tolist() == masks[-1].tolist()

    card(page, "city").get_by_role("button", name="Only city Bonn").click()
    masks.append(masks[-1] & (CITY == "Bonn"))
    assert active(page).tolist() == masks[-1].tolist()
    card(page, "city").get_by_role("checkbox", name="Show city missing").click()
    masks.append(in_ages & in_dates & ((CITY == "Bonn") | (CITY == None)))  # noqa: E711
    assert active(page).tolist() == masks[-1].tolist()

    # Bars show the points that satisfy the filters of the other columns.
    page.until("ex.columnsPanel.frame === 0")
    for name in ("Bonn", "Köln", "Aachen"):
        label = card(page, "city").get_by_role("button", name=f"Only city {name}")
        expected = (in_ages & in_dates & (name == CITY)).sum()
        assert label.get_attribute("aria-label") == (
            f"Only city {name}: {expected} of {(name == CITY).sum()} points"
        )
    card(page, "age")
    histogram = page.page.locator('.card[aria-label="age"] svg')
    others = masks[-1] | (in_dates & ((CITY == "Bonn") | (CITY == None)))  # noqa: E711
    words = f"; {(others & ~np.isnan(AGE)).sum()} values satisfy the other filters"
    page.until(f"""document.querySelector('.card[aria-label="age"] svg')
      .getAttribute('aria-label').endsWith({words!r})""")
    assert histogram.get_attribute("role") == "img"

    page.page.get_by_role("button", name="Select these").click()
    assert page("Array.from(ex.selectedRows())") == np.flatnonzero(masks[-1]).tolist()
    page("ex.undo()")
    for mask in reversed(masks[:-1]):
        page("ex.undo()")
        assert active(page).tolist() == mask.tolist()
    for mask in masks[1:]:
        page("ex.redo()")
        assert active(page).tolist() == mask.tolist()
    page.page.get_by_role("button", name="Clear filters").click()
    assert active(page).all()


def test_counts_of_bins_equal_numpy(page):
    """The drawn bins partition the values, for numbers, integers, dates and times."""
    counts = """name => { const {plot} = ex.columnsPanel.cards.get(name);
      const tally = new Array(plot.count + 1).fill(0); plot.bins.forEach(k => tally[k]++);
      return [plot.start, plot.step, plot.count, tally]; }"""
    for name, values in [
        ("age", AGE),
        ("visits", VISITS.astype(float)),
        ("date", np.where(np.isnat(DATE), np.nan, micros(DATE))),
        ("time", micros(TIME)),
        ("x1", X[:, 0]),
        ("constant", TABLE["constant"]),
    ]:
        card(page, name)
        start, step, count, tally = page(counts, name)
        assert 1 <= count <= 60
        bins = np.floor((values - start) / step * (1 + 1e-12))[~np.isnan(values)]
        expected = np.bincount(np.clip(bins, 0, count - 1).astype(int), minlength=count)
        assert tally == [*expected.tolist(), np.isnan(values).sum()], name
        if name == "visits":  # one bar for each integer
            assert step == 1 and count == np.ptp(VISITS) + 1
        if name == "date":
            assert step % 86_400_000_000 == 0
    labels = page.page.locator('.card[aria-label="date"] .ticks span').all_inner_texts()
    assert re.fullmatch(r"[A-Z][a-z]{2} 2023", labels[0])
    labels = page.page.locator('.card[aria-label="time"] .ticks span').all_inner_texts()
    assert all(re.fullmatch(r"\d\d:00", label) for label in labels) and len(labels) >= 3


def test_move_resize_and_double_click(page):
    low, high = drag(page, "visits", 0.3, 0.6)
    assert active(page).tolist() == between(VISITS, (low, high)).tolist()
    assert isinstance(low, int) and isinstance(high, int)
    box = card(page, "visits").locator(".range").bounding_box()
    y = box["y"] + 15
    page.page.mouse.move(box["x"] + box["width"] / 2, y)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] / 2 + 40, y, steps=4)
    page.page.mouse.up()
    moved = page("(f => [f.low, f.high])(ex.filters.byName.get('visits'))")
    assert moved[0] > low and moved[1] - moved[0] == high - low
    assert active(page).tolist() == between(VISITS, moved).tolist()
    box = card(page, "visits").get_by_label("Upper bound of visits").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.page.mouse.move(box["x"] + 12, box["y"] + 12)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 500, box["y"] + 12, steps=4)
    page.page.mouse.up()
    assert page("ex.filters.byName.get('visits').high") is None
    assert active(page).tolist() == between(VISITS, (moved[0], None)).tolist()
    card(page, "visits").locator(".plot").dblclick()
    assert active(page).all()
    page("ex.undo()")
    assert active(page).tolist() == between(VISITS, (moved[0], None)).tolist()


def test_brushing_by_keyboard_alone(page):
    key = page.page.keyboard.press

    def tab_to(what):
        for _ in range(80):
            key("Tab")
            if page(f"document.activeElement.matches({what!r})"):
                return
        raise AssertionError(f"no Tab leads to {what}")

    card(page, "age")
    tab_to('[aria-label="Lower bound of age"]')
    handle = page.page.get_by_label("Lower bound of age")
    assert handle.get_attribute("aria-valuetext").endswith(", no limit")
    for _ in range(6):
        key("ArrowRight")
    key("Tab")
    key("PageDown")
    key("ArrowLeft")
    page.until("ex.filters.byName.get('age')?.high !== null")
    low = float(handle.get_attribute("aria-valuenow"))
    high = float(page.page.get_by_label("Upper bound of age").get_attribute("aria-valuenow"))
    assert handle.get_attribute("aria-valuetext") == f"{low:g}"
    assert np.nanmin(AGE) < low < high < np.nanmax(AGE)
    page.until("ex.columnsPanel.cards.get('age').pending === null")
    assert active(page).tolist() == between(AGE, (low, high)).tolist()
    assert page.status == page("ex.columnsPanel.text.textContent")
    key("Delete")
    assert active(page).all()
    page("ex.undo()")
    assert active(page).tolist() == between(AGE, (low, high)).tolist()
    tab_to('[aria-label="Show age missing"]')
    key(" ")
    assert active(page).tolist() == (between(AGE, (low, high)) | np.isnan(AGE)).tolist()
    card(page, "city")
    tab_to('[aria-label^="Only city Köln"]')
    key("Enter")
    expected = (between(AGE, (low, high)) | np.isnan(AGE)) & (CITY == "Köln")
    assert active(page).tolist() == expected.tolist()
    key("Enter")  # again: all cities
    assert page("ex.filters.byName.has('city')") is False


def test_text_missing_and_constant_columns(page):
    box = card(page, "note").get_by_label("Text in note")
    assert "300 different values" in card(page, "note").inner_text()
    box.fill("NOTE 29")
    page.until("ex.filters.byName.has('note')")
    expected = np.array(["note 29" in text for text in TABLE["note"]])
    page.until("ex.filters.masks.has('note')")
    assert active(page).tolist() == expected.tolist() and expected.sum() == 11
    box.fill("")
    page.until("!ex.filters.byName.has('note')")
    found = page.page.locator('.card[aria-label="nothing"]')
    found.scroll_into_view_if_needed()
    page.until("ex.columnsPanel.cards.get('nothing').element.textContent.includes('All values')")
    card(page, "grade").get_by_role("button", name="Only grade missing").click()
    assert active(page).tolist() == np.isnan(TABLE["grade"]).tolist()
    card(page, "grade").get_by_role("button", name="Only grade missing").click()
    assert active(page).all()
    card(page, "grade").get_by_role("checkbox", name="Show grade 3").click()
    assert active(page).tolist() == (TABLE["grade"] != 3).tolist()
    card(page, "age").get_by_role("checkbox", name="Show age missing").click()
    assert page("ex.filters.byName.get('age')") == {"low": None, "high": None, "missing": False}
    assert active(page).tolist() == ((TABLE["grade"] != 3) & ~np.isnan(AGE)).tolist()
    card(page, "age").get_by_role("checkbox", name="Show age missing").click()
    assert page("ex.filters.byName.has('age')") is False


def test_many_values_are_found_by_paging_and_search(page):
    names, counts = np.unique(STATION, return_counts=True)
    assert len(names) > 20
    bars = card(page, "station")
    assert bars.locator(".entry").count() == 8
    assert bars.locator(".pager .soft").inner_text() == f"1–8 of {len(names)}"
    shown = bars.locator(".entry span").all_inner_texts()
    assert counts[np.isin(names, shown)].min() >= np.sort(counts)[-8]  # the most frequent
    bars.get_by_role("button", name="Next values of station").click()
    assert bars.locator(".pager .soft").inner_text() == f"9–16 of {len(names)}"
    bars.get_by_label("Find a value of station").fill(names[-1])
    assert bars.locator(".entry span").all_inner_texts() == [names[-1]]
    bars.get_by_role("button", name=f"Only station {names[-1]}").click()
    assert page("ex.filters.byName.get('station')") == {"included": [names[-1]], "missing": False}
    assert active(page).tolist() == (names[-1] == STATION).tolist()


def test_the_legend_hides_isolates_and_selects(page):
    legend = page.page.locator(".legend")
    legend.get_by_role("checkbox", name="Show city Köln").click()
    assert page("ex.filters.byName.get('city')") == {"excluded": ["Köln"], "missing": True}
    assert active(page).tolist() == (CITY != "Köln").tolist()
    box = legend.get_by_role("checkbox", name="Show city Köln")
    assert box.get_attribute("aria-checked") == "false"
    assert not card(page, "city").get_by_role("checkbox", name="Show city Köln").is_checked()
    legend.get_by_role("button", name="Select city missing").click()
    assert page("Array.from(ex.selectedRows())") == list(range(9))
    legend.get_by_role("checkbox", name="Show city missing").click()
    assert active(page).tolist() == ((CITY != "Köln") & (CITY != None)).tolist()  # noqa: E711
    legend.get_by_role("button", name="Only city Aachen").click()
    assert active(page).tolist() == (CITY == "Aachen").tolist()
    legend.get_by_role("button", name="Select city Bonn").click()  # they are hidden
    assert page("ex.count") == 0
    page("ex.undo()")
    page("ex.undo()")
    assert active(page).tolist() == ((CITY != "Köln") & (CITY != None)).tolist()  # noqa: E711
    for button in legend.locator("button").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 24


def test_a_legend_of_many_classes_has_pages_and_search(page):
    card(page, "station").get_by_role("button", name="Colour points by station").click()
    page.until("ex.color === 'station' && ex.legend.entries.length > 5")
    names, counts = np.unique(STATION, return_counts=True)
    ordered = names[np.lexsort((names, -counts))]
    size = page("ex.legend.pager.perPage")
    shown = "ex.legend.entries.map(entry => entry.label)"
    assert page(shown) == [*ordered[:size].tolist(), f"{len(names) - size} others"]
    colour = "i => ex.colours[i]"
    first, second = (int(np.flatnonzero(name == STATION)[0]) for name in ordered[[0, size]])
    grey = page(colour, second)
    assert page(colour, first) != grey
    page.page.get_by_role("button", name="Next classes").click()
    assert page(shown)[:-1] == ordered[size : 2 * size].tolist()
    assert page.page.locator("aside .pager").first.inner_text().split()[1] == (
        f"{size + 1}–{2 * size}"
    )
    assert page(colour, second) != grey and page(colour, first) == grey
    page("ex.undo()")
    assert page(colour, second) == grey and page(shown)[0] == ordered[0]
    page.page.get_by_label("Find a class").fill(names[-1])
    assert page(shown) == [names[-1], f"{len(names) - 1} others"]
    page.page.get_by_role("button", name=f"Only station {names[-1]}").first.click()
    assert active(page).tolist() == (names[-1] == STATION).tolist()
    page.page.get_by_label("Find a class").fill("")
    page.page.locator(".legend").get_by_role("button", name="others").first.click()
    page("ex.setFilters(new Map())")


def test_the_legend_of_numbers_has_an_entry_for_missing_values(page):
    page("ex.colourBy('age')")
    legend = page.page.locator(".legend")
    legend.get_by_role("checkbox", name="Show age missing").click()
    assert active(page).tolist() == (~np.isnan(AGE)).tolist()
    legend.get_by_role("button", name="Only age missing").click()
    assert active(page).tolist() == np.isnan(AGE).tolist()
    legend.get_by_role("button", name="Only age missing").click()
    assert active(page).all()


def test_filtered_points_are_hidden_and_searches_report_them(page):
    drag(page, "age", 0.3, 0.5)
    mask = active(page)
    drawn = "ex.panes[0].pixels.filter(p => p !== ex.panes[0].pixels[0]).length"
    page.until("ex.panes.every(pane => !pane.stale)")
    before = page(drawn)
    page.page.get_by_label("hide others").click()
    page.until("ex.panes.every(pane => !pane.stale)")
    assert page("ex.hideFiltered") and page(drawn) < before
    hidden = int(np.flatnonzero(~mask)[0])
    x, y = page("i => [ex.panes[0].x[i], ex.panes[0].y[i]]", hidden)
    page.page.mouse.move(*page.place(x, y))
    page.page.wait_for_timeout(100)
    assert page("ex.hovered") != hidden
    page("ex.undo()")
    assert not page("ex.hideFiltered") and not page.page.get_by_label("hide others").is_checked()
    box = page.page.get_by_label("Search", exact=True)
    box.fill("city = Bonn")
    box.press("Enter")
    bonn = CITY == "Bonn"
    page.until("ex.count > 0")
    assert page("Array.from(ex.selectedRows())") == np.flatnonzero(bonn & mask).tolist()
    words = f"{(bonn & ~mask).sum()} more match, but do not pass the filters."
    assert page.status.endswith(words)
    page("ex.setFilter(ex.column('city'), {included: ['Aachen'], missing: false})")
    page("ex.tabs.show('Selection')")
    words = f"{(bonn & mask).sum()} of them do not pass the filters."
    assert page("ex.selection.text.textContent").endswith(words)
    page("ex.setFilter(ex.column('city'), null)")
    assert "filters" not in page("ex.selection.text.textContent")
    page("ex.tabs.show('Columns')")
    box.fill("")


def test_filters_of_columns_that_are_loaded_later(explorer, opened):
    """The server sends values on request; it is informed of the filters."""
    server = serve(lambda: explorer.scene, title="columns").start()
    try:
        page = opened.go(server.url)
        page("""() => { window.sent = []; const send = ex.link.send.bind(ex.link);
          ex.link.send = request => { window.sent.push(request); send(request); }; }""")
        page("ex.setFilters(new Map([['component 1', {low: 0, high: null, missing: false}]]))")
        page.until("ex.filters.masks.has('component 1')")
        first = explorer.scene.embeddings[0].coordinates[:, 0].astype(np.float32)
        assert active(page).tolist() == (first >= 0).tolist()
        page.until("window.sent.some(one => one.type === 'filter')")
        mask = page("atob(window.sent.find(one => one.type === 'filter').mask)")
        bits = np.frombuffer(mask.encode("latin-1"), "u1")
        assert np.unpackbits(bits, bitorder="little")[:N].tolist() == (first >= 0).tolist()
        name = "reconstruction error"
        found = page.page.locator(f'.card[aria-label="{name}"]')
        found.scroll_into_view_if_needed()
        button = found.get_by_role("button", name=f"Compute {name}")
        button.wait_for()
        assert not any(one.get("name") == name for one in page("window.sent"))
        button.click()
        page.until(f"ex.columnsPanel.cards.get({name!r}).plot !== null")
        page("ex.requestFit({kernel: 'RBF(1.0)'}, 0)")  # the values of derived columns change
        page.until("!ex.filters.byName.size")
        page.until("window.sent.at(-1).type === 'column' || window.sent.at(-1).mask === null")
        assert active(page).all()
    finally:
        server.stop()


def test_a_million_points_are_brushed_in_200_ms(opened, tmp_path):
    n, rng = 1_000_000, np.random.default_rng(0)
    columns = {f"f{j}": rng.normal(size=n).astype(np.float32).astype(float) for j in range(5)}
    columns |= {f"i{j}": rng.integers(0, 50, n).astype(float) for j in range(4)}
    columns["class"] = rng.integers(0, 4, n).astype(float)
    embeddings = [
        Embedding(name, IdentityEmbedding(), rng.normal(size=(n, 2))) for name in ("one", "two")
    ]
    scene = Scene("many", Table(columns), np.zeros((n, 1)), tuple(embeddings), color="class")
    Explorer(scene).save(tmp_path / "many.html")
    opened.page.set_viewport_size({"width": 1280, "height": 1600})
    page = opened.go(tmp_path / "many.html")
    page.until("[...ex.columnsPanel.cards.values()].every(card => card.isVisible && card.plot)")
    page("""() => { window.times = []; const set = ex.setFilter.bind(ex);
      ex.setFilter = (...given) => {
        const start = performance.now(); set(...given); const taken = performance.now() - start;
        requestAnimationFrame(() => requestAnimationFrame(() => window.times.push(
          taken + ex.columnsPanel.drawTime + ex.panes[0].renderTime + ex.panes[1].renderTime)));
      }; }""")
    box = page.page.locator('.card[aria-label="f1"] .plot').bounding_box()
    y = box["y"] + 20
    for _ in range(4):  # other processes may be busy
        page.page.mouse.move(box["x"] + 0.3 * box["width"], y)
        page.page.mouse.down()
        for k in range(20):
            page.page.mouse.move(box["x"] + (0.32 + 0.02 * k) * box["width"], y)
            page.page.wait_for_timeout(20)
        page.page.mouse.up()
        page.page.wait_for_timeout(100)
        times = sorted(page("window.times"))
        median = times[len(times) // 2]
        if median <= 200:
            break
        page("window.times.length = 0")
        page.page.locator('.card[aria-label="f1"] .plot').dblclick()
    bounds = page("(f => [f.low, f.high])(ex.filters.byName.get('f1'))")
    assert page("ex.filters.count") == between(columns["f1"], bounds).sum()
    assert median <= 200, times


# Samples with 16-digit numbers, times in seconds, codes for missing values, and a constant that was
# computed in two ways.
LONG = {
    "sample": 4_000_123_456_780_000 + np.arange(N),
    "second": 1_731_000_001.0 + np.arange(N) % 4,
    "code": np.where(np.arange(N) % 10 == 0, 999_999_999, np.arange(N) % 3),
    "almost constant": np.where(np.arange(N) % 2, 0.3, 0.1 + 0.2),
    "infinite": np.where(np.arange(N) == 7, np.inf, np.arange(N) + 0.5),
    "mass": np.round(524.2641 + 6e-6 * np.arange(N), 6),
    "rating": np.round(1.6 + 0.1 * (np.arange(N) % 35), 1),
}


def test_long_integers_and_almost_constant_columns(opened, tmp_path):
    page, path = opened, tmp_path / "long.html"
    columns = {name: np.asarray(values, dtype=float) for name, values in LONG.items()}
    coordinates = np.column_stack([columns["almost constant"], X[:, 0]])  # also as an axis
    embedding = Embedding("plane", IdentityEmbedding(), coordinates)
    Explorer(Scene("long", Table(columns), X, (embedding,), color="second")).save(path)
    page.go(path)
    names = page("ex.column('second').categories().map(one => one.name)")
    assert names == [str(1_731_000_001 + k) for k in range(4)]
    page("ex.tabs.show('Columns')")
    card(page, "second").get_by_role("button", name="Only second 1731000002").click()
    assert active(page).tolist() == (LONG["second"] == 1_731_000_002).tolist()
    page("ex.setFilters(new Map())")
    low, high = drag(page, "sample", 0.25, 0.75)
    assert abs(low - LONG["sample"][N // 4]) <= 10 and abs(high - LONG["sample"][3 * N // 4]) <= 10
    assert active(page).tolist() == between(columns["sample"], (low, high)).tolist()
    assert card(page, "almost constant").locator(".ticks span").all_inner_texts() == ["0.3"]
    assert page("ex.column('sample').format(7)") == str(LONG["sample"][7])
    labels = card(page, "mass").locator(".ticks span").all_inner_texts()
    assert len(set(labels)) == len(labels) >= 3 and min(map(float, labels)) >= 524.2641
    assert page("ex.column('mass').format(1)") == "524.264106"
    card(page, "rating")  # each bin contains one of the values, although 1.7 - 1.6 < 0.1
    bins = page("[...ex.columnsPanel.cards.get('rating').plot.bins]")
    assert bins == (np.arange(N) % 35).tolist()

    page("ex.setFilters(new Map())")
    low, high = drag(page, "infinite", 0.5, 1.0)  # a range up to the last bin has no upper limit
    assert high is None and 140 < low < 160
    assert active(page).tolist() == (LONG["infinite"] >= low).tolist() and active(page)[7]
    page("async () => { ex.setFilters(new Map()); await ex.runSearch('code = 999999999'); }")
    page("ex.tabs.show('Selection')")
    page.until("ex.selection.contrast.state === 'done'")
    text = page("ex.selection.contrast.differences.find(one => one.name === 'code').text")
    assert text == f"{N // 10} of {N // 10} are 999999999 (rest: 0 of {N - N // 10})"
