"""How K is held while clusters are sought: passes over all of it, or features on landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._errors import warn_caller
from ..._points import length
from ..._runtime import budget_in_bytes, check_budget, entry_point, reserve, slices
from ...gram import GramOperator, Landmarks, LowRankGram, TiledGram, gram
from ...kernels import Kernel, Precomputed
from .._choose import MOST_EXACT
from .._report import Report, Status
from ._lloyd import Lloyd, Partition

__all__ = ["Clusters", "cluster"]

_HELD = 4000  # points up to which K is held; beyond, evaluating it again is quicker


@dataclass(frozen=True, eq=False)
class Clusters:
    """Centroids f_c = sum_i coefficients[i, c] k(points[i], .), and the points nearest to them.

    Attributes
    ----------
    points : points
        In which the centroids are expanded: all, or landmarks.
    coefficients : ndarray of shape (len(points), n_clusters)
    squared_norms : ndarray of shape (n_clusters,)
        |f_c|^2.
    labels : ndarray of int
    inertia : float
        The weighted sum of squared distances in the feature space of the kernel itself.
    approximate : bool
        Whether the points are landmarks.
    history : ndarray
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
    say: Callable[[str], None] | None = None,
) -> Clusters:
    """Return clusters of the points X.

    ============ ======================================================================
    solver       K
    ============ ======================================================================
    "exact"      held up to 4000 points, or if its values are costly and fit the budget;
                 else evaluated in tiles, again in each round
    "nystroem"   F F^T with features F on landmarks, (n, rank)
    "auto"       "exact" up to 50 000 points, else "nystroem", with a warning
    ============ ======================================================================

    On landmarks f_c is the mean of the projections of k(x_i, .) on their span, and because what
    is projected away is orthogonal to it, the inertia is known exactly.

    Parameters
    ----------
    start : labels or points, optional
        (n,) integers, or n_clusters points, each the first centroid of a cluster.

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
            f"positive weight than clusters; ask for at most {n} clusters"
        )
    needed = lloyd.workspace(n)
    check_budget(needed, lloyd.max_memory, f"k-means of {n} points in {lloyd.n_clusters} clusters")
    labels = None if start is None else _first_labels(kernel, X, lloyd, start)
    message = ""
    if solver == "auto" and n > (most := MOST_EXACT["clusters"]):
        solver = "nystroem"
        message = (
            f"{n} points, more than {most}: centroids are sought in the span of landmarks, an "
            f"approximation. Set solver='nystroem' to say so, or solver='exact'"
        )
        warn_caller(message)
    share = budget_in_bytes(lloyd.max_memory) // 4
    reserve(max(needed, min(lloyd.workspace(n, lloyd.n_init), share)))
    if solver == "nystroem":
        chosen = landmarks or Landmarks()
        chosen.require(n)
        m = chosen.count(n)
        drawing = chosen.workspace(n) + 16 * m * m
        check_budget(drawing, lloyd.max_memory, f"drawing {m} landmarks among {n} points")
        phi = chosen.map(kernel, X)
        low = LowRankGram(kernel, X, phi, max_memory=lloyd.max_memory)
        found = lloyd.partition(low, weights, labels, say, _keys(X))
        return _on_landmarks(low, found, weights, message)
    held = n <= _HELD or kernel.costly or isinstance(kernel, Precomputed)
    K = gram(kernel, X, storage="auto" if held else "tiled", max_memory=lloyd.max_memory)
    found = lloyd.partition(K, weights, labels, say, _keys(X))
    return Clusters(
        X,
        found.coefficients,
        found.squared_norms,
        found.labels,
        found.inertia,
        False,
        found.history,
        found.report,
    )


def _keys(X: Any) -> np.ndarray | None:
    """Return a number for each vector, the same for equal ones; None for other points."""
    if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f")):
        return None
    direction = np.random.default_rng(0).uniform(0.5, 1.0, X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(X):
            return np.asarray(X @ direction)
        # Row by row: a product with a BLAS may round equal rows differently.
        parts = [(X[rows] * direction).sum(axis=1) for rows in slices(len(X), 1024)]
    return np.concatenate(parts)


def _on_landmarks(
    low: LowRankGram, found: Partition, weights: np.ndarray | None, message: str
) -> Clusters:
    """Return the centroids on landmarks, and the inertia with what was projected away."""
    A = found.coefficients
    means = sum(F.T @ A[rows] for rows, F in low.blocks())
    away = low.residual()
    lost = float(away.sum() if weights is None else weights @ away)
    numbers = {**found.report.certificate, "inertia": found.inertia + lost, "projected away": lost}
    text = "; ".join(filter(None, [message, found.report.message, *low.map.flaws]))
    ended = found.report.status
    status = Status.APPROXIMATE if ended is Status.CONVERGED else ended
    report = replace(found.report, status=status, message=text, certificate=numbers)
    return Clusters(
        low.map.points,
        low.map.expansion_coefficients(np.asarray(means)),
        found.squared_norms,
        found.labels,
        found.inertia + lost,
        True,
        found.history + lost,
        report,
    )


def _first_labels(kernel: Kernel, X: Any, lloyd: Lloyd, start: Any) -> np.ndarray:
    """Return the labels given, or for each point the nearest of the points given."""
    n, C = length(X), lloyd.n_clusters
    given = np.asarray(start) if isinstance(start, np.ndarray | list | tuple) else None
    flat = given is not None and given.ndim == 1 and given.dtype.kind in "iu"
    if flat and given is not None and len(given) == n:
        if given.min() < 0 or given.max() >= C:
            raise ValueError(
                f"init has labels from {given.min()} to {given.max()}; those of {C} clusters are "
                f"0 to {C - 1}"
            )
        return given
    if length(start) != C:
        raise ValueError(
            f"init must be {C} points, one for each cluster, or {n} labels, one for each point; "
            f"got {length(start)}"
        )
    K: GramOperator = TiledGram(kernel, X, start, max_memory=lloyd.max_memory)
    scores = kernel.diag(start) - 2.0 * K.to_array()
    return np.asarray(scores.argmin(axis=1))
