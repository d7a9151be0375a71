"""Refinement of the solutions of small dual problems to full precision, with LAPACK.

SMO ends close to the minimum, with few variables strictly between their bounds.  If the set F of
these free variables is that of the minimum, the optimality conditions are linear:

    K_FF d + g_F = m  in each group,     sum of d in each group = 0,

for the gradient g, the change d of v and the multipliers m.  A variable that reaches a bound stays
there, and the equations of the remaining ones are solved again with the same factorisation.
Programs with few free variables are solved together, as one system.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..._core.linalg import lapack, lstsq

__all__ = ["QPBatch", "refine_numpy"]


@dataclass(frozen=True)
class _RefinementTuning:
    """Tuning constants of the refinement."""

    # Maximum number of linear solves; a variable that reaches a bound requires another solve.
    max_rounds: int = 10
    # The matrix is treated as singular if the relative residual of a linear solve exceeds this.
    max_residual: float = 1e-9
    # One product with all of K replaces a product for each program, unless it takes more than this
    # many times as many multiplications.
    max_wasted_products: int = 8
    # With at most this many free variables, linear solves are cheap, and one more is allowed for
    # each of them.
    max_cheap_free: int = 100


_TUNING = _RefinementTuning()


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
    >>> from mercer.solvers.svm._refine_numpy import QPBatch, refine_numpy
    >>> box = np.array([0.0, -9.0]), np.array([9.0, 0.0])
    >>> one = QPBatch(np.arange(2), np.array([0, 2, 2]), np.array([-1.0, 1.0]), *box)
    >>> K, v = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0.4, -0.4])
    >>> refine_numpy(K, one, v, one.gradient(K, v), np.array([True]))
    array([ 0.5, -0.5])
    """

    def __init__(
        self,
        rows: np.ndarray,
        starts: np.ndarray,
        linear: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
    ) -> None:
        self.rows, self.starts, self.linear = rows, starts, linear
        self.lower, self.upper = lower, upper
        self.program_starts = starts[:-1:2]
        self.sizes = starts[2::2] - self.program_starts  # number of variables of each program

    def __len__(self) -> int:
        return len(self.sizes)

    def subset(self, selected: np.ndarray) -> tuple[QPBatch, np.ndarray]:
        """Return the selected programs, and the indices of their variables."""
        members = np.flatnonzero(np.repeat(selected, self.sizes))
        groups = np.diff(self.starts).reshape(-1, 2)[selected].ravel()
        starts = np.concatenate([[0], np.cumsum(groups)])
        box = self.lower[members], self.upper[members]
        return QPBatch(self.rows[members], starts, self.linear[members], *box), members

    def gradient(self, K: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the gradients g = K v + q of all programs."""
        n, m = len(K), len(self)
        if m == 1:
            return (K @ np.bincount(self.rows, v, n))[self.rows] + self.linear
        # If the programs use only a small part of K, multiply each of them separately.
        if m * n**2 > _TUNING.max_wasted_products * (self.sizes**2).sum():
            g = self.linear.copy()
            for first, last in zip(self.program_starts, self.starts[2::2], strict=True):
                rows = self.rows[first:last]
                g[first:last] += K[rows[:, None], rows] @ v[first:last]
            return g
        V = np.bincount(self._flat_positions, v, n * m).reshape(n, m)
        return (K @ V).ravel()[self._flat_positions] + self.linear

    @cached_property
    def _flat_positions(self) -> np.ndarray:
        """The flat index of each variable in a matrix with one column for each program."""
        return self.rows * len(self) + np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def nonempty_groups(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the groups that are not empty, and their first variables."""
        nonempty = np.flatnonzero(np.diff(self.starts))
        return nonempty, self.starts[nonempty]

    def kkt_residuals(self, v: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the violation and the multipliers of both groups of each program.

        The result has shape (programs, 3).
        """
        results = np.zeros((len(self), 3))
        nonempty, first_variables = self.nonempty_groups
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


def refine_numpy(
    K: np.ndarray, programs: QPBatch, v: np.ndarray, g: np.ndarray, selected: np.ndarray
) -> np.ndarray:
    """Return v after changing its free variables such that their gradients become equal.

    `selected` is a mask of the programs to refine.  The result is not always better: the caller has
    to compare the violations.
    """
    v, g, lower, upper = v.copy(), g.copy(), programs.lower, programs.upper
    is_free = (v > lower) & (v < upper)
    free = np.flatnonzero(
        is_free if selected.all() else is_free & np.repeat(selected, programs.sizes)
    )
    groups = np.searchsorted(programs.starts, free, side="right") - 1
    equations = None
    for _ in range(_TUNING.max_rounds + (len(free) if len(free) <= _TUNING.max_cheap_free else 0)):
        if not len(free):
            break
        if equations is None:
            rows = programs.rows[free]
            A = K.take(rows, axis=0).take(rows, axis=1)
            first, last = groups[0] // 2, groups[-1] // 2
            if first != last:
                A *= groups[:, None] // 2 == groups // 2
            equations = _FaceEquations(A, groups)
        d = equations.direction(g[free])
        v_free, bounds = v[free], np.where(d > 0, upper[free], lower[free])
        max_step = np.divide(bounds - v_free, d, out=np.full(len(d), np.inf), where=d != 0)
        if first == last:
            step = np.full(len(d), min(1.0, float(max_step.min())))
        else:
            step_of_program = np.ones(last + 1)
            np.minimum.at(step_of_program, groups // 2, max_step)
            step = step_of_program[groups // 2]
        at_bound = max_step <= step
        v[free] = np.where(at_bound, bounds, v_free + step * d)
        if step.min() >= 1.0:
            break
        g[free] += A @ (step * d)
        if equations.singular:
            still_free = (step < 1.0) & ~at_bound
            still_free[equations.fixed] = False
            free, groups, equations = free[still_free], groups[still_free], None
        else:
            equations.fix(np.flatnonzero(at_bound))
    return np.clip(v, lower, upper)


class _FaceEquations:
    """The linear equations for the change d of the free variables.

    In each group, the entries of A d + g are equal, and d sums to 0.  The system S of these
    equations is factorised once.  Fixing variables H later, such that d_H = 0, needs only a
    correction x of the right-hand side: S (d, m) = (-g, 0) + x, where x is zero outside H and
    (S^-1)_HH x_H = (S^-1 (g, 0))_H.
    """

    def __init__(self, A: np.ndarray, groups: np.ndarray) -> None:
        self.f = f = len(A)
        ends = [0, *np.flatnonzero(groups[1:] != groups[:-1]) + 1, f]
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
