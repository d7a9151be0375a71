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

A Newton step on the perturbed complementarity (Mehrotra's predictor and corrector) eliminates,
point by point, all but the coordinates, and leaves

    (F^T H F + shift I) dw = right,      H_i the q x q curvature of the barriers at point i:

diagonal, or tridiagonal for ordered outputs, so that the system is q blocks of size m in a band.
Primal minus dual objective bounds what is left to gain, and |w - w*|^2 <= 2 gap / shift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Stopwatch
from .._report import Report, Status
from ._curvature import weighted_gram
from ._regularised_risk import Minimum, RegularisedRisk, Start

__all__ = ["InteriorPoint"]

_STEP_BACK = 0.995  # the part of the way to the boundary that a step takes
_REFINEMENTS = 2  # needed because h grows without bound where f meets a kink
_STALLED = 10  # steps without progress that end the search
_ROUNDING = 1e-3  # products below this part of tol prove that what is left of the gap is rounding
_NEGLIGIBLE = 1e-4  # an objective is 0 below this part of the losses of the best constants

Pairs = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class InteriorPoint:
    """Minimise  sum_i c_i loss(y_i, (F w + b)_i) + shift/2 |w|^2  for a loss of bounded slope.

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

    def minimize(
        self,
        risk: RegularisedRisk,
        start: Start | None = None,
        say: Callable[[str], None] | None = None,
        *,
        warn: bool = True,
    ) -> Minimum:
        """Return the minimum of J; see `Newton.minimize`.  A start is of no use, and not read."""
        watch, Y = Stopwatch(), risk.Y
        # targets far from 0 would lose digits to their distance
        centre = np.median(Y, axis=None if risk.ordered else 0) if risk.intercept else 0.0
        problem = _Problem(replace(risk, Y=Y - centre))
        point = best = problem.start()
        stalled = 0
        for _ in range(self.max_iter if best.gap else 0):
            moved = problem.step(point)
            if moved is None:
                break
            stalled = 0 if moved.mean < 0.9 * point.mean else stalled + 1
            point = moved
            if point.gap + point.crossing < best.gap + best.crossing:
                best = point
            if say is not None:
                say(f"step {point.n_iter}: objective {point.value:.8g}, gap {point.gap:.1e}")
            rounding = point.mean <= _ROUNDING * self.tol * best.mean
            if problem.left(best) <= self.tol or rounding or stalled == _STALLED:
                break
        left, message = problem.left(best), ""
        if not left <= self.tol:
            message = (
                f"the interior point stopped after {point.n_iter} steps with a duality gap of "
                f"{best.gap:.1e}, {left:.1e} of the objective {best.value:.6g}, not {self.tol:g}; "
                f"the usual cause is a penalty too small to be told from rounding. Raise alpha, or "
                f"max_iter, or tol"
            )
            if warn:
                warn_caller(message, ConvergenceWarning)
        report = Report(
            repr(self),
            Status.NOT_CONVERGED if message else Status.CONVERGED,
            point.n_iter,
            left,
            watch.seconds,
            message,
            {"gap": best.gap},
        )
        m = risk.F.shape[1]
        b = best.B[m] + centre if risk.intercept else np.zeros(Y.shape[1])
        return Minimum(best.B[:m], b, best.a, best.value, report)


class _Point(NamedTuple):
    """A point inside: both of each pair are positive, and their products go to 0 together.

    p = f - y + epsilon + u + bend s / c with s, u with c above - s; m and v the same with t for
    the other side; d with z, where d is to be the differences of f.
    """

    B: np.ndarray  # [w; b]
    pairs: Pairs
    n_iter: int
    a: np.ndarray
    f: np.ndarray
    slope: np.ndarray  # the gradient of the Lagrangian in B
    value: float
    gap: float
    mean: float  # the mean product of a pair, for a weight of 1
    crossing: float  # what it costs that d is not yet the differences of f


class _Problem:
    """Everything that does not change from step to step."""

    def __init__(self, risk: RegularisedRisk) -> None:
        F, Y, weights, intercept = risk.F, risk.Y, risk.weights, risk.intercept
        loss: Any = risk.loss  # a PiecewiseQuadratic
        n, q = Y.shape
        self.G = np.asfortranarray(np.column_stack([F, np.ones((n, int(intercept)))]))
        self.ridge = np.full((self.G.shape[1], 1), float(risk.shift))
        self.ridge[F.shape[1] :] = 0.0
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

    def start(self) -> _Point:
        """Return f = the best constants, with multipliers in the middle of their boxes."""
        gap, e = self.Y - self.constants, self.loss.epsilon
        u, v = np.maximum(gap - e, 0.0) + self.spread, np.maximum(-gap - e, 0.0) + self.spread
        upper, lower = np.zeros_like(gap) + self.c * self.loss.above, self.c * self.loss.below
        s = 0.5 * np.minimum(upper, lower)
        give = self.loss.bend * s / self.c
        pairs = [(u - gap + e + give, s), (u, upper - s), (v + gap + e + give, s), (v, lower - s)]
        if self.ordered:
            d = np.diff(self.constants) + np.full((len(gap), 1), self.spread)
            pairs.append((d, np.zeros_like(d) + 0.1 * s.min(axis=1, keepdims=True)))
        B = np.zeros((self.G.shape[1], gap.shape[1]))
        B[self.m :] = self.constants
        point = self.at(B, pairs, 0)
        # constants that cost nothing are the minimum, and multipliers of 0 prove it
        return point if self.constant else point._replace(a=np.zeros_like(gap), gap=0.0)

    def at(self, B: np.ndarray, pairs: Pairs, n_iter: int) -> _Point:
        """Return the point with its values, its slope and its gap."""
        f = self.G @ B
        value = float(self.c[:, 0] @ self.loss(f, self.Y).values)
        value += 0.5 * float(np.sum(self.ridge * B * B))
        a, crossing = pairs[0][1] - pairs[2][1], 0.0
        if self.ordered:
            a = a + _passed(pairs[4][1])
            crossing = float(np.sum(self.c * np.maximum(-np.diff(f, axis=1), 0.0)))
        slope = self.ridge * B - self.G.T @ a
        gap = abs(value - self.dual(a, pairs))
        return _Point(B, pairs, n_iter, a, f, slope, value, gap, self.mean(pairs), crossing)

    def dual(self, a: np.ndarray, pairs: Pairs) -> float:
        """Return the dual objective, a lower bound on the primal one."""
        s, t = pairs[0][1], pairs[2][1]
        if self.intercept:
            # rounding leaves a sum that is not 0; multipliers with room in their boxes absorb it
            room = np.minimum(s, pairs[1][1])
            moved = room * (a.sum(axis=0) / np.maximum(room.sum(axis=0), np.finfo(float).tiny))
            if np.any(np.abs(moved) > 0.5 * room):
                return -np.inf
            s, a = s - moved, a - moved
        gain = float(np.sum(self.Y * (s - t))) - self.loss.epsilon * float(np.sum(s + t))
        gain -= 0.5 * self.loss.bend * float(np.sum((s * s + t * t) / self.c))
        pulled = self.G[:, : self.m].T @ a
        return gain - 0.5 * float(np.sum(pulled**2 / self.ridge[: self.m]))

    def left(self, point: _Point) -> float:
        """Return how far the point is from the minimum, as a part of the objective."""
        unit = max(point.value, _NEGLIGIBLE * self.constant, np.finfo(float).tiny)
        return (point.gap + point.crossing) / unit

    def step(self, point: _Point) -> _Point | None:
        """Return the next point; None if the system cannot be told from a singular one."""
        system = _System.of(self, point)
        if system is None:
            return None
        products = [x * y for x, y in point.pairs]
        _, moves = system.direction([-xy for xy in products])
        after = self.mean(_moved(point.pairs, moves, _room(point.pairs, moves)))
        target = point.mean * (after / point.mean) ** 3
        R = [self.c * target - xy - dx * dy for xy, (dx, dy) in zip(products, moves, strict=True)]
        dB, moves = system.direction(R)
        size = min(1.0, _STEP_BACK * _room(point.pairs, moves))
        pairs = _moved(point.pairs, moves, size)
        return self.at(point.B + size * dB, pairs, point.n_iter + 1)

    def mean(self, pairs: Pairs) -> float:
        """Return the mean product; a point of weight 2 is two points, all along the path."""
        total = float(self.c.sum()) * sum(x.shape[1] for x, _ in pairs)
        return sum(float(np.sum(x * y)) for x, y in pairs) / total


@dataclass(frozen=True, eq=False)
class _System:
    """The equations of a Newton step at a point, all but dB eliminated, and factored."""

    problem: _Problem
    point: _Point
    below: np.ndarray  # (p + give s) S + s u, what ds is divided by
    above: np.ndarray
    h: np.ndarray
    band: np.ndarray
    factor: _Band

    @classmethod
    def of(cls, problem: _Problem, point: _Point) -> _System | None:
        (p, s), (u, S), (m, t), (v, T) = point.pairs[:4]
        give = problem.loss.bend / problem.c
        below, above = (p + give * s) * S + s * u, (m + give * t) * T + t * v
        h, band = s * S / below + t * T / above, np.zeros((len(s), 0))
        if problem.ordered:
            d, z = point.pairs[4]
            band = z / d
            h = h + np.pad(band, ((0, 0), (0, 1))) + np.pad(band, ((0, 0), (1, 0)))
        factor = _Band.of(problem.G, h, band, problem.ridge[:, 0])
        return None if factor is None else cls(problem, point, below, above, h, band, factor)

    def direction(self, R: list[np.ndarray]) -> tuple[np.ndarray, Pairs]:
        """Solve x dy + y dx = R for all pairs, with everything else linear."""
        (_, s), (u, S), (_, t), (v, T) = self.point.pairs[:4]
        es, et = (S * R[0] - s * R[1]) / self.below, (T * R[2] - t * R[3]) / self.above
        e = es - et
        if self.problem.ordered:
            d, z = self.point.pairs[4]
            wrong = np.diff(self.point.f, axis=1) - d
            e = e + _passed((R[4] - z * wrong) / d)
        dB = self._solve(e)
        df = self.problem.G @ dB
        ds, dt = es - s * S / self.below * df, et + t * T / self.above * df
        du, dv = (R[1] + u * ds) / S, (R[3] + v * dt) / T
        give = self.problem.loss.bend / self.problem.c
        moves = [(df + du + give * ds, ds), (du, -ds), (dv - df + give * dt, dt), (dv, -dt)]
        if self.problem.ordered:
            dd = np.diff(df, axis=1) + wrong
            moves.append((dd, (R[4] - z * dd) / d))
        return dB, moves

    def _solve(self, e: np.ndarray) -> np.ndarray:
        """Return dB with (G^T H G + ridge) dB = G^T e - slope, refined."""
        G, ridge = self.problem.G, self.problem.ridge
        dB = self.factor.solve(G.T @ e - self.point.slope)
        for _ in range(_REFINEMENTS):
            df = G @ dB
            bent = self.h * df
            if self.band.size:
                bent -= np.pad(self.band * df[:, 1:], ((0, 0), (0, 1)))
                bent -= np.pad(self.band * df[:, :-1], ((0, 0), (1, 0)))
            dB += self.factor.solve(G.T @ (e - bent) - ridge * dB - self.point.slope)
        return dB


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
                A = dsyrk(-1.0, beside[-1], beta=1.0, c=A, trans=1, lower=1, overwrite_c=1)
            L, info = dpotrf(A, lower=1, clean=1) if A.size else (A, 0)
            if info:  # once more, with what rounding took from the diagonal given back
                A.flat[:: len(A) + 1] *= 1.0 + 1e-13
                L, info = dpotrf(A, lower=1, clean=1)
            if info or not np.isfinite(L.sum()):
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
    """Return what the multipliers of f_k <= f_k+1 add to each output: z_(k-1) - z_k."""
    return np.pad(z, ((0, 0), (1, 0))) - np.pad(z, ((0, 0), (0, 1)))


def _moved(pairs: Pairs, moves: Pairs, size: float) -> Pairs:
    both = zip(pairs, moves, strict=True)
    return [(x + size * dx, y + size * dy) for (x, y), (dx, dy) in both]


def _room(pairs: Pairs, moves: Pairs) -> float:
    """Return the largest step, up to 1 / _STEP_BACK, that leaves everything non-negative."""
    size = 1.0 / _STEP_BACK
    for pair, move in zip(pairs, moves, strict=True):
        for x, dx in zip(pair, move, strict=True):
            size = min(size, 1.0 / max(float((-dx / x).max(initial=0.0)), _STEP_BACK))
    return size
