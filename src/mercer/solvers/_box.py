"""The dual of a support vector machine on explicit features: an interior point, then a corner.

    min_v  1/2 v^T K v + q^T v,     lower <= v <= upper,     sum of v in each group = given

for K = F F^T, F with n rows and m columns.  `Barrier` goes through the inside of the box, in some
20 steps of O(n m^2) each whatever C is; `corner` then moves v to where it belongs, on its bounds
or, at most m + 2 of its entries, between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..gram._rows import KernelRows
from ..kernels import Linear
from ._barrier import Barrier
from ._crossover import at, better
from ._dual import Dual, DualSolution
from ._report import Report, Status, Stopwatch
from ._smo import BlockSMO, Progress
from ._tall import pulled, times

__all__ = ["BoxInterior"]

_STALLED = 15  # steps without progress: endless boxes are walked through in large steps
_CORNERS = 6  # attempts, each for products a thousand times smaller
_LEAST = 2**24  # bytes of rows of K that are kept


@dataclass(frozen=True)
class BoxInterior:
    """Minimise a `Dual` for K = F F^T in O(n m^2) a step and O(n m) memory.

    Parameters
    ----------
    tol : float
        The violation of the optimality conditions, in units of the gradient; see `Dual.violation`.
    max_iter : int
        Steps of the interior point.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers._box import BoxInterior
    >>> from mercer.solvers._dual import Dual
    >>> F = np.array([[-3.0], [-1.0], [1.0], [2.0]])
    >>> dual = Dual.classify(np.array([-1.0, -1.0, 1.0, 1.0]), np.full(4, 10.0))
    >>> BoxInterior().minimize(F, dual).coefficients.round(6) + 0.0
    array([ 0. , -0.5,  0.5,  0. ])
    """

    tol: float = 1e-3
    max_iter: int = 200

    def minimize(
        self, F: np.ndarray, dual: Dual, follow: Callable[[Progress], None] | None = None
    ) -> DualSolution:
        """Return the minimum for K = F F^T, its variables on their bounds where they belong."""
        watch = Stopwatch()
        barrier = Barrier(F, dual)
        point, found = barrier.start(), barrier.outset()
        target, stalled, tries = np.inf, 0, _CORNERS
        while not barrier.ends_at(found, self.tol) and tries and point.n_iter < self.max_iter:
            with np.errstate(all="ignore"):  # what is not finite is seen, and is the end
                moved = barrier.step(point)
            if moved is not None:
                stalled = 0 if moved.falls_below(point) else stalled + 1
                point = moved
                if follow is not None:
                    follow(Progress(point.n_iter, watch.seconds, point.error, -point.value))
            last = moved is None or stalled == _STALLED or point.n_iter == self.max_iter
            if last or (point.error <= target and barrier.is_close(point, self.tol)):
                found = better(found, barrier.corner(point, self.tol), self.tol)
                target, tries = 1e-3 * point.error, 0 if last else tries - 1
        message = ""
        if not barrier.ends_at(found, self.tol):
            paired = self._paired(F, replace(dual, start=found.v))
            found = better(found, at(F, dual, paired.variables), self.tol)
            message = f"{paired.report.n_iter} pairs of variables moved after the interior point"
        return self._solution(F, dual, found.v, point.n_iter, watch, message)

    def _paired(self, F: np.ndarray, dual: Dual) -> DualSolution:
        """Move pairs of variables from where the corner left them."""
        X = F if F.shape[1] else np.zeros((len(F), 1))
        rows = KernelRows(Linear(), X, cache_bytes=max(X.nbytes, _LEAST))
        return BlockSMO(tol=self.tol, max_iter=len(dual) + 10_000).minimize(rows, dual)

    def _solution(
        self, F: np.ndarray, dual: Dual, v: np.ndarray, n_iter: int, watch: Stopwatch, message: str
    ) -> DualSolution:
        c = dual.coefficients(v)
        values = times(F, pulled(F, c))
        g = dual.gradient(values)
        violation = dual.violation(v, g)
        if violation > self.tol:
            message = (
                f"the interior point ended after {n_iter} steps with a violation of "
                f"{violation:.1e}, not {self.tol:g}, for gradients of up to {np.abs(g).max():.1e}; "
                f"the usual causes are columns that are far from size 1, whose rounding alone "
                f"is that much, or an infinite C for classes that overlap. Scale the columns, or "
                f"lower C, or raise tol or max_iter"
            )
        m = dual.multipliers(v, g)
        gap, lowest = dual.gap(v, values, m), dual.objective(v, values)
        free = int(np.count_nonzero((v > dual.lower) & (v < dual.upper)))
        report = Report(
            repr(self),
            Status.NOT_CONVERGED if violation > self.tol else Status.CONVERGED,
            n_iter,
            violation,
            watch.seconds,
            message,
            {
                "primal": lowest + gap,
                "dual": lowest,
                "gap": gap,
                "bound": dual.bound(violation),
                "violation": violation,
                "n_free": free,
                "n_bound": int(np.count_nonzero(v)) - free,
                "entries": 0,
                "cache_hits": float("nan"),
                "curvature": 0.0,
            },
        )
        return DualSolution(v, c, values, m, report)
