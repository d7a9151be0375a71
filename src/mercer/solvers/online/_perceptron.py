"""The kernel perceptron, and the kernel perceptron with a limited number of support points.

    if y (f(x) + b) <= 0:        f <- f + y k(x, .),        b <- b + y

(Rosenblatt 1958; with kernels, Aizerman, Braverman and Rozonoer 1964.)  If k(x, x) <= R^2 and there
is a function g of norm 1 in the RKHS with y g(x) >= rho for all points, the algorithm makes at most
(R / rho)^2 mistakes in any number of passes (Novikoff 1962).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._core import NotPositiveDefiniteError, entry_point, fmax, jit, not_finite_error
from ..._core.linalg import lapack
from ...gram import GramOperator
from ._online_learner import (
    BLOCK_ROWS,
    SUPPORT_COLUMNS,
    LearningBlock,
    OnlineLearner,
    empty_array,
    merge_duplicates,
)

# A misclassified point x is replaced by its projection onto the span of the support points if its
# squared distance from the span is at most this fraction of k(x, x).
_DEPENDENCE_TOL = 1e-7
_MAX_JITTER = 1e-9  # largest jitter added to the diagonal of K, relative to the mean of k(x, x)


class _Functions(NamedTuple):
    """The functions f_c = sum_s A_sc k(x_s, .) + b_c, which a compiled loop corrects.

    U and `ub` are the corrections of A and b, each multiplied by the number of points before it.
    """

    A: np.ndarray
    U: np.ndarray
    b: np.ndarray
    ub: np.ndarray
    seen: np.ndarray  # number of points from which each function has learned
    step: float  # factor of the corrections of b: 1, or 0 without intercepts


@entry_point
@dataclass(eq=False)
class Perceptron(OnlineLearner):
    """Kernel perceptrons, one for each column of targets (+1 or -1), with common support points.

    A misclassified point x with target y changes f by y k(x, .), and b by y.  If the classes are
    separable with margin rho by a function of norm 1, and k(x, x) <= R^2, at most (R / rho)^2
    mistakes occur in any number of passes without an intercept.  The number of support points grows
    with the number of mistakes; use `BudgetPerceptron` to limit it.

    If `average` is True, the result is the average of the T functions f obtained after each of T
    points (Freund and Schapire 1999, Collins 2002).  A correction v made after t points has weight
    1 - t / T in this average.  The averaged coefficients are therefore A - U / T, where A is the
    sum of the corrections v, and U the sum of t v.

    Parameters
    ----------
    n_functions : int
        Number q of functions, one per column of the targets.
    intercept : bool, default=True
        Whether to learn the intercepts b_c.
    support, A, b, seen : ndarray
        State of the learner, see `OnlineLearner`; the constructor sets it, and `learn` updates it.
    max_memory : int, str or None, default=None
        Memory budget for the model and one block of points; None for half of the memory of the
        computer.
    average : bool, default=False
        Whether `solution` returns averaged coefficients, which usually generalise better if the
        classes overlap.
    U, ub : ndarray
        State of the average: the sums of the corrections of A and b, each multiplied by the number
        of points before it.

    See Also
    --------
    BudgetPerceptron : A limited number of support points.
    Schedule : Several passes over the points.

    References
    ----------
    Rosenblatt, "The perceptron: a probabilistic model for information storage and organization in
    the brain", Psychological Review, 1958.

    Aizerman, Braverman and Rozonoer, "Theoretical foundations of the potential function method in
    pattern recognition learning", Automation and Remote Control, 1964.

    Freund and Schapire, "Large margin classification using the perceptron algorithm", Machine
    Learning, 1999, for averaging.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import Perceptron
    >>> X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]])
    >>> model = Perceptron(1, intercept=False)
    >>> _, mistakes = model.learn(gram(Linear(), X), np.arange(3), y, np.ones(3))
    >>> mistakes, model.A  # the first point is a mistake, because f = 0
    (array([1.]), array([[1.]]))
    """

    counted: ClassVar[str] = "mistakes"

    average: bool = False
    U: np.ndarray = field(default_factory=empty_array)
    ub: np.ndarray = field(default_factory=empty_array)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.U, self.ub = self.A.copy(), self.b.copy()

    def workspace(self) -> int:
        """Return the memory of the next block: kernel values and coefficients.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * (
            BLOCK_ROWS * (BLOCK_ROWS + SUPPORT_COLUMNS) + 8 * self.n_functions * self._max_support
        )

    def _functions(self, A: np.ndarray, U: np.ndarray) -> _Functions:
        return _Functions(A, U, self.b, self.ub, self.seen, float(self.intercept))

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        F, ids = self._values(K, block.ids), block.ids
        within = np.ascontiguousarray(K.block(ids, ids), dtype=float)
        if not np.isfinite(within.sum() + F.sum()):
            raise not_finite_error(K.kernel)
        C, CU = np.zeros(block.Y.shape), np.zeros(block.Y.shape)
        functions = self._functions(C, CU)
        _correct_functions(block, within, F, functions, np.empty((2, self.n_functions)))
        wrong = np.flatnonzero(C.any(axis=1))
        self.support, _, (self.A, self.U) = merge_duplicates(
            np.concatenate([self.support, ids[wrong]]),
            np.concatenate([self.A, C[wrong]]),
            np.concatenate([self.U, CU[wrong]]),
        )

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the support points and the intercepts.

        They are averaged over all points learned from if `average` is True.

        Returns
        -------
        A : ndarray of shape (m, q)
            Coefficients of the m support points.
        b : ndarray of shape (q,)
            Intercepts.
        """
        if not self.average:
            return self.A.copy(), self.b.copy()
        T = np.maximum(self.seen, 1.0)
        return self.A - self.U / T, self.b - self.ub / T


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
    n_functions : int
        Number q of functions, one per column of the targets.
    intercept : bool, default=True
        Whether to learn the intercepts b_c.
    support, A, b, seen : ndarray
        State of the learner, see `OnlineLearner`; the constructor sets it, and `learn` updates it.
    max_memory : int, str or None, default=None
        Memory budget for the model and one block of points; None for half of the memory of the
        computer.
    average : bool, default=False
        Whether `solution` returns averaged coefficients.
    U, ub : ndarray
        State of the average, as in `Perceptron`.
    budget : int, default=100
        Maximum number of support points.  Increase it until "moved" in the certificate, the sum of
        the changes of f by removals and projections, is small compared with the norm of f.
    removed : int, default=0
        State: the number of removed support points.
    moved : float, default=0.0
        State: the sum of the changes of f by removals and projections, in the RKHS norm.
    K : ndarray
        State: the kernel matrix of the support points.
    jitter : float, default=0.0
        State: the largest value that was added to the diagonal of K to invert it.

    References
    ----------
    Crammer, Kandola and Singer, "Online classification on a budget", NIPS 2003.

    Orabona, Keshet and Caputo, "Bounded kernel-based online learning", Journal of Machine Learning
    Research, 2009.

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
    K: np.ndarray = field(default_factory=empty_array)
    jitter: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.K = np.zeros((0, 0))

    def workspace(self) -> int:
        """Return the maximum memory of the model and the current block of points.

        Returns
        -------
        int
            Number of bytes.
        """
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
        m, q, size = len(self.support), self.n_functions, self._capacity(block.ids) + 1
        kernel_rows = self._kernel_rows(K, block.ids)
        functions = self._functions(np.zeros((size, q)), np.zeros((size, q)))
        functions.A[:m], functions.U[:m] = self.A, self.U
        span = _Span(np.zeros(size, np.intp), np.zeros((size, size)), np.zeros((size, size)))
        inverse, jitter = _inverse_with_jitter(self.K)
        span.slots[:m], span.K[:m, :m], span.inverse[:m, :m] = np.arange(m), self.K, inverse
        work = np.empty((2, q)), np.empty((4, size))
        m, removed, moved = _correct_within_budget(
            block, kernel_rows, m, functions, span, self.budget, self.average, *work
        )
        self.support = np.concatenate([self.support, block.ids])[span.slots[:m]]
        self.A, self.U = functions.A[:m].copy(), functions.U[:m].copy()
        self.K = span.K[:m, :m].copy()
        self.jitter = max(self.jitter, jitter)
        self.removed += removed
        self.moved += moved


class _Span(NamedTuple):
    """The span of the support points; the arrays have free slots for new ones."""

    slots: np.ndarray  # the column of each support point in `kernel_rows`
    K: np.ndarray  # the kernel matrix of the support points
    inverse: np.ndarray  # K^-1


@jit()
def _set_corrections(
    block: LearningBlock, i: int, f: _Functions, p: np.ndarray, g: np.ndarray
) -> bool:
    """Set g to the corrections of the functions that misclassify point i of a block.

    p holds their predictions.  The intercepts, losses and mistakes are updated.  Returns True if
    any function misclassifies the point.
    """
    y, w, wrong = block.Y[i], block.weights[i], False
    for c in range(len(p)):
        g[c] = 0.0
        if block.active[c] and y[c] * p[c] <= 0.0:
            g[c] = w * y[c]
            block.losses[c] -= y[c] * p[c]
            block.mistakes[c] += 1.0
            f.b[c] += f.step * g[c]
            f.ub[c] += f.step * f.seen[c] * g[c]
            wrong = True
    return wrong


@jit()
def _correct_functions(
    block: LearningBlock, K: np.ndarray, F: np.ndarray, f: _Functions, work: np.ndarray
) -> None:
    """Process the points of a block in order, and set f.A and f.U to their corrections.

    K is the kernel matrix of the block.  F holds the predictions without intercept, and is updated
    with each correction.
    """
    n, q = block.Y.shape
    p, g = work[0], work[1]
    for i in range(n):
        for c in range(q):
            p[c] = F[i, c] + f.b[c]
        if _set_corrections(block, i, f, p, g):
            for c in range(q):
                if g[c] != 0.0:
                    f.A[i, c] = g[c]
                    f.U[i, c] = f.seen[c] * g[c]
                    for j in range(i + 1, n):
                        F[j, c] += g[c] * K[j, i]
        for c in range(q):
            if block.active[c]:
                f.seen[c] += 1.0


@jit("reassoc", "nsz")
def _correct_within_budget(
    block: LearningBlock,
    kernel_rows: np.ndarray,
    m: int,
    f: _Functions,
    span: _Span,
    budget: int,
    average: bool,
    work: np.ndarray,
    rows: np.ndarray,
) -> tuple[int, int, float]:
    """Process the points of a block in order, with m support points at the start.

    The columns of `kernel_rows` are the support points before the block, then the points of the
    block; its rows are the points of the block.  `work` and `rows` are working arrays.
    Returns the new m, the number of removed support points, and the sum of the changes of f by
    removals and projections.
    """
    n, q = block.Y.shape
    n_support = kernel_rows.shape[1] - n
    p, g, k, c = work[0], work[1], rows[0], rows[1]
    removed, moved = 0, 0.0
    for i in range(n):
        for e in range(q):
            p[e] = f.b[e]
        for s in range(m):
            k[s] = kernel_rows[i, span.slots[s]]
            for e in range(q):
                p[e] += k[s] * f.A[s, e]
        if _set_corrections(block, i, f, p, g):
            kxx = kernel_rows[i, n_support + i]
            residual = _project_on_span(span, k, kxx, m, c, rows[2], rows[3])
            if residual <= _DEPENDENCE_TOL * abs(kxx):
                for e in range(q):
                    moved += np.sqrt(fmax(residual, 0.0)) * abs(g[e])
                for s in range(m):
                    for e in range(q):
                        f.A[s, e] += c[s] * g[e]
                        f.U[s, e] += c[s] * f.seen[e] * g[e]
            else:
                _extend_span(span, n_support + i, k, kxx, c, residual, m)
                for e in range(q):
                    f.A[m, e] = g[e]
                    f.U[m, e] = f.seen[e] * g[e]
                m += 1
                if m > budget:
                    moved += np.sqrt(_remove_point(f, span, m, average))
                    m -= 1
                    removed += 1
        for e in range(q):
            if block.active[e]:
                f.seen[e] += 1.0
    return m, removed, moved


@jit("reassoc", "nsz")
def _remove_point(f: _Functions, span: _Span, m: int, average: bool) -> float:
    """Remove the support point whose removal changes f least; return the squared change of f."""
    A, U, slots, K, Q, q = f.A, f.U, span.slots, span.K, span.inverse, len(f.b)
    least, slot = np.inf, 0
    for s in range(m):
        cost = 0.0
        for e in range(q):
            cost += A[s, e] * A[s, e]
            if average:
                mean = A[s, e] - U[s, e] / (f.seen[e] + 1.0)
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
def _project_on_span(
    span: _Span, k: np.ndarray, kxx: float, m: int, c: np.ndarray, r: np.ndarray, new: np.ndarray
) -> float:
    """Project a point x onto the span of the m support points in feature space.

    Sets c to the coefficients K^-1 k of the projection, where k holds the kernel values of x with
    the support points.  Returns the squared distance from the span, k(x, x) - k^T c.  K^-1 has been
    updated point by point; one step of iterative refinement removes the rounding errors of the
    updates.  `r` and `new` are working arrays.
    """
    K, Q = span.K, span.inverse
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
def _extend_span(
    span: _Span, slot: int, k: np.ndarray, kxx: float, c: np.ndarray, residual: float, m: int
) -> None:
    """Add a point to the m support points, and extend K and K^-1.

    c and `residual` are the coefficients and the squared distance from `_project_on_span`.
    """
    K, Q = span.K, span.inverse
    for s in range(m):
        for r in range(m):
            Q[s, r] += c[s] * c[r] / residual
        Q[s, m] = Q[m, s] = -c[s] / residual
        K[s, m] = K[m, s] = k[s]
    Q[m, m] = 1.0 / residual
    K[m, m] = kxx
    span.slots[m] = slot


def _inverse_with_jitter(K: np.ndarray) -> tuple[np.ndarray, float]:
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
