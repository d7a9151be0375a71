"""Passes over the rows of points that are in memory or in blocks, by the same code.

A function that sums over rows is written once, for the rows of one block.  `reduce_rows` calls it
for every block and merges the results; points in memory are a single block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._core import Points, ProgressCallback, take
from ._blocks import BlockRows, Blocks, concatenate_blocks
from ._dispatch import with_targets


def reduce_rows(
    X: Points | Blocks,
    f: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
    *shared: Any,
    y: Any = None,
    weights: np.ndarray | None = None,
    log: ProgressCallback | None = None,
) -> Any:
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
    *shared: Any,
    y: Any = None,
    weights: np.ndarray | None = None,
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
    y: Any = None
    weights: Any = None

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

    def map(self, f: Callable[..., Any], *shared: Any) -> list[Any]:
        return self._marked_source().map(_call_with_selected_rows, f, *shared)

    def reduce(
        self, f: Callable[..., Any], merge: Callable[[Any, Any], Any], *shared: Any, log: Any = None
    ) -> Any:
        source = self._marked_source()
        return source.reduce(_call_with_selected_rows, merge, f, *shared, log=log)

    def _map_blocks(
        self, f: Callable[..., Any], shared: Sequence[Any], log: Any = None
    ) -> Iterator[Any]:
        return self._marked_source()._map_blocks(_call_with_selected_rows, (f, *shared), log)

    def _with(self, y: Any, weights: Any) -> Self:
        return replace(self, y=y, weights=weights)

    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Any:
        raise TypeError("predictions are computed for all rows of blocks, not for a selection")

    @property
    def cores(self) -> int:
        return self.source.cores

    def spread(
        self,
        f: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        static: Any,
        inputs: Any,
        jobs: Sequence[Any],
    ) -> Any:
        return self.source.spread(f, merge, static, inputs, jobs)


def _call_with_selected_rows(rows: BlockRows, f: Callable[..., Any], *shared: Any) -> Any:
    """Call f for the rows of a block with a positive weight."""
    keep = np.flatnonzero(rows.weights)
    selected = (None if part is None else part[keep] for part in (rows.X, rows.y, rows.weights))
    return f(BlockRows(rows.place, rows.start, *selected), *shared)
