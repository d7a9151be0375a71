"""Is it a kernel?  A proof, and three witnesses against famous mistakes.

k is a Mercer kernel if sum_ij c_i c_j k(x_i, x_j) >= 0 for all points and coefficients.  What is
made by the closure rules is proved by a walk over the expression.  For a function, points are
looked for at which the sum is negative.  One should see:

* above, the tree of rules that proves an expression, with what else is known of each part;
* below, from left to right: the difference of two Gaussians, and the larger of two, each with a few
  points in the plane, in the colours of their c (where f = sum c k(x, .) has the other sign); and
  exp(-0.1 * edit distance), refuted by five words.

It writes ``out/is_it_a_kernel.png``.
"""

# %% A proof.
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


# %% Three mistakes.
def difference(X, Z):
    """A narrow Gaussian less half of a wide one."""
    return RBF(1.0)(X, Z) - 0.5 * RBF(2.0)(X, Z)


def larger(X, Z):
    """The larger of two Gaussians."""
    return np.maximum(RBF(0.5)(X, Z), 0.5 * RBF(3.0)(X, Z))


def edits(s, t):
    """How many letters must be inserted, deleted or replaced to make t of s."""
    row = range(len(t) + 1)
    for i, a in enumerate(s, 1):
        above, row = row, [i]
        for j, b in enumerate(t, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


plane = np.random.default_rng(0).normal(size=(20, 2))
mistakes = {
    "a difference": validity(difference, plane),
    "a maximum": validity(larger, plane),
    "exp(-0.1 edit distance)": validity(lambda s, t: np.exp(-0.1 * edits(s, t))),
}
for verdict in mistakes.values():
    print(verdict, end="\n\n")

# %% The picture.
figure, axes = plt.subplot_mosaic(
    [list("PPP"), list("ABC")],
    figsize=(13.0, 10.5),
    height_ratios=[1.35, 1.0],
    layout="constrained",
)
plotting.validity(proof, axes["P"])
for name, (title, verdict) in zip("ABC", mistakes.items(), strict=True):
    ax = plotting.validity(verdict, axes[name])
    ax.set_title(f"{title}\n{ax.get_title()}")
    if name != "C":
        ax.set(xlabel="x₁; at each point its c", ylabel="x₂")
for colour, meaning in (("#009E73", "a kernel"), ("#E69F00", "a kernel once it is centred")):
    axes["P"].plot([], [], "o", color=colour, markersize=9, label=meaning)
axes["P"].legend(loc="lower right", frameon=False, fontsize=12)
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "is_it_a_kernel.png", dpi=110)
