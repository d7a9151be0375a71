"""Distances in feature space, computed from K: for iterations of k-means, and for silhouettes.

The silhouette coefficient of a point compares its mean distances to its own and to the nearest
other cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ..._core import (
    NotPositiveDefiniteError,
    entry_point,
    ignore_overflow,
    not_finite_error,
    run_in_threads,
    slices,
)
from ...gram import (
    MAX_CANCELLATION_ERROR,
    ROUNDING_UNITS,
    DenseGram,
    GramOperator,
    TiledGram,
    points_differ,
    residual_tolerances,
    warn_about_cancellation,
)

_TILE_ROWS, _TILE_COLUMNS = 1024, 512  # size of the tiles of K in parallel tasks
_SILHOUETTE_TILE = 384  # rows and columns of a tile of distances for silhouettes


class KernelDistances:
    """Weighted points in feature space, represented by their kernel matrix K.

    The methods compute what an iteration of kernel k-means needs, such as distances.
    """

    @ignore_overflow
    def __init__(
        self,
        gram: GramOperator,
        weights: np.ndarray,
        n_clusters: int,
        keys: np.ndarray | None = None,
    ) -> None:
        self.gram, self.n, self.n_clusters = gram, gram.shape[0], n_clusters
        self.weights = np.asarray(weights, dtype=np.float64)
        self.diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
        if not np.isfinite(self.diagonal.sum()):
            raise not_finite_error(gram.kernel)
        self.scale = float(np.abs(self.diagonal).max(initial=0.0))
        self.floor = residual_tolerances(gram.dtype)[0] * self.scale
        self.keys = np.arange(float(self.n)) if keys is None else keys
        self.order = np.argsort(self.keys, kind="stable")

    def draw_points(self, probabilities: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Draw indices in proportion to `probabilities`, one for each uniform number u in [0, 1).

        The cumulative probabilities are those of the points sorted by their keys.
        """
        cumulative = np.cumsum(probabilities[self.order])
        positions = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        positions = np.minimum(positions, np.flatnonzero(probabilities[self.order])[-1])
        return np.asarray(self.order[positions])

    def rounding(self, norms: np.ndarray) -> float:
        """Return a bound on the rounding error of differences of squared distances."""
        largest = np.abs(norms[np.isfinite(norms)]).max(initial=self.scale)
        return float(ROUNDING_UNITS * np.finfo(self.gram.dtype).eps * largest)

    def inertia(self, scores: np.ndarray) -> float:
        """Return the inertia sum_i w_i |k(x_i, .) - f|^2, where f is the centroid of point i.

        The scores are |k(x_i, .) - f|^2 - k(x_i, x_i).
        """
        return float(self.weights @ np.maximum(self.diagonal + scores, 0.0))

    def single_cluster_inertia(self, sums: np.ndarray) -> float:
        """Return the inertia of all points as one cluster, from the sums of K over clusters."""
        w = self.weights
        return float(w @ self.diagonal - w @ sums.sum(axis=1) / w.sum())

    @ignore_overflow
    def distances(self, columns: np.ndarray) -> np.ndarray:
        """Return the squared distances of all points from the points with indices `columns`."""
        out = np.empty((self.n, len(columns)))

        def strip(rows: slice) -> None:
            out[rows] = self.gram.block(rows, columns)
            out[rows] *= -2.0
            out[rows] += self.diagonal[rows, None] + self.diagonal[columns]

        work = self.gram.kernel._evaluation_work(out.size)
        run_in_threads(strip, slices(self.n, _TILE_ROWS), self.gram.n_threads, work)
        if not np.isfinite(out.sum()):
            raise not_finite_error(self.gram.kernel)
        out[columns, np.arange(len(columns))] = 0.0
        if out.min() < -residual_tolerances(self.gram.dtype)[1] * max(self.scale, out.max()):
            raise NotPositiveDefiniteError(
                f"a squared distance in feature space is {out.min():.3g}, with k(x, x) up to "
                f"{self.scale:.3g}: {self.gram.kernel} is not positive semidefinite on these "
                f"points. Choose a positive semidefinite kernel"
            )
        return np.maximum(out, 0.0)

    def fill_empty_clusters(self, labels: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Assign the points that are farthest from their centroids to the empty clusters.

        Points that coincide with their centroid, and the last point of a cluster, are not moved.
        """
        counts = np.bincount(labels, minlength=self.n_clusters)
        empty = np.flatnonzero(counts == 0)
        if not len(empty):
            return labels
        labels, n_filled = labels.copy(), 0
        rounding = self.rounding(np.zeros(0))
        for i in np.argsort(-distances, kind="stable"):
            if n_filled == len(empty) or distances[i] <= rounding:
                break
            if counts[labels[i]] > 1:
                counts[labels[i]] -= 1
                labels[i] = empty[n_filled]
                n_filled += 1
        return labels

    def move_single_points(
        self, scores: np.ndarray, labels: np.ndarray, masses: np.ndarray, min_gain: float
    ) -> np.ndarray:
        """Move single points if that decreases the inertia by more than `min_gain`; return labels.

        If a point of weight w leaves cluster a, the inertia of a decreases by
        m_a w / (m_a - w) d_a^2, where m_a is the total weight of a, and d_a the distance of the
        point from its centroid.  If the point joins cluster b, the inertia of b increases by
        m_b w / (m_b + w) d_b^2.  Each cluster takes part in at most one move, so that the
        decreases add up.
        """
        rows, w = np.arange(self.n), self.weights
        squared = np.maximum(self.diagonal[:, None] + scores, 0.0)
        is_single = np.bincount(labels, minlength=self.n_clusters)[labels] == 1
        own_mass = masses[labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            decrease = np.where(
                is_single, 0.0, own_mass * w / (own_mass - w) * squared[rows, labels]
            )
            increase = squared * (masses * w[:, None] / (masses + w[:, None]))
        increase[:, masses == 0.0] = increase[rows, labels] = np.inf
        target = increase.argmin(axis=1)
        gain = decrease - increase[rows, target]
        new_labels, used = labels, np.zeros(self.n_clusters, dtype=bool)
        candidates = np.flatnonzero(gain > min_gain)
        for i in candidates[np.argsort(-gain[candidates], kind="stable")]:
            if not (used[labels[i]] or used[target[i]]):
                new_labels = labels.copy() if new_labels is labels else new_labels
                used[labels[i]] = used[target[i]] = True
                new_labels[i] = target[i]
        return new_labels

    def indicators(self, labels_of_starts: list[np.ndarray]) -> np.ndarray:
        """Return the weighted indicators of the clusters, with one column per start and cluster.

        Row i contains the weight w_i in the column of its cluster, and 0 otherwise.
        """
        out = np.zeros((self.n, len(labels_of_starts) * self.n_clusters))
        for i, labels in enumerate(labels_of_starts):
            out[np.arange(self.n), i * self.n_clusters + labels] = self.weights
        return out

    @ignore_overflow
    def sums(self, labels_of_starts: list[np.ndarray]) -> list[np.ndarray]:
        """Return for each start the sums of w_j k(x_i, x_j) over the points j of each cluster.

        Each array has shape (n, n_clusters).  All are computed in one pass over K.
        """
        S = np.asarray(self.gram @ self.indicators(labels_of_starts), dtype=np.float64)
        if not np.isfinite(S.sum()):
            raise not_finite_error(self.gram.kernel)
        return [np.ascontiguousarray(part) for part in np.hsplit(S, len(labels_of_starts))]

    def scores(
        self, sums: np.ndarray, labels: np.ndarray, masses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return |f_c|^2 - 2 f_c(x_i) and |f_c|^2 for all centroids f_c and points x_i.

        Both are infinite for empty clusters.
        """
        own = self.weights * sums[np.arange(self.n), labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            norms = np.bincount(labels, own, self.n_clusters) / masses**2
            scores = sums * (-2.0 / masses)
        scores += norms
        empty = masses == 0.0
        norms[empty], scores[:, empty] = np.inf, np.inf
        return scores, norms

    def update(
        self,
        sums: list[np.ndarray],
        moves: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]],
    ) -> None:
        """Update the sums of K over clusters after points have moved.

        Only the columns of K of these points are used; if more than half of the points moved, the
        sums are recomputed.  `moves` contains for each start the points that moved, their old
        labels, and the new labels of all points.
        """
        C = self.n_clusters
        columns = np.unique(np.concatenate([moved for moved, *_ in moves.values()]))
        # If most points moved, a full pass is cheaper, because it uses the symmetry of K.
        most_moved = 2 * len(columns) > self.n
        if most_moved or not isinstance(self.gram, DenseGram | TiledGram):
            new_sums = self.sums([labels for *_, labels in moves.values()])
            for i, S in zip(moves, new_sums, strict=True):
                sums[i] = S
            return
        D = np.zeros((len(columns), C * len(moves)))
        for j, (moved, old, labels) in enumerate(moves.values()):
            positions, w = np.searchsorted(columns, moved), self.weights[moved]
            D[positions, j * C + labels[moved]] += w
            D[positions, j * C + old] -= w
        change = _columns_product(self.gram, columns, D)
        for i, part in zip(moves, np.hsplit(change, len(moves)), strict=True):
            sums[i] += part


