"""Kernel k-means on all points or on landmarks.

`cluster` decides how the kernel matrix K is stored or approximated, and runs Lloyd's algorithm.
"""

from __future__ import annotations

from dataclasses import replace
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    Points,
    ProgressCallback,
    ProgressStep,
    Stopwatch,
    as_float64,
    budget_in_bytes,
    check_budget,
    entry_point,
    length,
    one_blas_thread,
    reserve,
    slices,
    warn_caller,
)
from ...blocks import BlockRows, Blocks, reduce_rows
from ...gram import GramOperator, Landmarks, LowRankGram, NystroemMap, TiledGram, gram
from ...kernels import Kernel, Precomputed
from .._choose_solver import MAX_EXACT_POINTS, use_landmarks
from .._report import Report, Status
from ._lloyd import Clusters, Lloyd

_MAX_STORED_POINTS = 4000  # for more points, evaluating K again is faster than reading it


@entry_point
def cluster(
    kernel: Kernel,
    X: Points,
    lloyd: Lloyd,
    solver: str = "auto",
    landmarks: Landmarks | None = None,
    *,
    weights: np.ndarray | None = None,
    start: Any = None,
    among: tuple[Points, np.ndarray | None] | None = None,
    log: ProgressCallback | None = None,
) -> Clusters:
    """Cluster the points X by kernel k-means.

    The solver determines how the kernel matrix K is represented:

    ============ ==========================================================================
    solver       K
    ============ ==========================================================================
    "exact"      stored for up to 4000 points, or if the kernel is costly and K fits the
                 budget; otherwise evaluated in tiles, again in each iteration
    "nystroem"   approximated by F F^T with landmark features F of shape (n, rank)
    "auto"       "exact" up to 50 000 points, otherwise "nystroem", with a warning
    ============ ==========================================================================

    With landmarks, each centroid is the mean of the projections of k(x_i, .) onto the span of the
    landmarks.  The residuals of these projections are orthogonal to the span, so that the inertia
    can still be computed exactly.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points or Blocks
        The n points.  `Blocks` require the solver "nystroem".
    lloyd : Lloyd
        The algorithm and its parameters.
    solver : {"auto", "exact", "nystroem"}, default="auto"
        How K is represented; see the table.
    landmarks : Landmarks or None, default=None
        How landmarks are chosen; None means `Landmarks()`.
    weights : ndarray of shape (n,) or None, default=None
        Positive weights of the points; None means 1.
    start : labels, points or None, default=None
        Either n integers, the initial labels, or n_clusters points, the initial centroids.  None
        draws them; see `Lloyd`.
    among : pair (points, weights) or None, default=None
        If X is `Blocks`: points in memory from which landmarks and initial centroids are computed.
    log : callable or None, default=None
        Called with a progress message after each iteration.

    Returns
    -------
    Clusters
        Centroids, labels of shape (n,) and inertia.

    See Also
    --------
    Lloyd : The algorithm on a given kernel matrix.
    silhouette : Evaluate clusters.

    References
    ----------
    Dhillon, Guan and Kulis, "Kernel k-means, spectral clustering and normalized cuts", KDD 2004.

    Schölkopf, Smola and Müller, "Nonlinear component analysis as a kernel eigenvalue problem",
    Neural Computation, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Lloyd, cluster
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> found = cluster(RBF(), X, Lloyd(2, random_state=0))
    >>> bool(found.labels[0] == found.labels[1] != found.labels[2]), round(found.inertia, 4)
    (True, 0.01)
    """
    n = length(X)
    if isinstance(X, Blocks):
        return _cluster_in_passes(kernel, X, lloyd, landmarks, weights, start, among, log)
    if lloyd.n_clusters > n:
        raise ValueError(
            f"n_samples={n} should be >= n_clusters={lloyd.n_clusters}: there are fewer points of "
            f"positive weight than clusters. Use at most {n} clusters"
        )
    needed = lloyd.workspace(n)
    check_budget(needed, lloyd.max_memory, f"k-means of {n} points in {lloyd.n_clusters} clusters")
    labels = None if start is None else _initial_labels(kernel, X, lloyd, start)
    message = ""
    if solver == "auto" and use_landmarks(solver, n, "clusters"):
        solver = "nystroem"
        message = (
            f"with more than {MAX_EXACT_POINTS['clusters']} points (here {n}), centroids are "
            f"restricted to the span of landmarks, which is an approximation. Set "
            f"solver='nystroem' to silence this warning, or solver='exact' to avoid the "
            f"approximation"
        )
        warn_caller(message)
    quarter = budget_in_bytes(lloyd.max_memory) // 4
    reserve(max(needed, min(lloyd.workspace(n, lloyd.n_init), quarter)))
    if solver == "nystroem":
        choice = landmarks or Landmarks()
        choice.require(n)
        m = choice.count(n)
        landmark_bytes = choice.workspace(n) + 16 * m * m
        check_budget(landmark_bytes, lloyd.max_memory, f"drawing {m} landmarks among {n} points")
        phi = choice.map(kernel, X)
        low_rank = LowRankGram(kernel, X, phi, max_memory=lloyd.max_memory)
        found = lloyd.partition(low_rank, weights, labels, log, _point_keys(X))
        return _expand_on_landmarks(low_rank, found, weights, message)
    storage = "auto" if stores_cluster_gram(kernel, n) else "tiled"
    K = gram(kernel, X, storage=storage, max_memory=lloyd.max_memory)
    return lloyd.partition(K, weights, labels, log, _point_keys(X))


