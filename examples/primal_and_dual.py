"""Linear regression in the primal (a slope) and in the dual (one coefficient per point).

The primal problem min sum (y_i - w x_i - b)^2 + alpha w^2 has two unknowns.  Its dual has one for
each point: f = sum_i a_i <x_i, .> with (K + alpha I) a = y - b.  What to look for:

* Left: both problems have the same line as solution, drawn with its uncertainty band.
* Middle: the dual coefficient a_i is the residual of point i divided by alpha.  Each point pulls
  the line towards itself, in proportion to its distance from it, and w = sum_i a_i x_i.

Which of the two is cheaper depends on the number of points n and the number of features M.  A cubic
polynomial in ten variables has M = 286.

* Right: the cost of a fit and of a prediction in the dual, divided by that in the primal.  Lines
  are counts of operations, dots are measured times.  The costs of a fit are equal between M and
  2 M points, those of predictions much earlier.  With few points the overhead of the calls
  dominates, which is not counted.

The figure is saved as ``out/primal_and_dual.png``.
"""

# %% Data: noisy points of a line.
from pathlib import Path
from time import perf_counter

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import solve
from sklearn.linear_model import Ridge

from mercer import Expansion, KernelRidge, primal_or_dual, to_dual, to_primal
from mercer.kernels import Polynomial, finite_features
from mercer.plotting import credible_band

rng = np.random.default_rng(4)
X = rng.uniform(-2, 3, size=(30, 1))
y = 0.8 * X[:, 0] + 1.0 + 0.5 * rng.normal(size=30)

# %% Solve the primal and the dual.
alpha = 2.0
primal = Ridge(alpha).fit(X, y)
dual = KernelRidge(alpha, kernel="linear", fit_intercept=True).fit(X, y)
slope = to_primal(dual).expansion_.weights[0, 0]
print(f"primal   y = {primal.coef_[0]:.6f} x + {primal.intercept_:.6f}")
print(f"dual     y = {slope:.6f} x + {dual.intercept_:.6f}")
residuals = y - dual.predict(X)
print(f"largest |a_i - r_i / alpha|   {np.abs(dual.dual_coef_ - residuals / alpha).max():.1e}")
difference = np.abs(to_dual(primal, X)(X) - dual.expansion_(X)).max()
print(f"largest difference of f from w and f from a   {difference:.1e}")

# %% Costs for a cubic polynomial in ten variables.
kernel = Polynomial(3)
sizes = np.geomspace(20, 2500, 11).astype(int)
Z, Z_new = rng.normal(size=(sizes[-1], 10)), rng.normal(size=(4000, 10))
print(primal_or_dual(kernel, Z[:500]))


def fastest_time(function, *arguments):
    """Return the time of the fastest of five calls."""
    times = []
    for _ in range(5):
        start = perf_counter()
        function(*arguments)
        times.append(perf_counter() - start)
    return min(times)


def fit_dual(Z):
    """Solve (K + alpha I) a = y."""
    K = kernel(Z)
    return solve(K + alpha * np.eye(len(K)), Z[:, 0], assume_a="pos")


def fit_primal(Z):
    """Solve (Phi^T Phi + alpha I) w = Phi^T y."""
    phi = finite_features(kernel, Z)[0]
    return solve(phi.T @ phi + alpha * np.eye(phi.shape[1]), phi.T @ Z[:, 0], assume_a="pos")


timed = {"fit": [], "prediction": []}
for n in sizes:
    f = Expansion(kernel, Z[:n], Z[:n, :1])
    timed["fit"].append(fastest_time(fit_dual, Z[:n]) / fastest_time(fit_primal, Z[:n]))
    timed["prediction"].append(fastest_time(f, Z_new) / fastest_time(f.to_primal(), Z_new))
costs = [primal_or_dual(kernel, Z[:n]) for n in sizes]
counted = {"fit": [s.training for s in costs], "prediction": [s.prediction for s in costs]}

# %% Plot.
x = np.linspace(-3, 4, 200)[:, None]
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15.5, 4.4), layout="constrained")
credible_band(dual, x, X, y, ax=left)
left.plot(x, primal.predict(x), "--", color="#D55E00", linewidth=2, label="primal")
left.set_title("Primal and dual have the same solution")
left.legend()
middle.axhline(0.0, color="0.6", linewidth=0.8)
middle.vlines(X[:, 0], 0.0, dual.dual_coef_, color="#0072B2")
middle.plot(X[:, 0], dual.dual_coef_, "o", color="#0072B2", label="dual coefficients")
middle.plot(X[:, 0], residuals / alpha, "x", color="#D55E00", label="residual / alpha")
middle.set(title="Dual coefficients", xlabel="x", ylabel="$a_i$")
middle.legend()
for job, colour in (("fit", "#0072B2"), ("prediction", "#D55E00")):
    ratios = [cost.dual / cost.primal for cost in counted[job]]
    right.loglog(sizes, ratios, color=colour, label=f"{job}, counted")
    right.loglog(sizes, timed[job], "o", color=colour, label=f"{job}, measured")
    right.axvline(counted[job][0].crossover, color=colour, linewidth=0.8, linestyle=":")
right.axhline(1.0, color="0.6", linewidth=0.8)
right.set(title="Cost with 286 features", xlabel="number of points", ylabel="cost dual / primal")
right.legend()
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "primal_and_dual.png", dpi=110)
