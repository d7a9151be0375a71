"""Samples of a Gaussian process are not in the RKHS of its kernel.

Evaluate a sample f at M points.  The function of smallest norm in the RKHS through these M values
is the expansion with coefficients K⁻¹f.  Its squared norm is fᵀK⁻¹f.  Because f ~ N(0, K), this is
a sum of M squares of independent standard normal variables:

    E fᵀK⁻¹f = M.

The norm grows without bound, although the interpolants converge to the sample.  What to look for:

* The squared norms of all samples follow the line M.  This holds for every kernel whose matrix K is
  invertible for any number of different points, such as the Matérn and RBF kernels.  (For RBF,
  rounding errors hide the growth, because most eigenvalues of K are below them.)
* It does not hold for kernels with finitely many features.  For Polynomial(3), the expectation
  grows only until M reaches the number of features, which is 4 for points on a line.
* For a function in the RKHS, evaluated at the same points, the norms converge to its own norm.
* The interpolants of one sample soon look the same: the norm grows because of fine details.

The figure is saved as ``out/gp_draw_norm.png``.
"""

# %% Samples at 300 points, ordered so that the first M points cover the interval for every M.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import Expansion, GaussianProcessRegressor
from mercer.kernels import Matern

kernel = Matern(length_scale=0.3, nu=1.5)
n = 300
X = np.mod(0.5 + np.arange(n) * (np.sqrt(5) - 1) / 2, 1.0)[:, None]  # golden ratio sequence
samples = GaussianProcessRegressor(kernel).sample_y(X, 12, random_state=0)
member = Expansion(kernel, np.array([[0.2], [0.45], [0.8]]), np.array([1.5, -2.0, 1.0]))
values = np.column_stack([samples, member(X)])

# %% The function of smallest norm through the first M values, for all samples at once.
sizes = np.unique(np.geomspace(2, n, 30).astype(int))
squared_norms = []
for M in sizes:
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:M], values[:M])
    squared_norms.append(model.expansion_.norm() ** 2)
squared_norms = np.array(squared_norms)
for M in (10, 100, n):
    i = int(np.searchsorted(sizes, M))
    mean = squared_norms[i, :-1].mean()
    print(f"M = {sizes[i]:3d}: |f|² of samples {mean:6.1f} (mean), of the RKHS function ", end="")
    print(f"{squared_norms[i, -1]:.3f}")
print(f"exact |f|² of the RKHS function: {member.norm()[0] ** 2:.3f}")

# %% Plot the norms, and interpolants of one sample.
figure, axes = plt.subplots(1, 2, figsize=(12.0, 4.8), layout="constrained")
axes[0].loglog(sizes, squared_norms[:, :-1], color="#0072B2", alpha=0.45, linewidth=1)
axes[0].loglog(sizes, sizes, "--", color="k", label="M")
axes[0].loglog(
    sizes, squared_norms[:, -1], color="#D55E00", linewidth=2, label="a function of the RKHS"
)
axes[0].plot([], [], color="#0072B2", label="samples of the process")
axes[0].set(xlabel="number of points M", ylabel="squared norm of the interpolant")
axes[0].set_title("Samples have no finite norm: |f|² grows like M")
axes[0].legend(frameon=False)
grid = np.linspace(0, 1, 400)[:, None]
for M, colour in ((8, "#CC79A7"), (20, "#009E73"), (n, "#0072B2")):
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:M], samples[:M, 0])
    norm = model.expansion_.norm()[0]
    axes[1].plot(grid, model.predict(grid), color=colour, label=f"M = {M}, |f|² = {norm**2:.0f}")
axes[1].plot(X[:8], samples[:8, 0], "o", color="#CC79A7", markersize=5, label="the first 8 values")
axes[1].set(
    xlabel="x", ylabel="f(x)", title="Functions of smallest norm through M values of one sample"
)
axes[1].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "gp_draw_norm.png", dpi=150)
print("figure: out/gp_draw_norm.png")
