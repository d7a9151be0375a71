"""An SVM on DNA: which strings hide a copy of a motif, a letter of it changed?"""

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split

from mercer import SVC, Expansion
from mercer.kernels import Gapped, Normalized, Spectrum, WeightedDegree

MOTIF = "TATAATCG"
rng = np.random.default_rng(0)
X = ["".join(letters) for letters in rng.choice(list("ACGT"), size=(300, 40))]
y = rng.integers(2, size=300)
for i in np.flatnonzero(y):
    copy, at, where = list(MOTIF), rng.integers(32), rng.integers(8)
    copy[where] = rng.choice(list("ACGT"))
    X[i] = X[i][:at] + "".join(copy) + X[i][at + 8 :]
train, test, y_train, y_test = train_test_split(X, y, random_state=0)

for name, kernel in {
    "words in their place": WeightedDegree(8),  # the motif has none
    "words of 5 letters": Normalized(Spectrum(5)),
    "words with holes": Normalized(Gapped(8, 5)),
}.items():
    print(f"{name:22}{SVC(kernel=kernel).fit(train, y_train).score(test, y_test):.0%}")

grid = {"kernel__kernel__g": [6, 8]}
search = GridSearchCV(SVC(kernel=Normalized(Gapped(6, 5))), grid, cv=3).fit(train, y_train)
print("best of the grid", search.best_params_, f"{search.score(test, y_test):.0%}")
mean = Expansion(Spectrum(3), ["GATTACA", "GATTACCA", "GATTTACA"], [1 / 3] * 3).preimage()
print("the mean of three strings:", *mean.points, "with residual", mean.residuals.round(2)[0])
