"""Inner products of all pairs of centred kernel matrices, in one pass over tiles.

    <A, B> = sum_ij w_i w_j A_ij B_ij
    A = K - m 1^T - 1 m^T + g,     m = K w / W,     g = m^T w / W,     W = sum of the weights w

A point of weight 2 counts as two points.  No n x n matrix is stored: p kernels need one tile and
one vector each, and one p x p matrix.  For the centred matrices A and B of K and L, the formula

    <A, B> = <K, L> - 2 W (m_K w) . m_L + W^2 g_K g_L

suffers from cancellation if the kernel values hardly vary.  K - r 1^T - 1 r^T has the same centred
matrix A for *any* r, so each K is first centred approximately, with r from a few of the points.
The subtracted terms are then small, and the cancellation is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import (
    budget_in_bytes,
    check_budget,
    check_threads,
    ignore_overflow,
    not_finite_error,
    ordered_sum,
    slices,
)
from ...gram import GramOperator

__all__ = ["GramInnerProducts"]


@dataclass(frozen=True)
class _InnerProductTuning:
    """Tile sizes, and the tolerance below which a kernel counts as constant."""

    # Bounds of the number of rows and columns of a tile.
    max_tile_size: int = 384
    min_tile_size: int = 32
    # Maximum number of entries in the tiles of all matrices together.
    max_tile_entries: int = 2**20
    # Each thread has an equal part of the memory budget; this part is at least this many times the
    # size of its tiles.
    min_budget_ratio: int = 8
    # Number of points from which the approximate centring of K is computed.
    n_centres: int = 32
    # A centred matrix whose norm, relative to the largest diagonal entry of K, is below this value
    # is treated as 0, because it is rounding error.
    zero_tolerance: float = 1e-13


_TUNING = _InnerProductTuning()


@dataclass(frozen=True)
class GramInnerProducts:
    """Inner products of centred kernel matrices A_1, ..., A_p, and their sizes.

    Attributes
    ----------
    products : ndarray of shape (p, p)
        The inner products <A_k, A_l>.
    sizes : ndarray of shape (p,)
        The mean squared distance of the points from their mean in the feature space of each
        kernel, sum_i w_i (A_k)_ii / W, for sample weights w with sum W.
    """

    products: np.ndarray
    sizes: np.ndarray

    @classmethod
    @ignore_overflow
    def of(
        cls,
        grams: Sequence[GramOperator],
        weights: np.ndarray | None = None,
        *,
        max_memory: Any = None,
    ) -> GramInnerProducts:
        """Compute the inner products of symmetric matrices over the same points."""
        n, p = grams[0].shape[0], len(grams)
        w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        W, root = w.sum(), np.sqrt(w)
        threads = check_threads(None)
        # The tiles use only this part of the memory budget; the rest is for the points.
        max_entries = budget_in_bytes(max_memory) / (8 * _TUNING.min_budget_ratio * threads)
        size = int(
            np.clip(
                np.sqrt(min(_TUNING.max_tile_entries, max_entries) / p),
                _TUNING.min_tile_size,
                _TUNING.max_tile_size,
            )
        )
        strips = slices(n, size)
        n_numbers = threads * (3 * p * min(n, size) ** 2 + p * p + 2 * p * n)
        check_budget(8 * n_numbers, max_memory, f"products of {p} kernel matrices of {n} points")
        offsets = np.array([_approximate_offsets(K) for K in grams])

        def strip(i: int) -> np.ndarray:
            """Return the inner products and K w over diagonal tile i and the tiles to its right."""
            rows, products, sums = strips[i], np.zeros((p, p)), np.zeros((p, n))
            for cols in strips[i:]:
                T = np.empty((p, rows.stop - rows.start, cols.stop - cols.start))
                for K, r, tile in zip(grams, offsets, T, strict=True):
                    tile[...] = K.block(rows, cols)
                    tile -= r[rows, None]
                    tile -= r[cols]
                sums[:, rows] += T @ w[cols]
                if rows != cols:
                    sums[:, cols] += w[rows] @ T
                T *= root[rows, None] * root[cols]
                flat = T.reshape(p, -1)
                products += (1.0 if rows == cols else 2.0) * (flat @ flat.T)
            return np.concatenate([products.ravel(), sums.ravel()])

        # The first strips have the most tiles.  This order spreads them over all groups.
        order = sorted(range(len(strips)), key=lambda i: min(i, len(strips) - 1 - i))
        work = sum(K.kernel._evaluation_work(n * n // 2) for K in grams)
        total = ordered_sum(strip, order, min(8, len(strips)), work=work)
        products, sums = total[: p * p].reshape(p, p), total[p * p :].reshape(p, n)
        diagonals = np.array([K.diagonal() for K in grams], dtype=float)
        for K, square, diagonal in zip(grams, products.diagonal(), diagonals, strict=True):
            if not (np.isfinite(square) and np.isfinite(diagonal).all()):
                raise not_finite_error(K.kernel)
        means = sums / W
        overall = means @ w / W
        products -= 2.0 * W * (means * w) @ means.T - W**2 * np.outer(overall, overall)
        sizes = ((diagonals - 2.0 * (offsets + means)) @ w) / W + overall
        is_constant = np.sqrt(np.maximum(products.diagonal(), 0.0)) / W
        is_constant = is_constant <= _TUNING.zero_tolerance * np.abs(diagonals).max(axis=1)
        products[is_constant], products[:, is_constant], sizes[is_constant] = 0.0, 0.0, 0.0
        return cls(0.5 * (products + products.T), np.maximum(sizes, 0.0))

    @property
    def alignments(self) -> np.ndarray:
        """The alignments <A_k, A_l> / (|A_k| |A_l|), shape (p, p); 0 for constant kernels."""
        norms = np.sqrt(self.products.diagonal())
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        return np.clip(self.products * inverse * inverse[:, None], -1.0, 1.0)


def _approximate_offsets(K: GramOperator) -> np.ndarray:
    """Return r such that K - r 1^T - 1 r^T has mean 0 over a few evenly spaced points."""
    centres = np.unique(np.linspace(0, K.shape[0] - 1, _TUNING.n_centres).astype(int))
    columns = np.concatenate(
        [K.block(rows, centres) for rows in slices(K.shape[0], _TUNING.max_tile_size)]
    )
    r = columns.mean(axis=1, dtype=float)
    return np.asarray(r - 0.5 * r[centres].mean())
