"""Undo, named selections, sessions in files and in the address, and saved pages."""

import base64
import json
import zlib

import numpy as np
import pytest

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import Explorer, read_session, serve

PICTURE = """async () => {
  await new Promise(done => setTimeout(done, 100));
  return ex.panes.map(pane => pane.base.toDataURL() + pane.over.toDataURL());
}"""


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    label = np.arange(240) % 3
    X = rng.normal(size=(240, 4)) * 0.4 + 2.0 * np.eye(4)[label]
    table = {"label": np.array(["a", "b", "c"], dtype=object)[label], "order": np.arange(240)}
    model = KernelPCA(3, kernel="RBF(1.5)").fit(X)
    return explore(model, X, table=table, color="label", title="blobs")


@pytest.fixture(scope="module")
def served(blobs):
    serving = serve(lambda: blobs.scene, title="blobs").start()
    yield serving
    serving.stop()


@pytest.fixture
def page(opened, served):
    return opened.go(served.url)


@pytest.fixture
def another(chromium, blobs, opened):
    """Return a function that opens a page of another server in another browser context."""
    closed = []

    def open_(explorer=blobs, fragment="", path=None):
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        other = type(opened)(context.new_page())
        closed.append((context, other))
        if path is None:
            serving = serve(lambda: explorer.scene, title="blobs").start()
            closed.append((serving, None))
        other.go(path or serving.url + fragment)
        other.until("!ex.session.isApplying")
        return other

    yield open_
    for thing, other in reversed(closed):
        if other is None:
            thing.stop()
        else:
            thing.close()
    assert [other.wrong for _, other in closed if other is not None and other.wrong] == []


def fit(page, kernel):
    page("() => ex.tabs.show('Model')")
    page.page.get_by_label("kernel", exact=True).fill(kernel)
    page.until(f"ex.form.message.kernel === {kernel!r}")
    page("() => document.activeElement.blur()")


def settle(page):
    page.until("ex.panes.every(pane => !pane.stale && !pane.transition)")
    page.page.wait_for_timeout(100)


def prepare(page):
    """Change every part of the state, and return the picture."""
    fit(page, "RBF(length_scale=2.25)")
    page("""async () => {
      await ex.colourBy("order");
      ex.setFilter(ex.column("order"), {low: 20, high: 200, missing: true});
      ex.select(ex.combineSelection(i => i % 7 < 3, "set"), "some");
      ex.named.field.value = "some";
      ex.named.add();
      ex.panes[0].zoom(2.5, 200, 150);
      ex.panes[1].pan(40, -30);
      ex.theme = "dark";
      ex.applyTheme();
      ex.size = 1.5;
      ex.search.value = "order > 3";
      ex.redraw();
    }""")
    settle(page)
    return page(PICTURE)


def save(page, path):
    page.page.get_by_role("button", name="Save or open the session").click()
    with page.page.expect_download() as found:
        page.page.get_by_role("button", name="Save session …").click()
    found.value.save_as(path)
    return json.loads(path.read_text("utf-8"))


def same_state(page):
    return page("""() => [ex.color, ex.theme, ex.size, ex.search.value, ex.count, ex.filters.count,
      ex.named.list.map(one => [one.name, one.count]), ex.models.text]""")


def test_undo_restores_selection_filters_colour_and_kernel(page):
    state = """() => [ex.count, ex.filters.count, ex.color, ex.form.message.kernel,
      ex.named.list.map(one => one.name)]"""
    steps = [page(state)]
    page("ex.select(ex.combineSelection(i => i < 5, 'set'), '')")
    steps.append(page(state))
    page("() => ex.named.add()")
    steps.append(page(state))
    page("ex.setFilter(ex.column('order'), {low: 0, high: 9, missing: true}); ex.commit('filter')")
    steps.append(page(state))
    page("ex.colourBy('order').then(() => ex.commit('colour'))")
    steps.append(page(state))
    coordinates = page("Array.from(ex.panes[0].x)")
    fit(page, "RBF(length_scale=0.5)")
    steps.append(page(state))
    assert len({json.dumps(step) for step in steps}) == 6
    press = page.page.keyboard.press
    for step in reversed(steps[:-1]):
        press("Control+z")
        page.until(f"JSON.stringify(({state})()) === JSON.stringify({json.dumps(step)})")
        if step is steps[4]:
            np.testing.assert_allclose(page("Array.from(ex.panes[0].x)"), coordinates, atol=1e-6)
    assert page("ex.undoButton.disabled")
    for k, step in enumerate(steps[1:]):
        press("Control+Shift+Z" if k % 2 else "Control+y")
        page.until(f"JSON.stringify(({state})()) === JSON.stringify({json.dumps(step)})")
    assert page("ex.redoButton.disabled")


