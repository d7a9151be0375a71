"""Draw the pictures of the pages in docs/: run examples, and write small copies to docs/images.

python docs/page_pictures.py                 all pictures, and docs/digits.png
python docs/page_pictures.py svm_margin      some of them

The screenshots are taken by docs/explorer_pictures.py, the pictures of the course by
docs/course_pictures.py.
"""

import re
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image  # a dependency of matplotlib

DOCS = Path(__file__).resolve().parent
WIDTH = 900  # pixels
MAX_BYTES = 120_000  # of a file
COLOURS = (256, 128, 64, 32)  # sizes of the palette; fewer colours make a smaller file
OTHER_FILES = {"digits_kernel_pca": DOCS / "digits.png"}  # not in docs/images


def pictures() -> list[str]:
    """Return the names of the examples whose pictures the pages show."""
    pages = [page for page in DOCS.rglob("*.md") if page.parent.name != "course"]
    text = "".join(page.read_text("utf-8") for page in pages)
    names = set(re.findall(r"\]\((?:\.\./)?images/(\w+)\.png\)", text)) | set(OTHER_FILES)
    return sorted(name for name in names if (DOCS.parent / "examples" / f"{name}.py").exists())


def draw(name: str) -> None:
    """Run an example and write a small copy of its picture."""
    with plt.rc_context():
        runpy.run_path(str(DOCS.parent / "examples" / f"{name}.py"), run_name="__main__")
        plt.close("all")
    target = OTHER_FILES.get(name, DOCS / "images" / f"{name}.png")
    with Image.open(DOCS.parent / "out" / f"{name}.png") as picture:
        height = round(picture.height * WIDTH / picture.width)
        small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    for colours in COLOURS:
        # Maximum coverage keeps the hues of thin lines; k-means corrects those of large areas.
        method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
        small.quantize(colours, method, kmeans=5, dither=dither).save(target, optimize=True)
        if target.stat().st_size <= MAX_BYTES:
            break


if __name__ == "__main__":
    plt.switch_backend("Agg")
    for name in sys.argv[1:] or pictures():
        draw(name)
