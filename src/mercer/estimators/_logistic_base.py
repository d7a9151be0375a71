"""What the two estimators of kernel logistic regression share: all but the choice of C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from .._errors import warn_caller
from .._points import length, take
from .._runtime import budget_in_bytes, check_budget, check_threads
from ..expansion import Expansion
from ..gram import RANK, Landmarks, working_bytes
from ..kernels import Kernel, on_indices
from ..solvers import (
    GradientDescent,
    Logistic,
    Loss,
    Minimum,
    Newton,
    Report,
    Softmax,
    Status,
    Whitened,
)
from ._base import KernelLike, Landmarked, NamedKernel
from ._decisions import Decisions
from ._labels import Labelled, instead_of_exact
from ._parameters import COUNT, POSITIVE, estimator, parameter
from ._weights import some_points

__all__ = ["LogisticEstimator", "Problem", "Task"]

_SOLVERS = {"auto", "newton", "path", "nystroem", "gradient"}
_EXACT = 5000  # points, at most, that "auto" treats exactly
_FACTOR = 0.1  # of the shifts along a path
_MISSED = 1e-3  # of the objective: what rounding of K may hide


class Task(NamedTuple):
    """The finite problem that is left of a fit: sum_i v_i loss(y_i, F w + b) + mu/2 |w|^2."""

    F: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    n_classes: int

    def coded(self) -> tuple[np.ndarray, Loss]:
        """Return +1 and -1 for two classes, unit vectors for more, and the loss they are for."""
        if self.n_classes == 2:
            return 2.0 * self.labels[:, None] - 1.0, Logistic()
        return np.eye(self.n_classes)[self.labels], Softmax()


class Problem(NamedTuple):
    """All that a fit knows before it begins to search."""

    kernel: Kernel
    solver: Newton | GradientDescent
    phi: Whitened
    classes: np.ndarray
    task: Task


@estimator(kw_only=True)
class LogisticEstimator(Decisions, Landmarked, NamedKernel):
    """A classifier whose log-odds are functions of the RKHS; see KernelLogisticRegression.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit constants b, which are not penalised.
    class_weight : dict, "balanced" or None
        Weights of classes, which multiply those of the points; "balanced" makes their sums equal.
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
    class_weight: dict | str | None = parameter(dict, StrOptions({"balanced"}), None, default=None)
    tol: float = parameter(POSITIVE, default=1e-10)
    max_iter: int | None = parameter(COUNT, None, default=None)
    solver: str = parameter(StrOptions(_SOLVERS), default="auto")

    _copies = 0  # of F that are made beside it

    # ------------------------------------------------------------------ what a fit is made of

    def _problem(self, data: Labelled) -> Problem:
        """Return what is to be minimised, in coordinates in which |f| = |w|."""
        some = np.flatnonzero(data.weights)
        w, q = data.weights[some], len(data.classes)
        whole = len(some) == length(data.X)
        counted = data.X if whole else some_points(data.X, some, self._precomputed)
        even = self._precomputed or np.all(w == w[0])
        kernel: Kernel = self._make_kernel(self.gamma).resolve(counted, None if even else w)
        tiles = working_bytes(kernel, counted, None, 0, check_threads(None))
        name, rank = self._plan(len(some), q, tiles)
        if name == "nystroem":
            phi = self._nystroem(kernel, data.X, some, q, rank, tiles)
        else:
            text = f"solver={name!r} for {len(some)} points (solver='nystroem' needs less)"
            needed = tiles + self._bytes(name, len(some), len(some), q)
            check_budget(needed, self.max_memory, text)
            phi = Whitened.exact(kernel, counted, max_memory=self.max_memory)
            if self._precomputed and not whole:
                phi = replace(phi, points=some[phi.points])
        self._say(phi.message)
        if name == "gradient":
            solver: Any = GradientDescent(self.tol, self.max_iter or 10_000)
        else:
            path = _FACTOR if name == "path" else None
            needed = tiles + self._bytes(name, len(some), phi.F.shape[1], q)
            spare = max(budget_in_bytes(self.max_memory) - needed, 0)
            joint = min(Newton.joint, int(np.sqrt(spare / 24)))
            solver = Newton(self.tol, self.max_iter or 100, path, joint)
        return Problem(kernel, solver, phi, data.classes, Task(phi.F, data.labels[some], w, q))

    def _plan(self, n: int, q: int, tiles: int) -> tuple[str, int | None]:
        """Return the solver, and the rank for landmarks."""
        if self.solver != "auto":
            return self.solver, self.rank
        budget = budget_in_bytes(self.max_memory) - tiles
        if n <= _EXACT and self._bytes("newton", n, n, q) <= budget:
            return "newton", None
        rank = self.rank
        if rank is None and isinstance(self.landmarks, str):
            fits = (
                m for m in range(min(n, RANK), 0, -1) if self._bytes("nystroem", n, m, q) <= budget
            )
            rank = next(fits, 1)
        return "nystroem", rank

    def _bytes(self, solver: str, n: int, m: int, q: int) -> int:
        """Return the memory for m coordinates of n points and q classes."""
        outputs, given = (1 if q == 2 else q), 8 * n * n * self._precomputed
        rows = 8 * n * m * (1 + self._copies)
        if solver == "gradient":
            return rows + 16 * n * n + 160 * n * outputs
        chosen = 8 * n * m + given if solver == "nystroem" else 0
        return rows + chosen + Newton.workspace(n, m, outputs)

    def _nystroem(
        self, kernel: Kernel, X: Any, some: np.ndarray, q: int, rank: int | None, tiles: int
    ) -> Whitened:
        """Return coordinates on landmarks; "auto" warns that they are not all."""
        n, chosen = len(some), Landmarks(rank, self.landmarks, self.random_state)
        m = chosen.count(n)
        text = f"solver='nystroem' for {n} points on rank={m} landmarks"
        check_budget(tiles + self._bytes("nystroem", n, m, q), self.max_memory, text)
        kernel, points = on_indices(kernel, X)
        phi = Whitened.nystroem(
            kernel,
            points if n == length(points) else take(points, some),
            chosen,
            max_memory=self.max_memory,
        )
        return instead_of_exact(phi, n, "newton") if self.solver == "auto" else phi

    def _minimize(
        self,
        problem: Problem,
        task: Task,
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
        Y, loss = task.coded()
        found = problem.solver.minimize(
            task.F,
            Y,
            loss,
            task.weights,
            shift,
            self.fit_intercept,
            start,
            self._say if self.verbose else None,
            warn=False,
        )
        if task.n_classes == 2:
            return found
        w, b = found.weights, found.intercept
        return found._replace(weights=w - w.mean(axis=1, keepdims=True), intercept=b - b.mean())

    def _certified(self, problem: Problem, found: Minimum, C: float) -> Report:
        """Return the report, in units of C sum_i v_i loss_i + |f|^2 / 2."""
        report, phi, task = found.report, problem.phi, problem.task
        scales = {"objective": C, "gap": C, "decrement": float(np.sqrt(C))}
        numbers = {name: scales.get(name, 1) * v for name, v in report.certificate.items()}
        Y, loss = task.coded()
        slopes = loss(task.F @ found.weights + found.intercept, Y).slopes
        with np.errstate(over="ignore"):
            missed = phi.missed(C * task.weights[:, None] * slopes)
        numbers["left out"] = missed
        status, messages = report.status, [phi.message, report.message]
        if not phi.approximate and missed > _MISSED * numbers["objective"]:
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
