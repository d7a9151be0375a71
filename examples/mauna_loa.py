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
future = np.arange(1990, 2012, 1 / 24)
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
figure, axes = plt.subplots(2, 2, figsize=(12.0, 7.6), layout="constrained")
axes[0, 0].plot(time[past], level[past], color="#0072B2", linewidth=0.9, label="learned from")
axes[0, 0].plot(time[~past], level[~past], color="k", linewidth=0.9, label="came later")
low, high = centre + mean - 2 * std, centre + mean + 2 * std
axes[0, 0].fill_between(
    future, low, high, color="#D55E00", alpha=0.35, linewidth=0, label="forecast ± 2 s.d."
)
axes[0, 0].set(title=name, ylabel="ppm")
axes[0, 0].legend(frameon=False, loc="upper left")
labels = ("the rise", "the seasons", "irregularities")
places = (axes[0, 1], axes[1, 0], axes[1, 1])
for ax, label, part in zip(places, labels, parts, strict=True):
    ax.plot(inside, part + (centre if label == "the rise" else 0.0), color="#0072B2", linewidth=1)
    ax.set(title=label, ylabel="ppm")

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "mauna_loa.png", dpi=150)
print("picture: out/mauna_loa.png")
