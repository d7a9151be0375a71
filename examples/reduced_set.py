"""Reduced sets: approximate a fitted function with fewer points.

Kernel ridge regression of Friedman's data is an expansion in all training points.  Three methods
reduce their number: select some of them greedily, use cluster centres (with new coefficients), or
optimise the positions of the points.  What to look for:

* All three errors decrease, that of the optimised points fastest.
* With a tenth of the points, predictions hardly change, and cost a tenth.
* The bound |f(x) − g(x)| ≤ |f − g| √k(x, x) is larger than the largest difference on the test
  points by orders of magnitude, because it holds for every x and every function of that norm.

The figure is saved as ``out/reduced_set.png``.
"""

# %% Data, and the model with all points.
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

# %% The error as a function of the number of points, for each method.
sizes = [5, 10, 20, 40, 80]
errors = {"select": f.compress(sizes[-1], method="select").reduction.curve[:, 0]}
errors_by_size = {"kmeans": [], "construct": []}
for method, values in errors_by_size.items():
    for m in sizes:
        values.append(f.compress(m, method=method).reduction.error[0])

# %% Compress the model to a tenth of its points.
reduced = compress(model, 60)
print(reduced.reduction_)
before, after = model.predict(X_test), reduced.predict(X_test)
for name, values in (("600 points", before), (" 60 points", after)):
    print(f"R² on new points, {name}: {r2_score(y_test, values + y.mean()):.4f}")
print(f"largest difference on new points: {np.abs(after - before).max():.3g}")
print(f"upper bound for every point:      {reduced.reduction_.sup_bound[0]:.3g}")

# %% Plot.
PALETTE = ("#0072B2", "#D55E00", "#009E73")
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
norm = f.norm()[0]
for values, style, colour, name in (
    (errors["select"], "-", PALETTE[0], "selected greedily"),
    (errors_by_size["kmeans"], "^--", PALETTE[1], "cluster centres"),
    (errors_by_size["construct"], "o-.", PALETTE[2], "optimised points"),
):
    positions = sizes if len(values) == len(sizes) else np.arange(1, len(values) + 1)
    axes[0].loglog(positions, np.array(values) / norm, style, color=colour, label=name)
axes[0].set(xlabel="number of points", ylabel="|f − g| / |f|", title="Error of the reduced model")
axes[0].set_xticks([1, 2, 5, *sizes[1:]], [1, 2, 5, *sizes[1:]])
axes[0].minorticks_off()
axes[0].legend(frameon=False)
axes[1].axhspan(-1, 1, color="0.9", linewidth=0, label="± standard deviation of the noise")
axes[1].plot(before, after - before, ".", color=PALETTE[0], markersize=4, label="1600 new points")
axes[1].set(xlabel="prediction with 600 points", ylabel="change with 60 points", ylim=(-1.6, 1.6))
axes[1].set_title("Predictions hardly change")
axes[1].legend(frameon=False)
figure.suptitle("Kernel ridge regression with fewer points", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "reduced_set.png", dpi=150)
print("figure: out/reduced_set.png")
