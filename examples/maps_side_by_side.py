"""Five maps of handwritten digits side by side, and how much of each is true.

400 images of the digits 0 to 4, 64 numbers each, are put into the plane by PCA, by kernel PCA, by
metric scaling, by Sammon's map and by an autoencoder; none is told which digit an image shows.
One should see:

* PCA lays the digits 2 and 3 on top of each other: 86 images have a nearest neighbour that shows
  another digit; kernel PCA with a wide Gaussian is almost the same map, turned;
* metric scaling and Sammon's map, which keep distances as well as they can and so fill the plane,
  part them (17 and 31 errors), and the autoencoder does best (6);
* trustworthiness T puts the maps into the same order without knowing a label;
* the autoencoder's way back loses less than half of what that of PCA does.

It writes ``out/maps_side_by_side.png``.
"""

# %% The data.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from sklearn.datasets import load_digits

from mercer import Autoencoder, compare

root = Path(__file__).resolve().parent.parent
X, y = load_digits(n_class=5, return_X_y=True)
X, y = X[:400] / 16.0, y[:400]

# %% The maps.  Names stand for models with their defaults; a model of one's own stands for itself.
network = Autoencoder(2, hidden_layer_sizes=(20,), n_init=1, tol=1e-3)
found = compare(
    X,
    y,
    {
        **{name: name for name in ("PCA", "kernel PCA", "MDS", "Sammon")},
        "autoencoder 64-20-2-20-64": network,
    },
)
print(found)

# %% Which points of a map are not to be trusted?
quality = found.qualities["PCA"]
doubtful = quality.points.trustworthiness < 0.8
digits, counts = np.unique(y[quality.rows[doubtful]], return_counts=True)
print(
    "\nmost doubtful in the map of PCA:", dict(zip(digits.tolist(), counts.tolist(), strict=True))
)

# %% The picture.
panels = found.plot()
(root / "out").mkdir(exist_ok=True)
panels[0].figure.savefig(root / "out" / "maps_side_by_side.png", dpi=150)
print("picture: out/maps_side_by_side.png")
