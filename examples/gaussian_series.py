"""The infinitely many features of the Gaussian kernel on the line.

exp(-(x - z)²/2) = Σₘ φₘ(x) φₘ(z) with φₘ(x) = exp(-x²/2) xᵐ / √m!.  What to look for:

* Left: each feature has its maximum at |x| = √m, so that later features describe points that are
  farther from 0.
* Middle: the sum of the first M terms of k(x, z) at z = 2.  Few terms are wrong around z; all of
  them agree near 0.
* Right: the largest error for points in [-3, 3].  It hardly falls until M exceeds max |x z| = 9,
  and then faster than any power of M.  The bound is the tail of a Poisson distribution.

The figure is saved as ``out/gaussian_series.png``.
"""

# %% The kernel and its series with M terms.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import RBF, Features, GaussianSeries

x = np.linspace(-3, 3, 301)[:, None]
exact = RBF(1.0)(x)
terms = np.arange(1, 41)
series = [GaussianSeries(length_scale=1.0, n_terms=int(m)) for m in terms]
errors = np.array([np.abs(Features(basis)(x) - exact).max() for basis in series])
bounds = np.array([basis.error_bound(x) for basis in series])
for m in (5, 10, 20, 40):
    print(f"{m:2d} terms: largest error {errors[m - 1]:.1e}, bound {bounds[m - 1]:.1e}")
if not (errors <= bounds + 1e-14).all():
    raise SystemExit("the bound does not hold")

# %% Plot the features, partial sums and errors.
figure, axes = plt.subplots(1, 3, figsize=(12.8, 4.2), layout="constrained")
features = series[-1](x)
for m, shade in zip((0, 1, 2, 4, 8), plt.colormaps["viridis"](np.linspace(0, 0.9, 5)), strict=True):
    axes[0].plot(x, features[:, m], color=shade, label=f"m = {m}")
axes[0].set(title="Features φₘ(x)", xlabel="x", ylabel="φₘ(x)")
axes[0].legend(frameon=False, loc="lower right")
for m, colour in ((3, "#CC79A7"), (6, "#E69F00"), (12, "#009E73")):
    axes[1].plot(x, Features(series[m - 1])(x, [[2.0]]), color=colour, label=f"{m} terms")
axes[1].plot(x, RBF(1.0)(x, [[2.0]]), "--", color="black", label="k(x, 2)")
axes[1].set(title="Partial sums of k(x, z) at z = 2", xlabel="x", ylabel="sum of M terms")
axes[1].legend(frameon=False)
axes[2].semilogy(terms, errors, "o", color="#0072B2", markersize=4, label="largest error")
axes[2].semilogy(terms, bounds, color="#D55E00", label="bound")
axes[2].set(title="Error on [−3, 3]", xlabel="number of terms M", ylabel="largest error")
axes[2].set_ylim(1e-16, 3)
axes[2].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "gaussian_series.png", dpi=110)
print("figure: out/gaussian_series.png")
