"""Gaussian process classification: probabilities that return to 1/2 far from the data.

A Gaussian process classifier averages the class probability over the posterior of a function f.
Kernel logistic regression uses one function, the most probable one.  Both models use the same
kernel here, with the parameters that the Gaussian process has learned.  What to look for:

* Left and middle: the probability of class 1.  Between the moons both models agree.  The average
  moves probabilities towards 1/2 where f is uncertain.
* Right: the probabilities along the horizontal line x₂ = 0.25 (grey in the other panels).  Far from
  the points both return to 1/2, and the Gaussian process is the more cautious one everywhere.
* The printed log-loss on new points of the same distribution is larger for the Gaussian process.
  Laplace's approximation is known to give probabilities that are too close to 1/2 (Kuss and
  Rasmussen, 2005, Assessing approximate inference for binary Gaussian process classification).

The figure is saved as ``out/gp_classification.png``.
"""

# %% Data and models.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from mercer import GaussianProcessClassifier, KernelLogisticRegression
from mercer.datasets import moons
from mercer.kernels import RBF

X, y = moons(60, noise=0.25, random_state=0)
X_test, y_test = moons(5000, noise=0.25, random_state=1)
start = 1.0 * RBF(1.0)
gp = GaussianProcessClassifier(start).fit(X, y)
print(f"learned kernel           {gp.kernel_}")
print(f"log marginal likelihood  {gp.log_marginal_likelihood_value_:.2f}")
logistic = KernelLogisticRegression(C=1.0, kernel=gp.kernel_, fit_intercept=False).fit(X, y)
models = {"Gaussian process": gp, "kernel logistic regression": logistic}
for name, model in models.items():
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{name:27s} log-loss {loss:.3f}, accuracy {model.score(X_test, y_test):.1%}")

# %% Both models have the same decision boundary, because the mode of f is the same.
agree = np.mean(gp.predict(X_test) == logistic.predict(X_test))
print(f"equal predictions        {agree:.1%}")

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(14.0, 4.0), layout="constrained")
a, b = np.meshgrid(np.linspace(-4, 5, 160), np.linspace(-3.0, 3.5, 120))
grid = np.c_[a.ravel(), b.ravel()]
line = np.c_[np.linspace(-4, 5, 300), np.full(300, 0.25)]
styles = {"Gaussian process": ("#0072B2", "-"), "kernel logistic regression": ("#D55E00", "--")}
for ax, (name, model) in zip(axes, models.items(), strict=False):
    p = model.predict_proba(grid)[:, 1].reshape(a.shape)
    shades = ax.contourf(a, b, p, np.linspace(0, 1, 11), cmap="RdBu_r")
    ax.contour(a, b, p, [0.5], colors="black", linewidths=1.5)
    for label, (colour, marker) in enumerate((("#053061", "o"), ("#67001f", "^"))):
        ax.scatter(*X[y == label].T, s=20, color=colour, marker=marker, edgecolors="white", lw=0.5)
    ax.axhline(0.25, color="0.4", linewidth=0.8)
    ax.set(title=name, xlabel="x₁", ylabel="x₂", aspect="equal")
    colour, dash = styles[name]
    axes[2].plot(line[:, 0], model.predict_proba(line)[:, 1], dash, color=colour, label=name)
figure.colorbar(shades, ax=axes[:2], label="p(class 1 | x)", location="bottom", shrink=0.6)
axes[2].axhline(0.5, color="0.7", linewidth=1)
axes[2].set(title="Along x₂ = 0.25", xlabel="x₁", ylabel="p(class 1 | x)", ylim=(0, 1.3))
axes[2].set_yticks(np.linspace(0, 1, 6))
axes[2].legend(frameon=False, loc="upper left")
axes[2].spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "gp_classification.png", dpi=120)
print("figure: out/gp_classification.png")
