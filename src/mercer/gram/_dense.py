"""Kernel matrices stored as dense arrays, and those of several length scales.

    k_l(x, z) = profile(|x - z|^2 / l^2)

For several length scales l, `iter_grams` computes the squared distances |x - z|^2, which need a
matrix product, only once.  Each length scale then needs only one elementwise operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from .._core import ENTRY_WORK, Points, entry_point, run_in_threads, slices
from ..kernels import Kernel, Radial, node, prepare_pair
from ._operator import GramOperator
from ._tile_products import weighted_squares
from ._tiled import fill_gram

_STRIP_ROWS = 512  # number of rows of K that one task processes
_MIN_THREADED_ENTRIES = 2**22  # a smaller K is multiplied by one BLAS call, without threads


@entry_point
class DenseGram(GramOperator):
    """Kernel matrix stored as an array.

    Its products are faster than those of all other operators, but it needs 8 n m bytes of memory.
    Use it if K fits the memory and is used for many products, or is factorised.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n points of the rows.
    Z : points, default None
        The m points of the columns.  None means Z = X; then one half of K is evaluated, and copied
        to the other half.
    n_threads : int or None, default None
        Number of threads; None means all processors.  The result does not depend on it.

    See Also
    --------
    TiledGram : The same matrix without the memory for K.
    gram : Choose between both by the memory budget.

    Examples
    --------
    >>> from mercer.gram import DenseGram
    >>> from mercer.kernels import Linear
    >>> DenseGram(Linear(), [[1.0], [2.0]]).to_array()
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(
        self, kernel: Kernel, X: Points, Z: Points = None, *, n_threads: int | None = None
    ) -> None:
        P, Q = prepare_pair(kernel, X, Z)
        array = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        fill_gram(kernel, P, Q, array, n_threads)
        self._array: np.ndarray | None = array
        self._owned = True
        super().__init__(kernel, X, Z, array.shape, array.dtype, n_threads)

    @classmethod
    def from_array(
        cls,
        array: np.ndarray,
        kernel: Kernel,
        X: Points,
        Z: Points = None,
        *,
        owned: bool = False,
        n_threads: int | None = None,
    ) -> Self:
        """Wrap an existing array of kernel values without copying it.

        Parameters
        ----------
        array : ndarray of shape (n, m)
            The values k(x_i, z_j); they are not checked.
        kernel : Kernel
            The kernel of the values.
        X : points
            The n points of the rows.
        Z : points, default None
            The m points of the columns; None means Z = X.
        owned : bool, default False
            Whether the operator may overwrite the array; if False, it only reads the array.
        n_threads : int or None, default None
            Number of threads; None means all processors.

        Returns
        -------
        DenseGram of shape (n, m)
            The operator.
        """
        self = cls.__new__(cls)
        self._array, self._owned = array, owned
        GramOperator.__init__(self, kernel, X, Z, array.shape, array.dtype, n_threads)
        return self

    @property
    def array(self) -> np.ndarray:
        """The stored array; do not modify it."""
        if self._array is None:
            raise RuntimeError(
                "the array of this DenseGram was overwritten by a solver that works in place; "
                "build the DenseGram again, or solve with overwrite=False"
            )
        return self._array

    def release(self) -> np.ndarray:
        """Return the array for the caller to overwrite; the operator is unusable afterwards.

        Solvers that work in place call it, to avoid a second n x n array.

        Returns
        -------
        ndarray of shape (n, m)
            The stored array.  If the operator does not own its array, a copy is returned, and the
            operator stays usable.
        """
        array = self.array
        if not self._owned:
            return array.copy()
        self._array = None
        return array

    def scaled(self, scale: np.ndarray) -> DenseGram:
        """Return the operator diag(scale) K diag(scale).

        If this operator owns its array, the array is scaled in place, and this operator becomes
        unusable; see `release`.

        Parameters
        ----------
        scale : ndarray of shape (n,)
            Factor of each row and column.

        Returns
        -------
        DenseGram of shape (n, n)
            The scaled matrix.
        """
        array = self.release()
        array *= scale[:, None].astype(array.dtype)
        array *= scale.astype(array.dtype)
        options: dict[str, Any] = {"owned": True, "n_threads": self.n_threads}
        return DenseGram.from_array(array, self.kernel, self.X, self.Z, **options)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        return np.array(self.array[rows][:, cols])  # a copy, so that callers cannot modify K

    def diagonal(self) -> np.ndarray:
        return self.array.diagonal().copy()

    def to_array(self) -> np.ndarray:
        return self.array.copy()

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        K = self.array
        if V.shape[1] == 1 or K.size < _MIN_THREADED_ENTRIES or np.iscomplexobj(V):
            product: np.ndarray = K @ V
            return product
        # Each strip uses single-threaded BLAS, so that the result is the same for any n_threads.
        out = np.empty((len(K), V.shape[1]), dtype=np.result_type(K.dtype, V.dtype))

        def strip(rows: slice) -> None:
            np.matmul(K[rows], V, out=out[rows])

        work = float(K.size) * V.shape[1]
        run_in_threads(strip, slices(len(K), _STRIP_ROWS), self.n_threads, work)
        return out

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        total = 0.0
        for rows in slices(len(self.array), _STRIP_ROWS):
            total += weighted_squares(self.array[rows], weights[rows], weights)
        return np.asarray(self @ V), total

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        product: np.ndarray = self.array @ v
        return product

    def _swapped(self) -> DenseGram:
        return DenseGram.from_array(self.array.T, self.kernel, self.Z, self.X)


