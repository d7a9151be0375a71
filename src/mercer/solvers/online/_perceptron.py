"""The kernel perceptron: each misclassified point is added to f.

    if y (f(x) + b) <= 0:        f <- f + y k(x, .),        b <- b + y

(Rosenblatt 1958; with kernels, Aizerman, Braverman and Rozonoer 1964.)  If k(x, x) <= R^2 and there
is a function g of norm 1 in the RKHS with y g(x) >= rho for all points, the algorithm makes at most
(R / rho)^2 mistakes in any number of passes (Novikoff 1962).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._core import entry_point, jit, not_finite_error
from ...gram import GramOperator
from ._online_learner import BLOCK_ROWS, SUPPORT_COLUMNS, LearningBlock, OnlineLearner


@entry_point
@dataclass(eq=False)
class Perceptron(OnlineLearner):
    """Kernel perceptrons, one for each column of targets (+1 or -1), with common support points.

    If `average` is True, the result is the average of the T functions f obtained after each of T
    points (Freund and Schapire 1999, Collins 2002).  A correction v made after t points has weight
    1 - t / T in this average.  The averaged coefficients are therefore A - U / T, where A is the
    sum of the corrections v, and U the sum of t v.

    Parameters
    ----------
    n_functions, intercept
        As in `OnlineLearner`.
    average : bool, default=False
        Whether `solution` returns averaged coefficients.

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
    U: Any = None
    ub: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.U, self.ub = self.A.copy(), self.b.copy()

    def workspace(self) -> int:
        """Return the memory of the next block in bytes: kernel values and coefficients."""
        return 8 * (
            BLOCK_ROWS * (BLOCK_ROWS + SUPPORT_COLUMNS) + 8 * self.n_functions * self._max_support
        )

    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        ids, Y, w, active, losses, mistakes = block
        F, C, CU = self._values(K, ids), np.zeros(Y.shape), np.zeros(Y.shape)
        within = np.ascontiguousarray(K.block(ids, ids), dtype=float)
        if not np.isfinite(within.sum() + F.sum()):
            raise not_finite_error(K.kernel)
        step = float(self.intercept)
        state = self.b, self.ub, self.seen, np.empty((2, self.n_functions))
        _learn_rows(within, F, Y, w, active, step, *state, C, CU, losses, mistakes)
        wrong = np.flatnonzero(C.any(axis=1))
        self.support = np.concatenate([self.support, ids[wrong]])
        self.A = np.concatenate([self.A, C[wrong]])
        self.U = np.concatenate([self.U, CU[wrong]])
        self._merge_duplicates()

    def _merge_duplicates(self) -> None:
        """Add up the coefficients of points that became support points in more than one pass."""
        distinct, indices = np.unique(self.support, return_inverse=True)
        if len(distinct) == len(self.support):
            return
        sums = np.zeros((2, len(distinct), self.n_functions))
        np.add.at(sums[0], indices, self.A)
        np.add.at(sums[1], indices, self.U)
        self.support, self.A, self.U = distinct, sums[0], sums[1]

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the support points and the intercepts.

        They are averaged over all points learned from if `average` is True.
        """
        if not self.average:
            return self.A.copy(), self.b.copy()
        T = np.maximum(self.seen, 1.0)
        return self.A - self.U / T, self.b - self.ub / T


@jit()
def set_corrections(p: Any, y: Any, w: Any, active: Any, g: Any, losses: Any, mistakes: Any) -> Any:
    """Set g to the corrections of the functions that misclassify a point with predictions p.

    Returns True if any function misclassifies it.  `losses` and `mistakes` are updated.
    """
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
def _learn_rows(
    K: Any,
    F: Any,
    Y: Any,
    w: Any,
    active: Any,
    step: Any,
    b: Any,
    ub: Any,
    seen: Any,
    work: Any,
    C: Any,
    CU: Any,
    losses: Any,
    mistakes: Any,
) -> Any:
    """Process the points of a block in order.

    Sets C and CU to the corrections of the points and to the corrections times the number of points
    seen before them.  F holds the predictions without intercept, and is updated with each
    correction.
    """
    n, q = Y.shape
    p, g = work[0], work[1]
    for i in range(n):
        for c in range(q):
            p[c] = F[i, c] + b[c]
        if set_corrections(p, Y[i], w[i], active, g, losses, mistakes):
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
