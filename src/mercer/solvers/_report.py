"""What a solver did, in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

__all__ = ["Report", "Status", "enough", "judged", "worst"]


class Status(Enum):
    """How a solver ended; the value is the sentence to print.

    CONVERGED and DIRECT are claims about what was measured at the end, not about how it was found:

    * of a system, that the true |y - (K + shift) a| / |y| is at most the tolerance, or where
      rounding leaves more, at most 1e-6 (1e-3 where K is in float32);
    * of eigenpairs, that each |K u - l u| is at most the tolerance times |l|, or 16 eps |K|, what
      rounding may account for;
    * of a minimum, that the solver's own certificate is at most the tolerance: a bound on how far
      the objective is above its minimum, or on the violation of the conditions of a minimum.

    Whatever else a solver ends with comes with a warning that has the number, unless it was asked
    for an approximation, or for the least squares of a singular system.

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
    PENDING = "nothing was solved yet"


@dataclass(frozen=True)
class Report:
    """What a solver did.

    Attributes
    ----------
    solver : str
        The solver, as it would be written.
    status : Status
    n_iter : int
        Iterations, 0 for a direct method.
    residual : float
        The true relative residual, recomputed from K: |y - (K + shift) a| / |y|, or for
        eigenpairs the largest |K u - l u| relative to the largest eigenvalue.
    seconds : float
    message : str
        Anything worth knowing: jitter, a fallback, a plan that was changed.
    certificate : dict
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
        # skops makes objects without arguments, which no member of an Enum is made by
        return {**self.__dict__, "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=Status[state["status"]])

    def __str__(self) -> str:
        lines = [
            f"solver     {self.solver}",
            f"status     {self.status.value}",
        ]
        lines += [] if np.isnan(self.residual) else [f"residual   {self.residual:.2e}"]
        steps = f", {self.n_iter} steps" if self.n_iter else ""
        lines += [f"time       {self.seconds:.3g} s{steps}"]
        lines += [f"note       {self.message}"] if self.message else []
        lines += [f"{name:<10} {_short(value)}" for name, value in self.certificate.items()]
        return "\n".join(lines)


def enough(dtype: Any) -> float:
    """Return the relative residual up to which what rounding leaves of a system is a solution.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import enough
    >>> enough(np.float64), enough(np.float32)
    (1e-06, 0.001)
    """
    return 1e-6 if np.finfo(dtype).bits == 64 else 1e-3


def judged(
    status: Status, message: str, residual: float, tol: float = 0.0, dtype: Any = float
) -> tuple[Status, str]:
    """Return the status that a true relative residual allows a system to have, and the message.

    Examples
    --------
    >>> from mercer.solvers import Status, judged
    >>> status, message = judged(Status.DIRECT, "", residual=1e-3)
    >>> status.name, message
    ('INACCURATE', 'rounding leaves a relative residual of 1.0e-03, more than 1e-06')
    """
    limit = max(tol, enough(dtype))
    if status not in (Status.CONVERGED, Status.DIRECT) or residual <= limit:
        return status, message
    text = f"rounding leaves a relative residual of {residual:.1e}, more than {limit:.0e}"
    return Status.INACCURATE, "; ".join(filter(None, [text, message]))


def worst(reports: Iterable[Report]) -> Report:
    """Return the report that claims least; among equals, that of the largest residual.

    Examples
    --------
    >>> from mercer.solvers import Report, Status, worst
    >>> good = Report("a", Status.DIRECT, 0, 1e-15, 0.0)
    >>> worst([good, Report("b", Status.INACCURATE, 0, 1e-3, 0.0)]).solver
    'b'
    """
    failed = (Status.INACCURATE, Status.NOT_CONVERGED)
    return max(
        reports, key=lambda r: (failed.index(r.status) if r.status in failed else -1, r.residual)
    )


def _short(value: Any) -> str:
    return f"{value:.3e}" if isinstance(value, float) else str(value)
