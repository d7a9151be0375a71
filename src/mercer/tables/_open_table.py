"""Open files: `open_table` as a source of tables, `open_blocks` as blocks for an estimator.

Both select the reader by format.  With `open_blocks`, at most two blocks are in memory at a time:
the current block, and the prefetched next block.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from ..blocks import ArrayBlocks, Blocks, LocalBlocks, rows_per_block
from ..datasets import read_fasta, read_tudataset
from ._binary_files import ArrowSource, NumpySource
from ._excel_files import ExcelSource
from ._file_formats import FORMATS, format_of, refuse_html, table_in_zip, without_compression
from ._json_files import JsonLinesSource, json_source
from ._table import MissingPackageError, Table, TableError, suggest_name
from ._table_source import (
    STANDARD_INPUT,
    InMemorySource,
    Source,
    is_frame,
    table_from_frame,
)
from ._text_files import CsvSource

# Formats that a file in a zip archive may have; the others are zip archives themselves.
_FORMATS_IN_ZIP = tuple(kind for kind in FORMATS if kind not in ("excel", "npy", "graphs"))


class SingleBlockSource(Source):
    """Base class of sources that read all rows as one block."""

    width = 2

    @abstractmethod
    def _table(self) -> Table:
        """Read all rows."""

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


def open_table(
    path: Any,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    sheet: str | int | None = None,
    arrays: Sequence[str] = (),
    na: str | Sequence[str] = (),
    decimal: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
) -> Source:
    r"""Open a file or a DataFrame as a source of rows.

    Only the beginning of the file is read; the rows are read when they are needed.

    Parameters
    ----------
    path : str, path or DataFrame
        A file, or a pandas or polars DataFrame.  "-" reads standard input, which is copied to a
        temporary file.  A zip archive of one file is read as that file.  A `Source`, a `Table` or
        a pyarrow table is accepted as well.
    format : str, default=None
        "csv", "jsonl", "json", "parquet", "arrow", "excel", "npy", "fasta" or "graphs".  None
        selects the format by the file extension, or by the first bytes if the extension is unknown
        and for standard input.
    delimiter : str, default=None
        The character that separates the cells of a CSV file; None detects it.
    header : bool, default=None
        Whether the first line of a CSV file contains the column names; None detects it.  The same
        holds for the first row of an Excel sheet.
    sheet : str or int, default=None
        The name of a sheet of an Excel workbook, or its position, starting at 1; None selects the
        first sheet that is not empty.
    arrays : sequence of str, default=()
        The arrays of a .npz file to read; all by default.  "X=X_test" reads the array X_test
        under the name X.
    na : str or sequence of str, default=()
        Cells of a CSV file that mean a missing value, in addition to the usual ones such as "NA"
        and "#N/A".  A string is split at commas.
    decimal : {".", ","}, default=None
        The decimal separator in columns of a CSV file that do not determine it, such as a column
        with the cells "1,234" and "2,345".  None uses the decimal separator of the other columns.
        If they do not determine it either, the comma is a decimal comma if cells are separated by
        semicolons, and a thousands separator otherwise.
    encoding : str, default=None
        The encoding of a CSV file.  None detects UTF-8 and UTF-16, and uses Windows-1252 otherwise.
    comment : str, default=None
        Lines of a CSV file that start with this text are skipped.  None skips lines that start
        with "#" before the header and, if there are any, between the rows.

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
    if isinstance(path, Table):
        return InMemorySource(path)
    if is_frame(path):
        frame_notes: list[str] = []
        return InMemorySource(table_from_frame(path, notes=frame_notes), frame_notes, path)
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
    has_extension = str(path) != "-"
    if format in (None, *_FORMATS_IN_ZIP) and (member := table_in_zip(file, name)):
        file, has_extension = _extract_member(file, member, name), True
    kind = format or format_of(file, name, use_extension=has_extension)
    refuse_html(file, name)
    if delimiter is None and without_compression(file.name).endswith(".tsv"):
        delimiter = "\t"
    readers: dict[str, Callable[..., Source]] = {
        "csv": partial(
            CsvSource,
            delimiter=delimiter,
            header=header,
            na=na,
            decimal=decimal,
            encoding=encoding,
            comment=comment,
        ),
        "jsonl": JsonLinesSource,
        "json": json_source,
        "parquet": partial(ArrowSource, parquet=True),
        "arrow": partial(ArrowSource, parquet=False),
        "excel": partial(ExcelSource, sheet=sheet, header=header),
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


def _missing_file_message(path: Path, name: str) -> str:
    """Return the error message for a missing file, which suggests a similar file name."""
    import difflib

    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    similar = difflib.get_close_matches(path.name, siblings, 1)
    hint = f"; did you mean {path.parent / similar[0]}?" if similar else ""
    return f"{name} does not exist{hint or ' - check the spelling and the folder'}"


@cache
def _temporary_folder() -> tempfile.TemporaryDirectory:
    """Return a folder that is deleted when the process ends."""
    return tempfile.TemporaryDirectory(prefix="mercer-", ignore_cleanup_errors=True)


@contextmanager
def _temporary_file(suffix: str = "") -> Iterator[tuple[BinaryIO, Path]]:
    """Yield a new file and its path; it exists until the process ends.

    It is closed after the block, because Windows does not open a file for reading that is open for
    writing.
    """
    descriptor, path = tempfile.mkstemp(suffix, "mercer-", _temporary_folder().name)
    with os.fdopen(descriptor, "wb") as file:
        yield file, Path(path)


def _extract_member(path: Path, member: str, name: str) -> Path:
    """Copy a file of a zip archive to a temporary file with the same extension."""
    try:
        with (
            _temporary_file("-" + Path(member).name) as (file, copy),
            zipfile.ZipFile(path) as archive,
            archive.open(member) as content,
        ):
            shutil.copyfileobj(content, file, 2**20)
    except RuntimeError:  # zipfile raises it for encrypted files
        raise TableError(
            f"{name} has a password - extract the archive, and use the file {member}"
        ) from None
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError) as error:
        raise TableError(
            f"{name}, {member}: {error} - usually a truncated or damaged archive - download or "
            f"create it again"
        ) from None
    return copy


