"""Products with A in float32 tiles, with an error estimate from a random sample of rows.

`BlockKrylov` computes A V in float32 if the columns of V are small corrections to the Ritz vectors.
Let W be their coefficients in the Ritz vectors and E the rounding error of the float32 matrix.  The
error of the residuals is then E x with x = V W.  The entries of E behave like independent noise, so
|E x| is about |E|_F / sqrt(n) |x|, far below any worst-case bound.  It is therefore estimated for
each x from s rows drawn at random,

    |E x|^2 ~ n / s * sum_{i in sample} (E x)_i^2,

and multiplied by a safety factor of 2.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

__all__ = ["Float32Products"]

_SAMPLED_ROWS = 256  # number of rows on which the float32 error is measured
# With fewer points than this, float32 products save hardly any time.
_MIN_POINTS = 32 * _SAMPLED_ROWS
_SAFETY_FACTOR = 2.0  # estimated error norms are multiplied by this


class Float32Products:
    """Computes products with A in float32, together with their errors on a sample of rows."""

    def __init__(self, A: Any, single: Any, rng: Any) -> None:
        n = A.shape[0]
        self.A, self.single = A, single
        self.rows = np.sort(rng.choice(n, _SAMPLED_ROWS, replace=False))
        self.scale = _SAFETY_FACTOR * np.sqrt(n / _SAMPLED_ROWS)

    @staticmethod
    def is_worthwhile(n: int) -> bool:
        """Return True if n is large enough for the sampled rows to cost little."""
        return n >= _MIN_POINTS

    @classmethod
    def of(cls, A: Any, rng: Any) -> Self | None:
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
