"""Sets of points as points: the mean of a kernel over all pairs."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._points import length
from ._base import Kernel, node
from ._claims import Claims
from ._prepared import Prepared
from ._wrappers import Wrapper

__all__ = ["MeanOf"]

_ENTRIES = 1 << 21  # values of the base kernel that are held at a time


@node
class MeanOf(Wrapper):
    """k(A, B) = the mean of k_1(a, b) over all a in A and b in B: sets of points as points.

    The inner product of the means of phi_1 over A and over B, hence a kernel.  An instance is an
    array of shape (m, d), or any other collection that k_1 takes (a list of strings, say); sets
    may differ in m, and an empty one has mean 0.  `MeanOf(Linear())` sees no more than the average
    point; with an RBF different distributions stay different.

    Parameters
    ----------
    kernel : Kernel
        k_1, of two instances.

    Notes
    -----
    Cost: |A| |B| values of k_1 for each pair.  The catch: one telling instance drowns in a large
    set; a narrow k_1, or ``MeanOf(k_1**p)``, gives it more weight.  `Normalized(MeanOf(k_1))` takes
    the spread within the sets out, so that k(A, A) = 1.  The distance is the maximum mean
    discrepancy of the two sets.  References: Gaertner, Flach, Kowalczyk and Smola (2002).

    Examples
    --------
    >>> from mercer.kernels import Linear, MeanOf
    >>> MeanOf(Linear())([[[1.0], [3.0]], [[5.0]]])
    array([[ 4., 10.],
           [10., 25.]])
    """

    def _claims(self, *inner: Claims) -> Claims:
        (k,) = inner
        rule = "inner product of means of phi: an R-convolution"
        order = 0 if k.proves(0, math.inf) else None
        return Claims.of(inner, rule, order, nonnegative=k.nonnegative, against=None)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        self._check_points(X)
        averages = _averages(X)
        child = like.frame if like is not None else None
        if averages.nnz:
            child = self.kernel._prepare(self._inner_points(X), child)
        dtype = np.float64 if child is None else child.dtype
        return Prepared((averages,), frame=child, dtype=dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = 0.0
        columns = list(_parts(Q.arrays[0]))
        for rows, members in _parts(P.arrays[0]):
            left, A = P.frame[members.indices], _compact(members)
            for part, others in columns:
                right, B = Q.frame[others.indices], _compact(others)
                block = np.empty((len(left), len(right)), dtype=out.dtype)
                self.kernel._tile(left, right, block)
                out[rows, part] = (B @ (A @ block).T).T

    def _check_points(self, X: Any) -> None:
        """Name the first point that is no set of instances."""
        width = None
        for place, x in enumerate(X):
            if not (hasattr(x, "__len__") or hasattr(x, "shape")) or isinstance(x, (str, bytes)):
                raise TypeError(
                    f"MeanOf: point {place} is {x!r}, not a set of instances: points are arrays of "
                    f"shape (m, d), or lists of what {type(self.kernel).__name__} takes"
                )
            if not self.kernel.on_vectors or not length(x):
                continue
            shape = np.shape(x)
            if len(shape) != 2 or width not in (None, shape[1]):
                wanted = "(m, d)" if width is None else f"(m, {width})"
                raise ValueError(
                    f"MeanOf: point {place} has shape {shape}, but a set of vectors has {wanted}"
                )
            width = shape[1]

    def _diag(self, X: Any) -> np.ndarray:
        P = self.prepare(X)
        i = np.arange(len(P))
        return self._pairs(P, P, i, i)

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        A = _averages(X)
        B = A if Z is None else _averages(Z)
        return super()._pullback(X, Z, np.asarray(A.T @ W @ B))

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        return Kernel._input_gradient(self, X, Z, W)  # a set is no vector

    def _inner_points(self, X: Any) -> Any:
        """Return the instances of all sets, one after the other."""
        if any(sp.issparse(x) for x in X):
            return sp.vstack([sp.csr_array(x) for x in X], format="csr")
        if self.kernel.on_vectors or all(isinstance(x, np.ndarray) for x in X):
            return np.concatenate([np.asarray(x) for x in X if len(x)])
        return list(chain.from_iterable(X))

    def _inner_weights(self, X: Any, weights: np.ndarray | None) -> np.ndarray | None:
        return None if weights is None else np.repeat(weights, [length(x) for x in X], axis=0)

    on_vectors: ClassVar[bool] = False
    domain: ClassVar[str] = "collections"


def _averages(X: Any) -> sp.csr_array:
    """Return the matrix that takes values at all instances to means over the sets."""
    sizes = np.array([length(x) for x in X], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    shares = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return sp.csr_array((shares, np.arange(ends[-1]), ends), shape=(len(sizes), ends[-1]))


def _compact(averages: sp.csr_array) -> sp.csr_array:
    """Return the same for values at no other instances than those of these sets."""
    n, nnz = averages.shape[0], averages.nnz
    return sp.csr_array((averages.data, np.arange(nnz), averages.indptr), shape=(n, nnz))


def _parts(averages: sp.csr_array) -> Any:
    """Yield (rows, sets) with sqrt(_ENTRIES) instances or one set each, none without instances."""
    most, start = int(_ENTRIES**0.5), 0
    ends = averages.indptr
    while start < averages.shape[0]:
        stop = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        if ends[stop] > ends[start]:
            yield slice(start, stop), averages[start:stop]
        start = stop
