"""The dual of a support vector machine on explicit features: an interior point, then a corner.

    min_v  1/2 v^T K v + q^T v,     lower <= v <= upper,     sum of v in each group = given

for K = F F^T, F with n rows and m columns.  `Barrier` goes through the inside of the box, in some
20 steps of O(n m^2) each whatever C is; `corner` then moves v to where it belongs, on its bounds
or, at most m + 2 of its entries, between them.  If a corner is not found, `BlockSMO` goes on.

F of more columns than rows is replaced by R^T of its QR factorisation F^T = Q R: the same K, and
n columns.

v is all that is returned, hence K v cannot be better than the rounding of v allows.  F s is F for
C s^2: with columns of size 10^8 and C = 1 the sum F^T v loses 16 digits, and no v has the right f.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._runtime import Stopwatch, check_budget, entry_point
from ...gram import KernelRows
from ...kernels import Linear
from .._box_program import Point
from .._cost import Cost
from .._report import Report, Status
from .._row_blocks import pulled, row_norms, times
from ._barrier import Barrier
from ._crossover import Corner, at, better
from ._dual import MAX_HIDDEN_VIOLATION, Dual, DualSolution
from ._smo import BlockSMO, Follow, Progress

__all__ = ["BoxInterior"]

_STALLED_STEPS = 15  # without progress; infinite boxes need some before they make any
_MAX_CORNERS = 6  # attempts to find a corner, each at an error a thousand times smaller
# Pairs that may be moved for each step of max_iter: so many, and one more for 200 variables.
_PAIRS_PER_STEP, _VARIABLES_PER_PAIR = 100, 200
_LEAST_CACHE = 2**24  # bytes for rows of K
_VECTORS = 40  # vectors of numbers for each variable that a step allocates
_BLOCK_BYTES = 2**24  # a block of rows of F in extended precision
_EXPECTED_STEPS = 20  # 12 to 25 on most problems
_ZERO = 1e-6  # relative to |v| |F|: a smaller F^T v is taken to be 0


@entry_point
@dataclass(frozen=True)
class BoxInterior:
    """Minimise a `Dual` for K = F F^T in O(n m^2) a step.

    Parameters
    ----------
    tol : float
        The violation of the optimality conditions, in units of the gradient; see `Dual.violation`.
        Rounding hides no more than ten times that; where it could, the violation is computed in
        extended precision.
    max_iter : int
        Steps of the interior point.  If they leave a violation above tol, pairs of variables are
        moved, at most 100 and one for 200 variables for each of these steps.
    max_memory : int, str or None
        What may be allocated beside F: some 40 numbers for each variable, and two matrices of up to
        3 (m + 2) rows, m <= n, for the free variables.  F of m > n is also copied.
        Should pairs have to be moved, rows of K are kept: as much as F, or 16 MiB, within this.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.dual import BoxInterior
    >>> from mercer.solvers.dual import Dual
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
        """Return the bytes beside F: systems and their factors, vectors, blocks, and R."""
        reduced = n * m + 2 * n * n if m > n else 0
        numbers = 2 * _equations(n, m, variables) ** 2 + _VECTORS * variables + reduced
        return 8 * numbers + min(_BLOCK_BYTES, 16 * n * m)

    @staticmethod
    def cost(n: int, m: int) -> Cost:
        """Return what n rows of m columns take: weighted squares of F, and a factor, in a step."""
        m = min(n, m)
        step = Cost(products=2.0 * n * m * m, factors=m**3 / 3.0, read=8.0 * n * 120, calls=20)
        return _EXPECTED_STEPS * step

    @np.errstate(all="ignore")  # values that are not finite end the search, with a reason
    def minimize(self, F: np.ndarray, dual: Dual, follow: Follow = None) -> DualSolution:
        """Return the minimum for K = F F^T, its variables on their bounds where they belong."""
        watch = Stopwatch()
        n, m = F.shape
        check_budget(
            self.workspace(n, m, len(dual)),
            self.max_memory,
            f"the interior point for {n} rows of {m} columns, which solves up to "
            f"{_equations(n, m, len(dual))} equations (solver='smo' solves none),",
        )
        if m > n:
            F = np.ascontiguousarray(np.transpose(np.linalg.qr(F.T, mode="r")))
        barrier = Barrier(F, dual)
        point, found = barrier.start(), barrier.outset()
        target, stalled, tries = np.inf, 0, _MAX_CORNERS
        while found.violation > self.tol and tries and point.n_iter < self.max_iter:
            moved = barrier.step(point)
            if moved is not None:
                stalled = 0 if barrier.falls(point, moved) else stalled + 1
                point = moved
            error = barrier.error(point)
            if moved is not None and follow is not None:
                follow(Progress(point.n_iter, watch.seconds, error, -barrier.value(point)))
            last = moved is None or stalled == _STALLED_STEPS or point.n_iter == self.max_iter
            if last or (error <= target and barrier.is_close(point, self.tol)):
                found = better(found, barrier.corner(point, self.tol), self.tol)
                target, tries = 1e-3 * error, 0 if last else tries - 1
        pairs, inside = None, barrier.inside(point)
        endless = found.violation > self.tol and _is_ray(F, dual, inside)
        stuck = endless or barrier.is_rounded(found) or _overflows(F, dual)
        if found.violation > self.tol and not stuck:
            pairs = self._paired(F, replace(dual, start=found.v), _later(follow, point, watch))
            found = better(found, at(F, dual, pairs.variables), self.tol)
        said = []
        found = found._replace(violation=_known(F, dual, found, self.tol))
        if found.violation > self.tol:
            reason = _endless(dual, inside) if endless else self._reason(F, dual, found)
            said.append(f"after {point.n_iter} steps, {reason}")
        if pairs is not None:
            said.append(f"{pairs.report.n_iter} pairs of variables moved after the interior point")
        report = Report(
            repr(self),
            Status.CONVERGED if found.violation <= self.tol else Status.NOT_CONVERGED,
            point.n_iter,
            found.violation,
            watch.seconds,
            "; ".join(said),
        )
        done = {} if pairs is None else pairs.report.certificate
        free = int(np.count_nonzero(dual.free(found.v)))
        work = {
            "n_free": free,  # of variables, of which a point of a regression has two
            "n_bound": int(np.count_nonzero(found.v)) - free,
            "entries": done.get("entries", 0),
            "cache_hits": done.get("cache_hits", float("nan")),
            "curvature": 0.0,
        }
        values = times(F, pulled(F, dual.coefficients(found.v)))
        return dual.solution(found.v, values, found.violation, report, work)

    def _paired(self, F: np.ndarray, dual: Dual, follow: Follow) -> DualSolution:
        """Move pairs of variables from where the corner left them."""
        X = F if F.shape[1] else np.zeros((len(F), 1))
        most = self.max_iter * (_PAIRS_PER_STEP + len(dual) // _VARIABLES_PER_PAIR)
        held = max(X.nbytes, _LEAST_CACHE)
        rows = KernelRows(Linear(), X, cache_bytes=held, max_memory=self.max_memory)
        return BlockSMO(tol=self.tol, max_iter=most).minimize(rows, dual, follow)

    def _reason(self, F: np.ndarray, dual: Dual, found: Corner) -> str:
        """Say why there is no minimum, and what to do."""
        if not np.isfinite(found.violation) or _overflows(F, dual):
            largest = np.abs(F).max(initial=0.0)
            return (
                f"values of f are not finite, or may not be, with features of up to {largest:.1e} "
                f"and a C of up to {_width(dual).max():.1e}: scale the columns, or lower C"
            )
        return (
            f"the violation is {found.violation:.1e}, not {self.tol:g}, for gradients of up to "
            f"{np.abs(found.g).max():.1e}; the usual cause are columns that are far from size 1, "
            f"or a huge C: the rounding of v alone is that much. Scale the columns, or lower C, or "
            f"raise tol or max_iter"
        )


def _known(F: np.ndarray, dual: Dual, found: Corner, tol: float) -> float:
    """Return the violation; that in extended precision, where rounding has hidden much of it."""
    v, largest = found.v, float(row_norms(F).max(initial=0.0))
    if not np.isfinite(found.violation) or dual.hidden_violation(v, largest, tol) < 0.0:
        return found.violation
    c, step = dual.coefficients(v), max(1, _BLOCK_BYTES // (16 * max(1, F.shape[1])))
    blocks = [slice(start, start + step) for start in range(0, len(F), step)]
    w = np.zeros(F.shape[1], dtype=np.longdouble)
    for rows in blocks:
        w += c[rows] @ F[rows].astype(np.longdouble)
    f = np.concatenate([F[rows].astype(np.longdouble) @ w for rows in blocks])
    violation = float(dual.violation(v, dual.gradient(f)))
    return violation if violation > MAX_HIDDEN_VIOLATION * tol else found.violation


def _later(follow: Follow, point: Point, watch: Stopwatch) -> Follow:
    """Return what tells of pairs, counted on from the steps of the interior point."""
    if follow is None:
        return None
    return lambda at: follow(at._replace(n_iter=point.n_iter + at.n_iter, seconds=watch.seconds))


def _equations(n: int, m: int, variables: int) -> int:
    """Return how many equations free variables, w and b have at most."""
    columns = min(n, m) + 2
    return columns + min(2 * columns, variables)


def _width(dual: Dual) -> np.ndarray:
    return dual.upper - dual.lower


def _overflows(F: np.ndarray, dual: Dual) -> bool:
    """Tell whether some v in the box has an infinite K v; of endless boxes, whether v = 1 has."""
    width = _width(dual)
    most = np.where(np.isinf(width), 1.0, width).sum()
    return not np.isfinite(row_norms(F).max(initial=0.0) * most)


def _is_ray(F: np.ndarray, dual: Dual, v: np.ndarray) -> bool:
    """Tell whether endless boxes let v grow for ever: F^T v = 0, and q^T v falls."""
    d = np.where(np.isinf(_width(dual)), v, 0.0)
    size = np.abs(d).max(initial=0.0)
    if not size > 0:
        return False
    d /= size
    w = pulled(F, dual.coefficients(d))
    rows = np.sqrt(row_norms(F))[dual.points]
    falls = -float(dual.linear @ d) > _ZERO * float(np.abs(dual.linear) @ np.abs(d))
    return falls and float(np.linalg.norm(w)) <= _ZERO * float(rows @ np.abs(d))


def _endless(dual: Dual, v: np.ndarray) -> str:
    what = "the classes overlap: no hard margin exists; choose a finite C"
    if len(dual) > dual.n:  # a regression: two variables for each point
        what = "no f is within epsilon of all targets; choose a finite C, or raise epsilon"
    return f"variables of up to {np.abs(v).max():.1e} are no minimum: {what}"
