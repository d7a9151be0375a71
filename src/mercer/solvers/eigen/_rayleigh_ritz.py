"""The Rayleigh-Ritz procedure for a symmetric A in a growing orthonormal basis Z.

With the image Y = A Z, the Ritz values t, the Ritz vectors U and their residual norms are

    T = Z^T A Z = W diag(t) W^T,    U = Z W,    |A u_i - t_i u_i| = |Y w_i - t_i Z w_i|

Some columns of Y may be computed in float32 (`Float32Products`), with the error E of the float32
matrix.  The entry z_i^T A z_j of T is computed from the older of the columns i and j of Y, because
the float64 columns come first.  Let x be the component of u_i in the span of the basis vectors
with a float32 image.  Then the error of the Ritz value is x^T E x, and the error of the residual
norm is at most |E x|.

`BlockKrylov` computes A V in float32 if the columns of V are small corrections to the Ritz vectors.
Let W be their coefficients in the Ritz vectors and E the rounding error of the float32 matrix.  The
error of the residuals is then E x with x = V W.  The entries of E behave like independent noise, so
|E x| is about |E|_F / sqrt(n) |x|, far below any worst-case bound.  It is therefore estimated for
each x from s rows drawn at random,

    |E x|^2 ~ n / s * sum_{i in sample} (E x)_i^2,

and multiplied by a safety factor of 2.

New columns of Z are residuals that are multiplied by the Davidson preconditioner (A^ - t)^-1, which
is computed from a low-rank approximation A^ = F^T F of A.  With F F^T = W diag(s) W^T, the
eigenpairs of A^ are s_j and v_j = F^T w_j / sqrt(s_j).  In the directions orthogonal to the rows of
F, A is replaced by a common eigenvalue: the trace of A - A^ divided by the number of these
directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from ..._core.linalg import eigh
from ...gram import CentredGram, GramOperator, rpcholesky, uncentred
from ..linear import row_gram

Operator: TypeAlias = GramOperator | CentredGram

_STRIP_ROWS = 4096  # rows of Y and Z per step in `residuals`; limits the temporary arrays
_SAMPLED_ROWS = 256  # number of rows on which the float32 error is measured
# With fewer points than this, float32 products save hardly any time.
_MIN_POINTS = 32 * _SAMPLED_ROWS
_SAFETY_FACTOR = 2.0  # estimated error norms are multiplied by this


class Float32Products:
    """Computes products with A in float32, together with their errors on a sample of rows."""

    def __init__(self, A: Operator, single: Operator, rng: Any) -> None:
        n = A.shape[0]
        self.A, self.single = A, single
        self.rows = np.sort(rng.choice(n, _SAMPLED_ROWS, replace=False))
        self.scale = _SAFETY_FACTOR * np.sqrt(n / _SAMPLED_ROWS)

    @staticmethod
    def is_worthwhile(n: int) -> bool:
        """Return True if n is large enough for the sampled rows to cost little."""
        return n >= _MIN_POINTS

    @classmethod
    def of(cls, A: Operator, rng: Any) -> Self | None:
        """Return the float32 products of A, or None if A does not support them or is too small."""
        if not cls.is_worthwhile(A.shape[0]) or not hasattr(A, "rounded"):
            return None
        single = A.rounded()
        return None if single is None else cls(A, single, rng)

    def expected_error(self, V: np.ndarray) -> np.ndarray:
        """Estimate the norm of the float32 error of A v for each column v of V.

        Only the sampled rows of A V are computed.
        """
        return self.error_norms(self.A.part(self.rows, V) - self.single.part(self.rows, V))

    def times(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A V computed in float32, and its error on the sampled rows."""
        Y = np.asarray(self.single @ V, dtype=float)
        return Y, self.A.part(self.rows, V) - Y[self.rows]

    def error_norms(self, sampled_error: np.ndarray) -> np.ndarray:
        """Estimate the norms of error vectors (columns) from their entries in the sampled rows."""
        return np.asarray(self.scale * np.linalg.norm(sampled_error, axis=0))


