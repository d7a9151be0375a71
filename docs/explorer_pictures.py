"""Create the screenshots of docs/explorer.md and docs/shell.md; requires Chromium and Playwright.

python docs/explorer_pictures.py                  all screenshots
python docs/explorer_pictures.py oil report       some of them: digits, oil, report
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.datasets import load_digits, load_wine

from mercer import GPLVM, Explorer, KernelPCA, explore
from mercer.app.cli import main as run_cli

DOCS = Path(__file__).resolve().parent
DATA = Path(os.environ.get("MERCER_DATA", DOCS.parents[1] / "shared" / "data"))
SIZE = {"width": 1600, "height": 860}
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


def screenshot(page: Page, name: str) -> None:
    """Save a screenshot with a palette of 256 colours, which keeps the file small."""
    path = DOCS / name
    page.screenshot(path=path)
    with Image.open(path) as picture:
        method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
        small = picture.convert("RGB").quantize(256, method, kmeans=5, dither=dither)
    small.save(path, optimize=True)


def opened(browser: Browser, explorer: Explorer) -> Page:
    """Return the page of an explorer, after it was drawn."""
    page = browser.new_page(viewport=SIZE, bypass_csp=True)  # wait_for_function needs eval
    page.goto(explorer.show(open_browser=False).url)
    page.wait_for_selector("[data-drawn]")
    page.evaluate(FIND_EXPLORER_JS)
    return page


def draw_digits(browser: Browser) -> None:
    """Draw two embeddings of the digits, the record of a point, and a pre-image."""
    page = opened(browser, digits())
    click(page, 0, 0.08, 0.22)
    page.wait_for_selector(".preimage canvas")
    click(page, 0, *page.evaluate("[ex.panes[0].x[20], ex.panes[0].y[20]]"), action="move")
    page.wait_for_timeout(500)
    screenshot(page, "explorer-digits.png")


def draw_oil(browser: Browser) -> None:
    """Draw kernel PCA and a GPLVM of the oil flow data, with contours of the first component."""
    page = opened(browser, oil_flow())
    page.get_by_label("Dark").click()
    page.get_by_role("tab", name="Model").click()
    page.get_by_label("Vertical component").first.select_option(label="3")
    page.wait_for_function("ex.panes[0].axes[1].textContent.includes('component 3')")
    page.get_by_label("Contours in GPLVM").select_option(index=1)
    page.wait_for_function("ex.panes[1].field")
    page.mouse.move(5, 5)
    page.wait_for_timeout(500)
    screenshot(page, "explorer-oil.png")


def draw_report(browser: Browser) -> None:
    """Draw the report that `mercer demo` writes."""
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["mercer", "demo", "-o", folder]
        try:
            run_cli()
        except SystemExit as end:
            if end.code:
                raise
        page = browser.new_page(viewport={"width": 1000, "height": 920})
        page.goto((Path(folder) / "report.html").as_uri())
        page.wait_for_timeout(500)
        screenshot(page, "images/shell_report.png")


def main() -> None:
    """Open a browser and save the screenshots that the arguments name, or all of them."""
    pictures = {"digits": draw_digits, "oil": draw_oil, "report": draw_report}
    names = sys.argv[1:] or list(pictures)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in names:
            pictures[name](browser)
        browser.close()


if __name__ == "__main__":
    main()
