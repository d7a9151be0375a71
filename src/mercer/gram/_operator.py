"""Base class of kernel matrices K = k(X, Z) as linear operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse.linalg import LinearOperator

from .._core import Points, entry_point, length, slices, take
from ..kernels import Kernel
from ._tile_products import weighted_squares

_TILE_ROWS = 512  # K is evaluated in tiles with this many rows and columns, to save memory


@entry_point
class GramOperator(LinearOperator):  # type: ignore[misc]  # SciPy has no types
    """Base class of kernel matrices K_ij = k(x_i, z_j) as linear operators.

    Subclasses differ in how they store K: as an array, in tiles that are evaluated for every
    product, or as a low-rank product.  Algorithms use only the methods of this class, and therefore
    work with each of them.  All operators can be passed to SciPy's `eigsh`, `cg` and `lobpcg`.

    Use `gram` to obtain an operator; it chooses the subclass that fits the memory budget.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n points of the rows.
    Z : points or None
        The m points of the columns; None means the symmetric matrix K = k(X, X).
    shape : tuple of int
        The shape (n, m) of K.
    dtype : dtype
        Precision of the entries of K, float64 or float32.
    n_threads : int or None, default None
        Number of threads; None means all processors.  Results do not depend on it.

    Attributes
    ----------
    kernel, X, Z, shape, dtype, n_threads
        The parameters.

    See Also
    --------
    gram : Return the kernel matrix as an operator that fits the memory budget.
    mercer.testing.check_gram : Check the methods of a new subclass.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import GramOperator, gram
    >>> K = gram("RBF()", np.zeros((3, 1)), storage="tiled")
    >>> isinstance(K, GramOperator), K.symmetric
    (True, True)
    >>> K @ np.ones(3)
    array([3., 3., 3.])
    """

    kernel: Kernel
    X: Points
    Z: Points
    n_threads: int | None

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        Z: Points,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        n_threads: int | None = None,
    ) -> None:
        self.kernel, self.X, self.Z, self.n_threads = kernel, X, Z, n_threads
        super().__init__(dtype=np.dtype(dtype), shape=shape)

    @property
    def symmetric(self) -> bool:
        """Whether the matrix is the symmetric K = k(X, X)."""
        return self.Z is None

    @abstractmethod
    def block(self, rows: Any, cols: Any) -> np.ndarray:
        """Return some entries of K, K[rows][:, cols].

        Parameters
        ----------
        rows : slice, mask or array of int
            Rows of the block, r of them.
        cols : slice, mask or array of int
            Columns of the block, c of them.

        Returns
        -------
        ndarray of shape (r, c)
            A new array.
        """

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Return the diagonal entries K_ii.

        Returns
        -------
        ndarray of shape (min(n, m),)
            A new array.
        """

    @abstractmethod
    def to_array(self) -> np.ndarray:
        """Return K as a new array.

        Returns
        -------
        ndarray of shape (n, m)
            All entries of K.

        Raises
        ------
        MemoryBudgetError
            If the operator has a memory budget, and the array exceeds it.
        """

    def rows(self, i: Any) -> np.ndarray:
        """Return some rows of K.

        Parameters
        ----------
        i : int, slice, mask or array of int
            Indices of the rows, r of them.

        Returns
        -------
        ndarray of shape (r, m), or (m,)
            K[i]; one row of shape (m,) if `i` is an integer.
        """
        if np.ndim(i) == 0 and not isinstance(i, slice):
            row: np.ndarray = self.block([i], slice(None))[0]
            return row
        return self.block(i, slice(None))

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a product with K, and the weighted squared Frobenius norm of K.

        Operators that evaluate K in tiles compute both in the same pass.

        Parameters
        ----------
        V : ndarray of shape (n, c)
            The right-hand factor; K must be symmetric.
        weights : ndarray of shape (n,)
            Non-negative weights w of the points.

        Returns
        -------
        product : ndarray of shape (n, c)
            K V.
        squares : float
            sum_ij w_i w_j K_ij^2.
        """
        total = 0.0
        for rows in slices(self.shape[0], _TILE_ROWS):
            total += weighted_squares(self.block(rows, slice(None)), weights[rows], weights)
        return np.asarray(self @ V), total

    def rounded(self) -> GramOperator | None:
        """Return this matrix in float32, or None if that is of no use.

        Solvers use it for products whose errors are corrected later.

        Returns
        -------
        GramOperator of shape (n, n) or None
            K in float32, evaluated in tiles.  None if float32 would not be faster, or if its error
            is unknown.
        """
        return None

    def part(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return some rows of a product, without computing the other rows.

        Parameters
        ----------
        rows : array of int of shape (r,)
            Indices of the rows.
        V : ndarray of shape (m, c)
            The right-hand factor.

        Returns
        -------
        ndarray of shape (r, c)
            K[rows] V.
        """
        return np.asarray(self.rows(rows) @ V)

    def pullback(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the gradient of <U V^T, K> with respect to the kernel parameters.

        The gradient is sum_ij (U V^T)_ij dK_ij / d theta.  If the kernel allows it, the sum is
        computed in tiles, so that U V^T is never formed.

        Parameters
        ----------
        U : ndarray of shape (n, c) or (n,)
            Left factor of the weights of the entries of K.
        V : ndarray of shape (m, c) or (m,)
            Right factor of the weights.

        Returns
        -------
        ndarray of shape (n_theta,)
            Derivatives with respect to the parameters `kernel.theta`.
        """
        U, V = _columns(U), _columns(V)
        n, m = self.shape
        if U.shape[0] != n or V.shape[0] != m or U.shape[1] != V.shape[1]:
            raise ValueError(
                f"pullback needs U of shape ({n}, c) and V of shape ({m}, c), got {U.shape} and "
                f"{V.shape}"
            )
        total = np.zeros(self.kernel.theta.size)
        if not total.size:
            return total
        if self.symmetric and not self.kernel.domain.pullback_in_tiles:
            return self.kernel.pullback(self.X, None, U @ V.T)
        Z = self.X if self.Z is None else self.Z
        for rows in slices(n, _TILE_ROWS):
            for cols in slices(m, _TILE_ROWS):
                # In a tile on the diagonal, rows and columns are the same observations.  Kernels
                # such as White recognise this by Z = None.
                Zj = None if self.Z is None and rows == cols else take(Z, cols)
                total += self.kernel.pullback(take(self.X, rows), Zj, U[rows] @ V[cols].T)
        return total

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        product: np.ndarray = self._matmat(np.reshape(v, (-1, 1)))
        return product

    def _rmatmat(self, V: np.ndarray) -> np.ndarray:
        product: np.ndarray = self._adjoint()._matmat(V)
        return product

    def _adjoint(self) -> GramOperator:
        return self if self.symmetric else self._swapped()

    def _transpose(self) -> GramOperator:
        return self._adjoint()

    def _swapped(self) -> GramOperator:
        """Return the transposed operator k(Z, X)."""
        raise NotImplementedError(f"{type(self).__name__} has no transposed operator k(Z, X)")

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<{type(self).__name__} {n}x{m}, {self.dtype.name}, {self.kernel}>"


def _columns(V: ArrayLike) -> np.ndarray:
    """Return V as a 2-D array; a vector becomes one column."""
    V = np.asarray(V)
    return V[:, None] if V.ndim == 1 else V


def gram_shape(X: Points, Z: Points) -> tuple[int, int]:
    """Return the shape of k(X, Z); `Z=None` means Z = X."""
    n = length(X)
    return n, n if Z is None else length(Z)
