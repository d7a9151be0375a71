"""A uniform sample of rows that does not depend on how they are cut: those of the smallest hash.

    h(seed, i) = a fixed scramble of the number i of a row, and of the seed

The rows with the s smallest h are drawn with equal chances and without replacement, as far as h is
random.  Those of two blocks together are among those of each, so that samples merge exactly.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ._blocks import Blocks, Rows

__all__ = ["Drawn", "draw", "hashes"]


class Drawn(NamedTuple):
    """Some rows, with their numbers among all in ascending order, and what belongs to them."""

    places: Any
    X: Any
    y: Any = None
    weights: Any = None


def draw(blocks: Blocks, count: int, seed: int = 0) -> Drawn:
    """Return so many rows, drawn with equal chances; all rows, in their order, if there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks
    >>> from mercer.blocks import draw
    >>> X = np.arange(100.0)[:, None]
    >>> some = draw(Blocks.of(X, rows=7), 5)
    >>> bool(np.array_equal(some.places, draw(Blocks.of(X, rows=40), 5).places))
    True
    """
    found = blocks.reduce(_smallest, partial(_merged, count, seed), count, seed)
    order = np.argsort(found.places)
    return Drawn(*(None if part is None else part[order] for part in found))


def hashes(index: np.ndarray, seed: int) -> np.ndarray:
    """Return 64 scrambled bits for each row (splitmix64)."""
    with np.errstate(over="ignore"):
        z = index.astype(np.uint64) + np.uint64(1)
        z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64) * np.uint64(
            0xD1B54A32D192ED03
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _smallest(rows: Rows, count: int, seed: int) -> Drawn:
    places = np.arange(len(rows.X))
    if rows.weights is not None:  # without weight a row has no part in a fit
        places = places[rows.weights > 0]
    some = (None if part is None else part[places] for part in rows[2:])
    return _kept(Drawn(rows.start + places, *some), count, seed)


def _merged(count: int, seed: int, one: Drawn, other: Drawn) -> Drawn:
    both = (None if a is None else np.concatenate([a, b]) for a, b in zip(one, other, strict=True))
    return _kept(Drawn(*both), count, seed)


def _kept(drawn: Drawn, count: int, seed: int) -> Drawn:
    """Return the rows of the smallest hashes."""
    if len(drawn.places) <= count:
        return drawn
    order = np.lexsort((drawn.places, hashes(drawn.places, seed)))[:count]
    return Drawn(*(None if part is None else part[order] for part in drawn))
