"""A deep autoencoder for images of digits, compared with PCA.

Hinton and Salakhutdinov (Science 313, 2006) reduce images of digits to two numbers by a network
with four hidden layers in its encoder, and compare these codes with the first two principal
components.  This script repeats the comparison with 1300 images of 8 x 8 pixels and the layers
64-200-100-50-2, without their layer-wise pretraining.  What to look for:

* The codes of the network separate most digits; the principal components of different digits
  overlap.  A classifier of nearest neighbours in the plane makes 59 instead of 195 errors.
  Neither method uses the labels.
* The squared error of reconstructed test images is about half of that of PCA with as many numbers
  per image: 56 % for 2 numbers, and 55 % for 10.
* With 30 numbers for 64 pixels, PCA is better.  So many components lose little of the variance, and
  the network, which has many more parameters, overfits.

The figure is saved as ``out/deep_autoencoder.png``.
"""

# %% Data: 1300 images to train, 497 to test, with pixels between 0 and 1.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from mercer import Autoencoder

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:1300], order[1300:]
X = X / 16.0

# %% Fit both models with 2, 10 and 30 numbers per image, and reconstruct the test images.
models, reconstructed = {}, {}
for q in (2, 10, 30):
    network = Autoencoder(q, hidden_layer_sizes=(200, 100, 50), max_iter=100)
    models[q] = {"PCA": PCA(q), "autoencoder": network}
    for name, model in models[q].items():
        codes = model.fit(X[train]).transform(X[test])
        reconstructed[q, name] = model.inverse_transform(codes)
        error = np.mean(np.sum((X[test] - reconstructed[q, name]) ** 2, axis=1))
        print(f"{q:2d} numbers, {name:11s}: squared error per test image {error:.2f}")
print()
print(models[2]["autoencoder"].summary())

# %% Classify the test images by the five nearest training images in the plane.
print()
for name, model in models[2].items():
    classifier = KNeighborsClassifier(5).fit(model.transform(X[train]), y[train])
    errors = np.sum(classifier.predict(model.transform(X[test])) != y[test])
    print(f"{name:11s}: {errors} of {len(test)} test images are classified wrongly")

# %% Plot the codes of the test images, and some reconstructions.
figure = plt.figure(figsize=(11.0, 7.5), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[3.0, 1.7])
for axis, (name, model) in zip(above.subplots(1, 2), models[2].items(), strict=True):
    Z = model.transform(X[test])
    axis.scatter(*Z.T, s=0)  # sets the limits of the axes
    for z, digit in zip(Z, y[test], strict=True):
        color = plt.get_cmap("tab10")(digit)
        axis.text(*z, str(digit), color=color, ha="center", va="center", fontsize=8)
    axis.set(title=f"{name}: codes of {len(test)} test images", xticks=[], yticks=[])
first = [int(np.flatnonzero(y[test] == digit)[0]) for digit in range(10)]
rows = {"image": X[test], **{f"{name}, {q}": Z for (q, name), Z in reconstructed.items() if q < 30}}
for line, (name, images) in zip(below.subplots(len(rows), 10), rows.items(), strict=True):
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axis, i in zip(line, first, strict=True):
        axis.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0.0, vmax=1.0)
        axis.set(xticks=[], yticks=[])

root = Path(__file__).resolve().parent.parent
(root / "out").mkdir(exist_ok=True)
figure.savefig(root / "out" / "deep_autoencoder.png", dpi=100)
print("figure: out/deep_autoencoder.png")