def _columns_product(gram: DenseGram | TiledGram, columns: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Return K[:, columns] D for a symmetric K."""
    if isinstance(gram, TiledGram):
        P = gram._P
        return np.asarray(TiledGram.on(gram.kernel, P, P[columns], gram.n_threads) @ D)
    K, out = gram.array, np.zeros((gram.shape[0], D.shape[1]))

    def strip(rows: slice) -> Iterator[None]:
        for part in slices(len(columns), _TILE_COLUMNS):
            yield
            # K is symmetric: its rows are contiguous in memory, its columns are not.
            out[rows] += K[columns[part], rows].T @ D[part]

    work = out.size * len(columns)
    run_in_threads(strip, slices(len(out), _TILE_ROWS), gram.n_threads, work)
    return out


@entry_point
def silhouette(gram: GramOperator, labels: ArrayLike) -> np.ndarray:
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

    See Also
    --------
    cluster : Compute clusters.

    References
    ----------
    Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", Journal of Computational and Applied Mathematics, 1987.

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
        for cols in slices(n, _SILHOUETTE_TILE):
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

    work = gram.kernel._evaluation_work(n * n)
    run_in_threads(strip, slices(n, _SILHOUETTE_TILE), gram.n_threads, work)
    error = ROUNDING_UNITS * float(np.finfo(gram.dtype).eps * np.abs(diagonal).max())
    mean_squared = float(squares.sum()) / (n * (n - 1))
    points = np.arange(n), np.zeros(n, dtype=np.intp)
    is_lost = mean_squared * MAX_CANCELLATION_ERROR < error
    if is_lost and points_differ(gram.X, gram.X, *points).any():
        what = "the silhouettes are determined by rounding errors"
        warn_about_cancellation(gram.kernel, what, mean_squared, error)
    counts, every = np.bincount(indices), np.arange(n)
    is_single = counts[indices] == 1
    inside = sums[every, indices] / np.maximum(counts[indices] - 1, 1)
    means = sums / counts
    means[every, indices] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    score = np.divide(outside - inside, larger, out=np.zeros(n), where=larger > 0.0)
    return np.where(is_single, 0.0, score)
