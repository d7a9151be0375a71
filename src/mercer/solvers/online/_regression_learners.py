"""Online kernel regression: stochastic gradient descent (NORMA), and recursive least squares.

NORMA.  The t-th point (x, y) causes the update

    f <- (1 - eta_t alpha) f - eta_t loss'(f(x) + b, y) k(x, .),     b <- b - eta_t loss'

with eta_t = eta / sqrt(t).  This minimises the expectation of loss(f(x) + b, y) plus
alpha |f|^2 / 2 (Kivinen, Smola and Williamson 2004).

Recursive least squares with a sparse dictionary (Engel, Mannor and Meir 2004).  The dictionary
consists of support points that are approximately linearly independent in feature space.  Their
kernel matrix is K = L L^T.  Let k(x) hold the kernel values of a new point x with them.  Then x has
the coordinates l = L^-1 k(x) in their span, and d = k(x, x) - |l|^2 is the squared distance of
k(x, .) from the span.  If d <= nu k(x, x), the point is replaced by its projection, with features
phi = l.  Otherwise it becomes a support point, with features phi = [l, sqrt(d)].  The model is
f = phi^T v, with v from

    min_v  sum_t w_t (y_t - phi_t^T v)^2 + alpha |v|^2,        R v = z,
    R^T R = sum_t w_t phi_t phi_t^T + alpha I,                 R^T z = sum_t w_t y_t phi_t,

where t counts the points and R is upper triangular.  For each point, Givens rotations update [R, z]
with the row sqrt(w) [phi, y] in O(m^2) operations for m support points.  Neither K nor R is
inverted, so points close to the span do not cause numerical problems.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..._core import entry_point, fmax, fmin, jit
from ..._core.linalg import solve_triangular
from ...gram import GramOperator
from ._online_learner import (
    BLOCK_ROWS,
    LearningBlock,
    OnlineLearner,
    empty_array,
    merge_duplicates,
)

# The compiled function `_descend` receives the loss as one of these integers.
_LOSS_CODES = {"squared_error": 0, "huber": 1, "epsilon_insensitive": 2}


class _Descent(NamedTuple):
    """The functions f_c = sum_s A_sc k(x_s, .) + b_c of `Norma`, and the options of a step."""

    A: np.ndarray  # has free slots for new support points
    b: np.ndarray
    seen: np.ndarray  # number of points from which each function has learned
    slots: np.ndarray  # the column of each support point in `kernel_rows`
    diagonal: np.ndarray  # k(x, x) of each support point
    step: float  # factor of the steps of b: 1, or 0 without intercepts
    loss: int
    epsilon: float
    eta: float
    alpha: float


@entry_point
@dataclass(eq=False)
class Norma(OnlineLearner):
    """Stochastic gradient descent in the RKHS (NORMA), with one step per point.

    It minimises the expectation of loss(f(x) + b, y) + alpha |f|^2 / 2.  Each point costs only
    kernel values with the support points, so that it suits long streams, also if the target
    function drifts.  For the squared loss, `RecursiveLeastSquares` is more accurate and needs no
    step size, but each point costs O(m^2) operations for m support points.

    The coefficients a_s of old support points decay, so that these points can be removed with
    little effect.  If there are more than `budget` support points, the one with the smallest
    |a_s| sqrt(k(x_s, x_s)) is removed; this is the RKHS norm of the resulting change of f.

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
    loss : {"squared_error", "huber", "epsilon_insensitive"}, default="squared_error"
        Loss of a prediction p for a target y.  "squared_error" is (y - p)^2 / 2.  "huber" is the
        same for |y - p| <= epsilon, and linear for larger errors.  "epsilon_insensitive" is
        max(0, |y - p| - epsilon).
    epsilon : float, default=0.1
        Threshold of the Huber and the epsilon-insensitive loss.
    eta : float, default=1.0
        Initial step size; the t-th step has the size eta / sqrt(t).  With the squared error, the
        first steps overshoot if it exceeds about 1 / k(x, x).
    alpha : float, default=1e-4
        Regularisation parameter.  A larger value gives a smoother f, and faster decay of old
        points.
    budget : int or None, default=None
        Maximum number of support points; None means no limit.
    removed : int, default=0
        State: the number of removed support points.
    moved : float, default=0.0
        State: a bound on the sum of the changes of f by removals, in the RKHS norm.
    diagonal : ndarray
        State: k(x, x) of each support point.

    See Also
    --------
    RecursiveLeastSquares : Regularised least squares, updated after each point.
    Schedule : Several passes over the points.

    References
    ----------
    Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Transactions on Signal
    Processing, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Norma
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = Norma(1, intercept=False, eta=1.0, alpha=1e-4)
    >>> _ = model.learn(gram(RBF(), X), np.arange(2000), np.sin(X), np.ones(2000))
    >>> f = RBF()(X, X[model.support]) @ model.A
    >>> bool(np.abs(f - np.sin(X)).mean() < 0.05)
    True
    """

    loss: str = "squared_error"
    epsilon: float = 0.1
    eta: float = 1.0
    alpha: float = 1e-4
    budget: int | None = None
    removed: int = 0
    moved: float = 0.0
    diagonal: np.ndarray = field(default_factory=empty_array)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.diagonal = np.zeros(0)

    def workspace(self) -> int:
        """Return the memory of the next block: kernel values and coefficients.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * (2 * BLOCK_ROWS + 6 * self.n_functions) * (self._max_support + BLOCK_ROWS)

    @property
    def certificate(self) -> dict[str, Any]:
        """Entries of the report that describe the effect of the budget.

        "removed" is the number of removed support points, and "moved" a bound on the sum of the
        resulting changes of f in the RKHS norm.
        """
        return {**super().certificate, "removed": self.removed, "moved": self.moved}

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        m, q, capacity = len(self.support), self.n_functions, self._capacity(block.ids)
        kernel_rows, size = self._kernel_rows(K, block.ids), capacity + 1
        arrays = np.zeros((size, q)), self.b, self.seen, np.zeros(size, int), np.zeros(size)
        options = float(self.intercept), _LOSS_CODES[self.loss], self.epsilon, self.eta, self.alpha
        f = _Descent(*arrays, *options)
        f.A[:m], f.slots[:m], f.diagonal[:m] = self.A, np.arange(m), self.diagonal
        m, removed, moved = _descend(block, kernel_rows, m, f, capacity, np.empty((2, q)))
        self.removed += removed
        self.moved += moved
        support = np.concatenate([self.support, block.ids])[f.slots[:m]]
        self.support, kept, (self.A,) = merge_duplicates(support, f.A[:m].copy())
        self.diagonal = f.diagonal[:m][kept].copy()
        if not np.isfinite(self.A.sum() + self.b.sum()):
            raise ValueError(
                f"f diverged after {int(self.seen.max())} points: steps with "
                f"eta0={self.eta:.3g} are too large for kernel values of up to "
                f"{kernel_rows[:, -len(block.ids) :].max():.3g}; lower eta0, or scale the features"
            )


