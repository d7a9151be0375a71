"""(K + diag(shift)) a = y.

The shift belongs to the solver, not to the operator: the regularised system is *the* kernel
problem.  A scalar shift is the ridge; a vector carries sample weights, shift_i = alpha / w_i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._errors import NotPositiveDefiniteError, warn_caller
from ..._runtime import Stopwatch, entry_point
from ..._runtime.linalg import eigh, lapack
from ...gram import GramOperator
from .._cost import Cost
from .._report import Report, Status, judged
from ._in_place import Triangle, matrix_of

__all__ = [
    "Cholesky",
    "Factor",
    "LeastSquares",
    "check_shift",
    "lapack_routine",
    "relative",
    "warn_inaccurate",
]


@entry_point
class Factor(ABC):
    """A factorisation of A = K + diag(shift), ready to solve with.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Cholesky, Factor
    >>> factor = Cholesky().factorize(gram("Linear()", np.eye(2)), shift=1.0)
    >>> isinstance(factor, Factor), factor.solve(np.array([2.0, 4.0]))
    (True, array([1., 2.]))
    >>> round(factor.logdet(), 6)
    1.386294
    """

    solver: str
    _status: Status  # how the method ended
    _message = ""
    _n_iter = 0
    _tol = 0.0  # the relative residual at which an iteration stops

    def __init__(self, solver: str, size: int, dtype: Any) -> None:
        self.solver, self.size, self._dtype = solver, size, dtype
        self._watch = Stopwatch()
        self._residual = float("nan")
        self._exponents: Any = 0  # the powers of 2 that the columns were divided by

    def solve(self, y: np.ndarray) -> np.ndarray:
        """Return A^-1 y for one or several columns; the residual goes into the report."""
        y = np.asarray(y)
        columns = y[:, None] if y.ndim == 1 else y
        if columns.ndim != 2 or len(columns) != self.size:
            raise ValueError(
                f"the right-hand side has shape {y.shape}, but the system has {self.size} rows"
            )
        self._residual = float("nan")  # not known until the system is solved
        scaled, self._exponents = unit_columns(columns)
        a, gap = self._solve(scaled)
        a = np.ldexp(a, self._exponents)
        self._residual = relative(gap, scaled)
        report = self.report
        if report.status is Status.NOT_CONVERGED:
            warn_caller(
                f"{self.solver.split('(')[0]} did not converge: {report.message}. {self._advice}",
                ConvergenceWarning,
            )
        elif report.status is Status.INACCURATE:
            warn_inaccurate(report)
        return a[:, 0] if y.ndim == 1 else a

    @abstractmethod
    def logdet(self) -> float:
        """Return log det A."""

    @abstractmethod
    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of A^-1."""

    @property
    def report(self) -> Report:
        """What has been done so far, with the residual of the last solve."""
        status, message = Status.PENDING, self._message
        if not np.isnan(self._residual):
            status, message = judged(self._status, message, self._residual, self._tol, self._dtype)
        return Report(
            solver=self.solver,
            status=status,
            n_iter=self._n_iter,
            residual=self._residual,
            seconds=self._watch.seconds,
            message=message,
            certificate=self._certificate(),
        )

    def _certificate(self) -> dict[str, Any]:
        return {}

    _advice = ""  # what to try when it did not converge

    @abstractmethod
    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return a and the true gap y - A a; if not patient, give up early what will take long."""


def unit_columns(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return y with columns between 1/2 and 1 in size, and the powers of 2 they were divided by.

    So norms neither overflow nor vanish, and no bit is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import unit_columns
    >>> unit_columns(np.array([[6.0], [-2.0]]))
    (array([[ 0.75],
           [-0.25]]), array([3], dtype=int32))
    """
    y = y if y.dtype.kind == "f" else y.astype(float)
    largest = np.abs(y).max(axis=0, initial=0.0)
    if not np.all(np.isfinite(largest)):
        raise ValueError("the right-hand side has entries that are not finite")
    exponents = np.frexp(largest)[1]
    return np.ldexp(y, -exponents), exponents


