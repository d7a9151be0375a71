"""Approximate eigenpairs of K from explicit features: Nyström landmarks or random Fourier features.

    K^ = F F^T,   eigenvectors of K^_c from those of the m x m co-moment  F^T H F

F is the (n, m) feature matrix, H the centring matrix and K^_c = H K^ H.  Two passes read the points
in blocks, the first for the co-moment and the second for the eigenvectors.  No array larger than
m x m or n x k is stored, where k is the number of eigenpairs.  With landmarks, K - K^ is positive
semidefinite and the first pass computes its trace.  This gives a lower and an upper bound on every
eigenvalue of K.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._core import (
    Points,
    ProgressCallback,
    ProgressStep,
    Stopwatch,
    as_csr,
    as_float64,
    entry_point,
    length,
    one_blas_thread,
    take,
)
from ..._core.linalg import eigh
from ...blocks import BlockRows, Blocks, reduce_rows
from ...gram import (
    DEFAULT_RANK,
    CentredGram,
    FourierMap,
    GramOperator,
    Landmarks,
    NystroemMap,
    TiledGram,
    uncentred,
)
from ...kernels import Kernel, as_index_kernel
from .._report import Report, Status
from ._certificate import unknown_certificate, weyl_certificate
from ._eigenpairs import EigenPairs, canonical_signs, check_k
from ._feature_moments import Moments

_PROJECTION_ROWS = 2**15  # points per block when eigenvectors are computed; limits memory
# The default number of landmarks or features is at least this times the number of eigenpairs.
_FEATURES_PER_COMPONENT = 10


class FeatureBasis(NamedTuple):
    """Feature map, feature moments and eigenvectors in feature space, found by a feature solver."""

    map: Any  # a `NystroemMap` or `FourierMap`
    moments: Moments
    axes: np.ndarray  # eigenvectors in feature space, shape (m, k)
    # Squared distance of each point from the mean in feature space, if the points are available.
    distances: np.ndarray | None = None


class _FeatureSolver(ABC):
    """Base class of eigensolvers that use explicit features."""

    @abstractmethod
    def map(
        self, kernel: Kernel, X: Points, k: int, n_threads: int | None = None
    ) -> NystroemMap | FourierMap:
        """Return the feature map for k components of the points X."""

    def eigenpairs(
        self,
        gram: GramOperator | CentredGram,
        k: int | None = None,
        *,
        log: ProgressCallback | None = None,
        **_: object,
    ) -> EigenPairs:
        """Return the k largest eigenpairs of the approximation K^ = F F^T from features F.

        With landmarks, each eigenvalue of K^ is a lower bound on that of K.

        Parameters
        ----------
        gram : GramOperator or CentredGram of shape (n, n)
            The symmetric matrix K.  Only its kernel, points and weights are used.
        k : int or None, default=None
            Number of pairs, at most the number of features; None means n.
        log : callable or None, default=None
            Called with progress messages.
        **_ : object
            Ignored; accepted so that all eigensolvers can be called with the same options.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) in descending order, eigenvectors of shape (n, k), residuals
            of shape (k,), a report and a certificate.
        """
        n = gram.shape[0]
        k = check_k(k, n)
        K = uncentred(gram)
        pairs = eigenpairs_of_points(
            *(self, K.kernel, K.X, lambda *_: k),
            expected=k,
            weights=gram.weights * n if isinstance(gram, CentredGram) else None,
            centred=isinstance(gram, CentredGram),
            n_threads=K.n_threads,
            log=log,
        )
        signs = canonical_signs(pairs.vectors)
        basis = pairs.basis._replace(axes=pairs.basis.axes * signs)
        return dataclasses.replace(pairs, vectors=pairs.vectors * signs, basis=basis)


@entry_point
@dataclass(frozen=True, repr=False)
class LowRankEigen(_FeatureSolver):
    """Approximate eigenpairs from landmarks, by the Nyström method.

    They are the eigenpairs of K^ = K_nS K_SS^-1 K_Sn for m landmarks S.  The points are read twice,
    and only arrays of shape (m, m) and (n, k) are stored, so that n may be in the millions.  Prefer
    `BlockKrylov` if the eigenpairs must be exact.

    K - K^ is positive semidefinite, and its trace is computed.  The certificate therefore contains
    an interval for each eigenvalue of K.

    Parameters
    ----------
    rank : int or None, default=None
        Number of landmarks; None means 1000, or 10 k for k eigenpairs if that is more.  Increase it
        until the intervals of the certificate are short enough.
    landmarks : str or points, default="auto"
        How to choose the landmarks, or the landmarks themselves; see `mercer.gram.Landmarks`.
    random_state : int or None, default=None
        Seed for the choice of the landmarks.

    See Also
    --------
    BlockKrylov : Exact eigenpairs.
    FourierEigen : Random features instead of landmarks.

    References
    ----------
    Williams and Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import CentredGram, gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import LowRankEigen
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> K = CentredGram(gram(RBF(2.0), X, storage="tiled"))
    >>> pairs = LowRankEigen(rank=60, random_state=0).eigenpairs(K, 2)
    >>> bool(pairs.certificate.upper[1] - pairs.certificate.lower[1] < 1e-3)
    True
    """

    rank: int | None = None
    landmarks: Any = "auto"
    random_state: Any = None

    def __post_init__(self) -> None:
        Landmarks(self.rank, self.landmarks)  # raises if the parameters are invalid

    def __repr__(self) -> str:
        landmarks = self.landmarks  # an array of points would be too long to print
        shown = repr(landmarks) if isinstance(landmarks, str) else f"<{length(landmarks)} points>"
        return (
            f"LowRankEigen(rank={self.rank}, landmarks={shown}, random_state={self.random_state!r})"
        )

    def choice(self, k: int) -> Landmarks:
        """Return the landmark settings for k components.

        Parameters
        ----------
        k : int
            Number of components.

        Returns
        -------
        Landmarks
            The settings, with at least 10 k landmarks by default.
        """
        rank = self.rank
        if rank is None and _FEATURES_PER_COMPONENT * k > DEFAULT_RANK:
            rank = _FEATURES_PER_COMPONENT * k
        return Landmarks(rank, self.landmarks, self.random_state)

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.

        Returns
        -------
        int
            Number of bytes.
        """
        return _workspace(n, k, self.features(n, k)) + self.choice(k).workspace(n)

    def features(self, n: int, k: int) -> int:
        """Return the number of landmarks.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of components.

        Returns
        -------
        int
            Number of landmarks, at most n.
        """
        return self.choice(k).count(n)

    def map(self, kernel: Kernel, X: Points, k: int, n_threads: int | None = None) -> NystroemMap:
        """Choose landmarks from the points X, factor their kernel matrix and return the map.

        Parameters
        ----------
        kernel : Kernel
            A positive semidefinite kernel whose parameters are all numbers.
        X : points
            The points among which landmarks are chosen.
        k : int
            Number of components, which determines the default number of landmarks.
        n_threads : int or None, default=None
            Number of threads; None means all processors.

        Returns
        -------
        NystroemMap
            The feature map of the landmarks.
        """
        self.choice(1).require(length(X))
        return self.choice(k).map(kernel, X, n_threads)


