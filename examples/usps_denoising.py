"""Handwritten digits with noise: what PCA and kernel PCA make of them.

Both learn from clean images, project noisy ones on their components, and come back to an image: PCA
by a sum, kernel PCA by a pre-image.  Each has the number of components that is best for it, judged
by the error itself (Mika et al., 1999, did the same).  One should see:

* PCA must stop at a few components, or it keeps the noise;
* kernel PCA has more components than pixels to choose from: its ground is smoother, and its error a
  fifth smaller (with all 300 training images of each digit a third, see benchmarks/preimage.py);
* with speckle, where pixels are replaced, meeting the distances to the nearest training images
  ("distance") is better than the closest point in feature space, which still fits the noise.

The USPS digits are not part of mercer: the file is ``usps/usps_small.npz`` in the folder
MERCER_DATA, or in ``shared/data`` beside the repository.  Without it the example says so and takes
scikit-learn's smaller digits, of which the lines above do not speak.

It writes ``out/usps_denoising.png``.
"""

# %% The data, or the stand-in: images in [-1, 1], a third of the paper's to learn from.
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
    print("usps/usps_small.npz was not found (MERCER_DATA names its folder): other digits instead")
    images, label = load_digits(return_X_y=True)
    images = images / 8.0 - 1.0
    X, y, T, t = images[:1200], label[:1200], images[1200:], label[1200:]
    name, each = "scikit-learn's, not USPS", 100
X = np.concatenate([X[y == digit][:each] for digit in range(10)])
T = np.concatenate([T[t == digit][:10] for digit in range(10)])
rng = np.random.default_rng(0)
chance = rng.random(T.shape)
noises = {
    "Gaussian, σ = 0.5": T + 0.5 * rng.normal(size=T.shape),
    "speckle, p = 0.4": np.where(chance < 0.2, -1.0, np.where(chance < 0.4, 1.0, T)),
}

# %% The models: all components once, the number of them chosen afterwards.
d, most = X.shape[1], min(512, len(X) - 1)
pca = PCA().fit(X)
width = 2.0 * d * X.var(axis=0).mean()  # the paper's rule: twice the mean variance of a pixel
model = KernelPCA(most, kernel="rbf", gamma=1 / width).fit(X)


def error(Z):
    return float(np.mean(np.sum((Z - T) ** 2, axis=1)))


def best(denoise, sizes):
    images = {q: denoise(q) for q in sizes}
    q = min(images, key=lambda q: error(images[q]))
    return q, images[q]


# %% Every method at its best.
rows = {}
for noise, noisy in noises.items():
    linear, scores = pca.transform(noisy), model.transform(noisy)

    def flat(q, linear=linear):
        return linear[:, :q] @ pca.components_[:q] + pca.mean_

    def back(q, method, scores=scores, noisy=noisy):
        kept = np.where(np.arange(most) < q, scores, 0.0)
        return model.inverse_transform(kept, method, start=noisy)

    few, many = (8, 16, 32, 48, 64), [q for q in (32, 64, 128, 256, 512) if q <= most]
    found = {
        "PCA": best(flat, few),
        "kernel PCA": best(lambda q: back(q, "fixed_point"), many),
        "kernel PCA, by distances": best(lambda q: back(q, "distance"), many),
    }
    print(f"{noise}: squared error {error(noisy):.1f}")
    for method, (q, images) in found.items():
        print(f"  {method:<24} {q:>4} components   squared error {error(images):6.2f}")
    rows[noise] = {"clean": T, f"with noise\nerror {error(noisy):.0f}": noisy}
    for method, (q, images) in found.items():
        rows[noise][f"{method}\n{q} components, error {error(images):.0f}"] = images

# %% The picture: one digit of each kind, a panel for each noise.
side, shown = int(np.sqrt(d)), np.arange(10) * 10 + 3
step = side + 1
figure, axes = plt.subplots(2, 1, figsize=(9.5, 9.0), layout="constrained")
for ax, (noise, found) in zip(axes, rows.items(), strict=True):
    sheet = np.full((step * len(found) - 1, step * 10 - 1), np.nan)
    for row, images in enumerate(found.values()):
        for column, i in enumerate(shown):
            place = np.s_[row * step : row * step + side, column * step : column * step + side]
            sheet[place] = images[i].reshape(side, side)
    ax.imshow(sheet, cmap="gray_r", vmin=-1, vmax=1)
    ax.set_yticks(step * np.arange(len(found)) + side / 2, list(found))
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(noise, fontweight="bold")
figure.suptitle(f"digits ({name}): noise, and what is left of it (squared error)", fontsize=14)

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "usps_denoising.png", dpi=150)
print("picture: out/usps_denoising.png")
