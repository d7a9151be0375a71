"""The differences of a selection, the table of its rows, and the neighbours of a point."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom, ks_2samp

from mercer import Graphs, KernelPCA, explore
from mercer.app.explorer import Explorer
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._scene import Scene
from mercer.tables import Table

N = 600


def random_columns():
    """Columns with ties, missing values, dates, and texts."""
    rng = np.random.default_rng(3)
    columns = {
        "normal": rng.normal(size=N),
        "rounded": np.round(rng.normal(size=N), 1),
        "integer": rng.integers(-300, 300, N).astype(float),
        "grade": rng.integers(0, 5, N).astype(float),
        "constant": np.ones(N),
        "empty": np.full(N, np.nan),
        "signed": rng.choice([-0.0, 0.0, -1.5, 1.5, 1e-9, 3.25e7], N),
        "date": np.datetime64("2024-01-01") + rng.integers(0, 40, N),
        "name": np.array([f"item {k}" for k in rng.integers(0, 300, N)], dtype=object),
        "city": rng.choice(["bonn", "köln", "ulm"], N).astype(object),
    }
    for name in ("normal", "rounded", "grade", "signed"):
        columns[name][rng.random(N) < 0.15] = np.nan
    columns["date"] = columns["date"].astype("M8[us]")
    columns["date"][rng.random(N) < 0.1] = "NaT"
    columns["city"][rng.random(N) < 0.2] = None
    return columns


COLUMNS = random_columns()


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(N, 2))
    Z[11] = Z[12] = Z[10]  # three identical points
    embedding = Embedding("plane", IdentityEmbedding(), Z)
    return Scene("random", Table(COLUMNS), np.zeros((N, 1)), (embedding,), color="grade")


@pytest.fixture
def page(shared, scene, tmp_path_factory):
    if not shared.asked:
        path = tmp_path_factory.mktemp("page") / "random.html"
        Explorer(scene).save(path)
        shared.go(path)
    shared("""() => { ex.setFilters(new Map()); ex.clear(); ex.table.setOpen(false);
      ex.table.setMode('table'); ex.table.sort = {name: '', isDescending: false};
      ex.panes[0].fit(); ex.tabs.show('Selection'); }""")
    return shared


def select(page, mask):
    page("mask => ex.setSelection(Uint8Array.from(mask), '')", mask.astype(int).tolist())
    page.until("ex.selection.contrast.state === 'done'")


def is_missing(values):
    if values.dtype.kind == "M":
        return np.isnat(values)
    return pd.isna(values)


def numbers(values):
    return values.astype(np.int64) if values.dtype.kind == "M" else values


def expected_difference(name, selected, rest):
    """Return the reference of the difference between the known values of two groups."""
    values = COLUMNS[name]
    a, b = (values[mask & ~is_missing(values)] for mask in (selected, rest))
    if values.dtype == object or name in ("grade", "constant"):
        p, q = (pd.Series(v).value_counts(normalize=True) for v in (a, b))
        return float(p.sub(q, fill_value=0).abs().sum() / 2)
    a, b = numbers(a), numbers(b)
    return sum(
        ks_2samp(a, b, alternative=side, method="asymp").statistic for side in ("less", "greater")
    )


@pytest.mark.parametrize("filtered", [False, True])
def test_differences_equal_references(page, filtered):
    selected = np.random.default_rng(1).random(N) < np.where(COLUMNS["integer"] > 50, 0.5, 0.1)
    active = np.ones(N, dtype=bool)
    if filtered:
        page("ex.setFilter(ex.column('integer'), {low: -200, high: 250, missing: false})")
        active = (COLUMNS["integer"] >= -200) & (COLUMNS["integer"] <= 250)
    select(page, selected & active)
    rest = ~selected & active
    found = {
        (one["name"], one["kind"]): one
        for one in page(
            "ex.selection.contrast.differences.map(({name, kind, effect}) => ({name, kind, effect}))"  # noqa: E501
        )
    }
    for name, values in COLUMNS.items():
        lost = is_missing(values)
        fractions = [lost[mask].mean() for mask in (selected & active, rest)]
        if lost.any():
            missing = found.pop((name, "missing"))["effect"]
            assert missing == pytest.approx(abs(fractions[0] - fractions[1]), abs=1e-12)
        if name == "empty":
            continue
        kind = "categories" if name in ("grade", "constant", "name", "city") else "numbers"
        effect = found.pop((name, kind))["effect"]
        assert effect == pytest.approx(
            expected_difference(name, selected & active, rest), abs=1e-12
        ), name
    assert found == {}


def test_differences_are_described(page):
    values = COLUMNS["rounded"]
    selected = (values >= -0.5) & (values <= 0.7) & (COLUMNS["city"] == "ulm")
    select(page, selected)
    first, second = page("ex.selection.contrast.differences").copy()[:2]
    assert {first["name"], second["name"]} == {"rounded", "city"}
    texts = dict(page("ex.selection.contrast.differences.map(one => [one.name, one.text])"))
    n = int(selected.sum())
    rest = ~selected & ~np.array([city is None for city in COLUMNS["city"]])
    ulm = int((COLUMNS["city"][rest] == "ulm").sum())
    median, other = np.median(values[selected]), np.nanmedian(values[~selected])
    lines = page.page.locator(".differences li").all_inner_texts()
    assert any(f"{n} of {n} are ulm (rest: {ulm} of {rest.sum()})" in line for line in lines)
    assert any(
        f"median {median:g}, rest {other:g}; 100\u00a0% from -0.5 to 0.7 (rest:" in line
        for line in lines
    )
    assert "missing (rest:" in texts["normal"]
    select(page, np.ones(N, dtype=bool))
    assert "no others" in page.page.locator(".contrast").inner_text()


@pytest.mark.parametrize(("name", "unit"), [("rounded", 0.1), ("integer", 1.0)])
def test_bars_of_integers_and_decimals_have_equally_many_values(page, name, unit):
    selected = np.arange(N) < 200
    select(page, selected)
    values = COLUMNS[name]
    bars = page(
        "name => ex.selection.contrast.differences.find(one => one.name === name).bars", name
    )
    ranges = np.array([bar["label"].split(" to ") for bar in bars], dtype=float)
    widths = ranges[:, 1] - ranges[:, 0]
    np.testing.assert_allclose(widths, widths[0], atol=1e-9)
    np.testing.assert_allclose(np.diff(ranges[:, 0]), widths[0] + unit, atol=1e-9)
    inside = [
        [
            values[group & (values > low - unit / 2) & (values < high + unit / 2)].size
            for group in (selected, ~selected)
        ]
        for low, high in ranges[1:-1]  # the first and the last contain the extreme values
    ]
    sizes = [(~np.isnan(values[group])).sum() for group in (selected, ~selected)]
    fractions = [bar["fractions"] for bar in bars]
    np.testing.assert_allclose(fractions[1:-1], np.array(inside) / sizes)
    np.testing.assert_allclose(np.sum(fractions, axis=0), 1)


def test_filtered_points_are_compared_with_all_others(page):
    """A filter leaves no other points, so the page offers to remove it and keeps the selection."""
    clear = page.page.get_by_role("button", name="Clear filters and compare")
    late = COLUMNS["integer"] >= 100
    page("ex.setFilter(ex.column('integer'), {low: 100, high: 400, missing: false})")
    page.page.get_by_role("tab", name="Columns").click()
    page.page.get_by_role("button", name="Select these points").click()
    page.page.get_by_role("tab", name="Selection").click()
    page.until("ex.selection.contrast.state === 'done'")
    clear.click()
    page.until("ex.selection.contrast.state === 'done'")
    assert not clear.is_visible()
    summary = page.page.locator(".contrast").inner_text()
    assert f"{late.sum()} selected points (bars), compared with {(~late).sum()} other" in summary
    assert page("ex.selection.contrast.differences[0].name") == "integer"
    page.page.get_by_role("button", name="Undo").click()
    assert page("ex.filters.count") == late.sum() and page("ex.count") == late.sum()


def test_selected_points_that_fail_a_filter_are_counted(page):
    select(page, COLUMNS["city"] == "ulm")
    panel = page.page.get_by_role("tabpanel", name="Selection")
    assert "pass the filters" not in panel.inner_text()
    page("ex.setFilter(ex.column('integer'), {low: 0, high: 400, missing: false})")
    failing = ((COLUMNS["city"] == "ulm") & (COLUMNS["integer"] < 0)).sum()
    assert f"{failing} of them do not pass the filters." in panel.inner_text()


def test_hover_prefers_points_that_satisfy_the_filters(page, scene):
    Z = scene.embeddings[0].coordinates
    page("ex.setFilter(ex.column('integer'), {low: 0, high: 400, missing: false})")
    active = COLUMNS["integer"] >= 0
    distances = np.linalg.norm(Z[:, None] - Z[active][None], axis=2).min(axis=1)
    pixel = 1 / page("ex.panes[0].scale / ex.panes[0].pixelRatio")
    close = np.flatnonzero(~active & (distances < 8 * pixel))[0]
    alone = np.flatnonzero(~active & (distances > 12 * pixel))[0]
    hover = "i => ex.nearestPoint(ex.panes[0], ex.panes[0].x[i], ex.panes[0].y[i], 9)"
    assert active[page(hover, int(close))]
    assert page(hover, int(alone)) == alone  # it is drawn faintly
    page("ex.setHideFiltered(true)")
    assert page(hover, int(alone)) == -1
    page("ex.setHideFiltered(false)")
    page("ex.setFilters(new Map())")
    assert page(hover, int(close)) == close


def test_a_random_selection_is_not_reported(page):
    """The expected difference of a random selection is subtracted before columns are shown."""
    rng, shown = np.random.default_rng(5), 0
    for _ in range(20):
        select(page, rng.random(N) < 0.1)
        shown += page("ex.selection.contrast.list.children.length")
    assert shown <= 6  # of 20 x 16 differences
    assert "No column differs more than by chance" in page(
        "(ex.selection.contrast.summary.textContent)"
    ) or page("ex.selection.contrast.list.children.length")
    # the expectation is exact for a category, up to the finite population correction
    for c, m, n in [(1, 50, 100), (7, 20, 200), (40, 100, 300)]:
        counts = np.arange(c + 1)
        p = hypergeom(m + n, c, m).pmf(counts)
        exact = float(p @ np.abs(counts / m - (c - counts) / n))
        code = "([c, m, n]) => ex.selection.contrast.constructor.chanceOf(c, m, n)"
        assert page(code, [c, m, n]) == pytest.approx(exact, rel=0.05)


# `rows` in the order of the table, which sorts by a column.
ORDER = """([name, isDescending]) => { ex.table.sort = {name, isDescending}; ex.table.order = null;
  return Array.from(ex.table.rows()); }"""


@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_equals_pandas(page, name, descending):
    def key(series):
        return series.str.removeprefix("item ").astype(float) if name == "name" else series

    frame = pd.DataFrame({name: COLUMNS[name]})
    expected = frame.sort_values(
        name, ascending=not descending, kind="stable", na_position="last", key=key
    )
    assert page(ORDER, [name, descending]) == expected.index.tolist()


def test_the_table_by_keyboard(page):
    key = page.page.keyboard.press
    toggle = page.page.get_by_role("button", name="Table", exact=True)
    toggle.focus()
    key("Enter")
    assert toggle.get_attribute("aria-expanded") == "true"
    assert page.page.locator(".page-range").inner_text() == f"1–50 of {N}"
    page.page.get_by_role("button", name="rounded", exact=True).focus()
    header = page.page.locator("th", has_text="rounded")
    frame = pd.DataFrame(COLUMNS)
    for direction in ("ascending", "descending", "none"):
        key("Enter")
        assert header.get_attribute("aria-sort") == direction
        assert page("document.activeElement.dataset.name") == "rounded"  # the focus stays
        rows = [int(t) - 1 for t in page.page.locator("tbody td:first-child").all_inner_texts()]
        ascending = direction != "descending"
        by = frame.sort_values("rounded", ascending=ascending, kind="stable")
        assert rows == (by if direction != "none" else frame).index[:50].tolist()
    forward = page.page.get_by_role("button", name="Next page")
    forward.focus()
    for _ in range(20):  # stays on the last page
        key("Enter")
    assert page.page.locator(".page-range").inner_text() == f"551–{N} of {N}"
    assert forward.get_attribute("aria-disabled") == "true"
    page.page.locator("tbody tr").first.focus()
    key("ArrowDown")
    key("Enter")
    assert page("ex.point.current") == 551
    assert page.page.locator("tr[aria-current=true] td").first.inner_text() == "552"
    assert page("document.activeElement.dataset.row") == "551"
    handle = page.page.get_by_role("separator", name="Height of the table")
    height = float(handle.get_attribute("aria-valuenow"))
    handle.focus()
    key("ArrowUp")
    assert float(handle.get_attribute("aria-valuenow")) > height
    assert page.page.locator(".rows").bounding_box()["height"] > height
    select(page, COLUMNS["city"] == "ulm")
    shown = page.page.locator("tbody td:first-child").all_inner_texts()
    expected = np.flatnonzero(COLUMNS["city"] == "ulm")
    assert [int(text) - 1 for text in shown] == expected[:50].tolist()
    assert page.page.locator(".page-range").inner_text() == f"1–50 of {len(expected)}"


def test_a_walk_to_neighbours(page, scene):
    Z = scene.embeddings[0].coordinates.astype(np.float32)

    def neighbours(i):
        d = np.linalg.norm(Z - Z[i], axis=1).astype(float)
        order = np.argsort(d, kind="stable")
        return [int(j) for j in order if j != i][:10], d

    for _ in range(5):  # the layout of the test before may still change
        page.page.mouse.click(*page.place(*Z[10].tolist()))
        start = page("ex.point.current")
        if start in (10, 11, 12):
            break
        page.page.wait_for_timeout(200)
    assert start in (10, 11, 12)
    assert page("ex.point.neighbours") == neighbours(start)[0]
    panel = page.page.get_by_role("tabpanel", name="Point")
    assert "2 other points are identical (distance 0)." in panel.inner_text()
    assert f"Row {start + 1}" in panel.inner_text()
    page.until("ex.panes.every(pane => !pane.stale)")
    page.page.locator(".near button").nth(4).focus()
    for _ in range(3):
        current = page("ex.point.current")
        following = neighbours(current)[0]
        at = page(
            "Array.from(document.querySelectorAll('.near button')).indexOf(document.activeElement)"
        )
        page.page.keyboard.press("Enter")
        assert page("ex.point.current") == following[at]
        assert page("ex.point.neighbours") == neighbours(following[at])[0]
    distances = panel.locator(".near li span:nth-of-type(1)").all_inner_texts()
    found, d = neighbours(page("ex.point.current"))
    np.testing.assert_allclose([float(t) for t in distances], d[found], rtol=6e-3)
    page.page.get_by_role("button", name="Select these points").click()
    assert sorted(page("Array.from(ex.selectedRows())")) == sorted(
        [page("ex.point.current"), *found]
    )
    page.page.get_by_role("button", name="Undo").click()
    assert page("ex.count") == 0


def large(n, columns):
    rng = np.random.default_rng(0)
    values = {}
    for j in range(columns):
        kind = j % 3
        values[f"x{j}"] = (
            rng.normal(size=n) if kind == 0
            else rng.integers(0, 1000, n).astype(float) if kind == 1
            else rng.choice([f"class {k}" for k in range(20)], n).astype(object)
        )  # fmt: skip
    Z = rng.normal(size=(n, 2))
    embedding = Embedding("plane", IdentityEmbedding(), Z)
    return Scene("large", Table(values), np.zeros((n, 1)), (embedding,))


# Runs the comparison and returns the longest time without an interruption, in ms.
LONGEST_BLOCK = """async () => { const {contrast} = ex.selection; clearTimeout(contrast.timer);
  let last = performance.now(), longest = 0, running = true;
  const tick = () => {
    const now = performance.now(); longest = Math.max(longest, now - last); last = now;
    if (running) setTimeout(tick);
  };
  tick(); await contrast.run(); running = false;
  return longest; }"""


def measured(page, code, given=None, repeats=5):
    """Return the values of an expression, and the smallest CPU time of the page, in seconds."""
    metrics = page.page.context.new_cdp_session(page.page)
    metrics.send("Performance.enable")

    def cpu_time():
        found = metrics.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in found if one["name"] == "ThreadTime")

    values, times = [], [cpu_time()]
    for _ in range(repeats):
        values.append(page(code, given))
        times.append(cpu_time())
    return values, np.diff(times).min()


def test_many_rows(opened, tmp_path):
    Explorer(large(100_000, 30)).save(tmp_path / "large.html")
    page = opened.go(tmp_path / "large.html")
    page("ex.setSelection(ex.combineSelection(i => ex.panes[0].x[i] > 1, 'set'), '')")
    blocks, seconds = measured(page, LONGEST_BLOCK)
    assert seconds < 0.6  # 0.2 s on an idle computer
    assert min(blocks) < 100, blocks  # 20 ms on an idle computer; other processes may be busy
    assert page("ex.selection.contrast.differences.length") == 30


def test_a_million_rows(opened, tmp_path):
    scene = large(1_000_000, 2)
    Explorer(scene).save(tmp_path / "million.html")
    page = opened.go(tmp_path / "million.html")
    page("ex.setSelection(ex.combineSelection(i => ex.panes[0].x[i] > -1, 'set'), '')")
    blocks, _ = measured(page, LONGEST_BLOCK)
    assert min(blocks) < 100, blocks
    assert "a sample of 32,768" in page("ex.selection.contrast.summary.textContent")
    page("ex.clear()")
    sort = """name => { ex.table.sort = {name, isDescending: false}; ex.table.order = null;
      return ex.table.rows().reduce((code, i) => (code * 31 + i) % 1000003, 7); }"""
    for name in ("x0", "x1"):
        found, seconds = measured(page, sort, name, repeats=3)
        code = 7
        for i in np.argsort(scene.table.columns[name], kind="stable").tolist():
            code = (code * 31 + i) % 1000003
        assert set(found) == {code}
        assert seconds < 1.0


def test_mean_images(opened, tmp_path):
    """The means of the selection and of the rest are drawn with the range of all pixels."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 17, (40, 6)).astype(float)
    explore(KernelPCA(2, kernel="Linear()").fit(X), image_shape=(2, 3)).save(
        tmp_path / "images.html"
    )
    page = opened.go(tmp_path / "images.html")
    selected = np.arange(40) < 10
    select(page, selected)
    canvases = """Array.from(document.querySelectorAll('.means canvas'), canvas => {
      const {data} = canvas.getContext('2d').getImageData(0, 0, 3, 2);
      return Array.from(data).filter((_, k) => k % 4 === 0); })"""
    means = [X[mask].mean(axis=0) for mask in (selected, ~selected)]
    difference = means[0] - means[1]
    largest = np.abs(difference).max()
    expected = [means[0] / 16, means[1] / 16, 0.5 + 0.5 * difference / largest]
    np.testing.assert_allclose(page(canvases), np.multiply(expected, 255), atol=0.51)
    text = page.page.locator(".means figcaption").last.inner_text()
    assert text.startswith("difference, up to ")
    assert float(text.split()[-1]) == pytest.approx(largest, rel=1e-3)
    select(page, np.ones(40, dtype=bool))
    assert page(canvases) == []


