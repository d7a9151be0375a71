"""Conjugate gradients preconditioned by randomly pivoted Cholesky: exact, and K is never held.

    S (K + D) S = S K S + mu I,   D = diag(shift),   S = (mu / D)^1/2,   mu = the largest shift,
    S K S ~ F^T F,                P^-1 = S (F^T F + mu I)^-1 S

Once the factor F covers the eigenvalues above mu, the number of steps does not grow with n.
(Díaz, Epperly, Frangella, Tropp and Webber, arXiv 2304.12465.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..._errors import NotPositiveDefiniteError
from ..._runtime import budget_in_bytes, check_budget, entry_point
from ...gram import GramOperator, rpcholesky
from .._cost import Cost
from ._cholesky import Factor, check_shift
from ._in_place import check_points
from ._pcg import PreconditionedFactor, check_stopping
from ._woodbury import ShiftedLowRank

__all__ = ["ConjugateGradient"]

_USUAL = 1.3  # steps taken, in units of those of Chebyshev's bound
_LARGEST = 2**27  # entries of F at most, which are 1 GiB


@entry_point
@dataclass(frozen=True)
class ConjugateGradient:
    """Preconditioned conjugate gradients: exact solutions without the matrix, in a few passes.

    Several right-hand sides go in lockstep: one pass serves all.  The true residual is computed
    every 20 steps and at the end.  The report's certificate bounds the errors of the solution, for
    a positive semidefinite K:

        coefficients   |a - a*|   <=  |r| / min(shift)
        function       |f - f*|_H <=  |D^-1/2 r| / 2,   which is |r| / (2 sqrt(mu)) for one shift

    r being the residual, and f the expansion with the coefficients a.  The largest over the columns
    is given.

    Parameters
    ----------
    rank : int, optional
        Columns of the pivoted Cholesky factor; by default 5 sqrt(n), and at most 1 GiB or a
        quarter of the budget.  0 does without a preconditioner.
    tol : float
        Of the relative residual |y - (K + shift) a| / |y|.  What rounding leaves, in the order
        of 1e-17 lambda_max / shift (more if the diagonal of K varies much), is enough if it is at
        most 1e-6, or 1e-3 for a K in float32; beyond that the solution is called inaccurate.
    max_iter : int, optional
        Passes over K; 500 by default.
    random_state : int, Generator, RandomState or None
        Of the pivots; None stands for 0.
    max_memory : int, str or None
        The budget for what is held beside the Gram; None for half of the machine's memory.
    say : callable, optional
        Told of the progress, in one line of text each time.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ConjugateGradient
    >>> X = np.linspace(0, 3, 2000)[:, None]
    >>> factor = ConjugateGradient().factorize(gram(RBF(), X, storage="tiled"), shift=0.1)
    >>> a = factor.solve(np.sin(X[:, 0]))
    >>> factor.report.residual < 1e-12, factor.report.n_iter < 10
    (True, True)
    """

    rank: int | None = None
    tol: float = 1e-14
    max_iter: int | None = None
    random_state: Any = None
    max_memory: Any = None
    say: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    storage: ClassVar[str] = "tiled"  # how K is best held

    def __post_init__(self) -> None:
        check_stopping(self)
        if self.rank is not None and not self.rank >= 0:
            raise ValueError(f"ConjugateGradient: rank must not be negative, got {self.rank!r}")

    def workspace(self, n: int, columns: int = 1) -> int:
        """Return the bytes needed beside the Gram: the factor, its square, the iterates."""
        rank = self._rank(n)
        return 8 * (n * rank + 10 * rank * rank + 8 * n * columns)

    def cost(self, n: int, read: Cost, columns: int = 1) -> tuple[Cost, Cost]:
        """Return what the preconditioner takes, and a step, if a pass over K takes `read`."""
        r, more = self._rank(n), columns - 1
        prepared = (2.0 * r / n) * read + Cost(thin=3.0 * n * r * r, calls=200)
        step = Cost(read=32.0 * n * r, products=2.0 * n * n * more, thin=4.0 * n * r * more)
        return prepared, read + step + Cost(calls=15)

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Build the preconditioner of K + diag(shift); the Gram is kept.

        Parameters
        ----------
        gram : GramOperator
            Symmetric, held in any way.
        shift : float or ndarray of shape (n,)
            Positive.
        overwrite : bool
            Without effect.

        Raises
        ------
        NotPositiveDefiniteError
            If a shift is 0, or K has a negative eigenvalue that shows.
        MemoryBudgetError
            If the preconditioner does not fit `max_memory`.
        """
        shift = check_shift(gram, shift)
        check_points(gram)
        if not shift.min() > 0:
            raise NotPositiveDefiniteError(
                "conjugate gradients need a positive shift, but the smallest is 0: the number of "
                "steps grows with |K| / shift. Use solver='cholesky', or 'lstsq' for singular K"
            )
        n = gram.shape[0]
        check_budget(self.workspace(n), self.max_memory, f"conjugate gradients on {n} points")
        return _IterativeFactor(self, gram, shift)

    def _rank(self, n: int) -> int:
        if self.rank is not None:
            return min(self.rank, n)
        entries = min(_LARGEST, budget_in_bytes(self.max_memory) // 32)
        return min(n, max(10, min(int(5 * np.sqrt(n)), entries // n)))


def expected_steps(left: float) -> float:
    """Return how many steps reach 1e-14 if the pivots leave eigenvalues of up to `left` shifts.

    Those are about the trace of what is left, divided by the number of pivots: the eigenvalues of
    K fall, and so does the trace.  Chebyshev's bound is then too small on spectra that fall: of
    seven sets of 8000 points six took 1.25 to 1.7 times as many steps.  On a flat spectrum it is
    too large, but there the steps are many.
    """
    root = np.sqrt(1.0 + max(left, 1e-12))
    return float(_USUAL * np.log(2e14) / np.log((root + 1.0) / (root - 1.0)))


class _IterativeFactor(PreconditionedFactor):
    expected = 0.0  # steps
    _advice = (
        "The usual cause is a shift below many eigenvalues of K. Raise rank or max_iter, or try "
        "solver='mixed', which takes 4 n^2 bytes"
    )

    def __init__(self, options: ConjugateGradient, gram: GramOperator, shift: np.ndarray) -> None:
        super().__init__(options, gram, shift)
        self._mu = float(shift.max())
        self._scale = np.sqrt(self._mu / shift)
        F, self._message = np.empty((0, self.size)), ""
        if rank := options._rank(self.size):
            seed = 0 if options.random_state is None else options.random_state
            alike = np.all(shift == self._mu)
            scaled = gram if alike else _Scaled(gram, self._scale)
            partial = rpcholesky(scaled, rank, random_state=seed, n_threads=gram.n_threads)
            F = partial.factor
            self._message = (
                f"{len(F)} pivots leave {partial.trace:.2e} of the trace, "
                f"{partial.trace / self._mu:.2e} shifts"
            )
            self.expected = expected_steps(partial.trace / (len(F) or 1) / self._mu)
        self._note = self._message
        self._bounds: dict[str, float] = {}
        self._P = ShiftedLowRank(F, self._mu, n_threads=gram.n_threads)
        if options.say is not None and self._note:
            options.say(self._note)

    def _check_columns(self, columns: int) -> None:
        needed, budget = self._options.workspace(self.size, columns), self._options.max_memory
        check_budget(needed, budget, f"{columns} columns of {self.size} rows at once")

    def _keep_bounds(self, gap: np.ndarray) -> None:
        self._bounds = {
            "coefficients": self._largest(gap) / float(self._shift.min()),
            "function": 0.5 * self._largest(gap / np.sqrt(self._shift)[:, None]),
        }

    def _largest(self, gap: np.ndarray) -> float:
        """Return the largest norm of a column, in units of the right-hand side."""
        norms = np.linalg.norm(gap, axis=0)
        with np.errstate(over="ignore"):
            return float(np.ldexp(norms, self._exponents).max(initial=0.0))

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        S = self._scale[:, None]
        return S * self._P.solve(S * R)

    def _certificate(self) -> dict[str, Any]:
        return dict(self._bounds)

    def logdet(self) -> NoReturn:
        self._refuse("log det")

    def inverse_diagonal(self) -> NoReturn:
        self._refuse("the diagonal of the inverse")

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplementedError(
            f"conjugate gradients solve systems and do not know {what} of K + shift; use "
            f"Cholesky() (solver='cholesky'), or the determinant of an approximation, "
            f"ShiftedLowRank"
        )


class _Scaled(GramOperator):
    """S K S, as far as pivots need it: blocks and the diagonal."""

    def __init__(self, gram: GramOperator, scale: np.ndarray) -> None:
        self._gram, self._scale = gram, scale
        self.n_threads = gram.n_threads
        super().__init__(gram.kernel, gram.X, None, gram.shape, gram.dtype)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        return self._scale[rows, None] * self._gram.block(rows, cols) * self._scale[cols]

    def diagonal(self) -> np.ndarray:
        return self._scale**2 * np.asarray(self._gram.diagonal(), dtype=float)

    def to_array(self) -> np.ndarray:
        return self.block(slice(None), slice(None))

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        return self._scale[:, None] * np.asarray(self._gram @ (self._scale[:, None] * V))
