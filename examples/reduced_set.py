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
PALETTE = ("#0072B2", "#D55E00", "#009E73")
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
relative = f.norm()[0]
for values, look, colour, name in (
    (errors["select"], "-", PALETTE[0], "chosen greedily"),
    (marks["kmeans"], "^--", PALETTE[1], "centres of clusters"),
    (marks["construct"], "o-.", PALETTE[2], "moved freely"),
):
    at = sizes if len(values) == len(sizes) else np.arange(1, len(values) + 1)
    axes[0].loglog(at, np.array(values) / relative, look, color=colour, label=name)
axes[0].set(xlabel="points", ylabel="|f − g| / |f|", title="error of the smaller model")
axes[0].set_xticks([1, 2, 5, *sizes[1:]], [1, 2, 5, *sizes[1:]])
axes[0].minorticks_off()
axes[0].legend(frameon=False)
axes[1].axhspan(-1, 1, color="0.9", linewidth=0, label="± noise of the data")
axes[1].plot(before, after - before, ".", color=PALETTE[0], markersize=4, label="1600 new points")
axes[1].set(xlabel="predicted with 600 points", ylabel="change with 60 points", ylim=(-1.6, 1.6))
axes[1].set_title("predictions hardly change")
axes[1].legend(frameon=False)
figure.suptitle("A kernel ridge regression in fewer points", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "reduced_set.png", dpi=150)
print("picture: out/reduced_set.png")
