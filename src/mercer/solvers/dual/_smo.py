"""Support vector machines by sequential minimal optimisation in blocks.

    repeat  W: some variables that violate the conditions most, beside those chosen before
            v_W by SMO on the block K[W, W]                     compiled, in the cache
            f += K[:, W] dv_W                                   rows of K, read once
    until   max g over v > lower  -  min g over v < upper  <= tol

LIBSVM moves two variables and then updates all n values of f.  Here some thousand moves stay inside
a block that fits the cache of the processor, and only what they add up to goes to all the points.
Rows of K are evaluated many at a time and kept (`KernelRows`), in float32.  f is in float64, and
before the end it is computed afresh, in float64, wherever float32 could have changed the verdict:
the bound on its error is the one of the kernel times the sum of all |dv|.

If K is too large for the cache, points whose variables are at the right bound are left out for
a while (shrinking): rows without their columns take less memory and less time.  What has moved
meanwhile is then added to their f, and the search goes on with all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._runtime import Stopwatch, entry_point, one_blas_thread
from ...gram import KernelRows, RowsView
from .._report import Report, Status
from ._active_set import Programs, polish
from ._apart import Apart
from ._dual import MAX_HIDDEN_VIOLATION, Dual, Duals, DualSolution
from ._smo_block import solve_block
from ._solutions import DualSolutions, Reports
from ._together import Together
from ._working_set import WorkingSet

__all__ = ["BlockSMO", "Follow", "Progress"]

_ONE_BLOCK = 2200  # up to so many variables are one block, with all of K at hand
_FRACTION = 0.1  # the part of the violation at which the next block is chosen
_STEPS_PER_VARIABLE = 100  # in a block, after which the next is chosen
_STEPS_PER_FREE = 10  # of each variable, before the minimum over all free ones is first sought
_STEPS_PER_LOOK = 100_000  # between two reports of progress, where an interrupt takes effect
_MAX_POLISHES = 5
_LEAST_LIMIT = 10**7  # steps that max_iter=-1 allows
_LOOKS_AT_LEAST = 10  # before a search that gets nowhere may be given up
_WORTHLESS_GAIN = 0.1  # the part of the gap for which the steps that are left do not pay
_EXACT = 1e-11  # relative to the gradient: what a small problem is polished to
_BLOCKS_PER_SHRINKING = 20  # blocks between two attempts to leave points out
_MOST_ACTIVE = 0.5  # points are left out if at most this part of them is active
_HARMLESS_ERROR = 1e-3  # relative to tol: f with a smaller error is not computed afresh


class Progress(NamedTuple):
    """Where a search is.

    Examples
    --------
    >>> from mercer.solvers import Progress
    >>> Progress(n_iter=10, seconds=0.1, violation=1e-3, objective=-2.0).violation
    0.001
    """

    n_iter: int
    seconds: float
    violation: float
    objective: float


Follow = Callable[[Progress], None] | None


@entry_point
@dataclass(frozen=True)
class BlockSMO:
    """Minimise a `Dual` over rows of K.

    Parameters
    ----------
    tol : float
        Stop when no two variables violate the conditions of a minimum by more than this, in units
        of f, of which rounding hides no more than ten times that.  Nothing else ends the search
        but max_iter, or moves too small for rounding.
    max_iter : int
        Steps, of two variables each; -1 for 10^7, or 100 for each point if that is more, or fewer
        if they get nowhere: the later half of a million or more has halved neither the violation
        nor the gap, and all that are left would at this rate gain less than a tenth of it.
    shrinking : bool
        Leave out points for a while, where not all of K fits the cache.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import KernelRows
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers.dual import Dual
    >>> from mercer.solvers.dual import BlockSMO
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

    @one_blas_thread  # blocks are too small to share
    def minimize(
        self, rows: KernelRows | RowsView, dual: Dual, follow: Follow = None
    ) -> DualSolution:
        """Return the minimum; what the search met is in its report, and nothing warns."""
        view = rows.view() if isinstance(rows, KernelRows) else rows
        if view.n < view.rows.n:
            return self._alone(view, dual, follow)
        duals = Duals.of([dual], np.arange(dual.n))
        hears = (lambda p: follow) if follow else None
        return self.minimize_all(view.rows, duals, lambda p: view, hears)[0]

    def _alone(self, view: RowsView, dual: Dual, follow: Follow) -> DualSolution:
        search = _Search(self, view, dual, follow)
        if len(dual) <= _ONE_BLOCK and view.holds(len(dual)):
            search.whole()
        else:
            search.blocks()
        return search.solution()

    @one_blas_thread
    def minimize_all(
        self,
        rows: KernelRows,
        duals: Duals,
        view: Callable[[int], RowsView],
        follow: Callable[[int], Follow] | None = None,
    ) -> DualSolutions:
        """Return the minima of several duals; if they are small, all are solved together.

        `view` returns the rows and columns of the points of each, and `follow` who hears of it.
        """
        largest, seen = int(np.diff(duals.ends).max()), rows.entries
        K = rows.whole(largest) if largest <= _ONE_BLOCK else None
        watch, d = Stopwatch(), duals.all
        given = Programs(duals.rows, duals.starts, d.linear, d.lower, d.upper)
        at: Together | Apart
        if K is not None:
            at = Together(K, given, d.start, self.tol, self.max_iter)
        elif (
            largest <= _ONE_BLOCK
            and (pairs := duals.class_pairs(rows.ends)) is not None
            and (lanes := rows.lanes(pairs))
        ):
            at = Apart(rows, pairs, lanes, given, d.start, self.tol, self.max_iter)
        else:
            each = enumerate(duals)
            one = (self._alone(view(p), d, follow(p) if follow else None) for p, d in each)
            return DualSolutions.of(one, duals)
        size = np.add.reduceat(np.abs(at.v), duals.ends[:-1])
        hidden = 4.0 * np.finfo(float).eps * rows.largest * size
        violation = np.where(hidden > MAX_HIDDEN_VIOLATION * self.tol, hidden, -np.inf)
        violation = np.maximum(at.violation, violation)
        n, share = len(duals), 1.0 / len(duals)
        entries = (rows.entries - seen) * share
        reports = Reports(
            repr(self),
            [Status.CONVERGED] * n,
            at.steps,
            violation,
            np.full(n, watch.seconds * share),
            [""] * n,
            {
                "entries": np.full(n, int(entries)),
                "cache_hits": np.full(n, np.nan),
                "curvature": at.curvature,
            },
        )
        found = DualSolutions.with_certificates(duals, at.v, at.g, at.multipliers, reports)
        for p in np.flatnonzero(~(violation <= self.tol)).tolist():
            search = _Search(self, view(p), duals[p], follow(p) if follow else None)
            found.put(p, search.resumed(found[p].variables, at, p))
        if follow is not None:
            for p, solution in enumerate(found):
                report = solution.report
                progress = report.n_iter, report.seconds, report.residual
                hears = follow(p)
                if hears is not None:
                    hears(Progress(*progress, report.certificate["dual"]))
        return found