@entry_point
@dataclass(frozen=True)
class FourierEigen(_FeatureSolver):
    """Approximate eigenpairs from random Fourier features.

    They are the eigenpairs of K^ = Phi Phi^T for random features Phi of shape (n, m).  K^ is an
    unbiased estimate of K, and its error decreases with the number of features.  The result has no
    error bounds.  The method is useful for streams of points, because no landmarks have to be
    chosen or stored.  In other cases, prefer `LowRankEigen`.

    Parameters
    ----------
    rank : int or None, default=None
        Number of features, even; None means 1000, or 10 k for k eigenpairs if that is more.
    method : {"auto", "orthogonal", "qmc", "iid"}, default="auto"
        How frequencies are drawn; see `mercer.kernels.random_features`.
    random_state : int or None, default=None
        Seed for the frequencies.

    See Also
    --------
    LowRankEigen : Landmarks instead of random features, with error bounds.
    mercer.kernels.random_features : The supported kernels.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Lopez-Paz, Sra, Smola, Ghahramani and Schölkopf, "Randomized nonlinear component analysis", ICML
    2014.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import FourierEigen
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> phi = FourierEigen(rank=64, random_state=0).map(RBF(), X, 2)
    >>> phi.features(X).shape
    (50, 64)
    """

    rank: int | None = None
    method: str = "auto"
    random_state: Any = None

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K.

        Parameters
        ----------
        n : int
            Number of points.
        k : int
            Number of eigenpairs.

        Returns
        -------
        int
            Number of bytes.
        """
        return _workspace(n, k, self.features(n, k))

    def features(self, n: int, k: int) -> int:
        """Return the number of features.

        Parameters
        ----------
        n : int
            Number of points, which is ignored.
        k : int
            Number of components.

        Returns
        -------
        int
            `rank`, or at least 10 k by default.
        """
        return max(DEFAULT_RANK, _FEATURES_PER_COMPONENT * k) if self.rank is None else self.rank

    def map(self, kernel: Kernel, X: Points, k: int, n_threads: int | None = None) -> FourierMap:
        """Draw random frequencies for points with as many columns as X, and return the map.

        Parameters
        ----------
        kernel : Kernel
            A kernel that `mercer.kernels.random_features` supports.
        X : array of shape (n, d)
            The points; only their number of columns is used.
        k : int
            Number of components, which determines the default number of features.
        n_threads : int or None, default=None
            Ignored; drawing needs no threads.

        Returns
        -------
        FourierMap
            The random feature map.
        """
        return FourierMap.on(
            kernel,
            X.shape[1],
            self.features(length(X), k),
            method=self.method,
            random_state=self.random_state,
        )


def _workspace(n: int, k: int, m: int) -> int:
    """Return the memory in bytes for n points, k eigenpairs and m features.

    It counts eight m x m matrices, the eigenvectors, two blocks of features, and tiles of K.
    """
    return 8 * (8 * m * m + n * (k + 2)) + 2 * min(8 * n * m, 2**25) + 2**22


@entry_point
@one_blas_thread
def eigenpairs_of_points(
    solver: _FeatureSolver,
    kernel: Kernel,
    X: Points,
    count: Callable[[np.ndarray, float], int],
    *,
    expected: int,
    weights: np.ndarray | None = None,
    centred: bool = True,
    n_threads: int | None = None,
    log: ProgressCallback | None = None,
) -> EigenPairs:
    """Return eigenpairs of the approximation K^ = F F^T from features F, reading points in blocks.

    The signs of eigenvectors are fixed in feature space, so that points read as a stream give the
    same signs.  BLAS runs with one thread, so that results are bit-for-bit identical for any number
    of threads.

    Parameters
    ----------
    solver : LowRankEigen or FourierEigen
    kernel : Kernel
    X : points
    count : callable
        count(values, total) returns the number of pairs to compute.  `values` are all eigenvalues
        of K^, and `total` is the trace of K.
    expected : int
        Expected number of pairs, which determines the default number of landmarks.
    weights : ndarray of shape (n,), optional
        Weights of the points.
    centred : bool, default=True
        Whether to centre K^ in feature space.
    n_threads : int, optional
    log : callable, optional
        Called with progress messages.

    Returns
    -------
    EigenPairs

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import LowRankEigen, eigenpairs_of_points
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> solver, keep = LowRankEigen(rank=8), lambda values, total: 2
    >>> pairs = eigenpairs_of_points(solver, RBF(), X, keep, expected=2)
    >>> pairs.vectors.shape, pairs.report.status.name
    ((50, 2), 'APPROXIMATE')
    """
    watch = Stopwatch()
    kernel, X = as_index_kernel(kernel, X)
    n = length(X)
    phi = solver.map(kernel, X, expected, n_threads)
    if log is not None:
        log(f"features by {phi!r}")
    moments = feature_moments(phi, X, weights, n_threads=n_threads, log=log)
    pairs = eigenpairs_of_moments(solver, phi, moments, count, centred=centred, watch=watch)
    axes, roots = pairs.basis.axes, np.sqrt(pairs.values)
    vectors, distances = np.empty((n, len(roots))), np.empty(n)
    mean = moments.mean if centred else np.zeros(len(phi))
    for rows, scores, squares in _projections(phi, X, np.c_[axes, mean], n_threads):
        np.subtract(scores[:, :-1], mean @ axes, out=vectors[rows])
        distances[rows] = squares - 2.0 * scores[:, -1] + mean @ mean
    if weights is not None:
        vectors *= np.sqrt(weights)[:, None]
    vectors *= np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    report = dataclasses.replace(pairs.report, seconds=watch.seconds)
    basis = pairs.basis._replace(distances=distances)
    return dataclasses.replace(pairs, vectors=vectors, report=report, basis=basis)


@entry_point
def eigenpairs_of_moments(
    solver: _FeatureSolver,
    phi: NystroemMap | FourierMap,
    moments: Moments,
    count: Callable[[np.ndarray, float], int],
    *,
    centred: bool = True,
    watch: Stopwatch | None = None,
) -> EigenPairs:
    """Return the eigenpairs in feature space only, from the moments of the features.

    The points are not needed, so the result has no eigenvectors of the kernel matrix: `vectors` has
    shape (0, k).  `basis.axes` holds the eigenvectors in feature space.  The parameters are those
    of `eigenpairs_of_points`; `phi` is the feature map.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import LowRankEigen, eigenpairs_of_moments, feature_moments
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> solver = LowRankEigen(rank=8)
    >>> phi = solver.map(RBF(), X, 2)
    >>> pairs = eigenpairs_of_moments(solver, phi, feature_moments(phi, X), lambda values, total: 2)
    >>> len(pairs.values), pairs.vectors.shape
    (2, (0, 2))
    """
    watch = watch or Stopwatch()
    C = moments.comoment
    if not centred:
        C = C + moments.weight * np.outer(moments.mean, moments.mean)
    values, axes = eigh(C, check_finite=False)
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    k = count(values, float(values.sum()) + moments.residual)
    if k > len(phi):
        raise ValueError(
            f"{k} components are requested, but {phi!r} has rank {len(phi)}; "
            f"use more landmarks or fewer components"
        )
    if k == 0:
        raise ValueError(
            "k(x, x) = 0 for every point, so no landmark can be chosen; use eigen_solver='dense'"
        )
    values, axes, all_values = values[:k], axes[:, :k], values
    axes = axes * canonical_signs(axes)
    if isinstance(phi, NystroemMap):
        certificate = weyl_certificate(
            all_values, moments.residual, k, slack=_nystroem_rounding(phi, moments)
        )
    else:
        certificate = unknown_certificate(values)
    report = Report(repr(solver), Status.APPROXIMATE, message=_message(phi, moments))
    pairs = (values, np.empty((0, k)), certificate.residuals, report, certificate)
    return EigenPairs(*pairs, FeatureBasis(phi, moments, axes)).completed(watch)


def _projections(
    phi: NystroemMap | FourierMap, X: Points, axes: np.ndarray, n_threads: int | None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield, for each block of points, its rows, the projections phi(x)^T axes and squared norms.

    The squared norms are k(x, x) for landmarks, and |phi(x)|^2 otherwise.
    """
    if not isinstance(phi, NystroemMap):
        for rows, F in phi.blocks(X, n_threads=n_threads):
            yield rows, F @ axes, np.einsum("ij,ij->i", F, F)
        return
    # phi(x)^T axes is a kernel expansion on the landmarks, so phi itself need not be computed.
    coefficients, points = phi.expansion_coefficients(axes), as_csr(X)
    for start in range(0, length(X), _PROJECTION_ROWS):
        rows = slice(start, min(start + _PROJECTION_ROWS, length(X)))
        block = as_float64(take(points, rows))
        tiles = TiledGram(phi.kernel, block, phi.points, n_threads=n_threads)
        yield rows, tiles @ coefficients, phi.kernel.diag(block)


