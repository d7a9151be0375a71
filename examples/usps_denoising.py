"""Denoising handwritten digits: PCA compared with kernel PCA.

Both learn from clean images, project noisy images onto their components, and reconstruct an image:
PCA by a sum, kernel PCA by a pre-image.  Each uses the number of components with the smallest error
(as in Mika et al., 1999).  What to look for:

* PCA can use only a few components; with more, it reproduces the noise.
* Kernel PCA can use more components than there are pixels.  Its background is smoother, and its
  error a fifth smaller (a third smaller with all 300 training images of each digit, see
  benchmarks/preimage.py).
* With speckle noise, which replaces pixels, the method "distance", which matches the distances to
  the nearest training images, is better than the closest point in feature space, which still fits
  the noise.

The USPS digits are not part of mercer.  The file ``usps/usps_small.npz`` is read from the folder
MERCER_DATA, or from ``shared/data`` next to the repository.  Without it, the example uses
scikit-learn's smaller digits, to which the remarks above do not apply.

The figure is saved as ``out/usps_denoising.png``.
"""

# %% Data, or the replacement: images in [-1, 1], a third of the training images of the paper.
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import KernelPCA

root = Path(__file__).resolve().parent.parent
folder = Path(os.environ.get("MERCER_DATA", root.parent / "shared" / "data"))
file = folder / "usps" / "usps_small.npz"
if file.exists():
    with np.load(file, allow_pickle=False) as data:
        X, y, T, t = (data[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    X, T, name, each = X / 1000.0, T / 1000.0, "USPS", 100
else:
    print("usps/usps_small.npz was not found in MERCER_DATA: using scikit-learn's digits")
    images, label = load_digits(return_X_y=True)
    images = images / 8.0 - 1.0
    X, y, T, t = images[:1200], label[:1200], images[1200:], label[1200:]
    name, each = "scikit-learn's digits, not USPS", 100
X = np.concatenate([X[y == digit][:each] for digit in range(10)])
T = np.concatenate([T[t == digit][:10] for digit in range(10)])
rng = np.random.default_rng(0)
uniform = rng.random(T.shape)
noise_mask = {
    "Gaussian, σ = 0.5": T + 0.5 * rng.normal(size=T.shape),
    "speckle, p = 0.4": np.where(uniform < 0.2, -1.0, np.where(uniform < 0.4, 1.0, T)),
}

# %% Models: fitted once with all components; the number to use is chosen afterwards.
d, n_components = X.shape[1], min(512, len(X) - 1)
pca = PCA().fit(X)
width = 2.0 * d * X.var(axis=0).mean()  # the paper's rule: twice the mean variance of a pixel
model = KernelPCA(n_components, kernel="rbf", gamma=1 / width).fit(X)


def error(Z):
    """Return the mean squared error of images, summed over pixels."""
    return float(np.mean(np.sum((Z - T) ** 2, axis=1)))


def best_size(denoise, sizes):
    """Return the number of components with the smallest error, and its images."""
    images = {q: denoise(q) for q in sizes}
    q = min(images, key=lambda q: error(images[q]))
    return q, images[q]


# %% Denoise with each method at its best number of components.
rows = {}
for noise, noisy in noise_mask.items():
    linear, scores = pca.transform(noisy), model.transform(noisy)

    def pca_denoise(q, linear=linear):
        return linear[:, :q] @ pca.components_[:q] + pca.mean_

    def kernel_pca_denoise(q, method, scores=scores, noisy=noisy):
        truncated = np.where(np.arange(n_components) < q, scores, 0.0)
        return model.inverse_transform(truncated, method, start=noisy)

    pca_sizes, kernel_sizes = (
        (8, 16, 32, 48, 64),
        [q for q in (32, 64, 128, 256, 512) if q <= n_components],
    )
    results = {
        "PCA": best_size(pca_denoise, pca_sizes),
        "kernel PCA": best_size(lambda q: kernel_pca_denoise(q, "fixed_point"), kernel_sizes),
        "kernel PCA, by distances": best_size(
            lambda q: kernel_pca_denoise(q, "distance"), kernel_sizes
        ),
    }
    print(f"{noise}: squared error {error(noisy):.1f}")
    for method, (q, images) in results.items():
        print(f"  {method:<24} {q:>4} components   squared error {error(images):6.2f}")
    rows[noise] = {"clean": T, f"noisy\nerror {error(noisy):.0f}": noisy}
    for method, (q, images) in results.items():
        rows[noise][f"{method}\n{q} components, error {error(images):.0f}"] = images

# %% Plot one image of each digit, with a panel for each kind of noise.
side, shown = int(np.sqrt(d)), np.arange(10) * 10 + 3
step = side + 1
figure, axes = plt.subplots(2, 1, figsize=(9.5, 9.0), layout="constrained")
for ax, (noise, results) in zip(axes, rows.items(), strict=True):
    sheet = np.full((step * len(results) - 1, step * 10 - 1), np.nan)
    for row, images in enumerate(results.values()):
        for column, i in enumerate(shown):
            cell = np.s_[row * step : row * step + side, column * step : column * step + side]
            sheet[cell] = images[i].reshape(side, side)
    ax.imshow(sheet, cmap="gray_r", vmin=-1, vmax=1)
    ax.set_yticks(step * np.arange(len(results)) + side / 2, list(results))
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(noise, fontweight="bold")
figure.suptitle(f"Denoised digits ({name}), with squared errors", fontsize=14)

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "usps_denoising.png", dpi=150)
print("figure: out/usps_denoising.png")
