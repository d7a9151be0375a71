"""Files as blocks of rows: memory-mapped NPY, Zarr, Parquet, and every table that can be read.

Nothing but a block, and the next one, which is read ahead, is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from ..blocks import ArrayBlocks, Blocks, LocalBlocks, rows_of_a_block
from ._read import open_table
from ._source import Source
from ._table import EMPTY, NUMBER, TableError, kind_of, nearest

__all__ = ["open_blocks"]

_ARRAYS = (".npy", ".zarr")
_PARQUET = (".parquet", ".pq")


def open_blocks(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    columns: Any = None,
    rows: int | None = None,
    format: str | None = None,
) -> Blocks:
    """Return the rows of files as blocks, which estimators take in the place of X or y.

    ========= ======================================================================
    files     how they are read
    ========= ======================================================================
    .npy      mapped into memory, (n, d) or (n,)
    .zarr     an array of Zarr, by chunks (needs zarr)
    .parquet  by batches of rows, the columns asked for alone (needs pyarrow)
    others    what `open_table` reads: CSV, Arrow, JSON Lines; counted in a first pass
    ========= ======================================================================

    Parameters
    ----------
    paths : path, or list of paths
        Of one kind; several files are below each other, in this order.
    columns : list, or one name or number, optional
        By name in a table, by number in an array.  A list for points; one alone for targets, a
        value for each row.  All by default; ``blocks[columns]`` takes some of them, too.
    rows : int, optional
        Of a block; about 16 MiB by default.  No block has rows of two files.
    format : str, optional
        Of `open_table`, for a file whose name does not tell.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from mercer import KernelPCA, open_blocks
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(os.path.join(folder, "X.npy"), X)
    ...     blocks = open_blocks(os.path.join(folder, "X.npy"), rows=200)
    ...     print(blocks)
    ...     pca = KernelPCA(2, kernel="rbf", eigen_solver="nystroem", rank=50).fit(blocks)
    <ArrayBlocks: 500 x 3 in 3 blocks>
    >>> pca.transform(X).shape
    (500, 2)
    """
    files = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    if not files:
        raise TableError("open_blocks needs at least one file")
    places = [Path(file) for file in files]
    for place in places:
        if not place.exists():
            raise TableError(f"{place} is not there")
        if place.is_dir() and place.suffix.lower() != ".zarr":
            raise TableError(
                f"{place} is a folder; name its files, in the order of their rows: "
                f"sorted(Path('{place}').glob('*.parquet')), for one"
            )
    ends = [place.suffix.lower() for place in places]
    if format is None and all(end in _ARRAYS for end in ends):
        blocks = ArrayBlocks.below([_array(place) for place in places], rows)
        return blocks if columns is None else blocks[columns]
    read: Any = _Parquet if format == "parquet" or ends[0] in _PARQUET else _Rows
    sources = tuple(read(open_table(place, format=format)) for place in places)
    return TableBlocks.below(sources, columns, rows)


def _array(place: Path) -> Any:
    """Return an array that is read where it lies."""
    if place.suffix.lower() == ".zarr":
        try:
            import zarr
        except ImportError:
            raise TableError(f"{place} is read by zarr, which is not installed") from None
        array = zarr.open(str(place), mode="r")
    else:
        try:
            array = _Mapped.of(np.load(place, mmap_mode="r", allow_pickle=False))
        except (ValueError, OSError, EOFError) as error:
            raise TableError(f"{place} cannot be read as NPY: {error}") from None
    if not hasattr(array, "dtype") or array.dtype.kind not in "biufUS":
        raise TableError(f"{place} is no array of numbers; save it again as one")
    return array


@dataclass(frozen=True)
class _Mapped:
    """Rows of a .npy, of which those alone are mapped that are read: a map of all would grow."""

    path: Any
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: np.memmap) -> Any:
        """Return the array itself if its rows do not lie one after the other."""
        if array.ndim == 0 or not array.flags.c_contiguous:
            return array
        return cls(array.filename, array.offset, array.dtype, array.shape)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        step = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        shape = (stop - start, *self.shape[1:])
        at = self.offset + start * step
        try:
            return np.memmap(self.path, self.dtype, "r", at, shape)
        except (ValueError, OSError) as error:
            raise _changed(self.path, f"rows {start} to {stop} cannot be read: {error}") from None


class _Readable(Protocol):
    """A file of columns: their names, how many rows, and these in some pieces."""

    name: str

    @property
    def names(self) -> list[str]: ...

    @property
    def count(self) -> int: ...

    def pieces(self, names: list[str], rows: int) -> Iterator[list[Any]]:
        """Yield some columns of a few rows at a time, as arrays."""


class _Rows:
    """Any table, whose rows are counted in a first pass."""

    def __init__(self, source: Source) -> None:
        self.source, self.name = source, source.name

    @property
    def names(self) -> list[str]:
        return list(self.source.shape.kinds)

    @property
    def count(self) -> int:
        return self.source.shape.rows

    def pieces(self, names: list[str], rows: int) -> Iterator[list[Any]]:
        kinds = self.source.shape.kinds
        _refuse_text(self.name, {name: kinds[name] for name in names})
        for table in self.source.blocks():
            yield [table.columns[name] for name in names]


class _Parquet:
    """A Parquet file, of which only the columns that are asked for are read."""

    def __init__(self, source: Any) -> None:
        self.source, self.name = source, source.name

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with self.source._open() as (file, _, _):
            yield file

    @cached_property
    def names(self) -> list[str]:
        with self._open() as file:
            return list(file.schema_arrow.names)

    @cached_property
    def count(self) -> int:
        with self._open() as file:
            return int(file.metadata.num_rows)

    def pieces(self, names: list[str], rows: int) -> Iterator[list[Any]]:
        with self._open() as file:
            for batch in file.iter_batches(batch_size=rows, columns=names):
                columns = {n: self.source._column(n, batch.column(n)) for n in names}
                _refuse_text(self.name, {n: kind_of(column) for n, column in columns.items()})
                yield list(columns.values())


def _refuse_text(source: str, kinds: dict[str, str]) -> None:
    """Refuse columns of text among the columns of points."""
    text = [name for name, kind in kinds.items() if kind not in (NUMBER, EMPTY)]
    if text and len(kinds) > 1:
        raise TableError(
            f"{source}: the column {text[0]!r} holds {kinds[text[0]]}, and points are numbers; "
            f"select the columns of numbers: columns={[n for n in kinds if n not in text]}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TableBlocks(LocalBlocks):
    """Columns of tables in files, as rows of numbers; of one column, as values of any kind."""

    sizes: tuple[int, ...]
    width: int | None
    sources: tuple[_Readable, ...]
    rows: int
    names: list[str] = field(default_factory=list)
    y: Any = None
    weights: Any = None

    @classmethod
    def below(cls, sources: tuple[_Readable, ...], columns: Any, rows: int | None) -> Self:
        """Return the rows of several files, which must have the same columns."""
        known = sources[0].names
        names = known if columns is None else _wanted(sources[0], columns)
        for source in sources[1:]:
            if missing := [name for name in names if name not in source.names]:
                raise TableError(
                    f"{source.name} has no column {missing[0]!r}, which {sources[0].name} has; "
                    f"files below each other need the same columns"
                )
        width = None if isinstance(columns, str) else len(names)
        step = rows_of_a_block(len(known), rows)
        sizes: list[int] = []
        for source in sources:
            if not source.count:
                raise TableError(f"{source.name} has no rows; leave the file out")
            ends = range(0, source.count, step)
            sizes += [min(step, source.count - start) for start in ends]
        return cls(tuple(sizes), width, sources, step, names)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def __getitem__(self, columns: Any) -> Self:
        """Return some columns: a list of names for points, one name for targets."""
        names = _wanted(self.sources[0], columns)
        width = None if isinstance(columns, str) else len(names)
        return replace(self, names=names, width=width)

    def _with(self, y: Any, weights: Any) -> Self:
        return replace(self, y=y, weights=weights)

    def _parts(self) -> Iterator[np.ndarray]:
        sizes = iter(self.sizes)
        for source in self.sources:
            pieces = (
                columns[0] if self.width is None else np.column_stack(columns)
                for columns in source.pieces(self.names, self.rows)
            )
            yield from _cut(pieces, sizes, source)


def _cut(
    pieces: Iterator[np.ndarray], sizes: Iterator[int], source: _Readable
) -> Iterator[np.ndarray]:
    """Yield rows that come in any pieces in blocks of these sizes, until all of a file are seen."""
    held: list[np.ndarray] = []
    left = source.count
    while left:
        size = next(sizes)
        while sum(map(len, held)) < size:
            if (piece := next(pieces, None)) is None:
                raise _changed(source.name, f"it has fewer than {source.count} rows")
            held.append(piece)
        whole = held[0] if len(held) == 1 else np.concatenate(held)
        yield whole[:size]
        held = [whole[size:]] if len(whole) > size else []
        left -= size
    if held or next(pieces, None) is not None:
        raise _changed(source.name, f"it has more than {source.count} rows")


def _changed(name: Any, how: str) -> TableError:
    return TableError(f"{name} has changed since it was opened: {how}; open it again")


def _wanted(source: _Readable, columns: Any) -> list[str]:
    """Return the names of columns, if they are there."""
    wanted: list[Any] = [columns] if isinstance(columns, (str, int)) else list(columns)
    for name in wanted:
        if name not in source.names:
            raise TableError(
                f"{source.name} has no column {name!r}{nearest(str(name), source.names)} it has "
                f"{', '.join(map(str, source.names))}"
            )
    return wanted
