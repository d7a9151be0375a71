"""The kernel 2^|A ∩ B| counts common subsets, so that a linear model sees interactions.

Every set of items has one feature for each possible subset: 1 if the set contains all items of the
subset, otherwise 0.  With 10 items these are 1024 features.  Their inner product is the number of
common subsets, k(A, B) = 2^|A ∩ B|, which needs only the size of the intersection.  Here the class
of a basket depends on a combination of items: it contains either bread or cheese, but not both.
What to look for:

* Left: the kernel |A ∩ B| has one feature for each item.  No sum of item weights can express
  "either, but not both": it is right in at most three of the four cases (grey line at 75 %).
* The kernel 2^|A ∩ B| also has a feature for each pair of items, and learns the rule.
* Right: kernel ridge regression with ±1 as targets, written as a sum over subsets.  Bread and
  cheese have positive weights, and the pair has a large negative one.

The figure is saved as ``out/common_subsets.png``.
"""

# %% Data: random baskets, each a Python set.
from itertools import combinations
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, KernelRidge
from mercer.kernels import Intersection, Subsets

names = ["bread", "cheese", "milk", "tea", "rice", "beans", "oil", "salt", "apples", "nuts"]
items = np.array(names)
rng = np.random.default_rng(0)
baskets = [set(items[rng.random(len(items)) < 0.5]) for _ in range(1200)]
y = np.array([len(basket & {"bread", "cheese"}) == 1 for basket in baskets])

# %% The kernel equals the inner product of 1024 explicit features.
subsets = [frozenset(s) for m in range(len(items) + 1) for s in combinations(items, m)]
explicit = np.array([[s <= basket for s in subsets] for basket in baskets[:300]], dtype=float)
K = Subsets()(baskets[:300], baskets[:300])
print(f"{explicit.shape[1]} features, largest difference {np.abs(explicit @ explicit.T - K).max()}")

# %% Accuracy on 600 other baskets.
sizes = (25, 50, 100, 200, 400, 600)
kernels = {"|A ∩ B|": Intersection(), "2^|A ∩ B|": Subsets()}
accuracy = {name: [] for name in kernels}
for name, kernel in kernels.items():
    for n in sizes:
        model = SVC(C=1.0, kernel=kernel).fit(baskets[:n], y[:n])
        accuracy[name].append(100 * model.score(baskets[600:], y[600:]))
    percents = ", ".join(f"{value:.0f}" for value in accuracy[name])
    print(f"{name:10s} accuracy (%) with {sizes} baskets: {percents}")

# %% The weight of a subset is the sum of the coefficients of all baskets that contain it.
model = KernelRidge(alpha=1.0, kernel=Subsets()).fit(baskets[:300], np.where(y[:300], 1.0, -1.0))
weights = explicit.T @ model.dual_coef_
largest = np.argsort(-np.abs(weights))[:8]

# %% Plot.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.2), layout="constrained")
for (name, values), colour, mark in zip(
    accuracy.items(), ("#D55E00", "#0072B2"), ("s--", "o-"), strict=True
):
    left.plot(sizes, values, mark, color=colour, label=f"k(A, B) = {name}")
left.axhline(75, color="0.6", linewidth=1)
left.set(title="Accuracy on 600 new baskets", xlabel="training baskets", ylabel="accuracy (%)")
left.set_ylim(30, 103)
left.legend(frameon=False, loc="lower right")
names = [" + ".join(sorted(subsets[i])) or "(empty set)" for i in largest]
colours = np.where(weights[largest] > 0, "#0072B2", "#D55E00")
right.barh(names, weights[largest], color=colours)
right.axvline(0, color="black", linewidth=0.8)
right.invert_yaxis()
right.set(title="The eight largest of 1024 weights", xlabel="weight of the subset")
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "common_subsets.png", dpi=130)
print("figure: out/common_subsets.png")
