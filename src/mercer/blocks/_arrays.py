"""Arrays in blocks: held in memory, or mapped from files that are larger than it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._points import is_table, length
from .._runtime import Step, check_threads, is_count, run
from ._blocks import Blocks, Rows, checked, texts
from ._tree import tree

__all__ = ["ArrayBlocks", "LocalBlocks", "rows_of_a_block"]

_BYTES = 2**24  # of a block, unless its rows are given
_LEAST = 256


def rows_of_a_block(width: int | None, rows: int | None) -> int:
    """Return how many rows a block has: as many as are asked for, or 16 MiB of them."""
    if rows is not None and not is_count(rows):
        raise ValueError(f"rows must be a positive integer or None, got {rows!r}")
    return max(_LEAST, _BYTES // (8 * max(1, width or 1))) if rows is None else int(rows)


class LocalBlocks(Blocks):
    """Blocks that this process reads itself, one after the other."""

    held = False  # in memory: then several are worked on at a time, else the next is read ahead

    @abstractmethod
    def _parts(self) -> Iterator[Any]:
        """Yield the points of each block."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the blocks as arrays."""
        return self._parts()

    def _rows(self) -> Iterator[Rows]:
        beside = [_sliced(self, part) for part in (self.y, self.weights)]
        parts = zip(self.starts, self.sizes, self._parts(), *beside, strict=True)
        for place, (start, size, X, y, weights) in enumerate(parts):
            yield checked(place, start, X, y, weights, self.width, size)

    def _answers(
        self, f: Callable[..., Any], shared: Sequence[Any], say: Any = None
    ) -> Iterator[Any]:
        done, total = 0, len(self)
        window: list[Rows] = []
        most = check_threads(None) if self.held else 1
        for rows in self._rows() if self.held else _ahead(self._rows()):
            window.append(rows)
            if len(window) < most and rows.place < len(self.sizes) - 1:
                continue
            yield from _together(f, window, shared)
            done, window = rows.start + self.sizes[rows.place], []
            if say is not None and done < total:
                say(Step(f"{done} of {total} points", done, total))

    @property
    def cores(self) -> int:
        return check_threads(None)

    def spread(
        self,
        f: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        kept: Any,
        given: Any,
        jobs: Sequence[Any],
    ) -> Any:
        found: list[Any] = [None] * len(jobs)

        def work(i: int) -> None:
            found[i] = f(kept, given, jobs[i])

        run(work, range(len(jobs)))
        return tree(found, merge)

    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Blocks:
        width = like.shape[1] if like.ndim == 2 else None
        return MappedBlocks(self.sizes, width, self, f, like.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class ArrayBlocks(LocalBlocks):
    """Rows of one array, or of several below each other, that can be sliced: also on disk."""

    sizes: tuple[int, ...]
    width: int | None
    arrays: tuple[Any, ...]
    columns: Any = None  # which of them
    y: Any = None
    weights: Any = None
    names: list[str] | None = None

    @classmethod
    def cut(cls, X: Any, rows: int | None = None) -> Self:
        """Return an array in blocks of so many rows."""
        if is_table(X):
            return replace(cls.below([X.to_numpy()], rows), names=texts(X))
        return cls.below([X if hasattr(X, "shape") else np.asarray(X)], rows)

    @classmethod
    def below(cls, arrays: Sequence[Any], rows: int | None = None, columns: Any = None) -> Self:
        """Return arrays below each other; no block has rows of two of them."""
        shapes = [array.shape for array in arrays]
        if any(sp.issparse(array) for array in arrays):
            raise TypeError("blocks are of dense rows, and this matrix is sparse: X.toarray()")
        for place, shape in enumerate(shapes):
            if len(shape) not in (1, 2) or 0 in shape:
                raise ValueError(
                    f"array {place} has the shape {shape}; blocks are of rows of numbers, and none "
                    f"may be empty"
                )
            if shape[1:] != shapes[0][1:]:
                raise ValueError(
                    f"array {place} has {shape[1:]} columns, but the first one has "
                    f"{shapes[0][1:]}; all need the same"
                )
        width = shapes[0][1] if len(shapes[0]) == 2 else None
        step = rows_of_a_block(width, rows)
        if width is not None and columns is not None:
            width = None if np.ndim(columns) == 0 else len(columns)
        sizes = [min(step, n - start) for n, *_ in shapes for start in range(0, n, step)]
        return cls(tuple(sizes), width, tuple(arrays), columns)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.arrays[0].dtype)

    @property
    def held(self) -> bool:  # type: ignore[override]
        """Whether all of it is in memory."""
        return all(type(array) is np.ndarray for array in self.arrays)

    def _parts(self) -> Iterator[np.ndarray]:
        sizes = iter(self.sizes)
        for array in self.arrays:
            start = 0
            while start < length(array):
                stop = start + next(sizes)
                part = array[start:stop]
                part = part if self.columns is None else part[:, self.columns]
                yield part if self.held else np.array(part)  # read now, and not while in use
                start = stop

    def _with(self, y: Any, weights: Any) -> Self:
        return replace(self, y=y, weights=weights)

    def __getitem__(self, columns: Any) -> ArrayBlocks:
        """Return some columns, by their numbers: a list for points, one number for targets."""
        if isinstance(columns, (tuple, slice)):  # as a split into training and test rows asks
            raise TypeError(
                "blocks give some of their columns, not of their rows; for folds and searches give "
                "an array: blocks.to_array()"
            )
        if self.width is None or self.columns is not None:
            raise TypeError("columns are taken of all of them, and of rows that have several")
        places = np.asarray(columns)
        if places.dtype.kind not in "iu" or places.ndim > 1:
            raise TypeError(f"columns of arrays have numbers, got {columns!r}")
        if places.size and not (-self.width <= places.min() <= places.max() < self.width):
            raise IndexError(f"there are {self.width} columns, got {columns!r}")
        width = None if places.ndim == 0 else len(places)
        return replace(self, columns=places if width else int(places), width=width, names=None)


