"""Create the pictures of the tutorials.

python docs/tutorials/pictures.py                        all pictures
python docs/tutorials/pictures.py molecules explorer     some of them

The code on a page draws its pictures. This script runs the pages in a temporary folder, and copies
the pictures with fewer colours, so that the files are small. The screenshot of the explorer
requires Chromium and Playwright. The pages on molecules and CO2 need the folder MERCER_DATA.
"""

import contextlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from PIL import Image  # a dependency of matplotlib

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))
sys.path.insert(0, str(FOLDER.parent))

from tools import page_output  # noqa: E402

PAGES = ("digits", "molecules", "co2", "deployment")
WIDTH = 1000  # pixels
COLOURS = 256
# Pictures that a command writes under another name than the one on the page.
WRITTEN_AS = {"digits-embedding.png": "pca/embedding.png"}


def save_small(source: Path, name: str) -> None:
    """Write a copy with at most WIDTH pixels in a row and with a palette."""
    with Image.open(source) as picture:
        size = min(picture.width, WIDTH)
        height = round(picture.height * size / picture.width)
        small = picture.convert("RGB").resize((size, height), Image.Resampling.LANCZOS)
        small = small.quantize(COLOURS, dither=Image.Dither.NONE)
        small.save(FOLDER / name, optimize=True)
    print(f"{name}: {(FOLDER / name).stat().st_size / 1000:.0f} kB")


def draw_page(page: str) -> None:
    """Run a page and copy the pictures that it shows."""
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        page_output.run_page(text, page)
        for name in re.findall(r"\]\(([\w-]+\.png)\)", text):
            source = Path(folder, WRITTEN_AS.get(name, name))
            if source.exists():
                save_small(source, name)


def draw_explorer() -> None:
    """Save a screenshot of `mercer explore` on the training rows of the tutorial."""
    from explorer_pictures import FIND_EXPLORER_JS, SIZE, click
    from playwright.sync_api import sync_playwright
    from sklearn.datasets import load_digits

    from mercer import KernelPCA, explore

    X, digit = load_digits(return_X_y=True)
    X, digit = X[:1500], digit[:1500].astype(str)
    model = KernelPCA(2, kernel="RBF(length_scale='median')").fit(X)
    explorer = explore(
        model, X, table={"digit": digit}, color="digit", image_shape=(8, 8), title="train.csv"
    )
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(explorer.show(open_browser=False).url)
        page.wait_for_selector("[data-drawn]")
        page.evaluate(FIND_EXPLORER_JS)
        click(page, 0, 0.12, 0.33)  # between the zeros and the sixes
        page.wait_for_selector(".preimage canvas")
        lowest_js = "(p => { const i = p.y.indexOf(Math.min(...p.y)); return [p.x[i], p.y[i]]; })"
        click(page, 1, *page.evaluate(f"{lowest_js}(ex.panes[1])"), action="move")
        page.wait_for_timeout(500)
        page.screenshot(path=Path(folder, "page.png"))
        browser.close()
        save_small(Path(folder, "page.png"), "digits-explorer.png")


if __name__ == "__main__":
    for picture in sys.argv[1:] or [*PAGES, "explorer"]:
        draw_explorer() if picture == "explorer" else draw_page(picture)
