"""Nyström approximation Q + D of the covariance K + noise, for landmarks S and one theta.

    Q = K_nS K_SS^-1 K_Sn = F F^T,     F = K_nS L^-T,     L L^T = K_SS,     D = diag(noise)

The indices n and S of K denote the n points and the landmarks; Y are the targets.  K_SS contains
no noise, because a landmark is a location, not an observation.  A QR factorisation of [I 0]
stacked on D^-1/2 [F Y], computed by strips of rows, gives the triangular factor

    [R U; 0 V]:     A = I + F^T D^-1 F = R^T R,     w = A^-1 F^T D^-1 Y = R^-1 U,
                    Y^T (Q + D)^-1 Y = V^T V,       log det (Q + D) = log det A + log det D

Forming F^T F instead would lose half of the digits if the noise is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ..._core import as_csr, check_threads, one_blas_thread, run_in_threads, take
from ..._core.linalg import solve_triangular
from ...gram import (
    NystroemMap,
    clip_negative_residual,
    factor_landmarks,
    fill_gram,
    residual_tolerances,
    solve_triangular_rows,
)
from ...kernels import Kernel, as_index_kernel, prepare_pair
from ._noise_split import latent_and_noise

__all__ = ["Projection", "TriangularFactor", "describe_landmarks", "rounding_certificate"]

# Number of strips that are processed in parallel before their triangular factors are merged.  It
# does not depend on the number of threads, so that the result does not depend on it either.
_STRIPS_PER_MERGE = 4
_MIN_STRIP_ROWS = 256  # smaller strips would spend most of the time in merging
_ARRAYS_PER_STRIP = 8  # processing a strip needs this many arrays of its size


class TriangularFactor(NamedTuple):
    """Triangular factor [R U; 0 V] of the points and targets; see the module docstring."""

    R: np.ndarray  # (m, m), upper triangular, with a positive diagonal
    U: np.ndarray  # (m, q), which gives the weights R^-1 U
    V: np.ndarray  # (q, q), with V^T V = Y^T (Q + D)^-1 Y for the targets Y
    residual: np.ndarray  # (n,), the diagonal of K - Q without noise, clipped at 0

    @property
    def weights(self) -> np.ndarray:
        """The weights w = A^-1 F^T D^-1 Y; the posterior mean at the points is F w."""
        return np.asarray(solve_triangular(self.R, self.U))

    @property
    def logdet(self) -> float:
        """The logarithm of det A, where A = I + F^T D^-1 F."""
        return 2.0 * float(np.sum(np.log(self.R.diagonal())))

    @property
    def inverse(self) -> np.ndarray:
        """The inverse of A = I + F^T D^-1 F."""
        half = solve_triangular(self.R, np.eye(len(self.R)))
        return np.asarray(half @ half.T)


@dataclass(frozen=True, eq=False)
class Projection:
    """The Nyström approximation Q + D of K + noise at one theta; create it with `Projection.on`.

    Q = F F^T and D = diag(noise) are defined in the module docstring.

    Attributes
    ----------
    kernel : Kernel
    X : points
    map : NystroemMap
        The feature map phi of the landmarks, without noise; the rows of F are phi(x_i).
    noise : ndarray of shape (n,)
        The diagonal of D: the noise of the kernel plus the `noise` argument.
    latent : ndarray of shape (n,)
        k(x, x) without noise.
    lost : float
        A bound on the variance of each dropped landmark that the other landmarks do not
        explain.  Landmarks are dropped if they are linearly dependent.
    n_threads : int or None
        The number of threads; None uses all processors.
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
        """Return the approximation for the points X, with `noise` added, on the landmarks S."""
        kernel, X = as_index_kernel(kernel, X)
        latent, kernel_noise = latent_and_noise(kernel, X)
        D = kernel_noise + noise
        if not D.min() > 0.0:
            raise ValueError(
                f"the noise of {np.sum(D <= 0.0)} of {len(D)} observations is 0, but the landmark "
                f"approximation divides by it; add White() to the kernel, or set a noise (alpha) > "
                f"0"
            )
        P, Q = prepare_pair(kernel, S, S)  # a kernel of two arguments contains no noise
        K = np.empty((len(P), len(Q)))
        fill_gram(kernel, P, Q, K, n_threads)
        K = 0.5 * (K + K.T)
        # Scale to a unit diagonal; otherwise landmarks with a small k(s, s) would be dropped.
        diagonal = K.diagonal()
        scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        L, independent, jitter = factor_landmarks(K / scale / scale[:, None], P.dtype, kernel)
        L = np.asfortranarray(L * scale[independent, None])
        phi = NystroemMap(
            kernel, take(S, independent), L, independent, len(K) - len(independent), jitter
        )
        lost = residual_tolerances(P.dtype)[0] * float(
            np.delete(diagonal, independent).max(initial=0.0)
        )
        return cls(kernel, as_csr(X), phi, D, latent, lost, n_threads)

    @staticmethod
    def workspace(n: int, m: int, q: int, n_threads: int | None = None) -> int:
        """Return the memory that `factorize` and `pullback` need, in bytes.

        They need strips, triangular factors, and a few vectors, for n points, m landmarks and q
        targets.
        """
        rows, strips = min(n, _strip_rows(m + q)), min(_STRIPS_PER_MERGE, check_threads(n_threads))
        # The strips contain features, weights, and temporary arrays of the kernel.
        strip_numbers = strips * _ARRAYS_PER_STRIP * rows * (m + q)
        return 8 * (strip_numbers + (8 + _STRIPS_PER_MERGE) * (m + q) ** 2 + 8 * n * (q + 2))

    def __len__(self) -> int:
        """Return n, the number of points."""
        return len(self.noise)

    # ------------------------------------------------------------------ passes over the points

    def factorize(self, Y: np.ndarray, extra_noise: float = 0.0) -> TriangularFactor:
        """Return the triangular factor for the targets Y, with `extra_noise` added to the noise.

        Raises
        ------
        NotPositiveDefiniteError
            If k(x, x) - |phi(x)|^2 is negative by more than rounding errors.
        """
        m, q = len(self.map), Y.shape[1]
        noise_std, residual = np.sqrt(self.noise + extra_noise), self.latent.copy()
        T = np.zeros((m + q, m + q))
        T[:m, :m] = np.eye(m)

        def reduce_strip(rows: slice, F: np.ndarray) -> np.ndarray:
            residual[rows] -= np.einsum("ij,ij->i", F, F)
            scaled = np.hstack([F, Y[rows]])
            scaled /= noise_std[rows, None]
            return np.asarray(np.linalg.qr(scaled, mode="r"))

        for parts in self._map_strips(reduce_strip, q):
            with one_blas_thread:
                T = np.asarray(np.linalg.qr(np.vstack([T, *parts]), mode="r"))
        T[:m] *= np.where(T.diagonal()[:m] < 0.0, -1.0, 1.0)[:, None]
        return TriangularFactor(
            T[:m, :m],
            T[:m, m:],
            T[m:, m:],
            clip_negative_residual(residual, self.latent, self.kernel),
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

        The derivatives are with respect to theta.  W = D^-1 F E + A B^T; F and D are defined in
        the module docstring, and the other matrices below.

        Parameters
        ----------
        root : ndarray of shape (m, m)
            The matrix G, lower triangular, in Fortran order.
        E : ndarray of shape (m, m)
            The matrix E.
        left : callable
            ``left(rows, F[rows])`` returns the rows A[rows] of the matrix A.
        right : ndarray of shape (m, c)
            The matrix B.
        inner : ndarray of shape (m, m)
            The matrix Z.
        """
        phi, total, leverage = self.map, np.zeros(self.kernel.theta.size), np.empty(len(self))

        def process_strip(rows: slice, F: np.ndarray) -> np.ndarray:
            W = F @ E
            W /= self.noise[rows, None]
            W += left(rows, F) @ right.T
            solve_triangular_rows(root, F)
            np.einsum("ij,ij->i", F, F, out=leverage[rows])
            return self.kernel.pullback(take(self.X, rows), phi.points, W)

        if total.size:
            for parts in self._map_strips(process_strip):
                for part in parts:
                    total += part
            total += self.kernel.pullback(phi.points, phi.points, inner)  # K_SS has no noise
        return total, leverage

    def whiten(self, B: np.ndarray) -> np.ndarray:
        """Return L^-T B, where L L^T = K_SS."""
        return self.map.expansion_coefficients(B)

    def whiten_twice(self, B: np.ndarray) -> np.ndarray:
        """Return L^-T B L^-1 for a symmetric B, where L L^T = K_SS."""
        return self.whiten(self.whiten(B).T)

    def _map_strips(
        self, task: Callable[[slice, np.ndarray], Any], q: int = 0
    ) -> Iterator[list[Any]]:
        """Call task(rows, F[rows]) for all strips; yield a list of results per group of strips."""
        n, rows = len(self), _strip_rows(len(self.map) + q)
        strips = [slice(start, min(start + rows, n)) for start in range(0, n, rows)]
        for first in range(0, len(strips), _STRIPS_PER_MERGE):
            group = strips[first : first + _STRIPS_PER_MERGE]
            parts: list[Any] = [None] * len(group)

            def process_strip(i: int, group: Any = group, parts: Any = parts) -> None:
                F = np.empty((group[i].stop - group[i].start, len(self.map)))
                self.map._fill(self.X, group[i], F)
                parts[i] = task(group[i], F)

            work = self.map._work(group[-1].stop - group[0].start)
            run_in_threads(process_strip, range(len(group)), self.n_threads, work)
            yield parts


def _strip_rows(columns: int) -> int:
    """Return the number of rows per strip: at least twice the columns, so that merging is cheap."""
    return max(_MIN_STRIP_ROWS, 2 * columns)


def describe_landmarks(Q: Projection) -> str:
    """Return a text with the number of landmarks, the number of dropped ones, and the jitter."""
    phi = Q.map
    text = f"{len(phi)} landmarks"
    text += f" ({phi.dropped} linearly dependent ones were dropped)" if phi.dropped else ""
    return text + (f", with {phi.jitter:.1e} k(s, s) added to the diagonal" if phi.jitter else "")


def rounding_certificate(Q: Projection) -> dict[str, Any]:
    """Return the jitter and the number of dropped landmarks for the report, without zeros."""
    values = {"jitter": Q.map.jitter, "landmarks dropped": Q.map.dropped}
    return {name: value for name, value in values.items() if value}
