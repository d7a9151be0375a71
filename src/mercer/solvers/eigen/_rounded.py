"""A in float32 tiles, and what is lost by that: measured, in a sample of rows.

Let A V be taken from tiles of float32 where the V are corrections, of small weight W in the Ritz
vectors.  The residuals are then off by E V W, E the error of the tiles.  Entries of E have no
pattern, so that |E v| is about |E|_F / sqrt(n), far below any bound; it is measured in rows drawn
at random,

    |E x|^2 ~ n / s * sum_{i in sample} (E x)_i^2,

for the very x = V W that are in question, and doubled.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

__all__ = ["Rounded"]

_SAMPLE = 256  # rows
_FEWEST = 32 * _SAMPLE  # points of which so many rows cost little: at 5000 nothing is gained
_DOUBLED = 2.0


class Rounded:
    """Products with A in tiles of float32, each with what it has lost in some rows."""

    def __init__(self, A: Any, single: Any, rng: Any) -> None:
        n = A.shape[0]
        self.A, self.single = A, single
        self.rows = np.sort(rng.choice(n, _SAMPLE, replace=False))
        self.unit = _DOUBLED * np.sqrt(n / _SAMPLE)

    @staticmethod
    def enough(n: int) -> bool:
        """Tell whether n points are so many that a sample of rows costs little."""
        return n >= _FEWEST

    @classmethod
    def of(cls, A: Any, rng: Any) -> Self | None:
        """Return A in float32 if it can be had, and is worth it."""
        if not cls.enough(A.shape[0]) or not hasattr(A, "rounded"):
            return None
        single = A.rounded()
        return None if single is None else cls(A, single, rng)

    def lost(self, V: np.ndarray) -> np.ndarray:
        """Return |E v| for each column v, before all of the product is computed."""
        return self.sizes(self.A.part(self.rows, V) - self.single.part(self.rows, V))

    def times(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A V, and what it has lost in the sample."""
        Y = np.asarray(self.single @ V, dtype=float)
        return Y, self.A.part(self.rows, V) - Y[self.rows]

    def sizes(self, lost: np.ndarray) -> np.ndarray:
        """Return |E x| for columns E x that are known in the sample."""
        return np.asarray(self.unit * np.linalg.norm(lost, axis=0))