def test_quick_steps_of_one_action_are_one_entry(page):
    page("""() => { for (let k = 0; k < 9; k++) {
      ex.setFilter(ex.column("order"), {low: k, high: 100, missing: true});
      ex.commit("filter order", "filter order");
    } }""")
    assert page("ex.history.past.length") == 1
    page("ex.history.current.time -= 10000")
    page("ex.setFilter(ex.column('order'), null); ex.commit('filter order', 'filter order')")
    assert page("ex.history.past.length") == 2


def test_keys_in_a_text_field_do_not_undo_the_view(page):
    page("ex.select(ex.combineSelection(i => i < 5, 'set'), '')")
    box = page.page.get_by_label("Search")
    box.fill("order > 3")
    page.page.keyboard.press("Control+z")
    assert page("ex.count") == 5
    assert box.input_value() == ""


def test_a_session_file_shows_the_same_picture_elsewhere(page, another, blobs, tmp_path):
    picture = prepare(page)
    state = same_state(page)
    path = tmp_path / "session.json"
    document = save(page, path)
    assert document["mercer"] == "explorer session" and document["version"] == 1
    assert document["model"]["kernel"] == "RBF(length_scale=2.25)"
    other = another()
    assert other(PICTURE) != picture
    with other.page.expect_file_chooser() as chooser:
        other.page.get_by_role("button", name="Save or open the session").click()
        other.page.get_by_role("button", name="Open session …").click()
    chooser.value.set_files(path)
    other.until("ex.status.textContent.startsWith('The session was opened')")
    settle(other)
    assert other.status == "The session was opened."
    assert same_state(other) == state
    assert other(PICTURE) == picture
    other.page.keyboard.press("Control+z")
    other.until("ex.color === 'label' && ex.count === 0 && !ex.named.list.length")

    third = another(Explorer(blobs.scene).load_session(path))
    settle(third)
    assert same_state(third) == state
    assert third(PICTURE) == picture


def test_the_address_keeps_the_state(page, another):
    picture, state = prepare(page), same_state(page)
    page.until("location.hash.startsWith('#state=')")
    page.page.wait_for_timeout(700)
    fragment = page("location.hash")
    other = another(fragment=fragment)
    settle(other)
    assert same_state(other) == state
    assert other(PICTURE) == picture
    page.page.reload()
    page.page.wait_for_selector("[data-drawn]")
    page.page.evaluate(page.find)
    page.until("ex.theme === 'dark' && !ex.session.isApplying")
    settle(page)
    assert same_state(page) == state
    assert page(PICTURE) == picture
    assert page("ex.undoButton.disabled")


def test_a_saved_page_shows_the_same_picture_without_requests(page, another, tmp_path):
    picture, state = prepare(page), same_state(page)
    page.page.get_by_role("button", name="Save or open the session").click()
    with page.page.expect_download() as found:
        page.page.get_by_role("button", name="Save this page").click()
    found.value.save_as(tmp_path / "saved.html")
    other = another(path=tmp_path / "saved.html")
    settle(other)
    assert same_state(other)[:-1] == state[:-1]
    assert other(PICTURE) == picture
    assert other.asked == [(tmp_path / "saved.html").as_uri()]
    document = save(other, tmp_path / "session.json")
    assert document["model"] == json.loads(state[-1])


GOOD = {"mercer": "explorer session", "version": 1}
EMPTY_ROWS = {"by": "row number", "size": 0, "count": 0, "bits": ""}
HOSTILE = "<img src=x onerror=document.title='caught'>"


