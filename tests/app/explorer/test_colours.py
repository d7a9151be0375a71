"""Colours of points in a saved page: limits of numeric scales, logarithms, and missing values."""

import numpy as np
import pytest

from mercer import KernelPCA, explore
from mercer._core import CLASS_COLOURS, OTHER_COLOUR

N = 200


def values():
    rng = np.random.default_rng(0)
    heavy = rng.normal(size=N)
    heavy[:2] = 50.0, -80.0
    price = np.exp(rng.normal(size=N))
    price[5:8] = np.nan
    group = np.array([f"group {i % 14:02d}" for i in range(N)], dtype=object)
    group[3] = None
    return {"heavy": heavy, "price": price, "even": np.linspace(1, 2, N), "group": group}


@pytest.fixture(scope="module")
def page(shared, tmp_path_factory):
    X = np.random.default_rng(1).normal(size=(N, 2))
    model = KernelPCA(2, kernel="rbf", gamma=1.0).fit(X)
    path = tmp_path_factory.mktemp("page") / "colours.html"
    explore(model, X, table=values(), color="even").save(path)
    shared.go(path)
    shared("ex.theme = 'light'; ex.applyTheme()")
    return shared


def colour_by(page, name, options=None):
    page("([name, options]) => { ex.column(name).colourOptions = options; }", [name, options])
    page("name => ex.colourBy(name)", name)
    page("Object.assign(window, {scale: ex.colourScale})")
    return page("scale")


def test_extreme_values_limit_the_range_of_colours(page):
    scale = colour_by(page, "heavy", {})
    low, high = np.quantile(values()["heavy"], [0.02, 0.98], method="nearest")
    assert (scale["low"], scale["high"]) == pytest.approx((low, high))
    assert scale["clipped"] == [True, True] and not scale["canLog"] and scale["missing"] == 0
    ends = page.page.locator(".ends span").all_inner_texts()
    assert ends[0].startswith("≤ -") and ends[1].startswith("≥ ")
    top = page("[...ex.colours].map((c, i) => [c, i]).filter(([c]) => c === ex.colours[0]).length")
    assert top == 5  # the largest value, and the others beyond the 98 % quantile
    page.page.get_by_label("clip colours").uncheck()
    page.until("!ex.colourScale.isClipped")
    assert page.page.locator(".ends span").all_inner_texts() == ["-80", "50"]


def test_values_without_extremes_use_the_whole_range(page):
    scale = colour_by(page, "even", {})
    assert (scale["low"], scale["high"], scale["isClipped"]) == (1, 2, False)
    assert scale["ends"] == ["1", "2"]
    assert page("new Set(ex.colours).size") > 150


def test_logarithmic_colours_and_missing_values(page):
    colour_by(page, "price", {"clip": False})
    positions = page("[...ex.colours]")
    page.page.get_by_label("log colours").check()
    page.until("ex.colourScale.isLog")
    assert page("document.activeElement.getAttribute('aria-label')") == "log colours"
    price = values()["price"]
    i = int(np.argsort(price)[N // 2])  # the median has a higher position on the logarithmic scale
    stops = page("new Map([...ex.colours].map((c, i) => [ex.column('price').at(i), c])).size")
    assert stops == N - 2 and page("i => ex.colours[i]", i) != positions[i]
    missing = page.page.get_by_label("Select price missing, 3 points")
    missing.click()
    assert page("[...ex.selected].flatMap((s, i) => s ? [i] : [])") == [5, 6, 7]
    grey = page("colour => hexPixel = parseInt('ff' + colour.slice(5, 7) + colour.slice(3, 5) "
                "+ colour.slice(1, 3), 16)", OTHER_COLOUR["light"])  # fmt: skip
    assert page("[5, 6, 7].map(i => ex.colours[i])") == [grey] * 3
    page("ex.clear()")


def test_classes_use_the_palette_of_python_and_the_others_are_grey(page):
    scale = colour_by(page, "group")
    assert [one["colour"] for one in scale["classes"]] == list(CLASS_COLOURS["light"])
    assert len(scale["rest"]) == 2 and scale["missing"] == 1
    assert page.page.get_by_label("Select group missing, 1 points").count() == 1
    page("ex.theme = 'dark'; ex.applyTheme()")
    dark = [one["colour"] for one in page("ex.colourScale.classes")]
    page("ex.theme = 'light'; ex.applyTheme()")
    assert dark == list(CLASS_COLOURS["dark"])
