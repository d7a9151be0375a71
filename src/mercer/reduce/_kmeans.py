"""Reduced sets from k-means: the new points are cluster centres of the points, weighted by |a_i|.

With these weights, points with small coefficients attract no centre.  On four regression data sets
the weights reduced the error by 4 to 35 percent.  Greedy selection is better in most cases, but the
centres are good initial points for the optimisation of free points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gram import lloyd, radial_inside
from ._functions import TargetFunctions

__all__ = ["kmeans"]

_LLOYD_ITERATIONS = 10  # of Lloyd's algorithm; more take longer and may improve the centres


def kmeans(f: TargetFunctions, n_points: int, random_state: Any) -> np.ndarray:
    """Return n_points cluster centres; some may coincide.

    Distances are measured in units of the length scale if the kernel is radial.
    """
    from sklearn.cluster import kmeans_plusplus

    radial = radial_inside(f.kernel)
    scale = radial._scale(f.X.shape[1]) if radial is not None else 1.0
    weights = np.sqrt(np.einsum("ic,ic->i", f.A, f.A))
    is_used = weights > 1e-8 * weights.max()
    if isinstance(random_state, np.random.Generator):  # scikit-learn does not accept one
        random_state = int(random_state.integers(2**31 - 1))
    X, weights = f.X[is_used] / scale, weights[is_used] / weights.max()
    options = {"sample_weight": weights, "random_state": random_state}
    centres, _ = kmeans_plusplus(X, min(n_points, len(X)), **options)
    return np.asarray(lloyd(X, centres, _LLOYD_ITERATIONS, weights) * scale)
