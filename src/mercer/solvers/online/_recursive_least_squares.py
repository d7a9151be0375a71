"""Kernel recursive least squares with a sparse dictionary (Engel, Mannor and Meir 2004).

The dictionary consists of support points that are approximately linearly independent in feature
space.  Their kernel matrix is K = L L^T.  Let k(x) hold the kernel values of a new point x with
them.  Then x has the coordinates l = L^-1 k(x) in their span, and d = k(x, x) - |l|^2 is the
squared distance of k(x, .) from the span.  If d <= nu k(x, x), the point is replaced by its
projection, with features phi = l.  Otherwise it becomes a support point, with features
phi = [l, sqrt(d)].  The model is f = phi^T v, with v from

    min_v  sum_t w_t (y_t - phi_t^T v)^2 + alpha |v|^2,        R v = z,
    R^T R = sum_t w_t phi_t phi_t^T + alpha I,                 R^T z = sum_t w_t y_t phi_t,

where t counts the points and R is upper triangular.  For each point, Givens rotations update [R, z]
with the row sqrt(w) [phi, y] in O(m^2) operations for m support points.  Neither K nor R is
inverted, so points close to the span do not cause numerical problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import entry_point, jit
from ..._core.linalg import solve_triangular
from ...gram import GramOperator
from ._online_learner import BLOCK_ROWS, LearningBlock, OnlineLearner


@entry_point
@dataclass(eq=False)
class RecursiveLeastSquares(OnlineLearner):
    """Kernel recursive least squares: regularised least squares, updated after each point.

    Parameters
    ----------
    n_functions, intercept
        As in `OnlineLearner`.
    nu : float, default=1e-3
        A point becomes a support point if its squared distance from the span of the support points
        exceeds nu k(x, x).  Smaller values give more support points.
    alpha : float, default=1e-3
        Ridge penalty.
    budget : int or None, default=None
        Maximum number of support points; once it is reached, all new points are replaced by their
        projections.  None means no limit.

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
        """Return the memory of the next block in bytes: triangular factors and kernel values."""
        m = self._max_support
        return 8 * (6 * m**2 + 2 * BLOCK_ROWS * (m + BLOCK_ROWS))

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        ids, Y, w, _, losses, mistakes = block
        m, q, size = len(self.support), self.n_functions, len(self.support) + len(ids)
        size = size if self.budget is None else min(self.budget, size)
        kernel_rows = self._kernel_rows(K, ids)
        L, R, z = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, q))
        slots, work = np.zeros(size, dtype=np.intp), (np.empty(size), np.empty(q))
        L[:m, :m], R[:m, :m], z[:m], slots[:m] = self.L, self.R, self.z, np.arange(m)
        self.L = self.R = None  # free the memory of the old factors
        m = _learn_rows(kernel_rows, m, Y, w, L, R, z, *work, slots, self.nu, self.alpha, losses)
        self.support = np.concatenate([self.support, ids])[slots[:m]]
        self.L, self.R, self.z = L[:m, :m].copy(), R[:m, :m].copy(), z[:m].copy()
        v = solve_triangular(self.R, self.z, check_finite=False)
        self.A = solve_triangular(self.L, v, trans="T", lower=True, check_finite=False)
        self.seen += len(ids)
        mistakes += len(ids)  # each point changes f, so each is counted


@jit("reassoc", "nsz")
def _learn_rows(
    kernel_rows: Any,
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
    """Process the points of a block in order, and return the new number of support points m.

    The columns of `kernel_rows` are the support points before the block, then the points of the
    block; its rows are the points of the block.  `slots` holds the column of each of the m current
    support points.
    """
    n, q = Y.shape
    n_support = kernel_rows.shape[1] - n
    for i in range(n):
        kxx = kernel_rows[i, n_support + i]
        residual = kxx
        for s in range(m):
            row, total = L[s], kernel_rows[i, slots[s]]
            for r in range(s):
                total -= row[r] * phi[r]
            phi[s] = total / row[s]
            residual -= phi[s] * phi[s]
        if m < len(L) and residual > nu * abs(kxx):
            for s in range(m):
                L[m, s] = phi[s]
            L[m, m] = phi[m] = np.sqrt(residual)
            R[m, m] = np.sqrt(alpha)
            slots[m] = n_support + i
            m += 1
        root, product = np.sqrt(w[i]), 1.0
        for e in range(q):
            t[e] = root * Y[i, e]
        for s in range(m):
            phi[s] *= root
        for s in range(m):
            size = np.sqrt(R[s, s] * R[s, s] + phi[s] * phi[s])
            c, d = R[s, s] / size, phi[s] / size
            product *= c
            row = R[s]
            for r in range(s, m):
                old, new = row[r], phi[r]
                row[r] = c * old + d * new
                phi[r] = c * new - d * old
            for e in range(q):
                old = z[s, e]
                z[s, e] = c * old + d * t[e]
                t[e] = c * t[e] - d * old
        # After the rotations, t is `product` times the prediction error before the update.
        for e in range(q):
            losses[e] += (t[e] / product) ** 2
    return m
