"""Pre-images in closed form: from neighbours, their distances, the geometry of all points.

None of them iterates; each is an answer by itself, and a start for those that do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from ..gram import gram
from ..kernels import Linear, Polynomial, ThinPlate
from ..solvers import Cholesky
from ._target import Target, parts

__all__ = ["conformal", "convex", "distance", "has_distance", "nearest"]

_SMALLEST_VALUE = 1e-6  # times k(x, x): a smaller kernel value no longer tells a distance
_CUTOFF = 1e-8  # times the largest singular value: along the rest, neighbours tell nothing
_SQUARED_CUTOFF = 1e-13  # times the largest eigenvalue, a square, which has half the digits
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # tried by "conformal"


def nearest(target: Target) -> np.ndarray:
    """Return the place of the candidate with the smallest |phi(x_i) - Psi|, for each target."""
    return np.argmin(target.candidate_costs, axis=1)


def convex(target: Target, count: int) -> np.ndarray:
    """Return z = sum_i w_i x_i with w >= 0, sum w = 1 minimising |sum_i w_i phi(x_i) - Psi|.

    Over the neighbours of Psi: a small quadratic programme for each target.
    """
    X, places = target.candidates, target.neighbours(count)
    Z = np.empty((len(target), X.shape[1]))
    for c, near in enumerate(places):
        K, f = target.core(X[near]), target.candidate_values[c, near]
        values, vectors = np.linalg.eigh(K)
        root = np.sqrt(np.maximum(values, 1e-10 * max(values[-1], np.finfo(float).tiny)))
        # |root V^T w - V^T f / root|^2 is the distance, and a heavy row says that w sums to 1
        heavy = 1e3 * root[-1]
        A = np.vstack([root[:, None] * vectors.T, np.full(len(near), heavy)])
        w, _ = nnls(A, np.append(vectors.T @ f / root, heavy))
        total = w.sum()
        Z[c] = w @ X[near] / total if total > 0 else X[near[0]]
    return Z


def has_distance(target: Target) -> bool:
    """Tell whether a kernel value says how far apart, or at what angle, two points are."""
    kernel = target.core
    if isinstance(kernel, Polynomial):
        return bool(kernel.degree % 2 or kernel.coef0 > 0)  # else x and -x look the same
    return isinstance(kernel, Linear) or (target.is_radial and not isinstance(kernel, ThinPlate))


def distance(target: Target, count: int) -> np.ndarray:
    """Return the z whose distances to the neighbours are those that Psi asks for.

    Kwok & Tsang (2004): |phi(z) - phi(x_i)|^2 = |Psi - phi(x_i)|^2 gives k(z, x_i), hence
    d_i = |z - x_i|; with the neighbours centred, X = U S V^T and squared norms d0,

        z = mean - 1/2 U S^-1 V^T (d^2 - d0).

    For functions of <x, z> the inner products are met instead, in the span of the neighbours.
    """
    X, places = target.candidates, target.neighbours(count)
    f = np.take_along_axis(target.candidate_values, places, axis=1)
    if target.is_radial:
        top = target.at_zero
        wanted = f + 0.5 * (top - target.squared_norms[:, None])
        f = np.clip(wanted, _SMALLEST_VALUE * top if top > 0 else -np.inf, top)
    values = target.invert(f)
    meet = _meet_distances if target.is_radial else _least
    scale = target.core._scale(X.shape[1]) if target.is_radial else 1.0
    Z = np.empty((len(target), X.shape[1]))
    for part in parts(len(target), 4 * count * X.shape[1]):
        Z[part] = meet(X[places[part]] / scale, values[part]) * scale
    return Z


def _meet_distances(near: np.ndarray, squared: np.ndarray) -> np.ndarray:
    """Return points at these squared distances from their neighbours, (q, count, d)."""
    mean = near.mean(axis=1, keepdims=True)
    centred = near - mean
    gap = squared - np.einsum("cij,cij->ci", centred, centred)
    # centring takes the common part of the gap, which is the distance to the span
    gap -= gap.mean(axis=1, keepdims=True)
    return mean[:, 0] - 0.5 * _least(centred, gap)


def _least(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the shortest least-squares solutions z of rows z = right, one system per target."""
    if rows.shape[1] < rows.shape[2]:  # rows rows^T is small, and far quicker to decompose
        values, U = np.linalg.eigh(rows @ rows.transpose(0, 2, 1))
        kept = values > _SQUARED_CUTOFF * np.maximum(values[:, -1:], np.finfo(float).tiny)
        coordinates = np.einsum("cik,ci->ck", U, right)
        coordinates = np.divide(coordinates, values, out=np.zeros_like(values), where=kept)
        return np.einsum("ci,cij->cj", np.einsum("cik,ck->ci", U, coordinates), rows)
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    kept = s > _CUTOFF * np.maximum(s[:, :1], np.finfo(float).tiny)
    coordinates = np.einsum("cik,ci->ck", U, right)
    coordinates = np.divide(coordinates, s, out=np.zeros_like(s), where=kept)
    return np.einsum("ck,ckj->cj", coordinates, Vt)


def conformal(target: Target, max_memory: Any = None) -> np.ndarray:
    """Return the z whose inner products with the points are those of a conformal map.

    Honeine & Richard (2011): coordinates of feature space in which <phi(x_i), phi(x_j)> is
    <x_i, x_j>, up to a ridge eta:  X z = (X X^T - eta K^-1) g, in the sense of least squares, so

        z = X^T g - eta X^+ K^-1 g

    with X centred.  The ridge is the one of a few, for each target, with the smallest residual.
    """
    X, G = target.points, target.G
    mean = X.mean(axis=0)
    centred = X - mean
    K = gram(target.core, X, storage="dense", max_memory=max_memory)
    size = float(np.max(np.abs(target.core.diag(X))))
    factor = Cholesky().factorize(K, 1e-10 * len(X) * size, overwrite=True)
    bent = np.linalg.lstsq(centred, factor.solve(G.T), rcond=_CUTOFF)[0].T
    flat, rows = mean + G @ centred, np.arange(len(target))
    strength = np.linalg.norm(bent, axis=1, keepdims=True)
    bent = bent / np.where(strength > 0, strength, 1.0) * target.scale  # eta in units of the data
    best = target.clip(flat)
    lowest = target.costs(best, rows)
    for eta in _RIDGES:
        Z = target.clip(flat - eta * bent)
        costs = target.costs(Z, rows)
        better = costs < lowest
        best, lowest = np.where(better[:, None], Z, best), np.where(better, costs, lowest)
    return best
