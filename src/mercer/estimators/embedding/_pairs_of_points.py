"""Dissimilarities and weights of pairs of points: validation, and the stress that they define."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_array

from ..._core import Points, length, slices
from ...models.embedding import Stress
from ._latent_model import require_distinct_rows, resolve_n_components

# Maximum asymmetry and maximum diagonal entry of a matrix of dissimilarities, relative to its
# largest entry.
_SYMMETRY_TOLERANCE = 1e-8


def resolve_dimension(n_components: int | None, points: Points, is_euclidean: bool) -> int:
    """Return the dimension of an embedding; raise an error if it is too large.

    None means 2, or 1 if the points span fewer than three dimensions.  `is_euclidean` says whether
    the dissimilarities are Euclidean distances of vectors.
    """
    n = length(points)
    if n < 2:
        raise ValueError("an embedding needs at least 2 points, got n_samples=1")
    if is_euclidean:
        return resolve_n_components(n_components, points.shape[1])
    q = n_components or max(1, min(2, n - 1))
    if q >= n:
        raise ValueError(
            f"n_components={q}, but {n} points span {n - 1} dimensions; reduce n_components"
        )
    return int(q)


def make_stress(
    delta: np.ndarray, kind: str, weights: np.ndarray | None = None
) -> tuple[Stress, float, float]:
    """Return the stress of dissimilarities, their maximum, and the smallest positive one.

    Parameters
    ----------
    delta : ndarray of shape (n (n - 1) / 2,)
        Dissimilarities in the order of `pdist`, which are divided by their maximum in place.
    kind : {"raw", "sammon"}
        The weights of the pairs: 1, or 1 / delta.
    weights : ndarray of shape (n, n) or None
        Additional weights, which multiply those of `kind`.
    """
    unit = float(delta.max())
    n = round(0.5 + np.sqrt(0.25 + 2 * len(delta)))
    require_distinct_rows(n, unit == 0.0)
    delta /= unit
    least = float(delta[delta > 0.0].min())
    w = None if weights is None else to_condensed(weights, "weights")
    if kind == "sammon":
        denominators = np.maximum(delta, least)
        w = np.divide(1.0 if w is None else w, denominators, out=denominators)
    S = Stress(delta, w)
    if not S.mass.min() > 0.0:
        isolated = int(S.mass.argmin())
        raise ValueError(f"all pairs with point {isolated} have weight 0; remove this point")
    return S, unit, unit * least


def check_pairs(values: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Return weights or dissimilarities of pairs of points; raise an error if they are invalid."""
    A = np.asarray(check_array(values, dtype=np.float64, input_name=name))
    if A.shape != shape:
        raise ValueError(f"{name} of pairs must have the shape {shape}, got {A.shape}")
    if A.min() < 0.0:
        raise ValueError(f"{name} must not be negative, but the smallest is {A.min():.3g}")
    return A


def to_condensed(matrix: Any, name: str, zero_diagonal: bool = False) -> np.ndarray:
    """Return the upper triangle of a symmetric non-negative matrix as a vector, after validation.

    Parameters
    ----------
    matrix : array of shape (n, n)
    name : str
        The name of the entries in error messages.
    zero_diagonal : bool
        Whether the diagonal must be 0.
    """
    A = np.asarray(matrix, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} of pairs must be a square matrix, got shape {A.shape}")
    largest = float(np.abs(A).max())
    asymmetry = max(float(np.abs(A[rows] - A[:, rows].T).max()) for rows in slices(len(A), 256))
    if asymmetry > _SYMMETRY_TOLERANCE * largest:
        raise ValueError(
            f"the matrix of {name} is not symmetric: it differs from its transpose by "
            f"{asymmetry:.3g}, with entries up to {largest:.3g}; use (D + D.T) / 2 to symmetrise it"
        )
    if A.min() < 0.0:
        raise ValueError(f"{name} must not be negative, but the smallest is {A.min():.3g}")
    if zero_diagonal and np.abs(np.diagonal(A)).max() > _SYMMETRY_TOLERANCE * largest:
        raise ValueError(
            f"the matrix of {name} has up to {np.diagonal(A).max():.3g} on its diagonal, which "
            f"should be 0; the usual cause is a matrix of similarities"
        )
    return np.asarray(squareform(A, checks=False))
