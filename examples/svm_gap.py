"""The duality gap of an SVM as a function of time: mercer compared with LIBSVM.

The dual objective increases, the primal objective decreases, and the gap between them is an upper
bound on the distance to the optimum.  It certifies a solution without a second solver.  Both
solvers are stopped after more and more iterations (`max_iter`), and the same function computes the
gap in float64.  Each point of the figure is a separate fit.  Its time is the smallest of three,
from three rounds over all fits.  What to look for:

* Both gaps decrease to the same level, which corresponds to `tol` = 1e-3.
* LIBSVM updates all points after every pair of variables it changes.  mercer changes many pairs
  within a block before it reads rows of K.  It finishes earlier, and its advantage grows with n.
* The last printed lines: both solutions have almost the same support vectors, and objectives that
  agree to many digits.

The figure is saved as ``out/svm_gap.png``.
"""

# %% Data: overlapping classes in ten dimensions.
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import mercer

n, C, gamma = 3000, 10.0, 0.1
rng = np.random.default_rng(0)
X = rng.standard_normal((n, 10))
y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


# %% Compute the gap from the coefficients.
def objectives(model):
    """Return the primal and the dual objective of f = sum_i a_i k(x_i, .) + b."""
    a, S = model.dual_coef_[0], model.support_
    f = rbf_kernel(X, X[S], gamma=gamma) @ a
    kinks = np.sort(y - f)  # the optimal b is one of the kinks of the piecewise linear loss
    b = kinks[min(np.count_nonzero(y > 0), n - 1)]
    half = 0.5 * a @ f[S]
    return half + C * np.maximum(0.0, 1.0 - y * (f + b)).sum(), np.abs(a).sum() - half


# %% Fit.  mercer needs more iterations, because it also counts those within blocks.
warnings.simplefilter("ignore", ConvergenceWarning)  # max_iter is small on purpose
mercer.SVC().fit(X[:100], y[:100])  # compile before timing
classes = {"mercer": mercer.SVC, "LIBSVM (scikit-learn)": sklearn.svm.SVC}
limits = {
    "mercer": [500, 1500, 4000, 9000, -1],
    "LIBSVM (scikit-learn)": [500, 2000, 6000, -1],
}
seconds = {name: np.full(len(limits[name]), np.inf) for name in classes}
gaps = {name: np.full(len(limits[name]), np.nan) for name in classes}
models = {}
for _ in range(3):
    for name, estimator in classes.items():
        for k, limit in enumerate(limits[name]):
            start = time.perf_counter()
            models[name] = estimator(C=C, gamma=gamma, max_iter=limit).fit(X, y)
            seconds[name][k] = min(seconds[name][k], time.perf_counter() - start)
            if np.isnan(gaps[name][k]):  # the same in every round
                primal, dual = objectives(models[name])
                gaps[name][k] = (primal - dual) / primal

# %% Results.
for name, model in models.items():
    primal, dual = objectives(model)
    print(
        f"{name:22s} {int(model.n_iter_[0]):6d} iterations, "
        f"{len(model.support_)} support vectors, dual objective {dual:.5f}, gap {primal - dual:.1e}"
    )
    if not -1e-9 * primal <= primal - dual <= 1e-2 * primal:
        raise SystemExit(f"{name}: wrong duality gap, primal {primal}, dual {dual}")
mercer_seconds, libsvm_seconds = (seconds[name][-1] for name in classes)
print(f"mercer is {libsvm_seconds / mercer_seconds:.1f} times as fast")
print(f"gap in mercer's certificate: {models['mercer'].report_.certificate['gap']:.1e}")

# %% Plot.
figure, ax = plt.subplots(figsize=(7.6, 4.8), layout="constrained")
for name, colour, marker in zip(classes, ("#0072B2", "#D55E00"), "os", strict=True):
    relative = seconds[name] / libsvm_seconds
    ax.loglog(relative, gaps[name], f"{marker}-", color=colour, label=name)
    ax.plot(relative[-1], gaps[name][-1], "*", color=colour, markersize=16)
ax.plot([], [], "*", color="0.3", markersize=12, label="converged to tol")
ax.set(xlabel="time of a fit / time of LIBSVM to tol", ylabel="(primal − dual) / primal")
ticks = [0.05, 0.1, 0.2, 0.5, 1.0]
ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
ax.minorticks_off()
ax.set_title(f"Duality gap, n = {n}, C = {C:g}")
ax.legend(frameon=False, loc="lower left")
ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svm_gap.png", dpi=130)
print("figure: out/svm_gap.png")
