"""Nested rings, by k-means and by kernel k-means.

K-means cuts the plane by straight lines, so two rings around one centre are halved, whatever the
start.  In the feature space of a Gaussian kernel the inner ring is one lump, and the mean of the
outer ring is far from it: kernel k-means tells them apart.  The third panel is for other points,
three round clusters, whose number is sought: the inertia has its elbow, and the silhouette in
feature space its peak, at three.

It writes ``out/nested_rings.png``.
"""

# %% The points, and the two models.
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

# %% The numbers: 1 for the rings, about 0 for labels that know nothing of them.
agreement = {
    "k-means": abs(adjusted_rand_score(ring, plain.labels_)),
    "kernel k-means": abs(adjusted_rand_score(ring, kernel.labels_)),
}
for name, value in agreement.items():
    print(f"{name:<16} agreement with the rings {value:.2f}")
print(f"inertia          {kernel.inertia_:.3f} after {kernel.n_iter_} rounds, from", end=" ")
print(f"{kernel.inertia_history_[0]:.3f}; it never rises")
if agreement["kernel k-means"] < 1.0 or np.any(np.diff(kernel.inertia_history_) > 1e-9):
    raise SystemExit("the rings were not found")

# %% The picture.
figure, axes = plt.subplots(1, 3, figsize=(15.0, 4.8), layout="constrained")
colours = np.array(["#0072B2", "#D55E00"])
for ax, model, name in zip(axes, (plain, kernel), agreement, strict=False):
    ax.scatter(*X.T, c=colours[model.labels_], s=14)
    ax.set_title(f"{name}: agreement {agreement[name]:.2f}")
    ax.set_aspect("equal")
Y, _ = three_clusters(150, random_state=3)
cluster_numbers(KernelKMeans(kernel="rbf", gamma=5.0), Y, range(2, 9), ax=axes[2])
axes[2].set_title("three round clusters: how many are they?", pad=26)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "nested_rings.png", dpi=110)
print("picture          out/nested_rings.png")
