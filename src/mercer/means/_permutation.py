"""Permutation tests: which permutations, and the p-value they give.

    p = (1 + #{b : T_b >= T_0}) / (1 + B)

The observed statistic is one of the 1 + B, so that under the null hypothesis P(p <= a) <= a for
every B.  Values that rounding alone holds apart count as equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations, islice, permutations
from math import comb, factorial
from typing import Any

import numpy as np

__all__ = [
    "check_count",
    "entry_rounding",
    "orders",
    "pvalue",
    "rounding",
    "signs",
    "splits",
    "warn_of_few",
    "warn_of_rounding",
]

_LEVEL = 0.05  # a test that cannot reject even here is worth a warning


def check_count(n_permutations: Any) -> int:
    """Return the number of permutations, a positive integer."""
    integer = isinstance(n_permutations, (int, np.integer)) and not isinstance(n_permutations, bool)
    if not integer or n_permutations < 1:
        raise ValueError(
            f"n_permutations must be a positive integer, got {n_permutations!r}; the smallest "
            f"p-value is 1 / (n_permutations + 1)"
        )
    return int(n_permutations)


def splits(
    m: int, n: int, count: int, rng: np.random.Generator, size: int
) -> tuple[int, Iterator[np.ndarray]]:
    """Return B and 1 + B ways to draw m of m + n points, `size` at a time.

    A block holds one way in each row, True where a point belongs to the first sample.  The very
    first row is the observed way; B = `count` random ones follow, or if there are no more than
    these in all, each of the others once.
    """
    if (others := comb(m + n, m) - 1) <= count:
        return others, _every_split(m, m + n, size)
    return count, _some_splits(m, m + n, count, rng, size)


def _every_split(m: int, total: int, size: int) -> Iterator[np.ndarray]:
    ways = combinations(range(total), m)  # the first of them is the observed one
    while part := list(islice(ways, size)):
        block = np.zeros((len(part), total), dtype=bool)
        block[np.arange(len(part))[:, None], np.array(part)] = True
        yield block


def _some_splits(
    m: int, total: int, count: int, rng: np.random.Generator, size: int
) -> Iterator[np.ndarray]:
    for start in range(0, count + 1, size):
        block = np.zeros((min(size, count + 1 - start), total), dtype=bool)
        block[:, :m] = True
        random = block[start == 0 :]
        rng.permuted(random, axis=1, out=random)
        yield block


def orders(
    n: int, count: int, rng: np.random.Generator, size: int
) -> tuple[int, Iterator[np.ndarray]]:
    """Return B and 1 + B permutations of n points, in rows, `size` at a time.

    The identity is the first; B = `count` random ones follow, or if there are no more than these
    in all, each of the others once.
    """
    if n <= 20 and (others := factorial(n) - 1) <= count:
        return others, _every_order(n, size)
    return count, _some_orders(n, count, rng, size)


def _every_order(n: int, size: int) -> Iterator[np.ndarray]:
    ways = permutations(range(n))
    while part := list(islice(ways, size)):
        yield np.array(part, dtype=np.int32)


def _some_orders(n: int, count: int, rng: np.random.Generator, size: int) -> Iterator[np.ndarray]:
    for start in range(0, count + 1, size):
        block = np.tile(np.arange(n, dtype=np.int32), (min(size, count + 1 - start), 1))
        random = block[start == 0 :]
        rng.permuted(random, axis=1, out=random)
        yield block


def signs(
    n: int, count: int, rng: np.random.Generator, size: int
) -> tuple[int, Iterator[np.ndarray]]:
    """Return B and 1 + B rows of n signs, True for minus, `size` rows at a time.

    The first row has none; B = `count` random ones follow, or if there are no more than these in
    all, each of the others once.
    """
    if n < 63 and (others := 2**n - 1) <= count:
        ways = np.arange(2**n)[:, None] >> np.arange(n) & 1 == 1
        return others, (ways[i : i + size] for i in range(0, len(ways), size))
    return count, _some_signs(n, count, rng, size)


def _some_signs(n: int, count: int, rng: np.random.Generator, size: int) -> Iterator[np.ndarray]:
    for start in range(0, count + 1, size):
        block = np.zeros((min(size, count + 1 - start), n), dtype=bool)
        random = block[start == 0 :]
        bits = np.frombuffer(rng.bytes(-(-random.size // 8)), dtype=np.uint8)
        random[...] = np.unpackbits(bits, count=random.size).reshape(random.shape)
        yield block


def pvalue(observed: float, null: np.ndarray, margin: float) -> float:
    """Return (1 + #{null >= observed}) / (1 + B), where a gap below `margin` is rounding."""
    return float(1 + np.count_nonzero(null >= observed - margin)) / (1 + len(null))


def rounding(dtype: Any) -> float:
    """Return the part of the sums that cancel in a statistic which rounding may have left."""
    return max(1e-12, 100.0 * float(np.finfo(dtype).eps))


def entry_rounding(dtype: Any) -> float:
    """Return the part of an entry of K that may be rounding before anything is summed."""
    return 8.0 * float(np.finfo(dtype).eps)


def warn_of_few(smallest: float, why: str) -> None:
    """Warn that no p-value below 0.05 can be reached."""
    if smallest > _LEVEL:
        warnings.warn(
            f"the smallest p-value that can be reached is {smallest:.3g}, so that nothing is "
            f"rejected at the level {_LEVEL}: {why}; take more",
            UserWarning,
            stacklevel=4,
        )


def warn_of_rounding(margin: float, null: np.ndarray) -> None:
    """Warn that the permuted statistics differ by less than rounding may have left of them."""
    if 0.0 < (spread := float(null.std())) < margin:
        warnings.warn(
            f"up to {margin:.3g} of a statistic may be rounding, but the permuted ones spread by "
            f"only {spread:.3g}, so that most of them count as equal and the p-value is too large; "
            f"the usual cause are points far from 0, or a length scale far beyond their distances: "
            f"centre the features, or choose a smaller length scale",
            UserWarning,
            stacklevel=4,
        )
