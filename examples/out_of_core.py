"""Fit a model to a file that is read in blocks.

`open_blocks` opens files as blocks of rows, which estimators accept in place of arrays.  A model
with landmarks passes over the blocks and stores only sums, so that the memory it needs hardly
depends on the number of rows.  Here fits to files are compared with fits to arrays, with up to
100 000 rows.  What to look for:

* Left: both fits give the same function, up to rounding.
* Right: the peak memory of the fit, as measured by tracemalloc.  In memory it grows with the number
  of rows; in blocks it stays nearly the same.

The figure is saved as ``out/out_of_core.png``.
"""

# %% Data: 100 000 noisy values of a function of two variables.
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, open_blocks
from mercer.kernels import RBF

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(100_000, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.3 * rng.standard_normal(len(X))
landmarks = rng.uniform(-3, 3, size=(100, 2))
folder = tempfile.TemporaryDirectory()
sizes = (12_500, 25_000, 50_000, 100_000)


# %% The same model, fitted to arrays and to files.
def fit(X, y):
    """Return the fitted model and the peak of the allocated memory in MiB."""
    model = KernelRidge(1e-3, kernel=RBF(1.0), solver="nystroem", landmarks=landmarks)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return model, peak


fit(X[:1000], y[:1000])  # compile first, which also allocates memory
peaks = {"arrays in memory": [], "blocks of 10 000 rows": []}
for n in sizes:
    files = [Path(folder.name) / f"{name}{n}.npy" for name in "Xy"]
    for file, values in zip(files, (X[:n], y[:n]), strict=True):
        np.save(file, values)
    rows, targets = (open_blocks(file, rows=10_000) for file in files)
    in_memory, peak_memory = fit(X[:n], y[:n])
    in_blocks, peak_blocks = fit(rows, targets)
    for values, peak in zip(peaks.values(), (peak_memory, peak_blocks), strict=True):
        values.append(peak)
    difference = np.abs(in_memory.predict(X[:2000]) - in_blocks.predict(X[:2000])).max()
    print(f"{n:7d} rows: peak {peak_memory:5.1f} MiB in memory, {peak_blocks:5.1f} MiB in blocks")
print(f"largest difference of the predictions for {n} rows: {difference:.0e}")
print(rows)

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.0), layout="constrained")
side = np.linspace(-3, 3, 100)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
for ax, title, model in zip(axes, peaks, (in_memory, in_blocks), strict=False):
    values = model.predict(grid).reshape(100, 100)
    shades = ax.contourf(side, side, values, np.linspace(-1.2, 1.2, 13), cmap="RdBu_r")
    ax.set(title=f"Fit to {title}", xlabel="x₁", ylabel="x₂", aspect="equal")
figure.colorbar(shades, ax=axes[:2], label="prediction", shrink=0.8)
styles = zip(peaks.items(), ("#D55E00", "#0072B2"), ("^--", "o-"), strict=True)
for (name, values), colour, mark in styles:
    axes[2].plot(np.array(sizes) / 1000, values, mark, color=colour, label=name)
axes[2].set(title="Peak memory of a fit", xlabel="rows (thousands)", ylabel="MiB")
axes[2].set_ylim(0, 1.25 * max(map(max, peaks.values())))
axes[2].legend(frameon=False, loc="upper left")
axes[2].spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "out_of_core.png", dpi=120)
folder.cleanup()
print("figure: out/out_of_core.png")
