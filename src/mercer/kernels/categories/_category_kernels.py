"""Kernels on categories: functions of the columns in which two rows are equal.

A point is one value, or a row of d values, such as a row of a data frame.  With e_c = 1 if x and z
are equal in column c, and e_c = 0 otherwise,

    Equal              k(x, z) = (e_1 + ... + e_d) / d
    AitchisonAitken    k(x, z) = f_1 ... f_d,     f_c = 1 - h if e_c = 1, and h / (n_levels - 1)
                                                  otherwise

e_c is the inner product of the indicators of the levels (the one-hot code), hence a kernel.  In one
column, AitchisonAitken is b + (a - b) e with a = 1 - h and b = h / (n_levels - 1).  It is a kernel
for any number of levels if a >= b >= 0, which means 0 <= h <= (n_levels - 1) / n_levels.  Then
log k is a constant plus a sum of the e_c with coefficients log(a / b) >= 0, so that all powers of k
are kernels, too.

Tiles are computed from integer codes, column by column.  The time does not depend on the number of
levels, in contrast to a product of one-hot codes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..._core import Points, is_count, slices
from .._base import Kernel, node, parameter
from .._evaluation import ParameterGradients, Prepared, prepare_pair
from .._parameter_checks import positive
from .._parameter_tree import data_dependent
from .._properties import FEATURES, PRODUCT, Domain, Properties
from .._sparse_features import Explicit, FeatureTerms
from ._category_codes import category_codes, feature_codes

_MAX_BLOCK_ENTRIES = 2**16  # entries of a tile computed at a time, so that they stay in the cache
# A search considers bandwidths up to this value.  It is valid for two and more levels.  It is less
# than 1/2, because finite differences also evaluate slightly larger values.
_MAX_SEARCH_BANDWIDTH = 0.499


@node
class CategoryKernel(Kernel):
    """Base class of kernels on categories; prepared points are arrays of integer codes."""

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        codes = category_codes(X, type(self).__name__)
        if like is not None and len(codes) and codes.shape[1] != like.arrays[0].shape[1]:
            raise ValueError(
                f"{type(self).__name__} cannot compare rows of {like.arrays[0].shape[1]} columns "
                f"with rows of {codes.shape[1]} columns; both must have the same columns"
            )
        return Prepared((codes,))

    def _domain(self, *inner: Domain) -> Domain:
        # Categories may be strings, and may be missing, also in a matrix of numbers.
        return Domain("categories", accepts_matrix=False, discrete=True)


@node
class Equal(CategoryKernel, Explicit):
    """Kernel on categories that compares values by equality.

        k(x, z) = 1 if x = z, else 0

    For rows of several columns, the value is the fraction of columns in which x and z are equal.
    The kernel has no parameters.

    See Also
    --------
    AitchisonAitken : Product over the columns, with a bandwidth.
    Select : Applies this kernel to some columns of a data frame.
    Jaccard : For values that are sets of categories.

    Notes
    -----
    Points are columns of a data frame (pandas or polars) with strings, integers or booleans, arrays
    of such values with shape (n,) or (n, d), or lists.  Values are equal as in Python: 1 equals 1.0
    and True, but not "1".  A missing value (None, NaN, null) counts as a separate level: it equals
    every other missing value of its column.  A value that does not occur in the training points
    equals none of them, so that its column contributes 0.

    The features of this kernel are the one-hot codes of the columns, divided by sqrt(d).
    `features` returns them as a sparse matrix.  The product ``Select(Equal(), "a") *
    Select(Equal(), "b")`` is 1 only if x and z are equal in both columns.

    References
    ----------
    Sokal and Michener, "A statistical method for evaluating systematic relationships", University
    of Kansas Science Bulletin 38, 1958 (the simple matching coefficient).

    Examples
    --------
    >>> from mercer.kernels import Equal
    >>> Equal()(["red", "blue", None], ["red", None])
    array([[1., 0.],
           [0., 0.],
           [0., 1.]])
    >>> Equal()([["red", 1]], [["red", 2], ["red", 1], ["blue", 3]])
    array([[0.5, 1. , 0. ]])
    """

    def _properties(self, *inner: Properties) -> Properties:
        rule = f"{FEATURES}: indicators of the levels"
        return Properties(rule, 0, nonnegative=True, unit_diagonal=True)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        (x,), (z,) = P.arrays, Q.arrays
        for rows in _row_blocks(out):
            block = out[rows]
            block[...] = 0.0
            for a, b in zip(x[rows].T, z.T, strict=True):
                block += a[:, None] == b
            if x.shape[1] > 1:
                block /= x.shape[1]

    def _diag(self, X: Points) -> np.ndarray:
        return np.ones(len(category_codes(X, "Equal")))

    def _terms(self, X: Points) -> FeatureTerms:
        codes = category_codes(X, "Equal")
        n, d = codes.shape
        value = np.full(n * d, 1.0 / np.sqrt(max(d, 1)))
        return FeatureTerms(n, np.repeat(np.arange(n), d), feature_codes(codes).ravel(), value)


@node
class AitchisonAitken(CategoryKernel):
    """Kernel on categories with a bandwidth, which makes different levels partly similar.

        k(x, z) = 1 - h if x = z, else h / (n_levels - 1)

    For rows of several columns, the value is the product over the columns.

    Parameters
    ----------
    h : float or array-like of shape (d,), default=0.4
        The bandwidth, one number or one number per column, with 0 < h <= (n_levels - 1) / n_levels.
        Tunable.  Small values separate the levels, as `Equal` does; for the largest value, all
        levels are equally similar, and the column has no effect.  The more columns are multiplied,
        the larger h should be.  A search considers values below
        1/2; pass `Bounded(AitchisonAitken(), limits=(1e-3, 0.9))` for larger values in columns with
        ten or more levels.
    n_levels : int, tuple of int or "auto", default="auto"
        The number of levels, at least 2, one number or one number per column.  "auto" counts the
        different values of each column of the training points; a column with a single value counts
        as a column of two levels.

    See Also
    --------
    Equal : Has no parameters; the mean over the columns instead of the product.
    RBF : On the one-hot code, 1 if x = z and exp(-1 / l^2) otherwise, for any number of levels.

    Notes
    -----
    The points and the treatment of missing values are those of `Equal`.  A value that does not
    occur in the training points is different from all of them.

    In one column, the values k(x, z) of all levels z sum to 1.  The ratio of the values for
    different and for equal levels is h / ((1 - h) (n_levels - 1)).  It decreases with the number of
    levels, in contrast to an RBF on the one-hot code.

    References
    ----------
    Aitchison and Aitken, "Multivariate binary discrimination by the kernel method", Biometrika 63,
    1976.

    Examples
    --------
    >>> from mercer.kernels import AitchisonAitken
    >>> k = AitchisonAitken(h=0.2).resolve(["red", "blue", "green", "red"])
    >>> k
    AitchisonAitken(h=0.2, n_levels=3)
    >>> k(["red"], ["red", "blue", "pink"])
    array([[0.8, 0.1, 0.1]])
    >>> AitchisonAitken(0.2, n_levels=(2, 3))([["no", "red"]], [["yes", "red"]]).round(4)
    array([[0.16]])
    """

    h: Any = parameter(0.4, bounds=(1e-5, _MAX_SEARCH_BANDWIDTH))
    n_levels: Any = data_dependent("auto", lambda value: isinstance(value, str))

    def _check(self) -> None:
        positive("AitchisonAitken", "h", self.h, vector=True)
        if np.max(self.h) >= 1.0:
            raise ValueError(f"AitchisonAitken: h must be less than 1, got {self.h!r}")
        if isinstance(self.n_levels, str):
            if self.n_levels != "auto":
                raise ValueError(
                    f"AitchisonAitken: n_levels must be 'auto' or integers, got {self.n_levels!r}"
                )
            return
        counts = list(self.n_levels) if np.ndim(self.n_levels) else [self.n_levels]
        if not counts or not all(is_count(count, 2) for count in counts):
            raise ValueError(
                f"AitchisonAitken: n_levels must be 'auto' or integers of at least 2, got "
                f"{self.n_levels!r}"
            )
        h, c = self._per_column(max(np.size(self.h), len(counts)))
        # The relative tolerance allows for h = 2/3 with a rounding error.
        invalid = np.flatnonzero(h > (1.0 + 1e-12) * (c - 1.0) / c)
        if len(invalid):
            j = invalid[0]
            raise ValueError(
                f"AitchisonAitken: h must be at most (n_levels - 1) / n_levels = "
                f"{(c[j] - 1) / c[j]:.4g} for {c[j]:.0f} levels, got {h[j]:.4g}; choose a smaller "
                f"h. With a larger one, different levels would be more similar than equal levels, "
                f"and k would not be a Mercer kernel"
            )

    def _per_column(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bandwidth and the number of levels of each of d columns."""
        values = []
        for name in ("h", "n_levels"):
            value = np.asarray(getattr(self, name), dtype=float)
            if value.ndim and len(value) != d:
                raise ValueError(
                    f"AitchisonAitken has {len(value)} values of {name} for {d} columns; pass one "
                    f"number for all columns, or one per column"
                )
            values.append(np.broadcast_to(value, d))
        return values[0], values[1]

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Self:
        codes = category_codes(X, "AitchisonAitken")
        counts = [max(len(np.unique(column)), 2) for column in codes.T]
        return replace(self, n_levels=counts[0] if len(counts) == 1 else tuple(counts))

    def _properties(self, *inner: Properties) -> Properties:
        rule = f"{PRODUCT} over the columns, b + (a - b) [x = z] with a >= b >= 0"
        bound = float(np.prod(1.0 - np.asarray(self.h)))  # one column, if h is one number
        return Properties(
            rule, 0, nonnegative=True, infinitely_divisible=True, diagonal_bound=bound
        )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        (x,), (z,) = P.arrays, Q.arrays
        h, c = self._per_column(x.shape[1])
        different = h / (c - 1.0)
        for rows in _row_blocks(out):
            block = out[rows]
            block[...] = 1.0
            for j, (a, b) in enumerate(zip(1.0 - h, different, strict=True)):
                block *= np.where(x[rows, j, None] == z[:, j], a, b)

    def _diag(self, X: Points) -> np.ndarray:
        codes = category_codes(X, "AitchisonAitken")
        return np.full(len(codes), np.prod(1.0 - self._per_column(codes.shape[1])[0]))

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        # d log k / d log h_c is -h_c / (1 - h_c) if x and z are equal in column c, and 1 otherwise.
        P, Q = prepare_pair(self, X, Z)
        (x,), (z,) = P.arrays, Q.arrays
        weighted = W * self(X, Z)
        total = weighted.sum()
        h, _ = self._per_column(x.shape[1])
        equal = np.array([weighted[a[:, None] == b].sum() for a, b in zip(x.T, z.T, strict=True)])
        gradient = total - equal / (1.0 - h)
        return {"h": gradient if np.ndim(self.h) else gradient.sum()}


def _row_blocks(out: np.ndarray) -> list[slice]:
    """Return slices of the rows of a tile, such that each block of rows fits into the cache."""
    return slices(len(out), max(1, _MAX_BLOCK_ENTRIES // max(1, out.shape[1])))
