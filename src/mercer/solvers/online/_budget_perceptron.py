"""A perceptron on a budget of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import NotPositiveDefiniteError
from ..._runtime import entry_point, jit, larger
from ..._runtime.linalg import lapack
from ...gram import GramOperator
from ._learner import BLOCK, Block
from ._perceptron import Perceptron, correct

__all__ = ["BudgetPerceptron"]

_DEPENDENT = 1e-7  # of k(x, x): a point that is nearer to the span of others is written in them
_MOST_JITTER = 1e-9  # of the mean of k(x, x)


@entry_point
@dataclass(eq=False)
class BudgetPerceptron(Perceptron):
    """A perceptron on at most `budget` points.

    A mistake that depends on the points kept is written in them (as in the Projectron of Orabona,
    Keshet and Caputo, 2009).  One too many takes the place of the point whose loss moves f least:
    without point s, the nearest function is at the squared distance sum_c A_sc^2 / (K^-1)_ss, and
    the others take over what they can; with `average` the mean of all f counts beside the last.
    K^-1 is updated, in O(budget^2) for each mistake, and computed afresh for each block.

    Parameters
    ----------
    budget : int

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
        """Return the bytes of the state at its largest."""
        return 8 * (5 * (self.budget + 1) ** 2 + 2 * BLOCK * (self.budget + BLOCK))

    @property
    def certificate(self) -> dict[str, Any]:
        """How many points were removed, and how far the budget has moved f, all steps added up.

        Also the most that was added to the diagonal of K for its inverse, mostly nothing.
        """
        jitter = {"jitter": self.jitter} if self.jitter else {}
        removed = {"removed": self.removed, "moved": self.moved}
        return {**super().certificate, **removed, **jitter}

    def _learn_block(self, K: GramOperator, block: Block) -> None:
        ids, Y, w, active, losses, mistakes = block
        m, q, size = len(self.support), self.n_functions, self.budget + 1
        size = min(size, m + len(ids) + 1)
        around = self._against(K, ids)
        A, U, slots = np.zeros((size, q)), np.zeros((size, q)), np.zeros(size, dtype=np.intp)
        inner, inverse = np.zeros((size, size)), np.zeros((size, size))
        A[:m], U[:m], slots[:m] = self.A, self.U, np.arange(m)
        inverse[:m, :m], jitter = inverse_of(self.K)
        inner[:m, :m], self.jitter = self.K, max(self.jitter, jitter)
        m, removed, moved = _on_budget(
            around,
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
            _DEPENDENT,
            self.average,
            losses,
            mistakes,
        )
        self.support = np.concatenate([self.support, ids])[slots[:m]]
        self.A, self.U, self.K = A[:m].copy(), U[:m].copy(), inner[:m, :m].copy()
        self.removed += removed
        self.moved += moved


@jit("reassoc", "nsz")
def _on_budget(
    around: Any,
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
    dependent: Any,
    average: Any,
    losses: Any,
    mistakes: Any,
) -> Any:
    """Walk through a block with points in slots; `slots` are their columns in `around`."""
    n, q = Y.shape
    before = around.shape[1] - n
    p, g, k, c, r, new = work[0], work[1], rows[0], rows[1], rows[2], rows[3]
    removed, moved = 0, 0.0
    for i in range(n):
        for e in range(q):
            p[e] = b[e]
        for s in range(m):
            k[s] = around[i, slots[s]]
            for e in range(q):
                p[e] += k[s] * A[s, e]
        if correct(p, Y[i], w[i], active, g, losses, mistakes):
            for e in range(q):
                b[e] += step * g[e]
                ub[e] += step * seen[e] * g[e]
            kxx = around[i, before + i]
            left = projected(inverse, inner, k, kxx, m, c, r, new)
            if left <= dependent * abs(kxx):
                for e in range(q):
                    moved += np.sqrt(larger(left, 0.0)) * abs(g[e])
                for s in range(m):
                    for e in range(q):
                        A[s, e] += c[s] * g[e]
                        U[s, e] += c[s] * seen[e] * g[e]
            else:
                grow(inverse, c, left, m)
                for s in range(m):
                    inner[s, m] = inner[m, s] = k[s]
                inner[m, m] = kxx
                slots[m] = before + i
                for e in range(q):
                    A[m, e] = g[e]
                    U[m, e] = seen[e] * g[e]
                m += 1
                if m > budget:
                    moved += np.sqrt(_remove(A, U, slots, inner, inverse, m, seen, average))
                    m -= 1
                    removed += 1
        for e in range(q):
            if active[e]:
                seen[e] += 1.0
    return m, removed, moved


