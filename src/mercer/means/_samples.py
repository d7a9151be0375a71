"""Samples made ready: checked points, and a kernel whose rules do not see the order of the points.

A permutation test has its exact level if the kernel is the same for every order of the points.
Rules such as "median" and landmarks look at some of the points, so they are given them in an order
that depends on the points alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import as_vectors, concatenate, length, take
from ..gram._landmarks import doubled, reads_all
from ..kernels import RBF, Kernel, as_kernel

__all__ = ["canonical_order", "check_sample", "make_kernel", "pooled", "resolved"]


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
    if kernel.on_vectors:
        try:
            X = as_vectors(X, name)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} does not hold vectors, which {kernel} needs ({error}); for other points "
                f"give a kernel that takes them, for instance a function of two points"
            ) from error
    if (n := length(X)) < least:
        raise ValueError(
            f"{name} has {n} point{'s' * (n != 1)}, but at least {least} are needed; the usual "
            f"cause is an empty or a wrong selection"
        )
    return doubled(X)


def resolved(kernel: Kernel, X: Any) -> Kernel:
    """Return the kernel with its rules resolved on X, in whatever order its points come."""
    return kernel.resolve(take(X, canonical_order(X))) if kernel._unresolved() else kernel


def pooled(X: Any, Y: Any, kernel: Any, least: int = 1) -> tuple[Kernel, Any, int, int]:
    """Return the kernel resolved on both samples, their points in one, and the two sizes."""
    kernel = make_kernel(kernel)
    X, Y = check_sample(kernel, X, "X", least), check_sample(kernel, Y, "Y", least)
    if len(a := np.shape(X)) == len(b := np.shape(Y)) == 2 and a[1] != b[1]:
        raise ValueError(
            f"the samples live in different spaces: X has {a[1]} columns, Y has {b[1]}; for the "
            f"dependence between two sets of columns see independence_test"
        )
    Z = concatenate(X, Y)
    return resolved(kernel, Z), Z, length(X), length(Y)


def canonical_order(X: Any) -> np.ndarray:
    """Return an order of the points that does not depend on the one they come in.

    Vectors are ordered along a direction, the same for all data of this width; other points by
    their own order, if they have one, and if not they stay as they are.
    """
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        direction = np.random.default_rng(0).normal(size=X.shape[1])
        return np.argsort(np.asarray(X @ direction), kind="stable")
    try:
        return np.asarray(sorted(range(length(X)), key=X.__getitem__), dtype=np.intp)
    except (KeyError, TypeError, ValueError):
        return np.arange(length(X))
