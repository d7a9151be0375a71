"""Rules that choose the scale gamma of a kernel from n points X with d columns.

    scale     gamma = 1 / (d Var X), with the variance of all entries of X
    auto      gamma = 1 / d
    median    gamma = 1 / (2 m^2), where m is the median distance between two different points
    scott     gamma = 1 / (2 h^2), h = s n^(-1 / (d + 4)), s^2 is the mean variance of the columns
    silverman gamma = 1 / (2 h^2), h = s (n (d + 2) / 4)^(-1 / (d + 4))

Scott's and Silverman's rules are optimal bandwidths h for the estimation of normal densities; h
decreases as n grows.  All rules refer to the kernel exp(-gamma |x - z|^2), whose length scale l is
given by gamma = 1 / (2 l^2).  A weight counts as a number of repetitions: variance and median are
weighted, and n is the sum of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from ..._core import Points, closest_name
from .._parameter_checks import positive

RULES = ("scale", "auto", "median", "scott", "silverman")

# Maximum number of rows from which the median distance is computed.  1000 rows have half a million
# pairs, which is precise enough for a rule of thumb.
_MAX_MEDIAN_ROWS = 1000


def scale_or_rule(owner: str, name: str, value: Any, *, vector: bool = False) -> None:
    """Raise an error if a scale is neither a positive number nor the name of a rule.

    With `vector`, one positive number per column is also allowed.
    """
    if isinstance(value, str) and value not in RULES:
        expected = "positive numbers" if vector else "a positive number"
        raise ValueError(
            f"{owner}: {name} must be {expected} or one of {RULES}, got {value!r}"
            f"{_number_without_quotes(owner, value)}"
        )
    if vector and (np.ndim(value) > 1 or np.size(value) == 0):
        raise ValueError(
            f"{owner}: {name} must be a number or one number per column, "
            f"got shape {np.shape(value)}"
        )
    if not isinstance(value, str):
        positive(owner, name, value, vector=vector)


def _number_without_quotes(owner: str, text: str) -> str:
    """Return a hint if a string is a number or the misspelled name of a rule."""
    try:
        float(text)
    except ValueError:
        rule = closest_name(text, RULES)
        return f"; did you mean {rule!r}?" if rule else ""
    return f". It is a string; write the number without quotes, {owner}({text.strip()})"


scales_or_rule = partial(scale_or_rule, vector=True)


def gamma_from_rule(rule: str, X: Points, weights: np.ndarray | None = None) -> float:
    """Return the gamma that `rule`, one of `RULES`, gives for the vectors X."""
    if rule == "auto":
        n_columns: int = X.shape[1]
        return 1.0 / n_columns
    with np.errstate(over="ignore", invalid="ignore"):
        if rule == "scale":
            variance = _variance(X, weights)
            gamma = 1.0 / (X.shape[1] * variance) if np.sqrt(variance) > _rounding_std(X) else 1.0
        elif rule != "median":
            variance = _mean_column_variance(X, weights)
            factor = _squared_bandwidth_factor(rule, X, weights)
            gamma = 0.5 / (variance * factor) if np.sqrt(variance) > _rounding_std(X) else 1.0
        else:
            gamma = 0.5 / np.square(median_distance(X, "euclidean", weights))
    if not 0.0 < gamma < np.inf:
        raise ValueError(
            f"the rule {rule!r} gives gamma = {gamma:g} for features with absolute values up to "
            f"{abs(X).max():.3g}; scale the features"
        )
    return float(gamma)


def median_distance(
    X: Points, metric: str | Callable[[np.ndarray], np.ndarray], weights: np.ndarray | None = None
) -> float:
    """Return the median distance between two different points of X, or 1.0 if all are equal.

    `metric` is the name of a metric of SciPy's `pdist`, or a function that returns the distances of
    all pairs of rows in the order of `pdist`.  If X has more than 1000 rows (counted with their
    weights), 1000 evenly spaced rows are used.  They are not drawn at random, so that the same data
    give the same value.
    """
    n = X.shape[0]
    if max(n, 0.0 if weights is None else weights.sum()) > _MAX_MEDIAN_ROWS:
        rows, counts = np.unique(
            evenly_spaced_rows(n, _MAX_MEDIAN_ROWS, weights), return_counts=True
        )
        weights = None if weights is None else counts.astype(float)
    else:
        rows = np.arange(n)
    sample = X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows], dtype=float)
    distances = metric(sample) if callable(metric) else pdist(sample, metric)
    is_different = distances > 0
    if not is_different.any():
        return 1.0
    if weights is None:
        return float(np.median(distances[is_different]))
    i, j = np.triu_indices(len(rows), 1)  # pairs in the order of pdist
    return _weighted_median(distances[is_different], (weights[i] * weights[j])[is_different])


def evenly_spaced_rows(n: int, max_rows: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the indices of at most `max_rows` of n rows, evenly spaced and in ascending order.

    With weights, each row is repeated as many times as its weight, and the indices are spaced
    evenly over all repetitions.  Weights with a sum below n are scaled so that their sum is n.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.vectors._bandwidth_rules import evenly_spaced_rows
    >>> evenly_spaced_rows(5, 3), evenly_spaced_rows(3, 10, np.array([1.0, 3.0, 1.0]))
    (array([0, 2, 4]), array([0, 1, 1, 1, 2]))
    """
    if weights is None:
        return np.linspace(0, n - 1, min(n, max_rows)).astype(int)
    ends = np.cumsum(weights)
    total = float(ends[-1])
    repetitions = max(total, float(n))
    unit = total / repetitions  # weight of one repetition: 1 for integer weights
    positions = np.linspace(0.0, total - unit, min(round(repetitions), max_rows))
    return np.minimum(np.searchsorted(ends, positions, side="right"), n - 1)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the median of `values`, where each value counts as often as its weight."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order]) / weights.sum()
    below = int(np.searchsorted(cumulative, 0.5 - 1e-12))
    above = min(int(np.searchsorted(cumulative, 0.5 + 1e-12)), len(values) - 1)
    return float(0.5 * (values[order][below] + values[order][above]))


