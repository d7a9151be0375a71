"""Symmetric matrices that LAPACK factorises in place, without losing the original matrix.

LAPACK reads and overwrites only one triangle of a symmetric matrix.  The other triangle still
contains the original, so that products with it, and true residuals, need no second copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import DensifyWarning, not_finite_error, warn_caller
from ..._core.linalg import blas


def check_points(gram: Any) -> None:
    """Raise ValueError if the Gram matrix is not symmetric, or if there are no points."""
    if not getattr(gram, "symmetric", True):
        raise ValueError(
            "this solver needs a symmetric Gram matrix k(X, X), but got a Gram matrix k(X, Z)"
        )
    if not gram.shape[0]:
        raise ValueError("there are no points, so that K is 0 x 0; pass at least one point")


def gram_to_array(gram: Any, overwrite: bool) -> np.ndarray:
    """Return a symmetric Gram operator as an array that the caller may overwrite.

    Parameters
    ----------
    gram : GramOperator or CentredGram
    overwrite : bool
        If K is stored as an array, return this array itself instead of a copy.

    Returns
    -------
    K : ndarray of shape (n, n)

    Warns
    -----
    DensifyWarning
        If K was not stored as an array.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import gram_to_array
    >>> gram_to_array(gram("Linear()", np.eye(2)), overwrite=False)
    array([[1., 0.],
           [0., 1.]])
    """
    check_points(gram)
    inner = getattr(gram, "gram", gram)  # the operator that a CentredGram wraps
    if not hasattr(inner, "release"):
        n = gram.shape[0]
        warn_caller(
            f"a direct solver turns the {type(inner).__name__} of {n} points into an array of "
            f"{gram.dtype.itemsize * n * n / 2**30:.2f} GiB",
            DensifyWarning,
        )
        K = gram.to_array()
    else:
        K = gram.release() if overwrite else gram.to_array()
    with np.errstate(over="ignore", invalid="ignore"):
        # unlike np.isfinite(K), this needs no n x n array of flags
        finite = np.isfinite(K.sum(dtype=np.float64))
    if not finite:
        raise not_finite_error(gram.kernel)
    return K


class InPlaceSymmetric:
    """The matrix A = K + diag(shift) in an array whose lower triangle LAPACK may overwrite.

    Attributes
    ----------
    work : ndarray of shape (n, n)
        The array, in Fortran order.  It can be passed to LAPACK with lower=1 and overwrite_a=1.
    diagonal : ndarray of shape (n,)
        The diagonal of A.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import InPlaceSymmetric
    >>> A = InPlaceSymmetric(np.array([[2.0, 1.0], [1.0, 2.0]]), shift=1.0)
    >>> A.times(np.eye(2))
    array([[3., 1.],
           [1., 3.]])
    """

    def __init__(self, K: np.ndarray, shift: np.ndarray | float = 0.0) -> None:
        self.work = K.T if K.flags.c_contiguous else K  # the same matrix, in Fortran order
        self.diagonal = (K.diagonal() + shift).astype(K.dtype)
        self.restore_diagonal()

    def restore_diagonal(self) -> None:
        """Write the diagonal of A back into `work`."""
        np.fill_diagonal(self.work, self.diagonal)

    def restore(self) -> None:
        """Restore A in `work`, from the upper triangle that LAPACK did not overwrite."""
        mirror_lower_triangle(self.work.T)
        self.restore_diagonal()

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return A V, computed from the upper triangle of `work`."""
        symm = blas.dsymm if self.work.dtype == np.float64 else blas.ssymm
        lapack_diagonal = self.work.diagonal().copy()
        self.restore_diagonal()
        try:
            return np.asarray(symm(1.0, self.work, np.asfortranarray(V, self.work.dtype), lower=0))
        finally:
            np.fill_diagonal(self.work, lapack_diagonal)


def mirror_lower_triangle(A: np.ndarray) -> None:
    """Copy the lower triangle of A to the upper triangle, in place.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import mirror_lower_triangle
    >>> A = np.array([[1.0, 0.0], [2.0, 3.0]])
    >>> mirror_lower_triangle(A)
    >>> A
    array([[1., 2.],
           [2., 3.]])
    """
    for start in range(0, len(A), 256):
        rows = slice(start, start + 256)
        A[:start, rows] = A[rows, :start].T
        square = A[rows, rows]
        upper = np.triu_indices(len(square), 1)
        square[upper] = square.T[upper]
