"""The same quadratic model in the primal and in the dual.

With d columns, the quadratic features x_i x_j, x_i and 1 are (d + 1)(d + 2) / 2 functions.  Ridge
regression on them solves a linear system of that size.  Kernel ridge regression with
k(x, z) = (<x, z> + 1)^2 solves a system of the size of the data, and never computes the features.
Both find the same function, because the primal weights are a combination of the points:
w = Phi^T a.

The figure shows the ten weights, computed in both ways.  It is saved as
``out/one_model_two_ways.png``.
"""

# %% Data: a noisy quadratic in three variables.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from mercer import KernelRidge
from mercer.kernels import Polynomial, QuadraticMap

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(60, 3)), rng.normal(size=(5, 3))
y = X[:, 0] * X[:, 1] - X[:, 2] ** 2 + 0.5 * X[:, 0] + rng.normal(scale=0.1, size=60)

# %% Primal: explicit features and weights w.
phi = QuadraticMap(coef0=1.0)
primal = Ridge(alpha=0.1, fit_intercept=False).fit(phi(X), y)

# %% Dual: a kernel and coefficients a.
dual = KernelRidge(alpha=0.1, kernel=Polynomial(degree=2, coef0=1.0)).fit(X, y)

print(f"features per point        {phi(X).shape[1]}")
print(f"points                    {len(X)}")
print(f"primal predictions        {primal.predict(phi(X_new)).round(6)}")
print(f"dual predictions          {dual.predict(X_new).round(6)}")

# %% The representer theorem: w = Phi^T a.
difference = np.abs(phi(X).T @ dual.dual_coef_ - primal.coef_).max()
print(f"largest |w - Phi^T a|     {difference:.1e}")

# %% Plot both weights, in the order of the features.
figure, ax = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
names = ["x₁²", "√2 x₁x₂", "√2 x₁x₃", "x₂²", "√2 x₂x₃", "x₃²", "√2 x₁", "√2 x₂", "√2 x₃", "1"]
ax.bar(names, primal.coef_, color="#56B4E9", label="w of the primal")
ax.plot(names, phi(X).T @ dual.dual_coef_, "o", color="#D55E00", label="Φᵀa of the dual")
ax.axhline(0, color="black", linewidth=0.8)
ax.set(title="The same ten weights", xlabel="feature", ylabel="weight")
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "one_model_two_ways.png", dpi=130)
print("figure: out/one_model_two_ways.png")
