"""Ten problems of Gaussian process regression, drawn by a seed.

Six are drawn from a process of random smoothness and widths, or are functions that are none; four
are real sets.  Dimensions, numbers of points, noise, and the kernel that is fitted are drawn too:
one width or one for each column, Gaussian, Matern, rational quadratic, sums.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel
from sklearn.gaussian_process.kernels import ConstantKernel as C

from ._suite import Call, Case, Contender, Suite
from .gp import noted
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


def problem(seed: int, i: int, most: int = SIZES[-1]) -> Problem:
    """The i-th of the ten problems of a seed, on no more points than `most`."""
    rng = np.random.default_rng(seed)
    real = rng.permutation(SETS)[:4]
    source = [*("process",) * 4, "friedman", "waves", *real][i]
    n = min(int([rng.choice(SIZES) for _ in range(i + 1)][i]), most)
    child = np.random.default_rng([seed, i])
    X, y = generated(source, n, child) if i < 6 else drawn(source, n, child)
    kernel, name = prior(X.shape[1], (i + seed) % 5, child)
    name = f"{source}, n = {len(X)}, d = {X.shape[1]}, {name}"
    return Problem(name, X, (y - y.mean()) / y.std(), kernel)


def family(seed: int, most: int = SIZES[-1]) -> list[Problem]:
    """All ten."""
    return [problem(seed, i, most) for i in range(10)]


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


# ---------------------------------------------------------------------- the race

SEED = 18  # no rule of mercer's was chosen on the problems of this seed


def mercer(i: int, most: int, **_) -> Call:
    from mercer import GaussianProcessRegressor

    _, X, y, kernel = problem(SEED, i, most)

    def fit() -> np.ndarray:
        model = quietly(GaussianProcessRegressor(kernel), X, y)
        noted(fit, f"{model.report_.n_iter} likelihoods")
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def sklearn(i: int, most: int, **_) -> Call:
    from sklearn.gaussian_process import GaussianProcessRegressor

    _, X, y, kernel = problem(SEED, i, most)

    def fit() -> np.ndarray:
        model = quietly(GaussianProcessRegressor(kernel), X, y)
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def quietly(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a parameter is on a bound
        return model.fit(X, y)


def reference(**inputs) -> np.ndarray:
    """The likelihood that scikit-learn reaches."""
    return sklearn(**inputs)()


def loss(result: np.ndarray, reference: np.ndarray) -> float:
    """How much worse the log marginal likelihood is, relative to its size; 0 if it is better."""
    return max(0.0, float((reference[0] - result[0]) / abs(reference[0])))


def remarks(cases: list[dict]) -> None:
    """Tell the median and the worst of all problems."""
    raced = [case["contenders"]["scikit-learn"] for case in cases]
    ratios = [record["ratio"][0] for record in raced if record.get("ratio")]
    if ratios:
        told = f"of {len(ratios)} problems: median {np.median(ratios):.1f}, worst {min(ratios):.1f}"
        raced[-1]["note"] = told


def cases(quick: bool) -> list[Case]:
    most = 800 if quick else SIZES[-1]
    kept = range(6) if not (DATA / "regression").exists() else range(10)
    return [
        Case(problem(SEED, i, most).name, {"i": i, "most": most}, tolerance=1e-6, error=loss)
        for i in kept
    ]


SUITE = Suite(
    "Gaussian processes, ten problems",
    cases,
    {"mercer": Contender("mercer", mercer), "scikit-learn": Contender("sklearn", sklearn)},
    reference,
    remarks=remarks,
)
