"""Three estimators on one page: a classifier, an embedding and a regressor.

The same kernel, RBF, is used for three tasks.  Every fitted model is a kernel expansion
f = Σᵢ αᵢ k(xᵢ, ·), with different coefficients.  What to look for:

* Left: an SVM separates two rings.  Its boundary depends only on the circled support vectors.
* Middle: kernel PCA of the same points, without labels.  The third component separates the rings.
* Right: kernel ridge regression of a noisy sine.

The figure is saved as ``out/three_estimators.png``.
"""

# %% Fit the three models.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, KernelPCA, KernelRidge
from mercer.datasets import circles, noisy_sine
from mercer.kernels import RBF
from mercer.plotting import margin

X, label = circles(400, random_state=0)
svc = SVC(C=10.0).fit(X, label)
pca = KernelPCA(n_components=3, kernel="rbf", gamma="median").fit(X)
x, y = noisy_sine(48, random_state=0)
ridge = KernelRidge(alpha=0.1, kernel=RBF(0.2)).fit(x, y)

# %% Every model has an expansion.
for name, model in {"SVC": svc, "KernelPCA": pca, "KernelRidge": ridge}.items():
    f = model.expansion_
    print(f"{name:12s} {len(f.points):3d} points, norms of its functions {f.norm().round(2)}")

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.3), layout="constrained")
margin(svc, X, label, ax=axes[0]).set(title="SVC", xlabel="x₁", ylabel="x₂")
axes[0].get_legend().set_bbox_to_anchor((0.5, -0.14))
Z = pca.transform(X)
for c, (colour, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "^"))):
    axes[1].plot(*Z[label == c][:, [0, 2]].T, marker, color=colour, ms=4, label=f"ring {c}")
axes[1].set(title="KernelPCA", xlabel="component 1", ylabel="component 3")
axes[1].legend(frameon=False, loc="upper center", ncols=2, bbox_to_anchor=(0.5, -0.14))
grid = np.linspace(x.min(), x.max(), 300)[:, None]
axes[2].plot(x, y, ".", color="0.5", label="data")
axes[2].plot(grid, ridge.predict(grid), color="#0072B2", linewidth=2, label="prediction")
axes[2].set(title="KernelRidge", xlabel="x", ylabel="y")
axes[2].legend(frameon=False, loc="upper center", ncols=2, bbox_to_anchor=(0.5, -0.14))
for ax in axes[1:]:
    ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "three_estimators.png", dpi=120)
print("figure: out/three_estimators.png")