def warn_inaccurate(report: Report) -> None:
    """Say that a system has a large residual, and what to do.

    Examples
    --------
    >>> import warnings
    >>> from mercer.solvers import Report, Status, warn_inaccurate
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_inaccurate(Report("Cholesky()", Status.INACCURATE, 0, 1e-3, 0.0, "1e-3 is left"))
    >>> str(caught[0].message)[:23]
    'Cholesky: 1e-3 is left.'
    """
    warn_caller(
        f"{report.solver.split('(')[0]}: {report.message}. The usual cause is a shift that is "
        f"hidden by the rounding of K. Take a larger alpha, scale the features, or take weights "
        f"that differ less",
        ConvergenceWarning,
    )


def relative(gap: np.ndarray, y: np.ndarray) -> float:
    """Return the largest |gap| / |y| of a column; inf if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import relative
    >>> relative(np.array([[0.1, 0.0]]), np.array([[2.0, 1.0]]))
    0.05
    """
    size = np.linalg.norm(y, axis=0)
    ratio = np.linalg.norm(gap, axis=0) / np.where(size > 0, size, 1.0)
    return float(np.where(np.isnan(ratio), np.inf, ratio).max(initial=0.0))


@entry_point
@dataclass(frozen=True)
class Cholesky:
    """A = L L^T, in place: n^3/3 operations, no memory beside that of K.

    LAPACK writes L over one triangle; the other still holds K, from which the true residual is
    computed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import Cholesky
    >>> factor = Cholesky().factorize(gram(Linear(), [[1.0], [2.0]]), shift=1.0)
    >>> factor.solve(np.array([1.0, 2.0])).round(4)
    array([0.1667, 0.3333])
    """

    storage: ClassVar[str] = "dense"  # how K is best held

    @staticmethod
    def cost(n: int, read: Cost, columns: int = 1) -> Cost:
        """Return what n points take, K being an array that is read some times."""
        return Cost(factors=n**3 / 3.0, products=6.0 * n * n * columns, calls=20) + 4.0 * read

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Factorise K + diag(shift).

        Parameters
        ----------
        gram : GramOperator
            Symmetric.  A TiledGram is turned into an array, with a DensifyWarning.
        shift : float or ndarray of shape (n,)
            Non-negative.
        overwrite : bool
            Work in the Gram's own array, which is then gone; see DenseGram.release.

        Raises
        ------
        NotPositiveDefiniteError
            If a pivot is not positive.
        """
        shift = check_shift(gram, shift)  # checked before the array of the Gram is overwritten
        return _CholeskyFactor(repr(self), matrix_of(gram, overwrite), shift)


class _CholeskyFactor(Factor):
    _status = Status.DIRECT

    def __init__(self, solver: str, K: np.ndarray, shift: np.ndarray) -> None:
        super().__init__(solver, len(K), K.dtype)
        self._A = Triangle(K, shift)
        size = lapack_routine("lange", K)("1", self._A.work)
        self._L, info = lapack_routine("potrf", K)(self._A.work, lower=1, clean=0, overwrite_a=1)
        if info > 0:
            raise self._failure(f"pivot {info} of {len(K)} is not positive", size, shift)
        self._rcond, _ = lapack_routine("pocon", K)(self._L, size, uplo="L")
        if self._rcond < np.finfo(K.dtype).eps:
            raise self._failure(
                f"the reciprocal condition number is {self._rcond:.1e}, below rounding", size, shift
            )

    @staticmethod
    def _failure(what: str, size: float, shift: np.ndarray) -> NotPositiveDefiniteError:
        relative = float(np.min(shift)) / max(float(size), 1e-300)
        return NotPositiveDefiniteError(
            f"K + shift is not positive definite: {what}. The usual cause is a shift that is too "
            f"small ({relative:.1e} of |K|) for repeated or very close points, or a kernel that "
            f"is not positive semidefinite. Try a larger alpha, or solver='lstsq'"
        )

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        a, _ = lapack_routine("potrs", self._L)(
            self._L, y.astype(self._L.dtype, copy=False), lower=1
        )
        a = np.ascontiguousarray(a)
        return a, y - self._A.times(a)

    def _certificate(self) -> dict[str, Any]:
        return {"rcond": float(self._rcond)}

    def logdet(self) -> float:
        return 2.0 * float(np.sum(np.log(self._L.diagonal().astype(float))))

    def inverse_diagonal(self) -> np.ndarray:
        # (A^-1)_ii = |column i of L^-1|^2, by blocks of columns: no second matrix
        n = len(self._L)
        out = np.empty(n)
        trtrs = lapack_routine("trtrs", self._L)
        for start in range(0, n, 256):
            stop = min(start + 256, n)
            E = np.zeros((n, stop - start), dtype=self._L.dtype, order="F")
            E[np.arange(start, stop), np.arange(stop - start)] = 1.0
            columns, _ = trtrs(self._L, E, lower=1, overwrite_b=1)
            out[start:stop] = np.einsum("ij,ij->j", columns, columns)
        return out


@entry_point
@dataclass(frozen=True)
class LeastSquares:
    """The a of least norm among those that minimise |y - (K + diag(shift)) a|, by eigenvalues.

    For singular systems: eigenvalues below `rcond` times the largest count as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import LeastSquares
    >>> factor = LeastSquares().factorize(gram(Linear(), [[1.0], [2.0]]))
    >>> factor.solve(np.array([1.0, 2.0])).round(4)
    array([0.2, 0.4])
    """

    rcond: float | None = None
    storage: ClassVar[str] = "dense"

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Decompose K + diag(shift); see Cholesky.factorize."""
        shift = check_shift(gram, shift)  # checked before the array of the Gram is overwritten
        return _SpectralFactor(repr(self), matrix_of(gram, overwrite), shift, self.rcond)


