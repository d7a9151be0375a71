"""open_table(): which reader a file wants."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ._arrays import Arrays
from ._columnar import Columnar
from ._delimited import Delimited
from ._frame import InMemory, is_frame, table_of
from ._jsonl import JsonLines
from ._source import STANDARD_INPUT, Source
from ._structured import Fasta, GraphFolder
from ._table import Table, TableError

__all__ = ["FORMATS", "open_table", "read_table"]

FORMATS = {  # by the ends of names
    "csv": (".csv", ".tsv", ".txt", ".dat", ".data"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy", ".npz"),
    "fasta": (".fasta", ".fa", ".fna", ".faa"),
    "graphs": (".zip",),
}
_SHEET = "save the sheet as CSV"
_REMEDIES = {".xlsx": _SHEET, ".xls": _SHEET, ".ods": _SHEET}
_REMEDIES[".json"] = "write one object per line, as by: jq -c '.[]', into a file .jsonl"


def open_table(
    path: Any,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    arrays: Sequence[str] = (),
) -> Source:
    r"""Return a source of the rows of a file or a DataFrame.

    Of a file, only the beginning is read at first.

    Parameters
    ----------
    path : str, path, or DataFrame of pandas or polars
        "-" stands for the standard input, which is copied into a temporary file.  A `Source`, a
        `Table` and a table of pyarrow are accepted, too.
    format : str, optional
        "csv", "jsonl", "parquet", "arrow", "npy", "fasta" or "graphs"; by the name of the file
        unless given, and "csv" for the standard input.
    delimiter, header
        Of a CSV file: what separates cells, and whether its first line holds names.
    arrays : names
        Of a .npz: which arrays to take; "X=X_test" calls one as another was called.

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
        return InMemory(path if isinstance(path, Table) else table_of(path))
    if not isinstance(path, (str, PathLike)):
        raise TypeError(
            f"open_table reads a path, a DataFrame of pandas or polars or a pyarrow.Table, got "
            f"{type(path).__name__} - put an array into a DataFrame to give its columns names"
        )
    name, place = (STANDARD_INPUT, _spooled()) if str(path) == "-" else (str(path), Path(path))
    if not place.exists():
        raise TableError(_not_there(place, name))
    kind = format or ("csv" if str(path) == "-" else _kind_of(place))
    options: dict[str, Any] = {"name": name}
    match kind:
        case "csv":
            if delimiter is None and place.name.removesuffix(".gz").endswith(".tsv"):
                delimiter = "\t"
            return Delimited(place, delimiter=delimiter, header=header, **options)
        case "jsonl":
            return JsonLines(place, **options)
        case "parquet" | "arrow":
            return Columnar(place, parquet=kind == "parquet", **options)
        case "npy":
            return Arrays(place, arrays=arrays, **options)
        case "fasta":
            return Fasta(place, **options)
        case "graphs":
            return GraphFolder(place, **options)
    raise TableError(f"{kind!r} is no format; the formats are {', '.join(FORMATS)}")


def read_table(path: Any, **options: Any) -> Table:
    """Return all rows of a file or DataFrame; the options are those of `open_table`."""
    return open_table(path, **options).table()


def _kind_of(path: Path) -> str:
    if path.is_dir():
        return "graphs"
    name = path.name.lower().removesuffix(".gz")
    for kind, ends in FORMATS.items():
        if name.endswith(ends):
            return kind
    known = ", ".join(ends[0] for ends in FORMATS.values())
    remedy = _REMEDIES.get(path.suffix, f"try --format csv, or another of {', '.join(FORMATS)}")
    raise TableError(
        f"{path}: the end of the name does not tell what kind of file it is; known ones are "
        f"{known} - {remedy}"
    )


def _not_there(path: Path, name: str) -> str:
    import difflib

    here = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, here, 1)
    hint = f"; did you mean {path.parent / near[0]}?" if near else ""
    return f"{name} is not there{hint or ' - usually a typing error, or another folder'}"


_spools: list[Any] = []  # temporary files, which go with the process


def _spooled() -> Path:
    """Return the standard input as a file, so that it can be read more than once."""
    file = tempfile.NamedTemporaryFile(prefix="mercer-")  # noqa: SIM115
    _spools.append(file)
    while chunk := sys.stdin.buffer.read(2**20):
        file.write(chunk)
    file.flush()
    return Path(file.name)
