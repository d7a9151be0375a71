"""A noisy cubic curve: linear PCA compared with a cubic kernel.

The points lie near the curve (t, 2 t^2 + t^3), -2 <= t <= 1, with a little noise.  PCA needs both
of its components, because its contours are always straight lines.  The components of the kernel (1
+ <x, z>)^3 are cubic polynomials, so their contours can be curved.  What to look for:

* The first kernel components have curved contours that cross the curve.
* The ninth and last component has the smallest variance, because it is nearly constant on the
  curve.  Its heavy line, where it is 0, is the curve itself: kernel PCA has found y = 2 x^2 + x^3.
* Without noise its eigenvalue is 0 up to rounding, because the curve lies in a hyperplane of the
  nine cubic features.

The figure is saved as ``out/cubic_curve.png``.
"""

# %% Data, linear PCA (kernel PCA with the linear kernel), and kernel PCA with the cubic kernel.
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

# %% Explained variance, and the size of the last eigenvalue.
print("explained variance, PCA              ", (100 * pca.explained_variance_ratio_).round(1), "%")
print("explained variance, cubic kernel     ", end=" ")
print((100 * cubic.explained_variance_ratio_[:3]).round(1), "% ...", end=" ")
print(f"{100 * cubic.explained_variance_ratio_[-1]:.4f} % (ninth)")

exact, _ = cubic_curve(80)
without_noise = KernelPCA(n_components=9, kernel=kernel).fit(exact).eigenvalues_
print(f"ninth / eighth eigenvalue, noisy      {cubic.eigenvalues_[8] / cubic.eigenvalues_[7]:.2g}")
print(f"ninth / eighth eigenvalue, exact      {without_noise[8] / without_noise[7]:.2g}")

# The distance from the exact curve to the zero set of the last component f.  To first order it is
# |f| / |grad f|.
value = cubic.transform(exact)[:, 8]
slope = np.linalg.norm(cubic.expansion_[8].gradient(exact)[:, 0], axis=1)
print(f"distance of curve and zero line       {np.median(np.abs(value) / slope):.3f} (median; the")
print("                                      standard deviation of the noise is 0.03)")

# %% Plot the components and the spectrum.
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
print("figure                                out/cubic_curve.png")
