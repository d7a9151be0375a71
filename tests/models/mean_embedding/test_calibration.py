"""Level and power of the tests, over hundreds of simulations each.

If the true level is 0.05, the fraction of rejections lies in [0.037, 0.064] in 1000 runs, and in
[0.026, 0.077] in 300 runs, with a probability of about 0.95.  The seeds are fixed, so that the
outcome is reproducible.
"""

import numpy as np
import pytest
from scipy.stats import kstest

from mercer import independence_test, two_sample_test

RUNS = {300: (0.026, 0.077), 1000: (0.037, 0.064)}  # number of runs: accepted levels
B = 99
TESTS = {
    "two samples": lambda rng, seed: two_sample_test(
        rng.normal(size=(12, 2)), rng.normal(size=(20, 2)), n_permutations=B, random_state=seed
    ),
    "two samples, lowrank": lambda rng, seed: two_sample_test(
        rng.normal(size=(12, 2)),
        rng.normal(size=(20, 2)),
        method="lowrank",
        rank=3,
        n_permutations=B,
        random_state=seed,
    ),
    "two samples, linear": lambda rng, seed: two_sample_test(
        rng.normal(size=(100, 1)), rng.normal(size=(120, 1)), method="linear", random_state=seed
    ),
    "independence": lambda rng, seed: independence_test(
        rng.normal(size=(16, 1)), rng.exponential(size=(16, 2)), n_permutations=B, random_state=seed
    ),
    "independence, lowrank": lambda rng, seed: independence_test(
        rng.normal(size=(16, 1)),
        rng.exponential(size=(16, 2)),
        method="lowrank",
        rank=3,
        n_permutations=B,
        random_state=seed,
    ),
}


@pytest.mark.parametrize("runs", [300, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", TESTS)
def test_the_level_is_what_it_should_be(name, runs):
    rng = np.random.default_rng(2)
    # One seed for all runs: the level must not depend on a new seed for each test.
    results = [TESTS[name](rng, 0) for _ in range(runs)]
    p = np.array([result.pvalue for result in results])
    level = np.mean(p <= 0.05)
    least, most = RUNS[runs]
    assert least <= level <= most, level
    if results[0].n_permutations:  # p is one of 1/100, ..., 1; make its distribution continuous
        p = p - rng.uniform(size=runs) / (B + 1)
    assert kstest(p, "uniform").pvalue > 0.01


def rejections(test, runs=100):
    rng = np.random.default_rng(3)
    return np.mean([test(rng).pvalue <= 0.05 for _ in range(runs)])


def test_a_shift_is_found_as_often_as_expected():
    # Hotelling's test, designed for a shift, has power 0.914 here; the kernel test comes close.
    def shifted(rng, **options):
        X, Y = rng.normal(size=(50, 2)), rng.normal(size=(60, 2)) + 0.5
        return two_sample_test(X, Y, n_permutations=B, **options)

    assert 0.78 <= rejections(shifted) <= 0.94
    assert 0.78 <= rejections(lambda rng: shifted(rng, method="lowrank", rank=20)) <= 0.94
    # the linear-time test has less power
    assert rejections(lambda rng: shifted(rng, method="linear")) < 0.6


def test_dependence_without_correlation_is_found():
    def parabola(rng, **options):
        x = rng.normal(size=(50, 1))
        y = x**2 + 2.0 * rng.normal(size=(50, 1))
        return independence_test(x, y, n_permutations=B, **options)

    assert 0.4 <= rejections(parabola, 50) <= 0.75
    assert 0.4 <= rejections(lambda rng: parabola(rng, method="lowrank", rank=20), 50) <= 0.75
