"""Values of kernel expansions in reduced precision, with rigorous bounds on their errors.

An evaluator computes tiles of kernel values.  `GaussianEvaluator` works in float32, which takes
half as long as float64.  `BinaryEvaluator` is for points of zeros and ones, and counts the columns
in which two points differ.  `TileEvaluator` computes the values of any kernel in float64.

The bounds follow the standard model of floating-point arithmetic: each operation has a relative
error of at most u, and a sum of n terms, in any order, one of at most n u / (1 - n u) times the sum
of the absolute values of the terms (Higham, "Accuracy and stability of numerical algorithms", SIAM
2002).  They therefore hold for every BLAS that does not use Strassen's algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._core import Points, as_vectors, jit, length, slices
from ..kernels import RBF, Kernel, Scale, Sum, White, exp_inplace

_TILE_ROWS, _TILE_COLUMNS = 384, 256
_UNIT_ROUNDOFF = 2.0**-24  # the unit roundoff u of float32
# Sparse points with more columns than this are not converted to dense rows.
_MAX_DENSE_COLUMNS = 2048
# Assumed bound on the error of a kernel value in float64, relative to sqrt(k(x, x) k(z, z)).
_FLOAT64_ERROR = 1e-11
_BITS_PER_WORD = 62  # bits per word; the sign bit is not used, so that shifts do not depend on it


class QueryRows(NamedTuple):
    """Query points in the form of an evaluator, with bounds for each of them."""

    values: Any  # an array or prepared points, of which rows can be selected
    relative: np.ndarray  # bounds on the relative errors of k(x, z), divided by `weights`
    absolute: np.ndarray  # bounds on the errors relative to sqrt(k(x, x) k(z, z))
    diagonal: np.ndarray  # k(x, x)

    def take(self, rows: Any) -> QueryRows:
        """Return the selected rows, in the same form."""
        return QueryRows(self.values[rows], *(a[rows] for a in self[1:]))


class GaussianEvaluator:
    """Tiles of a Gaussian kernel c exp(-|x - z|^2 / (2 l^2)) in float32, without the factor c.

    With D = d + 2 products in each distance, and |y| and |w| the norms of the centred and scaled
    points, the computed distance has an error of at most (D + 4) u (|y| + |w|)^2: the products and
    their sum contribute D terms, and rounding the operands 4.  The exponential adds 8 u, and twice
    its argument times u.
    """

    is_single, is_gaussian = True, True
    relative_cost = 0.5  # of a kernel value, compared with float64

    def __init__(self, factor: float, inverse: np.ndarray, Z: np.ndarray) -> None:
        self.factor, self._inverse, self._centre = factor, inverse, Z.mean(axis=0)
        self._right, norms = self._augmented(Z)
        d = Z.shape[1]
        self._right[:, :d] *= np.float32(-2.0)
        self._right[:, d:] = self._right[:, d:][:, ::-1]
        norms = np.sqrt(norms)
        self._radius, self._typical = float(norms.max()), 1.5 * float(np.median(norms)) + 1e-3
        # As |y| + |w| <= max(1, |y| / r) (r + |w|), errors have a factor that depends only on w.
        self.weights = (1.0 + norms / self._typical) ** 2

    def _augmented(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows [y, |y|^2, 1] in float32, and |y|^2 in float64."""
        n, d = X.shape
        rows, norms = np.empty((n, d + 2), dtype=np.float32), np.empty(n)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in slices(n, 1024):
                block = X[part].toarray() if sp.issparse(X) else X[part]
                Y = (block - self._centre) * self._inverse
                rows[part, :d] = Y
                norms[part] = np.einsum("ij,ij->i", Y, Y)
            rows[:, d], rows[:, d + 1] = norms, 1.0
        return rows, norms

    def rows(self, X: Points) -> QueryRows:
        """Return query points in float32, with a bound on the relative error of k."""
        rows, norms = self._augmented(X)
        with np.errstate(over="ignore", invalid="ignore"):
            y, unit = np.sqrt(norms), _UNIT_ROUNDOFF * (0.5 * (rows.shape[1] + 4) + 2.0) * 1.01
            square = (y + self._radius) ** 2
            growth = np.exp(unit * square + 8.0 * _UNIT_ROUNDOFF)
            relative = (unit * np.maximum(self._typical, y) ** 2 + 8.0 * _UNIT_ROUNDOFF) * growth
            # With t = |w| - |y|, k is at most exp(-t^2 / 2), and (2 |y| + t)^2 exp(-t^2 / 2) is at
            # most 4 |y|^2 + 2.43 |y| + 0.74.  Distant points z therefore have a small error.
            square = np.minimum(square, 4.0 * norms + 2.43 * y + 0.74)
            absolute = (unit * square + 8.0 * _UNIT_ROUNDOFF) * growth
        for error in (relative, absolute):
            error[~np.isfinite(error)] = np.inf
        return QueryRows(rows, relative, absolute, np.full(len(rows), self.factor))

    def columns(self, columns: Any) -> np.ndarray:
        """Return the operand of `tile` for some of the points z."""
        return self._right[columns]

    def tile(self, rows: np.ndarray, columns: np.ndarray, scratch: np.ndarray) -> np.ndarray:
        """Return k(x, z) / c for some rows and columns."""
        T = scratch[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        np.matmul(rows, columns.T, out=T)
        return exp_inplace(T, -0.5)


class BinaryEvaluator:
    """Tiles of a Gaussian kernel on points of zeros and ones, from the number of unequal columns.

    Columns are stored as bits.  k takes d + 1 different values, which are read from a table in
    float64, so that they are exact up to the rounding of the exponential.
    """

    is_single, is_gaussian, relative_cost = False, True, 0.25

    def __init__(self, factor: float, inverse: np.ndarray, Z: np.ndarray) -> None:
        d = Z.shape[1]
        self.factor = factor
        self._words = np.ascontiguousarray(_pack_bits(Z).T)
        self.weights = np.ones(len(Z))
        self._table = np.exp(-0.5 * inverse[0] ** 2 * np.arange(d + 1))

    def rows(self, X: Points) -> QueryRows:
        """Return the bits of binary query points."""
        n = X.shape[0]
        error = np.full(n, _FLOAT64_ERROR)
        return QueryRows(_pack_bits(X), error, error, np.full(n, self.factor))

    def columns(self, columns: Any) -> np.ndarray:
        """Return the operand of `tile` for some of the points z."""
        return np.ascontiguousarray(self._words[:, columns]).T

    def tile(self, rows: np.ndarray, columns: np.ndarray, scratch: np.ndarray) -> np.ndarray:
        """Return k(x, z) / c for some rows and columns."""
        T = scratch[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        counts = np.empty(len(columns), dtype=np.int64)
        _table_of_unequal_bits(np.ascontiguousarray(rows), columns.T, self._table, counts, T)
        return T


class TileEvaluator:
    """Tiles of any kernel, computed in float64 by the kernel itself."""

    is_single, is_gaussian, relative_cost, factor = False, False, 1.0, 1.0

    def __init__(self, kernel: Kernel, Z: Points) -> None:
        self._kernel, self._prepared = kernel, kernel.prepare(Z)
        self.weights = np.ones(length(Z))

    def rows(self, X: Points) -> QueryRows:
        """Return prepared query points."""
        diagonal = np.asarray(self._kernel.diag(X), dtype=float)
        P = self._kernel.prepare(X, like=self._prepared)
        error = np.full(len(P), _FLOAT64_ERROR)
        return QueryRows(P, error, error, diagonal)

    def columns(self, columns: Any) -> Any:
        """Return the operand of `tile` for some of the points z."""
        return self._prepared[columns]

    def tile(self, rows: Any, columns: Any, scratch: np.ndarray) -> np.ndarray:
        """Return k(x, z) for some rows and columns."""
        T = scratch[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        return self._kernel.tile(rows, columns, T)


Evaluator = GaussianEvaluator | BinaryEvaluator | TileEvaluator


def gaussian_form(kernel: Kernel, n_columns: int) -> tuple[float, np.ndarray] | None:
    """Return c and 1 / l of a Gaussian kernel k(x, z) = c exp(-|(x - z) / l|^2 / 2).

    White noise is ignored, because it is 0 between different observations.  None means that the
    kernel is not a multiple of a Gaussian kernel.
    """
    if isinstance(kernel, Sum):
        terms = [term for _, term in kernel._children() if not isinstance(term, White)]
        return gaussian_form(terms[0], n_columns) if len(terms) == 1 else None
    if isinstance(kernel, Scale):
        inner = gaussian_form(kernel.kernel, n_columns)
        return None if inner is None else (float(kernel.factor) * inner[0], inner[1])
    if type(kernel) is not RBF:
        return None
    scale = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (n_columns,))
    return 1.0, 1.0 / scale


def make_evaluators(kernel: Kernel, Z: Points) -> list[Evaluator]:
    """Return the evaluators for a kernel and points z, the fastest first.

    `BinaryEvaluator` is only valid for binary queries.
    """
    is_matrix = kernel.domain.on_vectors and (sp.issparse(Z) or isinstance(Z, np.ndarray))
    form = gaussian_form(kernel, Z.shape[1]) if is_matrix else None
    if form is None or form[0] <= 0.0 or (sp.issparse(Z) and Z.shape[1] > _MAX_DENSE_COLUMNS):
        return [TileEvaluator(kernel, Z)]
    dense = Z.toarray() if sp.issparse(Z) else as_vectors(Z, type(kernel).__name__)
    evaluators: list[Evaluator] = [GaussianEvaluator(*form, dense.astype(float, copy=False))]
    if np.ptp(form[1]) == 0.0 and is_binary(Z):
        evaluators.insert(0, BinaryEvaluator(*form, Z))
    return evaluators


def is_binary(X: Points) -> bool:
    """Whether all entries of a matrix are 0 or 1."""
    if sp.issparse(X):
        return bool(np.all((X.data == 1.0) | (X.data == 0.0))) and X.has_canonical_format
    return all(bool(np.all((X[p] == 0.0) | (X[p] == 1.0))) for p in slices(len(X), 1024))


def add_products(
    evaluator: Evaluator,
    rows: QueryRows,
    columns: np.ndarray,
    V: np.ndarray,
    out: np.ndarray,
    in_double: bool,
    largest: np.ndarray | None = None,
) -> Iterator[None]:
    """Add k(x, z) V / c to `out` for some points z, and update the maxima of k(x, z) / c.

    Sums are computed in float64 if `in_double`, otherwise in the precision of the evaluator.

    The generator yields before each tile, so that threads can be interrupted.
    """
    dtype = np.float32 if evaluator.is_single else np.float64
    scratch = np.empty(_TILE_ROWS * _TILE_COLUMNS, dtype=dtype)
    for block in slices(len(columns), _TILE_COLUMNS):
        Q = evaluator.columns(columns[block])
        Vb = np.ascontiguousarray(V[block], dtype=dtype)
        Vt = np.ascontiguousarray(V[block].T)
        for part in slices(len(out), _TILE_ROWS):
            yield
            T = evaluator.tile(rows.values[part], Q, scratch)
            if in_double:
                _add_product(T, Vt, out[part])
            else:
                out[part] += T @ Vb
            if largest is not None:
                np.maximum(largest[part], T.max(axis=1), out=largest[part])


@jit("reassoc", "nsz")
def _add_product(T: np.ndarray, Vt: np.ndarray, out: np.ndarray) -> None:
    """Add T V to `out` in float64; Vt is the transpose of V, and T may be in float32."""
    for i in range(T.shape[0]):
        row = T[i]
        for c in range(Vt.shape[0]):
            v, total = Vt[c], 0.0
            for j in range(row.shape[0]):
                total += row[j] * v[j]
            out[i, c] += total


@_add_product.without_numba
def _add_product_numpy(T: np.ndarray, Vt: np.ndarray, out: np.ndarray) -> None:
    out += T.astype(np.float64) @ Vt.T


def value_errors(
    evaluator: Evaluator,
    rows: QueryRows,
    in_double: bool,
    sums: np.ndarray,
    weighted: np.ndarray | None = None,
) -> np.ndarray:
    """Return bounds on the errors of the sums that `add_products` computed, shape (n, m).

    Parameters
    ----------
    evaluator : Evaluator
        The evaluator that computed the values by `add_products`.
    rows : QueryRows
        The n points x.
    in_double : bool
        The precision of the sums, as for `add_products`.
    sums : ndarray of shape (m,)
        The sums of |V_i| sqrt(k(z_i, z_i) / c).
    weighted : ndarray of shape (n, m) or None, default=None
        The computed values of sum_i |V_i| weights_i k(x, z_i) / c, for a kernel that is positive;
        inf if they are not known.
    """
    unit = 2.0**-53 if in_double or not evaluator.is_single else _UNIT_ROUNDOFF
    n = 1.01 * (_TILE_COLUMNS + 3) * unit
    scale = np.sqrt(rows.diagonal / evaluator.factor)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        error = (rows.absolute + n * (1.0 + rows.absolute))[:, None] * scale * sums
        if weighted is not None:
            relative = (rows.relative + n) * (1.0 + rows.relative) * 1.01
            error = np.fmin(error, relative[:, None] * weighted)
        # 1e-30 bounds the values below the smallest number of float32, which become 0.
        return 1.001 * error + 1e-30 * scale * sums


def _pack_bits(X: Points) -> np.ndarray:
    """Return the columns of a binary matrix as bits of int64 words, shape (n, n_words)."""
    n, d = X.shape
    words = np.zeros((n, -(-d // _BITS_PER_WORD)), dtype=np.int64)
    for part in slices(n, 1024):
        block = X[part].toarray() if sp.issparse(X) else X[part]
        bits = block.astype(np.int64)
        for w, columns in enumerate(slices(d, _BITS_PER_WORD)):
            powers = np.left_shift(np.int64(1), np.arange(columns.stop - columns.start))
            words[part, w] = bits[:, columns] @ powers
    return words


@jit("reassoc", "nsz")
def _table_of_unequal_bits(
    A: np.ndarray, Bt: np.ndarray, table: np.ndarray, counts: np.ndarray, out: np.ndarray
) -> None:
    """Write table[h] to out_ij, where h is the number of unequal bits of A_i and B_j."""
    for i in range(A.shape[0]):
        row = out[i]
        counts[:] = 0
        for w in range(A.shape[1]):
            a, b = A[i, w], Bt[w]
            for j in range(b.shape[0]):
                t = a ^ b[j]  # count the bits of t in pairs, then in groups of four and eight
                t = t - ((t >> 1) & 0x5555555555555555)
                t = (t & 0x3333333333333333) + ((t >> 2) & 0x3333333333333333)
                t = (t + (t >> 4)) & 0x0F0F0F0F0F0F0F0F
                t = t + (t >> 8)
                t = t + (t >> 16)
                counts[j] += (t + (t >> 32)) & 127
        for j in range(row.shape[0]):
            row[j] = table[counts[j]]


@_table_of_unequal_bits.without_numba
def _table_of_unequal_bits_numpy(
    A: np.ndarray, Bt: np.ndarray, table: np.ndarray, counts: np.ndarray, out: np.ndarray
) -> None:
    for i, row in enumerate(A):
        out[i] = table[np.bitwise_count(row[:, None] ^ Bt).sum(axis=0)]
