"""LIBSVM's layout of the coefficients of q (q - 1) / 2 functions, one for each pair of classes.

A support vector of class a has q - 1 coefficients, one for each other class b: in row b - 1 of
`dual_coef_` if b > a, else in row b.  So k(x, x_i) is evaluated once and summed q - 1 times, not
q (q - 1) / 2 times.  A machine of one function is the case q = 2, whatever its points are.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from .._points import length, take
from ..gram import gram
from ..kernels import Kernel

__all__ = ["coefficients_of_pairs", "sums_of_pairs"]


def coefficients_of_pairs(dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return the coefficients of each function, (support vectors, pairs).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators._svm_pairs import coefficients_of_pairs
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
    out = np.zeros((length(X), q * (q - 1) // 2))
    pairs = list(combinations(range(q), 2))
    for c, part in enumerate(_parts(n_support) if q > 2 else [slice(0, dual_coef.shape[1])]):
        if part.start == part.stop:
            continue
        V = np.ascontiguousarray(dual_coef[:, part].T)
        sums = np.asarray(gram(kernel, X, take(points, part)) @ V)
        if q == 2:
            return sums
        for p, (a, b) in enumerate(pairs):
            if c in (a, b):
                out[:, p] += sums[:, b - 1 if c == a else a]
    return out


def _parts(n_support: np.ndarray) -> list[slice]:
    """Return the support vectors of each class."""
    ends = np.concatenate([[0], np.cumsum(n_support)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