def _squared_bandwidth_factor(rule: str, X: Points, weights: np.ndarray | None) -> float:
    """Return the squared bandwidth of the rule "scott" or "silverman", divided by the variance."""
    n, d = X.shape[0] if weights is None else float(weights.sum()), X.shape[1]
    count = n if rule == "scott" else n * (d + 2) / 4.0
    return float(count ** (-2.0 / (d + 4)))


def _rounding_std(X: Points) -> float:
    """Return an upper bound on the computed standard deviation of X if all entries are equal."""
    eps = np.finfo(X.dtype).eps if X.dtype.kind == "f" else np.finfo(float).eps
    return float(4.0 * eps * float(abs(X).max()))


def _fractions(n: int, weights: np.ndarray | None) -> np.ndarray:
    """Return the weight of each of n rows as a fraction of the total weight."""
    if weights is None or np.all(weights == weights[0]):
        return np.full(n, 1.0 / n)
    fractions: np.ndarray = weights / weights.sum()
    return fractions


def _without_duplicates(X: Points) -> sp.csr_array:
    """Return a copy of X as a CSR matrix, with entries at the same position added up."""
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    return X


def _mean_column_variance(X: Points, weights: np.ndarray | None) -> float:
    """Return the mean of the variances of the columns, without making a sparse X dense."""
    fractions = _fractions(X.shape[0], weights)
    means = np.asarray(fractions @ X)
    if not sp.issparse(X):
        return float(np.mean(fractions @ np.square(X - means)))
    X = _without_duplicates(X)
    # Entries that are not stored are 0; they contribute their total weight times the squared mean.
    present = X.copy()
    present.data = np.ones(len(X.data))
    full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    absent = np.where(full, 0.0, np.maximum(1.0 - np.asarray(fractions @ present), 0.0))
    X.data = np.square(X.data - means[X.indices])
    return float(np.mean(np.asarray(fractions @ X) + absent * means**2))


def _variance(X: Points, weights: np.ndarray | None = None) -> float:
    """Return the weighted variance of all entries, without making a sparse X dense."""
    if weights is None and not sp.issparse(X):
        return float(X.var())
    fractions = _fractions(X.shape[0], weights) / X.shape[1]
    mean = float(np.sum(fractions @ X))
    if not sp.issparse(X):
        return float(np.sum(fractions @ np.square(X - mean)))
    X = _without_duplicates(X)
    # The total weight of the zeros that are not stored.
    absent = float(fractions @ (X.shape[1] - np.diff(X.indptr)))
    X.data = np.square(X.data - mean)
    return float(np.sum(fractions @ X)) + absent * mean**2
