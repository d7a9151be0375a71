"""Open files: `open_table` as a source of tables, `open_blocks` as blocks for an estimator.

Both select the reader by format.  With `open_blocks`, at most two blocks are in memory at a time:
the current block, and the prefetched next block.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..blocks import ArrayBlocks, Blocks, LocalBlocks, rows_per_block
from ..datasets import read_fasta, read_tudataset
from ._binary_files import ArrowSource, NumpySource
from ._table import MissingPackageError, Table, TableError, suggest_name
from ._table_source import (
    STANDARD_INPUT,
    InMemorySource,
    Source,
    is_frame,
    table_from_frame,
)
from ._text_files import CsvSource, JsonLinesSource


class SingleBlockSource(Source):
    """Base class of sources that read all rows as one block."""

    width = 2

    def _table(self) -> Table:
        raise NotImplementedError

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        try:
            yield self._table()
        except (ValueError, OSError, OverflowError) as error:
            text = str(error)
            raise TableError(text.replace(str(self.path), self.name)) from None

    @property
    def rows_per_block(self) -> int:
        """The maximum number of rows in a block, which is practically unlimited."""
        return 2**62


class FastaSource(SingleBlockSource):
    """A FASTA file, with the columns `name` and `sequence`."""

    def _table(self) -> Table:
        sequences, names = read_fasta(self.path)
        columns = {"name": names, "sequence": sequences}
        arrays = {name: np.array(texts, dtype=object) for name, texts in columns.items()}
        return Table(arrays, self.name, index_columns=("name",))


class GraphFolderSource(SingleBlockSource):
    """A folder or zip file in TUDataset format, with the columns `graph` and `label`."""

    def _table(self) -> Table:
        graphs, labels = read_tudataset(self.path)
        columns: dict[str, Any] = {"graph": graphs}
        labels = np.asarray(labels, dtype=float)
        if labels.ndim == 1:
            columns["label"] = labels
        else:
            columns |= {f"label{j + 1}": column for j, column in enumerate(labels.T)}
        return Table(columns, self.name)


FORMATS = {  # file extensions of each format
    "csv": (".csv", ".tsv", ".txt", ".dat", ".data"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy", ".npz"),
    "fasta": (".fasta", ".fa", ".fna", ".faa"),
    "graphs": (".zip",),
}
# Advice in the error message for common file types that are not supported.
_SHEET = "save the sheet as CSV"
_REMEDIES = {".xlsx": _SHEET, ".xls": _SHEET, ".ods": _SHEET}
_REMEDIES[".json"] = "write one object per line to a .jsonl file, for example with: jq -c '.[]'"


def open_table(
    path: Any,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    arrays: Sequence[str] = (),
) -> Source:
    r"""Open a file or a DataFrame as a source of rows.

    Only the beginning of the file is read; the rows are read when they are needed.

    Parameters
    ----------
    path : str, path or DataFrame
        A file, or a pandas or polars DataFrame.  "-" reads standard input, which is copied to a
        temporary file.  A `Source`, a `Table` or a pyarrow table is accepted as well.
    format : str, default=None
        "csv", "jsonl", "parquet", "arrow", "npy", "fasta" or "graphs".  None selects the format by
        the file extension, and "csv" for standard input.
    delimiter : str, default=None
        The character that separates the cells of a CSV file; None detects it.
    header : bool, default=None
        Whether the first line of a CSV file contains the column names; None detects it.
    arrays : sequence of str, default=()
        The arrays of a .npz file to read; all by default.  "X=X_test" reads the array X_test
        under the name X.

    Returns
    -------
    Source
        A source that yields the rows in blocks, and can be read several times.

    Examples
    --------
    >>> import os, tempfile
    >>> from mercer.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("x,label\n1.5,a\n2.5,b\n")
    ...     open_table(path).shape
    Shape(rows=2, kinds={'x': 'numbers', 'label': 'text'})
    """
    if isinstance(path, Source):
        return path
    if isinstance(path, Table) or is_frame(path):
        return InMemorySource(path if isinstance(path, Table) else table_from_frame(path))
    if not isinstance(path, (str, PathLike)):
        raise TypeError(
            f"open_table needs a path, a pandas or polars DataFrame or a pyarrow.Table, got "
            f"{type(path).__name__} - convert an array to a DataFrame with named columns"
        )
    name, file = (
        (STANDARD_INPUT, _spool_standard_input()) if str(path) == "-" else (str(path), Path(path))
    )
    if not file.exists():
        raise TableError(_missing_file_message(file, name))
    kind = format or ("csv" if str(path) == "-" else _format_of(file))
    if delimiter is None and file.name.removesuffix(".gz").endswith(".tsv"):
        delimiter = "\t"
    readers: dict[str, Callable[..., Source]] = {
        "csv": partial(CsvSource, delimiter=delimiter, header=header),
        "jsonl": JsonLinesSource,
        "parquet": partial(ArrowSource, parquet=True),
        "arrow": partial(ArrowSource, parquet=False),
        "npy": partial(NumpySource, arrays=arrays),
        "fasta": FastaSource,
        "graphs": GraphFolderSource,
    }
    if kind not in readers:
        raise TableError(f"unknown format {kind!r}; the formats are {', '.join(FORMATS)}")
    return readers[kind](file, name)


def read_table(path: Any, **options: Any) -> Table:
    """Read all rows of a file or DataFrame into memory.

    Parameters
    ----------
    path : str, path or DataFrame
        As in `open_table`.
    **options
        The other parameters of `open_table`.

    Returns
    -------
    Table
        All rows.
    """
    return open_table(path, **options).table()


def _format_of(path: Path) -> str:
    """Return the format of a file by its extension; raise a TableError if it is unknown."""
    if path.is_dir():
        return "graphs"
    name = path.name.lower().removesuffix(".gz")
    for kind, extensions in FORMATS.items():
        if name.endswith(extensions):
            return kind
    known = ", ".join(extensions[0] for extensions in FORMATS.values())
    remedy = _REMEDIES.get(path.suffix, f"specify the format with --format: {', '.join(FORMATS)}")
    raise TableError(f"{path}: unknown file extension; supported extensions are {known} - {remedy}")


def _missing_file_message(path: Path, name: str) -> str:
    """Return the error message for a missing file, which suggests a similar file name."""
    import difflib

    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    similar = difflib.get_close_matches(path.name, siblings, 1)
    hint = f"; did you mean {path.parent / similar[0]}?" if similar else ""
    return f"{name} does not exist{hint or ' - check the spelling and the folder'}"


# References that keep temporary files from being deleted before the process ends.
_temporary_files: list[Any] = []


def _spool_standard_input() -> Path:
    """Copy standard input to a temporary file, so that it can be read more than once."""
    file = tempfile.NamedTemporaryFile(prefix="mercer-")  # noqa: SIM115
    _temporary_files.append(file)
    while chunk := sys.stdin.buffer.read(2**20):
        file.write(chunk)
    file.flush()
    return Path(file.name)


# ---------------------------------------------------------------------- blocks

_ARRAY_SUFFIXES = (".npy", ".zarr")


def open_blocks(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    columns: Any = None,
    rows: int | None = None,
    format: str | None = None,
) -> Blocks:
    """Open files as blocks of rows, which estimators accept in place of the arrays X and y.

    Use it for data that does not fit into memory: the files are read one block at a time.

    ========= ======================================================================
    files     how they are read
    ========= ======================================================================
    .npy      memory-mapped, shape (n, d) or (n,)
    .zarr     a Zarr array, chunk by chunk (requires zarr)
    .parquet  in batches of rows, only the selected columns (requires pyarrow)
    others    any format of `open_table`, such as CSV, Arrow and JSON Lines; a first
              pass counts the rows
    ========= ======================================================================

    Parameters
    ----------
    paths : path or list of paths
        Files of the same format.  The rows of several files are concatenated in this order.
    columns : list of str or int, str or int, default=None
        The columns to read, by name for a table and by index for an array.  A list selects
        points of shape (n, len(columns)); a single name or index selects targets of shape (n,).
        None reads all columns.  ``blocks[columns]`` selects columns later.
    rows : int, default=None
        Number of rows of a block; None chooses blocks of about 16 MiB.  A block never contains
        rows of two files.
    format : str, default=None
        The format, as in `open_table`; required only if the file name does not have a known
        extension.

    Returns
    -------
    Blocks
        The rows.  An estimator that passes over the data several times reads the files each time.

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
    resolved = [Path(file) for file in files]
    for path in resolved:
        if not path.exists():
            raise TableError(f"{path} does not exist; check the spelling and the folder")
        if path.is_dir() and path.suffix.lower() != ".zarr":
            raise TableError(
                f"{path} is a folder; pass a list of its files in the order of their rows, for "
                f"example sorted(Path('{path}').glob('*.parquet'))"
            )
    suffixes = [path.suffix.lower() for path in resolved]
    if format is None and all(suffix in _ARRAY_SUFFIXES for suffix in suffixes):
        blocks = ArrayBlocks.below([_open_array(path) for path in resolved], rows)
        return blocks if columns is None else blocks[columns]
    sources = tuple(open_table(path, format=format) for path in resolved)
    return TableBlocks.below(sources, columns, rows)


