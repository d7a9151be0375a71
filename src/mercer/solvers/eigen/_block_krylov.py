"""Exact leading eigenpairs of a kernel matrix A that is never stored, from a few passes over it.

    Z <- [Z, orth(M^-1 R)],    R = A U - U diag(t),    (t, U) = Rayleigh-Ritz of A in span(Z)

Each pass multiplies A by the newest block of the basis Z; all other operations are on tall thin
arrays.  Z starts with the leading eigenvectors of A^ = F^T F, where F is a randomly pivoted
Cholesky factor with a few hundred rows.  The residuals R are preconditioned with M = A^ - t I.  The
component of a residual along another eigenvector is thus divided by the distance of t to the
eigenvalue of that vector, as approximated by A^.  Each pass then gains about as many digits as A^
is accurate to.  If the kernel is not positive semidefinite, there is no factor.  M is then omitted,
and span(Z) is the block Krylov space of random starting vectors.

If a basis vector has a small coefficient w in the Ritz vectors, its product with A is needed only
to a precision of tol / w.  Once the coefficients of new vectors are small, passes are computed in
float32 (`Float32Products`), and the estimated error of these passes is added to the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    NotPositiveDefiniteError,
    ProgressCallback,
    ProgressStep,
    RandomState,
    Stopwatch,
    as_generator,
    entry_point,
    one_blas_thread,
    warn_caller,
)
from ..._core.linalg import lapack, qr, solve_triangular
from ...gram import uncentred
from .._cost_model import Cost
from .._report import Report, Status
from ._certificate import Certificate, certify, largest_value_bound
from ._eigenpairs import (
    EigenPairs,
    check_k,
    degenerate_ranges,
    eigenvalue_rounding,
    matrix_norms,
    relative_residual,
    sort_and_fix_signs,
)
from ._rayleigh_ritz import DavidsonPreconditioner, Float32Products, Operator, RitzBasis


@dataclass(frozen=True)
class _KrylovTuning:
    """Constants of `BlockKrylov` that trade accuracy, memory and time."""

    # Tolerance of the relative residual if tol = 0.  The relative error of an eigenvalue is about
    # its square, so eigenvalues are then accurate to rounding.
    default_tol: float = 1e-8
    # Maximum number of passes over K if max_iter is None.
    max_passes: int = 100
    # This many Ritz pairs after the k-th are also improved, so that the k-th converges faster.
    guard_pairs: int = 2
    # Numbers of extra columns to try for the proof that no eigenvalue was overlooked.
    proof_widths: tuple[int, ...] = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    # Float32 is used if its expected error is at most this fraction of the allowed residual.
    float32_error_fraction: float = 0.2
    # Cholesky QR is considered too inaccurate if the ratio of the smallest to the largest diagonal
    # entry of the Cholesky factor is below this.
    min_cholesky_ratio: float = 1e-5
    # Cost model: typical number of float64 passes, if float32 is available.
    float64_passes: float = 1.5
    # Cost model: time of a float32 pass relative to a float64 pass.
    float32_pass_cost: float = 0.56
    # Cost model: the typical number of passes is min_expected_passes + log2(k), at most
    # max_expected_passes.
    min_expected_passes: float = 5.5
    max_expected_passes: float = 11.0


_TUNING = _KrylovTuning()


@entry_point
@dataclass(frozen=True)
class BlockKrylov:
    """Preconditioned block Krylov iteration: exact leading eigenpairs in O(n) memory.

    It solves K u = l u for the k largest eigenvalues l.  K need not be stored; each step is one
    pass over K that multiplies it by a block of vectors.  Prefer it to `DenseEigen` if K is large
    and k is small compared with n, and to `LowRankEigen` if the eigenpairs must be exact.  `Arpack`
    multiplies K by one vector at a time, and therefore needs many more passes.

    The iteration starts from a randomly pivoted Cholesky factor of K, which also preconditions the
    residuals.  Typically 5 to 11 passes are needed.  Once corrections are small, passes are
    computed in float32, and the estimated error is added to the residuals.

    The `Certificate` of the result contains an interval for each eigenvalue, and a bound on the
    angle of each eigenvector.  If its `nothing_missed` is True, it is also proved that no larger
    eigenvalue was overlooked, which residuals alone cannot show.

    Parameters
    ----------
    tol : float, default=0.0
        Stop when every residual |A u - t u| is at most tol times its eigenvalue t, or no larger
        than rounding errors.  The relative error of an eigenvalue is about the square of tol.  0
        means 1e-8.  A larger value, such as 1e-4, saves passes, and still gives eigenvalues to
        about eight digits.
    max_iter : int or None, default=None
        Maximum number of passes over K; None means 100.
    block : int or None, default=None
        Number of columns of the first block; None means k + max(8, k / 4).  A larger block needs
        fewer passes, but more memory.
    rank : int or None, default=None
        Rank of the pivoted Cholesky factor that preconditions the iteration.  None chooses it so
        that the factor costs less than one pass over K.  0 disables the preconditioner, which is
        necessary only to save its memory of 8 n rank bytes.
    prove : bool, default=True
        Whether to add up to 256 columns to the second pass in order to prove that no larger
        eigenvalue was overlooked.  Columns are added only if the first pass does not give the proof
        and the extra columns are expected to.  False saves their time and memory.
    random_state : int or None, default=None
        Seed for the pivots, random vectors and sampled rows.

    See Also
    --------
    DenseEigen : All eigenpairs of a K that fits the memory.
    LowRankEigen : Approximate eigenpairs from landmarks, with error bounds.
    Certificate : What is proved about the result.

    References
    ----------
    Musco and Musco, "Randomized block Krylov methods for stronger and faster approximate singular
    value decomposition", NIPS 2015.

    Tropp and Webber, "Randomized algorithms for low-rank matrix approximation: design, analysis,
    and applications", arXiv:2306.12418.

    Davidson, "The iterative calculation of a few of the lowest eigenvalues and corresponding
    eigenvectors of large real-symmetric matrices", Journal of Computational Physics, 1975, for the
    preconditioned residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import CentredGram, gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import BlockKrylov
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> K = CentredGram(gram(RBF(2.0), X, storage="tiled"))
    >>> pairs = BlockKrylov(random_state=0).eigenpairs(K, 2)
    >>> pairs.certificate.nothing_missed
    True
    """

    tol: float = 0.0
    max_iter: int | None = None
    block: int | None = None
    rank: int | None = None
    prove: bool = True
    random_state: RandomState = None

    def __post_init__(self) -> None:
        minimum = {"tol": 0.0, "max_iter": 1, "block": 1, "rank": 0}
        for name, bound in minimum.items():
            value = getattr(self, name)
            if value is not None and not value >= bound:
                raise ValueError(f"BlockKrylov: {name} must be at least {bound:g}, got {value!r}")

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
        b = self._block(n, k)
        proof_columns = 4 * min(n, _TUNING.proof_widths[-1]) if self.prove else 0
        # The basis and its image are copied when they grow, so they count as four arrays.
        return 8 * n * (self._rank(n, b) + 4 * _capacity(n, b) + 6 * b + proof_columns)

    def cost(self, n: int, k: int, read: Cost, rounds: bool = False) -> Cost:
        """Predict the cost of k eigenpairs of an n x n kernel matrix.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.
        read : Cost
            Cost of evaluating or reading K once, without the products.
        rounds : bool, default=False
            Whether later passes may use float32.

        Returns
        -------
        Cost
            The expected work for a typical number of passes.
        """
        b = self._block(n, k)
        r, m, new = self._rank(n, b), min(n, 3 * b), 0.6 * b  # rank, mean basis size, new columns
        factor = Cost(thin=2.0 * n * r**2 + 15.0 * r**3)  # factor F, eigenvectors of F F^T
        thin = 4.0 * n * r * new + 14.0 * n * m * new + 4.0 * n * m * b + 5.0 * m**3
        passes = min(_TUNING.min_expected_passes + float(np.log2(k)), _TUNING.max_expected_passes)
        pass_units = passes
        if rounds and Float32Products.is_worthwhile(n):
            pass_units = _TUNING.float64_passes + _TUNING.float32_pass_cost * (
                passes - _TUNING.float64_passes
            )
        one_pass = read + Cost(products=2.0 * n * n * new)
        return factor + r / n * read + pass_units * one_pass + passes * Cost(thin=thin, calls=80)

    def eigenpairs(
        self,
        gram: Operator,
        k: int | None = None,
        *,
        log: ProgressCallback | None = None,
        start: np.ndarray | None = None,
        **_: object,
    ) -> EigenPairs:
        """Return the k largest eigenpairs.

        Parameters
        ----------
        gram : GramOperator or CentredGram of shape (n, n)
            The symmetric matrix K.
        k : int or None, default=None
            Number of pairs; None means all n.
        log : callable or None, default=None
            Called with a progress message after each pass.
        start : ndarray of shape (n, b) or None, default=None
            Initial basis, for example eigenvectors of a similar matrix.
        **_ : object
            Ignored; accepted so that all eigensolvers can be called with the same options.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) in descending order, eigenvectors of shape (n, k), residuals
            of shape (k,), a report and a certificate.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not reached after `max_iter` passes.
        """
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        b = self._block(n, k)
        rng = as_generator(self.random_state)
        with one_blas_thread:  # results are then identical for any number of threads
            M = self._factor(gram, self._rank(n, b), rng)
            Z = _orthonormal(_first_block(n, b, M, start, rng), np.empty((n, 0)), rng, fill=b)
            result = self._iterate(gram, Z, k, M, rng, log or (lambda _: None))
            norm, message = matrix_norms(gram)[1], ""
            values, vectors = sort_and_fix_signs(
                result.t[:k], result.U, eigenvalue_rounding(float, norm)
            )
            residuals = result.r[:k].copy()
            for a, b in degenerate_ranges(values, eigenvalue_rounding(float, norm)):
                # The eigenvectors of this eigenspace were rotated, which mixes their residuals.
                residuals[a:b] = np.linalg.norm(residuals[a:b])
        certificate = result.certificate
        status = Status.CONVERGED if result.converged else Status.NOT_CONVERGED
        near_rounding = residuals > max(self.tol, 1e-3) * np.abs(values)
        near_rounding &= values > 0.01 * certificate.slack  # smaller eigenvalues count as 0
        if result.converged and near_rounding.any():
            message = (
                f"{message} {int(near_rounding.sum())} eigenvalues are close to the rounding error "
                f"of K in {gram.dtype}, {certificate.slack:.1e}: check their residuals"
            )
        if not result.converged:
            worst = relative_residual(result.r[:k], result.t[:k])
            message = f"relative residual {worst:.1e} after {result.passes} passes. {message}"
            warn_caller(
                f"block Krylov did not converge: largest relative residual {worst:.1e} after "
                f"{result.passes} passes, but {self.tol or _TUNING.default_tol:.1e} was required; "
                f"the usual cause is a slowly decaying spectrum. Raise max_iter or tol",
                ConvergenceWarning,
            )
        report = Report(repr(self), status, result.passes, message=message.strip())
        return EigenPairs(values, vectors, residuals, report, certificate).completed(watch)

    def _iterate(
        self,
        A: Operator,
        new: np.ndarray,
        k: int,
        M: DavidsonPreconditioner | None,
        rng: Any,
        log: ProgressCallback,
    ) -> _KrylovResult:
        """Iterate until the residuals of the first k Ritz pairs are small.

        If `prove` is True, columns may be added to prove that no eigenvalue was overlooked.
        """
        n, b = new.shape
        max_passes, tol = self.max_iter or _TUNING.max_passes, self.tol or _TUNING.default_tol
        capacity, restart_size, passes = _capacity(n, b), max(b, k + _TUNING.guard_pairs), 0
        basis, use_float32 = RitzBasis(n), False
        while True:
            if use_float32 and basis.float32 is not None:
                basis.append(new, *basis.float32.times(new))
            else:
                basis.append(new, np.asarray(A @ new, dtype=float))
            passes += 1
            t, W = basis.ritz()
            leading = W[:, : b if passes == 1 else min(k + _TUNING.guard_pairs, len(t))]
            U, R = basis.Z @ leading, basis.Y @ leading
            R -= U * t[: leading.shape[1]]
            float32_errors = basis.error_estimates(leading)[0]
            r = np.linalg.norm(R, axis=0) + float32_errors
            allowed = np.maximum(tol * np.abs(t[: len(r)]), _residual_floor(A, t))
            unconverged = np.flatnonzero(r > allowed)
            n_converged = int(np.sum(r[:k] <= allowed[:k]))
            progress = (
                f"pass {passes}: {n_converged} of {k} components converged, "
                f"largest relative residual {relative_residual(r[:k], t[:k]):.1e}"
            )
            log(ProgressStep(progress))
            exhausted = passes >= max_passes or len(basis) == n
            if n_converged == k or exhausted:
                all_residuals, certificate = _certify_basis(A, M, basis, t, W, k)
                may_prove = self.prove and passes == 1 and not exhausted
                may_prove = may_prove and not certificate.nothing_missed
                proof = _proof_vectors(A, t, r, k, M, basis.Z) if may_prove else None
                if proof is None:
                    converged = n_converged == k
                    return _KrylovResult(t, all_residuals, U[:, :k], passes, converged, certificate)
                text = f"one more pass with {proof.shape[1]} columns"
                log(f"{text}, to prove that nothing was missed")
                new = proof  # if a larger eigenvalue was missed, the next residuals show it
                continue
            if np.any(float32_errors[:k] > 0.5 * allowed[:k]):
                # Float32 errors prevent convergence: restart in float64 from the Ritz vectors.
                new, use_float32 = basis.Z @ W[:, :restart_size], False
                basis = RitzBasis(n, basis.float32)
                continue
            if M is None:
                corrections = np.asarray(basis.Y[:, -new.shape[1] :])
            else:
                corrections = M.solve(R[:, unconverged], t[unconverged])
            float32 = Float32Products.of(A, rng) if passes == 1 and M is not None else None
            if float32 is not None:
                basis.track_float32_errors(float32)
            # Once float32 is accurate enough, it remains so, because later corrections are smaller.
            if basis.float32 is not None and not use_float32:
                wanted = unconverged < k
                expected_errors = basis.float32.expected_error(corrections[:, wanted])
                largest_errors = _TUNING.float32_error_fraction * allowed[unconverged][wanted]
                use_float32 = bool(np.all(expected_errors <= largest_errors))
            proof = _proof_vectors(A, t, r, k, M, basis.Z) if self.prove and passes == 1 else None
            if proof is not None:
                log(f"{proof.shape[1]} extra columns, to prove that nothing was missed")
                capacity, restart_size = capacity + proof.shape[1], restart_size + proof.shape[1]
                corrections = np.hstack([proof, corrections])
            new = _orthonormal(corrections, basis.Z, rng, fill=1)
            if len(basis) + new.shape[1] > capacity:  # thick restart with the best Ritz vectors
                basis.restart(t, W[:, :restart_size])

    def _factor(self, gram: Operator, rank: int, rng: Any) -> DavidsonPreconditioner | None:
        if not hasattr(uncentred(gram), "block") or rank < 1:
            return None
        try:
            return DavidsonPreconditioner.of(gram, rank, rng)
        except NotPositiveDefiniteError:
            return None

    def _block(self, n: int, k: int) -> int:
        return min(n, max(self.block or k + max(8, k // 4), k))

    def _rank(self, n: int, b: int) -> int:
        if self.rank is not None:
            return min(n, self.rank)
        # The factor takes n rank^2 operations, and a pass about 100 n^2.  By default, the factor
        # takes at most 512 MiB, unless a minimum rank of 8 b needs more.
        affordable = max(8 * b, min(int(4.0 * np.sqrt(n)), 2**26 // n))
        return min(n // 2, affordable)


class _KrylovResult(NamedTuple):
    """Result of the block Krylov iteration: Ritz pairs, residuals and certificate."""

    t: np.ndarray  # all Ritz values, in descending order
    r: np.ndarray  # residual norms of all Ritz pairs
    U: np.ndarray  # the first k Ritz vectors
    passes: int
    converged: bool
    certificate: Certificate


def _capacity(n: int, b: int) -> int:
    return min(n, 5 * b)


def _first_block(
    n: int, b: int, M: DavidsonPreconditioner | None, start: np.ndarray | None, rng: Any
) -> np.ndarray:
    if start is not None:
        return np.asarray(start, dtype=float)
    return rng.standard_normal((n, b)) if M is None else M.leading(b)


def _orthonormal(N: np.ndarray, Z: np.ndarray, rng: Any, fill: int = 0) -> np.ndarray:
    """Return an orthonormal basis of span(N) after projection onto the complement of span(Z).

    If the basis has fewer than `fill` columns, random columns are added.
    """
    n = len(N)
    size = np.linalg.norm(N, axis=0)
    N = N[:, size > 0] / size[size > 0]
    N = N - Z @ (Z.T @ N)
    Q = _cholesky_qr(N)
    if Q is None:
        Q, R, _ = qr(N, mode="economic", pivoting=True, check_finite=False)
        Q = Q[:, : int(np.sum(np.abs(R.diagonal()) > 1e-13))]
    Q = Q - Z @ (Z.T @ Q)  # project again: dividing by small diagonal entries magnified rounding
    missing = min(fill, n - Z.shape[1]) - Q.shape[1]
    if missing > 0:
        all_columns = np.hstack([Z, Q])
        Q = np.hstack([Q, _orthonormal(rng.standard_normal((n, missing)), all_columns, rng)])
    again = _cholesky_qr(Q)
    return np.linalg.qr(Q)[0] if again is None else again


def _cholesky_qr(N: np.ndarray) -> np.ndarray | None:
    """Return N R^-1 with R^T R = N^T N (Cholesky QR), or None if N is too ill-conditioned.

    The result is orthonormal up to an error of cond(N)^2 eps; applying the function again removes
    this error.  Cholesky QR is faster than Householder QR, because it uses matrix products instead
    of processing N column by column.
    """
    R, info = lapack.dpotrf(N.T @ N, lower=0, clean=1)
    if info or not N.size or R.diagonal().min() < _TUNING.min_cholesky_ratio * R.diagonal().max():
        return None
    return np.ascontiguousarray(solve_triangular(R, N.T, trans="T", check_finite=False).T)


def _residual_floor(A: Operator, t: np.ndarray) -> float:
    """Return the residual norm below which a residual is only rounding error.

    Call it after the first product with A, because the norm of A is unknown before.
    """
    norm = matrix_norms(A)[1] if hasattr(A, "uncentred_norm") else float(np.abs(t).max())
    return eigenvalue_rounding(A.dtype, norm)


def _certify_basis(
    A: Operator,
    M: DavidsonPreconditioner | None,
    basis: RitzBasis,
    t: np.ndarray,
    W: np.ndarray,
    k: int,
) -> tuple[np.ndarray, Certificate]:
    """Return the residuals of all Ritz pairs, and the certificate of the first k."""
    squared, norm = matrix_norms(A)
    slack, total = eigenvalue_rounding(A.dtype, norm), _trace(A)
    overlap = M.overlap(basis.Z @ W) if M is not None and _is_mercer(A) else None
    norms, (float32_errors, shifts) = basis.residuals(t, W), basis.error_estimates(W)
    r = norms + float32_errors
    # Bound on the error of the terms t^2 + 2 r^2 that `certify` subtracts from |A|_F^2.
    floor = 8 * np.finfo(A.dtype).eps * norm**2 + float(
        np.sum(2.0 * np.abs(t) * shifts + shifts**2 + 2.0 * (r**2 - norms**2))
    )

    def bound(j: int, squares: float) -> float:
        others = np.zeros(0)
        if overlap is not None:
            others = overlap.complement_eigenvalues(j)[1:] - (1.0 + len(overlap.s) / 16.0) * slack
        rest = total - len(t) * slack - float(np.sum(t[:j] + shifts[:j]))
        return largest_value_bound(len(basis.Z) - j, rest, squares, others)

    certificate = certify(
        t,
        r,
        k,
        squared_norm=squared,
        slack=slack + float(shifts[:k].max()),
        floor=float(np.sqrt(floor)),
        ritz=True,
        bound=bound,
    )
    return r, certificate


def _proof_vectors(
    A: Operator,
    t: np.ndarray,
    r: np.ndarray,
    k: int,
    M: DavidsonPreconditioner | None,
    Z: np.ndarray,
) -> np.ndarray | None:
    """Return extra basis vectors for the proof that no eigenvalue above t_k was overlooked.

    They are chosen so that the bound on the eigenvalues outside the basis is expected to fall below
    t_k.  Returns None if no extra vectors are needed, or if more than 256 would be needed.  t and r
    are the Ritz values and residual norms of the first block.  Each extra eigenvector of the
    preconditioner, with eigenvalue s_j, reduces the squared Frobenius norm of A outside the basis
    by about s_j (s_j + gain), where `gain` is estimated from the second half of the block.
    """
    squared, total = matrix_norms(A)[0], _trace(A)
    if M is None or not np.isfinite(squared) or not t[k - 1] > 0:
        return None
    last = slice(len(r) // 2, min(len(r), M.used))
    gain = float(np.sum(t[last] ** 2 + 2.0 * r[last] ** 2 - M.s[last] ** 2))
    gain = max(gain, 0.0) / max(float(np.sum(M.s[last])), 1e-300)
    s, is_mercer = M.s[M.used :], _is_mercer(A)
    total, squared = total - float(np.sum(t)), squared - float(np.sum(t**2))
    for n_extra in (0, *_TUNING.proof_widths):
        n_extra = min(n_extra, len(s))
        squares = squared - float(np.sum(s[:n_extra] * (s[:n_extra] + gain)))
        others = s[n_extra + 1 :] if is_mercer else s[:0]
        count = len(Z) - len(t) - n_extra
        rest = total - float(np.sum(s[:n_extra]))
        if largest_value_bound(count, rest, squares, others) < 0.8 * t[k - 1]:
            break
    else:
        return None
    vectors = _orthonormal(M.next_vectors(n_extra), Z, None) if n_extra else np.empty((0, 0))
    return vectors if vectors.size else None


def _trace(A: Operator) -> float:
    return float(A.trace() if hasattr(A, "trace") else np.sum(A.diagonal()))


def _is_mercer(A: Operator) -> bool:
    """Return True if the kernel of A is known to be positive semidefinite on these points."""
    K = uncentred(A)
    properties, width = K.kernel.properties, len(getattr(K.X, "shape", ()))
    limit = properties.columns
    is_valid_dimension = limit is None or (width == 2 and K.X.shape[1] <= limit)
    return properties.order == 0 and is_valid_dimension
