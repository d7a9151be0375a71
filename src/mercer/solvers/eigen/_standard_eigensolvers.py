"""Standard eigensolvers: LAPACK, ARPACK, randomised subspace iteration, and power iteration.

They compute the leading eigenpairs (l, u) of a symmetric kernel matrix K, K u = l u.

Power iteration with deflation (also called peeling) is the textbook method.  The step
v <- K v / |K v| is repeated until v is an eigenvector.  The next eigenvector is then computed in
the same way, orthogonal to those found so far.  K multiplies the component of v along the
eigenvector u_i by its eigenvalue l_i, so the eigenvector of the largest eigenvalue dominates.  Each
step reduces the error of v by the factor l_2 / l_1, and that of the eigenvalue by the square of
this factor.  Textbook deflation subtracts l u u^T from K.  Here v is projected onto the complement
of the earlier eigenvectors instead, so that their errors do not affect later ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    ProgressCallback,
    ProgressStep,
    RandomState,
    Stopwatch,
    as_generator,
    entry_point,
    warn_caller,
)
from ..._core.linalg import eigh
from .._cost_model import CACHE_BYTES, Cost
from .._report import Report, Status
from ..linear import InPlaceSymmetric, gram_to_array
from ._eigenpairs import EigenPairs, assemble_eigenpairs, check_k, eigenvalue_rounding, matrix_norms

# Maximum number of points for divide and conquer, which needs three extra n x n matrices.
_MAX_DIVIDE_AND_CONQUER_POINTS = 500
# If tol = 0, ARPACK has converged if the relative residuals are at most this.
_ARPACK_ZERO_TOL = 1e-12


@entry_point
@dataclass(frozen=True)
class DenseEigen:
    """Dense eigendecomposition by LAPACK: exact, but O(n^3) operations and 8 n^2 bytes.

    Prefer it for up to about 500 points, or if a large fraction of all eigenpairs is needed.  For
    a few eigenpairs of a larger matrix, `BlockKrylov` is faster and needs less memory.  The
    certificate contains intervals of the size of rounding errors, and no eigenvalue can be
    overlooked.

    See Also
    --------
    BlockKrylov : A few exact eigenpairs without storing K.

    References
    ----------
    Anderson et al., "LAPACK users' guide", 3rd edition, SIAM, 1999.

    Golub and Van Loan, "Matrix computations", 4th edition, Johns Hopkins University Press, 2013,
    chapter 8.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import DenseEigen
    >>> DenseEigen().eigenpairs(gram(Linear(), [[3.0], [4.0]]), 1).values.round(10)
    array([25.])
    """

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * n * (3 * k + 26 + (3 * n if _use_divide_and_conquer(n, k + 1) else 0))

    def cost(self, n: int, k: int, read: Cost) -> Cost:
        """Predict the cost of k eigenpairs of an n x n kernel matrix K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.
        read : Cost
            Cost of reading K once.

        Returns
        -------
        Cost
            The expected work.
        """
        pairs = Cost(reductions=4.0 / 3.0 * n**3, products=8.0 * n * n * k, calls=100)
        # Half of the operations of the tridiagonal reduction are matrix-vector products, which are
        # limited by memory bandwidth if K does not fit into the cache.
        slow = Cost(read=n**3 / 2.0 if 8 * n * n > CACHE_BYTES else 0.0)
        return pairs + slow + 10.0 * read

    def eigenpairs(
        self,
        gram: LinearOperator,
        k: int | None = None,
        *,
        overwrite: bool = False,
        keep: Callable[[np.ndarray], int] | None = None,
        **_: object,
    ) -> EigenPairs:
        """Return the k largest eigenpairs.

        Parameters
        ----------
        gram : GramOperator or CentredGram of shape (n, n)
            The symmetric matrix K.
        k : int or None, default=None
            Number of pairs; None means all n.
        overwrite : bool, default=False
            Whether the array of `gram` may be overwritten, which saves a copy of K.
        keep : callable or None, default=None
            Called with the k eigenvalues in descending order.  Its result is the number of pairs
            that `eigenpairs` returns.
        **_ : object
            Ignored; accepted so that all eigensolvers can be called with the same options.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) in descending order, eigenvectors of shape (n, k), residuals
            of shape (k,), a report and a certificate.
        """
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        norms = matrix_norms(gram)
        K = InPlaceSymmetric(gram_to_array(gram, overwrite))
        # Compute one more pair, because the error bounds need the gap below the k-th eigenvalue.
        values, vectors = _largest_eigenpairs(K, min(k + 1, n))
        if keep is not None:
            k = keep(values[: -k - 1 : -1])
        following = float(values[-k - 1]) if k < n else -np.inf
        values, vectors = values[len(values) - k :], vectors[:, vectors.shape[1] - k :]
        report = Report(repr(self), Status.DIRECT)
        return assemble_eigenpairs(
            report, watch, K.times, norms, values, vectors, following=following
        )


def _use_divide_and_conquer(n: int, count: int) -> bool:
    """Return True if `_largest_eigenpairs` computes all pairs by divide and conquer."""
    return 6 * count > n and n <= _MAX_DIVIDE_AND_CONQUER_POINTS


def _largest_eigenpairs(K: InPlaceSymmetric, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at least the `count` largest eigenpairs of K, in ascending order.

    LAPACK can compute only the `count` largest pairs, but for more than a sixth of all pairs this
    takes longer than computing all of them by divide and conquer.  The latter needs three more
    n x n matrices, so it is used only for small n.
    """
    n = len(K.work)
    options: dict[str, Any] = {"lower": True, "check_finite": False}
    pairs: tuple[np.ndarray, np.ndarray]
    if _use_divide_and_conquer(n, count):
        pairs = eigh(K.work, driver="evd", **options)
        return pairs
    if count < n:
        pairs = eigh(K.work, subset_by_index=(n - count, n - 1), overwrite_a=True, **options)
        if len(pairs[0]) < count:  # LAPACK may return fewer pairs if eigenvalues coincide
            K.restore()
            pairs = eigh(K.work, driver="evd", overwrite_a=True, **options)
        return pairs
    pairs = eigh(K.work, overwrite_a=True, **options)
    return pairs


