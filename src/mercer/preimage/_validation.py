"""What a caller of `preimage` may give, checked."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._runtime import check_budget
from ..kernels import Kernel

__all__ = ["METHODS", "NO_CANDIDATES", "are_vectors", "candidates_of", "check", "dense", "starts"]

NO_CANDIDATES = "there are no candidates; leave the argument out to take the points"

METHODS = (
    "auto",
    "fixed_point",
    "regularized",
    "distance",
    "gradient",
    "learned",
    "conformal",
    "convex",
    "nearest",
    "search",
)


def check(
    coefficients: np.ndarray,
    method: str,
    neighbours: Any,
    n_neighbors: int,
    regularization: float,
    tol: float,
    max_iter: int,
) -> None:
    n, m = coefficients.shape
    if n == 0 or m == 0:
        raise ValueError(
            f"an expansion of {m} functions on {n} points has no pre-image; it needs at least one "
            f"of each"
        )
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    if not np.all(np.isfinite(coefficients)):
        raise ValueError("the coefficients of the expansion are not all finite")
    if method == "search" and neighbours is None:
        raise ValueError(
            "'search' needs neighbours, a function that lists the changes of an object"
        )
    counts = (n_neighbors, max_iter)
    if not all(isinstance(count, Integral) and count >= 1 for count in counts):
        raise ValueError(
            f"n_neighbors and max_iter must be integers of at least 1, got {n_neighbors!r} and "
            f"{max_iter!r}"
        )
    if not (regularization >= 0 and tol > 0):
        raise ValueError(
            f"regularization must be at least 0 and tol positive, got {regularization} and {tol}"
        )


def are_vectors(kernel: Kernel, points: Any) -> bool:
    if sp.issparse(points) or kernel.on_vectors:
        return True
    return isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind in "biuf"


def dense(X: Any, max_memory: Any) -> np.ndarray:
    if sp.issparse(X):
        rows, columns = X.shape
        check_budget(8 * rows * columns, max_memory, f"{rows} x {columns} points made dense")
        X = X.toarray()
    return np.ascontiguousarray(X, dtype=float)


def candidates_of(candidates: Any, points: np.ndarray, max_memory: Any) -> np.ndarray:
    """Return the candidates as rows like the points, which they are by default."""
    if candidates is None:
        return points
    C = dense(candidates, max_memory)
    if not len(C):
        raise ValueError(NO_CANDIDATES)
    if C.ndim != 2 or C.shape[1] != points.shape[1]:
        raise ValueError(
            f"candidates have shape {C.shape}, but the points {points.shape}: they need the same "
            f"columns"
        )
    return C


def starts(start: Any, count: int, columns: int) -> np.ndarray:
    Z = dense(start, None)
    if Z.shape != (count, columns):
        raise ValueError(
            f"start has shape {Z.shape}, but there are {count} functions on points of {columns} "
            f"columns: one row for each function is needed"
        )
    if not np.all(np.isfinite(Z)):
        raise ValueError("start holds values that are not finite")
    return Z
