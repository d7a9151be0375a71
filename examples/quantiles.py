"""Several conditional quantiles of a curve whose noise grows, and that do not cross.

Mean and variance say little where noise is skewed and grows with x; quantiles say all of it.  Each
minimises its own pinball loss, so that one by one they may cross: at some x the 90 % quantile lies
below the 75 %.  Fitted at once they do not cross at the points, and between them seldom; what
crosses there `predict` sorts.  One should see:

* on the left, quantiles fitted one by one, and in grey where some of them cross: mostly where there
  is little noise to tell them apart;
* on the right, the same quantiles fitted together, before anything is sorted: a fan that opens, and
  less grey, all of it between points;
* below, the share of new points under each curve, near the diagonal: not crossing costs nothing.

It writes ``out/quantiles.png``.
"""

# %% A sine whose noise is skewed and grows.
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


x = 6.0 * rng.beta(1.5, 0.8, size=200)  # fewer to the left
y = sample(x)
X, grid = x[:, None], np.linspace(0.0, 6.0, 600)[:, None]

# %% One by one, and at once.
options = {"alpha": 0.05, "gamma": 1.0}
alone = [KernelMachineRegressor("quantile", quantile=q, **options).fit(X, y) for q in LEVELS]
apart = np.column_stack([model.predict(grid) for model in alone])
model = KernelMachineRegressor("quantile", quantile=LEVELS, **options).fit(X, y)
together = model.expansion_(grid) + model.intercept_  # predict would sort these


def crossings(curves):
    """Return for each point whether two quantiles are in the wrong order."""
    return np.any(np.diff(curves, axis=1) < 0, axis=1)


for name, curves in (("one by one", apart), ("together", together)):
    worst = max(-np.diff(curves, axis=1).min(), 0.0)
    print(f"{name:<12} cross on {np.mean(crossings(curves)):.1%} of the line, by up to {worst:.1e}")
cost = sum(m.report_.certificate["objective"] for m in alone)
print(f"objective    {cost:.3f} one by one, {model.report_.certificate['objective']:.3f} together")
fitted = model.expansion_(X) + model.intercept_
print(f"at points    the smallest step from one to the next is {np.diff(fitted, axis=1).min():.1e}")
print(f"steps        {model.n_iter_}, duality gap {model.report_.certificate['gap']:.1e}")

# %% How many new points lie below each curve.
fresh = 6.0 * rng.beta(1.5, 0.8, size=10_000)
truth = sample(fresh)[:, None]
below = np.mean(truth <= model.predict(fresh[:, None]), axis=0)
below_apart = np.mean(truth <= np.column_stack([m.predict(fresh[:, None]) for m in alone]), axis=0)
for level, share in zip(LEVELS, below, strict=True):
    print(f"{level:6.0%} quantile: {share:6.1%} of new points lie below")

# %% The picture.
figure, axes = plt.subplot_mosaic(
    [["apart", "together"], ["share", "share"]],
    figsize=(11.0, 7.2),
    height_ratios=[2.2, 1.0],
    layout="constrained",
)
colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.85, len(LEVELS)))
for name, curves, title in (
    ("apart", apart, "one by one: crossings in grey"),
    ("together", together, "together, before sorting: crossings in grey"),
):
    ax = axes[name]
    ax.plot(x, y, ".", color="0.55", markersize=4)
    for k, level in enumerate(LEVELS):
        ax.plot(grid[:, 0], curves[:, k], color=colours[k], label=f"{level:.0%}")
    bad = crossings(curves)
    ax.fill_between(grid[:, 0], -3, 5, where=bad, color="0.85", zorder=0, linewidth=0)
    ax.set(xlim=(0.0, 6.0), ylim=(-2.8, 3.6), title=title, xlabel="x")
axes["together"].legend(frameon=False, ncols=2, loc="upper left", title="quantile")
axes["share"].plot([0, 1], [0, 1], color="0.8", zorder=0)
axes["share"].plot(LEVELS, below_apart, "s", color="0.6", label="one by one")
axes["share"].plot(LEVELS, below, "o", color="#0072B2", label="together")
axes["share"].set(xlabel="quantile asked for", ylabel="share of new\npoints below")
axes["share"].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "quantiles.png", dpi=150)
print("picture: out/quantiles.png")
