"""The a of least norm with F^T a = w: which combination of rows a vector is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._runtime import check_budget, entry_point
from ..._runtime.linalg import eigh, lstsq

__all__ = ["minimum_norm"]

_REFINED = 3  # steps: those after the first mend what squaring the condition of F has lost


@entry_point
def minimum_norm(F: Any, W: np.ndarray, max_memory: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the A of least norm with F^T A nearest to W, and |W - F^T A| for each column.

    F of shape (n, M) may be sparse.  Dense rows go through their singular values; for sparse ones
    the smaller of F F^T and F^T F is decomposed, and its error corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import minimum_norm
    >>> F = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> A, left = minimum_norm(F, np.array([[2.0], [3.0], [4.0]]))
    >>> A.ravel().round(6), left.round(6)
    (array([1., 1., 3.]), array([4.]))
    """
    (n, M), small = F.shape, float(np.finfo(float).eps) * max(F.shape)
    if not sp.issparse(F):
        check_budget(24 * n * M, max_memory, f"the singular values of {n} rows of {M} features")
        A = lstsq(F.T, W, cond=small, check_finite=False)[0]
        return A, np.linalg.norm(W - F.T @ A, axis=0)
    size, wide = min(n, M), n < M
    check_budget(24 * size * size, max_memory, f"a matrix of {size} x {size} products of features")
    values, V = eigh((F @ F.T if wide else F.T @ F).toarray(), overwrite_a=True)
    kept = values > small * values.max(initial=0.0)
    values, V = values[kept], V[:, kept]

    def inverse(B: np.ndarray) -> np.ndarray:
        return V @ ((V.T @ B) / values[:, None])

    A = np.zeros((n, W.shape[1]))
    for _ in range(_REFINED):
        R = W - F.T @ A
        A += inverse(F @ R) if wide else F @ inverse(R)
    return A, np.linalg.norm(W - F.T @ A, axis=0)
