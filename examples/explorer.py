"""Interactive explorer pages of digits, oil flow and molecules.

Each page is a single HTML file that works without a network connection.  Open it in a browser.
Hover over a point to see its record or its image.  Draw a lasso in one embedding to find the same
points in the other.  Click between the points to see the pre-image there.  What to look for:

* Digits: kernel PCA and probabilistic PCA separate 0, 4 and 6.  Pre-images between two clusters
  look like a mixture of both digits.
* Oil flow: kernel PCA (Gaussian, length scale 0.5) turns the three configurations into arms of a
  star.
* Molecules: the mutagenic ones, which have many fused rings, lie on one side.

The oil flow and molecule data are not part of mercer.  ``oil_flow/oil_flow.npz`` and
``graphs/MUTAG.zip`` are read from the folder MERCER_DATA, or from ``shared/data`` next to the
repository.  Without these files, the pages show scikit-learn's wine data, and generated graphs of
chains and rings.

The pages are saved as ``out/explorer_digits.html``, ``out/explorer_oil_flow.html`` and
``out/explorer_molecules.html``.
"""

# %% Digits: images of 8 x 8 pixels, with pre-images on a grid of 12 x 12 points of each embedding.
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine

from mercer import Graphs, KernelPCA, explore
from mercer.datasets import read_tudataset

root = Path(__file__).resolve().parent.parent
folder = Path(os.environ.get("MERCER_DATA", root.parent / "shared" / "data"))
out = root / "out"
out.mkdir(exist_ok=True)

X, digit = load_digits(return_X_y=True)
model = KernelPCA(2, kernel="RBF(length_scale=25)").fit(X)
table = {"digit": digit.astype(str)}
page = explore(model, X, table=table, color="digit", image_shape=(8, 8), title="Digits")
page.save(out / "explorer_digits.html", preimages=12)
print(page, "with pre-images at 144 grid points")

# %% Oil flow: 12 gamma-ray measurements.  The models do not use the classes.
if (file := folder / "oil_flow" / "oil_flow.npz").exists():
    with np.load(file, allow_pickle=False) as data:
        X, y = data["X_train"], data["y_train"]
    width, title = 0.5, "Oil flow"
else:
    X, y = load_wine(return_X_y=True)
    X, width, title = (
        (X - X.mean(axis=0)) / X.std(axis=0),
        3.0,
        "Wine (the oil flow data were not found)",
    )
model = KernelPCA(3, kernel=f"RBF(length_scale={width})").fit(X)
page = explore(model, X, table={"flow": [f"flow {k}" for k in y]}, color="flow", title=title)
page.scene.column("trustworthiness in kernel PCA")  # computed now, so that the page has it
page.save(out / "explorer_oil_flow.html", preimages=12)
print(page, "with the trustworthiness of each point")

# %% Molecules: graphs, compared by the subtrees around their atoms.
if (file := folder / "graphs" / "MUTAG.zip").exists():
    (molecules, y), names, title = read_tudataset(file), ["not mutagenic", "mutagenic"], "MUTAG"
else:  # generated chains of 8 to 19 atoms; half of them also have rings of six atoms
    sizes, y = np.arange(120) % 12 + 8, np.arange(120) // 12 % 2
    edges = [[(i, i + 1) for i in range(n - 1)] for n in sizes]
    edges = [e + y[g] * [(i, i + 5) for i in range(0, len(e) - 5, 7)] for g, e in enumerate(edges)]
    molecules, names, title = Graphs.from_edges(edges), ["chain", "rings"], "Chains and rings"
model = KernelPCA(4, kernel="Normalized(WeisfeilerLehman(h=2))").fit(molecules)
table = {
    "class": np.where(y > 0, names[1], names[0]),
    "atoms": [len(one.adjacency.toarray()) for one in molecules],
}
page = explore(model, molecules, table=table, color="class", title=title)
page.scene.column("trustworthiness in kernel PCA")
page.save(out / "explorer_molecules.html")
print(page)
