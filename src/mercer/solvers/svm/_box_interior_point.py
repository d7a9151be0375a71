"""Support vector machines on explicit features, by an interior-point method with crossover.

    min_v  1/2 v^T K v + q^T v,     lower <= v <= upper,     the sum of v in each group is fixed

for K = F F^T, where F has n rows and m columns.  `InteriorPointQP` takes about 20 steps of O(n m^2)
each, whatever C is.  The crossover `find_vertex` then determines which variables are at their
bounds; at most m + 2 of them are not.  If this does not give a solution, `BlockSMO` continues.

An F with more columns than rows is replaced by R^T of the QR factorisation F^T = Q R, which has
the same K and n columns.

The result v is rounded to float64, which limits the accuracy of f = K v.  Scaling F by s has the
same effect as scaling C by s^2.  For columns of size 10^8 and C = 1, the sum F^T v loses 16 digits,
so that no v in float64 gives the right f.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._core import Stopwatch, check_budget, entry_point
from ...gram import KernelRows
from ...kernels import Linear
from .._blocked_products import matvec, rmatvec, squared_row_norms
from .._box_qp import PrimalDualPoint
from .._cost_model import Cost
from .._report import Report, Status
from ._block_smo import BlockSMO, DualProgress, ProgressCallback
from ._crossover import VertexSolution, better_of, evaluate_at
from ._dual_problem import MAX_HIDDEN_VIOLATION, Dual, DualSolution
from ._interior_point_qp import InteriorPointQP

__all__ = ["BoxInterior"]


@dataclass(frozen=True)
class _InteriorTuning:
    """Tuning constants of the interior-point method."""

    # The iteration ends after this many steps without progress.  With infinite bounds, the first
    # steps may make no progress.
    max_stalled_steps: int = 15
    # Maximum number of attempts to find a vertex.  The next attempt is made when the error is a
    # thousand times smaller.
    max_vertex_attempts: int = 6
    # SMO may take this many steps for each step of max_iter, plus one for every
    # `variables_per_smo_step` variables.
    smo_steps_per_step: int = 100
    variables_per_smo_step: int = 200
    # Smallest cache for rows of K, in bytes.
    min_cache_bytes: int = 2**24
    # A step allocates this many values for each variable.
    numbers_per_variable: int = 40
    # Size of a block of rows of F in extended precision, in bytes.
    block_bytes: int = 2**24
    # Steps assumed by the cost model; most problems take 12 to 25.
    expected_steps: int = 20
    # F^T v counts as 0 if its norm, relative to |v| |F|, is below this.
    zero_tolerance: float = 1e-6


_TUNING = _InteriorTuning()


@entry_point
@dataclass(frozen=True)
class BoxInterior:
    """Solve the dual of a support vector machine with K = F F^T by an interior-point method.

    A step takes O(n m^2) operations for F of shape (n, m).

    Parameters
    ----------
    tol : float, default=1e-3
        Violation of the optimality conditions at which the solver stops, in units of the gradient;
        see `Dual.violation`.  If rounding errors could exceed ten times this value, the violation
        is computed in extended precision.
    max_iter : int, default=200
        Largest number of interior-point steps.  If the violation is still above `tol`, SMO
        continues, with at most max_iter * (100 + n_variables / 200) steps.
    max_memory : int, str or None
        Memory budget in addition to F; None for half of the memory of the computer.  The solver
        needs about 40 values for each variable, and two matrices of up to 3 (m + 2) rows, with
        m <= n, for the free variables.  If m > n, F is also copied.  If SMO is needed, rows of K
        are cached.  The cache is as large as F, but at least 16 MiB, and within the budget.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.svm import BoxInterior
    >>> from mercer.solvers.svm import Dual
    >>> F = np.array([[-3.0], [-1.0], [1.0], [2.0]])
    >>> dual = Dual.classify(np.array([-1.0, -1.0, 1.0, 1.0]), np.full(4, 10.0))
    >>> BoxInterior().minimize(F, dual).coefficients.round(6) + 0.0
    array([ 0. , -0.5,  0.5,  0. ])
    """

    tol: float = 1e-3
    max_iter: int = 200
    max_memory: Any = field(default=None, repr=False)

    @staticmethod
    def workspace(n: int, m: int, variables: int) -> int:
        """Return the memory in bytes that the solver needs in addition to F."""
        reduced = n * m + 2 * n * n if m > n else 0
        numbers = (
            2 * _equations(n, m, variables) ** 2
            + _TUNING.numbers_per_variable * variables
            + reduced
        )
        return 8 * numbers + min(_TUNING.block_bytes, 16 * n * m)

    @staticmethod
    def cost(n: int, m: int) -> Cost:
        """Return the expected cost for F of shape (n, m)."""
        m = min(n, m)
        step = Cost(products=2.0 * n * m * m, factors=m**3 / 3.0, read=8.0 * n * 120, calls=20)
        return _TUNING.expected_steps * step

    @np.errstate(all="ignore")  # a value that is not finite ends the iteration, and is reported
    def minimize(self, F: np.ndarray, dual: Dual, follow: ProgressCallback = None) -> DualSolution:
        """Return the minimum of a dual problem for K = F F^T.

        No warning is issued if it does not converge; see the status in the report.

        Parameters
        ----------
        F : ndarray of shape (n, m)
            The features of the points.
        dual : Dual
        follow : callable, optional
            Called with a `DualProgress` after each step.

        Returns
        -------
        solution : DualSolution
        """
        watch = Stopwatch()
        n, m = F.shape
        check_budget(
            self.workspace(n, m, len(dual)),
            self.max_memory,
            f"the interior-point method for {n} rows of {m} columns, which solves up to "
            f"{_equations(n, m, len(dual))} equations (solver='smo' does not solve equations),",
        )
        if m > n:
            F = np.ascontiguousarray(np.transpose(np.linalg.qr(F.T, mode="r")))
        program = InteriorPointQP(F, dual)
        point, vertex = program.initial_iterate(), program.initial_point()
        target, stalled, attempts = np.inf, 0, _TUNING.max_vertex_attempts
        while vertex.violation > self.tol and attempts and point.n_iter < self.max_iter:
            next_point = program.step(point)
            if next_point is not None:
                stalled = 0 if program.decreased(point, next_point) else stalled + 1
                point = next_point
            error = program.error(point)
            if next_point is not None and follow is not None:
                follow(DualProgress(point.n_iter, watch.seconds, error, -program.value(point)))
            is_last = (
                next_point is None
                or stalled == _TUNING.max_stalled_steps
                or point.n_iter == self.max_iter
            )
            if is_last or (error <= target and program.is_near_vertex(point, self.tol)):
                vertex = better_of(vertex, program.vertex(point, self.tol), self.tol)
                target, attempts = 1e-3 * error, 0 if is_last else attempts - 1
        smo, v = None, program.all_variables(point)
        unbounded = vertex.violation > self.tol and _is_unbounded(F, dual, v)
        hopeless = unbounded or program.is_limited_by_rounding(vertex) or _overflows(F, dual)
        if vertex.violation > self.tol and not hopeless:
            smo = self._continue_with_smo(
                F, replace(dual, start=vertex.v), _continued_progress(follow, point, watch)
            )
            vertex = better_of(vertex, evaluate_at(F, dual, smo.variables), self.tol)
        messages = []
        vertex = vertex._replace(violation=_reliable_violation(F, dual, vertex, self.tol))
        if vertex.violation > self.tol:
            reason = _unbounded_message(dual, v) if unbounded else self._reason(F, dual, vertex)
            messages.append(f"after {point.n_iter} steps, {reason}")
        if smo is not None:
            messages.append(
                f"{smo.report.n_iter} SMO steps were taken after the interior-point method"
            )
        report = Report(
            repr(self),
            Status.CONVERGED if vertex.violation <= self.tol else Status.NOT_CONVERGED,
            point.n_iter,
            vertex.violation,
            watch.seconds,
            "; ".join(messages),
        )
        smo_certificate = {} if smo is None else smo.report.certificate
        n_free = int(np.count_nonzero(dual.free(vertex.v)))
        details = {
            "n_free": n_free,  # number of free variables; in regression, each point has two
            "n_bound": int(np.count_nonzero(vertex.v)) - n_free,
            "entries": smo_certificate.get("entries", 0),
            "cache_hits": smo_certificate.get("cache_hits", float("nan")),
            "curvature": 0.0,
        }
        values = matvec(F, rmatvec(F, dual.coefficients(vertex.v)))
        return dual.solution(vertex.v, values, vertex.violation, report, details)

    def _continue_with_smo(
        self, F: np.ndarray, dual: Dual, follow: ProgressCallback
    ) -> DualSolution:
        """Solve the problem by SMO, starting from `dual.start`."""
        X = F if F.shape[1] else np.zeros((len(F), 1))
        max_steps = self.max_iter * (
            _TUNING.smo_steps_per_step + len(dual) // _TUNING.variables_per_smo_step
        )
        cache_bytes = max(X.nbytes, _TUNING.min_cache_bytes)
        rows = KernelRows(Linear(), X, cache_bytes=cache_bytes, max_memory=self.max_memory)
        return BlockSMO(tol=self.tol, max_iter=max_steps).minimize(rows, dual, follow)

    def _reason(self, F: np.ndarray, dual: Dual, vertex: VertexSolution) -> str:
        """Return the reason why no minimum was found, with advice for the user."""
        if not np.isfinite(vertex.violation) or _overflows(F, dual):
            largest = np.abs(F).max(initial=0.0)
            return (
                f"values of f are not finite, or may overflow, for features of up to {largest:.1e} "
                f"and a C of up to {_width(dual).max():.1e}. Scale the features, or decrease C"
            )
        return (
            f"the violation is {vertex.violation:.1e}, above tol={self.tol:g}, for gradients of up "
            f"to {np.abs(vertex.g).max():.1e}. The usual cause is features far larger than 1, or a "
            f"huge C, so that the rounding of v alone causes this violation. Scale the features, "
            f"decrease C, or increase tol or max_iter"
        )


def _reliable_violation(F: np.ndarray, dual: Dual, vertex: VertexSolution, tol: float) -> float:
    """Return the violation; it is recomputed in extended precision if rounding may hide it."""
    v, largest = vertex.v, float(squared_row_norms(F).max(initial=0.0))
    if not np.isfinite(vertex.violation) or dual.hidden_violation(v, largest, tol) < 0.0:
        return vertex.violation
    c, step = dual.coefficients(v), max(1, _TUNING.block_bytes // (16 * max(1, F.shape[1])))
    blocks = [slice(start, start + step) for start in range(0, len(F), step)]
    w = np.zeros(F.shape[1], dtype=np.longdouble)
    for rows in blocks:
        w += c[rows] @ F[rows].astype(np.longdouble)
    f = np.concatenate([F[rows].astype(np.longdouble) @ w for rows in blocks])
    violation = float(dual.violation(v, dual.gradient(f)))
    return violation if violation > MAX_HIDDEN_VIOLATION * tol else vertex.violation


def _continued_progress(
    follow: ProgressCallback, point: PrimalDualPoint, watch: Stopwatch
) -> ProgressCallback:
    """Return a progress callback for SMO; its steps and time include the interior-point method."""
    if follow is None:
        return None
    return lambda progress: follow(
        progress._replace(n_iter=point.n_iter + progress.n_iter, seconds=watch.seconds)
    )


def _equations(n: int, m: int, variables: int) -> int:
    """Return the largest number of equations that the crossover may have to solve."""
    columns = min(n, m) + 2
    return columns + min(2 * columns, variables)


def _width(dual: Dual) -> np.ndarray:
    return dual.upper - dual.lower


def _overflows(F: np.ndarray, dual: Dual) -> bool:
    """Whether K v may overflow for some v between the bounds; an infinite distance counts as 1."""
    width = _width(dual)
    total = np.where(np.isinf(width), 1.0, width).sum()
    return not np.isfinite(squared_row_norms(F).max(initial=0.0) * total)


def _is_unbounded(F: np.ndarray, dual: Dual, v: np.ndarray) -> bool:
    """Whether the objective decreases without limit in the direction v.

    This is so if F^T v = 0 and q^T v < 0.  Only variables with an infinite bound are considered.
    """
    d = np.where(np.isinf(_width(dual)), v, 0.0)
    largest = np.abs(d).max(initial=0.0)
    if not largest > 0:
        return False
    d /= largest
    w = rmatvec(F, dual.coefficients(d))
    rows = np.sqrt(squared_row_norms(F))[dual.points]
    decreases = -float(dual.linear @ d) > _TUNING.zero_tolerance * float(
        np.abs(dual.linear) @ np.abs(d)
    )
    return decreases and float(np.linalg.norm(w)) <= _TUNING.zero_tolerance * float(
        rows @ np.abs(d)
    )


def _unbounded_message(dual: Dual, v: np.ndarray) -> str:
    """Return the message for a problem whose objective has no minimum."""
    cause = "the classes overlap: no hard margin exists; choose a finite C"
    if len(dual) > dual.n:  # regression has two variables for each point
        cause = "no f is within epsilon of all targets; choose a finite C, or raise epsilon"
    return f"the variables grow without bound, up to {np.abs(v).max():.1e}: {cause}"
