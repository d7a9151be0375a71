"""What all online learners share: blocks of points, passes over them, and when to stop.

A learner holds functions f = sum_s a_s k(x_s, .) + b and sees points one after the other.  To do so
at the speed of matrices, points come in blocks: the values of k within a block, and between it and
the points of f, are evaluated at once, and a compiled loop then walks through the rows.  What a
learner does depends on the order of the points, and not on how they are cut into blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._errors import not_finite
from ..._runtime import (
    Step,
    Stopwatch,
    check_budget,
    entry_point,
    one_blas_thread,
    quiet,
    random_numbers,
    slices,
)
from ...gram import GramOperator
from .._report import Report, Status

__all__ = ["OnlineLearner", "Schedule"]

BLOCK = 256  # rows of a block
COLUMNS = 1024  # of k(block, points of f) held at a time


class Block(NamedTuple):
    """Points that are seen together: their places in K, targets and weights.

    `active` tells which functions learn; their `losses` and `mistakes` are added to.
    """

    ids: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    active: np.ndarray
    losses: np.ndarray
    mistakes: np.ndarray


@entry_point
@dataclass(eq=False)
class OnlineLearner(ABC):
    """Functions f_c = sum_s A_sc k(x_s, .) + b_c that change with every point they see.

    Attributes
    ----------
    support : ndarray of int
        The places of the x_s among the points whose matrix is given to `learn`.
    A : ndarray of shape (m, q)
    b : ndarray of shape (q,)
    seen : ndarray of shape (q,)
        How many points each function has seen.
    max_memory : int, str or None
        What a block may take of the memory, the points of f included.

    Examples
    --------
    >>> from mercer.solvers import Norma, OnlineLearner, Perceptron
    >>> issubclass(Perceptron, OnlineLearner), issubclass(Norma, OnlineLearner)
    (True, True)
    """

    counted: ClassVar[str] = "corrections"  # what a point that moves f is called

    n_functions: int
    intercept: bool = True
    support: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    A: Any = None
    b: Any = None
    seen: Any = None
    max_memory: Any = None

    def __post_init__(self) -> None:
        q = self.n_functions
        self.A, self.b = np.zeros((0, q)), np.zeros(q)
        self.seen = np.zeros(q)

    @quiet
    @one_blas_thread
    def learn(
        self,
        K: GramOperator,
        order: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray,
        active: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """See the points `order` of K once, and return losses and mistakes of each function.

        Y and weights belong to the points in this order.  The loss of a point is that of f before
        it sees the point.  Functions that are not `active` stay as they are.
        """
        q = self.n_functions
        active = np.ones(q, dtype=bool) if active is None else active
        losses, mistakes = np.zeros(q), np.zeros(q)
        for rows in slices(len(order), BLOCK):
            check_budget(self.workspace(), self.max_memory, self._in_words())
            # C order, whatever came: a compiled loop is one for each layout
            y, w = np.ascontiguousarray(Y[rows]), np.ascontiguousarray(weights[rows])
            self._learn_block(K, Block(order[rows], y, w, active, losses, mistakes))
        return losses, mistakes

    @abstractmethod
    def _learn_block(self, K: GramOperator, block: Block) -> None:
        """See the points of a block, and add to its losses and mistakes."""

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients on `support`, and the constants."""
        return self.A, self.b

    @property
    def certificate(self) -> dict[str, Any]:
        """What a report should say."""
        return {"points": len(self.support)}

    @abstractmethod
    def workspace(self) -> int:
        """Return the bytes that the next block takes; on a budget, what any block may take."""

    @property
    def _most(self) -> int:
        """How many points f may have after the next block; on a budget, ever."""
        return getattr(self, "budget", None) or len(self.support) + BLOCK

    def _in_words(self) -> str:
        if getattr(self, "budget", None):
            return f"a model on budget={self._most} points"
        return f"a model of up to {self._most} points (a budget would limit them)"

    def _against(self, K: GramOperator, ids: np.ndarray) -> np.ndarray:
        """Return k(block, points of f) and k(block, block) side by side."""
        block = K.block(ids, np.concatenate([self.support, ids]))
        around = np.ascontiguousarray(block, dtype=float)
        if not np.isfinite(around.sum()):
            raise not_finite(K.kernel)
        return around

    def _values(self, K: GramOperator, ids: np.ndarray) -> np.ndarray:
        """Return f - b at a block, without holding k(block, points of f)."""
        F = np.zeros((len(ids), self.n_functions))
        for part in slices(len(self.support), COLUMNS):
            F += K.block(ids, self.support[part]) @ self.A[part]
        return F


@entry_point
@dataclass(frozen=True)
class Schedule:
    """How many passes to make over points that stay, in which order, and when to stop.

    As in scikit-learn's SGDClassifier: a function stops when its mean loss was not at least `tol`
    below its best in `patience` passes, or, sooner, after a pass without a mistake.

    Parameters
    ----------
    max_iter : int
    tol : float or None
        None to make all passes.
    patience : int
    shuffle : bool
    random_state : int, Generator, RandomState or None
    relative : bool
        Whether tol is a part of the best loss, so that the unit of targets does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Perceptron, Schedule
    >>> K = gram("RBF()", np.array([[0.0], [1.0], [5.0], [6.0]]))
    >>> Y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> passes = Schedule(max_iter=20, random_state=0)
    >>> report, mistakes = passes.run(Perceptron(1), K, Y, np.ones(4))
    >>> float(mistakes[-1])
    0.0
    """

    max_iter: int = 1000
    tol: float | None = 1e-3
    patience: int = 5
    shuffle: bool = True
    random_state: Any = None
    relative: bool = False

    def run(
        self,
        learner: OnlineLearner,
        K: GramOperator,
        Y: np.ndarray,
        weights: np.ndarray,
        say: Callable[[str], None] | None = None,
    ) -> tuple[Report, np.ndarray]:
        """Show the points to the learner, pass by pass; return a report, and mistakes by pass."""
        watch, n = Stopwatch(), len(Y)
        rng = random_numbers(self.random_state)
        order = np.arange(n)
        q = learner.n_functions
        active, best, waited = np.ones(q, dtype=bool), np.full(q, np.inf), np.zeros(q, dtype=int)
        counts: list[float] = []
        while len(counts) < self.max_iter and active.any():
            if self.shuffle:
                rng.shuffle(order)
            losses, mistakes = learner.learn(K, order, Y[order], weights[order], active)
            counts.append(float(mistakes[active].sum()))
            if say is not None:
                words = (
                    f"pass {len(counts)}: {counts[-1]:.0f} {learner.counted}, loss "
                    f"{losses[active].sum() / n:.4g}, {len(learner.support)} points"
                )
                say(Step(words))
            if self.tol is not None:
                known = np.where(np.isfinite(best), best, 0.0)
                least = self.tol * (known if self.relative else n)
                waited = np.where(losses > best - least, waited + 1, 0)
                best = np.minimum(best, losses)
                active &= waited < self.patience
            active &= mistakes > 0
        status, message = Status.CONVERGED, f"{len(counts)} passes over {n} points"
        if active.any() and self.tol is not None:
            status = Status.NOT_CONVERGED
            message = (
                f"Maximum number of iteration reached before convergence: after {message} "
                f"the loss still falls, with {counts[-1]:.0f} {learner.counted} in the last; raise "
                f"max_iter, or tol"
            )
        report = Report(
            solver=type(learner).__name__,
            status=status,
            n_iter=len(counts),
            seconds=watch.seconds,
            message=message,
            certificate=learner.certificate,
        )
        return report, np.array(counts)
