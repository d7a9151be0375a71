"""Blocks of NumPy arrays, which may be memory-mapped files that do not fit in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._core import (
    Points,
    ProgressStep,
    check_threads,
    has_threads,
    is_count,
    is_table,
    length,
    map_in_threads,
)
from ._blocks import (
    BlockPass,
    BlockRows,
    Blocks,
    MissingValueError,
    RowValues,
    SpreadTask,
    string_column_names,
    tree_reduce,
    validate_block,
)

_BLOCK_BYTES = 2**24  # default size of a block: efficient for the BLAS, but small in memory
_MIN_BLOCK_ROWS = 256  # minimum number of rows of a default block, for points with many columns


def rows_per_block(width: int | None, rows: int | None) -> int:
    """Return the number of rows of a block: `rows`, or by default those that fit in 16 MiB.

    `width` is the number of columns, or None for one value per row.
    """
    if rows is not None and not is_count(rows):
        raise ValueError(f"rows must be a positive integer or None, got {rows!r}")
    if rows is not None:
        return int(rows)
    return max(_MIN_BLOCK_ROWS, _BLOCK_BYTES // (8 * max(1, width or 1)))


class LocalBlocks(Blocks):
    """Base class of blocks that this process reads itself, one after the other.

    If all rows are in memory (`in_memory`), several blocks are processed in parallel.  Otherwise
    the next block is read while the current one is processed.
    """

    in_memory = False

    @abstractmethod
    def _parts(self) -> Iterator[np.ndarray]:
        """Yield the rows of each block as an array."""

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the blocks as arrays."""
        return self._parts()

    def _iter_rows(self) -> Iterator[BlockRows]:
        """Yield each block after validation, with its targets and weights."""
        extras = [_split_like_blocks(self, part) for part in (self.y, self.weights)]
        parts = zip(self.starts, self.sizes, self._parts(), *extras, strict=True)
        for place, (start, size, X, y, weights) in enumerate(parts):
            try:
                rows = validate_block(place, start, X, y, weights, self.width, size)
            except MissingValueError as error:
                blocks = {"X": self, "y": self.y, "sample_weight": self.weights}[error.what]
                if isinstance(blocks, LocalBlocks):
                    error.add_position(blocks.position(error.row, error.column))
                raise
            yield rows

    def position(self, row: int, column: int | None) -> str:
        """Return the position of a value in its file, for a message; empty if it is in memory."""
        return ""

    def _run(self, work: BlockPass) -> Any:
        results = self._results(work)
        return list(results) if work.merge is None else tree_reduce(results, work.merge)

    def _results(self, work: BlockPass) -> Iterator[Any]:
        """Yield ``f(rows, *shared)`` for each block."""
        done, total = 0, len(self)
        window: list[BlockRows] = []
        window_size = check_threads(None) if self.in_memory else 1
        for rows in self._iter_rows() if self.in_memory else _read_ahead(self._iter_rows()):
            window.append(rows)
            if len(window) < window_size and rows.place < len(self.sizes) - 1:
                continue
            # For a single block, f may use all threads.
            yield from map_in_threads(lambda block: work.f(block, *work.shared), window)
            done, window = rows.start + self.sizes[rows.place], []
            if work.log is not None and done < total:
                work.log(ProgressStep(f"{done} of {total} points", done, total))

    @property
    def cores(self) -> int:
        return check_threads(None)

    def spread(self, task: SpreadTask, jobs: Sequence[object]) -> Any:
        results = map_in_threads(lambda job: task.f(task.static, task.inputs, job), jobs)
        return tree_reduce(results, task.merge)

    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Blocks:
        width = like.shape[1] if like.ndim == 2 else None
        return MappedBlocks(self.sizes, width, self, f, like.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class ArrayBlocks(LocalBlocks):
    """Blocks of one or more vertically stacked arrays, which may be on disk.

    Attributes
    ----------
    sizes : tuple of int
        Number of rows of each block.
    width : int or None
        Number of columns; None for one value per row.
    arrays : tuple of arrays
        The stacked arrays; anything that can be sliced by rows.
    columns : array of int, int or None
        The selected columns; None means all.
    y, weights : array, Blocks or None
        Targets and sample weights of the rows.
    names : list of str or None
        Names of the columns.
    """

    sizes: tuple[int, ...]
    width: int | None
    arrays: tuple[Any, ...]
    columns: Any = None
    y: RowValues = None
    weights: RowValues = None
    names: list[str] | None = None

    @classmethod
    def from_array(cls, X: Points, rows: int | None = None) -> Self:
        """Split an array or a data frame into blocks of `rows` rows."""
        if is_table(X):
            return replace(cls.below([X.to_numpy()], rows), names=string_column_names(X))
        return cls.below([X if hasattr(X, "shape") else np.asarray(X)], rows)

    @classmethod
    def below(cls, arrays: Sequence[Any], rows: int | None = None) -> Self:
        """Split vertically stacked arrays into blocks.

        All rows of a block are from the same array.
        """
        shapes = [array.shape for array in arrays]
        if any(sp.issparse(array) for array in arrays):
            raise TypeError("blocks must be dense, but this matrix is sparse; pass X.toarray()")
        for place, shape in enumerate(shapes):
            if len(shape) not in (1, 2) or 0 in shape:
                raise ValueError(
                    f"array {place} has the shape {shape}, but it must be 1-D or 2-D and not empty"
                )
            if shape[1:] != shapes[0][1:]:
                raise ValueError(
                    f"array {place} has the shape {shape}, but the first one has {shapes[0]}; all "
                    f"arrays must have the same number of columns"
                )
        width = shapes[0][1] if len(shapes[0]) == 2 else None
        block_rows = rows_per_block(width, rows)
        sizes = [
            min(block_rows, n - start) for n, *_ in shapes for start in range(0, n, block_rows)
        ]
        return cls(tuple(sizes), width, tuple(arrays))

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.arrays[0].dtype)

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """Whether all arrays are in memory."""
        return all(type(array) is np.ndarray for array in self.arrays)

    def _parts(self) -> Iterator[np.ndarray]:
        sizes = iter(self.sizes)
        for array in self.arrays:
            start = 0
            while start < length(array):
                stop = start + next(sizes)
                part = array[start:stop]
                part = part if self.columns is None else part[:, self.columns]
                yield part if self.in_memory else np.array(part)  # copying reads from the file
                start = stop

    def __getitem__(self, columns: Any) -> ArrayBlocks:
        """Return blocks with some of the columns.

        `columns` is a list of column indices for points, or one index for targets.
        """
        if isinstance(columns, (tuple, slice)):  # indices of rows, as in cross-validation
            raise TypeError(
                "indexing of blocks selects columns, not rows; for cross-validation and parameter "
                "searches, pass an array: blocks.to_array()"
            )
        if self.width is None or self.columns is not None:
            raise TypeError(
                "columns can be selected only once, and only from blocks with several columns"
            )
        index = np.asarray(columns)
        if index.dtype.kind not in "iu" or index.ndim > 1:
            raise TypeError(f"columns of arrays are selected by integer indices, got {columns!r}")
        if index.size and not (-self.width <= index.min() <= index.max() < self.width):
            raise IndexError(f"column {columns!r} does not exist: there are {self.width} columns")
        width = None if index.ndim == 0 else len(index)
        return replace(self, columns=index if width else int(index), width=width, names=None)


