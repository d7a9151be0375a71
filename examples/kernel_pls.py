"""Kernel PLS: a few components that are chosen for prediction.

Kernel principal component regression uses the components of largest variance, without regard to y.
Kernel partial least squares (PLS) chooses components of large covariance with y.  Both then predict
y by least squares on the scores.  The data are the ten diabetes variables of scikit-learn, where y
is the progression of the disease.  What to look for:

* Left: R² on held-out patients (five folds) as a function of the number of components.  PLS needs
  two or three components for its best value, and overfits with more than ten.  PCA needs more
  components for the same value, and hardly overfits.
* Right: the first score of both methods and y.  The first PLS component is correlated with y, while
  the first principal component is only the direction in which patients differ most.

The figure is saved as ``out/kernel_pls.png``.
"""

# %% Data and the two methods.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA, KernelPLS
from mercer.kernels import RBF

X, y = load_diabetes(return_X_y=True)
kernel = RBF(8.0)
folds = KFold(5, shuffle=True, random_state=0)
methods = {
    "kernel PLS": lambda m: make_pipeline(StandardScaler(), KernelPLS(m, kernel=kernel)),
    "kernel PCA + regression": lambda m: make_pipeline(
        StandardScaler(), KernelPCA(m, kernel=kernel), LinearRegression()
    ),
}

# %% Cross-validated R² by the number of components.
counts = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24])
scores = {
    name: np.array([cross_val_score(make(int(m)), X, y, cv=folds).mean() for m in counts])
    for name, make in methods.items()
}
print("components             ", "".join(f"{m:7d}" for m in counts))
for name, values in scores.items():
    print(f"{name:24s}", "".join(f"{value:7.3f}" for value in values))

# %% The first scores.
Z = StandardScaler().fit_transform(X)
first = {
    "kernel PLS": KernelPLS(1, kernel=kernel).fit(Z, y).transform(Z)[:, 0],
    "kernel PCA": KernelPCA(1, kernel=kernel).fit_transform(Z)[:, 0],
}
correlations = {name: abs(np.corrcoef(score, y)[0, 1]) for name, score in first.items()}
for name, value in correlations.items():
    print(f"correlation of the first score of {name} with y: {value:.2f}")

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.2), layout="constrained")
styles = (("#0072B2", "o-"), ("#D55E00", "^--"))
for (name, values), (colour, mark) in zip(scores.items(), styles, strict=True):
    axes[0].plot(counts, values, mark, color=colour, label=name)
axes[0].set(title="Prediction of held-out patients", xlabel="number of components", ylabel="R²")
axes[0].set_ylim(0.2, 0.53)
axes[0].legend(frameon=False, loc="lower left")
for ax, (name, score), (colour, _) in zip(axes[1:], first.items(), styles, strict=True):
    sign = np.sign(np.corrcoef(score, y)[0, 1])
    ax.plot(sign * score, y, ".", color=colour, markersize=5)
    ax.set(title=f"{name}: correlation {correlations[name]:.2f}", xlabel="score of component 1")
    ax.set_ylabel("y, progression of the disease")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "kernel_pls.png", dpi=120)
print("figure: out/kernel_pls.png")
