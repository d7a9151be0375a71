"""Solvers in turn, the cheap ones first, until one reaches its tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import MemoryBudgetError, NotPositiveDefiniteError
from ..._runtime import check_budget, entry_point
from ...gram import DenseGram, GramOperator
from .._report import Status
from ._cholesky import Cholesky, Factor, check_shift, relative
from ._pcg import PreconditionedFactor

__all__ = ["Cascade"]

_DOUBT = 2.0  # steps taken at most, in units of those expected
_TINY = 1e-10  # a smaller shift, relative to the largest k(x, x), needs a factorisation


@entry_point
@dataclass(frozen=True)
class Cascade:
    """The first of several solvers that reaches its tolerance.

    A solver that does not, or that breaks down, is followed by the next, and the report says so.
    An iterative one is given up before its first step, if the pivots of its preconditioner leave so
    much that more than half of `max_iter` steps are expected; or when its first steps promise more
    than that.  The decision depends on the numbers alone, never on a clock.

    Parameters
    ----------
    solvers : tuple of solvers
        The last one is final: what it warns of or raises is for the caller.
    hold : float
        For more steps than these K is held as an array, if it was not.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Cascade, Cholesky, ConjugateGradient
    >>> X = np.linspace(0, 3, 300)[:, None]
    >>> solver = Cascade((ConjugateGradient(rank=2, max_iter=5), Cholesky()))
    >>> factor = solver.factorize(gram(RBF(0.1), X), shift=1e-3)
    >>> a = factor.solve(np.sin(X[:, 0]))
    >>> factor.report.status.value
    'direct method: exact up to rounding'
    """

    solvers: tuple
    hold: float = np.inf

    def __post_init__(self) -> None:
        if not self.solvers:
            raise ValueError("Cascade needs at least one solver, got none")

    @property
    def storage(self) -> str:
        """How K is best held: as an array if the last solver needs one and none before it does not.

        With tiles to begin with, a stage that wants an array makes one.
        """
        if np.isfinite(self.hold):
            return "tiled"
        return str(getattr(self.solvers[-1], "storage", "dense"))

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Prepare the first solver for K + diag(shift); `overwrite` is for the last alone."""
        return _CascadeFactor(self, gram, check_shift(gram, shift), overwrite)


class _CascadeFactor(Factor):
    _status = Status.CONVERGED
    _factor: Any = None

    def __init__(
        self, cascade: Cascade, gram: GramOperator, shift: np.ndarray, overwrite: bool
    ) -> None:
        super().__init__("", gram.shape[0], gram.dtype)
        self._gram, self._shift, self._overwrite = gram, shift, overwrite
        self._left, self._story, self._hold = list(cascade.solvers), "", cascade.hold
        with np.errstate(over="ignore", invalid="ignore"):  # the solvers look at that
            largest = float(np.max(gram.diagonal(), initial=0.0))
        if np.min(shift, initial=np.inf) <= _TINY * largest:
            self._left = self._left[-1:]  # iterations would not end, and only a factor can tell why
            self._story = f"a shift of {np.min(shift):.1e} is for a factorisation alone. "
        self._next()

    def _next(self) -> None:
        """Factorise with the next solver that can; the last one says why it cannot."""
        while self._factor is None:
            solver, last = self._left[0], len(self._left) == 1
            self.solver = repr(solver)
            if getattr(solver, "storage", "dense") == "dense" and np.isfinite(self._hold):
                self._held()
            try:
                self._factor = solver.factorize(
                    self._gram, self._shift, overwrite=self._overwrite and last
                )
            except (NotPositiveDefiniteError, MemoryBudgetError) as why:
                if last:
                    raise
                self._tell(why)
            self._left.pop(0)

    def _expect(self) -> None:
        """Go on to the next solver if this one can be expected to take too many steps.

        If it may take many, K is held as an array.
        """
        expected = getattr(self._factor, "expected", 0.0)
        most = getattr(getattr(self._factor, "_options", None), "max_iter", None) or np.inf
        if self._left and _DOUBT * expected > most:
            self._give_up(
                f"the pivots leave so much that about {expected:.0f} steps are expected, where "
                f"{most / _DOUBT:.0f} cost as much as the next solver"
            )
        elif expected > self._hold:
            self._factor._gram = self._held()

    def _held(self) -> GramOperator:
        """Hold K as an array from now on."""
        if not hasattr(self._gram, "release"):
            K, n_threads = self._gram, self._gram.n_threads
            owned: dict[str, Any] = {"owned": True, "n_threads": n_threads}
            self._gram = DenseGram.from_array(K.to_array(), K.kernel, K.X, None, **owned)
        return self._gram

    def _give_up(self, why: Any) -> None:
        """Go on to the next solver."""
        self._factor = None  # before another is made: they are large
        self._tell(why)
        self._next()

    def _tell(self, why: Any) -> None:
        name, reason = self.solver.partition("(")[0], str(why).partition(". ")[0]
        self._story += f"{name} was given up: {reason}. "

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        self._next()  # after an exception there may be none
        self._expect()
        while True:
            factor = self._factor
            factor._exponents = self._exponents
            try:
                a, gap = factor._solve(y, patient=patient and not self._left)
            except NotPositiveDefiniteError as why:
                if not self._left:
                    raise
                self._give_up(why)
                continue
            factor._residual = relative(gap, y)
            report = factor.report
            if report.status not in (Status.NOT_CONVERGED, Status.INACCURATE) or not self._left:
                break
            self._give_up(report.message)
        self._status, self._n_iter, self._tol = factor._status, factor._n_iter, factor._tol
        self._advice = factor._advice
        self._message = (self._story + factor._message).strip()
        return a, gap

    def _certificate(self) -> dict[str, Any]:
        return {} if self._factor is None else self._factor._certificate()

    def logdet(self) -> float:
        return self._exact("logdet")

    def inverse_diagonal(self) -> np.ndarray:
        return self._exact("inverse_diagonal")

    def _exact(self, name: str) -> Any:
        """Ask the factor at hand, or a float64 one where that is iterative."""
        self._next()
        if not isinstance(self._factor, PreconditionedFactor):
            return getattr(self._factor, name)()
        budget = getattr(self._factor._options, "max_memory", None)
        what = f"{name} takes a float64 factor of {self.size} points, which"
        check_budget((16 if hasattr(self._gram, "release") else 8) * self.size**2, budget, what)
        return getattr(Cholesky().factorize(self._held(), self._shift), name)()
