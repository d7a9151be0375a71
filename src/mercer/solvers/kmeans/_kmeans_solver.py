"""Kernel k-means on all points or on landmarks.

`cluster` decides how the kernel matrix K is stored or approximated, and runs Lloyd's algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import (
    budget_in_bytes,
    check_budget,
    entry_point,
    length,
    reserve,
    slices,
    warn_caller,
)
from ...gram import GramOperator, Landmarks, LowRankGram, TiledGram, gram
from ...kernels import Kernel, Precomputed
from .._choose_solver import MAX_EXACT_POINTS
from .._report import Report, Status
from ._lloyd import Lloyd, Partition

__all__ = ["Clusters", "cluster"]

_MAX_STORED_POINTS = 4000  # for more points, evaluating K again is faster than reading it


@dataclass(frozen=True, eq=False)
class Clusters:
    """Result of kernel k-means: centroids f_c = sum_i coefficients[i, c] k(points[i], .).

    Attributes
    ----------
    points : points
        The points on which the centroids are expanded: all points, or landmarks.
    coefficients : ndarray of shape (len(points), n_clusters)
        The coefficients of the centroids.
    squared_norms : ndarray of shape (n_clusters,)
        |f_c|^2.
    labels : ndarray of int, shape (n,)
        The cluster of each point.  It is empty if the points were passed as `Blocks`.
    inertia : float
        The weighted sum of squared distances of the points from their centroids in feature space.
        It is exact even if the centroids are expanded on landmarks.
    approximate : bool
        Whether the centroids are expanded on landmarks.
    history : ndarray
        The inertia after each iteration.
    report : Report

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Lloyd, cluster
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> found = cluster(RBF(), X, Lloyd(2, random_state=0))
    >>> found.coefficients.shape, found.approximate
    ((4, 2), False)
    """

    points: Any
    coefficients: np.ndarray
    squared_norms: np.ndarray
    labels: np.ndarray
    inertia: float
    approximate: bool
    history: np.ndarray
    report: Report


@entry_point
def cluster(
    kernel: Kernel,
    X: Any,
    lloyd: Lloyd,
    solver: str = "auto",
    landmarks: Landmarks | None = None,
    *,
    weights: np.ndarray | None = None,
    start: Any = None,
    log: Callable[[str], None] | None = None,
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
    X : points
    lloyd : Lloyd
        The algorithm and its parameters.
    solver : {"auto", "exact", "nystroem"}, default="auto"
    landmarks : Landmarks, optional
        How landmarks are chosen.
    weights : ndarray of shape (n,), optional
        Positive weights of the points.
    start : labels or points, optional
        Either n integers, the initial labels, or n_clusters points, the initial centroids.
    log : callable, optional
        Called with a progress message after each iteration.

    Returns
    -------
    Clusters

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
    if lloyd.n_clusters > n:
        raise ValueError(
            f"n_samples={n} should be >= n_clusters={lloyd.n_clusters}: there are fewer points of "
            f"positive weight than clusters. Use at most {n} clusters"
        )
    needed = lloyd.workspace(n)
    check_budget(needed, lloyd.max_memory, f"k-means of {n} points in {lloyd.n_clusters} clusters")
    labels = None if start is None else _initial_labels(kernel, X, lloyd, start)
    message = ""
    if solver == "auto" and n > (max_exact := MAX_EXACT_POINTS["clusters"]):
        solver = "nystroem"
        message = (
            f"with more than {max_exact} points (here {n}), centroids are restricted to the span "
            f"of landmarks, which is an approximation. Set solver='nystroem' to silence this "
            f"warning, or solver='exact' to avoid the approximation"
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
        partition = lloyd.partition(low_rank, weights, labels, log, _point_keys(X))
        return _landmark_clusters(low_rank, partition, weights, message)
    store = n <= _MAX_STORED_POINTS or kernel.costly or isinstance(kernel, Precomputed)
    K = gram(kernel, X, storage="auto" if store else "tiled", max_memory=lloyd.max_memory)
    partition = lloyd.partition(K, weights, labels, log, _point_keys(X))
    return Clusters(
        X,
        partition.coefficients,
        partition.squared_norms,
        partition.labels,
        partition.inertia,
        False,
        partition.history,
        partition.report,
    )


def _point_keys(X: Any) -> np.ndarray | None:
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


def _landmark_clusters(
    low_rank: LowRankGram, partition: Partition, weights: np.ndarray | None, message: str
) -> Clusters:
    """Return the result of k-means with centroids in the span of landmarks.

    The inertia includes the squared distances of the points from this span.
    """
    A = partition.coefficients
    means = sum(F.T @ A[rows] for rows, F in low_rank.blocks())
    residuals = low_rank.residual()
    residual = float(residuals.sum() if weights is None else weights @ residuals)
    numbers = {
        **partition.report.certificate,
        "inertia": partition.inertia + residual,
        "projected away": residual,
    }
    text = "; ".join(
        filter(None, [message, partition.report.message, *low_rank.map.report_remarks])
    )
    solver_status = partition.report.status
    status = Status.APPROXIMATE if solver_status is Status.CONVERGED else solver_status
    report = replace(partition.report, status=status, message=text, certificate=numbers)
    return Clusters(
        low_rank.map.points,
        low_rank.map.expansion_coefficients(np.asarray(means)),
        partition.squared_norms,
        partition.labels,
        partition.inertia + residual,
        True,
        partition.history + residual,
        report,
    )


def _initial_labels(kernel: Kernel, X: Any, lloyd: Lloyd, start: Any) -> np.ndarray:
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
