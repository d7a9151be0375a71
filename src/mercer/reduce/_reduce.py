"""reduce(): the one table from wishes and kernels to a method, and what each of them returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._errors import NotDifferentiableError
from .._points import as_vectors, take
from .._runtime import entry_point
from ..kernels import Kernel
from ._construct import construct
from ._functions import Functions, Projection
from ._kmeans import kmeans
from ._reduction import Reduction
from ._select import Selection
from ._validation import Request

__all__ = ["reduce"]

_WORK = 10**9  # n m (d + 50) up to which "auto" constructs: about half a second per step
_TRIAL = 30  # steps from each start, before one of the two goes on
_ENOUGH = 1e-8  # times |f|^2: a squared error too small to be seen beside the shift on K_zz
_STRICTER = 0.7, 0.99  # times the last goal, for a selection whose coefficients have missed it
_PATIENCE = 1.3  # clusters improve for longer: they may have a squared error so much larger


class _Found(NamedTuple):
    """The approximation, the method that found it, and the errors on the way if there was one."""

    projection: Projection
    method: str
    curve: np.ndarray | None = None


@entry_point
def reduce(
    kernel: Kernel, X: Any, A: np.ndarray, request: Request
) -> tuple[Any, np.ndarray, Reduction]:
    """Return points Z, coefficients B and the certificate of a reduced set.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.reduce import Request, reduce
    >>> Z, B, reduction = reduce(Linear(), np.array([[1.0], [2.0]]), np.ones((2, 1)), Request(1))
    >>> (Z * B).round(8)
    array([[3.]])
    """
    request.check(kernel, A)
    n, method = len(A), request.method
    if kernel.on_vectors:
        X = as_vectors(X, "compress")
    fixed = _why_fixed(X)
    if method in ("kmeans", "construct") and fixed:
        raise ValueError(
            f"method={method!r} makes new points, and needs dense vectors; {fixed}. "
            f"Use method='select', which takes some of the points there are"
        )
    if method == "construct":
        _probe_gradient(kernel, X)
    f = Functions.of(kernel, X, A, request.max_memory)
    if method == "auto":
        count = request.n_points if request.n_points is not None else n // 2
        moves = not fixed and n > 1 and _has_gradient(kernel, X)
        affordable = moves and n * count * (np.shape(X)[1] + 50) <= _WORK
        method = "construct" if affordable else "select"
    if n == 1 or not np.any(f.squares > f.rounding):  # nowhere to move, or nothing to move for
        method = "select"
    if method == "select":
        found = _selected(f, request)[0]
    elif method == "kmeans":
        found = _Found(f.project(kmeans(f, int(request.n_points or 0), request.seed)), method)
    else:
        found = _constructed(f, request)
    g = found.projection
    norm, rounding = np.sqrt(f.squares), np.sqrt(g.rounding)
    reduction = Reduction(kernel, found.method, g.error, norm, rounding, len(g), n, found.curve)
    return g.points, g.coefficients, reduction


# ---------------------------------------------------------------------- methods


def _selected(f: Functions, request: Request) -> tuple[_Found, np.ndarray]:
    """Select a number of points, or as many as an error asks for; return their places, too."""
    selection = Selection(f)
    if request.max_error is None:
        selection.go_on(int(request.n_points or 0))
        projection = f.project(take(f.X, selection.places))
    else:
        projection = _selected_to(f, selection, request.max_error)
    # Points that depend on others are dropped from a projection: then the curve is not its own.
    curve = selection.curve
    whole = len(projection) == len(curve)
    return _Found(projection, "select", curve if whole else None), selection.places


def _selected_to(f: Functions, selection: Selection, max_error: float) -> Projection:
    """Go on until the error is small enough.

    Coefficients have a rounding of their own, so that the selection may have to aim lower.
    """
    n, goal = len(f.A), max_error
    while True:
        selection.go_on(max(1, n - 1), goal)
        projection = f.project(take(f.X, selection.places))
        error = float(projection.error.max())
        if error <= max_error:
            return projection
        if selection.curve[-1].max() > goal:
            raise ValueError(
                f"max_error={max_error:g} is out of reach: {len(projection)} of the {n} points "
                f"leave an error of {1.006 * error:.3g}; ask for that, or keep the expansion as "
                f"it is"
            )
        short = np.sqrt(max(1.0 - 2.0 * (error**2 - max_error**2) / goal**2, 0.0))
        goal *= float(np.clip(short, *_STRICTER))


def _constructed(f: Functions, request: Request) -> _Found:
    """Move points; return the selection after all where that is not worse."""
    selected, places = _selected(f, request)
    total = selected.projection.total
    if request.max_error is None:
        if total > _ENOUGH * f.squares.sum():
            moved = _moved(f, places, request)
            if moved.total < total:
                return _Found(moved, "construct")
        return selected
    for quarters in (1, 2, 3):  # points that move freely do with fewer
        if fewer := len(selected.projection) * quarters // 4:
            moved = _moved(f, places[:fewer], request)
            if moved.error.max() <= request.max_error:
                return _Found(moved, "construct")
    return selected


def _moved(f: Functions, places: np.ndarray, request: Request) -> Projection:
    """Try the selected points and clusters; the more promising of the two goes on."""
    trial = min(_TRIAL, (request.max_iter + 1) // 2)
    starts = f.X[places], kmeans(f, len(places), request.seed)
    points, centres = (f.project(construct(f, Z, trial)) for Z in starts)
    moved = start = centres if centres.total < _PATIENCE * points.total else points
    if request.max_iter > trial:
        moved = f.project(construct(f, start.points, request.max_iter - trial))
    return min((moved, points, centres), key=lambda projection: projection.total)


# ---------------------------------------------------------------------- points that can move


def _why_fixed(X: Any) -> str:
    """Say why points cannot be moved; the empty text if they can."""
    if not isinstance(X, np.ndarray):
        return f"these points are a {type(X).__name__}"
    if X.ndim != 2 or X.dtype.kind != "f":
        return f"these points are an array of {X.dtype} of shape {X.shape}"
    return ""


def _probe_gradient(kernel: Kernel, X: np.ndarray) -> None:
    """Raise what a kernel without a gradient has to say."""
    kernel.input_gradient(X[:1], X[:1], np.zeros((1, 1)))


def _has_gradient(kernel: Kernel, X: np.ndarray) -> bool:
    try:
        _probe_gradient(kernel, X)
    except NotDifferentiableError:
        return False
    return True
