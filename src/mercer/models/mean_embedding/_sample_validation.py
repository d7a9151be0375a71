"""Validation of samples, kernels with parameters from the samples, and canonical orders of points.

A permutation test has an exact level only if the kernel is the same for every order of the points.
But kernel parameters such as "median", and landmarks, are computed from a subset of the points.
The points are therefore first sorted into a canonical order, which depends on their contents only,
so that the subset does not depend on the order of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from ..._core import (
    Points,
    as_float64,
    as_vectors,
    concatenate,
    get_column,
    is_table,
    length,
    slices,
    take,
)
from ...gram import TiledGram
from ...kernels import RBF, Kernel, Precomputed, as_kernel, expects_precomputed_rows

_ROWS_PER_BLOCK = 256  # number of rows of K that are evaluated and sorted at a time
# Types for which equal values, and only these, have the same repr.
_REPR_TYPES = (str, bytes, bool, int, float, complex, type(None))

# A kernel, the name of one, or a function of two points; None means the default kernel.
KernelSpec: TypeAlias = Kernel | str | Callable[..., float] | None
KernelAndPoints: TypeAlias = tuple[Kernel, Points]  # a kernel, and the points it is evaluated on


def make_kernel(spec: KernelSpec) -> Kernel:
    """Convert `spec` to a kernel; None means the RBF with the median bandwidth."""
    kernel = RBF("median") if spec is None else as_kernel(spec)
    if expects_precomputed_rows(kernel):
        raise ValueError(
            "kernel='precomputed' does not specify which values belong to which sample; pass the "
            "matrix of all points as kernel=Precomputed(K), and the samples as indices into it"
        )
    return kernel


def check_count(n: int, name: str, min_points: int) -> int:
    """Return the number n of points of a sample; raise an error if there are too few."""
    if n < min_points:
        raise ValueError(
            f"{name} has {n} point{'s' * (n != 1)}, but at least {min_points} are needed; the "
            f"usual cause is an empty or a wrong selection"
        )
    return n


def check_sample(kernel: Kernel, X: Points, name: str, min_points: int = 1) -> Points:
    """Validate a sample: at least `min_points` points, and vectors if the kernel needs them.

    If the kernel needs vectors, n numbers are n points with one column.  float32 is converted to
    float64, because the test statistics are differences of large sums.
    """
    check_count(length(X), name, min_points)
    if kernel.domain.on_vectors:
        try:
            X = as_vectors(_as_one_column(X), name)
        except (TypeError, ValueError) as error:
            if "NaN" in str(error) or "infinity" in str(error):
                raise  # X contains vectors with NaN or infinity; this error already says so
            raise ValueError(
                f"{name} does not contain vectors, which {kernel} requires ({error}); for other "
                f"points, pass a kernel that accepts them, for instance a function of two points"
            ) from error
    return as_float64(X)


def _as_one_column(X: Points) -> Points:
    """Return a sequence of numbers as a matrix with one column; other points unchanged."""
    if len(getattr(X, "shape", (0,))) != 1 or sp.issparse(X):
        return X
    try:
        values = X.to_numpy() if is_table(X) else np.asarray(X)
    except ValueError:  # a ragged list
        return X
    return values[:, None] if values.ndim == 1 and values.dtype.kind in "biuf" else X


def resolve_kernel(kernel: Kernel, X: Points) -> Kernel:
    """Compute parameters such as "median" from X, if possible independently of the order of X."""
    if not kernel._needs_training_points():
        return kernel
    try:
        return kernel.resolve(take(X, canonical_order(X)))
    except UnorderableError:
        return kernel.resolve(X)


def pool_samples(
    X: Points, Y: Points, kernel: KernelSpec, min_points: int = 1
) -> tuple[Kernel, Points, int, int]:
    """Pool two samples; return the kernel with its parameters, the points, and both sizes."""
    kernel, Y = make_kernel(kernel), _reorder_columns(X, Y)
    X, Y = check_sample(kernel, X, "X", min_points), check_sample(kernel, Y, "Y", min_points)
    a: tuple[int, ...] = getattr(X, "shape", ())
    b: tuple[int, ...] = getattr(Y, "shape", ())
    if len(a) == len(b) == 2 and a[1] != b[1]:
        raise ValueError(
            f"the samples have different numbers of columns: X has {a[1]} columns, Y has {b[1]}; "
            f"to test the dependence between two sets of columns, use independence_test"
        )
    Z = concatenate(X, Y)
    return resolve_kernel(kernel, Z), Z, length(X), length(Y)


def _reorder_columns(X: Points, Y: Points) -> Points:
    """Return the table Y with its columns in the order of the columns of X."""
    if not (hasattr(X, "columns") and hasattr(Y, "columns")):
        return Y
    a, b = list(X.columns), list(Y.columns)
    if a == b:
        return Y
    if len(set(a)) != len(a) or len(a) != len(b) or set(a) != set(b):
        raise ValueError(
            f"the tables have different columns: X has {a}, Y has {b}; use the same columns in both"
        )
    return Y[a]


# ---------------------------------------------------------------------- canonical order


class UnorderableError(ValueError):
    """The points cannot be ordered by their contents."""


def canonical_order(X: Points, kernel: Kernel | None = None) -> np.ndarray:
    """Return the indices that sort the points by their contents; ties are in arbitrary order.

    Vectors are sorted by their projection on a fixed direction, rows of tables by their columns,
    and other points by a string that identifies their contents.  Indices into a `Precomputed`
    kernel are sorted by their rows of the kernel matrix; the values within each row are sorted
    first.

    Raises
    ------
    UnorderableError
        If the contents of the points do not determine an order.
    """
    if kernel is not None and is_precomputed(kernel):
        return _sort_by_kernel_values(TiledGram(kernel, X))
    if sp.issparse(X):
        return np.argsort(np.asarray(X @ _direction(X.shape[1])), kind="stable")
    if is_table(X) and len(X.shape) == 2:
        return np.lexsort([_ranks(get_column(X, j).to_numpy()) for j in range(X.shape[1])][::-1])
    if isinstance(X, np.ndarray) and X.ndim >= 2 and X.dtype.kind in "biuf":
        return _sort_vectors(X.reshape(len(X), -1))
    points = X.to_numpy() if is_table(X) else X
    if _may_be_indices(points):
        raise UnorderableError(
            "the points are distinct integers, which may be indices into other data"
        )
    return np.argsort(_ranks(points), kind="stable")


# ---------------------------------------------------------------------- vectors and values


def _direction(width: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=width)


def _sort_vectors(X: np.ndarray) -> np.ndarray:
    # Use einsum, not BLAS: equal rows must give bit-for-bit equal projections at every position.
    projections = np.einsum("ij,j->i", X, _direction(X.shape[1]))
    order = np.argsort(projections, kind="stable")
    a, b = order[:-1], order[1:]
    tied = projections[a] == projections[b]
    if np.any(X[a[tied]] != X[b[tied]]):  # different rows with equal projections
        return np.lexsort(X.T[::-1])
    return order


def _sort_by_kernel_values(K: TiledGram) -> np.ndarray:
    n = K.shape[0]
    projections, direction = np.empty(n), _direction(n)
    for part in slices(n, _ROWS_PER_BLOCK):
        rows = np.sort(K.block(part, slice(None)), axis=1)
        projections[part] = np.einsum("ij,j->i", rows, direction)
    order = np.lexsort([projections, diagonal := K.diagonal()])
    a, b = order[:-1], order[1:]
    same = (projections[a] == projections[b]) & (diagonal[a] == diagonal[b])
    tied_positions = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied_positions):  # equal rows, or projections equal by rounding
        tied = order[tied_positions]
        rows = np.sort(K.block(tied, slice(None)), axis=1)
        resorted = np.lexsort([*rows.T, projections[tied], diagonal[tied]])
        order[tied_positions], rows = tied[resorted], rows[resorted]
        _check_interchangeable(K, order[tied_positions], np.all(rows[1:] == rows[:-1], axis=1))
    return order


def _check_interchangeable(K: TiledGram, points: np.ndarray, same: np.ndarray) -> None:
    """Raise an error if tied points, with equal sorted rows of K, are not interchangeable.

    Two points x and y are interchangeable if their rows of K are equal after exchanging the
    columns x and y.  `same[i]` is True if points i and i + 1 have equal sorted rows.
    """
    for i in np.flatnonzero(same):
        pair = points[i : i + 2]
        first, second = K.block(pair, slice(None))
        second[pair] = second[pair[::-1]]  # exchange the columns of the two points
        if np.any(first != second):
            raise UnorderableError(
                f"points {points[i]} and {points[i + 1]} have the same kernel values in different "
                f"orders, so the values do not determine which point comes first"
            )


def is_precomputed(kernel: Kernel) -> bool:
    """Whether the kernel is, or contains, a `Precomputed` kernel."""
    in_child = any(is_precomputed(child) for _, child in kernel._children())
    return isinstance(kernel, Precomputed) or in_child


# ---------------------------------------------------------------------- other kinds of points


def _may_be_indices(points: Points) -> bool:
    if not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in points):
        return False
    return length(points) > 1 and len(set(points)) == length(points)


def _ranks(points: Points) -> np.ndarray:
    """Return numbers that sort like the points; equal points have equal numbers."""
    if isinstance(points, np.ndarray) and points.ndim == 1 and points.dtype.kind in "biufmM":
        return points
    texts = [_as_text(x) for x in points]
    rank = {text: i for i, text in enumerate(sorted(set(texts)))}
    return np.array([rank[text] for text in texts], dtype=np.intp)


def _as_text(x: Points) -> str:
    """Return a string that identifies the contents of x: equal contents give equal strings."""
    if type(x) in _REPR_TYPES or (isinstance(x, np.generic) and x.dtype.kind not in "OV"):
        return repr(x)
    kind = type(x).__name__
    if isinstance(x, np.ndarray):
        contents = _as_text(x.tolist()) if x.dtype.kind in "OV" else x.tobytes().hex()
        return f"{kind}{x.shape}{x.dtype.str}{contents}"
    if sp.issparse(x):
        return f"{kind}{_as_text(x.toarray())}"
    if isinstance(x, (tuple, list)):
        return f"{kind}({','.join(map(_as_text, x))})"
    if isinstance(x, (set, frozenset)):
        return f"{kind}({','.join(sorted(map(_as_text, x)))})"
    if isinstance(x, dict):
        return f"{kind}({','.join(sorted(f'{_as_text(k)}:{_as_text(v)}' for k, v in x.items()))})"
    raise UnorderableError(f"points of type {kind} cannot be sorted by their contents")
