"""Distances between points, in input space or in the feature space of a kernel, in blocks of rows.

Distances between vectors are computed from their differences, not from a matrix product.  Two
copies of a point then have bit-for-bit identical distances to all other points; a matrix product
does not guarantee this, because its order of summation varies between tiles.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.utils.validation import check_array

from ..._core import (
    Points,
    entry_point,
    ignore_overflow,
    length,
    not_finite_error,
    reject_structured,
    slices,
)
from ...kernels import Kernel, Linear, Radial, Shift, prepare_pair, shifted_to_data

_ZERO_ULPS = 32  # squared distances below this many rounding units of their terms are set to 0
_MAX_EXPONENT = (
    200  # points beyond 2^200 or below 2^-200 are rescaled, so that squares do not overflow
)
_ENTRIES_PER_BLOCK = 2**17  # number of distances in a block of rows


class Distances(Protocol):
    """Squared distances between n points, or values that sort the points in the same order."""

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances of the m points `rows` (indices) to all n points, shape (m, n)."""


def distances(X: Points, kernel: Kernel | None, name: str) -> Distances:
    """Return the distances of points in the feature space of a kernel; None means Euclidean.

    `name` is the name of the argument X in error messages.
    """
    if kernel is None:
        reject_structured(X, f"embedding_quality(kernel=None) compares rows of {name} and")
    vectors = kernel is None or kernel.domain.on_vectors
    points = _vectors(X, name) if vectors else X
    kernel = kernel if kernel is None else shifted_to_data(kernel.resolve(points), points)
    if isinstance(points, np.ndarray) and vectors:
        if kernel is None or _is_euclidean(kernel):
            return _EuclideanDistances(points)
        if isinstance(kernel, Radial) and kernel.is_decreasing:
            # Distances in input space sort the points in the same order as distances in feature
            # space, and are exact even where k underflows to 0 and all points are equally far
            # apart in feature space.
            return _EuclideanDistances(points / kernel.length_scale)
    return _FeatureSpaceDistances(Linear() if kernel is None else kernel, points)


def _vectors(X: Points, name: str) -> Any:
    """Validate X as finite vectors in float64."""
    return check_array(
        X, accept_sparse="csr", dtype=np.float64, input_name=name, estimator="embedding_quality"
    )


class _EuclideanDistances:
    """Squared Euclidean distances; points are rescaled if the squares would over- or underflow."""

    def __init__(self, points: np.ndarray) -> None:
        _, exponent = np.frexp(np.abs(points).max())
        rescale = abs(exponent) > _MAX_EXPONENT
        self._points = np.ascontiguousarray(np.ldexp(points, -exponent) if rescale else points)

    def block(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(cdist(self._points[rows], self._points, "sqeuclidean"))


class _FeatureSpaceDistances:
    """Squared distances in feature space, k(x, x) - 2 k(x, z) + k(z, z)."""

    @ignore_overflow
    def __init__(self, kernel: Kernel, points: Points) -> None:
        self._kernel = kernel
        self._P, self._Q = prepare_pair(kernel, points, None)
        self._norms = np.asarray(kernel.diag(points), dtype=np.float64)

    @ignore_overflow
    def block(self, rows: np.ndarray) -> np.ndarray:
        P, norms = self._P[rows], self._norms
        out = np.empty((len(rows), len(norms)), dtype=np.result_type(P.dtype, self._Q.dtype))
        self._kernel._tile(P, self._Q, out)
        own = norms[rows, None]
        return _squared_distances(own, norms, out, self._kernel)


@entry_point
def feature_space_pdist(kernel: Kernel, points: Points) -> np.ndarray:
    """Return the distances of all pairs of points in the feature space of a kernel.

    The result is a condensed distance vector of shape (n (n - 1) / 2,), as from SciPy's `pdist`.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> from mercer.models.embedding import feature_space_pdist
    >>> feature_space_pdist(Spectrum(1), ["AA", "AC", "CC"]).round(3)
    array([1.414, 2.828, 1.414])
    """
    if _is_euclidean(kernel) and isinstance(points, np.ndarray):
        return _check_finite(np.asarray(pdist(points)), kernel)
    n, feature_distances = length(points), _FeatureSpaceDistances(kernel, points)
    out, start = np.empty(n * (n - 1) // 2), 0
    for rows in slices(n, max(1, _ENTRIES_PER_BLOCK // n)):
        block = np.sqrt(feature_distances.block(np.arange(rows.start, rows.stop)))
        for i, row in enumerate(block, start=rows.start):
            out[start : start + n - 1 - i] = row[i + 1 :]
            start += n - 1 - i
    return out


@entry_point
@ignore_overflow
def feature_space_cdist(
    kernel: Kernel, X: Points, Z: Points, own: np.ndarray, norms: np.ndarray
) -> np.ndarray:
    """Return the distances of points X to points Z in the feature space of a kernel.

    Parameters
    ----------
    kernel : Kernel
    X, Z : points
        The m points x and the n points z.
    own, norms : ndarrays of shape (m,) and (n,)
        The values k(x, x) and k(z, z).

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.embedding import feature_space_cdist
    >>> X, Z = np.array([[0.0]]), np.array([[0.0], [9.0]])
    >>> feature_space_cdist(RBF(), X, Z, np.ones(1), np.ones(2)).round(4)
    array([[0.    , 1.4142]])
    """
    if _is_euclidean(kernel) and isinstance(X, np.ndarray) and isinstance(Z, np.ndarray):
        return _check_finite(np.asarray(cdist(X, Z)), kernel)
    return np.sqrt(_squared_distances(own[:, None], norms, kernel(X, Z), kernel))


def _is_euclidean(kernel: Kernel) -> bool:
    """Whether distances in feature space are Euclidean distances of the vectors."""
    return type(kernel) is Linear or (isinstance(kernel, Shift) and _is_euclidean(kernel.kernel))


def _squared_distances(
    own: np.ndarray, norms: np.ndarray, K: np.ndarray, kernel: Kernel
) -> np.ndarray:
    """Return k(x, x) - 2 k(x, z) + k(z, z), with values at the level of rounding set to 0."""
    squared = own - 2.0 * K.astype(np.float64, copy=False) + norms
    threshold = _ZERO_ULPS * np.finfo(np.float64).eps * (np.abs(own) + np.abs(norms))
    squared[squared <= threshold] = 0.0
    return _check_finite(squared, kernel)


def _check_finite(distances: np.ndarray, kernel: Kernel) -> np.ndarray:
    if not np.isfinite(distances.sum()):
        raise not_finite_error(kernel)
    return distances
