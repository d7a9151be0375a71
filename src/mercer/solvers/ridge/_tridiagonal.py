"""Tridiagonal decomposition K = Q T Q^T, computed once to solve (K + m I) a = y for any shift m.

    (K + m I)^-1 y = Q (T + m I)^-1 Q^T y,      T + m I = L D L^T,  L bidiagonal

Once Q^T y is known, the solve with T costs only O(n) for each shift m.  The diagonal of the inverse
is computed in one sweep over the rows of Q:

    ((K + m I)^-1)_ii = sum_k (L^-1 Q^T)_ki^2 / D_k.

An eigendecomposition would also work, but its eigenvectors are expensive and not needed here.  The
tridiagonal decomposition takes fewer operations, about half of them in matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeAlias

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from ..._core import NotPositiveDefiniteError, entry_point, jit, run_in_threads
from ..._core.linalg import lapack
from ...gram import GramOperator
from ..linear import gram_to_array

# The shifts m, as a list or an array.
Shifts: TypeAlias = Sequence[float] | np.ndarray
_SWEEP_ROWS = 256  # rows of Q per parallel task; with up to 30 shifts they fit into the cache


@entry_point
@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """Tridiagonal decomposition K = Q T Q^T, which solves (K + m I) a = y for many shifts m.

    It takes fewer operations than an eigendecomposition.  After it, each shift costs O(n)
    operations in addition to products with Q.  Create it with `Tridiagonal.of(gram)`.

    Attributes
    ----------
    Q : ndarray of shape (n, n)
        Orthogonal matrix, in Fortran order.
    diagonal : ndarray of shape (n,)
        The diagonal of T.
    off_diagonal : ndarray of shape (n - 1,)
        The entries of T next to its diagonal.  For n = 1 it has one entry, which is not used.

    See Also
    --------
    ExactPath : Ridge regression for many penalties.
    Cholesky : Solve for one shift.

    References
    ----------
    Golub and Van Loan, "Matrix computations", 4th edition, Johns Hopkins University Press, 2013,
    section 8.3.

    Eldén, "Algorithms for the regularization of ill-conditioned least squares problems", BIT, 1977.

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
    off_diagonal: np.ndarray

    @classmethod
    def of(cls, gram: GramOperator, *, overwrite: bool = False) -> Self:
        """Decompose a symmetric Gram operator.

        Parameters
        ----------
        gram : GramOperator of shape (n, n)
            The symmetric matrix K.
        overwrite : bool, default=False
            Whether the array of `gram` may be overwritten.  A second array of the same size is
            needed during the computation in any case.

        Returns
        -------
        Tridiagonal
            The decomposition.
        """
        K = gram_to_array(gram, overwrite).astype(float, copy=False)
        n = len(K)
        if n == 1:
            # The off-diagonal has one unused entry, because LAPACK rejects an empty array.
            return cls(np.ones((1, 1)), K[0].copy(), np.zeros(1))
        work = K.T if K.flags.c_contiguous else K  # K.T = K, but in Fortran order for LAPACK
        size, _ = lapack.dsytrd_lwork(n, lower=1)
        reflected, diagonal, off_diagonal, tau, _ = lapack.dsytrd(
            work, lower=1, lwork=int(size), overwrite_a=1
        )
        # The reflectors do not change the first coordinate: Q = diag(1, Q') with Q' from dorgqr.
        inner = np.array(reflected[1:, :-1], order="F")
        inner, _, _ = lapack.dorgqr(inner, tau, lwork=64 * n, overwrite_a=1)
        Q = reflected
        Q[0, 1:] = Q[1:, 0] = 0.0
        Q[0, 0] = 1.0
        Q[1:, 1:] = inner
        return cls(Q, diagonal, off_diagonal)

    def __len__(self) -> int:
        return len(self.diagonal)

    # ------------------------------------------------------------------ scalar results per shift

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues of K in ascending order."""
        return np.asarray(eigvalsh_tridiagonal(self.diagonal, self.off_diagonal[: len(self) - 1]))

    def usable(self, shifts: Shifts) -> np.ndarray:
        """Return, for each shift m, whether K + m I is numerically positive definite.

        Parameters
        ----------
        shifts : sequence of float
            The shifts m.

        Returns
        -------
        ndarray of bool, shape (n_shifts,)
            False if the smallest eigenvalue of K + m I may be a rounding error.
        """
        lowest, highest = self.eigenvalues[0], np.abs(self.eigenvalues).max()
        floor = len(self) * np.finfo(float).eps * highest
        return np.array([lowest + m > floor for m in shifts])

    def logdet(self, shifts: Shifts) -> np.ndarray:
        """Return log det (K + m I) for each shift m.

        Parameters
        ----------
        shifts : sequence of float
            The shifts m.

        Returns
        -------
        ndarray of shape (n_shifts,)
            The log determinants.
        """
        return np.array([np.log(self._factor(m)[0]).sum() for m in shifts])

    def inverse_trace(self, shifts: Shifts) -> np.ndarray:
        """Return tr (K + m I)^-1 for each shift m.

        Parameters
        ----------
        shifts : sequence of float
            The shifts m.

        Returns
        -------
        ndarray of shape (n_shifts,)
            The traces.
        """
        return np.array([np.sum(1.0 / (self.eigenvalues + m)) for m in shifts])

    # ------------------------------------------------------------------ vector results

    def solve(self, Y: np.ndarray, shifts: Shifts) -> np.ndarray:
        """Return (K + m I)^-1 Y for each shift m.

        Parameters
        ----------
        Y : ndarray of shape (n, q)
            Right-hand sides.
        shifts : sequence of float
            The shifts m.

        Returns
        -------
        ndarray of shape (n_shifts, n, q)
            The solutions.
        """
        C = self.Q.T @ Y
        parts = [lapack.dpttrs(*self._factor(m), C)[0] for m in shifts]
        flat = self.Q @ np.hstack(parts)
        return np.ascontiguousarray(flat.reshape(len(Y), len(parts), -1).transpose(1, 0, 2))

    def times(self, V: np.ndarray, shift: float) -> np.ndarray:
        """Return (K + shift I) V.

        Parameters
        ----------
        V : ndarray of shape (n, q)
            The right-hand factor.
        shift : float
            The shift.

        Returns
        -------
        ndarray of shape (n, q)
            The product.
        """
        U, off_diagonal = self.Q.T @ V, self.off_diagonal[: len(self) - 1, None]
        W = (self.diagonal + shift)[:, None] * U
        W[1:] += off_diagonal * U[:-1]
        W[:-1] += off_diagonal * U[1:]
        return np.asarray(self.Q @ W)

    def inverse_diagonal(self, shifts: Shifts, n_threads: int | None = None) -> np.ndarray:
        """Return the diagonal of (K + m I)^-1 for each shift m.

        Parameters
        ----------
        shifts : sequence of float
            The shifts m.
        n_threads : int or None, default=None
            Number of threads; None means all processors.  The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_shifts, n)
            The diagonals.
        """
        n, factors = len(self), [self._factor(m) for m in shifts]
        D, L = (np.array(part) for part in zip(*factors, strict=True))
        out = np.zeros((len(D), n))

        def sweep(start: int) -> None:
            rows = slice(start, min(start + _SWEEP_ROWS, n))
            y, total = np.zeros((2, len(D), rows.stop - start))
            _sweep(np.ascontiguousarray(self.Q[rows].T), D, L, y, total)
            out[:, rows] = total

        run_in_threads(sweep, range(0, n, _SWEEP_ROWS), n_threads, work=4.0 * n * n * len(D))
        return out

    def _factor(self, shift: float) -> tuple[np.ndarray, np.ndarray]:
        """Return D and the entries of L below its diagonal, with T + m I = L D L^T."""
        D, L, info = lapack.dpttrf(self.diagonal + shift, self.off_diagonal)
        if info:
            lowest, highest = self.eigenvalues[[0, -1]]
            raise NotPositiveDefiniteError(
                f"K + {shift:g} I is not positive definite: the eigenvalues of K lie in "
                f"[{lowest:.3g}, {highest:.3g}]. The usual cause is a shift below the rounding "
                f"error of K ({np.finfo(float).eps * highest * len(self):.1e}), or a kernel that "
                f"is not positive semidefinite. Use larger alphas"
            )
        return D, L


@jit()
def _sweep(Qt: np.ndarray, D: np.ndarray, L: np.ndarray, y: np.ndarray, total: np.ndarray) -> None:
    """Add sum_k y_k^2 / D_jk to total_ji for each row i and shift j.

    This gives the diagonal of (K + m_j I)^-1 from K = Q T Q^T and T + m_j I = L_j D_j L_j^T.  The
    y_k follow from the recurrence y_k = Q_ik - L_j,k-1 y_k-1.  Qt is the transpose of Q, and `y` a
    working array.
    """
    for k in range(Qt.shape[0]):
        column = Qt[k]
        for j in range(D.shape[0]):
            factor = L[j, k - 1] if k else 0.0
            inverse = 1.0 / D[j, k]
            current, sums = y[j], total[j]
            for i in range(len(column)):
                current[i] = column[i] - factor * current[i]
                sums[i] += inverse * current[i] * current[i]


@_sweep.without_numba
def _sweep_numpy(
    Qt: np.ndarray, D: np.ndarray, L: np.ndarray, y: np.ndarray, total: np.ndarray
) -> None:
    for k in range(len(Qt)):
        y *= -L[:, k - 1, None] if k else 0.0
        y += Qt[k]
        total += y * y / D[:, k, None]
