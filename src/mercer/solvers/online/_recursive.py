"""Recursive least squares on points that do not depend on each other (Engel, Mannor, Meir 2004).

A point x whose k(x, .) is nearer than sqrt(nu k(x, x)) to the span of the points kept counts as its
projection there, sum_s c_s k(x_s, .) with c = K^-1 k(x); any other is kept.  With v the values of f
at the points kept, f(x) is then c^T v, and

    min_v  sum_t w_t (y_t - c_t^T v)^2 + alpha v^T K^-1 v,
    v = P sum_t w_t y_t c_t,        P = (sum_t w_t c_t c_t^T + alpha K^-1)^-1

follow each point in O(m^2): by the usual recursion of P for a new c, and by [P, Pc; c^T P,
left / alpha + c^T P c] for a point to be kept, of which `left` is outside of the span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._runtime import jit
from ...gram import GramOperator
from ._learner import BLOCK, Block, OnlineLearner, grow, projected

__all__ = ["RecursiveLeastSquares"]


@dataclass(eq=False)
class RecursiveLeastSquares(OnlineLearner):
    """Least squares with a ridge, one point after the other.

    Parameters
    ----------
    nu : float
        Which part of k(x, x) outside of their span makes a point one of those kept.
    alpha : float
        The ridge.
    budget : int or None
        At most so many are kept; further ones count as their projections.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import RecursiveLeastSquares
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> model = RecursiveLeastSquares(1, intercept=False, nu=1e-3, alpha=1e-3)
    >>> _ = model.learn(gram(RBF(), X), np.arange(500), np.sin(X), np.ones(500))
    >>> f = RBF()(X, X[model.support]) @ model.solution()[0]
    >>> len(model.support), bool(np.abs(f - np.sin(X)).max() < 0.02)
    (16, True)
    """

    nu: float = 1e-3
    alpha: float = 1e-3
    budget: int | None = None
    K: Any = None
    P: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.K, self.P = np.zeros((0, 0)), np.zeros((0, 0))

    def workspace(self) -> int:
        """Return the bytes of the state at its largest, or of a first block."""
        m = BLOCK if self.budget is None else self.budget
        return 8 * (7 * m**2 + 2 * BLOCK * (m + BLOCK))

    def _learn_block(self, K: GramOperator, block: Block) -> None:
        ids, Y, w, _, losses, _ = block
        m = len(self.support)
        most = m + len(ids) if self.budget is None else min(self.budget, m + len(ids))
        around = self._against(K, ids)
        V, slots = np.zeros((most, self.n_functions)), np.zeros(most, dtype=np.intp)
        inner, inverse, P = (np.zeros((most, most)) for _ in range(3))
        V[:m], slots[:m] = self.A, np.arange(m)
        inner[:m, :m], inverse[:m, :m], P[:m, :m] = self.K, self._inverse(self.K), self.P
        m = _recursive(around, m, Y, w, V, slots, inner, inverse, P, self.nu, self.alpha, losses)
        self.support = np.concatenate([self.support, ids])[slots[:m]]
        # between blocks A holds the values v, which need no inverse
        self.A, self.K, self.P = V[:m].copy(), inner[:m, :m].copy(), P[:m, :m].copy()
        self.seen += len(ids)

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients K^-1 v on `support`, and the constants, which are 0."""
        return self._inverse(self.K) @ self.A, self.b


@jit("reassoc", "nsz")
def _recursive(
    around: Any,
    m: Any,
    Y: Any,
    w: Any,
    V: Any,
    slots: Any,
    inner: Any,
    inverse: Any,
    P: Any,
    nu: Any,
    alpha: Any,
    losses: Any,
) -> Any:
    """Walk through a block; V are the values of f at the points kept."""
    n, q = Y.shape
    before = around.shape[1] - n
    k, c = np.empty(2 * len(V)), np.empty(len(V))
    h, r = np.empty(len(V)), np.empty(len(V))
    for i in range(n):
        for s in range(m):
            k[s] = around[i, slots[s]]
        kxx = around[i, before + i]
        left = projected(inverse, inner, k, kxx, m, c, r)
        for s in range(m):
            total = 0.0
            for t in range(m):
                total += P[s, t] * c[t]
            h[s] = total
        gain = 0.0  # c^T P c
        for s in range(m):
            gain += c[s] * h[s]
        if m < len(V) and left > nu * abs(kxx):
            grow(inverse, c, left, m)
            for s in range(m):
                inner[s, m] = inner[m, s] = k[s]
                P[s, m] = P[m, s] = h[s]
            gain += left / alpha
            inner[m, m], P[m, m], h[m] = kxx, gain, gain
            slots[m] = before + i
            for e in range(q):
                V[m, e] = 0.0
                for s in range(m):
                    V[m, e] += c[s] * V[s, e]
            for s in range(m):
                c[s] = 0.0
            c[m] = 1.0
            m += 1
        scale = w[i] / (1.0 + w[i] * gain)
        for e in range(q):
            error = Y[i, e]
            for s in range(m):
                error -= c[s] * V[s, e]
            losses[e] += w[i] * error * error
            for s in range(m):
                V[s, e] += scale * error * h[s]
        for s in range(m):
            for t in range(m):
                P[s, t] -= scale * h[s] * h[t]
    return m
