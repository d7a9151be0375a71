"""Compare five embeddings of handwritten digits in the plane.

400 images of the digits 0 to 4, with 64 pixels each, are embedded by PCA, kernel PCA, metric MDS,
Sammon's mapping and an autoencoder.  None of them uses the labels.  What to look for:

* PCA places the digits 2 and 3 on top of each other: for 86 images the nearest neighbour is another
  digit.  Kernel PCA with a wide Gaussian gives almost the same embedding, rotated.
* Metric MDS and Sammon's mapping preserve distances as well as possible.  They separate the digits
  better (17 and 31 errors).  The autoencoder is best (6 errors).
* The trustworthiness T ranks the embeddings in the same order without using labels.
* The reconstruction error of the autoencoder is less than half of that of PCA.

The figure is saved as ``out/maps_side_by_side.png``.
"""

# %% Data.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from sklearn.datasets import load_digits

from mercer import Autoencoder, compare

root = Path(__file__).resolve().parent.parent
X, y = load_digits(n_class=5, return_X_y=True)
X, y = X[:400] / 16.0, y[:400]

# %% Fit the embeddings.  A name selects a model with default parameters; a model is used as given.
network = Autoencoder(2, hidden_layer_sizes=(20,), n_init=1, tol=1e-3)
comparison = compare(
    X,
    y,
    {
        **{name: name for name in ("PCA", "kernel PCA", "MDS", "Sammon")},
        "autoencoder 64-20-2-20-64": network,
    },
)
print(comparison)

# %% Points of an embedding that are not trustworthy.
quality = comparison.qualities["PCA"]
doubtful = quality.points.trustworthiness < 0.8
digits, counts = np.unique(y[quality.rows[doubtful]], return_counts=True)
print(
    "\npoints with low trustworthiness in PCA, by digit:",
    dict(zip(digits.tolist(), counts.tolist(), strict=True)),
)

# %% Plot.
panels = comparison.plot()
(root / "out").mkdir(exist_ok=True)
panels[0].figure.savefig(root / "out" / "maps_side_by_side.png", dpi=150)
print("figure: out/maps_side_by_side.png")
