"""Landmarks: the m of n points on which an approximation of K = k(X, X) is built.

    rpcholesky   drawn by the residual k(x, x) - |P_S k(x, .)|^2, P_S the projection on the span
    uniform      drawn with equal chances
    kmeans++     drawn by the squared distance min_s k(x, x) - 2 k(x, s) + k(s, s) in feature space
    leverage     drawn by ridge leverage scores, the diagonal of K (K + mu I)^-1

The first and the third draw one point after the other, by rejection from blocks of proposals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from .._errors import NotPositiveDefiniteError, not_finite
from .._points import doubled, length, sliceable, take
from .._runtime import entry_point, generator, is_count, one_blas_thread, quiet, run, slices
from ..kernels import Kernel, reads_all
from ._operator import GramOperator
from ._pivots import pivots_one_by_one
from ._rpcholesky import columns_of, draw, rpcholesky, significance
from ._tiled import TiledGram

__all__ = ["choose_landmarks", "choosing_bytes"]

CANDIDATES, PER_LANDMARK = 20_000, 20  # points among which landmarks are chosen, by default
_FEW = 500  # candidates of which all of K takes less time than many small blocks of it
_STRIP = 1024  # rows of K that one task works on
_PILOT = 1000  # rank, at most, of the factor behind leverage scores


@entry_point
def choose_landmarks(
    kernel: Kernel,
    X: Any,
    m: int,
    method: str = "rpcholesky",
    *,
    random_state: Any = None,
    n_threads: int | None = None,
    candidates: int | None = None,
) -> np.ndarray:
    """Return the indices of m points of X to be used as landmarks, in the order of choice.

    ============ ================================================================= ==============
    method       what it does                                                      entries of K
    ============ ================================================================= ==============
    "rpcholesky" Finds outliers and small clusters without chasing them: the one   m n
                 to use.
    "uniform"    Misses small clusters; costs nothing, and asks nothing of k.      0
    "kmeans++"   Spreads over the points; k need only be conditionally positive    m n
                 definite.
    "leverage"   By scores for the mu with which they sum to m / 2, from a pilot   min(m, 1000) n
                 factor of K; without replacement.
    ============ ================================================================= ==============

    Parameters
    ----------
    kernel : Kernel
        With all its values resolved.
    X : points
        Also on disk (a memory map): only the candidates are read.
    m : int
        At most the number of points.
    method : {"rpcholesky", "uniform", "kmeans++", "leverage"}
    random_state : int, Generator, RandomState or None
    n_threads : int, optional
        All processors by default.  The result does not depend on it.
    candidates : int, optional
        The choice is made among this many points, drawn with equal chances; by default
        max(20 000, 20 m).  For more points the cost stays as it is, and a cluster of less than
        about n / candidates points may be missed; the residual trace over all points
        (`LowRankGram.residual_trace`) still says exactly how good the landmarks are.

    Returns
    -------
    ndarray of shape (m,)
        Shorter only if further landmarks would add nothing: with "rpcholesky" when the rank of K
        is exhausted, with "kmeans++" when all points coincide with landmarks, with "leverage" when
        all others have k(x, x) = 0.  Never empty.

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
        raise ValueError(f"there is no method {method!r} to choose landmarks; there are {names}")
    rng = generator(random_state)
    if method == "uniform":
        return np.asarray(rng.choice(n, m, replace=False), dtype=np.intp)
    some, among = np.arange(n), _count_candidates(n, m, candidates)
    if reads_all(kernel):
        K = TiledGram(kernel, X)
    elif among == n:
        K = TiledGram(kernel, doubled(X))
    else:
        some = np.sort(rng.choice(n, among, replace=False))  # a disk is then read in one pass
        K = TiledGram(kernel, doubled(take(sliceable(X), some)))
    chosen = some[_METHODS[method](K, m, rng, n_threads)]
    return chosen if len(chosen) else some[:1]  # where k is 0, one point is as good as any


def choosing_bytes(n: int, m: int, held: bool = False) -> int:
    """Return the memory that the choice of m among n points takes: columns of K on candidates.

    With `held` also all of K, where they are few.
    """
    return 8 * m * _count_candidates(n, m, None) + held * 8 * min(n, _FEW) ** 2


def _check_count(m: Any, n: int) -> None:
    if not is_count(m):
        raise ValueError(f"the number of landmarks must be a positive integer, got {m!r}")
    if m > n:
        raise ValueError(
            f"more landmarks than points: {m} landmarks were asked for, but there are {n} points; "
            f"ask for at most {n}, or solve the full problem"
        )


def _count_candidates(n: int, m: int, candidates: Any) -> int:
    """Return the number of points to choose among."""
    if candidates is None:
        return min(n, max(CANDIDATES, PER_LANDMARK * m))
    if not is_count(candidates, m):
        raise ValueError(
            f"candidates must be None or an integer of at least the {m} landmarks to choose among "
            f"them, got {candidates!r}"
        )
    return min(n, int(candidates))


# ---------------------------------------------------------------------- methods


