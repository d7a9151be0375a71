"""GPLVM: a plane of latent coordinates from which images are generated.

A Gaussian process latent variable model places every image in a plane, and learns a smooth function
from the plane to images, so that each position corresponds to an image.  The labels are not used.
What to look for:

* Left: the latent coordinates of 200 digits (0, 1 and 6).  The grey levels show the standard
  deviation of the generated images: small near the points, large elsewhere.
* Right: images generated at a grid of positions.  They change continuously, and between two
  clusters one digit turns into another.
* The printed comparison with PCA: two GPLVM coordinates separate the digits better, and reconstruct
  the images with a smaller error.

The figure is saved as ``out/gplvm_digits.png``.
"""

# %% Data and models.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from mercer import GPLVM

X, y = load_digits(return_X_y=True)
chosen = np.flatnonzero(np.isin(y, (0, 1, 6)))[:200]
X, y = X[chosen] / 16.0, y[chosen]
gplvm, pca = GPLVM(2).fit(X), PCA(2).fit(X)


# %% Reconstruction, and neighbours of the same class.
def report(name, Z, back):
    """Print two measures of an embedding."""
    nearest = NearestNeighbors(n_neighbors=1).fit(Z).kneighbors(return_distance=False)[:, 0]
    error = np.sqrt(np.mean((back - X) ** 2))
    print(f"{name:6s} reconstruction error {error:.3f}, ", end="")
    print(f"{np.sum(y[nearest] != y)} points with a nearest neighbour of another digit")


Z = gplvm.embedding_
report("PCA", pca.transform(X), pca.inverse_transform(pca.transform(X)))
report("GPLVM", Z, gplvm.inverse_transform(Z))

# %% The standard deviation at latent positions, and images at a coarse grid of them.
low, high = Z.min(axis=0), Z.max(axis=0)
pad = 0.08 * (high - low)
sides = [np.linspace(a, b, 90) for a, b in zip(low - pad, high + pad, strict=True)]
fine = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
deviation = np.sqrt(gplvm.model_.variance(fine)).reshape(90, 90)
n_images = 11
coarse = [np.linspace(a, b, n_images) for a, b in zip(low, high, strict=True)]
positions = np.stack(np.meshgrid(*coarse), axis=-1).reshape(-1, 2)
images = gplvm.inverse_transform(positions).reshape(n_images, n_images, 8, 8)
images = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))  # a white frame around each image

# %% Plot.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 5.4), layout="constrained")
shades = left.contourf(*sides, deviation, 8, cmap="Greys", alpha=0.6)
for digit, colour, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "^"), (6, "#009E73", "s")):
    points = Z[y == digit].T
    left.plot(*points, marker, color=colour, ms=5, mec="white", mew=0.4, label=f"digit {digit}")
left.set(title="Latent coordinates", xlabel="z₁", ylabel="z₂")
left.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))
figure.colorbar(shades, ax=left, label="standard deviation of a pixel", shrink=0.8)
tiles = images[::-1].transpose(0, 2, 1, 3).reshape(10 * n_images, 10 * n_images)
half = 0.5 * (high - low) / (n_images - 1)
extent = np.c_[low - half, high + half].ravel()
right.imshow(tiles, cmap="Greys", vmin=0, vmax=1, extent=extent, aspect="auto")
right.set(title="Images generated at these positions", xlabel="z₁", ylabel="z₂")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "gplvm_digits.png", dpi=130)
print("figure: out/gplvm_digits.png")
