"""A noisy cubic curve: PCA sees straight lines, a cubic kernel finds the curve.

The points lie along (t, 2 t^2 + t^3), -2 <= t <= 1, moved a little by noise.  They look
two-dimensional, and PCA needs both of its components: its contours are straight, whatever the data.
The components of the kernel (1 + <x, z>)^3 are cubic polynomials, and their contours bend.  One
should see:

* the first kernel components have curved contours that cross the curve;
* the ninth and last has the least variance, because on the curve it is nearly constant, and its
  heavy line, where it is 0, is the curve itself: kernel PCA has found y = 2 x^2 + x^3;
* without noise its eigenvalue is 0 up to rounding: the curve lies in a hyperplane of the nine
  cubic features.

It writes ``out/cubic_curve.png``.
"""

# %% The points, PCA (which is kernel PCA with the linear kernel), and the cubic kernel.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelPCA
from mercer.datasets import cubic_curve
from mercer.kernels import Polynomial
from mercer.plotting import eigenfunctions, spectrum

X, t = cubic_curve(80, noise=0.03, random_state=0)
kernel = Polynomial(degree=3, coef0=1.0)
pca = KernelPCA(n_components=2, kernel="linear").fit(X)
cubic = KernelPCA(n_components=9, kernel=kernel).fit(X)

# %% The numbers: shares of the variance, and what the last component is worth.
print("share of the variance, PCA           ", (100 * pca.explained_variance_ratio_).round(1), "%")
print("share of the variance, cubic kernel  ", end=" ")
print((100 * cubic.explained_variance_ratio_[:3]).round(1), "% ...", end=" ")
print(f"{100 * cubic.explained_variance_ratio_[-1]:.4f} % the ninth")

exact, _ = cubic_curve(80)
without_noise = KernelPCA(n_components=9, kernel=kernel).fit(exact).eigenvalues_
print(f"ninth / eighth eigenvalue, noisy      {cubic.eigenvalues_[8] / cubic.eigenvalues_[7]:.2g}")
print(f"ninth / eighth eigenvalue, exact      {without_noise[8] / without_noise[7]:.2g}")

# The equation that the last component found: move along its gradient from the exact curve to its
# zero set; to first order the way is |f| / |grad f|.
value = cubic.transform(exact)[:, 8]
slope = np.linalg.norm(cubic.expansion_[8].gradient(exact)[:, 0], axis=1)
print(f"from the curve to the heavy line      {np.median(np.abs(value) / slope):.3f} (median; the")
print("                                      noise moved the points by 0.03 in each direction)")

# %% The picture.
figure, axes = plt.subplots(2, 3, figsize=(12.8, 8.2), layout="constrained")
eigenfunctions(pca, axes=axes[0, :2])
spectrum(cubic, ax=axes[0, 2])
eigenfunctions(cubic, components=[0, 1, 8], axes=axes[1])
for panel in axes[0, :2]:
    panel.set_title(f"PCA, {panel.get_title()}", fontsize=13)
for panel in axes[1]:
    panel.set_title(f"cubic kernel, {panel.get_title()}", fontsize=13)
for panel in [*axes[0, :2], *axes[1]]:
    panel.set(xlabel="x₁", ylabel="x₂")
figure.suptitle("A noisy cubic curve: PCA and kernel PCA with (1 + ⟨x, z⟩)³", fontsize=16)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "cubic_curve.png", dpi=150)
print("picture                               out/cubic_curve.png")
