"""Online kernel regression by stochastic gradient descent (NORMA).

The t-th point (x, y) causes the update

    f <- (1 - eta_t alpha) f - eta_t loss'(f(x) + b, y) k(x, .),     b <- b - eta_t loss'

with eta_t = eta / sqrt(t).  This minimises the expectation of loss(f(x) + b, y) plus
alpha |f|^2 / 2 (Kivinen, Smola and Williamson 2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import entry_point, fmax, fmin, jit
from ...gram import GramOperator
from ._online_learner import BLOCK_ROWS, LearningBlock, OnlineLearner

# The compiled function `_learn_rows` receives the loss as one of these integers.
_LOSS_CODES = {"squared_error": 0, "huber": 1, "epsilon_insensitive": 2}


@entry_point
@dataclass(eq=False)
class Norma(OnlineLearner):
    """Stochastic gradient descent in the RKHS (NORMA), with one step per point.

    The coefficients a_s of old support points decay, so that these points can be removed with
    little effect.  If there are more than `budget` support points, the one with the smallest
    |a_s| sqrt(k(x_s, x_s)) is removed; this is the RKHS norm of the resulting change of f.

    Parameters
    ----------
    n_functions, intercept
        As in `OnlineLearner`.
    loss : {"squared_error", "huber", "epsilon_insensitive"}, default="squared_error"
        Loss of a prediction p for a target y.  "squared_error" is (y - p)^2 / 2.  "huber" is the
        same for |y - p| <= epsilon, and linear for larger errors.  "epsilon_insensitive" is
        max(0, |y - p| - epsilon).
    epsilon : float, default=0.1
        Threshold of the Huber and the epsilon-insensitive loss.
    eta : float, default=1.0
        Initial step size; the t-th step has the size eta / sqrt(t).
    alpha : float, default=1e-4
        Regularisation parameter.
    budget : int or None, default=None
        Maximum number of support points; None means no limit.

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
    diagonal: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.diagonal = np.zeros(0)

    def workspace(self) -> int:
        """Return the memory of the next block in bytes: kernel values and coefficients."""
        return 8 * (2 * BLOCK_ROWS + 6 * self.n_functions) * (self._max_support + BLOCK_ROWS)

    @property
    def certificate(self) -> dict[str, Any]:
        """Entries of the report that describe the effect of the budget.

        "removed" is the number of removed support points, and "moved" a bound on the sum of the
        resulting changes of f in the RKHS norm.
        """
        return {**super().certificate, "removed": self.removed, "moved": self.moved}

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        ids, Y, w, active, losses, mistakes = block
        m, n = len(self.support), len(ids)
        size = m + n + 1 if self.budget is None else min(self.budget, m + n) + 1
        kernel_rows = self._kernel_rows(K, ids)
        A, slots, diagonal = np.zeros((size, self.n_functions)), np.zeros(size, int), np.zeros(size)
        A[:m], slots[:m], diagonal[:m] = self.A, np.arange(m), self.diagonal
        m, removed, moved = _learn_rows(
            kernel_rows,
            m,
            Y,
            w,
            active,
            float(self.intercept),
            self.b,
            self.seen,
            A,
            np.empty((2, self.n_functions)),
            slots,
            diagonal,
            size - 1,
            _LOSS_CODES[self.loss],
            self.epsilon,
            self.eta,
            self.alpha,
            losses,
            mistakes,
        )
        self.support = np.concatenate([self.support, ids])[slots[:m]]
        self.A, self.diagonal = A[:m].copy(), diagonal[:m].copy()
        self.removed += removed
        self.moved += moved
        self._merge_duplicates()
        if not np.isfinite(self.A.sum() + self.b.sum()):
            raise ValueError(
                f"f diverged after {int(self.seen.max())} points: steps with "
                f"eta0={self.eta:.3g} are too large for kernel values of up to "
                f"{kernel_rows[:, -n:].max():.3g}; lower eta0, or scale the features"
            )

    def _merge_duplicates(self) -> None:
        """Add up the coefficients of points that became support points in more than one pass."""
        distinct, first, indices = np.unique(self.support, return_index=True, return_inverse=True)
        if len(distinct) < len(self.support):
            A = np.zeros((len(distinct), self.n_functions))
            np.add.at(A, indices, self.A)
            self.support, self.A, self.diagonal = distinct, A, self.diagonal[first]


@jit("reassoc", "nsz")
def _learn_rows(
    kernel_rows: Any,
    m: Any,
    Y: Any,
    w: Any,
    active: Any,
    step: Any,
    b: Any,
    seen: Any,
    A: Any,
    work: Any,
    slots: Any,
    diagonal: Any,
    budget: Any,
    loss: Any,
    epsilon: Any,
    eta: Any,
    alpha: Any,
    losses: Any,
    mistakes: Any,
) -> Any:
    """Process the points of a block in order.

    The columns of `kernel_rows` are the support points before the block, then the points of the
    block; its rows are the points of the block.  `slots` holds the column of each of the m current
    support points.
    Returns the new m, the number of removed support points, and a bound on the sum of the changes
    of f by removals.
    """
    n, q = Y.shape
    n_support = kernel_rows.shape[1] - n
    p, g = work[0], work[1]
    removed, moved = 0, 0.0
    for i in range(n):
        for e in range(q):
            p[e] = b[e]
        for s in range(m):
            k = kernel_rows[i, slots[s]]
            for e in range(q):
                p[e] += k * A[s, e]
        changed = False
        for e in range(q):
            g[e] = 0.0
            if not active[e]:
                continue
            rate = eta / np.sqrt(seen[e] + 1.0)
            seen[e] += 1.0
            error = Y[i, e] - p[e]
            size = abs(error)
            if loss == 0:
                slope, value = error, 0.5 * error * error
            elif loss == 1:
                slope = fmin(fmax(error, -epsilon), epsilon)
                value = 0.5 * slope * slope + epsilon * (size - abs(slope))
            else:
                slope = error / size if size > epsilon else 0.0
                value = fmax(0.0, size - epsilon)
            losses[e] += value
            if slope != 0.0:
                changed = True
                mistakes[e] += 1.0
                g[e] = rate * w[i] * slope
                b[e] += step * g[e]
            decay = 1.0 - rate * alpha
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
