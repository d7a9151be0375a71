"""Options of `preimage`, and validation of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import check_budget, length
from ...kernels import Kernel

__all__ = ["VECTORIAL", "PreImageOptions", "check_inputs"]

# Methods that work only on points that are vectors.
VECTORIAL = ("fixed_point", "regularized", "distance", "gradient", "learned", "conformal", "convex")
METHODS = ("auto", *VECTORIAL, "nearest", "search")


@dataclass(frozen=True)
class PreImageOptions:
    """The options of `Expansion.preimage`; see there for their meaning."""

    start: Any
    candidates: Any
    neighbours: Callable[[Any], Any] | None
    n_neighbors: int
    regularization: float
    tol: float
    max_iter: int
    max_memory: Any

    @property
    def stopping_rule(self) -> dict[str, Any]:
        """The parameters that stop an iteration, as keyword arguments."""
        return {"tol": self.tol, "max_iter": self.max_iter}


def check_inputs(
    kernel: Kernel, points: Any, coefficients: np.ndarray, method: str, options: PreImageOptions
) -> tuple[Any, PreImageOptions, bool]:
    """Validate the inputs of `preimage`.

    Returns the points, the options, and whether the points are vectors.  If they are, the points,
    candidates and start are returned as dense float64 arrays.
    """
    _check_options(coefficients, method, options)
    start, candidates, memory = options.start, options.candidates, options.max_memory
    if candidates is not None and not length(candidates):
        raise ValueError("candidates is empty; omit it to use the points of the expansion")
    if not _are_vectors(kernel, points):
        if start is not None:
            raise ValueError("start requires points that are vectors; use candidates instead")
        return points, options, False
    if options.neighbours is not None and method != "search":
        raise ValueError(
            "neighbours can only be used with method='search', or if points are not vectors"
        )
    points = _dense(points, memory)
    columns = points.shape[1]
    if candidates is not None:
        candidates = _dense(candidates, memory)
        if candidates.ndim != 2 or candidates.shape[1] != columns:
            raise ValueError(
                f"candidates have shape {candidates.shape}, but the points have shape "
                f"{points.shape}; both need the same number of columns"
            )
    if start is not None:
        start, count = _dense(start, None), coefficients.shape[1]
        if start.shape != (count, columns):
            raise ValueError(
                f"start has shape {start.shape}, but there are {count} functions on points of "
                f"{columns} columns; pass one row for each function"
            )
        if not np.all(np.isfinite(start)):
            raise ValueError("start contains NaN or infinite values")
    return points, replace(options, start=start, candidates=candidates), True


def _check_options(coefficients: np.ndarray, method: str, options: PreImageOptions) -> None:
    n, m = coefficients.shape
    if n == 0 or m == 0:
        raise ValueError(
            f"an expansion of {m} functions on {n} points has no pre-image; it needs at least one "
            f"function and one point"
        )
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    if not np.all(np.isfinite(coefficients)):
        raise ValueError("the coefficients of the expansion contain NaN or infinite values")
    counts = options.n_neighbors, options.max_iter
    if not all(isinstance(count, Integral) and count >= 1 for count in counts):
        raise ValueError(
            f"n_neighbors and max_iter must be integers of at least 1, got {counts[0]!r} and "
            f"{counts[1]!r}"
        )
    if not (options.regularization >= 0 and options.tol > 0):
        raise ValueError(
            f"regularization must be at least 0 and tol positive, got {options.regularization} "
            f"and {options.tol}"
        )


def _are_vectors(kernel: Kernel, points: Any) -> bool:
    if kernel.discrete:
        return False
    if sp.issparse(points) or kernel.on_vectors:
        return True
    return isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind in "biuf"


def _dense(X: Any, max_memory: Any) -> np.ndarray:
    if sp.issparse(X):
        rows, columns = X.shape
        check_budget(8 * rows * columns, max_memory, f"a dense copy of {rows} x {columns} points")
        X = X.toarray()
    return np.ascontiguousarray(X, dtype=float)
