"""Draw the pictures of docs/course by running examples, and store them in a small size.

python docs/course_pictures.py [NAME ...]       default: all pictures of the course
"""

import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "course" / "images"
NAMES = (
    "xor_quadratic",
    "dual_basis",
    "gaussian_series",
    "is_it_a_kernel",
    "karhunen_loeve",
    "svm_margin",
    "three_clusters",
    "power_method",
    "preimage_path",
    "latent_curve",
    "densities_and_neighbours",
    "learned_vectors",
)
MAX_BYTES = 60_000  # twelve pictures should not make the repository noticeably larger
SIZES = ((1000, 128), (900, 96), (800, 96), (700, 64), (640, 48))  # width in pixels, colours


def main() -> None:
    """Run the examples and write one reduced picture for each."""
    plt.switch_backend("Agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        with plt.rc_context():
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
            plt.close("all")
        picture = Image.open(ROOT / "out" / f"{name}.png").convert("RGB")
        target = FOLDER / f"{name}.png"
        for width, colours in SIZES:
            size = (width, round(picture.height * width / picture.width))
            reduced = picture.resize(size, Image.Resampling.LANCZOS)
            # An octree keeps the hues of thin lines, which the median cut merges with others.
            method, dither = Image.Quantize.FASTOCTREE, Image.Dither.NONE
            reduced.quantize(colours, method, dither=dither).save(target, optimize=True)
            if target.stat().st_size <= MAX_BYTES:
                break


if __name__ == "__main__":
    main()
