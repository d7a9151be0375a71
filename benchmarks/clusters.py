"""Kernel k-means, compared at the same inertia.

The data are round clusters.  Each contender makes one start: mercer chooses it by k-means++ in
feature space, tslearn by random labels.  The labels are compared by their inertia, computed from K
by its definition, with the inertia of the true clusters.  (The inertia that tslearn reports assumes
that every centroid has norm 1, so it is a different number.)  The number of clusters is small,
because then a single start of either library reaches the same inertia.  With many clusters the
result of one start is random; `KernelKMeans` makes ten starts by default.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import default_gamma, load_problem
from ._suite import Call, Case, Contender, Suite

# Numbers of points, columns and clusters.
SIZES = ((20_000, 20, 4), (20_000, 5, 3), (10_000, 50, 4), (5000, 10, 3), (20_000, 2, 2))


def cluster_problem(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return points, the clusters they were sampled from, and γ."""
    X, y, *_ = load_problem("blobs", n, d, classes=classes, queries=1)
    return X, y, default_gamma(X)


def inertia(labels: np.ndarray, size: dict) -> float:
    """Return Σ k(x, x) minus, for each cluster, (Σ of K over all pairs in it) / (its size)."""
    X, _, gamma = cluster_problem(**size)
    total = float(len(X))
    for c in np.unique(labels):
        Z = X[labels == c]
        squares, kernel_sum = np.square(Z).sum(axis=1), 0.0
        for i in range(0, len(Z), 1000):
            D = squares[i : i + 1000, None] - 2.0 * Z[i : i + 1000] @ Z.T + squares
            kernel_sum += np.exp(-gamma * D).sum()
        total -= kernel_sum / len(Z)
    return total


def inertia_excess(size: dict, labels: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative amount by which the inertia exceeds that of the reference."""
    return max(0.0, inertia(labels, size) / inertia(reference, size) - 1.0)


def mercer(**size) -> Call:
    from mercer import KernelKMeans

    X, _, gamma = cluster_problem(**size)
    model = KernelKMeans(size["classes"], kernel="rbf", gamma=gamma, n_init=1, tol=0.0)
    return lambda: model.fit(X).labels_


def tslearn(**size) -> Call:
    from tslearn.clustering import KernelKMeans

    X, _, gamma = cluster_problem(**size)
    options = {"kernel": "rbf", "kernel_params": {"gamma": gamma}, "random_state": 0}
    model = KernelKMeans(size["classes"], n_jobs=-1, **options)
    return lambda: model.fit(X[:, :, None]).labels_


def cases(quick: bool) -> list[Case]:
    sizes = [{"n": 2000 if quick else n, "d": d, "classes": k} for n, d, k in SIZES]
    return [
        Case(
            f"{size['classes']} clusters of n={size['n']}, d={size['d']}",
            size,
            1e-3,
            partial(inertia_excess, size),
            family="`KernelKMeans.fit`, one start, to the same inertia",
        )
        for size in (sizes[:1] if quick else sizes)
    ]


SUITE = Suite(
    "kernel k-means to the same inertia",
    cases,
    {"mercer": Contender("mercer", mercer), "tslearn": Contender("tslearn", tslearn)},
    lambda **size: cluster_problem(**size)[1],
)
