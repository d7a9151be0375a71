"""Pre-image methods that need no iteration.

They use the nearest neighbours of a target Psi, the distances to these, or inner products of all
points.  The results are pre-images, and can also be the starts of iterative methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from ...gram import gram
from ...kernels import Linear, Polynomial, ThinPlate
from ...solvers import Cholesky
from ._preimage_target import PreImageTarget, row_blocks

__all__ = ["conformal", "convex", "distance", "has_distance", "nearest"]

# Kernel values below this times k(x, x) are too small to be converted to a distance.
_MIN_KERNEL_VALUE = 1e-6
# Smaller singular values of the neighbours, relative to the largest, are treated as 0.
_SINGULAR_VALUE_CUTOFF = 1e-8
# The same for eigenvalues, which are squares of singular values and less accurate.
_EIGENVALUE_CUTOFF = 1e-13
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # ridges that `conformal` tries


def nearest(target: PreImageTarget) -> np.ndarray:
    """Return the index of the candidate with the smallest |phi(x_i) - Psi|, for each target."""
    return np.argmin(target.candidate_costs, axis=1)


def convex(target: PreImageTarget, count: int) -> np.ndarray:
    """Return the best convex combination z = sum_i w_i x_i of the neighbours of each target.

    The weights w_i >= 0, which sum to 1, minimise |sum_i w_i phi(x_i) - Psi|, where x_i are the
    neighbours of the target Psi.  This is a small quadratic program for each target.
    """
    X, neighbours = target.candidates, target.neighbours(count)
    Z = np.empty((len(target), X.shape[1]))
    for c, indices in enumerate(neighbours):
        K, f = target.core(X[indices]), target.candidate_values[c, indices]
        values, vectors = np.linalg.eigh(K)
        root = np.sqrt(np.maximum(values, 1e-10 * max(values[-1], np.finfo(float).tiny)))
        # |root V^T w - V^T f / root|^2 is the squared distance up to a constant.  An additional row
        # with a large weight enforces sum(w) = 1.
        penalty = 1e3 * root[-1]
        A = np.vstack([root[:, None] * vectors.T, np.full(len(indices), penalty)])
        w, _ = nnls(A, np.append(vectors.T @ f / root, penalty))
        total = w.sum()
        Z[c] = w @ X[indices] / total if total > 0 else X[indices[0]]
    return Z


def has_distance(target: PreImageTarget) -> bool:
    """Return True if a kernel value determines the distance or inner product of two points."""
    kernel = target.core
    if isinstance(kernel, Polynomial):
        return bool(kernel.degree % 2 or kernel.coef0 > 0)  # otherwise k(x, z) = k(-x, z)
    return isinstance(kernel, Linear) or (target.is_radial and not isinstance(kernel, ThinPlate))


def distance(target: PreImageTarget, count: int) -> np.ndarray:
    """Return the z whose distances to the neighbours match the distances in feature space.

    Kwok & Tsang (2004): for the target Psi and its neighbours x_i, the condition
    |phi(z) - phi(x_i)|^2 = |Psi - phi(x_i)|^2 determines k(z, x_i) and thus d_i = |z - x_i|.  If
    the columns of X = U S V^T are the centred neighbours, and d0 their squared norms,

        z = mean - 1/2 U S^-1 V^T (d^2 - d0).

    For kernels that are functions of <x, z>, z is the point in the span of the neighbours that
    matches the inner products.
    """
    X, neighbours = target.candidates, target.neighbours(count)
    f = np.take_along_axis(target.candidate_values, neighbours, axis=1)
    if target.is_radial:
        k_zero = target.at_zero
        implied = f + 0.5 * (k_zero - target.squared_norms[:, None])
        f = np.clip(implied, _MIN_KERNEL_VALUE * k_zero if k_zero > 0 else -np.inf, k_zero)
    values = target.invert(f)
    solve = _trilaterate if target.is_radial else _min_norm_least_squares
    scale = target.core._scale(X.shape[1]) if target.is_radial else 1.0
    Z = np.empty((len(target), X.shape[1]))
    for block in row_blocks(len(target), 4 * count * X.shape[1]):
        Z[block] = solve(X[neighbours[block]] / scale, values[block]) * scale
    return Z


def _trilaterate(neighbours: np.ndarray, squared: np.ndarray) -> np.ndarray:
    """Return the points z (q, d) at given squared distances (q, count) from their neighbours.

    `neighbours` has shape (q, count, d).
    """
    mean = neighbours.mean(axis=1, keepdims=True)
    centred = neighbours - mean
    excess = squared - np.einsum("cij,cij->ci", centred, centred)
    # Centring removes the part that is common to all neighbours: the squared distance of z to
    # their span.
    excess -= excess.mean(axis=1, keepdims=True)
    return mean[:, 0] - 0.5 * _min_norm_least_squares(centred, excess)


def _min_norm_least_squares(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the minimum-norm least-squares solution z of `rows` z = `right` for each target."""
    # eigenvectors of `rows` times its transpose are faster than an SVD
    if rows.shape[1] < rows.shape[2]:
        values, U = np.linalg.eigh(rows @ rows.transpose(0, 2, 1))
        significant = values > _EIGENVALUE_CUTOFF * np.maximum(values[:, -1:], np.finfo(float).tiny)
        coordinates = np.einsum("cik,ci->ck", U, right)
        coordinates = np.divide(coordinates, values, out=np.zeros_like(values), where=significant)
        return np.einsum("ci,cij->cj", np.einsum("cik,ck->ci", U, coordinates), rows)
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    significant = s > _SINGULAR_VALUE_CUTOFF * np.maximum(s[:, :1], np.finfo(float).tiny)
    coordinates = np.einsum("cik,ci->ck", U, right)
    coordinates = np.divide(coordinates, s, out=np.zeros_like(s), where=significant)
    return np.einsum("ck,ckj->cj", coordinates, Vt)


def conformal(target: PreImageTarget, max_memory: Any = None) -> np.ndarray:
    """Return pre-images by a conformal map from feature space to the input space.

    Honeine & Richard (2011) choose coordinates of feature space in which inner products are close
    to <x_i, x_j>, with a ridge eta.  A target with coefficients g then has the pre-image z that
    solves X z = (X X^T - eta K^-1) g by least squares,

        z = X^T g - eta X^+ K^-1 g

    with the centred points X and K = k(X, X).  For each target, the eta with the smallest residual
    is used.
    """
    X, G = target.points, target.G
    mean = X.mean(axis=0)
    centred = X - mean
    K = gram(target.core, X, storage="dense", max_memory=max_memory)
    largest = float(np.max(np.abs(target.core.diag(X))))
    factor = Cholesky().factorize(K, 1e-10 * len(X) * largest, overwrite=True)
    correction = np.linalg.lstsq(centred, factor.solve(G.T), rcond=_SINGULAR_VALUE_CUTOFF)[0].T
    linear, rows = mean + G @ centred, np.arange(len(target))
    correction_norm = np.linalg.norm(correction, axis=1, keepdims=True)
    correction = (
        correction / np.where(correction_norm > 0, correction_norm, 1.0) * target.scale
    )  # makes eta independent of the scale of the data
    best = target.clip(linear)
    lowest = target.costs(best, rows)
    for eta in _RIDGES:
        Z = target.clip(linear - eta * correction)
        costs = target.costs(Z, rows)
        better = costs < lowest
        best, lowest = np.where(better[:, None], Z, best), np.where(better, costs, lowest)
    return best
