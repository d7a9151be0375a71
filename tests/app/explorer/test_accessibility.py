"""Accessibility of the explorer (WCAG 2.2, level AA): contrast, sizes of controls, focus."""

import itertools
import os
import re
from pathlib import Path

import numpy as np
import pytest

from mercer import KernelPCA, explore
from mercer.app.explorer._serialize import asset

TEXT, CONTROL = 4.5, 3.0  # smallest contrasts of text (1.4.3) and of control borders (1.4.11)


def themes():
    """Return the colour variables of the light and the dark theme."""
    css = asset("view.css")
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w+)", css[css.index(start) :].partition("}")[0]))
        for start in (".mercer {", '.mercer[data-theme="dark"] {')
    )
    return {"light": light, "dark": light | dark}


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    channels = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_colours():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.005)  # the known limit


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_and_controls_have_enough_contrast(theme):
    colours = themes()[theme]
    pairs = itertools.product(("ink", "soft", "mark", "warm"), ("paper", "card", "on"))
    table = {(text, ground): contrast(colours[text], colours[ground]) for text, ground in pairs}
    table["paper", "mark"] = contrast(colours["paper"], colours["mark"])  # the button Run
    low = {pair: round(value, 2) for pair, value in table.items() if value < TEXT}
    assert low == {}
    borders = {ground: contrast(colours["edge"], colours[ground]) for ground in ("paper", "card")}
    assert min(borders.values()) >= CONTROL, borders


@pytest.fixture(scope="module")
def flowers():
    """An explorer with columns of all types, long names, and missing values."""
    rng = np.random.default_rng(0)
    kind = np.arange(120) % 3
    X = rng.normal(size=(120, 4)) * 0.4 + 2.0 * np.eye(4)[kind]
    number = rng.normal(size=120)
    number[:9] = np.nan
    table = {
        "species": np.array(["setosa", "versicolor", "virginica"], dtype=object)[kind],
        "a column with a long name, longer than any panel of the explorer is wide": number,
        "date": np.datetime64("2024-01-01") + np.arange(120),
        "code": np.array([f"{chr(97 + k % 17)} value" for k in range(120)], dtype=object),
    }
    model = KernelPCA(3, kernel="RBF(1.5)").fit(X)
    title = "Flowers of three species, with a title that is longer than a phone is wide"
    return explore(model, X, table=table, color="species", title=title)


@pytest.fixture(scope="module")
def served(flowers):
    pytest.importorskip("tornado")
    server = flowers.show(open_browser=False)
    yield server
    server.stop()


@pytest.fixture
def page(shared, served):
    if not shared.asked:
        shared.go(served.url)
        load_checks(shared.page)
    shared.page.set_viewport_size({"width": 1280, "height": 800})
    return shared


def load_checks(view):
    """Define the functions of accessibility.js in a page."""
    text = Path(__file__).with_name("accessibility.js").read_text()
    names = re.findall(r"(?:^const|^function|^async function) (\w+)", text, flags=re.M)
    view.evaluate(f"() => {{ {text}\nObject.assign(window, {{{', '.join(names)}}}); }}")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_the_focus_is_never_lost(page, step):
    """Every step-th control is tested, beginning with another one on each tab."""
    page("""() => { const receive = ex.receive.bind(ex);
      ex.receive = message => {
        if (message.kind === "embeddings") window.refit = structuredClone(message);
        receive(message);
      };
      ex.requestFit({parameter: 0, value: 1.7}, 0);
    }""")
    page.until("window.refit")
    checked, lost = page("step => findLostFocus(window.refit, step)", step)
    assert checked > 150 / step
    assert lost == []
    page("() => { ex.setFilters(new Map()); ex.colourBy('species'); ex.clear(); }")


def test_a_click_next_to_the_controls_still_removes_the_focus(page):
    page("ex.search.focus()")
    page.page.locator("h1").click()
    page("pause()")
    assert page("document.activeElement === document.body")


