"""The 5 nearest of 50 000 points for each of 10 000 queries, 20 columns, all pairs looked at.

The linear kernel has the distances of scikit-learn's brute force; a Gaussian kernel has the same
neighbours at other distances, which are compared after they are turned back.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._suite import THREADS, Call, Case, Contender, Suite

NEIGHBOURS, COLUMNS, LENGTH = 5, 20, 3.0


def points(n: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, COLUMNS)), rng.normal(size=(queries, COLUMNS))


def mercer(n: int, queries: int) -> Call:
    from mercer import KernelKNeighborsRegressor

    X, Q = points(n, queries)
    model = KernelKNeighborsRegressor(NEIGHBOURS).fit(X, X[:, 0])
    return lambda: model.kneighbors(Q)[0]


def gaussian(n: int, queries: int) -> Call:
    from mercer import KernelKNeighborsRegressor
    from mercer.kernels import RBF

    X, Q = points(n, queries)
    model = KernelKNeighborsRegressor(NEIGHBOURS, kernel=RBF(LENGTH)).fit(X, X[:, 0])
    return lambda: LENGTH * np.sqrt(-2.0 * np.log1p(-0.5 * np.square(model.kneighbors(Q)[0])))


def sklearn(jobs: int, n: int, queries: int) -> Call:
    from sklearn.neighbors import NearestNeighbors

    X, Q = points(n, queries)
    model = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute", n_jobs=jobs).fit(X)
    return lambda: model.kneighbors(Q)[0]


def reference(n: int, queries: int) -> np.ndarray:
    """From the differences, without a product."""
    from scipy.spatial.distance import cdist

    X, Q = points(n, queries)
    parts = [cdist(Q[i : i + 200], X) for i in range(0, min(queries, 1000), 200)]
    out = np.full((queries, NEIGHBOURS), np.nan)  # the first thousand are compared
    found = [np.sort(np.partition(D, NEIGHBOURS, axis=1)[:, :NEIGHBOURS], axis=1) for D in parts]
    out[: sum(map(len, found))] = np.concatenate(found)
    return out


def cases(quick: bool) -> list[Case]:
    n, queries = (5000, 1000) if quick else (50_000, 10_000)
    inputs = {"n": n, "queries": queries}
    return [Case(f"{queries} queries, n={n}, d={COLUMNS}, k={NEIGHBOURS}", inputs, 1e-9)]


SUITE = Suite(
    "nearest neighbours among all points",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "mercer, Gaussian kernel": Contender("mercer", gaussian),
        "scikit-learn": Contender("sklearn", partial(sklearn, None), candidate=True),
        "scikit-learn, threads": Contender("sklearn", partial(sklearn, THREADS), candidate=True),
    },
    reference,
)
