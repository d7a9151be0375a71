"""Nyström features for landmarks S: phi(x) = L^-1 k_S(x) with L L^T = K_SS.

Here k_S(x) is the vector of all k(s, x) for s in S, and K_SS = k(S, S).  The inner product

    phi(x) . phi(z) = k_S(x)^T K_SS^-1 k_S(z)

is that of the projections of k(x, .) and k(z, .) on the span of the k(s, .).  Therefore
k(x, x) - |phi(x)|^2 is the squared distance of k(x, .) from that span: it is never negative, and it
is 0 for x in S.

If the kernel has a `White` part, landmarks are treated as observations that are separate from the
points, even if their values agree: k_S(x) contains no noise, but the diagonal of K_SS does.  This
is a positive semidefinite kernel on the disjoint union of points and landmarks.  All of the above
holds, except that the residual on S is at least the noise instead of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._core import (
    NotPositiveDefiniteError,
    Points,
    as_csr,
    as_float64,
    entry_point,
    length,
    not_finite_error,
    take,
)
from .._core.linalg import lapack
from ..kernels import Kernel, Prepared, expects_precomputed_rows
from ._feature_map import FeatureMap
from ._pivoted_cholesky import residual_tolerances
from ._tiled import fill_gram
from ._triangular_solve import multiply_triangular_rows, solve_triangular_rows

_TILE_BYTES = 2**20  # bytes of kernel values evaluated at a time; fits the second-level cache
_MAX_INVERSE_LANDMARKS = 600  # for more landmarks, solving with L is as fast as multiplying by L^-1
_MAX_INVERSE_CONDITION = 1e4  # up to this condition number of L, L^-1 is accurate to 12 digits


@entry_point
@dataclass(frozen=True, eq=False)
class NystroemMap(FeatureMap):
    """Nyström feature map for landmarks; inner products of its features approximate a kernel.

    phi(x) = L^-1 k(S, x) for the landmarks S, with the Cholesky factor L of k(S, S).  The inner
    products phi(x) . phi(z) are those of the projections of k(x, .) and k(z, .) on the span of all
    k(s, .).  They are exact if x or z is a landmark, and the error k(x, x) - |phi(x)|^2 is known
    for every point.

    Use `NystroemMap.on(kernel, points)` to make a map from landmarks, or `Landmarks.map` to choose
    the landmarks, too.  Maps are immutable, and compute in float64 even if points are float32.

    Attributes
    ----------
    kernel : Kernel
        The kernel k.
    points : points
        The landmarks S, without those that are linearly dependent on others.
    factor : ndarray of shape (m, m)
        The Cholesky factor L, lower triangular, in Fortran order.
    kept : ndarray of shape (m,)
        Indices of `points` in the sequence that was passed to `on`.
    dropped : int, default 0
        Number of landmarks that were dropped, because their residual k(s, s) - |phi(s)|^2 is below
        1e-12 times the largest k(s, s).  Dividing by such a residual would magnify rounding errors.
    jitter : float, default 0.0
        Usually 0.  If k(S, S) has a slightly negative eigenvalue, L L^T = k(S, S) + jitter I.

    See Also
    --------
    Landmarks : Choose the landmarks.
    LowRankGram : The approximate kernel matrix as an operator.
    FourierMap : Features that do not depend on the data.

    References
    ----------
    Williams and Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.

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
    >>> bool(np.allclose(F[::2] @ F.T, RBF()(X[::2], X)))  # exact if one point is a landmark
    True
    """

    kernel: Kernel
    points: Any
    factor: np.ndarray
    kept: np.ndarray
    dropped: int = 0
    jitter: float = 0.0

    @classmethod
    def on(cls, kernel: Kernel, points: Points, n_threads: int | None = None) -> Self:
        """Return the map for the given landmarks, without those that are linearly dependent.

        Parameters
        ----------
        kernel : Kernel
            A positive semidefinite kernel whose parameters are all numbers.
        points : points
            The landmarks.
        n_threads : int or None, default None
            Number of threads; None means all processors.  The result does not depend on it.

        Returns
        -------
        NystroemMap
            The map to R^m; m is at most the number of landmarks.

        Raises
        ------
        NotPositiveDefiniteError
            If k(S, S) has an eigenvalue that is more negative than rounding can explain.
        """
        if not isinstance(kernel, Kernel):
            raise TypeError(f"NystroemMap needs a Kernel, got {kernel!r}")
        if not length(points):
            raise ValueError("NystroemMap needs at least one landmark, got none")
        if expects_precomputed_rows(kernel):
            raise ValueError(
                "Precomputed() represents a point by its kernel values with all others, and cannot "
                "evaluate the kernel between landmarks; use Precomputed(K), with indices as points"
            )
        points = as_float64(as_csr(points))
        P = kernel.prepare(points)
        K = np.empty((len(P), len(P)))
        fill_gram(kernel, P, P, K, n_threads)
        L, kept, jitter = factor_landmarks(K, P.dtype, kernel)
        L.setflags(write=False)
        # Indexing copies the landmarks, so that later changes of the input have no effect.
        return cls(kernel, take(points, kept), L, kept, len(P) - len(kept), jitter)

    @property
    def report_remarks(self) -> list[str]:
        """Remarks on the landmarks for a solver report."""
        dropped = f"{self.dropped} more depended on others and were dropped"
        remarks = {dropped: self.dropped, f"jitter {self.jitter:.1e}": self.jitter}
        return [text for text, number in remarks.items() if number]

    def __len__(self) -> int:
        """Return m, the number of features."""
        return len(self.factor)

    def __repr__(self) -> str:
        return f"<NystroemMap on {len(self)} landmarks, {self.kernel}>"

    # ------------------------------------------------------------------ features

    def expansion_coefficients(self, V: np.ndarray) -> np.ndarray:
        """Convert linear functions of the features to expansions in the landmarks.

        The function phi(.)^T v is sum_s c_s k(s, .) with c = L^-T v.

        Parameters
        ----------
        V : ndarray of shape (m, c)
            Weights of the features, one function per column.

        Returns
        -------
        ndarray of shape (m, c)
            L^-T V, the coefficients of k(s, .).
        """
        V = np.asarray(V, dtype=float)
        if V.shape[:1] != (len(self),):
            raise ValueError(f"V has shape {V.shape}, but there are {len(self)} features")
        if not V.size:
            return V.copy()
        return np.asarray(lapack.dtrtrs(self.factor, V, lower=1, trans=1)[0])

    def _fill(self, X: Points, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        if not out.size:
            return
        Q = self._sparse_landmarks if sp.issparse(X) else self._landmarks
        P = self.kernel.prepare(as_float64(take(X, rows)), like=Q)
        tile = max(1, _TILE_BYTES // (8 * len(self)))
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
            for i in range(0, len(out), tile):
                self.kernel.tile(P[i : i + tile], Q, out[i : i + tile])
        if whiten and self._inverse is not None:
            multiply_triangular_rows(self._inverse, out)
        elif whiten:
            solve_triangular_rows(self.factor, out)
        if not np.isfinite(out.sum()):
            raise ValueError(
                f"the features of the points {rows.start} to {rows.stop - 1} are not finite; the "
                f"usual cause is that {self.kernel} overflows for huge values; scale the points"
            )

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        """L^-1 if multiplying by it is faster than solving, and accurate to 1e-12; else None."""
        if not 0 < len(self) <= _MAX_INVERSE_LANDMARKS:
            return None
        inverse, info = lapack.dtrtri(self.factor, lower=1)
        condition = np.linalg.norm(inverse) * np.linalg.norm(self.factor)
        return inverse if info == 0 and condition <= _MAX_INVERSE_CONDITION else None

    @cached_property
    def _landmarks(self) -> Prepared:
        return self.kernel.prepare(self.points)

    @cached_property
    def _sparse_landmarks(self) -> Prepared:
        """The landmarks prepared for use with sparse points, which are not centred."""
        dense = isinstance(self.points, np.ndarray) and self.points.ndim == 2
        return self.kernel.prepare(sp.csr_array(self.points)) if dense else self._landmarks


@entry_point
def factor_landmarks(
    K: np.ndarray, dtype: Any, kernel: Kernel
) -> tuple[np.ndarray, np.ndarray, float]:
    """Factor the kernel matrix of landmarks, and drop landmarks that are linearly dependent.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        The kernel matrix k(S, S) of the landmarks S.
    dtype : dtype
        The precision in which the entries of K were computed.
    kernel : Kernel
        Only used in error messages.

    Returns
    -------
    L : ndarray of shape (rank, rank)
        Lower Cholesky factor of K at the retained landmarks.
    kept : ndarray of shape (rank,)
        Indices of the retained landmarks.
    jitter : float
        Number that was added to the diagonal of K; usually 0.

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
        raise not_finite_error(kernel, "K_SS", "the landmarks")
    largest = float(np.abs(diagonal).max())
    floor, negative = (largest * tolerance for tolerance in residual_tolerances(dtype))
    L, info = lapack.dpotrf(K, lower=1, clean=1)
    if info == 0 and L.diagonal().min() ** 2 > floor:
        return L, np.arange(len(K)), 0.0
    C, order, rank, _ = lapack.dpstrf(K, tol=floor, lower=1)
    order = order.astype(np.intp) - 1
    kept, others, lower = order[:rank], order[rank:], C[rank:, :rank]
    # The Schur complement at the dropped landmarks must be 0 up to rounding.  If its diagonal is 0,
    # a nonzero off-diagonal entry c implies a negative eigenvalue of -|c| or less.
    schur = K[np.ix_(others, others)] - lower @ lower.T
    lowest = min(schur.diagonal().min(initial=0.0), floor - np.abs(schur).max(initial=0.0))
    if lowest < -negative:
        raise NotPositiveDefiniteError(
            f"after factoring {rank} of {len(K)} landmarks, the Schur complement at the others has "
            f"an eigenvalue of {lowest:.3g} or less, with k(s, s) up to {largest:.3g}: {kernel} is "
            f"not positive semidefinite on the landmarks; choose a Mercer kernel"
        )
    if lowest < -10.0 * floor:
        return _with_jitter(K, kernel)
    return np.asfortranarray(np.tril(C[:rank, :rank])), kept, 0.0


