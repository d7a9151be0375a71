"""Means of kernels: two-sample and independence tests, densities, and many points.

What is timed is one call, from points to a p-value or to log densities.  The statistics of hyppo
are square roots of correlations; so that they can be compared, every contender returns

    ρ = HSIC(x, y) / √(HSIC(x, x) HSIC(y, y))      with y the membership for two samples, where
    HSIC(x, y) = (m n / N²)² MMD²  and  HSIC(y, y) = (m n / N²)²

from the biased estimators; what mercer's statistic has to be divided by is computed beforehand.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from ._models import rbf
from ._suite import Call, Case, Contender, Suite

GAMMA = 0.1


def samples(n: int, d: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of n points each."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + shift


# ---------------------------------------------------------------------- against hyppo


def halves(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return samples(n // 2, d, seed, shift=0.2)


def columns(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = samples(n, d, seed)
    Y[:, 0] += 0.2 * X[:, 0] ** 2
    return X, Y


def mercer_two_samples(permutations: int, method: str, **size) -> Call:
    from mercer import hsic, two_sample_test
    from mercer.kernels import RBF

    X, Y = halves(**size)
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


def mercer_independence(permutations: int, method: str, **size) -> Call:
    from mercer import hsic, independence_test
    from mercer.kernels import RBF

    X, Y = columns(**size)
    k = RBF.from_gamma(GAMMA)
    factor = 1.0 / np.sqrt(hsic(X, X, k) * hsic(Y, Y, k))

    def call() -> np.ndarray:
        result = independence_test(X, Y, k, method=method, n_permutations=permutations)
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([factor * result.statistic])

    return call


def hyppo_two_samples(permutations: int, **size) -> Call:
    from hyppo.ksample import MMD

    warnings.simplefilter("ignore")  # it wants more replications
    X, Y = halves(**size)
    scale = 2.0 * (len(X) * len(Y) / (len(X) + len(Y)) ** 2) ** 2

    def call() -> np.ndarray:
        test = MMD(compute_kernel="rbf", bias=True, gamma=GAMMA)
        result = test.test(X, Y, reps=permutations, auto=False)
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([(result.stat / scale) ** 2])

    return call


def hyppo_independence(permutations: int, **size) -> Call:
    from hyppo.independence import Hsic

    warnings.simplefilter("ignore")
    X, Y = columns(**size)

    def call() -> np.ndarray:
        test = Hsic(compute_kernel="rbf", bias=True, gamma=GAMMA)
        result = test.test(X, Y, reps=permutations, auto=False)
        call.note = f"p = {result.pvalue:.3g}"
        return np.array([result.stat**2])

    return call


def centred(X: np.ndarray) -> np.ndarray:
    K = rbf(X, X, GAMMA)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    return K


def reference(test: str, permutations: int, **size) -> np.ndarray:
    """ρ from full matrices."""
    if test == "two samples":
        X, Y = halves(**size)
        A, y = centred(np.concatenate([X, Y])), np.repeat([0.5, -0.5], [len(X), len(Y)])
        B = np.outer(y, y)
    else:
        A, B = (centred(Z) for Z in columns(**size))
    return np.array([np.vdot(A, B) / (np.linalg.norm(A) * np.linalg.norm(B))])


def ours(method: str, test: str, **inputs) -> Call:
    make = mercer_two_samples if test == "two samples" else mercer_independence
    return make(method=method, **inputs)


def theirs(test: str, **inputs) -> Call:
    """With one worker: more of them hand both matrices to a process for every permutation."""
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
    "permutation tests, the same number of permutations",
    test_cases,
    {
        "mercer": Contender("mercer", partial(ours, "permutation")),
        "hyppo": Contender("hyppo", theirs),
    },
    reference,
)


# ---------------------------------------------------------------------- densities


def mercer_density(n: int, d: int, seed: int, bandwidth: float) -> Call:
    from mercer import ParzenDensity

    X, Q = samples(n, d, seed)
    model = ParzenDensity(bandwidth=bandwidth).fit(X)
    return lambda: model.score_samples(Q)


def sklearn_density(leaf: int | None, n: int, d: int, seed: int, bandwidth: float) -> Call:
    from sklearn.neighbors import KernelDensity

    X, Q = samples(n, d, seed)
    model = KernelDensity(bandwidth=bandwidth, rtol=0, leaf_size=leaf or n).fit(X)
    return lambda: model.score_samples(Q)


def density_reference(n: int, d: int, seed: int, bandwidth: float) -> np.ndarray:
    """Log densities from differences."""
    from scipy.special import logsumexp

    X, Q = samples(n, d, seed)
    probes = np.random.default_rng(seed + 1).choice(n, 200, replace=False)
    result = np.full(n, np.nan)
    for i in probes:
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


# ---------------------------------------------------------------------- many points


def large(method: str, n: int, d: int, seed: int, permutations: int) -> Call:
    """MMD² of two samples of n points each, with its p-value."""
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
    """The expectation: for normal samples it has a closed form."""
    scale = 1.0 / (2.0 * GAMMA)
    same = (1.0 + 2.0 / scale) ** (-0.5 * d)
    apart = same * np.exp(-0.5 * d * 0.4**2 / (scale + 2.0))
    return np.array([2.0 * (same - apart)])


def large_cases(quick: bool) -> list[Case]:
    n, B = (2000, 49) if quick else (20000, 199)
    inputs = {"n": n, "d": 5, "seed": 0, "permutations": B}
    return [Case(f"two samples of n={n} B={B}", inputs, tolerance=0.3 if quick else 0.1)]


LARGE = Suite(
    "two large samples: by features, in linear time, and exactly in tiles",
    large_cases,
    {
        "mercer": Contender("mercer", partial(large, "lowrank")),
        "mercer, linear": Contender("mercer", partial(large, "linear")),
        "mercer, exact": Contender("mercer", partial(large, "permutation")),
    },
    large_reference,
)

SUITES = {"means-tests": TESTS, "means-density": DENSITY, "means-large": LARGE}
