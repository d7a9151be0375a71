"""Kernel PCA of molecules with the Weisfeiler-Lehman kernel.

The data are MUTAG, 188 molecules that are mutagenic or not, if ``graphs/MUTAG.zip`` is in the
folder MERCER_DATA or in ``shared/data`` next to the repository.  Otherwise chains, and chains with
rings, are generated.  The figure shows that the classes separate: mutagenic molecules have many
fused rings. Some molecules at the border of the embedding are drawn, with coordinates from kernel
PCA of their own shortest-path distances.  Carbon atoms are black, all others are red.

The figure is saved as ``out/molecules.png``.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.csgraph import shortest_path

from mercer import KernelPCA
from mercer.datasets import read_tudataset
from mercer.kernels import Graphs, Normalized, WeisfeilerLehman
from mercer.plotting import embedding

root = Path(__file__).resolve().parent.parent
file = Path(os.environ.get("MERCER_DATA", root.parent / "shared" / "data")) / "graphs" / "MUTAG.zip"
if file.exists():
    (X, y), names = read_tudataset(file), ["not mutagenic", "mutagenic"]
else:  # generated chains of 8 to 19 atoms; half of them also have rings of six atoms
    rng, sizes, y = np.random.default_rng(0), np.arange(120) % 12 + 8, np.arange(120) // 12 % 2
    edges = [[(i, i + 1) for i in range(n - 1)] for n in sizes]
    edges = [e + y[g] * [(i, i + 5) for i in range(0, len(e) - 5, 7)] for g, e in enumerate(edges)]
    names = ["chain", "rings"]
    X = Graphs.from_edges(edges, labels=[rng.choice([0] * 9 + [2], size=n) for n in sizes])
model = KernelPCA(2, kernel=Normalized(WeisfeilerLehman(h=2))).fit(X)
scores, angles = model.transform(X), np.linspace(0, 2 * np.pi, 10)
print(X, "\nexplained variance ratio:", model.explained_variance_ratio_.round(3))
figure, ax = plt.subplots(figsize=(11, 8), layout="constrained")
embedding(model, np.where(y > 0, names[1], names[0]), ax=ax)
drawn = []  # scores of the molecules drawn so far: skip those that would overlap
for i in np.unique(np.argmax(scores @ [np.cos(angles), np.sin(angles)], axis=0)):
    if any(np.linalg.norm(scores[i] - other) < 0.1 for other in drawn):
        continue
    drawn.append(scores[i])
    layout = KernelPCA(2, kernel="precomputed").fit_transform(-(shortest_path(X[i].adjacency) ** 2))
    atoms = scores[i] * (1 + 0.18 / np.linalg.norm(scores[i])) + 0.014 * layout
    ax.plot(*atoms[X[i].edges].T, color="0.4", linewidth=1, zorder=1)
    ax.scatter(*atoms.T, c=np.where(X[i].labels == 0, "0.2", "#CC79A7"), s=16, zorder=2)
    ax.plot(*np.array([scores[i], atoms.mean(axis=0)]).T, color="0.85", zorder=0)
ax.scatter([], [], color="0.2", s=16, label="carbon atom")
ax.scatter([], [], color="#CC79A7", s=16, label="other atom")
ax.legend(frameon=False)
ax.set_title("Kernel PCA of molecules; some molecules at the border are drawn")
(root / "out").mkdir(exist_ok=True)
figure.savefig(root / "out" / "molecules.png", dpi=130)
