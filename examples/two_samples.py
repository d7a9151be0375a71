"""Two-sample test: do two samples differ, and where?

Both samples have mean 0 and variance 1, so a t-test finds no difference; but one is Gaussian and
the other Laplacian.  The distance of their means in feature space, the maximum mean discrepancy
(MMD), detects it.  What to look for:

* The statistic of the samples is far to the right of the statistics of permuted samples.
* The witness function, the difference of the two means, is positive where the first sample has more
  mass (at the shoulders), and negative at the peak and in the tails of the second.
* In the plane, two rings differ only in a gap, and the witness function is largest there.

The figure is saved as ``out/two_samples.png``.
"""

# %% Data, a t-test, and the kernel two-sample test.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ttest_ind

from mercer import independence_test, thin, two_sample_test
from mercer.kernels import RBF
from mercer.plotting import witness

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 1))
Y = rng.laplace(scale=np.sqrt(0.5), size=(400, 1))
print(f"t-test       p = {ttest_ind(X[:, 0], Y[:, 0]).pvalue:.3f}")
print(f"variances    {X.var():.2f} and {Y.var():.2f}")
test_1d = two_sample_test(X, Y)
print(f"two-sample   p = {test_1d.pvalue:.3f}   MMD² = {test_1d.statistic:.5f}   {test_1d.kernel}")


# %% Two rings, one of them with a gap.
def ring(n, gap):
    angle = rng.uniform(gap, 2 * np.pi - gap, size=n)
    radius = 1.0 + 0.1 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


full_ring, open_ring = ring(300, 0.0), ring(300, 0.5)
test_2d = two_sample_test(full_ring, open_ring, RBF(0.3))  # about as wide as the gap
print(f"rings        p = {test_2d.pvalue:.3f}   MMD² = {test_2d.statistic:.5f}")

# %% The coordinates of a ring are uncorrelated, but not independent.
independence = independence_test(full_ring[:, :1], full_ring[:, 1:])
correlation = np.corrcoef(full_ring.T)[0, 1]
print(f"coordinates  p = {independence.pvalue:.3f}   correlation {correlation:+.3f}")

# %% Thin a sample to a few points with almost the same mean in feature space.
thinned = thin(full_ring, 24)
print(thinned)

# %% Plot.
figure, axes = plt.subplots(2, 2, figsize=(11.0, 8.6), layout="constrained")
axes[0, 0].hist(test_1d.null, bins=40, color="0.7", label="permuted samples")
axes[0, 0].axvline(test_1d.statistic, color="black", linewidth=2, label="original samples")
axes[0, 0].set(xlabel="MMD²", ylabel="permutations")
axes[0, 0].locator_params(axis="x", nbins=5)
axes[0, 0].set_title(f"Gaussian and Laplacian samples: p = {test_1d.pvalue:.3f}")
axes[0, 0].legend(frameon=False)
witness(test_1d, X, Y, ax=axes[0, 1])
axes[0, 1].set_title("Witness function: more of X is red, more of Y is blue")
handles, _ = axes[0, 1].get_legend_handles_labels()
axes[0, 1].legend(handles, ["witness", "X, Gaussian", "Y, Laplacian"], frameon=False)
for handle in axes[0, 1].get_legend().legend_handles[1:]:
    handle.set_alpha(1.0)
witness(test_2d, full_ring, open_ring, ax=axes[1, 0])
axes[1, 0].legend(
    ["X, full ring", "Y, ring with a gap"],
    frameon=False,
    ncols=2,
    loc="upper center",
    bbox_to_anchor=(0.5, -0.14),
)
axes[1, 0].set(
    xlabel="x₁",
    ylabel="x₂",
    title=f"Rings with and without a gap: p = {test_2d.pvalue:.3f}",
)
axes[1, 1].plot(*full_ring.T, ".", color="0.75", markersize=4, label="X, 300 points")
axes[1, 1].plot(*np.asarray(thinned.points).T, "o", color="black", label="thinned to 24")
axes[1, 1].set(title=f"Ring thinned to 24 points, MMD² = {thinned.mmd:.1e}", aspect="equal")
axes[1, 1].set(xlabel="x₁", ylabel="x₂")
axes[1, 1].legend(frameon=False, loc="center")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "two_samples.png", dpi=150)
print("figure: out/two_samples.png")
