"""Carbon dioxide at Mauna Loa: a sum of kernels that describes the data.

    long-term trend  +  slowly changing seasons  +  medium-term irregularities  +  noise

Each part is a kernel, their sum is the model, and its parameters maximise the likelihood (as in
Rasmussen and Williams, 2006, section 5.4.3).  The model is fitted to the years up to 1991 and
predicts the rest.  What to look for:

* The forecast follows the trend and the seasons, with a band that grows.  The growth paused in
  1992, which a smooth trend cannot predict, and many of the later months lie at the edge of the
  band.
* The mean of the sum is the sum of the means of its parts.  Each part is an expansion with the
  *same* coefficients and its own kernel.  The seasonal part grows slightly over the decades.

The measurements are not part of mercer.  The file ``mauna_loa_weekly_statsmodels.csv`` is read from
``regression/co2`` in the folder MERCER_DATA, or in ``shared/data`` next to the repository.  Without
it, the example uses a generated series that looks similar.

The figure is saved as ``out/mauna_loa.png``.
"""

# %% Data: monthly means of weekly measurements, some of which are missing.
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
    months, index = np.unique(month, return_inverse=True)
    level = np.bincount(index, table[:, 1]) / np.bincount(index)
    time, name = (months + 0.5) / 12, "CO₂ at Mauna Loa"
else:
    print("mauna_loa_weekly_statsmodels.csv was not found in MERCER_DATA: using a generated series")
    time = np.arange(1958.2, 2001.9, 1 / 12)
    t = time - 1958
    season = (2.5 + 0.01 * t) * (np.sin(2 * np.pi * t) + 0.3 * np.sin(4 * np.pi * t + 1))
    level = 315 + 0.7 * t + 0.013 * t**2 + season + 0.3 * np.sin(2 * np.pi * t / 3.7)
    level = level + 0.2 * np.random.default_rng(0).normal(size=len(t))
    name = "A generated series similar to CO₂ at Mauna Loa"

# %% The kernel, with initial values of all parameters (in years and parts per million).
trend = 60.0**2 * RBF(60.0)
seasons = 2.0**2 * (RBF(90.0) * Fixed(Periodic(1.0, 1.3)))  # the period of one year is fixed
irregular = 0.6**2 * Matern(2.0, nu=0.5)
noise = White(0.05)
past = time < 1992
centre = level[past].mean()
model = GaussianProcessRegressor(trend + seasons + irregular + noise, verbose=0)
model.fit(time[past, None], level[past] - centre)
for part, term in zip(("trend", "seasons", "irregular", "noise"), model.kernel_.terms, strict=True):
    print(f"{part:<10} {term}")
print(f"log marginal likelihood {model.log_marginal_likelihood_value_:.1f}")

# %% The forecast and its error.
future = np.arange(1992, 2012, 1 / 24)
mean, std = model.predict(future[:, None], return_std=True)
test_prediction = model.predict(time[~past, None], return_std=True)
error = level[~past] - centre - test_prediction[0]
print(f"forecast of {np.sum(~past)} months: RMS error {np.sqrt(np.mean(error**2)):.2f} ppm")
print(f"within two standard deviations: {np.mean(np.abs(error) < 2 * test_prediction[1]):.0%}")

# %% The parts of the mean: one set of coefficients, three kernels (the noise has no mean).
inside = np.arange(1958, 1992, 1 / 24)[:, None]
parts = [
    Expansion(part, model.X_train_, model.alpha_)(inside)[:, 0] for part in model.kernel_.terms[:3]
]
print(f"largest |sum of the parts − mean|: {np.abs(sum(parts) - model.predict(inside)).max():.1e}")

# %% Plot.
blue, orange = "#0072B2", "#D55E00"
layout = [["whole", "forecast", "forecast"], ["trend", "seasons", "irregular"]]
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
    title="Forecast, enlarged", xlabel="year", ylabel="ppm", xlim=(1987, 2012), ylim=(340, 400)
)
close.axvline(1992, color="0.5", linewidth=1, linestyle=":")
names = ("± 2 standard deviations", "training data", "forecast (mean)", "test data")
close.legend([*close.collections, *close.lines[:3]], names, frameon=False, loc="lower right")
titles = ("trend", "seasons", "irregularities")
for ax, title, part in zip((axes[key] for key in layout[1]), titles, parts, strict=True):
    ax.plot(inside, part + (centre if title == "trend" else 0.0), color=blue, linewidth=1)
    ax.set(title=f"Part of the mean: {title}", xlabel="year", ylabel="ppm")

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "mauna_loa.png", dpi=150)
print("figure: out/mauna_loa.png")
