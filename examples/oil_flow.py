"""Oil flow in a pipe: PCA and kernel PCA of 12 measurements.

The data are a thousand simulated gamma-ray measurements, with 12 values each.  The three classes
are configurations of the flow of oil, water and gas; neither method uses them.  What to look for:

* PCA separates most of one configuration, in clumps, while the two others overlap.
* Kernel PCA (Gaussian, length scale 0.5, chosen by eye) turns the configurations into arms of a
  star, best seen in components 1 and 3.
* Two components are not enough for either method.  The last panel shows how often a point and its
  nearest neighbour belong to the same class.  With two components PCA is better (84 % against
  79 %), with three and four kernel PCA (93 % against 89 %, 97 % against 92 %).  From five on they
  differ little.

The data are not part of mercer.  The file ``oil_flow/oil_flow.npz`` is read from the folder
MERCER_DATA, or from ``shared/data`` next to the repository.  Without it, the example uses
scikit-learn's wine data, to which the remarks above do not apply.

The figure is saved as ``out/oil_flow.png``.
"""

# %% Data, or the replacement.
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.neighbors import NearestNeighbors

from mercer import KernelPCA
from mercer.kernels import RBF
from mercer.plotting import embedding

root = Path(__file__).resolve().parent.parent
folder = Path(os.environ.get("MERCER_DATA", root.parent / "shared" / "data"))
file = folder / "oil_flow" / "oil_flow.npz"
if file.exists():
    with np.load(file, allow_pickle=False) as data:
        X, y = data["X_train"], data["y_train"]
    description, length_scale = f"Oil flow: {len(X)} points, {X.shape[1]} measurements", 0.5
    names = np.array(["flow 0", "flow 1", "flow 2"])
else:
    print("oil_flow/oil_flow.npz was not found in MERCER_DATA: using scikit-learn's wine data")
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    description, length_scale = "scikit-learn's wine data (the oil flow data were not found)", 3.0
    names = np.array(["wine 0", "wine 1", "wine 2"])

# %% Models.
n_components = 12
pca = KernelPCA(n_components=n_components, kernel="linear").fit(X)
gaussian = KernelPCA(n_components=n_components, kernel=RBF(length_scale)).fit(X)


# %% How often is the nearest neighbour in the first j scores of the same class?
def neighbours_agree(scores):
    nearest = NearestNeighbors(n_neighbors=1).fit(scores).kneighbors(return_distance=False)
    return np.mean(y[nearest[:, 0]] == y)


counts = np.arange(1, n_components + 1)
same_class = {}
for name, model in [("PCA", pca), ("kernel PCA", gaussian)]:
    scores = model.transform(X)
    same_class[name] = [100 * neighbours_agree(scores[:, :j]) for j in counts]
print(description)
print("components               ", "".join(f"{j:7d}" for j in counts))
for name, percent in same_class.items():
    print(f"same class, {name:10s} (%)", "".join(f"{p:7.1f}" for p in percent))

# %% Plot.
figure, axes = plt.subplots(2, 2, figsize=(12.8, 9.6), layout="constrained")
embedding(pca, names[y], ax=axes[0, 0]).set_title("PCA", fontsize=14)
title = f"Kernel PCA, Gaussian with length scale {length_scale:g}"
embedding(gaussian, names[y], ax=axes[0, 1]).set_title(title, fontsize=14)
embedding(gaussian, names[y], components=(0, 2), ax=axes[1, 0])
axes[1, 0].set_title("Kernel PCA, components 1 and 3", fontsize=14)
curves = axes[1, 1]
for (name, percent), mark in zip(same_class.items(), ["s--", "o-"], strict=True):
    curves.plot(counts, percent, mark, label=name, color="black", markerfacecolor="white")
curves.set_xticks(counts)
curves.set_xlabel("number of components")
curves.set_ylabel("nearest neighbour of the same class (%)")
curves.set_title("Class separation by the first components", fontsize=14)
curves.legend(frameon=False, loc="lower right")
curves.spines[["top", "right"]].set_visible(False)
for panel in axes.flat:
    panel.tick_params(labelsize=11)
    panel.xaxis.label.set_fontsize(13)
    panel.yaxis.label.set_fontsize(13)
figure.suptitle(description, fontsize=16)

(root / "out").mkdir(exist_ok=True)
figure.savefig(root / "out" / "oil_flow.png", dpi=150)
print("figure: out/oil_flow.png")