def test_every_feature_works_with_the_keyboard_alone(page):
    keyboard = page.page.keyboard

    def reach(text):
        """Press Tab until a control with this text has the focus."""
        for _ in range(250):
            keyboard.press("Tab")
            if text in page("describe(document.activeElement)"):
                return
        raise AssertionError(f"{text} cannot be reached with Tab")

    page("() => { ex.clear(); ex.tabs.show('Columns'); ex.search.focus(); }")
    keyboard.type("species = setosa")
    keyboard.press("Enter")
    page.until("ex.count === 40")
    reach("kernel PCA: 120 points")
    keyboard.press("ArrowRight")
    keyboard.press("Enter")  # the pre-image at the cursor
    page.until("ex.tabs.current === 'Point' && ex.point.card.querySelector('dl')")
    keyboard.press("l")  # a lasso around everything
    for keys in (["ArrowUp", "ArrowLeft"], ["ArrowDown"], ["ArrowRight"], ["ArrowUp"]):
        for key in keys:
            for _ in range(40):
                keyboard.press(key)
        keyboard.press("Enter")
    keyboard.press("l")
    page.until("ex.count > 40")
    reach("Table")
    keyboard.press("Enter")
    reach("BUTTON species")
    keyboard.press("Enter")
    page.until("ex.table.sort.name === 'species'")
    reach("Show species setosa")
    keyboard.press("Space")
    page.until("ex.filters.count === 80")
    keyboard.press("Control+z")
    page.until("ex.filters.count === 120")
    reach("BUTTON Point")
    for key in ("ArrowLeft", "Home"):
        keyboard.press(key)
    page.until("ex.tabs.current === 'Columns'")
    reach("Lower bound of a column")
    keyboard.press("PageUp")
    page.until("ex.filters.byName.size === 1 && ex.filters.count < 120")
    keyboard.press("Delete")
    page.until("ex.filters.byName.size === 0")
    page("ex.tabs.buttons.get('Columns').focus()")
    for _ in range(3):
        keyboard.press("ArrowRight")
    page.until("ex.tabs.current === 'Model'")
    reach("INPUT kernel")
    keyboard.press("Control+a")
    keyboard.type("RBF(2.5)")
    page.until("ex.form.message.kernel === 'RBF(length_scale=2.5)'")
    page("ex.search.focus()")
    reach("Keyboard and mouse")
    keyboard.press("Enter")
    assert page("ex.help.open")
    keyboard.press("Escape")
    assert page("!ex.help.open && describe(document.activeElement)") == "BUTTON Keyboard and mouse"
    reach("Components")
    keyboard.press("Enter")
    assert page("ex.components.element.open")
    keyboard.press("Escape")
    assert not page("ex.components.element.open")
    assert page("describe(document.activeElement)") == "BUTTON Components"
    page("ex.tools.move.focus()")
    reach("Save or open the session")
    keyboard.press("Enter")
    assert page("!ex.session.menu.list.hidden")
    keyboard.press("Escape")
    assert page("ex.session.menu.list.hidden")
    assert page("describe(document.activeElement)") == "BUTTON Save or open the session"


@pytest.mark.parametrize("width", [320, 390, 700, 1000, 1280, 2560])
def test_controls_are_large_enough_and_not_cut_off(page, width):
    """A width of 320 px is that of a window of 1280 px at 400 % zoom."""
    page.page.set_viewport_size({"width": width, "height": 800})
    page.page.wait_for_timeout(100)
    assert page("findSmallControls()") == []
    assert page("findWideElements()") == []


@pytest.mark.skipif("MERCER_AXE" not in os.environ, reason="MERCER_AXE is not the path of axe")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_has_no_serious_finding(chromium, served, width, theme):
    size = {"width": width, "height": 800}
    context = chromium.new_context(
        viewport=size, color_scheme=theme, bypass_csp=True, reduced_motion="reduce"
    )
    context.set_default_timeout(120_000)
    view = context.new_page()
    view.goto(served.url)
    view.wait_for_selector("[data-drawn]")
    view.evaluate("() => { window.ex = document.getElementById('explorer').explorer; }")
    view.evaluate(Path(os.environ["MERCER_AXE"]).read_text())
    load_checks(view)
    found = view.evaluate("findWithAxe()")
    context.close()
    assert found == []
