"""Newton's method for a smooth risk of points in blocks: a pass over them for each step.

    J(w, b) = sum_i v_i loss(y_i, F w + b)_i + (mu / 2) |w|^2,        F = phi(X), which is not held

A pass returns J with its first and second derivatives at (w, b), sums over rows that merge by
addition; features are computed again each time.  The losses at many lengths of the step that led
there come along: where a full step is not near the minimum along it, the best length is taken, for
one more pass.

Certificate.  As for `Newton`, |dJ/dw|^2 / (2 mu) bounds J - min J once the intercept is the best
one; what is left to gain there, g_b^T H_bb^-1 g_b, is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from ..._points import doubled
from ..._runtime import Step, Stopwatch, check_budget, entry_point, one_blas_thread
from ..._runtime.linalg import cho_factor, cho_solve
from ...blocks import Blocks, Rows
from ...gram import NystroemMap
from .._report import Report, Status
from .._row_blocks import weighted_gram
from ._losses import Loss
from ._regularised_risk import Minimum

__all__ = ["NewtonInPasses", "RiskInBlocks"]

_LENGTHS = 2.0 ** np.concatenate([np.arange(-12.0, -2.0), np.arange(-2.0, 6.5, 0.5)])  # of a step
_FLAT = 0.1  # a step ends where the slope along it is this part of that at its start
_ROUNDING, _EXCUSED = 1e-12, 1e-6  # parts of J: what two passes may differ by, and a gap may be
_TINY = float(np.finfo(float).tiny)

Coding = Callable[[Rows], tuple[np.ndarray, np.ndarray]]  # targets (n, q) and weights of a block


@dataclass(frozen=True, eq=False)
class RiskInBlocks:
    """J for points in blocks, in the coordinates of landmarks.

    Parameters
    ----------
    phi : NystroemMap
    blocks : Blocks
    coding : function of Rows
        Returns targets (n, q) and weights (n,) of a block; one that another process can find.
    loss : Loss
        A smooth one.
    outputs : int
        q.
    shift : float
        mu.
    intercept : bool

    Examples
    --------
    See `NewtonInPasses`.

    >>> from mercer.solvers import RiskInBlocks
    >>> RiskInBlocks.__name__
    'RiskInBlocks'
    """

    phi: NystroemMap
    blocks: Blocks
    coding: Coding
    loss: Loss
    outputs: int
    shift: float
    intercept: bool = True

    def at(
        self, w: np.ndarray, b: np.ndarray, step: np.ndarray | None = None, say: Any = None
    ) -> Sums:
        """Return the sums over all rows at (w, b), in one pass.

        Given the step that led there, the losses at other lengths of it are among them.
        """
        shared = (self.phi, self.coding, self.loss, w, b, step)
        found: Sums = self.blocks.reduce(_sums, Sums.merge, *shared, say=say)
        return found

    def ridge(self, w: np.ndarray) -> float:
        return 0.5 * self.shift * float(np.sum(w * w))


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows: the losses, derivatives in [w; b], and what landmarks leave out."""

    value: float
    gradient: np.ndarray  # (m + 1, q)
    hessian: np.ndarray  # ((m + 1) q, (m + 1) q), output by output
    missed: np.ndarray  # sum_i sqrt(k(x, x) - |phi|^2) |slope|, (q,)
    left: float  # sum_i k(x, x) - |phi|^2
    trace: float  # sum_i k(x, x)
    rows: int
    along: np.ndarray  # the losses at all lengths of a step

    def merge(self, other: Sums) -> Self:
        """Return the sums over the rows of both."""
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def _sums(
    rows: Rows,
    phi: NystroemMap,
    coding: Coding,
    loss: Loss,
    w: np.ndarray,
    b: np.ndarray,
    step: np.ndarray | None,
) -> Sums:
    Y, v = coding(rows)
    counts = v > 0.0
    (m, q), diagonal = w.shape, phi.kernel.diag(doubled(rows.X))
    value, left, missed = 0.0, 0.0, np.zeros(q)
    gradient, H = np.zeros((m + 1, q)), np.zeros((q, m + 1, q, m + 1))
    units, along = np.eye(q), np.zeros(len(_LENGTHS))
    for part, F in phi.blocks(rows.X):
        f, u = F @ w + b, v[part]
        local = loss(f, Y[part])
        value += float(u @ local.values)
        slopes = u[:, None] * local.slopes
        gradient[:m] += F.T @ slopes
        gradient[m] += slopes.sum(axis=0)
        away = np.maximum(diagonal[part] - np.einsum("ij,ij->i", F, F), 0.0)
        left += float(away @ counts[part])
        missed += np.sqrt(away) @ np.abs(slopes)
        if step is not None:
            moved = F @ step[:-1] + step[-1]
            with np.errstate(over="ignore", invalid="ignore"):  # too far
                along += [u @ loss(f + (t - 1.0) * moved, Y[part]).values for t in _LENGTHS]
        bordered = np.column_stack([F, np.ones(len(F))])
        for c in range(q):
            bend = u[:, None] * local.times(np.broadcast_to(units[c], Y[part].shape))
            for a in range(c, q):
                H[a, :, c] += _gram(bordered, bend[:, a], a == c)
    for c in range(q):
        for a in range(c + 1, q):
            H[c, :, a] = H[a, :, c].T
    size, trace = (m + 1) * q, float(diagonal @ counts)
    H = H.reshape(size, size)
    return Sums(value, gradient, H, missed, left, trace, int(counts.sum()), along)


