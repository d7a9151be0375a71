"""Exact features phi of kernels with finitely many features: k(x, z) = phi(x)^T phi(z).

They are computed recursively from the kernel expression: the features of a sum are those of all
terms, the features of a product are all products of one feature of each factor, and a scale c
multiplies the features by sqrt(c).

Features of structured points (strings, graphs, sets) are identified by hash codes.  The columns are
the features that occur in the first collection of points.  Other features of later points are
omitted, because they do not contribute to inner products with the first points.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..._core import MemoryLimit, Points, as_vectors, check_budget, length, slices
from .._base import Kernel
from .._sparse_features import Explicit
from ..algebra._closure_rules import Power, Product, Scale, Sum
from ..algebra._input_maps import TransformedPoints
from ..algebra._wrappers import Normalized, SameValues
from ..sets._ranking_kernels import Kendall
from ..vectors._constant import Constant
from ..vectors._dot_product import Bilinear, Cosine, Linear, Polynomial
from ._feature_kernels import FeatureFunctionKernel, PolynomialBasis

Frame: TypeAlias = Any  # describes the columns of phi, so that other points have the same ones
Phi: TypeAlias = tuple[Points, Frame]  # the features, and the description of their columns

_ROWS_PER_BLOCK = 1024  # points whose features are computed at a time, to limit temporary memory


def finite_features(
    kernel: Kernel, X: Points, frame: Frame = None, max_memory: MemoryLimit = None
) -> Phi:
    """Return the exact features phi(X) of a kernel with finitely many features.

    Parameters
    ----------
    kernel : Kernel
        A kernel with finitely many features: `Linear`, `Polynomial`, `Features`, the string, set
        and graph kernels with explicit features, and sums and products of these.
    X : collection of n points
        The points in a form that the kernel accepts, such as an array of shape (n, d).
    frame : object, optional
        The `frame` that an earlier call returned; the result then has the same columns as in that
        call.  Pass it for test points.
    max_memory : int, str or None, default=None
        The largest memory that may be used, for example "2 GiB".  None means the default of the
        estimators.

    Returns
    -------
    phi : ndarray or csr_array of shape (n, n_features)
        The features, with phi(X) phi(Z)^T = k(X, Z).
    frame : object
        A description of the columns; pass it to later calls with other points.

    Raises
    ------
    TypeError
        If the kernel has no finite features, such as `RBF`.

    See Also
    --------
    random_features : Approximate features of stationary kernels such as `RBF`.
    Explicit.features : The sparse features of one kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, Polynomial, Spectrum, finite_features
    >>> phi, frame = finite_features(Polynomial(2, coef0=1.0) + 4 * Linear(), np.array([[3.0]]))
    >>> phi.round(4)  # 1, sqrt(2) x, x^2 and 2 x
    array([[1.    , 4.2426, 9.    , 6.    ]])
    >>> phi, frame = finite_features(Spectrum(1), ["abba"])
    >>> finite_features(Spectrum(1), ["cab"], frame)[0].sum()  # c is not in abba
    np.float64(2.0)
    """
    kernel._require_resolved()
    if not (kernel.domain.on_vectors and isinstance(X, np.ndarray)):
        return _phi(kernel, X, frame, max_memory)
    # For vectors the columns do not depend on the points, so phi is computed in blocks of rows.
    phi, frame = _phi(kernel, X[:_ROWS_PER_BLOCK], frame, max_memory)
    n, m = len(X), phi.shape[1]
    if n <= _ROWS_PER_BLOCK:
        return phi, frame
    check_budget(8 * n * m, max_memory, f"an array of {m} features for each of {n} points")
    out = np.empty((n, m), dtype=phi.dtype)
    for rows in slices(n, _ROWS_PER_BLOCK):
        out[rows] = _phi(kernel, X[rows], frame, max_memory)[0]
    return out, frame


@singledispatch
def _phi(kernel: Kernel, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    """Return phi(X) and a description of its columns; implemented for each class of kernels."""
    raise TypeError(
        f"{type(kernel).__name__} has no finite features: it is not known to be a finite sum of "
        f"products phi_j(x) phi_j(z). For approximate features, use Nystroem for any kernel, or "
        f"RandomFeatures for functions of x - z"
    )


@_phi.register
def _(kernel: Linear, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return as_vectors(X, "Linear").copy(), None


@_phi.register
def _(kernel: Cosine, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return _phi(Normalized(Linear()), X, frame, budget)


@_phi.register
def _(kernel: Bilinear, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    X = kernel._vectors(X)
    values, V = np.linalg.eigh(kernel.A)
    return np.asarray(X @ (V * np.sqrt(np.maximum(values, 0.0))).astype(X.dtype)), None


@_phi.register
def _(kernel: Kendall, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return kernel.features(X), None


@_phi.register
def _(kernel: Constant, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return np.full((length(X), 1), np.sqrt(kernel.value)), None


@_phi.register
def _(kernel: Polynomial, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    # Expand (c + sum_i g x_i z_i)^p by the multinomial theorem: a monomial x^k of degree |k| has
    # the weight p! / (k_1! ... k_d! (p - |k|)!) g^|k| c^(p - |k|).
    X = as_vectors(X, "Polynomial")
    p, g, c = int(kernel.degree), float(kernel.gamma), float(kernel.coef0)
    count = math.comb(X.shape[1] + p, p)
    check_budget(8 * X.shape[0] * count, budget, f"an array of {count} monomials for each point")
    dense = X.toarray() if sp.issparse(X) else X
    phi, index = PolynomialBasis(p)._evaluate(dense)
    weights = np.zeros(count)
    for columns, m in index.items():
        size = len(columns)
        coefficient = math.factorial(p) // math.factorial(p - size)
        for column in set(columns):
            coefficient //= math.factorial(columns.count(column))
        weights[m] = coefficient * g**size * c ** (p - size)
    phi *= np.sqrt(weights).astype(phi.dtype)
    # Select the rows of the transpose, because columns are contiguous in memory; phi[:, mask] would
    # take much longer than computing the monomials.
    return phi if weights.all() else phi.T[weights > 0].T, None


@_phi.register
def _(kernel: FeatureFunctionKernel, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return kernel._features(X), None


@_phi.register
def _(kernel: Explicit, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    columns, kind = (None, "") if frame is None else frame
    terms = kernel._terms_like(X, kind)
    phi, columns = terms.matrix(columns)
    return phi, (columns, terms.kind or kind)


@_phi.register
def _(kernel: Scale, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    phi, frame = _phi(kernel.kernel, X, frame, budget)
    return phi * np.sqrt(kernel.factor), frame


@_phi.register
def _(kernel: Normalized, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    phi, frame = _phi(kernel.kernel, X, frame, budget)
    norms = kernel._inverse_norms(X).astype(phi.dtype, copy=False)
    return (sp.diags_array(norms) @ phi if sp.issparse(phi) else norms[:, None] * phi), frame


@_phi.register
def _(kernel: SameValues, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return _phi(kernel.kernel, X, frame, budget)


@_phi.register
def _(kernel: TransformedPoints, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    return _phi(kernel.kernel, kernel._transform(X), frame, budget)


@_phi.register
def _(kernel: Sum, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    parts, frames = _features_of_each(kernel.terms, X, frame, budget)
    if any(map(sp.issparse, parts)):
        return sp.hstack([sp.csr_array(part) for part in parts], format="csr"), frames
    return np.hstack(parts), frames


@_phi.register
def _(kernel: Product, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    parts, frames = _features_of_each(kernel.factors, X, frame, budget)
    return _products(parts, budget), frames


@_phi.register
def _(kernel: Power, X: Points, frame: Frame, budget: MemoryLimit) -> Phi:
    if kernel.exponent != int(kernel.exponent):
        raise TypeError(f"{kernel} has no finite features: its exponent is not an integer")
    phi, frame = _phi(kernel.kernel, X, frame, budget)
    return _products([phi] * int(kernel.exponent), budget), frame


def _features_of_each(
    kernels: tuple[Kernel, ...], X: Points, frame: Frame, budget: MemoryLimit
) -> tuple[list[Points], tuple[Frame, ...]]:
    """Return the features of each kernel, and the descriptions (frames) of their columns."""
    frames = [None] * len(kernels) if frame is None else frame
    pairs = [_phi(k, X, f, budget) for k, f in zip(kernels, frames, strict=True)]
    return [phi for phi, _ in pairs], tuple(frame for _, frame in pairs)


def _products(parts: list[Points], budget: MemoryLimit) -> Points:
    """Return all products of one feature from each array of `parts`, for each point."""
    total = parts[0]
    for part in parts[1:]:
        i = np.repeat(np.arange(total.shape[1]), part.shape[1])
        j = np.tile(np.arange(part.shape[1]), total.shape[1])
        if sp.issparse(total) or sp.issparse(part):
            total = sp.csr_array(sp.csr_array(total)[:, i].multiply(sp.csr_array(part)[:, j]))
            continue
        check_budget(8 * len(total) * len(i), budget, f"an array of {len(i)} products of features")
        total = total[:, i] * part[:, j]
    return total
