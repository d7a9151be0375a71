"""The margin of an SVM for different C, and the same SVM compressed to a few points.

An SVM minimises |f|²/2 + C Σ max(0, 1 − yᵢ f(xᵢ)).  Its margin is the strip −1 < f < 1; points
outside of it have no influence.  What to look for:

* Small C: a wide margin and a simple boundary.  Many points lie inside the margin, and their
  coefficients are at the bound C.
* Medium C: the boundary follows the moons.
* Large C: hardly any error is accepted, so the boundary bends around single points.
* The SVM with medium C, compressed: twelve optimised points, which are not data points, replace all
  support vectors, and the contour lines are nearly the same.

The figure is saved as ``out/svm_margin.png``.
"""

# %% Data: two noisy moons, and new points for testing.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, compress
from mercer.datasets import moons
from mercer.plotting import contours, margin

X, y = moons(200, noise=0.25, random_state=0)
X_test, y_test = moons(10_000, noise=0.25, random_state=1)

# %% Fit three values of C; each fit starts from the solution of the previous one.
models = SVC(gamma=1.0).path(X, y, [0.03, 1.0, 1000.0])
print("       C   free  at bound   margin    training error   test error   relative gap")
for model in models:
    certificate = model.report_.certificate
    width = 2.0 / model.expansion_.norm()[0]
    train_error, test_error = 1.0 - model.score(X, y), 1.0 - model.score(X_test, y_test)
    print(
        f"{model.C:8g} {certificate['n_free']:6d} {certificate['n_bound']:9d} {width:8.3f} "
        f"{train_error:17.1%} {test_error:12.1%}   {certificate['gap'] / certificate['primal']:.0e}"
    )

# %% The same function with twelve points.
middle = models[1]
reduced = compress(middle, 12)
before, after = (model.decision_function(X_test) for model in (middle, reduced))
print(reduced.reduction_)
print(f"new points with another label: {np.mean(np.sign(before) != np.sign(after)):.2%}")

# %% Plot.
figure, panels = plt.subplots(2, 2, figsize=(11.5, 9.4), layout="constrained")
for ax, model in zip(panels.flat, models, strict=False):
    margin(model, X, y, ax=ax)
    ax.set_title(f"C = {model.C:g}")
panel = panels[1, 1]
contours(reduced.decision_function, X, ax=panel, n_levels=5)
panel.collections[-1].remove()  # hide the data; the points of the expansion are drawn instead
panel.scatter(
    *reduced.expansion_.points.T, marker="*", s=150, color="black", label="points of the expansion"
)
panel.set_title(f"C = 1, compressed from {len(middle.support_)} to 12 points")
panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
for ax in panels.flat:
    ax.set(xlabel="x₁", ylabel="x₂")
    ax.get_legend().set_bbox_to_anchor((0.5, -0.14))
figure.suptitle("Support vector machines on two moons", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svm_margin.png", dpi=110)
print("figure: out/svm_margin.png")
