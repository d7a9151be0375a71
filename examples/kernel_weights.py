"""Weights of kernels: six views of handwritten digits, and twenty kernels of noise.

Each view of a digit (Fourier coefficients, profiles, pixels, ...) has a Gaussian kernel; twenty
more see random numbers.  `MultipleKernel` learns from the labels what each is worth.  One should
see:

* equal weights give three quarters of the sum to noise, and cost accuracy on digits not seen;
* each noise kernel gets little by EasyMKL and by alignment, but there are twenty of them; ALIGNF
  gives all of them together next to nothing.

The views are not part of mercer: the file is ``multiview/mfeat_small.npz`` in the folder
MERCER_DATA, or in ``shared/data`` beside the repository.  Without it, parts of scikit-learn's
digits are the views.

It writes ``out/kernel_weights.png``.
"""

# %% Views, one after the other as columns.
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
    print("mfeat_small.npz was not found (MERCER_DATA names its folder)")
    images, y = load_digits(return_X_y=True)
    images, y = images[:500].reshape(-1, 8, 8), y[:500]
    views = {"top": images[:, :4], "bottom": images[:, 4:], "left": images[:, :, :4]}
    views |= {"rows": images.sum(2), "columns": images.sum(1), "middle": images[:, 2:6, 2:6]}
    views = {name: V.reshape(500, -1) for name, V in views.items()}
for i in range(20):
    views[f"noise {i}"] = np.random.default_rng(i).normal(size=(len(y), 5))
scaled = [(V - V.mean(0)) / np.maximum(V.std(0), 1e-9) for V in views.values()]
X, ends = np.hstack(scaled), np.cumsum([0, *(V.shape[1] for V in scaled)]).tolist()
kernels = [Select(RBF("median"), slice(a, b)) for a, b in pairwise(ends)]

# %% Weights by several methods, from half of the digits.
train = np.arange(len(y)) % 2 == 0
methods = ("average", "easymkl", "alignment", "alignf")
found, accuracy = {}, {}
for method in methods:
    kernel = MultipleKernel(kernels, method)
    found[method] = kernel.learn(X[train], y[train])
    model = SVC(kernel=kernel, C=10.0).fit(X[train], y[train])
    accuracy[method] = model.score(X[~train], y[~train])
    noise = found[method].weights[6:].sum()
    print(f"{method:<10} noise has {noise:.1%} of the weight; accuracy {accuracy[method]:.1%}")

# %% The picture.
figure, axes = plt.subplots(1, 4, figsize=(12.0, 5.4), sharey=True, layout="constrained")
names = [*views][:6]
for ax, method in zip(axes, methods, strict=True):
    weights = found[method].weights
    ax.barh(range(26), weights, color=["#0072B2"] * 6 + ["#D55E00"] * 20)
    ax.set(
        title=f"{method}\nalignment {found[method].alignment:.2f}, accuracy {accuracy[method]:.1%}",
        xlabel=f"weight; noise has {weights[6:].sum():.1%}",
    )
axes[0].set_yticks(range(26), names + ["noise"] * 20)
axes[0].invert_yaxis()

out = root / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "kernel_weights.png", dpi=150)
print("picture: out/kernel_weights.png")
