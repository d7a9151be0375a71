"""Fewer points, the same function: the error of a reduced set against its number of points.

A kernel ridge regression of Friedman's data is an expansion in all its training points.  Three ways
to have it in fewer: choose some of them greedily, take centres of clusters (with coefficients
solved again), or let the points move.  One should see:

* all three errors fall, the one of points that move fastest;
* with a tenth of the points, predictions hardly differ, and cost a tenth;
* the bound |f(x) − g(x)| ≤ |f − g| √k(x, x) is above the largest difference met on the test points,
  by some orders of magnitude: it holds for every x, and for the worst function of that norm.

It writes ``out/reduced_set.png``.
"""

# %% The data, and the model on all points.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from mercer import KernelRidge, compress

X, y = make_friedman1(2200, n_features=6, noise=1.0, random_state=0)
X, y, X_test, y_test = X[:600], y[:600], X[600:], y[600:]
model = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X, y - y.mean())
f = model.expansion_
print(f"{f!r}, |f| = {f.norm()[0]:.3f}")

# %% The error against the number of points, for each method.
sizes = [5, 10, 20, 40, 80]
errors = {"select": f.compress(sizes[-1], method="select").reduction.curve[:, 0]}
marks = {"kmeans": [], "construct": []}
for method, found in marks.items():
    for m in sizes:
        found.append(f.compress(m, method=method).reduction.error[0])

# %% The whole model in a tenth of its points.
small = compress(model, 60)
print(small.reduction_)
before, after = model.predict(X_test), small.predict(X_test)
for name, values in (("600 points", before), (" 60 points", after)):
    print(f"R² on new points, {name}: {r2_score(y_test, values + y.mean()):.4f}")
print(f"largest difference on new points: {np.abs(after - before).max():.3g}")
print(f"proved for every point:           {small.reduction_.sup_bound[0]:.3g}")

# %% The picture.
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
relative = f.norm()[0]
axes[0].loglog(np.arange(1, sizes[-1] + 1), errors["select"] / relative, label="chosen greedily")
axes[0].loglog(sizes, np.array(marks["kmeans"]) / relative, "^--", label="centres of clusters")
axes[0].loglog(sizes, np.array(marks["construct"]) / relative, "o-", label="moved freely")
axes[0].set(xlabel="points", ylabel="|f − g| / |f|", title="error of the reduced set")
axes[0].legend(frameon=False)
axes[1].plot(before, after, ".", markersize=3, alpha=0.5)
axes[1].axline((0, 0), slope=1, color="0.5", linewidth=1, zorder=0)
axes[1].set(xlabel="predicted with 600 points", ylabel="with 60", title="new points")
axes[1].set_aspect("equal")
figure.suptitle("A kernel ridge regression in fewer points", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "reduced_set.png", dpi=150)
print("picture: out/reduced_set.png")
