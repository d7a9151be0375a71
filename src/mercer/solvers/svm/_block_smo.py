"""Support vector machines by block-wise sequential minimal optimisation (SMO).

    repeat  add the variables that violate the optimality conditions most to the working set W
            optimise v_W by SMO on the block K[W, W]            compiled, in the cache
            f += K[:, W] dv_W                                   rows of K, read once
    until   max g over v > lower  -  min g over v < upper  <= tol

Here v are the dual variables, f = K v, and g is the gradient.  LIBSVM changes two variables and
then updates all n values of f.  In contrast, thousands of steps are taken here inside a block that
fits in the processor cache, and only their sum is applied to all points.  Rows of K
are evaluated many at a time and cached in float32 (`KernelRows`), but f is in float64.  At the end,
f is recomputed with K in float64 wherever the error of float32 could affect the result.  This error
is bounded by the rounding error of an entry of K times the sum of all |dv|.

If K is too large for the row cache, points whose variables are at the correct bound are left out
temporarily (shrinking): rows without their columns take less memory and time.  Afterwards, f is
updated at these points, and the search continues with all points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._core import Stopwatch, entry_point, one_blas_thread
from ...gram import KernelRows, RowsView
from .._report import Report, Status
from ._batched_smo import BatchedSMO, SMOBatch, StreamedSMO
from ._dual_problem import MAX_HIDDEN_VIOLATION, Dual, Duals
from ._dual_solutions import (
    DualProgress,
    DualSolution,
    DualSolutions,
    FollowCallback,
    ReadableRows,
    Reports,
    StopReason,
)
from ._refinement import QPBatch, refine
from ._smo_steps import BoxedGroups, WorkingSet, solve_block


@dataclass(frozen=True)
class _SMOTuning:
    """Tuning constants of block SMO."""

    # A problem with at most this many variables is a single block, for which all of K is stored.
    max_single_block: int = 2200
    # The next block is chosen when the violation of a block has fallen to this fraction.
    block_accuracy: float = 0.1
    # The next block is chosen after at most this many steps per variable of the block.
    steps_per_variable: int = 100
    # In a single block, the equations of all free variables are first solved after this many steps
    # per variable.
    steps_per_refinement: int = 10
    # Largest number of steps between two progress reports; an interrupt takes effect only then.
    steps_per_report: int = 100_000
    # A converged small problem is refined to full precision in at most this many rounds.
    max_refinements: int = 5
    # With max_iter=-1, at least this many steps are allowed.
    min_step_limit: int = 10**7
    # A search without progress may be given up after this many progress reports.
    min_reports: int = 10
    # The search is given up if all remaining steps would reduce the gap by less than this fraction.
    min_relative_gain: float = 0.1
    # A small problem is not refined further if its violation, relative to the gradient, is at most
    # this.
    exact_violation: float = 1e-11
    # Number of blocks between two attempts to leave points out (shrinking).
    blocks_per_shrinking: int = 20
    # Points are left out only if at most this fraction of them is active.
    max_active_fraction: float = 0.5
    # f is not recomputed if its error, relative to tol, is at most this.
    harmless_error: float = 1e-3


_TUNING = _SMOTuning()


@entry_point
@dataclass(frozen=True)
class BlockSMO:
    """Train a support vector machine by block-wise sequential minimal optimisation (SMO).

    It solves the dual problem `Dual` for any kernel, and reads only the rows of K that it needs.
    SMO changes two variables at a time.  Here, thousands of such steps are taken inside a block of
    K that fits the processor cache, before f is updated at all points.  Use it for nonlinear
    kernels; for linear kernels and many points, `BoxInterior` is often faster.

    The certificate of the report contains the duality gap: the primal objective exceeds its minimum
    by at most this value.

    Parameters
    ----------
    tol : float, default=1e-3
        Stop when no pair of variables violates the optimality conditions by more than this, in
        units of f.  The default is usually enough for predictions; smaller values give more exact
        coefficients at the cost of more steps.  If rounding errors could exceed ten times this
        value, the solution is reported as not converged.  The search ends earlier only because of
        `max_iter`, or because rounding prevents further steps.
    max_iter : int, default=-1
        Maximum number of steps, each of which changes two variables.  -1 allows 10^7 steps, or 100
        per point if that is more, and also ends a search without progress.  This happens after at
        least 10^6 steps, if the second half of them has halved neither the violation nor the
        duality gap, and all remaining steps would reduce the gap by less than a tenth at this
        rate.
    shrinking : bool, default=True
        Whether points are left out temporarily if not all of K fits in the row cache.

    See Also
    --------
    Dual : The problem.
    BoxInterior : Interior-point method on explicit features.
    mercer.gram.KernelRows : Cached rows of K.

    References
    ----------
    Platt, "Fast training of support vector machines using sequential minimal optimization", in
    "Advances in kernel methods: support vector learning", MIT Press, 1999.

    Joachims, "Making large-scale SVM learning practical", in the same book, for working sets and
    shrinking.

    Fan, Chen and Lin, "Working set selection using second order information for training support
    vector machines", Journal of Machine Learning Research, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import KernelRows
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers.svm import Dual
    >>> from mercer.solvers.svm import BlockSMO
    >>> X, signs = np.array([[-1.0], [1.0], [3.0]]), np.array([-1.0, 1.0, 1.0])
    >>> found = BlockSMO().minimize(KernelRows(Linear(), X), Dual.classify(signs, np.ones(3)))
    >>> found.coefficients
    array([-0.5,  0.5,  0. ])
    >>> print(found.report.status.value, found.report.certificate["n_free"])
    converged 2
    """

    tol: float = 1e-3
    max_iter: int = -1
    shrinking: bool = True

    @one_blas_thread  # the blocks are too small to benefit from several threads
    def minimize(
        self, data: ReadableRows, dual: Dual, follow: FollowCallback = None
    ) -> DualSolution:
        """Return the minimum of a dual problem.

        No warning is issued if it does not converge; see the status in the report.

        Parameters
        ----------
        data : KernelRows or RowsView
            The rows of K of the points.
        dual : Dual
            The problem.
        follow : callable or None, default=None
            Called with a `DualProgress` from time to time.

        Returns
        -------
        DualSolution
            Variables, coefficients and values of f, multipliers and report.
        """
        view = data.view() if isinstance(data, KernelRows) else data
        if view.n < view.rows.n:
            return self._minimize_one(view, dual, follow)
        duals = Duals.of([dual], np.arange(dual.n))
        callbacks = (lambda p: follow) if follow else None
        return self.minimize_all(view.rows, duals, lambda p: view, callbacks)[0]

    def _minimize_one(self, view: RowsView, dual: Dual, follow: FollowCallback) -> DualSolution:
        search = _SMOState(self, view, dual, follow)
        if len(dual) <= _TUNING.max_single_block and view.holds(len(dual)):
            search.solve_whole()
        else:
            search.solve_in_blocks()
        return search.solution()

    @one_blas_thread
    def minimize_all(
        self,
        rows: KernelRows,
        duals: Duals,
        view: Callable[[int], RowsView],
        follow: Callable[[int], FollowCallback] | None = None,
    ) -> DualSolutions:
        """Return the minima of several dual problems; small problems are solved together.

        Parameters
        ----------
        rows : KernelRows
            The rows of K of the whole sample.
        duals : Duals
            The problems, as one concatenated problem.
        view : callable
            Function that returns a RowsView with the rows and columns of the points of problem p.
        follow : callable or None, default=None
            Function that returns the progress callback of problem p, or None.

        Returns
        -------
        DualSolutions
            A sequence with the `DualSolution` of each problem.
        """
        largest, entries_before = int(np.diff(duals.ends).max()), rows.entries
        K = rows.whole(largest) if largest <= _TUNING.max_single_block else None
        watch, all_duals = Stopwatch(), duals.all
        box = all_duals.lower, all_duals.upper
        programs = QPBatch(duals.rows, duals.starts, all_duals.linear, *box)
        options = programs, all_duals.start, self.tol, self.max_iter
        batch: SMOBatch
        if K is not None:
            batch = BatchedSMO(K, *options)
        elif (
            largest <= _TUNING.max_single_block
            and (pairs := duals.class_pairs(rows.ends)) is not None
            and (n_lanes := rows.concurrent_pairs(pairs))
        ):
            batch = StreamedSMO(rows, pairs, n_lanes, *options)
        else:
            one_by_one = (
                self._minimize_one(view(p), dual, follow(p) if follow else None)
                for p, dual in enumerate(duals)
            )
            return DualSolutions.of(one_by_one, duals)
        size_v = np.add.reduceat(np.abs(batch.v), duals.ends[:-1])
        rounding = 4.0 * np.finfo(float).eps * rows.largest * size_v
        violation = np.where(rounding > MAX_HIDDEN_VIOLATION * self.tol, rounding, -np.inf)
        violation = np.maximum(batch.violation, violation)
        n, fraction = len(duals), 1.0 / len(duals)
        details = {
            "entries": np.full(n, int((rows.entries - entries_before) * fraction)),
            "cache_hits": np.full(n, np.nan),
            "curvature": batch.curvature,
        }
        numbers = batch.steps, violation, np.full(n, watch.seconds * fraction)
        reports = Reports(repr(self), [Status.CONVERGED] * n, *numbers, [""] * n, details)
        solutions = DualSolutions.certified(duals, batch.v, batch.g, batch.multipliers, reports)
        for p in np.flatnonzero(~(violation <= self.tol)).tolist():
            search = _SMOState(self, view(p), duals[p], follow(p) if follow else None)
            solutions.put(p, search.continue_from(solutions[p].variables, batch, p))
        if follow is not None:
            for p, solution in enumerate(solutions):
                report = solution.report
                progress = report.n_iter, report.seconds, report.residual
                callback = follow(p)
                if callback is not None:
                    callback(DualProgress(*progress, report.certificate["dual"]))
        return solutions


class _SMOState:
    """The state of block SMO on one dual problem: v, f = K v, and counters."""

    def __init__(
        self, solver: BlockSMO, view: RowsView, dual: Dual, follow: FollowCallback
    ) -> None:
        self.solver, self.view, self.dual, self.follow = solver, view, dual, follow
        self.watch, self.tol, self.limit = Stopwatch(), solver.tol, solver.max_iter
        if solver.max_iter < 0:
            self.limit = max(_TUNING.min_step_limit, 100 * dual.n)
        self.v = dual.start.copy()
        self.f = view.product(dual.coefficients(self.v))
        self.drift = 0.0  # the sum of |change of v| since f was computed with K in float64
        self.steps = self.negative_steps = 0
        self.stop = StopReason.CONVERGED  # GIVEN_UP if the search makes no progress
        self.reason = ""  # why the search was given up
        # tuples (number of steps, violation, gap, objective)
        self.history: list[tuple[int, float, float, float]] = []
        self.curvature = 0.0
        self.K = np.empty((0, 0))  # the full matrix, for a small problem
        # For a search over a subset of the points: the objective, v and f at its start.
        self.subset_origin: tuple[float, np.ndarray, np.ndarray] | None = None

    def subset_search(self, subset: np.ndarray, members: np.ndarray) -> _SMOState:
        """Return a search over a subset of the points, with all other variables fixed.

        `members` are the indices of the variables of these points.
        """
        view, points = self.view.subset(subset), self.dual.points[members]
        dual = self.dual.select(members, len(subset), np.searchsorted(subset, points))
        # Start at 0, for which f is not evaluated: v and f are set below.
        dual = replace(dual, start=np.zeros(len(members)))
        search = _SMOState(self.solver, view, dual, self.follow)
        search.watch, search.limit, search.steps = self.watch, self.limit, self.steps
        search.v, search.f = self.v[members], self.f[subset]
        search.subset_origin = self._objective(), search.v.copy(), search.f.copy()
        return search

    def continue_from(self, v: np.ndarray, batch: SMOBatch, p: int) -> DualSolution:
        """Return the minimum of problem p, starting from the unfinished result of a batch."""
        self.v = v.copy()
        self.f = self.view.product(self.dual.coefficients(v))
        self.steps, self.negative_steps = int(batch.steps[p]), int(batch.negative_steps[p])
        self.curvature = float(batch.curvature[p])
        self.solve_whole()
        return self.solution()

    # ------------------------------------------------------------------ small problems

    def solve_whole(self) -> None:
        """Solve a small problem with the full K.

        If K is in float64, the problem is solved to full precision.
        """
        dual = self.dual
        self.K = K = self.view.matrix()
        if not np.array_equal(dual.points, np.arange(dual.n)):
            K = K[np.ix_(dual.points, dual.points)]
        if K.dtype == np.float64:
            self._refine(K, self._take_steps(K, self.tol))
            return
        self._take_steps(K, 0.5 * self.tol)
        while self._refresh() and dual.violation(self.v, dual.gradient(self.f)) > self.tol:
            before = self.steps
            self._take_steps(K, 0.5 * self.tol)
            if self.steps in (before, self.limit):
                break

    def _refine(self, K: np.ndarray, violation: float) -> None:
        """Refine a solution of accuracy `tol` to full precision.

        The number of steps is limited to about the number that was needed to reach `tol`.
        """
        dual, best, limit = self.dual, (violation, self.v), self.limit
        self.limit = min(limit, 2 * self.steps + 10 * len(dual))
        for _ in range(_TUNING.max_refinements):
            size = 1.0 + float(np.abs(self.f).max() + np.abs(dual.linear).max())
            goal = _TUNING.exact_violation * size
            if self.negative_steps or self.steps >= self.limit or best[0] <= goal:
                break
            violation = self._set_variables(self._refined_variables(K))
            best = min(best, (violation, self.v), key=lambda result: result[0])
            if best[0] > goal:
                self._set_variables(best[1])
                violation = self._take_steps(K, max(0.01 * best[0], goal))
                best = min(best, (violation, self.v), key=lambda result: result[0])
        self.limit = limit
        self._set_variables(best[1])  # the last v may be worse than the best one

    def _refined_variables(self, K: np.ndarray) -> np.ndarray:
        """Return v after changing its free variables such that their gradients become equal."""
        dual = self.dual
        starts = np.append(dual.starts, len(dual))[:3]
        program = QPBatch(np.arange(len(dual)), starts, dual.linear, dual.lower, dual.upper)
        return refine(K, program, self.v, dual.gradient(self.f))

    def _take_steps(self, K: np.ndarray, accuracy: float) -> float:
        """Take steps until the violation is at most `accuracy`, or the step limit is reached.

        SMO steps converge slowly if the problem is badly conditioned.  Therefore, from time to time
        the minimum over all free variables is computed, and used if its objective is better.
        """
        dual, max_steps = self.dual, _TUNING.steps_per_refinement * len(self.dual)
        boxes = BoxedGroups(np.arange(len(dual)), dual.starts, dual.lower, dual.upper)
        while True:
            old_v, g, v = self.v, dual.gradient(self.f), self.v.copy()
            step_limit = min(max_steps, _TUNING.steps_per_report, self.limit - self.steps)
            max_steps *= 2
            violation = self._move(K, boxes, g, v, accuracy, 0.0, step_limit)
            if K.dtype == np.float64:
                violation = self._set_variables(v)
                if violation > accuracy and not self.negative_steps and self.steps < self.limit:
                    objective = self._objective()
                    violation = self._set_variables(self._refined_variables(K))
                    if not self._objective() > objective:
                        violation = self._set_variables(v)
            else:
                self.v, self.drift = v, self.drift + float(np.abs(v - old_v).sum())
                self.f[dual.points] = g - dual.linear
            self._report_progress(violation)
            if violation <= accuracy or self.steps >= self.limit or not np.any(v != old_v):
                return violation

    def _set_variables(self, v: np.ndarray) -> float:
        """Set v, compute f with the full float64 K, and return the violation."""
        self.v, self.drift = v, 0.0
        self.f = self.K @ self.dual.coefficients(v)
        return self.dual.violation(v, self.dual.gradient(self.f))

    # ------------------------------------------------------------------ large problems

    def solve_in_blocks(self) -> None:
        """Solve a large problem, one working set at a time."""
        dual, view = self.dual, self.view
        working = WorkingSet(view, dual)
        # Solve to tol / 2, because the violation grows slightly when f is recomputed at the end.
        tol, max_block_steps = 0.5 * self.tol, _TUNING.steps_per_variable * working.size
        checked, rounds = False, 0
        while True:
            g = dual.gradient(self.f)
            violation = dual.violation(self.v, g)
            self._report_progress(violation)
            rounds += 1
            may_shrink = rounds % _TUNING.blocks_per_shrinking == 0 and violation > tol
            if may_shrink and self._shrink(g, working):
                checked = False
                continue
            if (violation <= tol or self.steps >= self.limit) and not checked:
                checked = True
                if self._refresh():
                    continue
            if violation <= tol or self.steps >= self.limit:
                return
            W = working.choose(g, self.v)
            occupied, limit = W >= 0, min(max_block_steps, self.limit - self.steps)
            columns = g, self.v, dual.lower, dual.upper
            g, v, lower, upper = (np.where(occupied, column[W], 0.0) for column in columns)
            boxes = BoxedGroups(np.arange(len(W)), working.starts, lower, upper)
            self._move(working.K, boxes, g, v, 0.5 * tol, _TUNING.block_accuracy, limit)
            moved = np.flatnonzero(occupied & (v != self.v[W]))
            if not len(moved):  # no progress is possible because of rounding
                self._refresh()
                return
            points = dual.points[W[moved]]
            change = v[moved] - self.v[W[moved]]
            self.v[W[moved]] = v[moved]
            if len(dual) > dual.n:
                points, inverse = np.unique(points, return_inverse=True)
                change = np.bincount(inverse, change)
            for first in range(0, len(points), view.capacity):
                chunk = slice(first, first + view.capacity)
                view.fetch(points[chunk])
                view.add(points[chunk], change[chunk], self.f)
            self.drift += float(np.abs(change).sum())
            checked = False

    def _shrink(self, g: np.ndarray, working: WorkingSet) -> bool:
        """Solve for the active points only, if they are few, and return whether that was done.

        A point is inactive if its variables are at the correct bound.
        """
        dual, view = self.dual, self.view
        if not (self.solver.shrinking and view.capacity < dual.n):
            return False
        active = np.zeros(len(dual), dtype=bool)
        for members, low, up in dual.multiplier_bounds(self.v, g):
            active |= members & (self.v < dual.upper) & (g <= low)
            active |= members & (self.v > dual.lower) & (g >= up)
        subset = np.unique(dual.points[active])
        if len(subset) > _TUNING.max_active_fraction * dual.n:
            return False
        members = np.flatnonzero(np.isin(dual.points, subset))
        if len(np.unique(dual.groups[members])) < dual.n_groups:
            return False
        working.clear()  # free the memory: the search over the subset has its own block
        search = self.subset_search(subset, members)
        try:
            search.solve_in_blocks()
        finally:
            view.restore(search.view)
        old_coefficients = dual.coefficients(self.v)
        self.v[members], self.f[subset] = search.v, search.f
        self.steps, self.negative_steps = search.steps, self.negative_steps + search.negative_steps
        self.curvature = min(self.curvature, search.curvature)
        self.limit, self.stop, self.reason = search.limit, search.stop, search.reason
        self.drift += search.drift
        others = np.setdiff1d(np.arange(dual.n), subset)
        self.f[others] += view.product(dual.coefficients(self.v) - old_coefficients, others)
        return True

    def _refresh(self) -> bool:
        """Recompute f with K in float64 at the points where its error could affect the certificate.

        These points are the support vectors, which determine both objectives, and the points that
        may have the largest violation, given the error of f.  Returns whether f was recomputed.
        """
        if self.subset_origin is not None:  # the search over all points recomputes f
            return False
        dual, rows = self.dual, self.view.rows
        error = rows.error * rows.largest * self.drift
        if error <= _TUNING.harmless_error * self.tol:
            return False
        g = dual.gradient(self.f)
        affected = self.v != 0.0
        for members, low, up in dual.multiplier_bounds(self.v, g):
            affected |= members & (self.v < dual.upper) & (g <= up + 2.0 * error)
            affected |= members & (self.v > dual.lower) & (g >= low - 2.0 * error)
        points = np.unique(dual.points[affected])
        coefficients = dual.coefficients(self.v)
        if 2 * len(points) > dual.n:
            self.f, self.drift = self.view.product(coefficients), 0.0
        else:
            self.f[points] = self.view.product(coefficients, points)
        return True

    # ------------------------------------------------------------------ small and large problems

    def _move(
        self,
        K: np.ndarray,
        boxes: BoxedGroups,
        g: np.ndarray,
        v: np.ndarray,
        accuracy: float,
        fraction: float,
        max_steps: int,
    ) -> float:
        """Run SMO inside a block, update the counters, and return the violation."""
        if not np.isfinite(g).all():
            raise ValueError(
                "The dual coefficients or intercepts are not finite: values of f overflow. The "
                "usual cause is huge features or kernel values. Scale the features"
            )
        found = solve_block(K, boxes, g, v, accuracy, fraction, max_steps)
        steps, violation, curvature, negative_steps = found
        self.steps += steps
        self.negative_steps += negative_steps
        self.curvature = min(self.curvature, curvature)
        return violation

    def _report_progress(self, violation: float) -> None:
        self._stop_if_no_progress(violation)
        if self.follow is not None:
            self.follow(DualProgress(self.steps, self.watch.seconds, violation, self._objective()))

    def _stop_if_no_progress(self, violation: float) -> None:
        """Stop the search if it makes no progress; see `max_iter` of BlockSMO."""
        new_steps = self.steps - self.history[-1][0] if self.history else self.steps
        is_early = new_steps < _TUNING.steps_per_report
        if self.solver.max_iter >= 0 or violation <= self.tol or is_early:
            return
        gap = self.dual.gap(self.v, self.f)
        self.history.append((self.steps, violation, gap, self._objective()))
        half = len(self.history) // 2
        early, later = self.history[:half], self.history[half:]
        if len(self.history) < _TUNING.min_reports:
            return
        for k in (1, 2):  # the violation and the gap
            if min(entry[k] for entry in later) < 0.5 * min(entry[k] for entry in early):
                return
        (first_step, *_, first_objective), (last_step, *_, last_objective) = later[0], later[-1]
        gain_per_step = (last_objective - first_objective) / (last_step - first_step)
        gain = gain_per_step * (self.limit - self.steps)
        gap = min(entry[2] for entry in later)
        if gain < _TUNING.min_relative_gain * gap:
            self.stop = StopReason.GIVEN_UP
            self.reason = (
                f"and given up because of a lack of progress: at this rate, the remaining steps up "
                f"to the limit of {self.limit} (max_iter=-1) would reduce the gap of {gap:.1e} by "
                f"only {gain:.1e}"
            )
            self.limit = self.steps

    def _objective(self) -> float:
        """Return the dual objective of all points, also during a search over a subset."""
        if self.subset_origin is None:
            return self.dual.objective(self.v, self.f)
        objective, v, f = self.subset_origin
        g = self.dual.gradient(0.5 * (f + self.f))
        return objective - float((self.v - v) @ g)

    def solution(self) -> DualSolution:
        """Return the solution with its certificate."""
        dual, v, f = self.dual, self.v, self.f
        rounding = dual.hidden_violation(v, self.view.rows.largest, self.tol)
        violation = max(dual.violation(v, dual.gradient(f)), rounding)
        status, stop, message = Status.CONVERGED, StopReason.CONVERGED, ""
        if not violation <= self.tol:
            status, stop, reason = Status.NOT_CONVERGED, self.stop, self.reason
            if stop is not StopReason.GIVEN_UP:
                at_limit = self.steps >= self.limit
                stop = StopReason.MAX_ITER if at_limit else StopReason.ROUNDING
                reason = f"because of {'max_iter' if at_limit else 'rounding errors'}"
            message = f"stopped after {self.steps} steps {reason}"
        entries, hits, requests = self.view.counts
        details = {
            "entries": entries,
            "cache_hits": hits / requests if requests else float("nan"),
            "curvature": self.curvature,
        }
        numbers = self.steps, violation, self.watch.seconds
        report = Report(repr(self.solver), status, *numbers, message, details)
        return DualSolution.certified(dual, v, f, report, stop)