class _SpectralFactor(Factor):
    _status = Status.DIRECT

    def __init__(self, solver: str, K: np.ndarray, shift: np.ndarray, rcond: float | None) -> None:
        super().__init__(solver, len(K), K.dtype)
        self._A = Triangle(K, shift)
        self._values, self._vectors = eigh(
            self._A.work, lower=True, overwrite_a=True, check_finite=False
        )
        size = np.abs(self._values).max(initial=0.0)
        floor = size * (len(K) * np.finfo(K.dtype).eps if rcond is None else rcond)
        kept = np.abs(self._values) > floor
        self._inverses = np.divide(1.0, self._values, out=np.zeros(len(K)), where=kept)
        lost = int(np.sum(~kept))
        if lost:
            self._status = Status.SINGULAR
            self._message = f"{lost} of {len(K)} eigenvalues counted as 0 (below {floor:.1e})"

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        a = self._vectors @ (self._inverses[:, None] * (self._vectors.T @ y))
        return a, y - self._A.times(a)

    def logdet(self) -> float:
        if not np.all(self._values > 0):
            raise NotPositiveDefiniteError(
                f"log det needs a positive definite matrix, but the smallest eigenvalue is "
                f"{self._values.min(initial=0.0):.3g}; try a larger shift"
            )
        return float(np.sum(np.log(self._values)))

    def inverse_diagonal(self) -> np.ndarray:
        return np.einsum("ij,j,ij->i", self._vectors, self._inverses, self._vectors)


def check_shift(gram: GramOperator, shift: Any) -> np.ndarray:
    """Return the shift as one number per point."""
    n = gram.shape[0]
    shift = np.asarray(shift, dtype=float)
    if shift.shape not in ((), (n,)):
        raise ValueError(f"shift must be a number or have shape ({n},), got {shift.shape}")
    if not np.all(np.isfinite(shift)) or np.any(shift < 0):
        raise ValueError(f"shift must be finite and non-negative, got a minimum of {shift.min()}")
    return shift if shift.ndim else np.full(n, shift)


def lapack_routine(name: str, like: np.ndarray) -> Any:
    """Return the LAPACK routine of this name for the precision of an array."""
    return getattr(lapack, ("d" if like.dtype == np.float64 else "s") + name)
