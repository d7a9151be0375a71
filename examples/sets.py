"""Handwritten digits as sets of dark pixels: an SVM, and pre-images of class means."""

# %% Data: each image of 8 x 8 pixels is the set of its dark pixels, stored as a row of booleans.
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
for kernel in (Intersection(), Dice()):
    means = [Expansion.mean(kernel, X_train[y_train == c]).preimage() for c in (3, 7, 8)]
    distance = ", ".join(f"{np.sqrt(m.residuals[0]):.2f}" for m in means)
    print(f"\npre-images of means with {type(kernel).__name__}, at distances {distance}")
    images = [m.points.reshape(8, 8) > 0 for m in means]
    for rows in zip(*images, strict=True):
        print("    ".join("".join("##" if dark else " ." for dark in row) for row in rows))
