"""The duality gap of a support vector machine against time: in blocks, and by LIBSVM.

The dual objective rises, the primal one falls, and the distance between them bounds what is still
missing: a certificate that needs no second solver.  Both machines are cut off after more and more
steps (`max_iter`), and the gap of what they have by then is computed by one and the same function,
in float64.  Each point of the picture is a fit of its own: its time is the least of three, taken in
three rounds over all fits, and nothing is done to it.  One should see:

* both gaps fall to the same level: that of `tol` = 1e-3;
* LIBSVM updates all points after every pair it moves; mercer moves many pairs within a block before
  it reads rows of K, and is done earlier, the more so the larger n is;
* the last lines: the same support vectors but for a few, the same objective to many digits.

It writes ``out/svm_gap.png``.
"""

# %% Overlapping classes in ten dimensions.
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


# %% The gap, from the coefficients alone.
def objectives(model):
    """Return the primal and the dual objective of f = sum_i a_i k(x_i, .) + b."""
    a, S = model.dual_coef_[0], model.support_
    f = rbf_kernel(X, X[S], gamma=gamma) @ a
    kinks = np.sort(y - f)  # b is free: the best one is where the losses of both sides balance
    b = kinks[min(np.count_nonzero(y > 0), n - 1)]
    half = 0.5 * a @ f[S]
    return half + C * np.maximum(0.0, 1.0 - y * (f + b)).sum(), np.abs(a).sum() - half


# %% The fits: mercer has more steps to make, as it counts those within blocks.
warnings.simplefilter("ignore", ConvergenceWarning)  # cut off on purpose
mercer.SVC().fit(X[:100], y[:100])  # compiles
machines = {"mercer": mercer.SVC, "LIBSVM (scikit-learn)": sklearn.svm.SVC}
limits = {
    "mercer": [500, 1500, 4000, 9000, -1],
    "LIBSVM (scikit-learn)": [500, 2000, 6000, -1],
}
seconds = {name: np.full(len(limits[name]), np.inf) for name in machines}
gaps = {name: np.full(len(limits[name]), np.nan) for name in machines}
models = {}
for _ in range(3):
    for name, machine in machines.items():
        for k, limit in enumerate(limits[name]):
            start = time.perf_counter()
            models[name] = machine(C=C, gamma=gamma, max_iter=limit).fit(X, y)
            seconds[name][k] = min(seconds[name][k], time.perf_counter() - start)
            if np.isnan(gaps[name][k]):  # the same in every round
                primal, dual = objectives(models[name])
                gaps[name][k] = (primal - dual) / primal

# %% The numbers.
for name, model in models.items():
    primal, dual = objectives(model)
    print(
        f"{name:22s} {seconds[name][-1]:6.2f} s, {int(model.n_iter_[0]):6d} steps, "
        f"{len(model.support_)} support vectors, dual objective {dual:.5f}, gap {primal - dual:.1e}"
    )
    if not -1e-9 * primal <= primal - dual <= 1e-2 * primal:
        raise SystemExit(f"{name}: the primal is {primal}, the dual {dual}")
ours, theirs = (seconds[name][-1] for name in machines)
print(f"{theirs / ours:.1f} times faster")
print(f"mercer's own certificate: gap {models['mercer'].report_.certificate['gap']:.1e}")

# %% The picture.
figure, ax = plt.subplots(figsize=(7.6, 4.8), layout="constrained")
for name, colour, marker in zip(machines, ("#0072B2", "#D55E00"), "os", strict=True):
    ax.loglog(seconds[name], gaps[name], f"{marker}-", color=colour, label=name)
    ax.plot(seconds[name][-1], gaps[name][-1], "*", color=colour, markersize=16)
ax.plot([], [], "*", color="0.3", markersize=12, label="converged to tol")
ax.set(xlabel="seconds of a fit, the least of three", ylabel="(primal − dual) / primal")
ax.set_title(f"duality gap, n = {n}, C = {C:g}")
ax.legend(frameon=False, loc="lower left")
ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svm_gap.png", dpi=130)
print("picture: out/svm_gap.png")
