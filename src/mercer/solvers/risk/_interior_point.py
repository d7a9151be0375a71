"""Losses of bounded slope in whitened coordinates: a quadratic program, by an interior point.

    min_{w, b}  sum_i c_i [above u_i + below v_i] + shift/2 |w|^2,      f = F w + b,
                u_i >= y_i - f_i - epsilon,   v_i >= f_i - y_i - epsilon,   u, v >= 0

and, for outputs in order (quantiles that do not cross), f_i1 <= f_i2 <= ... at every point.  The
multipliers of the four inequalities pair up into boxes,

    0 <= s_i <= c_i above,   0 <= t_i <= c_i below,      a = s - t = minus a slope of the loss,

and those of the order, z >= 0, add to a what they pass from one output to the next.  The minimum
has shift w = F^T a and, with an intercept, sum_i a_i = 0: the dual to maximise over the boxes is

    sum_i y_i (s - t)_i - epsilon (s + t)_i - |F^T a|^2 / (2 shift).

A loss that bends from slope to slope (Huber's) loosens both inequalities by `bend` times s / c and
t / c, and has - bend (s^2 + t^2) / (2 c) in the dual.

In s, -t and z that is a `BoxProgram`, whose steps eliminate all but the coordinates and leave

    (F^T H F + shift I) dw = right,      H_i the q x q curvature of the barriers at point i:

diagonal, or tridiagonal for ordered outputs, so that the system is q blocks of size m in a band.
Primal minus dual objective bounds what is left to gain, and |w - w*|^2 <= 2 gap / shift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._runtime import Step, entry_point
from ..._runtime.linalg import blas, solve_triangular
from .._box_program import BoxProgram, Point, factored
from .._row_blocks import weighted_gram
from ._regularised_risk import Found, RegularisedRisk, RiskSolver, Start

__all__ = ["InteriorPoint"]

_STALLED = 10  # steps without progress that end the search
_ROUNDING = 1e-3  # products below this part of tol prove that what is left of the gap is rounding
_NEGLIGIBLE = 1e-4  # an objective is 0 below this part of the losses of the best constants


@entry_point
@dataclass(frozen=True)
class InteriorPoint(RiskSolver):
    """Minimise  sum_i c_i loss(y_i, (F w + b)_i) + shift/2 |w|^2  for a loss of bounded slope.

    A start is of no use to it, and not read.

    Parameters
    ----------
    tol : float
        Stop when the duality gap is below this part of the objective, or if that is more of 1e-4
        times the losses of the best constants.
    max_iter : int

    Examples
    --------
    Without coordinates the best constants are left, here for two quantiles:

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
        self, risk: RegularisedRisk, start: Start | None, say: Callable[[str], None]
    ) -> Found:
        Y = risk.Y
        # targets far from 0 would lose digits to their distance
        centre = np.median(Y, axis=None if risk.ordered else 0) if risk.intercept else 0.0
        problem = _Problem(replace(risk, Y=Y - centre))
        point = problem.start()
        best = at = problem.assessed(point)
        stalled = 0
        for _ in range(self.max_iter if best.gap else 0):
            moved = problem.step(point)
            if moved is None:
                break
            stalled = 0 if moved.products < 0.9 * point.products else stalled + 1
            point, at = moved, problem.assessed(moved)
            if at.gap + at.crossing < best.gap + best.crossing:
                best = at
            say(Step(f"step {point.n_iter}: objective {at.value:.8g}, gap {at.gap:.1e}"))
            rounding = at.products <= _ROUNDING * self.tol * best.products
            if problem.left(best) <= self.tol or rounding or stalled == _STALLED:
                break
        left, failure = problem.left(best), ""
        if not left <= self.tol:
            failure = (
                f"the interior point stopped after {point.n_iter} steps with a duality gap of "
                f"{best.gap:.1e}, {left:.1e} of the objective {best.value:.6g}, not {self.tol:g}; "
                f"the usual cause is a penalty too small to be told from rounding. Raise alpha, or "
                f"max_iter, or tol"
            )
        m = risk.F.shape[1]
        b = best.B[m] + centre if risk.intercept else np.zeros(Y.shape[1])
        solution = best.B[:m], b, best.a, best.value
        return Found(*solution, point.n_iter, left, {"gap": best.gap}, failure)


