"""Support vector regression: the tube, and robustness against outliers.

SVR ignores errors smaller than epsilon, and counts larger ones linearly.  Kernel ridge regression
counts squared errors.  What to look for:

* Left: one tenth of the values are shifted upwards.  The squared loss pulls the ridge fit towards
  them; the linear loss of SVR limits the influence of each point.
* Only the points on or outside of the tube f ± epsilon are support vectors.
* Right: a wider tube needs fewer support vectors.  The error against the true curve hardly changes
  until epsilon exceeds the noise (standard deviation 0.15).

The figure is saved as ``out/svr_tube.png``.
"""

# %% Data: a noisy curve, with 12 of 120 values shifted by 1.5.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR, KernelRidge
from mercer.kernels import RBF

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 10, 120))
y = np.sin(x) + 0.15 * rng.standard_normal(120)
y[rng.choice(120, 12, replace=False)] += 1.5
X, grid = x[:, None], np.linspace(0, 10, 400)
truth = np.sin(grid)


# %% Two losses with the same kernel.
def error(model):
    """Return the root mean squared error against the true curve."""
    return np.sqrt(np.mean((model.predict(grid[:, None]) - truth) ** 2))


kernel, epsilon = RBF(1.2), 0.2
svr = SVR(C=3.0, epsilon=epsilon, kernel=kernel).fit(X, y)
ridge = KernelRidge(alpha=0.3, kernel=kernel, fit_intercept=True).fit(X, y)
print(f"SVR                      error {error(svr):.3f}, {len(svr.support_)} support vectors")
print(f"kernel ridge regression  error {error(ridge):.3f}, all 120 points")

# %% The width of the tube.
widths = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8])
models = [SVR(C=3.0, epsilon=width, kernel=kernel).fit(X, y) for width in widths]
counts, errors = [len(model.support_) for model in models], [error(model) for model in models]
for width, count, rmse in zip(widths, counts, errors, strict=True):
    print(f"epsilon {width:4.2f}: {count:3d} support vectors, error {rmse:.3f}")

# %% Plot.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.0, 4.4), width_ratios=[1.6, 1], layout="constrained"
)
f = svr.predict(grid[:, None])
left.fill_between(grid, f - epsilon, f + epsilon, color="#0072B2", alpha=0.15, label="tube")
left.plot(grid, truth, "--", color="black", linewidth=1, label="true curve")
left.plot(grid, f, color="#0072B2", linewidth=2, label="SVR")
left.plot(grid, ridge.predict(grid[:, None]), color="#D55E00", linewidth=2, label="kernel ridge")
inside = np.setdiff1d(np.arange(120), svr.support_)
left.plot(x[inside], y[inside], ".", color="0.6", markersize=5, label="points in the tube")
left.plot(x[svr.support_], y[svr.support_], "o", color="black", markersize=4, mfc="none")
left.plot([], [], "o", color="black", markersize=4, mfc="none", label="support vectors")
left.set(title=f"SVR with epsilon = {epsilon:g}", xlabel="x", ylabel="y", ylim=(-1.6, 4.0))
left.legend(frameon=False, ncols=3, loc="upper center")
right.plot(widths, counts, "o-", color="#0072B2")
right.set(title="Width of the tube", xlabel="epsilon", ylim=(0, 128))
right.set_ylabel("support vectors", color="#0072B2")
twin = right.twinx()
twin.plot(widths, errors, "^--", color="#009E73")
twin.set_ylabel("error against the true curve", color="#009E73")
twin.set_ylim(0, 1.1 * max(errors))

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svr_tube.png", dpi=130)
print("figure: out/svr_tube.png")
