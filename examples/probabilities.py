"""Class probabilities in the plane, and whether they can be believed.

Kernel logistic regression makes the log-odds of classes functions of an RKHS.  One should see: on
the left two overlapping moons with the lines of equal probability, close together where the data
are clear and far apart where they are not; in the middle that frequencies among new points agree
with the probabilities; on the right three classes, all fitted at once: each has its colour, which
fades to white where the classes are equally probable.

It writes ``out/probabilities.png``.
"""

# %% Two overlapping moons.  C is chosen by cross-validation of the log-loss.
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
more = model.report_.certificate["corrections"]
print(f"Newton steps         {model.n_iter_}, and {more} corrections with their factors")
print(f"above the minimum    {model.report_.certificate['gap']:.1e} or less")

# %% Can the probabilities be believed?  Frequencies among 5000 new points, in ten bins.
Z, truth = moons(5000, noise=0.3, random_state=1)
p = model.predict_proba(Z)[:, 1]
bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
used, bins, counts = np.unique(bins, return_inverse=True, return_counts=True)
said, seen = np.bincount(bins, weights=p) / counts, np.bincount(bins, weights=truth) / counts
spread = 2 * np.sqrt(said * (1 - said) / counts)
error = counts @ np.abs(said - seen) / counts.sum()
print(f"mean |said - seen|   {error:.3f}, in {len(used)} of 10 bins")
if not error <= 0.05 or len(used) < 10:
    raise SystemExit("the probabilities are not calibrated")

# %% Three classes, one softmax.
T, cluster = three_clusters(150, random_state=3)
T = T + 0.25 * np.random.default_rng(0).standard_normal(T.shape)
three = KernelLogisticRegression(C=3.0, gamma=2.0).fit(T, cluster)
total = np.abs(three.decision_function(T).sum(axis=1)).max()
print(f"the three functions sum to 0 (at most {total:.0e})")


# %% The picture.
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
edged = {"s": 22, "edgecolors": "white", "linewidths": 0.5}
for c, (colour, marker) in enumerate((("#053061", "o"), ("#67001f", "^"))):
    left.scatter(*X[y == c].T, color=colour, marker=marker, label=f"class {c}", **edged)
left.legend(loc="lower left")
left.set_title(f"two classes: p(class 1 | x), C = {model.C_:.3g}")

middle.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="said what is true")
bars = {"fmt": "o", "color": "k", "capsize": 3, "label": "seen ± two standard errors"}
middle.errorbar(said, seen, yerr=spread, **bars)
middle.legend(frameon=False)
middle.set(xlabel="probability said", ylabel="frequency seen, of 5000 new points", aspect=1)
middle.set_title("calibration: can they be believed?")

colours = np.array([to_rgb(c) for c in ("#0072B2", "#E69F00", "#009E73")])
a, b, points = grid(T)
P = three.predict_proba(points)
surprise = -np.sum(P * np.log(np.maximum(P, 1e-300)), axis=1) / np.log(3)
shade = surprise[:, None] + (1 - surprise[:, None]) * (P @ colours)
extent = (a.min(), a.max(), b.min(), b.max())
right.imshow(shade.reshape(*a.shape, 3), origin="lower", extent=extent, alpha=0.8, aspect="auto")
for c in range(3):
    right.contour(a, b, P[:, c].reshape(a.shape), [0.5], colors="k", linewidths=1)
for c, marker in enumerate("o^s"):
    right.scatter(*T[cluster == c].T, color=colours[c], marker=marker, label=f"class {c}", **edged)
right.legend(loc="upper left")
right.set_title("three classes; lines: p = 1/2")
for panel in (left, right):
    panel.set(xlabel="x₁", ylabel="x₂")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "probabilities.png", dpi=110)
print("picture              out/probabilities.png")
