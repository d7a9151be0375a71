"""Parzen density: choose the bandwidth by leave-one-out likelihood.

A Parzen density is the mean of one normalised kernel per point.  Its only parameter is the
bandwidth h.  Scott's rule, h = σ n^(-1/5) with the standard deviation σ, assumes a normal
distribution; the leave-one-out log likelihood makes no such assumption.  The data are 200 draws
from a mixture of a wide and two narrow normal distributions.  What to look for:

* Left: each point contributes a small bump (drawn for 12 points), and their mean is the density.
* Middle: Scott's rule is too wide for the narrow peaks.  The bandwidth with the largest
  leave-one-out likelihood shows them, at the price of small bumps elsewhere.
* Right: the leave-one-out likelihood, which needs only the data, is close to the likelihood of 5000
  new points.  Its maximum is at a slightly larger bandwidth.

The figure is saved as ``out/parzen_bandwidth.png``.
"""

# %% Data: a mixture of three normal distributions.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from mercer import ParzenDensity

weights, means, widths = np.array([0.4, 0.3, 0.3]), np.array([0.0, 2.5, 4.0]), (1.0, 0.15, 0.25)


def draw(n, seed):
    """Return n draws from the mixture."""
    rng = np.random.default_rng(seed)
    part = rng.choice(3, size=n, p=weights)
    return (means[part] + np.array(widths)[part] * rng.standard_normal(n))[:, None]


X, X_new = draw(200, 0), draw(5000, 1)
grid = np.linspace(-5, 6, 600)
truth = sum(w * norm.pdf(grid, m, s) for w, m, s in zip(weights, means, widths, strict=True))

# %% Two bandwidths, and the likelihood as a function of the bandwidth.
models = {
    "Scott's rule": ParzenDensity(bandwidth=X.std() * len(X) ** -0.2).fit(X),
    "leave-one-out": ParzenDensity(bandwidth="loo").fit(X),
}
for name, model in models.items():
    print(f"{name:14s} bandwidth {model.bandwidth_:.3f}, ", end="")
    print(f"mean log likelihood of new points {model.score(X_new) / len(X_new):.3f}")
bandwidths = np.geomspace(0.05, 2.0, 25)
new_points, left_out = [], []
for h in bandwidths:
    model = ParzenDensity(bandwidth=h).fit(X)
    new_points.append(model.score(X_new) / len(X_new))
    density = np.exp(model.score_samples(X))  # includes the kernel of the point itself
    without = (len(X) * density - norm.pdf(0) / h) / (len(X) - 1)
    left_out.append(np.mean(np.log(without)))

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(13.8, 4.0), layout="constrained")
few = np.sort(X[:12, 0])
small = ParzenDensity(bandwidth=0.4).fit(few[:, None])
for point in few:
    axes[0].plot(grid, norm.pdf(grid, point, 0.4) / 12, color="#56B4E9", linewidth=1)
axes[0].plot([], [], color="#56B4E9", linewidth=1, label="kernels / 12")
axes[0].plot(grid, np.exp(small.score_samples(grid[:, None])), color="#0072B2", label="their sum")
axes[0].plot(few, np.zeros(12), "|", color="black", markersize=10, label="12 points")
axes[0].set_title("Parzen density of 12 points")
axes[1].fill_between(grid, truth, color="0.88", label="true density")
for (name, model), colour, dash in zip(
    models.items(), ("#D55E00", "#0072B2"), ("--", "-"), strict=True
):
    density = np.exp(model.score_samples(grid[:, None]))
    axes[1].plot(grid, density, dash, color=colour, label=f"{name}, h = {model.bandwidth_:.2f}")
    axes[2].axvline(model.bandwidth_, color=colour, linestyle=dash, linewidth=1)
axes[1].set_title("Parzen density of 200 points")
axes[2].semilogx(bandwidths, left_out, "o-", color="#0072B2", ms=4, label="leave-one-out")
axes[2].semilogx(bandwidths, new_points, "^-", color="#009E73", ms=4, label="5000 new points")
axes[2].set(title="Bandwidths (lines) and likelihood", xlabel="bandwidth h")
axes[2].set(ylabel="mean log likelihood", ylim=(-2.5, max(new_points) + 0.1))
for ax in axes[:2]:
    ax.set(xlabel="x", ylabel="density", ylim=(0, 1.45 * ax.dataLim.ymax))
for ax in axes:
    ax.legend(frameon=False, loc="lower left" if ax is axes[2] else "upper left")
    ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "parzen_bandwidth.png", dpi=120)
print("figure: out/parzen_bandwidth.png")
