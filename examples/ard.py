"""Automatic relevance determination: one length scale for each column.

Friedman's function depends on five of ten columns: 10 sin(π x₀ x₁) + 20 (x₂ − ½)² + 10 x₃ + 5 x₄.
`tune` optimises all length scales and the ridge parameter together, with the gradient of the
leave-one-out error.  What to look for:

* The columns on which y depends have short length scales (longer ones where f is nearly linear).
  The five noise columns have the longest length scales, most of them by orders of magnitude.
* The test error is well below that of a single length scale for all columns.  The right panel shows
  how the leave-one-out error decreases during the search.

The figure is saved as ``out/ard.png``.
"""

# %% Data: five of the ten columns are noise.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from mercer import KernelRidge, tune
from mercer.kernels import RBF

X, y = make_friedman1(250, n_features=10, noise=1.0, random_state=0)
X_new, y_new = make_friedman1(2000, n_features=10, noise=0.0, random_state=1)
y, y_new = (y - y.mean()) / y.std(), (y_new - y.mean()) / y.std()

# %% Tune a single length scale, and one length scale per column.
results = {
    "one length scale": tune(KernelRidge(kernel=RBF(1.0), fit_intercept=True), X, y),
    "one per column": tune(KernelRidge(kernel=RBF([1.0] * 10), fit_intercept=True), X, y),
}
errors = {}
for name, result in results.items():
    errors[name] = np.mean((result.estimator.fit(X, y).predict(X_new) - y_new) ** 2)
    print(f"{name}: leave-one-out error {result.value:.4f}, test error {errors[name]:.4f}")
    print(result)

# %% Plot the relevance of the columns, and the leave-one-out error during the search.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
scales = np.array(results["one per column"].estimator.kernel.length_scale)
shared = results["one length scale"].estimator.kernel.length_scale
left.bar(range(5), 1.0 / scales[:5], color="#0072B2", label="y depends on this column")
left.bar(range(5, 10), 1.0 / scales[5:], color="#D55E00", hatch="//", label="noise column")
left.axhline(1.0 / shared, color="k", linewidth=1)
left.text(9.5, 1.25 / shared, "model with one length scale", ha="right")
left.set(title="Relevance of ten columns, five of them noise", xlabel="column")
left.set(ylabel="1 / length scale", yscale="log", ylim=(5e-6, 5.0))
left.set_xticks(range(10))
left.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.6))
for (name, result), color in zip(results.items(), ("k", "#0072B2"), strict=True):
    values = np.minimum.accumulate([value for value, _ in result.history])
    right.plot(
        range(1, len(values) + 1),
        values,
        color=color,
        label=f"{name}: test error {errors[name]:.3f}",
    )
right.set(
    title="Leave-one-out error", xlabel="evaluations", ylabel="mean squared error", yscale="log"
)
right.legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "ard.png", dpi=150)
print("figure: out/ard.png")
