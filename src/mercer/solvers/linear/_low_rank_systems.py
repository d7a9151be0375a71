"""Linear systems with a factor F that has few rows or columns.

`ShiftedLowRank` inverts the approximation P = F^T F + shift I of K + shift I:

    P^-1 v    = (v - F^T (F F^T + shift)^-1 F v) / shift                        (Woodbury)
    log det P = (n - k) log shift + log det(F F^T + shift)

F has shape (k, n) with k < n.  Only k x k matrices are factorised, in float64.
`minimum_norm_solution` solves F^T a = w, and so expresses w as a combination of the rows of F.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import (
    MemoryLimit,
    check_budget,
    entry_point,
    ordered_sum,
    run_in_threads,
    split_evenly,
)
from ..._core.linalg import cho_factor, cho_solve, eigh, lstsq

_STRIPS = 8  # F is split into this many column strips, whatever the number of threads


@entry_point
class ShiftedLowRank:
    """The matrix P = F^T F + shift I, with fast solves and log determinant.

    Only k x k matrices are factorised, by the Woodbury formula, so that a solve takes O(n k)
    operations.  It is used as a preconditioner of K + shift I.  If F comes from `rpcholesky`, then
    P <= K + shift I <= (1 + trace / shift) P, where `trace` is the trace of K - F^T F.

    Parameters
    ----------
    F : ndarray of shape (k, n)
        The factor, such as that of a `PartialCholesky`.  It is neither changed nor copied.
    shift : float
        A positive number.
    n_threads : int or None, default=None
        Number of threads; None means all processors.  The results do not depend on it.

    References
    ----------
    Hager, "Updating the inverse of a matrix", SIAM Review, 1989, for the Woodbury formula.

    Díaz, Epperly, Frangella, Tropp and Webber, "Robust, randomized preconditioning for kernel ridge
    regression", arXiv:2304.12465.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import ShiftedLowRank
    >>> P = ShiftedLowRank(np.array([[3.0, 4.0]]), shift=1.0)
    >>> P.solve(np.array([6.0, 8.0])) * 26
    array([6., 8.])
    >>> bool(np.isclose(P.logdet(), np.log(26.0)))
    True
    """

    def __init__(self, F: np.ndarray, shift: float, *, n_threads: int | None = None) -> None:
        F = np.asarray(F, dtype=np.float64)
        if F.ndim != 2:
            raise ValueError(f"F must have shape (k, n), got {F.shape}")
        if not (np.ndim(shift) == 0 and 0.0 < shift < np.inf):
            raise ValueError(
                f"ShiftedLowRank needs a positive, finite shift, got {shift!r}: F^T F alone has no "
                f"inverse. If each point has its own shift, scale rows and columns of K before "
                f"computing F, so that the shifts become equal"
            )
        self.F, self.shift, self.n_threads = F, float(shift), n_threads

    @property
    def size(self) -> int:
        """The number of rows of P."""
        return int(self.F.shape[1])

    def solve(self, V: np.ndarray) -> np.ndarray:
        """Return P^-1 V.

        Parameters
        ----------
        V : ndarray of shape (n,) or (n, q)
            One or several right-hand sides.

        Returns
        -------
        ndarray of shape (n,) or (n, q)
            The solution, of the same shape as V.
        """
        columns = self._columns(V)
        inner = cho_solve(self._factor, self._times(columns), check_finite=False)
        return (self._minus(columns, inner) / self.shift).reshape(np.shape(V))

    def logdet(self) -> float:
        """Return log det P.

        Returns
        -------
        float
            (n - k) log shift + log det(F F^T + shift I).
        """
        inner = 2.0 * float(np.sum(np.log(self._factor[0].diagonal())))
        return inner + (self.size - len(self.F)) * float(np.log(self.shift))

    def sample(self, rng: Any, q: int) -> np.ndarray:
        """Draw samples from the normal distribution N(0, P).

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of random numbers.
        q : int
            Number of samples.

        Returns
        -------
        ndarray of shape (n, q)
            The samples, one per column.
        """
        coefficients = rng.standard_normal((len(self.F), q))
        return self._minus(np.sqrt(self.shift) * rng.standard_normal((self.size, q)), -coefficients)

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        inner = self._square.copy()
        inner.flat[:: len(inner) + 1] += self.shift
        return cho_factor(inner, lower=True, overwrite_a=True)

    @cached_property
    def _square(self) -> np.ndarray:
        return row_gram(self.F, self.n_threads)

    # ------------------------------------------------------------------ products with F

    def _columns(self, V: Any) -> np.ndarray:
        V = np.asarray(V, dtype=np.float64)
        if V.ndim not in (1, 2) or len(V) != self.size:
            raise ValueError(f"V has shape {V.shape}, but P has {self.size} rows")
        flat: np.ndarray = V.reshape(self.size, -1)
        return flat

    def _times(self, V: np.ndarray) -> np.ndarray:
        """Return F V."""
        work = float(self.F.size) * V.shape[1]
        F, n_threads = self.F, self.n_threads
        return _sum_over_strips(lambda strip: F[:, strip] @ V[strip], self.size, n_threads, work)

    def _minus(self, V: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return V - F^T C."""
        out = np.empty_like(V)

        def subtract_strip(strip: slice) -> None:
            np.subtract(V[strip], self.F[:, strip].T @ C, out=out[strip])

        work = float(self.F.size) * V.shape[1]
        run_in_threads(subtract_strip, split_evenly(self.size, _STRIPS), self.n_threads, work)
        return out


