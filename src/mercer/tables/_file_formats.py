"""Formats of files: their extensions, their first bytes, and advice for other formats."""

from __future__ import annotations

import re
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
    ".graphml": "read the graphs in Python with mercer.kernels.Graphs.from_graphml(paths)",
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
    b"<?xml": ".xml",
}
_N_FIRST_BYTES = 2**12  # enough to recognise a format; the first line of a text file may be long
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype\s+html|html|head)\b",
    re.IGNORECASE | re.DOTALL,
)
_MAX_LISTED_MEMBERS = 10  # files of an archive that an error message lists


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
        stem = without_compression(path.name)
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


def refuse_html(path: Path, name: str) -> None:
    """Raise a TableError if a file is an HTML page, whatever its extension is."""
    if path.is_dir():
        return
    with path.open("rb") as file:
        start = file.read(_N_FIRST_BYTES)
    if _HTML_START.match(start):
        raise TableError(
            f"{name} is an HTML page instead of a table - usually the login or error page of a "
            f"download - open it in a browser to see its text, and download the file again; read "
            f"a table of a page with pandas.read_html"
        )


def table_in_zip(path: Path, name: str) -> str | None:
    """Return the only table in a zip archive; None if the archive is a file format itself.

    Parameters
    ----------
    path : Path
        Any file.
    name : str
        The name of the file in messages.

    Returns
    -------
    str or None
        The name of the member to read.  None if the file is not a zip archive, or if it is an
        Excel workbook, a .npz file or a graph dataset.

    Raises
    ------
    TableError
        If the archive contains no table or several tables.
    """
    if path.is_dir() or not zipfile.is_zipfile(path):
        return None
    names = _zip_members(path)
    if names is None or _format_of_zip(names) != ("graphs", ""):
        return None
    members = [
        member
        for member in names
        if not member.endswith("/")
        if not member.startswith("__MACOSX/") and not Path(member).name.startswith(".")
    ]
    if any(member.endswith("_A.txt") for member in members):
        return None  # a graph dataset
    endings = tuple(e for kind, ends in FORMATS.items() if kind != "graphs" for e in ends)
    tables = [member for member in members if without_compression(member).endswith(endings)]
    if len(members) == 1:
        return members[0]
    if len(tables) == 1:
        return tables[0]
    shown = ", ".join((tables or members)[:_MAX_LISTED_MEMBERS])
    n_others = len(tables or members) - _MAX_LISTED_MEMBERS
    shown += f" and {n_others} more" if n_others > 0 else ""
    if not members:
        raise TableError(f"{name} is an empty archive - download or create it again")
    if not tables:
        raise TableError(
            f"{name} contains no file with a known extension: {shown} - supported extensions are "
            f"{', '.join(endings)} - extract the archive, and specify the format with --format"
        )
    raise TableError(
        f"{name} contains {len(tables)} tables: {shown} - only an archive of one table can be "
        f"read - extract the archive, and use one of these files"
    )


def without_compression(file_name: str) -> str:
    """Return a file name in lower case, without the extension of a compressed file."""
    name = file_name.lower()
    return next((name.removesuffix(c) for c in _COMPRESSIONS if name.endswith(c)), name)


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
        names = _zip_members(path)
        # The reader reports a damaged file.
        return ("excel", "") if names is None else _format_of_zip(names)
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


def _zip_members(path: Path) -> list[str] | None:
    """Return the names of the files in a zip archive; None if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def _format_of_zip(names: list[str]) -> tuple[str | None, str]:
    """Return the format of a zip archive by the names of its members."""
    if any(name.startswith("xl/") for name in names):
        return (None, ".xlsb") if "xl/workbook.bin" in names else ("excel", "")
    if "content.xml" in names and "mimetype" in names:
        return None, ".ods"
    if names and all(name.endswith(".npy") for name in names):
        return "npy", ""
    return "graphs", ""
