"""Small kernel models: reduced sets, learned vectors, and an approximate kernel.

A support vector machine stores its support vectors.  Three ways to a smaller model with m vectors:
compress the trained model, learn the vectors, or approximate the kernel by m features.  What to
look for:

* Left: test error against the number of vectors.  Learned vectors and reduced sets need a few.
* Middle and right: the decision function of the SVM with all support vectors, and of eight learned
  vectors (stars), which are not training points.

The figure is saved as ``out/learned_vectors.png``.
"""

# %% Data, and the machine with all its support vectors.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from mercer import SVC, Nystroem, SparseKernelClassifier, compress
from mercer.datasets import moons
from mercer.plotting import contours, margin

X, y = moons(400, noise=0.2, random_state=0)
X_test, y_test = moons(4000, noise=0.2, random_state=1)
machine = SVC(C=1.0, gamma=2.0).fit(X, y)
full_error = 1 - machine.score(X_test, y_test)
print(f"SVM with {len(machine.support_)} support vectors: test error {full_error:.1%}")

# %% Three ways to m vectors.
sizes = (2, 4, 8, 16, 32)
errors = {"compressed SVM": [], "learned vectors": [], "Nyström features": []}
for m in sizes:
    learned = SparseKernelClassifier(n_vectors=m, gamma=2.0, random_state=0).fit(X, y)
    features = make_pipeline(
        Nystroem(gamma=2.0, n_components=m, random_state=0), LogisticRegression()
    ).fit(X, y)
    models = (compress(machine, m, random_state=0), learned, features)
    for name, model in zip(errors, models, strict=True):
        errors[name].append(1 - model.score(X_test, y_test))
    print(f"{m:3d} vectors: " + ", ".join(f"{k} {v[-1]:.1%}" for k, v in errors.items()))

# %% Plot.
figure, axes = plt.subplots(1, 3, figsize=(13.0, 4.4), layout="constrained")
for (name, values), colour in zip(errors.items(), ("#0072B2", "#D55E00", "#009E73"), strict=True):
    axes[0].plot(sizes, 100 * np.array(values), "o-", color=colour, label=name)
axes[0].axhline(100 * full_error, color="black", linestyle="--", label="all support vectors")
axes[0].set(title="Test error", xlabel="number of vectors", ylabel="error (%)", xscale="log")
axes[0].set_xticks(sizes, [str(m) for m in sizes])
axes[0].minorticks_off()
axes[0].legend(frameon=False)
margin(machine, X, y, ax=axes[1]).get_legend().remove()
axes[1].set_title(f"SVM, {len(machine.support_)} support vectors")
small = SparseKernelClassifier(n_vectors=8, gamma=2.0, random_state=0).fit(X, y)
contours(small.decision_function, X, ax=axes[2], n_levels=5)
axes[2].plot(*small.vectors_.T, "*", color="black", markersize=12)
axes[2].set_title("8 learned vectors")
for ax in axes[1:]:
    ax.set(xlabel="x₁", ylabel="x₂")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "learned_vectors.png", dpi=100)
print("figure: out/learned_vectors.png")
