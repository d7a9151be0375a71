"""MMD and HSIC: squared norms of differences of mean embeddings, without cancellation.

The maximum mean discrepancy is MMD^2 = |mean of k(x, .) - mean of k(y, .)|^2 in the RKHS.  Let z be
the 0/1 vector that marks the points of the first sample among the m + n pooled points.  Sums over
pairs of points are then products with K, so that many splits of the points into two samples need
only one product of K with a matrix:

    sxx = z^T K z,   sxy = z^T K 1 - sxx,   syy = 1^T K 1 - 2 sxy - sxx,   dx = z^T diag K

    biased      sxx / m^2 + syy / n^2 - 2 sxy / (m n)
    unbiased    (sxx - dx) / (m (m - 1)) + (syy - dy) / (n (n - 1)) - 2 sxy / (m n)
    linear      the mean of k(x, x') + k(y, y') - k(x, y') - k(x', y) over disjoint pairs

The samples have m and n points, and dy is like dx for the second sample.  No estimate changes if
a(x) + a(z) is added to k(x, z), for any function a.  The code uses this to recentre K, because
a large component that is common to all points would cause cancellation:

    K'_ij = K_ij - r_i - r_j + g,   r_i = mean over c of k(x_i, c),   g = mean of r over the c

K' is the kernel matrix of phi(x) - mu, where mu is the mean of phi over a few of the points, the
centres c.  It is evaluated in tiles, like K.

The Hilbert-Schmidt independence criterion is the squared norm of the cross-covariance operator:

    biased      tr(K H L H) / n^2 = sum_ij A_ij B_ij / n^2,   A = H K H,  B = H L H,  H = I - 11^T/n
    unbiased    sum_(i /= j) A_ij B_ij / (n (n - 3))          with K and L centred without diagonal:

    A_ij = K_ij - r_i - r_j + g,   r_i = sum_(l /= i) K_il / (n - 2),   g = sum r / (n - 1)

The unbiased estimator is that of Song et al. (JMLR 2012), in the form of Székely and Rizzo (2014).
Both matrices are centred before they are multiplied, which avoids cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..._core import (
    MemoryLimit,
    Points,
    check_choice,
    entry_point,
    ignore_overflow,
    jit,
    length,
    not_finite_error,
    one_blas_thread,
    ordered_sum,
    resource_scope,
    slices,
    take,
)
from ...gram import GramOperator, TiledGram, gram, memoise_if_affordable, warn_if_cancelled
from ...kernels import Kernel, Linear, Prepared, node, shifted_to_data
from ._sample_validation import (
    KernelAndPoints,
    KernelSpec,
    check_sample,
    is_precomputed,
    make_kernel,
    pool_samples,
    resolve_kernel,
)

_N_CENTRES = 64  # number of centres; each requires the evaluation of one column of K
_ROWS_PER_BLOCK = 4096  # number of rows that are evaluated at a time, to limit memory


@node
class RecentredKernel(Kernel):
    """The recentred kernel k(x, z) - r(x) - r(z) + g, for a fixed set of n points.

    `r` contains one value per point, in the order of the points.
    """

    kernel: Kernel
    r: Any
    g: float

    def __str__(self) -> str:
        return str(self.kernel)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        inner = self.kernel.prepare(X, like=None if like is None else like.children[0])
        return Prepared.from_children(inner, arrays=(self.r,))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        _subtract(out, P.arrays[0] - self.g, Q.arrays[0])

    def _diag(self, X: Points) -> np.ndarray:
        return np.asarray(self.kernel.diag(X) - 2.0 * self.r + self.g)


@jit()
def _subtract(T: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Subtract a_i + b_j from T_ij, in place, in one pass over T; NumPy would need two passes."""
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            T[i, j] -= a[i] + b[j]


