"""Points around an ellipse: a quadratic kernel finds its equation, linear PCA does not.

PCA finds the two axes of the ellipse, and both carry variance.  The components of the kernel
<x, z>^2 are quadratic forms a x_1^2 + b x_1 x_2 + c x_2^2, up to a constant.  What to look for:

* The first two components separate the ends of the long axis from those of the short axis, and the
  two diagonals from each other.
* The third component hardly varies over the points.  The heavy line, where it is 0, is the ellipse.
* Plotted against each other, scores 1 and 3 form a line segment.

The figure is saved as ``out/ellipse.png``.
"""

# %% Data: noisy points on x_1^2 + 4 x_2^2 = 1.  Models: linear PCA and kernel PCA.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelPCA
from mercer.datasets import ellipse
from mercer.kernels import Polynomial
from mercer.plotting import eigenfunctions, embedding

X, angle = ellipse(120, noise=0.03, random_state=0)
pca = KernelPCA(n_components=2, kernel="linear").fit(X)
quadratic = KernelPCA(n_components=3, kernel=Polynomial(degree=2, coef0=0.0)).fit(X)

# %% Recover the equation a x_1^2 + b x_1 x_2 + c x_2^2 = 1 from the third component.
print("explained variance, PCA                  ", end=" ")
print((100 * pca.explained_variance_ratio_).round(1), "%")
print("explained variance, quadratic kernel     ", end=" ")
print((100 * quadratic.explained_variance_ratio_).round(1), "%")

probes = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
const, x1, x2, x1_x2 = quadratic.transform(probes)[:, 2]
a, c = (x1 - const) / -const, (x2 - const) / -const
b = (x1_x2 - x1 - x2 + const) / -const
print("equation of the ellipse                    1.00 x₁² + 0.00 x₁x₂ + 4.00 x₂² = 1")
print(f"third component is 0 where                 {a:.2f} x₁² {b:+.2f} x₁x₂ + {c:.2f} x₂² = 1")

# %% Plot the components, and the scores of the quadratic kernel.
figure, axes = plt.subplots(2, 3, figsize=(13.6, 7.0), layout="constrained")
eigenfunctions(pca, axes=axes[0, :2])
eigenfunctions(quadratic, axes=axes[1])
for panel in axes[0, :2]:
    panel.set_title(f"PCA, {panel.get_title()}", fontsize=13)
for panel in axes[1]:
    panel.set_title(f"quadratic kernel, {panel.get_title()}", fontsize=13)
embedding(quadratic, components=(0, 2), ax=axes[0, 2])
axes[0, 2].set_title("Feature space: a line segment", fontsize=13)
axes[0, 2].set_aspect("equal", adjustable="box")
axes[0, 2].set_ylim(-0.35, 0.35)
for panel in [*axes[0, :2], *axes[1]]:
    panel.set(xlabel="x₁", ylabel="x₂")
figure.suptitle("Points around an ellipse: PCA and kernel PCA with ⟨x, z⟩²", fontsize=16)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "ellipse.png", dpi=150)
print("figure                                     out/ellipse.png")
