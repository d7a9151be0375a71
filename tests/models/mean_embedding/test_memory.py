"""No array of n^2 entries is stored, except where the documentation announces it."""

import tracemalloc

import numpy as np
import pytest

from mercer import (
    MemoryBudgetError,
    ParzenDensity,
    herd,
    hsic,
    independence_test,
    mmd,
    thin,
    two_sample_test,
)
from mercer.kernels import RBF

n = 3000
X, Y = np.random.default_rng(0).normal(size=(2, n, 3))
few = {"n_permutations": 19, "method": "lowrank", "rank": 10}

CALLS = {
    "mmd": lambda: mmd(X[: n // 2], Y[: n // 2], RBF()),
    "hsic": lambda: hsic(X, Y, RBF()),
    "permutation": lambda: two_sample_test(X[: n // 2], Y[: n // 2], RBF(), n_permutations=19),
    "lowrank": lambda: two_sample_test(X, Y, RBF(), **few),
    "linear": lambda: two_sample_test(X, Y, RBF(), method="linear"),
    "independence": lambda: independence_test(X, Y, RBF(), **few),
    "herd": lambda: herd(X, 10, RBF()),
    "thin": lambda: thin(X, 60, RBF()),
    "density": lambda: ParzenDensity().fit(X).score_samples(Y),
}


@pytest.mark.parametrize("name", CALLS)
def test_memory_stays_far_below_a_matrix(name):
    thin(X[:100], 10)  # compile first
    tracemalloc.start()
    try:
        CALLS[name]()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n / 3, f"{peak / 2**20:.0f} MiB"


def test_what_does_not_fit_is_refused_before_it_is_allocated():
    with pytest.raises(MemoryBudgetError, match="of 3000 pairs by method='permutation' needs"):
        independence_test(X, Y, RBF(), method="permutation", max_memory="100 MiB")
    with pytest.raises(MemoryBudgetError, match="the matrix of 2000 points for their optimal weig"):
        herd(X, 2000, RBF(), weights="optimal", max_memory="50 MiB")
