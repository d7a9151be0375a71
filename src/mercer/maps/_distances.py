"""Squared distances of some points to all, a block of rows at a time.

Vectors are compared by their differences: two copies of a point are exactly as far from all others,
which a product of matrices, with its own order of sums in every corner, does not promise.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.utils.validation import check_array

from .._errors import not_finite
from .._points import length, refuse_structured
from .._runtime import entry_point, quiet, slices
from ..kernels import Kernel, Linear, Radial, Shift, pair

__all__ = ["Distances", "across", "distances", "of_pairs"]

_ROUNDING = 32  # units of it: a squared distance that is smaller, relative to its terms, is 0
_LARGE = 200  # powers of 2 from which squares are taken in other units
_ENTRIES = 2**17  # of a block of distances


class Distances(Protocol):
    """Squared distances between points, or what orders points alike."""

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return those of some points to all, (m, n)."""


def distances(X: Any, kernel: Kernel | None, name: str) -> Distances:
    """Return the distances of points, in the feature space of a kernel if there is one."""
    if kernel is None:
        refuse_structured(X, f"embedding_quality(kernel=None) compares rows of {name} and")
    vectors = kernel is None or kernel.on_vectors
    points = _vectors(X, name) if vectors else X
    kernel = kernel if kernel is None else kernel.resolve(points)._about(points)
    if isinstance(points, np.ndarray) and vectors:
        if kernel is None or _is_euclidean(kernel):
            return _Differences(points)
        if isinstance(kernel, Radial) and kernel.is_decreasing:
            # the same order, also where k is 0 and all of feature space equally far
            return _Differences(points / kernel.length_scale)
    return _InFeatureSpace(Linear() if kernel is None else kernel, points)


def _vectors(X: Any, name: str) -> Any:
    """Return finite vectors in float64."""
    return check_array(
        X, accept_sparse="csr", dtype=np.float64, input_name=name, estimator="embedding_quality"
    )


class _Differences:
    """|x - z|^2 = sum_j (x_j - z_j)^2; in other units where squares would overflow."""

    def __init__(self, points: np.ndarray) -> None:
        _, exponent = np.frexp(np.abs(points).max())
        far = abs(exponent) > _LARGE
        self._points = np.ascontiguousarray(np.ldexp(points, -exponent) if far else points)

    def block(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(cdist(self._points[rows], self._points, "sqeuclidean"))


class _InFeatureSpace:
    """|phi(x) - phi(z)|^2 = k(x, x) - 2 k(x, z) + k(z, z); 0 where only rounding is left."""

    @quiet
    def __init__(self, kernel: Kernel, points: Any) -> None:
        self._kernel = kernel
        self._P, self._Q = pair(kernel, points, None)
        self._norms = np.asarray(kernel.diag(points), dtype=np.float64)

    @quiet
    def block(self, rows: np.ndarray) -> np.ndarray:
        P, norms = self._P[rows], self._norms
        out = np.empty((len(rows), len(norms)), dtype=np.result_type(P.dtype, self._Q.dtype))
        self._kernel._tile(P, self._Q, out)
        own = norms[rows, None]
        return _apart(own, norms, out, self._kernel)


@entry_point
def of_pairs(kernel: Kernel, points: Any) -> np.ndarray:
    """Return the distances in the feature space of a kernel of all pairs, as SciPy's `pdist` does.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> from mercer.maps import of_pairs
    >>> of_pairs(Spectrum(1), ["AA", "AC", "CC"]).round(3)
    array([1.414, 2.828, 1.414])
    """
    if _is_euclidean(kernel) and isinstance(points, np.ndarray):
        return _finite(np.asarray(pdist(points)), kernel)
    n, found = length(points), _InFeatureSpace(kernel, points)
    out, start = np.empty(n * (n - 1) // 2), 0
    for rows in slices(n, max(1, _ENTRIES // n)):
        block = np.sqrt(found.block(np.arange(rows.start, rows.stop)))
        for i, row in enumerate(block, start=rows.start):
            out[start : start + n - 1 - i] = row[i + 1 :]
            start += n - 1 - i
    return out


@entry_point
@quiet
def across(kernel: Kernel, X: Any, Z: Any, own: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return the distances of points x to points z, given k(x, x) and k(z, z).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.maps import across
    >>> across(RBF(), np.array([[0.0]]), np.array([[0.0], [9.0]]), np.ones(1), np.ones(2)).round(4)
    array([[0.    , 1.4142]])
    """
    if _is_euclidean(kernel) and isinstance(X, np.ndarray) and isinstance(Z, np.ndarray):
        return _finite(np.asarray(cdist(X, Z)), kernel)
    return np.sqrt(_apart(own[:, None], norms, kernel(X, Z), kernel))


def _is_euclidean(kernel: Kernel) -> bool:
    """Whether distances in feature space are those of the vectors themselves."""
    return type(kernel) is Linear or (isinstance(kernel, Shift) and _is_euclidean(kernel.kernel))


def _apart(own: np.ndarray, norms: np.ndarray, K: np.ndarray, kernel: Kernel) -> np.ndarray:
    """Return k(x, x) - 2 k(x, z) + k(z, z), and 0 where only rounding is left."""
    squared = own - 2.0 * K.astype(np.float64, copy=False) + norms
    least = _ROUNDING * np.finfo(np.float64).eps * (np.abs(own) + np.abs(norms))
    squared[squared <= least] = 0.0
    return _finite(squared, kernel)


def _finite(distances: np.ndarray, kernel: Kernel) -> np.ndarray:
    if not np.isfinite(distances.sum()):
        raise not_finite(kernel)
    return distances
