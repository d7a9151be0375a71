"""Kernel PCA of handwritten digits: fit, read the summary, plot the scores.

Run it with ``python examples/digits_kernel_pca.py``.  The figure is saved as
``out/digits_kernel_pca.png``; ``make demo`` does the same from the shell.
"""

# %% Data: 1797 digits of 8 x 8 pixels, included in scikit-learn.
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from mercer import KernelPCA

X, digit = load_digits(return_X_y=True)

# %% Model: an RBF kernel whose width is derived from the variance of the data.
start = time.perf_counter()
model = KernelPCA(n_components=9, kernel="rbf", gamma="scale")
scores = model.fit_transform(X)
seconds = time.perf_counter() - start

print(model.summary())
print()
print(f"  whole fit  {seconds:.2f} s")
try:
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(
        f"  memory     {8 * len(X) ** 2 / 2**20:.1f} MiB for one copy of the kernel matrix; ",
        end="",
    )
    print(f"peak of the process {peak / 2**20:.0f} MiB")
except ImportError:  # not a POSIX system
    pass

# %% Plot the first two scores of all digits, and the variance that each component explains.
import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

figure, (left, right) = plt.subplots(
    1, 2, figsize=(12.8, 7.2), width_ratios=[2.3, 1], layout="constrained"
)
# The palette of Okabe and Ito without yellow, and four darker colours.
colours = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
colours += ("#8C2D6A", "#8A8D2B", "#3B3AA0", "#7A4B2A")
for d in range(10):
    members = scores[digit == d]
    style = {"marker": f"${d}$", "color": colours[d], "alpha": 0.7, "linewidths": 0.2}
    # Each point is drawn as its digit, so that the plot can be read without colours.
    left.scatter(*members[:, :2].T, s=30, **style)
    centre = np.median(members[:, :2], axis=0)
    left.annotate(
        str(d),
        centre,
        fontsize=20,
        fontweight="bold",
        ha="center",
        va="center",
        color=colours[d],
        bbox={"boxstyle": "circle,pad=0.18", "fc": "white", "ec": colours[d], "alpha": 0.9},
    )
ratio = model.explained_variance_ratio_
left.set_xlabel(f"component 1  ({ratio[0]:.1%} of the variance)", fontsize=13)
left.set_ylabel(f"component 2  ({ratio[1]:.1%})", fontsize=13)
left.set_title("Kernel PCA of 1797 handwritten digits, RBF kernel", fontsize=16, loc="left")

numbers = np.arange(1, len(ratio) + 1)
right.bar(numbers, 100 * ratio, color="#0072B2", label="each component")
right.plot(numbers, 100 * np.cumsum(ratio), "o-", color="#D55E00", label="cumulative")
right.set_xticks(numbers)
right.set_xlabel("component", fontsize=13)
right.set_ylabel("explained variance (%)", fontsize=13)
right.set_title("Explained variance", fontsize=13, loc="left")
right.legend(frameon=False, fontsize=12)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=11)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "digits_kernel_pca.png", dpi=150)
print(f"  figure     {(out / 'digits_kernel_pca.png').relative_to(out.parent)}")