def _open_array(path: Path) -> Any:
    """Return an array-like that reads rows from a .npy or .zarr file on demand."""
    if path.suffix.lower() == ".zarr":
        try:
            import zarr
        except ImportError:
            raise MissingPackageError(
                f"reading {path} requires zarr, which is not installed - try: pip install zarr"
            ) from None
        array = zarr.open(str(path), mode="r")
    else:
        try:
            array = _MappedRows.of(np.load(path, mmap_mode="r", allow_pickle=False))
        except (ValueError, OSError, EOFError) as error:
            raise TableError(f"{path} cannot be read as NPY: {error}") from None
    if not hasattr(array, "dtype") or array.dtype.kind not in "biufUS":
        raise TableError(f"{path} is not an array of numbers or text; save such an array")
    return array


@dataclass(frozen=True)
class _MappedRows:
    """The rows of a .npy file, in which each slice is memory-mapped separately.

    With a single memory map of the whole file, memory use would grow with every row that is read.
    """

    path: Any
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: np.memmap) -> Any:
        """Return the rows of a memory map, or the map itself if it is not C-contiguous."""
        if array.ndim == 0 or not array.flags.c_contiguous:
            return array
        return cls(array.filename, array.offset, array.dtype, array.shape)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        shape = (stop - start, *self.shape[1:])
        offset = self.offset + start * row_bytes
        try:
            return np.memmap(self.path, self.dtype, "r", offset, shape)
        except (ValueError, OSError) as error:
            raise _file_changed_error(
                self.path, f"rows {start} to {stop} cannot be read: {error}"
            ) from None


