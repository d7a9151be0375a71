"""The set kernel `MeanOf`: the mean of a kernel over all pairs of instances of two sets."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..._core import length
from .._base import Kernel, node
from .._prepared import Prepared
from .._properties import Properties
from ._wrappers import Wrapper

__all__ = ["MeanOf"]

_MAX_BLOCK_VALUES = 1 << 21  # largest number of values of k_1 per block (16 MB)


@node
class MeanOf(Wrapper):
    """Set kernel: the mean of a kernel k_1 over all pairs of instances of two sets.

        k(A, B) = 1 / (|A| |B|) sum_{a in A, b in B} k_1(a, b)

    It is the inner product of the mean feature vectors of A and B, and therefore a Mercer kernel.
    Each point is a set: an array of shape (m, d), or any other collection that k_1 accepts, such as
    a list of strings.  The number of instances m may differ between sets.  The mean feature vector
    of an empty set is 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 on instances.  With `Linear`, only the average instance of each set matters.
        With an `RBF`, sets with different distributions have different feature vectors.

    Notes
    -----
    The cost is |A| |B| evaluations of k_1 per pair of sets.  The distance of two sets in feature
    space is their maximum mean discrepancy.  A single informative instance has little effect in a
    large set; a narrow k_1, or ``MeanOf(k_1**p)``, gives it more weight.  `Normalized(MeanOf(k_1))`
    scales the kernel so that k(A, A) = 1.

    References
    ----------
    T. Gärtner, P. A. Flach, A. Kowalczyk and A. J. Smola, "Multi-instance kernels", ICML 2002.

    Examples
    --------
    >>> from mercer.kernels import Linear, MeanOf
    >>> MeanOf(Linear())([[[1.0], [3.0]], [[5.0]]])
    array([[ 4., 10.],
           [10., 25.]])
    """

    def _properties(self, *inner: Properties) -> Properties:
        (k,) = inner
        rule = "inner product of means of phi: an R-convolution"
        order = 0 if k.proves(0, math.inf) else None
        return Properties.of(inner, rule, order, nonnegative=k.nonnegative, against=None)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        self._check_points(X)
        averages = _averaging_matrix(X)
        child = like.frame if like is not None else None
        if averages.nnz:
            child = self.kernel._prepare(self._inner_points(X), child)
        dtype = np.float64 if child is None else child.dtype
        return Prepared((averages,), frame=child, dtype=dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = 0.0
        columns = list(_batches(Q.arrays[0]))
        for rows, members in _batches(P.arrays[0]):
            left, A = P.frame[members.indices], _restrict_to_members(members)
            for part, others in columns:
                right, B = Q.frame[others.indices], _restrict_to_members(others)
                block = np.empty((len(left), len(right)), dtype=out.dtype)
                self.kernel._tile(left, right, block)
                out[rows, part] = (B @ (A @ block).T).T

    def _check_points(self, X: Any) -> None:
        """Raise an error, with the index of the point, if a point is not a set of instances."""
        width = None
        for index, x in enumerate(X):
            if not (hasattr(x, "__len__") or hasattr(x, "shape")) or isinstance(x, (str, bytes)):
                raise TypeError(
                    f"MeanOf: point {index} is {x!r}, not a set of instances; pass arrays of shape "
                    f"(m, d), or lists of points that {type(self.kernel).__name__} accepts"
                )
            if not self.kernel.on_vectors or not length(x):
                continue
            shape = np.shape(x)
            if len(shape) != 2 or width not in (None, shape[1]):
                expected = "(m, d)" if width is None else f"(m, {width})"
                raise ValueError(
                    f"MeanOf: point {index} has shape {shape}, but a set of vectors must have "
                    f"shape {expected}"
                )
            width = shape[1]

    def _diag(self, X: Any) -> np.ndarray:
        P = self.prepare(X)
        i = np.arange(len(P))
        return self._pairs(P, P, i, i)

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        A = _averaging_matrix(X)
        B = A if Z is None else _averaging_matrix(Z)
        return super()._pullback(X, Z, np.asarray(A.T @ W @ B))

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        # This raises an error, because a set is not a vector.
        return Kernel._input_gradient(self, X, Z, W)

    def _inner_points(self, X: Any) -> Any:
        """Return the instances of all sets in one collection."""
        if any(sp.issparse(x) for x in X):
            return sp.vstack([sp.csr_array(x) for x in X], format="csr")
        if self.kernel.on_vectors or all(isinstance(x, np.ndarray) for x in X):
            return np.concatenate([np.asarray(x) for x in X if len(x)])
        return list(chain.from_iterable(X))

    def _inner_weights(self, X: Any, weights: np.ndarray | None) -> np.ndarray | None:
        return None if weights is None else np.repeat(weights, [length(x) for x in X], axis=0)

    on_vectors: ClassVar[bool] = False
    domain: ClassVar[str] = "collections"


def _averaging_matrix(X: Any) -> sp.csr_array:
    """Return the matrix that maps one value per instance to the mean of each set."""
    sizes = np.array([length(x) for x in X], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return sp.csr_array((weights, np.arange(ends[-1]), ends), shape=(len(sizes), ends[-1]))


def _restrict_to_members(averages: sp.csr_array) -> sp.csr_array:
    """Return an averaging matrix without the columns of instances that are in none of its sets."""
    n, nnz = averages.shape[0], averages.nnz
    return sp.csr_array((averages.data, np.arange(nnz), averages.indptr), shape=(n, nnz))


def _batches(averages: sp.csr_array) -> Any:
    """Yield (rows, averaging matrix) for batches of consecutive sets.

    A batch contains at most sqrt(_MAX_BLOCK_VALUES) instances, unless it is a single larger set.
    Batches without instances are skipped.
    """
    max_instances, start = int(_MAX_BLOCK_VALUES**0.5), 0
    ends = averages.indptr
    while start < averages.shape[0]:
        stop = int(np.searchsorted(ends, ends[start] + max_instances, side="right")) - 1
        stop = max(stop, start + 1)
        if ends[stop] > ends[start]:
            yield slice(start, stop), averages[start:stop]
        start = stop
