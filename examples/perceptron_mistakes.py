"""The perceptron's mistakes: pass by pass, and along a stream on a budget.

A perceptron adds each point on the wrong side to f.  Novikoff's theorem bounds how many there can
be, in all passes together, by (R / rho)^2, if all points have |x| <= R and a plane keeps the
distance rho from them.  One should see:

* on the left, points of the unit sphere at a distance of 0.03 or more from a plane: the mistakes
  of a pass fall to 0, and their sum stays below the bound (dashed);
* on the right, a stream of overlapping classes, each point seen once: the last f jumps with every
  wrong label, and without a budget its points grow without end; 50 points do as well, and the mean
  of all f is steady and much better.

It writes ``out/perceptron_mistakes.png``.
"""

# %% Points on a sphere, and the plane between them.
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

# %% A stream of 20 000 points, a tenth of them with the wrong label.


def draw(n):
    """Return points and labels."""
    X = rng.normal(size=(n, 5))
    y = np.hypot(X[:, 0], X[:, 1]) > 1.2
    return X, y ^ (rng.random(n) < 0.1)


kinds = {
    "no budget": KernelPerceptron(gamma=0.3),
    "budget 50": KernelPerceptron(gamma=0.3, budget=50),
    "budget 50, average": KernelPerceptron(average=True, gamma=0.3, budget=50),
}
new = draw(3000)
errors: dict[str, list[float]] = {name: [] for name in kinds}
step, parts = 500, 40
for _ in range(parts):
    seen = draw(step)
    for name, kind in kinds.items():
        kind.partial_fit(*seen, classes=[False, True])
        errors[name].append(1.0 - kind.score(*new))
for name, kind in kinds.items():
    print(f"{name}: {len(kind.X_fit_)} points, {errors[name][-1]:.1%} of new points wrong")

# %% The picture.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
passes = np.arange(1, model.n_iter_ + 1)
left.bar(passes, model.mistakes_, color="C0", label="mistakes in a pass")
left.plot(passes, total, "o-", color="C1", label="all mistakes so far")
left.axhline(bound, color="0.3", linestyle="--", label="Novikoff's bound")
left.set_yscale("symlog", linthresh=1.0)
left.set(xlabel="pass", ylabel="mistakes", title="points that a plane separates", ylim=(0, 3e4))
left.legend(loc="upper right")
for color, (name, kind) in zip(("0.5", "C0", "C3"), kinds.items(), strict=True):
    label = f"{name}: {len(kind.X_fit_)} points"
    right.plot(step * np.arange(1, parts + 1), errors[name], color=color, label=label)
right.axhline(0.1, color="0.3", linestyle="--", label="wrong labels among them")
right.set(
    xlabel="points seen, each once",
    ylabel="errors on new points",
    title="a stream of overlapping classes",
    ylim=(0, 0.8),
)
right.legend(loc="upper right")
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "perceptron_mistakes.png", dpi=120)
