"""From a point of feature space back to a point: the methods by name, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import MemoryBudgetError, NotDifferentiableError, warn_caller
from .._points import concatenate, take
from .._runtime import Stopwatch, entry_point
from ..kernels import RBF, Bilinear, DotProduct, Kernel, Linear, Radial
from ..solvers import Report, Status
from ._closed_form import conformal, convex, distance, has_distance, nearest
from ._descent import descend
from ._fixed_point import fixed_point
from ._hill_climbing import climb
from ._learned import learned
from ._target import Target, core_of
from ._validation import VECTORIAL, Options, checked

__all__ = ["PreImages", "joined", "local_method", "preimage"]

_SMALL = 1000  # points up to which "auto" also solves the systems of "learned" and "conformal"


@dataclass(frozen=True, eq=False)
class PreImages:
    """Points z_c with phi(z_c) close to Psi_c.

    Attributes
    ----------
    points : points
        One for each function of the expansion.
    residuals : ndarray of shape (m,)
        |phi(z_c) - Psi_c|^2 in the RKHS, computed for the points returned.
    methods : tuple of str
        Which method found each of them.
    report : Report

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> found = Expansion.mean(RBF(), np.array([[0.0], [1.0]])).preimage()
    >>> found.points.round(3), found.methods
    (array([[0.5]]), ('convex',))
    """

    points: Any
    residuals: np.ndarray
    methods: tuple[str, ...]
    report: Report

    def __len__(self) -> int:
        return len(self.residuals)

    def __repr__(self) -> str:
        found = {name: self.methods.count(name) for name in dict.fromkeys(self.methods)}
        by = ", ".join(f"{count} by {name}" for name, count in found.items())
        return (
            f"<PreImages: {len(self)} points, {by}, "
            f"mean residual {np.mean(self.residuals):.3g}, {self.report.status.value}>"
        )


@entry_point
def preimage(
    kernel: Kernel, points: Any, coefficients: np.ndarray, method: str, options: Options
) -> PreImages:
    """Return points whose phi is as close as the method gets to each sum_i c_i phi(x_i).

    See Expansion.preimage, which calls this.
    """
    points, options, vectors = checked(kernel, points, coefficients, method, options)
    watch = Stopwatch()
    target = Target(kernel, points, coefficients.T, options.candidates)
    # Points with a J that is not finite lose against others, and a |f|^2 that is not is refused.
    with np.errstate(over="ignore", invalid="ignore"):
        guess = target.core._preimage(points, coefficients) if method == "auto" else None
        if guess is not None and target.core._neighbours(points) is None:
            found = _Found(target.core._preimage_method, guess)
        elif vectors and method != "search":
            _ = target.squared_norms  # raises at once if it is not finite
            found = _Vectors(target, options).find(method)
        else:
            found = _among_objects(target, method, options, guess)
    residuals = target.residuals(found.points)
    report = _report(method, found, residuals, watch.seconds)
    if report.status is Status.NOT_CONVERGED:
        stuck = int(np.count_nonzero(~np.asarray(found.converged)))
        far = f" by more than {options.tol:g} of the spread of the points" if vectors else ""
        warn_caller(
            f"{stuck} of {len(target)} pre-images by {method!r} still moved after "
            f"{options.max_iter} steps{far}; raise max_iter or tol (residuals are those of the "
            f"points returned)",
            ConvergenceWarning,
        )
    names = found.names or (found.name,) * len(target)
    return PreImages(found.points, residuals, names, report)


def local_method(kernel: Kernel) -> str:
    """Return the method that descends from a given start, if the kernel has one."""
    core, _, _ = core_of(kernel)
    if isinstance(core, (Linear, Bilinear)) or not core.on_vectors:
        return "auto"  # in closed form, or among candidates
    if isinstance(core, (Radial, DotProduct)):
        return "fixed_point"
    return "gradient"


def joined(parts: list[PreImages]) -> PreImages:
    """Return the pre-images of several blocks of targets as one."""
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
class _Found:
    """Points by one method, or for each target by the best of several."""

    name: str
    points: Any
    steps: int = 0
    converged: np.ndarray | bool = True
    message: str = ""
    names: tuple[str, ...] = ()


class _Vectors:
    """The methods for points of R^d."""

    def __init__(self, target: Target, options: Options) -> None:
        self.target, self.options = target, options
        self._memo: dict[str, _Found] = {}

    def find(self, method: str) -> _Found:
        """Return what a method finds; methods that start from another one share it."""
        if method not in self._memo:
            found = getattr(self, f"_{method}")()
            found.points = self.target.clip(found.points)
            self._memo[method] = found
        return self._memo[method]

    # ------------------------------------------------------------------ one method

    def _nearest(self) -> _Found:
        return _Found("nearest", self.target.candidates[nearest(self.target)].copy())

    def _convex(self) -> _Found:
        return _Found("convex", convex(self.target, self.options.n_neighbors))

    def _distance(self) -> _Found:
        if not has_distance(self.target):
            raise TypeError(
                f"the distance method inverts a kernel of the distance or of the inner product, "
                f"and {self.target.core} is none that it can invert; use 'gradient' or 'auto'"
            )
        return _Found("distance", distance(self.target, self.options.n_neighbors))

    def _conformal(self) -> _Found:
        return _Found("conformal", conformal(self.target, self.options.max_memory))

    def _learned(self) -> _Found:
        Z, choice = learned(self.target, self.options.max_memory)
        kind = "linear" if choice.width is None else f"Gaussian of width {choice.width:.3g}"
        message = f"map: {kind}, shift {choice.shift:.1g}, left-out error {choice.error:.3g}"
        return _Found("learned", Z, message=message)

    def _fixed_point(self, pull: float = 0.0, name: str = "fixed_point") -> _Found:
        if not (self.target.is_radial or self.target.is_dot_product):
            raise TypeError(
                f"the fixed point exists for kernels of the distance or of the inner product, and "
                f"{self.target.core} is neither; use 'gradient' or 'auto'"
            )
        # The weights of a Gaussian are scaled in logarithms, and vanish nowhere.
        start = self._start(from_anywhere=isinstance(self.target.core, RBF))
        return _Found(name, *fixed_point(self.target, start, pull=pull, **self.options.limits))

    def _regularized(self) -> _Found:
        return self._fixed_point(self.options.regularization, "regularized")

    def _gradient(self) -> _Found:
        return self._descend(self._start())

    def _start(self, from_anywhere: bool = False) -> np.ndarray:
        """Return where an iteration begins: as near as closed forms come, if no start is given.

        Nor can it begin where J is flat, or not finite: too far from all points to feel them.
        Where an iteration cannot jump `from_anywhere`, that is ten spreads away at the latest.
        """
        given = self.options.start
        if given is None:
            return self._default_start
        given = self.target.clip(given)
        values, slopes = self.target.slopes(given, np.arange(len(given)))
        low, high = self.target.box
        reach = 10.0 * self.target.scale
        near = np.all((given >= low - reach) & (given <= high + reach), axis=1)
        near &= np.linalg.norm(slopes, axis=1) > 0
        felt = np.isfinite(values) & (near | from_anywhere)
        return given if felt.all() else np.where(felt[:, None], given, self._default_start)

    @property
    def _default_start(self) -> np.ndarray:
        names = ["nearest", *(["distance"] if has_distance(self.target) else [])]
        return self._best([self.find(name).points for name in names])[0]

    # ------------------------------------------------------------------ the best of all

    def _auto(self) -> _Found:
        found, skipped = self._all()
        if self.options.start is not None:  # a start is one more place to look, not the only one
            others, _ = _Vectors(self.target, replace(self.options, start=None))._all()
            found += [f for f in others if f.steps]
        Z, costs, winner = self._best([f.points for f in found])
        names = np.array([f.name for f in found], dtype=object)[winner]
        all_converged = [np.broadcast_to(f.converged, len(Z)) for f in found]
        converged = np.array(all_converged)[winner, np.arange(len(Z))]
        steps = max(f.steps for f in found)
        # Where L-BFGS has ended it cannot get lower; from the points of other methods it may.
        rest = np.flatnonzero(names != "gradient")
        if len(rest) and any(f.name == "gradient" for f in found):
            polished = self._descend(Z[rest], rest)
            lower = self.target.costs(polished.points, rest) < costs[rest]
            Z[rest[lower]], names[rest[lower]] = polished.points[lower], "gradient"
            steps, converged[rest] = steps + polished.steps, polished.converged
        message = f"best of {', '.join(dict.fromkeys(f.name for f in found))}"
        message += f"; {', '.join(skipped)} not possible" if skipped else ""
        return _Found("auto", Z, steps, converged, message, tuple(names))

    def _all(self) -> tuple[list[_Found], list[str]]:
        """Return what every method finds that applies, and the names of those that failed."""
        found, failed = [], []
        for name in self._applicable():
            try:
                found.append(self.find(name))
            except (np.linalg.LinAlgError, MemoryBudgetError, NotDifferentiableError):
                failed.append(name)
        return found, failed

    def _applicable(self) -> list[str]:
        target = self.target
        names = ["nearest", "convex"]
        names += ["distance"] if has_distance(target) else []
        if target.is_radial or target.is_dot_product:
            names += ["fixed_point", "regularized"]
        names.append("gradient")
        if max(len(target.points), len(target.candidates)) <= _SMALL:
            names += ["conformal", "learned"]
        return names

    # ------------------------------------------------------------------ parts

    def _descend(self, Z: np.ndarray, rows: np.ndarray | None = None) -> _Found:
        """Run L-BFGS from Z, for all targets or some of them."""
        target, limits = self.target, self.options.limits
        rows = np.arange(len(target)) if rows is None else rows

        def slopes(Y: np.ndarray, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return target.slopes(Y, rows[some])

        found = descend(slopes, Z, scale=target.scale, lower=target.lower, **limits)
        return _Found("gradient", *found)

    def _best(self, all_points: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each target the points of smallest J, that J, and whose they are."""
        rows = np.arange(len(self.target))
        costs = np.array([self.target.costs(Z, rows) for Z in all_points])
        winner = np.argmin(np.where(np.isfinite(costs), costs, np.inf), axis=0)
        return np.array(all_points)[winner, rows], costs[winner, rows], winner


