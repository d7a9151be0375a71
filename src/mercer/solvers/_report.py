"""What a solver did, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Report", "Status"]


class Status(Enum):
    """How a solver ended; the value is the sentence to print."""

    CONVERGED = "converged"
    DIRECT = "direct method: exact up to rounding"
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
    """

    solver: str
    status: Status
    n_iter: int = 0
    residual: float = float("nan")
    seconds: float = 0.0
    message: str = ""
    certificate: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"solver     {self.solver}",
            f"status     {self.status.value}",
            f"residual   {self.residual:.2e}",
            f"time       {self.seconds:.3g} s" + (f", {self.n_iter} steps" if self.n_iter else ""),
        ]
        lines += [f"note       {self.message}"] if self.message else []
        lines += [f"{name:<10} {_short(value)}" for name, value in self.certificate.items()]
        return "\n".join(lines)


def _short(value: Any) -> str:
    return f"{value:.3e}" if isinstance(value, float) else str(value)