@_subtract.without_numba
def _subtract_numpy(T: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    T -= a[: len(T), None] + b[: T.shape[1]]


@ignore_overflow
def recentred_gram(kernel: Kernel, X: Points, max_memory: MemoryLimit = None) -> TiledGram:
    """Return the recentred kernel matrix K' as a tiled operator."""
    kernel, X = centre_linear_terms(kernel, X)
    K = gram(kernel, X, storage="tiled", max_memory=max_memory)
    n = K.shape[0]
    centres = np.unique(np.linspace(0, n - 1, min(n, _N_CENTRES)).astype(int))
    blocks = (K.block(rows, centres) for rows in slices(n, _ROWS_PER_BLOCK))
    r = np.concatenate([block.mean(axis=1, dtype=float) for block in blocks])
    check_finite(r, kernel)
    recentred_kernel = RecentredKernel(kernel, r, float(r[centres].mean()))
    return TiledGram(recentred_kernel, X, max_memory=max_memory)


def entry_magnitudes(K: GramOperator) -> np.ndarray:
    """Return the typical magnitude of the entries in each row of K, before K was recentred."""
    return np.abs(K.kernel.r if isinstance(K.kernel, RecentredKernel) else K.diagonal())


@ignore_overflow
def centre_linear_terms(kernel: Kernel, X: Points) -> tuple[Kernel, Points]:
    """Shift the origin of linear kernels to the mean of the points; return (kernel, points).

    This does not change differences of means, and avoids cancellation for points far from the
    origin.
    """
    if type(kernel) is Linear and isinstance(X, np.ndarray):
        return kernel, X - X.mean(axis=0)
    return shifted_to_data(kernel, X), X


def check_finite(values: np.ndarray, kernel: Kernel) -> None:
    """Raise an error if sums over the kernel matrix are not finite."""
    if not np.isfinite(values).all():
        raise not_finite_error(kernel)


# --- Rounding errors.


def relative_rounding(dtype: DTypeLike) -> float:
    """Return a bound on the rounding error of a statistic, relative to the sums that cancel."""
    return max(1e-12, 100.0 * float(np.finfo(dtype).eps))


def rounding_margin(dtype: DTypeLike, sums: float, entries: float) -> float:
    """Return a bound on the rounding error of a statistic.

    `sums` is the magnitude of the sums that cancel, and `entries` is the magnitude of the entries
    of K before centring.
    """
    return float(relative_rounding(dtype) * sums + 8.0 * np.finfo(dtype).eps * entries)


def clip_negative(
    value: float | np.ndarray, margin: float, quantity: str, *kernels: Kernel
) -> np.ndarray:
    """Set small negative values of a squared quantity to 0; `value` is a number or an array.

    `margin` is a bound on the rounding error.  A value below -100 * margin means that one of the
    kernels is not positive definite; a ValueError is then raised, which names the `quantity`.
    """
    if np.min(value) < -100.0 * margin:
        remedy = "a Mercer kernel" if len(kernels) == 1 else "Mercer kernels"
        raise ValueError(
            f"{quantity} is {np.min(value):.3g} < 0: {' or '.join(map(str, kernels))} is not "
            f"conditionally positive definite of order 1 on these points; choose {remedy}, or "
            f"Distance()"
        )
    return np.asarray(np.maximum(value, 0.0))


# --- Maximum mean discrepancy.

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
    embeddings of two distributions.  It measures how different the distributions are; for
    characteristic kernels such as the RBF, it is 0 only if they are equal.  `two_sample_test` adds
    a p-value.

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
        See the table above.  Use "biased" if the value serves as a distance, and "linear" for
        samples that are too large for a kernel matrix.
    x_weights, y_weights : arrays of shape (m,) and (n,), optional
        Weights of the points, for "biased" only.  A point of weight 2 counts as two points.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    float
        The estimate of MMD^2.  Only "biased" is never negative.

    See Also
    --------
    two_sample_test : Test whether MMD^2 is larger than expected by chance.
    Expansion.mean : The mean embedding of a sample.
    hsic : Dependence between two paired samples.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf and Smola, "A kernel two-sample test", JMLR 13, 2012.

    Sejdinovic, Sriperumbudur, Gretton and Fukumizu, "Equivalence of distance-based and RKHS-based
    statistics in hypothesis testing", Annals of Statistics 41, 2013.

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
        u, v = _normalise_weights(x_weights, m, "x"), _normalise_weights(y_weights, n, "y")
        return squared_norm(K, np.concatenate([u, -v]))
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
        d, e, sizes = K.diagonal() @ Z, entry_magnitudes(K) @ Z, (m, len(Z) - m)
        return cls._of_products(sxx, sx, d, e, sizes, K.kernel, K.dtype)

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


# --- Hilbert-Schmidt independence criterion.

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

    HSIC is the squared norm of the cross-covariance of k(x, .) and l(y, .).  It is 0 if x and y are
    independent; for characteristic kernels such as the RBF, it is 0 only then.  The value depends
    on the scale of the kernels; `independence_test` compares it with its distribution under
    independence.  The kernel matrices K and L are evaluated in tiles and never stored.

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
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    float
        An estimate of HSIC.

    See Also
    --------
    independence_test : Test whether HSIC is larger than expected by chance.
    alignment : HSIC, normalised to a cosine between two kernel matrices.

    References
    ----------
    Gretton, Bousquet, Smola and Schölkopf, "Measuring statistical dependence with Hilbert-Schmidt
    norms", ALT 2005.

    Song, Smola, Gretton, Bedo and Borgwardt, "Feature selection via dependence maximization", JMLR
    13, 2012 (unbiased estimator).

    Székely and Rizzo, "Partial distance correlation with methods for dissimilarities", Annals of
    Statistics 42, 2014.

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
    quantity = "the squared norm of a covariance operator"
    return float(clip_negative(value, margin, quantity, *kernels))
