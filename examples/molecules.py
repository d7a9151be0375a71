"""Molecules, where kernel PCA of a Weisfeiler-Lehman kernel puts them.

MUTAG, 188 molecules that cause mutations or do not, if graphs/MUTAG.zip is in the folder
MERCER_DATA or in shared/data beside the repository; else chains, and chains of rings, made here.
One should see that the classes part: what causes mutations has many fused rings.  Molecules at the
border are drawn, each by kernel PCA of its own distances; carbon is black, all else red.

It writes ``out/molecules.png``.
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
    (X, y), names = read_tudataset(file), ["not", "mutagenic"]
else:  # chains of 8 to 19 atoms, every other one with rings of six
    rng, sizes, y = np.random.default_rng(0), np.arange(120) % 12 + 8, np.arange(120) // 12 % 2
    edges = [[(i, i + 1) for i in range(n - 1)] for n in sizes]
    edges = [e + y[g] * [(i, i + 5) for i in range(0, len(e) - 5, 7)] for g, e in enumerate(edges)]
    names = ["chain", "rings"]
    X = Graphs.from_edges(edges, labels=[rng.choice([0] * 9 + [2], size=n) for n in sizes])
model = KernelPCA(2, kernel=Normalized(WeisfeilerLehman(h=2))).fit(X)
scores, angles = model.transform(X), np.linspace(0, 2 * np.pi, 10)
print(X, "\nshare of the variance:", model.explained_variance_ratio_.round(3))
figure, ax = plt.subplots(figsize=(11, 8), layout="constrained")
embedding(model, np.where(y > 0, names[1], names[0]), ax=ax)
drawn = []  # places: no molecule is drawn on top of another
for i in np.unique(np.argmax(scores @ [np.cos(angles), np.sin(angles)], axis=0)):
    if any(np.linalg.norm(scores[i] - place) < 0.1 for place in drawn):
        continue
    drawn.append(scores[i])
    flat = KernelPCA(2, kernel="precomputed").fit_transform(-(shortest_path(X[i].adjacency) ** 2))
    at = scores[i] * (1 + 0.18 / np.linalg.norm(scores[i])) + 0.014 * flat
    ax.plot(*at[X[i].edges].T, color="0.4", linewidth=1, zorder=1)
    ax.scatter(*at.T, c=np.where(X[i].labels == 0, "0.2", "crimson"), s=16, zorder=2)
    ax.plot(*np.array([scores[i], at.mean(axis=0)]).T, color="0.85", zorder=0)
ax.scatter([], [], color="0.2", s=16, label="an atom of carbon")
ax.scatter([], [], color="crimson", s=16, label="another atom")
ax.legend(frameon=False)
ax.set_title("molecules, where kernel PCA puts them; some of those at the border are drawn")
(root / "out").mkdir(exist_ok=True)
figure.savefig(root / "out" / "molecules.png", dpi=130)
