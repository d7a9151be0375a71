"""Approximate functions by a reduced set: parameters, choice of a method, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..._core import (
    MemoryLimit,
    NotDifferentiableError,
    NotebookResult,
    Points,
    RandomState,
    as_vectors,
    entry_point,
    is_count,
    take,
)
from ...kernels import Kernel, expects_precomputed_rows
from ._construction import construct, kmeans
from ._reduction_target import Selection, SpanProjection, TargetFunctions

_METHODS = ("auto", "select", "kmeans", "construct")


@dataclass(frozen=True)
class CompressionRequest:
    """The parameters of `Expansion.compress`; see there for their meaning."""

    n_points: int | None
    max_error: float | None = None
    method: str = "auto"
    max_iter: int = 100
    random_state: RandomState = None
    max_memory: MemoryLimit = None

    def check(self, kernel: Kernel, A: np.ndarray) -> None:
        """Raise ValueError for parameters that are invalid for functions with coefficients A."""
        n, m = A.shape
        if not A.size:
            raise ValueError(f"an expansion of {m} functions on {n} points cannot be compressed")
        if n_bad := int(np.count_nonzero(~np.isfinite(A))):
            raise ValueError(
                f"{n_bad} of {A.size} coefficients are not finite; the usual cause is a model that "
                f"diverged, or a division by 0"
            )
        if self.method not in _METHODS:
            names = ", ".join(map(repr, _METHODS))
            raise ValueError(f"method must be one of {names}, got {self.method!r}")
        if (self.n_points is None) == (self.max_error is None):
            passed = "neither" if self.n_points is None else "both"
            raise ValueError(f"compress needs either n_points or max_error, got {passed}")
        if self.n_points is not None:
            _check_count("n_points", self.n_points)
            if self.n_points > n or self.n_points == n > 1:
                raise ValueError(
                    f"n_points={self.n_points} must be smaller than the present number of points, "
                    f"{n}; otherwise there is nothing to compress"
                )
        elif not _is_positive(self.max_error):
            raise ValueError(
                f"max_error must be a positive number, the allowed error in the RKHS norm, got "
                f"{self.max_error!r}; if no error is allowed, do not compress"
            )
        elif self.method == "kmeans":
            raise ValueError(
                "method='kmeans' needs n_points, because its error is not known in advance; "
                "use method='select' with max_error"
            )
        _check_count("max_iter", self.max_iter)
        if expects_precomputed_rows(kernel):
            raise ValueError(
                "Precomputed() does not store the kernel values between training points, which are "
                "needed to compute errors; use Precomputed(K), with indices as points"
            )
        self._check_seed()

    def _check_seed(self) -> None:
        seed = self.seed
        is_generator = isinstance(seed, (np.random.Generator, np.random.RandomState))
        if not is_generator and not (is_count(seed, 0) and seed < 2**32):
            raise ValueError(
                f"random_state must be an integer from 0 to 2^32 - 1, a Generator, a RandomState "
                f"or None, got {seed!r}"
            )

    @property
    def seed(self) -> Any:
        """The seed or generator of k-means; 0 if random_state is None."""
        return 0 if self.random_state is None else self.random_state


def _check_count(name: str, value: Any) -> None:
    if not is_count(value):
        raise ValueError(f"{name} must be a positive integer, got {value!r}")


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < np.inf


@entry_point
@dataclass(frozen=True, eq=False, repr=False)
class Reduction(NotebookResult):
    """Upper bounds on the errors |f_c - g_c| of a reduced set in the RKHS norm.

    `Expansion.compress` and `mercer.compress` return this object, which shows how much the
    compressed functions g_c can differ from the original functions f_c.  By the reproducing
    property, |f(x) - g(x)| <= |f - g| sqrt(k(x, x)) for every x.

    Attributes
    ----------
    kernel : Kernel
        The kernel of both expansions.
    method : str
        How the points were found: "select", "kmeans" or "construct".
    error : ndarray of shape (m,)
        Upper bounds on the errors |f_c - g_c| for the returned coefficients.  They include
        `rounding`.
    norm : ndarray of shape (m,)
        Norms |f_c| of the original functions.
    rounding : ndarray of shape (m,)
        The part of `error` that may be due to rounding; it is positive even if the true error is 0.
    n_points, n_points_before : int
        Number of points after and before the reduction.
    curve : ndarray of shape (n_points, m) or None
        The errors with only the first 1, 2, ... points; None unless the method is "select".  Use it
        to choose the number of points.

    See Also
    --------
    Expansion.compress : Compute a reduced set.
    compress : Compress a fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> Expansion.mean(RBF(), X).compress(3, method="select").reduction
    <Reduction by select: 100 to 3 points, error 0.00163, at most 0.17 % of |f|>
    """

    kernel: Kernel
    method: str
    error: np.ndarray
    norm: np.ndarray
    rounding: np.ndarray
    n_points: int
    n_points_before: int
    curve: np.ndarray | None = None

    @property
    def relative_error(self) -> np.ndarray:
        """Relative errors |f_c - g_c| / |f_c|, shape (m,).

        For f_c = 0 the relative error is 0 if the error is 0, else inf.
        """
        of_zero = np.where(self.error > 0, np.inf, 0.0)
        return np.divide(self.error, self.norm, out=of_zero, where=self.norm > 0)

    def bound(self, X: Points) -> np.ndarray:
        """Return bounds on the errors |f_c(x_i) - g_c(x_i)| of the values at given points.

        Parameters
        ----------
        X : points
            The n points at which the functions are evaluated.

        Returns
        -------
        ndarray of shape (n, m)
            error_c sqrt(k(x_i, x_i)), one row per point and one column per function.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import RBF
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> f = Expansion.mean(RBF(), X)
        >>> g = f.compress(3, method="select")
        >>> g.reduction.bound(X[:1]).round(5)
        array([[0.00163]])
        """
        return np.sqrt(np.maximum(self.kernel.diag(X), 0.0))[:, None] * self.error

    @property
    def sup_bound(self) -> np.ndarray:
        """Bounds on |f_c(x) - g_c(x)| for all x, shape (m,); inf if k(x, x) has no known bound."""
        bound = np.zeros(len(self.error))
        root = np.sqrt(self.kernel.diagonal_bound)
        return np.multiply(root, self.error, out=bound, where=self.error > 0)

    def __repr__(self) -> str:
        largest = float(self.error.max(initial=0.0))
        relative = float(self.relative_error.max(initial=0.0))
        error = "error" if len(self.error) == 1 else "errors up to"
        return (
            f"<Reduction by {self.method}: {self.n_points_before} to {self.n_points} points, "
            f"{error} {largest:.3g}, at most {100 * relative:.2g} % of |f|>"
        )


# ---------------------------------------------------------------------- methods


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
    kernel: Kernel, X: Points, A: np.ndarray, request: CompressionRequest
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
    if kernel.domain.on_vectors:
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
    prefer_clusters = from_clusters.total < _TUNING.cluster_handicap * from_selection.total
    final = start = from_clusters if prefer_clusters else from_selection
    if request.max_iter > trial_steps:
        final = f.project(construct(f, start.points, request.max_iter - trial_steps))
    return min((final, from_selection, from_clusters), key=lambda projection: projection.total)


# ---------------------------------------------------------------------- movable points


def _why_not_movable(X: Points) -> str:
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
