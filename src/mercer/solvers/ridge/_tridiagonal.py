"""K = Q T Q^T with T tridiagonal: one decomposition that serves every shift.

    (K + m I)^-1 y = Q (T + m I)^-1 Q^T y,      T + m I = L D L^T,  L bidiagonal

costs O(n) for a shift m once Q^T y is known, and the diagonal of the inverse is one sweep over Q:

    ((K + m I)^-1)_ii = sum_k (L^-1 Q^T)_ki^2 / D_k.

Eigenvectors would serve as well.  They are the expensive part of an eigendecomposition, and nothing
here needs them: T comes from two thirds of the work, half of that in matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from ..._errors import NotPositiveDefiniteError
from ..._runtime import entry_point, jit, run
from ..._runtime.linalg import lapack
from ...gram import GramOperator
from ..linear import matrix_of

__all__ = ["Tridiagonal"]

_ROWS = 256  # rows of Q swept at a time: with thirty shifts they stay in the cache


@entry_point
@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """K = Q T Q^T for a symmetric K; make one with `Tridiagonal.of(gram)`.

    Attributes
    ----------
    Q : ndarray of shape (n, n)
        Orthogonal, in Fortran order.
    diagonal, beside : ndarray of shape (n,), (n - 1,)
        Of T, on and next to its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Tridiagonal
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> K = Tridiagonal.of(gram(RBF(), X))
    >>> K.solve(np.array([[1.0], [2.0], [3.0]]), [0.1, 1.0])[1, :, 0].round(4)
    array([0.2404, 0.8295, 1.4425])
    >>> np.linalg.solve(RBF()(X) + np.eye(3), [1.0, 2.0, 3.0]).round(4)
    array([0.2404, 0.8295, 1.4425])
    """

    Q: np.ndarray
    diagonal: np.ndarray
    beside: np.ndarray

    @classmethod
    def of(cls, gram: GramOperator, *, overwrite: bool = False) -> Self:
        """Decompose a symmetric Gram; with `overwrite` in its own array, which is then gone.

        A second array of the same size is needed for Q.
        """
        K = matrix_of(gram, overwrite).astype(float, copy=False)
        n = len(K)
        if n == 1:
            return cls(np.ones((1, 1)), K[0].copy(), np.zeros(1))  # LAPACK wants a place
        work = K.T if K.flags.c_contiguous else K  # symmetric: the same, in Fortran order
        size, _ = lapack.dsytrd_lwork(n, lower=1)
        reflected, diagonal, beside, tau, _ = lapack.dsytrd(
            work, lower=1, lwork=int(size), overwrite_a=1
        )
        # the reflectors leave the first coordinate alone: Q = diag(1, the Q of a QR)
        inner = np.array(reflected[1:, :-1], order="F")
        inner, _, _ = lapack.dorgqr(inner, tau, lwork=64 * n, overwrite_a=1)
        Q = reflected
        Q[0, 1:] = Q[1:, 0] = 0.0
        Q[0, 0] = 1.0
        Q[1:, 1:] = inner
        return cls(Q, diagonal, beside)

    def __len__(self) -> int:
        return len(self.diagonal)

    # ------------------------------------------------------------------ one number a shift

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues of K, ascending."""
        return np.asarray(eigvalsh_tridiagonal(self.diagonal, self.beside[: len(self) - 1]))

    def usable(self, shifts: Any) -> np.ndarray:
        """Return for each shift m whether K + m I is positive definite beyond rounding."""
        lowest, highest = self.eigenvalues[0], np.abs(self.eigenvalues).max()
        floor = len(self) * np.finfo(float).eps * highest
        return np.array([lowest + m > floor for m in shifts])

    def logdet(self, shifts: Any) -> np.ndarray:
        """Return log det (K + m I) for each shift m."""
        return np.array([np.log(self._factor(m)[0]).sum() for m in shifts])

    def inverse_trace(self, shifts: Any) -> np.ndarray:
        """Return tr (K + m I)^-1 for each shift m."""
        return np.array([np.sum(1.0 / (self.eigenvalues + m)) for m in shifts])

    # ------------------------------------------------------------------ vectors

    def solve(self, Y: np.ndarray, shifts: Any) -> np.ndarray:
        """Return (K + m I)^-1 Y for each shift m: shape (shifts, n, columns)."""
        C = self.Q.T @ Y
        parts = [lapack.dpttrs(*self._factor(m), C)[0] for m in shifts]
        flat = self.Q @ np.hstack(parts)
        return np.ascontiguousarray(flat.reshape(len(Y), len(parts), -1).transpose(1, 0, 2))

    def times(self, V: np.ndarray, shift: float) -> np.ndarray:
        """Return (K + shift I) V."""
        U, beside = self.Q.T @ V, self.beside[: len(self) - 1, None]
        W = (self.diagonal + shift)[:, None] * U
        W[1:] += beside * U[:-1]
        W[:-1] += beside * U[1:]
        return np.asarray(self.Q @ W)

    def inverse_diagonal(self, shifts: Any, n_threads: int | None = None) -> np.ndarray:
        """Return the diagonal of (K + m I)^-1 for each shift m: shape (shifts, n)."""
        n, factors = len(self), [self._factor(m) for m in shifts]
        D, L = (np.array(part) for part in zip(*factors, strict=True))
        out = np.zeros((len(D), n))

        def sweep(start: int) -> None:
            rows = slice(start, min(start + _ROWS, n))
            y, total = np.zeros((2, len(D), rows.stop - start))
            _sweep(np.ascontiguousarray(self.Q[rows].T), D, L, y, total)
            out[:, rows] = total

        run(sweep, range(0, n, _ROWS), n_threads, work=4.0 * n * n * len(D))
        return out

    def _factor(self, shift: float) -> tuple[np.ndarray, np.ndarray]:
        """Return D and the entries of L below its diagonal, with T + m I = L D L^T."""
        D, L, info = lapack.dpttrf(self.diagonal + shift, self.beside)
        if info:
            lowest, highest = self.eigenvalues[[0, -1]]
            raise NotPositiveDefiniteError(
                f"K + {shift:g} I is not positive definite: the eigenvalues of K lie in "
                f"[{lowest:.3g}, {highest:.3g}]. The usual cause is a shift below rounding "
                f"({np.finfo(float).eps * highest * len(self):.1e}), or a kernel that is not "
                f"positive semidefinite. Try larger alphas"
            )
        return D, L


@jit()
def _sweep(Qt: Any, D: Any, L: Any, y: Any, total: Any) -> None:
    """total_ji += sum_k y_k^2 / D_jk, y_k = Q_ik - L_j,k-1 y_k-1: for each row i and shift j."""
    for k in range(Qt.shape[0]):
        column = Qt[k]
        for j in range(D.shape[0]):
            before = L[j, k - 1] if k else 0.0
            share = 1.0 / D[j, k]
            mine, sums = y[j], total[j]
            for i in range(len(column)):
                mine[i] = column[i] - before * mine[i]
                sums[i] += share * mine[i] * mine[i]
