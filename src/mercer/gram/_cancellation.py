"""Loss of digits in d^2(x, z) = k(x, x) - 2 k(x, z) + k(z, z), and the warning about it.

The rounding error of d^2 is a few units of the rounding of k(x, x).  If points are far from the
origin compared with their spread, a dot-product kernel is large and d^2 is small: its digits, or
all of it, are lost.  A squared distance of 0 does not prove that.  Two points may be equal, or
equal for the kernel, such as x and 2 x for the cosine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._errors import warn_caller
from .._points import take
from .._runtime import quiet, slices
from ..kernels import Kernel

__all__ = ["LOST", "ROUNDING", "differ", "is_lost", "warn_if_cancelled", "warn_of_cancellation"]

ROUNDING = 32  # units of rounding of k(x, x) that a squared distance may be off by
LOST = 1e-3  # relative error of squared distances above which a warning is given
_ENTRIES = 2**20  # of rows that are compared at a time
_SAMPLED = 16  # points whose distances are compared with the rounding of k(x, x)
_EXTRAPOLATED = 16  # pairs of points that are checked for distances of 0
_FACTORS = (1e3, 1e6)  # multiples of z - x at which a distance must show, if it is not 0


def differ(X: Any, Z: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return for each pair whether the vectors x_i and z_j differ; False for other points."""
    if not (_are_vectors(X) and _are_vectors(Z)):
        return np.zeros(len(i), dtype=bool)
    out = np.empty(len(i), dtype=bool)
    for part in slices(len(i), max(1, _ENTRIES // max(1, X.shape[1]))):
        x, z = take(X, i[part]), take(Z, j[part])
        if sp.issparse(x) or sp.issparse(z):
            gaps = abs(sp.csr_array(x) - sp.csr_array(z)).max(axis=1)
            out[part] = np.asarray(gaps.toarray()).ravel() > 0.0
        else:
            out[part] = np.any(x != z, axis=1)
    return out


def _are_vectors(X: Any) -> bool:
    if sp.issparse(X):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"


@quiet
def is_lost(kernel: Kernel, X: Any, Z: Any, i: np.ndarray, j: np.ndarray) -> bool:
    """Return whether small distances of different points x_i and z_j are due to rounding.

    The points x +- t (z - x) are checked for large t.  Their distance from x grows with t if that
    of z is lost to rounding, and stays 0 if the kernel does not see the difference.
    """
    some = np.unique(np.linspace(0, len(i) - 1, _EXTRAPOLATED).astype(int))
    x, z = (_dense(take(points, places[some])) for points, places in ((X, i), (Z, j)))
    for t in _FACTORS:
        sides = [_visible(kernel, x, x + sign * t * (z - x)) for sign in (-1.0, 1.0)]
        if np.mean(np.logical_and(*sides)) >= 0.5:
            return True
    return False


def _visible(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return which distances of x_i and z_i are larger than their rounding."""
    Z = np.maximum(Z, 0.0) if kernel.domain == "nonnegative" else Z
    try:
        own, norms = kernel.diag(X), kernel.diag(Z)
        squared = own - 2.0 * np.diagonal(kernel(X, Z)) + norms
    except Exception:  # a point has left the domain, or is too large
        return np.ones(len(X), dtype=bool)
    error = ROUNDING * np.finfo(np.float64).eps * (np.abs(own) + np.abs(norms))
    return np.asarray(~(squared <= 10.0 * error))  # also where k overflows


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def warn_of_cancellation(kernel: Kernel, what: str, squared: float, error: float) -> None:
    """Warn that distances in feature space are lost to rounding."""
    warn_caller(
        f"{what}: squared distances in feature space are about {squared:.2g}, but their rounding "
        f"error is up to {error:.2g}, because {kernel} has values far larger than these. The usual "
        f"cause is features that are far from 0 compared with their spread, or a length scale far "
        f"too long; centre or standardise the features, for example with StandardScaler"
    )


@quiet
def warn_if_cancelled(kernel: Kernel, X: Any) -> None:
    """Warn if the distances of vectors in feature space are lost to rounding.

    A few points are compared, so that the check costs no pass over K.  Kernels with a constant
    diagonal are not checked: they do not depend on the origin.
    """
    if kernel.costly or kernel.discrete or not _are_vectors(X) or X.shape[0] < 2:
        return
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _SAMPLED).astype(int))
    S = take(X, rows)
    K, own = kernel(S), np.asarray(kernel.diag(S), dtype=np.float64)
    if np.all(own == own[0]):
        return
    i, j = np.triu_indices(len(rows), 1)
    squared = own[i] + own[j] - 2.0 * K[i, j]
    size, error = float(np.mean(squared)), ROUNDING * np.finfo(K.dtype).eps * float(own.max())
    if not size * LOST < error:
        return
    some = np.flatnonzero(differ(S, S, i, j))
    if len(some) and is_lost(kernel, S, S, i[some], j[some]):
        warn_of_cancellation(kernel, "results depend on rounding", size, error)
