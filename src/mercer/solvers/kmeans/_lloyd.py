"""Kernel k-means by Lloyd's algorithm, which needs only the kernel matrix K.

For points x_i with weights w_i, the centroid f_c of cluster c and the squared distances are

    f_c = sum_{i in c} w_i k(x_i, .) / m_c,     m_c = sum_{i in c} w_i
    |k(x, .) - f_c|^2 = k(x, x) - 2 f_c(x) + |f_c|^2

An iteration is one product of K with the indicator vectors of the clusters.  After the first
iteration, only those columns of K are needed whose points changed their cluster; they become fewer
as the algorithm converges.  Several starts run at the same time and share these columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    MemoryLimit,
    Points,
    ProgressCallback,
    ProgressStep,
    RandomState,
    Stopwatch,
    budget_in_bytes,
    entry_point,
    seeded_generator,
    slices,
    warn_caller,
)
from ...gram import MAX_CANCELLATION_ERROR, GramOperator, warn_about_cancellation
from .._report import Report, Status
from ._cluster_distances import KernelDistances

# Number of arrays of shape (n, n_clusters) per start: sums, indicators, products and scores.
_ARRAYS_PER_START = 6


@dataclass(frozen=True, eq=False)
class Clusters:
    """Result of kernel k-means: centroids f_c = sum_i coefficients[i, c] k(points[i], .).

    Attributes
    ----------
    points : points
        The points on which the centroids are expanded: all points, or landmarks.
    coefficients : ndarray of shape (len(points), n_clusters)
        The coefficients of the centroids.  If the algorithm stopped because labels no longer
        changed, the centroids are the means of their clusters.
    squared_norms : ndarray of shape (n_clusters,)
        |f_c|^2; infinite for a cluster without points, so that it is never the nearest one.
    labels : ndarray of int, shape (n,), or None
        The cluster of each point.  None for `Blocks`, because labels may not fit into memory.
    inertia : float
        The weighted sum of squared distances of the points from their centroids in feature space.
        It is exact even if the centroids are expanded on landmarks.
    approximate : bool
        Whether the centroids are expanded on landmarks.
    history : ndarray of shape (n_iter,)
        The inertia after each iteration of the best start.
    report : Report
        Status, number of iterations and time.
    distances : ndarray of shape (n,) or None, default=None
        Squared distance of each point from its centroid; None for `Blocks`.

    See Also
    --------
    cluster : Compute clusters.

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

    points: Points
    coefficients: np.ndarray
    squared_norms: np.ndarray
    labels: np.ndarray | None
    inertia: float
    approximate: bool
    history: np.ndarray
    report: Report
    distances: np.ndarray | None = None


