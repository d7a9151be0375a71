"""Tanimoto similarities of all pairs of sparse binary fingerprints.

Some bits are much more frequent than others, as in fingerprints of molecules: bit c is set with a
probability that decreases as a power of c; on average 50 of 2048 bits (or other numbers) are set.
The timed call computes the n × n matrix from fingerprints.  It returns only a few rows, which are
compared, so that the matrix itself counts as memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._suite import N_THREADS, Call, Case, Contender, Suite

# Numbers of fingerprints, of bits, and of bits that are set on average.
SIZES = (
    (10_000, 2048, 50),
    (10_000, 1024, 50),
    (5000, 4096, 30),
    (10_000, 2048, 200),
    (3000, 166, 30),
)


def fingerprints(n: int, bits: int, on: int) -> np.ndarray:
    """Return n rows of bits as a dense boolean array."""
    rng = np.random.default_rng(0)
    weights = 1.0 / np.arange(3, bits + 3) ** 0.8
    return rng.random((n, bits)) < weights * on / weights.sum()


def checked_rows(n: int) -> np.ndarray:
    return np.random.default_rng(1).choice(n, 50, replace=False)


def mercer(n: int, **shape) -> Call:
    import scipy.sparse as sp

    from mercer.kernels import Jaccard

    X, rows = sp.csr_array(fingerprints(n, **shape)), checked_rows(n)
    return lambda: Jaccard()(X)[rows]


def sklearn(n_jobs: int, n: int, **shape) -> Call:
    from sklearn.metrics import pairwise_distances

    X, rows = fingerprints(n, **shape), checked_rows(n)
    return lambda: 1.0 - pairwise_distances(X, metric="jaccard", n_jobs=n_jobs)[rows]


def reference(n: int, **shape) -> np.ndarray:
    """Return some rows of the matrix, computed by the definition."""
    X = fingerprints(n, **shape)
    rows = [
        np.logical_and(x, X).sum(axis=1) / np.logical_or(x, X).sum(axis=1)
        for x in X[checked_rows(n)]
    ]
    return np.array(rows)


def cases(quick: bool) -> list[Case]:
    shapes = ((1000, 2048, 50),) if quick else SIZES
    family = "Tanimoto similarities of all pairs of sparse fingerprints"
    return [
        Case(
            f"n={n}, {on} of {bits} bits",
            {"n": n, "bits": bits, "on": on},
            tolerance=1e-14,
            family=family,
        )
        for n, bits, on in shapes
    ]


SUITE = Suite(
    "all pairwise similarities of n fingerprints",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "scikit-learn": Contender("sklearn", partial(sklearn, 1), candidate=True),
        "scikit-learn, threads": Contender("sklearn", partial(sklearn, N_THREADS), candidate=True),
    },
    reference,
)
