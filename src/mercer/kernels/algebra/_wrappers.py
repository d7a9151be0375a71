"""Kernels that wrap another kernel k_1: parameters, normalisation, and means over sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import Points, length
from .._base import Kernel, node
from .._dataclass import (
    FieldWriter,
    FormattedExpression,
    format_brief,
    format_expression,
    format_operand,
)
from .._evaluation import KernelLinearisation, ParameterGradients, Prepared, linearisation
from .._parameter_tree import child
from .._properties import NORMALISED, SAME, Domain, Properties

_MAX_BLOCK_VALUES = 1 << 21  # largest number of values of k_1 per block (16 MB)


@node
class Wrapper(Kernel):
    """Base class of kernels that wrap another kernel k_1.

        k(x, z) = k_1(x, z), unless a subclass overrides it

    Derive from it for a new operation on one kernel; parameters, points and derivatives are then
    those of k_1 by default.

    Parameters
    ----------
    kernel : Kernel
        The wrapped kernel k_1.

    See Also
    --------
    Normalized : Wrapper that divides by the norms of the feature vectors.
    Fixed : Wrapper that excludes parameters from a search.
    Map : Wrapper that applies a function to the points.
    Kernel : The base class of all kernels.

    Examples
    --------
    >>> from mercer.kernels import RBF, Normalized, Wrapper
    >>> k = Normalized(RBF())
    >>> isinstance(k, Wrapper), k.kernel
    (True, RBF(length_scale=1.0))
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"{type(self).__name__} needs a kernel, got {self.kernel!r}")
        super().__post_init__()

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(diagonal_bound=inner[0].diagonal_bound)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        frame = like.children[0] if like is not None else None
        return Prepared.from_children(self.kernel._prepare(self._inner_points(X)[0], frame))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)

    def _diag(self, X: Points) -> np.ndarray:
        return self.kernel.diag(self._inner_points(X)[0])

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        return {"kernel": self.kernel.pullback(*self._both(X, Z), W)}

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        return self.kernel.input_gradient(*self._both(X, Z), W)

    def _both(self, X: Points, Z: Points) -> tuple[Points, Points]:
        """Return the points at which k_1 is evaluated, for X and for Z (None if Z is None)."""
        return self._inner_points(X)[0], None if Z is None else self._inner_points(Z)[0]


@format_expression.register
def format_wrapper(value: Wrapper, write: FieldWriter) -> FormattedExpression:
    """Return the expression in the form Name(k_1, option=value, ...)."""
    (_, kernel), *options = value._items()
    arguments = [write(kernel), *(f"{name}={write(field)}" for name, field in options)]
    return FormattedExpression(f"{type(value).__name__}({', '.join(arguments)})")


@node
class SameValues(Wrapper):
    """Base class of wrappers that only change how the parameters of k_1 are tuned."""

    def _properties(self, *inner: Properties) -> Properties:
        return replace(inner[0], rule=SAME)


@format_expression.register
def _(value: SameValues, write: FieldWriter) -> FormattedExpression:
    if write is format_brief:
        return format_operand(value.kernel, write)
    return format_wrapper(value, write)


@node
class Fixed(SameValues):
    """Kernel whose parameters are fixed, so that a parameter search does not change them.

        k(x, z) = k_1(x, z)

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1.  Wrap the parts of an expression whose parameters are known, such as the
        period of a season, or have no derivative.

    See Also
    --------
    Bounded : Restricts the parameters to an interval instead.

    Examples
    --------
    >>> from mercer.kernels import Fixed, RBF
    >>> Fixed(RBF()).theta
    array([], dtype=float64)
    """

    kernel: Kernel = child(free=False)


@node
class Bounded(SameValues):
    """Kernel with bounds on its parameters, for a parameter search.

        k(x, z) = k_1(x, z)

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1.
    limits : tuple, default=(1e-5, 1e5)
        A pair (low, high) for all parameters, or one such pair for each entry of `kernel.theta`.
        The limits are those of the parameters themselves, not of their logarithms.  For a length
        scale, the smallest distance of two points and a few times the largest distance are sensible
        limits.

    See Also
    --------
    Fixed : Excludes the parameters from the search.
    parameter : Declares the default bounds of a new kernel class.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Bounded, RBF
    >>> np.exp(Bounded(RBF(), limits=(0.1, 10.0)).bounds).round(4)
    array([[ 0.1, 10. ]])
    """

    kernel: Kernel = child(limits="limits")
    limits: Any = (1e-5, 1e5)

    def _check(self) -> None:
        limits = np.asarray(self.limits, dtype=float)
        if limits.ndim not in (1, 2) or limits.shape[-1] != 2:
            raise ValueError(
                f"Bounded: limits must be (low, high) or one such pair per parameter, "
                f"got {self.limits!r}"
            )
        if not (np.all(limits > 0) and np.all(limits[..., 0] < limits[..., 1])):
            raise ValueError(f"Bounded: limits must satisfy 0 < low < high, got {self.limits!r}")


