"""Fisher directions: where classes are far apart, and points of a class near each other.

For three nested rings no line tells the classes apart.  The directions of the kernel Fisher
discriminant are functions of the RKHS; their values are the new coordinates.  One should see:

* top: the linear discriminant leaves the rings on top of each other; the first kernel direction
  lines them up, and the second bends that line, so that each class is a blob of its own;
* bottom left: the first direction as a function of the plane, with the points;
* bottom right: how alpha is chosen: the errors of leaving out a point, in closed form for all
  alphas, have a minimum (dotted), while those of the fit itself only fall towards small alpha.

It writes ``out/fisher_directions.png``.
"""

# %% Three rings.
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

# %% The discriminants.
linear = LinearDiscriminantAnalysis().fit(X, y)
model = KernelFisherDiscriminant(gamma=0.5).fit(X, y)
print(f"linear: {linear.score(X, y):.0%} right; kernel: {model.score(X, y):.0%}")
print(f"alpha {model.alpha_:.3g}; between over within {model.discriminant_ratios_.round(2)}")

# %% Errors of the fit itself, for comparison.
Y, fit = np.eye(3)[y], []
for alpha in model.alphas_:
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5, fit_intercept=True).fit(X, Y)
    fit.append(np.mean(np.sum(np.square(ridge.predict(X) - Y), axis=1)))

# %% The picture.
figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
looks = (("#0072B2", "o"), ("#D55E00", "^"), ("#009E73", "s"))
for ax, (title, Z) in zip(
    axes[0],
    {"linear discriminants": linear.transform(X), "kernel Fisher": model.transform(X)}.items(),
    strict=True,
):
    for c, (colour, marker) in enumerate(looks):
        ax.scatter(*Z[y == c].T, color=colour, marker=marker, s=14, label=f"ring {c + 1}")
    ax.set(title=title, xlabel="direction 1", ylabel="direction 2")
axes[0, 1].legend()
line = np.linspace(-3, 3, 120)
grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
first = model.transform(grid)[:, 0].reshape(120, 120)
shades = axes[1, 0].contourf(line, line, first, levels=20, cmap="RdBu_r")
figure.colorbar(shades, ax=axes[1, 0], label="direction 1")
for c, (colour, marker) in enumerate(looks):
    style = {"color": colour, "marker": marker, "s": 16, "edgecolors": "white", "linewidths": 0.5}
    axes[1, 0].scatter(*X[y == c].T, **style)
axes[1, 0].set(
    title="direction 1, a function of the plane", xlabel="x₁", ylabel="x₂", aspect="equal"
)
axes[1, 1].loglog(model.alphas_, model.scores_, "o-", label="leaving out each point")
axes[1, 1].loglog(model.alphas_, fit, "s-", color="0.6", label="the fit itself")
axes[1, 1].axvline(model.alpha_, color="0.3", linestyle=":", label="the alpha taken")
axes[1, 1].set(title="how alpha is chosen", xlabel="alpha", ylabel="mean squared error")
axes[1, 1].legend(loc="lower right")
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "fisher_directions.png", dpi=100)
