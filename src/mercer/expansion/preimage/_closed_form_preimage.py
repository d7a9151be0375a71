"""Pre-image methods that need no iteration.

They use the nearest neighbours of a target Psi, the distances to these, or inner products of all
points.  The results are pre-images, and can also be the starts of iterative methods.

`learned_preimages` learns a regression from pairs (phi(x_i), x_i) (Bakir, Weston & Schoelkopf
2004):

    z = mean + sum_i c_i l(Psi, phi(x_i)),      (L + shift) c = X - mean

This is kernel ridge regression from the target Psi to the pre-image z, with a kernel l on feature
space: the inner product, or a Gaussian of the distance.  L is the matrix of all
l(phi(x_i), phi(x_j)), and shift is the ridge.  The kernel, its width and the ridge are chosen to
minimise leave-one-out errors: with A = (L + shift)^-1 and c = A (X - mean), the error at point i is
c_i / A_ii.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from ..._core import MemoryLimit, NotPositiveDefiniteError, check_budget, entry_point
from ..._core.linalg import cho_factor, cho_solve, eigh, lapack
from ...gram import gram
from ...kernels import Linear, Polynomial, ThinPlate
from ...solvers import Cholesky
from ._preimage_target import PreImageTarget, row_blocks

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


def conformal(target: PreImageTarget, max_memory: MemoryLimit = None) -> np.ndarray:
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
    norms = np.linalg.norm(correction, axis=1, keepdims=True)
    # Scale the corrections, so that eta does not depend on the scale of the data.
    correction = correction / np.where(norms > 0, norms, 1.0) * target.scale
    best = target.clip(linear)
    lowest = target.costs(best, rows)
    for eta in _RIDGES:
        Z = target.clip(linear - eta * correction)
        costs = target.costs(Z, rows)
        better = costs < lowest
        best, lowest = np.where(better[:, None], Z, best), np.where(better, costs, lowest)
    return best


# ---------------------------------------------------------------------- learned regression

# Squared widths to try, in units of the median squared distance.
_RELATIVE_WIDTHS = 2.0 ** np.arange(-4, 5)
_RELATIVE_RIDGES = 10.0 ** np.arange(-8, 1)  # ridges to try, in units of the mean diagonal of L
_MAX_SELECTION_POINTS = 300  # at most this many points are used to select the kernel and ridge


class MapChoice(NamedTuple):
    """The kernel and ridge that were selected for the regression."""

    width: float | None  # width of the Gaussian; None for the inner product
    shift: float  # the ridge
    error: float  # mean squared leave-one-out error


def evenly_spaced_indices(n: int) -> np.ndarray:
    """Return at most 300 evenly spaced indices below n, for the selection of kernel and ridge."""
    return np.unique(np.linspace(0, n - 1, min(n, _MAX_SELECTION_POINTS)).astype(int))


@entry_point
def choose_regression_map(
    inner: np.ndarray, X: np.ndarray, shift: float | None = None
) -> MapChoice:
    """Return the kernel and ridge with the smallest leave-one-out error.

    Parameters
    ----------
    inner : ndarray of shape (n, n)
        Inner products of the inputs of the regression.
    X : ndarray of shape (n, d)
        Outputs of the regression.
    shift : float, optional
        The ridge; by default it is selected too.

    Returns
    -------
    MapChoice
    """
    X = X - X.mean(axis=0)
    D = _squared_distances(inner)
    positive = D[D > 0]
    median = float(np.median(positive)) if positive.size else 1.0
    choices = []
    for width in (None, *np.sqrt(median * _RELATIVE_WIDTHS).tolist()):
        L = inner if width is None else _gaussian(D, width)
        if shift and (errors := _leave_one_out_errors(L, shift, X)) is not None:
            choices.append(MapChoice(width, float(shift), float(np.mean(errors**2))))
            continue
        values, vectors = eigh(L)
        if values[0] < -1e-8 * max(values[-1], 0.0):
            continue  # L is indefinite; the kernel may be only conditionally definite
        mean_diagonal = float(np.mean(np.diagonal(L))) or 1.0
        ridges = _RELATIVE_RIDGES * mean_diagonal if shift is None else [shift]
        rotated, squares = vectors.T @ X, vectors**2
        for ridge in ridges:
            inverse = 1.0 / np.maximum(values + ridge, np.finfo(float).eps * abs(values[-1]))
            errors = vectors @ (inverse[:, None] * rotated) / (squares @ inverse)[:, None]
            choices.append(MapChoice(width, float(ridge), float(np.mean(errors**2))))
    if not choices:
        raise NotPositiveDefiniteError(
            "no regression can be learned, because the inner products in feature space are not "
            "positive semidefinite; the usual cause is a similarity that is not a kernel. Use "
            "another method"
        )
    return min(choices, key=lambda choice: choice.error)


def _leave_one_out_errors(L: np.ndarray, shift: float, X: np.ndarray) -> np.ndarray | None:
    """Return the leave-one-out errors for one ridge, or None if L + shift is not definite.

    For one ridge, a Cholesky factor takes a third of the time of an eigendecomposition.
    """
    factor, info = lapack.dpotrf(L + shift * np.eye(len(L)), lower=1)
    if info:
        return None
    coefficients = lapack.dpotrs(factor, X, lower=1)[0]
    return np.asarray(coefficients / lapack.dpotri(factor, lower=1)[0].diagonal()[:, None])


class _Regression(NamedTuple):
    """A regression from feature space to the candidates."""

    choice: MapChoice
    diagonal: np.ndarray  # |phi(x_i)|^2 of the candidates
    coefficients: np.ndarray


_MAX_CACHED_POINTS = 1000  # regressions on more points are not cached
_MAX_CACHED_REGRESSIONS = 4
_regressions: OrderedDict[tuple[Any, ...], _Regression] = OrderedDict()
_regressions_lock = threading.Lock()


def learned_preimages(
    target: PreImageTarget, max_memory: MemoryLimit = None
) -> tuple[np.ndarray, MapChoice]:
    """Return the pre-images of the targets by a learned regression, and its parameters.

    The regression does not depend on the targets.  The most recent regressions are cached, because
    the explorer computes one pre-image after each click.
    """
    X = target.candidates
    n = len(X)
    check_budget(16 * n * n, max_memory, f"a regression on {n} points")
    key = (target.core, X.shape, hashlib.blake2b(np.ascontiguousarray(X).data).digest())
    with _regressions_lock:
        regression = _regressions.get(key)
    if regression is None:
        regression = _fit_regression(target, max_memory)
    if n <= _MAX_CACHED_POINTS:
        with _regressions_lock:
            _regressions[key] = regression
            _regressions.move_to_end(key)
            if len(_regressions) > _MAX_CACHED_REGRESSIONS:
                _regressions.popitem(last=False)
    choice, rows = regression.choice, target.candidate_values
    if choice.width is not None:
        rows = rows - 0.5 * target.squared_norms[:, None]
        rows = _gaussian(regression.diagonal - 2.0 * rows, choice.width)
    return X.mean(axis=0) + rows @ regression.coefficients, choice


def _fit_regression(target: PreImageTarget, max_memory: MemoryLimit) -> _Regression:
    """Return the regression from feature space to the candidates of a target."""
    X = target.candidates
    subset = evenly_spaced_indices(len(X))
    choice = choose_regression_map(target.core(X[subset]), X[subset])
    n = len(X)
    K = gram(target.core, X, storage="dense", max_memory=max_memory).to_array()
    diagonal = np.diagonal(K).copy()
    if choice.width is not None:
        K = _gaussian(_squared_distances(K), choice.width)
    K[np.diag_indices(n)] += choice.shift
    try:
        factor = cho_factor(K, overwrite_a=True)
    except np.linalg.LinAlgError as why:
        raise NotPositiveDefiniteError(
            f"the linear system of a regression on {n} points is singular, even with "
            f"{choice.shift:.1g} added to its diagonal; the usual cause is a kernel whose values "
            f"are nearly equal for all points. Use another method, or a narrower kernel"
        ) from why
    return _Regression(choice, diagonal, cho_solve(factor, X - X.mean(axis=0)))


def _squared_distances(inner: np.ndarray) -> np.ndarray:
    diagonal = np.diagonal(inner)
    return np.maximum(diagonal[:, None] + diagonal - 2.0 * inner, 0.0)


def _gaussian(D: np.ndarray, width: float) -> np.ndarray:
    return np.exp(D * (-0.5 / width**2))
