"""Classify DNA strings that contain a motif with one changed letter, using string kernels.

What to look for: a kernel that compares letters position by position is hardly better than
guessing, because the motif has no fixed position.  Substrings at any position do better, and
substrings with gaps are best, because they tolerate the changed letter.

The figure is saved as ``out/dna.png``.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split

from mercer import SVC, Expansion
from mercer.kernels import Gapped, Normalized, Spectrum, WeightedDegree

# About half of the strings contain the motif, at a random position and with one random letter.
MOTIF = "TATAATCG"
rng = np.random.default_rng(0)
X = ["".join(letters) for letters in rng.choice(list("ACGT"), size=(300, 40))]
y = rng.integers(2, size=300)
for i in np.flatnonzero(y):
    copy, start, position = list(MOTIF), rng.integers(32), rng.integers(8)
    copy[position] = rng.choice(list("ACGT"))
    X[i] = X[i][:start] + "".join(copy) + X[i][start + 8 :]
train, test, y_train, y_test = train_test_split(X, y, random_state=0)

sizes, accuracy = (50, 100, 150, 225), {}
for name, kernel in {
    "substrings by position": WeightedDegree(8),  # fails: the motif has no fixed position
    "substrings of length 5": Normalized(Spectrum(5)),
    "gapped substrings": Normalized(Gapped(8, 5)),
}.items():
    models = [SVC(kernel=kernel).fit(train[:n], y_train[:n]) for n in sizes]
    accuracy[name] = [100 * model.score(test, y_test) for model in models]
    print(f"{name:24}{accuracy[name][-1]:.0f}%")

grid = {"kernel__kernel__g": [6, 8]}
search = GridSearchCV(SVC(kernel=Normalized(Gapped(6, 5))), grid, cv=3).fit(train, y_train)
print("best parameters", search.best_params_, f"test accuracy {search.score(test, y_test):.0%}")
mean = Expansion(Spectrum(3), ["GATTACA", "GATTACCA", "GATTTACA"], [1 / 3] * 3).preimage()
print("pre-image of a mean of three strings:", *mean.points, end=" ")
print("with residual", mean.residuals.round(2)[0])

# %% Plot the accuracy by the number of training strings.
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
styles = (("#D55E00", "s:"), ("#009E73", "^--"), ("#0072B2", "o-"))
for (name, values), (colour, style) in zip(accuracy.items(), styles, strict=True):
    ax.plot(sizes, values, style, color=colour, label=name)
ax.axhline(50, color="0.6", linewidth=1)
ax.set(title="75 test strings", xlabel="training strings", ylabel="accuracy (%)", ylim=(40, 118))
ax.set_yticks(range(40, 101, 10))
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "dna.png", dpi=130)
print("figure: out/dna.png")
