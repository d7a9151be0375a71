"""Open a file or DataFrame as a table: `open_table` selects the reader by format."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets import read_fasta, read_tudataset
from ._dataframes import ArrowSource, InMemorySource, is_frame, table_from_frame
from ._npy import NumpySource
from ._table import Table, TableError
from ._table_source import STANDARD_INPUT, Source
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
    >>> from mercer.app.tables import open_table
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
    options: dict[str, Any] = {"name": name}
    match kind:
        case "csv":
            if delimiter is None and file.name.removesuffix(".gz").endswith(".tsv"):
                delimiter = "\t"
            return CsvSource(file, delimiter=delimiter, header=header, **options)
        case "jsonl":
            return JsonLinesSource(file, **options)
        case "parquet" | "arrow":
            return ArrowSource(file, parquet=kind == "parquet", **options)
        case "npy":
            return NumpySource(file, arrays=arrays, **options)
        case "fasta":
            return FastaSource(file, **options)
        case "graphs":
            return GraphFolderSource(file, **options)
    raise TableError(f"unknown format {kind!r}; the formats are {', '.join(FORMATS)}")


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
