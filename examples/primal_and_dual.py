"""A line, found twice: in the primal, by its slope, and in the dual, by a weight for each point.

The primal problem min sum (y_i - w x_i - b)^2 + alpha w^2 has two unknowns.  Its dual has one for
each of the points: f = sum_i a_i <x_i, .> with (K + alpha I) a = y - b.  One should see

* one line, drawn twice, with the band of its uncertainty;
* the dual coefficients: a_i is the residual of point i divided by alpha, so each point pulls the
  line towards itself, in proportion to how far it lies away; and w = sum_i a_i x_i.

Which of the two is cheaper depends on the number n of points beside the number M of features.  A
cubic in ten variables has M = 286.  One should see

* what a fit and a prediction cost in the dual, as a multiple of the primal: counted, as lines, and
  timed, as dots.  Fits are equal between M and 2 M points; predictions far earlier.  With few
  points the time is that of the calls, which nobody has counted.

It writes ``out/primal_and_dual.png``.
"""

# %% Points around a line.
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

# %% Primal and dual.
alpha = 2.0
primal = Ridge(alpha).fit(X, y)
dual = KernelRidge(alpha, kernel="linear", fit_intercept=True).fit(X, y)
slope = to_primal(dual).expansion_.weights[0, 0]
print(f"primal   y = {primal.coef_[0]:.6f} x + {primal.intercept_:.6f}")
print(f"dual     y = {slope:.6f} x + {dual.intercept_:.6f}")
residuals = y - dual.predict(X)
print(f"largest |a_i - r_i / alpha|   {np.abs(dual.dual_coef_ - residuals / alpha).max():.1e}")
gap = np.abs(to_dual(primal, X)(X) - dual.expansion_(X)).max()
print(f"largest |f - f|, from w and from a   {gap:.1e}")

# %% What each costs, for a cubic in ten variables.
kernel = Polynomial(3)
ns = np.geomspace(20, 2500, 11).astype(int)
Z, new = rng.normal(size=(ns[-1], 10)), rng.normal(size=(4000, 10))
print(primal_or_dual(kernel, Z[:500]))


def seconds(function, *arguments):
    """Return the time of the quickest of five calls."""
    times = []
    for _ in range(5):
        start = perf_counter()
        function(*arguments)
        times.append(perf_counter() - start)
    return min(times)


def fit_dual(Z):
    K = kernel(Z)
    return solve(K + alpha * np.eye(len(K)), Z[:, 0], assume_a="pos")


def fit_primal(Z):
    phi = finite_features(kernel, Z)[0]
    return solve(phi.T @ phi + alpha * np.eye(phi.shape[1]), phi.T @ Z[:, 0], assume_a="pos")


timed = {"a fit": [], "a prediction": []}
for n in ns:
    f = Expansion(kernel, Z[:n], Z[:n, :1])
    timed["a fit"].append(seconds(fit_dual, Z[:n]) / seconds(fit_primal, Z[:n]))
    timed["a prediction"].append(seconds(f, new) / seconds(f.to_primal(), new))
sizes = [primal_or_dual(kernel, Z[:n]) for n in ns]
counted = {"a fit": [s.training for s in sizes], "a prediction": [s.prediction for s in sizes]}

# %% The picture.
x = np.linspace(-3, 4, 200)[:, None]
figure, (left, right, last) = plt.subplots(1, 3, figsize=(15.5, 4.4), layout="constrained")
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
for what, colour in (("a fit", "#0072B2"), ("a prediction", "#D55E00")):
    ratios = [cost.dual / cost.primal for cost in counted[what]]
    last.loglog(ns, ratios, color=colour, label=f"{what}, counted")
    last.loglog(ns, timed[what], "o", color=colour, label=f"{what}, timed")
    last.axvline(counted[what][0].crossover, color=colour, linewidth=0.8, linestyle=":")
last.axhline(1.0, color="0.6", linewidth=0.8)
last.set(title="286 features: dual / primal", xlabel="points", ylabel="cost in the dual / primal")
last.legend()
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "primal_and_dual.png", dpi=110)
