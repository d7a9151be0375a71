"""Randomly pivoted Cholesky: K ~ F^T F from k columns of K, drawn where the residual is large.

    s ~ d / sum d,   g = K[:, s] - F^T F[:, s],   F <- [F; g^T / sqrt(g_s)],   d <- d - g^2 / g_s

starting with d = diag K (Chen, Epperly, Tropp and Webber, CPAM 2025).  The draws depend on each
other, which would leave no block of work for the BLAS.  So a block of b points is proposed from
the d of the moment, and the j-th is accepted with the probability

    (its residual after those accepted before it) / (its residual when the block was proposed):

rejection sampling, hence the same distribution of pivots (Epperly, Tropp and Webber, SIMAX 2025).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._errors import NotPositiveDefiniteError, not_finite
from .._runtime import entry_point, generator, is_count, one_blas_thread, quiet, run, slices
from ._operator import GramOperator
from ._tiled import TiledGram
from ._triangular import solve_rows

__all__ = [
    "PartialCholesky",
    "columns_of",
    "draw",
    "rpcholesky",
    "significance",
]

_STRIP = 1024  # rows of F that one task works on
_FEWEST, _MOST = 10, 256  # points proposed at a time: enough for the BLAS, few to be rejected


@dataclass(frozen=True, eq=False)
class PartialCholesky:
    """K ~ F^T F, exact in the rows and columns of the pivots; K - F^T F is positive semidefinite.

    Attributes
    ----------
    pivots : ndarray of shape (k,)
        Indices of points, in the order in which they were drawn: the first j of them are a draw of
        j pivots.
    factor : ndarray of shape (k, n)
        F, in float64 and in Fortran order.
    residual : ndarray of shape (n,)
        The diagonal of K - F^T F, not negative, 0 at the pivots.

    Examples
    --------
    >>> from mercer.gram import DenseGram, rpcholesky
    >>> from mercer.kernels import Linear
    >>> rpcholesky(DenseGram(Linear(), [[3.0], [4.0]]), rank=2, random_state=0).factor
    array([[3., 4.]])
    """

    pivots: np.ndarray
    factor: np.ndarray
    residual: np.ndarray

    @property
    def trace(self) -> float:
        """The trace of K - F^T F, which bounds its every norm."""
        return float(self.residual.sum())


@entry_point
def rpcholesky(
    gram: GramOperator,
    rank: int,
    *,
    tol: float = 0.0,
    random_state: Any = None,
    n_threads: int | None = None,
) -> PartialCholesky:
    """Factor K ~ F^T F by randomly pivoted Cholesky, reading `rank` columns of K.

    The expected trace of what is left is close to that of the best approximation of a somewhat
    smaller rank; points far from all others are found, and so are small clusters.

    Parameters
    ----------
    gram : GramOperator
        Symmetric and positive semidefinite, held in any way.
    rank : int
        The number of pivots.  There are fewer if `tol` is reached, or if nothing is left: a pivot
        needs a residual above 1e-12 (for a Gram in float32, 1e-5) of the largest diagonal entry.
    tol : float
        Stop once the trace of K - F^T F is at most `tol` times that of K; looked at after each
        block of pivots.
    random_state : int, Generator, RandomState or None
    n_threads : int, optional
        All processors by default.  The result does not depend on it.

    Raises
    ------
    NotPositiveDefiniteError
        If a residual becomes negative, by more than rounding explains.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import TiledGram, rpcholesky
    >>> from mercer.kernels import RBF
    >>> K = TiledGram(RBF(), np.linspace(0, 4, 500)[:, None])
    >>> part = rpcholesky(K, 10, random_state=0)
    >>> part.factor.shape
    (10, 500)
    >>> bool(part.trace < 1e-6 * 500)
    True
    """
    if not gram.symmetric:
        raise ValueError("rpcholesky needs a symmetric Gram k(X, X); got one with Z")
    if not is_count(rank):
        raise ValueError(f"rank must be a positive integer, got {rank!r}")
    if not 0.0 <= tol < 1.0:
        raise ValueError(f"tol is a part of the trace of K, in [0, 1), got {tol!r}")
    schur = _Schur(gram, min(int(rank), gram.shape[0]), tol, n_threads)
    pivots = draw(schur, schur.rank, generator(random_state))
    F = schur.F[:, : len(pivots)]
    if len(pivots) < schur.rank:
        F = F.copy()  # so that the columns not needed are given back
    return PartialCholesky(pivots, F.T, schur.residual)


# ---------------------------------------------------------------------- rejection sampling


class Density(Protocol):
    """Weights on points, which shrink with every point accepted."""

    def weights(self) -> np.ndarray:
        """Return the weight of each point, 0 for those that are no longer to be drawn."""

    def accept(self, P: np.ndarray, coins: np.ndarray, most: int) -> np.ndarray:
        """Return up to `most` of the proposed points P, and let the weights shrink."""


def draw(density: Density, count: int, rng: Any) -> np.ndarray:
    """Draw up to `count` points, each from the weights that those before it have left."""
    chosen = np.empty(0, dtype=np.intp)
    size = _between(count // 10, count)
    with one_blas_thread:  # products in between, too, give the same bits for any number of threads
        while len(chosen) < count:
            cumulative = np.cumsum(density.weights())
            if not len(cumulative) or not cumulative[-1] > 0.0:
                break
            P = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
            np.minimum(P, len(cumulative) - 1, out=P)  # a product may round up to the total
            accepted = density.accept(P, rng.random(size), count - len(chosen))
            chosen = np.concatenate([chosen, accepted])
            size = _next_size(size, len(accepted), count)
    return chosen


def _next_size(size: int, accepted: int, count: int) -> int:
    """Return the size of the next block, from counts alone: a clock would make draws differ."""
    if accepted > size // 2:
        size += size // 2
    elif accepted < size // 4:
        size -= size // 3
    return _between(size, count)


def _between(size: int, count: int) -> int:
    return max(_FEWEST, min(size, _MOST, count // 3))


def columns_of(gram: GramOperator, chosen: np.ndarray) -> Callable[[slice], np.ndarray]:
    """Return the function from a slice of rows to K[rows][:, chosen], for many such slices."""
    if not isinstance(gram, TiledGram):
        return lambda rows: gram.block(rows, chosen)
    Q = gram._Q[chosen]  # once, for all of the slices

    def columns(rows: slice) -> np.ndarray:
        P = gram._P[rows]
        return gram.kernel.tile(P, Q, np.empty((len(P), len(Q)), dtype=gram.dtype))

    return columns


# ---------------------------------------------------------------------- Schur complements


def significance(dtype: Any) -> tuple[float, float]:
    """Return, in units of the largest k(x, x), what is not 0 by rounding and what is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import significance
    >>> significance(np.float64)
    (1e-12, 1e-08)
    """
    unit = float(np.finfo(dtype).eps)
    return max(1e-12, 100.0 * unit), max(1e-8, 1e4 * unit)


class _Schur:
    """The diagonal of K - F^T F as a density, F growing by the points accepted.

    F is kept as its transpose, (n, rank): the strip of a task is then one piece of memory.
    """

    @quiet
    def __init__(self, gram: GramOperator, rank: int, tol: float, n_threads: int | None) -> None:
        self.gram, self.rank, self.n_threads = gram, rank, n_threads
        diagonal = np.asarray(gram.diagonal())
        self.residual = np.array(diagonal, dtype=np.float64)
        self.largest = float(np.abs(self.residual).max(initial=0.0))
        # K and its diagonal may be computed in different precisions
        floor, negative = np.maximum(significance(gram.dtype), significance(diagonal.dtype))
        self.floor, self.negative = floor * self.largest, -negative * self.largest
        self.goal = tol * float(self.residual.sum())
        self._check(0)
        self.F, self.done = np.empty((gram.shape[0], rank)), 0

    def weights(self) -> np.ndarray:
        d = self.residual
        return np.where(d > self.floor, d, 0.0) if d.sum() > self.goal else np.zeros_like(d)

    @quiet
    def accept(self, P: np.ndarray, coins: np.ndarray, most: int) -> np.ndarray:
        left = self.F[P, : self.done]
        R = self.gram.block(P, P) - left @ left.T
        accepted, L = _accept(R, self.residual[P], coins, most, self.floor)
        self._append(P[accepted], np.asfortranarray(L), left[accepted])
        return P[accepted]

    def _append(self, pivots: np.ndarray, L: np.ndarray, left: np.ndarray) -> None:
        """Append L^-1 (K - F^T F)[pivots] to F, and subtract the squares from the residual."""
        i, F, d = self.done, self.F, self.residual
        Ft, columns = np.ascontiguousarray(left.T), columns_of(self.gram, pivots)

        def strip(rows: slice) -> None:
            G = F[rows, :i] @ Ft
            np.subtract(columns(rows), G, out=G)
            solve_rows(L, G)
            F[rows, i : i + len(pivots)] = G
            d[rows] -= np.einsum("ij,ij->i", G, G)

        work = self.gram.kernel._evaluation_work(len(F) * len(pivots), i + len(pivots))
        run(strip, slices(len(F), _STRIP), self.n_threads, work)
        self.done += len(pivots)
        self._check(self.done)
        np.maximum(d, 0.0, out=d)
        d[pivots] = 0.0

    def _check(self, pivots: int) -> None:
        d = self.residual
        lowest = float(d.min(initial=0.0))
        if not np.isfinite(d.sum()):
            raise not_finite(self.gram.kernel)
        hollow = not self.largest and len(d) and np.any(self.gram.rows(0))  # entries beside zeros
        if lowest < self.negative or hollow:
            raise NotPositiveDefiniteError(
                f"after {pivots} pivots the diagonal of what is left of K goes down to "
                f"{lowest:.3g}, with diagonal entries of K up to {self.largest:.3g}: "
                f"{self.gram.kernel} is not positive semidefinite on these points; choose a Mercer "
                f"kernel, or take landmarks at random"
            )


def _accept(
    R: np.ndarray, start: np.ndarray, coins: np.ndarray, most: int, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Go through a block of proposals with the Schur complement R; return those accepted, and L.

    L is the Cholesky factor of R at the accepted.  A point proposed twice has nothing left the
    second time, and is not accepted.
    """
    rows = np.empty((min(most, len(R)), len(R)))  # the rows of the factor: R ~ rows^T rows
    left = start.copy()
    accepted: list[int] = []
    for j in range(len(R)):
        if left[j] > floor and coins[j] * start[j] < left[j]:
            k = len(accepted)
            rows[k] = R[j] - rows[:k, j] @ rows[:k]
            rows[k] /= np.sqrt(left[j])
            rows[k, j] = np.sqrt(left[j])
            left -= rows[k] ** 2
            accepted.append(j)
            if len(accepted) == len(rows):
                break
    chosen = np.array(accepted, dtype=np.intp)
    return chosen, np.tril(rows[: len(chosen), chosen].T)
