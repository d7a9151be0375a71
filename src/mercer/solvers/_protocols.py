"""Types of solvers: the methods that a user-defined solver must have to be passed to mercer.

The classes are only used as types.  A solver need not derive from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from .._core import ProgressCallback
from ..gram import CentredGram, GramOperator

if TYPE_CHECKING:
    from .eigen import EigenPairs
    from .linear import Factor
    from .risk import Minimum
    from .svm import Dual, DualSolution, FollowCallback

# The problem in the form that a solver reads.
Risk = TypeVar("Risk", contravariant=True)
Data = TypeVar("Data", contravariant=True)


class LinearSolver(Protocol):
    """A solver of (K + diag(shift)) a = y, such as `Cholesky`."""

    def factorize(
        self, gram: GramOperator, shift: float | np.ndarray = 0.0, *, overwrite: bool = False
    ) -> Factor:
        """Factorise K + diag(shift), where `overwrite` permits to overwrite the array of K."""
        ...


class IterativeSolver(Protocol):
    """A solver that stops at a relative residual of `tol`, or after `max_iter` steps."""

    @property
    def tol(self) -> float:
        """The relative residual at which the iteration stops."""
        ...

    @property
    def max_iter(self) -> int | None:
        """The largest number of steps; None for the default of the solver."""
        ...


class EigenSolver(Protocol):
    """A solver of K u = l u, such as `BlockKrylov`."""

    def eigenpairs(
        self,
        gram: GramOperator | CentredGram,
        k: int | None = None,
        *,
        log: ProgressCallback | None = None,
        **options: Any,
    ) -> EigenPairs:
        """Return the k leading eigenpairs; None means all of them."""
        ...


class RiskSolver(Protocol[Risk]):
    """A solver of regularised risks: `RegularisedRisk` (`Newton`) or `OutOfCoreRisk`."""

    def minimize(
        self,
        risk: Risk,
        start: tuple[np.ndarray, np.ndarray] | None = None,
        log: ProgressCallback | None = None,
        *,
        warn: bool = True,
    ) -> Minimum:
        """Return the minimum; `start` contains the initial weights and intercepts."""
        ...


class DualSolver(Protocol[Data]):
    """A solver of dual problems, which reads K in the form `Data`.

    The form is rows of K (`BlockSMO`), features F with K = F F^T (`BoxInterior`), or a tuple of
    both (`SMOThenInteriorPoint`).
    """

    @property
    def tol(self) -> float:
        """The violation at which the solution counts as converged."""
        ...

    @property
    def max_iter(self) -> int:
        """Largest number of steps."""
        ...

    def minimize(self, data: Data, dual: Dual, follow: FollowCallback = None) -> DualSolution:
        """Return the minimum of a dual problem."""
        ...