@jit("reassoc", "nsz")
def _descend(
    block: LearningBlock,
    kernel_rows: np.ndarray,
    m: int,
    f: _Descent,
    budget: int,
    work: np.ndarray,
) -> tuple[int, int, float]:
    """Take one step of gradient descent for each point of a block, in order.

    The columns of `kernel_rows` are the m support points before the block, then the points of the
    block; its rows are the points of the block.  `work` is a working array.
    Returns the new m, the number of removed support points, and a bound on the sum of the changes
    of f by removals.
    """
    n, q = block.Y.shape
    A, slots, diagonal, epsilon = f.A, f.slots, f.diagonal, f.epsilon
    n_support = kernel_rows.shape[1] - n
    p, g = work[0], work[1]
    removed, moved = 0, 0.0
    for i in range(n):
        for e in range(q):
            p[e] = f.b[e]
        for s in range(m):
            k = kernel_rows[i, slots[s]]
            for e in range(q):
                p[e] += k * A[s, e]
        changed = False
        for e in range(q):
            g[e] = 0.0
            if not block.active[e]:
                continue
            rate = f.eta / np.sqrt(f.seen[e] + 1.0)
            f.seen[e] += 1.0
            error = block.Y[i, e] - p[e]
            size = abs(error)
            if f.loss == 0:
                slope, value = error, 0.5 * error * error
            elif f.loss == 1:
                slope = fmin(fmax(error, -epsilon), epsilon)
                value = 0.5 * slope * slope + epsilon * (size - abs(slope))
            else:
                slope = error / size if size > epsilon else 0.0
                value = fmax(0.0, size - epsilon)
            block.losses[e] += value
            if slope != 0.0:
                changed = True
                block.mistakes[e] += 1.0
                g[e] = rate * block.weights[i] * slope
                f.b[e] += f.step * g[e]
            decay = 1.0 - rate * f.alpha
            for s in range(m):
                A[s, e] *= decay
        if not changed:
            continue
        slots[m], diagonal[m] = n_support + i, kernel_rows[i, n_support + i]
        for e in range(q):
            A[m, e] = g[e]
        m += 1
        if m > budget:
            least, slot = np.inf, 0
            for s in range(m):
                cost = 0.0
                for e in range(q):
                    cost += A[s, e] * A[s, e]
                cost *= diagonal[s]
                if cost < least:
                    least, slot = cost, s
            m -= 1
            removed += 1
            moved += np.sqrt(fmax(least, 0.0))
            slots[slot], diagonal[slot] = slots[m], diagonal[m]
            for e in range(q):
                A[slot, e] = A[m, e]
    return m, removed, moved