@entry_point
def row_gram(F: np.ndarray, n_threads: int | None) -> np.ndarray:
    """Return F F^T; the result does not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import row_gram
    >>> row_gram(np.array([[1.0, 2.0], [0.0, 1.0]]), n_threads=1)
    array([[5., 2.],
           [2., 1.]])
    """
    work = float(F.size) * len(F)
    return _sum_over_strips(lambda strip: F[:, strip] @ F[:, strip].T, F.shape[1], n_threads, work)


def _sum_over_strips(
    product_of_strip: Callable[[slice], np.ndarray], n: int, n_threads: int | None, work: float
) -> np.ndarray:
    """Split n columns into strips, and return the sum of `product_of_strip` over the strips.

    The order of the summation is fixed, so that the result does not depend on `n_threads`.
    """
    strips = split_evenly(n, _STRIPS)
    return np.asarray(ordered_sum(product_of_strip, strips, _STRIPS, n_threads, work))


# Steps of iterative refinement.  The steps after the first one correct the errors that arise
# because F F^T has the squared condition number of F.
_REFINEMENT_STEPS = 3
_EIGENVALUE_NOISE = 10.0  # smaller eigenvalues, in units of rcond, are treated as 0


@entry_point
def minimum_norm_solution(
    F: Any, W: np.ndarray, max_memory: MemoryLimit = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum-norm least-squares solution A of F^T A = W.

    For a dense F, a singular value decomposition is used.  For a sparse F, the eigenvalues of the
    smaller of F F^T and F^T F are computed, and the solution is improved by iterative refinement.

    Parameters
    ----------
    F : ndarray or sparse matrix of shape (n, M)
    W : ndarray of shape (M, q)
    max_memory : int, str or None
        Memory budget; None for half of the memory of the computer.

    Returns
    -------
    A : ndarray of shape (n, q)
    residuals : ndarray of shape (q,)
        The norm |W - F^T A| of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import minimum_norm_solution
    >>> F = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> A, residuals = minimum_norm_solution(F, np.array([[2.0], [3.0], [4.0]]))
    >>> A.ravel().round(6), residuals.round(6)
    (array([1., 1., 3.]), array([4.]))
    """
    (n, M), rcond = F.shape, float(np.finfo(float).eps) * max(F.shape)
    if not sp.issparse(F):
        check_budget(24 * n * M, max_memory, f"the singular values of {n} rows of {M} features")
        A = lstsq(F.T, W, cond=rcond, check_finite=False)[0]
        return A, np.linalg.norm(W - F.T @ A, axis=0)
    size, wide = min(n, M), n < M
    check_budget(24 * size**2, max_memory, f"a matrix of {size} x {size} products of features")
    values, V = eigh((F @ F.T if wide else F.T @ F).toarray(), overwrite_a=True)
    # Rounding errors of the products and of their eigenvalues can exceed rcond several times.
    is_nonzero = values > _EIGENVALUE_NOISE * rcond * values.max(initial=0.0)
    values, V = values[is_nonzero], V[:, is_nonzero]

    def inverse(B: np.ndarray) -> np.ndarray:
        product: np.ndarray = V @ ((V.T @ B) / values[:, None])
        return product

    A = np.zeros((n, W.shape[1]))
    for _ in range(_REFINEMENT_STEPS):
        R = W - F.T @ A
        A += inverse(F @ R) if wide else F @ inverse(R)
    return A, np.linalg.norm(W - F.T @ A, axis=0)
