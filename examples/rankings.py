"""Rankings of dishes by two groups of guests: classify the guests, and find the mean ranking.

Most rankings are incomplete: a dish that was not tasted has no rank.  What to look for: the first
component of kernel PCA with the Kendall kernel separates the two groups.  The mean of each group in
feature space has a pre-image, which is a complete ranking.

The figure is saved as ``out/rankings.png``.
"""

# %% Data: the ranking of a guest depends on the group and on random noise; some dishes are missing.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Expansion, KernelPCA, two_sample_test
from mercer.kernels import Kendall, Mallows

dishes = np.array(["soup", "salad", "pasta", "fish", "steak", "cake", "fruit"])
taste = np.array([[3.0, 4.0, 2.0, 1.0, -2.0, 0.0, 2.5], [1.0, -1.0, 2.0, 0.5, 4.0, 3.0, 0.0]])
rng = np.random.default_rng(0)
group = np.repeat([0, 1], 60)
preference = taste[group] + rng.normal(scale=2.0, size=(120, 7))
ranks = 1.0 + (-preference).argsort(axis=1).argsort(axis=1)  # 1 is the best dish
ranks[rng.random(ranks.shape) < 0.2] = np.nan  # dishes that were not tasted have no rank

# %% Classification, two-sample test, and the first component of kernel PCA.
model = SVC(kernel=Mallows(decay=0.1)).fit(ranks[::2], group[::2])
print(f"accuracy of SVC               {model.score(ranks[1::2], group[1::2]):.0%}")
p = two_sample_test(ranks[group == 0], ranks[group == 1], Kendall(), random_state=0).pvalue
print(f"two-sample test               p = {p:.3f}")
scores = KernelPCA(2, kernel=Kendall()).fit_transform(ranks)
print(f"first score and group         correlation {abs(np.corrcoef(scores.T[0], group)[0, 1]):.2f}")

# %% Plot the scores of the guests, and the mean rank of each dish.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.2), layout="constrained")
styles = (("light", "#0072B2", "o"), ("hearty", "#D55E00", "^"))
for c, (name, colour, marker) in enumerate(styles):
    points, means = scores[group == c], np.nanmean(ranks[group == c], axis=0)
    left.plot(*points.T, marker, color=colour, markersize=5, label=f"group {name!r}")
    right.plot(means, np.arange(7), marker, color=colour, markersize=8, label=f"group {name!r}")
left.set(title="Kernel PCA of 120 rankings", xlabel="component 1", ylabel="component 2")
left.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
right.set_yticks(range(7), dishes)
right.set(title="Mean rank of each dish", xlabel="mean rank (1 is the best)")
right.grid(axis="y", alpha=0.4)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %% The mean of each group in feature space, and the complete ranking closest to it.
for c, name in enumerate(("light", "hearty")):
    mean = Expansion.mean(Kendall(), ranks[group == c]).preimage()
    print(f"{name:8}{' > '.join(dishes[mean.points[0].argsort()])}   ", end="")
    print(f"residual {mean.residuals[0]:.2f}")

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "rankings.png", dpi=130)
print("figure: out/rankings.png")
