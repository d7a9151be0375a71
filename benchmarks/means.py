"""Kernel mean embeddings: two-sample and independence tests, and density estimates.

The timed call starts from points and ends with a p-value or with log densities.  The statistics of
hyppo are square roots of correlations.  To compare them, every contender returns

    ρ = HSIC(x, y) / √(HSIC(x, x) HSIC(y, y))

from the biased estimators.  For two samples, y is the index of the sample, and

    HSIC(x, y) = (m n / N²)² MMD²,    HSIC(y, y) = (m n / N²)²

The factor between mercer's statistic and ρ is computed before the timing starts.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from ._models import rbf
from ._suite import Call, Case, Contender, Suite

GAMMA = 0.1


def samples(n: int, d: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return two independent normal samples of n points each, the second one shifted."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + shift


# ---------------------------------------------------------------------- tests, against hyppo


def two_samples(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples of n / 2 points each with different means."""
    return samples(n // 2, d, seed, shift=0.2)


def dependent_columns(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y such that the first column of Y depends on that of X."""
    X, Y = samples(n, d, seed)
    Y[:, 0] += 0.2 * X[:, 0] ** 2
    return X, Y


def mercer_two_samples(permutations: int, method: str, **inputs) -> Call:
    from mercer import hsic, two_sample_test
    from mercer.kernels import RBF

    X, Y = two_samples(**inputs)
    Z = np.concatenate([X, Y])
    factor = len(X) * len(Y) / len(Z) ** 2 / np.sqrt(hsic(Z, Z, RBF.from_gamma(GAMMA)))

    def call() -> np.ndarray:
        result = two_sample_test(
            X,
            Y,
            RBF.from_gamma(GAMMA),
            estimator="biased",
            method=method,
            n_permutations=permutations,
        )
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([factor * result.statistic])

    return call


def mercer_independence(permutations: int, method: str, **inputs) -> Call:
    from mercer import hsic, independence_test
    from mercer.kernels import RBF

    X, Y = dependent_columns(**inputs)
    k = RBF.from_gamma(GAMMA)
    factor = 1.0 / np.sqrt(hsic(X, X, k) * hsic(Y, Y, k))

    def call() -> np.ndarray:
        result = independence_test(X, Y, k, method=method, n_permutations=permutations)
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([factor * result.statistic])

    return call


def hyppo_two_samples(permutations: int, **inputs) -> Call:
    from hyppo.ksample import MMD

    warnings.simplefilter("ignore")  # hyppo warns that there are few replications
    X, Y = two_samples(**inputs)
    scale = 2.0 * (len(X) * len(Y) / (len(X) + len(Y)) ** 2) ** 2

    def call() -> np.ndarray:
        test = MMD(compute_kernel="rbf", bias=True, gamma=GAMMA)
        result = test.test(X, Y, reps=permutations, auto=False)
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([(result.stat / scale) ** 2])

    return call


def hyppo_independence(permutations: int, **inputs) -> Call:
    from hyppo.independence import Hsic

    warnings.simplefilter("ignore")
    X, Y = dependent_columns(**inputs)

    def call() -> np.ndarray:
        test = Hsic(compute_kernel="rbf", bias=True, gamma=GAMMA)
        result = test.test(X, Y, reps=permutations, auto=False)
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([result.stat**2])

    return call


def centred_gram(X: np.ndarray) -> np.ndarray:
    """Return the centred Gram matrix."""
    K = rbf(X, X, GAMMA)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    return K


def reference(test: str, permutations: int, **inputs) -> np.ndarray:
    """Return ρ computed from full matrices."""
    if test == "two samples":
        X, Y = two_samples(**inputs)
        A, y = centred_gram(np.concatenate([X, Y])), np.repeat([0.5, -0.5], [len(X), len(Y)])
        n_permutations = np.outer(y, y)
    else:
        A, n_permutations = (centred_gram(Z) for Z in dependent_columns(**inputs))
    return np.array(
        [np.vdot(A, n_permutations) / (np.linalg.norm(A) * np.linalg.norm(n_permutations))]
    )


def make_mercer_test(method: str, test: str, **inputs) -> Call:
    """Return the call of mercer for one of the two tests."""
    make = mercer_two_samples if test == "two samples" else mercer_independence
    return make(method=method, **inputs)


def make_hyppo_test(test: str, **inputs) -> Call:
    """Return the call of hyppo for one of the two tests, with one worker.

    With more workers, hyppo sends both matrices to a process for every permutation.
    """
    make = hyppo_two_samples if test == "two samples" else hyppo_independence
    return make(**inputs)


SIZES = ((200, 2, 499), (500, 20, 199), (1000, 5, 199), (1000, 50, 99), (2000, 5, 99))


def test_cases(quick: bool) -> list[Case]:
    sizes = ((300, 5, 49),) if quick else SIZES
    return [
        Case(
            f"{test} n={n} d={d} B={permutations}",
            {"test": test, "permutations": permutations, "n": n, "d": d, "seed": 0},
            family=f"`{test.replace(' ', '_').replace('samples', 'sample')}_test`, permutations",
        )
        for test in ("two samples", "independence")
        for n, d, permutations in sizes
    ]


TESTS = Suite(
    "permutation tests with equal numbers of permutations",
    test_cases,
    {
        "mercer": Contender("mercer", partial(make_mercer_test, "permutation")),
        "hyppo": Contender("hyppo", make_hyppo_test),
    },
    reference,
)


# ---------------------------------------------------------------------- densities


def mercer_density(n: int, d: int, seed: int, bandwidth: float) -> Call:
    from mercer import ParzenDensity

    X, Q = samples(n, d, seed)
    model = ParzenDensity(bandwidth=bandwidth).fit(X)
    return lambda: model.score_samples(Q)


def sklearn_density(leaf_size: int | None, n: int, d: int, seed: int, bandwidth: float) -> Call:
    from sklearn.neighbors import KernelDensity

    X, Q = samples(n, d, seed)
    model = KernelDensity(bandwidth=bandwidth, rtol=0, leaf_size=leaf_size or n).fit(X)
    return lambda: model.score_samples(Q)


def density_reference(n: int, d: int, seed: int, bandwidth: float) -> np.ndarray:
    """Return log densities of 200 random queries, computed from differences."""
    from scipy.special import logsumexp

    X, Q = samples(n, d, seed)
    checked = np.random.default_rng(seed + 1).choice(n, 200, replace=False)
    result = np.full(n, np.nan)
    for i in checked:
        s = np.square((Q[i] - X) / bandwidth).sum(axis=1)
        result[i] = logsumexp(-0.5 * s) - np.log(n) - d * np.log(bandwidth * np.sqrt(2 * np.pi))
    return result


def density_cases(quick: bool) -> list[Case]:
    shapes = ((10_000, 2, 0.5), (10_000, 10, 0.5), (3000, 5, 0.3), (10_000, 2, 0.05))
    shapes += ((10_000, 1, 0.1), (20_000, 3, 1.0))
    return [
        Case(
            f"n={n} d={d} bandwidth {bandwidth}",
            {"n": n, "d": d, "seed": 0, "bandwidth": bandwidth},
            family="`ParzenDensity.score_samples`, as many queries as points",
        )
        for n, d, bandwidth in ([(2000, 2, 0.5)] if quick else shapes)
    ]


DENSITY = Suite(
    "log densities, as many queries as points, relative tolerance 0",
    density_cases,
    {
        "mercer": Contender("mercer", mercer_density),
        "scikit-learn": Contender("sklearn", partial(sklearn_density, 40), candidate=True),
        "scikit-learn, one leaf": Contender(
            "sklearn", partial(sklearn_density, None), candidate=True
        ),
    },
    density_reference,
)


# ---------------------------------------------------------------------- large samples


def large_two_sample_test(method: str, n: int, d: int, seed: int, permutations: int) -> Call:
    """Return a call that computes MMD² and its p-value for two samples of n points each."""
    from mercer import two_sample_test
    from mercer.kernels import RBF

    X, Y = samples(n, d, seed, shift=0.4)

    def call() -> np.ndarray:
        result = two_sample_test(
            X, Y, RBF.from_gamma(GAMMA), method=method, n_permutations=permutations
        )
        call.note = f"p = {result.pvalue:.2g}, truncation {result.truncation:.1e}"
        return np.array([result.statistic])

    return call


def large_reference(n: int, d: int, seed: int, permutations: int) -> np.ndarray:
    """Return the expectation of MMD², which has a closed form for normal samples."""
    scale = 1.0 / (2.0 * GAMMA)
    within = (1.0 + 2.0 / scale) ** (-0.5 * d)
    between = within * np.exp(-0.5 * d * 0.4**2 / (scale + 2.0))
    return np.array([2.0 * (within - between)])


def large_cases(quick: bool) -> list[Case]:
    n, n_permutations = (2000, 49) if quick else (20000, 199)
    inputs = {"n": n, "d": 5, "seed": 0, "permutations": n_permutations}
    return [
        Case(f"two samples of n={n} B={n_permutations}", inputs, tolerance=0.3 if quick else 0.1)
    ]


LARGE = Suite(
    "two-sample test of large samples: low-rank, linear-time, exact in tiles",
    large_cases,
    {
        "mercer": Contender("mercer", partial(large_two_sample_test, "lowrank")),
        "mercer, linear": Contender("mercer", partial(large_two_sample_test, "linear")),
        "mercer, exact": Contender("mercer", partial(large_two_sample_test, "permutation")),
    },
    large_reference,
)

SUITES = {"means-tests": TESTS, "means-density": DENSITY, "means-large": LARGE}
