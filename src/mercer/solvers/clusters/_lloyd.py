"""K-means in feature space: Lloyd's algorithm, which needs K and nothing else.

    f_c = sum_{i in c} w_i k(x_i, .) / m_c,     m_c = sum_{i in c} w_i
    |k(x, .) - f_c|^2 = k(x, x) - 2 f_c(x) + |f_c|^2

A round is one product of K with the indicators of the clusters.  After the first one, only columns
of points that moved are needed: few, as the clusters settle.  Several starts share the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Step, Stopwatch, budget_in_bytes, entry_point, random_numbers, slices
from ...gram import LOST, GramOperator, warn_of_cancellation
from .._report import Report, Status
from ._scatter import Scatter

__all__ = ["Lloyd", "Partition"]

_ARRAYS = 6  # of the size of the indicators of one start: sums, indicators, products, scores


@dataclass(frozen=True, eq=False)
class Partition:
    """Clusters of points, each with its centroid f_c = sum_i coefficients[i, c] k(x_i, .).

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        The nearest centroid of each point.
    coefficients : ndarray of shape (n, n_clusters)
        The centroids.  Where a start ended because labels no longer changed they are the means of
        their points.
    squared_norms : ndarray of shape (n_clusters,)
        |f_c|^2; infinite for a cluster without points, which is nobody's nearest.
    distances : ndarray of shape (n,)
        Squared, of each point from its centroid.
    inertia : float
        sum_i w_i distances_i.
    history : ndarray
        The inertia of the means after each round of this start.
    report : Report

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Lloyd
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> found = Lloyd(2, random_state=0).partition(gram("RBF()", X))
    >>> bool(found.labels[0] == found.labels[1] != found.labels[2])
    True
    """

    labels: np.ndarray
    coefficients: np.ndarray
    squared_norms: np.ndarray
    distances: np.ndarray
    inertia: float
    history: np.ndarray
    report: Report


@entry_point
@dataclass(frozen=True)
class Lloyd:
    """Lloyd's algorithm in feature space, from several starts; the lowest inertia wins.

    A cluster that loses all its points takes the point that is farthest from its centroid.  The
    inertia falls in every round, up to rounding.

    Parameters
    ----------
    n_clusters : int
    init : {"k-means++", "random"}
        First centroids are points drawn by their squared distance in feature space to those drawn
        before, the best of some candidates each time; or points drawn by their weight.
    n_init : int
        How many starts.
    algorithm : {"lloyd", "hartigan"}
        Whether to end when every point is nearest to the centroid of its own cluster, or to go on
        with points whose move lowers the inertia after all, because the centroids move with them.
    tol : float
        A start ends when no point moves, or when a round lowers the inertia by less than this
        share of the variance that the clusters explain: the inertia of one cluster less this one.
    max_iter : int
        Rounds, at most.
    random_state : int, Generator, RandomState or None
        None stands for 0.
    max_memory : int, str or None
        As many starts as fit a quarter of it run together.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import Lloyd
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> found = Lloyd(2).partition(gram(Linear(), X))
    >>> bool(found.labels[0] == found.labels[1] != found.labels[2]), round(found.inertia, 8)
    (True, 1.0)
    """

    n_clusters: int
    init: str = "k-means++"
    n_init: int = 1
    algorithm: str = "lloyd"
    tol: float = 1e-4
    max_iter: int = 300
    random_state: Any = None
    max_memory: Any = None

    def workspace(self, n: int, starts: int = 1) -> int:
        """Return the bytes that so many starts take beside K."""
        return 8 * n * (_ARRAYS * self.n_clusters * (starts + 1) + 12)

    def partition(
        self,
        gram: GramOperator,
        weights: np.ndarray | None = None,
        start: np.ndarray | None = None,
        say: Callable[[str], None] | None = None,
        keys: np.ndarray | None = None,
    ) -> Partition:
        """Return the best partition that the starts lead to; its heaviest cluster is number 0.

        Where labels to start from are given, clusters keep their numbers.

        Parameters
        ----------
        gram : GramOperator
            K = k(X, X), held in any way.
        weights : array of shape (n,), optional
            Positive.
        start : array of int, shape (n,), optional
            Labels to start from, in place of `init`.
        say : function, optional
            Called with a line of text after each round.
        keys : array of shape (n,), optional
            A number for each point, the same for equal points.  First centroids are drawn from
            points in the order of their keys, so that a point of weight 2 is drawn like two points,
            in whatever order points are given.  The order of the points by default.
        """
        watch, n, C = Stopwatch(), gram.shape[0], self.n_clusters
        points = Scatter(gram, np.ones(n) if weights is None else weights, C, keys)
        rng = random_numbers(self.random_state)
        starts = [start] if start is not None else [None] * self.n_init
        streams = rng.spawn(len(starts))
        share = budget_in_bytes(self.max_memory) // 4
        together = max(1, int((share / (8 * n) - 12) / (_ARRAYS * C)) - 1)
        done: list[_Start] = []
        for part in slices(len(starts), together):
            some = [
                _Start(self._first(points, stream) if labels is None else np.asarray(labels))
                for labels, stream in zip(starts[part], streams[part], strict=True)
            ]
            self._descend(points, some, say)
            done = [min([*done, *some], key=lambda each: each.inertia)]  # the first of equals
        best = done[0]
        if start is None:  # the order in which centroids were drawn means nothing
            first = np.full(C, np.inf)
            np.minimum.at(first, best.means, points.keys)
            best.renumber(np.lexsort((first, -best.masses)))  # of equal masses by the least key
        return self._result(points, best, len(starts), watch)

    def _first(self, points: Scatter, rng: np.random.Generator) -> np.ndarray:
        """Return labels: for each point the nearest of the points drawn."""
        n, C, w = points.n, self.n_clusters, points.weights
        if self.init == "random":
            drawn: list[int] = []
            chances = w.copy()
            while len(drawn) < C and np.any(chances > 0.0):
                drawn.append(int(points.draw(chances, rng.random(1))[0]))
                chances[points.keys == points.keys[drawn[-1]]] = 0.0  # and not an equal point
            return points.distances(np.array(drawn)).argmin(axis=1)
        trials = 2 + int(np.log(C))
        first = points.draw(w, rng.random(1))
        nearest, labels = points.distances(first)[:, 0], np.zeros(n, dtype=np.intp)
        for c in range(1, C):
            chances = w * np.where(nearest > points.floor, nearest, 0.0)
            if not np.any(chances > 0.0):
                break  # all points coincide with those drawn
            distances = points.distances(points.draw(chances, rng.random(trials)))
            left = [w @ np.minimum(nearest, d) for d in distances.T]
            new = distances[:, int(np.argmin(left))]
            closer = new < nearest
            labels[closer], nearest = c, np.minimum(nearest, new)
        return labels

    def _descend(
        self, points: Scatter, starts: list[_Start], say: Callable[[str], None] | None
    ) -> None:
        """Move points of all starts until each has ended."""
        sums = points.sums([each.labels for each in starts])
        running = list(range(len(starts)))
        for iteration in range(1, self.max_iter + 1):
            moves = {i: self._step(points, starts[i], sums[i], iteration) for i in running}
            if say is not None:
                lowest = min(each.inertia for each in starts)
                count = sum(len(moved) for moved, _ in moves.values())
                say(Step(f"round {iteration}: inertia {lowest:.6g}, {count} points move"))
            running = [i for i in running if not starts[i].ended]
            if not running or iteration == self.max_iter:
                return
            points.update(sums, {i: (moves[i][0], moves[i][1], starts[i].labels) for i in running})

    def _step(
        self, points: Scatter, start: _Start, sums: np.ndarray, iteration: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give each point to its nearest centroid; return which moved, and where they were."""
        n, old = points.n, start.labels
        masses = np.bincount(old, points.weights, self.n_clusters)
        scores, norms = points.scores(sums, old, masses)
        own = scores[np.arange(n), old]
        inertia = points.inertia(own)
        decrease = start.history[-1] - inertia if start.history else np.inf
        start.history.append(inertia)
        labels = scores.argmin(axis=1)
        gain = own - scores[np.arange(n), labels]
        small = points.rounding(norms)
        labels = np.where(gain > small, labels, old)
        nearest = scores[np.arange(n), labels]
        start.distances = np.maximum(points.diagonal + nearest, 0.0)
        start.inertia, start.squared_norms = points.inertia(nearest), norms
        start.means, start.masses, start.n_iter = old, masses, iteration
        repaired = points.repaired(labels, start.distances)
        total = points.inertia_of_one(sums)
        start.variance = total / float(points.weights.sum())
        explained = max(total - inertia, 0.0)
        if self.algorithm == "hartigan" and np.array_equal(repaired, old):
            least = max(self.tol * explained, small)
            repaired = points.moved_singly(scores, old, masses, least)
        little = np.array_equal(repaired, labels) and decrease <= self.tol * explained
        start.converged = little or np.array_equal(repaired, old)
        start.ended = start.converged or iteration == self.max_iter
        start.labels = labels = labels if start.ended else repaired
        moved = np.flatnonzero(labels != old)
        return moved, old[moved]

    def _result(self, points: Scatter, best: _Start, n_starts: int, watch: Stopwatch) -> Partition:
        found = int(np.count_nonzero(best.masses))
        messages = []
        if found < self.n_clusters:
            messages.append(
                f"{found} clusters were found, fewer than n_clusters={self.n_clusters}; the usual "
                f"cause are points that coincide in feature space. Ask for fewer clusters"
            )
        if not best.converged:
            last = best.history[-2] - best.history[-1] if len(best.history) > 1 else np.nan
            messages.append(
                f"points still moved after {self.max_iter} rounds; the last lowered the inertia of "
                f"{best.inertia:.6g} by {last:.2g}. Raise max_iter, or tol"
            )
        for text in messages:
            warn_caller(text, ConvergenceWarning)
        error = points.rounding(np.zeros(0))
        if 1 < self.n_clusters == found and not error < LOST * best.variance:
            what = "the clusters are decided by rounding"
            warn_of_cancellation(points.gram.kernel, what, best.variance, error)
        history = np.array(best.history)
        last = abs(history[-1] - best.inertia) / max(abs(history[-1]), np.finfo(float).tiny)
        numbers = {"inertia": best.inertia, "clusters": found, "starts": n_starts}
        status = Status.CONVERGED if best.converged else Status.NOT_CONVERGED
        text = "; ".join(messages)
        report = Report(
            f"Lloyd(n_clusters={self.n_clusters}, n_init={n_starts})",
            status,
            best.n_iter,
            float(last),
            watch.seconds,
            text,
            numbers,
        )
        indicators = points.indicators([best.means])
        coefficients = indicators / np.where(best.masses > 0.0, best.masses, 1.0)
        return Partition(
            best.labels,
            coefficients,
            best.squared_norms,
            best.distances,
            best.inertia,
            history,
            report,
        )


class _Start:
    """Where one start has come to."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels.astype(np.intp)
        self.history: list[float] = []
        self.inertia = self.variance = np.inf
        self.converged = self.ended = False
        self.n_iter = 0
        self.means = self.labels  # the labels whose means the centroids are
        self.masses: np.ndarray = np.empty(0)
        self.squared_norms: np.ndarray = np.empty(0)
        self.distances: np.ndarray = np.empty(0)

    def renumber(self, order: np.ndarray) -> None:
        """Give the clusters in this order the numbers 0, 1, ..."""
        number = np.argsort(order)
        self.labels, self.means = number[self.labels], number[self.means]
        self.masses, self.squared_norms = self.masses[order], self.squared_norms[order]
