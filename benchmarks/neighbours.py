"""Nearest neighbours by brute force: the 5 nearest of 50 000 points for each of 10 000 queries.

For the linear kernel, distances are those of scikit-learn's brute force.  A Gaussian kernel has the
same neighbours but other distances, which are converted to Euclidean distances to compare them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import default_gamma, describe, load_problem, problem_family
from ._suite import N_THREADS, Call, Case, Contender, Suite

N_NEIGHBOURS = 5


def load_points(**inputs) -> tuple[np.ndarray, np.ndarray]:
    X, _, Q, _ = load_problem(**inputs)
    return X, Q


def mercer(**inputs) -> Call:
    from mercer import KernelKNeighborsRegressor

    X, Q = load_points(**inputs)
    model = KernelKNeighborsRegressor(N_NEIGHBOURS).fit(X, X[:, 0])
    return lambda: model.kneighbors(Q)[0]


def gaussian(**inputs) -> Call:
    """Return a call with the Gaussian kernel that converts its distances to Euclidean ones."""
    from mercer import KernelKNeighborsRegressor
    from mercer.kernels import RBF

    X, Q = load_points(**inputs)
    length = float(np.sqrt(0.5 / default_gamma(X)))
    model = KernelKNeighborsRegressor(N_NEIGHBOURS, kernel=RBF(length)).fit(X, X[:, 0])
    return lambda: length * np.sqrt(-2.0 * np.log1p(-0.5 * np.square(model.kneighbors(Q)[0])))


def sklearn(n_jobs: int, **inputs) -> Call:
    from sklearn.neighbors import NearestNeighbors

    X, Q = load_points(**inputs)
    model = NearestNeighbors(n_neighbors=N_NEIGHBOURS, algorithm="brute", n_jobs=n_jobs).fit(X)
    return lambda: model.kneighbors(Q)[0]


def reference(**inputs) -> np.ndarray:
    """Return the distances for the first 1000 queries, computed from differences."""
    from scipy.spatial.distance import cdist

    X, Q = load_points(**inputs)
    distances = [cdist(Q[i : i + 200], X) for i in range(0, min(len(Q), 1000), 200)]
    out = np.full((len(Q), N_NEIGHBOURS), np.nan)
    nearest = [
        np.sort(np.partition(D, N_NEIGHBOURS, axis=1)[:, :N_NEIGHBOURS], axis=1) for D in distances
    ]
    out[: sum(map(len, nearest))] = np.concatenate(nearest)
    return out


PROBLEMS = (*({"name": "normal", "d": d} for d in (20, 5, 100)), {"name": "falling", "d": 20})
PROBLEMS += ({"name": "kin40k"}, {"name": "covtype"})


def cases(quick: bool) -> list[Case]:
    n, queries = (5000, 1000) if quick else (50_000, 10_000)
    family = f"`kneighbors`, {N_NEIGHBOURS} of up to {n} points, up to {queries} queries"
    return [
        Case(describe(inputs), inputs, 1e-7, family=family)
        for inputs in problem_family(PROBLEMS, quick, n=n, queries=queries)
    ]


SUITE = Suite(
    "nearest neighbours by brute force",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "mercer, Gaussian kernel": Contender("mercer", gaussian),
        "scikit-learn": Contender("sklearn", partial(sklearn, None), candidate=True),
        "scikit-learn, threads": Contender("sklearn", partial(sklearn, N_THREADS), candidate=True),
    },
    reference,
)
