"""The kernel two-sample test of whether two samples come from the same distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    RandomState,
    as_csr,
    as_float64,
    budget_in_bytes,
    check_choice,
    entry_point,
    length,
    one_blas_thread,
    resource_scope,
    seeded_generator,
    take,
    warn_caller,
)
from ...blocks import BlockRows, Blocks
from ...expansion import Expansion
from ...gram import NystroemMap, memoise_if_affordable
from ...kernels import Kernel, shifted_to_data
from ._mean_discrepancies import (
    SplitSums,
    check_finite,
    pair_terms,
    recentred_gram,
    relative_rounding,
)
from ._permutation_test import (
    OneBlock,
    PermutationTestResult,
    Rearrangements,
    add_elementwise,
    are_chunked,
    block_features,
    check_test_options,
    feature_means,
    landmark_maps,
    pair_blocks,
    pvalue,
    sample_of_blocks,
    warn_if_level_unreachable,
    warn_if_rounding_dominates,
)
from ._sample_validation import KernelSpec, check_count, pool_samples

_METHODS = ("auto", "permutation", "lowrank", "linear")
_MAX_PERMUTATION_POINTS = 10_000  # up to this many points in both samples, "auto" evaluates K
# Size in bytes of the split indicators, and their products with K, in memory at a time.
_SPLIT_BLOCK_BYTES = 2**28
_SIGNS_PER_BLOCK = 2**21  # number of random signs that are in memory at a time


@dataclass(frozen=True, eq=False)
class TwoSampleResult(PermutationTestResult):
    """The result of `two_sample_test`: the statistic, its p-value and the witness function.

    Reject the hypothesis of equal distributions at the level a (for example 0.05) if ``pvalue <=
    a``.

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
        X has more mass than Y.  For chunked samples, it is the approximation by the features of
        "lowrank", and 0 with "linear".

    See Also
    --------
    two_sample_test : Compute this result.
    mercer.plotting.witness : Plot the witness function.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> result = two_sample_test(rng.normal(size=(50, 1)), rng.normal(1.0, 1.0, size=(50, 1)))
    >>> result.pvalue < 0.01, result.estimator
    (True, 'unbiased')
    """

    truncation: float
    rank: int | None
    kernel: Kernel
    null: np.ndarray = field(repr=False)
    witness: Expansion = field(repr=False)


@entry_point
@one_blas_thread
@resource_scope()
def two_sample_test(
    X: Points,
    Y: Points,
    kernel: KernelSpec = None,
    *,
    estimator: str = "unbiased",
    method: str = "auto",
    n_permutations: int = 999,
    rank: int | None = None,
    random_state: RandomState = None,
    max_memory: MemoryLimit = None,
) -> TwoSampleResult:
    """Test whether X and Y come from the same distribution, with MMD^2 as the test statistic.

    With the default kernel, the test detects any difference between two distributions, not only
    that of their means, if the samples are large enough.  The points may be vectors, strings,
    graphs or other objects on which a kernel is defined.

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
                  was used.  For chunked samples, "auto" is "lowrank".
    ============= ============================================================================

    If at most `n_permutations` other splits (or rows of signs) exist, each of them is evaluated
    once, and the p-value is that of the exact permutation distribution.

    Parameters
    ----------
    X, Y : points
        The samples, of m and n points.  With "lowrank" and "linear", both may also be chunked:
        `Blocks`, or Dask arrays with the same chunks.  Points are then permuted only within each
        block, which keeps the level exact.  Bandwidth and landmarks are chosen from up to 20 000
        of the rows.
    kernel : Kernel, str, callable or None, default=None
        None means the RBF whose bandwidth is the median distance of the pooled points; see `mmd`.
        The kernel determines which differences are found: a smaller bandwidth detects local
        differences, a larger one differences of location and scale.  Choose the kernel before
        looking at these samples; otherwise the p-value is too small.
    estimator : {"unbiased", "biased"}, default="unbiased"
        The estimator of MMD^2; not used by "linear".  If m = n and k(x, x) is constant, as for the
        RBF, both give the same p-value.
    method : {"auto", "permutation", "lowrank", "linear"}, default="auto"
        See the table above.  Use "lowrank" for large samples, and "linear" for streams that are
        read once.
    n_permutations : int, default=999
        The number of random splits; the smallest possible p-value is 1 / (n_permutations + 1).  Use
        at least 99 for the level 0.05, and 9999 if a small p-value is needed, for example after a
        correction for multiple tests.
    rank : int, optional
        The number of features of "lowrank"; 100 by default.  Increase it if `result.truncation` is
        large.
    random_state : int, Generator, RandomState or None, default=None
        The random seed for permutations and landmarks, and with "linear" also for shuffling the
        samples; None means the seed 0.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    TwoSampleResult
        MMD^2, its p-value, the method and kernel that were used, the witness function, and the
        array `null` of shape (n_permutations,) with the permuted statistics.

    Raises
    ------
    ValueError
        If a sample has fewer than two points (four with "linear"), or if the samples have different
        columns.

    See Also
    --------
    mmd : The test statistic alone.
    independence_test : Test whether two paired variables are independent.
    mercer.plotting.witness : Plot where the two samples differ.

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

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf and Smola, "A kernel two-sample test", JMLR 13, 2012.

    Phipson and Smyth, "Permutation p-values should never be zero: calculating exact p-values when
    permutations are randomly drawn", Statistical Applications in Genetics and Molecular Biology 9,
    2010.

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
    rng, min_points = seeded_generator(random_state), 4 if method == "linear" else 2
    blocks: Blocks | OneBlock
    if are_chunked(X, Y):
        blocks, method = pair_blocks(X, Y, method, ("lowrank", "linear"))
        if blocks.width != blocks.y.width:
            raise ValueError(
                f"X has {blocks.width} columns and Y has {blocks.y.width}; both samples need the "
                f"same columns"
            )
        m = n = check_count(len(blocks), "X", min_points)
        # Z is a sample of the points; the tests in memory use all of them.
        [(kernel, Z)] = sample_of_blocks(blocks, [kernel], pool=True)
        k = kernel
    else:
        kernel, Z, m, n = pool_samples(X, Y, kernel, min_points)
        Z, k = as_csr(Z), memoise_if_affordable(kernel, m + n, max_memory)
        blocks = OneBlock(take(Z, slice(0, m)), take(Z, slice(m, m + n)))
    maps: list[NystroemMap] = []
    if method == "linear":
        estimator = "linear"
        kernel_at_data = shifted_to_data(k, Z)
        values, margin, smallest = _signed_statistics(kernel_at_data, blocks, (m, n), count, rng)
    else:
        if method == "lowrank" or (method == "auto" and m + n > _MAX_PERMUTATION_POINTS):
            maps = landmark_maps([(k, Z)], rank, rng, required=method == "lowrank")
        method = "lowrank" if maps else "permutation"
        splits = Rearrangements.of_splits(m, n, count, blocks.sizes, rng)
        block_bytes = min(_SPLIT_BLOCK_BYTES, budget_in_bytes(max_memory) // 2)
        if maps:
            [(mean, truncation)] = feature_means(blocks, maps, max_memory)
            options = (maps, mean, splits, block_bytes, max_memory)
            U = blocks.reduce(_block_split_sums, np.add, *options).T
            sums = [SplitSums.of_features(U[:-2], U[-2], U[-1], (m, n), k)]
        else:
            K = recentred_gram(k, Z, max_memory)
            passes = splits.passes(block_bytes // (8 * 4 * (m + n)))
            sums = [SplitSums.of(K, splits.splits(0, m, n, part), m) for part in passes]
        values, margin, smallest = _split_statistics(sums, estimator, splits)
    if isinstance(blocks, OneBlock):
        witness = Expansion(kernel, Z, np.repeat([1.0 / m, -1.0 / n], [m, n]))
    elif maps:
        phi, first_sample, both = maps[0], U[:-2, 0], U[:-2, -1]
        coefficients = phi.expansion_coefficients(first_sample / m - (both - first_sample) / n)
        witness = Expansion(phi.kernel, phi.points, coefficients)
    else:  # "linear" computes no mean embeddings of chunked samples
        witness = Expansion(kernel, Z[:1], np.zeros(1))
    return TwoSampleResult(
        statistic=float(values[0]),
        pvalue=pvalue(values[0], values[1:], margin),
        method=method,
        estimator=estimator,
        n_permutations=len(values) - 1,
        smallest_pvalue=smallest,
        truncation=truncation if maps else 0.0,
        rank=len(maps[0]) if maps else None,
        kernel=kernel,
        null=values[1:],
        witness=witness,
    )


def _block_split_sums(
    rows: BlockRows,
    maps: Sequence[NystroemMap],
    mean: np.ndarray,
    splits: Rearrangements,
    block_bytes: int,
    max_memory: MemoryLimit,
) -> np.ndarray:
    """Return Z^T [F, d, e] for a block, with features F centred at `mean`.

    The columns of Z are the 0/1 indicators of the splits, the observed one first, and a column of
    ones.  d and e are the squared norms of the centred features, and of those before centring.
    """
    [K] = block_features(rows, maps, max_memory)
    m, n = length(rows.X), length(rows.y)
    all_points, parts = np.ones((1, m + n), dtype=bool), []
    for part in splits.passes(block_bytes // (8 * (m + n))):
        Z = np.concatenate([splits.splits(rows.place, m, n, part), all_points])

        def term(strip: slice, F: np.ndarray, Z: np.ndarray = Z) -> np.ndarray:
            G = F - mean
            d, e = np.einsum("ij,ij->i", G, G), np.einsum("ij,ij->i", F, F)
            return Z[:, strip].astype(float) @ np.column_stack([G, d, e])

        parts.append(K._sum_over_strips(term))
    return np.concatenate([*(part[:-1] for part in parts), parts[-1][-1:]])


# `_split_statistics` and `_signed_statistics` return the statistics (the observed one first), a
# bound on their rounding error, and the smallest p-value that is possible.


def _split_statistics(
    sums: Sequence[SplitSums], estimator: str, splits: Rearrangements
) -> tuple[np.ndarray, float, float]:
    """Compute MMD^2 for the observed and the random splits."""
    values = np.concatenate([part.statistics(estimator) for part in sums])
    m, n, margin = sums[0].m, sums[0].n, max(part.margin for part in sums)
    # Swapping two samples of equal size does not change MMD^2, so that each value occurs twice
    # among all splits.
    smallest = (1 + (m == n and splits.is_complete)) / (1 + splits.count)
    why = f"there are {m} and {n} points, and {splits.count} permutations"
    warn_if_level_unreachable(smallest, why)
    warn_if_rounding_dominates(margin, values[1:])
    squared_distance = sums[0].biased[0]
    if estimator == "unbiased" and squared_distance < -100.0 * margin:
        warn_caller(
            f"the squared distance of the two means is {squared_distance:.3g} < 0, so the p-value "
            f"is not reliable: a difference between the samples may make the statistic smaller. "
            f"{sums[0].kernel} is not conditionally positive definite of order 1 on these "
            f"points, or its diagonal is missing; choose a Mercer kernel, or Distance()"
        )
    return values, margin, smallest


def _signed_statistics(
    kernel: Kernel,
    blocks: Blocks | OneBlock,
    sizes: tuple[int, int],
    count: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float, float]:
    """Compute the means of the terms of disjoint pairs, with random signs of the terms.

    Under the null hypothesis x' and y' can be exchanged, which changes only the sign of a term.
    """
    signs = Rearrangements.of_signs(min(sizes) // 2, count, blocks.sizes, rng)
    sums, magnitude, pairs = blocks.reduce(_signed_sums, add_elementwise, kernel, signs)
    smallest = 1 / (1 + signs.count)
    why = f"there are {pairs:.0f} pairs, and {signs.count} rows of signs"
    warn_if_level_unreachable(smallest, why)
    return sums / pairs, relative_rounding(float) * float(magnitude / pairs), smallest


def _signed_sums(rows: BlockRows, kernel: Kernel, signs: Rearrangements) -> list[np.ndarray]:
    """Return the sums of the pair terms of a block, their absolute sum, and their number.

    The points are paired at random.  The first sum is the observed one; the others have random
    signs.
    """
    X, Y = (signs.shuffled(rows.place, as_float64(A), i) for i, A in enumerate((rows.X, rows.y)))
    terms = pair_terms(kernel, X, Y)
    check_finite(terms, kernel)
    passes = signs.passes(_SIGNS_PER_BLOCK // max(1, len(terms)))
    minus = [signs.signs(rows.place, len(terms), part) @ terms for part in passes]
    sums = terms.sum() - 2.0 * np.concatenate(minus)
    return [sums, np.abs(terms).sum(), np.array(float(len(terms)))]
