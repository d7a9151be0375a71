"""The 5 nearest of 50 000 points for each of 10 000 queries, all pairs looked at.

The linear kernel has the distances of scikit-learn's brute force; a Gaussian kernel has the same
neighbours at other distances, which are compared after they are turned back.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import draw, family, title, width
from ._suite import THREADS, Call, Case, Contender, Suite

NEIGHBOURS = 5


def points(**inputs) -> tuple[np.ndarray, np.ndarray]:
    X, _, Q, _ = draw(**inputs)
    return X, Q


def mercer(**inputs) -> Call:
    from mercer import KernelKNeighborsRegressor

    X, Q = points(**inputs)
    model = KernelKNeighborsRegressor(NEIGHBOURS).fit(X, X[:, 0])
    return lambda: model.kneighbors(Q)[0]


def gaussian(**inputs) -> Call:
    from mercer import KernelKNeighborsRegressor
    from mercer.kernels import RBF

    X, Q = points(**inputs)
    length = float(np.sqrt(0.5 / width(X)))
    model = KernelKNeighborsRegressor(NEIGHBOURS, kernel=RBF(length)).fit(X, X[:, 0])
    return lambda: length * np.sqrt(-2.0 * np.log1p(-0.5 * np.square(model.kneighbors(Q)[0])))


def sklearn(jobs: int, **inputs) -> Call:
    from sklearn.neighbors import NearestNeighbors

    X, Q = points(**inputs)
    model = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute", n_jobs=jobs).fit(X)
    return lambda: model.kneighbors(Q)[0]


def reference(**inputs) -> np.ndarray:
    """From the differences, without a product; the first thousand are compared."""
    from scipy.spatial.distance import cdist

    X, Q = points(**inputs)
    parts = [cdist(Q[i : i + 200], X) for i in range(0, min(len(Q), 1000), 200)]
    out = np.full((len(Q), NEIGHBOURS), np.nan)
    found = [np.sort(np.partition(D, NEIGHBOURS, axis=1)[:, :NEIGHBOURS], axis=1) for D in parts]
    out[: sum(map(len, found))] = np.concatenate(found)
    return out


MEMBERS = (*({"name": "normal", "d": d} for d in (20, 5, 100)), {"name": "falling", "d": 20})
MEMBERS += ({"name": "kin40k"}, {"name": "covtype"})


def cases(quick: bool) -> list[Case]:
    n, queries = (5000, 1000) if quick else (50_000, 10_000)
    words = f"`kneighbors`, {NEIGHBOURS} of up to {n} points, up to {queries} queries"
    return [
        Case(title(inputs), inputs, 1e-7, family=words)
        for inputs in family(MEMBERS, quick, n=n, queries=queries)
    ]


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
