"""LIBSVM's layout of the coefficients of q (q - 1) / 2 functions, one for each pair of classes.

A support vector of class a has q - 1 coefficients, one for each other class b: in row b - 1 of
`dual_coef_` if b > a, else in row b.  So k(x, x_i) is evaluated once and summed q - 1 times, not
q (q - 1) / 2 times.  A machine of one function is the case q = 2, whatever its points are.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ..._points import length, take
from ...gram import gram
from ...kernels import Kernel

__all__ = ["coefficients_of_pairs", "sums_of_pairs", "votes_of_pairs"]

_FEW = 2**18  # entries of k(X, support vectors) that are held rather than evaluated by class


def coefficients_of_pairs(dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return the coefficients of each function, (support vectors, pairs).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.svm._pairs import coefficients_of_pairs
    >>> coefficients_of_pairs(np.array([[1.0, -2.0, -3.0], [4.0, 5.0, -6.0]]), np.ones(3, int))
    array([[ 1.,  4.,  0.],
           [-2.,  0.,  5.],
           [ 0., -3., -6.]])
    """
    if len(dual_coef) == 1:
        return dual_coef.T
    q, parts = len(dual_coef) + 1, _parts(n_support)
    A = np.zeros((dual_coef.shape[1], q * (q - 1) // 2))
    for p, (a, b) in enumerate(combinations(range(q), 2)):
        A[parts[a], p] = dual_coef[b - 1, parts[a]]
        A[parts[b], p] = dual_coef[a, parts[b]]
    return A


def sums_of_pairs(
    kernel: Kernel, X: Any, points: Any, dual_coef: np.ndarray, n_support: np.ndarray
) -> np.ndarray:
    """Return sum_i v_i k(x_i, .) at X for each function, (n, pairs), in tiles."""
    q = len(dual_coef) + 1
    if q == 2:
        return np.asarray(gram(kernel, X, points) @ dual_coef.T)
    out = np.zeros((length(X), q * (q - 1) // 2))
    few = length(X) * length(points) <= _FEW
    K = gram(kernel, X, points).to_array() if few else None
    for c, part in enumerate(_parts(n_support)):
        if part.start < part.stop:
            V = np.ascontiguousarray(dual_coef[:, part].T)
            own = gram(kernel, X, take(points, part)) if K is None else K[:, part]
            out[:, _pairs_of(c, q)] += np.asarray(own @ V)
    return out


def _pairs_of(c: int, q: int) -> np.ndarray:
    """Return the numbers of the pairs that class c is in, by the other class."""
    other = np.delete(np.arange(q), c)
    a, b = np.minimum(c, other), np.maximum(c, other)
    return a * q - a * (a + 1) // 2 + b - a - 1


def votes_of_pairs(values: np.ndarray, q: int) -> np.ndarray:
    """Return how many functions are for each class, (n, q): f > 0 for the first, else the second.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.svm._pairs import votes_of_pairs
    >>> votes_of_pairs(np.array([[1.0, -1.0, 0.0]]), 3)  # 0 beats 1, 2 beats 0, 2 beats 1
    array([[1., 0., 2.]])
    """
    first, second = np.triu_indices(q, 1)
    return (values > 0) @ np.eye(q)[first] + (values <= 0) @ np.eye(q)[second]


def _parts(n_support: np.ndarray) -> list[slice]:
    """Return the support vectors of each class."""
    ends = np.concatenate([[0], np.cumsum(n_support)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
