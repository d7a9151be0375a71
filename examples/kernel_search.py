"""Search for the structure of a kernel: trend, seasons, or both?

`search_kernels` starts with single kernels.  In each step it adds a kernel, multiplies a term by
one or replaces one, and keeps the expression with the best Bayesian information criterion (BIC), as
in Duvenaud et al. (2013).  The data are a generated series with a linear trend and a season of one
year whose amplitude grows.  What to look for:

* The printed steps: a single RBF kernel follows the data, and the search then adds a periodic
  kernel and multiplies it by an RBF kernel.  The product describes a season that changes.
* Left: the BIC of all expressions that were tried, by step.  The product brings the largest gain.
* Right: the forecast of the expression that was found.  The forecast of a single RBF kernel returns
  to the mean within months.

The figure is saved as ``out/kernel_search.png``.
"""

# %% Data: 12 years of monthly values; the last three years are held out.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import search_kernels
from mercer.kernels import RBF, Linear, Periodic

t = np.arange(0, 12, 1 / 12)
rng = np.random.default_rng(0)
y = 1.0 * t + (0.8 + 0.25 * t) * np.sin(2 * np.pi * t) + 0.4 * rng.standard_normal(len(t))
past = t < 9
X = t[:, None]

# %% The search, with three kinds of kernels.
found = search_kernels(X[past], y[past], [RBF(), Linear(), Periodic()], max_levels=3)
print(found)
models = {
    found.story.best.words: found.estimator.fit(X[past], y[past]),
    "RBF": search_kernels(X[past], y[past], [RBF()], max_levels=1).estimator.fit(X[past], y[past]),
}
for name, model in models.items():
    error = np.sqrt(np.mean((model.predict(X[~past]) - y[~past]) ** 2))
    print(f"forecast error of {name}: {error:.2f}")

# %% Plot.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.5, 4.4), width_ratios=[1, 1.7], layout="constrained"
)
levels = np.array([candidate.level for candidate in found.story.tried])
bic = np.array([candidate.bic for candidate in found.story.tried])
left.plot(levels + 1, bic, "o", color="0.6", markersize=5, label="expressions")
best = [bic[levels == level].max() for level in np.unique(levels)]
left.plot(np.unique(levels) + 1, best, "*-", color="#0072B2", markersize=13, label="best")
left.set(title="Bayesian information criterion", xlabel="step of the search", ylabel="BIC")
left.set_xticks(np.unique(levels) + 1)
left.legend(frameon=False, loc="lower right")
grid = np.linspace(0, 12, 600)
for (name, model), colour, dash in zip(
    models.items(), ("#0072B2", "#D55E00"), ("-", "--"), strict=True
):
    mean, deviation = model.predict(grid[:, None], return_std=True)
    right.plot(grid, mean, dash, color=colour, label=name)
    if name != "RBF":
        band = (mean - 2 * deviation, mean + 2 * deviation)
        right.fill_between(grid, *band, color=colour, alpha=0.15, label="± 2 standard deviations")
right.plot(t[past], y[past], ".", color="black", markersize=4, label="training data")
right.plot(t[~past], y[~past], "x", color="black", markersize=4, label="held out")
right.axvline(9, color="0.5", linestyle=":")
right.set(title="Forecast", xlabel="time (years)", ylabel="y")
right.legend(frameon=False, loc="upper left")
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "kernel_search.png", dpi=120)
print("figure: out/kernel_search.png")
