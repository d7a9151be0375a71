"""Radius neighbours in feature space: which radius, and which points have no neighbour?

A radius-neighbours classifier takes a vote among all training points within a distance in feature
space.  For the Gaussian kernel this distance is √(2 − 2 k(x, z)), so that no two points are farther
apart than √2.  A point without neighbours is an outlier: the model reports it instead of guessing.
What to look for:

* Left: with a small radius the regions of both classes end close to the data.  Points in the white
  area are outliers.  With a radius of √2, every training point takes part in every vote.
* Right: a larger radius leaves fewer points without neighbours.  The accuracy on the others is high
  until the votes of the other class dominate.

The figure is saved as ``out/radius_neighbours.png``.
"""

# %% Data, and classifiers with different radii; the label -1 means "no neighbours".
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRadiusNeighborsClassifier
from mercer.datasets import moons
from mercer.kernels import RBF

X, y = moons(200, noise=0.2, random_state=0)
X_test, y_test = moons(1000, noise=0.2, random_state=1)


def classifier(radius):
    """Return a fitted classifier."""
    model = KernelRadiusNeighborsClassifier(radius, kernel=RBF(0.5), outlier_label=-1)
    return model.fit(X, y)


# %% Accuracy and outliers by the radius.
radii = np.array([0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.2, 1.35, 1.4])
accuracy, outliers = [], []
for radius in radii:
    predicted = classifier(radius).predict(X_test)
    known = predicted != -1
    outliers.append(100 * np.mean(~known))
    accuracy.append(100 * np.mean(predicted[known] == y_test[known]))
    euclidean = 0.5 * np.sqrt(-2 * np.log(1 - radius**2 / 2))
    print(f"radius {radius:4.2f} (Euclidean {euclidean:4.2f}): ", end="")
    print(f"{outliers[-1]:5.1f} % without neighbours, {accuracy[-1]:5.1f} % of the others correct")

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.0), layout="constrained")
a, b = np.meshgrid(np.linspace(-2.0, 3.0, 200), np.linspace(-1.5, 2.0, 140))
grid = np.c_[a.ravel(), b.ravel()]
for ax, radius in zip(axes, (0.3, 1.0), strict=False):
    regions = classifier(radius).predict(grid).reshape(a.shape)
    shades = ["white", "#CCE3F0", "#F7DFCC"]
    ax.contourf(a, b, regions, [-1.5, -0.5, 0.5, 1.5], colors=shades)
    for label, (colour, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "^"))):
        ax.plot(*X[y == label].T, marker, color=colour, markersize=4, label=f"class {label}")
    ax.set(title=f"radius {radius:g} in feature space", xlabel="x₁", ylabel="x₂", aspect="equal")
axes[0].legend(frameon=False, loc="upper right")
axes[2].plot(radii, accuracy, "o-", color="#0072B2", label="correct, among the others")
axes[2].plot(radii, outliers, "^--", color="#009E73", label="without neighbours")
axes[2].axvline(np.sqrt(2), color="0.6", linewidth=1, linestyle=":")
axes[2].text(np.sqrt(2) - 0.02, 60, "√2", ha="right", color="0.4")
axes[2].set(title="1000 new points", xlabel="radius in feature space", ylabel="points (%)")
axes[2].set_ylim(-2, 118)
axes[2].legend(frameon=False, loc="upper left")
axes[2].spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "radius_neighbours.png", dpi=120)
print("figure: out/radius_neighbours.png")
