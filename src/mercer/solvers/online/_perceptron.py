"""The perceptron: a point on the wrong side is added to f.

    if y (f(x) + b) <= 0:        f <- f + y k(x, .),        b <- b + y

(Rosenblatt 1958; with kernels, Aizerman, Braverman and Rozonoer 1964.)  If |x| <= R, in the space
of the kernel, and some g of norm 1 has y g(x) >= rho for all points, there are at most (R / rho)^2
mistakes (Novikoff 1962), however often the points are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._errors import not_finite
from ..._runtime import entry_point, jit
from ...gram import GramOperator
from ._learner import BLOCK, COLUMNS, Block, OnlineLearner

__all__ = ["Perceptron", "correct"]


@entry_point
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

    counted: ClassVar[str] = "mistakes"

    average: bool = False
    U: Any = None
    ub: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.U, self.ub = self.A.copy(), self.b.copy()

    def workspace(self) -> int:
        """Return the bytes of values of k, and of coefficients while those of points merge."""
        return 8 * (BLOCK * (BLOCK + COLUMNS) + 8 * self.n_functions * self._most)

    def _learn_block(self, K: GramOperator, block: Block) -> None:
        ids, Y, w, active, losses, mistakes = block
        F, C, CU = self._values(K, ids), np.zeros(Y.shape), np.zeros(Y.shape)
        within = np.ascontiguousarray(K.block(ids, ids), dtype=float)
        if not np.isfinite(within.sum() + F.sum()):
            raise not_finite(K.kernel)
        step = float(self.intercept)
        state = self.b, self.ub, self.seen, np.empty((2, self.n_functions))
        _plain(within, F, Y, w, active, step, *state, C, CU, losses, mistakes)
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


@jit()
def correct(p: Any, y: Any, w: Any, active: Any, g: Any, losses: Any, mistakes: Any) -> Any:
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
    work: Any,
    C: Any,
    CU: Any,
    losses: Any,
    mistakes: Any,
) -> Any:
    """Walk through a block; C and CU get the coefficients of its points, F follows f."""
    n, q = Y.shape
    p, g = work[0], work[1]
    for i in range(n):
        for c in range(q):
            p[c] = F[i, c] + b[c]
        if correct(p, Y[i], w[i], active, g, losses, mistakes):
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
