"""The class `Precomputed`: a kernel given by a matrix of its values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._core import Points, as_vectors, warn_caller
from ._base import Kernel, node
from ._evaluation import Prepared
from ._parameter_checks import SYMMETRY_TOLERANCE, asymmetry, frozen_matrix
from ._properties import Domain, Properties


class _Operand(NamedTuple):
    """The size of an entire operand, which a tile needs although it contains only some rows."""

    shape: tuple[int, ...]
    largest: int  # the largest index, or -1 if the points are rows of values


@node
class Precomputed(Kernel):
    """Kernel that is given by a matrix of precomputed values.

        k(i, j) = matrix[i, j]

    With a matrix, the points are integers: indices of rows of the matrix.

    Without a matrix, it is the kernel that estimators call "precomputed": a point is given by the
    row of its kernel values with all training points.  `k(K)` returns the square matrix K itself.
    For test points V of shape (n_test, n_train) and training points given by their indices j,
    `k(V, j)` returns V[:, j].  Instead of indices, the training points may also be the square
    matrix K.

    Parameters
    ----------
    matrix : array-like of shape (n, n), optional
        The symmetric matrix of kernel values.  None means that the points are rows of kernel
        values.

    See Also
    --------
    Callable : If kernel values should be computed by a function when they are needed.
    check_gram : Checks whether a matrix is positive semidefinite.

    Examples
    --------
    >>> from mercer.kernels import Precomputed
    >>> Precomputed([[2.0, 1.0], [1.0, 3.0]])([1, 0], [1])
    array([[3.],
           [1.]])
    >>> Precomputed()([[0.1, 0.2, 0.3]], [0, 2])
    array([[0.1, 0.3]])
    """

    matrix: Any = None

    def _check(self) -> None:
        if self.matrix is not None:
            matrix = frozen_matrix(self.matrix, "Precomputed", "the matrix")
            object.__setattr__(self, "matrix", matrix)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        if self.matrix is not None:
            index = _as_index(X)
            if index.max(initial=-1) >= len(self.matrix):
                raise ValueError(
                    f"Precomputed: there is no point {index.max()}; the matrix has "
                    f"{len(self.matrix)} points (0 to {len(self.matrix) - 1})"
                )
            return Prepared((index,), dtype=self.matrix.dtype)
        if len(getattr(X, "shape", None) or np.shape(X)) == 2:
            points = as_vectors(X, "Precomputed")
            frame, dtype = _Operand(points.shape, -1), points.dtype
        else:
            points, dtype = _as_index(X), np.dtype(np.float32)  # the lowest precision
            frame = _Operand(points.shape, int(points.max(initial=-1)))
        if like is not None:
            _check_compatible(like.frame, frame)
        return Prepared((points,), frame=frame, dtype=dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        A, B = P.arrays[0], Q.arrays[0]
        if self.matrix is not None:
            out[...] = self.matrix[np.ix_(A, B)]
            return
        if P.source is Q.source and A.ndim == 2:
            _check_square(P.frame.shape)
        if A.ndim == 2 and (B.ndim == 1 or _is_square(Q.frame.shape)):
            values = A[:, B if B.ndim == 1 else Q.index]
            out[...] = values.toarray() if sp.issparse(values) else values
        elif B.ndim == 2:
            self._tile(Q, P, out.T)  # the training points are the left operand
        else:
            raise ValueError(
                "Precomputed() has no values for pairs of training points given by their indices; "
                "use Precomputed(K), which contains the matrix"
            )

    def _diag(self, X: Points) -> np.ndarray:
        if self.matrix is not None:
            index = self._prepare(X, None).arrays[0]
            diagonal: np.ndarray = self.matrix[index, index]
            return diagonal
        if len(getattr(X, "shape", None) or np.shape(X)) != 2:
            raise ValueError(
                "Precomputed() has no values k(j, j) for indices j; use Precomputed(K), which "
                "contains the matrix"
            )
        X = as_vectors(X, "Precomputed")
        _check_square(X.shape)
        return np.asarray(X.diagonal()).copy()

    def _properties(self, *inner: Properties) -> Properties:
        if self.matrix is None:
            return Properties()
        return Properties(diagonal_bound=float(np.abs(np.diag(self.matrix)).max(initial=0)))

    def _domain(self, *inner: Domain) -> Domain:
        return Domain("indices")


def _as_index(X: Points) -> np.ndarray:
    """Return X as an array of indices; raise ValueError if it is anything else."""
    index = np.asarray(X)
    if not index.size:
        index = index.astype(np.intp)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(
            f"Precomputed: points must be indices, an array of integers of shape (n,); "
            f"got {index.dtype} of shape {index.shape}"
        )
    if index.min(initial=0) < 0:
        raise ValueError(f"Precomputed: indices start at 0, got {index.min()}")
    return index.astype(np.intp, copy=False)


def _check_compatible(a: _Operand, b: _Operand) -> None:
    """Raise ValueError if two operands cannot belong to the same matrix of kernel values."""
    if len(a.shape) == len(b.shape) == 2:
        if a.shape[1] != b.shape[1] or not (_is_square(a.shape) or _is_square(b.shape)):
            raise ValueError(
                f"Precomputed: kernel values of shapes {a.shape} and {b.shape} do not match; fit "
                f"needs (n_train, n_train), and predict (n_test, n_train)"
            )
        return
    values, index = (a, b) if len(a.shape) == 2 else (b, a)
    if len(values.shape) == 2 and index.largest >= values.shape[1]:
        raise ValueError(
            f"Precomputed: kernel values of shape {values.shape} belong to {values.shape[1]} "
            f"training points, so there is no training point {index.largest}"
        )


def _check_square(shape: tuple[int, ...]) -> None:
    """Raise ValueError unless a matrix of kernel values of the training points is square."""
    if not _is_square(shape):
        raise ValueError(
            f"Precomputed: a matrix of kernel values of shape {shape} is not square; "
            f"fit needs (n, n), the values for all pairs of training points, "
            f"and predict (n_test, n_train)"
        )


def _is_square(shape: tuple[int, ...]) -> bool:
    return shape[0] == shape[1]


def expects_precomputed_rows(kernel: Kernel) -> bool:
    """Return True if the points of the kernel are rows of precomputed values.

    Each row contains the kernel values with *all* training points.  A subset of the rows is
    therefore not the Gram matrix of these points; their columns must be selected as well.

    Examples
    --------
    >>> from mercer.kernels import RBF, Precomputed, expects_precomputed_rows
    >>> expects_precomputed_rows(Precomputed()), expects_precomputed_rows(2.0 * RBF())
    (True, False)
    """
    if isinstance(kernel, Precomputed):
        return kernel.matrix is None
    return any(expects_precomputed_rows(child) for _, child in kernel._children())


def as_index_kernel(kernel: Kernel, X: Points) -> tuple[Any, Points]:
    """Replace `Precomputed()` and a square matrix K by `Precomputed(K)` and its row indices.

    Indices can be split into subsets, but rows of K cannot.  Any other kernel is returned
    unchanged, with its points.  A matrix that is not symmetric is symmetrised, with a warning;
    otherwise it is not copied.

    Returns
    -------
    kernel : Kernel
    X : object
        The indices 0, ..., n - 1, or the points as they were passed.

    Examples
    --------
    >>> from mercer.kernels import Precomputed, as_index_kernel
    >>> k, X = as_index_kernel(Precomputed(), [[2.0, 1.0], [1.0, 2.0]])
    >>> X, k(X[:1])
    (array([0, 1]), array([[2.]]))
    """
    if not (isinstance(kernel, Precomputed) and kernel.matrix is None):
        return kernel, X
    K = as_vectors(X.toarray() if hasattr(X, "toarray") else X, "Precomputed")
    _check_square(K.shape)
    gap, largest = asymmetry(K)
    if gap > SYMMETRY_TOLERANCE * largest:
        warn_caller(
            f"the precomputed matrix is not symmetric: K and its transpose differ by {gap:.3g}, "
            f"with entries up to {largest:.3g}; its symmetric part (K + K.T) / 2 is used. The "
            f"usual cause is a wrong order of rows or columns"
        )
        K = 0.5 * (K + K.T)
    K = K.view()
    K.flags.writeable = False  # so that Precomputed does not copy it
    return Precomputed(K), np.arange(len(K))
