"""Compute kernel matrices for several length scales from one matrix of distances.

    k_l(x, z) = profile(|x - z|^2 / l^2)

The squared distances |x - z|^2 need a matrix product, which is computed only once.  Each length
scale l then needs only one elementwise operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from .._core import ENTRY_WORK, Points, run_in_threads, slices
from ..kernels import Kernel, Radial, node
from ._dense import DenseGram

_STRIP_ROWS = 256  # number of rows that one task processes


@node
class _SquaredDistance(Radial):
    """Squared distance |x - z|^2, which is not a kernel, but is evaluated like one."""

    _has_kink_at_zero: ClassVar[bool] = (
        True  # small distances must be accurate, because they are scaled later
    )

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
    """Yield k(X, X) for each kernel, computing the distances only once if possible.

    If the distances are shared, they occupy an n x n array in addition to the kernel matrix.

    Parameters
    ----------
    kernels : sequence of Kernel
        The distances are computed only once if `can_share_distances(kernels)` is True.
    X : points
    n_threads : int, optional
        Number of threads; all processors by default.

    Yields
    ------
    DenseGram of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._length_scale_grid import iter_grams
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> [K.array[0, 1].round(4) for K in iter_grams([RBF(1.0), RBF(2.0)], X)]
    [np.float64(0.6065), np.float64(0.8825)]
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
