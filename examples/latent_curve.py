"""A curve in the plane and its hidden parameter: four models with one latent dimension.

The points are (t, 2t² + t³) with noise.  Each model represents them by one number, and maps this
number back to the plane.  What to look for:

* Probabilistic PCA: a straight line.  The order of the points is nearly right, the bend is lost.
* Kernel PCA with a Gaussian kernel: the pre-images of one component lie on a short, nearly straight
  segment, and the component is not a monotone function of t.
* The auto-encoder and the GPLVM: a curve through the points, and a latent variable that is a
  monotone function of t.

The figure is saved as ``out/latent_curve.png``.
"""

# %% Data and models.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from mercer import GPLVM, Autoencoder, KernelPCA, ProbabilisticPCA
from mercer.datasets import cubic_curve

X, t = cubic_curve(80, noise=0.03, random_state=0)
models = {
    "probabilistic PCA": ProbabilisticPCA(n_components=1),
    "kernel PCA": KernelPCA(n_components=1, kernel="rbf", gamma=0.5),
    "auto-encoder": Autoencoder(n_components=1, hidden_layer_sizes=(10,), random_state=0),
    "GPLVM": GPLVM(n_components=1),
}

# %% Fit, reconstruct the points, and compare the latent variable with t.
curves, latent = {}, {}
for name, model in models.items():
    z = model.fit_transform(X)
    grid = np.linspace(z.min(), z.max(), 100)[:, None]
    if name == "kernel PCA":
        back, curve = model.denoise(X), model.inverse_transform(grid, method="auto")
    else:
        back, curve = model.inverse_transform(z), model.inverse_transform(grid)
    curves[name], latent[name] = curve, z[:, 0]
    error = np.sqrt(np.mean((back - X) ** 2))
    agreement = abs(spearmanr(z[:, 0], t).statistic)
    print(f"{name:18s} reconstruction error {error:.3f}, rank correlation with t {agreement:.3f}")

# %% Plot.
figure, axes = plt.subplots(2, 4, figsize=(13.0, 6.0), layout="constrained")
for (upper, lower), name in zip(axes.T, models, strict=True):
    upper.plot(*X.T, "o", color="0.5", markersize=3)
    upper.plot(*curves[name].T, color="#D55E00", linewidth=2)
    upper.set(title=name, xlabel="x", xlim=(-2.4, 1.4), ylim=(-1.2, 3.4))
    lower.plot(t, latent[name], "o", color="#0072B2", markersize=3)
    lower.set(xlabel="t")
axes[0, 0].set_ylabel("y")
axes[1, 0].set_ylabel("latent variable z")
figure.suptitle("One latent dimension: the model in the plane, and z as a function of t")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "latent_curve.png", dpi=100)
print("figure: out/latent_curve.png")
