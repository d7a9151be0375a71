"""The maximum mean discrepancy, MMD^2 = |mean of k(x, .) - mean of k(y, .)|^2 in the RKHS.

Let z be the 0/1 vector that marks the points of the first sample among the m + n pooled points.
Sums over pairs of points are then products with K, so that many splits of the points into two
samples need only one product of K with a matrix:

    sxx = z^T K z,   sxy = z^T K 1 - sxx,   syy = 1^T K 1 - 2 sxy - sxx,   dx = z^T diag K

    biased      sxx / m^2 + syy / n^2 - 2 sxy / (m n)
    unbiased    (sxx - dx) / (m (m - 1)) + (syy - dy) / (n (n - 1)) - 2 sxy / (m n)
    linear      the mean of k(x, x') + k(y, y') - k(x, y') - k(x', y) over disjoint pairs

The samples have m and n points, and dy is like dx for the second sample.  No estimate changes if
a(x) + a(z) is added to k(x, z), for any function a.  The code uses this to recentre K, because
a large component that is common to all points would cause cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..._core import (
    MemoryLimit,
    Points,
    check_choice,
    entry_point,
    ignore_overflow,
    length,
    one_blas_thread,
    resource_scope,
    take,
)
from ...gram import GramOperator, TiledGram, memoise_if_affordable, warn_if_cancelled
from ...kernels import Kernel
from ._recentring import (
    centre_linear_terms,
    check_finite,
    clip_negative,
    entry_magnitudes,
    recentred_gram,
    rounding_margin,
)
from ._sample_validation import KernelSpec, pool_samples

_MIN_POINTS = {"unbiased": 2, "biased": 1, "linear": 4}  # minimum number of points per sample


@entry_point
@one_blas_thread
@resource_scope()
def mmd(
    X: Points,
    Y: Points,
    kernel: KernelSpec = None,
    estimator: str = "unbiased",
    *,
    x_weights: ArrayLike | None = None,
    y_weights: ArrayLike | None = None,
    max_memory: MemoryLimit = None,
) -> float:
    """Estimate the squared maximum mean discrepancy between two samples.

    MMD^2 = E k(x, x') + E k(y, y') - 2 E k(x, y) is the squared distance between the mean
    embeddings of two distributions.

    ============ ============================================================ =========
    estimator    properties                                                   time
    ============ ============================================================ =========
    "unbiased"   leaves out the pairs (i, i): may be negative, and does not   (m + n)^2
                 depend on the diagonal of K
    "biased"     the squared distance between the two mean embeddings: never  (m + n)^2
                 negative, and 0 for two identical samples
    "linear"     the mean over disjoint pairs of consecutive points, for      m + n
                 data streams: unbiased, with a larger variance
    ============ ============================================================ =========

    The kernel matrix K is evaluated in tiles and never stored.  These are the statistics of
    Gretton et al. (JMLR 2012), without a factor such as m n / (m + n).

    Parameters
    ----------
    X, Y : points
        The samples, of m and n points of any kind that the kernel accepts.
    kernel : Kernel, str, callable or None, default=None
        Anything that `mercer.kernels.as_kernel` accepts; parameters that depend on the data, such
        as "median", are computed from the pooled samples.  None means the RBF with the median
        bandwidth.  Kernels that are conditionally positive definite of order 1 are accepted:
        `Distance()` gives the energy distance.
    estimator : {"unbiased", "biased", "linear"}, default="unbiased"
        See the table above.
    x_weights, y_weights : arrays of shape (m,) and (n,), optional
        Weights of the points, for "biased" only.  A point of weight 2 counts as two points.
    max_memory : int, str or None, default=None
        The memory budget; see `mercer.gram.gram`.

    Returns
    -------
    float
        The estimate of MMD^2.  Only "biased" is never negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 2)), rng.normal(size=(300, 2))
    >>> round(mmd(X, Y + 1.0), 2), round(mmd(X, Y + 1.0, "linear"), 2)
    (0.22, 1.91)
    >>> mmd(["cat", "tac"], ["dog", "god"], lambda s, t: len(set(s) & set(t)))
    6.0
    """
    check_choice("estimator", estimator, *_MIN_POINTS)
    weighted = x_weights is not None or y_weights is not None
    if weighted and estimator != "biased":
        raise ValueError(f"x_weights and y_weights require estimator='biased', got {estimator!r}")
    kernel, Z, m, n = pool_samples(X, Y, kernel, _MIN_POINTS[estimator])
    warn_if_cancelled(*centre_linear_terms(kernel, Z))
    if estimator == "linear":
        kernel, Z = centre_linear_terms(kernel, Z)
        terms = pair_terms(kernel, take(Z, slice(0, m)), take(Z, slice(m, m + n)))
        return float(terms.mean())
    K = recentred_gram(memoise_if_affordable(kernel, m + n, max_memory), Z, max_memory)
    if weighted:
        w = np.concatenate(
            [_normalise_weights(x_weights, m, "x"), -_normalise_weights(y_weights, n, "y")]
        )
        return squared_norm(K, w)
    sums = SplitSums.of(K, (np.arange(m + n) < m)[None], m)
    return float(sums.statistics(estimator)[0])


@dataclass(frozen=True)
class SplitSums:
    """Sums of kernel values within and between two samples, for many splits of the pooled points.

    The module docstring defines sxx, sxy, syy, dx and dy; each is an array with one entry per
    split.
    """

    sxx: np.ndarray
    sxy: np.ndarray
    syy: np.ndarray
    dx: np.ndarray
    dy: np.ndarray
    m: int
    n: int
    kernel: Kernel
    margin: float  # bound on the rounding error of the statistics

    @classmethod
    @ignore_overflow
    def of(cls, K: GramOperator, rows: np.ndarray, m: int) -> SplitSums:
        """Compute the sums for all splits with a single product with K.

        Each row of `rows` is a split: True marks the m points of the first sample.  K must be
        recentred (`recentred_gram`).
        """
        Z = np.empty((rows.shape[1], len(rows) + 1))
        Z[:, :-1], Z[:, -1] = rows.T, 1.0
        KZ = np.asarray(K @ Z)
        sxx, sx = np.einsum("ij,ij->j", Z, KZ), KZ[:, -1] @ Z
        check_finite(sx, K.kernel)
        sizes = (m, len(Z) - m)
        return cls._of_products(
            sxx, sx, K.diagonal() @ Z, entry_magnitudes(K) @ Z, sizes, K.kernel, K.dtype
        )

    @classmethod
    def of_features(
        cls, U: np.ndarray, d: np.ndarray, e: np.ndarray, sizes: tuple[int, int], kernel: Kernel
    ) -> SplitSums:
        """Compute the sums from U = F^T Z, because z^T F F^T z = |F^T z|^2.

        F are features centred at their mean.  The columns z of Z are the splits and, at the end, a
        column of ones.  d and e are the products of Z with the squared norms of the rows of F, and
        of the features before centring.
        """
        sxx, sx = np.einsum("ij,ij->j", U, U), U[:, -1] @ U
        return cls._of_products(sxx, sx, d, e, sizes, kernel, float)

    @classmethod
    def _of_products(
        cls,
        sxx: np.ndarray,
        sx: np.ndarray,
        d: np.ndarray,
        e: np.ndarray,
        sizes: tuple[int, int],
        kernel: Kernel,
        dtype: DTypeLike,
    ) -> SplitSums:
        """Return the sums for sxx = z^T K z, sx = z^T K 1, z^T diag K and z^T (magnitudes).

        The last entry of each argument belongs to z = 1, which marks all points.
        """
        m, n = sizes
        sxx, total = sxx[:-1], sxx[-1]
        sxy = sx[:-1] - sxx
        syy = total - 2.0 * sxy - sxx
        dx, dy = d[:-1], d[-1] - d[:-1]
        magnitude = np.abs(sxx) / m**2 + np.abs(syy) / n**2 + np.abs(sxy) / (m * n)
        magnitude += np.abs(dx) / m**2 + np.abs(dy) / n**2
        entries = e[:-1] / m + (e[-1] - e[:-1]) / n
        margin = rounding_margin(dtype, magnitude.max(), entries.max())
        return cls(sxx, sxy, syy, dx, dy, m, n, kernel, margin)

    def statistics(self, estimator: str) -> np.ndarray:
        """Return the estimate of MMD^2 for each split."""
        if estimator == "biased":
            return clip_squared_distance(self.biased, self.margin, self.kernel)
        m, n = self.m, self.n
        within = (self.sxx - self.dx) / (m * (m - 1)) + (self.syy - self.dy) / (n * (n - 1))
        return within - 2.0 * self.sxy / (m * n)

    @property
    def biased(self) -> np.ndarray:
        """The biased estimates without clipping; negative only if k is not positive definite."""
        m, n = self.m, self.n
        return self.sxx / m**2 + self.syy / n**2 - 2.0 * self.sxy / (m * n)


def pair_terms(kernel: Kernel, X: Points, Y: Points) -> np.ndarray:
    """Return k(x, x') + k(y, y') - k(x, y') - k(x', y) for disjoint pairs (x, x') and (y, y').

    The pairs are consecutive points.  The number of pairs is limited by the smaller sample.
    """
    n_paired = min(length(X), length(Y)) // 2 * 2
    X0, X1, Y0, Y1 = (take(A, slice(s, n_paired, 2)) for A in (X, Y) for s in (0, 1))

    def k(A: Points, B: Points) -> np.ndarray:
        return TiledGram(kernel, A, B).diagonal()

    return k(X0, X1) + k(Y0, Y1) - k(X0, Y1) - k(X1, Y0)


def squared_norm(K: GramOperator, w: np.ndarray) -> float:
    """Return w^T K w, the squared distance of two weighted means, for signed weights w of sum 0."""
    abs_w = np.abs(w)
    Kw, magnitudes = np.asarray(K @ np.column_stack([w, abs_w])).T
    margin = rounding_margin(K.dtype, abs_w @ np.abs(magnitudes), abs_w @ entry_magnitudes(K))
    return float(clip_squared_distance(w @ Kw, margin, K.kernel))


def clip_squared_distance(value: float | np.ndarray, margin: float, kernel: Kernel) -> np.ndarray:
    """Return squared distances of means, a number or an array; small negative values become 0."""
    return clip_negative(value, margin, "the squared distance of two means", kernel)


def _normalise_weights(weights: ArrayLike | None, n: int, name: str) -> np.ndarray:
    """Validate weights, and scale them to sum 1; None means equal weights."""
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != (n,):
        raise ValueError(f"{name}_weights has shape {w.shape}, but there are {n} points")
    if not (np.isfinite(w).all() and np.all(w >= 0) and w.sum() > 0):
        raise ValueError(
            f"{name}_weights must be finite, not negative, and not all 0; they range from "
            f"{w.min():.3g} to {w.max():.3g}"
        )
    return w / w.sum()
