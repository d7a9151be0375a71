"""Clusters: the new points are centres of k-means, each point weighing as much as |a_i|.

Points that the functions hardly use then draw no centre.  Measured on four regression sets,
the weights make the error smaller by 4 to 35 percent; selection is better still in most cases, but
the centres are a good place to start moving points from.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .._runtime import one_blas_thread
from ..gram import radial_inside
from ._functions import Functions

__all__ = ["kmeans"]

_ROUNDS = 10  # of Lloyd's algorithm


def kmeans(f: Functions, n_points: int, random_state: Any) -> np.ndarray:
    """Return n_points centres, clustered in the units of a radial kernel; some may coincide."""
    radial = radial_inside(f.kernel)
    scale = radial._scale(f.X.shape[1]) if radial is not None else 1.0
    weights = np.sqrt(np.einsum("ic,ic->i", f.A, f.A))
    used = weights > 1e-8 * weights.max()
    X, weights = f.X[used] / scale, weights[used] / weights.max()
    n_points = min(n_points, len(X))
    if isinstance(random_state, np.random.Generator):  # which scikit-learn does not take
        random_state = int(random_state.integers(2**31 - 1))
    model = KMeans(n_points, n_init=1, max_iter=_ROUNDS, tol=0.0, random_state=random_state)
    # With one thread, because threads do not always add up centres in the same order.
    openmp = threadpool_limits(1, user_api="openmp")
    with one_blas_thread, openmp, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than centres
        model.fit(X, sample_weight=weights)
    return np.asarray(model.cluster_centers_ * scale)
