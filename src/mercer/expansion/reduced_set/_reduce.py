"""Approximate functions by a reduced set: choose a method and run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._core import NotDifferentiableError, as_vectors, entry_point, take
from ...kernels import Kernel
from ._construction import construct, kmeans
from ._reduction import Reduction
from ._reduction_request import CompressionRequest
from ._reduction_target import SpanProjection, TargetFunctions
from ._selection import Selection

__all__ = ["reduce"]


@dataclass(frozen=True)
class _ReduceTuning:
    """Numerical constants of the choice of a reduced set."""

    # "auto" uses "construct" if n m (d + 50) is at most this, for n points, m new points and d
    # columns.  At this limit, a step takes about half a second.
    max_auto_work: int = 10**9
    # Number of L-BFGS steps from each of the two starts, before only the better one continues.
    trial_steps: int = 30
    # If the squared error is below this times |f|^2, it is not optimised further, because the
    # jitter on the diagonal of the kernel matrix would hide an improvement.
    negligible_error: float = 1e-8
    # If a selection misses its error goal because of rounding, it is continued with a smaller goal:
    # the goal times a factor from this interval.
    goal_reduction: tuple[float, float] = (0.7, 0.99)
    # After the trial steps, the start from clusters is preferred if its squared error is at most
    # this many times that of the start from selected points, because it improves for more steps.
    cluster_handicap: float = 1.3


_TUNING = _ReduceTuning()


class _ReducedSet(NamedTuple):
    """A reduced set, the method that found it, and the errors after each point if available."""

    projection: SpanProjection
    method: str
    curve: np.ndarray | None = None


@entry_point
def reduce(
    kernel: Kernel, X: Any, A: np.ndarray, request: CompressionRequest
) -> tuple[Any, np.ndarray, Reduction]:
    """Approximate functions by expansions in fewer points.

    Parameters
    ----------
    kernel : Kernel
    X : points
        The n points of the expansion.
    A : ndarray of shape (n, m)
        Coefficients of the m functions.
    request : CompressionRequest
        The parameters of `Expansion.compress`.

    Returns
    -------
    Z : points
        The new points.
    B : ndarray
        The new coefficients, with one row per new point.
    reduction : Reduction
        The approximation errors.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.expansion.reduced_set import CompressionRequest, reduce
    >>> X, A = np.array([[1.0], [2.0]]), np.ones((2, 1))
    >>> Z, B, reduction = reduce(Linear(), X, A, CompressionRequest(1))
    >>> (Z * B).round(8)
    array([[3.]])
    """
    request.check(kernel, A)
    n, method = len(A), request.method
    if kernel.on_vectors:
        X = as_vectors(X, "compress")
    reason = _why_not_movable(X)
    if method in ("kmeans", "construct") and reason:
        raise ValueError(
            f"method={method!r} makes new points and needs dense vectors; {reason}. "
            f"Use method='select', which selects some of the existing points"
        )
    if method == "construct":
        _probe_gradient(kernel, X)
    f = TargetFunctions.of(kernel, X, A, request.max_memory)
    if method == "auto":
        count = request.n_points if request.n_points is not None else n // 2
        can_move = not reason and n > 1 and _has_gradient(kernel, X)
        affordable = can_move and n * count * (np.shape(X)[1] + 50) <= _TUNING.max_auto_work
        method = "construct" if affordable else "select"
    if n == 1 or not np.any(f.squares > f.rounding):  # one point, or f = 0
        method = "select"
    if method == "select":
        result = _select_points(f, request)[0]
    elif method == "kmeans":
        result = _ReducedSet(f.project(kmeans(f, int(request.n_points or 0), request.seed)), method)
    else:
        result = _construct_points(f, request)
    g = result.projection
    norm, rounding = np.sqrt(f.squares), np.sqrt(g.rounding)
    reduction = Reduction(kernel, result.method, g.error, norm, rounding, len(g), n, result.curve)
    return g.points, g.coefficients, reduction


# ---------------------------------------------------------------------- methods


def _select_points(
    f: TargetFunctions, request: CompressionRequest
) -> tuple[_ReducedSet, np.ndarray]:
    """Select n_points points, or as many as needed for max_error; also return their indices."""
    selection = Selection(f)
    if request.max_error is None:
        selection.extend(int(request.n_points or 0))
        projection = f.project(take(f.X, selection.indices))
    else:
        projection = _select_to_error(f, selection, request.max_error)
    # If the projection drops linearly dependent points, the curve of errors does not apply to it.
    curve = selection.curve
    is_complete = len(projection) == len(curve)
    return _ReducedSet(projection, "select", curve if is_complete else None), selection.indices


def _select_to_error(f: TargetFunctions, selection: Selection, max_error: float) -> SpanProjection:
    """Select points until the error of the projection is at most `max_error`.

    Rounding errors of the coefficients increase the error.  If it is then too large, the selection
    continues with a smaller goal.
    """
    n, goal = len(f.A), max_error
    while True:
        selection.extend(max(1, n - 1), goal)
        projection = f.project(take(f.X, selection.indices))
        error = float(projection.error.max())
        if error <= max_error:
            return projection
        if selection.curve[-1].max() > goal:
            raise ValueError(
                f"max_error={max_error:g} cannot be reached: with {len(projection)} of the {n} "
                f"points the error is still {1.006 * error:.3g}; use that as max_error, or do not "
                f"compress"
            )
        factor = np.sqrt(max(1.0 - 2.0 * (error**2 - max_error**2) / goal**2, 0.0))
        goal *= float(np.clip(factor, *_TUNING.goal_reduction))


def _construct_points(f: TargetFunctions, request: CompressionRequest) -> _ReducedSet:
    """Optimise new points; return selected points instead if these are at least as good."""
    selected, indices = _select_points(f, request)
    total = selected.projection.total
    if request.max_error is None:
        if total > _TUNING.negligible_error * f.squares.sum():
            constructed = _optimise_points(f, indices, request)
            if constructed.total < total:
                return _ReducedSet(constructed, "construct")
        return selected
    for quarters in (1, 2, 3):  # try 1/4, 1/2 and 3/4 of the number of selected points
        if n_fewer := len(selected.projection) * quarters // 4:
            constructed = _optimise_points(f, indices[:n_fewer], request)
            if constructed.error.max() <= request.max_error:
                return _ReducedSet(constructed, "construct")
    return selected


def _optimise_points(
    f: TargetFunctions, indices: np.ndarray, request: CompressionRequest
) -> SpanProjection:
    """Optimise points from two starts (selected points, clusters), and continue from the better."""
    trial_steps = min(_TUNING.trial_steps, (request.max_iter + 1) // 2)
    starts = f.X[indices], kmeans(f, len(indices), request.seed)
    from_selection, from_clusters = (f.project(construct(f, Z, trial_steps)) for Z in starts)
    final = start = (
        from_clusters
        if from_clusters.total < _TUNING.cluster_handicap * from_selection.total
        else from_selection
    )
    if request.max_iter > trial_steps:
        final = f.project(construct(f, start.points, request.max_iter - trial_steps))
    return min((final, from_selection, from_clusters), key=lambda projection: projection.total)


# ---------------------------------------------------------------------- movable points


def _why_not_movable(X: Any) -> str:
    """Return why the points cannot be moved freely, or an empty string if they can."""
    if not isinstance(X, np.ndarray):
        return f"these points are a {type(X).__name__}"
    if X.ndim != 2 or X.dtype.kind != "f":
        return f"these points are an array of {X.dtype} of shape {X.shape}"
    return ""


def _probe_gradient(kernel: Kernel, X: np.ndarray) -> None:
    """Call `input_gradient` once, which raises an error if the kernel does not support it."""
    kernel.input_gradient(X[:1], X[:1], np.zeros((1, 1)))


def _has_gradient(kernel: Kernel, X: np.ndarray) -> bool:
    """Return True if the kernel has an input gradient."""
    try:
        _probe_gradient(kernel, X)
    except NotDifferentiableError:
        return False
    return True
