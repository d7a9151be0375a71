"""Interior-point solver for losses of bounded slope, in whitened coordinates.

The problem is the quadratic program

    min_{w, b}  sum_i c_i [above u_i + below v_i] + shift/2 |w|^2,      f = F w + b,
                u_i >= y_i - f_i - epsilon,   v_i >= f_i - y_i - epsilon,   u, v >= 0

Here c_i are sample weights, F holds the whitened coordinates, u and v are slack variables, shift is
the ridge penalty, and above, below and epsilon are parameters of `PiecewiseQuadratic`.  For ordered
outputs (quantiles that must not cross) there are also the constraints f_i1 <= f_i2 <= ... at every
point.  The multipliers of the four inequalities combine into boxes,

    0 <= s_i <= c_i above,   0 <= t_i <= c_i below,      a = s - t = minus a slope of the loss,

and the multipliers z >= 0 of the order constraints add z_(k-1) - z_k to the a of output k.  The
minimum satisfies shift w = F^T a and, with an intercept, sum_i a_i = 0.  The dual problem is to
maximise over the boxes

    sum_i y_i (s - t)_i - epsilon (s + t)_i - |F^T a|^2 / (2 shift).

A loss with a quadratic transition between its slopes (Huber) relaxes both inequalities by `bend`
times s / c and t / c, which adds - bend (s^2 + t^2) / (2 c) to the dual.

In the variables s, -t and z this is a `BoxQP`.  Each of its steps eliminates all variables
except the coordinates and solves

    (F^T H F + shift I) dw = r,      H_i the q x q curvature of the barriers at point i,

for the step dw of the coordinates, with a right-hand side r.  H_i is diagonal, or tridiagonal for
ordered outputs; then the system is block tridiagonal, with q blocks of size m.  The duality gap
bounds the distance to the minimum: |w - w*|^2 <= 2 gap / shift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._core import ProgressCallback, ProgressStep, entry_point
from ..._core.linalg import blas, solve_triangular
from .._blocked_products import weighted_gram
from .._box_qp import BoxQP, PrimalDualPoint, cholesky_or_none
from ._regularised_risk import Minimum, RegularisedRisk, RiskSearch, Start

_MAX_STALLED_STEPS = 10  # stop after this many consecutive steps without progress
# If the complementarity products have fallen by this factor times tol, the remaining duality gap is
# only rounding.
_ROUNDING_PRODUCTS = 1e-3
# Gaps are relative to the objective, or to this fraction of the loss of the best constant
# predictions if that is larger.  Otherwise a perfect fit, with an objective near 0, would never
# converge.
_MIN_OBJECTIVE_SCALE = 1e-4


@entry_point
@dataclass(frozen=True)
class InteriorPoint(RiskSearch[RegularisedRisk]):
    """Interior-point method for losses of bounded slope (quantile, Huber, absolute, ...).

        min_{w, b}  sum_i c_i loss(y_i, (F w + b)_i) + shift/2 |w|^2

    The loss must be a `PiecewiseQuadratic`; for smooth losses, use `Newton`.  Typically 10 to 20
    steps are needed, each of O(n m^2) operations for F of shape (n, m).  The reported gap is a
    proved bound on the distance of the objective from its minimum.

    The parameter `start` of `minimize` is ignored, because interior-point methods cannot use an
    initial solution.

    Parameters
    ----------
    tol : float, default=1e-10
        Stop when the duality gap is at most `tol` times the objective.  If the objective is below
        1e-4 times the loss of the best constant predictions, the latter is used instead.  A smaller
        value costs only a few more steps.
    max_iter : int, default=100
        Maximum number of steps.

    See Also
    --------
    Newton : Smooth losses.
    NormPenaltySolver : Other penalties of the norm.

    References
    ----------
    Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on
    Optimization, 1992.

    Portnoy and Koenker, "The Gaussian hare and the Laplacian tortoise: computability of
    squared-error versus absolute-error estimators", Statistical Science, 1997.

    Examples
    --------
    Without features, the result is the best constant predictions, here two quantiles:

    >>> import numpy as np
    >>> from mercer.solvers import InteriorPoint, Quantile, RegularisedRisk
    >>> Y = np.repeat(np.arange(1.0, 12.0)[:, None], 2, axis=1)
    >>> found = InteriorPoint().minimize(
    ...     RegularisedRisk(np.zeros((11, 0)), Y, Quantile([0.25, 0.5]), np.ones(11))
    ... )
    >>> found.intercept.round(6)
    array([3., 6.])
    """

    tol: float = 1e-10
    max_iter: int = 100

    def _search(
        self, risk: RegularisedRisk, start: Start | None, log: ProgressCallback
    ) -> tuple[Minimum, str]:
        Y = risk.Y
        # Centre the targets, because a large mean reduces the precision.
        offset = np.median(Y, axis=None if risk.ordered else 0) if risk.intercept else 0.0
        problem = _BarrierProblem(replace(risk, Y=Y - offset))
        point = problem.start()
        best = current = problem.certify(point)
        stalled_steps = 0
        for _ in range(self.max_iter if best.gap else 0):
            moved = problem.step(point)
            if moved is None:
                break
            stalled_steps = 0 if moved.products < 0.9 * point.products else stalled_steps + 1
            point, current = moved, problem.certify(moved)
            if current.gap + current.crossing < best.gap + best.crossing:
                best = current
            text = f"step {point.n_iter}: objective {current.value:.8g}, gap {current.gap:.1e}"
            log(ProgressStep(text))
            only_rounding = current.products <= _ROUNDING_PRODUCTS * self.tol * best.products
            is_stalled = stalled_steps == _MAX_STALLED_STEPS
            if problem.relative_gap(best) <= self.tol or only_rounding or is_stalled:
                break
        relative_gap, failure = problem.relative_gap(best), ""
        if not relative_gap <= self.tol:
            failure = (
                f"the interior-point method stopped after {point.n_iter} steps with a duality gap "
                f"of {best.gap:.1e}, which is {relative_gap:.1e} of the objective "
                f"{best.value:.6g}, but tol={self.tol:g}; the usual cause is a penalty so small "
                f"that rounding errors exceed it. Raise alpha, max_iter or tol"
            )
        m = risk.F.shape[1]
        b = best.B[m] + offset if risk.intercept else np.zeros(Y.shape[1])
        report = self._report(point.n_iter, relative_gap, {"gap": best.gap})
        return Minimum(best.B[:m], b, best.a, best.value, report), failure


class _Certificate(NamedTuple):
    """Primal solution, dual variables and duality gap of an iterate."""

    B: np.ndarray  # the weights w, and the intercept b as the last row
    a: np.ndarray
    value: float
    gap: float
    products: float  # sum of the complementarity products
    crossing: float  # weighted sum of the amounts by which ordered outputs still cross


class _BarrierProblem(BoxQP):
    """The quadratic program in the stacked variables s, -t and, for ordered outputs, z.

    s and t are the multipliers of positive and negative residuals, and z those of the order
    constraints.  The targets of the complementarity products are proportional to the sample weight,
    so that a point of weight 2 is equivalent to two points along the whole central path.
    """

    # One step of iterative refinement of the predictor direction improves the final accuracy.
    refined = 1

    def __init__(self, risk: RegularisedRisk) -> None:
        F, Y, weights, intercept = risk.F, risk.Y, risk.weights, risk.intercept
        loss: Any = risk.loss  # an instance of `PiecewiseQuadratic`
        n, q = Y.shape
        self.G = np.asfortranarray(np.column_stack([F, np.ones((n, int(intercept)))]))
        self.m, self.intercept = F.shape[1], intercept
        self.Y, self.loss, self.c, self.ordered = Y, loss, weights[:, None], risk.ordered
        self.best_constants = np.zeros(q)
        if intercept:
            quantile = np.broadcast_to(loss.above / (loss.above + loss.below), (q,))
            options: dict[str, Any] = {"weights": weights, "method": "inverted_cdf"}
            self.best_constants = np.array(
                [np.quantile(Y[:, k], quantile[k], **options) for k in range(q)]
            )
        self.constant_loss = float(weights @ loss(np.zeros_like(Y) + self.best_constants, Y).values)
        spread = float(np.average(np.abs(Y - self.best_constants).mean(axis=1), weights=weights))
        self.spread = spread or float(np.abs(Y).max()) or 1.0
        ridge = np.full((self.G.shape[1], 1), float(risk.shift))
        ridge[self.m :] = 0.0
        super().__init__(
            self.stack(0.0, -self.c * loss.below, 0.0),
            self.stack(self.c * loss.above, 0.0, np.inf),
            self.stack(loss.epsilon - Y, -loss.epsilon - Y, 0.0),
            ridge,
            bend=self.stack(loss.bend / self.c, loss.bend / self.c, 0.0),
            shares=self.stack(self.c, self.c, self.c),
        )

    def stack(self, s: Any, t: Any, z: Any) -> np.ndarray:
        """Stack values for the variables s, t and (for ordered outputs) z in one vector."""
        n, q = self.Y.shape
        parts = [(s, q), (t, q), (z, q - 1)][: 2 + self.ordered]
        return np.concatenate([np.broadcast_to(x, (n, width)).ravel() for x, width in parts])

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the parts s, t and z of a stacked vector; the inverse of `stack`."""
        (n, q), size = self.Y.shape, self.Y.size
        return *x[: 2 * size].reshape(2, n, q), x[2 * size :].reshape(n, -1)

    def by_output(self, x: np.ndarray) -> np.ndarray:
        """Return s + t + (z_(k-1) - z_k) for each point and output k, shape (n, q)."""
        s, t, z = self.split(x)
        total: np.ndarray = s + t + _order_multipliers(z)
        return total

    def times(self, u: np.ndarray) -> np.ndarray:
        f = self.G @ u
        return self.stack(f, f, np.diff(f, axis=1))

    def pulled(self, v: np.ndarray) -> np.ndarray:
        product: np.ndarray = self.G.T @ self.by_output(v)
        return product

    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        s, t, band = self.split(h)
        curvature = s + t + np.pad(band, ((0, 0), (0, 1))) + np.pad(band, ((0, 0), (1, 0)))
        factor = _BlockTridiagonalFactor.of(self.G, curvature, band, self.ridge[:, 0])
        return None if factor is None else factor.solve

    def start(self) -> PrimalDualPoint:
        """Return the initial point: the best constants, and multipliers inside their boxes."""
        residual, e = self.Y - self.best_constants, self.loss.epsilon
        u = np.maximum(residual - e, 0.0) + self.spread
        v = np.maximum(-residual - e, 0.0) + self.spread
        upper, lower = self.c * self.loss.above, self.c * self.loss.below
        s = np.zeros_like(residual) + 0.5 * np.minimum(upper, lower)
        softening = self.loss.bend * s / self.c
        d = self.spread + np.diff(self.best_constants)
        a = self.stack(s, lower - s, 0.1 * s.min(axis=1, keepdims=True))
        c = self.stack(upper - s, s, 1.0)
        z = self.stack(u - residual + e + softening, v, d)
        y = self.stack(u, v + residual + e + softening, 0.0)
        B = np.zeros((self.G.shape[1], residual.shape[1]))
        B[self.m :] = self.best_constants
        return PrimalDualPoint(B, a, c, z, y, self.times(B), self.pulled(self.variables(a, c)))

    def certify(self, point: PrimalDualPoint) -> _Certificate:
        """Return the objective, the dual variables and the duality gap of a point."""
        B, f = point.u, self.G @ point.u
        value = float(self.c[:, 0] @ self.loss(f, self.Y).values)
        value += 0.5 * float(np.sum(self.ridge * B * B))
        crossing = 0.0
        if self.ordered:
            crossing = float(np.sum(self.c * np.maximum(-np.diff(f, axis=1), 0.0)))
        if not self.constant_loss:
            # Constant predictions with a loss of 0 are the minimum, and multipliers of 0 prove it.
            return _Certificate(B, np.zeros_like(f), value, 0.0, point.products, crossing)
        a = self.by_output(self.variables(point.a, point.c))
        gap = abs(value - self.dual_objective(a, point))
        return _Certificate(B, a, value, gap, point.products, crossing)

    def dual_objective(self, a: np.ndarray, point: PrimalDualPoint) -> float:
        """Return the dual objective, a lower bound on the minimum of the primal one."""
        (s, _, _), (S, t, _) = self.split(point.a), self.split(point.c)
        if self.intercept:
            # The entries of a must sum to 0, but rounding violates this.  Correct the sum with the
            # multipliers that are not at the boundary of their boxes.
            slack = np.minimum(s, S)
            total_slack = np.maximum(slack.sum(axis=0), np.finfo(float).tiny)
            correction = slack * (a.sum(axis=0) / total_slack)
            if np.any(np.abs(correction) > 0.5 * slack):
                return -np.inf
            s, a = s - correction, a - correction
        objective: float = float(np.sum(self.Y * (s - t))) - self.loss.epsilon * float(
            np.sum(s + t)
        )
        objective -= 0.5 * self.loss.bend * float(np.sum((s * s + t * t) / self.c))
        gradient = self.G[:, : self.m].T @ a
        return objective - 0.5 * float(np.sum(gradient**2 / self.ridge[: self.m]))

    def relative_gap(self, certificate: _Certificate) -> float:
        """Return the duality gap plus the crossing of outputs, relative to the objective."""
        scale = max(certificate.value, _MIN_OBJECTIVE_SCALE * self.constant_loss)
        return (certificate.gap + certificate.crossing) / max(scale, np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class _BlockTridiagonalFactor:
    """Cholesky factor of a symmetric block-tridiagonal matrix, with one block row per output.

    The diagonal block of output k is G^T diag(h_k) G + diag(ridge), and the block of outputs k
    and k + 1 is -G^T diag(band_k) G, for the arguments of `of`.
    """

    diagonal: list[np.ndarray]
    off_diagonal: list[np.ndarray]

    @classmethod
    def of(
        cls, G: np.ndarray, h: np.ndarray, band: np.ndarray, ridge: np.ndarray
    ) -> _BlockTridiagonalFactor | None:
        """Return the factor, or None if the matrix is numerically singular."""
        diagonal: list[np.ndarray] = []
        off_diagonal: list[np.ndarray] = []
        for k in range(h.shape[1]):
            A = weighted_gram(G, h[:, k])
            A.flat[:: len(A) + 1] += ridge
            if off_diagonal and A.size:
                A = blas.dsyrk(
                    -1.0, off_diagonal[-1], beta=1.0, c=A, trans=1, lower=1, overwrite_c=1
                )
            L = cholesky_or_none(A)
            if L is None:
                return None
            diagonal.append(L)
            if k < band.shape[1]:
                C = weighted_gram(G, band[:, k])
                off_diagonal.append(-solve_triangular(L, C + np.tril(C, -1).T, lower=True))
        return cls(diagonal, off_diagonal)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Solve for the right-hand side R, whose column k belongs to output k."""
        X, q = R.copy(), R.shape[1]
        for k in range(q):
            if k and self.off_diagonal:
                X[:, k] -= self.off_diagonal[k - 1].T @ X[:, k - 1]
            X[:, k] = solve_triangular(self.diagonal[k], X[:, k], lower=True)
        for k in reversed(range(q)):
            if k + 1 < q and self.off_diagonal:
                X[:, k] -= self.off_diagonal[k] @ X[:, k + 1]
            X[:, k] = solve_triangular(self.diagonal[k], X[:, k], lower=True, trans="T")
        return X


def _order_multipliers(z: np.ndarray) -> np.ndarray:
    """Return z_(k-1) - z_k for each output k, from the multipliers z_k of f_k <= f_(k+1)."""
    differences: np.ndarray = np.pad(z, ((0, 0), (1, 0))) - np.pad(z, ((0, 0), (0, 1)))
    return differences
