"""Products with a tall matrix F, computed one block of rows at a time.

F is never copied, and a keyboard interrupt takes effect between two blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from .._core import all_blas_threads
from .._core.linalg import blas


@dataclass(frozen=True)
class _BlockSizes:
    """Block sizes; larger blocks need fewer calls, but cause cache misses and delay interrupts."""

    # A product with at least this many multiplications uses several BLAS threads.
    min_threaded_work: int = 10**9
    # Entries per block of a multi-threaded product; the call should last for several time slices
    # of the operating system.
    threaded_entries: int = 1 << 20
    # Entries per block, if blocks are copied or modified; such a block stays in the cache.
    cached_entries: int = 1 << 17
    # Entries per block, if blocks are only read.
    read_only_entries: int = 1 << 23


_SIZES = _BlockSizes()


def matvec(F: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return F w."""
    out = np.zeros(len(F))
    for rows in _blocks(F, _SIZES.read_only_entries):
        np.dot(F[rows], w, out=out[rows])
    return out


def rmatvec(F: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return F^T x, for a vector x or a matrix x with the same number of rows as F."""
    out = np.zeros((F.shape[1], *x.shape[1:]))
    for rows in _blocks(F, _SIZES.read_only_entries):
        out += F[rows].T @ x[rows]
    return out


def squared_row_norms(F: np.ndarray) -> np.ndarray:
    """Return the squared norm |F_i|^2 of each row F_i."""
    out = np.zeros(len(F))
    for rows in _blocks(F, _SIZES.cached_entries):
        np.einsum("ij,ij->i", F[rows], F[rows], out=out[rows])
    return out


def weighted_gram(F: np.ndarray, h: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    """Return the lower triangle of (F - centre)^T diag(h) (F - centre) for h >= 0."""
    m, root = F.shape[1], np.sqrt(h)[:, None]
    A = np.zeros((m, m), order="F")
    threaded = len(F) * m * m >= _SIZES.min_threaded_work
    for rows in _blocks(F, _SIZES.threaded_entries if threaded else _SIZES.cached_entries):
        block = root[rows] * (F[rows] if centre is None else F[rows] - centre)
        fortran_order = not block.flags.c_contiguous
        # dsyrk needs Fortran order; the transpose avoids a copy of a block in C order.
        block = block if fortran_order else block.T
        with all_blas_threads if threaded else nullcontext():
            A = blas.dsyrk(1.0, block, beta=1.0, c=A, trans=fortran_order, lower=1, overwrite_c=1)
    return A


def cross_gram(
    F: np.ndarray, h: np.ndarray, G: np.ndarray, centre: np.ndarray, centre_g: np.ndarray
) -> np.ndarray:
    """Return (F - centre)^T diag(h) (G - centre_g)."""
    A = np.zeros((F.shape[1], G.shape[1]))
    for rows in _blocks(F if F.shape[1] > G.shape[1] else G, _SIZES.cached_entries):
        A += (F[rows] - centre).T @ (h[rows, None] * (G[rows] - centre_g))
    return A


def _blocks(F: np.ndarray, entries: int) -> Iterator[slice]:
    """Yield slices of rows of F, each of about `entries` entries and of at least 256 rows."""
    step = max(256, entries // max(1, F.shape[1])) if F.shape[1] else 0
    for start in range(0, len(F) if step else 0, step or 1):
        yield slice(start, start + step)
