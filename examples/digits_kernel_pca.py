"""Kernel PCA of handwritten digits: fit, read the summary, draw the map.

Run it with ``python examples/digits_kernel_pca.py``.  It writes ``out/digits_kernel_pca.png``;
``make demo`` does the same from the shell.
"""

# %% The data: 1797 digits of 8 x 8 pixels, which come with scikit-learn.
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from mercer import KernelPCA

X, digit = load_digits(return_X_y=True)

# %% The model: an RBF kernel whose width follows the spread of the data.
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
    print(f"  memory     {8 * len(X) ** 2 / 2**20:.1f} MiB for the kernel matrix, once; ", end="")
    print(f"peak of the process {peak / 2**20:.0f} MiB")
except ImportError:  # not a POSIX system
    pass

# %% The picture: where the digits lie, and how much each component explains.
import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

figure, (plane, spectrum) = plt.subplots(
    1, 2, figsize=(12.8, 7.2), width_ratios=[2.3, 1], layout="constrained"
)
colours = plt.get_cmap("tab10").colors
for d in range(10):
    members = scores[digit == d]
    look = {"marker": f"${d}$", "color": colours[d], "alpha": 0.7, "linewidths": 0.2}
    plane.scatter(*members[:, :2].T, s=30, **look)  # each point is its digit: colours are not all
    centre = np.median(members[:, :2], axis=0)
    plane.annotate(
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
plane.set_xlabel(f"component 1  ({ratio[0]:.1%} of the variance)", fontsize=13)
plane.set_ylabel(f"component 2  ({ratio[1]:.1%})", fontsize=13)
plane.set_title("Kernel PCA of 1797 handwritten digits, RBF kernel", fontsize=16, loc="left")

places = np.arange(1, len(ratio) + 1)
spectrum.bar(places, 100 * ratio, color="#4878a8", label="each component")
spectrum.plot(places, 100 * np.cumsum(ratio), "o-", color="#c44e52", label="all up to it")
spectrum.set_xticks(places)
spectrum.set_xlabel("component", fontsize=13)
spectrum.set_ylabel("explained variance (%)", fontsize=13)
spectrum.set_title("Share of the variance", fontsize=13, loc="left")
spectrum.legend(frameon=False, fontsize=12)
for axes in (plane, spectrum):
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=11)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "digits_kernel_pca.png", dpi=150)
print(f"  picture    {(out / 'digits_kernel_pca.png').relative_to(out.parent)}")
