"""Silhouettes in feature space: how much nearer a point is to its own cluster than to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._runtime import entry_point, run, slices
from ...gram import LOST, ROUNDING, GramOperator, differ, warn_of_cancellation

__all__ = ["silhouette"]

_ROWS, _COLUMNS = 384, 384  # of a tile


@entry_point
def silhouette(gram: GramOperator, labels: Any) -> np.ndarray:
    """Return s_i = (b_i - a_i) / max(a_i, b_i), from -1 to 1, for each point; 0 if it is alone.

    a_i is the mean distance |k(x_i, .) - k(x_j, .)| to the other points of its cluster, b_i the
    mean distance to the points of the nearest other cluster.  All pairs are looked at, in tiles.

    Parameters
    ----------
    gram : GramOperator
        K = k(X, X).
    labels : array of shape (n,)
        At least two different ones.

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
    names, places = np.unique(np.asarray(labels), return_inverse=True)
    if len(places) != n:
        raise ValueError(f"{len(places)} labels, but there are {n} points")
    if len(names) < 2:
        raise ValueError(
            "silhouettes compare clusters, and there is only one; ask for two clusters or more"
        )
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    member = np.zeros((n, len(names)))
    member[np.arange(n), places] = 1.0
    sums, squares = np.zeros((n, len(names))), np.zeros(n)

    def strip(rows: slice) -> Iterator[None]:
        for cols in slices(n, _COLUMNS):
            yield
            T = np.asarray(gram.block(rows, cols), dtype=np.float64)
            T *= -2.0
            T += diagonal[rows, None]
            T += diagonal[cols]
            if rows == cols:
                np.fill_diagonal(T, 0.0)
            squares[rows] += T.sum(axis=1)
            np.sqrt(np.maximum(T, 0.0, out=T), out=T)
            sums[rows] += T @ member[cols]

    run(strip, slices(n, _ROWS), gram.n_threads, gram.kernel._evaluation_work(n * n))
    error = ROUNDING * float(np.finfo(gram.dtype).eps * np.abs(diagonal).max())
    squared = float(squares.sum()) / (n * (n - 1))
    points = np.arange(n), np.zeros(n, dtype=np.intp)
    if squared * LOST < error and differ(gram.X, gram.X, *points).any():
        warn_of_cancellation(gram.kernel, "silhouettes are decided by rounding", squared, error)
    counts, every = np.bincount(places), np.arange(n)
    alone = counts[places] == 1
    inside = sums[every, places] / np.maximum(counts[places] - 1, 1)
    means = sums / counts
    means[every, places] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    score = np.divide(outside - inside, larger, out=np.zeros(n), where=larger > 0.0)
    return np.where(alone, 0.0, score)