class RitzBasis:
    """Growing orthonormal basis Z with its image Y = A Z and projection T = Z^T A Z.

    It also tracks the error of image columns that were computed in float32.
    """

    def __init__(self, n: int, float32: Float32Products | None = None) -> None:
        self.Z, self.Y, self.T = np.empty((n, 0)), np.empty((n, 0)), np.empty((0, 0))
        self.float32 = float32
        # The float32 error of Y on the rows that `Float32Products` samples.
        self.sampled_error = np.empty((0 if float32 is None else len(float32.rows), 0))
        # w^T inexact w is |x|^2 for the Ritz vector Z w, with x as in the module docstring.
        self.inexact = np.empty((0, 0))

    def __len__(self) -> int:
        return self.Z.shape[1]

    def append(
        self, columns: np.ndarray, image: np.ndarray, sampled_error: np.ndarray | None = None
    ) -> None:
        """Append columns that are orthonormal to each other and to all columns of Z.

        `image` is A times the columns.  `sampled_error` is its float32 error on the sampled rows,
        or None if it was computed in float64.
        """
        edge = self.Y.T @ columns
        corner = columns.T @ image
        self.T = np.block([[self.T, edge], [edge.T, 0.5 * (corner + corner.T)]])
        self.Z, self.Y = np.hstack([self.Z, columns]), np.hstack([self.Y, image])
        m, exact = columns.shape[1], sampled_error is None
        no_error = np.zeros((len(self.sampled_error), m))
        self.sampled_error = np.hstack(
            [self.sampled_error, no_error if sampled_error is None else sampled_error]
        )
        off_diagonal = np.zeros((len(self.inexact), m))
        self.inexact = np.block(
            [[self.inexact, off_diagonal], [off_diagonal.T, np.eye(m) * (not exact)]]
        )

    def track_float32_errors(self, float32: Float32Products) -> None:
        """Start to track float32 errors; all images so far must have been computed in float64."""
        self.float32, self.sampled_error = float32, np.zeros((len(float32.rows), len(self)))

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the Ritz values in descending order, and W with the Ritz vectors Z W."""
        # Use divide and conquer: LAPACK's default driver loses three digits of orthogonality.
        t, W = eigh(self.T, driver="evd")
        return t[::-1], W[:, ::-1]

    def residuals(self, t: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Return the residual norms of Ritz pairs, computed as if Y had no float32 error."""
        total = np.zeros(len(t))
        for start in range(0, len(self.Y), _STRIP_ROWS):
            rows = slice(start, start + _STRIP_ROWS)
            total += np.sum((self.Y[rows] @ W - (self.Z[rows] @ W) * t) ** 2, axis=0)
        return np.sqrt(total)

    def error_estimates(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return estimates of the float32 errors of residual norms and of Ritz values.

        They are |E x| and |E x| |x| for the E and x of the module docstring, multiplied by the
        safety factor of `Float32Products`.
        """
        if self.float32 is None:
            return np.zeros(W.shape[1]), np.zeros(W.shape[1])
        error_norms = self.float32.error_norms(self.sampled_error @ W)
        squares = np.einsum("ji,jk,ki->i", W, self.inexact, W, optimize=True)
        return error_norms, error_norms * np.sqrt(np.maximum(squares, 0.0))

    def restart(self, t: np.ndarray, W: np.ndarray) -> None:
        """Reduce the basis to the Ritz vectors Z W for the given columns W (a thick restart)."""
        self.Z, self.Y, self.T = self.Z @ W, self.Y @ W, np.diag(t[: W.shape[1]])
        self.sampled_error, self.inexact = self.sampled_error @ W, W.T @ self.inexact @ W


# Minimum of the divisor t - s_j, relative to the Ritz value t.  The s_j are only approximate
# eigenvalues of A, so smaller differences are not meaningful.
_MIN_RELATIVE_DIVISOR = 0.05


class FactorOverlap(NamedTuple):
    """Eigenvalues s_j of a low-rank A^, and products u_i . v_j of vectors with its eigenvectors."""

    s: np.ndarray
    products: np.ndarray

    def complement_eigenvalues(self, j: int) -> np.ndarray:
        """Return the eigenvalues of A^ on the complement of the first j vectors, largest first.

        These are the eigenvalues of P A^ P with the projection P = I - sum_{i <= j} u_i u_i^T, and
        equal those of S^1/2 (I - C^T C) S^1/2, where S = diag(s) and C holds the products.  If
        A - A^ is positive semidefinite, the i-th of them is a lower bound on the i-th eigenvalue of
        P A P.
        """
        C = self.products[:j] * np.sqrt(self.s)
        return np.asarray(eigh(np.diag(self.s) - C.T @ C, eigvals_only=True)[::-1])


class DavidsonPreconditioner:
    """Davidson preconditioner from a randomly pivoted Cholesky factor of a (centred) Gram matrix.

    The eigenpairs (s_j, v_j) of A^ = F^T F approximate those of the Gram matrix A.

    Parameters
    ----------
    F : ndarray of shape (rank, n)
        The factor, A ~ A^ = F^T F.
    tail : float
        The eigenvalue that is assumed in the directions orthogonal to the rows of F.
    n_threads : int, optional
    """

    def __init__(self, F: np.ndarray, tail: float, n_threads: int | None = None) -> None:
        self.F = F
        s, W = eigh(row_gram(F, n_threads))
        keep = s > 1e-12 * s.max(initial=1e-300)
        self.s, W = s[keep][::-1], W[:, keep][:, ::-1]
        self.B = W / np.sqrt(self.s)  # v_j = F^T B_j
        self.tail = tail
        self.used = 0  # the Krylov basis already contains this many leading v_j

    @classmethod
    def of(cls, gram: Operator, rank: int, rng: Any) -> Self:
        """Create the preconditioner of a Gram operator.

        For a `CentredGram`, the uncentred matrix is factored and its factor is centred.
        """
        K = uncentred(gram)
        partial = rpcholesky(K, rank, random_state=rng, n_threads=K.n_threads)
        F, n = partial.factor, gram.shape[0]
        if isinstance(gram, CentredGram):
            F -= (F @ gram.weights)[:, None]
            F *= gram.scale
        return cls(F, partial.trace / max(1, n - len(F)), K.n_threads)

    def leading(self, b: int) -> np.ndarray:
        """Return the first b eigenvectors v_j of A^, and mark them as part of the Krylov basis."""
        self.used = min(b, len(self.s))
        return self.vectors(0, self.used)

    def vectors(self, start: int, stop: int) -> np.ndarray:
        """Return the eigenvectors v_j of A^ for start <= j < stop."""
        return np.asarray(self.F.T @ self.B[:, start:stop])

    def next_vectors(self, count: int) -> np.ndarray:
        """Return the next `count` eigenvectors of A^, and mark them as part of the Krylov basis."""
        start = self.used
        self.used = min(start + count, len(self.s))
        return self.vectors(start, self.used)

    def overlap(self, U: np.ndarray) -> FactorOverlap:
        """Return the products of orthonormal vectors U with each eigenvector v_j of A^."""
        return FactorOverlap(self.s, ((self.F @ U).T @ self.B))

    def solve(self, R: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return the corrections (A^ - t_i I)^-1 r_i for the columns r_i of R.

        Only the eigenvectors v_j of A^ that are not in the Krylov basis yet are used.
        """
        scale = np.maximum(np.abs(t), 1e-300)
        outside = 1.0 / np.minimum(self.tail - t, -_MIN_RELATIVE_DIVISOR * scale)
        B = self.B[:, self.used :]
        inside = 1.0 / np.minimum(self.s[self.used :, None] - t, -_MIN_RELATIVE_DIVISOR * scale)
        product: np.ndarray = R * outside + self.F.T @ (
            B @ ((B.T @ (self.F @ R)) * (inside - outside))
        )
        return product
