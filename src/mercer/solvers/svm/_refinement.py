"""Refinement of the solutions of small dual problems to full precision.

SMO ends close to a minimum, with few variables strictly between their bounds.  If the set F of
these free variables is that of the minimum, the optimality conditions are linear:

    K_FF d + g_F = m  in each group,     sum of d in each group = 0,

for the gradient g, the change d of v and the multipliers m.  A variable that reaches a bound stays
there, and the equations of the remaining ones are solved again.

There are two implementations.  `refine` solves the equations of one problem with LAPACK, for any
number of free variables.  `QPBatch.refine_all` is compiled and treats many problems in one call.
With `refine` alone, a whole fit of an SVC takes 3.4 times as long for 45 pairs of classes, and 100
times as long for 4950 pairs.  `QPBatch.refine_all` solves the equations in plain loops, which is
efficient for few free variables only, and a first call has to wait about a second for the compiler,
which is too long for a single problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..._core import fmax, fmin, jit
from ..._core.linalg import lapack, lstsq
from ._smo_steps import BoxedGroups

MAX_COMPILED_FREE = 160  # `QPBatch.refine_all` does not refine problems with more free variables


@dataclass(frozen=True)
class _RefinementTuning:
    """Tuning constants of `refine`."""

    # Maximum number of linear solves; a variable that reaches a bound requires another solve.
    max_rounds: int = 10
    # The matrix is treated as singular if the relative residual of a linear solve exceeds this.
    max_residual: float = 1e-9
    # With at most this many free variables, linear solves are cheap, and one more is allowed for
    # each of them.
    max_cheap_free: int = 100


_TUNING = _RefinementTuning()
# Constants of the compiled function.
_MAX_ROUNDS = 110  # maximum number of linear solves per problem
_DEPENDENT_PIVOT = 1e-12  # a row whose pivot / diagonal entry is smaller is linearly dependent


@dataclass(frozen=True, eq=False)
class QPBatch:
    """Several box-constrained quadratic programs on rows of one matrix K.

    Parameters
    ----------
    rows : ndarray of int
        The row of K of each variable.
    starts : ndarray of int
        The first variables of both groups of each program, the second of which may be empty,
        followed by the number of variables.
    linear, lower, upper : ndarray
        The linear term q, and the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.svm._refinement import QPBatch, refine
    >>> box = np.array([0.0, -9.0]), np.array([9.0, 0.0])
    >>> one = QPBatch(np.arange(2), np.array([0, 2, 2]), np.array([-1.0, 1.0]), *box)
    >>> K, v = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0.4, -0.4])
    >>> refine(K, one, v, one.gradient(K, v))
    array([ 0.5, -0.5])
    """

    rows: np.ndarray
    starts: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @cached_property
    def boxes(self) -> BoxedGroups:
        """The variables, as a tuple for compiled functions."""
        return BoxedGroups(self.rows, self.starts, self.lower, self.upper)

    @cached_property
    def program_starts(self) -> np.ndarray:
        """The first variable of each program."""
        return self.starts[:-1:2]

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of variables of each program."""
        sizes: np.ndarray = self.starts[2::2] - self.program_starts
        return sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def subset(self, selected: np.ndarray) -> tuple[QPBatch, np.ndarray]:
        """Return the selected programs, and the indices of their variables."""
        members = np.flatnonzero(np.repeat(selected, self.sizes))
        groups = np.diff(self.starts).reshape(-1, 2)[selected].ravel()
        starts = np.concatenate([[0], np.cumsum(groups)])
        box = self.lower[members], self.upper[members]
        return QPBatch(self.rows[members], starts, self.linear[members], *box), members

    def free(self, v: np.ndarray) -> np.ndarray:
        """Return a mask of the variables strictly between their bounds."""
        return (v > self.lower) & (v < self.upper)

    def gradient(self, K: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the gradients g = K v + q of all programs."""
        if len(self) == 1:
            gradient: np.ndarray = (K @ np.bincount(self.rows, v, len(K)))[self.rows] + self.linear
            return gradient
        g = np.empty(len(v))
        self.refine_all(K, v.copy(), g, np.full(len(self), -np.inf), 0.0)
        return g

    def refine_all(
        self, K: np.ndarray, v: np.ndarray, g: np.ndarray, limit: np.ndarray, exact: float
    ) -> np.ndarray:
        """Set g = K v + q, and refine v, in place, where that reduces the violation.

        Programs with more than `MAX_COMPILED_FREE` free variables are not refined.

        Parameters
        ----------
        K : ndarray of shape (n, n)
        v, g : ndarray
            The variables and their gradients; overwritten.
        limit : ndarray of shape (programs,)
            Programs with a larger violation than this are not refined.
        exact : float
            Programs whose violation, relative to the largest gradient, is at most this are not
            refined.

        Returns
        -------
        results : ndarray of shape (programs, 3)
            As in `kkt_residuals`.
        """
        results = np.empty((len(self), 3))
        results[:, 0] = limit
        R = np.empty((MAX_COMPILED_FREE, MAX_COMPILED_FREE))
        work = np.empty((3, max(MAX_COMPILED_FREE, int(self.sizes.max()))))
        free = np.empty(MAX_COMPILED_FREE, dtype=np.int64)
        _refine_programs(K, self.boxes, self.linear, v, g, exact, R, work, free, results)
        return results

    def kkt_residuals(self, v: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the violation and the multipliers of both groups of each program.

        The result has shape (programs, 3).
        """
        results = np.zeros((len(self), 3))
        nonempty = np.flatnonzero(np.diff(self.starts))  # the groups that are not empty
        first_variables = self.starts[nonempty]
        can_decrease, can_increase = v > self.lower, v < self.upper
        low = np.maximum.reduceat(np.where(can_decrease, g, -np.inf), first_variables)
        high = np.minimum.reduceat(np.where(can_increase, g, np.inf), first_variables)
        free = can_decrease & can_increase
        count = np.add.reduceat(free, first_variables, dtype=int)
        m = np.add.reduceat(np.where(free, g, 0.0), first_variables) / np.maximum(count, 1)
        if not count.all():
            with np.errstate(invalid="ignore"):
                midpoint = np.where(
                    np.isinf(low), high, np.where(np.isinf(high), low, 0.5 * (low + high))
                )
            m = np.where(count, m, midpoint)
        if len(nonempty) == len(self):
            results[:, 0], results[:, 1] = low - high, m
        else:
            results[:, 0] = -np.inf
            results[nonempty // 2, 1 + nonempty % 2] = m
            np.maximum.at(results[:, 0], nonempty // 2, low - high)
        return results


def refine(K: np.ndarray, program: QPBatch, v: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return v after changing its free variables such that their gradients become equal.

    `program` is a single program.  The result is not always better: the caller has to compare the
    violations.
    """
    v, g, lower, upper = v.copy(), g.copy(), program.lower, program.upper
    free = np.flatnonzero(program.free(v))
    equations = None
    for _ in range(_TUNING.max_rounds + (len(free) if len(free) <= _TUNING.max_cheap_free else 0)):
        if not len(free):
            break
        if equations is None:
            rows = program.rows[free]
            A = K.take(rows, axis=0).take(rows, axis=1)
            equations = _FaceEquations(A, int(np.searchsorted(free, program.starts[1])))
        d = equations.direction(g[free])
        v_free, bounds = v[free], np.where(d > 0, upper[free], lower[free])
        max_step = np.divide(bounds - v_free, d, out=np.full(len(d), np.inf), where=d != 0)
        step = min(1.0, float(max_step.min()))
        at_bound = max_step <= step
        v[free] = np.where(at_bound, bounds, v_free + step * d)
        if step >= 1.0:
            break
        g[free] += A @ (step * d)
        if equations.singular:
            still_free = ~at_bound
            still_free[equations.fixed] = False
            free, equations = free[still_free], None
        else:
            equations.fix(np.flatnonzero(at_bound))
    clipped: np.ndarray = np.clip(v, lower, upper)
    return clipped


class _FaceEquations:
    """The linear equations for the change d of the free variables.

    In each group, the entries of A d + g are equal, and d sums to 0.  The system S of these
    equations is factorised once.  Fixing variables H later, such that d_H = 0, needs only a
    correction x of the right-hand side: S (d, m) = (-g, 0) + x, where x is zero outside H and
    (S^-1)_HH x_H = (S^-1 (g, 0))_H.
    """

    def __init__(self, A: np.ndarray, second: int) -> None:
        self.f = f = len(A)
        ends = sorted({0, second, f})  # the second group begins at `second`, and may be empty
        q = len(ends) - 1
        self.system = system = np.zeros((f + q, f + q))
        system[:f, :f] = A
        # The equations of the sums are scaled to the size of K, so that they are equally accurate.
        scale = 2.0 ** np.frexp(np.abs(A.diagonal()).max())[1]
        for k, (first, last) in enumerate(pairwise(ends), start=f):
            system[first:last, k] = system[k, first:last] = scale
        # The system is symmetric; its transpose has the Fortran order that LAPACK needs.
        self.factor, self.pivots, info = lapack.dgetrf(system.T)
        self.singular = info != 0
        self.fixed, self.columns = np.empty(0, dtype=np.intp), np.empty((f + q, 0))

    def direction(self, g: np.ndarray) -> np.ndarray:
        """Return the change d of the free variables with gradients g.

        If the system is singular, d is the minimum-norm least-squares solution, which takes longer.
        """
        right = np.zeros(len(self.system))
        right[: self.f] = -g
        if not self.singular:
            d = lapack.dgetrs(self.factor, self.pivots, right)[0]
            if len(self.fixed):
                d += self.columns @ _solve_symmetric(self.columns[self.fixed], -d[self.fixed])
                d[self.fixed] = 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                r = self.system @ d - right
                r[self.fixed] = 0.0
                self.singular = not r @ r <= _TUNING.max_residual**2 * (right @ right)
        if self.singular:
            movable = np.delete(np.arange(len(right)), self.fixed)
            d = np.zeros(len(right))
            d[movable] = lstsq(
                self.system[np.ix_(movable, movable)], right[movable], check_finite=False
            )[0]
        return np.asarray(d[: self.f])

    def fix(self, variables: np.ndarray) -> None:
        """Keep the given variables constant in all later calls of `direction`."""
        units = np.zeros((len(self.system), len(variables)))
        units[variables, np.arange(len(variables))] = 1.0
        new = lapack.dgetrs(self.factor, self.pivots, units)[0]
        self.fixed, self.columns = np.append(self.fixed, variables), np.hstack([self.columns, new])


def _solve_symmetric(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve A x = b for a symmetric A; if A is singular, return the minimum-norm solution."""
    *_, x, info = lapack.dgesv(A.T, b)
    with np.errstate(over="ignore", invalid="ignore"):
        r = A @ x - b
        if info == 0 and r @ r <= _TUNING.max_residual**2 * (b @ b):
            return np.asarray(x)
    return np.asarray(lstsq(A, b, check_finite=False)[0])


@jit("nnan", "nsz", "reassoc")
def _refine_programs(
    K: np.ndarray,
    boxes: BoxedGroups,
    linear: np.ndarray,
    v: np.ndarray,
    g: np.ndarray,
    exact: float,
    R: np.ndarray,
    work: np.ndarray,
    free: np.ndarray,
    results: np.ndarray,
) -> None:
    """Compute the gradients g = K v + q, and refine v where that reduces the violation.

    After elimination of the first free variable p of a group, whose sum is fixed, the equations are

        sum_b R_ab d_b = g_p - g_a,     R_ab = K_ab - K_ap - K_pb + K_pp,     d_p = -sum_b d_b,

    where a and b run over the other free variables.  R is positive semidefinite even if K is only
    conditionally positive definite.  Its Cholesky factorisation skips rows that depend linearly on
    previous ones.

    The parameters are those of `QPBatch` and `QPBatch.refine_all`, and workspace.  On entry, the
    first column of `results` contains the limits.
    """
    d, old_v, old_g = work[0], work[1], work[2]
    rows, starts, lower, upper = boxes.rows, boxes.starts, boxes.lower, boxes.upper
    for p in range(len(results)):
        first, middle, last = starts[2 * p], starts[2 * p + 1], starts[2 * p + 2]
        m0, m1, tol = 0.0, 0.0, results[p, 0]
        for attempt in range(2):
            for a in range(first, last):
                g[a] = linear[a]
            for b in range(first, last):
                x = v[b]
                if x != 0.0:
                    row = K[rows[b]]
                    for a in range(first, last):
                        g[a] += x * row[rows[a]]
            old_violation, size, n_free = results[p, 0], 1.0, 0
            results[p, 0] = -1e300
            for group in range(2):
                begin, end = (first, middle) if group == 0 else (middle, last)
                low, up, total, count = -1e300, 1e300, 0.0, 0
                for a in range(begin, end):
                    x = g[a]
                    size = fmax(size, abs(x))
                    if v[a] > lower[a]:
                        low = fmax(low, x)
                        if v[a] < upper[a]:
                            total += x
                            count += 1
                            if n_free < MAX_COMPILED_FREE:
                                free[n_free] = a
                            n_free += 1
                    if v[a] < upper[a]:
                        up = fmin(up, x)
                if end > begin:
                    results[p, 0] = fmax(results[p, 0], low - up)
                if count:
                    results[p, 1 + group] = total / count
                elif low > -1e300 and up < 1e300:
                    results[p, 1 + group] = 0.5 * (low + up)
                else:
                    results[p, 1 + group] = low if low > -1e300 else up
            if attempt == 1:
                # undo the refinement, because it increased the violation
                if results[p, 0] > old_violation:
                    results[p, 0], results[p, 1], results[p, 2] = old_violation, m0, m1
                    for a in range(first, last):
                        v[a], g[a] = old_v[a - first], old_g[a - first]
                break
            if (
                results[p, 0] > tol
                or results[p, 0] <= exact * size
                or n_free < 2
                or n_free > MAX_COMPILED_FREE
            ):
                break
            m0, m1 = results[p, 1], results[p, 2]
            for a in range(first, last):
                old_v[a - first], old_g[a - first] = v[a], g[a]
            for _ in range(_MAX_ROUNDS):
                # The first free variable of each group is eliminated: its row of R is 0.
                second = 0
                while second < n_free and free[second] < middle:
                    second += 1
                for a in range(n_free):
                    leader = second if a >= second else 0
                    row, other = K[rows[free[a]]], K[rows[free[leader]]]
                    for b in range(a + 1):
                        at, to = rows[free[b]], rows[free[second if b >= second else 0]]
                        entry = row[at] - row[to] - other[at] + other[to]
                        x = entry
                        for c in range(b):
                            x -= R[a, c] * R[b, c]
                        if b < a:
                            R[a, b] = x * R[b, b]
                        else:
                            R[a, a] = 1.0 / np.sqrt(x) if x > _DEPENDENT_PIVOT * entry else 0.0
                    x = g[free[leader]] - g[free[a]]
                    for c in range(a):
                        x -= R[a, c] * d[c]
                    d[a] = x * R[a, a]
                step, total = 1.0, 0.0
                for reverse in range(n_free):
                    a = n_free - 1 - reverse
                    x = d[a] * R[a, a]
                    for c in range(a):
                        d[c] -= R[a, c] * x
                    total += x
                    if a == 0 or a == second:
                        x, total = -total, 0.0
                    d[a] = x
                    i = free[a]
                    if x > 0.0:
                        step = fmin(step, (upper[i] - v[i]) / x)
                    elif x < 0.0:
                        step = fmin(step, (lower[i] - v[i]) / x)
                still_free = 0
                for a in range(n_free):
                    i = free[a]
                    row, x, total = K[rows[i]], step * d[a], 0.0
                    for b in range(n_free):
                        total += row[rows[free[b]]] * d[b]
                    g[i] += step * total
                    if x > 0.0 and x >= upper[i] - v[i]:
                        v[i] = upper[i]
                    elif x < 0.0 and x <= lower[i] - v[i]:
                        v[i] = lower[i]
                    else:
                        v[i] += x
                for a in range(n_free):
                    i = free[a]
                    if v[i] > lower[i] and v[i] < upper[i]:
                        free[still_free] = i
                        still_free += 1
                if step >= 1.0 or still_free < 2 or still_free == n_free:
                    break
                n_free = still_free
