"""Permutation tests: which permutations, and the p-value they give.

    p = (1 + #{b : T_b >= T_0}) / (1 + B)

The observed statistic is one of the 1 + B, so that under the null hypothesis P(p <= a) <= a for
every B.  Values that rounding alone holds apart count as equal.

`splits`, `orders` and `signs` return B and 1 + B rows, in blocks of `size` rows.  The very first
row is the observed one; B = `count` random ones follow, or if there are no more than these in all,
each of the others once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice, permutations, product
from math import comb, factorial
from typing import Any

import numpy as np

from .._errors import warn_caller
from .._runtime import is_count

__all__ = ["check_test", "orders", "pvalue", "signs", "splits", "warn_of_few", "warn_of_rounding"]

_LEVEL = 0.05  # a test that cannot reject even here is worth a warning
_RANK = 100  # features of "lowrank", if no rank is given

Rows = tuple[int, Iterator[np.ndarray]]


def check_test(method: Any, methods: Any, n_permutations: Any, rank: Any) -> tuple[int, int]:
    """Return the numbers of permutations and of features."""
    if method not in methods:
        raise ValueError(f"method must be one of {methods}, got {method!r}")
    if not is_count(n_permutations):
        raise ValueError(
            f"n_permutations must be a positive integer, got {n_permutations!r}; the smallest "
            f"p-value is 1 / (n_permutations + 1)"
        )
    if rank is not None and not is_count(rank):
        raise ValueError(f"rank must be a positive integer or None, got {rank!r}")
    return int(n_permutations), _RANK if rank is None else int(rank)


def splits(m: int, n: int, count: int, rng: np.random.Generator, size: int) -> Rows:
    """Return ways to draw m of m + n points, True where a point belongs to the first sample."""
    if (others := comb(m + n, m) - 1) <= count:
        places = np.arange(m + n)  # the first of the combinations is the observed one
        return others, _every((np.isin(places, way) for way in combinations(places, m)), size)
    return count, _some(np.arange(m + n) < m, count, size, lambda rows: _shuffle(rows, rng))


def orders(n: int, count: int, rng: np.random.Generator, size: int) -> Rows:
    """Return permutations of n points; the observed one is the identity."""
    identity = np.arange(n, dtype=np.int32)
    if n <= 20 and (others := factorial(n) - 1) <= count:
        return others, _every(permutations(identity), size)
    return count, _some(identity, count, size, lambda rows: _shuffle(rows, rng))


def signs(n: int, count: int, rng: np.random.Generator, size: int) -> Rows:
    """Return rows of n signs, True for minus; the observed one has none."""
    if n < 63 and (others := 2**n - 1) <= count:
        return others, _every(product((False, True), repeat=n), size)
    return count, _some(np.zeros(n, dtype=bool), count, size, lambda rows: _toss(rows, rng))


def _every(ways: Iterable[Any], size: int) -> Iterator[np.ndarray]:
    ways = iter(ways)
    while part := list(islice(ways, size)):
        yield np.array(part)


def _some(
    observed: np.ndarray, count: int, size: int, randomise: Callable[[np.ndarray], None]
) -> Iterator[np.ndarray]:
    for start in range(0, count + 1, size):
        block = np.tile(observed, (min(size, count + 1 - start), 1))
        randomise(block[start == 0 :])
        yield block


def _shuffle(rows: np.ndarray, rng: np.random.Generator) -> None:
    rng.permuted(rows, axis=1, out=rows)


def _toss(rows: np.ndarray, rng: np.random.Generator) -> None:
    bits = np.frombuffer(rng.bytes(-(-rows.size // 8)), dtype=np.uint8)
    rows[...] = np.unpackbits(bits, count=rows.size).reshape(rows.shape)


def pvalue(observed: float, null: np.ndarray, margin: float) -> float:
    """Return (1 + #{null >= observed}) / (1 + B), where a gap below `margin` is rounding."""
    return float(1 + np.count_nonzero(null >= observed - margin)) / (1 + len(null))


def warn_of_few(smallest: float, why: str) -> None:
    """Warn that no p-value below 0.05 can be reached."""
    if smallest > _LEVEL:
        warn_caller(
            f"the smallest p-value that can be reached is {smallest:.3g}, so that nothing is "
            f"rejected at the level {_LEVEL}: {why}; take more"
        )


def warn_of_rounding(margin: float, null: np.ndarray) -> None:
    """Warn that the permuted statistics differ by less than rounding may have left of them."""
    if 0.0 < (spread := float(null.std())) < margin:
        warn_caller(
            f"up to {margin:.3g} of a statistic may be rounding, but the permuted ones spread by "
            f"only {spread:.3g}, so that most of them count as equal and the p-value is too large; "
            f"the usual cause are points far from 0, or a length scale far beyond their distances: "
            f"centre the features, or choose a smaller length scale"
        )
