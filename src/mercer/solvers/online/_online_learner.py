"""Base class of online learners, and the schedule of passes over the points.

A learner updates functions f = sum_s a_s k(x_s, .) + b after each point, where the x_s are support
points.  For speed, points are processed in blocks: all kernel values that a block needs are
evaluated together, and a compiled loop then learns from the points one by one.  The result depends
on the order of the points, but not on the block size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._core import (
    MemoryLimit,
    ProgressCallback,
    ProgressStep,
    RandomState,
    Stopwatch,
    check_budget,
    entry_point,
    ignore_overflow,
    not_finite_error,
    one_blas_thread,
    seeded_generator,
    slices,
)
from ...gram import GramOperator
from .._report import Report, Status

BLOCK_ROWS = 256  # points per block; larger blocks need more memory but fewer kernel calls
SUPPORT_COLUMNS = 1024  # columns of k(block, support) computed at a time; limits memory


class LearningBlock(NamedTuple):
    """A block of points to learn from: `ids` (their indices in K), targets and weights.

    `active` marks the functions that are updated.  The learner adds the losses and mistakes of the
    block to `losses` and `mistakes`, which have one entry per function.  Compiled loops receive the
    block as it is.
    """

    ids: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    active: np.ndarray
    losses: np.ndarray
    mistakes: np.ndarray


def empty_array() -> np.ndarray:
    """Return an empty array, the default of fields that `__post_init__` sets."""
    return np.empty(0)


@entry_point
@dataclass(eq=False)
class OnlineLearner(ABC):
    """Base class of online learners, which learn functions f_c = sum_s A_sc k(x_s, .) + b_c.

    A learner updates the functions after each point.  The result depends on the order of the
    points.  Call `learn` for each new set of points, or `Schedule.run` for several passes over the
    same points.

    Attributes
    ----------
    n_functions : int
        Number q of functions, one per column of the targets.
    intercept : bool, default=True
        Whether to learn the intercepts b_c.
    support : ndarray of int, shape (m,)
        Indices of the support points x_s in the kernel matrix that is passed to `learn`.
    A : ndarray of shape (m, q)
        Coefficients of the support points.
    b : ndarray of shape (q,)
        Intercepts.
    seen : ndarray of shape (q,)
        Number of points from which each function has learned.
    max_memory : int, str or None, default=None
        Memory budget for the model and one block of points; None for half of the memory of the
        computer.

    See Also
    --------
    Perceptron : Classification.
    Norma : Regression by stochastic gradient descent.
    RecursiveLeastSquares : Regularised least squares.

    Examples
    --------
    >>> from mercer.solvers import Norma, OnlineLearner, Perceptron
    >>> issubclass(Perceptron, OnlineLearner), issubclass(Norma, OnlineLearner)
    (True, True)
    """

    # Name of the updates of f in progress messages and warnings.
    counted: ClassVar[str] = "corrections"

    n_functions: int
    intercept: bool = True
    support: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    A: np.ndarray = field(default_factory=empty_array)
    b: np.ndarray = field(default_factory=empty_array)
    seen: np.ndarray = field(default_factory=empty_array)
    max_memory: MemoryLimit = None

    def __post_init__(self) -> None:
        q = self.n_functions
        self.A, self.b = np.zeros((0, q)), np.zeros(q)
        self.seen = np.zeros(q)

    @ignore_overflow
    @one_blas_thread
    def learn(
        self,
        K: GramOperator,
        order: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray,
        active: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Make one pass over points, and return the losses and mistakes of each function.

        The loss of a point is computed before f learns from it.

        Parameters
        ----------
        K : GramOperator
            The kernel matrix of all points.
        order : ndarray of int
            Indices of the points, in the order in which they are learned.
        Y : ndarray of shape (len(order), q)
            Targets of these points, in the same order.
        weights : ndarray of shape (len(order),)
            Weights of these points, in the same order.
        active : ndarray of bool of shape (q,) or None, default=None
            The functions to update; None means all.

        Returns
        -------
        losses : ndarray of shape (q,)
            Sums of the losses.
        mistakes : ndarray of shape (q,)
            Numbers of points that changed each function.
        """
        q = self.n_functions
        active = np.ones(q, dtype=bool) if active is None else active
        losses, mistakes = np.zeros(q), np.zeros(q)
        for rows in slices(len(order), BLOCK_ROWS):
            check_budget(self.workspace(), self.max_memory, self._description())
            # Use C order, because numba would compile the loop again for another memory layout.
            y, w = np.ascontiguousarray(Y[rows]), np.ascontiguousarray(weights[rows])
            self._learn_block(K, LearningBlock(order[rows], y, w, active, losses, mistakes))
        return losses, mistakes

    @abstractmethod
    def _learn_block(self, K: GramOperator, block: LearningBlock) -> None:
        """Learn from the points of a block, and add to its losses and mistakes."""

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the support points, and the intercepts.

        Returns
        -------
        A : ndarray of shape (m, q)
            Coefficients of the m support points.
        b : ndarray of shape (q,)
            Intercepts.
        """
        return self.A, self.b

    @property
    def certificate(self) -> dict[str, Any]:
        """Entries for the certificate of a report; "points" is the number of support points."""
        return {"points": len(self.support)}

    @abstractmethod
    def workspace(self) -> int:
        """Return the memory that learning from the next block needs.

        If the number of support points is limited by a budget, this is the maximum for any block.

        Returns
        -------
        int
            Number of bytes.
        """

    @property
    def _max_support(self) -> int:
        """The maximum number of support points after the next block; with a budget, the budget."""
        return getattr(self, "budget", None) or len(self.support) + BLOCK_ROWS

    def _capacity(self, ids: np.ndarray) -> int:
        """Return the maximum number of support points after learning from the points `ids`."""
        size = len(self.support) + len(ids)
        return min(getattr(self, "budget", None) or size, size)

    def _description(self) -> str:
        """Return a description of the model for messages about memory."""
        if getattr(self, "budget", None):
            return f"a model on budget={self._max_support} points"
        return f"a model of up to {self._max_support} points (a budget would limit them)"

    def _kernel_rows(self, K: GramOperator, ids: np.ndarray) -> np.ndarray:
        """Return the kernel values of a block with the support points and with its own points."""
        block = K.block(ids, np.concatenate([self.support, ids]))
        kernel_rows = np.ascontiguousarray(block, dtype=float)
        if not np.isfinite(kernel_rows.sum()):
            raise not_finite_error(K.kernel)
        return kernel_rows

    def _values(self, K: GramOperator, ids: np.ndarray) -> np.ndarray:
        """Return the predictions without intercept at the points of a block.

        The kernel values with the support points are computed in parts, to limit memory.
        """
        F = np.zeros((len(ids), self.n_functions))
        for part in slices(len(self.support), SUPPORT_COLUMNS):
            F += K.block(ids, self.support[part]) @ self.A[part]
        return F


def merge_duplicates(
    support: np.ndarray, *coefficients: np.ndarray
) -> tuple[np.ndarray, np.ndarray | slice, list[np.ndarray]]:
    """Add up the coefficients of points that became support points in more than one pass.

    Returns the distinct support points, the position of each of them in `support`, and the sums of
    each of the arrays of coefficients.
    """
    distinct, first, indices = np.unique(support, return_index=True, return_inverse=True)
    if len(distinct) == len(support):
        return support, slice(None), list(coefficients)
    sums = [np.zeros((len(distinct), A.shape[1])) for A in coefficients]
    for total, A in zip(sums, coefficients, strict=True):
        np.add.at(total, indices, A)
    return distinct, first, sums


@entry_point
@dataclass(frozen=True)
class Schedule:
    """Schedule of the passes of an online learner over a fixed set of points.

    As in scikit-learn's `SGDClassifier`, a function stops learning if its mean loss has not been at
    least `tol` below the best one so far for `patience` consecutive passes.  It also stops after a
    pass without mistakes.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of passes.
    tol : float or None, default=1e-3
        Required improvement of the mean loss.  If None, learning does not stop because of the loss.
    patience : int, default=5
        Number of consecutive passes without improvement after which a function stops learning.
    shuffle : bool, default=True
        Whether to shuffle the points before each pass.
    random_state : int, Generator, RandomState or None, default=None
        Seed for shuffling.
    relative : bool, default=False
        Whether `tol` is relative to the best loss, so that the scale of the targets does not
        matter.

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
    random_state: RandomState = None
    relative: bool = False

    def run(
        self,
        learner: OnlineLearner,
        K: GramOperator,
        Y: np.ndarray,
        weights: np.ndarray,
        log: ProgressCallback | None = None,
    ) -> tuple[Report, np.ndarray]:
        """Run the passes until all functions stop learning.

        Parameters
        ----------
        learner : OnlineLearner
            The learner, which is updated.
        K : GramOperator of shape (n, n)
            The kernel matrix of all points.
        Y : ndarray of shape (n, q)
            Targets.
        weights : ndarray of shape (n,)
            Weights of the points.
        log : callable or None, default=None
            Called with a progress message after each pass.

        Returns
        -------
        report : Report
            Status, number of passes and certificate of the learner.
        mistakes : ndarray of shape (n_passes,)
            Number of mistakes, or other changes of the functions, in each pass.
        """
        watch, n = Stopwatch(), len(Y)
        rng = seeded_generator(self.random_state)
        order = np.arange(n)
        q = learner.n_functions
        active, best, n_waited = np.ones(q, dtype=bool), np.full(q, np.inf), np.zeros(q, dtype=int)
        counts: list[float] = []
        while len(counts) < self.max_iter and active.any():
            if self.shuffle:
                rng.shuffle(order)
            losses, mistakes = learner.learn(K, order, Y[order], weights[order], active)
            counts.append(float(mistakes[active].sum()))
            if log is not None:
                progress = (
                    f"pass {len(counts)}: {counts[-1]:.0f} {learner.counted}, loss "
                    f"{losses[active].sum() / n:.4g}, {len(learner.support)} points"
                )
                log(ProgressStep(progress))
            if self.tol is not None:
                finite_best = np.where(np.isfinite(best), best, 0.0)
                min_decrease = self.tol * (finite_best if self.relative else n)
                n_waited = np.where(losses > best - min_decrease, n_waited + 1, 0)
                best = np.minimum(best, losses)
                active &= n_waited < self.patience
            active &= mistakes > 0
        status, message = Status.CONVERGED, f"{len(counts)} passes over {n} points"
        if active.any() and self.tol is not None:
            status = Status.NOT_CONVERGED
            message = (
                f"Maximum number of iteration reached before convergence: after {message} "
                f"the loss is still decreasing, with {counts[-1]:.0f} {learner.counted} in the "
                f"last pass; raise max_iter or tol"
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
