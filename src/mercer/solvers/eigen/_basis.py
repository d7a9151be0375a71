"""An orthonormal basis Z with its image Y = A Z, and Rayleigh-Ritz in its span.

    T = Z^T A Z = W diag(t) W^T,    U = Z W,    |A u_i - t_i u_i| = |Y w_i - t_i Z w_i|

Some columns of Y may come from tiles of float32 (`Rounded`), and the ones that are exact make up
for it: T takes each product z_i^T A z_j from the older of the two images.  A Ritz value is then off
by x^T E x, a residual by |E x|, x the part of u_i in the columns that are not exact.
"""

from __future__ import annotations

import numpy as np

from ..._runtime.linalg import eigh
from ._rounded import Rounded

__all__ = ["Basis"]

_STRIP = 4096  # rows


class Basis:
    """Z, Y and T, and what the image has lost."""

    def __init__(self, n: int, rounded: Rounded | None = None) -> None:
        self.Z, self.Y, self.T = np.empty((n, 0)), np.empty((n, 0)), np.empty((0, 0))
        self.rounded = rounded
        self.lost = np.empty((0 if rounded is None else len(rounded.rows), 0))  # E Z in the sample
        self.inexact = np.empty((0, 0))  # w^T inexact w = |x|^2

    def __len__(self) -> int:
        return self.Z.shape[1]

    def append(self, new: np.ndarray, image: np.ndarray, lost: np.ndarray | None = None) -> None:
        """Take in more columns, orthonormal to all others."""
        edge = self.Y.T @ new
        corner = new.T @ image
        self.T = np.block([[self.T, edge], [edge.T, 0.5 * (corner + corner.T)]])
        self.Z, self.Y = np.hstack([self.Z, new]), np.hstack([self.Y, image])
        m, exact = new.shape[1], lost is None
        none = np.zeros((len(self.lost), m))
        self.lost = np.hstack([self.lost, none if lost is None else lost])
        off = np.zeros((len(self.inexact), m))
        self.inexact = np.block([[self.inexact, off], [off.T, np.eye(m) * (not exact)]])

    def measure(self, rounded: Rounded) -> None:
        """Measure from now on what products in float32 lose; so far all are exact."""
        self.rounded, self.lost = rounded, np.zeros((len(rounded.rows), len(self)))

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the Ritz values, descending, and W."""
        # divide and conquer: LAPACK's default, MRRR, loses three digits of orthogonality
        t, W = eigh(self.T, driver="evd")
        return t[::-1], W[:, ::-1]

    def residuals(self, t: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Return |A u_i - t_i u_i| as far as the image is exact, by strips of rows."""
        total = np.zeros(len(t))
        for start in range(0, len(self.Y), _STRIP):
            rows = slice(start, start + _STRIP)
            total += np.sum((self.Y[rows] @ W - (self.Z[rows] @ W) * t) ** 2, axis=0)
        return np.sqrt(total)

    def doubts(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far off the residuals are, and the Ritz values: |E x| and |E x| |x|."""
        if self.rounded is None:
            return np.zeros(W.shape[1]), np.zeros(W.shape[1])
        off = self.rounded.sizes(self.lost @ W)
        squares = np.einsum("ji,jk,ki->i", W, self.inexact, W, optimize=True)
        return off, off * np.sqrt(np.maximum(squares, 0.0))

    def restart(self, t: np.ndarray, W: np.ndarray) -> None:
        """Keep the Ritz vectors of these columns of W alone."""
        self.Z, self.Y, self.T = self.Z @ W, self.Y @ W, np.diag(t[: W.shape[1]])
        self.lost, self.inexact = self.lost @ W, W.T @ self.inexact @ W
