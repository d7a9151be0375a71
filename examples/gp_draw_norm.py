"""A draw of a Gaussian process is not in the space of its kernel.

Read a draw f off at M points.  The smallest function of the RKHS through these M values is the
expansion with coefficients K⁻¹f, and its squared norm fᵀK⁻¹f is, because f ~ N(0, K), a sum of M
squares of independent standard normal numbers:

    E |f|² = M.

It grows for ever, although the draws, and the interpolants, converge.  One should see:

* the squared norms of all draws along the line M, whatever the kernel;
* a function of the RKHS, read off at the same points: its norm is reached and stays;
* interpolants of one draw, which soon look all the same: what the norm counts is in the detail.

It writes ``out/gp_draw_norm.png``.
"""

# %% Draws at 300 points, in an order in which any first M of them are spread out.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import Expansion, GaussianProcessRegressor
from mercer.kernels import Matern

kernel = Matern(length_scale=0.3, nu=1.5)
n = 300
X = np.mod(0.5 + np.arange(n) * (np.sqrt(5) - 1) / 2, 1.0)[:, None]  # the golden ratio spreads
draws = GaussianProcessRegressor(kernel).sample_y(X, 12, random_state=0)
member = Expansion(kernel, np.array([[0.2], [0.45], [0.8]]), np.array([1.5, -2.0, 1.0]))
values = np.column_stack([draws, member(X)])

# %% The smallest function through the first M values, for all of them at once.
sizes = np.unique(np.geomspace(2, n, 30).astype(int))
squares = []
for M in sizes:
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:M], values[:M])
    squares.append(model.expansion_.norm() ** 2)
squares = np.array(squares)
for M in (10, 100, n):
    i = int(np.searchsorted(sizes, M))
    mean = squares[i, :-1].mean()
    print(f"M = {sizes[i]:3d}: mean |f|² = {mean:6.1f}   member {squares[i, -1]:.3f}")
print(f"the member itself: |f|² = {member.norm()[0] ** 2:.3f}")

# %% The picture.
figure, axes = plt.subplots(1, 2, figsize=(12.0, 4.8), layout="constrained")
axes[0].loglog(sizes, squares[:, :-1], color="#0072B2", alpha=0.45, linewidth=1)
axes[0].loglog(sizes, sizes, "--", color="k", label="M")
axes[0].loglog(sizes, squares[:, -1], color="#D55E00", linewidth=2, label="a function of the RKHS")
axes[0].plot([], [], color="#0072B2", label="draws of the process")
axes[0].set(xlabel="points M", ylabel="squared norm of the interpolant")
axes[0].set_title("a draw has no norm: |f|² grows like M")
axes[0].legend(frameon=False)
grid = np.linspace(0, 1, 400)[:, None]
for M, colour in ((8, "#CC79A7"), (20, "#009E73"), (n, "#0072B2")):
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:M], draws[:M, 0])
    norm = model.expansion_.norm()[0]
    axes[1].plot(grid, model.predict(grid), color=colour, label=f"M = {M}, |f|² = {norm**2:.0f}")
axes[1].plot(X[:8], draws[:8, 0], "o", color="#CC79A7", markersize=5, label="the first 8 values")
axes[1].set(xlabel="x", ylabel="f(x)", title="the smallest functions through M values of one draw")
axes[1].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "gp_draw_norm.png", dpi=150)
print("picture: out/gp_draw_norm.png")
