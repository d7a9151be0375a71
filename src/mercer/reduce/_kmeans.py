"""Clusters: the new points are centres of k-means, each point weighing as much as |a_i|.

Points that the functions hardly use then draw no centre.  Measured on four regression sets,
the weights make the error smaller by 4 to 35 percent; selection is better still in most cases, but
the centres are a good place to start moving points from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gram import lloyd, radial_inside
from ._functions import Functions

__all__ = ["kmeans"]

_ROUNDS = 10  # of Lloyd's algorithm


def kmeans(f: Functions, n_points: int, random_state: Any) -> np.ndarray:
    """Return n_points centres, clustered in the units of a radial kernel; some may coincide."""
    from sklearn.cluster import kmeans_plusplus

    radial = radial_inside(f.kernel)
    scale = radial._scale(f.X.shape[1]) if radial is not None else 1.0
    weights = np.sqrt(np.einsum("ic,ic->i", f.A, f.A))
    used = weights > 1e-8 * weights.max()
    if isinstance(random_state, np.random.Generator):  # which scikit-learn does not take
        random_state = int(random_state.integers(2**31 - 1))
    X, weights = f.X[used] / scale, weights[used] / weights.max()
    options = {"sample_weight": weights, "random_state": random_state}
    first, _ = kmeans_plusplus(X, min(n_points, len(X)), **options)
    return np.asarray(lloyd(X, first, _ROUNDS, weights) * scale)
