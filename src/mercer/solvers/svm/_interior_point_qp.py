"""The dual of a support vector machine on explicit features, as a `BoxQP`.

    min_v  1/2 |F^T v|^2 + q^T v,     lower <= v <= upper,     the sum of v in each group is fixed

Let w = F^T v, let -b be the multipliers of the fixed sums, u = (w, b), and H the diagonal matrix of
weights of the interior-point method.  The matrix of the linear system of a step,

    [ F^T H F + I   F^T H A ]
    [   A^T H F     A^T H A ],       A_sk = 1 if v_s is in group k,

is computed in O(n m^2) operations for n rows and m columns, without a copy of F (Fine & Scheinberg
2001).  The scale of the columns does not matter: if columns are multiplied by powers of two, the
rounding errors of a Cholesky factorisation do not change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._core.linalg import lapack
from .._blocked_products import matvec, rmatvec, squared_row_norms, weighted_gram
from .._box_qp import BoxQP, PrimalDualPoint, cholesky_or_none
from ._crossover import VertexSolution, evaluate_at, find_vertex
from ._dual_problem import Dual

__all__ = ["InteriorPointQP"]

# The crossover to a vertex starts when the error is below the first value times tol, and the sum of
# the products (multiplier times distance from the bound) below the second times the objective.
_MAX_RELATIVE_ERROR, _MAX_RELATIVE_PRODUCTS = 1e-3, 1e-8
_RELATIVE_ROUNDING = 2.0**-50  # assumed relative rounding error of a term of K v
_TINY = float(np.finfo(float).tiny)


class InteriorPointQP(BoxQP):
    """The interior-point method on a `Dual` with K = F F^T, and the crossover to a vertex.

    Variables that can have only one value, given their bounds or the sum of their group, are
    treated as constants.  The mean of F is subtracted in products with F: because the sums of v are
    fixed, this changes only the intercept and the linear term.

    Parameters
    ----------
    F : ndarray of shape (n, m)
    dual : Dual
    """

    def __init__(self, F: np.ndarray, dual: Dual) -> None:
        self.F, self.dual = F, dual
        self.determined = _determined_variables(dual)
        self.variable_indices = np.flatnonzero(np.isnan(self.determined))
        self.points, self.groups = (
            dual.points[self.variable_indices],
            dual.groups[self.variable_indices],
        )
        self.one_per_point = np.array_equal(self.points, np.arange(dual.n))
        self.m = F.shape[1]
        constant = np.where(np.isnan(self.determined), 0.0, self.determined)
        sums = np.bincount(dual.groups, dual.start - constant, minlength=dual.n_groups)
        self.centre = rmatvec(F, np.full(len(F), 1.0 / len(F)))
        # The part of w that comes from the constants and the centre, and does not depend on v.
        offset = rmatvec(F, dual.coefficients(constant)) + sums.sum() * self.centre
        linear = dual.linear[self.variable_indices] + self._centred_times(offset)[self.points]
        self.constant_term = 0.5 * float(offset @ offset)
        box = dual.lower[self.variable_indices], dual.upper[self.variable_indices]
        ridge = np.repeat([1.0, 0.0], [self.m, len(sums)])
        super().__init__(*box, linear, ridge, sums=np.concatenate([np.zeros(self.m), sums]))

        self.row_squares = squared_row_norms(
            F
        )  # the diagonal of K; `centred_squares` is the same for centred features
        self.centred_squares = (
            self.row_squares - matvec(F, 2.0 * self.centre) + self.centre @ self.centre
        )
        width = self.upper - self.lower
        self.box_width = np.where(np.isfinite(width), width, self._default_width())

    def _default_width(self) -> float:
        """Return the width used if a bound is infinite: an estimate of the largest variable."""
        size = (
            float(self.centred_squares[self.points].mean()) if len(self.variable_indices) else 0.0
        )
        width = 2.0 * float(np.ptp(self.linear)) / size if size > 0 else 0.0
        return max(width, float(np.abs(self.dual.start).max(initial=0.0))) or 1.0

    # ------------------------------------------------------------------ products with centred F

    def times(self, u: np.ndarray) -> np.ndarray:
        return self._centred_times(u[: self.m])[self.points] + u[self.m :][self.groups]

    def _centred_times(self, w: np.ndarray) -> np.ndarray:
        return matvec(self.F, w) - self.centre @ w

    def pulled(self, v: np.ndarray) -> np.ndarray:
        w = rmatvec(self.F, self.sum_by_point(v)) - self.centre * v.sum()
        return np.concatenate([w, self.sum_by_group(v)])

    def primal_residual(self, point: PrimalDualPoint) -> np.ndarray:
        residual = super().primal_residual(point)
        # The sums are recomputed from v, because rounding errors accumulate over the steps.
        residual[self.m :] = (
            self.sum_by_group(self.variables(point.a, point.c)) - self.sums[self.m :]
        )
        return residual

    def sum_by_point(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each point."""
        return x if self.one_per_point else np.bincount(self.points, x, minlength=self.dual.n)

    def sum_by_group(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each group."""
        one = self.dual.n_groups == 1
        return np.array([x.sum()]) if one else np.bincount(self.groups, x, self.dual.n_groups)

    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        m, K, n = self.m, self.dual.n_groups, self.dual.n
        H = np.empty((n, K))  # the sum of h over the variables of each point, by group
        for k in range(K):
            H[:, k] = self.sum_by_point(h if K == 1 else np.where(self.groups == k, h, 0.0))
        total = H.sum(axis=0)
        A = np.zeros((m + K, m + K), order="F")
        A[:m, :m] = weighted_gram(self.F, H.sum(axis=1), self.centre)
        A[m:, :m] = rmatvec(self.F, H).T - np.outer(total, self.centre)
        A[m:, m:] = np.diag(np.where(total > 0, total, 1.0))
        A.flat[: m * (m + K) : m + K + 1] += 1.0
        L = cholesky_or_none(A)
        return None if L is None else lambda rhs: lapack.dpotrs(L, rhs, lower=1)[0]

    # ------------------------------------------------------------------ iterates

    def initial_iterate(self) -> PrimalDualPoint:
        """Return an iterate with the required sums.

        All variables of a group have the same relative position between their bounds.
        """
        ends = np.where(self.below, self.lower, self.upper - self.box_width)
        missing = self.sums[self.m :] - self.sum_by_group(ends)
        position = missing / np.maximum(self.sum_by_group(self.box_width), _TINY)
        # With infinite bounds, any relative position is feasible.
        position = np.clip(position, 0.01, 0.99)[self.groups]
        a = np.where(self.below, position * self.box_width, 1.0)
        c = np.where(self.above, (1.0 - position) * self.box_width, 1.0)
        v = self.variables(a, c)
        pull = self.pulled(v)
        # If the sums are 0, all multiples of v are feasible.  Use w = F^T v of the best multiple.
        size, best = float(pull[: self.m] @ pull[: self.m]), -float(self.linear @ v)
        multiple = min(max(best / size, 0.0), 1.0) if size and not self.sums.any() else 1.0
        u = multiple * pull
        u[self.m :] = 0.0
        g = self.times(u) + self.linear
        for k in range(self.dual.n_groups):
            members = self.groups == k
            u[self.m + k] = -float(np.median(g[members])) if members.any() else 0.0
        image = self.times(u)
        g = image + self.linear
        self.gradient_scale = float(np.abs(g).mean()) or 1.0 if len(g) else 1.0
        margin = (
            self.gradient_scale * float(self.box_width.mean()) / self.box_width if len(g) else g
        )
        z = np.where(self.below, np.maximum(g, 0.0) + margin, 0.0)
        y = np.where(self.above, np.maximum(-g, 0.0) + margin, 0.0)
        return PrimalDualPoint(u, a, c, z, y, image, pull)

    def value(self, point: PrimalDualPoint) -> float:
        """Return the objective, 1/2 |F^T v|^2 + q^T v."""
        v, w = self.variables(point.a, point.c), point.pull[: self.m]
        return 0.5 * float(w @ w) + float(self.linear @ v) + self.constant_term

    def error(self, point: PrimalDualPoint) -> float:
        """Return the error of the iterate, in units of the gradient.

        It is the largest product of a multiplier and the distance of v from the bound, divided by
        the distance between the bounds.
        """
        largest = np.maximum(point.a * point.z, point.c * point.y)
        return float((largest / self.box_width).max(initial=0.0))

    def decreased(self, before: PrimalDualPoint, after: PrimalDualPoint) -> bool:
        """Whether a step made progress.

        Either the sum of all products (multiplier times distance from the bound), or the norm of
        w - F^T v, must decrease by more than 10 %.
        """
        differences = [
            np.linalg.norm(self.primal_residual(point)[: self.m]) for point in (before, after)
        ]
        return bool(after.products < 0.9 * before.products or differences[1] < 0.9 * differences[0])

    def all_variables(self, point: PrimalDualPoint) -> np.ndarray:
        """Return all variables v, including the constant ones."""
        v = self.determined.copy()
        v[self.variable_indices] = self.variables(point.a, point.c)
        return v

    def initial_point(self) -> VertexSolution:
        """Evaluate the start of the dual, which may already be its minimum."""
        return evaluate_at(
            self.F, self.dual, np.where(np.isnan(self.determined), self.dual.start, self.determined)
        )

    def is_limited_by_rounding(self, vertex: VertexSolution) -> bool:
        """Whether the rounding of v alone can cause the violation."""
        return vertex.violation <= self._rounding_error(vertex.v[self.variable_indices])

    def is_near_vertex(self, point: PrimalDualPoint, tol: float) -> bool:
        """Whether the iterate is close enough to the minimum to search for a vertex."""
        error = self.error(point)
        small_products = (
            point.products <= _MAX_RELATIVE_PRODUCTS * abs(self.value(point))
            or error <= _MAX_RELATIVE_ERROR**2 * tol
        )
        rounding = self._rounding_error(self.variables(point.a, point.c))
        return error <= _MAX_RELATIVE_ERROR * rounding or (
            small_products and error <= _MAX_RELATIVE_ERROR * tol
        )

    def _rounding_error(self, v: np.ndarray) -> float:
        """Return a bound on the error of K v that is caused by rounding of v."""
        sizes = v * np.sqrt(self.row_squares[self.points])
        longest_row = np.sqrt(self.row_squares.max(initial=0.0))
        return _RELATIVE_ROUNDING * float(longest_row * np.linalg.norm(sizes))

    def vertex(self, point: PrimalDualPoint, tol: float) -> VertexSolution:
        """Return a solution with variables exactly at their bounds, found by crossover."""
        v = self.determined.copy()
        v_variable = self.variables(point.a, point.c)
        # A variable is at a bound if its distance to the bound goes to 0, and its multiplier does
        # not.  To compare the two, the distance is multiplied by an estimate of the derivative of
        # the gradient: K_ii, or the size of the gradient divided by the width of the box.
        f = point.image - point.u[self.m :][self.groups]
        gradient_size = max(self.gradient_scale, float(np.abs(f).max(initial=0.0)))
        gradient_unit = np.maximum(
            gradient_size / self.box_width, self.centred_squares[self.points]
        )
        down = self.below & (gradient_unit * point.a < point.z)
        up = self.above & (gradient_unit * point.c < point.y) & ~down
        v_variable = np.where(down, self.lower, np.where(up, self.upper, v_variable))
        v[self.variable_indices] = np.clip(v_variable, self.lower, self.upper)
        return find_vertex(self.F, self.dual, v, tol)


def _determined_variables(dual: Dual) -> np.ndarray:
    """Return the values of variables that can have only one value, and NaN for the others.

    The value is determined by equal bounds, or by a sum of the group that is the smallest or
    largest possible one.
    """
    determined = np.where(dual.upper > dual.lower, np.nan, dual.lower)
    for k in range(dual.n_groups):
        members = dual.groups == k
        for bounds in (dual.lower, dual.upper):
            distance = np.abs(bounds - dual.start)[members].sum()
            if distance <= 1e-14 * np.abs(dual.start[members]).sum():
                determined[members] = bounds[members]
    return determined
