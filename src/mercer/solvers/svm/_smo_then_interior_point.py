"""Solve a linear SVM by SMO, and by an interior-point method if SMO takes too long.

If few points are support vectors, `BlockSMO` needs only a few rows of K; if classes overlap, it may
take a million steps.  This cannot be predicted, but the cost of `BoxInterior` can.  SMO may spend
about a seventh of that cost on entries of K and steps, or all of it if K is a single block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._core import entry_point
from ...gram import KernelRows, RowsView
from .._cost_model import Cost, cost_of_entries
from .._report import Status
from ._block_smo import BlockSMO, DualProgress, ProgressCallback
from ._box_interior_point import BoxInterior
from ._dual_problem import Dual, DualSolution

__all__ = ["SMOThenInteriorPoint"]


@dataclass(frozen=True)
class _RelayTuning:
    """Tuning constants of the switch from SMO to the interior-point method."""

    # Fraction of the cost of the interior-point method that SMO may spend.
    smo_budget: float = 0.15
    # SMO is tried only if it can afford this many rows of K and this many steps.
    min_rows: int = 512
    min_steps: int = 1000
    # Up to this many points, evaluating all of K is cheap, and SMO has no limit.
    max_unlimited_points: int = 500
    # Up to this many points, K is a single block, and SMO may spend as much as the interior-point
    # method.
    max_single_block_points: int = 1600


_TUNING = _RelayTuning()
_STEP_COST = Cost(moves=1)


@entry_point
@dataclass(frozen=True)
class SMOThenInteriorPoint:
    """Solve a `Dual` for K = F F^T by SMO, or by an interior-point method if SMO takes too long.

    The decision depends only on operation counts, never on elapsed time, so that it is
    reproducible.  If SMO was given up, the report contains the number of its steps.

    Parameters
    ----------
    pairs : BlockSMO
        The SMO solver.
    inside : BoxInterior
        The interior-point solver.

    Examples
    --------
    >>> from mercer.solvers import BlockSMO, BoxInterior, SMOThenInteriorPoint
    >>> solver = SMOThenInteriorPoint(BlockSMO(), BoxInterior(tol=1e-3))
    >>> solver.tol, SMOThenInteriorPoint.can_afford_smo(500, 10)
    (0.001, True)
    """

    pairs: BlockSMO
    inside: BoxInterior

    @property
    def tol(self) -> float:
        """The violation at which the solution counts as converged."""
        return self.inside.tol

    @property
    def max_iter(self) -> int:
        """Largest number of steps of the interior-point method."""
        return self.inside.max_iter

    @staticmethod
    def can_afford_smo(n: int, m: int) -> bool:
        """Whether the budget of SMO is large enough to try it on F of shape (n, m)."""
        if n <= _TUNING.max_single_block_points:
            return True
        smallest = _spent(np.empty((0, m)), n * min(n, _TUNING.min_rows), _TUNING.min_steps)
        return smallest <= _smo_budget_seconds(n, m)

    def minimize(
        self,
        rows: KernelRows | RowsView,
        F: np.ndarray,
        dual: Dual,
        follow: ProgressCallback = None,
    ) -> DualSolution:
        """Return the minimum of a dual problem.

        Parameters
        ----------
        rows : KernelRows or RowsView
            The rows of K = F F^T.
        F : ndarray of shape (n, m)
            The features of the points.
        dual : Dual
        follow : callable, optional
            Called with a `DualProgress` from time to time.

        Returns
        -------
        solution : DualSolution
        """
        view = rows.view() if isinstance(rows, KernelRows) else rows
        if not self.can_afford_smo(*F.shape):
            return self.inside.minimize(F, dual, follow)
        budget, max_iter = np.inf, self.pairs.max_iter
        if view.n > _TUNING.max_unlimited_points:
            budget = _smo_budget_seconds(*F.shape)
            steps = int(budget / _STEP_COST.seconds)
            max_iter = steps if max_iter < 0 else min(max_iter, steps)

        def check_budget(progress: DualProgress) -> None:
            if follow is not None:
                follow(progress)
            if (
                _spent(F, view.counts[0], progress.n_iter) > budget
                and progress.violation > self.tol
            ):
                raise _BudgetExceeded(progress.n_iter)

        try:
            found = replace(self.pairs, max_iter=max_iter).minimize(view, dual, check_budget)
            if found.report.status is Status.CONVERGED:
                return found
            steps = found.report.n_iter
        except _BudgetExceeded as stopped:
            steps = stopped.args[0]
        found = self.inside.minimize(F, dual, follow)
        note = f"{steps} SMO steps were given up in favour of the interior-point method"
        message = "; ".join(filter(None, [note, found.report.message]))
        return found._replace(report=replace(found.report, message=message))


def _smo_budget_seconds(n: int, m: int) -> float:
    """Return the predicted seconds that SMO may spend on F of shape (n, m)."""
    return (_TUNING.smo_budget if n > _TUNING.max_single_block_points else 1.0) * BoxInterior.cost(
        n, m
    ).seconds


def _spent(F: np.ndarray, entries: float, steps: float) -> float:
    """Return the predicted seconds for the given numbers of entries of K and of SMO steps."""
    return (cost_of_entries(None, F, entries) + steps * _STEP_COST).seconds


class _BudgetExceeded(Exception):
    """Raised inside a progress callback when SMO has used up its budget."""