@dataclass(frozen=True, eq=False, repr=False)
class TableBlocks(LocalBlocks):
    """Blocks of rows from tables in files: numeric rows, or one column of any kind."""

    sizes: tuple[int, ...]
    width: int | None
    sources: tuple[Source, ...]
    rows: int
    names: list[str] = field(default_factory=list)
    y: Any = None
    weights: Any = None

    @classmethod
    def below(cls, sources: tuple[Source, ...], columns: Any, rows: int | None) -> Self:
        """Concatenate the rows of several files, which must have the same columns."""
        available = sources[0].column_names
        names = available if columns is None else _select_columns(sources[0], columns)
        for source in sources[1:]:
            if missing := [name for name in names if name not in source.column_names]:
                raise TableError(
                    f"{source.name} has no column {missing[0]!r}, which {sources[0].name} has; "
                    f"files that are concatenated must have the same columns"
                )
        width = None if isinstance(columns, str) else len(names)
        step = rows_per_block(len(available), rows)
        sizes: list[int] = []
        for source in sources:
            if not source.row_count:
                raise TableError(f"{source.name} has no rows; omit this file")
            starts = range(0, source.row_count, step)
            sizes += [min(step, source.row_count - start) for start in starts]
        return cls(tuple(sizes), width, sources, step, names)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def __getitem__(self, columns: Any) -> Self:
        """Select columns: a list of names for points, a single name for targets."""
        names = _select_columns(self.sources[0], columns)
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
            yield from _regroup(pieces, sizes, source)


def _regroup(
    pieces: Iterator[np.ndarray], sizes: Iterator[int], source: Source
) -> Iterator[np.ndarray]:
    """Regroup the pieces of a file into blocks of the given sizes.

    A TableError is raised if the file no longer has `source.row_count` rows.
    """
    pending: list[np.ndarray] = []
    n_remaining = source.row_count
    while n_remaining:
        size = next(sizes)
        while sum(map(len, pending)) < size:
            if (piece := next(pieces, None)) is None:
                raise _file_changed_error(source.name, f"it has fewer than {source.row_count} rows")
            pending.append(piece)
        joined = pending[0] if len(pending) == 1 else np.concatenate(pending)
        yield joined[:size]
        pending = [joined[size:]] if len(joined) > size else []
        n_remaining -= size
    if pending or next(pieces, None) is not None:
        raise _file_changed_error(source.name, f"it has more than {source.row_count} rows")


def _file_changed_error(name: Any, how: str) -> TableError:
    """Return the error for a file that was modified after it was opened."""
    return TableError(f"{name} has changed since it was opened: {how}; open it again")


def _select_columns(source: Source, columns: Any) -> list[str]:
    """Return the names of the selected columns; raise a TableError if one does not exist."""
    selected: list[Any] = [columns] if isinstance(columns, (str, int)) else list(columns)
    known = source.column_names
    for name in selected:
        if name not in known:
            raise TableError(
                f"{source.name} has no column {name!r}{suggest_name(str(name), known)} its "
                f"columns are {', '.join(map(str, known))}"
            )
    return selected