@entry_point
def feature_moments(
    phi: NystroemMap | FourierMap,
    X: Points,
    weights: np.ndarray | None = None,
    *,
    n_threads: int | None = None,
    log: ProgressCallback | None = None,
) -> Moments:
    """Return the moments of the features of X, reading one block of rows at a time.

    Parameters
    ----------
    phi : NystroemMap or FourierMap
    X : points or Blocks
    weights : ndarray of shape (n,), optional
        Weights of the points.
    n_threads : int, optional
    log : callable, optional
        Called with progress messages.

    Returns
    -------
    Moments

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import feature_moments
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> phi = Landmarks(8).map(RBF(), X)
    >>> moments = feature_moments(phi, X)
    >>> moments.weight, bool(np.allclose(moments.mean, phi.features(X).mean(axis=0)))
    (50.0, True)
    """
    if isinstance(X, Blocks):
        return reduce_rows(X, _moments_of_rows, Moments.merge, phi, weights=weights, log=log)
    moments, n = Moments.none(len(phi)), length(X)
    points = as_csr(X)
    exact = isinstance(phi, NystroemMap)  # only then is k(x, x) >= |phi(x)|^2 for all x
    for rows, F in phi.blocks(X, n_threads=n_threads):
        diagonal = phi.kernel.diag(as_float64(take(points, rows))) if exact else None
        block_weights = None if weights is None else weights[rows]
        part = Moments.of(F, block_weights, diagonal, n_threads=n_threads)
        moments = moments.merge(part)
        if log is not None and rows.stop < n:
            log(ProgressStep(f"{rows.stop} of {n} points", rows.stop, n))
    return moments


