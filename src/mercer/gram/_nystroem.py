"""Nyström features: phi(x) = L^-1 k_S(x) with L L^T = K_SS, for landmarks S.

    phi(x) . phi(z) = k_S(x)^T K_SS^-1 k_S(z)

is the kernel between the projections of k(x, .) and k(z, .) on the span of the k(s, .), so that
k(x, x) - |phi(x)|^2 is the squared distance of k(x, .) from that span: not negative, 0 on S.

With a `White` part in the kernel, landmarks are other observations than the points, also where
their values agree, as in every block k(X, Z): k_S(x) has no noise in it, K_SS has its own.  On the
disjoint union of points and landmarks that is a positive semidefinite kernel, so all of the above
holds, but for the last: the residual on S is not 0 but at least the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._errors import NotPositiveDefiniteError, not_finite
from .._points import doubled, length, sliceable, take
from .._runtime import entry_point
from .._runtime.linalg import lapack
from ..kernels import Kernel, Prepared, reads_all
from ._feature_map import FeatureMap
from ._rpcholesky import significance
from ._tiled import fill
from ._triangular import multiply_rows, solve_rows

__all__ = ["NystroemMap", "factor_landmarks", "without_rounding"]

_TILE = 2**20  # bytes evaluated at a time, which fit the second-level cache
_SMALL = 600  # landmarks; with more the BLAS solves as fast as it multiplies
_WELL = 1e4  # condition of L up to which products with its inverse are exact to 12 digits


@entry_point
@dataclass(frozen=True, eq=False)
class NystroemMap(FeatureMap):
    """phi(x) = L^-1 k_S(x) with L L^T = K_SS: m features whose products approximate k.

    Make one with `NystroemMap.on(kernel, points)`.  It is a value, computed in float64 throughout,
    also for float32 points.

    Attributes
    ----------
    kernel : Kernel
    points : points
        The landmarks S, without those that depend on others.
    factor : ndarray of shape (m, m)
        L, lower triangular, in Fortran order.
    kept : ndarray of shape (m,)
        Which of the points given were kept, in the order of `points`.
    dropped : int
        How many were not: their residual k(s, s) - |phi(s)|^2 is below 1e-12 of the largest
        k(s, s), and dividing by it would only magnify rounding.
    jitter : float
        0, unless K_SS had a slightly negative eigenvalue; then L L^T = K_SS + jitter I.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import NystroemMap
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 3, 7)[:, None]
    >>> phi = NystroemMap.on(RBF(), X[::2])
    >>> F = phi.features(X)
    >>> F.shape
    (7, 4)
    >>> bool(np.allclose(F[::2] @ F.T, RBF()(X[::2], X)))  # exact where a landmark is
    True
    """

    kernel: Kernel
    points: Any
    factor: np.ndarray
    kept: np.ndarray
    dropped: int = 0
    jitter: float = 0.0

    @classmethod
    def on(cls, kernel: Kernel, points: Any, n_threads: int | None = None) -> Self:
        """Return the map with these landmarks, less those that depend on others.

        Raises
        ------
        NotPositiveDefiniteError
            If K_SS is not positive semidefinite, by more than rounding explains.
        """
        if not isinstance(kernel, Kernel):
            raise TypeError(f"NystroemMap needs a Kernel, got {kernel!r}")
        if not length(points):
            raise ValueError("NystroemMap needs at least one landmark, got none")
        if reads_all(kernel):
            raise ValueError(
                "Precomputed() knows points by their values with all others, and has none for "
                "landmarks alone; keep the matrix: Precomputed(K), with indices as points"
            )
        points = doubled(sliceable(points))
        P = kernel.prepare(points)
        K = np.empty((len(P), len(P)))
        fill(kernel, P, P, K, n_threads)
        L, kept, jitter = factor_landmarks(K, P.dtype, kernel)
        L.setflags(write=False)
        # taken by indices: a copy, which nobody else can change
        return cls(kernel, take(points, kept), L, kept, len(P) - len(kept), jitter)

    @property
    def flaws(self) -> list[str]:
        """What a report should say of the landmarks."""
        dropped = f"{self.dropped} more depended on others and were dropped"
        found = {dropped: self.dropped, f"jitter {self.jitter:.1e}": self.jitter}
        return [text for text, number in found.items() if number]

    def __len__(self) -> int:
        """Return m, the number of features."""
        return len(self.factor)

    def __repr__(self) -> str:
        return f"<NystroemMap on {len(self)} landmarks, {self.kernel}>"

    # ------------------------------------------------------------------ features

    def expansion_coefficients(self, V: np.ndarray) -> np.ndarray:
        """Return L^-T V: the functions phi(.)^T V as sums of k(s, .), one column each."""
        V = np.asarray(V, dtype=float)
        if V.shape[:1] != (len(self),):
            raise ValueError(f"V has shape {V.shape}, but there are {len(self)} features")
        if not V.size:
            return V.copy()
        return np.asarray(lapack.dtrtrs(self.factor, V, lower=1, trans=1)[0])

    def _fill(self, X: Any, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        if not out.size:
            return
        Q = self._sparse_landmarks if sp.issparse(X) else self._landmarks
        P = self.kernel.prepare(doubled(take(X, rows)), like=Q)
        tile = max(1, _TILE // (8 * len(self)))
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            for i in range(0, len(out), tile):
                self.kernel.tile(P[i : i + tile], Q, out[i : i + tile])
        if whiten and self._inverse is not None:
            multiply_rows(self._inverse, out)
        elif whiten:
            solve_rows(self.factor, out)
        if not np.isfinite(out.sum()):
            raise ValueError(
                f"features of the points {rows.start} to {rows.stop - 1} are not finite; the usual "
                f"cause is a kernel that overflows on these points: {self.kernel}. Scale them"
            )

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        """L^-1, if multiplying by it is quicker than solving, and as exact up to 1e-12."""
        if not 0 < len(self) <= _SMALL:
            return None
        N, info = lapack.dtrtri(self.factor, lower=1)
        condition = np.linalg.norm(N) * np.linalg.norm(self.factor)
        return N if info == 0 and condition <= _WELL else None

    @cached_property
    def _landmarks(self) -> Prepared:
        return self.kernel.prepare(self.points)

    @cached_property
    def _sparse_landmarks(self) -> Prepared:
        """The landmarks in a frame that sparse points can share: it has no centre."""
        dense = isinstance(self.points, np.ndarray) and self.points.ndim == 2
        return self.kernel.prepare(sp.csr_array(self.points)) if dense else self._landmarks


@entry_point
def factor_landmarks(
    K: np.ndarray, dtype: Any, kernel: Kernel
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return L, the landmarks kept, and the jitter; `dtype` says how exact the entries of K are.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import factor_landmarks
    >>> from mercer.kernels import RBF
    >>> K = RBF()([[0.0], [1.0], [1.0]])
    >>> L, kept, jitter = factor_landmarks(K, float, RBF())
    >>> L.shape, kept.shape, jitter
    ((2, 2), (2,), 0.0)
    """
    diagonal = K.diagonal().copy()
    if not np.isfinite(K.sum()):
        raise not_finite(kernel, "K_SS", "the landmarks")
    largest = float(np.abs(diagonal).max())
    floor, negative = (largest * part for part in significance(dtype))
    L, info = lapack.dpotrf(K, lower=1, clean=1)
    if info == 0 and L.diagonal().min() ** 2 > floor:
        return L, np.arange(len(K)), 0.0
    C, order, rank, _ = lapack.dpstrf(K, tol=floor, lower=1)
    order = order.astype(np.intp) - 1
    kept, others, rest = order[:rank], order[rank:], C[rank:, :rank]
    # What is left of the others is 0 but for rounding.  Beside a diagonal that is 0 an entry c
    # means the eigenvalues +c and -c.
    left = K[np.ix_(others, others)] - rest @ rest.T
    lowest = min(left.diagonal().min(initial=0.0), floor - np.abs(left).max(initial=0.0))
    if lowest < -negative:
        raise NotPositiveDefiniteError(
            f"{rank} of {len(K)} landmarks leave an eigenvalue of {lowest:.3g} or less to the "
            f"others, with k(s, s) up to {largest:.3g}: {kernel} is not positive semidefinite on "
            f"them; choose a Mercer kernel"
        )
    if lowest < -10.0 * floor:
        return _with_jitter(K, kernel)
    return np.asfortranarray(np.tril(C[:rank, :rank])), kept, 0.0


