"""Ten problems of Gaussian process regression, drawn by a seed.

Six are drawn from a process of random smoothness and widths, or are functions that are none; four
are real sets.  Dimensions, numbers of points, noise, and the kernel that is fitted are drawn too:
one width or one for each column, Gaussian, Matern, rational quadratic, sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel
from sklearn.gaussian_process.kernels import ConstantKernel as C

from .sparse import DATA

SETS = (
    *("airfoil", "wine", "skillcraft", "sml", "parkinsons", "kin40k", "protein", "tamielectric"),
    *("keggdirected", "keggundirected"),
)
SIZES = (1200, 1400, 1600, 2000)


class Problem(NamedTuple):
    """Standardised points and targets, and the kernel to start from, as scikit-learn spells it."""

    name: str
    X: np.ndarray
    y: np.ndarray
    kernel: Any


def family(seed: int, most: int = SIZES[-1]) -> list[Problem]:
    """The ten problems of a seed, on no more points than `most`."""
    rng = np.random.default_rng(seed)
    real = rng.permutation(SETS)[:4]
    problems = []
    for i, source in enumerate([*("process",) * 4, "friedman", "waves", *real]):
        n, child = min(int(rng.choice(SIZES)), most), np.random.default_rng([seed, i])
        X, y = generated(source, n, child) if i < 6 else drawn(source, n, child)
        kernel, name = prior(X.shape[1], (i + seed) % 5, child)
        y = (y - y.mean()) / y.std()
        problems.append(Problem(f"{source}, n = {len(X)}, d = {X.shape[1]}, {name}", X, y, kernel))
    return problems


def prior(d: int, kind: int, rng: np.random.Generator) -> tuple[Any, str]:
    """A kernel to fit, with all its parameters at 1."""
    widths = np.ones(d) if d <= 12 and rng.random() < 0.5 else 1.0
    each = "one width" if np.ndim(widths) == 0 else "a width for each column"
    if kind == 0:
        return C() * RBF(widths) + WhiteKernel(), f"RBF, {each}"
    if kind == 1:
        return C() * Matern(widths, nu=1.5) + WhiteKernel(), f"Matern 3/2, {each}"
    if kind == 2:
        return C() * RationalQuadratic() + WhiteKernel(), "rational quadratic"
    if kind == 3:
        return C() * Matern(widths, nu=2.5) + WhiteKernel(), f"Matern 5/2, {each}"
    return C() * RBF() + C() * Matern(nu=1.5) + WhiteKernel(), "RBF + Matern 3/2"


def generated(source: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points in 2 to 32 dimensions, and a function of them with noise of 0.01 to 0.5 deviations."""
    d = int(np.round(np.exp(rng.uniform(np.log(2), np.log(32)))))
    noise = np.exp(rng.uniform(np.log(0.01), np.log(0.5)))
    if source == "process":
        X = rng.standard_normal((n, d))
        kind = rng.choice(["rbf", 1.5, 2.5])
        widths = np.sqrt(d) * np.exp(rng.uniform(np.log(0.3), np.log(3.0), size=d))
        truth = RBF(widths) if kind == "rbf" else Matern(widths, nu=float(kind))
        K = truth(X)
        K.flat[:: n + 1] += 1e-8
        f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    elif source == "friedman":
        X = rng.random((n, max(d, 5)))
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        f += 10 * X[:, 3] + 5 * X[:, 4]
    else:
        X = rng.uniform(-2, 2, size=(n, d))
        f = np.sin(X @ rng.standard_normal(d)) + np.abs(X[:, 0]) * (X[:, 1] > 0)
    return X, f + noise * f.std() * rng.standard_normal(n)


def drawn(name: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a real set, without columns that are constant among them."""
    table = np.loadtxt(DATA / "regression" / "uci_datasets" / f"{name}.csv.gz", delimiter=",")
    table = table[rng.permutation(len(table))[:n]]
    X, y = table[:, :-1], table[:, -1]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y
