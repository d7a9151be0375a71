"""Rules that turn data into a scale.

    scale     gamma = 1 / (d Var X), over all entries
    auto      gamma = 1 / d
    median    gamma = 1 / (2 m^2),  m the median distance between two different points
    scott     gamma = 1 / (2 h^2),  h = s n^(-1 / (d + 4)),  s^2 the mean variance of a column
    silverman the same with h = s (n (d + 2) / 4)^(-1 / (d + 4))

The last two are those of densities, where they are best if that is normal: they narrow as n grows.
All are in the convention exp(-gamma |x - z|^2), that is, gamma = 1 / (2 l^2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

__all__ = ["RULES", "gamma_from_rule", "median_distance"]

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
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        elif rule != "median":
            spread = _spread(X, weights)
            gamma = 0.5 / (spread * _narrowing(rule, X, weights)) if spread > 0 else 1.0
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

    `metric` is one that SciPy's `pdist` knows, or a function that does what `pdist` does.
    Of more than 1000 rows, 1000 evenly spaced ones are used: the same data give the same value.
    """
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MEDIAN_ROWS)).astype(int))
    sample = X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows], dtype=float)
    distances = metric(sample) if callable(metric) else pdist(sample, metric)
    apart = distances > 0
    if not apart.any():
        return 1.0
    if weights is None:
        return float(np.median(distances[apart]))
    i, j = np.triu_indices(len(rows), 1)  # the order of pdist
    return _weighted_median(distances[apart], (weights[rows][i] * weights[rows][j])[apart])


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


def _spread(X: Any, weights: np.ndarray | None) -> float:
    """Return the mean of the variances of the columns."""
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
    means = np.asarray(share @ X)
    if sp.issparse(X):
        return float(np.mean(np.asarray(share @ X.multiply(X)) - means**2))
    return float(np.mean(share @ np.square(X - means)))


def _variance(X: Any, weights: np.ndarray | None = None) -> float:
    if weights is not None:
        share = weights / (weights.sum() * X.shape[1])
        squares = X.multiply(X) if sp.issparse(X) else X * X
        mean = float(np.sum(share @ X))
        return float(np.sum(share @ squares)) - mean**2
    if sp.issparse(X):
        return float(X.multiply(X).mean() - X.mean() ** 2)
    return float(X.var())
