"""Is it a kernel?  One proof and three counterexamples.

k is a positive semidefinite kernel if sum_ij c_i c_j k(x_i, x_j) >= 0 for all points and
coefficients.  `validity` proves this for expressions that are built by closure rules.  For other
functions it searches for points and coefficients with a negative sum.  What to look for:

* Top: the tree of rules that proves an expression, with known properties of each part.
* Bottom, from left to right: counterexamples for the difference of two Gaussians, for the maximum
  of two Gaussians, and for exp(-0.1 * edit distance).  The first two are a few points in the plane,
  coloured by their coefficients c; there, f = sum c k(x, .) has the opposite sign.  The last one
  consists of five words.

The figure is saved as ``out/is_it_a_kernel.png``.
"""

# %% A proof by closure rules.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import plotting, validity
from mercer.kernels import RBF, Distance, Exp, Linear, Normalized, Periodic

kernel = 2.0 * RBF(0.5) * Periodic(2.0) + Exp(Distance(exponent=0.7)) + Normalized(Linear() + 1)
proof = kernel.validity()
print(proof, end="\n\n")


# %% Three functions that are not kernels.
def difference(X, Z):
    """Return a narrow Gaussian minus half of a wide one."""
    return RBF(1.0)(X, Z) - 0.5 * RBF(2.0)(X, Z)


def maximum(X, Z):
    """Return the maximum of two Gaussians."""
    return np.maximum(RBF(0.5)(X, Z), 0.5 * RBF(3.0)(X, Z))


def edit_distance(s, t):
    """Return the edit distance: how many letters to insert, delete or replace to turn s into t."""
    row = range(len(t) + 1)
    for i, a in enumerate(s, 1):
        above, row = row, [i]
        for j, b in enumerate(t, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


points = np.random.default_rng(0).normal(size=(20, 2))
not_kernels = {
    "difference of Gaussians": validity(difference, points),
    "maximum of Gaussians": validity(maximum, points),
    "exp(-0.1 edit distance)": validity(lambda s, t: np.exp(-0.1 * edit_distance(s, t))),
}
for result in not_kernels.values():
    print(result, end="\n\n")

# %% Plot the proof and the counterexamples.
figure, axes = plt.subplot_mosaic(
    [list("PPP"), list("ABC")],
    figsize=(13.0, 10.5),
    height_ratios=[1.35, 1.0],
    layout="constrained",
)
plotting.validity(proof, axes["P"])
for name, (title, result) in zip("ABC", not_kernels.items(), strict=True):
    ax = plotting.validity(result, axes[name])
    ax.set_title(f"{title}\n{ax.get_title()}")
    if name != "C":
        ax.set(xlabel="x₁ (the number at each point is its c)", ylabel="x₂")
for colour, meaning in (("#009E73", "a kernel"), ("#E69F00", "a kernel after centring")):
    axes["P"].plot([], [], "o", color=colour, markersize=9, label=meaning)
axes["P"].legend(loc="lower right", frameon=False, fontsize=12)
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "is_it_a_kernel.png", dpi=110)
