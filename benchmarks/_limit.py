"""A lower bound on the time of any tiled product K @ V with the Gaussian kernel.

`Limit` does only the work that every tiled product must do:

    for every tile:   T = A_i B_jᵀ,  (384 × d)(d × 384);   T = exp(T)

If V is given, it also computes the products T V_j and, for symmetric K, Tᵀ V_i for the half of the
tiles that is not evaluated.

It uses as many threads as the contenders, with one BLAS thread each.  If K is symmetric, only the
upper half of the tiles is evaluated.  The exponential is the faster of NumPy's and mercer's.
"""

from __future__ import annotations

import timeit
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
from threadpoolctl import threadpool_limits

from ._suite import N_THREADS

TILE_ROWS, TILE_COLUMNS = 384, 384


def _fastest_exp(dtype: np.dtype):
    """Time the candidates on one tile; return the name and the function of the fastest."""
    candidates = {"numpy.exp": lambda T: np.exp(T, out=T)}
    if find_spec("mercer") is not None:
        from mercer.kernels.vectors._fast_math import exp_inplace

        candidates["mercer's exp"] = lambda T: exp_inplace(T, 1.0)
    tile = np.linspace(-10.0, 0.0, TILE_ROWS * TILE_COLUMNS, dtype=dtype).reshape(
        TILE_ROWS, TILE_COLUMNS
    )

    def seconds(name: str) -> float:
        candidates[name](tile.copy())  # compile before timing
        return min(timeit.repeat(lambda: candidates[name](tile.copy()), number=1, repeat=20))

    name = min(candidates, key=seconds)
    return name, candidates[name]


class Limit:
    """Evaluate the tiles of k(X, Z), or only the upper half of those of k(X, X) if Z is None.

    If V is given, which requires a symmetric K, the products with V are computed too.
    """

    def __init__(
        self, X: np.ndarray, Z: np.ndarray | None = None, V: np.ndarray | None = None
    ) -> None:
        threadpool_limits(1)  # one BLAS thread for the rest of this process: we start our own
        name, self._exp = _fastest_exp(X.dtype)
        self.note = f"exp: {name}"
        self._V = V
        # The exponents are negative and of moderate size, as in a Gaussian kernel.
        self._A, self._B = -np.abs(X) / X.shape[1], np.abs(X if Z is None else Z)
        tiles = [
            (i, j)
            for i in range(0, len(self._A), TILE_ROWS)
            for j in range(0, len(self._B), TILE_COLUMNS)
            if Z is not None or j + TILE_COLUMNS > i
        ]
        self._tiles_by_thread = [tiles[t::N_THREADS] for t in range(N_THREADS)]
        self._pool = ThreadPoolExecutor(N_THREADS)

    def _process_tiles(self, tiles: list[tuple[int, int]]) -> None:
        buffer = np.empty(TILE_ROWS * TILE_COLUMNS, dtype=self._A.dtype)
        for i, j in tiles:
            A, B = self._A[i : i + TILE_ROWS], self._B[j : j + TILE_COLUMNS]
            T = buffer[: len(A) * len(B)].reshape(len(A), len(B))
            np.matmul(A, B.T, out=T)
            self._exp(T)
            if self._V is not None:
                T @ self._V[j : j + TILE_COLUMNS]
                if j > i:
                    T.T @ self._V[i : i + TILE_ROWS]

    def __call__(self) -> None:
        list(self._pool.map(self._process_tiles, self._tiles_by_thread))
