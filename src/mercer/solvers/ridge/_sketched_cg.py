"""Ridge regression on many landmarks by sketched conjugate gradients (KRILL, a published acronym).

    min over w   sum_i u_i (y_i - k_S(x_i)^T w)^2 + shift w^T K_SS w,      w = L^-T v,  K_SS = L L^T
    (F^T U F + shift) v = F^T U y,      F = K_nS L^-T,   U = diag(u)

Here S is the set of m landmarks, K_nS the kernel matrix between the n points and S, k_S(x_i) its
row i, and u_i the weight of point i.  The normal equations in the second line are solved by
conjugate gradients.  One pass over the points computes F^T U F v and evaluates each row of K_nS
only once.  The preconditioner is B^T B + shift with the sketch B = Phi U^1/2 F, where Phi is a
sparse random sign matrix with 4 m rows and 8 entries +-1/sqrt(8) per point.  B^T B approximates
F^T U F up to a small factor for any landmarks and any shift, so the number of passes is bounded.

References
----------
Díaz, Epperly, Frangella, Tropp and Webber, arXiv 2304.12465.  The method is used here in the
coordinates v, in which the penalty is shift |v|^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    Points,
    ProgressCallback,
    Stopwatch,
    as_csr,
    check_budget,
    entry_point,
    length,
    one_blas_thread,
    ordered_sum,
    seeded_generator,
    warn_caller,
)
from ..._core.linalg import cho_solve, lapack, solve_triangular
from ...gram import Landmarks, NystroemMap
from ...kernels import Kernel, as_index_kernel
from .._report import Report, Status, status_of
from ..linear import (
    check_stopping_criteria,
    conjugate_gradients,
    iteration_status,
    max_relative_residual,
    normalise_columns,
)

_SKETCH_ROWS_PER_LANDMARK = 4  # more rows give a better preconditioner, but take more memory
_ENTRIES_PER_POINT = 8  # nonzero entries of the sparse sign matrix for each point
_SUM_GROUPS = 8  # partial sums; a fixed number makes results independent of the threads


@entry_point
@dataclass(frozen=True)
class Krill:
    """Ridge regression on many landmarks by sketched conjugate gradients (KRILL), in O(m^2) memory.

    Prefer it to a direct method (`NystroemPath`) for more than a few thousand landmarks, and to
    `ConjugateGradient` if a solution in the span of landmarks is accurate enough.

    With m landmarks, the solver takes O(m^3) operations and typically some tens of passes over
    K_nS, the (n, m) kernel matrix between points and landmarks; a direct method takes O(n m^2)
    operations.  All targets are solved in the same passes.

    The reported residual is the norm of the gradient at the solution, relative to that at f = 0.
    The entry "function" of the report's certificate is an upper bound on the distance |f - f*| in
    the RKHS from the exact minimiser f*.

    Parameters
    ----------
    rank : int or None, default=None
        Number of landmarks; None means 1000, or all points if there are fewer.
    landmarks : str or points, default="auto"
        How to choose the landmarks, or the landmarks themselves; see `mercer.gram.Landmarks`.
    tol : float, default=1e-10
        Tolerance for the relative residual.  If rounding errors prevent it, a residual of up to
        1e-6 is accepted.
    max_iter : int, default=200
        Maximum number of passes over K_nS.
    random_state : int or None, default=None
        Seed for the landmarks and the random sign matrix; None means 0.
    max_memory : int, str or None, default=None
        Memory budget; None means half of the installed memory.

    See Also
    --------
    LandmarkRidge : Ridge regression with landmarks and an intercept.
    NystroemPath : A direct method, for many alphas.

    References
    ----------
    Díaz, Epperly, Frangella, Tropp and Webber, "Robust, randomized preconditioning for kernel ridge
    regression", arXiv:2304.12465.

    Rudi, Carratino and Rosasco, "FALKON: an optimal large scale kernel method", NIPS 2017, for
    another preconditioner of the same system.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Krill
    >>> X = np.linspace(0, 6, 3000)[:, None]
    >>> points, w, report = Krill(rank=30).regress(RBF(), X, np.sin(X), shift=0.1)
    >>> bool(np.abs(RBF()(X, points) @ w - np.sin(X)).max() < 0.02)
    True
    """

    rank: int | None = None
    landmarks: Any = "auto"
    tol: float = 1e-10
    max_iter: int = 200
    random_state: Any = None
    max_memory: Any = None

    def __post_init__(self) -> None:
        check_stopping_criteria(self)
        _ = self._landmark_choice  # raises if the method for choosing landmarks is unknown

    def workspace(self, n: int) -> int:
        """Return the memory that the solver needs.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        int
            Number of bytes.
        """
        m = self._landmark_choice.count(n)
        rows = min(n, _SKETCH_ROWS_PER_LANDMARK * m)
        return 8 * (rows * m + 4 * m * m) + 2**27

    def regress(
        self,
        kernel: Kernel,
        X: Points,
        Y: np.ndarray,
        shift: float,
        weights: np.ndarray | None = None,
        *,
        n_threads: int | None = None,
        log: ProgressCallback | None = None,
    ) -> tuple[Points, np.ndarray, Report]:
        """Solve the ridge regression; return the landmarks, their coefficients and the report.

        Parameters
        ----------
        kernel : Kernel
            A kernel whose parameters are all numbers, not strings such as "median".
        X : points
            The n training points.
        Y : ndarray of shape (n,) or (n, q)
            Targets.
        shift : float
            The ridge penalty, positive.
        weights : ndarray of shape (n,) or None, default=None
            Non-negative weights of the squared errors; None means 1.
        n_threads : int or None, default=None
            Number of threads; None means all processors.  The result does not depend on it.
        log : callable or None, default=None
            Called with progress messages.

        Returns
        -------
        points : points
            The m landmarks.
        w : ndarray of shape (m,) or (m, q)
            The coefficients, f(x) = sum_s w_s k(s, x).
        report : Report
            Status, passes, relative residual, and a bound on the distance from the exact minimiser.
        """
        watch = Stopwatch()
        kernel, X = as_index_kernel(kernel, X)
        X, n = as_csr(X), length(X)
        rhs, weights = _check(Y, weights, shift, n)
        rhs, exponents = normalise_columns(rhs)
        m = self._landmark_choice.count(n)
        check_budget(self.workspace(n), self.max_memory, f"a fit on {m} landmarks")
        phi = self._landmark_choice.map(kernel, X, n_threads)
        if not len(phi):  # no landmark is left, because k(s, s) = 0 for all of them
            message = "k(s, s) = 0 for every landmark, so f = 0"
            report = Report(repr(self), Status.APPROXIMATE, message=message)
            return phi.points, np.zeros((0, *np.shape(Y)[1:])), report
        passes = _Passes(phi, X, weights, n_threads)
        with one_blas_thread:  # results are then identical for any number of threads
            sketch = passes.sketch(seeded_generator(self.random_state))
            if log is not None:
                log(f"sketch of {n} x {len(phi)} by {len(sketch)} rows")
            square = sketch.T @ sketch
            del sketch
            norm = _largest_eigenvalue(square) + shift
            square.flat[:: len(square) + 1] += shift
            C, _ = lapack.dpotrf(square, lower=1, overwrite_a=1)
            b = passes.project(rhs)
            result = conjugate_gradients(
                lambda V: passes.square(V) + shift * V,
                lambda R: cho_solve((C, True), R, check_finite=False),
                b,
                tol=self.tol,
                max_iter=self.max_iter,
                rounding=lambda V: norm * np.linalg.norm(V, axis=0),
                log=log,
            )
        residual = max_relative_residual(result.gap, b)
        remarks = ", ".join([f"{len(phi)} landmarks", *phi.report_remarks])
        status, message = iteration_status(result, residual, self.tol, remarks)
        status, message = status_of(status, message, residual, self.tol)
        norms = np.ldexp(np.linalg.norm(result.gap, axis=0), exponents)
        bounds = {"function": float(norms.max(initial=0.0)) / shift}
        outcome = (status, result.n_iter, residual, watch.seconds, message)
        report = Report(repr(self), *outcome, bounds)
        if status is not Status.CONVERGED:
            warn_caller(
                f"Krill did not converge: {message}. The usual cause is a shift that is tiny "
                f"relative to the largest eigenvalue of K. Raise the shift or max_iter",
                ConvergenceWarning,
            )
        coefficients = phi.expansion_coefficients(np.ldexp(result.a, exponents))
        return phi.points, coefficients[:, 0] if np.ndim(Y) == 1 else coefficients, report

    @property
    def _landmark_choice(self) -> Landmarks:
        return Landmarks(self.rank, self.landmarks, self.random_state)


class _Passes:
    """Products with the feature matrix F = K_nS L^-T, which is recomputed in each pass.

    K_nS is the kernel matrix between points and landmarks, L the Cholesky factor of the kernel
    matrix of the landmarks, and U = diag(weights).
    """

    def __init__(
        self, phi: NystroemMap, X: Points, weights: np.ndarray, n_threads: int | None
    ) -> None:
        self.phi, self.X, self.weights, self.n_threads = phi, X, weights, n_threads

    def square(self, V: np.ndarray) -> np.ndarray:
        """Return F^T U F V, evaluating each row of K_nS once."""
        inner = np.ascontiguousarray(self._solve(V, trans="T"))
        return self._sum(lambda rows, T: T @ inner)

    def project(self, Y: np.ndarray) -> np.ndarray:
        """Return F^T U Y."""
        return self._sum(lambda rows, T: Y[rows])

    def sketch(self, rng: np.random.Generator) -> np.ndarray:
        """Return the sketch Phi U^1/2 F with a random sign matrix Phi; for n <= 4 m, U^1/2 F."""
        m, n = len(self.phi), len(self.weights)
        dimension = min(_SKETCH_ROWS_PER_LANDMARK * m, n)
        root = np.sqrt(self.weights)
        B = np.zeros((dimension, m))
        for rows, T in self.phi.blocks(self.X, n_threads=self.n_threads, whiten=False):
            T *= root[rows, None]
            if dimension == n:
                B[rows] = T
            else:
                B += _embedding(rng, dimension, len(T)) @ T
        return np.asarray(self._solve(B.T, trans="N").T)

    def _solve(self, V: np.ndarray, trans: str) -> np.ndarray:
        L = self.phi.factor
        return np.asarray(solve_triangular(L, V, trans=trans, lower=True, check_finite=False))

    def _sum(self, values: Callable[[slice, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return F^T U V, where V is computed in blocks of rows.

        `values(rows, T)` returns the given rows of V; T holds the same rows of K_nS.
        """
        strips, m = self.phi._strips(slice(0, len(self.weights))), len(self.phi)

        def partial_sum(rows: slice) -> np.ndarray:
            T = np.empty((rows.stop - rows.start, m))
            self.phi._fill(self.X, rows, T, whiten=False)
            product: np.ndarray = T.T @ (self.weights[rows, None] * values(rows, T))
            return product

        work = self.phi._work(len(self.weights))
        total = ordered_sum(partial_sum, strips, _SUM_GROUPS, self.n_threads, work)
        return self._solve(total, trans="N")


