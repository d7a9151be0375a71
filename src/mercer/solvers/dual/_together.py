"""Many small duals on one K, solved together: what is set up is set up once for all of them.

    steps     SMO for each program in turn, in one compiled call
    settled   g = K v + q afresh, and the linear equations of the free variables

A program that needs more steps than others is left where it is, for a search of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._active_set import Programs, polish
from ._settle import MOST_FREE, settle
from ._smo_block import run_steps

__all__ = ["Together"]

_STEPS = 10_000  # in one call, which nothing interrupts
_MAX_POLISHES = 2
_EXACT = 1e-11  # relative to the gradient: what small problems are polished to
_FEW_PROGRAMS = 16  # which are not worth a compiled loop
_FEW_FREE = 128  # variables in one system of equations


class Together:
    """Minima of some programs, to the last digits where they are near.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        In float64.
    given : Programs
    start : ndarray
    tol : float
    max_iter : int
        Steps, for each program; -1 for as many as one call may take.

    Attributes
    ----------
    v, g : ndarray
        v, and g = K v + q.
    violation : ndarray
    multipliers : ndarray of shape (programs, 2)
    steps, bent : ndarray of int
        How many steps were taken, and in how many of them the curvature was negative.
    curvature : ndarray
        The most negative one, or 0.
    """

    def __init__(
        self, K: np.ndarray, given: Programs, start: np.ndarray, tol: float, max_iter: int
    ) -> None:
        self.K, self.given, self.tol, count = K, given, tol, len(given)
        self.v = start.copy()
        self.g = given.linear.copy()
        if start.any() and count <= _FEW_PROGRAMS:
            self.g = given.gradient(K, start)
        elif start.any():
            self._settled(given, self.v, self.g, None, np.ones(count, dtype=bool))
        self.violation, self.multipliers = np.full(count, np.inf), np.zeros((count, 2))
        self.steps, self.bent = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.curvature = np.zeros(count)
        if not np.isfinite(self.g).all():
            return
        most = _STEPS if max_iter < 0 else min(_STEPS, max_iter)
        self._advance(np.ones(count, dtype=bool), tol, most)
        # As long as that takes no longer than the way here.
        limit = 2 * self.steps
        if max_iter >= 0:
            limit = np.minimum(limit, max_iter)
        for _ in range(_MAX_POLISHES - 1):
            left = self._near(given, self.g, self.violation, self.bent) & (self.steps < limit)
            if not left.any():
                break
            goal = max(0.01 * float(self.violation[left].min()), _EXACT)
            self._advance(left, goal, int((limit - self.steps)[left].max()))

    def _advance(self, which: np.ndarray, goal: float, most: int) -> None:
        """Take steps in some programs, and settle; what is not better is not kept."""
        every: Any = slice(None)  # quicker than all numbers
        given, at, which = (
            (self.given, every, every) if which.all() else (*self.given.some(which), which)
        )
        g, v = self.g[at].copy(), self.v[at].copy()
        box = given.lower, given.upper
        met = run_steps(self.K, given.rows, given.starts, g, v, *box, goal, most)
        self.steps[which] += met[:, 0].astype(np.int64)
        self.bent[which] += met[:, 2].astype(np.int64)
        self.curvature[which] = np.minimum(self.curvature[which], met[:, 1])
        met = self._settled(given, v, g, met[:, 3], self.bent[which])
        better = met[:, 0] < self.violation[which]
        if at is every and better.all():
            self.v, self.g, self.violation, self.multipliers = v, g, met[:, 0], met[:, 1:]
            return
        took = np.repeat(better, given.sizes)
        self.v[at], self.g[at] = np.where(took, v, self.v[at]), np.where(took, g, self.g[at])
        chosen = np.arange(len(self.given))[which][better]
        self.violation[chosen], self.multipliers[chosen] = met[better, 0], met[better, 1:]

    def _near(self, given: Programs, g: np.ndarray, violation: Any, bent: Any) -> np.ndarray:
        """Tell which programs are near their minimum, and not at it."""
        near = (violation <= self.tol) & (violation > _EXACT) & (bent == 0)
        if near.any():
            size = np.maximum.reduceat(np.abs(g), given.begins)
            near &= violation > _EXACT * (1.0 + size)
        return near

    def _settled(
        self, given: Programs, v: np.ndarray, g: np.ndarray, violation: Any, bent: Any
    ) -> np.ndarray:
        """Set g afresh, and v to where free variables agree; return violations and multipliers.

        `violation` is that of v, and where the curvature was `bent`, v stays as it is.
        """
        if len(given) > _FEW_PROGRAMS:
            met = np.empty((len(given), 3))
            wide = max(MOST_FREE, int(given.sizes.max()))
            R, work = np.empty((MOST_FREE, MOST_FREE)), np.empty((3, wide))
            free = np.empty(MOST_FREE, dtype=np.int64)
            met[:, 0] = np.where(bent, -np.inf, self.tol)
            box = given.linear, given.lower, given.upper
            settle(self.K, given.rows, given.starts, *box, v, g, _EXACT, R, work, free, met)
            return met
        near, w = self._near(given, g, violation, bent), v
        if near.any():
            for some in _batches(given, v, near):
                w = polish(self.K, given, w, g, some)
        g[:] = given.gradient(self.K, w)
        met = given.look(w, g)
        worse = near & (met[:, 0] >= violation)
        if worse.any():
            w = np.where(np.repeat(worse, given.sizes), v, w)
            g[:] = given.gradient(self.K, w)
            met = given.look(w, g)
        v[:] = w
        return met


def _batches(given: Programs, v: np.ndarray, near: np.ndarray) -> list[np.ndarray]:
    """Return which programs are to be solved in one system of equations."""
    free = (v > given.lower) & (v < given.upper)
    if len(given) == 1 or np.count_nonzero(free) <= _FEW_FREE:
        return [near]
    return [np.arange(len(given)) == p for p in np.flatnonzero(near)]
