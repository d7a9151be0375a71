"""Handwritten digits as sets of dark pixels: an SVM, and pre-images of class means.

Each image is the set of its dark pixels.  The mean of a class in feature space is not the image of
any set; its pre-image is the set closest to it.  What to look for: the pre-images look like typical
digits.  The Dice kernel, which divides by the sizes of the sets, gives slightly larger sets than
the size of the intersection.

The figure is saved as ``out/sets.png``.
"""

# %% Data: each image of 8 x 8 pixels is the set of its dark pixels, stored as a row of booleans.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import SVC, Expansion
from mercer.kernels import BraunBlanquet, Dice, Intersection, Jaccard, Ochiai

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X > 7, y, test_size=0.5, random_state=0)

# %% Five kernels: the size of the intersection, normalised in different ways.
for kernel in (Intersection(), Jaccard(), Dice(), Ochiai(), BraunBlanquet()):
    accuracy = SVC(kernel=kernel).fit(X_train, y_train).score(X_test, y_test)
    print(f"{type(kernel).__name__:16} accuracy {accuracy:.1%}")

# %% The means of all threes, sevens and eights in feature space, and the sets closest to them.
figure, axes = plt.subplots(2, 6, figsize=(11.5, 4.3), layout="constrained")
for row, kernel in zip(axes, (Intersection(), Dice()), strict=True):
    means = [Expansion.mean(kernel, X_train[y_train == c]).preimage() for c in (3, 7, 8)]
    distance = ", ".join(f"{np.sqrt(m.residuals[0]):.2f}" for m in means)
    print(f"\npre-images of means with {type(kernel).__name__}, at distances {distance}")
    images = [m.points.reshape(8, 8) > 0 for m in means]
    for k, (c, m, image) in enumerate(zip((3, 7, 8), means, images, strict=True)):
        frequencies = X_train[y_train == c].mean(axis=0).reshape(8, 8)
        row[2 * k].imshow(frequencies, cmap="Greys", vmin=0, vmax=1)
        row[2 * k].set_title(f"frequencies, {c}")
        row[2 * k + 1].imshow(image, cmap="Greys")
        row[2 * k + 1].set_title(f"distance {np.sqrt(m.residuals[0]):.2f}")
    row[0].set_ylabel(f"{type(kernel).__name__} kernel")
    for rows in zip(*images, strict=True):
        print("    ".join("".join("##" if dark else " ." for dark in row) for row in rows))
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
figure.suptitle("How often each pixel is dark, and the pre-image of the class mean")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "sets.png", dpi=130)
print("figure: out/sets.png")
