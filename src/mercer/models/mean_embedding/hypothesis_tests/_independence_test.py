"""Permutation test of independence, based on the Hilbert-Schmidt independence criterion (HSIC)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...._core import (
    budget_in_bytes,
    check_budget,
    entry_point,
    jit,
    length,
    memory_scope,
    one_blas_thread,
    run_in_threads,
    seeded_generator,
    slices,
)
from ....gram import DenseGram, LowRankGram, memoise_if_affordable
from ....kernels import Kernel
from .._hsic import Centring, check_paired_samples, clip_biased_hsic, hsic_divisor
from .._sample_validation import centre_linear_terms
from .._statistic_rounding import relative_rounding
from ._permutations import check_test_options, iter_permutations, pvalue, warn_if_level_unreachable
from ._test_landmarks import landmark_grams, truncation
from ._tests_blockwise import are_chunked, chunked_independence_test

__all__ = ["IndependenceResult", "independence_test"]

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


_TUNING = _IndependenceTuning()

# A function sums(orders, out) that sets out[b] to the sum of A_ij B_(p_i p_j) over i and j, for
# each permutation p = orders[b].
Sums = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True, eq=False)
class IndependenceResult:
    """The result of `independence_test`.

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

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import independence_test
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> result = independence_test(x, x**2, random_state=0)
    >>> result.pvalue < 0.01, result.method
    (True, 'permutation')
    """

    statistic: float
    pvalue: float
    method: str
    estimator: str
    n_permutations: int
    smallest_pvalue: float
    truncation: tuple[float, float]
    rank: tuple[int, int] | None
    kernel: Kernel
    kernel_y: Kernel
    null: np.ndarray = field(repr=False)


@entry_point
@one_blas_thread
@memory_scope()
def independence_test(
    X: Any,
    Y: Any,
    kernel: Any = None,
    kernel_y: Any = None,
    *,
    estimator: str = "biased",
    method: str = "auto",
    n_permutations: int = 999,
    rank: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    max_memory: int | str | None = None,
) -> IndependenceResult:
    """Test from n pairs whether x and y are independent, with HSIC as the test statistic.

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
                  `result.method` is the method that was used.
    ============= ============================================================================

    If there are at most `n_permutations` permutations other than the observed one, each of them is
    evaluated once.

    Parameters
    ----------
    X, Y, kernel, kernel_y, estimator
        As in `hsic`.  With method="lowrank", X and Y may also be chunked, as in
        `two_sample_test`.  With the kernel `Distance()`, this is the distance covariance test.
    method : {"auto", "permutation", "lowrank"}, default="auto"
        See the table above.
    n_permutations, rank, random_state, max_memory
        As in `two_sample_test`.

    Returns
    -------
    IndependenceResult
        HSIC, its p-value, and the method and kernels that were used.

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
    if are_chunked(X, Y):
        options = (kernel, kernel_y, estimator, method, count, rank, rng)
        return IndependenceResult(**chunked_independence_test(X, Y, *options))
    samples = check_paired_samples(X, Y, kernel, kernel_y, estimator)
    (kernel, X), (kernel_y, _) = samples
    n = length(X)
    memoised = [(memoise_if_affordable(k, n, max_memory), P) for k, P in samples]
    fits = 16 * n * n <= budget_in_bytes(max_memory)
    features: list[LowRankGram] = []
    if method == "lowrank" or (
        method == "auto" and not (n <= _TUNING.max_permutation_pairs and fits)
    ):
        required = method == "lowrank" or not fits
        features = landmark_grams(memoised, rank, rng, max_memory, required)
    method = "lowrank" if features else "permutation"
    ranks = [len(F.map) for F in features]
    # Three copies of the features are in memory (raw, centred, permuted).  The matrices are centred
    # in place.
    n_bytes = 3 * 8 * n * sum(ranks) if features else 16 * n * n
    check_budget(n_bytes, max_memory, f"the test of {n} pairs by method={method!r}")
    if features:
        sums, step, margin = _sums_over_features(
            *(F.features() for F in features), estimator=estimator
        )
    else:
        sums, step, margin = _sums_over_matrices(*(_centred(k, P, estimator) for k, P in memoised))
    n_done, blocks = iter_permutations(
        n, count, rng, max(64, _TUNING.permutation_block_bytes // (4 * n))
    )
    divisor = hsic_divisor(n, estimator)
    values = np.concatenate([_sums_in_tasks(sums, rows, step) for rows in blocks]) / divisor
    margin /= divisor
    smallest = 1 / (1 + n_done)
    warn_if_level_unreachable(smallest, f"there are {n} pairs, and {n_done} permutations")
    return IndependenceResult(
        statistic=clip_biased_hsic(float(values[0]), margin, estimator, kernel, kernel_y),
        pvalue=pvalue(values[0], values[1:], margin),
        method=method,
        estimator=estimator,
        n_permutations=n_done,
        smallest_pvalue=smallest,
        truncation=(truncation(features[0]), truncation(features[1])) if features else (0.0, 0.0),
        rank=(ranks[0], ranks[1]) if features else None,
        kernel=kernel,
        kernel_y=kernel_y,
        null=values[1:],
    )


def _sums_in_tasks(sums: Sums, orders: np.ndarray, step: int) -> np.ndarray:
    """Return sum_ij A_ij B_(p_i p_j) for each permutation p of `orders`, in parallel tasks."""
    out = np.empty(len(orders))

    def task(part: slice) -> None:
        sums(orders[part], out[part])

    run_in_threads(task, slices(len(orders), step), work=float(orders.size) * orders.shape[1])
    return out


# ---------------------------------------------------------------------- matrices


def _centred(kernel: Kernel, X: Any, estimator: str) -> np.ndarray:
    K = DenseGram(*centre_linear_terms(kernel, X))
    centring = Centring.of(K, estimator)
    all_points = slice(0, K.shape[0])
    return centring.tile(K.release(), all_points, all_points)


def _sums_over_matrices(A: np.ndarray, B: np.ndarray) -> tuple[Sums, int, float]:
    """Return a function `sums`, the number of permutations per task, and a rounding error bound.

    `sums(orders, out)` sets out[b] to sum_ij A_ij B_(p_i p_j) for each permutation p = orders[b].
    """
    magnitude = float(np.linalg.norm(A) * np.linalg.norm(B))
    step = max(_TUNING.min_task_permutations, _TUNING.min_task_terms // A.size)
    return partial(_permuted_sums, A, B), step, magnitude * relative_rounding(np.result_type(A, B))


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


# ---------------------------------------------------------------------- features


def _sums_over_features(F: np.ndarray, G: np.ndarray, *, estimator: str) -> tuple[Sums, int, float]:
    """Return a function `sums`, the number of permutations per task, and a rounding error bound.

    `sums(orders, out)` sets out[b] to sum_ij A_ij B_(p_i p_j) for each permutation p = orders[b],
    where A = F F^T and B = G G^T for the features F and G after centring.  d and e are the
    diagonals of A and B.  Since F^T 1 = G^T 1 = 0, the sum of the unbiased estimator, which
    excludes the diagonals, is

        |F^T G_p|^2 - (1 + 2 / (n - 2)) d . e_p + sum d sum e / ((n - 1) (n - 2))
    """
    F, G = F - F.mean(axis=0), G - G.mean(axis=0)
    n, Ft = len(F), np.ascontiguousarray(F.T)
    d, e = np.einsum("ij,ij->i", F, F), np.einsum("ij,ij->i", G, G)

    def sums(orders: np.ndarray, out: np.ndarray) -> None:
        p = orders.T
        C = (Ft @ G[p].reshape(n, -1)).reshape(-1, p.shape[1], G.shape[1])
        out[:] = np.einsum("ibj,ibj->b", C, C)
        if estimator == "unbiased":
            out += d.sum() * e.sum() / ((n - 1) * (n - 2)) - n / (n - 2) * (d @ e[p])

    magnitude = float(np.linalg.norm(Ft @ F) * np.linalg.norm(G.T @ G))
    return (
        sums,
        max(1, _TUNING.feature_task_bytes // (8 * G.size)),
        magnitude * relative_rounding(F.dtype),
    )
