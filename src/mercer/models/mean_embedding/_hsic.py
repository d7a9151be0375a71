"""The Hilbert-Schmidt independence criterion, the squared norm of the cross-covariance operator.

    biased      tr(K H L H) / n^2 = sum_ij A_ij B_ij / n^2,   A = H K H,  B = H L H,  H = I - 11^T/n
    unbiased    sum_(i /= j) A_ij B_ij / (n (n - 3))          with K and L centred without diagonal:

    A_ij = K_ij - r_i - r_j + g,   r_i = sum_(l /= i) K_il / (n - 2),   g = sum r / (n - 1)

The unbiased estimator is that of Song et al. (JMLR 2012), in the form of Székely and Rizzo (2014).
Both matrices are centred before they are multiplied, which avoids cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    check_choice,
    entry_point,
    ignore_overflow,
    length,
    one_blas_thread,
    ordered_sum,
    resource_scope,
    slices,
)
from ...gram import GramOperator, gram, memoise_if_affordable, warn_if_cancelled
from ...kernels import Kernel
from ._recentring import centre_linear_terms, check_finite, clip_negative, relative_rounding
from ._sample_validation import (
    KernelAndPoints,
    KernelSpec,
    check_sample,
    is_precomputed,
    make_kernel,
    resolve_kernel,
)

ESTIMATORS = ("biased", "unbiased")

_TILE_SIZE = 512  # rows and columns of a tile of K and L; limits the memory of a task


@entry_point
@one_blas_thread
@resource_scope()
def hsic(
    X: Points,
    Y: Points,
    kernel: KernelSpec = None,
    kernel_y: KernelSpec = None,
    estimator: str = "biased",
    *,
    max_memory: MemoryLimit = None,
) -> float:
    """Estimate the Hilbert-Schmidt independence criterion (HSIC) from n pairs (x_i, y_i).

    HSIC is the squared norm of the cross-covariance of k(x, .) and l(y, .).  It is 0 if x and y
    are independent; for characteristic kernels such as the RBF, it is 0 only then.  The kernel
    matrices K and L are evaluated in tiles and never stored.

    Parameters
    ----------
    X, Y : points
        The two samples, of the same length n: row i of X belongs to row i of Y.
    kernel, kernel_y : Kernel, str, callable or None, default=None
        The kernels k of X and l of Y; see `mmd`.  Parameters that depend on the data, such as
        "median", are computed for each sample separately.  `kernel=None` means the RBF with the
        median bandwidth; `kernel_y=None` means the same specification as `kernel`.
    estimator : {"biased", "unbiased"}, default="biased"
        "biased" is tr(K H L H) / n^2, which is never negative (Gretton et al. 2005 divide by
        (n - 1)^2).  "unbiased" needs at least four pairs, may be negative, and does not depend on
        the diagonals of K and L.
    max_memory : int, str or None, default=None
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
    >>> hsic(x, x, Linear())  # the squared variance
    1.5625
    """
    samples = [
        (memoise_if_affordable(k, length(P), max_memory), P)
        for k, P in check_paired_samples(X, Y, kernel, kernel_y, estimator)
    ]
    samples = [centre_linear_terms(k, P) for k, P in samples]
    for k, P in samples:
        warn_if_cancelled(k, P)
    K, L = (gram(k, P, storage="tiled", max_memory=max_memory) for k, P in samples)
    A, B = Centring.of(K, estimator), Centring.of(L, estimator)
    n = K.shape[0]
    strips = slices(n, _TILE_SIZE)
    tiles = [(rows, cols) for i, rows in enumerate(strips) for cols in strips[i:]]

    def sums(tile: tuple[slice, slice]) -> np.ndarray:
        S, T = A.tile(K.block(*tile), *tile), B.tile(L.block(*tile), *tile)
        both = np.array([np.vdot(S, T), np.vdot(S, S), np.vdot(T, T)])
        return both if tile[0] == tile[1] else 2.0 * both

    work = sum(k._evaluation_work(n * n) for k, _ in samples)
    total, a, b = ordered_sum(sums, tiles, len(strips), work=work) / hsic_divisor(n, estimator)
    margin = relative_rounding(np.result_type(K.dtype, L.dtype)) * float(np.sqrt(a * b))
    return clip_biased_hsic(float(total), margin, estimator, K.kernel, L.kernel)


def hsic_divisor(n: int, estimator: str) -> int:
    """Return the divisor that turns sum_ij A_ij B_ij into the estimate of HSIC."""
    return n * n if estimator == "biased" else n * (n - 3)


def check_paired_samples(
    X: Points, Y: Points, kernel: KernelSpec, kernel_y: KernelSpec, estimator: str
) -> tuple[KernelAndPoints, KernelAndPoints]:
    """Validate paired samples; return ((kernel, X), (kernel_y, Y)) with numeric parameters."""
    check_choice("estimator", estimator, *ESTIMATORS)
    min_points = 2 if estimator == "biased" else 4
    first = make_kernel(kernel)
    if kernel_y is None and is_precomputed(first):
        raise ValueError(
            "`kernel` contains precomputed values for X only; pass those for Y as kernel_y"
        )
    second = make_kernel(kernel if kernel_y is None else kernel_y)
    X, Y = check_sample(first, X, "X", min_points), check_sample(second, Y, "Y", min_points)
    if length(X) != length(Y):
        raise ValueError(
            f"there are {length(X)} points in X and {length(Y)} in Y, but the points must come in "
            f"pairs; to compare two samples of the same variable, use two_sample_test"
        )
    return (resolve_kernel(first, X), X), (resolve_kernel(second, Y), Y)


@dataclass(frozen=True)
class Centring:
    """The centring A_ij = K_ij - r_i - r_j + g of a kernel matrix K, optionally with A_ii = 0."""

    r: np.ndarray
    g: float
    zero_diagonal: bool  # whether the diagonal is set to 0, for the unbiased estimator

    @classmethod
    @ignore_overflow
    def of(cls, K: GramOperator, estimator: str) -> Centring:
        """Compute the centring of K for an estimator, which requires one product with K."""
        n = K.shape[0]
        sums = np.asarray(K @ np.ones(n), dtype=float)
        check_finite(sums, K.kernel)
        if estimator == "biased":
            r = sums / n
            return cls(r, float(r.mean()), False)
        r = (sums - K.diagonal()) / (n - 2)
        return cls(r, float(r.sum()) / (n - 1), True)

    def tile(self, T: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Centre the tile T = K[rows, cols] in place, and return it."""
        T -= self.r[rows, None] - self.g
        T -= self.r[cols]
        if self.zero_diagonal and rows == cols:
            np.fill_diagonal(T, 0.0)
        return T


def clip_biased_hsic(value: float, margin: float, estimator: str, *kernels: Kernel) -> float:
    """Return the estimate of HSIC; a biased one that is negative by rounding is set to 0.

    The biased estimate is a squared norm.  If it is further below 0 than rounding can explain, an
    error is raised.
    """
    if estimator == "unbiased":
        return value
    return float(
        clip_negative(value, margin, "the squared norm of a covariance operator", *kernels)
    )
