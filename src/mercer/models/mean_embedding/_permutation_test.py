"""Permutation tests of samples in blocks of rows: rearrangements, features, and p-values.

    p = (1 + #{b : T_b >= T_0}) / (1 + B)

T_1, ..., T_B are the statistics of B rearrangements of the data.  The observed statistic T_0 is one
of the 1 + B values, so that under the null hypothesis P(p <= a) <= a for every B.  Values that
differ by no more than rounding count as equal.

Samples are blocks of rows: `Blocks`, a Dask collection, or points in memory, which are one block.
Each block contributes sums of features, or of pair terms, for the observed data and for all
rearrangements.  A rearrangement affects each block separately: it permutes the sample labels of its
rows, changes the signs of its pairs, or permutes the pairing of its rows.  Under the null
hypothesis all rearrangements are equally likely, so the level of the test is exact for all blocks.
The random numbers of a block depend only on the seed and on the index of the block.

The level is exact only if the kernel and the features do not depend on the order of the rows.  They
are therefore chosen from points in a canonical order of their contents: from all points in memory,
or from those rows of the blocks whose contents have the smallest hash values.  The number of
features affects only the power of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice, permutations, product
from math import comb, factorial
from operator import add
from typing import NamedTuple, Self, TypeVar

import numpy as np

from ..._core import (
    MemoryLimit,
    NotebookResult,
    NotPositiveDefiniteError,
    Points,
    as_csr,
    as_float64,
    concatenate,
    is_count,
    length,
    take,
    warn_caller,
)
from ...blocks import BlockRows, Blocks, as_blocks, is_chunked, with_targets
from ...gram import DEFAULT_CANDIDATES, LowRankGram, NystroemMap, choose_landmarks
from ...kernels import shifted_to_data
from ._sample_validation import (
    KernelAndPoints,
    KernelSpec,
    UnorderableError,
    canonical_order,
    make_kernel,
    resolve_kernel,
)

_USUAL_LEVEL = 0.05  # a test that cannot reject at this usual level gives a warning
_DEFAULT_RANK = 100  # number of features for method="lowrank" with rank=None
# Number of consecutive rearrangements that are drawn from one random number generator.  Passes over
# the data consist of whole groups, so that their number does not change the random numbers.
_GROUP_ROWS = 16
# If both samples have more points, no number of permutations includes all splits: there are 1e17.
_MAX_ENUMERATED_POINTS = 30

T = TypeVar("T")


def check_test_options(
    method: str, methods: Sequence[str], n_permutations: int, rank: int | None
) -> tuple[int, int]:
    """Validate the options of a test; return the numbers of permutations and of features."""
    if method not in methods:
        raise ValueError(f"method must be one of {methods}, got {method!r}")
    if not is_count(n_permutations):
        raise ValueError(
            f"n_permutations must be a positive integer, got {n_permutations!r}; the smallest "
            f"p-value is 1 / (n_permutations + 1)"
        )
    if rank is not None and not is_count(rank):
        raise ValueError(f"rank must be a positive integer or None, got {rank!r}")
    return int(n_permutations), _DEFAULT_RANK if rank is None else int(rank)


@dataclass(frozen=True, eq=False)
class PermutationTestResult(NotebookResult):
    """The fields that the results of all tests share; the subclasses document them."""

    statistic: float
    pvalue: float
    method: str
    estimator: str
    n_permutations: int
    smallest_pvalue: float


# ---------------------------------------------------------------------- rearrangements


@dataclass(frozen=True)
class Rearrangements:
    """The rearrangements of the rows of each block: the observed one, and `count` others.

    `splits`, `permutations` and `signs` return the rearrangements of one of the `passes` as rows of
    an array.  Number 0 is the observed one.  If `is_complete` is True, there is one block, and the
    others are all rearrangements that exist; otherwise they are random.
    """

    count: int
    seed: int
    is_complete: bool = False

    @classmethod
    def _of(
        cls, n_others: float, count: int, sizes: Sequence[int], rng: np.random.Generator
    ) -> Self:
        is_complete = len(sizes) == 1 and n_others <= count
        return cls(int(n_others) if is_complete else count, int(rng.integers(2**31)), is_complete)

    @classmethod
    def of_splits(
        cls, m: int, n: int, count: int, sizes: Sequence[int], rng: np.random.Generator
    ) -> Self:
        """Return the splits of m + n points into two samples of m and n points."""
        return cls._of(comb(m + n, min(m, n, _MAX_ENUMERATED_POINTS)) - 1, count, sizes, rng)

    @classmethod
    def of_permutations(
        cls, n: int, count: int, sizes: Sequence[int], rng: np.random.Generator
    ) -> Self:
        """Return the permutations of n points."""
        return cls._of(factorial(n) - 1 if n <= 20 else np.inf, count, sizes, rng)

    @classmethod
    def of_signs(cls, n: int, count: int, sizes: Sequence[int], rng: np.random.Generator) -> Self:
        """Return the rows of n signs."""
        return cls._of(2**n - 1 if n < 63 else np.inf, count, sizes, rng)

    def passes(self, size: int, part: slice | None = None) -> list[slice]:
        """Split all rearrangements, or one of the passes, into slices of about `size`."""
        start, stop = (0, 1 + self.count) if part is None else (part.start, part.stop)
        step = max(1, size // _GROUP_ROWS) * _GROUP_ROWS
        return [slice(i, min(i + step, stop)) for i in range(start, stop, step)]

    def splits(self, block: int, m: int, n: int, part: slice) -> np.ndarray:
        """Return rows of m + n values, where True marks the points of the first sample."""
        points = np.arange(m + n)
        # The first combination is the observed split.
        all_rows = (np.isin(points, first_sample) for first_sample in combinations(points, m))
        return self._rows(block, part, points < m, all_rows, _shuffle_rows)

    def permutations(self, block: int, n: int, part: slice) -> np.ndarray:
        """Return permutations of n points; the observed one is the identity."""
        identity = np.arange(n, dtype=np.int32)
        return self._rows(block, part, identity, permutations(identity), _shuffle_rows)

    def signs(self, block: int, n: int, part: slice) -> np.ndarray:
        """Return rows of n signs, where True means minus; the observed row has no minus sign."""
        all_rows = product((False, True), repeat=n)
        return self._rows(block, part, np.zeros(n, dtype=bool), all_rows, _draw_signs)

    def shuffled(self, block: int, X: Points, sample: int) -> Points:
        """Return the points of sample 0 or 1 of a block in random order."""
        rng = np.random.default_rng([self.seed, block, sample, 1])
        return take(X, rng.permutation(length(X)))

    def _rows(
        self,
        block: int,
        part: slice,
        observed: np.ndarray,
        all_rows: Iterable[Sequence[object] | np.ndarray],
        randomise: Callable[[np.ndarray, np.random.Generator], None],
    ) -> np.ndarray:
        if self.is_complete:
            return np.array(list(islice(all_rows, part.start, part.stop)))
        rows = np.tile(observed, (part.stop - part.start, 1))
        for i in range(0, len(rows), _GROUP_ROWS):
            first = part.start + i
            rng = np.random.default_rng([self.seed, block, first // _GROUP_ROWS])
            randomise(rows[i + (first == 0) : i + _GROUP_ROWS], rng)
        return rows


def _shuffle_rows(rows: np.ndarray, rng: np.random.Generator) -> None:
    rng.permuted(rows, axis=1, out=rows)


def _draw_signs(rows: np.ndarray, rng: np.random.Generator) -> None:
    bits = np.frombuffer(rng.bytes(-(-rows.size // 8)), dtype=np.uint8)
    rows[...] = np.unpackbits(bits, count=rows.size).reshape(rows.shape)


def pvalue(observed: float, null: np.ndarray, margin: float) -> float:
    """Return (1 + #{null >= observed}) / (1 + B); values within `margin` count as equal."""
    return float(1 + np.count_nonzero(null >= observed - margin)) / (1 + len(null))


def warn_if_level_unreachable(smallest: float, why: str) -> None:
    """Warn if the smallest possible p-value is above 0.05; `why` explains the cause."""
    if smallest > _USUAL_LEVEL:
        warn_caller(
            f"the smallest possible p-value is {smallest:.3g}, so that the test can never reject "
            f"at the level {_USUAL_LEVEL}: {why}; use more points or permutations"
        )


def warn_if_rounding_dominates(margin: float, null: np.ndarray) -> None:
    """Warn if the permuted statistics vary by less than their possible rounding error."""
    if 0.0 < (spread := float(null.std())) < margin:
        warn_caller(
            f"the rounding error of a statistic may be up to {margin:.3g}, but the permuted "
            f"statistics have a standard deviation of only {spread:.3g}, so that most of them "
            f"count as equal and the p-value is too large; the usual cause is data far from 0, or "
            f"a length scale much larger than the distances. Centre the features, or choose a "
            f"smaller length scale"
        )


# ---------------------------------------------------------------------- samples in blocks


@dataclass(frozen=True)
class OneBlock:
    """Two samples of points of any kind in memory, as a single block of rows."""

    X: Points
    y: Points

    @property
    def sizes(self) -> tuple[int]:
        """The number of points of the first sample; there is one block."""
        return (length(self.X),)

    def reduce(self, f: Callable[..., T], merge: Callable[[T, T], T], *shared: object) -> T:
        """Return f of the only block, as `Blocks.reduce` does."""
        return f(BlockRows(0, 0, self.X, self.y), *shared)


def are_chunked(X: object, Y: object) -> bool:
    """Whether both samples are chunked; raises a ValueError if only one of them is."""
    if is_chunked(X) != is_chunked(Y):
        raise ValueError(
            "one sample is in blocks, but the other is not; pass both as arrays or both as blocks"
        )
    return is_chunked(X)


def pair_blocks(X: object, Y: object, method: str, methods: Sequence[str]) -> tuple[Blocks, str]:
    """Validate two chunked samples; return blocks with the rows of both, and the method.

    `methods` are the methods of the test that need only sums over blocks.  "auto" is "lowrank".
    """
    X, Y = as_blocks(X, "X"), as_blocks(Y, "Y")
    if X.ndim != 2 or Y.ndim != 2:
        raise ValueError(f"samples in blocks must be 2-D, got the shapes {X.shape} and {Y.shape}")
    if X.sizes != Y.sizes:
        raise ValueError(
            f"samples in blocks are permuted block by block, so the blocks must have equal sizes: "
            f"X has {len(X)} rows in {len(X.sizes)} blocks, Y has {len(Y)} rows in "
            f"{len(Y.sizes)} blocks"
        )
    if method not in ("auto", *methods):
        raise ValueError(
            f"samples in blocks support method={' and '.join(map(repr, methods))}; {method!r} "
            f"needs all pairs of points"
        )
    return with_targets(X, Y), "lowrank" if method == "auto" else method


def sample_of_blocks(
    blocks: Blocks, kernels: Sequence[KernelSpec], *, pool: bool
) -> list[KernelAndPoints]:
    """Return a sample of the rows of X and of Y, or of both together, and its kernel.

    The sample has up to 20 000 rows in canonical order and does not depend on the order of the
    rows.  The kernel has numbers for all parameters that depend on the data.
    """
    merge = partial(_merge_samples, DEFAULT_CANDIDATES)
    samples = blocks.reduce(_sample_block, merge, DEFAULT_CANDIDATES, pool)
    samples = [Z[canonical_order(Z)] for Z in samples]
    return [(resolve_kernel(make_kernel(k), Z), Z) for k, Z in zip(kernels, samples, strict=True)]


def _sample_block(rows: BlockRows, count: int, pool: bool) -> list[np.ndarray]:
    X, Y = np.asarray(rows.X, dtype=float), np.asarray(rows.y, dtype=float)
    samples = [np.concatenate([X, Y])] if pool else [X, Y]
    return [_rows_with_smallest_hash(count, A) for A in samples]


def _merge_samples(count: int, a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    pairs = zip(a, b, strict=True)
    return [_rows_with_smallest_hash(count, np.concatenate(pair)) for pair in pairs]


def _rows_with_smallest_hash(count: int, X: np.ndarray) -> np.ndarray:
    """Return the `count` rows of X with the smallest 64-bit hash of their values."""
    if len(X) <= count:
        return X
    h = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in np.ascontiguousarray(X).view(np.uint64).T:
        h = (h ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return X[np.argsort(h, kind="stable")[:count]]


def add_elementwise(a: Iterable[np.ndarray], b: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Merge the sums of two blocks."""
    return list(map(add, a, b))


# ---------------------------------------------------------------------- features


def landmark_maps(
    samples: Iterable[KernelAndPoints], rank: int, rng: np.random.Generator, required: bool
) -> list[NystroemMap]:
    """Return a feature map for each pair (kernel, points), or no maps if a pair has no features.

    There are no features if the kernel is not positive definite, or if the points have no canonical
    order.  If `required` is True, an error with the reason is raised instead.
    """
    try:
        return [landmark_map(sample, rank, rng) for sample in samples]
    except (NotPositiveDefiniteError, UnorderableError):
        if required:
            raise
        return []


def landmark_map(sample: KernelAndPoints, rank: int, rng: np.random.Generator) -> NystroemMap:
    """Return Nyström features with `rank` landmarks, chosen independently of the order of points.

    Linear parts of the kernel are shifted to the points, which changes no difference of means.
    """
    kernel, X = sample
    kernel, X = shifted_to_data(kernel, X), as_csr(X)
    try:
        order = canonical_order(X, kernel)
    except UnorderableError as error:
        raise UnorderableError(
            f"the landmarks must not depend on the order of the points, because otherwise the "
            f"level of the test would be wrong, but {error}; use method='permutation', or points "
            f"that are vectors, strings, numbers, or tuples, lists and sets of these"
        ) from error
    landmarks = choose_landmarks(kernel, take(X, order), min(rank, length(X)), random_state=rng)
    return NystroemMap.on(kernel, take(X, order[landmarks]))


class FeatureMean(NamedTuple):
    """The mean of features F, and their relative truncation error tr(K - F F^T) / tr K."""

    mean: np.ndarray
    truncation: float


def feature_means(
    blocks: Blocks | OneBlock, maps: Sequence[NystroemMap], max_memory: MemoryLimit
) -> list[FeatureMean]:
    """Return the means of the features of the pooled samples, or with two maps of X and of Y."""
    found = []
    for sums in blocks.reduce(_block_sums, add_elementwise, maps, max_memory):
        *total, residual, trace, count = sums
        truncation = residual / (residual + trace) if residual > 0.0 else 0.0
        found.append(FeatureMean(np.array(total) / count, float(truncation)))
    return found


def _block_sums(
    rows: BlockRows, maps: Sequence[NystroemMap], max_memory: MemoryLimit
) -> list[np.ndarray]:
    """Return the sum of the features of a block, tr(K - F F^T), tr F F^T, and its number of rows.

    With one map, these are the features of the pooled points.
    """
    sums = []
    for K in block_features(rows, maps, max_memory):
        total = K._sum_over_strips(lambda _, F: F.sum(axis=0))
        sums.append(np.append(total, [K.residual_trace, K.diagonal().sum(), K.shape[0]]))
    return sums


def block_features(
    rows: BlockRows, maps: Sequence[NystroemMap], max_memory: MemoryLimit
) -> list[LowRankGram]:
    """Return the features of the pooled points of a block, or with two maps those of X and of Y."""
    samples = [as_float64(rows.X), as_float64(rows.y)]
    samples = [concatenate(*samples)] if len(maps) == 1 else samples
    pairs = zip(maps, samples, strict=True)
    return [LowRankGram(phi.kernel, X, phi, max_memory=max_memory) for phi, X in pairs]
