"""Learn the weights of kernels: six views of handwritten digits, and twenty noise kernels.

Each view of a digit (Fourier coefficients, profiles, pixels, ...) has a Gaussian kernel.  Twenty
more kernels are computed from random numbers.  `MultipleKernel` learns the weights from the labels.
What to look for:

* Equal weights give three quarters of the sum to noise, and the test accuracy is lower.
* EasyMKL and alignment give each noise kernel a small weight, but there are twenty of them.  ALIGNF
  gives almost no weight to all of them together.

The views are not part of mercer.  The file ``multiview/mfeat_small.npz`` is read from the folder
MERCER_DATA, or from ``shared/data`` next to the repository.  Without it, parts of scikit-learn's
digits are used as views.

The figure is saved as ``out/kernel_weights.png``.
"""

# %% Data: the columns of all views, side by side in one array.
import os
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import SVC, MultipleKernel
from mercer.kernels import RBF, Select

root = Path(__file__).resolve().parent.parent
folder = Path(os.environ.get("MERCER_DATA", root.parent / "shared" / "data"))
file = folder / "multiview" / "mfeat_small.npz"
if file.exists():
    with np.load(file) as data:
        y = data["y"]
        views = {
            name: data[name].astype(float) for name in ("fac", "fou", "kar", "mor", "pix", "zer")
        }
else:
    print("multiview/mfeat_small.npz was not found in MERCER_DATA: using scikit-learn's digits")
    images, y = load_digits(return_X_y=True)
    images, y = images[:500].reshape(-1, 8, 8), y[:500]
    views = {"top": images[:, :4], "bottom": images[:, 4:], "left": images[:, :, :4]}
    views |= {"rows": images.sum(2), "columns": images.sum(1), "middle": images[:, 2:6, 2:6]}
    views = {name: V.reshape(500, -1) for name, V in views.items()}
for i in range(20):
    views[f"noise {i}"] = np.random.default_rng(i).normal(size=(len(y), 5))
scaled = [(V - V.mean(0)) / np.maximum(V.std(0), 1e-9) for V in views.values()]
X, offsets = np.hstack(scaled), np.cumsum([0, *(V.shape[1] for V in scaled)]).tolist()
kernels = [Select(RBF("median"), slice(a, b)) for a, b in pairwise(offsets)]

# %% Learn weights by several methods, from half of the digits.
train = np.arange(len(y)) % 2 == 0
methods = ("average", "easymkl", "alignment", "alignf")
weights_by_method, accuracy = {}, {}
for method in methods:
    kernel = MultipleKernel(kernels, method)
    weights_by_method[method] = kernel.learn(X[train], y[train])
    model = SVC(kernel=kernel, C=10.0).fit(X[train], y[train])
    accuracy[method] = model.score(X[~train], y[~train])
    noise = weights_by_method[method].weights[6:].sum()
    print(f"{method:<10} weight of noise {noise:.1%}, test accuracy {accuracy[method]:.1%}")

# %% Plot the weights.
figure, axes = plt.subplots(1, 4, figsize=(12.0, 5.4), sharey=True, layout="constrained")
names = [*views][:6]
for ax, method in zip(axes, methods, strict=True):
    weights = weights_by_method[method].weights
    ax.barh(range(26), weights, color=["#0072B2"] * 6 + ["#D55E00"] * 20)
    ax.set(
        title=f"{method}\nalignment {weights_by_method[method].alignment:.2f}\n"
        f"accuracy {accuracy[method]:.1%}",
        xlabel=f"weight (noise: {weights[6:].sum():.1%})",
    )
axes[0].set_yticks(range(26), names + [f"noise {k}" for k in range(1, 21)])
axes[0].invert_yaxis()

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "kernel_weights.png", dpi=150)
print("figure: out/kernel_weights.png")