def choose_by_residual(
    kernel: Kernel, X: Any, m: int, rng: Any, n_threads: int | None = None
) -> tuple[np.ndarray, float]:
    """Return landmarks by "rpcholesky" among all points X, and what they leave to a further one.

    That is a part of k(x, x), in the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._choose_landmarks import choose_by_residual
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [0.0], [9.0], [9.0]])
    >>> choose_by_residual(RBF(), X, 2, np.random.default_rng(0))[1]
    0.0
    """
    diagonal = np.asarray(kernel.diag(X), dtype=float)
    floor, negative = (np.abs(diagonal).max() * part for part in significance(np.float64))
    pivots, left = np.empty(0, dtype=np.intp), diagonal
    if len(left) <= _FEW:
        pivots, left = pivots_one_by_one(kernel(X), m, floor, rng)
    if not len(pivots) or not left.min() >= -negative:  # many, or something is wrong: it says what
        part = rpcholesky(TiledGram(kernel, X), m, random_state=rng, n_threads=n_threads)
        pivots, left = part.pivots, part.residual
    others = np.delete(np.arange(len(left)), pivots)
    return pivots, float(left[others].sum() / max(diagonal[others].sum(), 1e-300))


def _by_residual(K: GramOperator, m: int, rng: Any, n_threads: int | None) -> np.ndarray:
    return rpcholesky(K, m, random_state=rng, n_threads=n_threads).pivots


def _by_distance(K: GramOperator, m: int, rng: Any, n_threads: int | None) -> np.ndarray:
    first = np.array([int(rng.random() * K.shape[0])], dtype=np.intp)
    return np.concatenate([first, draw(_Nearest(K, first, n_threads), m - 1, rng)])


class _Nearest:
    """The squared distance to the nearest landmark as a density."""

    @quiet
    def __init__(self, gram: GramOperator, first: np.ndarray, n_threads: int | None) -> None:
        self.gram, self.n_threads = gram, n_threads
        self.diagonal = np.array(gram.diagonal(), dtype=np.float64)
        self.nearest = np.full(gram.shape[0], np.inf)
        self._append(first)
        scale = max(np.abs(self.diagonal).max(), self.nearest.max())
        self.floor = significance(gram.dtype)[0] * scale

    def weights(self) -> np.ndarray:
        return np.where(self.nearest > self.floor, self.nearest, 0.0)

    @quiet
    def accept(self, P: np.ndarray, coins: np.ndarray, most: int) -> np.ndarray:
        between = self._distances(self.gram.block(P, P), P, P)
        start, accepted = self.nearest[P], []
        left = start.copy()
        for j in range(len(P)):
            if left[j] > self.floor and coins[j] * start[j] < left[j]:
                np.minimum(left, between[j], out=left)
                accepted.append(j)
                if len(accepted) == most:
                    break
        self._append(P[accepted])
        return P[accepted]

    def _append(self, chosen: np.ndarray) -> None:
        columns = columns_of(self.gram, chosen)

        def strip(rows: slice) -> None:
            distances = self._distances(columns(rows), rows, chosen).min(axis=1)
            np.minimum(self.nearest[rows], distances, out=self.nearest[rows])

        work = self.gram.kernel._evaluation_work(len(self.nearest) * len(chosen))
        run(strip, slices(len(self.nearest), _STRIP), self.n_threads, work)
        self.nearest[chosen] = 0.0
        self._check()
        np.maximum(self.nearest, 0.0, out=self.nearest)

    def _distances(self, block: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
        return self.diagonal[rows, None] - 2.0 * block + self.diagonal[columns]

    def _check(self) -> None:
        lowest = float(self.nearest.min())
        scale = np.abs(self.diagonal).max()
        if not np.isfinite(self.nearest.sum()):
            raise not_finite(self.gram.kernel)
        if lowest < -significance(self.gram.dtype)[1] * scale:
            raise NotPositiveDefiniteError(
                f"a squared distance in feature space is {lowest:.3g}, with k(x, x) up to "
                f"{scale:.3g}: {self.gram.kernel} is not positive semidefinite on these points; "
                f"choose a Mercer kernel, or the method 'uniform'"
            )


def _by_leverage(K: GramOperator, m: int, rng: Any, n_threads: int | None) -> np.ndarray:
    pilot = rpcholesky(K, min(m, _PILOT), random_state=rng, n_threads=n_threads)
    with one_blas_thread:  # the bits depend on nothing else
        scores = _leverage(pilot.factor, pilot.residual, 0.5 * m)
    # the m earliest of independent exponential clocks: draws without replacement by the scores
    with np.errstate(divide="ignore"):
        times = rng.exponential(size=len(scores)) / scores
    return np.argsort(times, kind="stable")[: min(m, np.count_nonzero(scores))]


def _leverage(F: np.ndarray, residual: np.ndarray, dimension: float) -> np.ndarray:
    """Return f_i^T (F F^T + mu I)^-1 f_i + r_i / (r_i + mu), for the mu with which they sum to it.

    The second term stands for what the pilot factor F leaves, r: too large rather than too small.
    """
    eigenvalues, Q = np.linalg.eigh(F @ F.T)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    squares = np.square(F.T @ Q)

    def total(log_mu: float) -> float:
        mu = np.exp(log_mu)
        return np.sum(eigenvalues / (eigenvalues + mu)) + np.sum(residual / (residual + mu))

    trace = float(eigenvalues.sum() + residual.sum())
    if not trace:
        return np.zeros(len(residual))
    # the sum is at most trace / mu; a K of small rank may not reach the dimension with any mu
    low, high = np.log(1e-12 * trace / len(residual)), np.log(trace / dimension)
    if low >= high or total(low) <= dimension:
        mu = np.exp(low)
    else:
        mu = np.exp(brentq(lambda t: total(t) - dimension, low, high))
    return squares @ (1.0 / (eigenvalues + mu)) + residual / (residual + mu)


_METHODS: dict[str, Callable[..., np.ndarray]] = {
    "rpcholesky": _by_residual,
    "kmeans++": _by_distance,
    "leverage": _by_leverage,
}
