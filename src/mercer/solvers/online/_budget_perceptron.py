"""Kernel perceptron with a limited number of support points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import NotPositiveDefiniteError, entry_point, fmax, jit
from ..._core.linalg import lapack
from ...gram import GramOperator
from ._online_learner import BLOCK_ROWS, LearningBlock
from ._perceptron import Perceptron, set_corrections

# A misclassified point x is replaced by its projection onto the span of the support points if its
# squared distance from the span is at most this fraction of k(x, x).
_DEPENDENCE_TOL = 1e-7
_MAX_JITTER = 1e-9  # largest jitter added to the diagonal of K, relative to the mean of k(x, x)


@entry_point
@dataclass(eq=False)
class BudgetPerceptron(Perceptron):
    """Kernel perceptron with at most `budget` support points.

    If a misclassified point is linearly dependent on the support points in feature space, its
    projection is added to f (as in the Projectron of Orabona, Keshet and Caputo, 2009).  Otherwise
    it becomes a support point.  If there are then more than `budget` support points, the one whose
    removal changes f least is removed, and f is projected onto the span of the others.  If point s
    is removed, the squared RKHS norm of the change of f is sum_c A_sc^2 / (K^-1)_ss, where K is the
    kernel matrix of the support points and A_sc the coefficient of point s in function c.  If
    `average` is True, the squared norm of the change of the averaged f is added.

    K^-1 is updated in O(budget^2) operations per mistake, and recomputed for each block of points.

    Parameters
    ----------
    n_functions, intercept, average
        As in `Perceptron`.
    budget : int, default=100
        Maximum number of support points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import BudgetPerceptron
    >>> learner = BudgetPerceptron(1, budget=2)
    >>> K = gram("RBF()", np.arange(6.0)[:, None])
    >>> _ = learner.learn(K, np.arange(6), np.array([[1.0], [-1.0]] * 3), np.ones(6))
    >>> len(learner.support)
    2
    """

    budget: int = 100
    removed: int = 0
    moved: float = 0.0
    K: Any = None
    jitter: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.K = np.zeros((0, 0))

    def workspace(self) -> int:
        """Return the maximum memory of the model and the current block of points, in bytes."""
        return 8 * (5 * (self.budget + 1) ** 2 + 2 * BLOCK_ROWS * (self.budget + BLOCK_ROWS))

    @property
    def certificate(self) -> dict[str, Any]:
        """Entries of the report that describe the approximations due to the budget.

        "removed" is the number of removed support points, and "moved" the sum of the changes of f,
        in the RKHS norm, by removals and projections.  "jitter", if present, is the largest value
        that was added to the diagonal of the kernel matrix to invert it.
        """
        jitter = {"jitter": self.jitter} if self.jitter else {}
        removed = {"removed": self.removed, "moved": self.moved}
        return {**super().certificate, **removed, **jitter}

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        ids, Y, w, active, losses, mistakes = block
        m, q, size = len(self.support), self.n_functions, self.budget + 1
        size = min(size, m + len(ids) + 1)
        kernel_rows = self._kernel_rows(K, ids)
        A, U, slots = np.zeros((size, q)), np.zeros((size, q)), np.zeros(size, dtype=np.intp)
        inner, inverse = np.zeros((size, size)), np.zeros((size, size))
        A[:m], U[:m], slots[:m] = self.A, self.U, np.arange(m)
        inverse[:m, :m], jitter = inverse_with_jitter(self.K)
        inner[:m, :m], self.jitter = self.K, max(self.jitter, jitter)
        m, removed, moved = _learn_rows(
            kernel_rows,
            m,
            Y,
            w,
            active,
            float(self.intercept),
            self.b,
            self.ub,
            self.seen,
            np.empty((2, q)),
            np.empty((4, size)),
            A,
            U,
            slots,
            inner,
            inverse,
            self.budget,
            _DEPENDENCE_TOL,
            self.average,
            losses,
            mistakes,
        )
        self.support = np.concatenate([self.support, ids])[slots[:m]]
        self.A, self.U, self.K = A[:m].copy(), U[:m].copy(), inner[:m, :m].copy()
        self.removed += removed
        self.moved += moved


@jit("reassoc", "nsz")
def _learn_rows(
    kernel_rows: Any,
    m: Any,
    Y: Any,
    w: Any,
    active: Any,
    step: Any,
    b: Any,
    ub: Any,
    seen: Any,
    work: Any,
    rows: Any,
    A: Any,
    U: Any,
    slots: Any,
    inner: Any,
    inverse: Any,
    budget: Any,
    dependence_tol: Any,
    average: Any,
    losses: Any,
    mistakes: Any,
) -> Any:
    """Process the points of a block in order.

    The columns of `kernel_rows` are the support points before the block, then the points of the
    block; its rows are the points of the block.  `slots` holds the column of each of the m current
    support points.
    Returns the new m, the number of removed support points, and the sum of the changes of f by
    removals and projections.
    """
    n, q = Y.shape
    n_support = kernel_rows.shape[1] - n
    p, g, k, c, r, new = work[0], work[1], rows[0], rows[1], rows[2], rows[3]
    removed, moved = 0, 0.0
    for i in range(n):
        for e in range(q):
            p[e] = b[e]
        for s in range(m):
            k[s] = kernel_rows[i, slots[s]]
            for e in range(q):
                p[e] += k[s] * A[s, e]
        if set_corrections(p, Y[i], w[i], active, g, losses, mistakes):
            for e in range(q):
                b[e] += step * g[e]
                ub[e] += step * seen[e] * g[e]
            kxx = kernel_rows[i, n_support + i]
            residual = project_on_support(inverse, inner, k, kxx, m, c, r, new)
            if residual <= dependence_tol * abs(kxx):
                for e in range(q):
                    moved += np.sqrt(fmax(residual, 0.0)) * abs(g[e])
                for s in range(m):
                    for e in range(q):
                        A[s, e] += c[s] * g[e]
                        U[s, e] += c[s] * seen[e] * g[e]
            else:
                extend_inverse(inverse, c, residual, m)
                for s in range(m):
                    inner[s, m] = inner[m, s] = k[s]
                inner[m, m] = kxx
                slots[m] = n_support + i
                for e in range(q):
                    A[m, e] = g[e]
                    U[m, e] = seen[e] * g[e]
                m += 1
                if m > budget:
                    moved += np.sqrt(_remove_point(A, U, slots, inner, inverse, m, seen, average))
                    m -= 1
                    removed += 1
        for e in range(q):
            if active[e]:
                seen[e] += 1.0
    return m, removed, moved


@jit("reassoc", "nsz")
def _remove_point(
    A: Any, U: Any, slots: Any, K: Any, Q: Any, m: Any, seen: Any, average: Any
) -> Any:
    """Remove the support point whose removal changes f least; return the squared change of f."""
    q = A.shape[1]
    least, slot = np.inf, 0
    for s in range(m):
        cost = 0.0
        for e in range(q):
            cost += A[s, e] * A[s, e]
            if average:
                mean = A[s, e] - U[s, e] / (seen[e] + 1.0)
                cost += mean * mean
        cost /= Q[s, s]
        if cost < least:
            least, slot = cost, s
    pivot = Q[slot, slot]
    for s in range(m):
        if s != slot:
            factor = -Q[s, slot] / pivot
            for e in range(q):
                A[s, e] += factor * A[slot, e]
                U[s, e] += factor * U[slot, e]
            for r in range(m):
                if r != slot:
                    Q[s, r] += factor * Q[slot, r]
    last = m - 1
    if slot != last:  # move the last point into the free slot
        slots[slot] = slots[last]
        for e in range(q):
            A[slot, e], U[slot, e] = A[last, e], U[last, e]
        for s in range(last):
            if s != slot:
                Q[slot, s] = Q[s, slot] = Q[last, s]
                K[slot, s] = K[s, slot] = K[last, s]
        Q[slot, slot], K[slot, slot] = Q[last, last], K[last, last]
    return least


@jit("reassoc", "nsz")
def project_on_support(Q: Any, K: Any, k: Any, kxx: Any, m: Any, c: Any, r: Any, new: Any) -> Any:
    """Project a point x onto the span of the m support points in feature space.

    Sets c to the coefficients K^-1 k of the projection, where k holds the kernel values of x with
    the support points.  Returns the squared distance from the span, k(x, x) - k^T c.  Q is K^-1 as
    updated point by point; one step of iterative refinement removes the rounding errors of the
    updates.  `r` and `new` are working arrays.
    """
    for s in range(m):
        total = 0.0
        for t in range(m):
            total += Q[s, t] * k[t]
        c[s] = total
    for s in range(m):
        total = k[s]
        for t in range(m):
            total -= K[s, t] * c[t]
        r[s] = total
    residual = kxx
    for s in range(m):
        total = c[s]
        for t in range(m):
            total += Q[s, t] * r[t]
        residual -= total * k[s]
        new[s] = total
    for s in range(m):
        c[s] = new[s]
    return residual


@jit()
def extend_inverse(Q: Any, c: Any, residual: Any, m: Any) -> Any:
    """Extend Q = K^-1 by a new point.

    c and `residual` are the coefficients and the squared distance from `project_on_support`.
    """
    for s in range(m):
        for r in range(m):
            Q[s, r] += c[s] * c[r] / residual
        Q[s, m] = Q[m, s] = -c[s] / residual
    Q[m, m] = 1.0 / residual


def inverse_with_jitter(K: np.ndarray) -> tuple[np.ndarray, float]:
    """Return K^-1, and the jitter that was added to the diagonal of K to compute it.

    This is done once per block of points, to remove the rounding errors that have accumulated in an
    updated inverse.
    """
    if not len(K):
        return np.zeros((0, 0)), 0.0
    mean, jitter = float(np.trace(K)) / len(K), 0.0
    L, info = lapack.dpotrf(K, lower=1)
    while info and jitter < _MAX_JITTER * mean:
        jitter = 10.0 * jitter or 1e-14 * mean
        L, info = lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1)
    if info:
        raise NotPositiveDefiniteError(
            f"the kernel matrix of the {len(K)} support points is not positive definite. The usual "
            f"cause is a kernel that is not positive semidefinite. Choose a Mercer kernel"
        )
    Q, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    return np.where(np.tri(len(Q), dtype=bool), Q, Q.T), jitter
