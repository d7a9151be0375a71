"""A line, found twice: in the primal, by its slope, and in the dual, by a weight for each point.

The primal problem min sum (y_i - w x_i - b)^2 + alpha w^2 has two unknowns.  Its dual has one for
each of the points: f = sum_i a_i <x_i, .> with (K + alpha I) a = y - b.  One should see

* one line, drawn twice, with the band of its uncertainty;
* the dual coefficients: a_i is the residual of point i divided by alpha, so each point pulls the
  line towards itself, in proportion to how far it lies away; and w = sum_i a_i x_i.

It writes ``out/primal_and_dual.png``.
"""

# %% Points around a line.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from mercer import KernelRidge
from mercer.plotting import credible_band

rng = np.random.default_rng(4)
X = rng.uniform(-2, 3, size=(30, 1))
y = 0.8 * X[:, 0] + 1.0 + 0.5 * rng.normal(size=30)

# %% Primal and dual.
alpha = 2.0
primal = Ridge(alpha).fit(X, y)
dual = KernelRidge(alpha, kernel="linear", fit_intercept=True).fit(X, y)
slope = float(X[:, 0] @ dual.dual_coef_)
print(f"primal   y = {primal.coef_[0]:.6f} x + {primal.intercept_:.6f}")
print(f"dual     y = {slope:.6f} x + {dual.intercept_:.6f}")
residuals = y - dual.predict(X)
print(f"largest |a_i - r_i / alpha|   {np.abs(dual.dual_coef_ - residuals / alpha).max():.1e}")

# %% The picture.
x = np.linspace(-3, 4, 200)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
credible_band(dual, x, X, y, ax=left)
left.plot(x, primal.predict(x), "--", color="#D55E00", linewidth=2, label="primal")
left.set_title("primal and dual: one line")
left.legend()
right.axhline(0.0, color="0.6", linewidth=0.8)
right.vlines(X[:, 0], 0.0, dual.dual_coef_, color="#0072B2")
right.plot(X[:, 0], dual.dual_coef_, "o", color="#0072B2", label="dual coefficients")
right.plot(X[:, 0], residuals / alpha, "x", color="#D55E00", label="residual / alpha")
right.set(title="each point pulls", xlabel="x", ylabel="$a_i$")
right.legend()
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "primal_and_dual.png", dpi=110)
