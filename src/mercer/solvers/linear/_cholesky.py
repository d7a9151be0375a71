"""Direct solvers for the regularised kernel system (K + diag(shift)) a = y.

The shift is an argument of the solver and not part of the kernel matrix K, because nearly every
kernel method solves such a system.  A scalar shift is the ridge penalty alpha; a vector
shift_i = alpha / w_i takes sample weights w into account.

LAPACK reads and overwrites only one triangle of a symmetric matrix.  The other triangle still
contains the original, so that products with it, and true residuals, need no second copy
(`InPlaceSymmetric`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    DensifyWarning,
    NotPositiveDefiniteError,
    Stopwatch,
    entry_point,
    not_finite_error,
    warn_caller,
)
from ..._core.linalg import blas, eigh, lapack
from ...gram import CentredGram, GramOperator, uncentred
from .._cost_model import Cost
from .._report import Report, Status, status_of


@entry_point
class Factor(ABC):
    """Base class of the factorisations of A = K + diag(shift), which solve A a = y.

    Linear solvers return it from `factorize`; the same factor serves any number of right-hand
    sides.  For iterative solvers, it is a preconditioner, and `solve` iterates.  `report` contains
    the true residual of the last solve.

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
    _status: Status  # the status before the residual is checked
    _message = ""
    _n_iter = 0
    _tol = 0.0  # the relative residual at which an iteration stops

    def __init__(self, solver: str, size: int, dtype: Any) -> None:
        self.solver, self.size, self._dtype = solver, size, dtype
        self._watch = Stopwatch()
        self._residual = float("nan")
        self._exponents: Any = 0  # column j of the right-hand side was divided by 2**_exponents[j]

    def solve(self, y: np.ndarray) -> np.ndarray:
        """Return A^-1 y, and record the true residual in the report.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, q)
            One or several right-hand sides.

        Returns
        -------
        a : ndarray of shape (n,) or (n, q)
            The solution, of the same shape as y.

        Warns
        -----
        ConvergenceWarning
            If the method did not converge, or the residual is larger than rounding can explain.
        """
        y = np.asarray(y)
        columns = y[:, None] if y.ndim == 1 else y
        if columns.ndim != 2 or len(columns) != self.size:
            raise ValueError(
                f"the right-hand side has shape {y.shape}, but the system has {self.size} rows"
            )
        self._residual = float("nan")  # unknown until the system is solved
        scaled, self._exponents = normalise_columns(columns)
        a, residual = self._solve(scaled)
        a = np.ldexp(a, self._exponents)
        self._residual = max_relative_residual(residual, scaled)
        report = self.report
        if report.status is Status.NOT_CONVERGED:
            warn_caller(
                f"{self.solver.split('(')[0]} did not converge: {report.message}. {self._advice}",
                ConvergenceWarning,
            )
        elif report.status is Status.INACCURATE:
            warn_inaccurate(report)
        solution: np.ndarray = a[:, 0] if y.ndim == 1 else a
        return solution

    @abstractmethod
    def logdet(self) -> float:
        """Return log det A.

        Returns
        -------
        float
            The logarithm of the determinant.

        Raises
        ------
        NotPositiveDefiniteError
            If A is singular or indefinite.
        NotImplementedError
            If the solver does not factorise A.
        """

    @abstractmethod
    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of A^-1, which leave-one-out errors need.

        Returns
        -------
        ndarray of shape (n,)
            The entries (A^-1)_ii.
        """

    @property
    def report(self) -> Report:
        """The report of the last solve; its status is PENDING before the first solve."""
        status, message = Status.PENDING, self._message
        if not np.isnan(self._residual):
            residual, tol = self._residual, self._tol
            status, message = status_of(self._status, message, residual, tol, self._dtype)
        outcome = (status, self._n_iter, self._residual, self._watch.seconds, message)
        return Report(self.solver, *outcome, self._certificate())

    def _certificate(self) -> dict[str, Any]:
        return {}

    _advice = ""  # what the user can try if the solver did not converge

    @abstractmethod
    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution a of A a = y, and the true residual y - A a.

        If `patient` is False, an iterative method gives up early when its first steps show that it
        would take too many steps.
        """


