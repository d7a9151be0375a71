"""The last digits of small quadratic programs in boxes, by their linear equations.

SMO comes close to the minimum, and leaves few variables between their bounds.  If these are the
right ones, their conditions are linear: with F the free variables,

    K_FF d + g_F = m  in each group,     sum of d in each group = 0,

for a move d and the multipliers m.  A variable that meets a bound on the way stays there, and the
others are solved for again.  Programs with few free variables are solved together, as one system.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq

__all__ = ["Programs", "polish"]

_MAX_ROUNDS = 10  # each but the last ends where a variable meets a bound
_SINGULAR_RESIDUAL = 1e-9  # relative: with a larger one A is taken to be singular
_FEW_FREE = 100  # with so few free variables a round is cheap, and all may meet a bound


class Programs(NamedTuple):
    """Some `Dual` side by side, on one K: which variable belongs to which row, group and program.

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

    rows: np.ndarray  # of K, one for each variable
    starts: np.ndarray  # of both groups of each program, the second of which may be empty; the end
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) // 2

    @property
    def sizes(self) -> np.ndarray:
        """How many variables each program has."""
        return np.diff(self.starts[::2])

    @property
    def programs(self) -> np.ndarray:
        """The program of each variable."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def some(self, which: np.ndarray) -> tuple[Programs, np.ndarray]:
        """Return some of the programs, and where their variables are."""
        members = np.flatnonzero(np.repeat(which, self.sizes))
        groups = np.diff(self.starts).reshape(-1, 2)[which].ravel()
        starts = np.concatenate([[0], np.cumsum(groups)])
        parts = (a[members] for a in (self.rows, self.linear, self.lower, self.upper))
        rows, *rest = parts
        return Programs(rows, starts, *rest), members

    def gradient(self, K: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return g = K v + q of each program."""
        if len(self) == 1:
            return (K @ np.bincount(self.rows, v, len(K)))[self.rows] + self.linear
        place = self.rows * len(self) + self.programs
        V = np.bincount(place, v, len(K) * len(self)).reshape(len(K), -1)
        return (K @ V).ravel()[place] + self.linear


def polish(
    K: np.ndarray, given: Programs, v: np.ndarray, g: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """Return v with its free variables moved to where their gradients are equal.

    `wanted` tells for which programs.  The result need not be better: the caller compares.
    """
    v, g, lower, upper = v.copy(), g.copy(), given.lower, given.upper
    free = np.flatnonzero((v > lower) & (v < upper) & np.repeat(wanted, given.sizes))
    groups = np.searchsorted(given.starts, free, side="right") - 1
    for _ in range(_MAX_ROUNDS + (len(free) if len(free) <= _FEW_FREE else 0)):
        if not len(free):
            break
        rows = given.rows[free]
        A = K[rows[:, None], rows]
        first, last = groups[0] // 2, groups[-1] // 2
        if first != last:
            A *= groups[:, None] // 2 == groups // 2
        d = _direction(A, g[free], groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(d > 0, upper[free], lower[free])
            room = np.where(d != 0, (ends - v[free]) / d, np.inf)
        if first == last:
            step = np.full(len(d), min(1.0, float(room.min())))
        else:
            each = np.ones(last + 1)
            np.minimum.at(each, groups // 2, room)
            step = each[groups // 2]
        hit = room <= step
        v[free] = np.where(hit, ends, v[free] + step * d)
        if step.min() >= 1.0:
            break
        g[free] += A @ (step * d)
        stay = (step < 1.0) & ~hit
        free, groups = free[stay], groups[stay]
    return np.clip(v, lower, upper)


def _direction(A: np.ndarray, g: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return d with A d + g equal, and a sum of d of 0, in each group."""
    f = len(g)
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    q = len(begins)
    system, right = np.zeros((f + q, f + q)), np.zeros(f + q)
    system[:f, :f], right[:f] = A, -g
    # The equations of the sums are scaled to the size of K, so that they hold as exactly.
    unit = 2.0 ** np.frexp(np.abs(A.diagonal()).max())[1]
    place = f + np.searchsorted(begins, np.arange(f), side="right") - 1
    system[np.arange(f), place] = system[place, np.arange(f)] = unit
    return _solved(system, right)[:f]


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x with A x = b; of least norm, which takes longer, if A is singular."""
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        x = np.full(len(b), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.linalg.norm(A @ x - b) <= _SINGULAR_RESIDUAL * np.linalg.norm(b):
            return x
    return np.asarray(lstsq(A, b, check_finite=False)[0])
