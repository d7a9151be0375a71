"""A table with text, categories and numbers: one kernel for each kind of column."""

# %% Data: the price of coffee depends on its origin, the words on its label, altitude and age.
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import RBF, BagOfWords, Callable, Select, White

rng = np.random.default_rng(0)
words = np.array(["wild", "single", "estate", "classic", "strong", "mild", "organic", "house"])
labels = [" ".join(rng.choice(words, size=4, replace=False)) for _ in range(150)]
X = pd.DataFrame({"label": labels, "origin": rng.choice(["Kenya", "Peru", "Java"], size=150)})
X["altitude"], X["age"] = rng.uniform(500, 2000, 150), rng.uniform(0, 24, 150)
value = X["label"].str.count("wild") + X["label"].str.count("estate") + 2 * (X["origin"] == "Kenya")
y = value + 2 * np.tanh((X["altitude"] - 1200) / 300) - 0.05 * X["age"] + rng.normal(0, 0.2, 150)

# %% `Select` applies a kernel to some columns.  Kernels are added, or multiplied for interactions.
text, numbers = Select(BagOfWords(), "label"), Select(RBF((400.0, 20.0)), ["altitude", "age"])
origin = Select(Callable(lambda a, b: float(a == b), contract="pair"), "origin")
for kernel in (numbers, numbers + origin, numbers + origin + text):
    model = KernelRidge(0.1, kernel=3.0 * kernel, fit_intercept=True)
    print(f"R² {cross_val_score(model, X, y, cv=5).mean():.2f}  {kernel}")

# %% Length scales by grid search, and all parameters by the likelihood of a Gaussian process.
grid = {"kernel__kernel__terms__0__kernel__length_scale": [(200.0, 20.0), (400.0, 20.0)]}
print(
    "best length scales of altitude, age:",
    *GridSearchCV(model, grid).fit(X, y).best_params_.values(),
)
gp = GaussianProcessRegressor(numbers + 1.0 * origin + 1.0 * text + White(0.1), normalize_y=True)
print(gp.fit(X, y).kernel_)
