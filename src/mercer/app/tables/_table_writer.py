"""Write tables to files in formats that `open_table` can read."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._table import Table, TableError

WRITABLE = {  # file extensions of each format
    "csv": (".csv", ".txt", ".dat", ".data"),
    "tsv": (".tsv",),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
}
_TEXT_FORMATS = ("csv", "tsv", "jsonl")  # these formats are written row by row


def output_format(path: str | os.PathLike[str]) -> str:
    """Return the format for the extension of a file name; CSV if it has no extension."""
    name = Path(path).name.lower()
    uncompressed = name.removesuffix(".gz")
    for kind, extensions in WRITABLE.items():
        if uncompressed.endswith(extensions) and (uncompressed == name or kind in _TEXT_FORMATS):
            return kind
    if not Path(name).suffix:
        return "csv"
    known = ", ".join(extension for extensions in WRITABLE.values() for extension in extensions)
    raise TableError(
        f"{os.fspath(path)}: cannot write a table, because the file extension is "
        f"unknown - use one of {known}, or add .gz to a text format"
    )


class TableWriter:
    """Write the blocks of a table to an open file.

    Text formats are written immediately.  The other formats require the types of all rows, so
    their blocks are stored in memory until `close`.
    """

    def __init__(self, file: BinaryIO, kind: str, compressed: bool) -> None:
        self._file, self._kind, self._blocks = file, kind, list[Table]()
        self._n_blocks_written = 0
        self._zipped = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if compressed else None
        self._text = io.TextIOWrapper(
            self._zipped or file, encoding="utf-8", newline="", write_through=True
        )

    def write(self, block: Table) -> None:
        """Write a block of rows."""
        if self._kind not in _TEXT_FORMATS:
            self._blocks.append(block)
        elif self._kind == "jsonl":
            block.write_json(self._text)
        else:
            delimiter = "\t" if self._kind == "tsv" else ","
            block.write(self._text, header=self._n_blocks_written == 0, delimiter=delimiter)
        self._n_blocks_written += 1

    def close(self) -> None:
        """Write the stored blocks and flush the output; the file itself stays open."""
        self._text.flush()
        self._text.detach()
        if self._zipped is not None:
            self._zipped.close()
        if self._blocks:
            _write_arrays(self._file, self._kind, Table.joined(self._blocks))


@contextmanager
def table_writer(path: str | os.PathLike[str]) -> Iterator[TableWriter]:
    """Context manager that yields a `TableWriter` for a file.

    The rows are written to a temporary file, which replaces `path` when it is complete.
    """
    kind, target = output_format(path), Path(path)
    if kind in ("parquet", "arrow"):
        _import_pyarrow(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            writer = TableWriter(file, kind, target.name.lower().endswith(".gz"))
            yield writer
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write_arrays(file: BinaryIO, kind: str, table: Table) -> None:
    """Write a table in a binary format: NPY, NPZ, Parquet or Arrow."""
    if kind in ("npy", "npz"):
        columns = {name: _array(column) for name, column in table.columns.items()}
        if kind == "npz":
            # This replaces np.savez, which does not accept an array named "file".
            with zipfile.ZipFile(file, "w") as archive:
                for name, column in columns.items():
                    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                        np.lib.format.write_array(member, column, allow_pickle=False)
            return
        rows = np.empty(len(table), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            rows[name] = column
        np.save(file, rows, allow_pickle=False)
        return
    pa = _import_pyarrow(Path("the table"))
    arrow_table = pa.table({name: pa.array(_values(c)) for name, c in table.columns.items()})
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(arrow_table, file)
        return
    with pa.ipc.new_file(file, arrow_table.schema) as writer:
        writer.write_table(arrow_table)


def _values(column: np.ndarray) -> Any:
    """Return the values of a column in a form that pyarrow accepts."""
    return column.tolist() if column.dtype.kind in "OUS" else column


def _array(column: np.ndarray) -> np.ndarray:
    """Return a column as numbers or strings: missing numbers are NaN, missing strings are ""."""
    if column.dtype != object:
        return column
    values = column.tolist()
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _import_pyarrow(path: Path) -> Any:
    """Import pyarrow; raise a TableError if it is not installed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise TableError(
            f"writing {path} requires pyarrow, which is not installed - try: "
            f"pip install 'mercer[cli]'"
        ) from None
    return pa
