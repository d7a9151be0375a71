"""A table that mixes strings, categories and numbers: one kernel for each kind of column."""

# %% Coffee: its price hangs on where it grew, what the label promises, and height and age.
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import RBF, BagOfWords, Callable, Select, White

rng = np.random.default_rng(0)
words = np.array(["wild", "single", "estate", "classic", "strong", "mild", "organic", "house"])
notes = [" ".join(rng.choice(words, size=4, replace=False)) for _ in range(150)]
X = pd.DataFrame({"label": notes, "land": rng.choice(["Kenya", "Peru", "Java"], size=150)})
X["height"], X["age"] = rng.uniform(500, 2000, 150), rng.uniform(0, 24, 150)
worth = X["label"].str.count("wild") + X["label"].str.count("estate") + 2 * (X["land"] == "Kenya")
y = worth + 2 * np.tanh((X["height"] - 1200) / 300) - 0.05 * X["age"] + rng.normal(0, 0.2, 150)

# %% Columns are selected by name; kernels of parts are added, or multiplied where they interact.
text, numbers = Select(BagOfWords(), "label"), Select(RBF((400.0, 20.0)), ["height", "age"])
land = Select(Callable(lambda a, b: float(a == b), contract="pair"), "land")
for kernel in (numbers, numbers + land, numbers + land + text):
    model = KernelRidge(0.1, kernel=3.0 * kernel, fit_intercept=True)
    print(f"R² {cross_val_score(model, X, y, cv=5).mean():.2f}  {kernel}")

# %% Length scales by a grid, and all parameters by the likelihood of a Gaussian process.
grid = {"kernel__kernel__terms__0__kernel__length_scale": [(200.0, 20.0), (400.0, 20.0)]}
print("height, age:", *GridSearchCV(model, grid).fit(X, y).best_params_.values())
gp = GaussianProcessRegressor(numbers + 1.0 * land + 1.0 * text + White(0.1), normalize_y=True)
print(gp.fit(X, y).kernel_)
