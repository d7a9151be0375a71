"""One-class SVM: which region contains most of the points?

A one-class SVM is fitted to normal points only, and marks new points outside of its region as
outliers.  The parameter nu is an upper bound on the fraction of training points outside, and a
lower bound on the fraction of support vectors.  What to look for:

* Left: the regions of three values of nu around two moons.  A larger nu gives a smaller region.
* Right: both fractions as a function of nu.  The fraction outside stays below the diagonal, the
  fraction of support vectors above it.

The printed table shows the trade-off on new data: a larger nu finds more of the outliers, and
rejects more of the normal points.

The figure is saved as ``out/one_class.png``.
"""

# %% Data: normal points on two moons, and outliers that are uniform in a rectangle.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import OneClassSVM
from mercer.datasets import moons

X, _ = moons(400, noise=0.08, random_state=0)
normal, _ = moons(2000, noise=0.08, random_state=1)
low, high = np.array([-2.0, -1.5]), np.array([3.0, 2.0])
uniform = np.random.default_rng(0).uniform(low, high, size=(2000, 2))

# %% The fractions that nu bounds, and the errors on new points.
nus = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
models = [OneClassSVM(nu=nu, gamma=3.0, tol=1e-5).fit(X) for nu in nus]
# A point on the boundary has f = rho up to the tolerance of the solver.
outside = np.array([np.mean(model.decision_function(X) < -1e-3) for model in models])
support = np.array([len(model.support_) / len(X) for model in models])
print("   nu  outside  support vectors  normal points rejected  uniform points accepted")
for nu, a, b, model in zip(nus, outside, support, models, strict=True):
    rejected, accepted = np.mean(model.predict(normal) < 0), np.mean(model.predict(uniform) > 0)
    print(f"{nu:5.2f} {a:8.1%} {b:16.1%} {rejected:23.1%} {accepted:24.1%}")
if not (np.all(outside <= nus) and np.all(support >= nus)):
    raise SystemExit("a bound does not hold")

# %% Plot.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11.5, 4.4), width_ratios=[1.35, 1], layout="constrained"
)
a, b = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 140))
grid = np.c_[a.ravel(), b.ravel()]
for k, colour in ((1, "#56B4E9"), (3, "#0072B2"), (6, "#000000")):
    values = models[k].decision_function(grid).reshape(a.shape)
    left.contour(a, b, values, [0.0], colors=colour, linewidths=2)
    left.plot([], [], color=colour, linewidth=2, label=f"nu = {nus[k]:g}")
left.plot(*X.T, ".", color="0.45", markersize=4, label="training points")
left.set(title="Boundary of the region", xlabel="x₁", ylabel="x₂", aspect="equal")
left.legend(frameon=False, loc="upper right")
right.plot(nus, nus, color="0.6", linewidth=1, label="nu")
right.plot(nus, support, "^--", color="#D55E00", label="support vectors")
right.plot(nus, outside, "o-", color="#0072B2", label="outside of the region")
right.set(title="What nu bounds", xlabel="nu", ylabel="fraction of the training points")
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "one_class.png", dpi=130)
print("figure: out/one_class.png")
