"""Two views of a digit: its left half and its right half.  What do they have in common?

Canonical correlation analysis looks for functions f of one view and g of the other whose values
are correlated.  Lines see little of one half in the other; functions of an RKHS see more.
Everything is shown on digits that were not learned from.  One should see:

* left: correlations of the first ten pairs, with kernels well above those of lines;
* middle: the first pair, f of left halves against g of right halves: a narrow band with kernels;
* right: for some left halves, the right half whose scores are nearest, among 897: mostly of the
  same digit with kernels, less often with lines.  The true right half is in the first row.

It writes ``out/two_views.png``.
"""

# %% The halves.
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
seen, new = slice(0, 900), slice(900, None)

# %% The same model with two kernels, and for each left half the nearest right one.
models = {
    "lines": KernelCCA(10, kernel="linear", kernel_y="linear", alpha=1e-3),
    "kernels": KernelCCA(10, kernel="rbf", kernel_y="rbf", alpha=1e-3),
}
scores, nearest = {}, {}
for name, model in models.items():
    model.fit(left[seen], right[seen])
    S, T = scores[name] = model.transform(left[new], right[new])
    rho = model.canonical_correlations_  # what a score says counts as much as it is worth
    A, B = rho * S, rho * T
    cosines = (A @ B.T) / np.linalg.norm(B, axis=1)
    nearest[name] = cosines.argmax(axis=1)
    same = np.mean(labels[new][nearest[name]] == labels[new])
    print(
        f"{name}: mean correlation of new digits {model.score(left[new], right[new]):.2f}; "
        f"the nearest right half is of the same digit in {same:.0%}"
    )

# %% The picture.
figure = plt.figure(figsize=(15, 4.6), layout="constrained")
bars, scatters, halves = figure.subfigures(1, 3, width_ratios=[1, 1.6, 1.4])
axis = bars.subplots()
colours = ("#D55E00", "#0072B2")
for (name, model), look, colour in zip(models.items(), ("s--", "o-"), colours, strict=True):
    axis.plot(
        range(1, 11), model.correlations(left[new], right[new]), look, color=colour, label=name
    )
axis.set(
    xlabel="pair",
    ylabel="correlation of f(left), g(right)",
    ylim=(0, 1),
    title="ten pairs, new digits",
)
axis.legend(loc="lower left")
for axis, name in zip(scatters.subplots(1, 2), models, strict=True):
    S, T = scores[name]
    for digit, colour in enumerate(plt.colormaps["tab10"].colors):
        of = labels[new] == digit
        axis.scatter(S[of, 0], T[of, 0], color=colour, marker=f"${digit}$", s=26, linewidths=0.2)
    axis.set(title=f"first pair, {name}", xlabel="f(left)", ylabel="g(right)")
shown = np.arange(5)
rows = {"true": shown, **{name: found[shown] for name, found in nearest.items()}}
grid = halves.subplots(3, len(shown))
for line, (name, found) in zip(grid, rows.items(), strict=True):
    for axis, i, j in zip(line, shown, found, strict=True):
        both = np.hstack([images[new][i, :, :4], np.full((8, 1), 0.5), images[new][j, :, 4:]])
        axis.imshow(both, cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
halves.suptitle("left half, and the nearest right half")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/two_views.png", dpi=100)