@entry_point
@dataclass(frozen=True)
class Lloyd:
    """Lloyd's algorithm for kernel k-means, which returns the best of several starts.

    It partitions the points such that the points of a cluster are close to their centroid in
    feature space.  An iteration is one product of K with the indicators of the clusters.

    The best start is that with the lowest inertia, the weighted sum of squared distances of the
    points from their centroids.  If a cluster becomes empty, the point with the largest
    distance from the centroid of its own cluster is assigned to it.  The inertia decreases in every
    iteration, up to rounding.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    init : {"k-means++", "random"}, default="k-means++"
        How the initial centroids are drawn from the points.  "k-means++" draws with probabilities
        proportional to the squared distance in feature space from the centroids drawn before, and
        uses the best of several candidates.  "random" draws in proportion to the weights.
    n_init : int, default=1
        Number of starts.  More starts find better local minima; they share passes over K.
    algorithm : {"lloyd", "hartigan"}, default="lloyd"
        "lloyd" stops when every point is nearest to the centroid of its own cluster.  "hartigan"
        then also moves single points to other clusters if that decreases the inertia, which is
        possible because the centroids change too.
    tol : float, default=1e-4
        A start stops when no point moves, or when an iteration decreases the inertia by less than
        `tol` times the explained variance: the inertia of a single cluster minus the current one.
    max_iter : int, default=300
        Maximum number of iterations.
    random_state : int, Generator, RandomState or None, default=None
        Seed for the initial centroids; None means 0.
    max_memory : int, str or None, default=None
        Memory budget.  The starts that run at the same time use at most a quarter of it.

    See Also
    --------
    cluster : Choose how K is stored or approximated, and run this algorithm.

    References
    ----------
    Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory, 1982.

    Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Hartigan and Wong, "Algorithm AS 136: a k-means clustering algorithm", Applied Statistics, 1979.

    Dhillon, Guan and Kulis, "Kernel k-means, spectral clustering and normalized cuts", KDD 2004.

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
    random_state: RandomState = None
    max_memory: MemoryLimit = None

    def workspace(self, n: int, starts: int = 1) -> int:
        """Return the memory that the algorithm needs in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        starts : int, default=1
            Number of starts that run together.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * n * (_ARRAYS_PER_START * self.n_clusters * (starts + 1) + 12)

    def partition(
        self,
        gram: GramOperator,
        weights: np.ndarray | None = None,
        start: np.ndarray | None = None,
        log: ProgressCallback | None = None,
        keys: np.ndarray | None = None,
    ) -> Clusters:
        """Return the partition of the best start.

        Clusters are numbered by decreasing weight, or as in `start` if initial labels are given.

        Parameters
        ----------
        gram : GramOperator
            The kernel matrix K = k(X, X).
        weights : array of shape (n,) or None, default=None
            Positive weights of the points; None means 1.
        start : array of int of shape (n,) or None, default=None
            Initial labels, used instead of `init`.
        log : callable or None, default=None
            Called with a progress message after each iteration.
        keys : array of shape (n,) or None, default=None
            A number for each point, equal for equal points; None means the index of the point.
            Initial centroids are drawn from the points sorted by key.  A point of weight 2 then
            gives the same draws as two equal points, in any order of the points.

        Returns
        -------
        Clusters
            Centroids, labels of shape (n,) and inertia.
        """
        watch, n, C = Stopwatch(), gram.shape[0], self.n_clusters
        points = KernelDistances(gram, np.ones(n) if weights is None else weights, C, keys)
        rng = seeded_generator(self.random_state)
        starts = [start] if start is not None else [None] * self.n_init
        streams = rng.spawn(len(starts))
        quarter = budget_in_bytes(self.max_memory) // 4
        n_together = max(1, int((quarter / (8 * n) - 12) / (_ARRAYS_PER_START * C)) - 1)
        retained: list[_LloydState] = []
        for chunk in slices(len(starts), n_together):
            states = [
                _LloydState(
                    self._initial_labels(points, stream) if labels is None else np.asarray(labels)
                )
                for labels, stream in zip(starts[chunk], streams[chunk], strict=True)
            ]
            self._iterate(points, states, log)
            # Among equally good starts, the first one is retained.
            retained = [min([*retained, *states], key=attrgetter("inertia"))]
        best = retained[0]
        if start is None:  # clusters are numbered in random order: sort them by weight
            first = np.full(C, np.inf)
            np.minimum.at(first, best.centroid_labels, points.keys)
            # clusters of equal weight are sorted by smallest key
            best.renumber(np.lexsort((first, -best.masses)))
        return self._result(points, best, len(starts), watch)

    def _initial_labels(self, points: KernelDistances, rng: np.random.Generator) -> np.ndarray:
        """Draw the initial centroids, and return the index of the nearest one for each point."""
        n, C, w = points.n, self.n_clusters, points.weights
        if self.init == "random":
            drawn: list[int] = []
            probabilities = w.copy()
            while len(drawn) < C and np.any(probabilities > 0.0):
                drawn.append(int(points.draw_points(probabilities, rng.random(1))[0]))
                # Do not draw a point twice, nor a point equal to it.
                probabilities[points.keys == points.keys[drawn[-1]]] = 0.0
            nearest: np.ndarray = points.distances(np.array(drawn)).argmin(axis=1)
            return nearest
        trials = 2 + int(np.log(C))
        first = points.draw_points(w, rng.random(1))
        nearest, labels = points.distances(first)[:, 0], np.zeros(n, dtype=np.intp)
        for c in range(1, C):
            probabilities = w * np.where(nearest > points.floor, nearest, 0.0)
            if not np.any(probabilities > 0.0):
                break  # every point coincides with a point that was drawn
            distances = points.distances(points.draw_points(probabilities, rng.random(trials)))
            inertias = [w @ np.minimum(nearest, d) for d in distances.T]
            new = distances[:, int(np.argmin(inertias))]
            closer = new < nearest
            labels[closer], nearest = c, np.minimum(nearest, new)
        return labels

    def _iterate(
        self, points: KernelDistances, starts: list[_LloydState], log: ProgressCallback | None
    ) -> None:
        """Iterate from all starts at the same time, until each of them has stopped."""
        sums = points.sums([state.labels for state in starts])
        running, iteration = list(range(len(starts))), 0
        while running:
            iteration += 1
            moves = {i: self._step(points, starts[i], sums[i], iteration) for i in running}
            if log is not None:
                lowest = min(state.inertia for state in starts)
                count = sum(len(moved) for moved, _ in moves.values())
                text = f"iteration {iteration}: inertia {lowest:.6g}, {count} points move"
                log(ProgressStep(text))
            running = [i for i in running if not starts[i].stopped]
            if running:
                going = {i: (*moves[i], starts[i].labels) for i in running}
                points.update(sums, going)

    def _step(
        self, points: KernelDistances, state: _LloydState, sums: np.ndarray, iteration: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Assign points to the nearest centroids; return those that moved and their old labels."""
        n, old = points.n, state.labels
        masses = np.bincount(old, points.weights, self.n_clusters)
        scores, norms = points.scores(sums, old, masses)
        own = scores[np.arange(n), old]
        inertia = points.inertia(own)
        decrease = state.history[-1] - inertia if state.history else np.inf
        state.history.append(inertia)
        labels = scores.argmin(axis=1)
        gain = own - scores[np.arange(n), labels]
        rounding = points.rounding(norms)
        labels = np.where(gain > rounding, labels, old)
        nearest = scores[np.arange(n), labels]
        state.distances = np.maximum(points.diagonal + nearest, 0.0)
        state.inertia, state.squared_norms = points.inertia(nearest), norms
        state.centroid_labels, state.masses, state.n_iter = old, masses, iteration
        new_labels = points.fill_empty_clusters(labels, state.distances)
        total = points.single_cluster_inertia(sums)
        state.variance = total / float(points.weights.sum())
        explained = max(total - inertia, 0.0)
        if self.algorithm == "hartigan" and np.array_equal(new_labels, old):
            min_gain = max(self.tol * explained, rounding)
            new_labels = points.move_single_points(scores, old, masses, min_gain)
        small_decrease = np.array_equal(new_labels, labels) and decrease <= self.tol * explained
        state.converged = small_decrease or np.array_equal(new_labels, old)
        state.stopped = state.converged or iteration == self.max_iter
        state.labels = labels = labels if state.stopped else new_labels
        moved = np.flatnonzero(labels != old)
        return moved, old[moved]

    def _result(
        self, points: KernelDistances, best: _LloydState, n_starts: int, watch: Stopwatch
    ) -> Clusters:
        n_found = int(np.count_nonzero(best.masses))
        messages = []
        if n_found < self.n_clusters:
            messages.append(
                f"{n_found} clusters were found, fewer than n_clusters={self.n_clusters}. The "
                f"usual cause is points that coincide in feature space. Use fewer clusters"
            )
        if not best.converged:
            change = ""
            if len(best.history) > 1:
                decrease = best.history[-2] - best.history[-1]
                change = f"; the last one decreased the inertia by {decrease:.2g}"
            messages.append(
                f"points still moved after {self.max_iter} iterations{change} to an inertia of "
                f"{best.inertia:.6g}. Increase max_iter or tol"
            )
        for text in messages:
            warn_caller(text, ConvergenceWarning)
        error = points.rounding(np.zeros(0))
        if 1 < self.n_clusters == n_found and not error < MAX_CANCELLATION_ERROR * best.variance:
            what = "the clusters are determined by rounding errors"
            warn_about_cancellation(points.gram.kernel, what, best.variance, error)
        history = np.array(best.history)
        change = abs(history[-1] - best.inertia) / max(abs(history[-1]), np.finfo(float).tiny)
        numbers = {"inertia": best.inertia, "clusters": n_found, "starts": n_starts}
        status = Status.CONVERGED if best.converged else Status.NOT_CONVERGED
        solver, text = (
            f"Lloyd(n_clusters={self.n_clusters}, n_init={n_starts})",
            "; ".join(messages),
        )
        measured = best.n_iter, float(change), watch.seconds
        report = Report(solver, status, *measured, text, numbers)
        indicators = points.indicators([best.centroid_labels])
        coefficients = indicators / np.where(best.masses > 0.0, best.masses, 1.0)
        return Clusters(
            points.gram.X,
            coefficients,
            best.squared_norms,
            best.labels,
            best.inertia,
            approximate=False,
            history=history,
            report=report,
            distances=best.distances,
        )


class _LloydState:
    """The state of Lloyd's algorithm for one of several starts."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels.astype(np.intp)
        self.history: list[float] = []
        self.inertia = self.variance = np.inf
        self.converged = self.stopped = False
        self.n_iter = 0
        self.centroid_labels = self.labels  # the centroids are the means of these clusters
        self.masses: np.ndarray = np.empty(0)
        self.squared_norms: np.ndarray = np.empty(0)
        self.distances: np.ndarray = np.empty(0)

    def renumber(self, order: np.ndarray) -> None:
        """Renumber the clusters, so that cluster order[c] becomes cluster c."""
        new_number = np.argsort(order)
        self.labels = new_number[self.labels]
        self.centroid_labels = new_number[self.centroid_labels]
        self.masses, self.squared_norms = self.masses[order], self.squared_norms[order]
