"""Kernel k-means for points in `Blocks`, which need not fit in memory, on landmark features phi.

    f_c = sum_{i in c} w_i phi(x_i) / m_c,     label_i = argmin_c |f_c|^2 - 2 <f_c, phi(x_i)>

Here f_c is the centroid of cluster c, m_c its total weight, and w_i the weight of point i.  Each
iteration is one pass over the points that sums the features of each cluster.  Labels are not
stored.  The order of summation is fixed: if no point changes its cluster, the sums are bit-for-bit
identical, and the iteration stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._core import ProgressStep, Stopwatch, as_float64, entry_point, one_blas_thread
from ...blocks import BlockRows, Blocks
from ...gram import NystroemMap
from .._report import Report, Status
from ._kmeans_solver import Clusters
from ._lloyd import Lloyd

__all__ = ["cluster_blocks"]


@dataclass(frozen=True, eq=False)
class _IterationSums:
    """Sums over the points of one iteration, by cluster and in total, and the farthest point."""

    sums: np.ndarray  # weighted sums of the features phi of each cluster, of shape (m, C)
    weights: np.ndarray  # total weight of each cluster, of shape (C,)
    inertia: float  # the part of the inertia within the span of the landmarks
    outside: float  # the inertia outside the span, the sum of w (k(x, x) - |phi|^2)
    spread: float  # the sum of w |phi|^2
    distance: float  # largest squared distance of a point from its centroid; -1 without points
    farthest: np.ndarray  # the features of the point at this distance

    def merge(self, other: _IterationSums) -> _IterationSums:
        farther = self if self.distance >= other.distance else other
        return _IterationSums(
            self.sums + other.sums,
            self.weights + other.weights,
            self.inertia + other.inertia,
            self.outside + other.outside,
            self.spread + other.spread,
            farther.distance,
            farther.farthest,
        )


def _sum_rows(
    rows: BlockRows, phi: NystroemMap, centroids: np.ndarray, start: Any
) -> _IterationSums:
    """Assign the rows of a block to clusters, and return their sums.

    Rows are assigned to the nearest centroid or, if `start` is not None, to the nearest of the
    points `start`.
    """
    w = np.ones(len(rows.X)) if rows.weights is None else rows.weights
    C = centroids.shape[1]
    norms = np.einsum("ij,ij->j", centroids, centroids)
    sums = _IterationSums(
        np.zeros(centroids.shape), np.zeros(C), 0.0, 0.0, 0.0, -1.0, np.zeros(len(phi))
    )
    for part, F in phi.blocks(rows.X):
        X, row_weights = as_float64(rows.X[part]), w[part]
        squares = np.einsum("ij,ij->i", F, F)
        scores = norms - 2.0 * (F @ centroids)
        if start is not None:
            labels = (phi.kernel.diag(start) - 2.0 * phi.kernel(X, start)).argmin(axis=1)
        else:
            labels = scores.argmin(axis=1)
        every = np.arange(len(F))
        distances = np.maximum(squares + scores[every, labels], 0.0)
        membership = np.zeros((len(F), C))
        membership[every, labels] = row_weights
        farthest = int(np.argmax(np.where(row_weights > 0, distances, -1.0)))
        outside = np.maximum(phi.kernel.diag(X) - squares, 0.0)
        sums = sums.merge(
            _IterationSums(
                F.T @ membership,
                membership.sum(axis=0),
                float(row_weights @ distances),
                float(row_weights @ outside),
                float(row_weights @ squares),
                float(distances[farthest]) if row_weights[farthest] > 0 else -1.0,
                F[farthest].copy(),
            )
        )
    return sums


@entry_point
@one_blas_thread
def cluster_blocks(
    phi: NystroemMap,
    blocks: Blocks,
    lloyd: Lloyd,
    start: np.ndarray,
    given: Any = None,
    log: Callable[[str], None] | None = None,
) -> Clusters:
    """Cluster points in `Blocks` by kernel k-means, with centroids in the span of landmarks.

    Parameters
    ----------
    phi : NystroemMap
        The map to landmark features.
    blocks : Blocks
        The points, with their weights.
    lloyd : Lloyd
        Parameters; `algorithm` must be "lloyd", and `init` and `n_init` are not used.
    start : ndarray of shape (m, n_clusters)
        Initial centroids, as columns of landmark features.
    given : points, optional
        One point for each cluster.  If given, these points replace the initial centroids.
    log : callable, optional
        Called with a progress message after each iteration.

    Returns
    -------
    Clusters

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import Blocks
    >>> from mercer.gram import NystroemMap
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Lloyd, cluster_blocks
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> phi = NystroemMap.on(RBF(), X)
    >>> found = cluster_blocks(phi, Blocks.of(X, rows=2), Lloyd(2), phi.features(X[[0, 2]]).T)
    >>> round(found.inertia, 4)
    0.01
    """
    if lloyd.algorithm != "lloyd":
        raise ValueError(
            f"algorithm={lloyd.algorithm!r} moves points one at a time, which is not possible for "
            f"Blocks; use algorithm='lloyd'"
        )
    watch, centroids, history = Stopwatch(), np.array(start), list[float]()
    status, iteration = Status.NOT_CONVERGED, 0
    sums: _IterationSums = blocks.reduce(_sum_rows, _IterationSums.merge, phi, centroids, given)
    for iteration in range(1, lloyd.max_iter + 1):
        previous, centroids = centroids, _new_centroids(sums, centroids)
        sums = blocks.reduce(_sum_rows, _IterationSums.merge, phi, centroids, None)
        history.append(sums.inertia + sums.outside)
        if log is not None:
            log(ProgressStep(f"iteration {iteration}: inertia {history[-1]:.6g}"))
        mean = sums.sums.sum(axis=1) / sums.weights.sum()
        explained = sums.spread - sums.weights.sum() * float(mean @ mean) - sums.inertia
        small_decrease = iteration > 1 and history[-2] - history[-1] <= lloyd.tol * max(
            explained, 0.0
        )
        if np.array_equal(previous, centroids) or (small_decrease and lloyd.tol > 0):
            status = Status.APPROXIMATE
            break
    squared = np.einsum("ij,ij->j", centroids, centroids)
    squared = np.where(sums.weights > 0, squared, np.inf)
    report = Report(
        repr(replace(lloyd, n_init=1)),
        status,
        iteration,
        seconds=watch.seconds,
        message="; ".join([f"{iteration + 1} passes over the points", *phi.report_remarks]),
        certificate={"inertia": history[-1], "projected away": sums.outside},
    )
    order = np.arange(len(squared))
    if given is None:  # number the clusters by decreasing weight
        order = np.argsort(-sums.weights, kind="stable")
    return Clusters(
        phi.points,
        phi.expansion_coefficients(centroids[:, order]),
        squared[order],
        np.empty(0, dtype=int),
        history[-1],
        True,
        np.array(history),
        report,
    )


def _new_centroids(sums: _IterationSums, previous: np.ndarray) -> np.ndarray:
    """Return the means of the clusters, which are the new centroids.

    The first empty cluster gets the point that is farthest from its centroid.
    """
    empty = sums.weights <= 0.0
    means = np.where(empty, previous, sums.sums / np.where(empty, 1.0, sums.weights))
    if empty.any() and sums.distance > 0.0:
        means[:, int(np.argmax(empty))] = sums.farthest
    return means
