"""The dual of a support vector machine on explicit features as a `BoxProgram`.

    min_v  1/2 |F^T v|^2 + q^T v,     lower <= v <= upper,     sum of v in each group = given

With w = F^T v and the multipliers -b of the sums, u = (w, b), the system of a step is

    [ F^T H F + I   F^T H A ]
    [   A^T H F     A^T H A ],       A_sk = 1 if v_s is in group k,

at O(n m^2) for n rows and m columns, and without a copy of F (Fine & Scheinberg 2001).  Columns of
any unit will do: a Cholesky factorisation does not see powers of two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._runtime.linalg import lapack
from .._box_program import BoxProgram, Point, factored
from .._row_blocks import pulled, row_norms, times, weighted_gram
from ._crossover import Corner, at, corner
from ._dual import Dual

__all__ = ["Barrier"]

# A corner is looked for once the error is small relative to tol, and the products are small
# relative to the objective.
_CLOSE, _CLOSE_GAP = 1e-3, 1e-8
_ROUNDING = 2.0**-50  # relative error of a term of K v
_TINY = float(np.finfo(float).tiny)


class Barrier(BoxProgram):
    """The way of an interior point through a `Dual`, and from there to a corner.

    Variables whose box, or whose group, leaves them no room are constants.  F is centred on the
    fly: with a given total of v, that only moves b and the linear term.
    """

    def __init__(self, F: np.ndarray, dual: Dual) -> None:
        self.F, self.dual = F, dual
        self.fixed = _settled(dual)
        self.live = np.flatnonzero(np.isnan(self.fixed))
        self.points, self.groups = dual.points[self.live], dual.groups[self.live]
        self.single = np.array_equal(self.points, np.arange(dual.n))  # a variable for each point
        self.m = F.shape[1]
        constant = np.where(np.isnan(self.fixed), 0.0, self.fixed)
        sums = np.bincount(dual.groups, dual.start - constant, minlength=dual.n_groups)
        self.centre = pulled(F, np.full(len(F), 1.0 / len(F)))
        # What the constants and the centre add to w, whatever v is.
        given = pulled(F, dual.coefficients(constant)) + sums.sum() * self.centre
        linear = dual.linear[self.live] + self._centred(given)[self.points]
        self.energy = 0.5 * float(given @ given)
        box = dual.lower[self.live], dual.upper[self.live]
        ridge = np.repeat([1.0, 0.0], [self.m, len(sums)])
        super().__init__(*box, linear, ridge, sums=np.concatenate([np.zeros(self.m), sums]))

        self.squares = row_norms(F)  # K_ii; `centred` is the same for centred F
        self.centred = self.squares - times(F, 2.0 * self.centre) + self.centre @ self.centre
        width = self.upper - self.lower
        self.unit = np.where(np.isfinite(width), width, self._reach())

    def _reach(self) -> float:
        """Return the largest variable that is needed by itself: the width of an endless box."""
        size = float(self.centred[self.points].mean()) if len(self.live) else 0.0
        reach = 2.0 * float(np.ptp(self.linear)) / size if size > 0 else 0.0
        return max(reach, float(np.abs(self.dual.start).max(initial=0.0))) or 1.0

    # ------------------------------------------------------------------ products with centred F

    def times(self, u: np.ndarray) -> np.ndarray:
        return self._centred(u[: self.m])[self.points] + u[self.m :][self.groups]

    def _centred(self, w: np.ndarray) -> np.ndarray:
        return times(self.F, w) - self.centre @ w

    def pulled(self, v: np.ndarray) -> np.ndarray:
        w = pulled(self.F, self.by_point(v)) - self.centre * v.sum()
        return np.concatenate([w, self.summed(v)])

    def primal_residual(self, point: Point) -> np.ndarray:
        away = super().primal_residual(point)
        # The sums are computed afresh: steps that are added up lose their last digits.
        away[self.m :] = self.summed(self.variables(point.a, point.c)) - self.sums[self.m :]
        return away

    def by_point(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each point."""
        return x if self.single else np.bincount(self.points, x, minlength=self.dual.n)

    def summed(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each group."""
        one = self.dual.n_groups == 1
        return np.array([x.sum()]) if one else np.bincount(self.groups, x, self.dual.n_groups)

    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        m, K, n = self.m, self.dual.n_groups, self.dual.n
        H = np.empty((n, K))  # the sums of h over the variables of each point, by group
        for k in range(K):
            H[:, k] = self.by_point(h if K == 1 else np.where(self.groups == k, h, 0.0))
        total = H.sum(axis=0)
        A = np.zeros((m + K, m + K), order="F")
        A[:m, :m] = weighted_gram(self.F, H.sum(axis=1), self.centre)
        A[m:, :m] = pulled(self.F, H).T - np.outer(total, self.centre)
        A[m:, m:] = np.diag(np.where(total > 0, total, 1.0))
        A.flat[: m * (m + K) : m + K + 1] += 1.0
        L = factored(A)
        return None if L is None else lambda right: lapack.dpotrs(L, right, lower=1)[0]

    # ------------------------------------------------------------------ points

    def start(self) -> Point:
        """Return v with the right sums, at the same share of all boxes of a group."""
        ends = np.where(self.below, self.lower, self.upper - self.unit)
        short = self.sums[self.m :] - self.summed(ends)
        share = short / np.maximum(self.summed(self.unit), _TINY)
        # In infinite boxes any share will do.
        share = np.clip(share, 0.01, 0.99)[self.groups]
        a = np.where(self.below, share * self.unit, 1.0)
        c = np.where(self.above, (1.0 - share) * self.unit, 1.0)
        v = self.variables(a, c)
        pull = self.pulled(v)
        # If the sums are 0, all multiples of v have them; w is that of the best multiple.
        size, best = float(pull[: self.m] @ pull[: self.m]), -float(self.linear @ v)
        part = min(max(best / size, 0.0), 1.0) if size and not self.sums.any() else 1.0
        u = part * pull
        u[self.m :] = 0.0
        g = self.times(u) + self.linear
        for k in range(self.dual.n_groups):
            members = self.groups == k
            u[self.m + k] = -float(np.median(g[members])) if members.any() else 0.0
        image = self.times(u)
        g = image + self.linear
        self.spread = float(np.abs(g).mean()) or 1.0 if len(g) else 1.0
        both = self.spread * float(self.unit.mean()) / self.unit if len(g) else g
        z = np.where(self.below, np.maximum(g, 0.0) + both, 0.0)
        y = np.where(self.above, np.maximum(-g, 0.0) + both, 0.0)
        return Point(u, a, c, z, y, image, pull)

    def value(self, point: Point) -> float:
        """Return the objective at a point."""
        v, w = self.variables(point.a, point.c), point.pull[: self.m]
        return 0.5 * float(w @ w) + float(self.linear @ v) + self.energy

    def error(self, point: Point) -> float:
        """Return the largest product for a box of width 1, in units of the gradient."""
        largest = np.maximum(point.a * point.z, point.c * point.y)
        return float((largest / self.unit).max(initial=0.0))

    def falls(self, before: Point, after: Point) -> bool:
        """Tell whether the products, or the difference of w and F^T v, fell."""
        apart = [np.linalg.norm(self.primal_residual(point)[: self.m]) for point in (before, after)]
        return bool(after.products < 0.9 * before.products or apart[1] < 0.9 * apart[0])

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
        error = self.error(point)
        small = point.products <= _CLOSE_GAP * abs(self.value(point)) or error <= _CLOSE**2 * tol
        rounding = self._rounding(self.variables(point.a, point.c))
        return error <= _CLOSE * rounding or (small and error <= _CLOSE * tol)

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
        f = point.image - point.u[self.m :][self.groups]
        g = max(self.spread, float(np.abs(f).max(initial=0.0)))
        unit = np.maximum(g / self.unit, self.centred[self.points])
        down = self.below & (unit * point.a < point.z)
        up = self.above & (unit * point.c < point.y) & ~down
        inside = np.where(down, self.lower, np.where(up, self.upper, inside))
        v[self.live] = np.clip(inside, self.lower, self.upper)
        return corner(self.F, self.dual, v, tol)


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
