"""Q + D = F F^T + diag(noise): a Gaussian process seen through landmarks S, at one theta.

    Q = K_nS K_SS^-1 K_Sn = F F^T,     F = K_nS L^-T,     L L^T = K_SS

K_SS has no noise in it: a landmark is a place, not an observation.  With D^-1/2 [F Y] stacked on
[I 0] and reduced to a triangle, strip by strip,

    [R U; 0 V]:     A = I + F^T D^-1 F = R^T R,     w = A^-1 F^T D^-1 Y = R^-1 U,
                    Y^T (Q + D)^-1 Y = V^T V,       log det (Q + D) = log det A + log det D

without the squares of an F^T F, which would cost half of the digits where the noise is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .._points import sliceable, take
from .._runtime import check_threads, one_blas_thread, run
from .._runtime.linalg import solve_triangular
from ..gram import NystroemMap, factor_landmarks, fill, significance, solve_rows, without_rounding
from ..kernels import Kernel, on_indices, pair
from ._noise import latent_and_noise

__all__ = ["Projection", "Triangle", "describe", "rounding_certificate"]

_STRIPS = 4  # strips worked on before their triangles are merged, for any number of threads
_FEWEST = 256  # rows of a strip, at least
_ARRAYS = 8  # arrays of the size of a strip that are held while it is worked on


class Triangle(NamedTuple):
    """What the passes over the points leave of them; see the module."""

    R: np.ndarray  # (m, m), upper triangular, with a positive diagonal
    U: np.ndarray  # (m, q)
    V: np.ndarray  # (q, q)
    residual: np.ndarray  # (n,), the diagonal of K - Q without noise, not negative

    @property
    def weights(self) -> np.ndarray:
        """The posterior mean in the coordinates of F: w = A^-1 F^T D^-1 Y."""
        return np.asarray(solve_triangular(self.R, self.U))

    @property
    def logdet(self) -> float:
        """The logarithm of det A."""
        return 2.0 * float(np.sum(np.log(self.R.diagonal())))

    @property
    def inverse(self) -> np.ndarray:
        """The inverse of A."""
        half = solve_triangular(self.R, np.eye(len(self.R)))
        return np.asarray(half @ half.T)


@dataclass(frozen=True, eq=False)
class Projection:
    """Q + D at one theta; make it with `Projection.on`.

    Attributes
    ----------
    kernel : Kernel
    X : points
    map : NystroemMap
        phi, whose rows on X are F; its K_SS is without noise.
    noise : ndarray of shape (n,)
        The diagonal of D: the noise in the kernel, and what was given beside it.
    latent : ndarray of shape (n,)
        k(x, x) without noise.
    lost : float
        Variance that is left at most of a landmark that was dropped.
    """

    kernel: Kernel
    X: Any
    map: NystroemMap
    noise: np.ndarray
    latent: np.ndarray
    lost: float = 0.0
    n_threads: int | None = None

    @classmethod
    def on(cls, kernel: Kernel, X: Any, noise: Any, S: Any, n_threads: int | None = None) -> Self:
        """Project the process with this kernel on the landmarks S."""
        kernel, X = on_indices(kernel, X)
        latent, own = latent_and_noise(kernel, X)
        D = own + noise
        if not D.min() > 0.0:
            raise ValueError(
                f"the noise of {np.sum(D <= 0.0)} of {len(D)} observations is 0, and projecting on "
                f"landmarks divides by it; add White() to the kernel, or give a noise (alpha) > 0"
            )
        P, Q = pair(kernel, S, S)  # two collections: so without noise
        K = np.empty((len(P), len(Q)))
        fill(kernel, P, Q, K, n_threads)
        K = 0.5 * (K + K.T)
        # with 1 on the diagonal: beside one large k(s, s), others are not 0 by rounding
        diagonal = K.diagonal()
        size = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        L, kept, jitter = factor_landmarks(K / size / size[:, None], P.dtype, kernel)
        L = np.asfortranarray(L * size[kept, None])
        phi = NystroemMap(kernel, take(S, kept), L, kept, len(K) - len(kept), jitter)
        lost = significance(P.dtype)[0] * float(np.delete(diagonal, kept).max(initial=0.0))
        return cls(kernel, sliceable(X), phi, D, latent, lost, n_threads)

    @staticmethod
    def workspace(n: int, m: int, q: int, n_threads: int | None = None) -> int:
        """Return the bytes of passes over the points: strips, triangles, and a few vectors."""
        rows, strips = min(n, _strip_rows(m + q)), min(_STRIPS, check_threads(n_threads))
        inside = strips * _ARRAYS * rows * (m + q)  # features, weights, what a kernel needs
        return 8 * (inside + (8 + _STRIPS) * (m + q) ** 2 + 8 * n * (q + 2))

    def __len__(self) -> int:
        """Return n, the number of points."""
        return len(self.noise)

    # ------------------------------------------------------------------ passes over the points

    def triangle(self, Y: np.ndarray, more: float = 0.0) -> Triangle:
        """Return the triangle for the targets Y, with `more` added to the noise.

        Raises
        ------
        NotPositiveDefiniteError
            If k(x, x) - |phi(x)|^2 is negative by more than rounding explains.
        """
        m, q = len(self.map), Y.shape[1]
        root, left = np.sqrt(self.noise + more), self.latent.copy()
        T = np.zeros((m + q, m + q))
        T[:m, :m] = np.eye(m)

        def reduced(rows: slice, F: np.ndarray) -> np.ndarray:
            left[rows] -= np.einsum("ij,ij->i", F, F)
            scaled = np.hstack([F, Y[rows]])
            scaled /= root[rows, None]
            return np.asarray(np.linalg.qr(scaled, mode="r"))

        for parts in self._each(reduced, q):
            with one_blas_thread:
                T = np.asarray(np.linalg.qr(np.vstack([T, *parts]), mode="r"))
        T[:m] *= np.where(T.diagonal()[:m] < 0.0, -1.0, 1.0)[:, None]
        return Triangle(
            T[:m, :m], T[:m, m:], T[m:, m:], without_rounding(left, self.latent, self.kernel)
        )

    def pullback(
        self,
        root: np.ndarray,
        E: np.ndarray,
        left: Callable[[slice, np.ndarray], np.ndarray],
        right: np.ndarray,
        inner: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_ij W_ij dk(x_i, s_j) + sum_ij Z_ij dk(s_i, s_j), and diag F (G G^T)^-1 F^T.

        The derivatives are those in theta, and W = D^-1 F E + A B^T.  `root` is G, lower triangular
        in Fortran order; `left(rows, F[rows])` returns A[rows]; `right` is B, and `inner` is Z.
        """
        phi, total, leverage = self.map, np.zeros(self.kernel.theta.size), np.empty(len(self))

        def strip(rows: slice, F: np.ndarray) -> np.ndarray:
            W = F @ E
            W /= self.noise[rows, None]
            W += left(rows, F) @ right.T
            solve_rows(root, F)
            np.einsum("ij,ij->i", F, F, out=leverage[rows])
            return self.kernel.pullback(take(self.X, rows), phi.points, W)

        if total.size:
            for parts in self._each(strip):
                for part in parts:
                    total += part
            total += self.kernel.pullback(phi.points, phi.points, inner)  # again without noise
        return total, leverage

    def whiten(self, B: np.ndarray) -> np.ndarray:
        """Return L^-T B."""
        return self.map.expansion_coefficients(B)

    def whiten_twice(self, B: np.ndarray) -> np.ndarray:
        """Return L^-T B L^-1 for a symmetric B."""
        return self.whiten(self.whiten(B).T)

    def _each(self, task: Callable[[slice, np.ndarray], Any], q: int = 0) -> Iterator[list[Any]]:
        """Yield lists of task(rows, F[rows]), in order, for a few strips at a time."""
        n, rows = len(self), _strip_rows(len(self.map) + q)
        strips = [slice(start, min(start + rows, n)) for start in range(0, n, rows)]
        for first in range(0, len(strips), _STRIPS):
            some = strips[first : first + _STRIPS]
            parts: list[Any] = [None] * len(some)

            def strip(i: int, some: Any = some, parts: Any = parts) -> None:
                F = np.empty((some[i].stop - some[i].start, len(self.map)))
                self.map._fill(self.X, some[i], F)
                parts[i] = task(some[i], F)

            work = self.map._work(some[-1].stop - some[0].start)
            run(strip, range(len(some)), self.n_threads, work)
            yield parts


def _strip_rows(columns: int) -> int:
    """Return the rows of a strip: enough for its triangle to be worth the merging."""
    return max(_FEWEST, 2 * columns)


def describe(Q: Projection) -> str:
    """Say what Q is made of."""
    phi = Q.map
    text = f"{len(phi)} landmarks"
    text += f" ({phi.dropped} more depended on others and were dropped)" if phi.dropped else ""
    return text + (f", with {phi.jitter:.1e} k(s, s) added to each k(s, s)" if phi.jitter else "")


def rounding_certificate(Q: Projection) -> dict[str, Any]:
    """Return what rounding has made necessary, by name; nothing if nothing was."""
    found = {"jitter": Q.map.jitter, "landmarks dropped": Q.map.dropped}
    return {name: value for name, value in found.items() if value}
