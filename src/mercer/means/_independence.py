"""Are x and y independent?  The permutation test by HSIC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .._points import length
from .._runtime import (
    budget_in_bytes,
    check_budget,
    entry_point,
    jit,
    one_blas_thread,
    random_numbers,
    reserving,
    run,
    slices,
)
from ..gram import DenseGram, LowRankGram, memoise_if_affordable
from ..kernels import Kernel
from ._hsic import Centring, as_square, count_of_pairs, paired
from ._in_blocks import either_in_blocks, independent_in_blocks
from ._landmarks import landmark_grams, truncation
from ._permutation import check_test, orders, pvalue, warn_of_few
from ._rounding import rounding
from ._samples import moved

__all__ = ["IndependenceResult", "independence_test"]

_METHODS = ("auto", "permutation", "lowrank")
_LARGE = 4000  # pairs beyond which "auto" takes features
_BLOCK = 2**26  # bytes of permutations at a time
_WORK = 2**20  # terms of sums over matrices that are worth a task of their own
_CHUNK = 16  # permutations in such a task, at least
_FEATURES = 2**22  # bytes of permuted features in a task

# Sets out_b <- sum_ij A_ij B_(p_i p_j) for each permutation p in the rows of an array of int32.
Sums = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True, eq=False)
class IndependenceResult:
    """What a test of independence found.

    Attributes
    ----------
    statistic : float
        HSIC; see `hsic` for the estimators.
    pvalue : float
        The probability, if x and y are independent, of a statistic as large.
    method : {"permutation", "lowrank"}
        What was done; never "auto".
    estimator : {"biased", "unbiased"}
    n_permutations : int
        With how many random pairings the statistic was compared.
    smallest_pvalue : float
        No data could have given less.
    truncation : pair of float
        tr(K - F F^T) / tr K for the features F of X, and the same for Y: what "lowrank" leaves
        out.  Zeros if nothing.  The biased statistic is then too small by at most their sum times
        tr K tr L / n^2.
    rank : pair of int, or None
        The numbers of features.
    kernel, kernel_y : Kernel
        With all their values.
    null : ndarray of shape (n_permutations,)
        The statistics of the random pairings.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import independence_test
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> found = independence_test(x, x**2, random_state=0)
    >>> found.pvalue < 0.01, found.method
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
@reserving()
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
    """Test whether x and y are independent, from n pairs, by HSIC = tr(K H L H) / n^2.

    The p-value is (1 + #{HSIC of a random pairing >= that of the data}) / (1 + n_permutations),
    whose level is exact for every n.

    ============= ============================================================================
    method        a pairing p
    ============= ============================================================================
    "permutation" sum_ij A_ij B_(p_i p_j) over the centred matrices, which are held: 16 n^2 bytes,
                  O(n^2) time.
    "lowrank"     |F^T G_p|^2 with `rank` Nyström features of X and of Y, centred: O(n rank)
                  memory, O(n rank^2) time.  A test with the kernels f(x) . f(z): the level is as
                  exact, whatever the rank; what may suffer is the power.
    "auto"        "permutation" for up to 4000 pairs, if the matrices fit the budget, "lowrank"
                  otherwise (unless a kernel is not positive definite, or the points have no order
                  of their own: see `two_sample_test`); `result.method` says which.
    ============= ============================================================================

    If the points have no more than `n_permutations` permutations, each is tried once.

    Parameters
    ----------
    X, Y, kernel, kernel_y, estimator
        As in `hsic`; or both in blocks for "lowrank", as in `two_sample_test`.  With the kernel
        `Distance()` this is the test by distance covariance.
    method : {"auto", "permutation", "lowrank"}
    n_permutations, rank, random_state, max_memory
        As in `two_sample_test`.

    Returns
    -------
    IndependenceResult
        HSIC, its p-value, and how they were found.

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
    count, rank = check_test(method, _METHODS, n_permutations, rank)
    rng = random_numbers(random_state)
    if either_in_blocks(X, Y):
        options = (kernel, kernel_y, estimator, method, count, rank, rng)
        return IndependenceResult(**independent_in_blocks(X, Y, *options))
    samples = paired(X, Y, kernel, kernel_y, estimator)
    (kernel, X), (kernel_y, _) = samples
    n = length(X)
    memoised = [(memoise_if_affordable(k, n, max_memory), P) for k, P in samples]
    fits = 16 * n * n <= budget_in_bytes(max_memory)
    features: list[LowRankGram] = []
    if method == "lowrank" or (method == "auto" and not (n <= _LARGE and fits)):
        required = method == "lowrank" or not fits
        features = landmark_grams(memoised, rank, rng, max_memory, required)
    method = "lowrank" if features else "permutation"
    ranks = [len(F.map) for F in features]
    # Features are held as they are, centred and permuted; matrices are centred in place.
    held = 3 * 8 * n * sum(ranks) if features else 16 * n * n
    check_budget(held, max_memory, f"the test of {n} pairs by method={method!r}")
    if features:
        sums, step, margin = _of_features(*(F.features() for F in features), estimator=estimator)
    else:
        sums, step, margin = _of_matrices(*(_centred(k, P, estimator) for k, P in memoised))
    done, blocks = orders(n, count, rng, max(64, _BLOCK // (4 * n)))
    pairs = count_of_pairs(n, estimator)
    values = np.concatenate([_in_chunks(sums, rows, step) for rows in blocks]) / pairs
    margin /= pairs
    smallest = 1 / (1 + done)
    warn_of_few(smallest, f"there are {n} pairs, and {done} permutations")
    return IndependenceResult(
        statistic=as_square(float(values[0]), margin, estimator, kernel, kernel_y),
        pvalue=pvalue(values[0], values[1:], margin),
        method=method,
        estimator=estimator,
        n_permutations=done,
        smallest_pvalue=smallest,
        truncation=(truncation(features[0]), truncation(features[1])) if features else (0.0, 0.0),
        rank=(ranks[0], ranks[1]) if features else None,
        kernel=kernel,
        kernel_y=kernel_y,
        null=values[1:],
    )


def _in_chunks(sums: Sums, orders: np.ndarray, step: int) -> np.ndarray:
    """Return the sums for all permutations, `step` of them to a task."""
    out = np.empty(len(orders))

    def chunk(part: slice) -> None:
        sums(orders[part], out[part])

    run(chunk, slices(len(orders), step), work=float(orders.size) * orders.shape[1])
    return out


# ---------------------------------------------------------------------- matrices


def _centred(kernel: Kernel, X: Any, estimator: str) -> np.ndarray:
    K = DenseGram(*moved(kernel, X))
    centring = Centring.of(K, estimator)
    everything = slice(0, K.shape[0])
    return centring.tile(K.release(), everything, everything)


def _of_matrices(A: np.ndarray, B: np.ndarray) -> tuple[Sums, int, float]:
    """Return the sums, how many permutations make a task, and how much may be rounding."""
    size = float(np.linalg.norm(A) * np.linalg.norm(B))
    step = max(_CHUNK, _WORK // A.size)
    return partial(_gather, A, B), step, size * rounding(np.result_type(A, B))


@jit("reassoc")
def _gather(A: np.ndarray, B: np.ndarray, orders: np.ndarray, out: np.ndarray) -> None:
    """Set out_b <- sum_ij A_ij B_(p_i p_j) with p = orders[b], over one half of the pairs.

    A row of B, which is read in any order, stays in the cache for all permutations; the rows of A
    that belong to it are read from left to right.
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


def _of_features(F: np.ndarray, G: np.ndarray, *, estimator: str) -> tuple[Sums, int, float]:
    """Return the same for A = F F^T and B = G G^T, after centring F and G.

    Without the diagonals (d and e), with F^T 1 = G^T 1 = 0, the sum of the unbiased estimator is

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

    size = float(np.linalg.norm(Ft @ F) * np.linalg.norm(G.T @ G))
    return sums, max(1, _FEATURES // (8 * G.size)), size * rounding(F.dtype)
