"""Quadratic programs in a box whose matrix has few columns, by Mehrotra's interior point.

    min_v  1/2 v^T A R^-1 A^T v + 1/2 v^T D v + q^T v,      lower <= v <= upper

D diagonal; where the diagonal R has a 0 the column of A^T v has a given sum instead.  With
u = R^-1 (A^T v - sums), or minus the multiplier of a given sum, the minimum has multipliers z and
y >= 0 of the two ends of the box,

    A u + D v + q = z - y,      z (v - lower) = 0,      y (upper - v) = 0.

A Newton step on these equations, with products that are not yet 0, eliminates all but u,

    (A^T H A + R) du = right,      H = diag(1 / (z / (v - lower) + y / (upper - v) + D)),

and is taken twice with one factor: towards products of 0, and then, knowing how far that goes,
towards products that are all alike, with the square of the first step taken into account.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._runtime.linalg import lapack

__all__ = ["BoxProgram", "Point", "factored"]

_STEP_SHARE = 0.995  # a step goes so far of the way to the boundary
_MAX_REFINEMENTS = 3  # needed because h grows without bound where v is free
_EXACT_RESIDUAL = 1e-9  # a step with this relative residual needs no refinement
_TINY = float(np.finfo(float).tiny)


class Point(NamedTuple):
    """A point inside: a, c, z and y are positive, and the products a z and c y go to 0 together.

    At an end that is infinite the distance is 1 and the multiplier 0.
    """

    u: np.ndarray
    a: np.ndarray  # v - lower, kept by itself so that no digit of it is lost
    c: np.ndarray  # upper - v
    z: np.ndarray
    y: np.ndarray
    image: np.ndarray  # A u
    pull: np.ndarray  # A^T v
    n_iter: int = 0

    @property
    def products(self) -> float:
        """The sum of all a z and c y."""
        return float(self.a @ self.z + self.c @ self.y)

    def moved(self, by: Point, size: float) -> Point:
        """Return the point this many times a direction further, and a step later."""
        parts = (x + size * dx for x, dx in zip(self[:-1], by[:-1], strict=True))
        return Point._make([*parts, self.n_iter + 1])

    def room(self, by: Point) -> float:
        """Return the largest step, up to 1 / _STEP_SHARE, that leaves everything non-negative."""
        pairs = zip(self[1:5], by[1:5], strict=True)
        most = max(float(np.fmax.reduce(-dx / x, initial=0.0)) for x, dx in pairs)
        return 1.0 / max(most, _STEP_SHARE)


class BoxProgram(ABC):
    """A quadratic program in a box, and the steps of an interior point through it.

    Parameters
    ----------
    lower, upper, linear : ndarray
        The box, an end of which may be infinite, and q.
    ridge, sums : ndarray or float
        The diagonal of R, in the shape of u; and the sums that are given where it is 0.
    bend, shares : ndarray or float
        D, and what the products of each variable aim at, relative to others.
    """

    refined = 0  # times that the first of the two directions is refined

    def __init__(
        self,
        lower: np.ndarray,
        upper: np.ndarray,
        linear: np.ndarray,
        ridge: np.ndarray,
        *,
        sums: Any = 0.0,
        bend: Any = 0.0,
        shares: Any = 1.0,
    ) -> None:
        self.lower, self.upper, self.linear = lower, upper, linear
        self.ridge, self.sums, self.bend, self.shares = ridge, sums, bend, shares
        self.below, self.above = np.isfinite(lower), np.isfinite(upper)
        self.total = float(np.sum(shares * self.below) + np.sum(shares * self.above)) or 1.0

    @abstractmethod
    def times(self, u: np.ndarray) -> np.ndarray:
        """Return A u."""

    @abstractmethod
    def pulled(self, v: np.ndarray) -> np.ndarray:
        """Return A^T v."""

    @abstractmethod
    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return what solves with A^T diag(h) A + R; None if that is as good as singular."""

    def variables(self, a: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return v from its distances to the ends."""
        nearer = self.below & (~self.above | (a <= c))
        with np.errstate(invalid="ignore"):
            return np.where(nearer, self.lower + a, self.upper - c)

    def away(self, point: Point) -> np.ndarray:
        """Return A^T v - R u - sums, which is to be 0."""
        return point.pull - self.ridge * point.u - self.sums

    @np.errstate(all="ignore")  # values that are not finite end the search
    def step(self, point: Point) -> Point | None:
        """Return the next point; None if the system is as good as singular, or numbers overflow."""
        a, c, z, y = point[1:5]
        h = a * c / (z * c + y * a + self.bend * (a * c))
        solve = self.factor(h)
        if solve is None:
            return None
        R, S, products = -a * z, -c * y, point.products
        move = self._direction(point, h, solve, R, S, self.refined)
        after = point.moved(move, point.room(move)).products
        aim = max(after / max(products, _TINY), 0.0) ** 3 * products / self.total * self.shares
        R, S = R + aim - move.a * move.z, S + aim - move.c * move.y
        move = self._direction(point, h, solve, R, S, _MAX_REFINEMENTS)
        moved = point.moved(move, min(1.0, _STEP_SHARE * point.room(move)))
        size = moved.products + np.vdot(moved.pull, moved.pull) + moved.image.sum()
        return moved if np.isfinite(size) else None

    def _direction(
        self,
        point: Point,
        h: np.ndarray,
        solve: Callable[[np.ndarray], np.ndarray],
        R: np.ndarray,
        S: np.ndarray,
        refined: int,
    ) -> Point:
        """Solve a dz + z da = R and c dy + y dc = S for all variables, with all else linear."""
        a, c, z, y, below, above = *point[1:5], self.below, self.above
        slack = point.image + self.linear + self.bend * self.variables(a, c) - z + y
        e = below * R / a - above * S / c - slack
        away = self.away(point)
        right = self.pulled(h * e) + away
        size = np.abs(right).max(initial=0.0)
        du = np.zeros_like(right)
        for left in range(refined, -1, -1):
            du += solve(right)
            image = self.times(du)
            dv = h * (e - image)
            pull = self.pulled(dv) if refined else du
            right = pull + away - self.ridge * du
            if not left or np.abs(right).max(initial=0.0) <= _EXACT_RESIDUAL * size:
                break
        dz, dy = below * (R - z * dv) / a, above * (S + y * dv) / c
        return Point(du, below * dv, above * -dv, dz, dy, image, pull)


def factored(A: np.ndarray) -> np.ndarray | None:
    """Return L with L L^T = A, from its lower half; None if A is as good as singular."""
    for _ in range(2):
        L, info = lapack.dpotrf(A, lower=1) if A.size else (A, 0)
        if not info and np.isfinite(L.sum()):
            return L
        # Try once more with a diagonal that is larger by what rounding may have taken from it.
        A.flat[:: len(A) + 1] *= 1.0 + 1e-13
    return None
