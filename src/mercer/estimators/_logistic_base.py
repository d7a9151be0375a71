"""What the two estimators of kernel logistic regression share: all but the choice of C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from .._errors import warn_caller
from .._runtime import budget_in_bytes, check_threads
from ..expansion import Expansion
from ..gram import working_bytes
from ..kernels import Kernel
from ..solvers import (
    GradientDescent,
    Minimum,
    Newton,
    RegularisedRisk,
    Report,
    Status,
    Whitened,
    whiten,
)
from ._base import KernelLike, Landmarked, NamedKernel
from ._decisions import Decisions, coded
from ._parameters import COUNT, POSITIVE, estimator, parameter
from ._sample import Sample

__all__ = ["LogisticEstimator", "Problem"]

_SOLVERS = {"auto", "newton", "path", "nystroem", "gradient"}
_EXACT = 5000  # "auto" is exact up to so many points
_PATH_FACTOR = 0.1  # between two shifts along a path
_MOST_MISSED = 1e-3  # the part of the objective that rounding of K may hide without a warning


class Problem(NamedTuple):
    """All that a fit knows before it begins to search."""

    kernel: Kernel
    solver: Newton | GradientDescent
    phi: Whitened
    classes: np.ndarray
    labels: np.ndarray
    risk: RegularisedRisk


@estimator(kw_only=True)
class LogisticEstimator(Decisions, Landmarked, NamedKernel):
    """A classifier whose log-odds are functions of the RKHS; see KernelLogisticRegression.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit constants b, which are not penalised.
    tol : float
        Stop when the objective is certified to be at most this part of itself above its minimum.
    max_iter : int or None
        Newton steps, of which a few are enough, or iterations of "gradient", which needs many;
        None for 100 and 10 000.
    solver : {"auto", "newton", "path", "nystroem", "gradient"}
        See KernelLogisticRegression.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    fit_intercept: bool = parameter("boolean", default=True)
    tol: float = parameter(POSITIVE, default=1e-10)
    max_iter: int | None = parameter(COUNT, None, default=None)
    solver: str = parameter(StrOptions(_SOLVERS), default="auto")

    _copies: ClassVar[int] = 0  # how many copies of F are made beside it

    # ------------------------------------------------------------------ what a fit is made of

    def _problem(self, sample: Sample) -> Problem:
        """Return what is to be minimised, in coordinates in which |f| = |w|."""
        n, q = len(sample), len(sample.classes)
        kernel = sample.resolve(self._make_kernel(self.gamma))
        values = sample.evaluated(kernel, self.max_memory)
        tiles = working_bytes(values, sample.points, None, 0, check_threads(None))

        def needed(solver: str, m: int) -> int:
            return tiles + self._bytes(solver, n, m, q)

        phi = whiten(
            values,
            sample.points,
            self.solver,
            self._chosen,
            needed,
            exact="newton",
            most=_EXACT,
            what=f"solver={self.solver!r} for {n} points",
            max_memory=self.max_memory,
        )
        self._say(phi.message)
        if self.solver == "gradient":
            solver: Any = GradientDescent(self.tol, self.max_iter or 10_000)
        else:
            path = _PATH_FACTOR if self.solver == "path" else None
            taken = needed("nystroem" if phi.approximate else "newton", phi.F.shape[1])
            spare = max(budget_in_bytes(self.max_memory) - taken, 0)
            joint = min(Newton.joint, int(np.sqrt(spare / 24)))
            solver = Newton(self.tol, self.max_iter or 100, path, joint)
        targets = coded(sample.labels, q)
        risk = RegularisedRisk(phi.F, *targets, sample.counts, intercept=self.fit_intercept)
        return Problem(kernel, solver, phi, sample.classes, sample.labels, risk)

    def _bytes(self, solver: str, n: int, m: int, q: int) -> int:
        """Return the memory for m coordinates of n points and q classes."""
        outputs, given = (1 if q == 2 else q), 8 * n * n * self._precomputed
        rows = 8 * n * m * (1 + self._copies)
        if solver == "gradient":
            return rows + 16 * n * n + 160 * n * outputs
        chosen = 8 * n * m + given if solver == "nystroem" else 0
        return rows + chosen + Newton.workspace(n, m, outputs)

    def _minimize(
        self,
        problem: Problem,
        risk: RegularisedRisk,
        C: float,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Minimum:
        """Return the minimum at this C, with functions and intercepts that sum to 0 over classes.

        They do at the exact minimum, up to a common constant in the intercepts that nothing sees;
        making it so lowers |w| and changes no probability.
        """
        with np.errstate(over="ignore"):
            shift = float(np.divide(1.0, C))
        if not np.isfinite(shift):
            raise ValueError(f"C={float(C)!r} is too small: 1 / C overflows. Raise C")
        found = problem.solver.minimize(replace(risk, shift=shift), start, self._teller, warn=False)
        if risk.Y.shape[1] == 1:
            return found
        w, b = found.weights, found.intercept
        return found._replace(weights=w - w.mean(axis=1, keepdims=True), intercept=b - b.mean())

    def _certified(self, problem: Problem, found: Minimum, C: float) -> Report:
        """Return the report, in units of C sum_i v_i loss_i + |f|^2 / 2."""
        report, phi = found.report, problem.phi
        scales = {"objective": C, "gap": C, "decrement": float(np.sqrt(C))}
        numbers = {name: scales.get(name, 1) * v for name, v in report.certificate.items()}
        with np.errstate(over="ignore"):
            missed = phi.missed(C * found.dual)
        numbers["left out"] = missed
        status, messages = report.status, [phi.message, report.message]
        if not phi.approximate and missed > _MOST_MISSED * numbers["objective"]:
            text = (
                f"the rounding of K hides functions that might lower the objective of "
                f"{numbers['objective']:.3g} by up to {missed:.1e}; the usual cause is features of "
                f"very different, or very large, size. Scale them, or lower C"
            )
            warn_caller(text, ConvergenceWarning)
            messages.append(text)
        if phi.approximate or len(messages) > 2:
            numbers["trace left"] = phi.residual
            status = Status.APPROXIMATE if status is Status.CONVERGED else status
        message = "; ".join(filter(None, messages))
        return replace(report, status=status, message=message, certificate=numbers)

    def _keep(self, problem: Problem, found: Minimum, report: Report) -> None:
        """Set all that a fit has learned."""
        self.kernel_, self.solver_, self.classes_ = problem.kernel, problem.solver, problem.classes
        self.X_fit_ = problem.phi.points
        self.dual_coef_ = problem.phi.coefficients(found.weights)
        self.intercept_ = found.intercept
        self.expansion_ = Expansion(self.kernel_, self.X_fit_, self.dual_coef_)
        self.n_iter_, self.report_ = report.n_iter, report
