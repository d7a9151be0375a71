"""The duality gap of a support vector machine against time: in blocks, and by LIBSVM.

The dual objective rises, the primal one falls, and the distance between them bounds what is still
missing: a certificate that needs no second solver.  Both machines are cut off after more and more
steps (`max_iter`), and the gap of what they have by then is computed by one and the same function,
in float64.  One should see:

* both gaps fall to the same level: that of `tol` = 1e-3;
* LIBSVM updates all points after every pair it moves, and its gap falls evenly; mercer moves many
  pairs within a block before it reads rows of K, and is done earlier, the more so the larger n is;
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

n, C, gamma = 6000, 10.0, 0.1
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


def curve(machine, steps):
    """Return seconds and relative gaps of fits that are cut off, and the one that is not."""
    found = []
    for limit in [*steps, -1]:
        start = time.perf_counter()
        model = machine(C=C, gamma=gamma, max_iter=int(limit)).fit(X, y)
        seconds = time.perf_counter() - start
        primal, dual = objectives(model)
        found.append((seconds, (primal - dual) / primal))
    seconds, gaps = np.array(found).T
    # fewer steps take no longer: where they seem to, the machine had something else to do
    return (np.minimum.accumulate(seconds[::-1])[::-1], gaps), model


warnings.simplefilter("ignore", ConvergenceWarning)  # cut off on purpose
mercer.SVC().fit(X[:100], y[:100])  # compiles
steps = np.unique(np.geomspace(500, 20_000, 7).astype(int))
names = {"mercer": mercer.SVC, "LIBSVM (scikit-learn)": sklearn.svm.SVC}
curves, models = {}, {}
for name, machine in names.items():
    curves[name], models[name] = curve(machine, steps)

# %% The numbers.
for name, model in models.items():
    primal, dual = objectives(model)
    seconds, gaps = curves[name]
    print(
        f"{name:22s} {seconds[-1]:6.2f} s, {int(model.n_iter_[0]):6d} steps, "
        f"{len(model.support_)} support vectors, dual objective {dual:.5f}, gap {primal - dual:.1e}"
    )
    if not -1e-9 * primal <= primal - dual <= 1e-2 * primal:
        raise SystemExit(f"{name}: the primal is {primal}, the dual {dual}")
ours, theirs = (curves[name][0][-1] for name in names)
print(f"{theirs / ours:.1f} times faster")
print(f"mercer's own certificate: gap {models['mercer'].report_.certificate['gap']:.1e}")

# %% The picture.
figure, ax = plt.subplots(figsize=(7.6, 4.8), layout="constrained")
for (name, (seconds, gaps)), colour, marker in zip(
    curves.items(), ("#0072B2", "#D55E00"), "os", strict=True
):
    ax.loglog(seconds, gaps, f"{marker}-", color=colour, label=name)
    ax.plot(seconds[-1], gaps[-1], "*", color=colour, markersize=16)
ax.plot([], [], "*", color="0.3", markersize=12, label="converged to tol")
ax.set(
    xlabel="seconds", ylabel="(primal − dual) / primal", title=f"duality gap, n = {n}, C = {C:g}"
)
ax.legend(frameon=False, loc="lower left")
ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svm_gap.png", dpi=130)
print("picture: out/svm_gap.png")
