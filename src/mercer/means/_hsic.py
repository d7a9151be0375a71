"""The Hilbert-Schmidt independence criterion: the squared norm of the cross-covariance operator.

    biased      tr(K H L H) / n^2 = sum_ij A_ij B_ij / n^2,   A = H K H,  B = H L H,  H = I - 11^T/n
    unbiased    sum_(i /= j) A_ij B_ij / (n (n - 3))          with K and L centred off the diagonal:

    A_ij = K_ij - r_i - r_j + g,   r_i = sum_(l /= i) K_il / (n - 2),   g = sum r / (n - 1)

The second is the estimator of Song et al. (JMLR 2012), in the form of Székely and Rizzo (2014).
Centring before multiplying loses no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._points import length
from .._runtime import (
    check_choice,
    entry_point,
    one_blas_thread,
    ordered_sum,
    quiet,
    reserving,
    slices,
)
from ..gram import GramOperator, gram, memoise_if_affordable, warn_if_cancelled
from ..kernels import Kernel
from ._order import is_precomputed
from ._rounding import not_negative, rounding
from ._samples import Sample, check_finite, check_sample, make_kernel, moved, resolved

__all__ = ["ESTIMATORS", "Centring", "as_square", "count_of_pairs", "hsic", "paired"]

ESTIMATORS = ("biased", "unbiased")

_STRIP = 512  # rows and columns of a tile


@entry_point
@one_blas_thread
@reserving()
def hsic(
    X: Any,
    Y: Any,
    kernel: Any = None,
    kernel_y: Any = None,
    estimator: str = "biased",
    *,
    max_memory: int | str | None = None,
) -> float:
    """Estimate HSIC, the squared norm of the covariance of k(x, .) and l(y, .), from n pairs.

    It is 0 if x and y are independent and, for kernels such as the RBF, only then.  In tiles: K
    and L are never held.

    Parameters
    ----------
    X, Y : points
        As many of the one as of the other: the pairs (x_i, y_i).
    kernel, kernel_y : Kernel, str, callable or None
        k for X and l for Y, with rules such as "median" resolved on each; see `mmd`.  `kernel=None`
        is the RBF with the median bandwidth, `kernel_y=None` the same as `kernel`.
    estimator : {"biased", "unbiased"}
        tr(K H L H) / n^2, which is not negative (Gretton et al. 2005 divide by (n - 1)^2), or the
        estimator without bias, which needs four pairs and does not depend on the diagonals.
    max_memory : int, str or None
        As in `mmd`.

    Returns
    -------
    float
        An estimate of HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import hsic
    >>> from mercer.kernels import Linear
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> hsic(x, x, Linear())  # the variance, squared
    1.5625
    """
    samples = [
        (memoise_if_affordable(k, length(P), max_memory), P)
        for k, P in paired(X, Y, kernel, kernel_y, estimator)
    ]
    samples = [moved(k, P) for k, P in samples]
    for k, P in samples:
        warn_if_cancelled(k, P)
    K, L = (gram(k, P, storage="tiled", max_memory=max_memory) for k, P in samples)
    A, B = Centring.of(K, estimator), Centring.of(L, estimator)
    n = K.shape[0]
    strips = slices(n, _STRIP)
    tiles = [(rows, cols) for i, rows in enumerate(strips) for cols in strips[i:]]

    def sums(tile: tuple[slice, slice]) -> np.ndarray:
        S, T = A.tile(K.block(*tile), *tile), B.tile(L.block(*tile), *tile)
        both = np.array([np.vdot(S, T), np.vdot(S, S), np.vdot(T, T)])
        return both if tile[0] == tile[1] else 2.0 * both

    work = sum(k._evaluation_work(n * n) for k, _ in samples)
    total, a, b = ordered_sum(sums, tiles, len(strips), work=work) / count_of_pairs(n, estimator)
    margin = rounding(np.result_type(K.dtype, L.dtype)) * float(np.sqrt(a * b))
    return as_square(float(total), margin, estimator, K.kernel, L.kernel)


def count_of_pairs(n: int, estimator: str) -> int:
    """Return what the sum of products is divided by."""
    return n * n if estimator == "biased" else n * (n - 3)


def paired(X: Any, Y: Any, kernel: Any, kernel_y: Any, estimator: str) -> tuple[Sample, Sample]:
    """Return the two kernels, resolved, each with its points."""
    check_choice("estimator", estimator, *ESTIMATORS)
    least = 2 if estimator == "biased" else 4
    first = make_kernel(kernel)
    if kernel_y is None and is_precomputed(first):
        raise ValueError("the values of `kernel` are those of X; give the values of Y as kernel_y")
    second = make_kernel(kernel if kernel_y is None else kernel_y)
    X, Y = check_sample(first, X, "X", least), check_sample(second, Y, "Y", least)
    if length(X) != length(Y):
        raise ValueError(
            f"there are {length(X)} points in X and {length(Y)} in Y, but they come in pairs; "
            f"for two samples of the same thing see two_sample_test"
        )
    return (resolved(first, X), X), (resolved(second, Y), Y)


@dataclass(frozen=True)
class Centring:
    """What is to be subtracted from K: A_ij = K_ij - r_i - r_j + g, and perhaps A_ii = 0."""

    r: np.ndarray
    g: float
    hollow: bool

    @classmethod
    @quiet
    def of(cls, K: GramOperator, estimator: str) -> Centring:
        """Return the centring of K that an estimator needs."""
        n = K.shape[0]
        sums = np.asarray(K @ np.ones(n), dtype=float)
        check_finite(sums, K.kernel)
        if estimator == "biased":
            r = sums / n
            return cls(r, float(r.mean()), False)
        r = (sums - K.diagonal()) / (n - 2)
        return cls(r, float(r.sum()) / (n - 1), True)

    def tile(self, T: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Centre a block of K in place."""
        T -= self.r[rows, None] - self.g
        T -= self.r[cols]
        if self.hollow and rows == cols:
            np.fill_diagonal(T, 0.0)
        return T


def as_square(value: float, margin: float, estimator: str, *kernels: Kernel) -> float:
    """Return an estimate; the biased one is a square, without what rounding left below 0."""
    if estimator == "unbiased":
        return value
    return float(not_negative(value, margin, "the squared norm of a covariance operator", *kernels))
