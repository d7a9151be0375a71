"""All Tanimoto similarities of sparse binary fingerprints.

Bits are as unevenly used as those of molecules: bit c is set with a probability that falls as a
power of c, 50 of 2048 on the average, or other numbers.  What is timed is one call, from
fingerprints to the n × n matrix; a few rows of it are returned and compared, so that the matrix
counts as memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._suite import THREADS, Call, Case, Contender, Suite

SHAPES = (
    (10_000, 2048, 50),
    (10_000, 1024, 50),
    (5000, 4096, 30),
    (10_000, 2048, 200),
    (3000, 166, 30),
)


def fingerprints(n: int, bits: int, on: int) -> np.ndarray:
    """n rows of bits, dense."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(3, bits + 3) ** 0.8
    return rng.random((n, bits)) < share * on / share.sum()


def probes(n: int) -> np.ndarray:
    return np.random.default_rng(1).choice(n, 50, replace=False)


def mercer(n: int, **shape) -> Call:
    import scipy.sparse as sp

    from mercer.kernels import Jaccard

    X, rows = sp.csr_array(fingerprints(n, **shape)), probes(n)
    return lambda: Jaccard()(X)[rows]


def sklearn(jobs: int, n: int, **shape) -> Call:
    from sklearn.metrics import pairwise_distances

    X, rows = fingerprints(n, **shape), probes(n)
    return lambda: 1.0 - pairwise_distances(X, metric="jaccard", n_jobs=jobs)[rows]


def reference(n: int, **shape) -> np.ndarray:
    """Some rows by definition."""
    X = fingerprints(n, **shape)
    rows = [
        np.logical_and(x, X).sum(axis=1) / np.logical_or(x, X).sum(axis=1) for x in X[probes(n)]
    ]
    return np.array(rows)


def cases(quick: bool) -> list[Case]:
    shapes = ((1000, 2048, 50),) if quick else SHAPES
    words = "Tanimoto similarities of all pairs of sparse fingerprints"
    return [
        Case(
            f"n={n}, {on} of {bits} bits",
            {"n": n, "bits": bits, "on": on},
            tolerance=1e-14,
            family=words,
        )
        for n, bits, on in shapes
    ]


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
