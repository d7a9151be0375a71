"""Detect cancellation in squared distances in feature space, and warn about it.

    d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z)

The rounding error of d^2 is a small multiple of eps k(x, x).  If points are far from the origin
compared with their spread, a dot-product kernel is large and d^2 is small, so that some or all
digits of d^2 are lost.  A computed distance of 0 does not prove such a loss: the two points may be
equal, or the kernel may not distinguish them, such as x and 2 x for the cosine kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .._core import Points, ignore_overflow, slices, take, warn_caller
from ..kernels import Kernel

ROUNDING_UNITS = 32  # a squared distance has an error of at most this many times eps * k(x, x)
MAX_CANCELLATION_ERROR = 1e-3  # a larger relative error of squared distances causes a warning


@dataclass(frozen=True)
class _CancellationTuning:
    """Sample sizes and extrapolation factors of the check for cancellation."""

    # Number of array entries compared at a time; this limits the memory of temporary arrays.
    chunk_entries: int = 2**20
    # Number of sampled points whose distances are compared with their rounding error.
    n_points: int = 16
    # Number of close pairs (x, z) for which x +- t (z - x) is evaluated; see `is_cancelled`.
    n_pairs: int = 16
    # Values of t.  If the kernel distinguishes x from z, the distance between x and x +- t (z - x)
    # in feature space exceeds the rounding errors.
    extrapolation_factors: tuple[float, ...] = (1e3, 1e6)


_TUNING = _CancellationTuning()


def points_differ(X: Points, Z: Points, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return for each pair whether the vectors x_i and z_j differ.

    The result is False for points that are not vectors, such as strings or graphs.
    """
    if not (_are_vectors(X) and _are_vectors(Z)):
        return np.zeros(len(i), dtype=bool)
    out = np.empty(len(i), dtype=bool)
    for chunk in slices(len(i), max(1, _TUNING.chunk_entries // max(1, X.shape[1]))):
        x, z = take(X, i[chunk]), take(Z, j[chunk])
        if sp.issparse(x) or sp.issparse(z):
            gaps = abs(sp.csr_array(x) - sp.csr_array(z)).max(axis=1)
            out[chunk] = np.asarray(gaps.toarray()).ravel() > 0.0
        else:
            out[chunk] = np.any(x != z, axis=1)
    return out


def _are_vectors(X: Points) -> bool:
    """Whether X is a sparse matrix or a 2-D array of floats."""
    if sp.issparse(X):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"


@ignore_overflow
def is_cancelled(kernel: Kernel, X: Points, Z: Points, i: np.ndarray, j: np.ndarray) -> bool:
    """Return whether rounding has cancelled the distances between different points x_i and z_j.

    The kernel is evaluated at x +- t (z - x) for large t.  If the distance from x to z was lost to
    rounding, the distance from x to these points grows with t.  If the kernel does not distinguish
    x from z, that distance stays 0.
    """
    sample = np.unique(np.linspace(0, len(i) - 1, _TUNING.n_pairs).astype(int))
    x, z = (_dense(take(points, index[sample])) for points, index in ((X, i), (Z, j)))
    for t in _TUNING.extrapolation_factors:
        sides = [_visible(kernel, x, x + sign * t * (z - x)) for sign in (-1.0, 1.0)]
        if np.mean(np.logical_and(*sides)) >= 0.5:
            return True
    return False


def _visible(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return for each pair (x_i, z_i) whether its distance exceeds the rounding error."""
    Z = np.maximum(Z, 0.0) if kernel.domain.kind == "nonnegative" else Z
    try:
        own, norms = kernel.diag(X), kernel.diag(Z)
        squared = own - 2.0 * np.diagonal(kernel(X, Z)) + norms
    except Exception:  # a point is outside the domain of the kernel, or too large
        return np.ones(len(X), dtype=bool)
    error = ROUNDING_UNITS * np.finfo(np.float64).eps * (np.abs(own) + np.abs(norms))
    return np.asarray(~(squared <= 10.0 * error))  # NaN (k overflows) counts as True


def _dense(X: Points) -> np.ndarray:
    """Return X as a dense array of float64."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def warn_about_cancellation(kernel: Kernel, what: str, squared: float, error: float) -> None:
    """Warn that distances in feature space are lost to rounding.

    `what` describes the consequence.  `squared` is the typical size of the squared distances, and
    `error` that of their rounding error.
    """
    warn_caller(
        f"{what}: squared distances in feature space are about {squared:.2g}, but their rounding "
        f"error is up to {error:.2g}, because the values of {kernel} are far larger. The usual "
        f"cause is features that are far from 0 compared with their spread, or a length scale "
        f"that is far too long; centre or standardise the features, for example with StandardScaler"
    )


@ignore_overflow
def warn_if_cancelled(kernel: Kernel, X: Points) -> None:
    """Warn if the distances between vectors in feature space are lost to rounding.

    Only a few points are compared, so that the check does not evaluate all of K.  Kernels with a
    constant diagonal k(x, x) are not checked, because they do not depend on the origin.
    """
    if kernel.domain.costly or kernel.domain.discrete or not _are_vectors(X) or X.shape[0] < 2:
        return
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _TUNING.n_points).astype(int))
    S = take(X, rows)
    K, own = kernel(S), np.asarray(kernel.diag(S), dtype=np.float64)
    if np.all(own == own[0]):
        return
    i, j = np.triu_indices(len(rows), 1)
    squared = own[i] + own[j] - 2.0 * K[i, j]
    size, error = float(np.mean(squared)), ROUNDING_UNITS * np.finfo(K.dtype).eps * float(own.max())
    if not size * MAX_CANCELLATION_ERROR < error:
        return
    distinct = np.flatnonzero(points_differ(S, S, i, j))
    if len(distinct) and is_cancelled(kernel, S, S, i[distinct], j[distinct]):
        warn_about_cancellation(kernel, "results depend on rounding", size, error)
