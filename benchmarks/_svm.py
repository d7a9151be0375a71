"""Primal and dual objectives of support vector machines, computed in float64 for every library.

For each pair of classes, f = Σᵢ aᵢ k(xᵢ, ·) with |aᵢ| ≤ C, opposite signs in the two classes, and
Σᵢ aᵢ = 0.  For any such a and any b, with K of its support vectors and y = ±1,

    Σ|aᵢ| − aᵀKa / 2   ≤   aᵀKa / 2 + C Σᵢ max(0, 1 − yᵢ (f(xᵢ) + b))

The left side, the dual objective, summed over all pairs of classes, is what a fit maximises.  If
both sides agree, the fit is proved to be optimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ._problems import load_problem

ROWS_PER_TILE = 1000


def scale_gamma(X: np.ndarray) -> float:
    """Return the value of γ that scikit-learn uses for `gamma="scale"`."""
    return 1.0 / (X.shape[1] * X.var())


# ----------------------------------------------------------------------- one fit as one array


def pack_dual_coefficients(support: np.ndarray, dual_coef: np.ndarray) -> np.ndarray:
    """Return one array: the indices of the support vectors in row 0, the coefficients below."""
    return np.vstack([support, np.atleast_2d(np.asarray(dual_coef))])


class _Pair(NamedTuple):
    """The support vectors of two classes: their training rows, and their coefficients a."""

    classes: tuple
    rows: np.ndarray
    a: np.ndarray


def class_pairs(result: np.ndarray, y: np.ndarray) -> Iterator[_Pair]:
    """Yield every pair of classes, from the layout of `dual_coef_` in scikit-learn and LIBSVM."""
    support, coefficients = result[0].astype(int), result[1:]
    classes = np.unique(y)
    members = [np.flatnonzero(y[support] == c) for c in classes]
    for i, j in combinations(range(len(classes)), 2):
        columns = np.concatenate([members[i], members[j]])
        a = np.concatenate([coefficients[j - 1, members[i]], coefficients[i, members[j]]])
        nonzero = a != 0.0
        yield _Pair((classes[i], classes[j]), support[columns[nonzero]], a[nonzero])


def decision_values(X: np.ndarray, Z: np.ndarray, a: np.ndarray, gamma: float) -> np.ndarray:
    """Return f(x) = Σⱼ aⱼ exp(−γ‖x − zⱼ‖²), computed in tiles."""
    f, squares = np.empty(len(X)), np.square(Z).sum(axis=1)
    for start in range(0, len(X), ROWS_PER_TILE):
        tile = X[start : start + ROWS_PER_TILE]
        K = tile @ Z.T
        K *= -2.0
        K += squares
        K += np.square(tile).sum(axis=1, keepdims=True)
        np.maximum(K, 0.0, out=K)
        K *= -gamma
        f[start : start + ROWS_PER_TILE] = np.exp(K, out=K) @ a
    return f


def dual_objective(result: np.ndarray, C: float, **problem) -> float:
    """Return the dual objective, or −∞ if the coefficients violate a constraint."""
    X, y, *_ = load_problem(**problem)
    gamma = scale_gamma(X)
    total = 0.0
    for pair in class_pairs(result, y):
        if not len(pair.a):  # f = 0 contributes nothing
            continue
        signs = np.where(y[pair.rows] == pair.classes[0], 1.0, -1.0)
        signs *= np.sign(signs @ pair.a) or 1.0  # with two classes, the second one is positive
        a = signs * pair.a
        if a.min() < 0.0 or a.max() > C * (1 + 1e-9) or abs(pair.a.sum()) > 1e-6 * a.sum():
            return -math.inf
        Z = X[pair.rows]
        total += a.sum() - 0.5 * pair.a @ decision_values(Z, Z, pair.a, gamma)
    return float(total)


def primal_objective(result: np.ndarray, C: float, **problem) -> float:
    """Return the primal objective of the same functions with the optimal b, an upper bound."""
    X, y, *_ = load_problem(**problem)
    gamma = scale_gamma(X)
    total = 0.0
    for pair in class_pairs(result, y):
        in_pair = np.isin(y, pair.classes)
        signs = np.where(y[in_pair] == pair.classes[0], 1.0, -1.0)
        support_signs = np.where(y[pair.rows] == pair.classes[0], 1.0, -1.0)
        signs *= np.sign(support_signs @ pair.a) or 1.0
        f = decision_values(X[in_pair], X[pair.rows], pair.a, gamma)
        support_positions = np.searchsorted(np.flatnonzero(in_pair), pair.rows)
        total += 0.5 * pair.a @ f[support_positions] + C * min_hinge_loss(f, signs)
    return float(total)


def min_hinge_loss(f: np.ndarray, signs: np.ndarray) -> float:
    """Return min over b of Σ max(0, 1 − yᵢ (fᵢ + b)).

    The sum is a convex, piecewise linear function of b with kinks at b = yᵢ − fᵢ.
    """
    kinks = np.sort(signs - f)
    # The slope starts at −(number of y = +1) and increases by one at every kink.
    b = kinks[min(np.count_nonzero(signs > 0), len(kinks) - 1)]
    return float(np.maximum(0.0, 1.0 - signs * (f + b)).sum())
