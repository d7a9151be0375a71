"""Pairs of variables first, as long as they cost little beside an interior point.

Where few points are support vectors `BlockSMO` ends after a few rows of K; where classes overlap it
may take a million steps.  Which of the two it is shows only on the way.  What `BoxInterior` takes
is known before, and a seventh of that is what pairs may spend, in entries of K and in steps; as
much as that where K is one block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._runtime import entry_point
from ...gram import KernelRows, RowsView
from .._cost import Cost, evaluating
from .._report import Status
from ._dual import Dual, DualSolution
from ._interior import BoxInterior
from ._smo import BlockSMO, Follow, Progress

__all__ = ["Relay"]

_SHARE = 0.15  # of the cost of the interior point
_FIRST_ROWS, _FIRST_STEPS = 512, 1000  # without these there is no use in starting
_FEW = 500  # up to so many points all of K is cheap
_SMALL = 1600  # up to so many pairs may spend as much as the interior point: K is one block
_STEP = Cost(moves=1)


@entry_point
@dataclass(frozen=True)
class Relay:
    """Minimise a `Dual` for K = F F^T by `BlockSMO`, or by `BoxInterior` if that takes too long.

    The decision depends on counts alone, never on a clock; the report says what was given up.

    Parameters
    ----------
    pairs : BlockSMO
    inside : BoxInterior

    Examples
    --------
    >>> from mercer.solvers import BlockSMO, BoxInterior, Relay
    >>> relay = Relay(BlockSMO(), BoxInterior(tol=1e-3))
    >>> relay.tol, Relay.is_open(500, 10)
    (0.001, True)
    """

    pairs: BlockSMO
    inside: BoxInterior

    @property
    def tol(self) -> float:
        """The violation that ends the search, for both."""
        return self.inside.tol

    @property
    def max_iter(self) -> int:
        """Steps of the solver that has the last word."""
        return self.inside.max_iter

    @staticmethod
    def is_open(n: int, m: int) -> bool:
        """Tell whether pairs may spend enough on n rows of m columns for a beginning."""
        if n <= _SMALL:
            return True
        first = _spent(np.empty((0, m)), n * min(n, _FIRST_ROWS), _FIRST_STEPS)
        return first <= _share(n, m)

    def minimize(
        self, rows: KernelRows | RowsView, F: np.ndarray, dual: Dual, follow: Follow = None
    ) -> DualSolution:
        """Return the minimum, from the rows of K = F F^T or from F."""
        view = rows.view() if isinstance(rows, KernelRows) else rows
        if not self.is_open(*F.shape):
            return self.inside.minimize(F, dual, follow)
        most, limit = np.inf, self.pairs.max_iter
        if view.n > _FEW:
            most = _share(*F.shape)
            steps = int(most / _STEP.seconds)
            limit = steps if limit < 0 else min(limit, steps)

        def watched(at: Progress) -> None:
            if follow is not None:
                follow(at)
            if _spent(F, view.counts[0], at.n_iter) > most and at.violation > self.tol:
                raise _TooMuch(at.n_iter)

        try:
            found = replace(self.pairs, max_iter=limit).minimize(view, dual, watched)
            if found.report.status is Status.CONVERGED:
                return found
            steps = found.report.n_iter
        except _TooMuch as stopped:
            steps = stopped.args[0]
        found = self.inside.minimize(F, dual, follow)
        said = f"{steps} moves of pairs of variables were given up for the interior point"
        message = "; ".join(filter(None, [said, found.report.message]))
        return found._replace(report=replace(found.report, message=message))


def _share(n: int, m: int) -> float:
    return (_SHARE if n > _SMALL else 1.0) * BoxInterior.cost(n, m).seconds


def _spent(F: np.ndarray, entries: float, steps: float) -> float:
    return (evaluating(None, F, entries) + steps * _STEP).seconds


class _TooMuch(Exception):
    """Pairs have cost what they may."""
