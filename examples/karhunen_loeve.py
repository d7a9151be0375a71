"""Karhunen–Loève: a draw of a Gaussian process converges, its norm in the RKHS does not.

Brownian motion has the kernel k(x, z) = min(x, z) on [0, 1], with eigenvalues λᵢ = 1/((i − ½)π)²
and eigenfunctions eᵢ(x) = √2 sin((i − ½)πx).  A draw is f = Σ zᵢ eᵢ with zᵢ ~ N(0, λᵢ).  What to
look for:

* Left: the partial sums f_M of one draw look more and more alike.
* Middle: the mean squared error E|f(x) − f_M(x)|² falls to 0 like 1/M.
* Right: the squared norm |f_M|² = Σ zᵢ²/λᵢ grows like M, so the limit is not in the RKHS.  For the
  cubic kernel (xz + 1)³, which has four features, the norm stops growing after four terms: draws
  are in the RKHS, because it is finite-dimensional.

The figure is saved as ``out/karhunen_loeve.png``.
"""

# %% Brownian motion from its eigenfunctions.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Polynomial

rng = np.random.default_rng(2)
n_terms, n_draws = 4000, 12
index = np.arange(1, n_terms + 1)
eigenvalues = 1 / ((index - 0.5) * np.pi) ** 2
z = np.sqrt(eigenvalues) * rng.standard_normal((n_draws, n_terms))
x = np.linspace(0, 1, 400)
functions = np.sqrt(2) * np.sin((index - 0.5) * np.pi * x[:, None])
partial_norms = np.cumsum(z**2 / eigenvalues, axis=1)

# %% The error of the sum of M terms, averaged over x: the sum of the other eigenvalues.  All of
# them together are the integral of k(x, x) = x, which is ½.
errors = 0.5 - eigenvalues.cumsum()
for m in (1, 10, 100, 1000):
    print(f"M = {m:4d}: mean squared error {errors[m - 1]:.5f}, ", end="")
    print(f"mean |f_M|² of {n_draws} draws {partial_norms[:, m - 1].mean():.1f}")

# %% A finite-dimensional RKHS: at most four eigenvalues are positive.
points = np.linspace(-1, 1, 200)[:, None]
values, vectors = np.linalg.eigh(Polynomial(degree=3, coef0=1.0)(points))
positive = values > 1e-10 * values[-1]
coefficients = rng.standard_normal((n_draws, int(positive.sum())))  # zᵢ / √λᵢ
cubic_norms = np.cumsum(coefficients**2, axis=1)
print(f"cubic kernel: {positive.sum()} positive eigenvalues, ", end="")
print(f"mean |f|² {cubic_norms[:, -1].mean():.1f}")

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(12.8, 4.2), layout="constrained")
for m, colour in ((3, "#CC79A7"), (20, "#009E73"), (n_terms, "#0072B2")):
    label = f"M = {m}, |f|² = {partial_norms[0, m - 1]:.1f}"
    axes[0].plot(x, functions[:, :m] @ z[0, :m], color=colour, label=label)
axes[0].set(title="Partial sums of one draw", xlabel="x", ylabel="f(x)")
axes[0].legend(frameon=False, fontsize=9)
axes[1].loglog(index, errors, color="#0072B2", label="Σ λᵢ over i > M")
axes[1].loglog(index, 1 / (np.pi**2 * index), "--", color="black", label="1 / (π² M)")
axes[1].set(title="Mean squared error of f_M", xlabel="number of terms M")
axes[1].legend(frameon=False)
axes[2].loglog(index, partial_norms.T, color="#0072B2", alpha=0.4, linewidth=1)
axes[2].loglog(index, index, "--", color="black", label="M")
axes[2].plot([], [], color="#0072B2", label="draws of Brownian motion")
n_features = cubic_norms.shape[1]
steps = np.r_[np.arange(1, n_features + 1), n_terms]
levels = np.c_[cubic_norms, cubic_norms[:, -1]]
axes[2].loglog(steps, levels.T, color="#D55E00", alpha=0.4, linewidth=1)
axes[2].plot([], [], color="#D55E00", label="draws, cubic kernel")
axes[2].set(title="Squared norm in the RKHS", xlabel="number of terms M")
axes[2].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "karhunen_loeve.png", dpi=110)
print("figure: out/karhunen_loeve.png")
