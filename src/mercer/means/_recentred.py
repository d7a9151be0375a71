"""K about the middle of the points: what all points have in common no longer costs digits.

    K'_ij = K_ij - r_i - r_j + g,   r_i = mean_c k(x_i, c),   g = mean of r over the c

is the kernel of phi(x) - mu, mu the mean of a few of the points, c.  A difference of means is the
same under K', whatever the c are: mu cancels.  K' is evaluated tile by tile, like K.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit, quiet, slices
from ..gram import GramOperator, TiledGram, gram
from ..kernels import Kernel, Prepared, node
from ._samples import check_finite, moved

__all__ = ["Recentred", "entry_sizes", "recentred"]

_CENTRES = 64  # points whose mean is taken off
_STRIP = 4096  # rows of K for which r is computed at a time


@node
class Recentred(Kernel):
    """k(x, z) - r(x) - r(z) + g on the points for which r was computed, in their order."""

    kernel: Kernel
    r: Any
    g: float

    def __str__(self) -> str:
        return str(self.kernel)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        inner = self.kernel.prepare(X, like=None if like is None else like.children[0])
        return Prepared.from_children(inner, arrays=(self.r,))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        _subtract(out, P.arrays[0] - self.g, Q.arrays[0])

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(self.kernel.diag(X) - 2.0 * self.r + self.g)


@jit()
def _subtract(T: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Set T_ij <- T_ij - a_i - b_j in one pass, where NumPy takes two."""
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            T[i, j] -= a[i] + b[j]


@quiet
def recentred(kernel: Kernel, X: Any, max_memory: Any = None) -> TiledGram:
    """Return K' in tiles."""
    kernel, X = moved(kernel, X)
    K = gram(kernel, X, storage="tiled", max_memory=max_memory)
    n = K.shape[0]
    centres = np.unique(np.linspace(0, n - 1, min(n, _CENTRES)).astype(int))
    blocks = (K.block(rows, centres) for rows in slices(n, _STRIP))
    r = np.concatenate([block.mean(axis=1, dtype=float) for block in blocks])
    check_finite(r, kernel)
    middle = Recentred(kernel, r, float(r[centres].mean()))
    return TiledGram(middle, X, max_memory=max_memory)


def entry_sizes(K: GramOperator) -> np.ndarray:
    """Return how large the entries in the rows of K were before they were centred."""
    return np.abs(K.kernel.r if isinstance(K.kernel, Recentred) else K.diagonal())
