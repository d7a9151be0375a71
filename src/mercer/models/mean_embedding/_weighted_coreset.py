"""Summaries of a sample by a few weighted points: code shared by herding and thinning.

For points S with weights w, the squared distance to the mean embedding mu of all points is

    |sum_s w_s k(s, .) - mu|^2 = w^T K_SS w - 2 w^T mu(S) + |mu|^2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core import (
    as_csr,
    check_budget,
    check_choice,
    ignore_overflow,
    is_count,
    length,
    slices,
    take,
)
from ..._core.linalg import eigh
from ...expansion import Expansion
from ...gram import TiledGram
from ...kernels import Kernel
from ._centred_gram_of_sample import entry_magnitudes, recentred_gram
from ._mmd import clip_squared_distance
from ._sample_validation import check_finite, check_sample, make_kernel, resolve_kernel
from ._statistic_rounding import rounding_margin

__all__ = ["MeanEmbedding", "Summary", "check_summary_options", "optimal_weights"]

_COLUMN_BLOCK = 64  # number of columns of K that are in memory at a time


@dataclass(frozen=True, eq=False)
class Summary:
    """A summary of a sample by m weighted points; the result of `herd` and `thin`.

    Attributes
    ----------
    points : points
        The m points of the summary.
    indices : ndarray of shape (m,) or None
        Their indices in X; None if the points were refined and no longer belong to X.
    weights : ndarray of shape (m,)
        The weights of the points, with sum 1.
    mmd : float
        MMD^2, the squared distance to the mean embedding of all of X.  With equal weights it is
        the value of `mmd(points, X, kernel, "biased")`.  It is computed exactly, up to a rounding
        error of about 1e-15 relative to the entries of K.
    kernel : Kernel
        The kernel, with numbers for all parameters that depend on the data, such as "median".

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import thin
    >>> summary = thin(np.random.default_rng(0).normal(size=(200, 2)), 10)
    >>> summary.points.shape, summary.mmd < 0.01
    ((10, 2), True)
    """

    points: Any = field(repr=False)
    indices: np.ndarray | None = field(repr=False)
    weights: np.ndarray = field(repr=False)
    mmd: float
    kernel: Kernel

    @property
    def expansion(self) -> Expansion:
        """The mean embedding sum_s w_s k(s, .) of the summary, as an `Expansion`."""
        return Expansion.mean(self.kernel, self.points, self.weights)


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """The mean embedding mu of the points X, evaluated at all of them.

    K is recentred, which does not change distances to mu, and evaluated in tiles; it is never
    stored.
    """

    K: TiledGram
    values: np.ndarray  # the values mu(x_i) at all points
    diagonal: np.ndarray
    kernel: Kernel
    X: Any

    @classmethod
    @ignore_overflow
    def of(cls, X: Any, kernel: Any, max_memory: Any) -> MeanEmbedding:
        """Validate X, and compute its mean embedding in one pass over K."""
        kernel = make_kernel(kernel)
        X = as_csr(check_sample(kernel, X, "X"))
        kernel, n = resolve_kernel(kernel, X), length(X)
        K = recentred_gram(kernel, X, max_memory)
        values = np.asarray(K @ np.full(n, 1.0 / n))
        check_finite(values, kernel)
        return cls(K, values, np.asarray(K.diagonal()), kernel, X)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, i: int) -> np.ndarray:
        """Return column i of K, the values k(x_j, x_i) for all j."""
        return self.K.block(slice(None), [i])[:, 0]

    def weighted_columns(
        self, selected: np.ndarray, w: np.ndarray, rows: Any = slice(None)
    ) -> np.ndarray:
        """Return sum_s w_s k(x_j, x_s) over `selected` points x_s, for the x_j in `rows`."""
        parts = slices(len(selected), _COLUMN_BLOCK)
        return np.asarray(sum(self.K.block(rows, selected[p]) @ w[p] for p in parts))

    def squared_distance(self, selected: np.ndarray, w: np.ndarray) -> float:
        """Return |sum_s w_s k(x_s, .) - mu|^2 for `selected` points x_s."""
        self_product = self.weighted_columns(selected, w, selected) @ w
        cross_product, norm2 = w @ self.values[selected], self.values.mean()
        r, sums = (
            entry_magnitudes(self.K),
            abs(self_product) + 2.0 * abs(cross_product) + abs(norm2),
        )
        margin = rounding_margin(self.K.dtype, sums, np.abs(w) @ r[selected] + r.mean())
        return float(
            clip_squared_distance(self_product - 2.0 * cross_product + norm2, margin, self.kernel)
        )

    def summary(self, selected: np.ndarray, weights: str) -> Summary:
        """Return the summary of X by the points with the indices `selected`."""
        w = np.full(len(selected), 1.0 / len(selected))
        if weights == "optimal":
            w = optimal_weights(self.K.block(selected, selected), self.values[selected])
        points = take(self.X, selected)
        return Summary(points, selected, w, self.squared_distance(selected, w), self.kernel)


def optimal_weights(K: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return the weights w with sum 1 that minimise w^T K w - 2 w^T mu.

    The solution has the form w = 1/m + v with sum v = 0, so K needs to be positive definite only
    on vectors of sum 0.  Eigenvalues below 1e-12 times the largest one are dropped, which splits
    the weight equally between points that nearly coincide.
    """
    m = len(K)
    equal = np.full(m, 1.0 / m)
    residual = mu - K @ equal
    centred = K - K.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    values, U = eigh(0.5 * (centred + centred.T))
    positive = values > 1e-12 * max(values[-1], 0.0)
    v = U[:, positive] @ ((U[:, positive].T @ (residual - residual.mean())) / values[positive])
    return equal + v - v.mean()


def check_summary_options(n_points: Any, n: int, weights: Any, max_memory: Any) -> int:
    """Validate `n_points` and `weights` for a sample of n points; return `n_points` as an int."""
    if not is_count(n_points) or n_points > n:
        raise ValueError(
            f"n_points must be an integer from 1 to {n}, the number of points, got {n_points!r}"
        )
    check_choice("weights", weights, "equal", "optimal")
    if weights == "optimal":
        what = f"the matrix of {n_points} points for their optimal weights"
        check_budget(3 * 8 * int(n_points) ** 2, max_memory, what)
    return int(n_points)
