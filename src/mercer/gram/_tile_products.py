"""Compute products T V and T^T U of a tile T with a few vectors, in compiled loops.

A BLAS copies T to another memory layout before it multiplies.  If V has about a dozen columns, this
takes as long as the product itself, and happens twice, for T and for T^T.  Here four rows of T are
loaded once and used for both products, with three columns of V or U at a time.  The twelve running
sums fit the CPU registers.
"""

from __future__ import annotations

import numpy as np

from .._core import jit

_ROW_UNROLL, _COLUMN_UNROLL = 4, 3  # rows and columns per loop step, fixed in the loops below


def is_faster_than_blas(V: np.ndarray) -> bool:
    """Whether the loops of this module are faster than the BLAS: for 2 to 48 columns of V."""
    n_columns: int = V.shape[1]
    return 2 <= n_columns <= 48


def pad_columns(V: np.ndarray) -> np.ndarray:
    """Append columns of zeros to V until their number is a multiple of three."""
    missing = -V.shape[1] % _COLUMN_UNROLL
    return np.pad(V, ((0, 0), (0, missing))) if missing else V


def tile_product(T: np.ndarray, Vt: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Set out <- T V and return it; `Vt` is the transpose of V."""
    if len(T) % _ROW_UNROLL:
        return np.matmul(T, Vt.T, out=out)
    _tile_product(T, Vt, out)
    return out


def tile_products(
    T: np.ndarray, Vt: np.ndarray, U: np.ndarray, out: np.ndarray, mirror: np.ndarray
) -> None:
    """Set out <- T V and mirror <- U^T T; `Vt` is the transpose of V."""
    if len(T) % _ROW_UNROLL:
        np.matmul(T, Vt.T, out=out)
        np.matmul(U.T, T, out=mirror)
    else:
        _tile_products(T, Vt, U, out, mirror)


@jit("reassoc", "nsz")
def _tile_product(T: np.ndarray, Vt: np.ndarray, out: np.ndarray) -> None:
    """Set out <- T V; the number of rows is a multiple of four."""
    for i in range(0, T.shape[0], 4):
        _four_rows(T, Vt, out, i)


@_tile_product.without_numba
def _tile_product_numpy(T: np.ndarray, Vt: np.ndarray, out: np.ndarray) -> None:
    np.matmul(T, Vt.T, out=out)


@jit("reassoc", "nsz")
def _tile_products(
    T: np.ndarray, Vt: np.ndarray, U: np.ndarray, out: np.ndarray, mirror: np.ndarray
) -> None:
    """Set out <- T V and mirror <- U^T T; the number of rows is a multiple of four."""
    mirror[:] = 0
    for i in range(0, T.shape[0], 4):
        _four_rows(T, Vt, out, i)
        _four_columns(T, U, mirror, i)


@_tile_products.without_numba
def _tile_products_numpy(
    T: np.ndarray, Vt: np.ndarray, U: np.ndarray, out: np.ndarray, mirror: np.ndarray
) -> None:
    np.matmul(T, Vt.T, out=out)
    np.matmul(U.T, T, out=mirror)


@jit("reassoc", "nsz")
def _four_rows(T: np.ndarray, Vt: np.ndarray, out: np.ndarray, i: int) -> None:
    """Compute the rows i to i + 3 of out = T V, twelve inner products at a time."""
    zero = T.dtype.type(0)
    r0, r1, r2, r3 = T[i], T[i + 1], T[i + 2], T[i + 3]
    for c in range(0, Vt.shape[0], 3):
        v0, v1, v2 = Vt[c], Vt[c + 1], Vt[c + 2]
        a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = zero
        for j in range(T.shape[1]):
            x0, x1, x2 = v0[j], v1[j], v2[j]
            a0 += r0[j] * x0
            a1 += r0[j] * x1
            a2 += r0[j] * x2
            b0 += r1[j] * x0
            b1 += r1[j] * x1
            b2 += r1[j] * x2
            c0 += r2[j] * x0
            c1 += r2[j] * x1
            c2 += r2[j] * x2
            d0 += r3[j] * x0
            d1 += r3[j] * x1
            d2 += r3[j] * x2
        out[i, c], out[i, c + 1], out[i, c + 2] = a0, a1, a2
        out[i + 1, c], out[i + 1, c + 1], out[i + 1, c + 2] = b0, b1, b2
        out[i + 2, c], out[i + 2, c + 1], out[i + 2, c + 2] = c0, c1, c2
        out[i + 3, c], out[i + 3, c + 1], out[i + 3, c + 2] = d0, d1, d2


@jit("reassoc", "nsz")
def _four_columns(T: np.ndarray, U: np.ndarray, mirror: np.ndarray, i: int) -> None:
    """Add the contribution of the rows i to i + 3 of T to U^T T, three columns of U at a time."""
    r0, r1, r2, r3 = T[i], T[i + 1], T[i + 2], T[i + 3]
    for c in range(0, U.shape[1], 3):
        a0, a1, a2 = U[i, c], U[i, c + 1], U[i, c + 2]
        b0, b1, b2 = U[i + 1, c], U[i + 1, c + 1], U[i + 1, c + 2]
        c0, c1, c2 = U[i + 2, c], U[i + 2, c + 1], U[i + 2, c + 2]
        d0, d1, d2 = U[i + 3, c], U[i + 3, c + 1], U[i + 3, c + 2]
        m0, m1, m2 = mirror[c], mirror[c + 1], mirror[c + 2]
        for j in range(T.shape[1]):
            t0, t1, t2, t3 = r0[j], r1[j], r2[j], r3[j]  # read T before `mirror` is written
            m0[j] += t0 * a0 + t1 * b0 + t2 * c0 + t3 * d0
            m1[j] += t0 * a1 + t1 * b1 + t2 * c1 + t3 * d1
            m2[j] += t0 * a2 + t1 * b2 + t2 * c2 + t3 * d2


def weighted_squares(T: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    """Return sum_ij left_i right_j T_ij^2, accumulated in float64."""
    with np.errstate(over="ignore", invalid="ignore"):  # callers check that the result is finite
        if left[0] == right[0] and np.all(left == left[0]) and np.all(right == left[0]):
            # Each row is summed in the precision of T, and the rows in float64, so that rounding
            # errors of a float32 tile do not accumulate.
            if T.dtype == np.float64 and T.flags.c_contiguous:
                return float(left[0] ** 2 * np.vdot(T, T))
            return float(left[0] ** 2 * np.einsum("ij,ij->i", T, T).sum(dtype=np.float64))
        return float(left @ (np.square(T, dtype=np.float64) @ right))
