"""Mean and spread of columns, from blocks of rows in which values may be missing."""

from __future__ import annotations

import numpy as np

__all__ = ["Spread"]


class Spread:
    """n, the mean m and S = sum (x - m)^2 of the values that are there, column by column.

        m = m_1 + (m_2 - m_1) n_2 / n,    S = S_1 + S_2 + (m_2 - m_1)^2 n_1 n_2 / n

    joins two blocks of n = n_1 + n_2 values; a block may have none in some column.
    """

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width)
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)

    def take(self, X: np.ndarray) -> None:
        """Take in a block of rows."""
        there = ~np.isnan(X)
        n = there.sum(axis=0)
        mean = np.where(there, X, 0.0).sum(axis=0) / np.maximum(n, 1)
        away = np.where(there, X - mean, 0.0)
        mean += away.sum(axis=0) / np.maximum(n, 1)  # what the first sum lost by rounding
        away = np.where(there, X - mean, 0.0)
        total = np.maximum(self.count + n, 1)
        gap = np.where(n > 0, mean - self.mean, 0.0)
        self.mean += gap * (n / total)
        with np.errstate(over="ignore"):  # beyond 1e154 the scale is infinite
            self._squares += (away**2).sum(axis=0) + gap * (self.count * n / total) * gap
        self.count += n

    @property
    def scale(self) -> np.ndarray:
        """The standard deviations; 1 for a column whose values differ by rounding alone."""
        n, eps = np.maximum(self.count, 1), np.finfo(float).eps
        variance = self._squares / n
        with np.errstate(over="ignore"):
            constant = variance <= n * eps * variance + (n * self.mean * eps) ** 2
        constant &= np.isfinite(variance)
        return np.where(constant, 1.0, np.sqrt(variance))
