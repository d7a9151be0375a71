"""Carbon dioxide at Mauna Loa: a kernel written as a sentence about the data.

    a long rise  +  seasons that slowly change  +  irregularities of a year or so  +  noise

Each part is a kernel, their sum is the model, and the likelihood finds the sizes and scales
(after Rasmussen and Williams, 2006, section 5.4.3).  It learns from the years up to 1991 and
forecasts the rest.  One should see:

* the forecast follows rise and seasons, with a band that grows; growth paused in 1992, which no
  smooth trend could know, and many of the months that came later lie at its edge;
* the mean of the whole is the sum of the means of its parts, each an expansion with the *same*
  coefficients and its own kernel: the seasons grow a little over the decades.

The measurements are not part of mercer: the file is ``regression/co2/mauna_loa_weekly_statsmodels.
csv`` in the folder MERCER_DATA, or in ``shared/data`` beside the repository.  Without it the
example says so and takes a series made up to look like it.

It writes ``out/mauna_loa.png``.
"""

# %% Means of months; blanks are missing weeks.
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import Expansion, GaussianProcessRegressor
from mercer.kernels import RBF, Fixed, Matern, Periodic, White

root = Path(__file__).resolve().parent.parent
folder = Path(os.environ.get("MERCER_DATA", root.parent / "shared" / "data"))
file = folder / "regression" / "co2" / "mauna_loa_weekly_statsmodels.csv"
if file.exists():
    table = np.genfromtxt(file, delimiter=",", skip_header=1)
    table = table[np.isfinite(table[:, 1])]
    month = table[:, 0] // 10000 * 12 + table[:, 0] // 100 % 100 - 1
    months, which = np.unique(month, return_inverse=True)
    level = np.bincount(which, table[:, 1]) / np.bincount(which)
    time, name = (months + 0.5) / 12, "CO₂ at Mauna Loa"
else:
    print("mauna_loa_weekly_statsmodels.csv was not found (MERCER_DATA names its folder)")
    time = np.arange(1958.2, 2001.9, 1 / 12)
    t = time - 1958
    season = (2.5 + 0.01 * t) * (np.sin(2 * np.pi * t) + 0.3 * np.sin(4 * np.pi * t + 1))
    level = 315 + 0.7 * t + 0.013 * t**2 + season + 0.3 * np.sin(2 * np.pi * t / 3.7)
    level = level + 0.2 * np.random.default_rng(0).normal(size=len(t))
    name = "A series made up to look like CO₂ at Mauna Loa"

# %% The sentence, with a first guess of every number (years, and parts per million).
rise = 60.0**2 * RBF(60.0)
seasons = 2.0**2 * (RBF(90.0) * Fixed(Periodic(1.0, 1.3)))  # a year is known
irregular = 0.6**2 * Matern(2.0, nu=0.5)
noise = White(0.05)
past = time < 1992
centre = level[past].mean()
model = GaussianProcessRegressor(rise + seasons + irregular + noise, verbose=0)
model.fit(time[past, None], level[past] - centre)
for part, found in zip(("rise", "seasons", "irregular", "noise"), model.kernel_.terms, strict=True):
    print(f"{part:<10} {found}")
print(f"log marginal likelihood {model.log_marginal_likelihood_value_:.1f}")

# %% The forecast, and how good it was.
future = np.arange(1992, 2012, 1 / 24)
mean, std = model.predict(future[:, None], return_std=True)
then = model.predict(time[~past, None], return_std=True)
error = level[~past] - centre - then[0]
print(f"forecast of {np.sum(~past)} months: error {np.sqrt(np.mean(error**2)):.2f} ppm (rms)")
print(f"within two standard deviations: {np.mean(np.abs(error) < 2 * then[1]):.0%}")

# %% The parts: one set of coefficients, four kernels.
inside = np.arange(1958, 1992, 1 / 24)[:, None]
parts = [
    Expansion(part, model.X_train_, model.alpha_)(inside)[:, 0] for part in model.kernel_.terms[:3]
]
print(f"sum of the parts − mean: {np.abs(sum(parts) - model.predict(inside)).max():.1e}")

# %% The picture.
blue, orange = "#0072B2", "#D55E00"
layout = [["whole", "forecast", "forecast"], ["rise", "seasons", "irregular"]]
figure, axes = plt.subplot_mosaic(layout, figsize=(13.0, 8.0), layout="constrained")
low, high = centre + mean - 2 * std, centre + mean + 2 * std
for ax, size in ((axes["whole"], 2), (axes["forecast"], 4)):
    ax.fill_between(future, low, high, color=orange, alpha=0.3, linewidth=0)
    ax.plot(time[past], level[past], ".", color=blue, markersize=size)
    ax.plot(future, centre + mean, color=orange, linewidth=1.2)
    ax.plot(time[~past], level[~past], ".", color="k", markersize=size)
axes["whole"].set(title=name, xlabel="year", ylabel="ppm")
close = axes["forecast"]
close.set(
    title="the forecast, closer", xlabel="year", ylabel="ppm", xlim=(1987, 2012), ylim=(340, 400)
)
close.axvline(1992, color="0.5", linewidth=1, linestyle=":")
names = ("two standard deviations", "measured, learned from", "mean forecast", "measured later")
close.legend([*close.collections, *close.lines[:3]], names, frameon=False, loc="lower right")
titles = ("the rise", "the seasons", "irregularities")
for ax, title, part in zip((axes[key] for key in layout[1]), titles, parts, strict=True):
    ax.plot(inside, part + (centre if title == "the rise" else 0.0), color=blue, linewidth=1)
    ax.set(title=f"part of the mean: {title}", xlabel="year", ylabel="ppm")

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "mauna_loa.png", dpi=150)
print("picture: out/mauna_loa.png")
