"""Nested rings: k-means compared with kernel k-means.

K-means separates clusters by straight lines, so it cuts two concentric rings in half for every
start.  In the feature space of a Gaussian kernel the inner ring is one compact cluster, far from
the mean of the outer ring, so kernel k-means separates them.  The third panel uses other data,
three round clusters, to choose the number of clusters: the inertia has its elbow, and the
silhouette in feature space its maximum, at three.

The figure is saved as ``out/nested_rings.png``.
"""

# %% Data and models.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans
from mercer.datasets import circles, three_clusters
from mercer.plotting import cluster_numbers

X, ring = circles(300, factor=0.3, noise=0.05, random_state=0)
plain = KMeans(2, n_init=10, random_state=0).fit(X)
kernel = KernelKMeans(2, kernel="rbf", gamma=5.0).fit(X)

# %% Adjusted Rand index: 1 if the labels are the rings, about 0 for random labels.
rand_index = {
    "k-means": abs(adjusted_rand_score(ring, plain.labels_)),
    "kernel k-means": abs(adjusted_rand_score(ring, kernel.labels_)),
}
for name, value in rand_index.items():
    print(f"{name:<16} adjusted Rand index {value:.2f}")
print(f"inertia          {kernel.inertia_:.3f} after {kernel.n_iter_} iterations, from", end=" ")
print(f"{kernel.inertia_history_[0]:.3f}; it never increases")
if rand_index["kernel k-means"] < 1.0 or np.any(np.diff(kernel.inertia_history_) > 1e-9):
    raise SystemExit("the rings were not found")

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(15.0, 4.8), layout="constrained")
for ax, model, name in zip(axes, (plain, kernel), rand_index, strict=False):
    for cluster, (colour, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "^"))):
        ax.scatter(*X[model.labels_ == cluster].T, color=colour, marker=marker, s=14)
    ax.set_title(f"{name}: adjusted Rand index {rand_index[name]:.2f}")
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal")
Y, _ = three_clusters(150, random_state=3)
cluster_numbers(KernelKMeans(kernel="rbf", gamma=5.0), Y, range(2, 9), ax=axes[2])
axes[2].set_title("Three round clusters: choosing the number", pad=26)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "nested_rings.png", dpi=110)
print("figure           out/nested_rings.png")