@entry_point
@dataclass(frozen=True)
class Arpack:
    """Implicitly restarted Lanczos iteration by ARPACK, with one product with K per step.

    It computes exact leading eigenpairs, and K is not copied.  Use it to compare with other
    software; `BlockKrylov` needs far fewer passes over K, and also finds multiple eigenvalues
    reliably.

    Parameters
    ----------
    tol : float, default=0.0
        Tolerance of each residual |K u - t u|, relative to its eigenvalue t.  0 means machine
        precision; the status is then CONVERGED if the relative residuals are at most 1e-12.
    max_iter : int or None, default=None
        Maximum number of restarts; None means ARPACK's default, 10 n.
    random_state : int or None, default=None
        Seed for the starting vector, which is uniform in [-1, 1].

    See Also
    --------
    BlockKrylov : Multiply K by blocks of vectors.

    References
    ----------
    Lehoucq, Sorensen and Yang, "ARPACK users' guide: solution of large-scale eigenvalue problems
    with implicitly restarted Arnoldi methods", SIAM, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Arpack
    >>> X = np.arange(10.0)[:, None]
    >>> pairs = Arpack(random_state=0).eigenpairs(gram("RBF()", X), 2)
    >>> pairs.values.round(3)
    array([2.412, 2.15 ])
    """

    tol: float = 0.0
    max_iter: int | None = None
    random_state: RandomState = None

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * n * (2 * max(2 * k + 1, 20) + 2 * k)

    def eigenpairs(self, gram: LinearOperator, k: int | None = None, **_: object) -> EigenPairs:
        """Return the k largest eigenpairs.

        Parameters
        ----------
        gram : GramOperator or CentredGram of shape (n, n)
            The symmetric matrix K.
        k : int or None, default=None
            Number of pairs, 1 <= k < n.  None means n - 1, the largest possible number.
        **_ : object
            Ignored; accepted so that all eigensolvers can be called with the same options.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) in descending order, eigenvectors of shape (n, k), residuals
            of shape (k,), a report and a certificate.

        Raises
        ------
        ValueError
            If k is n.
        """
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(n - 1 if k is None and n > 1 else k, n)
        if k >= n:
            raise ValueError(
                f"ARPACK can compute at most n - 1 eigenpairs, but k = {k} and n = {n}; "
                f"use eigen_solver='dense' or fewer components"
            )
        counted = _CountingOperator(gram)
        start = as_generator(self.random_state).uniform(-1.0, 1.0, n).astype(gram.dtype)
        status, message = Status.CONVERGED, ""
        try:
            values, vectors = eigsh(
                counted, k, which="LA", tol=self.tol, maxiter=self.max_iter, v0=start, **_seed()
            )
        except ArpackNoConvergence as stopped:
            values, vectors = stopped.eigenvalues, stopped.eigenvectors
            if not len(values):
                raise
            status = Status.NOT_CONVERGED
            message = f"{len(values)} of {k} eigenpairs after {counted.products} products"
            warn_caller(
                f"ARPACK found {message}; the others are missing. Raise max_iter "
                f"(now {self.max_iter}) or tol (now {self.tol:g})",
                ConvergenceWarning,
            )
        except ArpackError:
            if np.any(gram @ start):
                raise
            # K maps a random vector to 0, so K is 0 and every vector is an eigenvector.
            values, vectors = np.zeros(k, dtype=gram.dtype), np.eye(n, k, dtype=gram.dtype)
            message, counted.products = "K is 0", 0
        report = Report(repr(self), status, counted.products, message=message)
        return assemble_eigenpairs(
            *(report, watch, gram.dot, matrix_norms(gram), values, vectors),
            tol=max(self.tol, _ARPACK_ZERO_TOL),
            advice="the usual cause is that the entries of K are very small or large, because "
            "ARPACK uses absolute thresholds. Scale the kernel so that its values are about 1",
        )


