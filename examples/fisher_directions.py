"""Kernel Fisher discriminant: directions that separate three nested rings.

A Fisher discriminant looks for directions in which the classes are far apart and the points of each
class are close together.  No straight line separates three nested rings.  The directions of the
kernel Fisher discriminant are functions of the RKHS; their values are the new coordinates.  What to
look for:

* Top: the linear discriminants leave the rings on top of each other.  The first kernel direction
  orders them along a line.  The second bends that line, so that each class is a separate cluster.
* Bottom left: the first direction as a function of the plane, with the points.
* Bottom right: the choice of alpha.  The leave-one-out error, in closed form for all alphas, has a
  minimum (dotted), while the training error only decreases towards small alpha.

The figure is saved as ``out/fisher_directions.png``.
"""

# %% Data: three rings.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer import KernelFisherDiscriminant, KernelRidge

rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 100)
angle, radius = rng.uniform(0, 2 * np.pi, 300), 0.5 + y + 0.25 * rng.normal(size=300)
X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]

# %% Linear and kernel discriminants.
linear = LinearDiscriminantAnalysis().fit(X, y)
model = KernelFisherDiscriminant(gamma=0.5).fit(X, y)
print(f"training accuracy: linear {linear.score(X, y):.0%}, kernel {model.score(X, y):.0%}")
print(f"alpha {model.alpha_:.3g}; ratios of between-class to within-class variance ", end="")
print(model.discriminant_ratios_.round(2))

# %% Training errors for comparison.
Y, training_errors = np.eye(3)[y], []
for alpha in model.alphas_:
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5, fit_intercept=True).fit(X, Y)
    training_errors.append(np.mean(np.sum(np.square(ridge.predict(X) - Y), axis=1)))

# %% Plot.
figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
styles = (("#0072B2", "o"), ("#D55E00", "^"), ("#009E73", "s"))
for ax, (title, Z) in zip(
    axes[0],
    {"Linear discriminants": linear.transform(X), "Kernel Fisher": model.transform(X)}.items(),
    strict=True,
):
    for c, (colour, marker) in enumerate(styles):
        ax.scatter(*Z[y == c].T, color=colour, marker=marker, s=14, label=f"ring {c + 1}")
    ax.set(title=title, xlabel="direction 1", ylabel="direction 2")
axes[0, 1].legend(frameon=False)
line = np.linspace(-3, 3, 120)
grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
first = model.transform(grid)[:, 0].reshape(120, 120)
filled = axes[1, 0].contourf(line, line, first, levels=20, cmap="RdBu_r")
figure.colorbar(filled, ax=axes[1, 0], label="direction 1")
for c, (colour, marker) in enumerate(styles):
    style = {"color": colour, "marker": marker, "s": 16, "edgecolors": "white", "linewidths": 0.5}
    axes[1, 0].scatter(*X[y == c].T, **style)
axes[1, 0].set(
    title="Direction 1 as a function of the plane", xlabel="x₁", ylabel="x₂", aspect="equal"
)
axes[1, 1].loglog(model.alphas_, model.scores_, "o-", color="#0072B2", label="leave-one-out error")
axes[1, 1].loglog(model.alphas_, training_errors, "s-", color="0.6", label="training error")
axes[1, 1].axvline(model.alpha_, color="0.3", linestyle=":", label="chosen alpha")
axes[1, 1].set(title="Choice of alpha", xlabel="alpha", ylabel="mean squared error")
axes[1, 1].legend(frameon=False, loc="lower right")
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "fisher_directions.png", dpi=100)