def _embedding(rng: np.random.Generator, rows: int, points: int) -> sp.csr_array:
    """Return a sparse random sign matrix of shape (rows, points).

    Each column has 8 entries +-1/sqrt(8), or fewer if there are fewer rows.
    """
    entries = min(_ENTRIES_PER_POINT, rows)
    # Draw one row from each of 8 ranges of rows, so that no two entries of a column coincide.
    parts = np.linspace(0, rows, entries + 1).astype(int)
    index = rng.integers(parts[:-1], parts[1:], size=(points, entries))
    signs = rng.choice((-1.0, 1.0), size=(points, entries)) / np.sqrt(entries)
    starts = np.arange(0, points * entries + 1, entries)
    return sp.csc_array((signs.ravel(), index.ravel(), starts), shape=(rows, points)).tocsr()


def _check(
    Y: ArrayLike, weights: ArrayLike | None, shift: float, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Validate the input; return the targets as a 2-D array, and the weights."""
    Y = np.asarray(Y, dtype=float)
    if Y.ndim not in (1, 2) or len(Y) != n:
        raise ValueError(f"Y has shape {Y.shape}, but there are {n} points")
    if not (np.ndim(shift) == 0 and 0.0 < shift < np.inf):
        raise ValueError(f"Krill needs a positive, finite shift, got {shift!r}")
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(
            f"weights must be {n} finite, non-negative numbers, got shape {weights.shape} "
            f"with a minimum of {weights.min(initial=np.inf):.3g}"
        )
    return Y.reshape(n, -1), weights


def _largest_eigenvalue(A: np.ndarray) -> float:
    """Estimate the largest eigenvalue of a positive semidefinite A by the power method."""
    v, value = np.ones(len(A)), 0.0
    for _ in range(10):
        v = A @ v
        value = float(np.linalg.norm(v))
        v /= max(value, 1e-300)
    return value