def _with_jitter(K: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray, float]:
    """Factor K + jitter I; the jitter is increased by factors of ten until this succeeds."""
    trace = float(np.trace(K))
    for exponent in range(10):
        jitter = 10.0**exponent * float(np.finfo(float).eps) * trace
        L, info = lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1, clean=1)
        if info == 0 and L.diagonal().min() ** 2 > 0.5 * jitter:
            return L, np.arange(len(K)), jitter
    raise NotPositiveDefiniteError(
        f"the kernel matrix of the landmarks is not positive definite even with {jitter:.3g} added "
        f"to its diagonal (its trace is {trace:.3g}): {kernel} is not positive semidefinite on the "
        f"landmarks; choose a Mercer kernel"
    )


def clip_negative_residual(
    residual: np.ndarray, diagonal: np.ndarray, kernel: Kernel, dtype: Any = float
) -> np.ndarray:
    """Set slightly negative residuals k(x, x) - |phi(x)|^2 to 0, in place.

    Parameters
    ----------
    residual : ndarray of shape (n,)
        The residuals.
    diagonal : ndarray of shape (n,)
        k(x, x).
    kernel : Kernel
        Only used in the error message.
    dtype : dtype, default float
        The precision of the kernel values.

    Returns
    -------
    ndarray of shape (n,)
        The array `residual`.

    Raises
    ------
    NotPositiveDefiniteError
        If a residual is more negative than rounding can explain.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import clip_negative_residual
    >>> from mercer.kernels import RBF
    >>> clip_negative_residual(np.array([-1e-17, 0.2]), np.ones(2), RBF())
    array([0. , 0.2])
    """
    largest, lowest = np.abs(diagonal).max(initial=0.0), residual.min(initial=0.0)
    if lowest < -residual_tolerances(dtype)[1] * largest:
        raise NotPositiveDefiniteError(
            f"k(x, x) - |phi(x)|^2 must not be negative, but has values down to {lowest:.3g}, with "
            f"k(x, x) up to {largest:.3g}: {kernel} is not positive semidefinite on the points and "
            f"landmarks; choose a Mercer kernel"
        )
    clipped: np.ndarray = np.maximum(residual, 0.0, out=residual)
    return clipped