@linearisation.register
def _(kernel: Bounded, X: Points, Z: Points) -> KernelLinearisation:
    return kernel.kernel.linearise(X, Z)


@node
class Normalized(Wrapper):
    """Normalised kernel: the cosine of the angle between two points in the feature space of k_1.

        k(x, z) = k_1(x, z) / sqrt(k_1(x, x) k_1(z, z))

    The value is 0 if k_1(x, x) = 0 or k_1(z, z) = 0; otherwise k(x, x) = 1.  Use it for kernels
    whose values grow with the size of the points, such as string, set and graph kernels.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1, with k_1(x, x) >= 0.

    See Also
    --------
    Cosine : The same as `Normalized(Linear())`, and faster.
    Scale : Multiplication by a number, which does not change angles.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, chapter 5.

    Examples
    --------
    >>> from mercer.kernels import Linear, Normalized
    >>> Normalized(Linear())([[3.0]], [[5.0]])
    array([[1.]])
    """

    def _properties(self, *inner: Properties) -> Properties:
        (k,) = inner
        # Where k_1(x, x) = 0, the normalised kernel is also 0, not 1.
        unit_diagonal = k.strict or k.unit_diagonal
        order = 0 if k.order == 0 else None
        return k.derived(NORMALISED, order, unit_diagonal=unit_diagonal, diagonal_bound=1.0)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        child = self.kernel._prepare(X, like.children[0] if like is not None else None)
        return Prepared.from_children(child, arrays=(self._inverse_norms(X).astype(child.dtype),))

    def features(self, X: Points, like: Points = None) -> Points:
        """Return the features phi_1(x) / |phi_1(x)|, if k_1 has explicit features phi_1.

        Parameters
        ----------
        X : collection of n points
            The points, such as a list of strings.
        like : collection of points, optional
            The columns are the features that occur in these points; by default those that occur in
            X.  Use `features(test, like=train)` to get the columns of `features(train)`.

        Returns
        -------
        csr_array of shape (n, n_features)
            The features, one row of norm 1 (or 0) per point.
        """
        phi = self.kernel.features(X, like)  # type: ignore[attr-defined]
        return sp.diags_array(self._inverse_norms(X)) @ phi

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out *= P.arrays[0][:, None]
        out *= Q.arrays[0]

    def _diag(self, X: Points) -> np.ndarray:
        norms = self._inverse_norms(X)
        return (norms > 0).astype(norms.dtype)

    def _inverse_norms(self, X: Points) -> np.ndarray:
        """Return k_1(x, x)^(-1/2) for each point x, or 0 if k_1(x, x) = 0."""
        with np.errstate(over="ignore"):
            diagonal = self.kernel.diag(X)
        if not np.all(np.isfinite(diagonal)):
            raise ValueError(
                f"Normalized: k(x, x) overflows for {self.kernel} and some x; scale the features"
            )
        if np.any(diagonal < 0):
            raise ValueError(
                f"Normalized: k(x, x) = {diagonal.min():.3g} < 0 for some x, so {self.kernel} is "
                f"not a Mercer kernel and cannot be normalised; use one that is, such as RBF()"
            )
        norms = np.sqrt(diagonal)
        inverse: np.ndarray = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        return inverse

    # Derivatives of the normalised kernel k~, with n(x) = k_1(x, x):
    #     dk~(x, z) = dk_1(x, z) / sqrt(n(x) n(z)) - k~(x, z) / 2 (dn(x) / n(x) + dn(z) / n(z))

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        direct, rows, columns = self._weights(X, Z, W)
        gradient = self.kernel.pullback(X, Z, direct)
        gradient -= self.kernel._diag_pullback(X, rows)
        gradient -= self.kernel._diag_pullback(X if Z is None else Z, columns)
        return {"kernel": gradient}

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        direct, rows, _ = self._weights(X, Z, W)
        gradient: np.ndarray = self.kernel.input_gradient(
            X, Z, direct
        ) - self.kernel._diag_gradient(X, rows)
        return gradient

    def _weights(
        self, X: Points, Z: Points, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weights of dk_1(x, z), dn(x) and dn(z) in sum_ij W_ij dk~(x_i, z_j).

        k~ is the normalised kernel, and n(x) = k_1(x, x).
        """
        a = self._inverse_norms(X)
        b = a if Z is None else self._inverse_norms(Z)
        weighted = 0.5 * W * self(X, Z)
        rows, columns = weighted.sum(axis=1) * a**2, weighted.sum(axis=0) * b**2
        return W * a[:, None] * b, rows, columns


# ---------------------------------------------------------------------- sets of points


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

    See Also
    --------
    Intersection : For sets whose elements are either equal or different.
    VertexHistogram : The sum, instead of the mean, over all pairs of nodes of two graphs.
    Normalized : Makes k(A, A) = 1.

    Notes
    -----
    The cost is |A| |B| evaluations of k_1 per pair of sets.  The distance of two sets in feature
    space is their maximum mean discrepancy.  A single informative instance has little effect in a
    large set; a narrow k_1, or ``MeanOf(k_1**p)``, gives it more weight.  `Normalized(MeanOf(k_1))`
    scales the kernel so that k(A, A) = 1.

    References
    ----------
    Gärtner, Flach, Kowalczyk and Smola, "Multi-instance kernels", ICML 2002.

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
        known = {"nonnegative": k.nonnegative, "diagonal_bound": k.diagonal_bound}
        return Properties.of(inner, rule, order, **known, against=None)

    def _domain(self, *inner: Domain) -> Domain:
        return replace(inner[0], kind="collections", on_vectors=False)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        self._check_points(X)
        averages = _averaging_matrix(X)
        child = like.frame if like is not None else None
        if averages.nnz:
            child = self.kernel._prepare(self._instances(X), child)
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

    def _check_points(self, X: Points) -> None:
        """Raise an error, with the index of the point, if a point is not a set of instances."""
        width = None
        for index, x in enumerate(X):
            if not (hasattr(x, "__len__") or hasattr(x, "shape")) or isinstance(x, (str, bytes)):
                raise TypeError(
                    f"MeanOf: point {index} is {x!r}, not a set of instances; pass arrays of shape "
                    f"(m, d), or lists of points that {type(self.kernel).__name__} accepts"
                )
            if not self.kernel.domain.on_vectors or not length(x):
                continue
            shape = np.shape(x)
            if len(shape) != 2 or width not in (None, shape[1]):
                expected = "(m, d)" if width is None else f"(m, {width})"
                raise ValueError(
                    f"MeanOf: point {index} has shape {shape}, but a set of vectors must have "
                    f"shape {expected}"
                )
            width = shape[1]

    def _diag(self, X: Points) -> np.ndarray:
        P = self.prepare(X)
        out = np.empty(len(P), dtype=P.dtype)
        for i in range(len(P)):
            row = P[[i]]
            self._tile(row, row, out[i : i + 1, None])
        return out

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        A = _averaging_matrix(X)
        B = A if Z is None else _averaging_matrix(Z)
        return super()._pullback(X, Z, np.asarray(A.T @ W @ B))

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        # This raises an error, because a set is not a vector.
        return Kernel._input_gradient(self, X, Z, W)

    def _inner_points(self, X: Points) -> tuple[Points, np.ndarray]:
        return self._instances(X), np.repeat(np.arange(length(X)), [length(x) for x in X])

    def _instances(self, X: Points) -> Points:
        """Return the instances of all sets in one collection."""
        if any(sp.issparse(x) for x in X):
            return sp.vstack([sp.csr_array(x) for x in X], format="csr")
        if self.kernel.domain.on_vectors or all(isinstance(x, np.ndarray) for x in X):
            return np.concatenate([np.asarray(x) for x in X if len(x)])
        return list(chain.from_iterable(X))


def _averaging_matrix(X: Points) -> sp.csr_array:
    """Return the matrix that maps one value per instance to the mean of each set."""
    sizes = np.array([length(x) for x in X], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return sp.csr_array((weights, np.arange(ends[-1]), ends), shape=(len(sizes), ends[-1]))


def _restrict_to_members(averages: sp.csr_array) -> sp.csr_array:
    """Return an averaging matrix without the columns of instances that are in none of its sets."""
    n, nnz = averages.shape[0], averages.nnz
    return sp.csr_array((averages.data, np.arange(nnz), averages.indptr), shape=(n, nnz))


def _batches(averages: sp.csr_array) -> Iterator[tuple[slice, sp.csr_array]]:
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
