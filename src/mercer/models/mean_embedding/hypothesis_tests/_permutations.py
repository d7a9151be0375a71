"""Permutation tests: generation of the permutations, and p-values.

    p = (1 + #{b : T_b >= T_0}) / (1 + B)

T_1, ..., T_B are the statistics of B permutations.  The observed statistic T_0 is one of the 1 + B
values, so that under the null hypothesis P(p <= a) <= a for every B.  Values that differ by no more
than rounding count as equal.

`iter_splits`, `iter_permutations` and `iter_signs` return B, and an iterator over blocks of at most
`size` rows, 1 + B rows in total.  Each row is one arrangement; the first one is the observed one.
If at most `count` other arrangements exist, each of them follows once; otherwise B = `count` random
ones follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice, permutations, product
from math import comb, factorial
from typing import Any

import numpy as np

from ...._core import is_count, warn_caller

__all__ = [
    "check_test_options",
    "iter_permutations",
    "iter_signs",
    "iter_splits",
    "pvalue",
    "warn_if_level_unreachable",
    "warn_if_rounding_dominates",
]

_USUAL_LEVEL = 0.05  # a test that cannot reject at this usual level gives a warning
_DEFAULT_RANK = 100  # number of features for method="lowrank" with rank=None

RowBlocks = tuple[int, Iterator[np.ndarray]]


def check_test_options(
    method: Any, methods: Any, n_permutations: Any, rank: Any
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


def iter_splits(m: int, n: int, count: int, rng: np.random.Generator, size: int) -> RowBlocks:
    """Return splits of m + n points into two samples; True marks the m points of the first one."""
    if (others := comb(m + n, m) - 1) <= count:
        points = np.arange(m + n)  # the first combination is the observed split
        return others, _all_blocks(
            (np.isin(points, first_sample) for first_sample in combinations(points, m)), size
        )
    return count, _random_blocks(
        np.arange(m + n) < m, count, size, lambda rows: _shuffle_rows(rows, rng)
    )


def iter_permutations(n: int, count: int, rng: np.random.Generator, size: int) -> RowBlocks:
    """Return permutations of n points; the observed arrangement is the identity."""
    identity = np.arange(n, dtype=np.int32)
    if n <= 20 and (others := factorial(n) - 1) <= count:
        return others, _all_blocks(permutations(identity), size)
    return count, _random_blocks(identity, count, size, lambda rows: _shuffle_rows(rows, rng))


def iter_signs(n: int, count: int, rng: np.random.Generator, size: int) -> RowBlocks:
    """Return rows of n signs, where True means minus; the observed row has no minus sign."""
    if n < 63 and (others := 2**n - 1) <= count:
        return others, _all_blocks(product((False, True), repeat=n), size)
    return count, _random_blocks(
        np.zeros(n, dtype=bool), count, size, lambda rows: _draw_signs(rows, rng)
    )


def _all_blocks(arrangements: Iterable[Any], size: int) -> Iterator[np.ndarray]:
    arrangements = iter(arrangements)
    while part := list(islice(arrangements, size)):
        yield np.array(part)


def _random_blocks(
    observed: np.ndarray, count: int, size: int, randomise: Callable[[np.ndarray], None]
) -> Iterator[np.ndarray]:
    for start in range(0, count + 1, size):
        block = np.tile(observed, (min(size, count + 1 - start), 1))
        randomise(block[start == 0 :])
        yield block


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
