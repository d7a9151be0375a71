"""Box-constrained quadratic programs of low rank, by Mehrotra's interior-point method.

    min_v  1/2 v^T A R^-1 A^T v + 1/2 v^T D v + q^T v,      lower <= v <= upper

A has few columns, and R and D are diagonal.  A zero on the diagonal of R stands for a constraint:
that entry of A^T v must equal the corresponding entry of `sums`.  Let u = R^-1 (A^T v - sums);
where R is 0, u is minus the multiplier of the constraint.  At the minimum, there are multipliers
z >= 0 of the lower bounds and y >= 0 of the upper bounds such that

    A u + D v + q = z - y,      z (v - lower) = 0,      y (upper - v) = 0.

The method solves these equations by Newton steps.  The two products are not set to 0 at once, but
to positive values that go to 0.  In each step, all unknowns but u are eliminated,

    (A^T H A + R) du = right,      H = diag(1 / (z / (v - lower) + y / (upper - v) + D)),

and two directions are computed from one factorisation.  The predictor aims at products of 0.  The
corrector aims at equal positive products, which are smaller the further the predictor could go; it
also includes the second-order term of the predictor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._core.linalg import lapack

_BOUNDARY_FRACTION = 0.995  # a step goes at most this fraction of the way to the bounds
# Steps of iterative refinement per direction: for variables between their bounds, the weights h
# become so large that rounding errors matter.
_MAX_REFINEMENTS = 3
_EXACT_RESIDUAL = 1e-9  # a direction with a relative residual below this is not refined
_TINY = float(np.finfo(float).tiny)


class PrimalDualPoint(NamedTuple):
    """An iterate of the interior-point method, or a direction between two iterates.

    For an iterate, the distances a and c of the variables v from their bounds and the multipliers
    z and y are positive, and the products a z and c y go to 0 at the same rate.  For an infinite
    bound, the distance is set to 1 and the multiplier to 0.
    """

    u: np.ndarray  # R^-1 (A^T v - sums), or minus the multiplier of a constraint
    a: np.ndarray  # v - lower, stored separately because the difference would be less precise
    c: np.ndarray  # upper - v
    z: np.ndarray  # multipliers of v >= lower
    y: np.ndarray  # multipliers of v <= upper
    image: np.ndarray  # A u
    pull: np.ndarray  # A^T v
    n_iter: int = 0

    @property
    def products(self) -> float:
        """The sum of all products a z and c y, which is 0 at the minimum."""
        return float(self.a @ self.z + self.c @ self.y)

    def advance(self, direction: PrimalDualPoint, size: float) -> PrimalDualPoint:
        """Return the next iterate: the present one plus `size` times the direction."""
        fields = (x + size * dx for x, dx in zip(self[:-1], direction[:-1], strict=True))
        return PrimalDualPoint._make([*fields, self.n_iter + 1])

    def max_step(self, direction: PrimalDualPoint) -> float:
        """Return the largest step size that keeps a, c, z and y non-negative.

        The step size is at most 1 / _BOUNDARY_FRACTION, slightly more than a full step.
        """
        pairs = zip(self[1:5], direction[1:5], strict=True)
        steepest = max(float(np.fmax.reduce(-dx / x, initial=0.0)) for x, dx in pairs)
        return 1.0 / max(steepest, _BOUNDARY_FRACTION)


class BoxQP(ABC):
    """A box-constrained quadratic program, and the interior-point steps that solve it.

    The problem is min 1/2 v^T A R^-1 A^T v + 1/2 v^T D v + q^T v for lower <= v <= upper, with
    diagonal R and D.  Subclasses implement the products with A and the factorisation of
    A^T diag(h) A + R.

    Parameters
    ----------
    lower, upper : ndarray
        The bounds of v, which may be infinite.
    linear : ndarray
        The linear term q.
    ridge : ndarray
        The diagonal of R, in the shape of u; 0 stands for an equality constraint.
    sums : ndarray or float, default=0.0
        The required values of A^T v where `ridge` is 0.
    bend : ndarray or float, default=0.0
        The diagonal of D.
    shares : ndarray or float, default=1.0
        Relative weights of the variables: the corrector step aims at products (distance from a
        bound, times its multiplier) that are proportional to these.
    """

    refined = 0  # number of iterative refinement steps of the predictor direction

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
        self.total_weight = float(np.sum(shares * self.below) + np.sum(shares * self.above)) or 1.0

    @abstractmethod
    def times(self, u: np.ndarray) -> np.ndarray:
        """Return A u."""

    @abstractmethod
    def pulled(self, v: np.ndarray) -> np.ndarray:
        """Return A^T v."""

    @abstractmethod
    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return a function that solves linear systems with the matrix A^T diag(h) A + R.

        Returns None if the matrix is numerically singular.
        """

    def variables(self, a: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return v, computed from its distances a to the lower and c to the upper bound.

        The smaller of the two distances is used, because it is more accurate.
        """
        from_lower = self.below & (~self.above | (a <= c))
        with np.errstate(invalid="ignore"):
            u: np.ndarray = np.where(from_lower, self.lower + a, self.upper - c)
            return u

    def primal_residual(self, point: PrimalDualPoint) -> np.ndarray:
        """Return A^T v - R u - sums, which is 0 for a feasible point."""
        gradient: np.ndarray = point.pull - self.ridge * point.u - self.sums
        return gradient

    @np.errstate(all="ignore")  # a value that is not finite ends the iteration
    def step(self, point: PrimalDualPoint) -> PrimalDualPoint | None:
        """Return the next iterate.

        Returns None if the linear system is numerically singular, or if values overflow.
        """
        a, c, z, y = point[1:5]
        h = a * c / (z * c + y * a + self.bend * (a * c))
        solve = self.factor(h)
        if solve is None:
            return None
        target_z, target_y, products = -a * z, -c * y, point.products
        direction = self._direction(point, h, solve, target_z, target_y, self.refined)
        predicted = point.advance(direction, point.max_step(direction)).products
        target = (
            max(predicted / max(products, _TINY), 0.0) ** 3
            * products
            / self.total_weight
            * self.shares
        )
        target_z, target_y = (
            target_z + target - direction.a * direction.z,
            target_y + target - direction.c * direction.y,
        )
        direction = self._direction(point, h, solve, target_z, target_y, _MAX_REFINEMENTS)
        next_point = point.advance(
            direction, min(1.0, _BOUNDARY_FRACTION * point.max_step(direction))
        )
        checksum = (
            next_point.products + np.vdot(next_point.pull, next_point.pull) + next_point.image.sum()
        )
        return next_point if np.isfinite(checksum) else None

    def _direction(
        self,
        point: PrimalDualPoint,
        h: np.ndarray,
        solve: Callable[[np.ndarray], np.ndarray],
        target_z: np.ndarray,
        target_y: np.ndarray,
        refinements: int,
    ) -> PrimalDualPoint:
        """Return the Newton direction with a dz + z da = target_z and c dy + y dc = target_y.

        Here a and c are the distances of v from its bounds, and z and y their multipliers.  All
        other optimality conditions are linear, and hold after a full step.
        """
        a, c, z, y, below, above = *point[1:5], self.below, self.above
        dual_residual = point.image + self.linear + self.bend * self.variables(a, c) - z + y
        rhs_v = below * target_z / a - above * target_y / c - dual_residual
        residual = self.primal_residual(point)
        right = self.pulled(h * rhs_v) + residual
        scale = np.abs(right).max(initial=0.0)
        du = np.zeros_like(right)
        remaining = refinements
        while True:
            du += solve(right)
            image = self.times(du)
            dv = h * (rhs_v - image)
            pull = self.pulled(dv) if refinements else du
            right = pull + residual - self.ridge * du
            if not remaining or np.abs(right).max(initial=0.0) <= _EXACT_RESIDUAL * scale:
                break
            remaining -= 1
        dz, dy = below * (target_z - z * dv) / a, above * (target_y + y * dv) / c
        return PrimalDualPoint(du, below * dv, above * -dv, dz, dy, image, pull)


def cholesky_or_none(A: np.ndarray) -> np.ndarray | None:
    """Return the Cholesky factor L of A, of which only the lower triangle is read.

    Returns None if A is numerically singular.  The diagonal of A may be changed.
    """
    for _ in range(2):
        L, info = lapack.dpotrf(A, lower=1) if A.size else (A, 0)
        if not info and np.isfinite(L.sum()):
            return L
        # Rounding may have made A slightly indefinite: try once more with a larger diagonal.
        A.flat[:: len(A) + 1] *= 1.0 + 1e-13
    return None
