"""Points around an ellipse: the quadratic kernel finds its equation, PCA does not.

PCA gives the two axes of the ellipse, and both carry variance.  The components of the kernel
<x, z>^2 are the quadratic forms a x_1^2 + b x_1 x_2 + c x_2^2, up to a constant.  One should see:

* the first two tell the ends of the long axis from those of the short one, and the diagonals;
* the third hardly varies over the points, and the heavy line, where it is 0, is the ellipse;
* scores 1 and 3 drawn against each other: the ellipse has become a segment of a line.

It writes ``out/ellipse.png``.
"""

# %% The points on x_1^2 + 4 x_2^2 = 1, with noise, and the two models.
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

# %% The numbers: where the third component is 0, a x_1^2 + b x_1 x_2 + c x_2^2 = const.
print("share of the variance, PCA               ", end=" ")
print((100 * pca.explained_variance_ratio_).round(1), "%")
print("share of the variance, quadratic kernel  ", end=" ")
print((100 * quadratic.explained_variance_ratio_).round(1), "%")

at = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
const, x1, x2, both = quadratic.transform(at)[:, 2]
a, c = (x1 - const) / -const, (x2 - const) / -const
b = (both - x1 - x2 + const) / -const
print("the ellipse                                1.00 x₁² + 0.00 x₁x₂ + 4.00 x₂² = 1")
print(f"the third component is 0 where             {a:.2f} x₁² {b:+.2f} x₁x₂ + {c:.2f} x₂² = 1")

# %% The picture.
figure, axes = plt.subplots(2, 3, figsize=(12.8, 7.0), layout="constrained")
eigenfunctions(pca, axes=axes[0, :2])
eigenfunctions(quadratic, axes=axes[1])
for panel in axes[0, :2]:
    panel.set_title(f"PCA, {panel.get_title()}", fontsize=13)
for panel in axes[1]:
    panel.set_title(f"quadratic kernel, {panel.get_title()}", fontsize=13)
embedding(quadratic, components=(0, 2), ax=axes[0, 2])
axes[0, 2].set_title("the ellipse in feature space: a segment", fontsize=13)
for panel in [*axes[0, :2], *axes[1]]:
    panel.set(xlabel="x₁", ylabel="x₂")
figure.suptitle("Points around an ellipse: PCA and kernel PCA with ⟨x, z⟩²", fontsize=16)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "ellipse.png", dpi=150)
print("picture                                    out/ellipse.png")
