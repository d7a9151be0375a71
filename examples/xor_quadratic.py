"""XOR: an SVM with a quadratic kernel, and the same SVM with explicit features.

No line separates the four points of XOR.  The kernel (<x, z> + 1)² is the inner product of the
features (x₁², √2 x₁x₂, x₂², √2 x₁, √2 x₂, 1).  An SVM with the kernel never computes them; a linear
SVM on the features does.  Both are the same model.  What to look for:

* Both have dual coefficients v = ±1/8 for the four points, f(x) = x₁x₂, and intercept 0.
* In the primal, w = (0, 1/√2, 0, 0, 0, 0), so |f|² = 1/2 and the margin is 1/|f| = √2.
* Left: in the plane of the points, f = 0 on the two axes, and f = ±1 on hyperbolas.
* Right: two of the features, also for random points around the four.  Here a straight line, the
  projection of a hyperplane in feature space, separates the classes.

The figure is saved as ``out/xor_quadratic.png``.
"""

# %% Data and models.  C is large, so that no point may lie inside the margin.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC
from mercer.kernels import Features, Polynomial, QuadraticMap
from mercer.plotting import margin

X = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
y = np.array(["differ", "same"])[(X[:, 0] == X[:, 1]).astype(int)]
phi = QuadraticMap(coef0=1.0)

by_kernel = SVC(C=100.0, kernel=Polynomial(degree=2, coef0=1.0)).fit(X, y)
by_features = SVC(C=100.0, kernel=Features(phi)).fit(X, y)
linear = SVC(C=100.0, kernel="linear").fit(phi(X), y)


# %% Compare the coefficients and the decision functions.
def as_text(values):
    """Return numbers as text with signs."""
    return "  ".join(f"{value:+.6f}" for value in np.ravel(values) + 0.0)


print(
    f"linear SVM in the plane: accuracy {SVC(C=100.0, kernel='linear').fit(X, y).score(X, y):.0%}"
)
for name, model in (
    ("kernel (<x, z> + 1)²", by_kernel),
    ("features as kernel", by_features),
    ("linear on features", linear),
):
    print(f"{name:21s} v = {as_text(model.dual_coef_)},  b = {as_text(model.intercept_)}")
w = linear.coef_[0]
print(f"{'w in feature space':21s}     {as_text(w)}")
print(f"{'from the kernel':21s}     {as_text(by_kernel.dual_coef_ @ phi(X[by_kernel.support_]))}")
print(
    f"|f|² = {by_kernel.expansion_.norm()[0] ** 2:.6f}, margin 1/|f| = {1 / np.linalg.norm(w):.6f}"
)

Z = np.random.default_rng(0).uniform(-2, 2, size=(1000, 2))
values = by_kernel.decision_function(Z)
largest = max(
    np.abs(values - Z[:, 0] * Z[:, 1]).max(),
    np.abs(values - linear.decision_function(phi(Z))).max(),
    np.abs(values - by_features.decision_function(Z)).max(),
)
print(f"largest difference between the three f and x₁x₂ at 1000 points: {largest:.1e}")
if not largest < 1e-9:
    raise SystemExit("the kernel and its feature map disagree")

# %% Plot, with random points around the four.
rng = np.random.default_rng(1)
cloud = np.repeat(X, 30, axis=0) + rng.uniform(-0.22, 0.22, size=(120, 2))
cloud_labels = np.array(["differ", "same"])[(cloud[:, 0] * cloud[:, 1] > 0).astype(int)]

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 5.6), layout="constrained")
margin(by_kernel, X, y, ax=left)
left.get_legend().remove()
left.set(title="In the plane: f(x) = x₁x₂, no line separates the classes", xlabel="x₁", ylabel="x₂")
for ax, points, corners in ((left, cloud, X), (right, phi(cloud), phi(X))):
    across, up = (0, 1) if ax is left else (1, 0)
    for label, colour, marker in (("differ", "#053061", "o"), ("same", "#67001f", "^")):
        group, corner_group = points[cloud_labels == label], corners[y == label]
        name = "signs of x₁ and x₂ differ" if label == "differ" else "signs agree"
        ax.scatter(group[:, across], group[:, up], s=14, color=colour, marker=marker, label=name)
        ax.scatter(
            corner_group[:, across],
            corner_group[:, up],
            s=110,
            color=colour,
            marker=marker,
            edgecolors="white",
        )
right.axvline(0.0, color="black", linewidth=1.6, label="f = 0")
for side in (-1, 1):
    right.axvline(side * np.sqrt(2), color="black", linewidth=1.1, linestyle="--", label="f = ±1")
right.set(title="In feature space: a straight line separates them", xlabel="√2 x₁x₂", ylabel="x₁²")
trained = {"s": 70, "facecolors": "none", "edgecolors": "black", "linewidths": 1.3}
right.scatter(*phi(X)[:, [1, 0]].T, label="the four training points", **trained, zorder=4)
handles, names = right.get_legend_handles_labels()
chosen = [names.index(name) for name in dict.fromkeys(names)]
handles, names = ([group[i] for i in chosen] for group in (handles, names))
figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
figure.suptitle("XOR: a quadratic kernel and its explicit feature map", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "xor_quadratic.png", dpi=110)
print("figure: out/xor_quadratic.png")
