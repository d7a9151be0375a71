"""Kernel PCA is the PCA of features: of a Cholesky factor, of landmarks, of random waves.

    K^ = F F^T,   eigenvectors of K^_c from those of the m x m co-moment  F^T H F

The points are read in blocks, once for the co-moment and once for the eigenvectors, and nothing
larger than m x m or n x k is held.  With landmarks, K - K^ is positive semidefinite and its trace
is added up exactly along the way: that brackets every eigenvalue of K.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from ..._points import doubled, length, sliceable, take
from ..._runtime import Step, Stopwatch, entry_point, one_blas_thread
from ..._runtime.linalg import eigh
from ...blocks import Blocks, Rows
from ...gram import RANK, FourierMap, Landmarks, NystroemMap, TiledGram
from ...kernels import on_indices
from .._report import Status
from ._certificate import sandwich, unknown
from ._eigenpairs import EigenPairs, check_k, signs_of
from ._moments import Moments

__all__ = [
    "FeatureBasis",
    "FourierEigen",
    "LowRankEigen",
    "eigenpairs_of_moments",
    "eigenpairs_of_points",
    "moments_of",
]

_ROWS = 2**15  # points projected at a time
_PER_COMPONENT = 10  # landmarks or features for each component, if that is more than usual


class FeatureBasis(NamedTuple):
    """Where the eigenvectors of a feature solver come from."""

    map: Any  # NystroemMap or FourierMap
    moments: Moments
    axes: np.ndarray  # (m, k), orthonormal
    distances: np.ndarray | None = None  # |phi(x_i) - mean|^2 of the points, if they are at hand


class _FeatureSolver:
    """A solver on features: those of a `map` that it makes."""

    def eigenpairs(
        self,
        gram: Any,
        k: int | None = None,
        *,
        say: Callable[[str], None] | None = None,
        **_: Any,
    ) -> EigenPairs:
        """Return the k largest eigenpairs of K^; with landmarks they lie below those of K.

        Of the Gram only the kernel, the points and the weights are used.
        """
        n = gram.shape[0]
        k = check_k(k, n)
        held = getattr(gram, "gram", gram)
        pairs = eigenpairs_of_points(
            self,
            held.kernel,
            held.X,
            lambda *_: k,
            expected=k,
            weights=gram.weights * n if held is not gram else None,
            centred=held is not gram,
            n_threads=held.n_threads,
            say=say,
        )
        signs = signs_of(pairs.vectors)
        basis = pairs.basis._replace(axes=pairs.basis.axes * signs)
        return dataclasses.replace(pairs, vectors=pairs.vectors * signs, basis=basis)


@entry_point
@dataclass(frozen=True, repr=False)
class LowRankEigen(_FeatureSolver):
    """The eigenpairs of the Nyström approximation K^ = K_nS K_SS^-1 K_Sn on landmarks S.

    Parameters
    ----------
    rank : int, optional
        Landmarks; 1000 by default, or 10 k if that is more.
    landmarks, random_state
        See `mercer.gram.Landmarks`.

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
        Landmarks(self.rank, self.landmarks)  # raises if they cannot be chosen so

    def __repr__(self) -> str:
        given = self.landmarks  # points are not for people to read
        shown = repr(given) if isinstance(given, str) else f"<{length(given)} points>"
        return (
            f"LowRankEigen(rank={self.rank}, landmarks={shown}, random_state={self.random_state!r})"
        )

    def choice(self, k: int) -> Landmarks:
        """Return the landmarks for k components: ten for each, if that is more than usual."""
        rank = self.rank
        if rank is None and _PER_COMPONENT * k > RANK:
            rank = _PER_COMPONENT * k
        return Landmarks(rank, self.landmarks, self.random_state)

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed, those for the choice of the landmarks included."""
        return _workspace(n, k, self.features(n, k)) + self.choice(k).workspace(n)

    def features(self, n: int, k: int) -> int:
        """Return the number of landmarks for n points and k components."""
        return self.choice(k).count(n)

    def map(self, kernel: Any, X: Any, k: int, n_threads: int | None = None) -> NystroemMap:
        """Choose the landmarks among the points X and factor their kernel matrix."""
        self.choice(1).require(length(X))
        return self.choice(k).map(kernel, X, n_threads)


@entry_point
@dataclass(frozen=True)
class FourierEigen(_FeatureSolver):
    """The eigenpairs of K^ = Phi Phi^T for random Fourier features Phi.

    Approximate, without bounds: K^ is K in the mean over the draw, and the error falls with the
    number of features.  For a stream of points whose landmarks cannot be kept.

    Parameters
    ----------
    rank : int, optional
        Features, an even number; 1000 by default, or 10 k if that is more.
    method : {"auto", "orthogonal", "qmc", "iid"}
        See `mercer.kernels.random_features`.
    random_state : int or None

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
        """Return the bytes needed."""
        return _workspace(n, k, self.features(n, k))

    def features(self, n: int, k: int) -> int:
        """Return the number of features for k components."""
        return max(RANK, _PER_COMPONENT * k) if self.rank is None else self.rank

    def map(self, kernel: Any, X: Any, k: int, n_threads: int | None = None) -> FourierMap:
        """Draw the frequencies for points with the columns of X."""
        return FourierMap.on(
            kernel,
            X.shape[1],
            self.features(length(X), k),
            method=self.method,
            random_state=self.random_state,
        )


def _workspace(n: int, k: int, m: int) -> int:
    """Return the bytes of a few m x m matrices, two blocks of features, some tiles, the vectors."""
    return 8 * (8 * m * m + n * (k + 2)) + 2 * min(8 * n * m, 2**25) + 2**22


