"""The maximum mean discrepancy, MMD^2 = |mean of k(x, .) - mean of k(y, .)|^2 in the RKHS.

With z the 0/1 indicator of the first of the two samples, in all the points of both, a sum over
pairs is a product with K, and many ways to split the points are one product with a matrix:

    sxx = z^T K z,   sxy = z^T K 1 - sxx,   syy = 1^T K 1 - 2 sxy - sxx,   dx = z^T diag K

    biased      sxx / m^2 + syy / n^2 - 2 sxy / (m n)
    unbiased    (sxx - dx) / (m (m - 1)) + (syy - dy) / (n (n - 1)) - 2 sxy / (m n)
    linear      the mean of k(x, x') + k(y, y') - k(x, y') - k(x', y) over disjoint pairs

None of them changes if a(x) + a(z) is added to k(x, z), so that K is taken about the middle of the
points: what they all have in common would cost digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._points import length, take
from .._runtime import check_choice, entry_point, one_blas_thread, quiet, reserving
from ..gram import GramOperator, LowRankGram, TiledGram, memoise_if_affordable, warn_if_cancelled
from ..kernels import Kernel
from ._recentred import entry_sizes, recentred
from ._rounding import margin_of, not_negative
from ._samples import check_finite, moved, pooled

__all__ = ["Splits", "as_distance", "mmd", "pair_terms", "squared_norm"]

_LEAST = {"unbiased": 2, "biased": 1, "linear": 4}  # points needed in each sample


@entry_point
@one_blas_thread
@reserving()
def mmd(
    X: Any,
    Y: Any,
    kernel: Any = None,
    estimator: str = "unbiased",
    *,
    x_weights: ArrayLike | None = None,
    y_weights: ArrayLike | None = None,
    max_memory: int | str | None = None,
) -> float:
    """Estimate MMD^2 = E k(x, x') + E k(y, y') - 2 E k(x, y) from two samples.

    ============ ============================================================ =========
    estimator    what it is                                                   time
    ============ ============================================================ =========
    "unbiased"   without the pairs (i, i): may be negative, and does not      (m + n)^2
                 depend on the diagonal of K
    "biased"     the squared distance of the two mean embeddings, >= 0; of    (m + n)^2
                 two identical samples 0
    "linear"     the mean over disjoint pairs, in the order of the points,    m + n
                 as they come from a stream: unbiased, and of larger variance
    ============ ============================================================ =========

    In tiles: K is never held.  These are the statistics of Gretton et al. (JMLR 2012), without a
    factor such as m n / (m + n).

    Parameters
    ----------
    X, Y : points
        The samples, of m and n points; of any kind that the kernel takes.
    kernel : Kernel, str, callable or None
        What `mercer.kernels.as_kernel` takes; rules such as "median" are resolved on both samples
        together.  None is the RBF with the median bandwidth.  A kernel that is conditionally
        positive definite of order 1 will do: `Distance()` gives the energy distance.
    estimator : {"unbiased", "biased", "linear"}
    x_weights, y_weights : arrays of shape (m,) and (n,), optional
        For "biased": the means are weighted ones.  A weight of 2 counts as two points.
    max_memory : int, str or None
        The budget; see `mercer.gram.gram`.

    Returns
    -------
    float
        An estimate of the squared distance, which only "biased" keeps from falling below 0.

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
    check_choice("estimator", estimator, *_LEAST)
    weighted = x_weights is not None or y_weights is not None
    if weighted and estimator != "biased":
        raise ValueError(f"weights are for estimator='biased', got {estimator!r}")
    kernel, Z, m, n = pooled(X, Y, kernel, _LEAST[estimator])
    warn_if_cancelled(*moved(kernel, Z))
    if estimator == "linear":
        kernel, Z = moved(kernel, Z)
        terms = pair_terms(kernel, take(Z, slice(0, m)), take(Z, slice(m, m + n)))
        return float(terms.mean())
    K = recentred(memoise_if_affordable(kernel, m + n, max_memory), Z, max_memory)
    if weighted:
        w = np.concatenate([_shares(x_weights, m, "x"), -_shares(y_weights, n, "y")])
        return squared_norm(K, w)
    sums = Splits.of(K, (np.arange(m + n) < m)[None], m)
    return float(sums.statistics(estimator)[0])


