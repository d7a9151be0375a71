"""Pages to look at: digits, oil flow and molecules, each in one file that needs no network.

Open them in a browser.  Hover over a point to see its record, or the digit itself; draw a lasso in
one map and find the points in the other; click between the points to see what would be there.  One
should see:

* digits: kernel PCA and probabilistic PCA keep 0, 4 and 6 apart; between them lie pre-images that
  are half of one digit and half of another;
* oil flow: kernel PCA (Gaussian, width 0.5) turns the three configurations into arms of a star;
* molecules: those that cause mutations, with many fused rings, lie on one side.

Oil flow and molecules are not part of mercer: ``oil_flow/oil_flow.npz`` and ``graphs/MUTAG.zip``
are sought in the folder MERCER_DATA, or in ``shared/data`` beside the repository.  Without them the
pages are of scikit-learn's wine data, and of chains and rings made here.

It writes ``out/explorer_digits.html``, ``out/explorer_oil_flow.html`` and
``out/explorer_molecules.html``.
"""

# %% Digits, pictures of 8 x 8 pixels, with pre-images at 12 x 12 places of each map.
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
print(page, "with pre-images at 144 places")

# %% Oil flow, 12 measurements with gamma rays; the classes are what the models are not told.
if (file := folder / "oil_flow" / "oil_flow.npz").exists():
    with np.load(file, allow_pickle=False) as data:
        X, y = data["X_train"], data["y_train"]
    width, title = 0.5, "Oil flow"
else:
    X, y = load_wine(return_X_y=True)
    X, width, title = (X - X.mean(axis=0)) / X.std(axis=0), 3.0, "Wine (no oil flow was found)"
model = KernelPCA(3, kernel=f"RBF(length_scale={width})").fit(X)
page = explore(model, X, table={"flow": [f"flow {k}" for k in y]}, color="flow", title=title)
page.scene.column("trustworthiness in kernel PCA")  # asked for here, it is on the page
page.save(out / "explorer_oil_flow.html", preimages=12)
print(page, "with the trustworthiness of each point")

# %% Molecules: graphs, compared by the trees around their atoms.
if (file := folder / "graphs" / "MUTAG.zip").exists():
    (molecules, y), names, title = read_tudataset(file), ["not", "mutagenic"], "MUTAG"
else:  # chains of 8 to 19 atoms, every other dozen with rings of six
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
