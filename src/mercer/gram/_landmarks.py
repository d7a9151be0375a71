"""Landmarks of a Nyström approximation: how many to choose, and by which method.

The k-means methods choose centroids in R^d, or the data points nearest to them.  The centroids
minimise the mean squared distance from the points to their nearest landmark.  For a kernel that is
a function of distances, centroids therefore tend to give a better approximation than the same
number of data points (Zhang, Tsang & Kwok 2008).  A few iterations are enough.  They start from the
pivots of RPCholesky, so that outliers and small clusters keep a landmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import (
    Points,
    RandomState,
    as_csr,
    as_float64,
    as_generator,
    as_vectors,
    entry_point,
    is_count,
    length,
    one_blas_thread,
    seeded_generator,
    slices,
    take,
)
from ..kernels import Kernel, Radial, Wrapper
from ._landmark_selection import (
    CANDIDATES_PER_LANDMARK,
    DEFAULT_CANDIDATES,
    choose_landmarks,
    choose_with_residual,
    landmark_choice_bytes,
)
from ._nystroem_map import NystroemMap

LANDMARK_METHODS = ("auto", "kmeans", "medoids", "rpcholesky", "uniform", "kmeans++", "leverage")
DEFAULT_RANK = 1000  # default number of landmarks; time grows with its square, memory linearly


@dataclass(frozen=True)
class Landmarks:
    """Number of landmarks of a Nyström approximation, and how to choose them.

    The approximation represents functions as linear combinations of k(s, .) for landmarks s.  Time
    grows with the square of the number of landmarks, and memory linearly.

    Parameters
    ----------
    rank : int or None, default None
        Number of landmarks; None means 1000, or all points if there are fewer.  Increase it until
        `LowRankGram.residual_trace` or the validation error no longer decreases.
    method : str or points, default "auto"
        "kmeans" (centroids, for a radial kernel on dense vectors), "medoids" (the points nearest
        to the centroids), a method of `choose_landmarks`, or the landmarks themselves.  "auto" is
        "kmeans" if that is possible, else "rpcholesky".
    random_state : int, Generator, RandomState or None, default None
        Seed or source of random numbers; None means 0.

    See Also
    --------
    choose_landmarks : Choose some of the points as landmarks.
    NystroemMap : The feature map for landmarks.

    References
    ----------
    Zhang, Tsang and Kwok, "Improved Nyström low-rank approximation and error analysis", ICML 2008,
    for k-means centroids as landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> Landmarks(20).map(RBF(), X)
    <NystroemMap on 20 landmarks, RBF(length_scale=1.0)>
    """

    rank: int | None = None
    method: Any = "auto"
    random_state: Any = None

    def __post_init__(self) -> None:
        if self.rank is not None and not is_count(self.rank):
            raise ValueError(f"rank must be a positive integer or None, got {self.rank!r}")
        if isinstance(self.method, str) and self.method not in LANDMARK_METHODS:
            raise ValueError(
                f"unknown landmark method {self.method!r}; choose one of "
                f"{', '.join(map(repr, LANDMARK_METHODS))}, or pass the landmarks themselves"
            )
        if not isinstance(self.method, str) and not length(self.method):
            raise ValueError("the landmarks that were passed are empty; pass at least one")

    @property
    def given(self) -> bool:
        """Whether the user supplied the landmarks themselves instead of a method."""
        return not isinstance(self.method, str)

    def count(self, n: int) -> int:
        """Return the number of landmarks for n points.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        int
            The number of user-supplied landmarks, or `rank`, but at most n.
        """
        if self.given:
            return length(self.method)
        return min(n, DEFAULT_RANK if self.rank is None else int(self.rank))

    def require(self, n: int, instead: str = "pass the landmarks themselves") -> None:
        """Raise an error if more landmarks are requested than there are points.

        Parameters
        ----------
        n : int
            Number of points.
        instead : str, default "pass the landmarks themselves"
            An alternative that the error message suggests.

        Raises
        ------
        ValueError
            If `rank` is greater than n.
        """
        if not self.given and self.rank is not None and self.rank > n:
            raise ValueError(
                f"rank={self.rank} landmarks cannot be chosen among {n} points; request fewer, or "
                f"{instead}"
            )

    def workspace(self, n: int) -> int:
        """Return the memory needed to choose the landmarks.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        int
            Number of bytes.
        """
        m = self.count(n)
        needs_nothing = self.given or self.method == "uniform" or m == n
        return 0 if needs_nothing else landmark_choice_bytes(n, m, dense=self.method == "medoids")

    def draw(self, kernel: Kernel, X: Points, n_threads: int | None = None) -> Any:
        """Return the user-supplied landmarks, or choose landmarks for the points X.

        Parameters
        ----------
        kernel : Kernel
            A kernel whose parameters are all numbers.
        X : points
            The points among which landmarks are chosen.
        n_threads : int or None, default None
            Number of threads; None means all processors.  The result does not depend on it.

        Returns
        -------
        points
            The landmarks, usually `count(len(X))` of them.
        """
        return self.choose(kernel, X, n_threads)[0]

    def choose(
        self, kernel: Kernel, X: Points, n_threads: int | None = None
    ) -> tuple[Any, np.ndarray | None]:
        """Return the landmarks and, if they are points of X, their indices.

        Parameters
        ----------
        kernel : Kernel
            A kernel whose parameters are all numbers.
        X : points
            The points among which landmarks are chosen.
        n_threads : int or None, default None
            Number of threads; None means all processors.  The result does not depend on it.

        Returns
        -------
        landmarks : points
            The landmarks.
        indices : ndarray of shape (m,) or None
            Their indices in X; None if the landmarks are not points of X.
        """
        if self.given:
            return self._validated_points(kernel, X), None
        method, m = self.method, self.count(length(X))
        if method == "auto":
            method = "kmeans" if supports_kmeans_landmarks(kernel, X) else "rpcholesky"
        rng = seeded_generator(self.random_state)
        if method == "kmeans":
            return kmeans_centroids(kernel, X, m, random_state=rng, n_threads=n_threads), None
        if method == "medoids":
            chosen = kmeans_medoids(kernel, X, m, random_state=rng, n_threads=n_threads)
        else:
            chosen = choose_landmarks(kernel, X, m, method, random_state=rng, n_threads=n_threads)
        return take(as_csr(X), chosen), chosen

    def map(self, kernel: Kernel, X: Points, n_threads: int | None = None) -> NystroemMap:
        """Choose landmarks for the points X, and return their Nyström feature map.

        Parameters
        ----------
        kernel : Kernel
            A positive semidefinite kernel whose parameters are all numbers.
        X : points
            The points among which landmarks are chosen.
        n_threads : int or None, default None
            Number of threads; None means all processors.  The result does not depend on it.

        Returns
        -------
        NystroemMap
            The map to R^m for m landmarks.
        """
        return NystroemMap.on(kernel, self.draw(kernel, X, n_threads), n_threads)

    def _validated_points(self, kernel: Kernel, X: Points) -> Any:
        """Return the user-supplied landmarks after validation."""
        if not kernel.domain.on_vectors:
            return self.method
        Z = as_float64(as_vectors(self.method, "landmarks"))
        if Z.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks have {Z.shape[1]} columns, but X has {X.shape[1]}; both need the same "
                f"features"
            )
        return Z


@dataclass(frozen=True)
class _KMeansLandmarkTuning:
    """Numbers of candidates and iterations for the choice of landmarks by k-means."""

    # Sizes of two sets of candidates for medoids, as (minimum, number per landmark).  The second,
    # larger set is used only if landmarks from the first one leave a small residual.
    medoid_candidates: tuple[tuple[int, int], ...] = ((200, 2), (2000, 20))
    # Above this mean residual, relative to k(x, x), more candidates hardly improve the landmarks.
    large_residual: float = 0.05
    # Number of distances computed at a time; they fit the second-level CPU cache.
    distances_per_chunk: int = 2**17
    # Number of iterations of Lloyd's algorithm, if there are at least `points_per_landmark` points
    # for each landmark.  Otherwise there is only one iteration.
    n_iter: int = 5
    points_per_landmark: int = 50


_TUNING = _KMeansLandmarkTuning()


def supports_kmeans_landmarks(kernel: Kernel, X: Points) -> bool:
    """Whether landmarks can be chosen by k-means.

    This requires dense vectors and a radial kernel, possibly inside wrappers such as a scale
    factor.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import supports_kmeans_landmarks
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.zeros((3, 2))
    >>> supports_kmeans_landmarks(RBF(), X), supports_kmeans_landmarks(Linear(), X)
    (True, False)
    """
    return isinstance(X, np.ndarray) and X.ndim == 2 and unwrap_radial(kernel) is not None


def kmeans_centroids(
    kernel: Kernel,
    X: np.ndarray,
    m: int,
    *,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return the centroids of m clusters as landmarks, or fewer if m exceeds the rank of K.

    Lloyd's algorithm runs on at most max(20 000, 20 m) of the points.  Features are divided by the
    length scales of the kernel.

    Returns
    -------
    ndarray of shape (m, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._landmarks import kmeans_centroids
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> np.sort(kmeans_centroids(RBF(5.0), X, 2, random_state=0)[:, 0]).round(8)
    array([ 0.5, 11. ])
    """
    scale, rng = _scale(kernel, X), as_generator(random_state)
    n_candidates = max(DEFAULT_CANDIDATES, CANDIDATES_PER_LANDMARK * m)
    if length(X) > n_candidates:
        X = take(as_csr(X), np.sort(rng.choice(length(X), n_candidates, replace=False)))
    X = as_float64(X)
    pivots = choose_landmarks(kernel, X, m, random_state=rng, n_threads=n_threads)
    # With few points per landmark, the means shrink towards the centre of the data with every
    # iteration, and one iteration is best.
    rounds = _TUNING.n_iter if len(X) >= _TUNING.points_per_landmark * len(pivots) else 1
    centres: np.ndarray = euclidean_kmeans(X / scale, X[pivots] / scale, rounds) * scale
    return centres


