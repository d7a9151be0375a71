"""Rules that turn data into a scale.

    scale     gamma = 1 / (d Var X), over all entries
    auto      gamma = 1 / d
    median    gamma = 1 / (2 m^2),  m the median distance between two different points
    scott     gamma = 1 / (2 h^2),  h = s n^(-1 / (d + 4)),  s^2 the mean variance of a column
    silverman the same with h = s (n (d + 2) / 4)^(-1 / (d + 4))

The last two are the bandwidths of densities, and optimal for normal ones: they narrow as n grows.
All are in the convention exp(-gamma |x - z|^2), that is, gamma = 1 / (2 l^2).  Weights count as
repetitions: Var and the median are weighted, and n is the sum of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

__all__ = ["RULES", "gamma_from_rule", "median_distance", "spread_rows"]

RULES = ("scale", "auto", "median", "scott", "silverman")

# The median of a million pairs is known to three digits, which a rule of thumb does not need.
_MEDIAN_ROWS = 1000


def gamma_from_rule(rule: str, X: Any, weights: np.ndarray | None = None) -> float:
    """Return the gamma that `rule` gives for the vectors X."""
    if rule == "auto":
        return 1.0 / X.shape[1]
    if rule not in RULES:
        raise ValueError(
            f"unknown rule {rule!r} for a scale; use a positive number or one of {RULES}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if rule == "scale":
            variance = _variance(X, weights)
            gamma = 1.0 / (X.shape[1] * variance) if np.sqrt(variance) > _noise(X) else 1.0
        elif rule != "median":
            spread = _spread(X, weights)
            narrow = _narrowing(rule, X, weights)
            gamma = 0.5 / (spread * narrow) if np.sqrt(spread) > _noise(X) else 1.0
        else:
            gamma = 0.5 / np.square(median_distance(X, "euclidean", weights))
    if not 0.0 < gamma < np.inf:
        raise ValueError(
            f"the rule {rule!r} gives gamma = {gamma:g} for features up to {abs(X).max():.3g} in "
            f"size; scale the features"
        )
    return float(gamma)


def median_distance(
    X: Any,
    metric: str | Callable[[np.ndarray], np.ndarray],
    weights: np.ndarray | None = None,
) -> float:
    """Return the median distance between two different points of X, 1.0 if there are none.

    `metric` is the name of a metric that SciPy's `pdist` has, or a function that replaces `pdist`.
    Of more than 1000 rows, repetitions counted, 1000 evenly spaced ones are used, so that the same
    data give the same value.
    """
    n = X.shape[0]
    if max(n, 0.0 if weights is None else weights.sum()) > _MEDIAN_ROWS:
        rows, counts = np.unique(spread_rows(n, _MEDIAN_ROWS, weights), return_counts=True)
        weights = None if weights is None else counts.astype(float)
    else:
        rows = np.arange(n)
    sample = X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows], dtype=float)
    distances = metric(sample) if callable(metric) else pdist(sample, metric)
    apart = distances > 0
    if not apart.any():
        return 1.0
    if weights is None:
        return float(np.median(distances[apart]))
    i, j = np.triu_indices(len(rows), 1)  # the order of pdist
    return _weighted_median(distances[apart], (weights[i] * weights[j])[apart])


def spread_rows(n: int, most: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the indices of at most `most` of n rows, evenly spaced and in ascending order.

    With weights, a row is repeated as often as its weight says, and the indices are spaced evenly
    over these repetitions.  Weights that sum to less than n are relative: they are scaled to n.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels._bandwidth import spread_rows
    >>> spread_rows(5, 3), spread_rows(3, 10, np.array([1.0, 3.0, 1.0]))
    (array([0, 2, 4]), array([0, 1, 1, 1, 2]))
    """
    if weights is None:
        return np.linspace(0, n - 1, min(n, most)).astype(int)
    ends = np.cumsum(weights)
    total = float(ends[-1])
    repetitions = max(total, float(n))
    unit = total / repetitions  # 1 for integer weights
    positions = np.linspace(0.0, total - unit, min(round(repetitions), most))
    return np.minimum(np.searchsorted(ends, positions, side="right"), n - 1)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the median of values that occur as often as their weights say."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    below = int(np.searchsorted(share, 0.5 - 1e-12))
    above = min(int(np.searchsorted(share, 0.5 + 1e-12)), len(values) - 1)
    return float(0.5 * (values[order][below] + values[order][above]))


def _narrowing(rule: str, X: Any, weights: np.ndarray | None) -> float:
    """Return h^2 / s^2 of the rules of densities."""
    n, d = X.shape[0] if weights is None else float(weights.sum()), X.shape[1]
    count = n if rule == "scott" else n * (d + 2) / 4.0
    return float(count ** (-2.0 / (d + 4)))


def _noise(X: Any) -> float:
    """Return the standard deviation that rounding may leave of entries that are all equal."""
    eps = np.finfo(X.dtype).eps if X.dtype.kind == "f" else np.finfo(float).eps
    return float(4.0 * eps * float(abs(X).max()))


def _fractions(n: int, weights: np.ndarray | None) -> np.ndarray:
    """Return the fraction of the total weight that each of n rows has."""
    if weights is None or np.all(weights == weights[0]):
        return np.full(n, 1.0 / n)
    return weights / weights.sum()


def _canonical(X: Any) -> Any:
    """Return a CSR matrix with one stored value per entry."""
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    return X


def _spread(X: Any, weights: np.ndarray | None) -> float:
    """Return the mean of the variances of the columns."""
    fractions = _fractions(X.shape[0], weights)
    means = np.asarray(fractions @ X)
    if not sp.issparse(X):
        return float(np.mean(fractions @ np.square(X - means)))
    X = _canonical(X)
    present = X.copy()
    present.data = np.ones(len(X.data))
    full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    absent = np.where(full, 0.0, np.maximum(1.0 - np.asarray(fractions @ present), 0.0))
    X.data = np.square(X.data - means[X.indices])
    return float(np.mean(np.asarray(fractions @ X) + absent * means**2))


def _variance(X: Any, weights: np.ndarray | None = None) -> float:
    """Return the variance of all entries."""
    if weights is None and not sp.issparse(X):
        return float(X.var())
    fractions = _fractions(X.shape[0], weights) / X.shape[1]
    mean = float(np.sum(fractions @ X))
    if not sp.issparse(X):
        return float(np.sum(fractions @ np.square(X - mean)))
    X = _canonical(X)
    absent = float(fractions @ (X.shape[1] - np.diff(X.indptr)))  # entries that are 0
    X.data = np.square(X.data - mean)
    return float(np.sum(fractions @ X)) + absent * mean**2
