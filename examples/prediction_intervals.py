"""Prediction intervals: the jackknife+, Gaussian noise, and quantiles, on skewed noise.

The jackknife+ computes intervals from leave-one-out predictions, which have a closed form for
kernel ridge regression.  It does not assume a distribution of the noise.  What to look for:

* Left: the noise is large on the right side of the figure.  The width of the jackknife+ is nearly
  constant, and right on average.  Corrected quantiles adapt to the noise.
* Right: coverage of new points by level, from 50 % to 98 %.  The jackknife+ and the corrected
  quantiles are close to the diagonal at all levels.  Gaussian intervals with the same variance
  everywhere are too wide at low levels, and too narrow at high ones.

The figure is saved as ``out/prediction_intervals.png``.
"""

# %% Data: the noise has heavy tails, and grows with x.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelMachineRegressor, KernelRidge
from mercer.kernels import RBF
from mercer.tables import predict_observations

rng = np.random.default_rng(0)


def draw(n):
    """Return points and targets."""
    x = rng.uniform(0, 10, n)
    return x[:, None], np.sin(x) + (0.05 + 0.08 * x) * rng.standard_t(4, n)


X, y = draw(300)
held_out, new, grid = draw(200), draw(3000), np.linspace(0, 10, 300)[:, None]

# %% Three models.
kernel = RBF(1.2)
ridge = KernelRidge(alpha=0.5, kernel=kernel, fit_intercept=True).fit(X, y)
quantiles = KernelMachineRegressor("quantile", quantile=[0.05, 0.95], alpha=0.3, kernel=kernel)
quantiles.fit(X, y).conformalize(*held_out)


def gaussian(points, level):
    """Return the intervals of a Gaussian process with Gaussian noise."""
    from statistics import NormalDist

    mean, std = predict_observations(ridge, points)
    factor = NormalDist().inv_cdf(0.5 + level / 2)
    return np.stack([mean - factor * std, mean + factor * std], axis=1)


methods = {
    "jackknife+": ridge.predict_interval,
    "corrected quantiles": quantiles.predict_interval,
    "Gaussian noise": gaussian,
}

# %% Coverage of new points by level.
levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
coverage = {}
for name, interval in methods.items():
    bounds = np.stack([interval(new[0], level) for level in levels])
    inside = (bounds[..., 0] <= new[1]) & (new[1] <= bounds[..., 1])
    coverage[name] = inside.mean(axis=1)
    print(f"{name:<20}", " ".join(f"{c:.3f}" for c in coverage[name]))

# %% Plot.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.0, 4.4), width_ratios=[1.6, 1], layout="constrained"
)
styles = {"jackknife+": ("#0072B2", "o-"), "corrected quantiles": ("#D55E00", "^-")}
styles["Gaussian noise"] = ("#009E73", "s--")
left.plot(X[:, 0], y, ".", color="0.6", markersize=4)
for name in ("jackknife+", "corrected quantiles"):
    low, high = methods[name](grid, 0.9).T
    left.plot(grid[:, 0], low, color=styles[name][0], linewidth=2, label=name)
    left.plot(grid[:, 0], high, color=styles[name][0], linewidth=2)
left.plot(grid[:, 0], ridge.predict(grid), color="black", linewidth=1, label="prediction")
left.set(title="90 % prediction intervals", xlabel="x", ylabel="y", ylim=(-4, 4))
left.legend(frameon=False, loc="upper left")
right.plot([0.5, 1], [0.5, 1], color="black", linewidth=1)
for name, (colour, style) in styles.items():
    right.plot(levels, coverage[name], style, color=colour, label=name, markersize=5)
right.set(title="Coverage of 3000 new points", xlabel="level", ylabel="coverage")
right.legend(frameon=False, loc="upper left")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "prediction_intervals.png", dpi=130)
print("figure: out/prediction_intervals.png")
