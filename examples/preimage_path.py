"""Pre-images of a mean: the steps of the fixed-point iteration and of L-BFGS.

The mean μ of φ(x) over some points is an element of the feature space.  Its pre-image is the point
z of the plane for which φ(z) is closest to μ.  The shading is the distance |φ(z) − μ| for every z
(dark is close).  What to look for:

* A wide kernel has one minimum between the moons, near the ordinary mean of the points.
* A narrow kernel has several minima on the moons.  The result of the iteration depends on the start
  (white dot).  The method "auto" compares several results and returns the best (large cross).
* The steps are long at first and then short, because the fixed-point iteration converges linearly.
  L-BFGS (bottom row) needs fewer steps.

The figure is saved as ``out/preimage_path.png``.
"""

# %% Data, and the starting points of the iterations.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from mercer import Expansion
from mercer.datasets import moons
from mercer.kernels import RBF
from mercer.plotting import preimage_path

X, _ = moons(120, random_state=0)
starts = [[-0.9, -0.5], [2.0, 0.9], [0.4, 1.05], [0.9, -0.6]]

# %% The pre-images by all methods, for two kernels.
for length_scale in (1.0, 0.3):
    mean = Expansion.mean(RBF(length_scale), X)
    print(f"pre-image of the mean of {len(X)} points, {mean.kernel}")
    methods = ("nearest", "convex", "distance", "conformal", "learned", "fixed_point", "auto")
    for method in methods:
        preimage = mean.preimage(method)
        (a, b), residual = preimage.points[0], preimage.residuals[0]
        print(f"  {method:<12} z = ({a:6.3f}, {b:6.3f})   |φ(z) − μ|² = {residual:.5f}")

# %% Plot the paths.
figure, axes = plt.subplots(2, 2, figsize=(13.0, 7.8), layout="constrained")
for column, length_scale in zip(axes.T, (1.0, 0.3), strict=True):
    mean = Expansion.mean(RBF(length_scale), X)
    best = mean.preimage().points[0]
    for ax, method in zip(column, ("fixed_point", "gradient"), strict=True):
        preimage_path(mean, starts, ax=ax, method=method).get_legend().remove()
        cross_style = {"color": "black", "markersize": 14, "markeredgewidth": 3, "zorder": 6}
        ax.plot(*best, "x", label='best result (method "auto")', **cross_style)
        ax.scatter([], [], s=14, color="0.1", label="data points")
        name = "fixed point" if method == "fixed_point" else "gradient (L-BFGS)"
        ax.set_title(f"length scale {length_scale:g}, {name}", fontsize=13)
        ax.set(xlabel="z₁", ylabel="z₂")
    figure.colorbar(column[0].collections[0], ax=list(column), label="|φ(z) − μ|", format="%.2f")
handles, names = axes[0, 0].get_legend_handles_labels()
for handle in handles[:2]:
    handle.set_markeredgecolor("black")
figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
figure.suptitle("|φ(z) − μ| and the steps to the pre-image of a mean", fontsize=16)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "preimage_path.png", dpi=150)
print("figure: out/preimage_path.png")
