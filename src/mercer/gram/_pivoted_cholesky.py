"""Randomly pivoted Cholesky: approximate K by F^T F, which needs only some columns of K.

d = diag(K - F^T F) is the residual, and F is empty at first.  Each step draws a pivot s with
probabilities proportional to d, and appends a row to F (Chen, Epperly, Tropp, Webber, CPAM 2025):

    g = K[:, s] - F^T F[:, s],   F <- [F; g^T / sqrt(g_s)],   d <- d - g^2 / g_s

Each draw depends on the previous ones, so that matrix products could not be used.  Therefore a
block of points is proposed from the current d, and each point is accepted with the probability

    (its residual after the points accepted so far) / (its residual when the block was proposed).

This rejection sampling yields the same distribution of pivots (Epperly, Tropp and Webber, SIMAX
2025).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._core import (
    NotPositiveDefiniteError,
    RandomState,
    as_generator,
    entry_point,
    ignore_overflow,
    is_count,
    jit,
    not_finite_error,
    one_blas_thread,
    run_in_threads,
    slices,
)
from ._distributed import DistributedGram
from ._operator import GramOperator
from ._tiled import TiledGram
from ._triangular_solve import solve_triangular_rows

_STRIP_ROWS = 1024  # number of rows of F^T that one task processes
# Limits for the number of points in a block of proposals.  Larger blocks are faster in the BLAS,
# but more points are rejected.
_MIN_PROPOSALS, _MAX_PROPOSALS = 10, 256


@dataclass(frozen=True, eq=False)
class PartialCholesky:
    """Result of randomly pivoted Cholesky, the approximation K ~ F^T F.

    The approximation is exact in the rows and columns of the pivots, and K - F^T F is positive
    semidefinite.

    Attributes
    ----------
    pivots : ndarray of shape (k,)
        Indices of the pivots in the order in which they were drawn.  The first j of them have the
        same distribution as the result for rank j.
    factor : ndarray of shape (k, n)
        The factor F, in float64 and in Fortran order.
    residual : ndarray of shape (n,)
        The diagonal of K - F^T F; it is non-negative, and 0 at the pivots.

    See Also
    --------
    rpcholesky : Compute the approximation.

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a kernel
    matrix with few entry evaluations", Communications on Pure and Applied Mathematics, 2025.

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
        """The trace of K - F^T F, an upper bound of the spectral norm of the error."""
        return float(self.residual.sum())


