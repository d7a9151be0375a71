"""Are two samples from the same distribution?  The kernel two-sample test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._points import length, take
from .._runtime import budget_in_bytes, one_blas_thread, random_numbers
from ..expansion import Expansion
from ..gram import GramOperator, LowRankGram
from ..kernels import Kernel
from ._landmarks import check_rank, landmark_gram, truncation
from ._mmd import Splits, check_estimator_name, pair_terms
from ._order import UnorderableError
from ._permutation import (
    check_count,
    pvalue,
    rounding,
    signs,
    splits,
    warn_of_few,
    warn_of_rounding,
)
from ._recentred import recentred
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


@one_blas_thread
def two_sample_test(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    estimator: str = "unbiased",
    method: str = "auto",
    n_permutations: int = 999,
    rank: int | None = None,
    random_state: Any = None,
    max_memory: Any = None,
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
        The samples, m and n points.
    kernel : Kernel, str, callable or None
        None is the RBF with the median distance of all points as its bandwidth; see `mmd`.
    estimator : {"unbiased", "biased"}
    method : {"auto", "permutation", "lowrank", "linear"}
    n_permutations : int
    rank : int, optional
        Of "lowrank"; 100 by default.
    random_state : int, Generator, RandomState or None
        None stands for 0.  For "linear" it shuffles the samples.
    max_memory : int, str or None
        The budget; see `mercer.gram.gram`.

    Returns
    -------
    TwoSampleResult

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
    check_estimator_name(estimator)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {_METHODS}, got {method!r}")
    count, features, rng = (
        check_count(n_permutations),
        check_rank(rank),
        random_numbers(random_state),
    )
    kernel, Z, m, n = pooled(X, Y, kernel, 4 if method == "linear" else 2)
    witness = Expansion(kernel, Z, np.repeat([1.0 / m, -1.0 / n], [m, n]))
    if method == "linear":
        return _linear(kernel, Z, m, n, count, rng, witness)
    K = _gram(kernel, Z, method, features, rng, max_memory)
    room = min(_BLOCK, budget_in_bytes(max_memory) // 2)
    done, blocks = splits(m, n, count, rng, max(16, room // (8 * 4 * (m + n))))
    sums = [Splits.of(K, rows, m) for rows in blocks]
    values = np.concatenate([part.statistics(estimator) for part in sums])
    # swapping two samples of equal size changes nothing: among all splits every value comes twice
    smallest = (1 + (m == n and done == comb(m + n, m) - 1)) / (1 + done)
    warn_of_few(smallest, f"there are {m} and {n} points, and {done} permutations")
    margin = max(part.margin for part in sums)
    warn_of_rounding(margin, values[1:])
    if estimator == "unbiased":
        _warn_if_negative(sums[0].biased[0], margin, kernel)
    rank = len(K.map) if isinstance(K, LowRankGram) else None
    return TwoSampleResult(
        statistic=float(values[0]),
        pvalue=pvalue(values[0], values[1:], margin),
        method="permutation" if rank is None else "lowrank",
        estimator=estimator,
        n_permutations=done,
        smallest_pvalue=smallest,
        truncation=truncation(K),
        rank=rank,
        kernel=kernel,
        null=values[1:],
        witness=witness,
    )


def _gram(
    kernel: Kernel, Z: Any, method: str, rank: int, rng: np.random.Generator, max_memory: Any
) -> GramOperator:
    """Return K in tiles, or its Nyström approximation."""
    if method == "lowrank" or (method == "auto" and length(Z) > _LARGE):
        try:
            return landmark_gram(kernel, Z, rank, rng, max_memory)
        except (NotPositiveDefiniteError, UnorderableError):
            if method == "lowrank":
                raise
    return recentred(kernel, Z, max_memory)


def _warn_if_negative(value: float, margin: float, kernel: Kernel) -> None:
    """Warn that what looks like a difference of samples may make the statistic small."""
    if value < -100.0 * margin:
        warnings.warn(
            f"the squared distance of the two means is {value:.3g} < 0, so that a difference may "
            f"make the statistic smaller and the p-value large: {kernel} is not conditionally "
            f"positive definite of order 1 on these points, or given without its diagonal; choose "
            f"a Mercer kernel, or Distance()",
            UserWarning,
            stacklevel=4,
        )


def _linear(
    kernel: Kernel,
    Z: Any,
    m: int,
    n: int,
    count: int,
    rng: np.random.Generator,
    witness: Expansion,
) -> TwoSampleResult:
    """Test by the mean over disjoint pairs: swapping x' and y' changes the sign of a term."""
    Z = moved(kernel, Z)
    X, Y = (take(Z, start + rng.permutation(size)) for start, size in ((0, m), (m, n)))
    terms = pair_terms(kernel, X, Y)
    check_finite(terms, kernel)
    done, blocks = signs(len(terms), count, rng, max(1, _SIGNS // len(terms)))
    values = np.concatenate([terms.mean() - 2.0 * (rows @ terms) / len(terms) for rows in blocks])
    warn_of_few(1 / (1 + done), f"there are {len(terms)} pairs, and {done} rows of signs")
    return TwoSampleResult(
        statistic=float(values[0]),
        pvalue=pvalue(values[0], values[1:], rounding(float) * float(np.abs(terms).mean())),
        method="linear",
        estimator="linear",
        n_permutations=done,
        smallest_pvalue=1 / (1 + done),
        truncation=0.0,
        rank=None,
        kernel=kernel,
        null=values[1:],
        witness=witness,
    )
