"""Draw a uniform random sample of rows that does not depend on the split into blocks.

    h(seed, i) = 64-bit hash of the row index i and of the seed

The rows with the s smallest hashes are a uniform sample without replacement (bottom-k sampling).
The sample of two blocks together is contained in the union of their samples, so that it can be
computed from these.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ._blocks import BlockRows, Blocks


class RowSample(NamedTuple):
    """A sample of rows.

    Attributes
    ----------
    places : ndarray of int
        Indices of the rows among all rows, in ascending order.
    X : ndarray
        The sampled points.
    y, weights : ndarray or None
        Their targets and sample weights.
    """

    places: Any
    X: Any
    y: Any = None
    weights: Any = None


def sample_rows(blocks: Blocks, count: int, seed: int = 0) -> RowSample:
    """Draw a uniform random sample of rows without replacement.

    Parameters
    ----------
    blocks : Blocks
        The rows.  Rows with a sample weight of 0 are never drawn.
    count : int
        Number of rows to draw; if there are fewer rows, all are returned.
    seed : int, default 0
        Random seed.

    Returns
    -------
    RowSample
        The sample in the order of the rows.  It does not depend on the sizes of the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks
    >>> from mercer.blocks import sample_rows
    >>> X = np.arange(100.0)[:, None]
    >>> sample = sample_rows(Blocks.of(X, rows=7), 5)
    >>> bool(np.array_equal(sample.places, sample_rows(Blocks.of(X, rows=40), 5).places))
    True
    """
    sample = blocks.reduce(_block_sample, partial(_merge_samples, count, seed), count, seed)
    order = np.argsort(sample.places)
    return RowSample(*(None if part is None else part[order] for part in sample))


def hash_rows(index: np.ndarray, seed: int) -> np.ndarray:
    """Return a 64-bit hash of each row index and the seed (splitmix64)."""
    with np.errstate(over="ignore"):
        z = index.astype(np.uint64) + np.uint64(1)
        z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64) * np.uint64(
            0xD1B54A32D192ED03
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _block_sample(rows: BlockRows, count: int, seed: int) -> RowSample:
    """Return the sample of one block."""
    index = np.arange(len(rows.X))
    if rows.weights is not None:  # a row with weight 0 has no influence on a fit
        index = index[rows.weights > 0]
    selected = (None if part is None else part[index] for part in (rows.X, rows.y, rows.weights))
    return _with_smallest_hashes(RowSample(rows.start + index, *selected), count, seed)


def _merge_samples(count: int, seed: int, one: RowSample, other: RowSample) -> RowSample:
    """Merge the samples of two groups of blocks to a sample of both groups."""
    both = (None if a is None else np.concatenate([a, b]) for a, b in zip(one, other, strict=True))
    return _with_smallest_hashes(RowSample(*both), count, seed)


def _with_smallest_hashes(drawn: RowSample, count: int, seed: int) -> RowSample:
    """Return the `count` rows with the smallest hashes."""
    if len(drawn.places) <= count:
        return drawn
    order = np.lexsort((drawn.places, hash_rows(drawn.places, seed)))[:count]
    return RowSample(*(None if part is None else part[order] for part in drawn))