def stores_cluster_gram(kernel: Kernel, n: int) -> bool:
    """Whether k-means of n points stores the kernel matrix, if it fits the memory budget."""
    return n <= _MAX_STORED_POINTS or kernel.domain.costly or isinstance(kernel, Precomputed)


def _cluster_in_passes(
    kernel: Kernel,
    X: Blocks,
    lloyd: Lloyd,
    landmarks: Landmarks | None,
    weights: np.ndarray | None,
    start: Points,
    among: tuple[Points, np.ndarray | None] | None,
    log: ProgressCallback | None,
) -> Clusters:
    """Cluster points in blocks, with centroids in the span of landmarks.

    The points `among` are clustered first, to initialise the centroids.  After that, each iteration
    is one pass over the blocks.
    """
    if among is None:
        raise TypeError("k-means of Blocks needs points in memory to choose landmarks from: among")
    if start is not None and np.ndim(start) == 1:
        raise ValueError("for data in blocks, init must be points, not labels")
    if lloyd.algorithm != "lloyd":
        raise ValueError(
            f"algorithm={lloyd.algorithm!r} moves points one at a time, which is not possible for "
            f"Blocks; use algorithm='lloyd'"
        )
    choice, (points, point_weights) = landmarks or Landmarks(), among
    choice.require(length(points))
    phi = choice.map(kernel, points)
    if start is None:
        chosen = Landmarks(method=phi.points)
        first = cluster(kernel, points, lloyd, "nystroem", chosen, weights=point_weights, log=log)
        # Convert coefficients of landmarks to coordinates in the feature map phi.
        centroids = phi.factor.T @ first.coefficients
    else:
        centroids = phi.features(start).T
    found = _iterate_in_passes(phi, X, lloyd, centroids, start, weights, log)
    if found.report.status is Status.NOT_CONVERGED:
        warn_caller(
            f"points still change clusters after {lloyd.max_iter} iterations; increase max_iter "
            f"or tol",
            ConvergenceWarning,
        )
    return found


