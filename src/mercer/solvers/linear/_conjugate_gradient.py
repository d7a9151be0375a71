"""Conjugate gradients with a randomly pivoted Cholesky preconditioner, without storing K.

The scaling S makes all shifts equal, and P is the preconditioner:

    S (K + D) S = S K S + mu I,   D = diag(shift),   S = (mu / D)^1/2,   mu = the largest shift,
    S K S ~ F^T F,                P^-1 = S (F^T F + mu I)^-1 S

Once F^T F captures the eigenvalues of S K S above mu, the number of steps does not grow with n
(Díaz, Epperly, Frangella, Tropp and Webber, arXiv 2304.12465).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..._core import (
    MemoryLimit,
    NotPositiveDefiniteError,
    ProgressCallback,
    RandomState,
    budget_in_bytes,
    check_budget,
    entry_point,
)
from ...gram import GramOperator, rpcholesky
from .._cost_model import Cost
from ._cholesky import Factor, check_points, check_shift
from ._low_rank_systems import ShiftedLowRank
from ._pcg import PreconditionedFactor, check_stopping_criteria

_STEPS_PER_CHEBYSHEV_STEP = 1.3  # ratio of the expected number of steps to Chebyshev's bound
_MAX_FACTOR_ENTRIES = 2**27  # by default, F has at most this many entries: 1 GiB in float64


@entry_point
@dataclass(frozen=True)
class ConjugateGradient:
    """Preconditioned conjugate gradients for (K + diag(shift)) a = y.

    Prefer it to `Cholesky` if K does not fit the memory, or if the shift is not tiny compared with
    the eigenvalues of K, so that few steps suffice.  The solution is as exact as that of a
    factorisation, but K need not be stored: every step evaluates K again, tile by tile, for all
    right-hand sides at once.  The true residual is computed every 20 steps and at the end.  If K is
    positive semidefinite, the certificate of the report bounds the errors of the solution:

        coefficients   |a - a*|   <=  |r| / min(shift)
        function       |f - f*|_H <=  |D^-1/2 r| / 2

    Here a* is the exact solution, r the residual, D = diag(shift), and f and f* are the functions
    with the coefficients a and a*.  If all shifts equal mu, the second bound is
    |r| / (2 sqrt(mu)).  The certificate contains the largest bound over the columns of y.

    Parameters
    ----------
    rank : int or None, default=None
        Rank of the pivoted Cholesky factor.  None means 5 sqrt(n), limited such that the factor
        takes at most 1 GiB and a quarter of the memory budget.  0 disables the preconditioner.  A
        higher rank reduces the number of steps, but the factor takes O(n rank^2) operations.
    tol : float, default=1e-14
        Relative residual |y - (K + shift) a| / |y| at which the iteration stops.  Rounding may
        prevent that: it causes a residual of about 1e-17 lambda_max / shift, or more if the
        diagonal of K varies much.  Such a residual is accepted up to 1e-6 (1e-3 for a K in
        float32); above that, the solution is reported as inaccurate.
    max_iter : int or None, default=None
        Largest number of steps, each of which is a pass over K; None means 500.
    random_state : int, Generator, RandomState or None, default=None
        Seed for the choice of pivots; None stands for 0.
    max_memory : int, str or None, default=None
        Memory budget for everything but K; None for half of the memory of the computer.
    log : callable or None, default=None
        Called with a line of text that describes the progress.

    See Also
    --------
    MixedCholesky : Fewer steps for a tiny shift, if 4 n^2 bytes fit the memory.
    conjugate_gradients : The iteration for any matrix.
    mercer.gram.rpcholesky : The factor of the preconditioner.

    References
    ----------
    Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", Journal of
    Research of the National Bureau of Standards, 1952.

    Díaz, Epperly, Frangella, Tropp and Webber, "Robust, randomized preconditioning for kernel ridge
    regression", arXiv:2304.12465.

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
    random_state: RandomState = None
    max_memory: MemoryLimit = None
    log: ProgressCallback | None = field(default=None, repr=False, compare=False)
    storage: ClassVar[str] = "tiled"  # the recommended storage of K

    def __post_init__(self) -> None:
        check_stopping_criteria(self)
        if self.rank is not None and not self.rank >= 0:
            raise ValueError(f"ConjugateGradient: rank must not be negative, got {self.rank!r}")

    def workspace(self, n: int, columns: int = 1) -> int:
        """Return the memory for the preconditioner and the iterates, without K.

        Parameters
        ----------
        n : int
            Number of points.
        columns : int, default=1
            Number of right-hand sides.

        Returns
        -------
        int
            Number of bytes.
        """
        rank = self._rank(n)
        return 8 * (n * rank + 10 * rank * rank + 8 * n * columns)

    def cost(self, n: int, read: Cost, columns: int = 1) -> tuple[Cost, Cost]:
        """Predict the costs of the preconditioner and of one step.

        Parameters
        ----------
        n : int
            Number of points.
        read : Cost
            Cost of one pass over K.
        columns : int, default=1
            Number of right-hand sides.

        Returns
        -------
        setup : Cost
            Cost of the preconditioner.
        step : Cost
            Cost of one step.
        """
        r, extra = self._rank(n), columns - 1
        setup = (2.0 * r / n) * read + Cost(thin=3.0 * n * r * r, calls=200)
        step = Cost(read=32.0 * n * r, products=2.0 * n * n * extra, thin=4.0 * n * r * extra)
        return setup, read + step + Cost(calls=15)

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Compute the preconditioner of K + diag(shift).

        Parameters
        ----------
        gram : GramOperator
            The symmetric matrix K, stored or not.  It is not changed, but `solve` uses it later.
        shift : float or ndarray of shape (n,), default=0.0
            Positive numbers that are added to the diagonal of K; the default 0 is refused.
        overwrite : bool, default=False
            Ignored.

        Returns
        -------
        Factor
            The preconditioner; `solve` iterates.  It has neither log determinants nor diagonals of
            the inverse.

        Raises
        ------
        NotPositiveDefiniteError
            If a shift is 0, or the pivots reveal that K is not positive semidefinite.
        MemoryBudgetError
            If the preconditioner does not fit `max_memory`.
        """
        shift = check_shift(gram, shift)
        check_points(gram)
        if not shift.min() > 0:
            raise NotPositiveDefiniteError(
                "conjugate gradients need a positive shift, but the smallest is 0: the number of "
                "steps grows with |K| / shift. Use solver='cholesky', or 'lstsq' if K is singular"
            )
        n = gram.shape[0]
        check_budget(self.workspace(n), self.max_memory, f"conjugate gradients on {n} points")
        return _IterativeFactor(self, gram, shift)

    def _rank(self, n: int) -> int:
        if self.rank is not None:
            return min(self.rank, n)
        entries = min(_MAX_FACTOR_ENTRIES, budget_in_bytes(self.max_memory) // 32)
        return min(n, max(10, min(int(5 * np.sqrt(n)), entries // n)))


def expected_steps(ratio: float) -> float:
    """Return the expected number of CG steps to a relative residual of 1e-14.

    `ratio` is an estimate of the largest eigenvalue of K - F^T F, relative to the shift, for a
    preconditioner F^T F + shift I.  The caller estimates this eigenvalue by the trace of K - F^T F
    divided by the number of pivots, which assumes that the spectrum of K decays.  With this
    estimate, Chebyshev's bound is too small: on six of seven datasets of 8000 points, 1.25 to 1.7
    times as many steps were needed.  It is therefore multiplied by a constant.
    """
    root = np.sqrt(1.0 + max(ratio, 1e-12))
    return float(_STEPS_PER_CHEBYSHEV_STEP * np.log(2e14) / np.log((root + 1.0) / (root - 1.0)))


class _IterativeFactor(PreconditionedFactor):
    """Conjugate gradients with the low-rank preconditioner of `ConjugateGradient`."""

    _options: ConjugateGradient

    expected_steps = 0.0  # 0 means unknown: without a preconditioner there is no estimate
    _advice = (
        "The usual cause is a shift that is smaller than many eigenvalues of K. Increase rank or "
        "max_iter, or try solver='mixed', which needs 4 n^2 bytes"
    )

    def __init__(self, options: ConjugateGradient, gram: GramOperator, shift: np.ndarray) -> None:
        super().__init__(options, gram, shift)
        self._mu = float(shift.max())
        self._scale = np.sqrt(self._mu / shift)
        F, self._message = np.empty((0, self.size)), ""
        if rank := options._rank(self.size):
            seed = 0 if options.random_state is None else options.random_state
            equal_shifts = np.all(shift == self._mu)
            scaled = gram if equal_shifts else _Scaled(gram, self._scale)
            pivoted = rpcholesky(scaled, rank, random_state=seed, n_threads=gram.n_threads)
            F = pivoted.factor
            self._message = (
                f"{len(F)} pivots; the trace of the residual is {pivoted.trace:.2e}, "
                f"{pivoted.trace / self._mu:.2e} times the shift"
            )
            self.expected_steps = expected_steps(pivoted.trace / (len(F) or 1) / self._mu)
        self._note = self._message
        self._bounds: dict[str, float] = {}
        self._P = ShiftedLowRank(F, self._mu, n_threads=gram.n_threads)
        if options.log is not None and self._note:
            options.log(self._note)

    def _check_columns(self, columns: int) -> None:
        needed, budget = self._options.workspace(self.size, columns), self._options.max_memory
        check_budget(needed, budget, f"{columns} right-hand sides of {self.size} rows")

    def _store_bounds(self, residual: np.ndarray) -> None:
        self._bounds = {
            "coefficients": self._largest_norm(residual) / float(self._shift.min()),
            "function": 0.5 * self._largest_norm(residual / np.sqrt(self._shift)[:, None]),
        }

    def _largest_norm(self, residual: np.ndarray) -> float:
        """Return the largest norm of a column, in the original scale of the right-hand side."""
        norms = np.linalg.norm(residual, axis=0)
        with np.errstate(over="ignore"):
            return float(np.ldexp(norms, self._exponents).max(initial=0.0))

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        S = self._scale[:, None]
        solution: np.ndarray = S * self._P.solve(S * R)
        return solution

    def _certificate(self) -> dict[str, Any]:
        return dict(self._bounds)

    def logdet(self) -> NoReturn:
        self._refuse("log det")

    def inverse_diagonal(self) -> NoReturn:
        self._refuse("the diagonal of the inverse")

    def _refuse(self, quantity: str) -> NoReturn:
        raise NotImplementedError(
            f"conjugate gradients only solve systems and cannot compute {quantity} of K + shift; "
            f"use Cholesky() (solver='cholesky'), or ShiftedLowRank for the determinant of a "
            f"low-rank approximation"
        )


class _Scaled(GramOperator):
    """The matrix S K S for a diagonal matrix S, given by its diagonal `scale`."""

    def __init__(self, gram: GramOperator, scale: np.ndarray) -> None:
        self._gram, self._scale = gram, scale
        super().__init__(gram.kernel, gram.X, None, gram.shape, gram.dtype, gram.n_threads)

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        block: np.ndarray = (
            self._scale[rows, None] * self._gram.block(rows, cols) * self._scale[cols]
        )
        return block

    def diagonal(self) -> np.ndarray:
        diagonal: np.ndarray = self._scale**2 * np.asarray(self._gram.diagonal(), dtype=float)
        return diagonal

    def to_array(self) -> np.ndarray:
        return self.block(slice(None), slice(None))

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        product: np.ndarray = self._scale[:, None] * np.asarray(
            self._gram @ (self._scale[:, None] * V)
        )
        return product
