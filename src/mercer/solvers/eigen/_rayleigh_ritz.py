"""The Rayleigh-Ritz procedure for a symmetric A in a growing orthonormal basis Z.

With the image Y = A Z, the Ritz values t, the Ritz vectors U and their residuals are

    T = Z^T A Z = W diag(t) W^T,    U = Z W,    |A u_i - t_i u_i| = |Y w_i - t_i Z w_i|

Some columns of Y may come from float32 tiles (`Float32Products`), with an error E Z.  T takes each
z_i^T A z_j from the older of the two columns of Y, because the float64 columns come first.  Let x
be the part of u_i in the span of the float32 columns.  Then the Ritz value is off by x^T E x,
and the norm of the residual by at most |E x|.
"""

from __future__ import annotations

import numpy as np

from ..._core.linalg import eigh
from ._float32_products import Float32Products

__all__ = ["RitzBasis"]

_STRIP_ROWS = 4096  # rows of Y and Z per step in `residuals`; limits the temporary arrays


class RitzBasis:
    """Orthonormal basis Z, image Y = A Z and T = Z^T A Z, with the error of the float32 columns."""

    def __init__(self, n: int, float32: Float32Products | None = None) -> None:
        self.Z, self.Y, self.T = np.empty((n, 0)), np.empty((n, 0)), np.empty((0, 0))
        self.float32 = float32
        # E Z on the rows that `Float32Products` samples.
        self.sampled_error = np.empty((0 if float32 is None else len(float32.rows), 0))
        self.inexact = np.empty((0, 0))  # w^T inexact w = |x|^2, see the module docstring

    def __len__(self) -> int:
        return self.Z.shape[1]

    def append(
        self, columns: np.ndarray, image: np.ndarray, sampled_error: np.ndarray | None = None
    ) -> None:
        """Append columns that are orthonormal to each other and to all columns of Z.

        `sampled_error` is E times the columns on the sampled rows, or None for a float64 image.
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
        """Start to track the error of float32 products; all columns so far must be float64."""
        self.float32, self.sampled_error = float32, np.zeros((len(float32.rows), len(self)))

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the Ritz values in descending order, and W."""
        # Divide and conquer, because LAPACK's default MRRR loses three digits of orthogonality.
        t, W = eigh(self.T, driver="evd")
        return t[::-1], W[:, ::-1]

    def residuals(self, t: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Return the norms |A u_i - t_i u_i|, computed as if the image Y had no float32 error."""
        total = np.zeros(len(t))
        for start in range(0, len(self.Y), _STRIP_ROWS):
            rows = slice(start, start + _STRIP_ROWS)
            total += np.sum((self.Y[rows] @ W - (self.Z[rows] @ W) * t) ** 2, axis=0)
        return np.sqrt(total)

    def error_estimates(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return estimates of the float32 errors of residuals and Ritz values.

        They are |E x| and |E x| |x|, with the safety factor of `Float32Products`.
        """
        if self.float32 is None:
            return np.zeros(W.shape[1]), np.zeros(W.shape[1])
        error_norms = self.float32.error_norms(self.sampled_error @ W)
        squares = np.einsum("ji,jk,ki->i", W, self.inexact, W, optimize=True)
        return error_norms, error_norms * np.sqrt(np.maximum(squares, 0.0))

    def restart(self, t: np.ndarray, W: np.ndarray) -> None:
        """Reduce the basis to the Ritz vectors Z W of the given columns of W (a thick restart)."""
        self.Z, self.Y, self.T = self.Z @ W, self.Y @ W, np.diag(t[: W.shape[1]])
        self.sampled_error, self.inexact = self.sampled_error @ W, W.T @ self.inexact @ W
