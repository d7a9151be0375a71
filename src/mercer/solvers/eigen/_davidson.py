"""A = F^T F + small as a preconditioner: (A^ - t)^-1 on the part that the factor F leaves to do.

With F F^T = W diag(s) W^T, the eigenpairs of A^ = F^T F are s_j and v_j = F^T w_j / sqrt(s_j).  For
the directions beyond F a common eigenvalue is assumed: the mean of what is left of the trace.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from ..._runtime.linalg import eigh
from ...gram import rpcholesky
from ..linear import outer

__all__ = ["DavidsonPreconditioner"]

_CLOSEST = 0.05  # the least divisor t - s_j, relative to t, as A^ knows s_j no better


class Shares(NamedTuple):
    """Eigenvalues s_j of A^, and the products u_i . v_j of orthonormal vectors u_i with its own."""

    s: np.ndarray
    products: np.ndarray

    def beyond(self, j: int) -> np.ndarray:
        """Return the eigenvalues of P A^ P, descending, P = I - sum_{i <= j} u_i u_i^T.

        They are those of S^1/2 (I - C^T C) S^1/2; and where A - A^ is positive semidefinite, they
        bound the eigenvalues of P A P from below, one by one.
        """
        C = self.products[:j] * np.sqrt(self.s)
        return np.asarray(eigh(np.diag(self.s) - C.T @ C, eigvals_only=True)[::-1])


class DavidsonPreconditioner:
    """The approximation A^ = F^T F of a Gram, centred as it is, from randomly chosen pivots."""

    def __init__(self, F: np.ndarray, tail: float, n_threads: int | None = None) -> None:
        self.F = F
        s, W = eigh(outer(F, n_threads))
        keep = s > 1e-12 * s.max(initial=1e-300)
        self.s, W = s[keep][::-1], W[:, keep][:, ::-1]
        self.B = W / np.sqrt(self.s)  # v_j = F^T B_j
        self.tail = tail
        self.used = 0  # how many of the v_j are in the basis from the start

    @classmethod
    def of(cls, gram: Any, rank: int, rng: Any) -> Self:
        """Factor a Gram, or the one beneath a CentredGram."""
        held = getattr(gram, "gram", gram)
        partial = rpcholesky(held, rank, random_state=rng, n_threads=held.n_threads)
        F, n = partial.factor, gram.shape[0]
        if held is not gram:
            F -= (F @ gram.weights)[:, None]
            F *= gram.scale
        return cls(F, partial.trace / max(1, n - len(F)), held.n_threads)

    def leading(self, b: int) -> np.ndarray:
        """Return the first b vectors v_j."""
        self.used = min(b, len(self.s))
        return self.vectors(0, self.used)

    def vectors(self, start: int, stop: int) -> np.ndarray:
        """Return v_j for start <= j < stop."""
        return np.asarray(self.F.T @ self.B[:, start:stop])

    def take(self, more: int) -> np.ndarray:
        """Return the next so many vectors v_j, to be in the basis from now on."""
        start = self.used
        self.used = min(start + more, len(self.s))
        return self.vectors(start, self.used)

    def shares(self, U: np.ndarray) -> Shares:
        """Return what orthonormal vectors U have of each v_j."""
        return Shares(self.s, ((self.F @ U).T @ self.B))

    def solve(self, R: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return (A^ - t_i)^-1 r_i, on the span of the vectors that are not in the basis yet."""
        scale = np.maximum(np.abs(t), 1e-300)
        beyond = 1.0 / np.minimum(self.tail - t, -_CLOSEST * scale)
        B = self.B[:, self.used :]
        inside = 1.0 / np.minimum(self.s[self.used :, None] - t, -_CLOSEST * scale)
        return R * beyond + self.F.T @ (B @ ((B.T @ (self.F @ R)) * (inside - beyond)))
