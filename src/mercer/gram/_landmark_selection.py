"""Choose landmarks: m of n points on which an approximation of K = k(X, X) is built.

Points x are drawn with probabilities that depend on the method:

    rpcholesky   proportional to the residual k(x, x) - |P_S k(x, .)|^2, where P_S is the projection
                 on the span of k(s, .) for the landmarks s chosen so far
    uniform      equal for all points
    kmeans++     proportional to the squared distance min_s k(x, x) - 2 k(x, s) + k(s, s) in feature
                 space to the nearest landmark s chosen so far
    leverage     proportional to the ridge leverage scores, the diagonal of K (K + mu I)^-1

"rpcholesky" and "kmeans++" draw points sequentially, by rejection sampling from blocks of
proposals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from .._core import (
    NotPositiveDefiniteError,
    Points,
    RandomState,
    as_csr,
    as_float64,
    as_generator,
    entry_point,
    ignore_overflow,
    is_count,
    length,
    not_finite_error,
    one_blas_thread,
    run_in_threads,
    slices,
    take,
)
from ..kernels import Kernel, expects_precomputed_rows
from ._operator import GramOperator
from ._pivoted_cholesky import (
    columns_of,
    residual_tolerances,
    rpcholesky,
    sample_by_rejection,
    sequential_rpcholesky,
)
from ._tiled import TiledGram

# By default, m landmarks are chosen among max(DEFAULT_CANDIDATES, CANDIDATES_PER_LANDMARK * m)
# points.  With more candidates, smaller clusters are found, but the kernel is evaluated more often.
DEFAULT_CANDIDATES, CANDIDATES_PER_LANDMARK = 20_000, 20
_MAX_DENSE_POINTS = 500  # for fewer points, evaluating all of K is faster than many small blocks
_STRIP_ROWS = 1024  # number of rows of K that one task processes
_MAX_PILOT_RANK = 1000  # maximum rank of the factor from which leverage scores are computed


@entry_point
def choose_landmarks(
    kernel: Kernel,
    X: Points,
    m: int,
    method: str = "rpcholesky",
    *,
    random_state: RandomState = None,
    n_threads: int | None = None,
    candidates: int | None = None,
) -> np.ndarray:
    """Choose m points of X as landmarks, and return their indices in the order of choice.

    ============ ================================================================= ==============
    method       description                                                       evaluations
    ============ ================================================================= ==============
    "rpcholesky" Recommended.  Finds outliers and small clusters, but does not     m n
                 spend all landmarks on them.
    "uniform"    Needs no kernel values, but misses small                          0
                 clusters.
    "kmeans++"   Spreads the landmarks evenly.  The kernel may be conditionally    m n
                 positive definite.
    "leverage"   Samples without replacement by ridge leverage scores, computed    min(m, 1000) n
                 from a pilot factor of K.  The ridge mu is chosen so that the
                 scores sum to m / 2.
    ============ ================================================================= ==============

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The points; if they are a memory-mapped file, only the candidates are read.
    m : int
        Number of landmarks, at most the number of points.
    method : {"rpcholesky", "uniform", "kmeans++", "leverage"}, default "rpcholesky"
        Sampling method; see the table.
    random_state : int, Generator, RandomState or None, default None
        Seed or source of random numbers.
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.
    candidates : int or None, default None
        Number of points, sampled uniformly, among which the landmarks are chosen; None means
        max(20 000, 20 m).  It limits the cost for large X, but a cluster of fewer than about
        n / candidates points may be missed.  `LowRankGram.residual_trace` measures the exact error
        of the landmarks over all points.

    Returns
    -------
    ndarray of shape (m,)
        Indices of the landmarks, at least one.  There are fewer than m only if more landmarks
        would not improve the approximation: with "rpcholesky" if the rank of K is reached, with
        "kmeans++" if all points coincide with landmarks, with "leverage" if k(x, x) = 0 for
        all other points.

    See Also
    --------
    Landmarks : Also choose centroids of k-means as landmarks.
    rpcholesky : The factor of K that belongs to the first method.

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a kernel
    matrix with few entry evaluations", Communications on Pure and Applied Mathematics, 2025.

    Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Alaoui and Mahoney, "Fast randomized kernel ridge regression with statistical guarantees", NIPS
    2015, for ridge leverage scores.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import choose_landmarks
    >>> from mercer.kernels import Linear, RBF
    >>> X = np.vstack([np.zeros((99, 1)), [[10.0]]])
    >>> sorted(X[choose_landmarks(RBF(), X, 2, random_state=0), 0].tolist())
    [0.0, 10.0]
    >>> len(choose_landmarks(Linear(), X, 5, random_state=0))  # the rank of K is 1
    1
    """
    n = length(X)
    _check_count(m, n)
    if method != "uniform" and method not in _METHODS:
        names = ", ".join(map(repr, ["uniform", *_METHODS]))
        raise ValueError(f"unknown landmark method {method!r}; choose one of {names}")
    rng = as_generator(random_state)
    if method == "uniform":
        return np.asarray(rng.choice(n, m, replace=False), dtype=np.intp)
    candidate_index, n_candidates = np.arange(n), _count_candidates(n, m, candidates)
    if expects_precomputed_rows(kernel):
        K = TiledGram(kernel, X)
    elif n_candidates == n:
        K = TiledGram(kernel, as_float64(X))
    else:
        # The candidates are sorted, so that a file on disk is read in one pass.
        candidate_index = np.sort(rng.choice(n, n_candidates, replace=False))
        K = TiledGram(kernel, as_float64(take(as_csr(X), candidate_index)))
    chosen = candidate_index[_METHODS[method](K, m, rng, n_threads)]
    return chosen if len(chosen) else candidate_index[:1]  # if k = 0, any point can be used


def landmark_choice_bytes(n: int, m: int, dense: bool = False) -> int:
    """Return the bytes needed to choose m landmarks among n points.

    The choice needs m columns of K at the candidates.  If `dense` is True, the memory for all of K
    is added if there are few candidates.
    """
    return 8 * m * _count_candidates(n, m, None) + dense * 8 * min(n, _MAX_DENSE_POINTS) ** 2


def _check_count(m: Any, n: int) -> None:
    """Raise an error unless m landmarks can be chosen among n points."""
    if not is_count(m):
        raise ValueError(f"the number of landmarks must be a positive integer, got {m!r}")
    if m > n:
        raise ValueError(
            f"more landmarks than points: {m} landmarks were requested, but there are only {n} "
            f"points; request at most {n}, or solve the full problem"
        )


def _count_candidates(n: int, m: int, candidates: Any) -> int:
    """Validate `candidates` and return the number of points to choose among."""
    if candidates is None:
        return min(n, max(DEFAULT_CANDIDATES, CANDIDATES_PER_LANDMARK * m))
    if not is_count(candidates, m):
        raise ValueError(
            f"candidates must be None or an integer of at least {m}, the number of landmarks, got "
            f"{candidates!r}"
        )
    return min(n, int(candidates))


# ---------------------------------------------------------------------- methods


def choose_with_residual(
    kernel: Kernel, X: Points, m: int, rng: Any, n_threads: int | None = None
) -> tuple[np.ndarray, float]:
    """Choose landmarks by "rpcholesky" among all points X, and measure their residual.

    Returns
    -------
    pivots : ndarray of shape (m,)
        Indices of the landmarks.
    residual : float
        Sum of the residuals of the other points x, which is the squared distance of k(x, .) from
        the span of the landmarks' k(s, .), divided by the sum of k(x, x).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._landmark_selection import choose_with_residual
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [0.0], [9.0], [9.0]])
    >>> choose_with_residual(RBF(), X, 2, np.random.default_rng(0))[1]
    0.0
    """
    diagonal = np.asarray(kernel.diag(X), dtype=float)
    floor, negative = np.abs(diagonal).max() * np.array(residual_tolerances(np.float64))
    pivots, residual = np.empty(0, dtype=np.intp), diagonal
    if len(residual) <= _MAX_DENSE_POINTS:
        pivots, residual = sequential_rpcholesky(kernel(X), m, floor, rng)
    # `rpcholesky` handles many points, and raises an error if k is not positive semidefinite.
    if not len(pivots) or not residual.min() >= -negative:
        cholesky = rpcholesky(TiledGram(kernel, X), m, random_state=rng, n_threads=n_threads)
        pivots, residual = cholesky.pivots, cholesky.residual
    others = np.delete(np.arange(len(residual)), pivots)
    return pivots, float(residual[others].sum() / max(diagonal[others].sum(), 1e-300))


def _by_residual(K: GramOperator, m: int, rng: Any, n_threads: int | None) -> np.ndarray:
    """Choose landmarks by randomly pivoted Cholesky."""
    return rpcholesky(K, m, random_state=rng, n_threads=n_threads).pivots


def _by_distance(K: GramOperator, m: int, rng: Any, n_threads: int | None) -> np.ndarray:
    """Choose landmarks like the initial centres of k-means++, in feature space."""
    first = np.array([int(rng.random() * K.shape[0])], dtype=np.intp)
    density = _NearestLandmark(K, first, n_threads)
    return np.concatenate([first, sample_by_rejection(density, m - 1, rng)])


class _NearestLandmark:
    """Sampling weights of k-means++: the squared distance to the nearest landmark."""

    @ignore_overflow
    def __init__(self, gram: GramOperator, first: np.ndarray, n_threads: int | None) -> None:
        self.gram, self.n_threads = gram, n_threads
        self.diagonal = np.array(gram.diagonal(), dtype=np.float64)
        self.nearest = np.full(gram.shape[0], np.inf)
        self._append(first)
        scale = max(np.abs(self.diagonal).max(), self.nearest.max())
        self.floor = residual_tolerances(gram.dtype)[0] * scale

    def weights(self) -> np.ndarray:
        return np.where(self.nearest > self.floor, self.nearest, 0.0)

    @ignore_overflow
    def accept(self, P: np.ndarray, uniforms: np.ndarray, max_accepted: int) -> np.ndarray:
        between = self._distances(self.gram.block(P, P), P, P)
        start, accepted = self.nearest[P], []
        current = start.copy()
        for j in range(len(P)):
            if current[j] > self.floor and uniforms[j] * start[j] < current[j]:
                np.minimum(current, between[j], out=current)
                accepted.append(j)
                if len(accepted) == max_accepted:
                    break
        self._append(P[accepted])
        return P[accepted]

    def _append(self, chosen: np.ndarray) -> None:
        """Update the distances to the nearest landmark for new landmarks."""
        columns = columns_of(self.gram, chosen)

        def strip(rows: slice) -> None:
            distances = self._distances(columns(rows), rows, chosen).min(axis=1)
            np.minimum(self.nearest[rows], distances, out=self.nearest[rows])

        work = self.gram.kernel._evaluation_work(len(self.nearest) * len(chosen))
        run_in_threads(strip, slices(len(self.nearest), _STRIP_ROWS), self.n_threads, work)
        self.nearest[chosen] = 0.0
        self._check()
        np.maximum(self.nearest, 0.0, out=self.nearest)

    def _distances(self, block: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
        """Return the squared distances in feature space for a block K[rows][:, columns]."""
        squared: np.ndarray = self.diagonal[rows, None] - 2.0 * block + self.diagonal[columns]
        return squared

    def _check(self) -> None:
        """Raise an error if a squared distance is not finite, or clearly negative."""
        lowest = float(self.nearest.min())
        scale = np.abs(self.diagonal).max()
        if not np.isfinite(self.nearest.sum()):
            raise not_finite_error(self.gram.kernel)
        if lowest < -residual_tolerances(self.gram.dtype)[1] * scale:
            raise NotPositiveDefiniteError(
                f"a squared distance in feature space is {lowest:.3g}, with k(x, x) up to "
                f"{scale:.3g}: {self.gram.kernel} is not positive semidefinite on these points; "
                f"choose a Mercer kernel, or method='uniform'"
            )


def _by_leverage(K: GramOperator, m: int, rng: Any, n_threads: int | None) -> np.ndarray:
    """Sample landmarks without replacement by ridge leverage scores."""
    pilot = rpcholesky(K, min(m, _MAX_PILOT_RANK), random_state=rng, n_threads=n_threads)
    with one_blas_thread:  # the result must not depend on the number of threads
        scores = _leverage(pilot.factor, pilot.residual, 0.5 * m)
    # Draw an exponential variable with rate `score` for each point.  The points with the m smallest
    # values are a sample without replacement, with probabilities proportional to the scores.
    with np.errstate(divide="ignore"):
        arrival_times = rng.exponential(size=len(scores)) / scores
    return np.argsort(arrival_times, kind="stable")[: min(m, np.count_nonzero(scores))]


def _leverage(F: np.ndarray, residual: np.ndarray, dimension: float) -> np.ndarray:
    """Return ridge leverage scores that sum to `dimension`.

    The scores are f_i^T (F F^T + mu I)^-1 f_i + r_i / (r_i + mu), where f_i are the columns of F,
    r is the residual diag(K - F^T F), and the ridge mu is chosen so that they have this sum.  The
    second term is an upper bound for the part of K that F does not represent.
    """
    eigenvalues, Q = np.linalg.eigh(F @ F.T)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    squares = np.square(F.T @ Q)

    def score_sum(log_mu: float) -> float:
        mu = np.exp(log_mu)
        known = np.sum(eigenvalues / (eigenvalues + mu))
        return float(known + np.sum(residual / (residual + mu)))

    trace = float(eigenvalues.sum() + residual.sum())
    if not trace:
        return np.zeros(len(residual))
    # The sum is at most trace / mu.  If the rank of K is small, the sum may be smaller than
    # `dimension` for all mu.
    low, high = np.log(1e-12 * trace / len(residual)), np.log(trace / dimension)
    if low >= high or score_sum(low) <= dimension:
        mu = np.exp(low)
    else:
        mu = np.exp(brentq(lambda t: score_sum(t) - dimension, low, high))
    scores: np.ndarray = squares @ (1.0 / (eigenvalues + mu)) + residual / (residual + mu)
    return scores


_METHODS: dict[str, Callable[..., np.ndarray]] = {
    "rpcholesky": _by_residual,
    "kmeans++": _by_distance,
    "leverage": _by_leverage,
}
