"""Parzen densities and nearest neighbours: models that store the data.

A Parzen density is the mean of normalised kernels at the points, so it is a kernel expansion with
equal coefficients.  A neighbour classifier compares distances in feature space.  What to look for:

* Top: the density of two moons for three bandwidths.  A narrow one shows single points, a wide one
  hides the moons; the held-out log likelihood is largest between them.
* Bottom: decisions by the nearest neighbour, by 15 neighbours, and by all neighbours within a
  radius.  More neighbours give a smoother boundary.

The figure is saved as ``out/densities_and_neighbours.png``.
"""

# %% Data.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelKNeighborsClassifier, KernelRadiusNeighborsClassifier, ParzenDensity
from mercer.datasets import moons
from mercer.kernels import RBF

X, y = moons(200, noise=0.2, random_state=0)
X_test, y_test = moons(1000, noise=0.2, random_state=1)
a, b = np.meshgrid(np.linspace(-1.8, 2.8, 120), np.linspace(-1.4, 1.9, 100))
grid = np.c_[a.ravel(), b.ravel()]

# %% Densities for three bandwidths.
figure, axes = plt.subplots(2, 3, figsize=(12.8, 7.0), layout="constrained")
for ax, bandwidth in zip(axes[0], (0.04, 0.15, 0.6), strict=True):
    model = ParzenDensity(bandwidth=bandwidth).fit(X)
    score = model.score(X_test) / len(X_test)
    print(f"bandwidth {bandwidth:4.2f}: mean held-out log likelihood {score:.3f}")
    ax.contourf(a, b, np.exp(model.score_samples(grid)).reshape(a.shape), 12, cmap="Blues")
    ax.plot(*X.T, ".", color="black", markersize=2)
    ax.set_title(f"Parzen density, bandwidth {bandwidth:g}, score {score:.2f}", fontsize=12)

# %% Three neighbour classifiers.
classifiers = {
    "1 neighbour": KernelKNeighborsClassifier(1, kernel=RBF(0.5)),
    "15 neighbours": KernelKNeighborsClassifier(15, kernel=RBF(0.5)),
    "radius 0.6 in feature space": KernelRadiusNeighborsClassifier(
        0.6, kernel=RBF(0.5), outlier_label="most_frequent"
    ),
}
for ax, (name, model) in zip(axes[1], classifiers.items(), strict=True):
    accuracy = model.fit(X, y).score(X_test, y_test)
    print(f"{name:28s} accuracy {accuracy:.1%}")
    regions = model.predict(grid).reshape(a.shape)
    ax.contourf(a, b, regions, [-0.5, 0.5, 1.5], colors=["#D6E4F0", "#F6DDD0"])
    for label, (colour, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "^"))):
        ax.plot(*X[y == label].T, marker, color=colour, markersize=3)
    ax.set_title(f"{name}, accuracy {accuracy:.1%}", fontsize=12)

for ax in axes.flat:
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "densities_and_neighbours.png", dpi=100)
print("figure: out/densities_and_neighbours.png")
