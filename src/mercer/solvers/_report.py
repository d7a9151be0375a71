"""Reports of solvers: how the solver ended, the true residual, the time and error bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from .._core import NotebookResult


class Status(Enum):
    """How a solver ended; the value of each member is a description for the user.

    CONVERGED and DIRECT mean that the final solution was checked, whichever method computed it:

    * Linear system (K + shift) a = y: the true relative residual |y - (K + shift) a| / |y| is at
      most the tolerance.  If rounding prevents that, it is at most 1e-6 (1e-3 for a K in float32).
    * Eigenpairs K u = l u: each residual |K u - l u| is at most the tolerance times |l|, or at most
      16 eps |K|, which rounding can cause.
    * Minimisation: the solver's certificate is at most the tolerance.  The certificate bounds the
      distance of the objective from its minimum, or the violation of the optimality conditions.

    If a solver ends with another status, it issues a warning that contains the residual or bound.
    There is no warning if the user asked for an approximation, or for the least-squares solution
    of a singular system.

    Attributes
    ----------
    CONVERGED : Status
        An iterative method reached its tolerance.
    DIRECT : Status
        A direct method, exact up to rounding.
    INACCURATE : Status
        Rounding leaves a large residual.
    APPROXIMATE : Status
        The user requested an approximation, for example on landmarks.
    NOT_CONVERGED : Status
        The iteration stopped before it reached its tolerance.
    SINGULAR : Status
        The least-squares solution of a singular system.
    PENDING : Status
        Nothing has been solved yet.

    See Also
    --------
    Report : The status together with the residual and bounds.

    Examples
    --------
    >>> from mercer.solvers import Status
    >>> Status.DIRECT.value
    'direct method: exact up to rounding'
    """

    CONVERGED = "converged"
    DIRECT = "direct method: exact up to rounding"
    INACCURATE = "inaccurate: rounding leaves a large residual"
    APPROXIMATE = "approximate"
    NOT_CONVERGED = "did not converge"
    SINGULAR = "singular system: minimum-norm least-squares solution"
    PENDING = "nothing has been solved yet"


@dataclass(frozen=True, repr=False)
class Report(NotebookResult):
    """The outcome of a solver: status, iterations, residual, time and error bounds.

    Attributes
    ----------
    solver : str
        The `repr` of the solver.
    status : Status
        How the solver ended.
    n_iter : int, default=0
        Number of iterations; 0 if the method is direct.
    residual : float, default=nan
        The true relative residual, recomputed from K: |y - (K + shift) a| / |y| for a linear
        system, or for eigenpairs the largest |K u - l u| relative to the largest eigenvalue.
    seconds : float, default=0.0
        Elapsed time.
    message : str, default=""
        Notes for the user, for example that jitter was added or another solver was used.
    certificate : dict, default={}
        Bounds and estimates by name, such as LAPACK's reciprocal condition number `rcond`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> report = KernelRidge().fit(np.eye(3), np.ones(3)).report_
    >>> report.status.name, report.residual < 1e-12
    ('DIRECT', True)
    """

    solver: str
    status: Status
    n_iter: int = 0
    residual: float = float("nan")
    seconds: float = 0.0
    message: str = ""
    certificate: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        # Store the status by name: skops creates objects by calling the class without arguments,
        # which fails for an Enum.
        return {**self.__dict__, "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=Status[state["status"]])

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {value}" for name, value in self._display_rows())

    def __repr__(self) -> str:
        residual = "" if np.isnan(self.residual) else f", residual {self.residual:.2e}"
        return f"<Report: {self.solver}, {self.status.value}{residual}>"

    def _display_rows(self) -> list[tuple[str, str]]:
        rows = [("solver", self.solver), ("status", self.status.value)]
        rows += [] if np.isnan(self.residual) else [("residual", f"{self.residual:.2e}")]
        steps = f", {self.n_iter} steps" if self.n_iter else ""
        rows += [("time", f"{self.seconds:.3g} s{steps}")]
        rows += [("note", self.message)] if self.message else []
        return rows + [(name, _short(value)) for name, value in self.certificate.items()]


def residual_floor(dtype: Any) -> float:
    """Return the largest relative residual of a linear system that rounding may cause.

    A solution with a larger residual is reported as inaccurate.

    Parameters
    ----------
    dtype : dtype
        Precision of the kernel matrix, float64 or float32.

    Returns
    -------
    float
        The largest relative residual |y - A a| / |y| that counts as accurate.

    See Also
    --------
    status_of : Check a residual.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import residual_floor
    >>> residual_floor(np.float64), residual_floor(np.float32)
    (1e-06, 0.001)
    """
    return 1e-6 if np.finfo(dtype).bits == 64 else 1e-3


def status_of(
    status: Status, message: str, residual: float, tol: float = 0.0, dtype: Any = float
) -> tuple[Status, str]:
    """Return the status and message for a linear system, after a check of its true residual.

    CONVERGED and DIRECT become INACCURATE if the relative residual exceeds both `tol` and
    `residual_floor(dtype)`; the message then starts with the residual.  Any other status is
    returned unchanged.

    Parameters
    ----------
    status : Status
        The status before the check.
    message : str
        The message before the check.
    residual : float
        The true relative residual |y - A a| / |y|.
    tol : float, default=0.0
        The relative residual at which the iteration stops.
    dtype : dtype, default=float
        Precision of the kernel matrix.

    Returns
    -------
    status : Status
        The status after the check.
    message : str
        The message after the check.

    Examples
    --------
    >>> from mercer.solvers import Status, status_of
    >>> status, message = status_of(Status.DIRECT, "", residual=1e-3)
    >>> status.name, message
    ('INACCURATE', 'rounding leaves a relative residual of 1.0e-03, more than 1e-06')
    """
    limit = max(tol, residual_floor(dtype))
    if status not in (Status.CONVERGED, Status.DIRECT) or residual <= limit:
        return status, message
    text = f"rounding leaves a relative residual of {residual:.1e}, more than {limit:.0e}"
    return Status.INACCURATE, "; ".join(filter(None, [text, message]))


def worst_report(reports: Iterable[Report]) -> Report:
    """Return the least favourable of several reports.

    NOT_CONVERGED is worse than INACCURATE, which is worse than any other status.  Among reports
    of equal rank, the one with the largest residual is returned.

    Examples
    --------
    >>> from mercer.solvers import Report, Status, worst_report
    >>> good = Report("a", Status.DIRECT, 0, 1e-15, 0.0)
    >>> worst_report([good, Report("b", Status.INACCURATE, 0, 1e-3, 0.0)]).solver
    'b'
    """
    failed = (Status.INACCURATE, Status.NOT_CONVERGED)
    return max(
        reports, key=lambda r: (failed.index(r.status) if r.status in failed else -1, r.residual)
    )


def _short(value: Any) -> str:
    return f"{value:.3e}" if isinstance(value, float) else str(value)