def _among_objects(target: Target, method: str, options: Options, guess: Any) -> _Found:
    if method in VECTORIAL:
        raise TypeError(
            f"the method {method!r} needs points that are vectors, and {target.core} has others; "
            f"use 'nearest', or 'search' with a function neighbours(obj)"
        )
    start = take(target.candidates, nearest(target)) if guess is None else guess
    neighbours = options.neighbours or target.core._neighbours(target.points)
    if method == "nearest" or (neighbours is None and method == "auto"):
        return _Found("nearest", start)
    if neighbours is None:
        raise ValueError(
            f"'search' needs neighbours, a function that lists the changes of an object: "
            f"{target.core} knows none for its points"
        )
    points, moves, converged = climb(target, list(start), neighbours, options.max_iter)
    rows_of_numbers = isinstance(start, np.ndarray) and start.ndim == 2
    return _Found("search", np.array(points) if rows_of_numbers else points, moves, converged)


def _report(method: str, found: _Found, residuals: np.ndarray, seconds: float) -> Report:
    if not np.all(found.converged):
        status = Status.NOT_CONVERGED
    elif found.steps:
        status = Status.CONVERGED
    elif found.name in ("exact", "auto", "gradient", "fixed_point"):
        status = Status.DIRECT
    else:
        status = Status.APPROXIMATE
    name, largest = f"preimage(method={method!r})", float(np.max(residuals, initial=0.0))
    return Report(name, status, found.steps, largest, seconds, found.message)
