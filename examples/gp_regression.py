"""Gaussian process regression: prior, posterior, derivative and leave-one-out errors.

The kernel c RBF + White has three parameters, which maximise the marginal likelihood.  What to look
for:

* Samples of the prior depend only on the smoothness and the size that the kernel assumes.
* The posterior band is narrow where there are data and wide in the gap.  The samples agree with the
  observations, and the true curve lies inside the band.
* The derivative of the mean is computed exactly, without finite differences.  It is 0 where the
  mean has an extremum.
* Each observation is predicted from all others.  About two thirds of the errors should be within
  one standard deviation.

The figure is saved as ``out/gp_regression.png``.
"""

# %% Data: fifty noisy observations of a curve, none of them between 5 and 7.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import GaussianProcessRegressor
from mercer.kernels import RBF, White


def curve(x):
    return np.sin(1.3 * x) + 0.4 * x - 2.0


rng = np.random.default_rng(0)
x = np.sort(np.concatenate([rng.uniform(0, 5, 34), rng.uniform(7, 10, 16)]))
X, y = x[:, None], curve(x) + 0.25 * rng.normal(size=50)
grid = np.linspace(0, 10, 300)[:, None]

# %% Samples of the prior, and the fit.
model = GaussianProcessRegressor(1.0 * RBF(1.0) + White(1.0))
prior_samples = GaussianProcessRegressor(RBF(1.0)).sample_y(grid, 5, random_state=1)
model.fit(X, y)
print(f"fitted kernel  {model.kernel_}")
print(f"log likelihood {model.log_marginal_likelihood_value_:.2f} after ", end="")
print(f"{model.report_.n_iter} steps")
mean, std = model.predict(grid, return_std=True)
noise = model.kernel_.terms[1].noise
band = np.sqrt(np.maximum(std**2 - noise, 0.0))  # standard deviation of the curve, without noise
coverage = np.mean(np.abs(curve(grid[:, 0]) - mean) <= 2 * band)
print(f"the curve is within two standard deviations on {coverage:.0%} of the grid")

# %% Samples of the posterior.  The variance of White is subtracted, to sample without noise.
noise_free = model.covariance_(grid) - noise * np.eye(len(grid))
posterior_samples = rng.multivariate_normal(mean, noise_free, size=4, method="eigh").T
slope = model.predict_gradient(grid)[:, 0]
means, variances = model.leave_one_out()
errors = (y - means) / np.sqrt(variances)
print(f"leave-one-out: {np.mean(np.abs(errors) < 1):.0%} within one standard deviation")

# %% Plot.
figure, axes = plt.subplots(2, 2, figsize=(11.0, 7.6), layout="constrained")
shading = {"color": "#0072B2", "alpha": 0.15, "linewidth": 0}
axes[0, 0].fill_between(grid[:, 0], -2, 2, **shading, label="± 2 standard deviations")
for sample, dash in zip(prior_samples.T, ("-", "--", "-.", ":", (0, (6, 1))), strict=True):
    axes[0, 0].plot(grid, sample, linestyle=dash, color="0.35", linewidth=1.2, label="five samples")
axes[0, 0].axhline(0.0, color="#0072B2", linewidth=2, label="mean")
axes[0, 0].set(title="Prior", xlabel="x", ylabel="f(x)", ylim=(-4, 4))
handles, names = axes[0, 0].get_legend_handles_labels()
axes[0, 0].legend([handles[i] for i in (0, 6, 1)], [names[i] for i in (0, 6, 1)], frameon=False)
axes[0, 1].fill_between(
    grid[:, 0],
    mean - 2 * band,
    mean + 2 * band,
    color="#0072B2",
    alpha=0.2,
    linewidth=0,
    label="± 2 standard deviations",
)
axes[0, 1].plot(grid, mean, color="#0072B2", linewidth=2, label="mean")
axes[0, 1].plot(grid, posterior_samples[:, 0], color="0.6", linewidth=0.8, label="four samples")
axes[0, 1].plot(grid, posterior_samples[:, 1:], color="0.6", linewidth=0.8)
axes[0, 1].plot(grid, curve(grid), "--", color="k", linewidth=1.2, label="true curve")
axes[0, 1].plot(x, y, "o", color="#D55E00", markersize=4, label="observations")
axes[0, 1].set(title="Posterior", xlabel="x", ylabel="f(x)", ylim=(-4, 4))
axes[0, 1].legend(frameon=False, loc="upper left", ncols=2)
axes[1, 0].axhline(0.0, color="0.8", linewidth=0.8)
axes[1, 0].plot(grid, slope, color="#0072B2", linewidth=2, label="derivative of the mean")
axes[1, 0].plot(
    grid, 1.3 * np.cos(1.3 * grid) + 0.4, "--", color="k", linewidth=1, label="of the true curve"
)
axes[1, 0].set(
    title="Derivative, by predict_gradient", xlabel="x", ylabel="f′(x)", ylim=(-1.2, 2.3)
)
axes[1, 0].legend(frameon=False, loc="upper left", ncols=2)
axes[1, 1].axhspan(-1, 1, **shading, label="one standard deviation")
axes[1, 1].vlines(x, 0, errors, color="0.7", linewidth=1)
axes[1, 1].plot(x, errors, "o", color="#D55E00", markersize=4, label="observations")
axes[1, 1].set(title="Leave-one-out errors", xlabel="x", ylim=(-3, 3.4))
axes[1, 1].set_ylabel("error, in standard deviations")
axes[1, 1].legend(frameon=False, loc="upper right", ncols=2)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "gp_regression.png", dpi=150)
print("figure: out/gp_regression.png")
