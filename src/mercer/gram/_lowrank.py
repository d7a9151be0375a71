"""K replaced by F F^T: the Nyström approximation of k(X, X) on landmarks S.

    F = K_nS L^-T,   F F^T = K_nS K_SS^-1 K_Sn,   L L^T = K_SS

K - F F^T is positive semidefinite, so its trace bounds its every norm; it is computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from .._errors import KernelMismatchError, MemoryBudgetError
from .._points import doubled, length, sliceable, take
from .._runtime import (
    budget_in_bytes,
    entry_point,
    in_words,
    one_blas_thread,
    ordered_sum,
    run,
    slices,
)
from .._runtime.linalg import solve_triangular
from ..kernels import Kernel
from ._choose_landmarks import choose_landmarks
from ._nystroem import NystroemMap, without_rounding
from ._operator import GramOperator

__all__ = ["LowRankGram"]

_LANDMARKS = 100  # how many are chosen by default
_ROWS = 1024  # points looked at a time, for derivatives and diagonals


@entry_point
class LowRankGram(GramOperator):
    """F F^T in place of K = k(X, X), with F the Nyström features of X, (n, m).

    F is held if it fits the budget, and computed again for every product if not: then X is read in
    blocks, and may be a memory map.

    Parameters
    ----------
    kernel : Kernel
        With all its values resolved.
    X : points
    landmarks : str, array of int, points, or NystroemMap
        A method of `choose_landmarks`, the indices of points of X (or a mask), the landmarks
        themselves, or a map that exists.  A sequence of integers means indices.
    n_landmarks : int, optional
        How many a method is to choose; by default 100, or all points if there are fewer.
    random_state : int, Generator, RandomState or None
    n_threads : int, optional
        All processors by default.  The result does not depend on it.
    max_memory : int, str or None
        The budget for F, and for what `to_array` may allocate; see `gram`.

    Attributes
    ----------
    map : NystroemMap
        phi, whose rows on X are F.
    indices : ndarray of shape (m,) or None
        The places of the landmarks in X, if they come from there.

    Notes
    -----
    Landmarks count as other observations than the points of X: with a `White` part in the kernel,
    F F^T has none of the noise that K has on its diagonal, and the residual trace has all of it.

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
        X: Any,
        landmarks: Any = "rpcholesky",
        *,
        n_landmarks: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
        max_memory: Any = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"LowRankGram needs a Kernel, got {kernel!r}")
        self.n_threads, self._budget = n_threads, budget_in_bytes(max_memory)
        self._points = sliceable(X)
        if isinstance(landmarks, str):
            count = min(_LANDMARKS, length(X)) if n_landmarks is None else n_landmarks
            landmarks = choose_landmarks(
                kernel, X, count, landmarks, random_state=random_state, n_threads=n_threads
            )
        elif n_landmarks is not None:
            raise ValueError(
                f"n_landmarks={n_landmarks!r} is for landmarks that a method chooses, but they "
                f"were given; leave one of the two out"
            )
        self.map, self.indices = self._on(kernel, landmarks)
        n = length(X)
        self._F: np.ndarray | None = None
        if 8 * n * len(self.map) <= self._budget:
            # squared norms on the way, while rows are in the cache
            squares = self.__dict__["_squared_norms"] = np.empty(n)
            self._F = self.map.features(self._points, n_threads=n_threads, squares=squares)
        super().__init__(kernel, X, None, (n, n), np.float64)

    def _on(self, kernel: Kernel, landmarks: Any) -> tuple[NystroemMap, np.ndarray | None]:
        if isinstance(landmarks, NystroemMap):
            if landmarks.kernel != kernel:
                raise KernelMismatchError(
                    f"the map belongs to the kernel {landmarks.kernel}, not to {kernel}"
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
        """Yield (rows, F[rows]), all of F in one block if it is held."""
        if self._F is not None:
            return iter([(slice(0, len(self._F)), self._F)])
        return self.map.blocks(self._points, n_threads=self.n_threads)

    def features(self, rows: Any = slice(None)) -> np.ndarray:
        """Return F[rows], to be read; `rows` is a slice, a mask or an index array."""
        if self._F is not None:
            return self._F[rows]
        return self.map.features(take(self._points, rows), n_threads=self.n_threads)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        return self.features(rows) @ self.features(cols).T

    def diagonal(self) -> np.ndarray:
        return self._squared_norms.copy()

    def to_array(self) -> np.ndarray:
        n = self.shape[0]
        if (needed := 8 * n * n) > self._budget:
            raise MemoryBudgetError(
                f"the array of the {n} x {n} matrix F F^T needs {in_words(needed)}, but the budget "
                f"is {in_words(self._budget)}; work with products or blocks, or raise max_memory"
            )
        F = self.features()
        return F @ F.T

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        held = self._F is not None
        U = self._sum(lambda rows, B: B.T @ V[rows], whiten=held)
        if not held:  # L^-1 (K_Sn V): a solve with m rows in place of one with n
            U = self._solve(self._solve(U), "T")
        out = np.empty((self.shape[0], U.shape[1]), dtype=U.dtype)
        self._each(lambda rows, B: np.matmul(B, U, out=out[rows]), whiten=held)
        return out

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return F F^T V and sum_ij w_i w_j (F F^T)_ij^2, which is |F^T diag(w) F|^2."""
        gram = self._sum(lambda rows, F: F.T @ (weights[rows, None] * F))
        return np.asarray(self @ V), float(np.square(gram).sum())

    def _sum(
        self, term: Callable[[slice, np.ndarray], np.ndarray], whiten: bool = True
    ) -> np.ndarray:
        """Return the sum of term(rows, F[rows]) over strips, in their order: for the same bits."""
        strips = self.map._strips(slice(0, self.shape[0]))

        def strip(rows: slice) -> np.ndarray:
            return term(rows, self._strip(rows, whiten))

        work = self.map._work(self.shape[0])
        return np.asarray(ordered_sum(strip, strips, len(strips), self.n_threads, work))

    def _each(self, task: Callable[[slice, np.ndarray], Any], whiten: bool = True) -> None:
        """Call task(rows, F[rows]) for all strips of rows, in threads."""
        strips = self.map._strips(slice(0, self.shape[0]))
        work = self.map._work(self.shape[0])
        run(lambda rows: task(rows, self._strip(rows, whiten)), strips, self.n_threads, work)

    def _strip(self, rows: slice, whiten: bool) -> np.ndarray:
        if self._F is not None and whiten:
            return self._F[rows]
        B = np.empty((rows.stop - rows.start, len(self.map)))
        self.map._fill(self._points, rows, B, whiten)
        return B

    def _solve(self, B: np.ndarray, trans: str = "N") -> np.ndarray:
        with one_blas_thread:
            return solve_triangular(self.map.factor, B, trans=trans, lower=True) if B.size else B

    # ------------------------------------------------------------------ what is left

    def residual(self) -> np.ndarray:
        """Return k(x_i, x_i) - |phi(x_i)|^2, the diagonal of K - F F^T, without rounding below 0.

        Raises
        ------
        NotPositiveDefiniteError
            If one is negative by more than rounding explains.
        """
        exact = np.empty(self.shape[0])
        for rows in slices(len(exact), _ROWS):
            exact[rows] = self.kernel.diag(doubled(take(self._points, rows)))
        dtype = self.map._landmarks.dtype if len(self.map) else np.float64
        return without_rounding(exact - self._squared_norms, exact, self.kernel, dtype)

    @cached_property
    def residual_trace(self) -> float:
        """The trace of K - F F^T over all points: a bound on the error in every norm."""
        return float(self.residual().sum())

    @cached_property
    def _squared_norms(self) -> np.ndarray:
        norms = np.empty(self.shape[0])
        self._each(lambda rows, F: np.einsum("ij,ij->i", F, F, out=norms[rows]))
        return norms

    # ------------------------------------------------------------------ derivatives

    def pullback(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return sum_ij (U V^T)_ij d(F F^T)_ij / d theta, with the landmarks held still.

        With A = K_SS^-1 K_Sn, d(F F^T) = dK_nS A + A^T dK_Sn - A^T dK_SS A.
        """
        U, V = (np.reshape(np.asarray(B, dtype=float), (len(B), -1)) for B in (U, V))
        n = self.shape[0]
        if U.shape != V.shape or len(U) != n:
            raise ValueError(f"pullback needs U and V ({n}, c), got {U.shape} and {V.shape}")
        total = np.zeros(self.kernel.theta.size)
        if not (total.size and len(self.map)):
            return total
        UV = np.hstack([U, V])
        AU, AV = np.hsplit(self._solve(self._sum(lambda rows, F: F.T @ UV[rows]), "T"), 2)
        S = self.map.points
        for rows in slices(n, _ROWS):
            W = U[rows] @ AV.T + V[rows] @ AU.T
            total += self.kernel.pullback(doubled(take(self._points, rows)), S, W)
        return total - self.kernel.pullback(S, None, AU @ AV.T)


def _as_index(landmarks: Any, n: int) -> np.ndarray | None:
    """Return indices of points given as such or as a mask, None for points."""
    listed = isinstance(landmarks, (list, tuple, range))
    if listed and not all(isinstance(i, (int, np.integer)) for i in landmarks):
        return None
    index = np.asarray(landmarks) if listed or getattr(landmarks, "ndim", 0) == 1 else None
    if index is None or index.dtype.kind not in "iub":
        return None
    if index.dtype == bool and len(index) == n:
        return np.flatnonzero(index)
    if index.dtype == bool:
        raise ValueError(f"a mask of {len(index)} landmarks does not fit {n} points")
    if index.size and not (-n <= index.min() and index.max() < n):
        raise ValueError(
            f"landmarks are indices from {index.min()} to {index.max()}, but there are {n} points "
            f"(0 to {n - 1})"
        )
    return index.astype(np.intp) % max(n, 1)
