"""The way back from feature space: the average of two moons, and the steps of the fixed point.

The mean of φ(x) over some points is an element of the feature space; which point of the plane has a
φ closest to it?  In shades: the distance |φ(z) − μ| for every z, dark is near.  One should see:

* a wide kernel has one minimum, between the moons: the mean of the points as one knows it;
* a narrow kernel has several, on the moons: where the iteration ends depends on where it begins
  (a white dot), and "auto", which compares, tells the best (the large cross);
* the steps are long at first and then short: the fixed point converges linearly.  L-BFGS, below,
  needs fewer.

It writes ``out/preimage_path.png``.
"""

# %% The points, and their means under two kernels.
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

# %% Every method, in numbers.
for width in (1.0, 0.3):
    mean = Expansion.mean(RBF(width), X)
    print(f"the mean of {len(X)} points, {mean.kernel}")
    methods = ("nearest", "convex", "distance", "conformal", "learned", "fixed_point", "auto")
    for method in methods:
        found = mean.preimage(method)
        (a, b), left = found.points[0], found.residuals[0]
        print(f"  {method:<12} z = ({a:6.3f}, {b:6.3f})   |φ(z) − μ|² = {left:.5f}")

# %% The picture.
figure, axes = plt.subplots(2, 2, figsize=(13.0, 7.8), layout="constrained")
for column, width in zip(axes.T, (1.0, 0.3), strict=True):
    mean = Expansion.mean(RBF(width), X)
    best = mean.preimage().points[0]
    for ax, method in zip(column, ("fixed_point", "gradient"), strict=True):
        preimage_path(mean, starts, ax=ax, method=method).get_legend().remove()
        cross = {"color": "black", "markersize": 14, "markeredgewidth": 3, "zorder": 6}
        ax.plot(*best, "x", label='the best, by "auto"', **cross)
        ax.scatter([], [], s=14, color="0.1", label="the points")
        name = "fixed point" if method == "fixed_point" else "gradient (L-BFGS)"
        ax.set_title(f"width {width:g}, {name}", fontsize=13)
        ax.set(xlabel="z₁", ylabel="z₂")
    figure.colorbar(column[0].collections[0], ax=list(column), label="|φ(z) − μ|", format="%.2f")
handles, names = axes[0, 0].get_legend_handles_labels()
for handle in handles[:2]:
    handle.set_markeredgecolor("black")
figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
figure.suptitle("|φ(z) − μ| and the way to the pre-image of a mean", fontsize=16)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "preimage_path.png", dpi=150)
print("picture: out/preimage_path.png")
