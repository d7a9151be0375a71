"""A sequence of linear solvers, tried from cheap to expensive until one converges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import MemoryBudgetError, NotPositiveDefiniteError, check_budget, entry_point
from ...gram import DenseGram, GramOperator
from .._report import Status
from ._cholesky import Cholesky, Factor, check_shift, max_relative_residual
from ._pcg import PreconditionedFactor

__all__ = ["FallbackSolver"]

_STEPS_SAFETY_FACTOR = 2.0  # max_iter must be at least this many times the expected number of steps
# Iterative solvers would not converge for a shift below this, relative to the largest k(x, x).
_MIN_ITERATIVE_SHIFT = 1e-10


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

    solvers: tuple
    hold: float = np.inf

    def __post_init__(self) -> None:
        if not self.solvers:
            raise ValueError("FallbackSolver needs at least one solver, got none")

    @property
    def storage(self) -> str:
        """The recommended storage of K: that of the last solver, or "tiled" if `hold` is finite.

        If `hold` is finite, K is converted to an array when a solver needs one.
        """
        if np.isfinite(self.hold):
            return "tiled"
        return str(getattr(self.solvers[-1], "storage", "dense"))

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Factorise K + diag(shift) with the first solver that succeeds.

        The parameters are those of `Cholesky.factorize`; only the last solver may overwrite the
        array of K.
        """
        return _FallbackFactor(self, gram, check_shift(gram, shift), overwrite)


class _FallbackFactor(Factor):
    """The factor of the current solver, and the solvers that have not been tried yet."""

    _status = Status.CONVERGED
    _factor: Any = None

    def __init__(
        self, cascade: FallbackSolver, gram: GramOperator, shift: np.ndarray, overwrite: bool
    ) -> None:
        super().__init__("", gram.shape[0], gram.dtype)
        self._gram, self._shift, self._overwrite = gram, shift, overwrite
        self._remaining, self._history, self._max_tiled_steps = (
            list(cascade.solvers),
            "",
            cascade.hold,
        )
        with np.errstate(over="ignore", invalid="ignore"):  # the solvers check for overflow
            largest = float(np.max(gram.diagonal(), initial=0.0))
        if np.min(shift, initial=np.inf) <= _MIN_ITERATIVE_SHIFT * largest:
            # Iterative solvers would not converge, and only a factorisation can report why.
            self._remaining = self._remaining[-1:]
            self._history = f"a shift of {np.min(shift):.1e} is too small for iterative solvers. "
        self._ensure_factor()

    def _ensure_factor(self) -> None:
        """Unless there is a factor already, factorise with the next solver that succeeds.

        If the last solver fails, its exception is raised.
        """
        while self._factor is None:
            solver, is_last = self._remaining[0], len(self._remaining) == 1
            self.solver = repr(solver)
            if getattr(solver, "storage", "dense") == "dense" and np.isfinite(
                self._max_tiled_steps
            ):
                self._store_gram()
            try:
                self._factor = solver.factorize(
                    self._gram, self._shift, overwrite=self._overwrite and is_last
                )
            except (NotPositiveDefiniteError, MemoryBudgetError) as error:
                if is_last:
                    raise
                self._record_failure(error)
            self._remaining.pop(0)

    def _check_expected_steps(self) -> None:
        """Switch to the next solver if the current one is expected to take too many steps.

        If it is expected to take more than `hold` steps, K is stored as an array.
        """
        expected_steps = getattr(self._factor, "expected_steps", 0.0)
        max_iter = getattr(getattr(self._factor, "_options", None), "max_iter", None) or np.inf
        if self._remaining and _STEPS_SAFETY_FACTOR * expected_steps > max_iter:
            self._give_up(
                f"the preconditioner predicts about {expected_steps:.0f} steps, but "
                f"{max_iter / _STEPS_SAFETY_FACTOR:.0f} steps cost as much as the next solver"
            )
        elif expected_steps > self._max_tiled_steps:
            self._factor._gram = self._store_gram()

    def _store_gram(self) -> GramOperator:
        """Store K as an array, if it is not stored yet, and return the GramOperator."""
        if not hasattr(self._gram, "release"):
            K, n_threads = self._gram, self._gram.n_threads
            options: dict[str, Any] = {"owned": True, "n_threads": n_threads}
            self._gram = DenseGram.from_array(K.to_array(), K.kernel, K.X, None, **options)
        return self._gram

    def _give_up(self, reason: Any) -> None:
        """Switch to the next solver."""
        self._factor = None  # free the memory before the next factor is computed
        self._record_failure(reason)
        self._ensure_factor()

    def _record_failure(self, reason: Any) -> None:
        """Add the first sentence of the reason for a failure to the message of the report."""
        name, first_sentence = self.solver.partition("(")[0], str(reason).partition(". ")[0]
        self._history += f"{name} was given up: {first_sentence}. "

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        self._ensure_factor()  # there is no factor if an earlier call raised an exception
        self._check_expected_steps()
        while True:
            factor = self._factor
            factor._exponents = self._exponents
            try:
                a, residual = factor._solve(y, patient=patient and not self._remaining)
            except NotPositiveDefiniteError as error:
                if not self._remaining:
                    raise
                self._give_up(error)
                continue
            factor._residual = max_relative_residual(residual, y)
            report = factor.report
            if (
                report.status not in (Status.NOT_CONVERGED, Status.INACCURATE)
                or not self._remaining
            ):
                break
            self._give_up(report.message)
        self._status, self._n_iter, self._tol = factor._status, factor._n_iter, factor._tol
        self._advice = factor._advice
        self._message = (self._history + factor._message).strip()
        return a, residual

    def _certificate(self) -> dict[str, Any]:
        return {} if self._factor is None else self._factor._certificate()

    def logdet(self) -> float:
        return self._from_exact_factor("logdet")

    def inverse_diagonal(self) -> np.ndarray:
        return self._from_exact_factor("inverse_diagonal")

    def _from_exact_factor(self, name: str) -> Any:
        """Call the method `name` of the current factor, and return its result.

        If the current solver is iterative, a float64 Cholesky factor is computed and used.
        """
        self._ensure_factor()
        if not isinstance(self._factor, PreconditionedFactor):
            return getattr(self._factor, name)()
        budget = getattr(self._factor._options, "max_memory", None)
        what = f"{name} needs a float64 factor of {self.size} points, which"
        check_budget((16 if hasattr(self._gram, "release") else 8) * self.size**2, budget, what)
        return getattr(Cholesky().factorize(self._store_gram(), self._shift), name)()