@jit("reassoc", "nsz")
def _remove(A: Any, U: Any, slots: Any, K: Any, Q: Any, m: Any, seen: Any, average: Any) -> Any:
    """Remove the point that f needs least, and return the squared distance that f moves."""
    q = A.shape[1]
    least, out = np.inf, 0
    for s in range(m):
        cost = 0.0
        for e in range(q):
            cost += A[s, e] * A[s, e]
            if average:
                mean = A[s, e] - U[s, e] / (seen[e] + 1.0)
                cost += mean * mean
        cost /= Q[s, s]
        if cost < least:
            least, out = cost, s
    pivot = Q[out, out]
    for s in range(m):
        if s != out:
            share = -Q[s, out] / pivot
            for e in range(q):
                A[s, e] += share * A[out, e]
                U[s, e] += share * U[out, e]
            for r in range(m):
                if r != out:
                    Q[s, r] += share * Q[out, r]
    last = m - 1
    if out != last:  # the last one takes its place
        slots[out] = slots[last]
        for e in range(q):
            A[out, e], U[out, e] = A[last, e], U[last, e]
        for s in range(last):
            if s != out:
                Q[out, s] = Q[s, out] = Q[last, s]
                K[out, s] = K[s, out] = K[last, s]
        Q[out, out], K[out, out] = Q[last, last], K[last, last]
    return least


@jit("reassoc", "nsz")
def projected(Q: Any, K: Any, k: Any, kxx: Any, m: Any, c: Any, r: Any, new: Any) -> Any:
    """Set c <- K^-1 k, and return k(x, x) - k^T c; r and new are overwritten.

    That is the squared distance of k(x, .) from the span of m points.  Q is K^-1 after many
    updates: what their rounding costs, a step of refinement takes back.
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
    left = kxx
    for s in range(m):
        total = c[s]
        for t in range(m):
            total += Q[s, t] * r[t]
        left -= total * k[s]
        new[s] = total
    for s in range(m):
        c[s] = new[s]
    return left


@jit()
def grow(Q: Any, c: Any, left: Any, m: Any) -> Any:
    """Set Q <- the inverse of K with one more row, whose projection is c and residual `left`."""
    for s in range(m):
        for r in range(m):
            Q[s, r] += c[s] * c[r] / left
        Q[s, m] = Q[m, s] = -c[s] / left
    Q[m, m] = 1.0 / left


def inverse_of(K: np.ndarray) -> tuple[np.ndarray, float]:
    """Return K^-1 of points that do not depend on each other, and the jitter that it took.

    It is free of the rounding that updates have added up to.
    """
    if not len(K):
        return np.zeros((0, 0)), 0.0
    mean, jitter = float(np.trace(K)) / len(K), 0.0
    L, info = lapack.dpotrf(K, lower=1)
    while info and jitter < _MOST_JITTER * mean:
        jitter = 10.0 * jitter or 1e-14 * mean
        L, info = lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1)
    if info:
        raise NotPositiveDefiniteError(
            f"the kernel matrix of the {len(K)} points kept is not positive definite; the usual "
            f"cause is a kernel that is not positive semidefinite: choose a Mercer kernel"
        )
    Q, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    return np.where(np.tri(len(Q), dtype=bool), Q, Q.T), jitter
