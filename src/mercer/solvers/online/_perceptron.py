"""The perceptron: a point on the wrong side is added to f.

    if y (f(x) + b) <= 0:        f <- f + y k(x, .),        b <- b + y

(Rosenblatt 1958; with kernels, Aizerman, Braverman and Rozonoer 1964.)  If |x| <= R, in the space
of the kernel, and some g of norm 1 has y g(x) >= rho for all points, there are at most (R / rho)^2
mistakes (Novikoff 1962), however often the points are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._runtime import jit
from ...gram import GramOperator
from ._learner import BLOCK, Block, OnlineLearner, grow, projected

__all__ = ["BudgetPerceptron", "Perceptron"]

_DEPENDENT = 1e-7  # of k(x, x): a point that is nearer to the span of others is written in them


@dataclass(eq=False)
class Perceptron(OnlineLearner):
    """A perceptron for each column of signs; all share the points.

    With `average`, f is the mean of the f after each point (Freund and Schapire 1999, Collins
    2002): of a correction v made after t points, the share 1 - t / T, hence A - U / T with U the
    sum of the t v.

    Parameters
    ----------
    average : bool

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import Perceptron
    >>> X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]])
    >>> model = Perceptron(1, intercept=False)
    >>> _, mistakes = model.learn(gram(Linear(), X), np.arange(3), y, np.ones(3))
    >>> mistakes, model.A  # the first point is one: f = 0 has no sign
    (array([1.]), array([[1.]]))
    """

    average: bool = False
    U: Any = None
    ub: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.U, self.ub = self.A.copy(), self.b.copy()

    def _learn_block(self, K: GramOperator, block: Block) -> None:
        ids, Y, w, active, losses, mistakes = block
        F, C, CU = self._values(K, ids), np.zeros(Y.shape), np.zeros(Y.shape)
        within = np.ascontiguousarray(K.block(ids, ids), dtype=float)
        step = float(self.intercept)
        _plain(within, F, Y, w, active, step, self.b, self.ub, self.seen, C, CU, losses, mistakes)
        wrong = np.flatnonzero(C.any(axis=1))
        self.support = np.concatenate([self.support, ids[wrong]])
        self.A = np.concatenate([self.A, C[wrong]])
        self.U = np.concatenate([self.U, CU[wrong]])
        self._merge()

    def _merge(self) -> None:
        """Give each point one coefficient, also after several passes over it."""
        distinct, place = np.unique(self.support, return_inverse=True)
        if len(distinct) == len(self.support):
            return
        sums = np.zeros((2, len(distinct), self.n_functions))
        np.add.at(sums[0], place, self.A)
        np.add.at(sums[1], place, self.U)
        self.support, self.A, self.U = distinct, sums[0], sums[1]

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients on `support`, and the constants; with `average`, their means."""
        if not self.average:
            return self.A.copy(), self.b.copy()
        T = np.maximum(self.seen, 1.0)
        return self.A - self.U / T, self.b - self.ub / T


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
    """

    budget: int = 100
    removed: int = 0
    moved: float = 0.0
    K: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.K = np.zeros((0, 0))

    def workspace(self) -> int:
        """Return the bytes of the state at its largest."""
        return 8 * (5 * (self.budget + 1) ** 2 + 2 * BLOCK * (self.budget + BLOCK))

    @property
    def certificate(self) -> dict[str, Any]:
        """How many points were removed, and how far that has moved f, all steps added up."""
        return {**super().certificate, "removed": self.removed, "moved": self.moved}

    def _learn_block(self, K: GramOperator, block: Block) -> None:
        ids, Y, w, active, losses, mistakes = block
        m, q, size = len(self.support), self.n_functions, self.budget + 1
        size = min(size, m + len(ids) + 1)
        around = self._against(K, ids)
        A, U, slots = np.zeros((size, q)), np.zeros((size, q)), np.zeros(size, dtype=np.intp)
        inner, inverse = np.zeros((size, size)), np.zeros((size, size))
        A[:m], U[:m], slots[:m] = self.A, self.U, np.arange(m)
        inner[:m, :m], inverse[:m, :m] = self.K, self._inverse(self.K)
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


@jit()
def _correct(p: Any, y: Any, w: Any, active: Any, g: Any, losses: Any, mistakes: Any) -> Any:
    """Set g <- the corrections of the functions that are wrong, and tell whether any is."""
    wrong = False
    for c in range(len(p)):
        g[c] = 0.0
        if active[c] and y[c] * p[c] <= 0.0:
            g[c] = w * y[c]
            losses[c] -= y[c] * p[c]
            mistakes[c] += 1.0
            wrong = True
    return wrong


@jit()
def _plain(
    K: Any,
    F: Any,
    Y: Any,
    w: Any,
    active: Any,
    step: Any,
    b: Any,
    ub: Any,
    seen: Any,
    C: Any,
    CU: Any,
    losses: Any,
    mistakes: Any,
) -> Any:
    """Walk through a block; C and CU get the coefficients of its points, F follows f."""
    n, q = Y.shape
    p, g = np.empty(q), np.empty(q)
    for i in range(n):
        for c in range(q):
            p[c] = F[i, c] + b[c]
        if _correct(p, Y[i], w[i], active, g, losses, mistakes):
            for c in range(q):
                if g[c] != 0.0:
                    C[i, c] = g[c]
                    CU[i, c] = seen[c] * g[c]
                    b[c] += step * g[c]
                    ub[c] += step * seen[c] * g[c]
                    for j in range(i + 1, n):
                        F[j, c] += g[c] * K[j, i]
        for c in range(q):
            if active[c]:
                seen[c] += 1.0


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
    p, g, k = np.empty(q), np.empty(q), np.empty(2 * len(A))
    c, r = np.empty(len(A)), np.empty(len(A))
    removed, moved = 0, 0.0
    for i in range(n):
        for e in range(q):
            p[e] = b[e]
        for s in range(m):
            k[s] = around[i, slots[s]]
            for e in range(q):
                p[e] += k[s] * A[s, e]
        if _correct(p, Y[i], w[i], active, g, losses, mistakes):
            for e in range(q):
                b[e] += step * g[e]
                ub[e] += step * seen[e] * g[e]
            kxx = around[i, before + i]
            left = projected(inverse, inner, k, kxx, m, c, r)
            if left <= dependent * abs(kxx):
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
