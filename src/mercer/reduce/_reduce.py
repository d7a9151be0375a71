"""reduce(): the one table from wishes and kernels to a method, and what each of them returns."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._errors import NotDifferentiableError
from .._points import as_vectors, length, take
from ..gram._landmarks import reads_all
from ..kernels import Kernel
from ._construct import construct
from ._functions import Functions, Projection
from ._kmeans import kmeans
from ._reduction import Reduction
from ._select import Selection

__all__ = ["METHODS", "reduce"]

METHODS = ("auto", "select", "kmeans", "construct")
_WORK = 10**9  # n m (d + 50) up to which "auto" constructs: about half a second per step
_TRIAL = 30  # steps from each start, before one of the two goes on
_ENOUGH = 1e-8  # of |f|^2: a squared error too small to be seen beside the shift on K_zz
_STRICTER = 0.7, 0.99  # of the goal before, for a selection whose coefficients have missed it
_PATIENCE = 1.3  # clusters, if their squared error is not larger by this: they improve for longer


def reduce(
    kernel: Kernel,
    X: Any,
    A: np.ndarray,
    n_points: int | None = None,
    *,
    max_error: float | None = None,
    method: str = "auto",
    max_iter: int = 100,
    random_state: Any = None,
    max_memory: Any = None,
) -> tuple[Any, np.ndarray, Reduction]:
    """Return points Z, coefficients B and the certificate of a reduced set.

    See `Expansion.compress` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.reduce import reduce
    >>> from mercer.kernels import Linear
    >>> Z, B, reduction = reduce(Linear(), np.array([[1.0], [2.0]]), np.ones((2, 1)), 1)
    >>> (Z * B).round(8)
    array([[3.]])
    """
    n = length(X)
    _check(kernel, n, A, n_points, max_error, method, max_iter)
    seed = _seed(random_state)
    if kernel.on_vectors:
        X = as_vectors(X, "compress")
    vectors = _why_not_vectors(X)
    if method in ("kmeans", "construct") and vectors:
        raise ValueError(
            f"method={method!r} makes new points, and needs dense vectors; {vectors}. "
            f"Use method='select', which takes some of the points there are"
        )
    if method == "construct":
        kernel.input_gradient(X[:1], X[:1], np.zeros((1, 1)))  # raises what the kernel has to say
    f = Functions.of(kernel, X, A, max_memory)
    if method == "auto":
        found = n_points if n_points is not None else n // 2
        moves = not vectors and n > 1 and _moves(kernel, X)
        affordable = moves and n * found * (np.shape(X)[1] + 50) <= _WORK
        method = "construct" if affordable else "select"
    if n == 1 or not np.any(f.squares > f.rounding):  # nowhere to move, or nothing to move for
        method = "select"
    curve = None
    if method == "select":
        chosen, selection = _selected(f, n_points, max_error)
        curve = _curve(chosen, selection)
    elif method == "kmeans":
        chosen = f.project(kmeans(f, int(n_points or 0), seed))
    else:
        chosen, method, curve = _constructed(f, n_points, max_error, max_iter, seed)
    reduction = Reduction(
        kernel,
        method,
        chosen.error,
        np.sqrt(f.squares),
        np.sqrt(chosen.rounding),
        len(chosen),
        n,
        curve,
    )
    return chosen.points, chosen.coefficients, reduction


# ---------------------------------------------------------------------- methods


def _selected(
    f: Functions, n_points: int | None, max_error: float | None
) -> tuple[Projection, Selection]:
    """Select a number of points, or as many as an error asks for."""
    selection = Selection(f)
    if max_error is None:
        selection.go_on(int(n_points or 0))
        return f.project(take(f.X, selection.places)), selection
    n, goal = len(f.A), max_error
    while True:  # coefficients have a rounding of their own, for which one may need more
        selection.go_on(max(1, n - 1), goal)
        projection = f.project(take(f.X, selection.places))
        error = float(projection.error.max())
        if error <= max_error:
            return projection, selection
        if selection.curve[-1].max() > goal:
            break
        short = np.sqrt(max(1.0 - 2.0 * (error**2 - max_error**2) / goal**2, 0.0))
        goal *= float(np.clip(short, *_STRICTER))
    raise ValueError(
        f"max_error={max_error:g} is out of reach: {len(projection)} of the {n} points leave an "
        f"error of {1.006 * error:.3g}; ask for that, or keep the expansion as it is"
    )


def _curve(projection: Projection, selection: Selection) -> np.ndarray | None:
    """Return the errors on the way, unless some of the points were dropped in the end."""
    curve = selection.curve
    return curve if len(projection) == len(curve) else None


def _constructed(
    f: Functions, n_points: int | None, max_error: float | None, n_iter: int, seed: Any
) -> tuple[Projection, str, np.ndarray | None]:
    """Move points; return the selection after all where that is not worse."""
    selected, selection = _selected(f, n_points, max_error)
    places = selection.places
    if max_error is None:
        if selected.total > _ENOUGH * f.squares.sum():
            moved = _moved(f, places, n_iter, seed)
            if moved.total < selected.total:
                return moved, "construct", None
    else:
        for quarters in (1, 2, 3):  # points that move freely do with fewer
            fewer = len(selected) * quarters // 4
            if fewer > 0:
                moved = _moved(f, places[:fewer], n_iter, seed)
                if moved.error.max() <= max_error:
                    return moved, "construct", None
    return selected, "select", _curve(selected, selection)


def _moved(f: Functions, places: np.ndarray, n_iter: int, seed: Any) -> Projection:
    """Try the selected points and clusters; the more promising of the two goes on."""
    trial = min(_TRIAL, (n_iter + 1) // 2)
    starts = f.X[places], kmeans(f, len(places), seed)
    points, centres = (f.project(construct(f, Z, trial)) for Z in starts)
    start = centres if centres.total < _PATIENCE * points.total else points
    moved = f.project(construct(f, start.points, n_iter - trial)) if n_iter > trial else start
    return min((moved, points, centres), key=lambda projection: projection.total)


# ---------------------------------------------------------------------- checks


def _check(
    kernel: Kernel,
    n: int,
    A: np.ndarray,
    n_points: Any,
    max_error: Any,
    method: Any,
    max_iter: Any,
) -> None:
    if not A.size:
        raise ValueError(f"there is nothing to compress: {A.shape[1]} functions on {n} points")
    if bad := int(np.count_nonzero(~np.isfinite(A))):
        raise ValueError(
            f"{bad} of {A.size} coefficients are not finite; the usual cause is a model that "
            f"diverged, or a division by 0"
        )
    if method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"there is no method {method!r} to compress by; there are {names}")
    if (n_points is None) == (max_error is None):
        given = "neither is" if n_points is None else "both are"
        raise ValueError(f"compress needs n_points or max_error, one of the two; {given} given")
    if n_points is not None:
        if not _is_count(n_points):
            raise ValueError(f"n_points must be a positive integer, got {n_points!r}")
        if n_points > n or n_points == n > 1:
            raise ValueError(
                f"n_points={n_points} is not fewer than the {n} points there are: there is nothing "
                f"to compress"
            )
    elif not _is_positive(max_error):
        raise ValueError(
            f"max_error must be a positive number, the error allowed in the norm of the RKHS, got "
            f"{max_error!r}; without any error, keep the expansion as it is"
        )
    elif method == "kmeans":
        raise ValueError(
            "method='kmeans' needs n_points, as its error is known only afterwards; "
            "use method='select' with max_error"
        )
    if not _is_count(max_iter):
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")
    if reads_all(kernel):
        raise ValueError(
            "Precomputed() has no values for two training points given by their indices, which "
            "errors are made of; keep the matrix: Precomputed(K), with indices as points"
        )


def _seed(random_state: Any) -> Any:
    """Return what k-means draws from: 0 for None."""
    if random_state is None:
        return 0
    generator = isinstance(random_state, (np.random.Generator, np.random.RandomState))
    integer = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if generator or (integer and 0 <= random_state < 2**32):
        return random_state
    raise ValueError(
        f"random_state must be an integer from 0 to 2^32 - 1, a Generator, a RandomState or None, "
        f"got {random_state!r}"
    )


def _is_count(value: Any) -> bool:
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(integer and value >= 1)


def _is_positive(value: Any) -> bool:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return number and 0.0 < float(value) < np.inf


def _why_not_vectors(X: Any) -> str:
    """Say why points cannot be moved; the empty text if they can."""
    if not isinstance(X, np.ndarray):
        return f"these points are a {type(X).__name__}"
    if X.ndim != 2 or X.dtype.kind != "f":
        return f"these points are an array of {X.dtype} of shape {X.shape}"
    return ""


def _moves(kernel: Kernel, X: np.ndarray) -> bool:
    try:
        kernel.input_gradient(X[:1], X[:1], np.zeros((1, 1)))
    except NotDifferentiableError:
        return False
    return True
