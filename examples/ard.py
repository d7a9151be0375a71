"""What a length scale for each column says: relevance, found by leave-one-out.

Friedman's function depends on five of ten columns: 10 sin(π x₀ x₁) + 20 (x₂ − ½)² + 10 x₃ + 5 x₄.
`tune` searches for all length scales and the ridge at once, by gradients.  One should see:

* short length scales for the columns that matter, longer ones where f is nearly linear, and the
  longest, by orders of magnitude, for the five that do not matter;
* a test error well below that of one length scale for all, and the leave-one-out error on its way
  down.

It writes ``out/ard.png``.
"""

# %% Data with five columns of noise.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from mercer import KernelRidge, tune
from mercer.kernels import RBF

X, y = make_friedman1(250, n_features=10, noise=1.0, random_state=0)
new, truth = make_friedman1(2000, n_features=10, noise=0.0, random_state=1)
y, truth = (y - y.mean()) / y.std(), (truth - y.mean()) / y.std()

# %% One length scale, and one for each column.
found = {
    "one length scale": tune(KernelRidge(kernel=RBF(1.0), fit_intercept=True), X, y),
    "one for each column": tune(KernelRidge(kernel=RBF([1.0] * 10), fit_intercept=True), X, y),
}
errors = {}
for name, result in found.items():
    errors[name] = np.mean((result.estimator.fit(X, y).predict(new) - truth) ** 2)
    print(f"{name}: leave-one-out {result.value:.4f}, test {errors[name]:.4f}")
    print(result)

# %% The picture.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
scales = np.array(found["one for each column"].estimator.kernel.length_scale)
shared = found["one length scale"].estimator.kernel.length_scale
left.bar(range(5), 1.0 / scales[:5], color="#0072B2", label="y depends on it")
left.bar(range(5, 10), 1.0 / scales[5:], color="#D55E00", hatch="//", label="noise")
left.axhline(1.0 / shared, color="k", linewidth=1)
left.text(5.0, 1.1 / shared, "one for all")
left.set(title="relevance of ten columns, five of them noise", xlabel="column")
left.set(ylabel="1 / length scale", yscale="log", ylim=(5e-6, 5.0))
left.set_xticks(range(10))
left.legend(frameon=False)
for (name, result), color in zip(found.items(), ("k", "#0072B2"), strict=True):
    values = np.minimum.accumulate([value for value, _ in result.history])
    right.plot(
        range(1, len(values) + 1), values, color=color, label=f"{name}: test {errors[name]:.3f}"
    )
right.set(title="leave-one-out", xlabel="evaluations", ylabel="mean squared error", yscale="log")
right.legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "ard.png", dpi=150)
print("picture: out/ard.png")
