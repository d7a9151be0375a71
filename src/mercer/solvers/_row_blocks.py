"""Products with a tall matrix F in blocks of rows.

F is not copied, and an interrupt by the user takes effect between two blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np

from .._runtime import all_blas_threads
from .._runtime.linalg import blas

__all__ = ["cross_gram", "pulled", "row_norms", "times", "weighted_gram"]

_SHARED_WORK = 10**9  # multiplications from which a product is shared between BLAS threads
_SHARED_BLOCK = 1 << 20  # entries of a block then: one call lasts as long as several time slices
_WORKED_ON = 1 << 17  # entries of a block that is changed: it stays in the cache
_READ_ONLY = 1 << 23  # entries of a block that is read once


def times(F: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return F w."""
    out = np.zeros(len(F))
    for rows in _blocks(F, _READ_ONLY):
        np.dot(F[rows], w, out=out[rows])
    return out


def pulled(F: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return F^T x, for one x or for its columns."""
    out = np.zeros((F.shape[1], *x.shape[1:]))
    for rows in _blocks(F, _READ_ONLY):
        out += F[rows].T @ x[rows]
    return out


def row_norms(F: np.ndarray) -> np.ndarray:
    """Return |F_i|^2 for all rows."""
    out = np.zeros(len(F))
    for rows in _blocks(F, _WORKED_ON):
        np.einsum("ij,ij->i", F[rows], F[rows], out=out[rows])
    return out


def weighted_gram(F: np.ndarray, h: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    """Return the lower half of (F - centre)^T diag(h) (F - centre) for h >= 0."""
    m, root = F.shape[1], np.sqrt(h)[:, None]
    A = np.zeros((m, m), order="F")
    shared = len(F) * m * m >= _SHARED_WORK
    for rows in _blocks(F, _SHARED_BLOCK if shared else _WORKED_ON):
        block = root[rows] * (F[rows] if centre is None else F[rows] - centre)
        by_columns = not block.flags.c_contiguous
        block = block if by_columns else block.T  # neither order in memory is copied
        with all_blas_threads if shared else nullcontext():
            A = blas.dsyrk(1.0, block, beta=1.0, c=A, trans=by_columns, lower=1, overwrite_c=1)
    return A


def cross_gram(
    F: np.ndarray, h: np.ndarray, G: np.ndarray, centre: np.ndarray, centre_g: np.ndarray
) -> np.ndarray:
    """Return (F - centre)^T diag(h) (G - centre_g)."""
    A = np.zeros((F.shape[1], G.shape[1]))
    for rows in _blocks(F if F.shape[1] > G.shape[1] else G, _WORKED_ON):
        A += (F[rows] - centre).T @ (h[rows, None] * (G[rows] - centre_g))
    return A


def _blocks(F: np.ndarray, numbers: int) -> Iterator[slice]:
    step = max(256, numbers // max(1, F.shape[1])) if F.shape[1] else 0
    for start in range(0, len(F) if step else 0, step or 1):
        yield slice(start, start + step)
