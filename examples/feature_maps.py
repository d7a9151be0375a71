"""How well do features stand for a kernel?  The error of all maps against their number.

Left: the Gaussian kernel of 1500 images of digits.  Features phi with phi(x)·phi(z) ≈ k(x, z) are
made in several ways, and the error is ‖K − FFᵀ‖ / ‖K‖.  No FFᵀ with D features can be closer than
the best matrix of rank D, which the eigenvectors of K give: the floor.  Right: two other kernels,
each beside its own floor, and the additive chi-squared kernel, whose map has no chance in it.  One
should see:

* features on landmarks follow the floor, random ones fall like 1/√D, whatever K is;
* centroids and medoids are below landmarks drawn with equal chances;
* orthogonal frequencies are below independent ones.

It writes ``out/feature_maps.png``.
"""

# %% The data and the exact kernels.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RandomFeatures,
    SkewedChi2Sampler,
)
from mercer.kernels import RBF, Polynomial

X = load_digits().data[:1500] / 16.0
X /= np.linalg.norm(X, axis=1, keepdims=True)
SIZES = [16, 32, 64, 128, 256, 512]
gauss = RBF(0.5)
polynomial = Polynomial(degree=2, coef0=0.0, gamma=1.0)


def floor(K):
    """Return the error of the best matrix of each rank."""
    squares = np.sort(np.linalg.eigvalsh(K) ** 2)[::-1]
    left = np.maximum(squares.sum() - np.cumsum(squares), 0.0)
    return np.sqrt(left / squares.sum())


def error(K, F):
    """Return ‖K − FFᵀ‖ / ‖K‖ in the Frobenius norm."""
    return np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)


def curve(K, make):
    """Return the mean error over three seeds for each number of features."""
    fits = [[make(D, seed).fit_transform(X) for seed in range(3)] for D in SIZES]
    return [np.mean([error(K, F) for F in each]) for each in fits]


# %% The Gaussian kernel, by landmarks and by random features.
K = gauss(X)
left = {
    f"Nystroem, {name}": curve(
        K, lambda D, s, name=name: Nystroem(gauss, n_components=D, landmarks=name, random_state=s)
    )
    for name in ("uniform", "rpcholesky", "medoids", "kmeans")
}
left |= {
    f"RandomFeatures, {name}": curve(
        K, lambda D, s, name=name: RandomFeatures(D, kernel=gauss, method=name, random_state=s)
    )
    for name in ("iid", "qmc", "orthogonal")
}

# %% Others: the polynomial, the skewed and the additive chi-squared kernel.
K_skewed, K_chi2 = np.ones_like(K), np.zeros_like(K)
for column in X.T:
    total = np.add.outer(column, column)
    K_skewed *= 2 * np.sqrt(np.outer(column + 0.1, column + 0.1)) / (total + 0.2)
    K_chi2 += np.divide(2 * np.outer(column, column), total, where=total > 0, out=0 * total)
K_poly = polynomial(X)
sketches = curve(K_poly, lambda D, s: PolynomialCountSketch(n_components=D, random_state=s))
skewed = curve(
    K_skewed, lambda D, s: SkewedChi2Sampler(skewedness=0.1, n_components=D, random_state=s)
)
additive = [AdditiveChi2Sampler(sample_steps=j).fit_transform(X) for j in (1, 2, 3)]

best = floor(K)
print(f"{'map':<28}" + "".join(f"{D:>9}" for D in SIZES))
rows = {**left, "the best rank": [best[D - 1] for D in SIZES]}
rows |= {"PolynomialCountSketch": sketches, "SkewedChi2Sampler": skewed}
for name, values in rows.items():
    print(f"{name:<28}" + "".join(f"{value:9.4f}" for value in values))

# %% The picture.
figure, axes = plt.subplots(1, 2, figsize=(12.5, 5), layout="constrained", sharey=True)
styles = ["o-", "s-", "D-", "^-", "o--", "s--", "D--"]
for k, (name, values) in enumerate(left.items()):
    axes[0].loglog(SIZES, values, styles[k], markersize=4, linewidth=1.2, label=name)
ranks = np.arange(8, 601)
axes[0].loglog(ranks, best[ranks - 1], color="0.2", linewidth=2.5, label="the best rank: the floor")
axes[0].set(title="Gaussian kernel", xlabel="features", ylabel="‖K − FFᵀ‖ / ‖K‖", ylim=(3e-4, 3))
for color, (name, values, exact) in zip(
    ("C0", "C1"),
    (
        ("PolynomialCountSketch", sketches, K_poly),
        ("SkewedChi2Sampler", skewed, K_skewed),
    ),
    strict=True,
):
    axes[1].loglog(SIZES, values, "o-", color=color, markersize=4, label=name)
    axes[1].loglog(ranks, floor(exact)[ranks - 1], color=color, linewidth=2.5, alpha=0.5)
widths = [F.shape[1] for F in additive]
errors = [error(K_chi2, F) for F in additive]
axes[1].loglog(widths, errors, "o-", color="C2", markersize=4, label="AdditiveChi2Sampler")
axes[1].loglog(ranks, floor(K_chi2)[ranks - 1], color="C2", linewidth=2.5, alpha=0.5)
axes[1].plot([], [], color="0.5", linewidth=2.5, alpha=0.5, label="their floors")
axes[1].set(title="Other kernels", xlabel="features")
for each in axes:
    each.legend(frameon=False, fontsize=9, loc="lower left")
    each.grid(alpha=0.25, which="both", linewidth=0.5)
figure.suptitle("What features leave of a kernel", fontsize=15)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "feature_maps.png", dpi=130)
print("picture: out/feature_maps.png")
