"""Isomap, LLE, Laplacian eigenmaps and diffusion maps as kernel PCA.

600 points lie on a swiss roll, a rectangle that is rolled up in three dimensions.  The colour is
the position along the roll.  Kernel PCA with four kernels of the neighbour graph is compared with a
Gaussian kernel, NeuroScale, an autoencoder, t-SNE and, if it is installed, UMAP.  What to look for:

* Kernel PCA with a Gaussian kernel does not unroll the surface.
* With `Geodesic`, kernel PCA is Isomap, and finds the rectangle.  With `LocallyLinear` it is LLE;
  the embedding is distorted.  ``whiten=True`` gives both coordinates the same scale, as in LLE.
* Laplacian eigenmaps and diffusion maps find a curve: the rectangle is long, so that the second
  eigenvector also depends on the position along the roll, and not on the height.
* NeuroScale preserves large distances, so that it cannot unroll the surface.  The autoencoder
  reconstructs the points well, but its embedding is folded: distant parts of the roll overlap.
* t-SNE preserves neighbours as well as Isomap, but tears the surface and cannot embed new points.
* Kernel PCA embeds new points close to their coordinates in a fit to all points.

The figure is saved as ``out/manifold_kernels.png``.
"""

# %% Data.
from importlib.util import find_spec
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

from mercer import Autoencoder, KernelPCA, compare
from mercer.datasets import swiss_roll
from mercer.kernels import CommuteTime, Diffusion, Geodesic, LocallyLinear

root = Path(__file__).resolve().parent.parent
X, position = swiss_roll(700, random_state=0)
X, position, X_new = X[:600], position[:600], X[600:]

# %% Fit the embeddings.
models = {
    "kernel PCA, RBF": "kernel PCA",
    "Geodesic (Isomap)": KernelPCA(2, kernel=Geodesic(10), indefinite="clip"),
    "LocallyLinear (LLE)": KernelPCA(2, kernel=LocallyLinear(12), whiten=True),
    "CommuteTime (Laplacian eigenmaps)": KernelPCA(2, kernel=CommuteTime(10)),
    "Diffusion, 50 steps": KernelPCA(2, kernel=Diffusion(10, steps=50)),
    "NeuroScale": "NeuroScale",
    "autoencoder": Autoencoder(2, hidden_layer_sizes=(20,), n_init=1, tol=1e-3),
    "t-SNE": "t-SNE",
}
if find_spec("umap"):
    models["UMAP"] = "UMAP"
comparison = compare(X, position, models)
print(comparison)

# %% Embed new points, and compare them with a fit to all points.
isomap = comparison.models["Geodesic (Isomap)"]
Z_new = isomap.transform(X_new)
together = KernelPCA(2, kernel=Geodesic(10), indefinite="clip").fit(np.r_[X, X_new])
Z_together = together.training_scores_[600:]
signs = np.sign(np.sum(Z_new * Z_together, axis=0))
difference = np.linalg.norm(Z_new - signs * Z_together, axis=1)
print(
    f"\n100 new points: median distance {np.median(difference):.2f} to their coordinates in a fit "
    f"to all points, for an embedding of width {np.ptp(Z_together[:, 0]):.0f}"
)

# %% Plot.
panels = comparison.plot()
(root / "out").mkdir(exist_ok=True)
panels[0].figure.savefig(root / "out" / "manifold_kernels.png", dpi=110)
print("figure: out/manifold_kernels.png")
