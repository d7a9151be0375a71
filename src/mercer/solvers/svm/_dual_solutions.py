"""Solutions of dual problems, their progress and reports.

The solutions and reports of many problems are stored as one array for each field.  The object for a
single solution or report is created only when it is accessed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, overload

import numpy as np

from ...gram import KernelRows, RowsView
from .._report import Report, Status
from ._dual_problem import Dual, Duals


class StopReason(Enum):
    """Why a solver of a dual problem stopped."""

    CONVERGED = "the violation is at most tol"
    MAX_ITER = "the limit on the number of steps was reached"
    ROUNDING = "further improvements are below rounding errors"
    GIVEN_UP = "no further progress is expected; the message of the report has the reason"


class DualProgress(NamedTuple):
    """The progress of a solver, passed to the callback `follow`.

    Attributes
    ----------
    n_iter : int
        Number of steps so far.
    seconds : float
        Elapsed time.
    violation : float
        The violation of the optimality conditions.
    objective : float
        The dual objective, which is maximised.

    Examples
    --------
    >>> from mercer.solvers import DualProgress
    >>> DualProgress(n_iter=10, seconds=0.1, violation=1e-3, objective=-2.0).violation
    0.001
    """

    n_iter: int
    seconds: float
    violation: float
    objective: float


# Called with the progress from time to time; an exception ends the search.
FollowCallback: TypeAlias = Callable[[DualProgress], None] | None
ReadableRows: TypeAlias = KernelRows | RowsView  # rows of K, of all points or of some classes


class DualSolution(NamedTuple):
    """The solution of a `Dual`, with its report.

    The decision function is f(x) + b with f = sum_i coefficients_i k(x_i, .).  The certificate of
    the report contains the duality gap, which bounds how far the objective is from its minimum.

    Attributes
    ----------
    variables : ndarray of shape (n_variables,)
        The dual variables v.
    at_bound : ndarray of bool of shape (n,)
        Mask of the support vectors whose variables are all at a bound.
    coefficients : ndarray of shape (n,)
        One value per point, which is 0 unless the point is a support vector.
    values : ndarray of shape (n,)
        f at the points, in float64.
    multipliers : ndarray of shape (n_groups,)
        One multiplier for each group; the intercept b is minus their mean.
    report : Report
        Status, number of steps, violation, and certificate.
    stop : StopReason, default=StopReason.CONVERGED
        Why the solver stopped.

    See Also
    --------
    Dual : The problem.

    Examples
    --------
    >>> from mercer import SVC
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.dual_coef_, model.at_bound_
    (array([[-0.5,  0.5]]), array([False, False]))
    """

    variables: np.ndarray  # the dual variables v
    at_bound: np.ndarray  # mask of the support vectors whose variables are all at a bound
    coefficients: np.ndarray  # one value per point: f = sum_i coefficients_i k(x_i, .)
    values: np.ndarray  # f at the points, in float64
    multipliers: np.ndarray  # one multiplier for each group; the intercept is minus their mean
    report: Report
    stop: StopReason = StopReason.CONVERGED

    @classmethod
    def certified(
        cls,
        dual: Dual,
        v: np.ndarray,
        values: np.ndarray,
        report: Report,
        stop: StopReason,
    ) -> Self:
        """Create a solution, and add the certificate to its report.

        Parameters
        ----------
        dual : Dual
            The problem.
        v : ndarray of shape (n_variables,)
            The variables.
        values : ndarray of shape (n,)
            The values of f = K v at the points.
        report : Report
            Its residual is the violation, and its certificate may contain additional entries, such
            as operation counts.
        stop : StopReason
            Why the solver stopped.

        Returns
        -------
        DualSolution
            The solution, with the duality gap in its certificate.
        """
        g = dual.gradient(values)
        multipliers = dual.multipliers(v, g)
        duals = Duals.of([dual], np.arange(dual.n))
        reports = Reports.of([report])
        found = DualSolutions.certified(duals, v, g, multipliers[None], reports)[0]
        return cls(*found[:3], values, multipliers, found.report, stop)


Item = TypeVar("Item", covariant=True)


class LazySequence(Sequence[Item]):
    """A sequence that stores one array for each field, and creates items on access."""

    @abstractmethod
    def _item(self, p: int) -> Item:
        """Return item p; raise IndexError if it does not exist."""

    @overload
    def __getitem__(self, p: int) -> Item: ...

    @overload
    def __getitem__(self, p: slice) -> list[Item]: ...

    def __getitem__(self, p: int | slice) -> Item | list[Item]:
        if isinstance(p, slice):
            return [self._item(i) for i in range(*p.indices(len(self)))]
        return self._item(p)


@dataclass(eq=False)
class Reports(LazySequence[Report]):
    """A sequence of reports of the same solver, stored as one array for each field.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Report, Status
    >>> from mercer.solvers.svm._dual_solutions import Reports
    >>> one = Report("SMO", Status.CONVERGED, 7, 1e-4, certificate={"gap": 0.5})
    >>> both = Reports.of([one, one])
    >>> both.n_iter, both.certificate["gap"].sum(), both[1].n_iter
    (array([7, 7]), np.float64(1.0), 7)
    """

    solver: str
    status: list[Status]
    n_iter: np.ndarray
    residual: np.ndarray
    seconds: np.ndarray
    message: list[str]
    certificate: dict[str, np.ndarray]

    @classmethod
    def of(cls, reports: Sequence[Report]) -> Self:
        """Create the sequence from reports of the same solver."""
        numbers = [(r.n_iter, r.residual, r.seconds) for r in reports]
        statuses, messages = [r.status for r in reports], [r.message for r in reports]
        certificate = {
            name: np.array([r.certificate[name] for r in reports])
            for name in reports[0].certificate
        }
        n_iter, residual, seconds = map(np.array, zip(*numbers, strict=True))
        arrays = n_iter, residual, seconds
        return cls(reports[0].solver, statuses, *arrays, messages, certificate)

    def __getstate__(self) -> dict[str, Any]:
        # Store the names of the statuses, as Report.__getstate__ does.
        return {**self.__dict__, "status": [status.name for status in self.status]}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, status=[Status[name] for name in state["status"]])

    def __len__(self) -> int:
        return len(self.status)

    def _item(self, p: int) -> Report:
        numbers = self.n_iter[p], self.residual[p], self.seconds[p]
        n_iter, residual, seconds = (number.item() for number in numbers)
        certificate = {name: column[p].item() for name, column in self.certificate.items()}
        message = self.message[p]
        return Report(self.solver, self.status[p], n_iter, residual, seconds, message, certificate)

    def put(self, p: int, report: Report) -> None:
        """Replace report p."""
        for name in ("status", "message", "n_iter", "residual", "seconds"):
            getattr(self, name)[p] = getattr(report, name)
        for name, column in self.certificate.items():
            column[p] = report.certificate[name]

    @property
    def failed(self) -> list[int]:
        """Indices of the reports whose status is NOT_CONVERGED."""
        return [p for p, status in enumerate(self.status) if status is Status.NOT_CONVERGED]


@dataclass(eq=False)
class DualSolutions(LazySequence[DualSolution]):
    """The solutions of `Duals`: a sequence of `DualSolution`, with concatenated fields."""

    ends: np.ndarray
    point_ends: np.ndarray
    variables: np.ndarray
    at_bound: np.ndarray
    coefficients: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray  # multipliers of the groups, of shape (problems, groups)
    reports: Reports
    stops: list[StopReason]

    @classmethod
    def of(cls, solutions: Iterable[DualSolution], duals: Duals) -> Self:
        """Concatenate the solutions of all problems."""
        *arrays, multipliers, reports, stops = zip(*solutions, strict=True)
        variables, at_bound, coefficients, values = map(np.concatenate, arrays)
        per_point = at_bound, coefficients, values
        shared = np.stack(multipliers), Reports.of(reports), list(stops)
        return cls(duals.ends, duals.point_ends, variables, *per_point, *shared)

    @classmethod
    def certified(
        cls,
        duals: Duals,
        v: np.ndarray,
        g: np.ndarray,
        multipliers: np.ndarray,
        reports: Reports,
    ) -> Self:
        """Create converged solutions, and add the certificates of all problems to the reports.

        Parameters
        ----------
        duals : Duals
        v, g : ndarray
            All variables, and their gradients K v + q.
        multipliers : ndarray of shape (problems, 2)
            The multipliers of both groups of each problem.
        reports : Reports
            The reports, whose residuals are the violations.  Entries of their certificates replace
            those that are computed here.
        """
        d, ends, point_ends = duals.all, duals.ends, duals.point_ends
        begins, point_begins, violation = ends[:-1], point_ends[:-1], reports.residual
        f = g - d.linear
        multipliers = multipliers[:, : d.n_groups]
        m = np.repeat(multipliers, np.diff(ends), axis=0)[np.arange(len(v)), d.groups]
        gaps = np.add.reduceat(d.gap_terms(v, g, m), begins)
        objectives = -np.add.reduceat(v * (0.5 * f + d.linear), begins)
        width = np.add.reduceat(d.upper - d.lower, begins)
        with np.errstate(invalid="ignore"):  # 0 * inf gives NaN, which is replaced by 0
            bounds = np.where(violation > 0, violation * width, 0.0)
        bounds = gaps if d.shift is not None else bounds
        values, free = np.empty(d.n), np.zeros(d.n, dtype=bool)
        values[d.points] = f
        coefficients = d.coefficients(v)
        free[d.points[d.free(v)]] = True
        is_used = coefficients != 0.0
        at_bound = is_used & ~free
        certificate = {
            "primal": objectives + gaps,
            "dual": objectives,
            "gap": gaps,
            "bound": bounds,
            "violation": violation,
            "n_free": np.add.reduceat(is_used & free, point_begins, dtype=int),
            "n_bound": np.add.reduceat(at_bound, point_begins, dtype=int),
            **reports.certificate,
        }
        reports = replace(reports, certificate=certificate)
        per_point = at_bound, coefficients, values
        stops = [StopReason.CONVERGED] * len(duals)
        return cls(ends, point_ends, v, *per_point, multipliers, reports, stops)

    def __len__(self) -> int:
        return len(self.reports)

    def _item(self, p: int) -> DualSolution:
        report = self.reports[p]
        variables, points = self._slices(p)
        per_point = self.at_bound[points], self.coefficients[points], self.values[points]
        shared = self.multipliers[p], report, self.stops[p]
        return DualSolution(self.variables[variables], *per_point, *shared)

    def put(self, p: int, found: DualSolution) -> None:
        """Replace solution p."""
        variables, points = self._slices(p)
        self.variables[variables], self.multipliers[p] = found.variables, found.multipliers
        for name in ("at_bound", "coefficients", "values"):
            getattr(self, name)[points] = getattr(found, name)
        self.stops[p] = found.stop
        self.reports.put(p, found.report)

    def _slices(self, p: int) -> tuple[slice, slice]:
        """Return the slices of the variables and of the points of problem p."""
        p = range(len(self))[p]
        return slice(*self.ends[p : p + 2]), slice(*self.point_ends[p : p + 2])
