"""Gaussian process classification of 1000 points: the most likely scale and width of c·RBF.

Both start from c = ℓ = 1 and return the log marginal likelihood of Laplace's approximation that
they reach, of two classes; ours may not be below scikit-learn's by more than 1e-5 of it.  Five
problems: three that are generated, of which one is noisy and one a line in many columns, digits of
scikit-learn (even or odd), and the larger half of the letters if the data are there.
"""

from __future__ import annotations

import numpy as np

from ._suite import Call, Case, Contender, Suite
from .features import DATA, FILES, points

PROBLEMS = ("circles", "noisy", "line", "digits", "letter")


def problem(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points, standardised, with labels 0 and 1."""
    rng = np.random.default_rng(7)
    if name == "digits":
        from sklearn.datasets import load_digits

        X, digit = load_digits(return_X_y=True)
        some = rng.permutation(len(X))[:n]
        return (X[some] - X.mean()) / X.std(), digit[some] % 2
    if name == "letter":
        X = points(name, n)
        return X, (X[:, 0] * X[:, 1] > 0).astype(int)
    d = {"circles": 2, "noisy": 5, "line": 15}[name]
    X = rng.normal(size=(n, d))
    score = {
        "circles": np.linalg.norm(X, axis=1) - 1.2,
        "noisy": np.sin(2 * X[:, 0]) + 0.7 * rng.normal(size=n),
        "line": X @ rng.normal(size=d) + 0.3 * rng.normal(size=n),
    }[name]
    return X, (score > 0).astype(int)


def mercer(name: str, n: int) -> Call:
    from mercer import GaussianProcessClassifier
    from mercer.kernels import RBF

    X, y = problem(name, n)

    def fit() -> np.ndarray:
        model = GaussianProcessClassifier(1.0 * RBF()).fit(X, y)
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def sklearn(name: str, n: int) -> Call:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y = problem(name, n)

    def fit() -> np.ndarray:
        model = GaussianProcessClassifier(ConstantKernel() * RBF()).fit(X, y)
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def reference(name: str, n: int) -> np.ndarray:
    """Return what scikit-learn's search finds, with the fewest threads to wait for each other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return sklearn(name, n)()


def shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """How far the log marginal likelihood is below the reference, relatively."""
    return float(max(0.0, ((reference - result) / np.abs(reference)).max()))


def cases(quick: bool) -> list[Case]:
    there = [p for p in PROBLEMS if p != "letter" or (DATA / FILES[p]).exists()]
    n = 300 if quick else 1000
    return [
        Case(f"{name} n={n}", {"name": name, "n": n}, 1e-5, shortfall)
        for name in (there[:2] if quick else there)
    ]


SUITE = Suite(
    "GaussianProcessClassifier.fit of two classes",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "scikit-learn": Contender("sklearn", sklearn),
    },
    reference,
)
