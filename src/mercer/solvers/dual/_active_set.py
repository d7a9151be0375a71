"""The last digits of small quadratic programs in boxes, by their linear equations.

SMO comes close to the minimum, and leaves few variables between their bounds.  If these are the
right ones, their conditions are linear: with F the free variables,

    K_FF d + g_F = m  in each group,     sum of d in each group = 0,

for a move d and the multipliers m.  A variable that meets a bound on the way stays there, and the
others are solved for again, with the same factors.  Programs with few free variables are solved
together, as one system.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from ..._runtime.linalg import lapack, lstsq

__all__ = ["Programs", "polish"]

_MAX_ROUNDS = 10  # each but the last ends where a variable meets a bound
_SINGULAR_RESIDUAL = 1e-9  # relative: with a larger one A is taken to be singular
_WASTED = 8  # products with entries of K that are not needed, for one that is
_FEW_FREE = 100  # with so few free variables a round is cheap, and all may meet a bound


class Programs:
    """Some `Dual` side by side, on one K.

    Parameters
    ----------
    rows : ndarray of int
        The row of K that each variable belongs to.
    starts : ndarray of int
        Of both groups of each program, the second of which may be empty; and the end.
    linear, lower, upper : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.dual._active_set import Programs, polish
    >>> box = np.array([0.0, -9.0]), np.array([9.0, 0.0])
    >>> one = Programs(np.arange(2), np.array([0, 2, 2]), np.array([-1.0, 1.0]), *box)
    >>> K, v = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0.4, -0.4])
    >>> polish(K, one, v, one.gradient(K, v), np.array([True]))
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
        self.begins = starts[:-1:2]
        self.sizes = starts[2::2] - self.begins  # how many variables each program has

    def __len__(self) -> int:
        return len(self.sizes)

    def some(self, which: np.ndarray) -> tuple[Programs, np.ndarray]:
        """Return some of the programs, and where their variables are."""
        members = np.flatnonzero(np.repeat(which, self.sizes))
        groups = np.diff(self.starts).reshape(-1, 2)[which].ravel()
        starts = np.concatenate([[0], np.cumsum(groups)])
        box = self.lower[members], self.upper[members]
        return Programs(self.rows[members], starts, self.linear[members], *box), members

    def gradient(self, K: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return g = K v + q of each program."""
        n, m = len(K), len(self)
        if m == 1:
            return (K @ np.bincount(self.rows, v, n))[self.rows] + self.linear
        if m * n**2 > _WASTED * (self.sizes**2).sum():  # most of K is not theirs
            g = self.linear.copy()
            for first, last in zip(self.begins, self.starts[2::2], strict=True):
                rows = self.rows[first:last]
                g[first:last] += K[rows[:, None], rows] @ v[first:last]
            return g
        V = np.bincount(self._places, v, n * m).reshape(n, m)
        return (K @ V).ravel()[self._places] + self.linear

    @cached_property
    def _places(self) -> np.ndarray:
        """Where each variable stands in a matrix with a column for each program."""
        return self.rows * len(self) + np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of each group that is not empty, and where it begins."""
        full = np.flatnonzero(np.diff(self.starts))
        return full, self.starts[full]

    def look(self, v: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the violation, and the multipliers of both groups, of each program."""
        met = np.zeros((len(self), 3))
        full, begins = self.groups
        falls, rises = v > self.lower, v < self.upper
        low = np.maximum.reduceat(np.where(falls, g, -np.inf), begins)
        up = np.minimum.reduceat(np.where(rises, g, np.inf), begins)
        free = falls & rises
        count = np.add.reduceat(free, begins, dtype=int)
        m = np.add.reduceat(np.where(free, g, 0.0), begins) / np.maximum(count, 1)
        if not count.all():
            with np.errstate(invalid="ignore"):
                middle = np.where(np.isinf(low), up, np.where(np.isinf(up), low, 0.5 * (low + up)))
            m = np.where(count, m, middle)
        if len(full) == len(self):
            met[:, 0], met[:, 1] = low - up, m
        else:
            met[:, 0] = -np.inf
            met[full // 2, 1 + full % 2] = m
            np.maximum.at(met[:, 0], full // 2, low - up)
        return met


def polish(
    K: np.ndarray, given: Programs, v: np.ndarray, g: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """Return v with its free variables moved to where their gradients are equal.

    `wanted` tells for which programs.  The result need not be better: the caller compares.
    """
    v, g, lower, upper = v.copy(), g.copy(), given.lower, given.upper
    inside = (v > lower) & (v < upper)
    free = np.flatnonzero(inside if wanted.all() else inside & np.repeat(wanted, given.sizes))
    groups = np.searchsorted(given.starts, free, side="right") - 1
    face = None
    for _ in range(_MAX_ROUNDS + (len(free) if len(free) <= _FEW_FREE else 0)):
        if not len(free):
            break
        if face is None:
            rows = given.rows[free]
            A = K.take(rows, axis=0).take(rows, axis=1)
            first, last = groups[0] // 2, groups[-1] // 2
            if first != last:
                A *= groups[:, None] // 2 == groups // 2
            face = _Face(A, groups)
        d = face.direction(g[free])
        here, ends = v[free], np.where(d > 0, upper[free], lower[free])
        room = np.divide(ends - here, d, out=np.full(len(d), np.inf), where=d != 0)
        if first == last:
            step = np.full(len(d), min(1.0, float(room.min())))
        else:
            each = np.ones(last + 1)
            np.minimum.at(each, groups // 2, room)
            step = each[groups // 2]
        hit = room <= step
        v[free] = np.where(hit, ends, here + step * d)
        if step.min() >= 1.0:
            break
        g[free] += A @ (step * d)
        if face.singular:
            stay = (step < 1.0) & ~hit
            stay[face.held] = False
            free, groups, face = free[stay], groups[stay], None
        else:
            face.hold(np.flatnonzero(hit))
    return np.clip(v, lower, upper)


class _Face:
    """The moves d with A d + g equal, and a sum of d of 0, in each group.

    The system S of these equations is factored once.  A variable that is to stay, d_h = 0, is held
    by a force x_h on its equation, S (d, m) = (-g, 0) + x, with (S^-1)_HH x_H = (S^-1 (g, 0))_H.
    """

    def __init__(self, A: np.ndarray, groups: np.ndarray) -> None:
        self.f = f = len(A)
        ends = [0, *np.flatnonzero(groups[1:] != groups[:-1]) + 1, f]
        q = len(ends) - 1
        self.system = system = np.zeros((f + q, f + q))
        system[:f, :f] = A
        # The equations of the sums are scaled to the size of K, so that they hold as exactly.
        unit = 2.0 ** np.frexp(np.abs(A.diagonal()).max())[1]
        for k, (first, last) in enumerate(pairwise(ends), start=f):
            system[first:last, k] = system[k, first:last] = unit
        self.factor, self.pivots, info = lapack.dgetrf(system.T)  # which is symmetric
        self.singular = info != 0
        self.held, self.columns = np.empty(0, dtype=np.intp), np.empty((f + q, 0))

    def direction(self, g: np.ndarray) -> np.ndarray:
        """Return d; of least norm, which takes longer, if the system is singular."""
        right = np.zeros(len(self.system))
        right[: self.f] = -g
        if not self.singular:
            d = lapack.dgetrs(self.factor, self.pivots, right)[0]
            if len(self.held):
                d += self.columns @ _solved(self.columns[self.held], -d[self.held])
                d[self.held] = 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                r = self.system @ d - right
                r[self.held] = 0.0
                self.singular = not r @ r <= _SINGULAR_RESIDUAL**2 * (right @ right)
        if self.singular:
            moves = np.delete(np.arange(len(right)), self.held)
            d = np.zeros(len(right))
            d[moves] = lstsq(self.system[np.ix_(moves, moves)], right[moves], check_finite=False)[0]
        return np.asarray(d[: self.f])

    def hold(self, some: np.ndarray) -> None:
        """Let these variables stay from now on."""
        units = np.zeros((len(self.system), len(some)))
        units[some, np.arange(len(some))] = 1.0
        new = lapack.dgetrs(self.factor, self.pivots, units)[0]
        self.held, self.columns = np.append(self.held, some), np.hstack([self.columns, new])


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x with A x = b, for a symmetric A; of least norm, which takes longer, if singular."""
    *_, x, info = lapack.dgesv(A.T, b)
    with np.errstate(over="ignore", invalid="ignore"):
        r = A @ x - b
        if info == 0 and r @ r <= _SINGULAR_RESIDUAL**2 * (b @ b):
            return np.asarray(x)
    return np.asarray(lstsq(A, b, check_finite=False)[0])