def _point_keys(X: Points) -> np.ndarray | None:
    """Return a number for each point, such that equal points have equal numbers.

    Returns None if the points are not vectors.
    """
    if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f")):
        return None
    direction = np.random.default_rng(0).uniform(0.5, 1.0, X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(X):
            return np.asarray(X @ direction)
        # A BLAS product is not used, because it may round equal rows differently.
        parts = [(X[rows] * direction).sum(axis=1) for rows in slices(len(X), 1024)]
    return np.concatenate(parts)


def _expand_on_landmarks(
    low_rank: LowRankGram, found: Clusters, weights: np.ndarray | None, message: str
) -> Clusters:
    """Return the clusters of a low-rank K, with centroids expanded on the landmarks.

    The inertia includes the squared distances of the points from the span of the landmarks.
    """
    phi, A = low_rank.map, found.coefficients
    means = sum(F.T @ A[rows] for rows, F in low_rank.blocks())
    residuals = low_rank.residual()
    residual = float(residuals.sum() if weights is None else weights @ residuals)
    inertia, status = found.inertia + residual, found.report.status
    report = replace(
        found.report,
        status=Status.APPROXIMATE if status is Status.CONVERGED else status,
        message="; ".join(filter(None, [message, found.report.message, *phi.report_remarks])),
        certificate={**found.report.certificate, "inertia": inertia, "projected away": residual},
    )
    return replace(
        found,
        points=phi.points,
        coefficients=phi.expansion_coefficients(np.asarray(means)),
        inertia=inertia,
        approximate=True,
        history=found.history + residual,
        report=report,
        distances=None if found.distances is None else found.distances + residuals,
    )


def _initial_labels(kernel: Kernel, X: Points, lloyd: Lloyd, start: Any) -> np.ndarray:
    """Return the initial labels, from `start`, which contains labels or initial centroids."""
    n, C = length(X), lloyd.n_clusters
    labels = np.asarray(start) if isinstance(start, np.ndarray | list | tuple) else None
    is_integer = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu"
    if is_integer and labels is not None and len(labels) == n:
        if labels.min() < 0 or labels.max() >= C:
            raise ValueError(
                f"init has labels from {labels.min()} to {labels.max()}, but with n_clusters={C}, "
                f"labels must be 0 to {C - 1}"
            )
        return labels
    if length(start) != C:
        raise ValueError(
            f"init must be {C} points, one for each cluster, or {n} labels, one for each point; "
            f"got {length(start)} items"
        )
    K: GramOperator = TiledGram(kernel, X, start, max_memory=lloyd.max_memory)
    scores = kernel.diag(start) - 2.0 * K.to_array()
    return np.asarray(scores.argmin(axis=1))


# --- Lloyd's algorithm in passes over the points, on landmark features phi.
#
#     f_c = sum_{i in c} w_i phi(x_i) / m_c,     label_i = argmin_c |f_c|^2 - 2 <f_c, phi(x_i)>
#
# Each pass sums the features of each cluster; labels are not stored.  The order of summation is
# fixed: if no point changes its cluster, the sums are bit-for-bit identical, and the iteration
# stops.


class _IterationSums(NamedTuple):
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
        return _IterationSums._make([*map(add, self[:5], other[:5]), *farther[5:]])


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


@one_blas_thread
def _iterate_in_passes(
    phi: NystroemMap,
    X: Blocks,
    lloyd: Lloyd,
    centroids: np.ndarray,
    given: Points,
    weights: np.ndarray | None,
    log: ProgressCallback | None,
) -> Clusters:
    """Iterate from `centroids`, columns of landmark features of shape (m, n_clusters).

    If the points `given` are not None, one for each cluster, they replace the initial centroids.
    """
    watch, history = Stopwatch(), list[float]()
    status, iteration = Status.NOT_CONVERGED, 0

    def pass_over_points(centroids: np.ndarray, start: Points) -> _IterationSums:
        sums: _IterationSums = reduce_rows(
            *(X, _sum_rows, _IterationSums.merge, phi, centroids, start), weights=weights
        )
        return sums

    sums = pass_over_points(centroids, given)
    for iteration in range(1, lloyd.max_iter + 1):
        previous, centroids = centroids, _new_centroids(sums, centroids)
        sums = pass_over_points(centroids, None)
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
    coefficients = phi.expansion_coefficients(centroids[:, order])
    result = None, history[-1], True, np.array(history), report
    return Clusters(phi.points, coefficients, squared[order], *result)


def _new_centroids(sums: _IterationSums, previous: np.ndarray) -> np.ndarray:
    """Return the means of the clusters, which are the new centroids.

    The first empty cluster gets the point that is farthest from its centroid.
    """
    empty = sums.weights <= 0.0
    means = np.where(empty, previous, sums.sums / np.where(empty, 1.0, sums.weights))
    if empty.any() and sums.distance > 0.0:
        means[:, int(np.argmax(empty))] = sums.farthest
    return means
