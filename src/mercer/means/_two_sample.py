"""Are two samples from the same distribution?  The kernel two-sample test."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np

from .._errors import warn_caller
from .._points import length, take
from .._runtime import (
    budget_in_bytes,
    check_choice,
    entry_point,
    one_blas_thread,
    random_numbers,
    reserving,
)
from ..expansion import Expansion
from ..gram import GramOperator, LowRankGram, memoise_if_affordable
from ..kernels import Kernel
from ._in_blocks import either_in_blocks, same_in_blocks
from ._landmarks import landmark_grams, truncation
from ._mmd import Splits, pair_terms
from ._permutation import check_test, pvalue, signs, splits, warn_of_few, warn_of_rounding
from ._recentred import recentred
from ._rounding import rounding
from ._samples import check_finite, moved, pooled

__all__ = ["TwoSampleResult", "two_sample_test"]

_METHODS = ("auto", "permutation", "lowrank", "linear")
_LARGE = 10_000  # points in all, beyond which "auto" takes features
_BLOCK = 2**28  # bytes of indicators and products at a time
_SIGNS = 2**21  # signs at a time


@dataclass(frozen=True, eq=False)
class TwoSampleResult:
    """What a two-sample test found.

    Attributes
    ----------
    statistic : float
        MMD^2 of the two samples.
    pvalue : float
        The probability, if both come from one distribution, of a statistic as large.
    method : {"permutation", "lowrank", "linear"}
        What was done; never "auto".
    estimator : {"unbiased", "biased", "linear"}
        Which statistic it is; see `mmd`.
    n_permutations : int
        With how many splits, for "linear" rows of signs, the statistic was compared.
    smallest_pvalue : float
        No data could have given less.
    truncation : float
        tr(K - F F^T) / tr K: what the features of "lowrank" leave out of K.  0 if nothing.  The
        biased statistic is then too small by at most tr(K - F F^T) (1/m + 1/n).
    rank : int or None
        The number of features.
    kernel : Kernel
        With all its values.
    null : ndarray of shape (n_permutations,)
        The statistics of the permuted samples, for "linear" with random signs.
    witness : Expansion
        mean of k(x, .) - mean of k(y, .): positive where X has more mass than Y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> found = two_sample_test(rng.normal(size=(50, 1)), rng.normal(1.0, 1.0, size=(50, 1)))
    >>> found.pvalue < 0.01, found.estimator
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
@reserving()
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
    """Test whether X and Y are from the same distribution, by MMD^2 = |mean(X) - mean(Y)|^2.

    ============= ============================================================================
    method        p-value
    ============= ============================================================================
    "permutation" (1 + #{MMD^2 of a random split >= that of X and Y}) / (1 + n_permutations):
                  the level is exact for every sample size.  All splits are columns of one
                  product with K, which is evaluated in tiles and never held.
    "lowrank"     the same for the kernel f(x) . f(z) of `rank` Nyström features, in O(n rank):
                  the level is as exact, whatever the rank; what may suffer is the power.
    "linear"      the same for the mean over disjoint pairs, whose terms have random signs if
                  nothing differs: n_permutations rows of them in O(n) each, and the level is as
                  exact; for the same power it needs far larger samples.
    "auto"        "permutation" for up to 10 000 points in all, "lowrank" beyond (unless the
                  kernel is not positive definite, or the points have no order of their own: see
                  the notes); `result.method` says which.
    ============= ============================================================================

    If there are no more than `n_permutations` ways to split the points, or rows of signs, each of
    them is tried once and the p-value is that of the exact distribution.

    Parameters
    ----------
    X, Y : points
        The samples, m and n points.  Or both in blocks, `Blocks` or Dask arrays with the same
        chunks, for "lowrank" and "linear": then points are rearranged within each block, at the
        same exact level, and the order of rows in a block is taken as it is.
    kernel : Kernel, str, callable or None
        None is the RBF with the median distance of all points as its bandwidth; see `mmd`.
    estimator : {"unbiased", "biased"}
    method : {"auto", "permutation", "lowrank", "linear"}
    n_permutations : int
    rank : int, optional
        The number of features of "lowrank"; 100 by default.
    random_state : int, Generator, RandomState or None
        None stands for 0.  For "linear" it shuffles the samples.
    max_memory : int, str or None
        The budget; see `mercer.gram.gram`.

    Returns
    -------
    TwoSampleResult
        MMD^2, its p-value, how they were found, and the witness function.

    Notes
    -----
    The level is exact if the kernel does not know which point came first.  So bandwidth and
    landmarks are chosen from the points of both samples in an order of their contents: vectors,
    rows of tables, texts, numbers, and tuples, lists, sets, dicts and arrays of these have one,
    and so have the indices of a `Precomputed` kernel, by their rows of values.  For other points,
    and for indices that a function looks up, "lowrank" is refused.

    All sums are over K about the middle of the points.  Where rounding alone may hold statistics
    apart they count as equal; a warning says when that is most of them.

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
    count, rank = check_test(method, _METHODS, n_permutations, rank)
    rng = random_numbers(random_state)
    if either_in_blocks(X, Y):
        options = (kernel, estimator, method, count, rank, rng)
        return TwoSampleResult(**same_in_blocks(X, Y, *options))
    kernel, Z, m, n = pooled(X, Y, kernel, 4 if method == "linear" else 2)
    k = memoise_if_affordable(kernel, m + n, max_memory)
    features: list[LowRankGram] = []
    if method == "linear":
        estimator = "linear"
        values, margin, smallest = _by_signs(k, Z, m, n, count, rng)
    else:
        if method == "lowrank" or (method == "auto" and length(Z) > _LARGE):
            required = method == "lowrank"
            features = landmark_grams([(k, Z)], rank, rng, max_memory, required)
        method = "lowrank" if features else "permutation"
        K = features[0] if features else recentred(k, Z, max_memory)
        room = min(_BLOCK, budget_in_bytes(max_memory) // 2)
        values, margin, smallest = _by_splits(K, estimator, m, n, count, rng, room)
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


# Both return the statistics, the observed one first, what of them may be rounding, and the smallest
# p-value that could have been reached.


def _by_splits(
    K: GramOperator, estimator: str, m: int, n: int, count: int, rng: np.random.Generator, room: int
) -> tuple[np.ndarray, float, float]:
    """Split all points into m and n at random, as many ways at a time as there is room for."""
    done, blocks = splits(m, n, count, rng, max(16, room // (8 * 4 * (m + n))))
    sums = [Splits.of(K, rows, m) for rows in blocks]
    values = np.concatenate([part.statistics(estimator) for part in sums])
    # Swapping two samples of equal size changes nothing: among all splits every value comes twice.
    smallest = (1 + (m == n and done == comb(m + n, m) - 1)) / (1 + done)
    warn_of_few(smallest, f"there are {m} and {n} points, and {done} permutations")
    margin = max(part.margin for part in sums)
    warn_of_rounding(margin, values[1:])
    between = sums[0].biased[0]
    if estimator == "unbiased" and between < -100.0 * margin:
        warn_caller(
            f"the squared distance of the two means is {between:.3g} < 0, so that a difference may "
            f"make the statistic smaller and the p-value large: {K.kernel} is not conditionally "
            f"positive definite of order 1 on these points, or given without its diagonal; choose "
            f"a Mercer kernel, or Distance()"
        )
    return values, margin, smallest


def _by_signs(
    kernel: Kernel, Z: Any, m: int, n: int, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, float, float]:
    """Take the mean over disjoint pairs: swapping x' and y' changes the sign of a term."""
    kernel, Z = moved(kernel, Z)
    X, Y = (take(Z, start + rng.permutation(size)) for start, size in ((0, m), (m, n)))
    terms = pair_terms(kernel, X, Y)
    check_finite(terms, kernel)
    done, blocks = signs(len(terms), count, rng, max(1, _SIGNS // len(terms)))
    values = np.concatenate([terms.mean() - 2.0 * (rows @ terms) / len(terms) for rows in blocks])
    smallest = 1 / (1 + done)
    warn_of_few(smallest, f"there are {len(terms)} pairs, and {done} rows of signs")
    return values, rounding(float) * float(np.abs(terms).mean()), smallest