def _spool_standard_input() -> Path:
    """Copy standard input to a temporary file, so that it can be read more than once."""
    with _temporary_file() as (file, copy):
        while chunk := sys.stdin.buffer.read(2**20):
            file.write(chunk)
    return copy


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
        Files of the same format.  The rows of several files are concatenated in this order.  A
        pattern such as ``data/*.parquet`` stands for all files that match it, sorted by name.
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
    resolved = [path for file in files for path in _matching_files(file)]
    for path in resolved:
        if not path.exists():
            raise TableError(f"{path} does not exist; check the spelling and the folder")
        if path.is_dir() and path.suffix.lower() != ".zarr":
            raise TableError(
                f"{path} is a folder; pass a pattern of its files, such as "
                f"'{path / '*.parquet'}', or a list of them in the order of their rows"
            )
    suffixes = [path.suffix.lower() for path in resolved]
    if format is None and all(suffix in _ARRAY_SUFFIXES for suffix in suffixes):
        blocks = ArrayBlocks.below([_open_array(path) for path in resolved], rows)
        return blocks if columns is None else blocks[columns]
    sources = tuple(open_table(path, format=format) for path in resolved)
    return TableBlocks.below(sources, columns, rows)


def _matching_files(file: str | PathLike[str]) -> list[Path]:
    """Return the files that match a pattern, sorted by name; a name without a pattern is kept."""
    text = str(file)
    if not any(sign in text for sign in "*?[") or Path(file).exists():
        return [Path(file)]
    found = sorted(glob.glob(text, recursive=True))
    if not found:
        folder = Path(text.split("*")[0]).parent
        raise TableError(f"no file matches {text!r}; check the pattern and the folder {folder}")
    return [Path(path) for path in found]


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

    def position(self, row: int, column: int | None) -> str:
        """Return the file, the row and the column of a value, for a message."""
        name = self.names[0 if column is None else column]
        ends = np.cumsum([source.row_count for source in self.sources])
        i = int(np.searchsorted(ends, row, side="right"))
        source = self.sources[i]
        return f"{source.name}, row {row - (ends[i] - source.row_count) + 1}, column {name!r}"

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
