"""Minimum-norm solution of F^T a = w, which expresses w as a combination of the rows of F."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import MemoryLimit, check_budget, entry_point
from ..._core.linalg import eigh, lstsq

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
    rank_bound, wide = min(n, M), n < M
    check_budget(
        24 * rank_bound * rank_bound,
        max_memory,
        f"a matrix of {rank_bound} x {rank_bound} products of features",
    )
    values, V = eigh((F @ F.T if wide else F.T @ F).toarray(), overwrite_a=True)
    # Rounding errors of the products and of their eigenvalues can exceed rcond several times.
    is_nonzero = values > _EIGENVALUE_NOISE * rcond * values.max(initial=0.0)
    values, V = values[is_nonzero], V[:, is_nonzero]

    def inverse(B: np.ndarray) -> np.ndarray:
        return V @ ((V.T @ B) / values[:, None])

    A = np.zeros((n, W.shape[1]))
    for _ in range(_REFINEMENT_STEPS):
        R = W - F.T @ A
        A += inverse(F @ R) if wide else F @ inverse(R)
    return A, np.linalg.norm(W - F.T @ A, axis=0)
