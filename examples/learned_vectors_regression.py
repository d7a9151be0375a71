"""Learned vectors in regression: where does a small model put its points?

`SparseKernelRegressor` learns the m points of its expansion together with their weights.  A Nyström
approximation uses m landmarks and learns only the weights.  The function oscillates with a
frequency that increases from left to right.  What to look for:

* Left: 12 vectors.  The landmarks, which are cluster centres, are spread like the data.  Several
  learned vectors (ticks) form a tight group near x = 0.75.  The differences of their kernels
  represent the fast oscillations at the right.
* Right: with the same number of vectors, learned vectors have a much smaller error, until both
  reach the error of the full model with 800 points.

The figure is saved as ``out/learned_vectors_regression.png``.
"""

# %% Data: a chirp with noise.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, SparseKernelRegressor
from mercer.kernels import RBF

rng = np.random.default_rng(0)
x = rng.uniform(0, 1, 800)
y = np.sin(18 * x**2.5) + 0.1 * rng.standard_normal(800)
X, grid = x[:, None], np.linspace(0, 1, 500)
truth = np.sin(18 * grid**2.5)
kernel, alpha = RBF(0.07), 1e-5


# %% Both models with m vectors, and the full model.
def error(model):
    """Return the root mean squared error against the true function."""
    return np.sqrt(np.mean((model.predict(grid[:, None]) - truth) ** 2))


sizes = (4, 6, 8, 12, 16, 24)
models = {"Nyström, k-means landmarks": [], "learned vectors": []}
for m in sizes:
    fixed = SparseKernelRegressor(m, kernel=kernel, alpha=alpha, max_iter=0, random_state=0)
    learned = SparseKernelRegressor(m, kernel=kernel, alpha=alpha, random_state=0)
    for fitted, model in zip(models.values(), (fixed, learned), strict=True):
        fitted.append(model.fit(X, y))
errors = {name: [error(model) for model in fitted] for name, fitted in models.items()}
full = error(KernelRidge(alpha * len(X), kernel=kernel, fit_intercept=True).fit(X, y))
print("number of vectors m        ", "".join(f"{m:7d}" for m in sizes))
for name, values in errors.items():
    print(f"{name:27s}", "".join(f"{value:7.3f}" for value in values))
print(f"all {len(X)} points: {full:.3f}")

# %% Plot.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.0, 4.4), width_ratios=[1.6, 1], layout="constrained"
)
left.plot(x, y, ".", color="0.8", markersize=3, label="data")
styles = (("#D55E00", "--", -1.55), ("#0072B2", "-", -1.8))
for (name, fitted), (colour, dash, height) in zip(models.items(), styles, strict=True):
    model = fitted[sizes.index(12)]
    left.plot(grid, model.predict(grid[:, None]), dash, color=colour, linewidth=1.8, label=name)
    vectors = model.vectors_[:, 0]
    left.plot(vectors, np.full(len(vectors), height), "|", color=colour, ms=12, mew=2)
    right.loglog(sizes, errors[name], f"o{dash}", color=colour, label=name)
left.set(title="12 vectors; ticks are their positions", xlabel="x", ylabel="y", ylim=(-2.0, 2.1))
left.legend(frameon=False, ncols=3, loc="upper left", markerscale=2)
right.axhline(full, color="black", linestyle=":", label="all 800 points")
right.set_xticks(sizes, [str(m) for m in sizes])
right.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
right.minorticks_off()
right.set_ylim(0.008, 0.7)
right.set(title="Error against the true function", xlabel="number of vectors m", ylabel="error")
right.legend(frameon=False, loc="lower left")
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "learned_vectors_regression.png", dpi=120)
print("figure: out/learned_vectors_regression.png")