def test_texts_of_graphs_are_not_compared(opened, tmp_path):
    graphs = Graphs.from_edges([[(i, i + 1) for i in range(n)] for n in range(2, 22)])
    model = KernelPCA(2, kernel="WeisfeilerLehman(h=1)").fit(graphs)
    explore(model, graphs).save(tmp_path / "graphs.html")
    page = opened.go(tmp_path / "graphs.html")
    select(page, np.arange(20) < 10)
    names = page("ex.selection.contrast.differences.map(one => one.name)")
    assert {"nodes", "edges"} <= set(names)
    assert "point" not in names
    assert "point" in page("ex.shownColumns().map(column => column.name)")
    assert page("ex.describe(3)") == "Row 4: nodes 6, edges 5."


def test_a_small_screen(opened, tmp_path):
    """With an open table, the embedding and its buttons remain usable; labels fit into nodes."""
    edges = [[(i, i + 1) for i in range(n)] for n in range(2, 22)]
    graphs = Graphs.from_edges(edges, labels=[["C"] * (len(one) + 1) for one in edges])
    explore(KernelPCA(2, kernel="WeisfeilerLehman(h=1)").fit(graphs), graphs).save(
        tmp_path / "graphs.html"
    )
    opened.page.set_viewport_size({"width": 390, "height": 844})
    page = opened.go(tmp_path / "graphs.html")
    page("ex.table.setOpen(true); ex.point.show(5)")
    for name, inner, outer in [
        ("zoom", ".zoom", ".pane"),
        ("rows", ".drawer .rows", ".stack"),
        ("label", "text.node", "svg.graph circle"),
    ]:
        a, b = (page.page.locator(one).first.bounding_box() for one in (inner, outer))
        assert b["y"] - 1 <= a["y"], name
        assert a["y"] + a["height"] <= b["y"] + b["height"] + 1, name
    assert page.box()["height"] >= 128
