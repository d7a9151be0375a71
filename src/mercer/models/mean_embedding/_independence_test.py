"""Permutation test of independence, based on the Hilbert-Schmidt independence criterion (HSIC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    RandomState,
    as_csr,
    budget_in_bytes,
    check_budget,
    check_choice,
    entry_point,
    jit,
    length,
    one_blas_thread,
    resource_scope,
    run_in_threads,
    seeded_generator,
    slices,
)
from ...blocks import BlockRows, Blocks
from ...gram import DenseGram, NystroemMap, memoise_if_affordable
from ...kernels import Kernel
from ._mean_discrepancies import (
    ESTIMATORS,
    Centring,
    centre_linear_terms,
    check_paired_samples,
    clip_biased_hsic,
    hsic_divisor,
    relative_rounding,
)
from ._permutation_test import (
    FeatureMean,
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
)
from ._sample_validation import KernelSpec, check_count

_METHODS = ("auto", "permutation", "lowrank")


@dataclass(frozen=True)
class _IndependenceTuning:
    """Limits on the problem size, and on the memory and work of a parallel task."""

    # Up to this many pairs, "auto" uses the exact matrices ("permutation"); beyond, "lowrank".
    max_permutation_pairs: int = 4000
    # Size in bytes of the array of permutations that is generated at a time.
    permutation_block_bytes: int = 2**26
    # A task computes at least this many terms; otherwise its overhead would exceed the time saved.
    min_task_terms: int = 2**20
    # Minimum number of permutations in a task; they share the rows of the matrix B in the cache.
    min_task_permutations: int = 16
    # Size in bytes of the permuted features in a task.
    feature_task_bytes: int = 2**22
    # Size in bytes of the products F^T G_p, one per permutation p, that a block returns at a time.
    # With several blocks, larger arrays mean fewer passes over the data; with one block, smaller
    # arrays are allocated faster.
    cross_product_bytes: int = 2**26
    cross_product_bytes_of_one_block: int = 2**24


_TUNING = _IndependenceTuning()


@dataclass(frozen=True, eq=False)
class IndependenceResult(PermutationTestResult):
    """The result of `independence_test`: the statistic, its p-value and the kernels.

    Reject the hypothesis of independence at the level a (for example 0.05) if ``pvalue <= a``.

    Attributes
    ----------
    statistic : float
        The estimate of HSIC; see `hsic` for the estimators.
    pvalue : float
        The probability of a statistic at least this large if x and y are independent.
    method : {"permutation", "lowrank"}
        The method that was used; never "auto".
    estimator : {"biased", "unbiased"}
        The estimator of HSIC.
    n_permutations : int
        The number of permuted pairings that the statistic was compared with.
    smallest_pvalue : float
        The smallest p-value that is possible with this number of permutations.
    truncation : pair of float
        The relative truncation error tr(K - F F^T) / tr K of the features F of X, and the same for
        Y, with "lowrank"; (0.0, 0.0) with "permutation".  The approximation makes
        the biased statistic too small by at most (sum of both errors) * tr K tr L / n^2.
    rank : pair of int, or None
        The numbers of features of X and Y with "lowrank", else None.
    kernel, kernel_y : Kernel
        The kernels of X and Y, with numbers for all parameters that depend on the data.
    null : ndarray of shape (n_permutations,)
        The statistics of the permuted pairings.

    See Also
    --------
    independence_test : Compute this result.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import independence_test
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> result = independence_test(x, x**2, random_state=0)
    >>> result.pvalue < 0.01, result.method
    (True, 'permutation')
    """

    truncation: tuple[float, float]
    rank: tuple[int, int] | None
    kernel: Kernel
    kernel_y: Kernel
    null: np.ndarray = field(repr=False)


@entry_point
@one_blas_thread
@resource_scope()
def independence_test(
    X: Points,
    Y: Points,
    kernel: KernelSpec = None,
    kernel_y: KernelSpec = None,
    *,
    estimator: str = "biased",
    method: str = "auto",
    n_permutations: int = 999,
    rank: int | None = None,
    random_state: RandomState = None,
    max_memory: MemoryLimit = None,
) -> IndependenceResult:
    """Test from n pairs whether x and y are independent, with HSIC as the test statistic.

    With the default kernels, the test detects any kind of dependence, not only correlation, if
    there are enough pairs.  x and y may be of different kinds, for example strings and vectors.

    The p-value is (1 + #{HSIC of a random pairing >= HSIC of the data}) / (1 + n_permutations).
    The level of the test is exact for every n.

    ============= ============================================================================
    method        statistic of a permuted pairing p
    ============= ============================================================================
    "permutation" sum_ij A_ij B_(p_i p_j) over the centred matrices A and B, which are stored:
                  16 n^2 bytes, O(n^2) time.
    "lowrank"     |F^T G_p|^2 with `rank` centred Nyström features of X and of Y: O(n rank)
                  memory, O(n rank^2) time.  This is an exact test with the approximate kernels
                  f(x) . f(z): its level is exact for every rank, but a small rank may reduce
                  its power.
    "auto"        "permutation" for up to 4000 pairs, if the matrices fit the memory budget, else
                  "lowrank".  "permutation" is also used if a kernel is not positive definite or
                  the points have no canonical order (see `two_sample_test`).
                  `result.method` is the method that was used.  For chunked samples, "auto" is
                  "lowrank".
    ============= ============================================================================

    If there are at most `n_permutations` permutations other than the observed one, each of them is
    evaluated once.

    Parameters
    ----------
    X, Y : points
        The two samples, of the same length n: row i of X belongs to row i of Y.  With "lowrank",
        both may also be chunked, as in `two_sample_test`.
    kernel, kernel_y : Kernel, str, callable or None, default=None
        The kernels of X and Y.  `kernel=None` means the RBF with the median bandwidth;
        `kernel_y=None` means the same specification as `kernel`, with its own bandwidth.  With the
        kernel `Distance()`, this is the distance covariance test.
    estimator : {"biased", "unbiased"}, default="biased"
        The estimator of HSIC; see `hsic`.  "unbiased" needs at least four pairs.
    method : {"auto", "permutation", "lowrank"}, default="auto"
        See the table above.
    n_permutations : int, default=999
        The number of random pairings; the smallest possible p-value is 1 / (n_permutations + 1).
    rank : int, optional
        The number of features of X and of Y for "lowrank"; 100 by default.  Increase it if
        `result.truncation` is large.
    random_state : int, Generator, RandomState or None, default=None
        The random seed for permutations and landmarks; None means the seed 0.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    IndependenceResult
        HSIC, its p-value, the method and kernels that were used, and the array `null` of shape
        (n_permutations,) with the permuted statistics.

    Raises
    ------
    ValueError
        If X and Y have different lengths, or too few points.

    See Also
    --------
    hsic : The test statistic alone.
    two_sample_test : Test whether two samples come from the same distribution.

    References
    ----------
    Gretton, Fukumizu, Teo, Song, Schölkopf and Smola, "A kernel statistical test of independence",
    NIPS 2007.

    Székely, Rizzo and Bakirov, "Measuring and testing dependence by correlation of distances",
    Annals of Statistics 35, 2007.

    Zhang, Filippi, Gretton and Sejdinovic, "Large-scale kernel methods for independence testing",
    Statistics and Computing 28, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import independence_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(200, 1))
    >>> y = x**2 + 0.1 * rng.normal(size=(200, 1))  # uncorrelated, but not independent
    >>> independence_test(x, y).pvalue
    0.001
    """
    count, rank = check_test_options(method, _METHODS, n_permutations, rank)
    rng = seeded_generator(random_state)
    blocks: Blocks | OneBlock
    if are_chunked(X, Y):
        blocks, method = pair_blocks(X, Y, method, ("lowrank",))
        check_choice("estimator", estimator, *ESTIMATORS)
        n = check_count(len(blocks), "X", 2 if estimator == "biased" else 4)
        specs = (kernel, kernel if kernel_y is None else kernel_y)
        # These are samples of the points; the test in memory uses all of them.
        samples = evaluated = sample_of_blocks(blocks, specs, pool=False)
    else:
        samples = [*check_paired_samples(X, Y, kernel, kernel_y, estimator)]
        n = length(samples[0][1])
        evaluated = [(memoise_if_affordable(k, n, max_memory), as_csr(P)) for k, P in samples]
        blocks = OneBlock(*(P for _, P in evaluated))
    fits = 16 * n * n <= budget_in_bytes(max_memory)
    maps: list[NystroemMap] = []
    is_large = n > _TUNING.max_permutation_pairs or not fits
    if method == "lowrank" or (method == "auto" and is_large):
        required = method == "lowrank" or not fits
        maps = landmark_maps(evaluated, rank, rng, required)
    method = "lowrank" if maps else "permutation"
    # Three copies of the features of a block are in memory (raw, centred, permuted).  The matrices
    # are centred in place.
    n_bytes = 3 * 8 * max(blocks.sizes) * sum(map(len, maps)) if maps else 16 * n * n
    check_budget(n_bytes, max_memory, f"the test of {n} pairs by method={method!r}")
    orders = Rearrangements.of_permutations(n, count, blocks.sizes, rng)
    means = [FeatureMean(np.empty(0), 0.0)] * 2
    if maps:
        means = feature_means(blocks, maps, max_memory)
        sums, margin = _sums_over_features(blocks, maps, means, orders, estimator, n, max_memory)
    else:
        A, B = (_centred(k, P, estimator) for k, P in evaluated)
        sums, margin = _sums_over_matrices(A, B, orders)
    divisor = hsic_divisor(n, estimator)
    values, margin = sums / divisor, margin / divisor
    smallest = 1 / (1 + orders.count)
    warn_if_level_unreachable(smallest, f"there are {n} pairs, and {orders.count} permutations")
    (kernel, _), (kernel_y, _) = samples
    return IndependenceResult(
        statistic=clip_biased_hsic(float(values[0]), margin, estimator, kernel, kernel_y),
        pvalue=pvalue(values[0], values[1:], margin),
        method=method,
        estimator=estimator,
        n_permutations=orders.count,
        smallest_pvalue=smallest,
        truncation=(means[0].truncation, means[1].truncation),
        rank=(len(maps[0]), len(maps[1])) if maps else None,
        kernel=kernel,
        kernel_y=kernel_y,
        null=values[1:],
    )


# `_sums_over_matrices` and `_sums_over_features` return sum_ij A_ij B_(p_i p_j) for each
# permutation p, the identity first, and a bound on the rounding error of these sums.


def _centred(kernel: Kernel, X: Points, estimator: str) -> np.ndarray:
    K = DenseGram(*centre_linear_terms(kernel, X))
    centring = Centring.of(K, estimator)
    all_points = slice(0, K.shape[0])
    return centring.tile(K.release(), all_points, all_points)


def _sums_over_matrices(
    A: np.ndarray, B: np.ndarray, orders: Rearrangements
) -> tuple[np.ndarray, float]:
    """Compute the sums for centred matrices A and B."""
    n, sums = len(A), np.empty(1 + orders.count)
    step = max(_TUNING.min_task_permutations, _TUNING.min_task_terms // A.size)
    for part in orders.passes(_TUNING.permutation_block_bytes // (4 * n)):
        rows, out = orders.permutations(0, n, part), sums[part]

        def task(some: slice, rows: np.ndarray = rows, out: np.ndarray = out) -> None:
            _permuted_sums(A, B, rows[some], out[some])

        run_in_threads(task, slices(len(rows), step), work=float(rows.size) * n)
    magnitude = float(np.linalg.norm(A) * np.linalg.norm(B))
    return sums, magnitude * relative_rounding(np.result_type(A, B))


@jit("reassoc")
def _permuted_sums(A: np.ndarray, B: np.ndarray, orders: np.ndarray, out: np.ndarray) -> None:
    """Set out[b] to sum_ij A_ij B_(p_i p_j) with p = orders[b], using the lower triangle of A.

    A row of B is read in permuted order, so it is kept in the cache and used for all permutations.
    The matching rows of A are read sequentially.
    """
    n = len(A)
    out[:] = 0.0
    inverse = np.empty_like(orders)
    for b in range(len(orders)):
        for i in range(n):
            inverse[b, orders[b, i]] = i
    for r in range(n):
        row = B[r]
        for b in range(len(orders)):
            p, i = orders[b], inverse[b, r]
            a = A[i]
            total = 0.5 * a[i] * row[r]
            for j in range(i):
                total += a[j] * row[p[j]]
            out[b] += 2.0 * total


@_permuted_sums.without_numba
def _permuted_sums_numpy(A: np.ndarray, B: np.ndarray, orders: np.ndarray, out: np.ndarray) -> None:
    lower = np.tril(A, -1)
    for b, p in enumerate(orders):
        out[b] = sum(2.0 * (lower[i] @ B[p[i], p]) + A[i, i] * B[p[i], p[i]] for i in range(len(A)))


def _sums_over_features(
    blocks: Blocks | OneBlock,
    maps: Sequence[NystroemMap],
    means: Sequence[FeatureMean],
    orders: Rearrangements,
    estimator: str,
    n: int,
    max_memory: MemoryLimit,
) -> tuple[np.ndarray, float]:
    """Compute the sums for A = F F^T and B = G G^T with centred features F and G of X and Y.

    d and e are the diagonals of A and B.  Since F^T 1 = G^T 1 = 0, the sum of the unbiased
    estimator, which excludes the diagonals, is

        |F^T G_p|^2 - (1 + 2 / (n - 2)) d . e_p + sum d sum e / ((n - 1) (n - 2))
    """
    sums = np.empty(1 + orders.count)
    product_bytes = _TUNING.cross_product_bytes
    if len(blocks.sizes) == 1:
        product_bytes = _TUNING.cross_product_bytes_of_one_block
    product_bytes = min(product_bytes, budget_in_bytes(max_memory) // 4)
    for part in orders.passes(product_bytes // (8 * len(maps[0]) * len(maps[1]))):
        options = (maps, [mean for mean, _ in means], orders, part, max_memory)
        C, de, FF, GG = blocks.reduce(_cross_products, add_elementwise, *options)
        sums[part] = np.einsum("bij,bij->b", C, C)
        if estimator == "unbiased":
            sums[part] += np.trace(FF) * np.trace(GG) / ((n - 1) * (n - 2)) - n / (n - 2) * de
    magnitude = float(np.linalg.norm(FF) * np.linalg.norm(GG))
    return sums, magnitude * relative_rounding(float)


def _cross_products(
    rows: BlockRows,
    maps: Sequence[NystroemMap],
    means: Sequence[np.ndarray],
    orders: Rearrangements,
    part: slice,
    max_memory: MemoryLimit,
) -> list[np.ndarray]:
    """Return F^T G_p and d . e_p of a block for some permutations p, and F^T F and G^T G."""
    F, G = (
        K.features() - mean
        for K, mean in zip(block_features(rows, maps, max_memory), means, strict=True)
    )
    d, e = np.einsum("ij,ij->i", F, F), np.einsum("ij,ij->i", G, G)
    n, Ft = len(F), np.ascontiguousarray(F.T)
    C = np.empty((part.stop - part.start, F.shape[1], G.shape[1]))
    de = np.empty(len(C))
    step = max(1, _TUNING.feature_task_bytes // (8 * G.size))
    for some in orders.passes(_TUNING.permutation_block_bytes // (4 * n), part):
        permutations = orders.permutations(rows.place, n, some)
        first = some.start - part.start

        def task(few: slice, rows: np.ndarray = permutations, first: int = first) -> None:
            p, out = rows[few].T, slice(first + few.start, first + few.stop)
            products = (Ft @ G[p].reshape(n, -1)).reshape(-1, p.shape[1], G.shape[1])
            C[out], de[out] = products.transpose(1, 0, 2), d @ e[p]

        work = float(permutations.size) * C[0].size
        run_in_threads(task, slices(len(permutations), step), work=work)
    return [C, de, Ft @ F, G.T @ G]
