"""Passes over the rows of points that are in memory or in blocks, by the same code.

A function that sums over rows is written once, for the rows of one block.  `reduce_rows` calls it
for every block and merges the results; points in memory are a single block.

`sample_rows` draws a uniform random sample that does not depend on the split into blocks:

    h(seed, i) = 64-bit hash of the row index i and of the seed

The rows with the s smallest hashes are a uniform sample without replacement (bottom-k sampling).
The sample of two blocks together is contained in the union of their samples, so that it can be
computed from these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._core import Points, ProgressCallback, length, take
from ._blocks import (
    BlockPass,
    BlockRows,
    Blocks,
    Result,
    RowValues,
    SpreadTask,
    concatenate_blocks,
)
from ._dask_blocks import DaskBlocks, is_dask


def is_chunked(X: Points) -> bool:
    """Return True if X consists of blocks: an instance of `Blocks`, or a Dask collection.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks
    >>> from mercer.blocks import is_chunked
    >>> is_chunked(np.zeros((3, 2))), is_chunked(Blocks.of(np.zeros((3, 2))))
    (False, True)
    """
    return isinstance(X, Blocks) or is_dask(X)


def as_blocks(X: Points, what: str = "X") -> Blocks:
    """Return X as Blocks; a Dask collection is wrapped.

    `what` is the name of the argument for error messages.
    """
    return X if isinstance(X, Blocks) else DaskBlocks.from_dask(X, what)


def with_targets(
    X: Points, y: ArrayLike | RowValues = None, weights: ArrayLike | RowValues = None
) -> Blocks:
    """Return the blocks of X together with targets y and sample weights.

    y and `weights` may be blocks of the same sizes as those of X, or arrays in memory.
    """
    blocks = as_blocks(X)
    y, weights = _validated(blocks, y, "y"), _validated(blocks, weights, "sample_weight")
    return blocks._with(y, weights)


def _validated(blocks: Blocks, part: Any, what: str) -> RowValues:
    """Validate targets or weights: one value per row, and the same block sizes as the points."""
    if part is None:
        return None
    if not is_chunked(part):
        part = np.asarray(part)
        if part.ndim == 0 or length(part) != len(blocks):
            raise ValueError(f"{what} has the shape {part.shape}, but X has {len(blocks)} rows")
        return part
    part = as_blocks(part, what)
    if part.sizes == blocks.sizes:
        return part
    if len(part) != len(blocks):
        raise ValueError(f"{what} has {len(part)} rows, but X has {len(blocks)}")
    i = next(i for i, (a, b) in enumerate(zip(part.sizes, blocks.sizes, strict=False)) if a != b)
    raise ValueError(
        f"{what} is split into {len(part.sizes)} blocks, and X into {len(blocks.sizes)}; block {i} "
        f"has {part.sizes[i]} rows in {what} and {blocks.sizes[i]} in X: split both in the same way"
    )


def reduce_rows(
    X: Points | Blocks,
    f: Callable[..., Result],
    merge: Callable[[Result, Result], Result],
    *shared: object,
    y: RowValues = None,
    weights: RowValues = None,
    log: ProgressCallback | None = None,
) -> Result:
    """Merge the results ``f(rows, *shared)`` of all blocks of X, in one pass over the rows.

    Parameters
    ----------
    X : points or Blocks
        Points in memory are passed to `f` as a single block.
    f, merge : callable
        As in `Blocks.reduce`.
    *shared : objects
        Arguments that are the same for all blocks.
    y, weights : arrays or None
        Targets and weights of the rows; `f` receives them with the rows of each block.
    log : callable, optional
        Called with progress messages.

    Examples
    --------
    >>> import numpy as np
    >>> from operator import add
    >>> from mercer.blocks import Blocks, reduce_rows
    >>> def total(rows):
    ...     return rows.weights @ rows.X
    >>> X, w = np.arange(6.0).reshape(3, 2), np.ones(3)
    >>> reduce_rows(X, total, add, weights=w), reduce_rows(Blocks.of(X, 2), total, add, weights=w)
    (array([6., 9.]), array([6., 9.]))
    """
    if isinstance(X, Blocks):
        return with_targets(X, y, weights).reduce(f, merge, *shared, log=log)
    return f(BlockRows(0, 0, X, y, weights, log), *shared)


def map_rows(
    X: Points | Blocks,
    f: Callable[..., np.ndarray],
    *shared: object,
    y: RowValues = None,
    weights: RowValues = None,
) -> np.ndarray:
    """Return the rows ``f(rows, *shared)`` of all blocks of X, stacked in one array.

    The parameters are those of `reduce_rows`.
    """
    if isinstance(X, Blocks):
        return concatenate_blocks(with_targets(X, y, weights), f, *shared)
    return f(BlockRows(0, 0, X, y, weights), *shared)


def select_rows(X: Points | Blocks, index: np.ndarray) -> Points | Blocks:
    """Return the points with these indices, which must be ascending if X is `Blocks`."""
    return SelectedRows.select(X, index) if isinstance(X, Blocks) else take(X, index)


@dataclass(frozen=True, eq=False, repr=False)
class SelectedRows(Blocks):
    """Some of the rows of other blocks, such as those with a positive weight.

    A block without selected rows stays, with 0 rows, so that the order of summation does not
    change.
    """

    sizes: tuple[int, ...]
    width: int | None
    source: Blocks
    index: np.ndarray
    names: list[str] | None = None
    y: RowValues = None
    weights: RowValues = None

    @classmethod
    def select(cls, source: Blocks, index: np.ndarray) -> Self:
        """Select rows by their indices in ascending order."""
        ends = np.searchsorted(index, [*source.starts, len(source)])
        return cls(tuple(np.diff(ends).tolist()), source.width, source, index, source.names)

    @property
    def dtype(self) -> np.dtype:
        return self.source.dtype

    def _marked_source(self) -> Blocks:
        """Return the source with the targets and weights, and with weight 0 in other rows."""
        weights = np.zeros(len(self.source))
        weights[self.index] = 1.0 if self.weights is None else self.weights
        y = None
        if self.y is not None:
            y = np.zeros((len(self.source), *self.y.shape[1:]), dtype=self.y.dtype)
            y[self.index] = self.y
        return self.source._with(y, weights)

    def _run(self, work: BlockPass) -> Any:
        shared = (work.f, *work.shared)
        selected = work._replace(f=_call_with_selected_rows, shared=shared)
        return self._marked_source()._run(selected)

    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Any:
        raise TypeError("predictions are computed for all rows of blocks, not for a selection")

    @property
    def cores(self) -> int:
        return self.source.cores

    def spread(self, task: SpreadTask, jobs: Sequence[object]) -> Any:
        return self.source.spread(task, jobs)


def _call_with_selected_rows(rows: BlockRows, f: Callable[..., Result], *shared: object) -> Result:
    """Call f for the rows of a block with a positive weight."""
    keep = np.flatnonzero(rows.weights)
    selected = (None if part is None else part[keep] for part in (rows.X, rows.y, rows.weights))
    return f(BlockRows(rows.place, rows.start, *selected), *shared)


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
    X: Points
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
        offset = np.uint64(seed % 2**64) * np.uint64(0xD1B54A32D192ED03)
        z = z * np.uint64(0x9E3779B97F4A7C15) + offset
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
