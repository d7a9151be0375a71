"""Out-of-core Newton method for a smooth risk: each step is one pass over the blocks of points.

    J(w, b) = sum_i v_i loss(y_i, (F w + b)_i) + (mu / 2) |w|^2,      F = phi(X) is not stored

A pass computes J and its first and second derivatives at (w, b).  These are sums over rows, so the
results of the blocks are added.  The features are recomputed in every pass.

The same pass also evaluates the losses at many lengths of the step that led to (w, b).  If the full
step is far from the minimum along its direction, the best of these lengths is used, which costs one
more pass.

Certificate.  As for `Newton`, |dJ/dw|^2 / (2 mu) bounds J - min J if the intercept is optimal.  The
possible gain from a better intercept, g_b^T H_bb^-1 g_b, is added, where g_b and H_bb are the
gradient and Hessian with respect to b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    ProgressCallback,
    ProgressStep,
    as_float64,
    check_budget,
    entry_point,
    one_blas_thread,
)
from ..._core.linalg import cho_factor, cho_solve
from ...blocks import BlockRows, Blocks, reduce_rows
from ...gram import NystroemMap
from .._blocked_products import weighted_gram
from ._losses import Loss
from ._regularised_risk import Minimum, RiskSearch, Start

# Trial lengths of a step, relative to the full Newton step: from 2^-12 to 2^6, finer above 1/4.
_STEP_LENGTHS = 2.0 ** np.concatenate([np.arange(-12.0, -2.0), np.arange(-2.0, 6.5, 0.5)])
# A full step is accepted if the slope at its end is at most this fraction of the initial slope.
_SLOPE_REDUCTION = 0.1
_ROUNDING = 1e-12  # relative difference of J that rounding can cause between two passes
# If rounding stops progress, a relative gap of at most this is accepted without a warning.
_EXCUSED_GAP = 1e-6
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class OutOfCoreRisk:
    """Regularised risk of points in blocks, in the coordinates of Nyström landmarks.

        J(w, b) = sum_i v_i loss(y_i, phi(x_i) w + b) + (mu / 2) |w|^2

    Parameters
    ----------
    phi : NystroemMap
        The feature map.
    X : points or Blocks
        The points; their features are computed again in every pass.
    y : ndarray of shape (n,) or (n, q)
        The targets, or labels that `encode` converts to targets.
    weights : ndarray of shape (n,)
        Sample weights.
    encode : function
        Maps the `y` of a block to targets of shape (n_rows, q).  It must be importable, so that it
        can be sent to other processes.
    loss : Loss
        A smooth loss.
    outputs : int
        The number of outputs q.
    shift : float
        The ridge penalty mu.
    intercept : bool, default=True
        Whether to fit an intercept.

    Examples
    --------
    See `OutOfCoreNewton`.

    >>> from mercer.solvers import OutOfCoreRisk
    >>> OutOfCoreRisk.__name__
    'OutOfCoreRisk'
    """

    phi: NystroemMap
    X: Points | Blocks
    y: np.ndarray
    weights: np.ndarray
    encode: Callable[[np.ndarray], np.ndarray]
    loss: Loss
    outputs: int
    shift: float
    intercept: bool = True

    def evaluate(
        self,
        w: np.ndarray,
        b: np.ndarray,
        step: np.ndarray | None = None,
        log: ProgressCallback | None = None,
    ) -> RiskSums:
        """Return the sums over all rows at (w, b), in one pass.

        If `step`, the step that led to (w, b), is given, the losses at other lengths of this step
        are computed too.
        """
        total: RiskSums = reduce_rows(
            *(self.X, _block_sums, RiskSums.merge, self.phi, self.encode, self.loss, w, b, step),
            y=self.y,
            weights=self.weights,
            log=log,
        )
        return total

    def ridge_penalty(self, w: np.ndarray) -> float:
        """Return (mu / 2) |w|^2."""
        return 0.5 * self.shift * float(np.sum(w * w))


@dataclass(frozen=True, eq=False)
class RiskSums:
    """Sums over points: losses, derivatives with respect to [w; b], and the Nyström error."""

    value: float
    gradient: np.ndarray  # shape (m + 1, q)
    hessian: np.ndarray  # shape ((m + 1) q, (m + 1) q), one block of m + 1 rows per output
    residual_bound: np.ndarray  # sum_i sqrt(k(x_i, x_i) - |phi(x_i)|^2) |slope_i|, (q,)
    # sum_i k(x_i, x_i) - |phi(x_i)|^2, the part of the trace that the landmarks do not explain.
    residual_trace: float
    trace: float  # sum_i k(x_i, x_i)
    rows: int  # number of points with positive weight
    along: np.ndarray  # the losses at all trial lengths of a step

    def approximation_bound(self, scale: float) -> float:
        """Return how much lower the minimum over all f in the RKHS can be, at most.

        The losses are multiplied by `scale`; see `WhitenedCoordinates.approximation_bound`.
        """
        return 0.5 * float(np.square(scale * self.residual_bound).sum())

    @property
    def relative_residual(self) -> float:
        """The part of the trace of K that the landmarks do not explain, as a fraction."""
        return self.residual_trace / max(self.trace, _TINY)

    def merge(self, other: RiskSums) -> Self:
        """Return the sums over the points of both objects."""
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def _block_sums(
    rows: BlockRows,
    phi: NystroemMap,
    encode: Callable[[np.ndarray], np.ndarray],
    loss: Loss,
    w: np.ndarray,
    b: np.ndarray,
    step: np.ndarray | None,
) -> RiskSums:
    Y, v = encode(rows.y), rows.weights
    is_weighted = v > 0.0
    (m, q), diagonal = w.shape, phi.kernel.diag(as_float64(rows.X))
    value, residual_trace, residual_bound = 0.0, 0.0, np.zeros(q)
    gradient, H = np.zeros((m + 1, q)), np.zeros((q, m + 1, q, m + 1))
    unit_vectors, along = np.eye(q), np.zeros(len(_STEP_LENGTHS))
    for part, F in phi.blocks(rows.X):
        f, part_weights = F @ w + b, v[part]
        local = loss(f, Y[part])
        value += float(part_weights @ local.values)
        slopes = part_weights[:, None] * local.slopes
        gradient[:m] += F.T @ slopes
        gradient[m] += slopes.sum(axis=0)
        residual_diagonal = np.maximum(diagonal[part] - np.einsum("ij,ij->i", F, F), 0.0)
        residual_trace += float(residual_diagonal @ is_weighted[part])
        residual_bound += np.sqrt(residual_diagonal) @ np.abs(slopes)
        if step is not None:
            change = F @ step[:-1] + step[-1]
            with np.errstate(over="ignore", invalid="ignore"):  # long steps may overflow
                along += [
                    part_weights @ loss(f + (t - 1.0) * change, Y[part]).values
                    for t in _STEP_LENGTHS
                ]
        with_ones = np.column_stack([F, np.ones(len(F))])
        for c in range(q):
            unit = np.broadcast_to(unit_vectors[c], f.shape)
            curvature = part_weights[:, None] * local.times(unit)
            for a in range(c, q):
                H[a, :, c] += _weighted_gram(with_ones, curvature[:, a], a == c)
    for c in range(q):
        for a in range(c + 1, q):
            H[c, :, a] = H[a, :, c].T
    size, trace = (m + 1) * q, float(diagonal @ is_weighted)
    approximation = residual_bound, residual_trace, trace, int(is_weighted.sum())
    return RiskSums(value, gradient, H.reshape(size, size), *approximation, along)


def _weighted_gram(F: np.ndarray, h: np.ndarray, positive: bool) -> np.ndarray:
    """Return F^T diag(h) F; pass positive=False if h has entries of both signs."""
    if not positive:  # h belongs to two different outputs of a coupled loss
        product: np.ndarray = F.T @ (h[:, None] * F)
        return product
    half = weighted_gram(F, h)
    return np.asarray(np.tril(half) + np.tril(half, -1).T)


@entry_point
@dataclass(frozen=True)
class OutOfCoreNewton(RiskSearch[OutOfCoreRisk]):
    """Newton's method for points in blocks, which need not fit into memory.

    Parameters
    ----------
    tol : float, default=1e-10
        Relative accuracy of the objective J: stop when the certified gap to the minimum is at
        most `tol` times J.
    max_iter : int, default=100
        Maximum number of steps, each of one or two passes over the points.
    max_memory : int, str or None, default=None
        Memory budget for the second derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import Blocks
    >>> from mercer.gram import NystroemMap
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Logistic, OutOfCoreNewton, OutOfCoreRisk
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> phi, blocks = NystroemMap.on(RBF(), X[::6]), Blocks.of(X, rows=20)
    >>> risk = OutOfCoreRisk(phi, blocks, np.sign(X), np.ones(60), np.asarray, Logistic(), 1, 1.0)
    >>> found = OutOfCoreNewton().minimize(risk)
    >>> found.gap < 1e-9, found.sums.rows
    (True, 60)
    """

    tol: float = 1e-10
    max_iter: int = 100
    max_memory: MemoryLimit = field(default=None, repr=False)

    @staticmethod
    def workspace(m: int, q: int) -> int:
        """Return the memory in bytes for m landmarks and q outputs: four Hessian matrices."""
        return 32 * ((m + 1) * q) ** 2

    @one_blas_thread
    def _search(
        self, risk: OutOfCoreRisk, start: Start | None, log: ProgressCallback
    ) -> tuple[Minimum, str]:
        m, q = len(risk.phi), risk.outputs
        what = f"second derivatives of {q} outputs, rank={m} each,"
        check_budget(self.workspace(m, q), self.max_memory, what)
        step, passes, failure, last_gap = 0, 1, "", np.inf
        w, b = (np.zeros((m, q)), np.zeros(q)) if start is None else start
        sums = risk.evaluate(w, b, log=log)
        while True:
            value = sums.value + risk.ridge_penalty(w)
            g, H = self._derivatives(risk, sums, w)
            d = -cho_solve(cho_factor(H, lower=True), g.T.ravel()).reshape(q, m + 1).T
            decrease, gap = -float(np.sum(g * d)), self._gap(risk, g, H)
            text = f"step {step}: objective {value:.8g}, gap {gap:.1e}, {passes} passes"
            log(ProgressStep(text))
            if gap <= max(self.tol, _ROUNDING) * abs(value):
                # Take one more step without another pass, because Newton's method converges fast.
                w, b = w + d[:-1], b + d[-1]
                break
            is_stalled = not gap <= last_gap and decrease <= _EXCUSED_GAP * abs(value)
            if step == self.max_iter or is_stalled:
                relative_gap = gap / max(abs(value), _TINY)
                if step == self.max_iter or relative_gap > _EXCUSED_GAP:
                    failure = (
                        f"Newton's method stopped after {step} steps (max_iter={self.max_iter}) "
                        f"with a relative gap of at most {relative_gap:.1e} between the objective "
                        f"and its minimum, but tol={self.tol:g}. Raise max_iter or tol, or "
                        f"regularise more"
                    )
                break
            last_gap = gap
            w, b, sums, n_passes = self._take_step(risk, w, b, d, value, decrease)
            passes += n_passes
            step += 1
        ridge_gradient = max(np.abs(risk.shift * w).max(initial=0.0), _TINY)
        certificate = {
            "objective": value,
            "decrement": float(np.sqrt(max(decrease, 0.0))),
            "gap": gap,
            "passes": passes,
        }
        residual = float(np.abs(g[:-1]).max() / ridge_gradient)
        report = self._report(step, residual, certificate, f"{passes} passes over the points")
        return Minimum(w, b, None, value, report, sums), failure

    @staticmethod
    def _derivatives(
        risk: OutOfCoreRisk, sums: RiskSums, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the Hessian of J; the Hessian is made positive definite."""
        (m, q), g, H = w.shape, sums.gradient.copy(), sums.hessian.copy()
        g[:m] += risk.shift * w
        index = np.arange(len(H)).reshape(q, m + 1)
        H[index[:, :m].ravel(), index[:, :m].ravel()] += risk.shift
        intercepts = index[:, m]
        if not risk.intercept:
            g[m] = 0.0
            H[intercepts], H[:, intercepts] = 0.0, 0.0
            H[intercepts, intercepts] = 1.0
        elif q > 1:  # softmax ignores a constant added to all outputs, so H would be singular
            H[np.ix_(intercepts, intercepts)] += H[intercepts, intercepts].mean()
        return g, H

    @staticmethod
    def _gap(risk: OutOfCoreRisk, g: np.ndarray, H: np.ndarray) -> float:
        """Return an upper bound on J - min J."""
        q = g.shape[1]
        intercepts = np.arange(len(H)).reshape(q, -1)[:, -1]
        H_b = H[np.ix_(intercepts, intercepts)]
        intercept_gain = float(g[-1] @ np.linalg.lstsq(H_b, g[-1], rcond=1e-14)[0])
        return 0.5 * float(np.sum(np.square(g[:-1]))) / risk.shift + max(intercept_gain, 0.0)

    @staticmethod
    def _take_step(
        risk: OutOfCoreRisk,
        w: np.ndarray,
        b: np.ndarray,
        d: np.ndarray,
        value: float,
        expected_decrease: float,
    ) -> tuple[np.ndarray, np.ndarray, RiskSums, int]:
        """Return the new w and b, the sums at this point, and the number of passes.

        The full step d is taken if it ends near the minimum along d; otherwise the best of the
        trial lengths is used.
        """
        w_full, b_full = w + d[:-1], b + d[-1]
        sums = risk.evaluate(w_full, b_full, d)
        g = sums.gradient.copy()
        g[:-1] += risk.shift * w_full
        slope = float(np.sum(g * d))  # at the start, the slope is -expected_decrease
        full_value = sums.value + risk.ridge_penalty(w_full)
        is_lower = full_value <= value + _ROUNDING * abs(value)
        if is_lower and abs(slope) <= _SLOPE_REDUCTION * expected_decrease:
            return w_full, b_full, sums, 1
        values = sums.along + [risk.ridge_penalty(w + t * d[:-1]) for t in _STEP_LENGTHS]
        best = float(_STEP_LENGTHS[np.argmin(np.where(np.isfinite(values), values, np.inf))])
        if best == 1.0:
            return w_full, b_full, sums, 1
        w, b = w + best * d[:-1], b + best * d[-1]
        return w, b, risk.evaluate(w, b), 2
