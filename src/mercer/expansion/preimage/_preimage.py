"""Compute pre-images of elements of the feature space, with one method or the best of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    MemoryBudgetError,
    MemoryLimit,
    NotDifferentiableError,
    NotebookResult,
    Points,
    Stopwatch,
    check_budget,
    concatenate,
    entry_point,
    length,
    take,
    warn_caller,
)
from ...kernels import (
    RBF,
    Bilinear,
    DotProduct,
    Kernel,
    Linear,
    Radial,
    closed_form_preimage,
    preimage_neighbours,
)
from ...solvers import Report, Status
from ._closed_form_preimage import (
    conformal,
    convex,
    distance,
    has_distance,
    learned_preimages,
    nearest,
)
from ._iterative_preimage import batched_lbfgs, fixed_point, local_search
from ._preimage_target import PreImageTarget, core_of

# Methods that work only on points that are vectors.
_VECTORIAL = (
    "fixed_point",
    "regularized",
    "distance",
    "gradient",
    "learned",
    "conformal",
    "convex",
)
_METHODS = ("auto", *_VECTORIAL, "nearest", "search")


@dataclass(frozen=True)
class PreImageOptions:
    """The options of `Expansion.preimage`; see there for their meaning."""

    start: Points
    candidates: Points
    neighbours: Callable[[Any], Any] | None
    n_neighbors: int
    regularization: float
    tol: float
    max_iter: int
    max_memory: MemoryLimit

    @property
    def stopping_rule(self) -> dict[str, Any]:
        """The parameters that stop an iteration, as keyword arguments."""
        return {"tol": self.tol, "max_iter": self.max_iter}


def _check_inputs(
    kernel: Kernel, points: Points, coefficients: np.ndarray, method: str, options: PreImageOptions
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
            f"neighbours={options.neighbours!r} is not used for vectors with method={method!r}. It "
            f"is a function that lists small changes of an object, for method='search' and for "
            f"points that are not vectors. For the number of nearest points, pass n_neighbors"
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
    if method not in _METHODS:
        raise ValueError(f"method must be one of {_METHODS}, got {method!r}")
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


def _are_vectors(kernel: Kernel, points: Points) -> bool:
    if kernel.domain.discrete:
        return False
    if sp.issparse(points) or kernel.domain.on_vectors:
        return True
    return isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind in "biuf"


def _dense(X: Points, max_memory: MemoryLimit) -> np.ndarray:
    if sp.issparse(X):
        rows, columns = X.shape
        check_budget(8 * rows * columns, max_memory, f"a dense copy of {rows} x {columns} points")
        X = X.toarray()
    return np.ascontiguousarray(X, dtype=float)


# ---------------------------------------------------------------------- pre-images

# With at most this many points, "auto" also tries "learned" and "conformal"; their time is O(n^3).
_MAX_DENSE_POINTS = 1000


@dataclass(frozen=True, eq=False)
class PreImages(NotebookResult):
    """Approximate pre-images: points z_c for which phi(z_c) is close to the functions f_c.

    `Expansion.preimage` returns this object.

    Attributes
    ----------
    points : points
        One point for each function of the expansion; shape (m, d) for vectors.
    residuals : ndarray of shape (m,)
        Squared distances |phi(z_c) - f_c|^2 in the RKHS.  Compare them with |f_c|^2: a residual of
        that size means that the pre-image is not informative.
    methods : tuple of str
        The method that found each point.
    report : Report
        Convergence, number of iterations and time.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> found = Expansion.mean(RBF(), np.array([[0.0], [1.0]])).preimage()
    >>> found.points.round(3), found.methods
    (array([[0.5]]), ('convex',))
    """

    points: Points
    residuals: np.ndarray
    methods: tuple[str, ...]
    report: Report

    def __len__(self) -> int:
        return len(self.residuals)

    def __repr__(self) -> str:
        counts = {name: self.methods.count(name) for name in dict.fromkeys(self.methods)}
        by_method = ", ".join(f"{count} by {name}" for name, count in counts.items())
        return (
            f"<PreImages: {len(self)} points, {by_method}, "
            f"mean residual {np.mean(self.residuals):.3g}, {self.report.status.value}>"
        )


@entry_point
def preimage(
    kernel: Kernel, points: Points, coefficients: np.ndarray, method: str, options: PreImageOptions
) -> PreImages:
    """Return approximate pre-images of sum_i coefficients[i, c] phi(x_i), for each column c.

    See `Expansion.preimage` for the methods and options.
    """
    points, options, vectors = _check_inputs(kernel, points, coefficients, method, options)
    watch = Stopwatch()
    target = PreImageTarget(kernel, points, coefficients.T, options.candidates)
    # Overflow is ignored here, because points with an infinite cost are never selected, and an
    # infinite |f|^2 raises an error.
    with np.errstate(over="ignore", invalid="ignore"):
        guess = None
        if method == "auto":
            guess = closed_form_preimage(target.core, points, coefficients)
        if guess is not None and preimage_neighbours(target.core, points) is None:
            result = _PreImageResult(guess.method, guess.points)
        elif vectors and method != "search":
            _ = target.squared_norms  # raise an error early if a norm is not finite
            result = _VectorMethods(target, options).run(method)
        else:
            start = None if guess is None else guess.points
            result = _among_objects(target, method, options, start)
    residuals = target.residuals(result.points)
    report = _report(method, result, residuals, watch.seconds)
    if report.status is Status.NOT_CONVERGED:
        n_moving = int(np.count_nonzero(~np.asarray(result.converged)))
        suffix = f" by more than {options.tol:g} times the spread of the points" if vectors else ""
        warn_caller(
            f"{n_moving} of {len(target)} pre-images by {method!r} still moved after "
            f"{options.max_iter} steps{suffix}; increase max_iter or tol. The residuals are valid "
            f"for the points returned",
            ConvergenceWarning,
        )
    names = result.names or (result.name,) * len(target)
    return PreImages(result.points, residuals, names, report)


def local_preimage_method(kernel: Kernel) -> str:
    """Return the name of a method that improves a given start, or "auto" if there is none."""
    core, _, _ = core_of(kernel)
    if isinstance(core, (Linear, Bilinear)) or not core.domain.on_vectors:
        return "auto"  # such a kernel has a closed form, or needs a local search
    if isinstance(core, (Radial, DotProduct)):
        return "fixed_point"
    return "gradient"


def concatenate_preimages(parts: list[PreImages]) -> PreImages:
    """Concatenate the pre-images of several blocks of targets."""
    if len(parts) == 1:
        return parts[0]
    points = reduce(concatenate, (part.points for part in parts))
    residuals = np.concatenate([part.residuals for part in parts])
    methods = sum((part.methods for part in parts), ())
    reports = [part.report for part in parts]
    worst = max(reports, key=lambda r: (r.status is Status.NOT_CONVERGED, r.residual))
    report = replace(
        worst,
        n_iter=max(r.n_iter for r in reports),
        residual=max(r.residual for r in reports),
        seconds=sum(r.seconds for r in reports),
    )
    return PreImages(points, residuals, methods, report)


@dataclass
class _PreImageResult:
    """Points found by one method, or by the best of several methods for each target."""

    name: str
    points: Points
    steps: int = 0
    converged: np.ndarray | bool = True
    message: str = ""
    names: tuple[str, ...] = ()


class _VectorMethods:
    """The pre-image methods for points that are vectors."""

    def __init__(self, target: PreImageTarget, options: PreImageOptions) -> None:
        self.target, self.options = target, options
        self._results: dict[str, _PreImageResult] = {}

    def run(self, method: str) -> _PreImageResult:
        """Return the result of a method; it is cached, because some methods start from others."""
        if method not in self._results:
            result = getattr(self, f"_{method}")()
            result.points = self.target.clip(result.points)
            self._results[method] = result
        return self._results[method]

    # ------------------------------------------------------------------ single methods

    def _nearest(self) -> _PreImageResult:
        return _PreImageResult("nearest", self.target.candidates[nearest(self.target)].copy())

    def _convex(self) -> _PreImageResult:
        return _PreImageResult("convex", convex(self.target, self.options.n_neighbors))

    def _distance(self) -> _PreImageResult:
        if not has_distance(self.target):
            raise TypeError(
                f"method 'distance' needs a kernel that is an invertible function of the distance "
                f"or the inner product, but {self.target.core} is not; use 'gradient' or 'auto'"
            )
        return _PreImageResult("distance", distance(self.target, self.options.n_neighbors))

    def _conformal(self) -> _PreImageResult:
        return _PreImageResult("conformal", conformal(self.target, self.options.max_memory))

    def _learned(self) -> _PreImageResult:
        Z, choice = learned_preimages(self.target, self.options.max_memory)
        kind = "linear" if choice.width is None else f"Gaussian of width {choice.width:.3g}"
        message = f"map: {kind}, ridge {choice.shift:.1g}, leave-one-out error {choice.error:.3g}"
        return _PreImageResult("learned", Z, message=message)

    def _fixed_point(self, penalty: float = 0.0, name: str = "fixed_point") -> _PreImageResult:
        if not (self.target.is_radial or self.target.is_dot_product):
            raise TypeError(
                f"the fixed-point iteration needs a kernel that is a function of the distance or "
                f"the inner product, but {self.target.core} is not; use 'gradient' or 'auto'"
            )
        # The weights of an RBF kernel are scaled so that they do not underflow far from the points.
        start = self._start(from_anywhere=isinstance(self.target.core, RBF))
        limits = self.options.stopping_rule
        return _PreImageResult(name, *fixed_point(self.target, start, penalty=penalty, **limits))

    def _regularized(self) -> _PreImageResult:
        return self._fixed_point(self.options.regularization, "regularized")

    def _gradient(self) -> _PreImageResult:
        return self._descend(self._start())

    def _start(self, from_anywhere: bool = False) -> np.ndarray:
        """Return the initial points: those of the user if they are usable, else the default ones.

        A start is not usable if the objective is not finite there, if its gradient is 0, or if the
        start is far from the points (more than ten times their spread).  If `from_anywhere` is
        True, only the first condition applies, because the first step can be arbitrarily long.
        """
        start = self.options.start
        if start is None:
            return self._default_start
        start = self.target.clip(start)
        values, slopes = self.target.slopes(start, np.arange(len(start)))
        low, high = self.target.box
        margin = 10.0 * self.target.scale
        is_near = np.all((start >= low - margin) & (start <= high + margin), axis=1)
        is_near &= np.linalg.norm(slopes, axis=1) > 0
        is_usable = np.isfinite(values) & (is_near | from_anywhere)
        if is_usable.all():
            return start
        return np.where(is_usable[:, None], start, self._default_start)

    @property
    def _default_start(self) -> np.ndarray:
        """The better result of "nearest" and, if applicable, "distance", for each target."""
        names = ["nearest", *(["distance"] if has_distance(self.target) else [])]
        return self._best([self.run(name).points for name in names])[0]

    # ------------------------------------------------------------------ the best of all methods

    def _auto(self) -> _PreImageResult:
        results, skipped = self._run_all()
        if self.options.start is not None:  # try the default starts, too
            options = replace(self.options, start=None)
            others, _ = _VectorMethods(self.target, options)._run_all()
            results += [result for result in others if result.steps]
        Z, costs, winner = self._best([result.points for result in results])
        names = np.array([result.name for result in results], dtype=object)[winner]
        all_converged = [np.broadcast_to(result.converged, len(Z)) for result in results]
        converged = np.array(all_converged)[winner, np.arange(len(Z))]
        steps = max(result.steps for result in results)
        # L-BFGS may improve the results of the other methods.
        unrefined = np.flatnonzero(names != "gradient")
        if len(unrefined) and any(result.name == "gradient" for result in results):
            refined = self._descend(Z[unrefined], unrefined)
            is_lower = self.target.costs(refined.points, unrefined) < costs[unrefined]
            improved = unrefined[is_lower]
            Z[improved], names[improved] = refined.points[is_lower], "gradient"
            steps, converged[unrefined] = steps + refined.steps, refined.converged
        message = f"best of {', '.join(dict.fromkeys(result.name for result in results))}"
        message += f"; {', '.join(skipped)} failed" if skipped else ""
        return _PreImageResult("auto", Z, steps, converged, message, tuple(names))

    def _run_all(self) -> tuple[list[_PreImageResult], list[str]]:
        """Return the results of all methods that apply, and the names of those that failed."""
        results, failed = [], []
        for name in self._applicable():
            try:
                results.append(self.run(name))
            except (np.linalg.LinAlgError, MemoryBudgetError, NotDifferentiableError):
                failed.append(name)
        return results, failed

    def _applicable(self) -> list[str]:
        """Return the names of the methods that the kernel and the number of points allow."""
        target = self.target
        names = ["nearest", "convex"]
        names += ["distance"] if has_distance(target) else []
        if target.is_radial or target.is_dot_product:
            names += ["fixed_point", "regularized"]
        names.append("gradient")
        if max(len(target.points), len(target.candidates)) <= _MAX_DENSE_POINTS:
            names += ["conformal", "learned"]
        return names

    # ------------------------------------------------------------------ helpers

    def _descend(self, Z: np.ndarray, rows: np.ndarray | None = None) -> _PreImageResult:
        """Run L-BFGS from Z, for all targets or for those with indices `rows`."""
        target, limits = self.target, self.options.stopping_rule
        rows = np.arange(len(target)) if rows is None else rows

        def slopes(Y: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return target.slopes(Y, rows[indices])

        result = batched_lbfgs(slopes, Z, scale=target.scale, lower=target.lower, **limits)
        return _PreImageResult("gradient", *result)

    def _best(self, all_points: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each target the best point, its cost, and the index of its method."""
        rows = np.arange(len(self.target))
        costs = np.array([self.target.costs(Z, rows) for Z in all_points])
        winner = np.argmin(np.where(np.isfinite(costs), costs, np.inf), axis=0)
        return np.array(all_points)[winner, rows], costs[winner, rows], winner