def kmeans_medoids(
    kernel: Kernel,
    X: np.ndarray,
    m: int,
    *,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return the indices of m distinct points of X that are nearest to k-means centroids.

    At first only max(200, 2 m) candidates are considered.  If landmarks from these leave only a
    small residual, their exact positions matter, and max(2000, 20 m) candidates are used.  If two
    centroids have the same nearest point, the set is completed by points drawn uniformly at random.

    Returns
    -------
    ndarray of shape (m,), of int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._landmarks import kmeans_medoids
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> np.sort(kmeans_medoids(RBF(5.0), X, 2, random_state=0))
    array([1, 4])
    """
    scale, rng, n = _scale(kernel, X), as_generator(random_state), length(X)
    for minimum, per_landmark in _TUNING.medoid_candidates:
        n_candidates = max(minimum, per_landmark * m)
        candidates = np.arange(n)
        if n > n_candidates:
            candidates = np.sort(rng.choice(n, n_candidates, replace=False))
        Y = as_float64(take(as_csr(X), candidates))
        pivots, residual = choose_with_residual(kernel, Y, m, rng, n_threads)
        if residual > _TUNING.large_residual or len(candidates) == n:
            break
    Y = Y / scale
    nearest = np.unique(_nearest_index(euclidean_kmeans(Y, Y[pivots], rounds=1), Y))
    others = np.delete(np.arange(len(candidates)), nearest)
    extra = rng.choice(others, min(len(pivots) - len(nearest), len(others)), replace=False)
    chosen: np.ndarray = candidates[np.concatenate([nearest, extra])]
    return chosen


@entry_point
def euclidean_kmeans(
    X: np.ndarray, centres: np.ndarray, rounds: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the centres after up to `rounds` iterations of Lloyd's k-means algorithm on X.

    A centre that is not the nearest one of any point stays where it is.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centres : ndarray of shape (m, d)
        The initial centres.
    rounds : int
        Maximum number of iterations; they stop early if the clusters no longer change.
    weights : ndarray of shape (n,), optional
        Weights of the points; equal by default.

    Returns
    -------
    ndarray of shape (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import euclidean_kmeans
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> euclidean_kmeans(X, X[:2], rounds=10).ravel()
    array([ 0.5, 10.5])
    """
    n, m = len(X), len(centres)
    weights = np.ones(n) if weights is None else weights
    previous_labels = None
    for _ in range(rounds):
        labels = _nearest_index(X, centres)
        if previous_labels is not None and np.array_equal(labels, previous_labels):
            break
        previous_labels, totals = labels, np.bincount(labels, weights, minlength=m)
        members = sp.csc_array((weights, labels, np.arange(n + 1)), shape=(m, n))
        with np.errstate(invalid="ignore"):
            means = (members @ X) / totals[:, None]
        centres = np.where(totals[:, None] > 0.0, means, centres)
    return centres


@one_blas_thread  # the result must be bit-for-bit identical for any number of threads
def _nearest_index(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return for each x the index of the nearest z, the first one in case of ties."""
    middle = Z.mean(axis=0)  # centring reduces the cancellation in |z|^2 - 2 x.z
    Z = Z - middle
    right, squares = -2.0 * Z.T, np.einsum("ij,ij->i", Z, Z)
    labels = [
        np.argmin((X[rows] - middle) @ right + squares, axis=1)
        for rows in slices(len(X), max(1, _TUNING.distances_per_chunk // len(Z)))
    ]
    return np.concatenate(labels)


def _scale(kernel: Kernel, X: Points) -> Any:
    """Return the length scales by which the columns of X are divided."""
    radial = unwrap_radial(kernel)
    if radial is None or not supports_kmeans_landmarks(kernel, X):
        raise ValueError(
            f"landmarks 'kmeans' and 'medoids' need dense vectors and a radial kernel, "
            f"got {kernel} on {type(X).__name__}; use 'rpcholesky'"
        )
    return radial._scale(X.shape[1])


def unwrap_radial(kernel: Kernel) -> Radial | None:
    """Return the radial kernel inside wrappers such as a scale factor, or None if there is none.

    Examples
    --------
    >>> from mercer.gram import unwrap_radial
    >>> from mercer.kernels import RBF, Linear
    >>> unwrap_radial(2.0 * RBF()), unwrap_radial(Linear())
    (RBF(length_scale=1.0), None)
    """
    while isinstance(kernel, Wrapper):
        if kernel._inner_points.__func__ is not Kernel._inner_points:  # type: ignore[attr-defined]
            return None  # the wrapped kernel is evaluated on transformed points
        kernel = kernel.kernel
    return kernel if isinstance(kernel, Radial) else None
