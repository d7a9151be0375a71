"""Rankings of dishes by two groups of guests: classify the guests, and find the mean ranking."""

# %% Data: the ranking of a guest depends on the group and on random noise; some dishes are missing.
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
scores = KernelPCA(1, kernel=Kendall()).fit_transform(ranks)[:, 0]
print(f"first score and group         correlation {abs(np.corrcoef(scores, group)[0, 1]):.2f}")

# %% The mean of each group in feature space, and the complete ranking closest to it.
for c, name in enumerate(("light", "hearty")):
    mean = Expansion.mean(Kendall(), ranks[group == c]).preimage()
    print(f"{name:8}{' > '.join(dishes[mean.points[0].argsort()])}   ", end="")
    print(f"residual {mean.residuals[0]:.2f}")
