"""The kernel two-sample test of whether two samples come from the same distribution."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np

from ...._core import (
    budget_in_bytes,
    check_choice,
    entry_point,
    length,
    memory_scope,
    one_blas_thread,
    seeded_generator,
    take,
    warn_caller,
)
from ....expansion import Expansion
from ....gram import GramOperator, LowRankGram, memoise_if_affordable
from ....kernels import Kernel
from .._centred_gram_of_sample import recentred_gram
from .._mmd import SplitSums, pair_terms
from .._sample_validation import centre_linear_terms, check_finite, pool_samples
from .._statistic_rounding import relative_rounding
from ._permutations import (
    check_test_options,
    iter_signs,
    iter_splits,
    pvalue,
    warn_if_level_unreachable,
    warn_if_rounding_dominates,
)
from ._test_landmarks import landmark_grams, truncation
from ._tests_blockwise import are_chunked, chunked_two_sample_test

__all__ = ["TwoSampleResult", "two_sample_test"]

_METHODS = ("auto", "permutation", "lowrank", "linear")
_MAX_PERMUTATION_POINTS = 10_000  # up to this many points in both samples, "auto" evaluates K
_SPLIT_BLOCK_BYTES = (
    2**28
)  # size in bytes of the split indicators, and their products with K, in memory at a time
_SIGNS_PER_BLOCK = 2**21  # number of random signs that are in memory at a time


@dataclass(frozen=True, eq=False)
class TwoSampleResult:
    """The result of `two_sample_test`.

    Attributes
    ----------
    statistic : float
        The estimate of MMD^2 for the two samples.
    pvalue : float
        The probability of a statistic at least this large if both samples come from the same
        distribution.
    method : {"permutation", "lowrank", "linear"}
        The method that was used; never "auto".
    estimator : {"unbiased", "biased", "linear"}
        The estimator of MMD^2; see `mmd`.
    n_permutations : int
        The number of random splits (for "linear", rows of random signs) that the statistic was
        compared with.
    smallest_pvalue : float
        The smallest p-value that is possible with this number of permutations.
    truncation : float
        The relative truncation error tr(K - F F^T) / tr K of the features F with "lowrank", else
        0.  The approximation makes the biased statistic too small by at most
        tr(K - F F^T) (1/m + 1/n).
    rank : int or None
        The number of features with "lowrank", else None.
    kernel : Kernel
        The kernel, with numbers for all parameters that depend on the data, such as "median".
    null : ndarray of shape (n_permutations,)
        The statistics of the permuted samples (for "linear", with random signs).
    witness : Expansion
        The witness function, the mean of k(x, .) minus the mean of k(y, .).  It is positive where
        X has more mass than Y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> result = two_sample_test(rng.normal(size=(50, 1)), rng.normal(1.0, 1.0, size=(50, 1)))
    >>> result.pvalue < 0.01, result.estimator
    (True, 'unbiased')
    """

    statistic: float
    pvalue: float
    method: str
    estimator: str
    n_permutations: int
    smallest_pvalue: float
    truncation: float
    rank: int | None
    kernel: Kernel
    null: np.ndarray = field(repr=False)
    witness: Expansion = field(repr=False)


@entry_point
@one_blas_thread
@memory_scope()
def two_sample_test(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    estimator: str = "unbiased",
    method: str = "auto",
    n_permutations: int = 999,
    rank: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    max_memory: int | str | None = None,
) -> TwoSampleResult:
    """Test whether X and Y come from the same distribution, with MMD^2 as the test statistic.

    ============= ============================================================================
    method        p-value
    ============= ============================================================================
    "permutation" (1 + #{MMD^2 of a random split >= MMD^2 of X and Y}) / (1 + n_permutations).
                  The level is exact for every sample size.  All splits are columns of one
                  product with K, which is evaluated in tiles and never stored.
    "lowrank"     The same with the approximate kernel f(x) . f(z) of `rank` Nyström features, in
                  O(n rank) time.  The level is exact for every rank, but a small rank may reduce
                  the power.
    "linear"      The same with the mean over disjoint pairs as the statistic.  Under the null
                  hypothesis its terms have random signs, so each of `n_permutations` rows of
                  signs takes O(n) time.  The level is exact, but the same power needs far larger
                  samples.
    "auto"        "permutation" for up to 10 000 points in both samples, "lowrank" beyond.
                  "permutation" is also used if the kernel is not positive definite or the points
                  have no canonical order (see the notes).  `result.method` is the method that
                  was used.
    ============= ============================================================================

    If at most `n_permutations` other splits (or rows of signs) exist, each of them is evaluated
    once, and the p-value is that of the exact permutation distribution.

    Parameters
    ----------
    X, Y : points
        The samples, of m and n points.  With "lowrank" and "linear", both may also be chunked:
        `Blocks`, or Dask arrays with the same chunks.  Points are then permuted only within each
        block, which keeps the level exact.  With "linear", consecutive rows of a block are paired
        without shuffling.
    kernel : Kernel, str, callable or None, default=None
        None means the RBF whose bandwidth is the median distance of the pooled points; see `mmd`.
    estimator : {"unbiased", "biased"}, default="unbiased"
        The estimator of MMD^2; not used by "linear".
    method : {"auto", "permutation", "lowrank", "linear"}, default="auto"
        See the table above.
    n_permutations : int, default=999
        The number of random splits; the smallest possible p-value is 1 / (n_permutations + 1).
    rank : int, optional
        The number of features of "lowrank"; 100 by default.
    random_state : int, Generator, RandomState or None, default=None
        The random seed for permutations and landmarks, and with "linear" also for shuffling the
        samples; None means the seed 0.
    max_memory : int, str or None, default=None
        The memory budget; see `mercer.gram.gram`.

    Returns
    -------
    TwoSampleResult
        MMD^2, its p-value, the method and kernel that were used, and the witness function.

    Notes
    -----
    The level is exact only if the kernel does not depend on the order of the points.  Bandwidth
    and landmarks are therefore chosen from the pooled points in a canonical order of their
    contents.  Such an order exists for vectors, rows of tables, strings, numbers, and tuples,
    lists, sets, dicts and arrays of these, and for the indices of a `Precomputed` kernel (by their
    rows of values).  For other points, and for integers that a kernel function uses as indices,
    "lowrank" raises an error.

    All sums use the recentred kernel matrix.  Statistics that differ by no more than the possible
    rounding error count as equal; a warning is issued if this affects most of them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 3)), rng.normal(size=(150, 3))
    >>> result = two_sample_test(X, Y + 0.5)
    >>> result.pvalue, result.method
    (0.001, 'permutation')
    >>> bool(two_sample_test(X, Y).pvalue > 0.05)
    True
    """
    check_choice("estimator", estimator, "unbiased", "biased")
    count, rank = check_test_options(method, _METHODS, n_permutations, rank)
    rng = seeded_generator(random_state)
    if are_chunked(X, Y):
        options = (kernel, estimator, method, count, rank, rng)
        return TwoSampleResult(**chunked_two_sample_test(X, Y, *options))
    kernel, Z, m, n = pool_samples(X, Y, kernel, 4 if method == "linear" else 2)
    k = memoise_if_affordable(kernel, m + n, max_memory)
    features: list[LowRankGram] = []
    if method == "linear":
        estimator = "linear"
        values, margin, smallest = _signed_statistics(k, Z, m, n, count, rng)
    else:
        if method == "lowrank" or (method == "auto" and length(Z) > _MAX_PERMUTATION_POINTS):
            required = method == "lowrank"
            features = landmark_grams([(k, Z)], rank, rng, max_memory, required)
        method = "lowrank" if features else "permutation"
        K = features[0] if features else recentred_gram(k, Z, max_memory)
        block_bytes = min(_SPLIT_BLOCK_BYTES, budget_in_bytes(max_memory) // 2)
        values, margin, smallest = _split_statistics(K, estimator, m, n, count, rng, block_bytes)
    return TwoSampleResult(
        statistic=float(values[0]),
        pvalue=pvalue(values[0], values[1:], margin),
        method=method,
        estimator=estimator,
        n_permutations=len(values) - 1,
        smallest_pvalue=smallest,
        truncation=truncation(features[0]) if features else 0.0,
        rank=len(features[0].map) if features else None,
        kernel=kernel,
        null=values[1:],
        witness=Expansion(kernel, Z, np.repeat([1.0 / m, -1.0 / n], [m, n])),
    )


# `_split_statistics` and `_signed_statistics` return the statistics (the observed one first), a
# bound on their rounding error, and the smallest p-value that is possible.


def _split_statistics(
    K: GramOperator,
    estimator: str,
    m: int,
    n: int,
    count: int,
    rng: np.random.Generator,
    block_bytes: int,
) -> tuple[np.ndarray, float, float]:
    """Compute MMD^2 for random splits into m and n points, in blocks of about `block_bytes`."""
    n_done, blocks = iter_splits(m, n, count, rng, max(16, block_bytes // (8 * 4 * (m + n))))
    sums = [SplitSums.of(K, rows, m) for rows in blocks]
    values = np.concatenate([part.statistics(estimator) for part in sums])
    # Swapping two samples of equal size does not change MMD^2, so that each value occurs twice
    # among all splits.
    smallest = (1 + (m == n and n_done == comb(m + n, m) - 1)) / (1 + n_done)
    warn_if_level_unreachable(smallest, f"there are {m} and {n} points, and {n_done} permutations")
    margin = max(part.margin for part in sums)
    warn_if_rounding_dominates(margin, values[1:])
    squared_distance = sums[0].biased[0]
    if estimator == "unbiased" and squared_distance < -100.0 * margin:
        warn_caller(
            f"the squared distance of the two means is {squared_distance:.3g} < 0, so the p-value "
            f"is not reliable: a difference between the samples may make the statistic smaller. "
            f"{K.kernel} is not conditionally positive definite of order 1 on these "
            f"points, or its diagonal is missing; choose a Mercer kernel, or Distance()"
        )
    return values, margin, smallest


def _signed_statistics(
    kernel: Kernel, Z: Any, m: int, n: int, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, float, float]:
    """Compute the means of the terms of disjoint pairs, with random signs of the terms.

    Under the null hypothesis x' and y' can be exchanged, which changes only the sign of a term.
    """
    kernel, Z = centre_linear_terms(kernel, Z)
    X, Y = (take(Z, start + rng.permutation(size)) for start, size in ((0, m), (m, n)))
    terms = pair_terms(kernel, X, Y)
    check_finite(terms, kernel)
    n_done, blocks = iter_signs(len(terms), count, rng, max(1, _SIGNS_PER_BLOCK // len(terms)))
    values = np.concatenate([terms.mean() - 2.0 * (rows @ terms) / len(terms) for rows in blocks])
    smallest = 1 / (1 + n_done)
    warn_if_level_unreachable(smallest, f"there are {len(terms)} pairs, and {n_done} rows of signs")
    return values, relative_rounding(float) * float(np.abs(terms).mean()), smallest
