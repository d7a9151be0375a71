"""Validation of samples, and of kernels with parameters that are computed from the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import (
    as_float64,
    as_vectors,
    concatenate,
    ignore_overflow,
    length,
    not_finite_error,
    take,
)
from ...kernels import RBF, Kernel, Linear, as_kernel, expects_precomputed_rows
from ._canonical_order import UnorderableError, canonical_order

__all__ = [
    "KernelAndPoints",
    "centre_linear_terms",
    "check_finite",
    "check_sample",
    "make_kernel",
    "pool_samples",
    "resolve_kernel",
]

KernelAndPoints = tuple[Kernel, Any]  # a kernel, and the points it is evaluated on


def make_kernel(spec: Any) -> Kernel:
    """Convert `spec` to a kernel; None means the RBF with the median bandwidth."""
    kernel = RBF("median") if spec is None else as_kernel(spec)
    if expects_precomputed_rows(kernel):
        raise ValueError(
            "kernel='precomputed' does not specify which values belong to which sample; pass the "
            "matrix of all points as kernel=Precomputed(K), and the samples as indices into it"
        )
    return kernel


def check_sample(kernel: Kernel, X: Any, name: str, min_points: int = 1) -> Any:
    """Validate a sample: at least `min_points` points, and vectors if the kernel needs them.

    float32 is converted to float64, because the test statistics are differences of large sums.
    """
    if (n := length(X)) < min_points:
        raise ValueError(
            f"{name} has {n} point{'s' * (n != 1)}, but at least {min_points} are needed; the "
            f"usual cause is an empty or a wrong selection"
        )
    if kernel.on_vectors:
        try:
            X = as_vectors(X, name)
        except (TypeError, ValueError) as error:
            if "NaN" in str(error) or "infinity" in str(error):
                raise  # X contains vectors with NaN or infinity; this error already says so
            raise ValueError(
                f"{name} does not contain vectors, which {kernel} requires ({error}); for other "
                f"points, pass a kernel that accepts them, for instance a function of two points"
            ) from error
    return as_float64(X)


def check_finite(values: np.ndarray, kernel: Kernel) -> None:
    """Raise an error if sums over the kernel matrix are not finite."""
    if not np.isfinite(values).all():
        raise not_finite_error(kernel)


def resolve_kernel(kernel: Kernel, X: Any) -> Kernel:
    """Compute parameters such as "median" from X, if possible independently of the order of X."""
    if not kernel._unresolved and not kernel._checks_training_points:
        return kernel
    try:
        return kernel.resolve(take(X, canonical_order(X)))
    except UnorderableError:
        return kernel.resolve(X)


def pool_samples(X: Any, Y: Any, kernel: Any, min_points: int = 1) -> tuple[Kernel, Any, int, int]:
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


@ignore_overflow
def centre_linear_terms(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """Shift the origin of linear kernels to the mean of the points; return (kernel, points).

    This does not change differences of means, and avoids cancellation for points far from the
    origin.
    """
    if type(kernel) is Linear and isinstance(X, np.ndarray):
        return kernel, X - X.mean(axis=0)
    return kernel._shifted_to_data(X), X


def _reorder_columns(X: Any, Y: Any) -> Any:
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
