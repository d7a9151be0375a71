"""Pre-images by a regression learned from pairs (phi(x_i), x_i) (Bakir, Weston & Schoelkopf 2004).

    z = mean + sum_i c_i l(Psi, phi(x_i)),      (L + shift) c = X - mean

This is kernel ridge regression from the target Psi to the pre-image z, with a kernel l on feature
space: the inner product, or a Gaussian of the distance.  L is the matrix of all
l(phi(x_i), phi(x_j)), and shift is the ridge.  The kernel, its width and the ridge are chosen to
minimise leave-one-out errors: with A = (L + shift)^-1 and c = A (X - mean), the error at point i is
c_i / A_ii.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._core import NotPositiveDefiniteError, check_budget, entry_point
from ..._core.linalg import cho_factor, cho_solve, eigh, lapack
from ...gram import gram
from ._preimage_target import PreImageTarget

__all__ = ["MapChoice", "choose_regression_map", "evenly_spaced_indices", "learned_preimages"]

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
        ridges = (
            _RELATIVE_RIDGES * (float(np.mean(np.diagonal(L))) or 1.0) if shift is None else [shift]
        )
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


def learned_preimages(
    target: PreImageTarget, max_memory: Any = None
) -> tuple[np.ndarray, MapChoice]:
    """Return the pre-images of the targets by a learned regression, and its parameters."""
    X = target.candidates
    subset = evenly_spaced_indices(len(X))
    choice = choose_regression_map(target.core(X[subset]), X[subset])
    n = len(X)
    check_budget(16 * n * n, max_memory, f"a regression on {n} points")
    K = gram(target.core, X, storage="dense", max_memory=max_memory).to_array()
    rows = target.candidate_values
    if choice.width is not None:
        rows = rows - 0.5 * target.squared_norms[:, None]
        rows = _gaussian(np.diagonal(K) - 2.0 * rows, choice.width)
        K = _gaussian(_squared_distances(K), choice.width)
    mean = X.mean(axis=0)
    K[np.diag_indices(n)] += choice.shift
    try:
        factor = cho_factor(K, overwrite_a=True)
    except np.linalg.LinAlgError as why:
        raise NotPositiveDefiniteError(
            f"the linear system of a regression on {n} points is singular, even with "
            f"{choice.shift:.1g} added to its diagonal; the usual cause is a kernel whose values "
            f"are nearly equal for all points. Use another method, or a narrower kernel"
        ) from why
    return mean + rows @ cho_solve(factor, X - mean), choice


def _squared_distances(inner: np.ndarray) -> np.ndarray:
    diagonal = np.diagonal(inner)
    return np.maximum(diagonal[:, None] + diagonal - 2.0 * inner, 0.0)


def _gaussian(D: np.ndarray, width: float) -> np.ndarray:
    return np.exp(D * (-0.5 / width**2))
