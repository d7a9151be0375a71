"""K held as an array."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._runtime import entry_point, run, slices
from ..kernels import Kernel, pair
from ._operator import GramOperator
from ._products import weighted_squares
from ._tiled import fill

__all__ = ["DenseGram"]

_STRIP = 512  # rows of a product worked on at a time
_LARGE = 2**22  # entries of K beyond which a product is shared among threads


@entry_point
class DenseGram(GramOperator):
    """K as an (n, m) array: 8 n m bytes, and the fastest products.

    Parameters
    ----------
    kernel : Kernel
    X, Z : points
        `Z=None` means X: then half of K is evaluated and mirrored.

    Examples
    --------
    >>> from mercer.gram import DenseGram
    >>> from mercer.kernels import Linear
    >>> DenseGram(Linear(), [[1.0], [2.0]]).to_array()
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(
        self, kernel: Kernel, X: Any, Z: Any = None, *, n_threads: int | None = None
    ) -> None:
        P, Q = pair(kernel, X, Z)
        array = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        fill(kernel, P, Q, array, n_threads)
        self.n_threads = n_threads
        self._hold(kernel, X, Z, array, owned=True)

    @classmethod
    def from_array(
        cls,
        array: np.ndarray,
        kernel: Kernel,
        X: Any,
        Z: Any = None,
        *,
        owned: bool = False,
        n_threads: int | None = None,
    ) -> Self:
        """Hold values that exist already; unless it is `owned`, the array is never written to."""
        self = cls.__new__(cls)
        self.n_threads = n_threads
        self._hold(kernel, X, Z, array, owned)
        return self

    def _hold(self, kernel: Kernel, X: Any, Z: Any, array: np.ndarray, owned: bool) -> None:
        self._array: np.ndarray | None = array
        self._owned = owned
        GramOperator.__init__(self, kernel, X, Z, array.shape, array.dtype)

    @property
    def array(self) -> np.ndarray:
        """The values themselves, to be read."""
        if self._array is None:
            raise RuntimeError(
                "this DenseGram has given its array to a solver that works in place; "
                "build it again, or solve with overwrite=False"
            )
        return self._array

    def release(self) -> np.ndarray:
        """Hand the array over to be overwritten; this operator cannot be used afterwards.

        An array that came from outside stays as it is: a copy is handed over.
        """
        array = self.array
        if not self._owned:
            return array.copy()
        self._array = None
        return array

    def scaled(self, scale: np.ndarray) -> DenseGram:
        """Return diag(scale) K diag(scale) as a Gram; an array of its own is worked in."""
        array = self.release()
        array *= scale[:, None].astype(array.dtype)
        array *= scale.astype(array.dtype)
        held: dict[str, Any] = {"owned": True, "n_threads": self.n_threads}
        return DenseGram.from_array(array, self.kernel, self.X, self.Z, **held)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        return np.array(self.array[rows][:, cols])  # a copy: K is not to be written to

    def diagonal(self) -> np.ndarray:
        return self.array.diagonal().copy()

    def to_array(self) -> np.ndarray:
        return self.array.copy()

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        K = self.array
        if V.shape[1] == 1 or K.size < _LARGE or np.iscomplexobj(V):
            return K @ V
        # by strips with a BLAS of one thread, so that the bits do not depend on the threads
        out = np.empty((len(K), V.shape[1]), dtype=np.result_type(K.dtype, V.dtype))

        def strip(rows: slice) -> None:
            np.matmul(K[rows], V, out=out[rows])

        run(strip, slices(len(K), _STRIP), self.n_threads, work=float(K.size) * V.shape[1])
        return out

    def with_squares(self, V: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        total = 0.0
        for rows in slices(len(self.array), _STRIP):
            total += weighted_squares(self.array[rows], weights[rows], weights)
        return np.asarray(self @ V), total

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self.array @ v

    def _swapped(self) -> DenseGram:
        return DenseGram.from_array(self.array.T, self.kernel, self.Z, self.X)
