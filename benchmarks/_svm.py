"""Support vector machines: their objectives in float64, the same for everybody.

For every pair of classes, f = Σᵢ aᵢ k(xᵢ, ·) with |aᵢ| ≤ C, opposite signs in the two classes, and
Σᵢ aᵢ = 0.  For any such a and any b, with K of its support vectors and y = ±1,

    Σ|aᵢ| − aᵀKa / 2   ≤   aᵀKa / 2 + C Σᵢ max(0, 1 − yᵢ (f(xᵢ) + b))

The left side, summed over the pairs, is what a fit has to make large; where both sides agree, that
is proved to be all there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ._problems import draw

TILE = 1000


def scale(X: np.ndarray) -> float:
    """scikit-learn's γ = "scale"."""
    return 1.0 / (X.shape[1] * X.var())


# ------------------------------------------------------------------------- one fit, as an array


def packed(support: np.ndarray, dual_coef: np.ndarray) -> np.ndarray:
    """Return the indices of the support vectors, and below them the coefficients."""
    return np.vstack([support, np.atleast_2d(np.asarray(dual_coef))])


class _Pair(NamedTuple):
    """The support vectors of two classes: which training rows, and a."""

    classes: tuple
    rows: np.ndarray
    a: np.ndarray


def pairs(result: np.ndarray, y: np.ndarray) -> Iterator[_Pair]:
    """Yield every pair of classes, from the layout that scikit-learn and LIBSVM share."""
    support, coefficients = result[0].astype(int), result[1:]
    classes = np.unique(y)
    members = [np.flatnonzero(y[support] == c) for c in classes]
    for i, j in combinations(range(len(classes)), 2):
        columns = np.concatenate([members[i], members[j]])
        a = np.concatenate([coefficients[j - 1, members[i]], coefficients[i, members[j]]])
        kept = a != 0.0
        yield _Pair((classes[i], classes[j]), support[columns[kept]], a[kept])


def values(X: np.ndarray, Z: np.ndarray, a: np.ndarray, gamma: float) -> np.ndarray:
    """f(x) = Σⱼ aⱼ exp(−γ‖x − zⱼ‖²), in tiles."""
    f, squares = np.empty(len(X)), np.square(Z).sum(axis=1)
    for start in range(0, len(X), TILE):
        tile = X[start : start + TILE]
        K = tile @ Z.T
        K *= -2.0
        K += squares
        K += np.square(tile).sum(axis=1, keepdims=True)
        np.maximum(K, 0.0, out=K)
        K *= -gamma
        f[start : start + TILE] = np.exp(K, out=K) @ a
    return f


def dual(result: np.ndarray, C: float, **which) -> float:
    """Return the dual objective, or −∞ for coefficients that break a constraint."""
    X, y, *_ = draw(**which)
    gamma = scale(X)
    total = 0.0
    for pair in pairs(result, y):
        if not len(pair.a):  # f = 0
            continue
        signs = np.where(y[pair.rows] == pair.classes[0], 1.0, -1.0)
        signs *= np.sign(signs @ pair.a) or 1.0  # two classes: the second is positive
        a = signs * pair.a
        if a.min() < 0.0 or a.max() > C * (1 + 1e-9) or abs(pair.a.sum()) > 1e-6 * a.sum():
            return -math.inf
        Z = X[pair.rows]
        total += a.sum() - 0.5 * pair.a @ values(Z, Z, pair.a, gamma)
    return float(total)


def primal(result: np.ndarray, C: float, **which) -> float:
    """Return the primal objective of the same functions, each with the best b: an upper bound."""
    X, y, *_ = draw(**which)
    gamma = scale(X)
    total = 0.0
    for pair in pairs(result, y):
        both = np.isin(y, pair.classes)
        signs = np.where(y[both] == pair.classes[0], 1.0, -1.0)
        ours = np.where(y[pair.rows] == pair.classes[0], 1.0, -1.0)
        signs *= np.sign(ours @ pair.a) or 1.0
        f = values(X[both], X[pair.rows], pair.a, gamma)
        at = np.searchsorted(np.flatnonzero(both), pair.rows)
        total += 0.5 * pair.a @ f[at] + C * least_hinge(f, signs)
    return float(total)


def least_hinge(f: np.ndarray, signs: np.ndarray) -> float:
    """min over b of Σ max(0, 1 − yᵢ (fᵢ + b)), which is convex with its kinks at b = yᵢ − fᵢ."""
    kinks = np.sort(signs - f)
    # the slope begins at −(number of y = +1) and grows by one at every kink
    b = kinks[min(np.count_nonzero(signs > 0), len(kinks) - 1)]
    return float(np.maximum(0.0, 1.0 - signs * (f + b)).sum())
