"""Silhouette coefficients in feature space.

The coefficient of a point compares its mean distances to its own and to the nearest other cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core import entry_point, run_in_threads, slices
from ...gram import (
    MAX_CANCELLATION_ERROR,
    ROUNDING_UNITS,
    GramOperator,
    points_differ,
    warn_about_cancellation,
)

_TILE_ROWS, _TILE_COLUMNS = 384, 384  # K is evaluated in tiles of this size, to limit memory


@entry_point
def silhouette(gram: GramOperator, labels: Any) -> np.ndarray:
    """Return the silhouette coefficient of each point, with distances in feature space.

        s_i = (b_i - a_i) / max(a_i, b_i),        -1 <= s_i <= 1

    a_i is the mean distance |k(x_i, .) - k(x_j, .)| to the other points of its cluster, and b_i the
    mean distance to the points of the nearest other cluster.  K is read in tiles.

    Parameters
    ----------
    gram : GramOperator
        The kernel matrix K = k(X, X).
    labels : array of shape (n,)
        The cluster of each point; there must be at least two clusters.

    Returns
    -------
    ndarray of shape (n,)
        The coefficients.  They are 0 for a point that is alone in its cluster.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import silhouette
    >>> K = gram(Linear(), [[0.0], [1.0], [10.0], [11.0]])
    >>> silhouette(K, [0, 0, 1, 1]).round(2)
    array([0.9 , 0.89, 0.89, 0.9 ])
    """
    n = gram.shape[0]
    distinct, indices = np.unique(np.asarray(labels), return_inverse=True)
    if len(indices) != n:
        raise ValueError(f"got {len(indices)} labels for {n} points; pass one label per point")
    if len(distinct) < 2:
        raise ValueError(
            "silhouettes compare clusters, but all points have the same label; use at least two "
            "clusters"
        )
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    membership = np.zeros((n, len(distinct)))
    membership[np.arange(n), indices] = 1.0
    sums, squares = np.zeros((n, len(distinct))), np.zeros(n)

    def strip(rows: slice) -> Iterator[None]:
        for cols in slices(n, _TILE_COLUMNS):
            yield
            T = np.asarray(gram.block(rows, cols), dtype=np.float64)
            T *= -2.0
            T += diagonal[rows, None]
            T += diagonal[cols]
            if rows == cols:
                np.fill_diagonal(T, 0.0)
            squares[rows] += T.sum(axis=1)
            np.sqrt(np.maximum(T, 0.0, out=T), out=T)
            sums[rows] += T @ membership[cols]

    run_in_threads(
        strip, slices(n, _TILE_ROWS), gram.n_threads, gram.kernel._evaluation_work(n * n)
    )
    error = ROUNDING_UNITS * float(np.finfo(gram.dtype).eps * np.abs(diagonal).max())
    mean_squared = float(squares.sum()) / (n * (n - 1))
    points = np.arange(n), np.zeros(n, dtype=np.intp)
    if (
        mean_squared * MAX_CANCELLATION_ERROR < error
        and points_differ(gram.X, gram.X, *points).any()
    ):
        warn_about_cancellation(
            gram.kernel, "the silhouettes are determined by rounding errors", mean_squared, error
        )
    counts, every = np.bincount(indices), np.arange(n)
    is_single = counts[indices] == 1
    inside = sums[every, indices] / np.maximum(counts[indices] - 1, 1)
    means = sums / counts
    means[every, indices] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    score = np.divide(outside - inside, larger, out=np.zeros(n), where=larger > 0.0)
    return np.where(is_single, 0.0, score)
