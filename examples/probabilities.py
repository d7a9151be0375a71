"""Class probabilities of kernel logistic regression, and their calibration.

Kernel logistic regression models the log-odds of the classes by functions of an RKHS.  What to look
for:

* Left: two overlapping moons with lines of equal probability.  The lines are close together where
  the classes are clearly separated, and far apart where they are not.
* Middle: the observed frequencies among new points agree with the predicted probabilities.
* Right: three classes, fitted together.  Each class has its colour, which fades to white where the
  classes are equally probable.

The figure is saved as ``out/probabilities.png``.
"""

# %% Data: two overlapping moons.  C is chosen by cross-validation of the log-loss.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb

from mercer import KernelLogisticRegression, KernelLogisticRegressionCV
from mercer.datasets import moons, three_clusters

X, y = moons(300, noise=0.3, random_state=0)
model = KernelLogisticRegressionCV(Cs=np.logspace(-2, 3, 11)).fit(X, y)
print(f"C by 5 folds         {model.C_:.3g}, with a log-loss of {-model.best_score_:.3f}")
n_corrections = model.report_.certificate["corrections"]
print(f"Newton steps         {model.n_iter_}, and {n_corrections} corrections with stored factors")
print(f"distance to minimum  {model.report_.certificate['gap']:.1e} or less")

# %% Calibration: observed frequencies among 5000 new points, in ten bins of the prediction.
Z, truth = moons(5000, noise=0.3, random_state=1)
p = model.predict_proba(Z)[:, 1]
bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
bins_used, bins, counts = np.unique(bins, return_inverse=True, return_counts=True)
predicted, observed = (
    np.bincount(bins, weights=p) / counts,
    np.bincount(bins, weights=truth) / counts,
)
two_errors = 2 * np.sqrt(predicted * (1 - predicted) / counts)
error = counts @ np.abs(predicted - observed) / counts.sum()
print(
    f"calibration error    {error:.3f} (mean |predicted - observed|), {len(bins_used)} of 10 bins"
)
if not error <= 0.05 or len(bins_used) < 10:
    raise SystemExit("the probabilities are not calibrated")

# %% Three classes with one softmax.
T, cluster = three_clusters(150, random_state=3)
T = T + 0.25 * np.random.default_rng(0).standard_normal(T.shape)
three = KernelLogisticRegression(C=3.0, gamma=2.0).fit(T, cluster)
total = np.abs(three.decision_function(T).sum(axis=1)).max()
print(f"largest sum of the three decision functions, which is 0 in theory: {total:.0e}")


# %% Plot.
def grid(points, margin=0.4, n=160):
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    a, b = np.meshgrid(np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n))
    return a, b, np.column_stack([a.ravel(), b.ravel()])


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14.5, 4.6), layout="constrained")
a, b, points = grid(X)
values = model.predict_proba(points)[:, 1].reshape(a.shape)
extent = (a.min(), a.max(), b.min(), b.max())
left.imshow(
    values, cmap="RdBu_r", vmin=-0.3, vmax=1.3, origin="lower", extent=extent, aspect="auto"
)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
lines = left.contour(a, b, values, levels, colors="k", linewidths=[0.8, 0.8, 2, 0.8, 0.8])
left.clabel(lines, fmt="%.2f", fontsize=8)
point_style = {"s": 22, "edgecolors": "white", "linewidths": 0.5}
for c, (colour, marker) in enumerate((("#053061", "o"), ("#67001f", "^"))):
    left.scatter(*X[y == c].T, color=colour, marker=marker, label=f"class {c}", **point_style)
left.legend(loc="lower left")
left.set_title(f"Two classes: p(class 1 | x), C = {model.C_:.3g}")

middle.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfect calibration")
bars = {"fmt": "o", "color": "k", "capsize": 3, "label": "observed ± 2 standard errors"}
middle.errorbar(predicted, observed, yerr=two_errors, **bars)
middle.legend(frameon=False)
middle.set(xlabel="predicted probability", ylabel="observed frequency (5000 new points)", aspect=1)
middle.set_title("Calibration")

colours = np.array([to_rgb(c) for c in ("#0072B2", "#E69F00", "#009E73")])
a, b, points = grid(T)
P = three.predict_proba(points)
entropy = -np.sum(P * np.log(np.maximum(P, 1e-300)), axis=1) / np.log(3)
shade = entropy[:, None] + (1 - entropy[:, None]) * (P @ colours)
extent = (a.min(), a.max(), b.min(), b.max())
right.imshow(shade.reshape(*a.shape, 3), origin="lower", extent=extent, alpha=0.8, aspect="auto")
for c in range(3):
    right.contour(a, b, P[:, c].reshape(a.shape), [0.5], colors="k", linewidths=1)
for c, marker in enumerate("o^s"):
    right.scatter(
        *T[cluster == c].T, color=colours[c], marker=marker, label=f"class {c}", **point_style
    )
right.legend(loc="upper left")
right.set_title("Three classes; lines: p = 1/2")
for panel in (left, right):
    panel.set(xlabel="x₁", ylabel="x₂")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "probabilities.png", dpi=110)
print("figure               out/probabilities.png")
