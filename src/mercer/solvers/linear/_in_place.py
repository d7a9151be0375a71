"""A symmetric matrix that a LAPACK routine is working in.

LAPACK reads and overwrites one triangle of a symmetric matrix.  The other still holds it, so the
matrix can be multiplied with afterwards, and residuals are true ones, without a second copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._errors import DensifyWarning, not_finite, warn_caller
from ..._runtime.linalg import blas

__all__ = ["Triangle", "check_points", "matrix_of", "mirror"]


def check_points(gram: Any) -> None:
    """Refuse a Gram that is not k(X, X) of at least one point."""
    if not getattr(gram, "symmetric", True):
        raise ValueError("this solver needs a symmetric Gram k(X, X); got one with Z")
    if not gram.shape[0]:
        raise ValueError("there are no points: K is 0 x 0, and there is nothing to solve")


def matrix_of(gram: Any, overwrite: bool) -> np.ndarray:
    """Return the matrix of a symmetric Gram as an array to work in, saying so if it was none.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import matrix_of
    >>> matrix_of(gram("Linear()", np.eye(2)), overwrite=False)
    array([[1., 0.],
           [0., 1.]])
    """
    check_points(gram)
    held = getattr(gram, "gram", gram)  # beneath a centred one
    if not hasattr(held, "release"):
        n = gram.shape[0]
        warn_caller(
            f"a direct solver turns the {type(held).__name__} of {n} points into an array of "
            f"{gram.dtype.itemsize * n * n / 2**30:.2f} GiB",
            DensifyWarning,
        )
        K = gram.to_array()
    else:
        K = gram.release() if overwrite else gram.to_array()
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(K.sum(dtype=np.float64))  # one number, no array of flags
    if not finite:
        raise not_finite(gram.kernel)
    return K


class Triangle:
    """The matrix A = K + diag(shift) after its lower triangle has been given away.

    Attributes
    ----------
    work : ndarray
        Fortran order; hand it to LAPACK with lower=1 and overwrite_a=1.
    diagonal : ndarray
        That of A.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Triangle
    >>> A = Triangle(np.array([[2.0, 1.0], [1.0, 2.0]]), shift=1.0)
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
        """Make `work` the matrix A again, from the triangle that is still there."""
        mirror(self.work.T)
        self.restore_diagonal()

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return A V, from the upper triangle."""
        symm = blas.dsymm if self.work.dtype == np.float64 else blas.ssymm
        written = self.work.diagonal().copy()  # by LAPACK
        self.restore_diagonal()
        try:
            return np.asarray(symm(1.0, self.work, np.asfortranarray(V, self.work.dtype), lower=0))
        finally:
            np.fill_diagonal(self.work, written)


def mirror(A: np.ndarray) -> None:
    """Copy the lower triangle of A to the upper one, by strips: no second matrix appears.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import mirror
    >>> A = np.array([[1.0, 0.0], [2.0, 3.0]])
    >>> mirror(A)
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
