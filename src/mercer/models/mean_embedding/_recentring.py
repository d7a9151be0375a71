"""Differences of means without cancellation: recentred kernel matrices, and rounding errors.

    K'_ij = K_ij - r_i - r_j + g,   r_i = mean over c of k(x_i, c),   g = mean of r over the c

K' is the kernel matrix of phi(x) - mu, where mu is the mean of phi over a few of the points, the
centres c.  Differences of means are the same for K' and K, because mu cancels.  They are
more precise with K', which has no large component that is common to all points.  K' is evaluated in
tiles, like K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..._core import (
    MemoryLimit,
    Points,
    ignore_overflow,
    jit,
    not_finite_error,
    slices,
)
from ...gram import GramOperator, TiledGram, gram
from ...kernels import Kernel, Linear, Prepared, node, shifted_to_data

_N_CENTRES = 64  # number of centres; each requires the evaluation of one column of K
_ROWS_PER_BLOCK = 4096  # number of rows that are evaluated at a time, to limit memory


@node
class RecentredKernel(Kernel):
    """The recentred kernel k(x, z) - r(x) - r(z) + g, for a fixed set of n points.

    `r` contains one value per point, in the order of the points.
    """

    kernel: Kernel
    r: Any
    g: float

    def __str__(self) -> str:
        return str(self.kernel)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        inner = self.kernel.prepare(X, like=None if like is None else like.children[0])
        return Prepared.from_children(inner, arrays=(self.r,))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        _subtract(out, P.arrays[0] - self.g, Q.arrays[0])

    def _diag(self, X: Points) -> np.ndarray:
        return np.asarray(self.kernel.diag(X) - 2.0 * self.r + self.g)


@jit()
def _subtract(T: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Subtract a_i + b_j from T_ij, in place, in one pass over T; NumPy would need two passes."""
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            T[i, j] -= a[i] + b[j]


@ignore_overflow
def recentred_gram(kernel: Kernel, X: Points, max_memory: MemoryLimit = None) -> TiledGram:
    """Return the recentred kernel matrix K' as a tiled operator."""
    kernel, X = centre_linear_terms(kernel, X)
    K = gram(kernel, X, storage="tiled", max_memory=max_memory)
    n = K.shape[0]
    centres = np.unique(np.linspace(0, n - 1, min(n, _N_CENTRES)).astype(int))
    blocks = (K.block(rows, centres) for rows in slices(n, _ROWS_PER_BLOCK))
    r = np.concatenate([block.mean(axis=1, dtype=float) for block in blocks])
    check_finite(r, kernel)
    recentred_kernel = RecentredKernel(kernel, r, float(r[centres].mean()))
    return TiledGram(recentred_kernel, X, max_memory=max_memory)


def entry_magnitudes(K: GramOperator) -> np.ndarray:
    """Return the typical magnitude of the entries in each row of K, before K was recentred."""
    return np.abs(K.kernel.r if isinstance(K.kernel, RecentredKernel) else K.diagonal())


@ignore_overflow
def centre_linear_terms(kernel: Kernel, X: Points) -> tuple[Kernel, Points]:
    """Shift the origin of linear kernels to the mean of the points; return (kernel, points).

    This does not change differences of means, and avoids cancellation for points far from the
    origin.
    """
    if type(kernel) is Linear and isinstance(X, np.ndarray):
        return kernel, X - X.mean(axis=0)
    return shifted_to_data(kernel, X), X


def check_finite(values: np.ndarray, kernel: Kernel) -> None:
    """Raise an error if sums over the kernel matrix are not finite."""
    if not np.isfinite(values).all():
        raise not_finite_error(kernel)


# ---------------------------------------------------------------------- rounding errors


def relative_rounding(dtype: DTypeLike) -> float:
    """Return a bound on the rounding error of a statistic, relative to the sums that cancel."""
    return max(1e-12, 100.0 * float(np.finfo(dtype).eps))


def rounding_margin(dtype: DTypeLike, sums: float, entries: float) -> float:
    """Return a bound on the rounding error of a statistic.

    `sums` is the magnitude of the sums that cancel, and `entries` is the magnitude of the entries
    of K before centring.
    """
    return float(relative_rounding(dtype) * sums + 8.0 * np.finfo(dtype).eps * entries)


def clip_negative(
    value: float | np.ndarray, margin: float, quantity: str, *kernels: Kernel
) -> np.ndarray:
    """Set small negative values of a squared quantity to 0; `value` is a number or an array.

    `margin` is a bound on the rounding error.  A value below -100 * margin means that one of the
    kernels is not positive definite; a ValueError is then raised, which names the `quantity`.
    """
    if np.min(value) < -100.0 * margin:
        remedy = "a Mercer kernel" if len(kernels) == 1 else "Mercer kernels"
        raise ValueError(
            f"{quantity} is {np.min(value):.3g} < 0: {' or '.join(map(str, kernels))} is not "
            f"conditionally positive definite of order 1 on these points; choose {remedy}, or "
            f"Distance()"
        )
    return np.asarray(np.maximum(value, 0.0))