@entry_point
@dataclass(frozen=True)
class RandomizedEigen:
    """Randomised subspace iteration: approximate eigenpairs from a fixed number of passes over K.

    The eigenpairs are approximated by the Rayleigh-Ritz procedure in the range of K^(q + 1) times a
    random block.  The number of passes is known in advance, but the accuracy depends on the
    spectrum, and the method does not stop at a tolerance.  `BlockKrylov` uses the same products
    better, and stops at a tolerance.

    Parameters
    ----------
    n_iter : int or "auto", default="auto"
        Number of power iterations q, each of which is a pass over K.  "auto" means 7 if k < n / 10,
        otherwise 4.  Use more if the spectrum decays slowly.
    n_oversamples : int, default=10
        Number of columns of the random block in addition to k.  More columns increase the accuracy.
    random_state : int or None, default=None
        Seed for the random block.

    See Also
    --------
    BlockKrylov : Exact eigenpairs from a few passes.

    References
    ----------
    Halko, Martinsson and Tropp, "Finding structure with randomness: probabilistic algorithms for
    constructing approximate matrix decompositions", SIAM Review, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import RandomizedEigen
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> pairs = RandomizedEigen(random_state=0).eigenpairs(gram("RBF()", X), 2)
    >>> bool(pairs.residuals.max() < 1e-8)
    True
    """

    n_iter: int | str = "auto"
    n_oversamples: int = 10
    random_state: RandomState = None

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * n * (3 * (k + self.n_oversamples) + k)

    def eigenpairs(self, gram: LinearOperator, k: int | None = None, **_: object) -> EigenPairs:
        """Return approximations of the k eigenpairs of largest modulus, with their residuals.

        Parameters
        ----------
        gram : GramOperator or CentredGram of shape (n, n)
            The symmetric matrix K.
        k : int or None, default=None
            Number of pairs; None means all n.
        **_ : object
            Ignored; accepted so that all eigensolvers can be called with the same options.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) in descending order, eigenvectors of shape (n, k), residuals
            of shape (k,), a report and a certificate.
        """
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        steps = (7 if k < 0.1 * n else 4) if self.n_iter == "auto" else int(self.n_iter)
        if k + self.n_oversamples >= n and hasattr(gram, "to_array"):
            # The random block would span the whole space, so decompose K directly.
            values, vectors = eigh(gram.to_array())
        else:
            block = as_generator(self.random_state).standard_normal((n, k + self.n_oversamples))
            Q = np.linalg.qr(gram @ block[:, :n].astype(gram.dtype))[0]
            for _step in range(steps):
                Q = np.linalg.qr(gram @ Q)[0]
            KQ = gram @ Q
            values, inner = eigh(Q.T @ KQ)
            vectors = Q @ inner
        chosen = np.sort(np.argsort(np.abs(values))[::-1][:k])
        values, vectors = values[chosen], vectors[:, chosen]
        report = Report(repr(self), Status.APPROXIMATE, steps + 2)
        return assemble_eigenpairs(report, watch, gram.dot, matrix_norms(gram), values, vectors)


def _seed() -> dict[str, np.random.Generator]:
    """Return the arguments of `eigsh` that seed ARPACK's random restarts."""
    has_rng = "rng" in inspect.signature(eigsh).parameters  # added in SciPy 1.17
    return {"rng": np.random.default_rng(0)} if has_rng else {}


class _CountingOperator(LinearOperator):  # type: ignore[misc]  # SciPy has no types
    """Wrapper of an operator that counts the vectors it is multiplied with."""

    def __init__(self, inner: LinearOperator) -> None:
        self.inner, self.products = inner, 0
        super().__init__(dtype=inner.dtype, shape=inner.shape)

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        self.products += 1
        product: np.ndarray = self.inner @ v
        return product


# Tolerance of the relative residual if tol = 0; eigenvalues are then accurate to rounding.
_DEFAULT_TOL = 1e-8
_ADVICE = (
    "the usual cause is two eigenvalues that are close. Raise max_iter or tol, or use BlockKrylov"
)


