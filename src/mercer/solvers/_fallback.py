"""Solvers that are tried in turn, from cheap to expensive, until one succeeds.

`FallbackChain` implements the rule once: a stage that fails, or that is expected to cost more than
the next one, is given up in favour of the next one, and the reason is recorded.  All decisions
depend on computed numbers such as residuals and operation counts, never on elapsed time, so that
they are reproducible.  `FallbackSolver` applies the rule to linear systems, and
`SMOThenInteriorPoint` to the duals of linear support vector machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from .._core import MemoryBudgetError, NotPositiveDefiniteError, check_budget, entry_point
from ..gram import DenseGram, GramOperator, RowsView
from ._cost_model import Cost, cost_of_entries
from ._protocols import LinearSolver
from ._report import Status
from .linear import Cholesky, Factor, PreconditionedFactor, check_shift, max_relative_residual
from .svm import (
    BlockSMO,
    BoxInterior,
    Dual,
    DualProgress,
    DualSolution,
    FollowCallback,
    ReadableRows,
    StopReason,
)

Stage = TypeVar("Stage")
Result = TypeVar("Result")

_STEPS_SAFETY_FACTOR = 2.0  # max_iter must be at least this many times the expected number of steps
# Iterative solvers would not converge for a shift below this, relative to the largest k(x, x).
_MIN_ITERATIVE_SHIFT = 1e-10


class GivenUp(Exception):
    """Raised in a stage of a `FallbackChain` to continue with the next one; contains the reason."""


class FallbackChain(Generic[Stage]):
    """Stages that are tried in turn until one succeeds.

    Parameters
    ----------
    stages : iterable
        Solvers or other descriptions of the stages, at least one.

    Attributes
    ----------
    stages : list
        The stages that have not been given up; the first is the current one.
    given_up : list of (stage, str)
        The stages that were given up, and the reasons.

    Examples
    --------
    >>> from mercer.solvers._fallback import FallbackChain, GivenUp
    >>> def attempt(size):
    ...     if size > 10:
    ...         raise GivenUp("too large")
    ...     return f"solved with {size}"
    >>> chain = FallbackChain([100, 10])
    >>> chain.run(attempt), chain.given_up
    ('solved with 10', [(100, 'too large')])
    """

    def __init__(self, stages: Iterable[Stage]) -> None:
        self.stages = list(stages)
        self.given_up: list[tuple[Stage, str]] = []

    @property
    def is_last(self) -> bool:
        """Whether the current stage is the last one, which must not be given up."""
        return len(self.stages) == 1

    def run(self, attempt: Callable[[Stage], Result]) -> Result:
        """Return `attempt(stage)` of the first stage that succeeds.

        A stage fails if it raises GivenUp, NotPositiveDefiniteError or MemoryBudgetError.  The
        exception of the last stage is raised.  Later calls start with the stage that succeeded.
        """
        while True:
            try:
                return attempt(self.stages[0])
            except (GivenUp, NotPositiveDefiniteError, MemoryBudgetError) as error:
                if self.is_last:
                    raise
                self.given_up.append((self.stages[0], str(error)))
            # Outside of the except clause, because the exception refers to memory of the stage.
            self.stages.pop(0)


@entry_point
@dataclass(frozen=True)
class FallbackSolver:
    """Try several linear solvers in turn, and use the first one that converges.

    If a solver fails or does not converge, the next one is used, and the report contains the
    reason.  An iterative solver is skipped if it is expected to take more than half of its
    `max_iter` steps, and given up if its residual decays too slowly.  The decision depends only
    on computed numbers, never on elapsed time, so that it is reproducible.

    Parameters
    ----------
    solvers : tuple of solvers
        The solvers, from cheap to expensive.  Only the last one issues warnings or raises errors.
    hold : float, default=inf
        K is stored as an array if an iterative solver is expected to take more steps than this.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import FallbackSolver, Cholesky, ConjugateGradient
    >>> X = np.linspace(0, 3, 300)[:, None]
    >>> solver = FallbackSolver((ConjugateGradient(rank=2, max_iter=5), Cholesky()))
    >>> factor = solver.factorize(gram(RBF(0.1), X), shift=1e-3)
    >>> a = factor.solve(np.sin(X[:, 0]))
    >>> factor.report.status.value
    'direct method: exact up to rounding'
    """

    solvers: tuple[Any, ...]
    hold: float = np.inf

    def __post_init__(self) -> None:
        if not self.solvers:
            raise ValueError("FallbackSolver needs at least one solver, got none")

    @property
    def storage(self) -> str:
        """The recommended storage of K: that of the last solver, or "tiled" if `hold` is finite.

        If `hold` is finite, K is converted to an array when a solver needs one.
        """
        return "tiled" if np.isfinite(self.hold) else _storage(self.solvers[-1])

    def factorize(
        self, gram: GramOperator, shift: float | np.ndarray = 0.0, *, overwrite: bool = False
    ) -> Factor:
        """Factorise K + diag(shift) with the first solver that succeeds.

        Parameters
        ----------
        gram : GramOperator of shape (n, n)
            The symmetric matrix K.
        shift : float or ndarray of shape (n,), default=0.0
            Non-negative numbers that are added to the diagonal of K.
        overwrite : bool, default=False
            Whether the last solver may overwrite the array of K; the other solvers never do.

        Returns
        -------
        Factor
            A factor that solves (K + diag(shift)) a = y; later solvers are used if its solver
            fails.
        """
        return _FallbackFactor(self, gram, check_shift(gram, shift), overwrite)


def _storage(solver: LinearSolver) -> str:
    return str(getattr(solver, "storage", "dense"))


class _FallbackFactor(Factor):
    """The factor of the current solver, and the solvers that have not been tried yet."""

    _status = Status.CONVERGED
    _factor: Any = None  # the factor of the solver `_factorized_by`
    _factorized_by: LinearSolver | None = None

    def __init__(
        self, fallback: FallbackSolver, gram: GramOperator, shift: np.ndarray, overwrite: bool
    ) -> None:
        super().__init__("", gram.shape[0], gram.dtype)
        self._gram, self._shift, self._overwrite = gram, shift, overwrite
        self._chain, self._note = FallbackChain(fallback.solvers), ""
        self._max_tiled_steps = fallback.hold
        with np.errstate(over="ignore", invalid="ignore"):  # the solvers check for overflow
            largest = float(np.max(gram.diagonal(), initial=0.0))
        if np.min(shift, initial=np.inf) <= _MIN_ITERATIVE_SHIFT * largest:
            # Iterative solvers would not converge, and only a factorisation can report why.
            self._chain = FallbackChain(fallback.solvers[-1:])
            self._note = f"a shift of {np.min(shift):.1e} is too small for iterative solvers. "
        self._chain.run(self._factorize)

    def _factorize(self, solver: LinearSolver) -> Any:
        """Return the factor of a solver, which is computed once."""
        if self._factorized_by is not solver:
            self._factor = None  # free the memory before the next factor is computed
            self.solver = repr(solver)
            if _storage(solver) == "dense" and np.isfinite(self._max_tiled_steps):
                self._store_gram()
            overwrite = self._overwrite and self._chain.is_last
            self._factor = solver.factorize(self._gram, self._shift, overwrite=overwrite)
            self._factorized_by = solver
        return self._factor

    def _store_gram(self) -> GramOperator:
        """Store K as an array, if it is not stored yet, and return the GramOperator."""
        if not hasattr(self._gram, "release"):
            K, n_threads = self._gram, self._gram.n_threads
            options: dict[str, Any] = {"owned": True, "n_threads": n_threads}
            self._gram = DenseGram.from_array(K.to_array(), K.kernel, K.X, None, **options)
        return self._gram

    def _check_expected_steps(self, factor: Any) -> None:
        """Give up the current solver if it is expected to take too many steps.

        If it is expected to take more than `hold` steps, K is stored as an array.
        """
        expected_steps = getattr(factor, "expected_steps", 0.0)
        max_iter = getattr(getattr(factor, "_options", None), "max_iter", None) or np.inf
        if not self._chain.is_last and _STEPS_SAFETY_FACTOR * expected_steps > max_iter:
            raise GivenUp(
                f"the preconditioner predicts about {expected_steps:.0f} steps, but "
                f"{max_iter / _STEPS_SAFETY_FACTOR:.0f} steps cost as much as the next solver"
            )
        if expected_steps > self._max_tiled_steps:
            factor._gram = self._store_gram()

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        def attempt(solver: LinearSolver) -> tuple[np.ndarray, np.ndarray]:
            factor, is_last = self._factorize(solver), self._chain.is_last
            self._check_expected_steps(factor)
            factor._exponents = self._exponents
            a, residual = factor._solve(y, patient=patient and is_last)
            factor._residual = max_relative_residual(residual, y)
            report = factor.report
            if not is_last and report.status in (Status.NOT_CONVERGED, Status.INACCURATE):
                raise GivenUp(report.message)
            return a, residual

        solution = self._chain.run(attempt)
        factor = self._factor
        self._status, self._n_iter, self._tol = factor._status, factor._n_iter, factor._tol
        self._advice = factor._advice
        self._message = (self._note + self._history + factor._message).strip()
        return solution

    @property
    def _history(self) -> str:
        """The first sentences of the reasons why solvers were given up."""
        return "".join(
            f"{type(solver).__name__} was given up: {reason.partition('. ')[0]}. "
            for solver, reason in self._chain.given_up
        )

    def _certificate(self) -> dict[str, Any]:
        return {} if self._factor is None else self._factor._certificate()

    def logdet(self) -> float:
        return float(self._exact_factor("logdet").logdet())

    def inverse_diagonal(self) -> np.ndarray:
        return np.asarray(self._exact_factor("inverse_diagonal").inverse_diagonal())

    def _exact_factor(self, what: str) -> Factor:
        """Return the current factor, or a float64 Cholesky factor if its solver is iterative.

        `what` names the quantity that is computed from it, for error messages.
        """
        factor: Factor = self._chain.run(self._factorize)
        if not isinstance(factor, PreconditionedFactor):
            return factor
        budget = getattr(factor._options, "max_memory", None)
        text = f"{what} needs a float64 factor of {self.size} points, which"
        check_budget((16 if hasattr(self._gram, "release") else 8) * self.size**2, budget, text)
        return Cholesky().factorize(self._store_gram(), self._shift)


# ---------------------------------------------------------------------- linear SVMs


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
    """Train a linear SVM by SMO, or by an interior-point method if SMO takes too long.

    It solves a `Dual` for K = F F^T with features F.

    If few points are support vectors, `BlockSMO` needs only a few rows of K; if classes overlap, it
    may take a million steps.  This cannot be predicted, but the cost of `BoxInterior` can.  SMO may
    spend about a seventh of that cost on entries of K and steps, or all of it if K is a single
    block.  The decision depends only on operation counts, never on elapsed time, so that it is
    reproducible.  If SMO was given up, the report contains the number of its steps.

    Parameters
    ----------
    pairs : BlockSMO
        The SMO solver, which is tried first.
    inside : BoxInterior
        The interior-point solver; its `tol` and `max_iter` are those of this solver.

    See Also
    --------
    BlockSMO : The SMO solver.
    BoxInterior : The interior-point solver.

    References
    ----------
    Platt, "Fast training of support vector machines using sequential minimal optimization", in
    "Advances in kernel methods: support vector learning", MIT Press, 1999.

    Ferris and Munson, "Interior-point methods for massive support vector machines", SIAM Journal on
    Optimization, 2002.

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
        """Return True if the budget of SMO is large enough to try it.

        Parameters
        ----------
        n : int
            Number of points.
        m : int
            Number of features.

        Returns
        -------
        bool
            Whether SMO is tried first.
        """
        if n <= _TUNING.max_single_block_points:
            return True
        smallest = _spent(np.empty((0, m)), n * min(n, _TUNING.min_rows), _TUNING.min_steps)
        return smallest <= _smo_budget_seconds(n, m)

    def minimize(
        self,
        data: tuple[ReadableRows, np.ndarray],
        dual: Dual,
        follow: FollowCallback = None,
    ) -> DualSolution:
        """Return the minimum of a dual problem.

        Parameters
        ----------
        data : tuple of (KernelRows or RowsView, ndarray of shape (n, m))
            The rows of K = F F^T, and the features F of the points.
        dual : Dual
            The problem.
        follow : callable or None, default=None
            Called with a `DualProgress` from time to time.

        Returns
        -------
        DualSolution
            The variables, decision values, multipliers and bounds.
        """
        rows, F = data
        stages = [lambda: self.inside.minimize(F, dual, follow)]
        if self.can_afford_smo(*F.shape):
            stages.insert(0, lambda: self._try_smo(rows, F, dual, follow))
        chain = FallbackChain(stages)
        found = chain.run(lambda stage: stage())
        if not chain.given_up:
            return found
        message = "; ".join(filter(None, [chain.given_up[0][1], found.report.message]))
        stop = found.stop if found.stop is StopReason.CONVERGED else StopReason.GIVEN_UP
        return found._replace(report=replace(found.report, message=message), stop=stop)

    def _try_smo(
        self,
        rows: ReadableRows,
        F: np.ndarray,
        dual: Dual,
        follow: FollowCallback,
    ) -> DualSolution:
        """Return the solution of SMO; give up if it exceeds its budget or does not converge."""
        view = rows if isinstance(rows, RowsView) else rows.view()
        budget, max_iter = np.inf, self.pairs.max_iter
        if view.n > _TUNING.max_unlimited_points:
            budget = _smo_budget_seconds(*F.shape)
            steps = int(budget / _STEP_COST.seconds)
            max_iter = steps if max_iter < 0 else min(max_iter, steps)

        def give_up(steps: int) -> GivenUp:
            return GivenUp(
                f"{steps} SMO steps were given up in favour of the interior-point method"
            )

        def check_costs(progress: DualProgress) -> None:
            if follow is not None:
                follow(progress)
            spent = _spent(F, view.counts[0], progress.n_iter)
            if spent > budget and progress.violation > self.tol:
                raise give_up(progress.n_iter)

        found = replace(self.pairs, max_iter=max_iter).minimize(view, dual, check_costs)
        if found.report.status is not Status.CONVERGED:
            raise give_up(found.report.n_iter)
        return found


def _smo_budget_seconds(n: int, m: int) -> float:
    """Return the predicted seconds that SMO may spend on F of shape (n, m)."""
    fraction = _TUNING.smo_budget if n > _TUNING.max_single_block_points else 1.0
    return fraction * BoxInterior.cost(n, m).seconds


def _spent(F: np.ndarray, entries: float, steps: float) -> float:
    """Return the predicted seconds for the given numbers of entries of K and of SMO steps."""
    return (cost_of_entries(None, F, entries) + steps * _STEP_COST).seconds
