"""Cache of the prepared points of a model, for fast predictions at a few points.

A kernel prepares points (for example, scales them and computes norms) before it evaluates
k(X, points).  For predictions at single points, preparing all points of the model takes longer than
the evaluation, so the prepared points are cached between calls.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .._core import entry_point
from ..kernels import Kernel, Prepared

__all__ = ["cross_kernel_cached"]

# Arrays of points with more entries (32 MiB in float64) are not cached.
_MAX_CACHED_ENTRIES = 2**22


class _CacheEntry(NamedTuple):
    """Prepared points, and the data needed to detect that they are out of date."""

    kernel: Kernel
    points: np.ndarray
    snapshot: np.ndarray  # the values of `points` when they were prepared
    prepared: Prepared

    def is_valid_for(self, kernel: Kernel, points: np.ndarray) -> bool:
        """Return True if the entry is for this kernel and array, and the array is unchanged."""
        same = self.kernel is kernel and self.points is points
        return same and (not points.flags.writeable or bool((points == self.snapshot).all()))


# The keys are the models to which the points belong.  The cache is not an attribute of the models,
# so that it is neither copied nor saved with them.
_cache: WeakKeyDictionary[Any, _CacheEntry] = WeakKeyDictionary()


@entry_point
def cross_kernel_cached(owner: Any, kernel: Kernel, X: Any, points: Any) -> np.ndarray:
    """Return k(X, points) for a few points X; `points` are prepared only in the first call.

    Parameters
    ----------
    owner : object
        The model or expansion to which `points` belongs; it is the key of the cache.
    kernel : Kernel
    X : points
    points : points

    Returns
    -------
    ndarray of shape (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.expansion import cross_kernel_cached
    >>> from mercer.kernels import Linear
    >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.ones(2))
    >>> cross_kernel_cached(f, f.kernel, np.array([[3.0]]), f.points)
    array([[3., 6.]])
    """
    if not (
        kernel.on_vectors
        and _is_dense(X)
        and _is_dense(points)
        and points.size <= _MAX_CACHED_ENTRIES
    ):
        return np.asarray(kernel(X, points))
    entry = _cache.get(owner)
    if entry is None or not entry.is_valid_for(kernel, points):
        snapshot = points.copy() if points.flags.writeable else points
        entry = _cache[owner] = _CacheEntry(kernel, points, snapshot, kernel.prepare(points))
    Q = entry.prepared
    P = kernel.prepare(X, like=Q)
    if P.dtype != Q.dtype:  # one of them is float32 and the other float64
        return np.asarray(kernel(X, points))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks for overflow
        return kernel.tile(P, Q, np.empty((len(P), len(Q)), dtype=Q.dtype))


def _is_dense(X: Any) -> bool:
    return type(X) is np.ndarray and X.ndim == 2 and len(X) > 0
