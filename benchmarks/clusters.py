"""Kernel k-means, to the same inertia.

Round clusters, one start for each contender: mercer draws it by k-means++ in feature space, tslearn
takes random labels.  Labels are judged by their inertia, computed from K by its definition, against
that of the clusters the points were drawn from; tslearn's own inertia takes every centroid to have
norm 1, and is another number.  Clusters are few because one start of either leads to the same
inertia there: with many it is chance, and `KernelKMeans` makes ten by default.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import draw, width
from ._suite import Call, Case, Contender, Suite

SHAPES = ((20_000, 20, 4), (20_000, 5, 3), (10_000, 50, 4), (5000, 10, 3), (20_000, 2, 2))


def points(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray, float]:
    X, y, *_ = draw("blobs", n, d, classes=classes, queries=1)
    return X, y, width(X)


def inertia(labels: np.ndarray, size: dict) -> float:
    """The sum of k(x, x) less, for each cluster, the mean of K over all pairs of it."""
    X, _, gamma = points(**size)
    total = float(len(X))
    for c in np.unique(labels):
        Z = X[labels == c]
        squares, pairs = np.square(Z).sum(axis=1), 0.0
        for i in range(0, len(Z), 1000):
            D = squares[i : i + 1000, None] - 2.0 * Z[i : i + 1000] @ Z.T + squares
            pairs += np.exp(-gamma * D).sum()
        total -= pairs / len(Z)
    return total


def excess(size: dict, labels: np.ndarray, reference: np.ndarray) -> float:
    """How much the inertia is above that of the reference, relatively."""
    return max(0.0, inertia(labels, size) / inertia(reference, size) - 1.0)


def mercer(**size) -> Call:
    from mercer import KernelKMeans

    X, _, gamma = points(**size)
    model = KernelKMeans(size["classes"], kernel="rbf", gamma=gamma, n_init=1, tol=0.0)
    return lambda: model.fit(X).labels_


def tslearn(**size) -> Call:
    from tslearn.clustering import KernelKMeans

    X, _, gamma = points(**size)
    options = {"kernel": "rbf", "kernel_params": {"gamma": gamma}, "random_state": 0}
    model = KernelKMeans(size["classes"], n_jobs=-1, **options)
    return lambda: model.fit(X[:, :, None]).labels_


def cases(quick: bool) -> list[Case]:
    sizes = [{"n": 2000 if quick else n, "d": d, "classes": k} for n, d, k in SHAPES]
    return [
        Case(
            f"{size['classes']} clusters of n={size['n']}, d={size['d']}",
            size,
            1e-3,
            partial(excess, size),
            family="`KernelKMeans.fit`, one start, to the same inertia",
        )
        for size in (sizes[:1] if quick else sizes)
    ]


SUITE = Suite(
    "kernel k-means to the same inertia",
    cases,
    {"mercer": Contender("mercer", mercer), "tslearn": Contender("tslearn", tslearn)},
    lambda **size: points(**size)[1],
)