def _moments_of_rows(rows: BlockRows, phi: NystroemMap | FourierMap) -> Moments:
    return feature_moments(phi, rows.X, rows.weights)


def _nystroem_rounding(phi: NystroemMap, moments: Moments) -> float:
    """Return a bound on the rounding error of the Nyström approximation K^ = K_nS K_SS^-1 K_Sn.

    The bound is the sum of a term proportional to the trace before centring and a term for the
    Cholesky factorisation K_SS = L L^T of the landmarks S.  If D is the rounding error of L L^T, K^
    changes by A^T D A with A = K_SS^-1 K_Sn = L^-T F^T.  This is large if landmarks are close to
    each other and far from the points.
    """
    square = moments.comoment + moments.weight * np.outer(moments.mean, moments.mean)  # F^T F
    total = float(np.trace(square)) + moments.residual
    weights = phi.expansion_coefficients(phi.expansion_coefficients(square).T)
    largest = float(np.square(phi.factor).sum(axis=1).max(initial=0.0))
    return 1e-14 * total + 8.0 * float(np.finfo(float).eps * largest * np.trace(weights))


def _message(phi: NystroemMap | FourierMap, moments: Moments) -> str:
    if not isinstance(phi, NystroemMap):
        return "random features: an unbiased approximation without error bounds"
    text = f"{len(phi)} landmarks leave {moments.residual:.3e} of the trace unexplained"
    return "; ".join([text, *phi.report_remarks])