@entry_point
@dataclass(frozen=True)
class PowerDeflation:
    """Power iteration with deflation, the textbook method for leading eigenpairs.

    Each step is one product with K.  The eigenpairs are computed one after the other, each
    orthogonal to the earlier ones.  The error of an eigenvector decreases by the factor l_2 / l_1
    of the next two eigenvalues in each step, so that close eigenvalues need many steps.  Use it for
    teaching and as a reference; `BlockKrylov` is much faster.

    Parameters
    ----------
    tol : float, default=0.0
        Stop when the residual |A v - t v| of the eigenvalue t is at most tol |t|, or no larger than
        rounding errors.  0 means 1e-8.
    max_iter : int or None, default=None
        Maximum number of steps per eigenpair; None means 1000.
    random_state : int or None, default=None
        Seed for the starting vectors.

    Notes
    -----
    Each step is one product of A with a single vector, so the method needs many more passes over K
    than `BlockKrylov`.  It is meant for teaching and comparison.

    The method converges to the eigenvalue of largest *modulus*.  For a matrix that is not positive
    semidefinite, this may be a negative eigenvalue.

    References
    ----------
    Golub and Van Loan, "Matrix computations", 4th edition, Johns Hopkins University Press, 2013,
    section 8.2.

    Saad, "Numerical methods for large eigenvalue problems", revised edition, SIAM, 2011, chapter 4.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import PowerDeflation
    >>> K = gram(Linear(), [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> PowerDeflation(random_state=0).eigenpairs(K, 2).values.round(6)
    array([9., 4.])
    """

    tol: float = 0.0
    max_iter: int | None = None
    random_state: RandomState = None

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.

        Returns
        -------
        int
            Number of bytes.
        """
        return 8 * n * (2 * k + 6)

    def eigenpairs(
        self,
        gram: LinearOperator,
        k: int | None = None,
        *,
        log: ProgressCallback | None = None,
        **_: object,
    ) -> EigenPairs:
        """Return the k leading eigenpairs, computed one after the other.

        Parameters
        ----------
        gram : GramOperator or CentredGram of shape (n, n)
            The symmetric matrix K.
        k : int or None, default=None
            Number of pairs; None means all n.
        log : callable or None, default=None
            Called with a progress message after each eigenpair.
        **_ : object
            Ignored; accepted so that all eigensolvers can be called with the same options.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) in descending order, eigenvectors of shape (n, k), residuals
            of shape (k,), a report and a certificate.
        """
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        rng, tol = as_generator(self.random_state), self.tol or _DEFAULT_TOL
        max_iter = self.max_iter or 1000
        U, largest, steps = np.empty((n, 0)), 0.0, 0
        for j in range(k):
            v = _deflate(rng.standard_normal(n), U)
            steps_before, last_residual = steps, np.inf
            for _step in range(max_iter):
                w = _deflate(np.asarray(gram @ v, dtype=float), U, normalise=False)
                steps += 1
                t, norm = float(v @ w), float(np.linalg.norm(w))
                residual = float(np.linalg.norm(w - t * v))
                largest = max(largest, abs(t))
                # Stop at tol / 2, because the final rotation mixes the residuals of equal
                # eigenvalues.  If the residual is no larger than rounding errors, continue only
                # while it still decreases; in a null space it is only noise, so stop at once.
                floor = _residual_floor(gram, largest)
                at_rounding = norm <= floor or (
                    residual <= floor and not residual <= 0.9 * last_residual
                )
                if residual <= 0.5 * tol * abs(t) or at_rounding:
                    break
                v, last_residual = _deflate(w / norm, U), residual
            if log is not None:
                n_products = steps - steps_before
                progress = f"{t:.6g} after {n_products} products, residual {residual:.1e}"
                log(ProgressStep(f"component {j + 1}: {progress}"))
            U = np.column_stack([U, v])
        AU = np.asarray(gram @ U, dtype=float)
        values, W = eigh(0.5 * (U.T @ AU + AU.T @ U))
        report = Report(repr(self), Status.CONVERGED, steps)
        found = (report, watch, gram.dot, matrix_norms(gram), values, U @ W)
        return assemble_eigenpairs(*found, dtype=gram.dtype, tol=tol, advice=_ADVICE)


def _deflate(v: np.ndarray, U: np.ndarray, normalise: bool = True) -> np.ndarray:
    """Project v onto the orthogonal complement of span(U), and normalise the result."""
    for _ in range(2):
        v = v - U @ (U.T @ v)
    return v / np.linalg.norm(v) if normalise else v


def _residual_floor(gram: LinearOperator, largest: float) -> float:
    """Return the residual norm |A v - t v| below which a residual is only rounding error."""
    norm = gram.uncentred_norm if hasattr(gram, "uncentred_norm") else largest
    return eigenvalue_rounding(gram.dtype, max(norm, largest))
