"""Solvers in turn, the cheap ones first, until one reaches its tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import MemoryBudgetError, NotPositiveDefiniteError
from ..._runtime import check_budget
from ...gram import GramOperator
from .._report import Status
from ._cholesky import Cholesky, Factor, check_shift, relative

__all__ = ["Cascade"]

_TINY = 1e-10  # a smaller shift, relative to the largest k(x, x), needs a factorisation


@dataclass(frozen=True)
class Cascade:
    """The first of several solvers that reaches its tolerance.

    A solver that does not, or that breaks down, is followed by the next, and the report says so.
    An iterative one is given up early, when its first steps promise too many more.  The decision
    depends on the numbers alone, never on a clock.

    Parameters
    ----------
    solvers : tuple of solvers
        The last one is final: what it warns of or raises is for the caller.

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

    def __post_init__(self) -> None:
        if not self.solvers:
            raise ValueError("Cascade needs at least one solver, got none")

    @property
    def storage(self) -> str:
        """How K is best held: as the last solver wants it."""
        return str(getattr(self.solvers[-1], "storage", "dense"))

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Prepare the first solver for K + diag(shift); `overwrite` is for the last alone."""
        return _CascadeFactor(self.solvers, gram, check_shift(gram, shift), overwrite)


class _CascadeFactor(Factor):
    _status = Status.CONVERGED
    _factor: Any = None

    def __init__(
        self, solvers: tuple, gram: GramOperator, shift: np.ndarray, overwrite: bool
    ) -> None:
        super().__init__("", gram.shape[0], gram.dtype)
        self._gram, self._shift, self._overwrite = gram, shift, overwrite
        self._left, self._story = list(solvers), ""
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
            try:
                self._factor = solver.factorize(
                    self._gram, self._shift, overwrite=self._overwrite and last
                )
            except (NotPositiveDefiniteError, MemoryBudgetError) as why:
                if last:
                    raise
                self._tell(why)
            self._left.pop(0)

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
        try:
            return getattr(self._factor, name)()
        except NotImplementedError:
            budget = getattr(self._factor._options, "max_memory", None)
            what = f"{name} takes a float64 factor of {self.size} points, which"
            check_budget(8 * self.size**2, budget, what)
            return getattr(Cholesky().factorize(self._gram, self._shift), name)()
