"""Create the screenshots of docs/explorer.md; requires Chromium and Playwright."""

import os
import shutil
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright
from sklearn.datasets import load_digits, load_wine

from mercer import GPLVM, Explorer, KernelPCA, explore

DOCS = Path(__file__).resolve().parent
DATA = Path(os.environ.get("MERCER_DATA", DOCS.parents[1] / "shared" / "data"))
SIZE = {"width": 1280, "height": 760}
# Sets window.ex to the explorer object, which may be inside a shadow root.
FIND_EXPLORER_JS = """() => {
  const inner = node => [...node.children, ...(node.shadowRoot ? node.shadowRoot.children : [])];
  const seek = node => node.explorer || inner(node).reduce((f, child) => f || seek(child), null);
  window.ex = seek(document.body);
}"""


def digits() -> Explorer:
    """Return an explorer of scikit-learn's digits."""
    X, y = load_digits(return_X_y=True)
    model = KernelPCA(4, kernel="RBF(length_scale=25)").fit(X)
    table = {"digit": y.astype(str)}
    return explore(model, X, table=table, color="digit", image_shape=(8, 8), title="Digits")


def oil_flow() -> Explorer:
    """Return an explorer of the oil flow data, or of the wine data if the file is missing."""
    file = DATA / "oil_flow" / "oil_flow.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as data:
            X, y = data["X_train"], data["y_train"]
        length_scale, title = 0.5, "Oil flow"
    else:
        X, y = load_wine(return_X_y=True)
        X, length_scale, title = (X - X.mean(axis=0)) / X.std(axis=0), 3.0, "Wine"
    model = KernelPCA(3, kernel=f"RBF(length_scale={length_scale})").fit(X)
    gplvm = GPLVM(2).fit(X)
    table = {"flow": [f"flow {k}" for k in y]}
    return explore(model, X, second=gplvm, table=table, color="flow", title=title)


def click(page: Page, pane: int, x: float, y: float, action: str = "click") -> None:
    """Click on a point of an embedding, or move the mouse to it."""
    frame = page.locator("canvas.over").nth(pane).bounding_box() or {"x": 0, "y": 0}
    to_pixels_js = "([k, x, y]) => ex.panes[k].toPixels(x, y).map(p => p / ex.panes[k].pixelRatio)"
    px, py = page.evaluate(to_pixels_js, [pane, x, y])
    getattr(page.mouse, action)(frame["x"] + px, frame["y"] + py)


def main() -> None:
    """Open both explorers in a browser and save a screenshot of each."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def opened(explorer: Explorer) -> Page:
            page = browser.new_page(viewport=SIZE)
            page.goto(explorer.show(open_browser=False).url)
            page.wait_for_selector("[data-drawn]")
            page.evaluate(FIND_EXPLORER_JS)
            return page

        page = opened(digits())
        click(page, 0, 0.08, 0.22)
        page.wait_for_selector(".preimage canvas")
        click(page, 0, *page.evaluate("[ex.panes[0].x[20], ex.panes[0].y[20]]"), action="move")
        page.wait_for_timeout(500)
        page.screenshot(path=DOCS / "explorer-digits.png")

        page = opened(oil_flow())
        page.get_by_label("Dark").click()
        page.get_by_label("Contours in GPLVM").select_option("magnification")
        page.wait_for_function("ex.panes[1].field")
        page.get_by_role("button", name="Select flow flow 0").click()
        click(page, 1, 0.0, 0.0)
        page.wait_for_selector(".preimage dl")
        page.mouse.move(5, 5)
        page.wait_for_timeout(500)
        page.screenshot(path=DOCS / "explorer-oil.png")
        browser.close()


if __name__ == "__main__":
    main()