@entry_point
@dataclass(eq=False)
class RecursiveLeastSquares(OnlineLearner):
    """Kernel recursive least squares: regularised least squares, updated after each point.

    After each point, f minimises sum_t w_t (y_t - f(x_t))^2 + alpha |f|^2 over the span of the
    support points.  A point becomes a support point only if it is nearly linearly independent of
    the others in feature space, so that their number m stays small.  A point costs O(m^2)
    operations.

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
    nu : float, default=1e-3
        A point becomes a support point if its squared distance from the span of the support points
        exceeds nu k(x, x).  Smaller values give more support points.
    alpha : float, default=1e-3
        Ridge penalty; choose it as for kernel ridge regression.
    budget : int or None, default=None
        Maximum number of support points; once it is reached, all new points are replaced by their
        projections.  None means no limit.
    L, R, z : ndarray
        State: the Cholesky factor of the kernel matrix of the support points, the triangular factor
        of the least-squares problem, and its right-hand sides.

    See Also
    --------
    Norma : Stochastic gradient descent, also for other losses.

    References
    ----------
    Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", IEEE Transactions on
    Signal Processing, 2004.

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
    L: np.ndarray = field(default_factory=empty_array)
    R: np.ndarray = field(default_factory=empty_array)
    z: np.ndarray = field(default_factory=empty_array)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.L, self.R, self.z = np.zeros((0, 0)), np.zeros((0, 0)), self.A

    def workspace(self) -> int:
        """Return the memory of the next block: triangular factors and kernel values.

        Returns
        -------
        int
            Number of bytes.
        """
        m = self._max_support
        return 8 * (6 * m**2 + 2 * BLOCK_ROWS * (m + BLOCK_ROWS))

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        m, q, size = len(self.support), self.n_functions, self._capacity(block.ids)
        kernel_rows = self._kernel_rows(K, block.ids)
        L, R, z = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, q))
        L[:m, :m], R[:m, :m], z[:m] = self.L, self.R, self.z
        self.L = self.R = np.zeros((0, 0))  # free the memory of the old factors
        slots = np.zeros(size, dtype=np.intp)
        slots[:m] = np.arange(m)
        factors = _Factors(L, R, z, slots, self.nu, self.alpha)
        m = _rotate(block, kernel_rows, m, factors, np.empty(size), np.empty(q))
        self.support = np.concatenate([self.support, block.ids])[slots[:m]]
        self.L, self.R, self.z = L[:m, :m].copy(), R[:m, :m].copy(), z[:m].copy()
        v = solve_triangular(self.R, self.z, check_finite=False)
        self.A = solve_triangular(self.L, v, trans="T", lower=True, check_finite=False)
        self.seen += len(block.ids)
        block.mistakes[:] += len(block.ids)  # each point changes f, so each is counted


class _Factors(NamedTuple):
    """The factors of `RecursiveLeastSquares`, with free slots for new support points."""

    L: np.ndarray
    R: np.ndarray
    z: np.ndarray
    slots: np.ndarray  # the column of each support point in `kernel_rows`
    nu: float
    alpha: float


@jit("reassoc", "nsz")
def _rotate(
    block: LearningBlock,
    kernel_rows: np.ndarray,
    m: int,
    factors: _Factors,
    phi: np.ndarray,
    t: np.ndarray,
) -> int:
    """Process the points of a block in order, and return the new number of support points m.

    `kernel_rows` is that of `_descend`; `phi` and t are working arrays.
    """
    n, q = block.Y.shape
    L, R, z, slots = factors.L, factors.R, factors.z, factors.slots
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
        if m < len(L) and residual > factors.nu * abs(kxx):
            for s in range(m):
                L[m, s] = phi[s]
            L[m, m] = phi[m] = np.sqrt(residual)
            R[m, m] = np.sqrt(factors.alpha)
            slots[m] = n_support + i
            m += 1
        root, product = np.sqrt(block.weights[i]), 1.0
        for e in range(q):
            t[e] = root * block.Y[i, e]
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
            block.losses[e] += (t[e] / product) ** 2
    return m
