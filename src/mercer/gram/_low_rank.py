"""Nyström approximation of a kernel matrix: K = k(X, X) is replaced by F F^T.

    F = K_nS L^-T,   F F^T = K_nS K_SS^-1 K_Sn,   L L^T = K_SS

S are the landmarks, K_nS = k(X, S), K_Sn its transpose, and K_SS = k(S, S).  K - F F^T is positive
semidefinite, so that its trace is an upper bound of the error in the spectral, the Frobenius and
the trace norm.  The trace is computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from .._core import (
    KernelMismatchError,
    MemoryBudgetError,
    MemoryLimit,
    Points,
    RandomState,
    as_csr,
    as_float64,
    budget_in_bytes,
    entry_point,
    format_bytes,
    length,
    one_blas_thread,
    ordered_sum,
    run_in_threads,
    slices,
    take,
)
from .._core.linalg import solve_triangular
from ..kernels import Kernel
from ._landmark_selection import choose_landmarks
from ._nystroem_map import NystroemMap, clip_negative_residual
from ._operator import GramOperator

_DEFAULT_LANDMARKS = 100  # more landmarks are more accurate, but need more memory and time
_CHUNK_ROWS = 1024  # number of points processed at a time for derivatives and diagonals


@entry_point
class LowRankGram(GramOperator):
    """Low-rank approximation F F^T of a kernel matrix K = k(X, X).

    F is the (n, m) array of the Nyström features of X for m landmarks, F F^T = K_nS K_SS^-1 K_Sn.
    It is stored if it fits the memory budget.  Otherwise it is computed again for every product;
    then X is read in blocks, and may be a memory map.

    K - F F^T is positive semidefinite.  Therefore `residual_trace`, which is computed exactly, is
    an upper bound of the error in the spectral, the Frobenius and the trace norm.

    Parameters
    ----------
    kernel : Kernel
        A positive semidefinite kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n points.
    landmarks : str, array of int, points, or NystroemMap, default "rpcholesky"
        A method of `choose_landmarks`, the indices of points of X (or a mask), the landmarks
        themselves, or an existing map.  A sequence of integers means indices.
    n_landmarks : int or None, default None
        Number of landmarks that a method chooses; None means 100, or all points if there are fewer.
        Increase it until `residual_trace` is small compared with the trace of K.
    random_state : int, Generator, RandomState or None, default None
        Seed or source of random numbers for the choice.
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.
    max_memory : int, str or None, default None
        Memory budget for F and for the result of `to_array`, in the format of `gram`.

    Attributes
    ----------
    map : NystroemMap
        The feature map phi; the rows of F are phi(x_i).
    indices : ndarray of shape (m,) or None
        The indices of the landmarks in X, or None if they are not points of X.

    See Also
    --------
    NystroemMap : The features of single points.
    rpcholesky : A factor of K for landmarks that are chosen one after the other.

    Notes
    -----
    Landmarks are treated as observations that are separate from the points of X.  If the kernel has
    a `White` part, F F^T therefore does not contain the noise on the diagonal of K, and the
    residual trace contains all of it.

    References
    ----------
    Williams and Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import LowRankGram
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 4, 2000)[:, None]
    >>> K = LowRankGram(RBF(), X, n_landmarks=15, random_state=0)
    >>> K
    <LowRankGram 2000x2000, rank 15, float64, RBF(length_scale=1.0)>
    >>> bool(K.residual_trace < 1e-6 * 2000)
    True
    """

    map: NystroemMap
    indices: np.ndarray | None

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        landmarks: Any = "rpcholesky",
        *,
        n_landmarks: int | None = None,
        random_state: RandomState = None,
        n_threads: int | None = None,
        max_memory: MemoryLimit = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"LowRankGram needs a Kernel, got {kernel!r}")
        self.n_threads, self._budget = n_threads, budget_in_bytes(max_memory)
        self._points = as_csr(X)
        if isinstance(landmarks, str):
            count = min(_DEFAULT_LANDMARKS, length(X)) if n_landmarks is None else n_landmarks
            landmarks = choose_landmarks(
                kernel, X, count, landmarks, random_state=random_state, n_threads=n_threads
            )
        elif n_landmarks is not None:
            raise ValueError(
                f"n_landmarks={n_landmarks!r} applies only if landmarks is the name of a method, "
                f"but the landmarks themselves were passed; leave one of the two out"
            )
        self.map, self.indices = self._map_and_indices(kernel, landmarks)
        n = length(X)
        self._F: np.ndarray | None = None
        if 8 * n * len(self.map) <= self._budget:
            # The squared norms are computed together with F, while its rows are in the CPU cache.
            squares = self.__dict__["_squared_norms"] = np.empty(n)
            self._F = self.map.features(self._points, n_threads=n_threads, squares=squares)
        super().__init__(kernel, X, None, (n, n), np.float64, n_threads)

    def _map_and_indices(
        self, kernel: Kernel, landmarks: Any
    ) -> tuple[NystroemMap, np.ndarray | None]:
        """Return the feature map for the landmarks, and their indices in X if there are any."""
        if isinstance(landmarks, NystroemMap):
            if landmarks.kernel != kernel:
                raise KernelMismatchError(
                    f"the NystroemMap was made for the kernel {landmarks.kernel}, not for "
                    f"{kernel}; pass the same kernel, or make a new map"
                )
            return landmarks, None
        index = _as_index(landmarks, length(self._points))
        if index is None:
            return NystroemMap.on(kernel, landmarks, self.n_threads), None
        phi = NystroemMap.on(kernel, take(self._points, index), self.n_threads)
        return phi, index[phi.kept]

    def __repr__(self) -> str:
        n = self.shape[0]
        return f"<LowRankGram {n}x{n}, rank {len(self.map)}, {self.dtype.name}, {self.kernel}>"

    # ------------------------------------------------------------------ the matrix

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the factor F in blocks of rows; if F is stored, it is yielded as one block.

        Yields
        ------
        rows : slice
            Indices of the points of the block.
        F : ndarray of shape (r, m)
            Features of these r points, which must not be modified.
        """
        if self._F is not None:
            return iter([(slice(0, len(self._F)), self._F)])
        return self.map.blocks(self._points, n_threads=self.n_threads)

    def features(self, rows: Any = slice(None)) -> np.ndarray:
        """Return some rows of the factor F.

        Parameters
        ----------
        rows : slice, mask or array of int, default slice(None)
            Indices of the points, r of them; all points by default.

        Returns
        -------
        ndarray of shape (r, m)
            F[rows], which must not be modified.
        """
        if self._F is not None:
            rows_of_F: np.ndarray = self._F[rows]
            return rows_of_F
        return self.map.features(take(self._points, rows), n_threads=self.n_threads)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        block: np.ndarray = self.features(rows) @ self.features(cols).T
        return block

    def diagonal(self) -> np.ndarray:
        return self._squared_norms.copy()

    def to_array(self) -> np.ndarray:
        n = self.shape[0]
        if (needed := 8 * n * n) > self._budget:
            raise MemoryBudgetError(
                f"the array of the {n} x {n} matrix F F^T needs {format_bytes(needed)}, but the "
                f"budget is {format_bytes(self._budget)}; use products or blocks instead of the "
                f"array, or increase max_memory"
            )
        F = self.features()
        K: np.ndarray = F @ F.T
        return K

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        is_stored = self._F is not None
        U = self._sum_over_strips(lambda rows, B: B.T @ V[rows], whiten=is_stored)
        if not is_stored:  # U is K_Sn V; applying L^-1 to its m rows is cheaper than to n rows
            U = self._solve(self._solve(U), "T")
        out = np.empty((self.shape[0], U.shape[1]), dtype=U.dtype)
        self._for_each_strip(lambda rows, B: np.matmul(B, U, out=out[rows]), whiten=is_stored)
        return out

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return F F^T V, and the weighted squared Frobenius norm of F F^T.

        The norm is computed from an m x m matrix, sum_ij w_i w_j (F F^T)_ij^2 = |F^T diag(w)
        F|_F^2.

        Parameters
        ----------
        V : ndarray of shape (n, c)
            The right-hand factor.
        weights : ndarray of shape (n,)
            Non-negative weights w of the points.

        Returns
        -------
        product : ndarray of shape (n, c)
            F F^T V.
        squares : float
            The squared norm.
        """
        gram = self._sum_over_strips(lambda rows, F: F.T @ (weights[rows, None] * F))
        return np.asarray(self @ V), float(np.square(gram).sum())

    def _sum_over_strips(
        self, term: Callable[[slice, np.ndarray], np.ndarray], whiten: bool = True
    ) -> np.ndarray:
        """Return the sum of term(rows, F[rows]) over strips.

        Terms are added in a fixed order, so that the result does not depend on n_threads.  If
        `whiten` is False, K_nS takes the place of F.
        """
        strips = self.map._strips(slice(0, self.shape[0]))

        def strip(rows: slice) -> np.ndarray:
            return term(rows, self._strip(rows, whiten))

        work = self.map._work(self.shape[0])
        return np.asarray(ordered_sum(strip, strips, len(strips), self.n_threads, work))

    def _for_each_strip(
        self, task: Callable[[slice, np.ndarray], Any], whiten: bool = True
    ) -> None:
        """Call task(rows, F[rows]) in parallel for all strips of rows; see `_sum_over_strips`."""
        strips = self.map._strips(slice(0, self.shape[0]))
        work = self.map._work(self.shape[0])

        def strip(rows: slice) -> None:
            task(rows, self._strip(rows, whiten))

        run_in_threads(strip, strips, self.n_threads, work)

    def _strip(self, rows: slice, whiten: bool) -> np.ndarray:
        """Return F[rows], or K_nS[rows] = k(X[rows], S) if `whiten` is False."""
        if self._F is not None and whiten:
            return self._F[rows]
        B = np.empty((rows.stop - rows.start, len(self.map)))
        self.map._fill(self._points, rows, B, whiten)
        return B

    def _solve(self, B: np.ndarray, trans: str = "N") -> np.ndarray:
        """Return L^-1 B, or L^-T B for `trans="T"`, with the Cholesky factor L of k(S, S)."""
        with one_blas_thread:
            return solve_triangular(self.map.factor, B, trans=trans, lower=True) if B.size else B

    # ------------------------------------------------------------------ residual

    def residual(self) -> np.ndarray:
        """Return the diagonal of K - F F^T, k(x_i, x_i) - |phi(x_i)|^2.

        Values that are slightly negative because of rounding are set to 0.

        Returns
        -------
        ndarray of shape (n,)
            The error of each diagonal entry; their sum is `residual_trace`.

        Raises
        ------
        NotPositiveDefiniteError
            If a value is more negative than rounding can explain.
        """
        diagonal = np.empty(self.shape[0])
        for rows in slices(len(diagonal), _CHUNK_ROWS):
            diagonal[rows] = self.kernel.diag(as_float64(take(self._points, rows)))
        dtype = self.map._landmarks.dtype if len(self.map) else np.float64
        return clip_negative_residual(diagonal - self._squared_norms, diagonal, self.kernel, dtype)

    @cached_property
    def residual_trace(self) -> float:
        """The trace of K - F F^T, an upper bound of the spectral norm of the error."""
        return float(self.residual().sum())

    @cached_property
    def _squared_norms(self) -> np.ndarray:
        """|phi(x_i)|^2 for all points."""
        norms = np.empty(self.shape[0])
        self._for_each_strip(lambda rows, F: np.einsum("ij,ij->i", F, F, out=norms[rows]))
        return norms

    # ------------------------------------------------------------------ derivatives

    def pullback(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the gradient of <U V^T, F F^T> with respect to the kernel parameters.

        The landmarks S are fixed.  For K_Sn = k(S, X) = K_nS^T, K_SS = k(S, S) and A = K_SS^-1
        K_Sn, the derivative is d(F F^T) = dK_nS A + A^T dK_Sn - A^T dK_SS A.

        Parameters
        ----------
        U : ndarray of shape (n, c) or (n,)
            Left factor of the weights of the entries of F F^T.
        V : ndarray of shape (n, c) or (n,)
            Right factor of the weights.

        Returns
        -------
        ndarray of shape (n_theta,)
            Derivatives with respect to the parameters `kernel.theta`.
        """
        U, V = (np.reshape(np.asarray(B, dtype=float), (len(B), -1)) for B in (U, V))
        n = self.shape[0]
        if U.shape != V.shape or len(U) != n:
            raise ValueError(f"U and V must have the shape ({n}, c), got {U.shape} and {V.shape}")
        total = np.zeros(self.kernel.theta.size)
        if not (total.size and len(self.map)):
            return total
        UV = np.hstack([U, V])
        products = self._sum_over_strips(lambda rows, F: F.T @ UV[rows])
        AU, AV = np.hsplit(self._solve(products, "T"), 2)
        S = self.map.points
        for rows in slices(n, _CHUNK_ROWS):
            W = U[rows] @ AV.T + V[rows] @ AU.T
            total += self.kernel.pullback(as_float64(take(self._points, rows)), S, W)
        gradient: np.ndarray = total - self.kernel.pullback(S, None, AU @ AV.T)
        return gradient


def _as_index(landmarks: Any, n: int) -> np.ndarray | None:
    """Return an index array if the landmarks are indices or a mask, or None if they are points."""
    is_sequence = isinstance(landmarks, (list, tuple, range))
    if is_sequence and not all(isinstance(i, (int, np.integer)) for i in landmarks):
        return None
    index = np.asarray(landmarks) if is_sequence or getattr(landmarks, "ndim", 0) == 1 else None
    if index is None or index.dtype.kind not in "iub":
        return None
    if index.dtype == bool and len(index) == n:
        return np.flatnonzero(index)
    if index.dtype == bool:
        raise ValueError(f"the landmark mask has {len(index)} entries, but there are {n} points")
    if index.size and not (-n <= index.min() and index.max() < n):
        raise ValueError(
            f"landmarks has indices from {index.min()} to {index.max()}, but there are only {n} "
            f"points (0 to {n - 1})"
        )
    return index.astype(np.intp) % max(n, 1)
