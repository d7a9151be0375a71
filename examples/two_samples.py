"""Are two samples from one distribution, and if not, where do they differ?

Both have mean 0 and variance 1, and a t-test has nothing to say; but one is Gaussian, the other
Laplacian.  The distance of their means in feature space, MMD, sees it.  One should see:

* the permuted statistics, and that of the samples far to their right;
* the witness, the difference of the two means: positive where the first sample has more mass, at
  the shoulders, negative in the peak and the tails of the second;
* in the plane, two rings that differ in one gap only: the witness points at it.

It writes ``out/two_samples.png``.
"""

# %% The samples, and what the classical tests say.
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
line = two_sample_test(X, Y)
print(f"two-sample   p = {line.pvalue:.3f}   MMD² = {line.statistic:.5f}   {line.kernel}")


# %% Two rings, one of them with a gap.
def ring(n, gap):
    angle = rng.uniform(gap, 2 * np.pi - gap, size=n)
    radius = 1.0 + 0.1 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


whole, broken = ring(300, 0.0), ring(300, 0.5)
plane = two_sample_test(whole, broken, RBF(0.3))  # as narrow as what is looked for
print(f"rings        p = {plane.pvalue:.3f}   MMD² = {plane.statistic:.5f}")

# %% The coordinates of a ring are uncorrelated, but not independent.
joint = independence_test(whole[:, :1], whole[:, 1:])
correlation = np.corrcoef(whole.T)[0, 1]
print(f"coordinates  p = {joint.pvalue:.3f}   correlation {correlation:+.3f}")

# %% And a ring in few points.
few = thin(whole, 24)
print(few)

# %% The picture.
figure, axes = plt.subplots(2, 2, figsize=(11.0, 8.6), layout="constrained")
axes[0, 0].hist(line.null, bins=40, color="0.7", label="permuted samples")
axes[0, 0].axvline(line.statistic, color="black", linewidth=2, label="the samples as they are")
axes[0, 0].set(xlabel="MMD²", ylabel="permutations")
axes[0, 0].locator_params(axis="x", nbins=5)
axes[0, 0].set_title(f"Gaussian against Laplacian: p = {line.pvalue:.3f}")
axes[0, 0].legend(frameon=False)
witness(line, X, Y, ax=axes[0, 1])
axes[0, 1].set_title("where they differ: more of X is red, more of Y is blue")
handles, _ = axes[0, 1].get_legend_handles_labels()
axes[0, 1].legend(handles, ["witness", "X, Gaussian", "Y, Laplacian"], frameon=False)
for handle in axes[0, 1].get_legend().legend_handles[1:]:
    handle.set_alpha(1.0)
witness(plane, whole, broken, ax=axes[1, 0])
axes[1, 0].legend(["X, a ring", "Y, with a gap"], loc="center", edgecolor="none")
axes[1, 0].set(xlabel="x₁", ylabel="x₂", title=f"a ring and one with a gap: p = {plane.pvalue:.3f}")
axes[1, 1].plot(*whole.T, ".", color="0.75", markersize=4, label="X, 300 points")
axes[1, 1].plot(*np.asarray(few.points).T, "o", color="black", label="thinned to 24")
axes[1, 1].set(title=f"the ring in 24 points, MMD² = {few.mmd:.1e}", aspect="equal")
axes[1, 1].set(xlabel="x₁", ylabel="x₂")
axes[1, 1].legend(frameon=False, loc="center")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "two_samples.png", dpi=150)
print("picture: out/two_samples.png")