@pytest.mark.parametrize(
    ("session", "words"),
    [
        ("{", "because it is not JSON"),
        ([1], "not a session of the explorer"),
        (GOOD | {"version": 2}, 'has version "2", but this page reads version 1'),
        (GOOD | {"data": {"rows": 3, "title": HOSTILE}}, 'is about 3 rows of "<img src=x'),
        (GOOD | {"data": {"columns": ["label", "x"]}}, 'no column "x"'),
        (GOOD | {"data": {"rows": 240}}, "the values differ"),
        (GOOD | {HOSTILE: 1, "__proto__": {"a": 1}}, f'The unknown entry "{HOSTILE}" was ignored'),
        (GOOD | {"theme": "pink"}, "theme: one of light, dark was expected"),
        (GOOD | {"theme": {"toString": 1, "$": ["f8", 0, 1e9]}}, "theme: one of light"),
        (GOOD | {"size": 1e300}, "size: a number from 0.25 to 4"),
        (GOOD | {"colour": {"column": "no such"}}, 'colour: there is no column "no such"'),
        (
            GOOD | {"filters": [{"column": "label", "low": 0, "high": 1}]},
            '"label" has another type',
        ),
        (GOOD | {"filters": [{"column": "order", "low": "0", "high": 1}]}, "a number from"),
        (GOOD | {"filters": [{"column": "none", "low": 0, "high": 1}]}, 'no column "none"'),
        (GOOD | {"filters": {"length": -1}}, "filters: a list of at most"),
        (GOOD | {"selection": EMPTY_ROWS | {"bits": "!"}}, "compressed data are damaged"),
        (GOOD | {"selection": EMPTY_ROWS | {"bits": "AAAA", "size": 9}}, "data are damaged"),
        (
            GOOD | {"selection": EMPTY_ROWS | {"by": "position", "bits": "AwA="}},
            "stored by position",
        ),
        (GOOD | {"selection": "bomb"}, "the compressed data are too long"),
        (GOOD | {"selections": [{"name": 3}]}, "a text of at most 100"),
        (GOOD | {"panes": [{"centre": [0], "zoom": 1}]}, "two coordinates"),
        (GOOD | {"panes": [{"centre": [0, None], "zoom": 1}]}, "a number from"),
        (GOOD | {"model": {"kernel": "RBF(("}}, "model: "),
        (GOOD | {"model": {"components": "many"}}, "model: "),
        (GOOD | {"model": {"axes": [[0, 99], [0, 1]]}}, "model: "),
        (GOOD | {"model": {"kernels": "RBF(1)"}}, 'the unknown entry "kernels" was ignored'),
        (GOOD | {"tab": "constructor"}, "tab: one of"),
    ],
    ids=str,
)
def test_a_session_that_does_not_fit_is_explained(shared, served, session, words):
    if not shared.asked:
        shared.go(served.url)
    if isinstance(session, dict) and session.get("selection") == "bomb":
        packed = zlib.compressobj(9, zlib.DEFLATED, -15)
        bits = base64.b64encode(packed.compress(bytes(10**7)) + packed.flush()).decode()
        session = session | {"selection": EMPTY_ROWS | {"size": 240, "bits": bits}}
    text = session if isinstance(session, str) else json.dumps(session)
    before = same_state(shared)
    shared("text => ex.session.applyText(text)", text)
    assert words in shared.page.locator(".notices").last.inner_text()
    assert same_state(shared) == before
    assert shared.page.title() == "blobs" and shared("({}).a === undefined")
    shared("() => { ex.select(ex.combineSelection(i => i < 9, 'set'), ''); ex.clear(); }")
    assert shared("[ex.panes[0].scale, ...ex.panes[0].centre].every(Number.isFinite)")


def test_parts_that_fit_are_applied(page):
    session = GOOD | {
        "colour": {"column": "order", "log": 7},
        "theme": 3,
        "model": {"kernel": "RBF(("},
        "size": 2,
    }
    page("text => ex.session.applyText(text)", json.dumps(session))
    assert page("[ex.color, ex.size]") == ["order", 2]
    text = page.page.locator(".notices").last.inner_text()
    assert "theme: one of" in text and "model: " in text and "colour" not in text


def test_a_damaged_address_is_reported(another):
    for fragment in ("#state=%00", "#state=AAAA", "#state=", "#other"):
        other = another(fragment=fragment)
        text = other.page.locator(".notices").last.inner_text()
        assert ("cannot be read" in text) == fragment.startswith("#state=")


def test_a_selection_that_is_too_long_is_left_out_of_the_address(page):
    page("ex.session.rows.ids = Uint32Array.from({length: 240}, (_, i) => 1 + 400 * i * i)")
    page("""() => { const rows = ex.session.rows, encode = rows.encode.bind(rows);
      rows.encode = async mask => ({...await encode(mask),
        more: Array.from({length: 4000}, Math.random).join()}); }""")
    random = "i => (i * 2654435761 % 4294967296) / 4294967296 < 0.5"
    page(f"ex.select(ex.combineSelection({random}, 'set'), '')")
    page.until("location.hash.startsWith('#state=') && !ex.session.note.hidden")
    assert page("location.hash.length") < 8010
    page.page.get_by_role("button", name="Save or open the session").click()
    text = page.page.locator(".menu-items").first.inner_text()
    assert "does not contain named selections and the selection" in text


