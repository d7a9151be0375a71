"""Landmarks that are no points of the data: centroids of k-means in R^d.

    S = the means of the m parts of the points nearest to each s in S

For a kernel that is a function of distances the centroids cover the data with the least mean
squared distance, and so tend to leave less of the trace over than m of the points do (Zhang, Tsang
& Kwok 2008).  A few rounds are enough; they start from pivots of RPCholesky, so that outliers and
small clusters keep a landmark.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import doubled, length, sliceable, take
from .._runtime import entry_point, generator, one_blas_thread, slices
from ..kernels import Kernel, Radial, Wrapper
from ._choose_landmarks import CANDIDATES, PER_LANDMARK, choose_by_residual, choose_landmarks

__all__ = ["centroids", "has_centroids", "lloyd", "medoids", "radial_inside"]

_TRIES = ((200, 2), (2000, 20))  # points among which medoids are sought, at least and for each
_MUCH = 0.05  # of k(x, x): where landmarks leave so much over, more candidates change little
_BLOCK = 2**17  # distances at a time, which fit the second-level cache
_ROUNDS, _MANY = 5, 50  # rounds of Lloyd's algorithm, if there are many points to a landmark


def has_centroids(kernel: Kernel, X: Any) -> bool:
    """Tell whether k-means makes sense: dense vectors, and a kernel that is radial.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import has_centroids
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.zeros((3, 2))
    >>> has_centroids(RBF(), X), has_centroids(Linear(), X)
    (True, False)
    """
    return isinstance(X, np.ndarray) and X.ndim == 2 and radial_inside(kernel) is not None


def centroids(
    kernel: Kernel, X: np.ndarray, m: int, *, random_state: Any = None, n_threads: int | None = None
) -> np.ndarray:
    """Return m landmarks in R^d, or fewer if the points coincide.

    Lloyd's algorithm runs on at most max(20 000, 20 m) of the points, in the scaled coordinates of
    the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._centroids import centroids
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> np.sort(centroids(RBF(5.0), X, 2, random_state=0)[:, 0]).round(8)
    array([ 0.5, 11. ])
    """
    scale, rng = _scale(kernel, X), generator(random_state)
    among = max(CANDIDATES, PER_LANDMARK * m)
    if length(X) > among:
        X = take(sliceable(X), np.sort(rng.choice(length(X), among, replace=False)))
    X = doubled(X)
    first = choose_landmarks(kernel, X, m, random_state=rng, n_threads=n_threads)
    # means of few points shrink towards the middle of the data: then one round is best
    rounds = _ROUNDS if len(X) >= _MANY * len(first) else 1
    return lloyd(X / scale, X[first] / scale, rounds) * scale


def medoids(
    kernel: Kernel, X: np.ndarray, m: int, *, random_state: Any = None, n_threads: int | None = None
) -> np.ndarray:
    """Return the places of the points of X that are nearest to the `centroids`, all different.

    Both are found among max(200, 2 m) of the points; among max(2000, 20 m) if landmarks leave
    little of these over, as then it matters where they are.  Where two centroids have the same
    nearest point, others drawn with equal chances fill up.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram._centroids import medoids
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> np.sort(medoids(RBF(5.0), X, 2, random_state=0))
    array([1, 4])
    """
    scale, rng, n = _scale(kernel, X), generator(random_state), length(X)
    for least, each in _TRIES:
        among = max(least, each * m)
        some = np.arange(n) if n <= among else np.sort(rng.choice(n, among, replace=False))
        Y = doubled(take(sliceable(X), some))
        first, left = choose_by_residual(kernel, Y, m, rng, n_threads)
        if left > _MUCH or len(some) == n:
            break
    Y = Y / scale
    nearest = np.unique(_nearest(lloyd(Y, Y[first], rounds=1), Y))
    others = np.delete(np.arange(len(some)), nearest)
    extra = rng.choice(others, min(len(first) - len(nearest), len(others)), replace=False)
    return some[np.concatenate([nearest, extra])]


@entry_point
def lloyd(
    X: np.ndarray, centres: np.ndarray, rounds: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the centres after so many rounds of k-means on X; one without points stays.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import lloyd
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> lloyd(X, X[:2], rounds=10).ravel()
    array([ 0.5, 10.5])
    """
    n, m = len(X), len(centres)
    weights = np.ones(n) if weights is None else weights
    before = None
    for _ in range(rounds):
        labels = _nearest(X, centres)
        if before is not None and np.array_equal(labels, before):
            break
        before, totals = labels, np.bincount(labels, weights, minlength=m)
        members = sp.csc_array((weights, labels, np.arange(n + 1)), shape=(m, n))
        with np.errstate(invalid="ignore"):
            means = (members @ X) / totals[:, None]
        centres = np.where(totals[:, None] > 0.0, means, centres)
    return centres


@one_blas_thread  # so that the bits do not depend on the number of threads
def _nearest(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the place of the z that is nearest to each x, the first of equals."""
    middle = Z.mean(axis=0)  # the nearer to 0, the less is lost in |z|^2 - 2 x.z
    Z = Z - middle
    right, squares = -2.0 * Z.T, np.einsum("ij,ij->i", Z, Z)
    found = [
        np.argmin((X[rows] - middle) @ right + squares, axis=1)
        for rows in slices(len(X), max(1, _BLOCK // len(Z)))
    ]
    return np.concatenate(found)


def _scale(kernel: Kernel, X: Any) -> Any:
    """Return the length scale in which distances are to be measured."""
    radial = radial_inside(kernel)
    if radial is None or not has_centroids(kernel, X):
        raise ValueError(
            f"landmarks 'kmeans' and 'medoids' need dense vectors and a kernel of their distances, "
            f"not {kernel} of {type(X).__name__}; use 'rpcholesky'"
        )
    return radial._scale(X.shape[1])


def radial_inside(kernel: Kernel) -> Radial | None:
    """Return the kernel itself or the one that it wraps, if that is radial.

    Examples
    --------
    >>> from mercer.gram import radial_inside
    >>> from mercer.kernels import RBF, Linear
    >>> radial_inside(2.0 * RBF()), radial_inside(Linear())
    (RBF(length_scale=1.0), None)
    """
    while isinstance(kernel, Wrapper):
        if kernel._inner_points.__func__ is not Kernel._inner_points:  # type: ignore[attr-defined]
            return None  # these belong to other points
        kernel = kernel.kernel
    return kernel if isinstance(kernel, Radial) else None
