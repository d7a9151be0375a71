"""Running mean and standard deviation of columns with missing values, over blocks of rows."""

from __future__ import annotations

import numpy as np

__all__ = ["RunningStatistics"]


class RunningStatistics:
    """Count, mean and standard deviation of each column, updated block by block.

    For the non-missing values of each column, it stores their number n, their mean m and
    S = sum (x - m)^2.  Two blocks of n_1 and n_2 values are merged by

        m = m_1 + (m_2 - m_1) n_2 / n,    S = S_1 + S_2 + (m_2 - m_1)^2 n_1 n_2 / n

    with n = n_1 + n_2.  All values of a column may be missing in a block.
    """

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width)
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)

    def update(self, X: np.ndarray) -> None:
        """Update the statistics with a block of rows; NaN is a missing value."""
        is_present = ~np.isnan(X)
        n = is_present.sum(axis=0)
        mean = np.where(is_present, X, 0.0).sum(axis=0) / np.maximum(n, 1)
        deviations = np.where(is_present, X - mean, 0.0)
        # The sum of the deviations would be 0 without rounding errors; use it to correct the mean.
        mean += deviations.sum(axis=0) / np.maximum(n, 1)
        deviations = np.where(is_present, X - mean, 0.0)
        total = np.maximum(self.count + n, 1)
        delta = np.where(n > 0, mean - self.mean, 0.0)
        self.mean += delta * (n / total)
        # Do not warn if squares of values above 1e154 overflow; the scale is then infinite.
        with np.errstate(over="ignore"):
            self._squares += (deviations**2).sum(axis=0) + delta * (self.count * n / total) * delta
        self.count += n

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of each column; 1 if its values differ only by rounding errors."""
        n, eps = np.maximum(self.count, 1), np.finfo(float).eps
        variance = self._squares / n
        with np.errstate(over="ignore"):
            constant = variance <= n * eps * variance + (n * self.mean * eps) ** 2
        constant &= np.isfinite(variance)
        return np.where(constant, 1.0, np.sqrt(variance))
