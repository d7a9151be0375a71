"""Classify DNA strings that contain a motif with one changed letter, using string kernels."""

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

for name, kernel in {
    "substrings by position": WeightedDegree(8),  # fails: the motif has no fixed position
    "substrings of length 5": Normalized(Spectrum(5)),
    "gapped substrings": Normalized(Gapped(8, 5)),
}.items():
    print(f"{name:24}{SVC(kernel=kernel).fit(train, y_train).score(test, y_test):.0%}")

grid = {"kernel__kernel__g": [6, 8]}
search = GridSearchCV(SVC(kernel=Normalized(Gapped(6, 5))), grid, cv=3).fit(train, y_train)
print("best parameters", search.best_params_, f"test accuracy {search.score(test, y_test):.0%}")
mean = Expansion(Spectrum(3), ["GATTACA", "GATTACCA", "GATTTACA"], [1 / 3] * 3).preimage()
print("pre-image of a mean of three strings:", *mean.points, end=" ")
print("with residual", mean.residuals.round(2)[0])
