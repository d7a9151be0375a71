"""Kernel CCA of two views: the left and the right half of a digit.

Canonical correlation analysis looks for functions f of one view and g of the other whose values are
highly correlated.  Linear functions find little in common between the two halves; functions of an
RKHS find more.  All results are for digits that were not used for fitting.  What to look for:

* Left: the correlations of the first ten pairs are much larger with RBF kernels.
* Middle: the first pair, f of left halves and g of right halves, is a narrow band with RBF kernels.
* Right: for some left halves, the right half with the closest scores among 897.  With RBF kernels
  it is usually the same digit, with linear functions less often.  The first row shows the true
  right half.

The figure is saved as ``out/two_views.png``.
"""

# %% Data: left and right halves of images.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import KernelCCA

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
images, labels = digits.images[order] / 16, digits.target[order]
left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
train, test = slice(0, 900), slice(900, None)

# %% Fit with two kernels, and find the closest right half for each left half.
models = {
    "linear": KernelCCA(10, kernel="linear", kernel_y="linear", alpha=1e-3),
    "RBF": KernelCCA(10, kernel="rbf", kernel_y="rbf", alpha=1e-3),
}
scores, nearest = {}, {}
for name, model in models.items():
    model.fit(left[train], right[train])
    S, T = scores[name] = model.transform(left[test], right[test])
    rho = model.canonical_correlations_  # weight each score by its correlation
    A, B = rho * S, rho * T
    cosines = (A @ B.T) / np.linalg.norm(B, axis=1)
    nearest[name] = cosines.argmax(axis=1)
    same_digit = np.mean(labels[test][nearest[name]] == labels[test])
    print(
        f"{name}: mean correlation on test digits {model.score(left[test], right[test]):.2f}; "
        f"the closest right half is the same digit in {same_digit:.0%} of cases"
    )

# %% Plot.
figure = plt.figure(figsize=(15, 4.6), layout="constrained")
bars, scatters, halves = figure.subfigures(1, 3, width_ratios=[1, 1.6, 1.4])
axis = bars.subplots()
colours = ("#D55E00", "#0072B2")
for (name, model), style, colour in zip(models.items(), ("s--", "o-"), colours, strict=True):
    axis.plot(
        range(1, 11), model.correlations(left[test], right[test]), style, color=colour, label=name
    )
axis.set(
    xlabel="pair",
    ylabel="correlation of f(left), g(right)",
    ylim=(0, 1),
    title="Ten pairs, test digits",
)
axis.legend(frameon=False, loc="lower left")
# The palette of Okabe and Ito without yellow, and four darker colours.
digit_colours = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
digit_colours += ("#8C2D6A", "#8A8D2B", "#3B3AA0", "#7A4B2A")
for axis, name in zip(scatters.subplots(1, 2), models, strict=True):
    S, T = scores[name]
    for digit, colour in enumerate(digit_colours):
        members = labels[test] == digit
        axis.scatter(
            S[members, 0], T[members, 0], color=colour, marker=f"${digit}$", s=26, linewidths=0.2
        )
    axis.set(title=f"First pair, {name}", xlabel="f(left)", ylabel="g(right)")
shown = np.arange(5)
rows = {"true": shown, **{name: indices[shown] for name, indices in nearest.items()}}
grid = halves.subplots(3, len(shown))
for line, (name, indices) in zip(grid, rows.items(), strict=True):
    for axis, i, j in zip(line, shown, indices, strict=True):
        combined = np.hstack([images[test][i, :, :4], np.full((8, 1), 0.5), images[test][j, :, 4:]])
        axis.imshow(combined, cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
halves.suptitle("Left half with the closest right half")
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "two_views.png", dpi=130)
