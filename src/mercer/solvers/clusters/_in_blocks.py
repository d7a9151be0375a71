"""K-means on landmarks for points in blocks: a round is one pass, of sums by cluster.

    f_c = sum_{i in c} w_i phi(x_i) / m_c,     i in c where |f_c|^2 - 2 <f_c, phi(x_i)> is least

Labels are not kept: where no point moves the sums, added up in the same order, have the same bits,
and that is what ends the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._points import doubled
from ..._runtime import Step, Stopwatch, entry_point, one_blas_thread
from ...blocks import Blocks, Rows
from ...gram import NystroemMap
from .._report import Report, Status
from ._cluster import Clusters
from ._lloyd import Lloyd

__all__ = ["cluster_blocks"]


@dataclass(frozen=True, eq=False)
class _Round:
    """Sums over rows: of phi by cluster and their weights, of distances, and the farthest point."""

    sums: np.ndarray  # (m, C)
    weights: np.ndarray  # (C,)
    inertia: float  # in the span of the landmarks
    away: float  # sum of w (k(x, x) - |phi|^2)
    spread: float  # sum of w |phi|^2
    distance: float  # of the point that is farthest from its centroid
    farthest: np.ndarray  # phi of it

    def merge(self, other: _Round) -> _Round:
        far = self if self.distance >= other.distance else other
        return _Round(
            self.sums + other.sums,
            self.weights + other.weights,
            self.inertia + other.inertia,
            self.away + other.away,
            self.spread + other.spread,
            far.distance,
            far.farthest,
        )


def _round(rows: Rows, phi: NystroemMap, centroids: np.ndarray, start: Any) -> _Round:
    """Give the rows of a block to their clusters: by centroids, or first by points given."""
    w = np.ones(len(rows.X)) if rows.weights is None else rows.weights
    C = centroids.shape[1]
    norms = np.einsum("ij,ij->j", centroids, centroids)
    found = _Round(np.zeros(centroids.shape), np.zeros(C), 0.0, 0.0, 0.0, -1.0, np.zeros(len(phi)))
    for part, F in phi.blocks(rows.X):
        X, u = doubled(rows.X[part]), w[part]
        squares = np.einsum("ij,ij->i", F, F)
        scores = norms - 2.0 * (F @ centroids)
        if start is not None:
            labels = (phi.kernel.diag(start) - 2.0 * phi.kernel(X, start)).argmin(axis=1)
        else:
            labels = scores.argmin(axis=1)
        each = np.arange(len(F))
        distances = np.maximum(squares + scores[each, labels], 0.0)
        members = np.zeros((len(F), C))
        members[each, labels] = u
        far = int(np.argmax(np.where(u > 0, distances, -1.0)))
        away = np.maximum(phi.kernel.diag(X) - squares, 0.0)
        found = found.merge(
            _Round(
                F.T @ members,
                members.sum(axis=0),
                float(u @ distances),
                float(u @ away),
                float(u @ squares),
                float(distances[far]) if u[far] > 0 else -1.0,
                F[far].copy(),
            )
        )
    return found


@entry_point
@one_blas_thread
def cluster_blocks(
    phi: NystroemMap,
    blocks: Blocks,
    lloyd: Lloyd,
    start: np.ndarray,
    given: Any = None,
    say: Callable[[str], None] | None = None,
) -> Clusters:
    """Return clusters of points in blocks, with centroids in the span of landmarks.

    Parameters
    ----------
    start : ndarray of shape (m, n_clusters)
        First centroids, in the coordinates of phi.
    given : points, optional
        To which of these a point is nearest is its first cluster, instead.

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
            f"algorithm={lloyd.algorithm!r} moves one point after the other; for points in blocks "
            f"there is algorithm='lloyd'"
        )
    watch, centroids, history = Stopwatch(), np.array(start), list[float]()
    status, round = Status.NOT_CONVERGED, 0
    found: _Round = blocks.reduce(_round, _Round.merge, phi, centroids, given)
    for round in range(1, lloyd.max_iter + 1):
        before, centroids = centroids, _means(found, centroids)
        found = blocks.reduce(_round, _Round.merge, phi, centroids, None)
        history.append(found.inertia + found.away)
        if say is not None:
            say(Step(f"round {round}: inertia {history[-1]:.6g}"))
        mean = found.sums.sum(axis=1) / found.weights.sum()
        explained = found.spread - found.weights.sum() * float(mean @ mean) - found.inertia
        small = round > 1 and history[-2] - history[-1] <= lloyd.tol * max(explained, 0.0)
        if np.array_equal(before, centroids) or (small and lloyd.tol > 0):
            status = Status.APPROXIMATE
            break
    squared = np.einsum("ij,ij->j", centroids, centroids)
    squared = np.where(found.weights > 0, squared, np.inf)
    report = Report(
        repr(replace(lloyd, n_init=1)),
        status,
        round,
        seconds=watch.seconds,
        message="; ".join([f"{round + 1} passes over the points", *phi.flaws]),
        certificate={"inertia": history[-1], "projected away": found.away},
    )
    order = np.arange(len(squared))
    if given is None:  # the heaviest first
        order = np.argsort(-found.weights, kind="stable")
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


def _means(found: _Round, before: np.ndarray) -> np.ndarray:
    """Return the centroids; the first cluster that lost all its points takes the farthest one."""
    empty = found.weights <= 0.0
    means = np.where(empty, before, found.sums / np.where(empty, 1.0, found.weights))
    if empty.any() and found.distance > 0.0:
        means[:, int(np.argmax(empty))] = found.farthest
    return means
