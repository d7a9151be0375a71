"""Draw the pictures of the pages in docs/: run examples, and write small copies to docs/images.

python docs/page_pictures.py                 all pictures
python docs/page_pictures.py svm_margin      some of them
"""

import re
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from PIL import Image  # a dependency of matplotlib

DOCS = Path(__file__).resolve().parent
WIDTH = 900  # pixels
COLOURS = 256  # a palette keeps the files small


def pictures() -> list[str]:
    """Return the names of the examples whose pictures the pages show."""
    text = "".join(page.read_text("utf-8") for page in DOCS.rglob("*.md"))
    return sorted(set(re.findall(r"\]\((?:\.\./)?images/(\w+)\.png\)", text)))


def draw(name: str) -> None:
    """Run an example and write a small copy of its picture."""
    runpy.run_path(str(DOCS.parent / "examples" / f"{name}.py"), run_name="__main__")
    with Image.open(DOCS.parent / "out" / f"{name}.png") as picture:
        height = round(picture.height * WIDTH / picture.width)
        small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
        small.quantize(COLOURS, dither=Image.Dither.NONE).save(
            DOCS / "images" / f"{name}.png", optimize=True
        )


if __name__ == "__main__":
    for name in sys.argv[1:] or pictures():
        draw(name)