def normalise_columns(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale each column of y by a power of 2, so that its largest entry is between 1/2 and 1.

    This avoids overflow and underflow of norms.  Scaling by powers of 2 causes no rounding errors.

    Parameters
    ----------
    y : ndarray of shape (n, q)

    Returns
    -------
    scaled : ndarray of shape (n, q)
    exponents : ndarray of int of shape (q,)
        The exponents for which y = scaled * 2**exponents.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import normalise_columns
    >>> normalise_columns(np.array([[6.0], [-2.0]]))
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
    """Warn that the solution of a linear system has a large residual.

    Examples
    --------
    >>> import warnings
    >>> from mercer.solvers import Report, Status, warn_inaccurate
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_inaccurate(Report("Cholesky()", Status.INACCURATE, 0, 1e-3, 0.0, "residual 1e-3"))
    >>> str(caught[0].message)[:24]
    'Cholesky: residual 1e-3.'
    """
    warn_caller(
        f"{report.solver.split('(')[0]}: {report.message}. The usual cause is a shift that is "
        f"smaller than the rounding errors of K. Increase alpha, scale the features, or use "
        f"weights that differ less",
        ConvergenceWarning,
    )


def max_relative_residual(residual: np.ndarray, y: np.ndarray) -> float:
    """Return the largest relative residual |y - A a| / |y| over the columns.

    The result is inf if a residual is NaN.  Where a column of y is 0, the absolute residual is
    used.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import max_relative_residual
    >>> max_relative_residual(np.array([[0.1, 0.0]]), np.array([[2.0, 1.0]]))
    0.05
    """
    size = np.linalg.norm(y, axis=0)
    ratio = np.linalg.norm(residual, axis=0) / np.where(size > 0, size, 1.0)
    return float(np.where(np.isnan(ratio), np.inf, ratio).max(initial=0.0))


@entry_point
@dataclass(frozen=True)
class Cholesky:
    """Cholesky factorisation of A = K + diag(shift): direct, and exact up to rounding.

    It solves (K + diag(shift)) a = y, the linear system of kernel ridge regression and Gaussian
    processes.  Prefer it for up to several thousand points.  For more points, `MixedCholesky` needs
    half of the memory, and `ConjugateGradient` does not store K at all.  A = L L^T takes n^3 / 3
    operations and, if the array of K may be overwritten, no additional memory: LAPACK writes L to
    one triangle of the array.  The other triangle still contains K, from which the true residual is
    computed.

    See Also
    --------
    ConjugateGradient : Solve the system without storing K.
    MixedCholesky : A float32 factor with float64 accuracy.
    LeastSquares : Solve a singular system.

    References
    ----------
    Golub and Van Loan, "Matrix computations", 4th edition, Johns Hopkins University Press, 2013,
    section 4.2.

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

    storage: ClassVar[str] = "dense"  # the recommended storage of K

    @staticmethod
    def cost(n: int, read: Cost, columns: int = 1) -> Cost:
        """Predict the cost of factorising and solving.

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
        Cost
            The expected work.
        """
        return Cost(factors=n**3 / 3.0, products=6.0 * n * n * columns, calls=20) + 4.0 * read

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Factorise K + diag(shift).

        Parameters
        ----------
        gram : GramOperator
            The symmetric matrix K.  A TiledGram is converted to an array, with a DensifyWarning.
        shift : float or ndarray of shape (n,), default=0.0
            Non-negative numbers that are added to the diagonal of K.
        overwrite : bool, default=False
            Overwrite the array of `gram` instead of copying it.  `gram` cannot be used afterwards;
            see `DenseGram.release`.

        Returns
        -------
        Factor
            The factor; it also computes log determinants and diagonals of the inverse.

        Raises
        ------
        NotPositiveDefiniteError
            If a pivot is not positive, or the matrix is singular to working precision.
        """
        return self._factorize(gram, shift, overwrite)

    def lower_factor(
        self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False
    ) -> np.ndarray:
        """Return the lower Cholesky factor L of K + diag(shift).

        The parameters and errors are those of `factorize`.

        Parameters
        ----------
        gram : GramOperator
            The symmetric matrix K.
        shift : float or ndarray of shape (n,), default=0.0
            Non-negative numbers that are added to the diagonal of K.
        overwrite : bool, default=False
            Overwrite the array of `gram` instead of copying it.

        Returns
        -------
        ndarray of shape (n, n)
            L in the lower triangle, in Fortran order; the upper triangle is undefined.
        """
        L: np.ndarray = self._factorize(gram, shift, overwrite).L
        return L

    def _factorize(self, gram: GramOperator, shift: Any, overwrite: bool) -> _CholeskyFactor:
        shift = check_shift(gram, shift)  # check now, before the array of K is overwritten
        return _CholeskyFactor(repr(self), gram_to_array(gram, overwrite), shift)


class _CholeskyFactor(Factor):
    """The Cholesky factor L of K + diag(shift), in one triangle of the array of K."""

    _status = Status.DIRECT

    def __init__(self, solver: str, K: np.ndarray, shift: np.ndarray) -> None:
        super().__init__(solver, len(K), K.dtype)
        self._A = InPlaceSymmetric(K, shift)
        norm = lapack_routine("lange", K)("1", self._A.work)
        self.L, info = lapack_routine("potrf", K)(self._A.work, lower=1, clean=0, overwrite_a=1)
        if info > 0:
            raise self._failure(f"pivot {info} of {len(K)} is not positive", norm, shift)
        self._rcond, _ = lapack_routine("pocon", K)(self.L, norm, uplo="L")
        if self._rcond < np.finfo(K.dtype).eps:
            raise self._failure(
                f"the reciprocal condition number is {self._rcond:.1e}, below machine epsilon",
                norm,
                shift,
            )

    @staticmethod
    def _failure(cause: str, norm: float, shift: np.ndarray) -> NotPositiveDefiniteError:
        relative_shift = float(np.min(shift)) / max(float(norm), 1e-300)
        return NotPositiveDefiniteError(
            f"K + shift is not positive definite: {cause}. The usual cause is a shift that is too "
            f"small ({relative_shift:.1e} of |K|) for repeated or very close points, or a kernel "
            f"that is not positive semidefinite. Try a larger alpha, or solver='lstsq'"
        )

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        rhs = y.astype(self.L.dtype, copy=False)
        a, _ = lapack_routine("potrs", self.L)(self.L, rhs, lower=1)
        a = np.ascontiguousarray(a)
        return a, y - self._A.times(a)

    def _certificate(self) -> dict[str, Any]:
        return {"rcond": float(self._rcond)}

    def logdet(self) -> float:
        return 2.0 * float(np.sum(np.log(self.L.diagonal().astype(float))))

    def inverse_diagonal(self) -> np.ndarray:
        # (A^-1)_ii = |column i of L^-1|^2.  Blocks of columns avoid a second n x n matrix.
        n = len(self.L)
        out = np.empty(n)
        trtrs = lapack_routine("trtrs", self.L)
        for start in range(0, n, 256):
            stop = min(start + 256, n)
            E = np.zeros((n, stop - start), dtype=self.L.dtype, order="F")
            E[np.arange(start, stop), np.arange(stop - start)] = 1.0
            columns, _ = trtrs(self.L, E, lower=1, overwrite_b=1)
            out[start:stop] = np.einsum("ij,ij->j", columns, columns)
        return out


@entry_point
@dataclass(frozen=True)
class LeastSquares:
    """Minimum-norm least-squares solution of (K + diag(shift)) a = y; the matrix may be singular.

    Prefer it if the shift is 0 and K is singular, for example because points coincide; otherwise
    `Cholesky` is much faster.  The solver computes all eigenvalues and eigenvectors.
    Eigenvalues whose absolute value is at most `rcond` times the largest one are treated as 0.

    Parameters
    ----------
    rcond : float or None, default=None
        Relative cutoff for eigenvalues; None means n times machine epsilon.  A larger value
        suppresses components that are determined by noise.

    See Also
    --------
    Cholesky : Solve a positive definite system.

    References
    ----------
    Golub and Van Loan, "Matrix computations", 4th edition, Johns Hopkins University Press, 2013,
    section 5.5.

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
        """Decompose K + diag(shift).

        Parameters
        ----------
        gram : GramOperator of shape (n, n)
            The symmetric matrix K.
        shift : float or ndarray of shape (n,), default=0.0
            Non-negative numbers that are added to the diagonal of K.
        overwrite : bool, default=False
            Overwrite the array of `gram` instead of copying it.  `gram` cannot be used afterwards;
            see `DenseGram.release`.

        Returns
        -------
        Factor
            The eigendecomposition, which solves for the minimum-norm least-squares solution.
        """
        shift = check_shift(gram, shift)  # check now, before the array of K is overwritten
        return _SpectralFactor(repr(self), gram_to_array(gram, overwrite), shift, self.rcond)


class _SpectralFactor(Factor):
    """The eigenvalues and eigenvectors of K + diag(shift)."""

    _status = Status.DIRECT

    def __init__(self, solver: str, K: np.ndarray, shift: np.ndarray, rcond: float | None) -> None:
        super().__init__(solver, len(K), K.dtype)
        self._A = InPlaceSymmetric(K, shift)
        options = {"lower": True, "overwrite_a": True, "check_finite": False}
        self._values, self._vectors = eigh(self._A.work, **options)
        largest = np.abs(self._values).max(initial=0.0)
        cutoff = largest * (len(K) * np.finfo(K.dtype).eps if rcond is None else rcond)
        is_nonzero = np.abs(self._values) > cutoff
        self._inverses = np.divide(1.0, self._values, out=np.zeros(len(K)), where=is_nonzero)
        n_dropped = int(np.sum(~is_nonzero))
        if n_dropped:
            self._status = Status.SINGULAR
            self._message = (
                f"{n_dropped} of {len(K)} eigenvalues are treated as 0 (at most {cutoff:.1e})"
            )

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
        diagonal: np.ndarray = np.einsum("ij,j,ij->i", self._vectors, self._inverses, self._vectors)
        return diagonal


def check_shift(gram: GramOperator, shift: Any) -> np.ndarray:
    """Check the shift, and return it as an array with one value per point."""
    n = gram.shape[0]
    shift = np.asarray(shift, dtype=float)
    if shift.shape not in ((), (n,)):
        raise ValueError(f"shift must be a number or have shape ({n},), got {shift.shape}")
    if not np.all(np.isfinite(shift)) or np.any(shift < 0):
        raise ValueError(f"shift must be finite and non-negative, got a minimum of {shift.min()}")
    return shift if shift.ndim else np.full(n, shift)


def lapack_routine(name: str, array: np.ndarray) -> Any:
    """Return a LAPACK routine for the dtype of `array`: "potrf" gives dpotrf or spotrf."""
    return getattr(lapack, ("d" if array.dtype == np.float64 else "s") + name)


def check_points(gram: GramOperator | CentredGram) -> None:
    """Raise ValueError if the Gram matrix is not symmetric, or if there are no points."""
    if not getattr(gram, "symmetric", True):
        raise ValueError(
            "this solver needs a symmetric Gram matrix k(X, X), but got a Gram matrix k(X, Z)"
        )
    if not gram.shape[0]:
        raise ValueError("there are no points, so that K is 0 x 0; pass at least one point")


def gram_to_array(gram: GramOperator | CentredGram, overwrite: bool) -> np.ndarray:
    """Return a symmetric Gram operator as an array that the caller may overwrite.

    Parameters
    ----------
    gram : GramOperator or CentredGram
    overwrite : bool
        If K is stored as an array, return this array itself instead of a copy.

    Returns
    -------
    K : ndarray of shape (n, n)

    Warns
    -----
    DensifyWarning
        If K was not stored as an array.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import gram_to_array
    >>> gram_to_array(gram("Linear()", np.eye(2)), overwrite=False)
    array([[1., 0.],
           [0., 1.]])
    """
    check_points(gram)
    inner = uncentred(gram)
    if not hasattr(inner, "release"):
        n = gram.shape[0]
        warn_caller(
            f"a direct solver turns the {type(inner).__name__} of {n} points into an array of "
            f"{gram.dtype.itemsize * n * n / 2**30:.2f} GiB",
            DensifyWarning,
        )
        K = gram.to_array()
    else:
        K = gram.release() if overwrite else gram.to_array()
    with np.errstate(over="ignore", invalid="ignore"):
        # unlike np.isfinite(K), this needs no n x n array of flags
        finite = np.isfinite(K.sum(dtype=np.float64))
    if not finite:
        raise not_finite_error(gram.kernel)
    return K


class InPlaceSymmetric:
    """The matrix A = K + diag(shift) in an array whose lower triangle LAPACK may overwrite.

    Attributes
    ----------
    work : ndarray of shape (n, n)
        The array, in Fortran order.  It can be passed to LAPACK with lower=1 and overwrite_a=1.
    diagonal : ndarray of shape (n,)
        The diagonal of A.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import InPlaceSymmetric
    >>> A = InPlaceSymmetric(np.array([[2.0, 1.0], [1.0, 2.0]]), shift=1.0)
    >>> A.times(np.eye(2))
    array([[3., 1.],
           [1., 3.]])
    """

    def __init__(self, K: np.ndarray, shift: np.ndarray | float = 0.0) -> None:
        self.work = K.T if K.flags.c_contiguous else K  # the same matrix, in Fortran order
        self.diagonal = (K.diagonal() + shift).astype(K.dtype)
        self.restore_diagonal()

    def restore_diagonal(self) -> None:
        """Write the diagonal of A back into `work`."""
        np.fill_diagonal(self.work, self.diagonal)

    def restore(self) -> None:
        """Restore A in `work`, from the upper triangle that LAPACK did not overwrite."""
        mirror_lower_triangle(self.work.T)
        self.restore_diagonal()

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return A V, computed from the upper triangle of `work`."""
        symm = blas.dsymm if self.work.dtype == np.float64 else blas.ssymm
        lapack_diagonal = self.work.diagonal().copy()
        self.restore_diagonal()
        try:
            return np.asarray(symm(1.0, self.work, np.asfortranarray(V, self.work.dtype), lower=0))
        finally:
            np.fill_diagonal(self.work, lapack_diagonal)


def mirror_lower_triangle(A: np.ndarray) -> None:
    """Copy the lower triangle of A to the upper triangle, in place.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import mirror_lower_triangle
    >>> A = np.array([[1.0, 0.0], [2.0, 3.0]])
    >>> mirror_lower_triangle(A)
    >>> A
    array([[1., 2.],
           [2., 3.]])
    """
    for start in range(0, len(A), 256):
        rows = slice(start, start + 256)
        A[:start, rows] = A[rows, :start].T
        square = A[rows, rows]
        upper = np.triu_indices(len(square), 1)
        square[upper] = square.T[upper]
