"""The margin of a support vector machine: what C does to it, and the same machine in a few points.

A support vector machine minimises |f|²/2 + C Σ max(0, 1 − yᵢ f(xᵢ)).  Its margin is the strip
−1 < f < 1; points outside of it do not matter.  One should see, from left to right:

* C small: a wide margin and a plain boundary; many points lie in it, all held at their bound;
* C in between: the boundary follows the moons;
* C large: hardly any error is accepted, so that the boundary bends around single points;
* the machine in the middle, compressed: all its support vectors replaced by a dozen points that
  nobody observed, and nearly the same lines.

It writes ``out/svm_margin.png``.
"""

# %% Two noisy moons, and new points to test with.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, compress
from mercer.datasets import moons
from mercer.plotting import contours, margin

X, y = moons(200, noise=0.25, random_state=0)
X_test, y_test = moons(10_000, noise=0.25, random_state=1)

# %% Three values of C, each search beginning where the last one ended.
models = SVC(gamma=1.0).path(X, y, [0.03, 1.0, 1000.0])
print("       C   free  at bound   margin   training errors   new points   relative gap")
for model in models:
    facts = model.report_.certificate
    width = 2.0 / model.expansion_.norm()[0]
    wrong, new = 1.0 - model.score(X, y), 1.0 - model.score(X_test, y_test)
    print(
        f"{model.C:8g} {facts['n_free']:6d} {facts['n_bound']:9d} {width:8.3f} {wrong:17.1%} "
        f"{new:12.1%}   {facts['gap'] / facts['primal']:.0e}"
    )

# %% The same function in a dozen points.
middle = models[1]
small = compress(middle, 12)
before, after = (model.decision_function(X_test) for model in (middle, small))
print(small.reduction_)
print(f"new points that change sides: {np.mean(np.sign(before) != np.sign(after)):.2%}")

# %% The picture.
figure, panels = plt.subplots(2, 2, figsize=(11.5, 9.4), layout="constrained")
for ax, model in zip(panels.flat, models, strict=False):
    margin(model, X, y, ax=ax)
    ax.set_title(f"C = {model.C:g}")
last = panels[1, 1]
contours(small.decision_function, X, ax=last, n_levels=5)
last.collections[-1].remove()  # the sample: here the points are those of the expansion
last.scatter(*small.expansion_.points.T, marker="*", s=150, color="black", label="points of f")
last.set_title(f"C = 1, compressed from {len(middle.support_)} to 12 points")
last.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
figure.suptitle("Support vector machines on two moons", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svm_margin.png", dpi=110)
print("picture: out/svm_margin.png")