@dataclass(frozen=True)
class Splits:
    """The sums of kernel values within and between two samples, for many ways to split points."""

    sxx: np.ndarray
    sxy: np.ndarray
    syy: np.ndarray
    dx: np.ndarray
    dy: np.ndarray
    m: int
    n: int
    kernel: Kernel
    margin: float  # the part of the statistics that may be rounding

    @classmethod
    @quiet
    def of(cls, K: GramOperator, rows: np.ndarray, m: int) -> Splits:
        """Return the sums for splits in rows, True for the first sample, from one product.

        K is one about the middle of the points, or features, which are moved there.
        """
        Z = np.empty((rows.shape[1], len(rows) + 1))
        Z[:, :-1], Z[:, -1] = rows.T, 1.0
        if isinstance(K, LowRankGram):  # z^T F F^T z = |F^T z|^2
            U, d = _feature_sums(K, Z)
            sxx, sx = np.einsum("ij,ij->j", U, U), U[:, -1] @ U
        else:
            KZ, d = np.asarray(K @ Z), K.diagonal()
            sxx, sx = np.einsum("ij,ij->j", Z, KZ), KZ[:, -1] @ Z
        check_finite(sx, K.kernel)
        n = len(Z) - m
        sxx, total = sxx[:-1], sxx[-1]  # the last split is none: all points are in one sample
        sxy = sx[:-1] - sxx
        syy = total - 2.0 * sxy - sxx
        dx, dy = d @ Z[:, :-1], d @ (1.0 - Z[:, :-1])
        size = np.abs(sxx) / m**2 + np.abs(syy) / n**2 + np.abs(sxy) / (m * n)
        size += np.abs(dx) / m**2 + np.abs(dy) / n**2
        entries = entry_sizes(K) @ (Z[:, :-1] / m + (1.0 - Z[:, :-1]) / n)
        margin = float(margin_of(K.dtype, size.max(), entries.max()))
        return cls(sxx, sxy, syy, dx, dy, m, n, K.kernel, margin)

    def statistics(self, estimator: str) -> np.ndarray:
        """Return MMD^2 for each of the splits."""
        if estimator == "biased":
            return np.asarray(as_distance(self.biased, self.margin, self.kernel))
        m, n = self.m, self.n
        within = (self.sxx - self.dx) / (m * (m - 1)) + (self.syy - self.dy) / (n * (n - 1))
        return within - 2.0 * self.sxy / (m * n)

    @property
    def biased(self) -> np.ndarray:
        """The squared distances of means as they are, below 0 if k is no kernel for them."""
        m, n = self.m, self.n
        return self.sxx / m**2 + self.syy / n**2 - 2.0 * self.sxy / (m * n)


def _feature_sums(K: LowRankGram, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return F^T Z and the squared norms of the rows of F, after moving their mean to 0."""
    mean, d = K._sum_over_strips(lambda _, F: F.sum(axis=0)) / len(Z), np.empty(len(Z))

    def term(rows: slice, F: np.ndarray) -> np.ndarray:
        F = F - mean
        d[rows] = np.einsum("ij,ij->i", F, F)
        return F.T @ Z[rows]

    return K._sum_over_strips(term), d


def pair_terms(kernel: Kernel, X: Any, Y: Any) -> np.ndarray:
    """Return k(x, x') + k(y, y') - k(x, y') - k(x', y) for the disjoint pairs of X and Y.

    Pairs are neighbours; the longer sample gives as many as the shorter one has.
    """
    last = min(length(X), length(Y)) // 2 * 2
    X0, X1, Y0, Y1 = (take(A, slice(s, last, 2)) for A in (X, Y) for s in (0, 1))

    def k(A: Any, B: Any) -> np.ndarray:
        return TiledGram(kernel, A, B).diagonal()

    return k(X0, X1) + k(Y0, Y1) - k(X0, Y1) - k(X1, Y0)


def squared_norm(K: GramOperator, w: np.ndarray) -> float:
    """Return w^T K w for weights of sum 0, the squared distance of two means."""
    a = np.abs(w)
    Kw, sizes = np.asarray(K @ np.column_stack([w, a])).T
    margin = margin_of(K.dtype, a @ np.abs(sizes), a @ entry_sizes(K))
    return float(as_distance(w @ Kw, margin, K.kernel))


def as_distance(value: Any, margin: float, kernel: Kernel) -> Any:
    """Return a squared distance of means, or many, without what rounding left below 0."""
    return not_negative(value, margin, "the squared distance of two means", kernel)


def _shares(weights: Any, n: int, name: str) -> np.ndarray:
    """Return weights that sum to 1."""
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != (n,):
        raise ValueError(f"{name}_weights has shape {w.shape}, but there are {n} points")
    if not (np.isfinite(w).all() and np.all(w >= 0) and w.sum() > 0):
        raise ValueError(
            f"{name}_weights must be finite, not negative, and not all 0; they lie between "
            f"{w.min():.3g} and {w.max():.3g}"
        )
    return w / w.sum()