@dataclass(frozen=True, eq=False, repr=False)
class MappedBlocks(LocalBlocks):
    """Blocks that are computed lazily by applying a function to other blocks.

    `source` holds the original blocks, `f` is the function, and `kind` is the dtype of its result.
    """

    sizes: tuple[int, ...]
    width: int | None
    source: LocalBlocks
    f: Callable[[np.ndarray], Any]
    kind: np.dtype
    y: RowValues = None
    weights: RowValues = None

    @property
    def dtype(self) -> np.dtype:
        return self.kind

    def _parts(self) -> Iterator[np.ndarray]:
        for rows in self.source._iter_rows():
            yield self.f(rows.X)


def _split_like_blocks(blocks: Blocks, values: RowValues) -> Iterator[np.ndarray | None]:
    """Yield the slice of `values` (targets or weights) that belongs to each block."""
    if isinstance(values, LocalBlocks):
        yield from values._parts()
        return
    if isinstance(values, Blocks):
        raise ValueError(
            f"X is {blocks!r}, but y or sample_weight is a Dask collection; pass blocks of the "
            f"same kind as X, or an array, such as y.compute()"
        )
    for start, size in zip(blocks.starts, blocks.sizes, strict=True):
        yield None if values is None else values[start : start + size]


def _read_ahead(rows: Iterator[BlockRows]) -> Iterator[BlockRows]:
    """Yield blocks, while a background thread reads the next block."""
    if not has_threads():
        yield from rows
        return
    with ThreadPoolExecutor(1, thread_name_prefix="mercer-reads") as reader:
        pending = reader.submit(next, rows, None)
        while (current := pending.result()) is not None:
            pending = reader.submit(next, rows, None)
            yield current
