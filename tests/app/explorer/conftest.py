"""A headless browser, and pages in it."""

import shutil
import time
from pathlib import Path

import pytest

# The view of a page, also inside the shadow root of a component.
FIND = """() => {
  const inner = node => [...node.children, ...(node.shadowRoot ? node.shadowRoot.children : [])];
  const seek = node => node.explorer || inner(node).reduce((f, child) => f || seek(child), null);
  window.ex = seek(document.body);
}"""


def _chromium():
    coordinates = ["chromium", "chromium-browser", "google-chrome", "chrome"]
    return next((found for name in coordinates if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def chromium():
    """A browser that can reach only this host."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = _chromium()
    if path is None:
        pytest.skip("chromium is not installed")
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ]
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


class Opened:
    """A page with a view, its network requests, and its errors."""

    find = FIND

    def __init__(self, page):
        self.page, self.asked, self.wrong = page, [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda line: line.type == "error" and self.wrong.append(line.text))

    def go(self, url):
        self.page.goto(str(url) if "://" in str(url) else Path(url).as_uri())
        self.page.wait_for_selector("[data-drawn]")
        self.page.evaluate(FIND)
        return self

    def __call__(self, code, given=None):
        """Return the value of a JavaScript expression, in which `ex` is the view."""
        return self.page.evaluate(code, given)

    def until(self, code):
        """Wait until a JavaScript expression is true.

        `page.wait_for_function` calls eval, which the content security policy of the page forbids.
        """
        deadline = time.monotonic() + 60
        while not self.page.evaluate(code):
            assert time.monotonic() < deadline, code
            self.page.wait_for_timeout(10)

    @property
    def status(self):
        return self.page.locator(".status").inner_text()

    def box(self, pane=0):
        return self.page.locator("canvas.over").nth(pane).bounding_box()

    def place(self, x, y, pane=0):
        """Return the screen position of data coordinates."""
        px, py = self(
            "([k, x, y]) => ex.panes[k].toPixels(x, y).map(p => p / ex.panes[k].pixelRatio)",
            [pane, x, y],
        )
        box = self.box(pane)
        return box["x"] + px, box["y"] + py

    def lasso(self, polygon, pane=0):
        """Draw a lasso around data coordinates, and return the polygon as the view recorded it."""
        self.page.get_by_role("button", name="Lasso").click()
        corners = [self.place(x, y, pane) for x, y in polygon]
        self.page.mouse.move(*corners[0])
        self.page.mouse.down()
        for corner in [*corners[1:], corners[0]]:
            self.page.mouse.move(*corner, steps=4)
        self.page.mouse.up()
        return self("ex.polygon")


@pytest.fixture
def opened(chromium):
    """A page for one test, which fails if the page has an error."""
    yield from _page(chromium)


@pytest.fixture(scope="module")
def shared(chromium):
    """A page for all tests of a module."""
    yield from _page(chromium)


def _page(chromium):
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800},
        accept_downloads=True,
        reduced_motion="reduce",  # so that points do not move for a while after each change
    )
    context.set_default_timeout(60_000)  # other processes may be busy
    page = Opened(context.new_page())
    yield page
    wrong = page.wrong
    context.close()
    assert wrong == []
