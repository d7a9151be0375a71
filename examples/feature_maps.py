"""How well feature maps approximate a kernel, as a function of the number of features.

Left: the Gaussian kernel of 1500 images of digits.  Several methods compute features phi with
phi(x)·phi(z) ≈ k(x, z); the error is ‖K − FFᵀ‖ / ‖K‖.  With D features, FFᵀ has rank D at most, so
its error is at least that of the best matrix of rank D, which the eigenvectors of K give (the lower
bound).  Right: two other kernels with their lower bounds, and the additive chi-squared kernel,
whose feature map is not random.  What to look for:

* The error of features from landmarks (`Nystroem`) follows the lower bound.  The error of random
  features decreases like 1/√D for every K.
* Landmarks from k-means or medoids are better than landmarks sampled uniformly.
* Orthogonal frequencies are better than independent ones.

The figure is saved as ``out/feature_maps.png``.
"""

# %% Data and exact kernels.
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


def best_rank_error(K):
    """Return the error of the best matrix of each rank."""
    squares = np.sort(np.linalg.eigvalsh(K) ** 2)[::-1]
    remaining = np.maximum(squares.sum() - np.cumsum(squares), 0.0)
    return np.sqrt(remaining / squares.sum())


def error(K, F):
    """Return ‖K − FFᵀ‖ / ‖K‖ in the Frobenius norm."""
    return np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)


def mean_errors(K, make):
    """Return the mean error over three seeds for each number of features."""
    fits = [[make(D, seed).fit_transform(X) for seed in range(3)] for D in SIZES]
    return [np.mean([error(K, F) for F in each]) for each in fits]


# %% The Gaussian kernel, with landmarks and with random features.
K = gauss(X)
gaussian_errors = {
    f"Nystroem, {name}": mean_errors(
        K, lambda D, s, name=name: Nystroem(gauss, n_components=D, landmarks=name, random_state=s)
    )
    for name in ("uniform", "rpcholesky", "medoids", "kmeans")
}
gaussian_errors |= {
    f"RandomFeatures, {name}": mean_errors(
        K, lambda D, s, name=name: RandomFeatures(D, kernel=gauss, method=name, random_state=s)
    )
    for name in ("iid", "qmc", "orthogonal")
}

# %% The polynomial, the skewed chi-squared and the additive chi-squared kernel.
K_skewed, K_chi2 = np.ones_like(K), np.zeros_like(K)
for column in X.T:
    total = np.add.outer(column, column)
    K_skewed *= 2 * np.sqrt(np.outer(column + 0.1, column + 0.1)) / (total + 0.2)
    K_chi2 += np.divide(2 * np.outer(column, column), total, where=total > 0, out=0 * total)
K_poly = polynomial(X)
sketch_errors = mean_errors(
    K_poly, lambda D, s: PolynomialCountSketch(n_components=D, random_state=s)
)
skewed_errors = mean_errors(
    K_skewed, lambda D, s: SkewedChi2Sampler(skewedness=0.1, n_components=D, random_state=s)
)
additive_features = [AdditiveChi2Sampler(sample_steps=j).fit_transform(X) for j in (1, 2, 3)]

best = best_rank_error(K)
print(f"{'features':<28}" + "".join(f"{D:>9}" for D in SIZES))
rows = {**gaussian_errors, "best matrix of rank D": [best[D - 1] for D in SIZES]}
rows |= {"PolynomialCountSketch": sketch_errors, "SkewedChi2Sampler": skewed_errors}
for name, values in rows.items():
    print(f"{name:<28}" + "".join(f"{value:9.4f}" for value in values))

# %% Plot the errors.
figure, axes = plt.subplots(1, 2, figsize=(12.5, 5), layout="constrained", sharey=True)
styles = ["o-", "s-", "D-", "^-", "o--", "s--", "D--"]
colours = ["#0072B2", "#56B4E9", "#009E73", "#000000", "#D55E00", "#E69F00", "#CC79A7"]
for (name, values), style, colour in zip(gaussian_errors.items(), styles, colours, strict=True):
    axes[0].loglog(SIZES, values, style, color=colour, markersize=4, linewidth=1.2, label=name)
ranks = np.arange(8, 601)
axes[0].loglog(ranks, best[ranks - 1], color="0.6", linewidth=2.5, label="lower bound (best rank)")
axes[0].set(
    title="Gaussian kernel", xlabel="number of features D", ylabel="‖K − FFᵀ‖ / ‖K‖", ylim=(3e-4, 3)
)
for color, (name, values, exact) in zip(
    ("#0072B2", "#D55E00"),
    (
        ("PolynomialCountSketch", sketch_errors, K_poly),
        ("SkewedChi2Sampler", skewed_errors, K_skewed),
    ),
    strict=True,
):
    axes[1].loglog(SIZES, values, "o-", color=color, markersize=4, label=name)
    axes[1].loglog(ranks, best_rank_error(exact)[ranks - 1], color=color, linewidth=2.5, alpha=0.5)
n_features = [F.shape[1] for F in additive_features]
errors = [error(K_chi2, F) for F in additive_features]
style = {"color": "#009E73", "markersize": 4}
axes[1].loglog(n_features, errors, "o-", label="AdditiveChi2Sampler", **style)
axes[1].loglog(ranks, best_rank_error(K_chi2)[ranks - 1], linewidth=2.5, alpha=0.5, **style)
axes[1].plot([], [], color="0.5", linewidth=2.5, alpha=0.5, label="lower bounds (best rank)")
axes[1].set(title="Other kernels, with bounds in the same colours", xlabel="number of features D")
for each in axes:
    each.legend(frameon=False, fontsize=9, loc="lower left")
    each.grid(alpha=0.25, which="both", linewidth=0.5)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "feature_maps.png", dpi=130)
print("figure: out/feature_maps.png")
