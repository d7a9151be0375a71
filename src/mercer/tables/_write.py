"""Tables written to files, in the formats that `open_table` reads."""

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

__all__ = ["WRITABLE", "TableWriter", "output_format", "table_writer"]

WRITABLE = {  # by the ends of names
    "csv": (".csv", ".txt", ".dat", ".data"),
    "tsv": (".tsv",),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
}
_LINES = ("csv", "tsv", "jsonl")  # formats that are written row by row


def output_format(path: str | os.PathLike[str]) -> str:
    """Return the format that the end of a name stands for; CSV for a name without one."""
    name = Path(path).name.lower()
    plain = name.removesuffix(".gz")
    for kind, ends in WRITABLE.items():
        if plain.endswith(ends) and (plain == name or kind in _LINES):
            return kind
    if not Path(name).suffix:
        return "csv"
    known = ", ".join(end for ends in WRITABLE.values() for end in ends)
    raise TableError(
        f"{os.fspath(path)}: no table is written to a file of this name, because its end does not "
        f"stand for a known format - use one of {known}, or add .gz to a text format"
    )


class TableWriter:
    """Writes the blocks of a table to a file that is open.

    Text is written at once; the other formats need the types of all rows, so that their blocks
    are held in memory until `close`.
    """

    def __init__(self, file: BinaryIO, kind: str, compressed: bool) -> None:
        self._file, self._kind, self._blocks = file, kind, list[Table]()
        self._number = 0
        self._zipped = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if compressed else None
        self._text = io.TextIOWrapper(
            self._zipped or file, encoding="utf-8", newline="", write_through=True
        )

    def write(self, block: Table) -> None:
        """Write a block of rows."""
        if self._kind not in _LINES:
            self._blocks.append(block)
        elif self._kind == "jsonl":
            block.write_json(self._text)
        else:
            mark = "\t" if self._kind == "tsv" else ","
            block.write(self._text, header=self._number == 0, delimiter=mark)
        self._number += 1

    def close(self) -> None:
        """Write the blocks that are held in memory, and flush; the file stays open."""
        self._text.flush()
        self._text.detach()
        if self._zipped is not None:
            self._zipped.close()
        if self._blocks:
            _write_arrays(self._file, self._kind, Table.joined(self._blocks))


@contextmanager
def table_writer(path: str | os.PathLike[str]) -> Iterator[TableWriter]:
    """Yield a writer of the format of a name; the file is replaced when it is complete."""
    kind, place = output_format(path), Path(path)
    if kind in ("parquet", "arrow"):
        _pyarrow(place)
    new = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with new.open("wb") as file:
            writer = TableWriter(file, kind, place.name.lower().endswith(".gz"))
            yield writer
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, place)
    finally:
        new.unlink(missing_ok=True)


def _write_arrays(file: BinaryIO, kind: str, table: Table) -> None:
    if kind in ("npy", "npz"):
        columns = {name: _array(column) for name, column in table.columns.items()}
        if kind == "npz":
            with zipfile.ZipFile(file, "w") as archive:  # np.savez takes no array called "file"
                for name, column in columns.items():
                    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                        np.lib.format.write_array(member, column, allow_pickle=False)
            return
        rows = np.empty(len(table), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            rows[name] = column
        np.save(file, rows, allow_pickle=False)
        return
    pa = _pyarrow(Path("the table"))
    made = pa.table({name: pa.array(_values(c)) for name, c in table.columns.items()})
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(made, file)
        return
    with pa.ipc.new_file(file, made.schema) as writer:
        writer.write_table(made)


def _values(column: np.ndarray) -> Any:
    """Return values for pyarrow, where None is missing, and NaN is missing in a float column."""
    return column.tolist() if column.dtype.kind in "OUS" else column


def _array(column: np.ndarray) -> np.ndarray:
    """Return a column without objects: missing numbers are NaN, missing texts are empty."""
    if column.dtype != object:
        return column
    values = column.tolist()
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _pyarrow(place: Path) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise TableError(
            f"{place} is written by pyarrow, which is not installed - try: "
            f"pip install 'mercer[cli]'"
        ) from None
    return pa
