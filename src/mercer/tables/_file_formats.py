"""Formats of files: their extensions, their first bytes, and advice for other formats."""

from __future__ import annotations

import zipfile
import zlib
from gzip import GzipFile
from pathlib import Path

from ._table import TableError

FORMATS = {  # file extensions of each format
    "csv": (".csv", ".tsv", ".txt", ".dat", ".data"),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "excel": (".xlsx", ".xlsm"),
    "npy": (".npy", ".npz"),
    "fasta": (".fasta", ".fa", ".fna", ".faa"),
    "graphs": (".zip",),
}
_SPREADSHEET = "save the sheet as .xlsx or CSV"
# What to do with common files that are not supported.
_REMEDIES = {
    ".xls": f"{_SPREADSHEET}, or pass pandas.read_excel(path) in Python",
    ".xlsb": f"{_SPREADSHEET}, or pass pandas.read_excel(path) in Python",
    ".ods": f"{_SPREADSHEET}, or pass pandas.read_excel(path) in Python",
    ".numbers": _SPREADSHEET,
    ".pdf": "copy the table to a spreadsheet, and save it as CSV",
    ".rds": "write a CSV file in R: write.csv(table, 'table.csv', row.names = FALSE)",
    ".rdata": "write a CSV file in R: write.csv(table, 'table.csv', row.names = FALSE)",
    ".rda": "write a CSV file in R: write.csv(table, 'table.csv', row.names = FALSE)",
    ".mat": "read it with scipy.io.loadmat, and save the arrays with numpy.savez",
    ".arff": "read it with scipy.io.arff.loadarff, and pass pandas.DataFrame(data) in Python",
    ".zarr": "open the array with mercer.open_blocks",
}
# Other files that pandas reads into a DataFrame, with the function.
_PANDAS_READERS = {
    "read_sql": (".sqlite", ".sqlite3", ".db", ".duckdb"),
    "read_stata": (".dta",),
    "read_sas": (".sas7bdat", ".xpt"),
    "read_spss": (".sav", ".zsav"),  # codespell:ignore sav
    "read_hdf": (".h5", ".hdf5", ".hdf"),
    "read_orc": (".orc",),
    "read_pickle": (".pkl", ".pickle"),
    "read_html": (".html", ".htm"),
    "read_xml": (".xml",),
}
for _reader, _extensions in _PANDAS_READERS.items():
    for _extension in _extensions:
        _REMEDIES[_extension] = (
            f"read it in Python with pandas.{_reader}, and pass the DataFrame in place of the "
            f"path, or save it with DataFrame.to_parquet"
        )
# The first bytes of files that are not supported, with the extension that selects the advice.
_OTHER_MAGIC = {
    b"\xd0\xcf\x11\xe0": ".xls",
    b"SQLite format 3\0": ".sqlite",
    b"\x89HDF\r\n": ".h5",
    b"%PDF": ".pdf",
    b"ORC": ".orc",
    b"<!DOCTYPE": ".html",
    b"<html": ".html",
    b"<?xml": ".xml",
}
_N_FIRST_BYTES = 2**12  # enough to recognise a format; the first line of a text file may be long
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")


def format_of(path: Path, name: str = "", *, use_extension: bool = True) -> str:
    """Return the format of a file by its extension, otherwise by its first bytes.

    Parameters
    ----------
    path : Path
        The file.
    name : str, default=""
        The name of the file in messages; if empty, `path` is used.
    use_extension : bool, default=True
        Whether the extension determines the format.  It does not for standard input.

    Returns
    -------
    str
        A key of `FORMATS`.

    Raises
    ------
    TableError
        If the format is known but not supported, or if a binary file has an unknown format.
    """
    if path.is_dir():
        return "graphs"
    name = name or str(path)
    if use_extension:
        file_name = path.name.lower()
        stem = next(
            (file_name.removesuffix(c) for c in _COMPRESSIONS[:-1] if file_name.endswith(c)),
            file_name,
        )
        for kind, extensions in FORMATS.items():
            if stem.endswith(extensions):
                return kind
        extension = Path(stem).suffix
        if extension in _REMEDIES:
            raise TableError(_unsupported(name, extension))
    found, extension = _format_by_content(path)
    if found is None:
        if extension:
            raise TableError(_unsupported(name, extension))
        known = ", ".join(extensions[0] for extensions in FORMATS.values())
        raise TableError(
            f"{name}: the file is not a text file, and its format is unknown - supported "
            f"extensions are {known} - specify the format with --format: {', '.join(FORMATS)}"
        )
    return found


def _unsupported(name: str, extension: str) -> str:
    known = ", ".join(extensions[0] for extensions in FORMATS.values())
    return (
        f"{name}: {extension} files are not supported; supported extensions are {known} - "
        f"{_REMEDIES[extension]}"
    )


def _format_by_content(path: Path) -> tuple[str | None, str]:
    """Return the format by the first bytes, and the extension of an unsupported format."""
    with path.open("rb") as raw:
        start = raw.read(_N_FIRST_BYTES)
        if start.startswith(b"\x1f\x8b"):
            raw.seek(0)
            try:
                start = GzipFile(fileobj=raw).read(_N_FIRST_BYTES)
            except (OSError, EOFError, zlib.error):
                return "csv", ""  # the reader reports the damaged file
    for magic, kind in (
        (b"PAR1", "parquet"),
        (b"ARROW1", "arrow"),
        (b"\xff\xff\xff\xff", "arrow"),  # an Arrow stream
        (b"\x93NUMPY", "npy"),
    ):
        if start.startswith(magic):
            return kind, ""
    if start.startswith(b"PK\x03\x04"):
        return _format_of_zip(path)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, extension in _OTHER_MAGIC.items():
        if text.startswith(magic):
            return None, extension
    if _is_json(text):
        return "json", ""
    if text.startswith(b">") and b"\n" in text:
        return "fasta", ""
    is_utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    return (None, "") if b"\0" in start and not is_utf16 else ("csv", "")


def _is_json(text: bytes) -> bool:
    """Return True if a text starts as an object, or as an array of objects or arrays."""
    second = text[1:].lstrip()[:1]
    return (
        second in (b'"', b"}") if text[:1] == b"{" else text[:1] == b"[" and second in (b"{", b"[")
    )


def _format_of_zip(path: Path) -> tuple[str | None, str]:
    """Return the format of a zip file by the names of its members."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return "excel", ""  # the reader reports the damaged file
    if any(name.startswith("xl/") for name in names):
        return (None, ".xlsb") if "xl/workbook.bin" in names else ("excel", "")
    if "content.xml" in names and "mimetype" in names:
        return None, ".ods"
    if names and all(name.endswith(".npy") for name in names):
        return "npy", ""
    return "graphs", ""
