"""The limit: the GEMM and the exp that no tiled K @ V can do without, and nothing else.

    for every tile:   T = A_i B_jᵀ,  (384 × d)(d × 384);   T = exp(T)

and, for the second limit, the products that the job consists of:   T V_j,  and Tᵀ V_i for the half
that is not evaluated.

It runs on as many threads as the contenders, with BLAS held to one thread each, over the upper
half of the tiles when K is symmetric.  The exp is the faster of NumPy's and mercer's.
"""

from __future__ import annotations

import timeit
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
from threadpoolctl import threadpool_limits

from ._suite import THREADS

ROWS, COLUMNS = 384, 384


def _fastest_exp(dtype: np.dtype):
    """Time the candidates on one tile; return the name of the faster one and itself."""
    candidates = {"numpy.exp": lambda T: np.exp(T, out=T)}
    if find_spec("mercer") is not None:
        from mercer.kernels._exp import exp_inplace

        candidates["mercer's exp"] = lambda T: exp_inplace(T, 1.0)
    tile = np.linspace(-10.0, 0.0, ROWS * COLUMNS, dtype=dtype).reshape(ROWS, COLUMNS)

    def seconds(name: str) -> float:
        candidates[name](tile.copy())  # compiles
        return min(timeit.repeat(lambda: candidates[name](tile.copy()), number=1, repeat=20))

    name = min(candidates, key=seconds)
    return name, candidates[name]


class Limit:
    """The tiles of k(X, Z); of k(X, X), and then only the upper half, when Z is None.

    With V, for a symmetric K, the products with V too.
    """

    def __init__(
        self, X: np.ndarray, Z: np.ndarray | None = None, V: np.ndarray | None = None
    ) -> None:
        threadpool_limits(1)  # for the rest of this process: the threads are ours
        name, self._exp = _fastest_exp(X.dtype)
        self.note = f"exp: {name}"
        self._V = V
        # Exponents of one sign and ordinary size, as in a kernel.
        self._A, self._B = -np.abs(X) / X.shape[1], np.abs(X if Z is None else Z)
        tiles = [
            (i, j)
            for i in range(0, len(self._A), ROWS)
            for j in range(0, len(self._B), COLUMNS)
            if Z is not None or j + COLUMNS > i
        ]
        self._shares = [tiles[t::THREADS] for t in range(THREADS)]
        self._pool = ThreadPoolExecutor(THREADS)

    def _work(self, tiles: list[tuple[int, int]]) -> None:
        buffer = np.empty(ROWS * COLUMNS, dtype=self._A.dtype)
        for i, j in tiles:
            A, B = self._A[i : i + ROWS], self._B[j : j + COLUMNS]
            T = buffer[: len(A) * len(B)].reshape(len(A), len(B))
            np.matmul(A, B.T, out=T)
            self._exp(T)
            if self._V is not None:
                T @ self._V[j : j + COLUMNS]
                if j > i:
                    T.T @ self._V[i : i + ROWS]

    def __call__(self) -> None:
        list(self._pool.map(self._work, self._shares))
