"""Are two samples from the same distribution?  The kernel two-sample test."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from scipy.stats import norm

from .._errors import NotPositiveDefiniteError
from .._points import length, take
from ..expansion import Expansion
from ..gram import GramOperator, LowRankGram, gram
from ..gram._budget import budget_in_bytes
from ..kernels import Kernel
from ._landmarks import landmark_gram, truncation
from ._mmd import Splits, check_estimator_name, pair_terms
from ._permutation import check_count, pvalue, random_numbers, splits, warn_of_few
from ._samples import pooled

__all__ = ["TwoSampleResult", "two_sample_test"]

_METHODS = ("auto", "permutation", "lowrank", "linear")
_LARGE = 10_000  # points in all, beyond which "auto" takes features
_BLOCK = 2**28  # bytes of indicators and products at a time


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
        How many splits the statistic was compared with; 0 for "linear".
    smallest_pvalue : float
        No data could have given less.
    truncation : float
        tr(K - F F^T) / tr K: what the features of "lowrank" leave out of K.  0 if nothing.  The
        biased statistic is then too small by at most tr(K - F F^T) (1/m + 1/n).
    rank : int or None
        The number of features.
    kernel : Kernel
        With all its values.
    null : ndarray of shape (n_permutations,) or None
        The statistics of the permuted samples.
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
    null: np.ndarray | None = field(repr=False)
    witness: Expansion = field(repr=False)


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
    "linear"      of a normal distribution, for the mean over disjoint pairs, in O(n); needs
                  samples of a few dozen points, and for the same power far larger ones.
    "auto"        "permutation" for up to 10 000 points in all, "lowrank" beyond (unless the
                  kernel is not positive definite); `result.method` says which.
    ============= ============================================================================

    If there are no more than `n_permutations` ways to split the points, each of them is tried once
    and the p-value is that of the exact distribution.

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
    Bandwidth and landmarks are chosen from the points of both samples without regard to which is
    whose; for vectors, strings and numbers also without regard to their order.

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
    count, rng = check_count(n_permutations), random_numbers(random_state)
    kernel, Z, m, n = pooled(X, Y, kernel, 4 if method == "linear" else 2)
    witness = Expansion(kernel, Z, np.repeat([1.0 / m, -1.0 / n], [m, n]))
    if method == "linear":
        return _linear(kernel, Z, m, n, rng, witness)
    K = _gram(kernel, Z, method, rank, rng, max_memory)
    room = min(_BLOCK, budget_in_bytes(max_memory) // 2)
    done, blocks = splits(m, n, count, rng, max(16, room // (8 * 4 * (m + n))))
    sums = [Splits.of(K, rows, m) for rows in blocks]
    values = np.concatenate([part.statistics(estimator) for part in sums])
    # swapping two samples of equal size changes nothing: among all splits every value comes twice
    smallest = (1 + (m == n and done == comb(m + n, m) - 1)) / (1 + done)
    warn_of_few(smallest, f"there are {m} and {n} points, and {done} permutations")
    rank = len(K.map) if isinstance(K, LowRankGram) else None
    return TwoSampleResult(
        statistic=float(values[0]),
        pvalue=pvalue(values[0], values[1:], max(part.margin for part in sums)),
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
    kernel: Kernel, Z: Any, method: str, rank: Any, rng: np.random.Generator, max_memory: Any
) -> GramOperator:
    """Return K in tiles, or its Nyström approximation."""
    if method == "lowrank" or (method == "auto" and length(Z) > _LARGE):
        try:
            return landmark_gram(kernel, Z, rank, rng, max_memory)
        except NotPositiveDefiniteError:
            if method == "lowrank":
                raise
    return gram(kernel, Z, storage="tiled", max_memory=max_memory)


def _linear(
    kernel: Kernel, Z: Any, m: int, n: int, rng: np.random.Generator, witness: Expansion
) -> TwoSampleResult:
    """Test by the mean over disjoint pairs, which is normal with mean 0 if nothing differs."""
    X, Y = (take(Z, start + rng.permutation(size)) for start, size in ((0, m), (m, n)))
    terms = pair_terms(kernel, X, Y)
    error = float(terms.std(ddof=1)) / np.sqrt(len(terms))
    statistic = float(terms.mean())
    # two constant samples: nothing varies, and all or nothing speaks against the hypothesis
    certain = 1.0 if statistic <= 0.0 else 0.0
    return TwoSampleResult(
        statistic=statistic,
        pvalue=float(norm.sf(statistic / error)) if error > 0.0 else certain,
        method="linear",
        estimator="linear",
        n_permutations=0,
        smallest_pvalue=0.0,
        truncation=0.0,
        rank=None,
        kernel=kernel,
        null=None,
        witness=witness,
    )