def _among_objects(
    target: PreImageTarget, method: str, options: PreImageOptions, guess: Any
) -> _PreImageResult:
    """Return pre-images among points that are not vectors, by "nearest" or local search."""
    if method in _VECTORIAL:
        raise TypeError(
            f"the method {method!r} needs points that are vectors, but those of {target.core} are "
            f"not; use 'nearest', or 'search' with a function neighbours(obj)"
        )
    start = take(target.candidates, nearest(target)) if guess is None else guess
    neighbours = options.neighbours or preimage_neighbours(target.core, target.points)
    if method == "nearest" or (neighbours is None and method == "auto"):
        return _PreImageResult("nearest", start)
    if neighbours is None:
        raise ValueError(
            f"method='search' needs neighbours, a function that lists small changes of an object, "
            f"because there is no default for {target.core}; pass neighbours"
        )
    points, n_moves, converged = local_search(target, list(start), neighbours, options.max_iter)
    is_matrix = isinstance(start, np.ndarray) and start.ndim == 2
    return _PreImageResult("search", np.array(points) if is_matrix else points, n_moves, converged)


def _report(method: str, result: _PreImageResult, residuals: np.ndarray, seconds: float) -> Report:
    if not np.all(result.converged):
        status = Status.NOT_CONVERGED
    elif result.steps:
        status = Status.CONVERGED
    elif result.name in ("exact", "auto", "gradient", "fixed_point"):
        status = Status.DIRECT
    else:
        status = Status.APPROXIMATE
    name, largest = f"preimage(method={method!r})", float(np.max(residuals, initial=0.0))
    return Report(name, status, result.steps, largest, seconds, result.message)
