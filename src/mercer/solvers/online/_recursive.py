"""Recursive least squares on points that do not depend on each other (Engel, Mannor, Meir 2004).

With K = L L^T of the points kept, a point x has the coordinates l = L^-1 k(x) in their span, and
left = k(x, x) - |l|^2 is the squared distance of k(x, .) from it.  If left <= nu k(x, x), the point
counts as its projection, phi = l; else it is kept, and phi = [l, sqrt(left)].  Then f = phi^T v in

    min_v  sum_t w_t (y_t - phi_t^T v)^2 + alpha |v|^2,        R v = z,
    R^T R = sum_t w_t phi_t phi_t^T + alpha,                   R^T z = sum_t w_t y_t phi_t,

and rotations bring the row sqrt(w) [phi, y] into the triangle [R, z] in O(m^2).  Neither K nor R is
inverted, so that points next to the span do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._runtime import entry_point, jit
from ..._runtime.linalg import solve_triangular
from ...gram import GramOperator
from ._learner import BLOCK, Block, OnlineLearner

__all__ = ["RecursiveLeastSquares"]


@entry_point
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
    >>> f = RBF()(X, X[model.support]) @ model.A
    >>> len(model.support), bool(np.abs(f - np.sin(X)).max() < 0.02)
    (16, True)
    """

    nu: float = 1e-3
    alpha: float = 1e-3
    budget: int | None = None
    L: Any = None
    R: Any = None
    z: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.L, self.R, self.z = np.zeros((0, 0)), np.zeros((0, 0)), self.A

    def workspace(self) -> int:
        """Return the bytes that a block takes: the triangles, old and new, and copies of them."""
        m = self._most
        return 8 * (6 * m**2 + 2 * BLOCK * (m + BLOCK))

    def _learn_block(self, K: GramOperator, block: Block) -> None:
        ids, Y, w, _, losses, mistakes = block
        m, q, most = len(self.support), self.n_functions, len(self.support) + len(ids)
        most = most if self.budget is None else min(self.budget, most)
        around = self._against(K, ids)
        L, R, z = np.zeros((most, most)), np.zeros((most, most)), np.zeros((most, q))
        slots, work = np.zeros(most, dtype=np.intp), (np.empty(most), np.empty(q))
        L[:m, :m], R[:m, :m], z[:m], slots[:m] = self.L, self.R, self.z, np.arange(m)
        self.L = self.R = None  # their memory is needed
        m = _recursive(around, m, Y, w, L, R, z, *work, slots, self.nu, self.alpha, losses)
        self.support = np.concatenate([self.support, ids])[slots[:m]]
        self.L, self.R, self.z = L[:m, :m].copy(), R[:m, :m].copy(), z[:m].copy()
        v = solve_triangular(self.R, self.z, check_finite=False)
        self.A = solve_triangular(self.L, v, trans="T", lower=True, check_finite=False)
        self.seen += len(ids)
        mistakes += len(ids)  # every point moves f


@jit("reassoc", "nsz")
def _recursive(
    around: Any,
    m: Any,
    Y: Any,
    w: Any,
    L: Any,
    R: Any,
    z: Any,
    phi: Any,
    t: Any,
    slots: Any,
    nu: Any,
    alpha: Any,
    losses: Any,
) -> Any:
    """Walk through a block; `slots` are the columns in `around` of the points kept."""
    n, q = Y.shape
    before = around.shape[1] - n
    for i in range(n):
        kxx = around[i, before + i]
        left = kxx
        for s in range(m):
            row, total = L[s], around[i, slots[s]]
            for r in range(s):
                total -= row[r] * phi[r]
            phi[s] = total / row[s]
            left -= phi[s] * phi[s]
        if m < len(L) and left > nu * abs(kxx):
            for s in range(m):
                L[m, s] = phi[s]
            L[m, m] = phi[m] = np.sqrt(left)
            R[m, m] = np.sqrt(alpha)
            slots[m] = before + i
            m += 1
        root, share = np.sqrt(w[i]), 1.0
        for e in range(q):
            t[e] = root * Y[i, e]
        for s in range(m):
            phi[s] *= root
        for s in range(m):
            size = np.sqrt(R[s, s] * R[s, s] + phi[s] * phi[s])
            c, d = R[s, s] / size, phi[s] / size
            share *= c
            row = R[s]
            for r in range(s, m):
                old, new = row[r], phi[r]
                row[r] = c * old + d * new
                phi[r] = c * new - d * old
            for e in range(q):
                old = z[s, e]
                z[s, e] = c * old + d * t[e]
                t[e] = c * t[e] - d * old
        for e in range(q):  # what rotations leave is the share of the error of f before the point
            losses[e] += (t[e] / share) ** 2
    return m
