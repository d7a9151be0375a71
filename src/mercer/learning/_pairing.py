"""Inner products of centred kernel matrices, of all pairs of them in one pass over tiles.

    <A, B> = sum_ij w_i w_j A_ij B_ij
    A = K - m 1^T - 1 m^T + g,     m = K w / W,     g = m^T w / W,     W = sum of the weights w

A point of weight 2 counts as two points.  Nothing of the size of K is held: for p matrices a tile
of each, p vectors and one p x p matrix.

    <A, B> = <K, L> - 2 W (m_K w) . m_L + W^2 g_K g_L

would cancel for kernels that hardly vary.  Since K - r 1^T - 1 r^T has the same A for *any* r, each
K is first centred at a few of its points, and what is left cancels no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import not_finite
from .._runtime import budget_in_bytes, check_budget, check_threads, ordered_sum, quiet, slices
from ..gram import GramOperator

__all__ = ["Pairing"]

_LARGEST, _SMALLEST = 384, 32  # rows and columns of a tile
_NUMBERS = 2**20  # in the tiles of all matrices together
_SHARE = 8  # and of the budget no more than this part of a thread's
_FEW = 32  # points at which K is centred roughly
_ROUNDING = 1e-13  # a matrix that centring leaves less of, in units of its largest entry, is flat


@dataclass(frozen=True)
class Pairing:
    """What centred matrices A_1, ... A_p have to do with each other.

    Attributes
    ----------
    products : ndarray of shape (p, p)
        <A_k, A_l>.
    sizes : ndarray of shape (p,)
        sum_i w_i (A_k)_ii / W: the mean squared distance of phi_k(x) from its mean.
    """

    products: np.ndarray
    sizes: np.ndarray

    @classmethod
    @quiet
    def of(
        cls,
        grams: Sequence[GramOperator],
        weights: np.ndarray | None = None,
        *,
        max_memory: Any = None,
    ) -> Pairing:
        """Return the pairing of symmetric matrices over the same points."""
        n, p = grams[0].shape[0], len(grams)
        w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        W, root = w.sum(), np.sqrt(w)
        threads = check_threads(None)
        fits = budget_in_bytes(max_memory) / (8 * _SHARE * threads)  # the points are there as well
        size = int(np.clip(np.sqrt(min(_NUMBERS, fits) / p), _SMALLEST, _LARGEST))
        strips = slices(n, size)
        held = threads * (3 * p * min(n, size) ** 2 + p * p + 2 * p * n)
        check_budget(8 * held, max_memory, f"products of {p} kernel matrices of {n} points")
        rough = np.array([_rough_centre(K) for K in grams])

        def strip(i: int) -> np.ndarray:
            """Return the products, and K w, of all tiles to the right of a diagonal square."""
            rows, products, sums = strips[i], np.zeros((p, p)), np.zeros((p, n))
            for cols in strips[i:]:
                T = np.empty((p, rows.stop - rows.start, cols.stop - cols.start))
                for K, r, tile in zip(grams, rough, T, strict=True):
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

        # the first strips are the longest: in turns, so that every group has some of them
        order = sorted(range(len(strips)), key=lambda i: min(i, len(strips) - 1 - i))
        work = sum(K.kernel._evaluation_work(n * n // 2) for K in grams)
        total = ordered_sum(strip, order, min(8, len(strips)), work=work)
        products, sums = total[: p * p].reshape(p, p), total[p * p :].reshape(p, n)
        diagonals = np.array([K.diagonal() for K in grams], dtype=float)
        for K, square, diagonal in zip(grams, products.diagonal(), diagonals, strict=True):
            if not (np.isfinite(square) and np.isfinite(diagonal).all()):
                raise not_finite(K.kernel)
        means = sums / W
        overall = means @ w / W
        products -= 2.0 * W * (means * w) @ means.T - W**2 * np.outer(overall, overall)
        sizes = ((diagonals - 2.0 * (rough + means)) @ w) / W + overall
        flat = np.sqrt(np.maximum(products.diagonal(), 0.0)) / W
        flat = flat <= _ROUNDING * np.abs(diagonals).max(axis=1)
        products[flat], products[:, flat], sizes[flat] = 0.0, 0.0, 0.0
        return cls(0.5 * (products + products.T), np.maximum(sizes, 0.0))

    @property
    def alignments(self) -> np.ndarray:
        """<A_k, A_l> / (|A_k| |A_l|), shape (p, p); 0 for a matrix that is constant."""
        norms = np.sqrt(self.products.diagonal())
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        return np.clip(self.products * inverse * inverse[:, None], -1.0, 1.0)


def _rough_centre(K: GramOperator) -> np.ndarray:
    """Return r such that K - r 1^T - 1 r^T is centred at a few evenly spaced points."""
    some = np.unique(np.linspace(0, K.shape[0] - 1, _FEW).astype(int))
    columns = np.concatenate([K.block(rows, some) for rows in slices(K.shape[0], _LARGEST)])
    r = columns.mean(axis=1, dtype=float)
    return np.asarray(r - 0.5 * r[some].mean())
