"""Conditional quantiles that do not cross, for data with growing noise.

If the noise is skewed and grows with x, mean and variance do not describe it well, but quantiles
do. Each quantile minimises its own pinball loss.  Fitted separately they may cross: at some x the
90 % quantile is below the 75 % quantile.  Fitted together they do not cross at the training points,
and rarely between them; `predict` sorts the values to remove these crossings.  What to look for:

* Left: quantiles fitted separately.  Grey areas show crossings, mostly where there is little noise.
* Right: the same quantiles fitted together, before sorting.  There is less grey, and all of it is
  between training points.
* Bottom: the fraction of new points below each curve follows the diagonal equally well for both
  fits, so the constraint costs no accuracy.

The figure is saved as ``out/quantiles.png``.
"""

# %% Data: a sine with skewed noise that grows with x.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelMachineRegressor

rng = np.random.default_rng(1)
LEVELS = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]


def sample(x):
    return np.sin(1.5 * x) + 0.12 * (0.2 + x) * (rng.gamma(2.0, size=len(x)) - 2.0)


x = 6.0 * rng.beta(1.5, 0.8, size=200)  # fewer points on the left
y = sample(x)
X, grid = x[:, None], np.linspace(0.0, 6.0, 600)[:, None]

# %% Fit the quantiles separately and together.
options = {"alpha": 0.05, "gamma": 1.0}
separate_models = [
    KernelMachineRegressor("quantile", quantile=q, **options).fit(X, y) for q in LEVELS
]
separate = np.column_stack([model.predict(grid) for model in separate_models])
model = KernelMachineRegressor("quantile", quantile=LEVELS, **options).fit(X, y)
together = model.expansion_(grid) + model.intercept_  # without the sorting of `predict`


def crossings(curves):
    """Return True for each point at which two quantiles are in the wrong order."""
    return np.any(np.diff(curves, axis=1) < 0, axis=1)


for name, curves in (("separate", separate), ("together", together)):
    largest = max(-np.diff(curves, axis=1).min(), 0.0)
    print(f"{name:<12} cross at {np.mean(crossings(curves)):.1%} of all x, by up to {largest:.1e}")
separate_objective = sum(m.report_.certificate["objective"] for m in separate_models)
print(
    f"objective    {separate_objective:.3f} separate, "
    f"{model.report_.certificate['objective']:.3f} together"
)
fitted = model.expansion_(X) + model.intercept_
print(f"at points    smallest difference of two quantiles {np.diff(fitted, axis=1).min():.1e}")
print(f"iterations   {model.n_iter_}, duality gap {model.report_.certificate['gap']:.1e}")

# %% The fraction of new points below each curve.
x_new = 6.0 * rng.beta(1.5, 0.8, size=10_000)
y_new = sample(x_new)[:, None]
fraction_together = np.mean(y_new <= model.predict(x_new[:, None]), axis=0)
fraction_separate = np.mean(
    y_new <= np.column_stack([m.predict(x_new[:, None]) for m in separate_models]), axis=0
)
for level, fraction in zip(LEVELS, fraction_together, strict=True):
    print(f"{level:6.0%} quantile: {fraction:6.1%} of new points lie below")

# %% Plot.
figure, axes = plt.subplot_mosaic(
    [["separate", "together"], ["fraction", "fraction"]],
    figsize=(11.0, 7.2),
    height_ratios=[2.2, 1.0],
    layout="constrained",
)
colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.85, len(LEVELS)))
for name, curves, title in (
    ("separate", separate, "Fitted separately (crossings in grey)"),
    ("together", together, "Fitted together, before sorting (crossings in grey)"),
):
    ax = axes[name]
    ax.plot(x, y, ".", color="0.55", markersize=4)
    for k, level in enumerate(LEVELS):
        ax.plot(grid[:, 0], curves[:, k], color=colours[k], label=f"{level:.0%}")
    crossed = crossings(curves)
    ax.fill_between(grid[:, 0], -3, 5, where=crossed, color="0.85", zorder=0, linewidth=0)
    ax.set(xlim=(0.0, 6.0), ylim=(-2.8, 3.6), title=title, xlabel="x", ylabel="y")
axes["together"].legend(frameon=False, ncols=2, loc="upper left", title="quantile")
axes["fraction"].plot([0, 1], [0, 1], color="0.8", zorder=0)
axes["fraction"].plot(
    LEVELS, fraction_separate, "s", color="#D55E00", markersize=11, mfc="none", label="separate"
)
axes["fraction"].plot(LEVELS, fraction_together, "o", color="#0072B2", label="together")
axes["fraction"].set(xlabel="quantile", ylabel="fraction of new\npoints below")
axes["fraction"].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "quantiles.png", dpi=150)
print("figure: out/quantiles.png")