def _gram(F: np.ndarray, h: np.ndarray, positive: bool) -> np.ndarray:
    """Return F^T diag(h) F."""
    if not positive:  # between two outputs of a coupled loss
        return F.T @ (h[:, None] * F)
    lower = weighted_gram(F, h)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


@entry_point
@dataclass(frozen=True)
class NewtonInPasses:
    """Newton's method whose steps are passes over blocks of points.

    Parameters
    ----------
    tol : float
        Stop when J is at most this part of itself above its minimum.
    max_iter : int
        Steps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import Blocks, beside
    >>> from mercer.gram import NystroemMap
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Logistic, NewtonInPasses, RiskInBlocks
    >>> def signs(rows):
    ...     return rows.y[:, None], np.ones(len(rows.y))
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> blocks = beside(Blocks.of(X, rows=20), np.sign(X[:, 0]))
    >>> risk = RiskInBlocks(NystroemMap.on(RBF(), X[::6]), blocks, signs, Logistic(), 1, 1.0)
    >>> found, sums = NewtonInPasses().minimize(risk)
    >>> found.gap < 1e-9, sums.rows
    (True, 60)
    """

    tol: float = 1e-10
    max_iter: int = 100

    @staticmethod
    def workspace(m: int, q: int) -> int:
        """Return the bytes of H, of what is merged with it, and of a factor."""
        return 32 * ((m + 1) * q) ** 2

    @one_blas_thread
    def minimize(
        self, risk: RiskInBlocks, say: Callable[[str], None] | None = None, max_memory: Any = None
    ) -> tuple[Minimum, Sums]:
        """Return the minimum of J, and the sums there."""
        m, q = len(risk.phi), risk.outputs
        check_budget(
            self.workspace(m, q), max_memory, f"second derivatives of {q} outputs, rank={m} each,"
        )
        watch, passes, failure = Stopwatch(), 1, ""
        w, b, last = np.zeros((m, q)), np.zeros(q), np.inf
        sums = risk.at(w, b, say=say)
        for step in range(self.max_iter + 1):
            value = sums.value + risk.ridge(w)
            g, H = self._derivatives(risk, sums, w)
            d = -cho_solve(cho_factor(H, lower=True), g.T.ravel()).reshape(q, m + 1).T
            decrease, gap = -float(np.sum(g * d)), self._gap(risk, g, H)
            if say is not None:
                say(Step(f"step {step}: objective {value:.8g}, gap {gap:.1e}, {passes} passes"))
            if gap <= max(self.tol, _ROUNDING) * abs(value):
                w, b = w + d[:-1], b + d[-1]  # at no cost: it lowers the gap to about its square
                break
            if step == self.max_iter or (not gap <= last and decrease <= _EXCUSED * abs(value)):
                far = gap / max(abs(value), _TINY)
                if step == self.max_iter or far > _EXCUSED:
                    failure = (
                        f"Newton's method took {step} steps (max_iter={self.max_iter}) and ended "
                        f"{far:.1e} of the objective or less above the minimum, where {self.tol:g} "
                        f"was asked for. Raise max_iter or tol, or regularise more"
                    )
                break
            last = gap
            w, b, sums, more = self._stepped(risk, w, b, d, value, decrease)
            passes += more
        report = Report(
            repr(self),
            Status.NOT_CONVERGED if failure else Status.CONVERGED,
            step,
            float(np.abs(g[:-1]).max() / max(np.abs(risk.shift * w).max(initial=0.0), _TINY)),
            watch.seconds,
            "; ".join(filter(None, [f"{passes} passes over the points", failure])),
            {
                "objective": value,
                "decrement": float(np.sqrt(max(decrease, 0.0))),
                "gap": gap,
                "passes": passes,
            },
        )
        return Minimum(w, b, None, value, report), sums

    @staticmethod
    def _derivatives(
        risk: RiskInBlocks, sums: Sums, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the second derivatives of J, definite also where b is free."""
        (m, q), g, H = w.shape, sums.gradient.copy(), sums.hessian.copy()
        g[:m] += risk.shift * w
        places = np.arange(len(H)).reshape(q, m + 1)
        H[places[:, :m].ravel(), places[:, :m].ravel()] += risk.shift
        last = places[:, m]
        if not risk.intercept:
            g[m] = 0.0
            H[last], H[:, last] = 0.0, 0.0
            H[last, last] = 1.0
        elif q > 1:  # a common constant in all outputs changes no softmax, and is not to move
            H[np.ix_(last, last)] += H[last, last].mean()
        return g, H

    @staticmethod
    def _gap(risk: RiskInBlocks, g: np.ndarray, H: np.ndarray) -> float:
        q = g.shape[1]
        last = np.arange(len(H)).reshape(q, -1)[:, -1]
        free = float(g[-1] @ np.linalg.lstsq(H[np.ix_(last, last)], g[-1], rcond=1e-14)[0])
        return 0.5 * float(np.sum(np.square(g[:-1]))) / risk.shift + max(free, 0.0)

    @staticmethod
    def _stepped(
        risk: RiskInBlocks, w: np.ndarray, b: np.ndarray, d: np.ndarray, value: float, first: float
    ) -> tuple[np.ndarray, np.ndarray, Sums, int]:
        """Return where a step leads: all of it, or the best of many lengths."""
        near, beside = w + d[:-1], b + d[-1]
        sums = risk.at(near, beside, d)
        g = sums.gradient.copy()
        g[:-1] += risk.shift * near
        slope = float(np.sum(g * d))  # which was - first at the start
        reached = sums.value + risk.ridge(near)
        if reached <= value + _ROUNDING * abs(value) and abs(slope) <= _FLAT * first:
            return near, beside, sums, 1
        values = sums.along + [risk.ridge(w + t * d[:-1]) for t in _LENGTHS]
        best = float(_LENGTHS[np.argmin(np.where(np.isfinite(values), values, np.inf))])
        if best == 1.0:
            return near, beside, sums, 1
        w, b = w + best * d[:-1], b + best * d[-1]
        return w, b, risk.at(w, b), 2
