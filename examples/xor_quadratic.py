"""XOR: four points that no line can part, and the quadratic kernel, which finds x₁x₂.

The kernel (<x, z> + 1)² is the inner product of the features (x₁², √2 x₁x₂, x₂², √2 x₁, √2 x₂, 1).
A support vector machine with the kernel never computes them; one with a linear kernel on the
features does.  They are the same machine.  One should see:

* v = ±1/8 for each of the four points, in both; f(x) = x₁x₂, with no intercept;
* the primal knows it as w = (0, 1/√2, 0, 0, 0, 0), so that |f|² = 1/2 and the margin is 1/|f| = √2;
* on the left, where f = 0 in the plane of the points: the two axes; and hyperbolas f = −1 and 1;
* on the right, three of the features, also of clouds around the points: a plane parts the classes.

It writes ``out/xor_quadratic.png``.
"""

# %% Four points.  C is large: nobody may be inside of the margin.
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


# %% The numbers.
def shown(values):
    return "  ".join(f"{value:+.6f}" for value in np.ravel(values) + 0.0)


print(f"a line in the plane: {SVC(C=100.0, kernel='linear').fit(X, y).score(X, y):.0%} right")
for name, model in (
    ("kernel (<x, z> + 1)²", by_kernel),
    ("kernel of features", by_features),
    ("linear in features", linear),
):
    print(f"{name:21s} v = {shown(model.dual_coef_)},  b = {shown(model.intercept_)}")
w = linear.coef_[0]
print(f"{'w in feature space':21s}     {shown(w)}")
print(f"{'by the kernel':21s}     {shown(by_kernel.dual_coef_ @ phi(X[by_kernel.support_]))}")
print(
    f"|f|² = {by_kernel.expansion_.norm()[0] ** 2:.6f}, margin 1/|f| = {1 / np.linalg.norm(w):.6f}"
)

Z = np.random.default_rng(0).uniform(-2, 2, size=(1000, 2))
values = by_kernel.decision_function(Z)
far = max(
    np.abs(values - Z[:, 0] * Z[:, 1]).max(),
    np.abs(values - linear.decision_function(phi(Z))).max(),
    np.abs(values - by_features.decision_function(Z)).max(),
)
print(f"largest difference between the three f and x₁x₂, at 1000 points: {far:.1e}")
if not far < 1e-9:
    raise SystemExit("the kernel and its map disagree")

# %% The picture, on the right with clouds around the four points.
rng = np.random.default_rng(1)
cloud = np.repeat(X, 30, axis=0) + 0.25 * rng.normal(size=(120, 2))
same = np.array(["differ", "same"])[(cloud[:, 0] * cloud[:, 1] > 0).astype(int)]

figure = plt.figure(figsize=(11.5, 5.2), layout="constrained")
left = figure.add_subplot(1, 2, 1)
margin(by_kernel, X, y, ax=left)
left.set(title="in the plane: f(x) = x₁x₂", xlabel="x₁", ylabel="x₂")

right = figure.add_subplot(1, 2, 2, projection="3d")
first, second = np.meshgrid([0.0, 2.5], [0.0, 2.5])
right.plot_surface(first, np.zeros_like(first), second, color="0.6", alpha=0.35)
for label, colour, marker in (("differ", "#053061", "o"), ("same", "#67001f", "^")):
    right.scatter(*phi(cloud[same == label]).T[:3], s=12, color=colour, marker=marker, label=label)
    right.scatter(*phi(X[y == label]).T[:3], s=90, facecolors="none", edgecolors="black")
right.set(title="in feature space: a plane", xlabel="x₁²", ylabel="√2 x₁x₂", zlabel="x₂²")
right.set_xticks([0, 1, 2, 3])
right.view_init(elev=14, azim=-24)
right.set_box_aspect((1.0, 1.3, 0.9), zoom=1.05)
right.legend(loc="upper left", frameon=False)
figure.suptitle("XOR, a quadratic kernel and its explicit map", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "xor_quadratic.png", dpi=110)
print("picture: out/xor_quadratic.png")
