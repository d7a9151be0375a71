"""A map learned from pairs (phi(x_i), x_i): Bakir, Weston & Schoelkopf (2004).

    z = mean + sum_i c_i l(Psi, phi(x_i)),      (L + shift) c = X - mean

Ridge regression with a kernel l of its own on feature space: linear, or a Gaussian of the distance
there.  Which one, how wide, and how strong the ridge is, leave-one-out decides: with
A = (L + shift)^-1 and c = A (X - mean), the error at a point left out is c_i / A_ii.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._runtime import check_budget, entry_point
from .._runtime.linalg import cho_factor, cho_solve, eigh, lapack
from ..gram import gram
from ._target import Target

__all__ = ["Choice", "choose_map", "evenly", "learned"]

_WIDTHS = 2.0 ** np.arange(-4, 5)  # squared widths, in units of the median squared distance
_SHIFTS = 10.0 ** np.arange(-8, 1)  # ridges, in units of the mean of the diagonal of L
_TRIED = 300  # points on which the choice is made; the map itself uses all of them


class Choice(NamedTuple):
    """The kernel l and its ridge."""

    width: float | None  # of the Gaussian exp(-|.|^2 / (2 width^2)); None is the inner product
    shift: float
    error: float  # mean squared error of points left out


def evenly(n: int) -> np.ndarray:
    """Return the places, evenly spread over n, on which a choice is made."""
    return np.unique(np.linspace(0, n - 1, min(n, _TRIED)).astype(int))


@entry_point
def choose_map(inner: np.ndarray, X: np.ndarray, shift: float | None = None) -> Choice:
    """Return the map from inputs with these inner products to X that predicts best, left out.

    `shift` is the ridge, if it is given; otherwise it is chosen, too.
    """
    X = X - X.mean(axis=0)
    D = _squared_distances(inner)
    apart = D[D > 0]
    middle = float(np.median(apart)) if apart.size else 1.0
    choices = []
    for width in (None, *np.sqrt(middle * _WIDTHS).tolist()):
        L = inner if width is None else _gaussian(D, width)
        if shift and (left_out := _left_out(L, shift, X)) is not None:
            choices.append(Choice(width, float(shift), float(np.mean(left_out**2))))
            continue
        values, vectors = eigh(L)
        if values[0] < -1e-8 * max(values[-1], 0.0):
            continue  # inner products of a kernel that is only conditionally positive definite
        ridges = _SHIFTS * (float(np.mean(np.diagonal(L))) or 1.0) if shift is None else [shift]
        rotated, squares = vectors.T @ X, vectors**2
        for ridge in ridges:
            inverse = 1.0 / np.maximum(values + ridge, np.finfo(float).eps * abs(values[-1]))
            left_out = vectors @ (inverse[:, None] * rotated) / (squares @ inverse)[:, None]
            choices.append(Choice(width, float(ridge), float(np.mean(left_out**2))))
    if not choices:
        raise NotPositiveDefiniteError(
            "no map can be learned, because inner products in feature space are indefinite; the "
            "usual cause is a similarity that is not a kernel. Use another method"
        )
    return min(choices, key=lambda choice: choice.error)


def _left_out(L: np.ndarray, shift: float, X: np.ndarray) -> np.ndarray | None:
    """Return the errors at points left out for one ridge, a third of the work of eigenvectors."""
    factor, info = lapack.dpotrf(L + shift * np.eye(len(L)), lower=1)
    if info:
        return None
    coefficients = lapack.dpotrs(factor, X, lower=1)[0]
    return np.asarray(coefficients / lapack.dpotri(factor, lower=1)[0].diagonal()[:, None])


def learned(target: Target, max_memory: Any = None) -> tuple[np.ndarray, Choice]:
    """Return the images of Psi under the map learned from the candidates, and which map it is."""
    X = target.candidates
    some = evenly(len(X))
    choice = choose_map(target.core(X[some]), X[some])
    n = len(X)
    check_budget(16 * n * n, max_memory, f"a map learned from {n} points")
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
            f"the system of a map learned from {n} points is singular, with {choice.shift:.1g} "
            f"added to its diagonal; the usual cause is a kernel that can hardly tell the points "
            f"apart. Use another method, or a narrower kernel"
        ) from why
    return mean + rows @ cho_solve(factor, X - mean), choice


def _squared_distances(inner: np.ndarray) -> np.ndarray:
    own = np.diagonal(inner)
    return np.maximum(own[:, None] + own - 2.0 * inner, 0.0)


def _gaussian(D: np.ndarray, width: float) -> np.ndarray:
    return np.exp(D * (-0.5 / width**2))
