"""Rankings of dishes by two kinds of guests: who is who, and what each kind likes on the whole."""

# %% Guests rank seven dishes by a taste of their kind and a mood of their own; some skip dishes.
import numpy as np

from mercer import SVC, Expansion, KernelPCA, two_sample_test
from mercer.kernels import Kendall, Mallows

dishes = np.array(["soup", "salad", "pasta", "fish", "steak", "cake", "fruit"])
taste = np.array([[3.0, 4.0, 2.0, 1.0, -2.0, 0.0, 2.5], [1.0, -1.0, 2.0, 0.5, 4.0, 3.0, 0.0]])
rng = np.random.default_rng(0)
kind = np.repeat([0, 1], 60)
liking = taste[kind] + rng.normal(scale=2.0, size=(120, 7))
ranks = 1.0 + (-liking).argsort(axis=1).argsort(axis=1)  # 1 for the best dish
ranks[rng.random(ranks.shape) < 0.2] = np.nan  # not tasted: no rank

# %% Classify, compare, and look for the main direction.
model = SVC(kernel=Mallows(decay=0.1)).fit(ranks[::2], kind[::2])
print(f"kinds told apart          {model.score(ranks[1::2], kind[1::2]):.0%}")
p = two_sample_test(ranks[kind == 0], ranks[kind == 1], Kendall(), random_state=0).pvalue
print(f"both kinds alike?         p = {p:.3f}")
scores = KernelPCA(1, kernel=Kendall()).fit_transform(ranks)[:, 0]
print(f"first score and kind      correlation {abs(np.corrcoef(scores, kind)[0, 1]):.2f}")

# %% The mean of each kind in feature space, and the complete ranking nearest to it.
for c, name in enumerate(("light", "hearty")):
    mean = Expansion.mean(Kendall(), ranks[kind == c]).preimage()
    print(f"{name:8}{' > '.join(dishes[mean.points[0].argsort()])}   {mean.residuals[0]:.2f}")