def test_rows_are_stored_by_row_number(page):
    """A session stays correct if a row is left out; rows that do not exist are reported."""
    found = page("""async () => {
      const mask = ex.combineSelection(i => i === 3 || i === 5 || i === 239, "set"), reports = [];
      const code = await ex.session.rows.encode(mask);
      const Rows = ex.session.rows.constructor;
      const ids = Uint32Array.from({length: 9}, (_, i) => i + 4);
      const {mask: found} = await new Rows({ids, rows: 9}).decode(code, text => reports.push(text));
      return [Array.from(found), reports];
    }""")
    assert found == [[1, 0, 1, 0, 0, 0, 0, 0, 0], ["1 of 3 rows are not among the points."]]


def test_named_selections(page, served):
    page("() => ex.tabs.show('Selection')")
    panel = page.page.locator("section", has=page.page.get_by_text("Named selections", exact=True))
    button = lambda name: panel.get_by_role("button", name=name)  # noqa: E731

    def store(condition, name):
        page(f"ex.select(ex.combineSelection({condition}, 'set'), '')")
        panel.get_by_label("Name for the selection").fill(name)
        panel.get_by_label("Name for the selection").press("Enter")

    store("i => i < 10", "low")
    store("i => i % 2 === 0 && i < 20", HOSTILE)
    names = "ex.named.list.map(one => [one.name, one.count])"
    assert page(names) == [["low", 10], [HOSTILE, 10]]
    button("Select low, 10 points").click()
    rows = "Array.from(ex.selectedRows())"
    assert page(rows) == list(range(10))
    button(f"Keep only selected points that are in {HOSTILE}").click()
    assert page(rows) == [0, 2, 4, 6, 8]
    button("Select low, 10 points").click()
    button(f"Remove {HOSTILE} from the selection").click()
    assert page(rows) == [1, 3, 5, 7, 9]
    button(f"Add {HOSTILE} to the selection").click()
    assert page(rows) == sorted({1, 3, 5, 7, 9} | set(range(0, 20, 2)))
    field = panel.get_by_label("Name of the selection low")
    field.fill("first")
    field.press("Enter")
    assert page(names)[0][0] == "first"
    button("Colour by named selections").click()
    page.until("ex.color === 'named selections'")
    column = "Array.from({length: 240}, (_, i) => ex.column('named selections').at(i))"
    low, even = set(range(10)), set(range(0, 20, 2))
    assert page(column) == [
        "several" if i in low & even else "first" if i in low else HOSTILE if i in even else "none"
        for i in range(240)
    ]
    expected = {"first": sorted(low), HOSTILE: sorted(even)}

    def known():
        controllers = [socket.controller for socket in served._application.sockets]
        return [{k: v.tolist() for k, v in one.selections.items()} for one in controllers]

    page.page.wait_for_timeout(300)
    assert expected in known()
    fit(page, "RBF(length_scale=0.75)")  # derived columns are sent again
    assert page("ex.color") == "named selections" and page(column)[0] == "several"
    page("() => ex.tabs.show('Selection')")
    button("Delete first").click()
    button(f"Delete {HOSTILE}").click()
    assert page("ex.color") == "" and page("ex.column('named selections')") is None
    page.page.get_by_label("Undo").click()
    assert page(names) == [[HOSTILE, 10]]


def test_reading_a_session_in_python(tmp_path, blobs):
    path = tmp_path / "session.json"
    for text, words in [
        ("{", "is not a session"),
        ("[" * 100_000, "is not a session"),
        ('{"mercer": 1}', "is not a session"),
        (json.dumps(GOOD | {"version": 3}), "is a session of version 3"),
    ]:
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=words):
            read_session(path)
    path.write_text(json.dumps(GOOD | {"theme": "dark"}), "utf-8")
    assert json.loads(read_session(path))["theme"] == "dark"
    assert Explorer(blobs.scene).load_session(path).scene.session == read_session(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._sessions._MAX_SESSION_BYTES", 10)
    (tmp_path / "session.json").write_text(json.dumps({"a": "b" * 10}))
    with pytest.raises(ValueError, match="is too large to be a session of the explorer"):
        read_session(tmp_path / "session.json")