@entry_point
def rpcholesky(
    gram: GramOperator,
    rank: int,
    *,
    tol: float = 0.0,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> PartialCholesky:
    """Factor K ~ F^T F by randomly pivoted Cholesky, reading only `rank` columns of K.

    The expected trace of K - F^T F is close to that of the best possible approximation of a
    slightly smaller rank.  Outliers and small clusters are represented, too.

    Parameters
    ----------
    gram : GramOperator
        A symmetric, positive semidefinite kernel matrix K.
    rank : int
        Number of pivots k.  The cost is O(k^2 n) operations and k n evaluations of the kernel.
        There are fewer pivots if `tol` is reached, or if all residuals are below 1e-12 (for
        float32, 1e-5) times the largest diagonal entry.
    tol : float, default 0.0
        Stop when the trace of K - F^T F is at most `tol` times the trace of K.  This is checked
        after each block of pivots.
    random_state : int, Generator, RandomState or None, default None
        Seed or source of random numbers.
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.

    Returns
    -------
    PartialCholesky
        The pivots, the factor F of shape (k, n), and the residual diagonal.

    Raises
    ------
    NotPositiveDefiniteError
        If a residual is more negative than rounding can explain.

    See Also
    --------
    choose_landmarks : The pivots alone, and other methods to choose points.
    LowRankGram : The Nyström approximation as an operator.

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a kernel
    matrix with few entry evaluations", Communications on Pure and Applied Mathematics, 2025.

    Epperly, Tropp and Webber, "Embrace rejection: kernel matrix approximation by accelerated
    randomly pivoted Cholesky", SIAM Journal on Matrix Analysis and Applications, 2025.

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
        raise ValueError(
            "rpcholesky needs a symmetric kernel matrix k(X, X); omit the second set of points Z"
        )
    if not is_count(rank):
        raise ValueError(f"rank must be a positive integer, got {rank!r}")
    if not 0.0 <= tol < 1.0:
        raise ValueError(f"tol must be in [0, 1), as a fraction of the trace of K, got {tol!r}")
    schur = _SchurComplement(gram, min(int(rank), gram.shape[0]), tol, n_threads)
    pivots = sample_by_rejection(schur, schur.rank, as_generator(random_state))
    F = schur.F[:, : len(pivots)]
    if len(pivots) < schur.rank:
        F = F.copy()  # copy F, to free the memory of unused columns
    return PartialCholesky(pivots, F.T, schur.residual)


# ---------------------------------------------------------------------- rejection sampling


class SamplingWeights(Protocol):
    """Sampling weights of points, which decrease with every accepted point."""

    def weights(self) -> np.ndarray:
        """Return the weight of each point; a point with weight 0 is not drawn."""

    def accept(self, P: np.ndarray, uniforms: np.ndarray, max_accepted: int) -> np.ndarray:
        """Return the accepted points, at most `max_accepted` of P, and update the weights."""


def sample_by_rejection(density: SamplingWeights, count: int, rng: Any) -> np.ndarray:
    """Draw up to `count` points; the weights are updated after each point."""
    chosen = np.empty(0, dtype=np.intp)
    size = _clip_block_size(count // 10, count)
    with one_blas_thread:  # the result must not depend on the number of threads
        while len(chosen) < count:
            cumulative = np.cumsum(density.weights())
            if not len(cumulative) or not cumulative[-1] > 0.0:
                break
            P = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
            # because of rounding, the index may be too large by 1
            np.minimum(P, len(cumulative) - 1, out=P)
            accepted = density.accept(P, rng.random(size), count - len(chosen))
            chosen = np.concatenate([chosen, accepted])
            size = _next_size(size, len(accepted), count)
    return chosen


def _next_size(size: int, accepted: int, count: int) -> int:
    """Return the size of the next block of proposals.

    The size depends only on counts, and not on measured times, so that results are reproducible.
    """
    if accepted > size // 2:
        size += size // 2
    elif accepted < size // 4:
        size -= size // 3
    return _clip_block_size(size, count)


def _clip_block_size(size: int, count: int) -> int:
    """Clip the size of a block of proposals to its limits."""
    return max(_MIN_PROPOSALS, min(size, _MAX_PROPOSALS, count // 3))


def columns_of(gram: GramOperator, chosen: np.ndarray) -> Callable[[slice], np.ndarray]:
    """Return a function that maps a slice of rows to K[rows][:, chosen].

    The chosen points are prepared only once for all slices.
    """
    gram = gram.tiles if isinstance(gram, DistributedGram) else gram
    if not isinstance(gram, TiledGram):
        return lambda rows: gram.block(rows, chosen)
    Q = gram._Q[chosen]

    def columns(rows: slice) -> np.ndarray:
        P = gram._P[rows]
        return gram.kernel.tile(P, Q, np.empty((len(P), len(Q)), dtype=gram.dtype))

    return columns


# ---------------------------------------------------------------------- Schur complements


def residual_tolerances(dtype: Any) -> tuple[float, float]:
    """Return two tolerances for the diagonal of K - F^T F, relative to the largest k(x, x).

    Parameters
    ----------
    dtype : dtype
        Precision of the kernel values.

    Returns
    -------
    zero : float
        Residuals up to this value count as 0.
    negative : float
        A residual below minus this value shows that the kernel is not positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import residual_tolerances
    >>> residual_tolerances(np.float64)
    (1e-12, 1e-08)
    """
    unit = float(np.finfo(dtype).eps)
    return max(1e-12, 100.0 * unit), max(1e-8, 1e4 * unit)


class _SchurComplement:
    """Sampling weights of RPCholesky: the diagonal of the Schur complement K - F^T F.

    F grows with every accepted point.  Its transpose of shape (n, rank) is stored, so that the rows
    that one task processes are contiguous.
    """

    @ignore_overflow
    def __init__(self, gram: GramOperator, rank: int, tol: float, n_threads: int | None) -> None:
        self.gram, self.rank, self.n_threads = gram, rank, n_threads
        diagonal = np.asarray(gram.diagonal())
        self.residual = np.array(diagonal, dtype=np.float64)
        self.largest = float(np.abs(self.residual).max(initial=0.0))
        # K and its diagonal may have been computed in different precisions.
        tolerances = [residual_tolerances(dtype) for dtype in (gram.dtype, diagonal.dtype)]
        floor, negative = np.max(tolerances, axis=0)
        self.floor, self.negative = floor * self.largest, -negative * self.largest
        self.target_trace = tol * float(self.residual.sum())
        self._check(0)
        self.F, self.n_pivots = np.empty((gram.shape[0], rank)), 0

    def weights(self) -> np.ndarray:
        d = self.residual
        return np.where(d > self.floor, d, 0.0) if d.sum() > self.target_trace else np.zeros_like(d)

    @ignore_overflow
    def accept(self, P: np.ndarray, uniforms: np.ndarray, max_accepted: int) -> np.ndarray:
        factor_rows = self.F[P, : self.n_pivots]
        R = self.gram.block(P, P) - factor_rows @ factor_rows.T
        accepted, L = _accept(R, self.residual[P], uniforms, max_accepted, self.floor)
        self._append(P[accepted], np.asfortranarray(L), factor_rows[accepted])
        pivots: np.ndarray = P[accepted]
        return pivots

    def _append(self, pivots: np.ndarray, L: np.ndarray, factor_rows: np.ndarray) -> None:
        """Append L^-1 (K - F^T F)[pivots] to F, and subtract the squares from the residual."""
        i, F, d = self.n_pivots, self.F, self.residual
        Ft, columns = np.ascontiguousarray(factor_rows.T), columns_of(self.gram, pivots)

        def strip(rows: slice) -> None:
            G = F[rows, :i] @ Ft
            np.subtract(columns(rows), G, out=G)
            solve_triangular_rows(L, G)
            F[rows, i : i + len(pivots)] = G
            d[rows] -= np.einsum("ij,ij->i", G, G)

        work = self.gram.kernel._evaluation_work(len(F) * len(pivots), i + len(pivots))
        run_in_threads(strip, slices(len(F), _STRIP_ROWS), self.n_threads, work)
        self.n_pivots += len(pivots)
        self._check(self.n_pivots)
        np.maximum(d, 0.0, out=d)
        d[pivots] = 0.0

    def _check(self, pivots: int) -> None:
        """Raise an error if a residual is not finite, or clearly negative."""
        d = self.residual
        lowest = float(d.min(initial=0.0))
        if not np.isfinite(d.sum()):
            raise not_finite_error(self.gram.kernel)
        # A matrix with a zero diagonal and nonzero other entries is not positive semidefinite.
        has_zero_diagonal = not self.largest and len(d) and np.any(self.gram.rows(0))
        if lowest < self.negative or has_zero_diagonal:
            raise NotPositiveDefiniteError(
                f"after {pivots} pivots the residual of K has diagonal entries down to "
                f"{lowest:.3g}, with diagonal entries of K up to {self.largest:.3g}: "
                f"{self.gram.kernel} is not positive semidefinite on these points; choose a Mercer "
                f"kernel, or choose landmarks uniformly at random"
            )


def _accept(
    R: np.ndarray, start: np.ndarray, uniforms: np.ndarray, max_accepted: int, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Accept or reject the points of a block of proposals, one after the other.

    R is the Schur complement at the proposals.  A point that was proposed twice has a residual of 0
    the second time, and is rejected.

    Returns
    -------
    chosen : ndarray
        Positions of the accepted points in the block.
    L : ndarray
        Cholesky factor of R at the accepted points.
    """
    rows = np.empty((min(max_accepted, len(R)), len(R)))  # R ~ rows^T rows
    residual = start.copy()
    accepted: list[int] = []
    for j in range(len(R)):
        if residual[j] > floor and uniforms[j] * start[j] < residual[j]:
            k = len(accepted)
            rows[k] = R[j] - rows[:k, j] @ rows[:k]
            rows[k] /= np.sqrt(residual[j])
            rows[k, j] = np.sqrt(residual[j])
            residual -= rows[k] ** 2
            accepted.append(j)
            if len(accepted) == len(rows):
                break
    chosen = np.array(accepted, dtype=np.intp)
    return chosen, np.tril(rows[: len(chosen), chosen].T)


# --- Randomly pivoted Cholesky of a small dense matrix, one pivot at a time.


def sequential_rpcholesky(
    K: np.ndarray, m: int, floor: float, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Draw m pivots of the positive semidefinite array K.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    m : int
        Number of pivots.
    floor : float
        Residuals up to this value count as 0.  If all residuals are 0, no more pivots are drawn.
    rng : Generator or RandomState

    Returns
    -------
    pivots : ndarray of shape (m,) or shorter
        Indices in the order in which they were drawn.
    residual : ndarray of shape (n,)
        The diagonal of the Schur complement.  Rounding may make it slightly negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._pivoted_cholesky import sequential_rpcholesky
    >>> K = np.diag([1.0, 0.0, 2.0])
    >>> pivots, residual = sequential_rpcholesky(K, 3, 1e-12, np.random.default_rng(0))
    >>> sorted(pivots.tolist()), residual.tolist()
    ([0, 2], [0.0, 0.0, 0.0])
    """
    residual, pivots = K.diagonal().astype(float), np.empty(m, dtype=np.intp)
    F = np.empty((m, len(K)))
    return pivots[: _draw_pivots(K, rng.random(m), floor, F, residual, pivots)], residual


@jit()
def _draw_pivots(K: Any, uniforms: Any, floor: float, F: Any, residual: Any, pivots: Any) -> int:
    """Set the factor, the residual and the pivots; return the number of pivots."""
    n = K.shape[0]
    for k in range(pivots.shape[0]):
        total = 0.0
        for i in range(n):
            total += residual[i] if residual[i] > floor else 0.0
        if not total > 0.0:
            return k
        s, threshold = -1, uniforms[k] * total
        for i in range(n):
            if residual[i] > floor and threshold >= 0.0:
                s, threshold = i, threshold - residual[i]
        for c in range(n):
            F[k, c] = K[s, c]
        # four rows at a time, so that F[k] is read and written less often
        for i in range(0, k - k % 4, 4):
            w0, w1, w2, w3 = F[i, s], F[i + 1, s], F[i + 2, s], F[i + 3, s]
            for c in range(n):
                sums = w0 * F[i, c] + w1 * F[i + 1, c] + (w2 * F[i + 2, c] + w3 * F[i + 3, c])
                F[k, c] -= sums
        for i in range(k - k % 4, k):
            w0 = F[i, s]
            for c in range(n):
                F[k, c] -= w0 * F[i, c]
        scale = 1.0 / np.sqrt(residual[s])
        for c in range(n):
            F[k, c] *= scale
            residual[c] -= F[k, c] * F[k, c]
        residual[s] = 0.0
        pivots[k] = s
    return len(pivots)


@_draw_pivots.without_numba
def _draw_pivots_numpy(
    K: Any, uniforms: Any, floor: float, F: Any, residual: Any, pivots: Any
) -> int:
    for k in range(len(pivots)):
        sums = np.cumsum(np.where(residual > floor, residual, 0.0))
        if not sums[-1] > 0.0:
            return k
        candidates = np.flatnonzero(residual > floor)
        threshold = uniforms[k] * sums[-1]
        s = candidates[
            min(np.searchsorted(sums[candidates], threshold, "right"), len(candidates) - 1)
        ]
        F[k] = (K[s] - F[:k, s] @ F[:k]) / np.sqrt(residual[s])
        residual -= F[k] * F[k]
        residual[s], pivots[k] = 0.0, s
    return len(pivots)
