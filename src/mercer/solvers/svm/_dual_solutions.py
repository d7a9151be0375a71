"""Solutions and reports of many dual problems, with one array for each field.

The object for a single solution or report is created only when it is accessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._report import Report, Status
from ._dual_problem import Duals, DualSolution

__all__ = ["DualSolutions", "Reports"]


@dataclass(eq=False)
class Reports(Sequence[Report]):
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
        names = reports[0].certificate
        return cls(
            reports[0].solver,
            [r.status for r in reports],
            np.array([r.n_iter for r in reports]),
            np.array([r.residual for r in reports]),
            np.array([r.seconds for r in reports]),
            [r.message for r in reports],
            {name: np.array([r.certificate[name] for r in reports]) for name in names},
        )

    def __getstate__(self) -> dict[str, Any]:
        # Store the names of the statuses, as Report.__getstate__ does.
        return {**self.__dict__, "status": [status.name for status in self.status]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=[Status[name] for name in state["status"]])

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, p: Any) -> Any:
        if isinstance(p, slice):
            return [self[i] for i in range(*p.indices(len(self)))]
        # An index that is out of range raises IndexError here, which ends iterations.
        numbers = self.n_iter[p], self.residual[p], self.seconds[p]
        n_iter, residual, seconds = (number.item() for number in numbers)
        certificate = {name: column[p].item() for name, column in self.certificate.items()}
        message = self.message[p]
        return Report(self.solver, self.status[p], n_iter, residual, seconds, message, certificate)

    def put(self, p: int, report: Report) -> None:
        """Replace report p."""
        self.status[p], self.message[p] = report.status, report.message
        self.n_iter[p], self.residual[p] = report.n_iter, report.residual
        self.seconds[p] = report.seconds
        for name, column in self.certificate.items():
            column[p] = report.certificate[name]

    @property
    def failed(self) -> list[int]:
        """Indices of the reports whose status is NOT_CONVERGED."""
        if Status.NOT_CONVERGED not in self.status:
            return []
        return [p for p, status in enumerate(self.status) if status is Status.NOT_CONVERGED]


@dataclass(eq=False)
class DualSolutions(Sequence[DualSolution]):
    """The solutions of `Duals`: a sequence of `DualSolution`, with concatenated fields."""

    ends: np.ndarray
    point_ends: np.ndarray
    variables: np.ndarray
    at_bound: np.ndarray
    coefficients: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray  # multipliers of the groups, of shape (problems, groups)
    reports: Reports

    @classmethod
    def of(cls, solutions: Iterable[DualSolution], duals: Duals) -> Self:
        """Concatenate the solutions of all problems."""
        v, at_bound, coefficients, values, multipliers, reports = zip(*solutions, strict=True)
        return cls(
            duals.ends,
            duals.point_ends,
            np.concatenate(v),
            np.concatenate(at_bound),
            np.concatenate(coefficients),
            np.concatenate(values),
            np.stack(multipliers),
            Reports.of(reports),
        )

    @classmethod
    def with_certificates(
        cls,
        duals: Duals,
        v: np.ndarray,
        g: np.ndarray,
        multipliers: np.ndarray,
        reports: Reports,
    ) -> Self:
        """Create the solutions, and compute the certificates of all problems at once.

        The certificates have the same entries as those of `Dual.solution`.

        Parameters
        ----------
        duals : Duals
        v, g : ndarray
            All variables, and their gradients K v + q.
        multipliers : ndarray of shape (problems, 2)
            The multipliers of both groups of each problem.
        reports : Reports
            The reports, whose residuals are the violations.  The certificates are added to them.
        """
        d, ends, point_ends = duals.all, duals.ends, duals.point_ends
        begins, point_begins, violation = ends[:-1], point_ends[:-1], reports.residual
        f = g - d.linear
        multipliers = multipliers[:, : d.n_groups]
        m = np.repeat(multipliers[:, 0], np.diff(ends))
        if d.n_groups == 2:
            m = np.where(d.groups == 0, m, np.repeat(multipliers[:, 1], np.diff(ends)))
        gaps = np.add.reduceat(d.gap_terms(v, g, m), begins)
        objectives = -np.add.reduceat(v * (0.5 * f + d.linear), begins)
        width = np.add.reduceat(d.upper - d.lower, begins)
        with np.errstate(invalid="ignore"):  # 0 * inf gives NaN, which is replaced by 0
            bounds = np.where(violation > 0, violation * width, 0.0)
        values, free = np.empty(d.n), np.zeros(d.n, dtype=bool)
        values[d.points] = f
        coefficients = d.coefficients(v)
        free[d.points[d.free(v)]] = True
        is_used = coefficients != 0.0
        at_bound = is_used & ~free
        reports.certificate = {
            "primal": objectives + gaps,
            "dual": objectives,
            "gap": gaps,
            "bound": bounds,
            "violation": violation,
            "n_free": np.add.reduceat(is_used & free, point_begins, dtype=int),
            "n_bound": np.add.reduceat(at_bound, point_begins, dtype=int),
            **reports.certificate,
        }
        return cls(ends, point_ends, v, at_bound, coefficients, values, multipliers, reports)

    def __len__(self) -> int:
        return len(self.reports)

    def __getitem__(self, p: Any) -> Any:
        if isinstance(p, slice):
            return [self[i] for i in range(*p.indices(len(self)))]
        report = self.reports[p]
        variables, points = self._slices(p)
        per_point = self.at_bound[points], self.coefficients[points], self.values[points]
        return DualSolution(self.variables[variables], *per_point, self.multipliers[p], report)

    def put(self, p: int, found: DualSolution) -> None:
        """Replace solution p."""
        variables, points = self._slices(p)
        self.variables[variables], self.multipliers[p] = found.variables, found.multipliers
        self.at_bound[points], self.values[points] = found.at_bound, found.values
        self.coefficients[points] = found.coefficients
        self.reports.put(p, found.report)

    def _slices(self, p: int) -> tuple[slice, slice]:
        """Return the slices of the variables and of the points of problem p."""
        p = range(len(self))[p]
        return slice(*self.ends[p : p + 2]), slice(*self.point_ends[p : p + 2])
