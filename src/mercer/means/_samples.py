"""Samples made ready: checked points, and a kernel whose rules do not see their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import not_finite
from .._points import as_vectors, concatenate, doubled, length, take
from .._runtime import quiet
from ..kernels import RBF, Kernel, Linear, as_kernel, reads_all
from ._order import UnorderableError, canonical_order

__all__ = ["Sample", "check_finite", "check_sample", "make_kernel", "moved", "pooled", "resolved"]

Sample = tuple[Kernel, Any]  # points with their kernel


def make_kernel(spec: Any) -> Kernel:
    """Return the kernel that `spec` stands for; None is the RBF with the median bandwidth."""
    kernel = RBF("median") if spec is None else as_kernel(spec)
    if reads_all(kernel):
        raise ValueError(
            "kernel='precomputed' does not say which values belong to which sample; keep the "
            "matrix of all points, Precomputed(K), and give the samples as indices"
        )
    return kernel


def check_sample(kernel: Kernel, X: Any, name: str, least: int = 1) -> Any:
    """Return the points of a sample: at least `least`, and vectors if the kernel takes those.

    Statistics of means cancel, so that float32 becomes float64.
    """
    if (n := length(X)) < least:
        raise ValueError(
            f"{name} has {n} point{'s' * (n != 1)}, but at least {least} are needed; the usual "
            f"cause is an empty or a wrong selection"
        )
    if kernel.on_vectors:
        try:
            X = as_vectors(X, name)
        except (TypeError, ValueError) as error:
            if "NaN" in str(error) or "infinity" in str(error):
                raise  # they are vectors
            raise ValueError(
                f"{name} does not hold vectors, which {kernel} needs ({error}); for other points "
                f"give a kernel that takes them, for instance a function of two points"
            ) from error
    return doubled(X)


def check_finite(values: np.ndarray, kernel: Kernel) -> None:
    """Refuse sums over K that have overflowed."""
    if not np.isfinite(values).all():
        raise not_finite(kernel)


def resolved(kernel: Kernel, X: Any) -> Kernel:
    """Return the kernel with its rules resolved on X, in whatever order its points come."""
    if not kernel._unresolved and not kernel._judges:
        return kernel
    try:
        return kernel.resolve(take(X, canonical_order(X)))
    except UnorderableError:
        return kernel.resolve(X)


def pooled(X: Any, Y: Any, kernel: Any, least: int = 1) -> tuple[Kernel, Any, int, int]:
    """Return the kernel resolved on both samples, their points in one, and the two sizes."""
    kernel, Y = make_kernel(kernel), _same_columns(X, Y)
    X, Y = check_sample(kernel, X, "X", least), check_sample(kernel, Y, "Y", least)
    a: tuple[int, ...] = getattr(X, "shape", ())
    b: tuple[int, ...] = getattr(Y, "shape", ())
    if len(a) == len(b) == 2 and a[1] != b[1]:
        raise ValueError(
            f"the samples live in different spaces: X has {a[1]} columns, Y has {b[1]}; for the "
            f"dependence between two sets of columns see independence_test"
        )
    Z = concatenate(X, Y)
    return resolved(kernel, Z), Z, length(X), length(Y)


@quiet
def moved(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """Return the kernel and the points with linear terms moved to the middle of the points.

    Differences of means are the same, and keep all digits of points far from the origin.
    """
    if type(kernel) is Linear and isinstance(X, np.ndarray):
        return kernel, X - X.mean(axis=0)
    return kernel._about(X), X


def _same_columns(X: Any, Y: Any) -> Any:
    """Return the table Y with its columns in the order of those of X."""
    if not (hasattr(X, "columns") and hasattr(Y, "columns")):
        return Y
    a, b = list(X.columns), list(Y.columns)
    if a == b:
        return Y
    if len(set(a)) != len(a) or len(a) != len(b) or set(a) != set(b):
        raise ValueError(
            f"the tables have different columns: X has {a}, Y has {b}; give both the same names"
        )
    return Y[a]