@entry_point
@one_blas_thread
def eigenpairs_of_points(
    solver: Any,
    kernel: Any,
    X: Any,
    count: Callable[[np.ndarray, float], int],
    *,
    expected: int,
    weights: np.ndarray | None = None,
    centred: bool = True,
    n_threads: int | None = None,
    say: Callable[[str], None] | None = None,
) -> EigenPairs:
    """Return the eigenpairs of K^ for points that are read in blocks, never prepared as a whole.

    `count(values, total)` tells how many to keep, from all eigenvalues and the trace; landmarks are
    chosen for the `expected` number.  The signs are those of the axes in feature space, so that a
    stream of the same points has them too.  The BLAS has one thread, so that the bits do not
    depend on the number of threads.

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
    kernel, X = on_indices(kernel, X)
    n = length(X)
    phi = solver.map(kernel, X, expected, n_threads)
    if say is not None:
        say(f"features by {phi!r}")
    moments = moments_of(phi, X, weights, n_threads=n_threads, say=say)
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
    solver: Any,
    phi: Any,
    moments: Moments,
    count: Callable[[np.ndarray, float], int],
    *,
    centred: bool = True,
    watch: Stopwatch | None = None,
) -> EigenPairs:
    """Return the eigenpairs in feature space alone; `vectors` has no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import LowRankEigen, eigenpairs_of_moments, moments_of
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> solver = LowRankEigen(rank=8)
    >>> phi = solver.map(RBF(), X, 2)
    >>> pairs = eigenpairs_of_moments(solver, phi, moments_of(phi, X), lambda values, total: 2)
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
            f"{k} components are asked for, but {phi!r} has rank {len(phi)}; "
            f"use more landmarks, or ask for fewer"
        )
    if k == 0:
        raise ValueError(
            "k(x, x) = 0 for every point: there is no landmark to choose; use eigen_solver='dense'"
        )
    values, axes, all_values = values[:k], axes[:, :k], values
    axes = axes * signs_of(axes)
    if isinstance(phi, NystroemMap):
        certificate = sandwich(all_values, moments.residual, k, slack=_rounding(phi, moments))
    else:
        certificate = unknown(values)
    return EigenPairs.reported(
        *(repr(solver), Status.APPROXIMATE, watch, values, np.empty((0, k))),
        *(certificate.residuals, certificate),
        message=_message(phi, moments),
        basis=FeatureBasis(phi, moments, axes),
    )


def _projections(
    phi: Any, X: Any, axes: np.ndarray, n_threads: int | None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield (rows, phi(x)^T axes, |phi(x)|^2 or what it stands for: k(x, x))."""
    if not isinstance(phi, NystroemMap):
        for rows, F in phi.blocks(X, n_threads=n_threads):
            yield rows, F @ axes, np.einsum("ij,ij->i", F, F)
        return
    # phi(x)^T axes is an expansion on the landmarks: there is no need to solve for phi
    coefficients, points = phi.expansion_coefficients(axes), sliceable(X)
    for start in range(0, length(X), _ROWS):
        rows = slice(start, min(start + _ROWS, length(X)))
        some = doubled(take(points, rows))
        tiles = TiledGram(phi.kernel, some, phi.points, n_threads=n_threads)
        yield rows, tiles @ coefficients, phi.kernel.diag(some)


@entry_point
def moments_of(
    phi: Any,
    X: Any,
    weights: np.ndarray | None = None,
    *,
    n_threads: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Moments:
    """Return the moments of the features of X, one block of rows at a time; of all its `Blocks`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import moments_of
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> phi = Landmarks(8).map(RBF(), X)
    >>> moments = moments_of(phi, X)
    >>> moments.weight, bool(np.allclose(moments.mean, phi.features(X).mean(axis=0)))
    (50.0, True)
    """
    if isinstance(X, Blocks):  # whose weights are beside its rows
        moments = X.reduce(_moments_of_rows, Moments.merge, phi, say=say)
        return cast(Moments, moments)
    moments, n = Moments.none(len(phi)), length(X)
    points = sliceable(X)
    exact = isinstance(phi, NystroemMap)  # only then is k(x, x) - |phi|^2 a certain quantity
    for rows, F in phi.blocks(X, n_threads=n_threads):
        diagonal = phi.kernel.diag(doubled(take(points, rows))) if exact else None
        some = None if weights is None else weights[rows]
        part = Moments.of(F, some, diagonal, n_threads=n_threads)
        moments = moments.merge(part)
        if say is not None and rows.stop < n:
            say(Step(f"{rows.stop} of {n} points", rows.stop, n))
    return moments


def _moments_of_rows(rows: Rows, phi: Any) -> Moments:
    return moments_of(phi, rows.X, rows.weights)


def _rounding(phi: NystroemMap, moments: Moments) -> float:
    """Return how far rounding may move K^: a part of the trace before centring, and of K_SS.

    With D for the rounding in L L^T, K^ moves by A^T D A, A = K_SS^-1 K_Sn = L^-T F^T: much where
    landmarks are close to each other, and far from the points.
    """
    square = moments.comoment + moments.weight * np.outer(moments.mean, moments.mean)  # F^T F
    total = float(np.trace(square)) + moments.residual
    weights = phi.expansion_coefficients(phi.expansion_coefficients(square).T)
    largest = float(np.square(phi.factor).sum(axis=1).max(initial=0.0))
    return 1e-14 * total + 8.0 * float(np.finfo(float).eps * largest * np.trace(weights))


def _message(phi: Any, moments: Moments) -> str:
    if not isinstance(phi, NystroemMap):
        return "random features: right in the mean, without bounds"
    text = f"{len(phi)} landmarks leave {moments.residual:.3e} of the trace"
    return "; ".join([text, *phi.flaws])