class _Assessed(NamedTuple):
    """What a point is worth."""

    B: np.ndarray  # [w; b]
    a: np.ndarray
    value: float
    gap: float
    products: float
    crossing: float  # what it costs that outputs in order still cross


class _Problem(BoxProgram):
    """The variables s and -t of all outputs, and z of their order, one after the other.

    Products aim at the weights of their points: a point of weight 2 is two points, all along the
    path.
    """

    refined = 1  # the path matters: the point where it ends is all that is returned

    def __init__(self, risk: RegularisedRisk) -> None:
        F, Y, weights, intercept = risk.F, risk.Y, risk.weights, risk.intercept
        loss: Any = risk.loss  # a PiecewiseQuadratic
        n, q = Y.shape
        self.G = np.asfortranarray(np.column_stack([F, np.ones((n, int(intercept)))]))
        self.m, self.intercept = F.shape[1], intercept
        self.Y, self.loss, self.c, self.ordered = Y, loss, weights[:, None], risk.ordered
        self.constants = np.zeros(q)
        if intercept:
            share = np.broadcast_to(loss.above / (loss.above + loss.below), (q,))
            options: dict = {"weights": weights, "method": "inverted_cdf"}
            self.constants = np.array([np.quantile(Y[:, k], share[k], **options) for k in range(q)])
        self.constant = float(weights @ loss(np.zeros_like(Y) + self.constants, Y).values)
        spread = float(np.average(np.abs(Y - self.constants).mean(axis=1), weights=weights))
        self.spread = spread or float(np.abs(Y).max()) or 1.0
        ridge = np.full((self.G.shape[1], 1), float(risk.shift))
        ridge[self.m :] = 0.0
        super().__init__(
            self.joined(0.0, -self.c * loss.below, 0.0),
            self.joined(self.c * loss.above, 0.0, np.inf),
            self.joined(loss.epsilon - Y, -loss.epsilon - Y, 0.0),
            ridge,
            bend=self.joined(loss.bend / self.c, loss.bend / self.c, 0.0),
            shares=self.joined(self.c, self.c, self.c),
        )

    def joined(self, s: Any, t: Any, z: Any) -> np.ndarray:
        """Return numbers for all s, t and z in a row."""
        n, q = self.Y.shape
        parts = [(s, q), (t, q), (z, q - 1)][: 2 + self.ordered]
        return np.concatenate([np.broadcast_to(x, (n, width)).ravel() for x, width in parts])

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the parts that were joined."""
        (n, q), size = self.Y.shape, self.Y.size
        return *x[: 2 * size].reshape(2, n, q), x[2 * size :].reshape(n, -1)

    def by_output(self, x: np.ndarray) -> np.ndarray:
        """Return x summed to a number for each point and output; z passes from one to the next."""
        s, t, z = self.split(x)
        return s + t + _passed(z)

    def times(self, u: np.ndarray) -> np.ndarray:
        f = self.G @ u
        return self.joined(f, f, np.diff(f, axis=1))

    def pulled(self, v: np.ndarray) -> np.ndarray:
        return self.G.T @ self.by_output(v)

    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        s, t, band = self.split(h)
        curvature = s + t + np.pad(band, ((0, 0), (0, 1))) + np.pad(band, ((0, 0), (1, 0)))
        found = _Band.of(self.G, curvature, band, self.ridge[:, 0])
        return None if found is None else found.solve

    def start(self) -> Point:
        """Return f = the best constants, with multipliers in the middle of their boxes."""
        gap, e = self.Y - self.constants, self.loss.epsilon
        u, v = np.maximum(gap - e, 0.0) + self.spread, np.maximum(-gap - e, 0.0) + self.spread
        upper, lower = self.c * self.loss.above, self.c * self.loss.below
        s = np.zeros_like(gap) + 0.5 * np.minimum(upper, lower)
        give = self.loss.bend * s / self.c
        d = self.spread + np.diff(self.constants)
        a = self.joined(s, lower - s, 0.1 * s.min(axis=1, keepdims=True))
        c = self.joined(upper - s, s, 1.0)
        z = self.joined(u - gap + e + give, v, d)
        y = self.joined(u, v + gap + e + give, 0.0)
        B = np.zeros((self.G.shape[1], gap.shape[1]))
        B[self.m :] = self.constants
        return Point(B, a, c, z, y, self.times(B), self.pulled(self.variables(a, c)))

    def assessed(self, point: Point) -> _Assessed:
        """Return what a point is worth."""
        B, f = point.u, self.G @ point.u
        value = float(self.c[:, 0] @ self.loss(f, self.Y).values)
        value += 0.5 * float(np.sum(self.ridge * B * B))
        crossing = 0.0
        if self.ordered:
            crossing = float(np.sum(self.c * np.maximum(-np.diff(f, axis=1), 0.0)))
        if not self.constant:
            # constants that cost nothing are the minimum, and multipliers of 0 prove it
            return _Assessed(B, np.zeros_like(f), value, 0.0, point.products, crossing)
        a = self.by_output(self.variables(point.a, point.c))
        gap = abs(value - self.dual(a, point))
        return _Assessed(B, a, value, gap, point.products, crossing)

    def dual(self, a: np.ndarray, point: Point) -> float:
        """Return the dual objective, a lower bound on the primal one."""
        (s, _, _), (S, t, _) = self.split(point.a), self.split(point.c)
        if self.intercept:
            # rounding leaves a sum that is not 0; multipliers with room in their boxes absorb it
            room = np.minimum(s, S)
            moved = room * (a.sum(axis=0) / np.maximum(room.sum(axis=0), np.finfo(float).tiny))
            if np.any(np.abs(moved) > 0.5 * room):
                return -np.inf
            s, a = s - moved, a - moved
        gain = float(np.sum(self.Y * (s - t))) - self.loss.epsilon * float(np.sum(s + t))
        gain -= 0.5 * self.loss.bend * float(np.sum((s * s + t * t) / self.c))
        pulled = self.G[:, : self.m].T @ a
        return gain - 0.5 * float(np.sum(pulled**2 / self.ridge[: self.m]))

    def left(self, at: _Assessed) -> float:
        """Return how far the point is from the minimum, as a part of the objective."""
        unit = max(at.value, _NEGLIGIBLE * self.constant, np.finfo(float).tiny)
        return (at.gap + at.crossing) / unit


@dataclass(frozen=True, eq=False)
class _Band:
    """The Cholesky factor of a matrix of q x q blocks, zero but for a band of three.

    The blocks are G^T diag(h_k) G + diag(ridge) on the diagonal and -G^T diag(band_k) G beside it.
    """

    diagonal: list[np.ndarray]
    beside: list[np.ndarray]

    @classmethod
    def of(cls, G: np.ndarray, h: np.ndarray, band: np.ndarray, ridge: np.ndarray) -> _Band | None:
        diagonal: list[np.ndarray] = []
        beside: list[np.ndarray] = []
        for k in range(h.shape[1]):
            A = weighted_gram(G, h[:, k])
            A.flat[:: len(A) + 1] += ridge
            if beside and A.size:
                A = blas.dsyrk(-1.0, beside[-1], beta=1.0, c=A, trans=1, lower=1, overwrite_c=1)
            L = factored(A)
            if L is None:
                return None
            diagonal.append(L)
            if k < band.shape[1]:
                C = weighted_gram(G, band[:, k])
                beside.append(-solve_triangular(L, C + np.tril(C, -1).T, lower=True))
        return cls(diagonal, beside)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Solve for the columns of R, one for each block."""
        X, q = R.copy(), R.shape[1]
        for k in range(q):
            if k and self.beside:
                X[:, k] -= self.beside[k - 1].T @ X[:, k - 1]
            X[:, k] = solve_triangular(self.diagonal[k], X[:, k], lower=True)
        for k in reversed(range(q)):
            if k + 1 < q and self.beside:
                X[:, k] -= self.beside[k] @ X[:, k + 1]
            X[:, k] = solve_triangular(self.diagonal[k], X[:, k], lower=True, trans="T")
        return X


def _passed(z: np.ndarray) -> np.ndarray:
    """Return what the multipliers of f_k <= f_k+1 add to each output: z_(k-1) - z_k, or just 0."""
    return np.pad(z, ((0, 0), (1, 0))) - np.pad(z, ((0, 0), (0, 1)))