@dataclass(frozen=True, eq=False, repr=False)
class MappedBlocks(LocalBlocks):
    """What a function makes of blocks, when it is asked for."""

    sizes: tuple[int, ...]
    width: int | None
    source: LocalBlocks
    f: Callable[[np.ndarray], Any]
    kind: np.dtype
    y: Any = None
    weights: Any = None

    @property
    def dtype(self) -> np.dtype:
        return self.kind

    def _parts(self) -> Iterator[np.ndarray]:
        for rows in self.source._rows():
            yield self.f(rows.X)

    def _with(self, y: Any, weights: Any) -> Self:
        return replace(self, y=y, weights=weights)


def _sliced(blocks: Blocks, beside: Any) -> Iterator[Any]:
    """Yield what belongs to the rows of each block."""
    if isinstance(beside, LocalBlocks):
        yield from beside._parts()
        return
    if isinstance(beside, Blocks):
        raise ValueError(
            f"this process reads the points, {blocks!r}, but what is beside them is a Dask "
            f"collection; give blocks of the same kind, or an array: .compute()"
        )
    for start, size in zip(blocks.starts, blocks.sizes, strict=True):
        yield None if beside is None else beside[start : start + size]


def _together(f: Callable[..., Any], window: list[Rows], shared: Sequence[Any]) -> list[Any]:
    """Return f of some blocks, in threads; one alone may have threads of its own."""
    found: list[Any] = [None] * len(window)

    def work(i: int) -> None:
        found[i] = f(window[i], *shared)

    run(work, range(len(window)))
    return found


def _ahead(rows: Iterator[Rows]) -> Iterator[Rows]:
    """Yield the same, while the next one is read."""
    with ThreadPoolExecutor(1, thread_name_prefix="mercer-reads") as reader:
        coming = reader.submit(next, rows, None)
        while (here := coming.result()) is not None:
            coming = reader.submit(next, rows, None)
            yield here