@node
class _SquaredDistance(Radial):
    """Squared distance |x - z|^2, which is not a kernel, but is evaluated like one."""

    # Small distances must be accurate, because they are scaled later.
    _has_kink_at_zero: ClassVar[bool] = True

    def profile(self, s: np.ndarray) -> np.ndarray:
        return s

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.ones_like(s)


def can_share_distances(kernels: Sequence[Kernel]) -> bool:
    """Whether all kernels are the same radial kernel with different scalar length scales.

    Examples
    --------
    >>> from mercer.gram import can_share_distances
    >>> from mercer.kernels import RBF, Matern
    >>> can_share_distances([RBF(1.0), RBF(2.0)]), can_share_distances([RBF(1.0), Matern(1.0)])
    (True, False)
    """
    first = kernels[0]
    return len(kernels) > 1 and all(
        isinstance(k, Radial)
        and np.ndim(k.length_scale) == 0
        and k.set_params(length_scale=1.0) == first.set_params(length_scale=1.0)
        for k in kernels
    )


def iter_grams(
    kernels: Sequence[Kernel], X: Points, *, n_threads: int | None = None
) -> Iterator[DenseGram]:
    """Yield the kernel matrices of several kernels on the same points.

    If the kernels differ only in a scalar length scale, the distances of the points are computed
    only once.  Then they occupy an n x n array in addition to the kernel matrix.

    Parameters
    ----------
    kernels : sequence of Kernel
        Kernels whose parameters are all numbers.  Distances are shared if all of them are the same
        radial kernel with different scalar length scales.
    X : points
        The n points.
    n_threads : int or None, default None
        Number of threads; None means all processors.

    Yields
    ------
    DenseGram of shape (n, n)
        The matrix k(X, X) of the next kernel.

    See Also
    --------
    DenseGram : A single kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import iter_grams
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> [round(float(K.array[0, 1]), 4) for K in iter_grams([RBF(1.0), RBF(2.0)], X)]
    [0.6065, 0.8825]
    """
    if not can_share_distances(kernels):
        for kernel in kernels:
            yield DenseGram(kernel, X, n_threads=n_threads)
        return
    reference: Any = kernels[0]
    S = DenseGram(_SquaredDistance(reference.length_scale), X, n_threads=n_threads).array
    for kernel in kernels:
        yield _gram_from_distances(kernel, X, S, n_threads, reference.length_scale)


def _gram_from_distances(
    kernel: Any, X: Points, S: np.ndarray, n_threads: int | None, reference: float
) -> DenseGram:
    """Return k(X, X) from S, the squared distances divided by reference^2."""
    K, ratio = np.empty_like(S), (reference / kernel.length_scale) ** 2

    def strip(rows: slice) -> None:
        np.multiply(S[rows], S.dtype.type(ratio), out=K[rows])
        K[rows] = kernel.profile(K[rows])

    run_in_threads(strip, slices(len(S), _STRIP_ROWS), n_threads, work=ENTRY_WORK * S.size)
    return DenseGram.from_array(K, kernel, X, owned=True, n_threads=n_threads)
