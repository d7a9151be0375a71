"""Mehrotra's predictor and corrector for a `Dual` on explicit features.

    min_v  1/2 |F^T v|^2 + q^T v,     lower <= v <= upper,     sum of v in each group = given

With w = F^T v, the multipliers -b of the sums, and z, y >= 0 for the two ends of the box, the
minimum has

    F w + q + b = z - y,     z (v - lower) = 0,     y (upper - v) = 0.

A Newton step on these equations, with products that are not yet 0, eliminates all but w and b,

    [ F^T H F + I   F^T H A ]        H = diag(1 / (z / (v - lower) + y / (upper - v))),
    [   A^T H F     A^T H A ],       A_sk = 1 if v_s is in group k,

at O(n m^2) for n rows and m columns, and without a copy of F (Fine & Scheinberg 2001).  Columns of
any unit will do: a Cholesky factorisation does not see powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ._crossover import Corner, at, corner
from ._dual import Dual
from ._row_blocks import gram_of_columns, pulled, row_norms, times

__all__ = ["Barrier", "Point"]

_STEP_SHARE = 0.995  # a step goes so far of the way to the boundary
_MAX_REFINEMENTS = 3  # needed because h grows without bound where v is free
_EXACT_RESIDUAL = 1e-9  # a step with this relative residual needs no refinement
# A corner is looked for once the error is small relative to tol, and the products are small
# relative to the objective.
_CLOSE, _CLOSE_GAP = 1e-3, 1e-8
_ROUNDING = 2.0**-50  # relative error of a term of K v
_TINY = float(np.finfo(float).tiny)


class Point(NamedTuple):
    """A point inside: a, z, c and y are positive, and the products a z and c y go to 0 together."""

    n_iter: int
    w: np.ndarray
    b: np.ndarray  # minus the multipliers of the sums
    a: np.ndarray  # v - lower, kept by itself so that no digit of it is lost
    c: np.ndarray  # upper - v
    z: np.ndarray
    y: np.ndarray
    f: np.ndarray  # F w at the points
    pull: np.ndarray  # F^T v
    products: float = np.nan  # the sum of all a z and c y
    value: float = np.nan  # the objective at v
    error: float = np.nan  # the largest product for a box of width 1, in units of the gradient

    def falls_below(self, other: Point) -> bool:
        """Tell whether the products, or the difference of w and F^T v, fell."""
        apart, before = (np.linalg.norm(x.w - x.pull) for x in (self, other))
        return bool(self.products < 0.9 * other.products or apart < 0.9 * before)


class Barrier:
    """Everything that does not change from step to step.

    Variables whose box, or whose group, leaves them no room are constants.  F is centred on the
    fly: with a given total of v, that only moves b and the linear term.
    """

    def __init__(self, F: np.ndarray, dual: Dual) -> None:
        self.F, self.dual = F, dual
        self.fixed = _settled(dual)
        self.live = np.flatnonzero(np.isnan(self.fixed))
        self.points, self.groups = dual.points[self.live], dual.groups[self.live]
        self.single = np.array_equal(self.points, np.arange(dual.n))  # a variable for each point
        self.lower, self.upper = dual.lower[self.live], dual.upper[self.live]
        self.below, self.above = np.isfinite(self.lower), np.isfinite(self.upper)
        self.sums = np.bincount(dual.groups, dual.start, minlength=dual.n_groups)
        constant = np.where(np.isnan(self.fixed), 0.0, self.fixed)
        self.sums -= np.bincount(dual.groups, constant, minlength=dual.n_groups)

        self.centre = pulled(F, np.full(len(F), 1.0 / len(F)))
        total = self.sums.sum()
        # What the constants and the centre add to w, whatever v is.
        self.given = pulled(F, dual.coefficients(constant)) + total * self.centre
        self.q = dual.linear[self.live] + 0.0
        if self.given.any():
            self.q += self.times(self.given)[self.points]
        self.energy = 0.5 * float(self.given @ self.given)

        self.squares = row_norms(F)  # K_ii; `centred` is the same for centred F
        self.centred = self.squares - times(F, 2.0 * self.centre) + self.centre @ self.centre
        width = self.upper - self.lower
        self.unit = np.where(np.isfinite(width), width, self._reach())
        self.pairs = int(np.count_nonzero(self.below) + np.count_nonzero(self.above)) or 1

    def _reach(self) -> float:
        """Return the largest variable that is needed by itself: the width of an endless box."""
        size = float(self.centred[self.points].mean()) if len(self.q) else 0.0
        reach = 2.0 * float(np.ptp(self.q)) / size if size > 0 else 0.0
        return max(reach, float(np.abs(self.dual.start).max(initial=0.0))) or 1.0

    # ------------------------------------------------------------------ products with centred F

    def times(self, w: np.ndarray) -> np.ndarray:
        return times(self.F, w) - self.centre @ w

    def pulled(self, x: np.ndarray) -> np.ndarray:
        """Return F^T x for x of the variables."""
        return pulled(self.F, self.by_point(x)) - self.centre * x.sum()

    def by_point(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each point."""
        return x if self.single else np.bincount(self.points, x, minlength=self.dual.n)

    def summed(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each group."""
        one = len(self.sums) == 1
        return np.array([x.sum()]) if one else np.bincount(self.groups, x, minlength=len(self.sums))

    # ------------------------------------------------------------------ points

    def start(self) -> Point:
        """Return v with the right sums, at the same share of all boxes of a group."""
        ends = np.where(self.below, self.lower, self.upper - self.unit)
        share = (self.sums - self.summed(ends)) / np.maximum(self.summed(self.unit), _TINY)
        # In infinite boxes any share will do.
        share = np.clip(share, 0.01, 0.99)[self.groups]
        a = np.where(self.below, share * self.unit, 1.0)
        c = np.where(self.above, (1.0 - share) * self.unit, 1.0)
        v = self.variables(a, c)
        pull = self.pulled(v)
        # If the sums are 0, all multiples of v have them; w is that of the best multiple.
        size, best = float(pull @ pull), -float(self.q @ v)
        part = min(max(best / size, 0.0), 1.0) if size and not self.sums.any() else 1.0
        w, f = part * pull, part * self.times(pull)
        g = f[self.points] + self.q
        b = np.zeros(len(self.sums))
        for k in range(len(b)):
            members = self.groups == k
            b[k] = -float(np.median(g[members])) if members.any() else 0.0
        g += b[self.groups]
        self.spread = float(np.abs(g).mean()) or 1.0 if len(g) else 1.0
        both = self.spread * float(self.unit.mean()) / self.unit if len(g) else g
        z = np.where(self.below, np.maximum(g, 0.0) + both, 0.0)
        y = np.where(self.above, np.maximum(-g, 0.0) + both, 0.0)
        return self.assessed(Point(0, w, b, a, c, z, y, f, pull))

    def variables(self, a: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return v from its distances to the ends."""
        nearer = self.below & (~self.above | (a <= c))
        with np.errstate(invalid="ignore"):
            return np.where(nearer, self.lower + a, self.upper - c)

    def assessed(self, point: Point) -> Point:
        """Return the point with its products, objective and error."""
        az, cy = point.a * point.z, point.c * point.y
        v = self.variables(point.a, point.c)
        return point._replace(
            products=float(az.sum() + cy.sum()),
            value=0.5 * float(point.pull @ point.pull) + float(self.q @ v) + self.energy,
            error=float((np.maximum(az, cy) / self.unit).max(initial=0.0)),
        )

    def inside(self, point: Point) -> np.ndarray:
        """Return all of v at a point."""
        v = self.fixed.copy()
        v[self.live] = self.variables(point.a, point.c)
        return v

    def outset(self) -> Corner:
        """Return the start of the dual, which may be its minimum."""
        return at(self.F, self.dual, np.where(np.isnan(self.fixed), self.dual.start, self.fixed))

    def is_rounded(self, found: Corner) -> bool:
        """Tell whether the violation is no more than what rounding of v does to K v."""
        return found.violation <= self._rounding(found.v[self.live])

    def is_close(self, point: Point, tol: float) -> bool:
        """Tell whether a corner should be near."""
        small = point.products <= _CLOSE_GAP * abs(point.value) or point.error <= _CLOSE**2 * tol
        rounding = self._rounding(self.variables(point.a, point.c))
        return point.error <= _CLOSE * rounding or (small and point.error <= _CLOSE * tol)

    def _rounding(self, v: np.ndarray) -> float:
        """Return what is not known of K v: an error of each v_s F_s, seen by the longest row."""
        sizes = v * np.sqrt(self.squares[self.points])
        longest = np.sqrt(self.squares.max(initial=0.0))
        return _ROUNDING * float(longest * np.linalg.norm(sizes))

    def corner(self, point: Point, tol: float) -> Corner:
        """Return v on its bounds where the products say that it belongs there."""
        v = self.fixed.copy()
        inside = self.variables(point.a, point.c)
        # A variable is at its bound if the distance to it, and not the multiplier, goes to 0.  They
        # are compared in units of the gradient, which changes by K_ii for a change of v by 1, and
        # by its own size over a whole box.
        g = max(self.spread, float(np.abs(point.f).max(initial=0.0)))
        unit = np.maximum(g / self.unit, self.centred[self.points])
        down = self.below & (unit * point.a < point.z)
        up = self.above & (unit * point.c < point.y) & ~down
        inside = np.where(down, self.lower, np.where(up, self.upper, inside))
        v[self.live] = np.clip(inside, self.lower, self.upper)
        return corner(self.F, self.dual, v, tol)

    def step(self, point: Point) -> Point | None:
        """Return the next point; None if the system is as good as singular, or numbers overflow."""
        system = _System.of(self, point)
        if system is None:
            return None
        a, c, z, y = point.a, point.c, point.z, point.y
        R, S = -a * z, -c * y
        move = system.direction(R, S, 0)
        t = move.room
        after = float((self.below * (a + t * move.v)) @ (z + t * move.z))
        after += float((self.above * (c - t * move.v)) @ (y + t * move.y))
        # All products aim at the same number, for narrow boxes and for wide ones.
        aim = max(after / max(point.products, _TINY), 0.0) ** 3 * point.products / self.pairs
        R, S = R + aim - move.v * move.z, S + aim + move.v * move.y
        move = system.direction(R, S, _MAX_REFINEMENTS)
        t = min(1.0, _STEP_SHARE * move.room)
        moved = Point(
            point.n_iter + 1,
            point.w + t * move.w,
            point.b + t * move.b,
            np.where(self.below, a + t * move.v, 1.0),
            np.where(self.above, c - t * move.v, 1.0),
            z + t * move.z,
            y + t * move.y,
            point.f + t * move.f,
            point.pull + t * move.pull,
        )
        moved = self.assessed(moved)
        finite = np.isfinite(moved.value + moved.products) and np.isfinite(moved.f.sum())
        return moved if finite else None


class _Move(NamedTuple):
    """A direction: what is added to w, b, F w, v, F^T v, z and y, and how far one can go."""

    w: np.ndarray
    b: np.ndarray
    f: np.ndarray
    v: np.ndarray
    pull: np.ndarray
    z: np.ndarray
    y: np.ndarray
    room: float


@dataclass(frozen=True, eq=False)
class _System:
    """The equations of a Newton step at a point, all but w and b eliminated, and factored."""

    barrier: Barrier
    point: Point
    h: np.ndarray
    slack: np.ndarray  # F w + q + b - z + y, to be 0
    short: np.ndarray  # what the sums of v lack
    L: np.ndarray

    @classmethod
    def of(cls, barrier: Barrier, point: Point) -> _System | None:
        _, _, b, a, c, z, y, f, *_ = point
        h = a * c / (z * c + y * a)
        slack = f[barrier.points] + barrier.q + b[barrier.groups] - z + y
        short = barrier.sums - barrier.summed(barrier.variables(a, c))
        m, K, n = barrier.F.shape[1], len(short), barrier.dual.n
        H = np.empty((n, K))  # the sums of h over the variables of each point, by group
        for k in range(K):
            H[:, k] = barrier.by_point(h if K == 1 else np.where(barrier.groups == k, h, 0.0))
        total = H.sum(axis=0)
        A = np.zeros((m + K, m + K), order="F")
        A[:m, :m] = gram_of_columns(barrier.F, H.sum(axis=1), barrier.centre)
        A[m:, :m] = pulled(barrier.F, H).T - np.outer(total, barrier.centre)
        A[m:, m:] = np.diag(np.where(total > 0, total, 1.0))
        A.flat[: m * (m + K) : m + K + 1] += 1.0
        for _ in range(2):
            L, info = dpotrf(A, lower=1)
            if not info and np.isfinite(L.sum()):
                return cls(barrier, point, h, slack, short, L)
            # Try once more with a diagonal that is larger by what rounding may have taken from it.
            A.flat[:: m + K + 1] *= 1.0 + 1e-13
        return None

    def direction(self, R: np.ndarray, S: np.ndarray, refined: int) -> _Move:
        """Solve a dz + z da = R and c dy + y dc = S for all variables, with all else linear."""
        barrier, (_, w, _, a, c, z, y, *_) = self.barrier, self.point
        below, above = barrier.below, barrier.above
        e = below * R / a - above * S / c - self.slack
        he = self.h * e
        away = self.point.pull - w
        right = np.concatenate([barrier.pulled(he) + away, barrier.summed(he) - self.short])
        size = np.abs(right).max(initial=0.0)
        x = np.zeros(len(right))
        for left in range(refined, -1, -1):
            x += dpotrs(self.L, right, lower=1)[0]
            dw, db = x[: len(w)], x[len(w) :]
            df = barrier.times(dw)
            dv = self.h * (e - df[barrier.points] - db[barrier.groups])
            pull = barrier.pulled(dv) if refined else dw
            right = np.concatenate([pull + away - dw, barrier.summed(dv) - self.short])
            if not left or np.abs(right).max(initial=0.0) <= _EXACT_RESIDUAL * size:
                break
        dz, dy = below * (R - z * dv) / a, above * (S + y * dv) / c
        pairs = ((a, dv, below), (c, -dv, above), (z, dz, below), (y, dy, above))
        # The largest step, up to 1 / _STEP_SHARE, that leaves everything non-negative.
        most = max(float((-dx / x)[end].max(initial=0.0)) for x, dx, end in pairs)
        return _Move(dw, db, df, dv, pull, dz, dy, 1.0 / max(most, _STEP_SHARE))


def _settled(dual: Dual) -> np.ndarray:
    """Return the variables that have no choice, NaN for others."""
    fixed = np.where(dual.upper > dual.lower, np.nan, dual.lower)
    for k in range(dual.n_groups):
        members = dual.groups == k
        for end in (dual.lower, dual.upper):
            room = np.abs(end - dual.start)[members].sum()
            if room <= 1e-14 * np.abs(dual.start[members]).sum():
                fixed[members] = end[members]
    return fixed
