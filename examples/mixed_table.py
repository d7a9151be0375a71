"""A table with text, categories and numbers: one kernel for each kind of column.

The price of coffee depends on its origin, the words on its label, altitude and age.  What to look
for: each kind of column improves the cross-validated predictions, and the sum of three kernels
explains nearly everything.

The figure is saved as ``out/mixed_table.png``.
"""

# %% Data: 150 generated kinds of coffee.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict

from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import RBF, BagOfWords, Equal, Select, White

rng = np.random.default_rng(0)
words = np.array(["wild", "single", "estate", "classic", "strong", "mild", "organic", "house"])
labels = [" ".join(rng.choice(words, size=4, replace=False)) for _ in range(150)]
X = pd.DataFrame({"label": labels, "origin": rng.choice(["Kenya", "Peru", "Java"], size=150)})
X["altitude"], X["age"] = rng.uniform(500, 2000, 150), rng.uniform(0, 24, 150)
value = X["label"].str.count("wild") + X["label"].str.count("estate") + 2 * (X["origin"] == "Kenya")
y = value + 2 * np.tanh((X["altitude"] - 1200) / 300) - 0.05 * X["age"] + rng.normal(0, 0.2, 150)

# %% `Select` applies a kernel to some columns.  Kernels are added, or multiplied for interactions.
text, numbers = Select(BagOfWords(), "label"), Select(RBF((400.0, 20.0)), ["altitude", "age"])
origin = Select(Equal(), "origin")
figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.2), sharey=True, layout="constrained")
kernels = {
    "altitude, age": numbers,
    "altitude, age, origin": numbers + origin,
    "altitude, age, origin, label": numbers + origin + text,
}
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    model = KernelRidge(0.1, kernel=3.0 * kernel, fit_intercept=True)
    predicted = cross_val_predict(model, X, y, cv=5)
    print(f"R² {r2_score(y, predicted):.2f}  {kernel}")
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.plot(y, predicted, ".", color="#0072B2")
    ax.set(title=f"{name}: R² = {r2_score(y, predicted):.2f}", xlabel="price", aspect="equal")
axes[0].set_ylabel("predicted price (5 folds)")

# %% Length scales by grid search, and all parameters by the likelihood of a Gaussian process.
grid = {"kernel__kernel__terms__0__kernel__length_scale": [(200.0, 20.0), (400.0, 20.0)]}
print(
    "best length scales of altitude, age:",
    *GridSearchCV(model, grid).fit(X, y).best_params_.values(),
)
gp = GaussianProcessRegressor(numbers + 1.0 * origin + 1.0 * text + White(0.1), normalize_y=True)
print(gp.fit(X, y).kernel_)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "mixed_table.png", dpi=130)
print("figure: out/mixed_table.png")
