"""A sample summarised by a few points: what the summaries have in common.

For points S with weights w, the squared distance to the mean embedding mu of all points is

    |sum_s w_s k(s, .) - mu|^2 = w^T K_SS w - 2 w^T mu(S) + |mu|^2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._points import length, sliceable, take
from .._runtime import check_budget, check_choice, is_count, quiet, slices
from .._runtime.linalg import eigh
from ..expansion import Expansion
from ..gram import TiledGram
from ..kernels import Kernel
from ._mmd import as_distance
from ._recentred import entry_sizes, recentred
from ._rounding import margin_of
from ._samples import check_finite, check_sample, make_kernel, resolved

__all__ = ["Mean", "Summary", "check_summary", "optimal_weights"]

_COLUMNS = 64  # columns of K that are held at a time


@dataclass(frozen=True, eq=False)
class Summary:
    """A few weighted points in place of many.

    Attributes
    ----------
    points : points
        m of them.
    indices : ndarray of shape (m,) or None
        Their places in X; None if they have been moved away from it.
    weights : ndarray of shape (m,)
        They sum to 1.
    mmd : float
        The squared distance to the mean embedding of all of X: with equal weights what
        `mmd(points, X, kernel, "biased")` returns.  Nothing is estimated or left out of it; what
        remains is rounding, about 1e-15 of the entries of K.
    kernel : Kernel
        With all its values.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import thin
    >>> few = thin(np.random.default_rng(0).normal(size=(200, 2)), 10)
    >>> few.points.shape, few.mmd < 0.01
    ((10, 2), True)
    """

    points: Any = field(repr=False)
    indices: np.ndarray | None = field(repr=False)
    weights: np.ndarray = field(repr=False)
    mmd: float
    kernel: Kernel

    @property
    def expansion(self) -> Expansion:
        """The embedding sum_s w_s k(s, .)."""
        return Expansion.mean(self.kernel, self.points, self.weights)


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean embedding mu of the points X, known at all of them; K is never held.

    K is taken about the middle of the points, which changes no distance to mu.
    """

    K: TiledGram
    values: np.ndarray  # mu(x_i)
    diagonal: np.ndarray
    kernel: Kernel
    X: Any

    @classmethod
    @quiet
    def of(cls, X: Any, kernel: Any, max_memory: Any) -> Mean:
        """Return the mean of checked points, from one pass over K."""
        kernel = make_kernel(kernel)
        X = sliceable(check_sample(kernel, X, "X"))
        kernel, n = resolved(kernel, X), length(X)
        K = recentred(kernel, X, max_memory)
        values = np.asarray(K @ np.full(n, 1.0 / n))
        check_finite(values, kernel)
        return cls(K, values, np.asarray(K.diagonal()), kernel, X)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, i: int) -> np.ndarray:
        """Return k(x_j, x_i) for all j."""
        return self.K.block(slice(None), [i])[:, 0]

    def columns(self, chosen: np.ndarray, w: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """Return sum_s w_s k(x_j, x_s) for the x_j of `rows`, a few columns at a time."""
        parts = slices(len(chosen), _COLUMNS)
        return np.asarray(sum(self.K.block(rows, chosen[p]) @ w[p] for p in parts))

    def squared_distance(self, chosen: np.ndarray, w: np.ndarray) -> float:
        """Return |sum_s w_s k(x_s, .) - mu|^2."""
        inner = self.columns(chosen, w, chosen) @ w
        between, square = w @ self.values[chosen], self.values.mean()
        r, sums = entry_sizes(self.K), abs(inner) + 2.0 * abs(between) + abs(square)
        margin = margin_of(self.K.dtype, sums, np.abs(w) @ r[chosen] + r.mean())
        return float(as_distance(inner - 2.0 * between + square, margin, self.kernel))

    def summary(self, chosen: np.ndarray, weights: str) -> Summary:
        """Return the summary by the points `chosen`."""
        w = np.full(len(chosen), 1.0 / len(chosen))
        if weights == "optimal":
            w = optimal_weights(self.K.block(chosen, chosen), self.values[chosen])
        points = take(self.X, chosen)
        return Summary(points, chosen, w, self.squared_distance(chosen, w), self.kernel)


def optimal_weights(K: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return the w with sum 1 that minimises w^T K w - 2 w^T mu.

    w = 1/m + v with sum v = 0, so that a K which is positive definite on such v will do.  Points
    that nearly coincide share their weight.
    """
    m = len(K)
    equal = np.full(m, 1.0 / m)
    slope = mu - K @ equal
    centred = K - K.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    values, U = eigh(0.5 * (centred + centred.T))
    kept = values > 1e-12 * max(values[-1], 0.0)
    v = U[:, kept] @ ((U[:, kept].T @ (slope - slope.mean())) / values[kept])
    return equal + v - v.mean()


def check_summary(n_points: Any, n: int, weights: Any, max_memory: Any) -> int:
    """Return the number of points, one that can be had."""
    if not is_count(n_points) or n_points > n:
        raise ValueError(
            f"n_points={n_points!r} of {n} points were asked for; an integer from 1 to {n} is "
            f"needed"
        )
    check_choice("weights", weights, "equal", "optimal")
    if weights == "optimal":
        what = f"the matrix of {n_points} points for their optimal weights"
        check_budget(3 * 8 * int(n_points) ** 2, max_memory, what)
    return int(n_points)
