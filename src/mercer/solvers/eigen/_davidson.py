"""Davidson preconditioner (A^ - t)^-1 from a low-rank approximation A^ = F^T F of A.

With F F^T = W diag(s) W^T, the eigenpairs of A^ are s_j and v_j = F^T w_j / sqrt(s_j).  In the
directions orthogonal to the rows of F, A is replaced by a common eigenvalue: the trace of A - A^
divided by the number of these directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from ..._core.linalg import eigh
from ...gram import rpcholesky
from ..linear import row_gram

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
    def of(cls, gram: Any, rank: int, rng: Any) -> Self:
        """Create the preconditioner of a Gram operator.

        For a `CentredGram`, the uncentred matrix is factored and its factor is centred.
        """
        uncentred = getattr(gram, "gram", gram)
        partial = rpcholesky(uncentred, rank, random_state=rng, n_threads=uncentred.n_threads)
        F, n = partial.factor, gram.shape[0]
        if uncentred is not gram:
            F -= (F @ gram.weights)[:, None]
            F *= gram.scale
        return cls(F, partial.trace / max(1, n - len(F)), uncentred.n_threads)

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
        return R * outside + self.F.T @ (B @ ((B.T @ (self.F @ R)) * (inside - outside)))
