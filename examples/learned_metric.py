"""A learned metric: which columns and directions of a table matter.

In a table of twelve columns, y depends on column 0 and on the sum of the columns 1 and 2.  The
other columns are noise.  `RFMRegressor` learns the metric of its kernel from the gradients of the
fitted function.  What to look for:

* The importances of the noise columns are almost 0, and the error of each kernel decreases over
  the rounds, in which the metric is learned again.
* The leading directions are column 0, and the sum of the columns 1 and 2, up to their signs.
* The test error is far below that of the same kernels with the Euclidean metric.

The figure is saved as ``out/learned_metric.png``.
"""

# %% Data: y depends on two directions in twelve columns.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import RFMRegressor

rng = np.random.default_rng(0)


def truth(X):
    """Return the function without noise."""
    return np.sin(2.0 * X[:, 0]) + 0.5 * (X[:, 1] + X[:, 2]) ** 2


X, X_new = rng.normal(size=(250, 12)), rng.normal(size=(1000, 12))
y = truth(X) + 0.1 * rng.normal(size=250)

# %% Fit with the learned metric, and with the Euclidean metric.
model = RFMRegressor().fit(X, y)
euclidean = RFMRegressor(max_rounds=0).fit(X, y)
for name, fitted in (("learned", model), ("Euclidean", euclidean)):
    error = np.mean((fitted.predict(X_new) - truth(X_new)) ** 2)
    print(f"{name} metric: test error {error:.4f}")
print(model.directions_[:2].round(2) + 0.0)

# %% Plot the importances and the score of each round.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.2), layout="constrained")
left.bar(range(12), model.feature_importances_, color="#0072B2")
left.set(title="Importance of twelve columns, nine of them noise", xlabel="column")
left.set_xticks(range(12))
colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
for name, color in zip(
    dict.fromkeys(entry["kernel"] for entry in model.path_), colors, strict=True
):
    scores = [-entry["score"] for entry in model.path_ if entry["kernel"] == name]
    right.plot(scores, "o-", color=color, label=name)
right.set(title="Error of each round", xlabel="round", ylabel="mean squared error", yscale="log")
right.legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "learned_metric.png", dpi=150)
print("figure: out/learned_metric.png")