class _Search:
    """v, f = K v, and what is known about them."""

    def __init__(self, solver: BlockSMO, view: RowsView, dual: Dual, follow: Follow) -> None:
        self.solver, self.view, self.dual, self.follow = solver, view, dual, follow
        self.watch, self.tol = Stopwatch(), solver.tol
        self.limit = solver.max_iter if solver.max_iter >= 0 else max(_LEAST_LIMIT, 100 * dual.n)
        self.v = dual.start.copy()
        self.f = view.product(dual.coefficients(self.v))
        self.drift = 0.0  # the sum of |dv| since f was exact
        self.steps = self.bent = 0
        self.hopeless = ""  # why the search was given up
        self.history: list[tuple[int, float, float, float]] = []  # steps, violation, gap, value
        self.curvature = 0.0
        self.K = np.empty((0, 0))  # all of it, for a small problem
        self.origin: tuple[float, np.ndarray, np.ndarray] | None = None  # see part

    def part(self, some: np.ndarray, members: np.ndarray) -> _Search:
        """Return the search over some points, whose variables these are, all else as it is."""
        dual = self.dual
        view = self.view.subset(some)
        own = replace(
            dual,
            n=len(some),
            points=np.searchsorted(some, dual.points[members]),
            linear=dual.linear[members],
            lower=dual.lower[members],
            upper=dual.upper[members],
            groups=dual.groups[members],
            start=np.zeros(len(members)),
        )
        search = _Search(self.solver, view, own, self.follow)
        search.watch, search.limit, search.steps = self.watch, self.limit, self.steps
        search.v, search.f = self.v[members], self.f[some]
        search.origin = self._objective(), search.v.copy(), search.f.copy()
        return search

    def resumed(self, v: np.ndarray, at: Together | Apart, p: int) -> DualSolution:
        """Return the minimum, found from where the steps of many programs have left this one."""
        self.v = v.copy()
        self.f = self.view.product(self.dual.coefficients(v))
        self.steps, self.bent = int(at.steps[p]), int(at.bent[p])
        self.curvature = float(at.curvature[p])
        self.whole()
        return self.solution()

    # ------------------------------------------------------------------ a small problem

    def whole(self) -> None:
        """Solve with all of K at hand; if it is exact, to the last digits."""
        dual = self.dual
        self.K = K = self.view.matrix()
        if not np.array_equal(dual.points, np.arange(dual.n)):
            K = K[np.ix_(dual.points, dual.points)]
        if K.dtype == np.float64:
            self._polish(K, self._whole(K, self.tol))
            return
        self._whole(K, 0.5 * self.tol)
        while self._refresh() and dual.violation(self.v, dual.gradient(self.f)) > self.tol:
            before = self.steps
            self._whole(K, 0.5 * self.tol)
            if self.steps in (before, self.limit):
                break

    def _polish(self, K: np.ndarray, violation: float) -> None:
        """Go on from tol to the last digits, as long as that takes no longer than the way here."""
        dual, best, limit = self.dual, (violation, self.v), self.limit
        self.limit = min(limit, 2 * self.steps + 10 * len(dual))
        for _ in range(_MAX_POLISHES):
            exact = _EXACT * (1.0 + float(np.abs(self.f).max() + np.abs(dual.linear).max()))
            if self.bent or self.steps >= self.limit or best[0] <= exact:
                break
            violation = self._set(self._polished(K))
            best = min(best, (violation, self.v), key=lambda found: found[0])
            if best[0] > exact:
                self._set(best[1])
                violation = self._whole(K, max(0.01 * best[0], exact))
                best = min(best, (violation, self.v), key=lambda found: found[0])
        self.limit = limit
        self._set(best[1])  # not the last: the violation does not fall in every step

    def _polished(self, K: np.ndarray) -> np.ndarray:
        """Return v where the gradients of its free variables are equal, unless a bound is met."""
        dual = self.dual
        starts = np.append(dual.starts, len(dual))[:3]
        given = Programs(np.arange(len(dual)), starts, dual.linear, dual.lower, dual.upper)
        return polish(K, given, self.v, dual.gradient(self.f), np.array([True]))

    def _whole(self, K: np.ndarray, accuracy: float) -> float:
        """Move all variables until the violation is no larger, or the limit is met.

        Steps of two variables go to and fro in a narrow valley.  Between some of them the minimum
        over all that are free is taken, if that is better.
        """
        dual, some = self.dual, _STEPS_PER_FREE * len(self.dual)
        box = dual.lower, dual.upper, dual.starts
        while True:
            before, g, v = self.v, dual.gradient(self.f), self.v.copy()
            most = min(some, _STEPS_PER_LOOK, self.limit - self.steps)
            some *= 2
            violation = self._move(K, g, v, *box, accuracy, 0.0, most)
            if K.dtype == np.float64:
                violation = self._set(v)
                if violation > accuracy and not self.bent and self.steps < self.limit:
                    value, there = self._objective(), self._set(self._polished(K))
                    violation = there if self._objective() > value else self._set(v)
            else:
                self.v, self.drift = v, self.drift + float(np.abs(v - before).sum())
                self.f[dual.points] = g - dual.linear
            self._tell(violation)
            if violation <= accuracy or self.steps >= self.limit or not np.any(v != before):
                return violation

    def _set(self, v: np.ndarray) -> float:
        """Set v, and f from an exact K; return the violation."""
        self.v, self.drift = v, 0.0
        self.f = self.K @ self.dual.coefficients(v)
        return self.dual.violation(v, self.dual.gradient(self.f))

    # ------------------------------------------------------------------ a large one

    def blocks(self) -> None:
        """Solve for some variables at a time."""
        dual, view = self.dual, self.view
        working = WorkingSet(view, dual)
        # A violation just below tol may be one of all free variables; half of it costs little.
        tol, most = 0.5 * self.tol, _STEPS_PER_VARIABLE * working.size
        checked, rounds = False, 0
        while True:
            g = dual.gradient(self.f)
            violation = dual.violation(self.v, g)
            self._tell(violation)
            rounds += 1
            if rounds % _BLOCKS_PER_SHRINKING == 0 and violation > tol and self._shrink(g, working):
                checked = False
                continue
            if (violation <= tol or self.steps >= self.limit) and not checked:
                checked = True
                if self._refresh():
                    continue
            if violation <= tol or self.steps >= self.limit:
                return
            W = working.choose(g, self.v)
            v, live = np.where(W < 0, 0.0, self.v[W]), W >= 0
            lower, upper = np.where(live, dual.lower[W], 0.0), np.where(live, dual.upper[W], 0.0)
            limit = min(most, self.limit - self.steps)
            g = np.where(live, g[W], 0.0)
            self._move(working.K, g, v, lower, upper, working.starts, 0.5 * tol, _FRACTION, limit)
            moved = np.flatnonzero(live & (v != self.v[W]))
            if not len(moved):  # rounding leaves nothing to gain
                self._refresh()
                return
            points = dual.points[W[moved]]
            change = v[moved] - self.v[W[moved]]
            self.v[W[moved]] = v[moved]
            if len(dual) > dual.n:
                points, place = np.unique(points, return_inverse=True)
                change = np.bincount(place, change)
            for part in range(0, len(points), view.capacity):
                some = slice(part, part + view.capacity)
                view.fetch(points[some])
                view.add(points[some], change[some], self.f)
            self.drift += float(np.abs(change).sum())
            checked = False

    def _shrink(self, g: np.ndarray, working: WorkingSet) -> bool:
        """Solve for the points that still take part, if they are few; tell whether they were."""
        dual, view = self.dual, self.view
        if not (self.solver.shrinking and view.capacity < dual.n):
            return False
        active = np.zeros(len(dual), dtype=bool)
        for members, low, up in dual.multiplier_bounds(self.v, g):
            active |= members & (self.v < dual.upper) & (g <= low)
            active |= members & (self.v > dual.lower) & (g >= up)
        some = np.unique(dual.points[active])
        if len(some) > _MOST_ACTIVE * dual.n:
            return False
        members = np.flatnonzero(np.isin(dual.points, some))
        if len(np.unique(dual.groups[members])) < dual.n_groups:
            return False
        working.clear()  # that search has a block of its own
        search = self.part(some, members)
        try:
            search.blocks()
        finally:
            view.restore(search.view)
        before = dual.coefficients(self.v)
        self.v[members], self.f[some] = search.v, search.f
        self.steps, self.bent = search.steps, self.bent + search.bent
        self.curvature = min(self.curvature, search.curvature)
        self.limit, self.hopeless = search.limit, search.hopeless
        self.drift += search.drift
        others = np.setdiff1d(np.arange(dual.n), some)
        self.f[others] += view.product(dual.coefficients(self.v) - before, others)
        return True

    def _refresh(self) -> bool:
        """Compute f in float64 where its error could change the certificate; tell if anywhere.

        That is at support vectors, which alone count in both objectives, and where g is as far out
        as the error allows.
        """
        if self.origin is not None:  # the search over all points does that
            return False
        dual, rows = self.dual, self.view.rows
        error = rows.error * rows.largest * self.drift
        if error <= _HARMLESS_ERROR * self.tol:
            return False
        g = dual.gradient(self.f)
        near = self.v != 0.0
        for members, low, up in dual.multiplier_bounds(self.v, g):
            near |= members & (self.v < dual.upper) & (g <= up + 2.0 * error)
            near |= members & (self.v > dual.lower) & (g >= low - 2.0 * error)
        some = np.unique(dual.points[near])
        coefficients = dual.coefficients(self.v)
        if 2 * len(some) > dual.n:
            self.f, self.drift = self.view.product(coefficients), 0.0
        else:
            self.f[some] = self.view.product(coefficients, some)
        return True

    # ------------------------------------------------------------------ both

    def _move(self, K: np.ndarray, g: np.ndarray, *rest: Any) -> float:
        """Run SMO inside a block, and count."""
        if not np.isfinite(g).all():
            raise ValueError(
                "The dual coefficients or intercepts are not finite: values of f overflow. The "
                "usual cause are features, or kernel values, that are huge; scale them"
            )
        steps, violation, curvature, bent = solve_block(K, g, *rest)
        self.steps += steps
        self.bent += bent
        self.curvature = min(self.curvature, curvature)
        return violation

    def _tell(self, violation: float) -> None:
        self._judge(violation)
        if self.follow is not None:
            self.follow(Progress(self.steps, self.watch.seconds, violation, self._objective()))

    def _judge(self, violation: float) -> None:
        """Set the limit to where the search is, if it gets nowhere; see BlockSMO."""
        since = self.steps - self.history[-1][0] if self.history else self.steps
        if self.solver.max_iter >= 0 or violation <= self.tol or since < _STEPS_PER_LOOK:
            return
        gap = self.dual.gap(self.v, self.f)
        self.history.append((self.steps, violation, gap, self._objective()))
        half = len(self.history) // 2
        first, later = self.history[:half], self.history[half:]
        if len(self.history) < _LOOKS_AT_LEAST or any(
            min(at[k] for at in later) < 0.5 * min(at[k] for at in first) for k in (1, 2)
        ):
            return
        (begin, *_, low), (end, *_, high) = later[0], later[-1]
        gain = (high - low) / (end - begin) * (self.limit - self.steps)
        gap = min(at[2] for at in later)
        if gain < _WORTHLESS_GAIN * gap:
            self.hopeless = (
                f"given up: all {self.limit} that max_iter=-1 allows would at this rate gain "
                f"{gain:.1e} of a gap of {gap:.1e}"
            )
            self.limit = self.steps

    def _objective(self) -> float:
        """Return the dual objective, of all points if this search is over a part of them."""
        if self.origin is None:
            return self.dual.objective(self.v, self.f)
        value, v, f = self.origin
        g = self.dual.gradient(0.5 * (f + self.f))
        return value - float((self.v - v) @ g)

    def solution(self) -> DualSolution:
        """Return what was found, and its certificate."""
        dual, v, f = self.dual, self.v, self.f
        hidden = dual.hidden_violation(v, self.view.rows.largest, self.tol)
        violation = max(dual.violation(v, dual.gradient(f)), hidden)
        status, message = Status.CONVERGED, ""
        if not violation <= self.tol:
            status = Status.NOT_CONVERGED
            reason = "as max_iter asks" if self.steps >= self.limit else "lost in rounding"
            message = f"stopped after {self.steps} steps, {self.hopeless or reason}"
        seconds, name = self.watch.seconds, repr(self.solver)
        report = Report(name, status, self.steps, violation, seconds, message)
        entries, hits, requests = self.view.counts
        work = {
            "entries": entries,
            "cache_hits": hits / requests if requests else float("nan"),
            "curvature": self.curvature,
        }
        return dual.solution(v, f, violation, report, work)