def _with_jitter(K: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray, float]:
    """Factor K + jitter I with the smallest jitter, in steps of ten, that outweighs what is < 0."""
    trace = float(np.trace(K))
    for exponent in range(10):
        jitter = 10.0**exponent * float(np.finfo(float).eps) * trace
        L, info = lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1, clean=1)
        if info == 0 and L.diagonal().min() ** 2 > 0.5 * jitter:
            return L, np.arange(len(K)), jitter
    raise NotPositiveDefiniteError(
        f"K_SS is not positive definite even with {jitter:.3g} added to its diagonal, of trace "
        f"{trace:.3g}: {kernel} is not positive semidefinite on the landmarks; choose a Mercer "
        f"kernel"
    )


def without_rounding(
    left: np.ndarray, diagonal: np.ndarray, kernel: Kernel, dtype: Any = float
) -> np.ndarray:
    """Return k(x, x) - |phi(x)|^2, given as `left`, with what rounding made negative at 0.

    `diagonal` holds k(x, x), and `dtype` is its precision.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import without_rounding
    >>> from mercer.kernels import RBF
    >>> without_rounding(np.array([-1e-17, 0.2]), np.ones(2), RBF())
    array([0. , 0.2])
    """
    largest, lowest = np.abs(diagonal).max(initial=0.0), left.min(initial=0.0)
    if lowest < -significance(dtype)[1] * largest:
        raise NotPositiveDefiniteError(
            f"k(x, x) - |phi(x)|^2 goes down to {lowest:.3g}, with k(x, x) up to "
            f"{largest:.3g}: {kernel} is not positive semidefinite on points and "
            f"landmarks; choose a Mercer kernel"
        )
    return np.maximum(left, 0.0, out=left)
