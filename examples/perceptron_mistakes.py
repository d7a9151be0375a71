"""Mistakes of the kernel perceptron: in repeated passes, and on a data stream with a budget.

A perceptron adds each misclassified point to f.  Novikoff's theorem bounds the total number of
mistakes in all passes by (R / rho)^2, if all points have |x| <= R and a hyperplane separates the
classes with distance rho from every point.  What to look for:

* Left: points of the unit sphere at a distance of at least 0.03 from a plane.  The mistakes per
  pass decrease to 0, and their sum stays below the bound (dashed).
* Right: a stream of overlapping classes, in which each point is seen once.  The last f jumps with
  every wrong label, and without a budget its number of points grows without bound.  A budget of 50
  points is as good, and the average of all f is stable and much better.

The figure is saved as ``out/perceptron_mistakes.png``.
"""

# %% Points on a sphere that are separated by a plane.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelPerceptron

rng, rho = np.random.default_rng(0), 0.03
X = rng.normal(size=(1000, 10))
X /= np.linalg.norm(X, axis=1)[:, None]
X = X[np.abs(X[:, 0]) >= rho]
y = X[:, 0] > 0
model = KernelPerceptron(kernel="linear", fit_intercept=False, tol=None).fit(X, y)
total, bound = np.cumsum(model.mistakes_), 1 / rho**2
print(f"{total[-1]:.0f} mistakes in {model.n_iter_} passes; the bound is {bound:.0f}")

# %% A stream of 20 000 points, of which one tenth have a wrong label.


def sample(n):
    """Return n points and their labels."""
    X = rng.normal(size=(n, 5))
    y = np.hypot(X[:, 0], X[:, 1]) > 1.2
    return X, y ^ (rng.random(n) < 0.1)


models = {
    "no budget": KernelPerceptron(gamma=0.3),
    "budget 50": KernelPerceptron(gamma=0.3, budget=50),
    "budget 50, average": KernelPerceptron(average=True, gamma=0.3, budget=50),
}
test_data = sample(3000)
errors: dict[str, list[float]] = {name: [] for name in models}
batch_size, n_batches = 500, 40
for _ in range(n_batches):
    batch = sample(batch_size)
    for name, perceptron in models.items():
        perceptron.partial_fit(*batch, classes=[False, True])
        errors[name].append(1.0 - perceptron.score(*test_data))
for name, perceptron in models.items():
    print(f"{name}: {len(perceptron.X_fit_)} points, test error {errors[name][-1]:.1%}")

# %% Plot.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
passes = np.arange(1, model.n_iter_ + 1)
left.bar(passes, model.mistakes_, color="#0072B2", label="mistakes per pass")
left.plot(passes, total, "o-", color="#D55E00", label="cumulative mistakes")
left.axhline(bound, color="0.3", linestyle="--", label="Novikoff's bound")
left.set_yscale("symlog", linthresh=1.0)
left.set(xlabel="pass", ylabel="mistakes", title="Points separated by a plane", ylim=(0, 3e4))
left.legend(frameon=False, loc="upper right")
for color, (name, perceptron) in zip(("0.6", "#0072B2", "#D55E00"), models.items(), strict=True):
    label = f"{name}: {len(perceptron.X_fit_)} points"
    right.plot(batch_size * np.arange(1, n_batches + 1), errors[name], color=color, label=label)
right.axhline(0.1, color="0.3", linestyle="--", label="fraction of wrong labels")
right.set(
    xlabel="points seen (each once)",
    ylabel="test error",
    title="A stream of overlapping classes",
    ylim=(0, 0.8),
)
right.legend(frameon=False, loc="upper right")
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "perceptron_mistakes.png", dpi=120)
