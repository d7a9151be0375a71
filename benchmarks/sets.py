"""All Tanimoto similarities of sparse binary fingerprints.

Bits are as unevenly used as those of molecules: bit c is set with a probability that falls as a
power of c, 50 of 2048 on the average.  What is timed is one call, from fingerprints to the n × n
matrix; a few rows of it are returned and compared, so that the matrix counts as memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._suite import THREADS, Call, Case, Contender, Suite

BITS, SET = 2048, 50


def fingerprints(n: int, seed: int) -> np.ndarray:
    """n rows of bits, dense."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(3, BITS + 3) ** 0.8
    return rng.random((n, BITS)) < share * SET / share.sum()


def probes(n: int) -> np.ndarray:
    return np.random.default_rng(1).choice(n, 50, replace=False)


def mercer(n: int, seed: int) -> Call:
    import scipy.sparse as sp

    from mercer.kernels import Jaccard

    X, rows = sp.csr_array(fingerprints(n, seed)), probes(n)
    return lambda: Jaccard()(X)[rows]


def sklearn(jobs: int, n: int, seed: int) -> Call:
    from sklearn.metrics import pairwise_distances

    X, rows = fingerprints(n, seed), probes(n)
    return lambda: 1.0 - pairwise_distances(X, metric="jaccard", n_jobs=jobs)[rows]


def reference(n: int, seed: int) -> np.ndarray:
    """Some rows by definition."""
    X = fingerprints(n, seed)
    rows = [
        np.logical_and(x, X).sum(axis=1) / np.logical_or(x, X).sum(axis=1) for x in X[probes(n)]
    ]
    return np.array(rows)


def cases(quick: bool) -> list[Case]:
    n = 1000 if quick else 10_000
    return [Case(f"Tanimoto n={n}, {SET} of {BITS} bits", {"n": n, "seed": 0}, tolerance=1e-14)]


SUITE = Suite(
    "all similarities of n fingerprints",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "scikit-learn": Contender("sklearn", partial(sklearn, 1), candidate=True),
        "scikit-learn, threads": Contender("sklearn", partial(sklearn, THREADS), candidate=True),
    },
    reference,
)
