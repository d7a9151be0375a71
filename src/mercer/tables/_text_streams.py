"""Decode and decompress text files, and read their lines."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np

from ._table import TableError
from ._table_source import Source

_CHUNK_BYTES = 2**20  # bytes that are read at once
_FIRST_LINES_PER_READ, _LINES_PER_READ = 2**3, 2**7  # lines that are decoded at once


class WrongEncoding(Exception):
    """Raised if a file without a declared encoding is not valid UTF-8."""

    def __init__(self, line: int, data: bytes, position: int) -> None:
        super().__init__(line, data, position)
        self.line, self.data, self.position = line, data, position


def _latin1_fallback(error: Any) -> tuple[str, int]:
    """Decode the five bytes that Windows-1252 does not define as in Latin-1."""
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("mercer_latin1", _latin1_fallback)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")  # bytes that text files do not contain


def use_windows_1252(source: Any, error: WrongEncoding) -> None:
    """Read a file that is not UTF-8 as Windows-1252; raise a TableError if it is not text."""
    if _CONTROL.search(error.data):
        example = " utf-16-le" if b"\0" in error.data else ""
        raise TableError(
            f"{source.name}, near line {error.line}: byte {error.data[error.position]:#04x} is not "
            f"valid UTF-8, and the file contains control characters - usually it is not a text "
            f"file - inspect it with: head -c 200, or specify its encoding with --encoding"
            f"{example}"
        ) from None
    source.encoding = "cp1252"
    source.notes.append(
        f"the file is not UTF-8 (near line {error.line}) and is read as Windows-1252 (Latin-1) - "
        f"if this is wrong, specify the encoding with --encoding"
    )


def parse_encoding(encoding: str | None) -> str | None:
    """Return the normalised name of an encoding; raise a TableError if it is unknown."""
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise TableError(
            f"the encoding {encoding!r} is unknown - use for example utf-8, utf-16, latin-1, "
            f"cp1252 or shift_jis"
        ) from None
    return "utf-8-sig" if name == "utf-8" else name


_DECOMPRESSORS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
with suppress(ImportError):  # Python 3.14 and later
    _DECOMPRESSORS[b"\x28\xb5\x2f\xfd"] = import_module("compression.zstd").ZstdFile


def split_lines(text: str) -> list[str]:
    """Split text into lines, which keep their line ends, as files do."""
    return list(io.StringIO(text, newline=""))


class TextStream:
    """The lines of a text file as UTF-8, without compression and byte-order mark.

    Parameters
    ----------
    source : Source
        The file; its attribute `encoding` is the encoding, or None to detect UTF-8 and UTF-16.
    track : bool, default=False
        Whether to update the attribute `fraction_read` of the source.

    Attributes
    ----------
    n_lines : int
        The number of lines that have been read.
    lines_before : int
        The number of lines before the last block.
    """

    def __init__(self, source: Any, track: bool = False) -> None:
        self._source, self._track = source, track
        self._size = max(1, source.path.stat().st_size)
        self.n_lines = self.lines_before = 0
        self._buffer, self._has_ended = b"", False
        self._n_filled = 0  # the number of line ends that were read into the buffer
        self._decoder: Any = None
        self._is_first, self._is_mac, self._skip_mark = True, False, False

    def __enter__(self) -> TextStream:
        self._raw = self._source.path.open("rb")
        magic = self._raw.read(6)
        self._raw.seek(0)
        self._file: Any = self._raw
        for start, opener in _DECOMPRESSORS.items():
            if magic.startswith(start):
                self._file = opener(self._raw)
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def _fill(self) -> bool:
        """Read the next bytes into the buffer; return False at the end of the file."""
        if self._has_ended:
            return False
        try:
            chunk = self._file.read(_CHUNK_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise TableError(
                f"{self._source.name}, after line {self._n_filled}: {error} - usually a truncated "
                f"compressed file - download or create it again"
            ) from None
        if self._track:
            self._source.fraction_read = self._raw.tell() / self._size
        self._has_ended = not chunk
        if self._is_first:
            self._is_first = False
            self._choose_encoding(chunk)
        if self._decoder is not None:
            try:
                chunk = self._decoder.decode(chunk, not chunk).encode("utf-8", "replace")
            except UnicodeDecodeError as error:
                valid = error.object[: error.start].decode(error.encoding)
                line = self._n_filled + valid.count("\n") + 1
                raise self._decoding_error(error, line) from None
        elif self._skip_mark:
            self._skip_mark = False
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        if self._is_mac:
            chunk = chunk.replace(b"\r", b"\n")
        self._buffer += chunk
        self._n_filled += chunk.count(b"\n")
        return not self._has_ended or bool(chunk)

    def _choose_encoding(self, chunk: bytes) -> None:
        encoding = getattr(self._source, "encoding", None)
        if encoding is None and chunk[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "utf-16"  # Excel writes it if a sheet is saved as "Unicode text"
        self._skip_mark = encoding in (None, "utf-8-sig")
        if not self._skip_mark and encoding is not None:
            errors = "mercer_latin1" if encoding == "cp1252" else "strict"
            self._decoder = codecs.getincrementaldecoder(encoding)(errors)
            # `_fill` reports bytes that are not valid.
            lenient = codecs.getincrementaldecoder(encoding)("replace")
            chunk = lenient.decode(chunk).encode("utf-8", "replace")
        # Old Macs end lines with a carriage return.
        self._is_mac = b"\n" not in chunk and b"\r" in chunk[:-1]

    def _decoding_error(self, error: UnicodeDecodeError, line: int) -> TableError:
        return TableError(
            f"{self._source.name}, near line {line}: byte {error.object[error.start]:#04x} is not "
            f"valid {error.encoding} - usually the file has another encoding, or is not a text "
            f"file - specify the encoding with --encoding"
        )

    def _check(self, data: bytes, line: int) -> bytes:
        """Return data if it is valid UTF-8; raise `WrongEncoding` or a TableError otherwise."""
        if not data.isascii() and self._decoder is None:
            try:
                data.decode()
            except UnicodeDecodeError as error:
                line += data[: error.start].count(b"\n")
                if getattr(self._source, "encoding", "utf-8") is not None:
                    raise self._decoding_error(error, line) from None
                raise WrongEncoding(line, data, error.start) from None
        return data

    def skip(self, n_bytes: int, n_lines: int) -> None:
        """Skip bytes of the UTF-8 text, which contain the given number of lines."""
        while len(self._buffer) < n_bytes and self._fill():
            pass
        self._buffer = self._buffer[n_bytes:]
        self.n_lines = self.lines_before = n_lines

    def read_lines(self, count: int) -> bytes:
        """Return at most `count` lines; b"" at the end of the file."""
        parts, n_found = list[bytes](), 0
        while n_found < count and (self._buffer or self._fill()):
            ends = np.flatnonzero(np.frombuffer(self._buffer, np.uint8) == ord("\n"))
            if n_found + len(ends) >= count:
                cut = int(ends[count - n_found - 1]) + 1
                parts.append(self._buffer[:cut])
                self._buffer = self._buffer[cut:]
                n_found = count
                break
            n_found += len(ends)
            parts.append(self._buffer)
            self._buffer = b""
        data = b"".join(parts)
        self.lines_before = self.n_lines
        if data and not data.endswith(b"\n"):
            n_found += 1  # the last line has no line end
        self.n_lines += n_found
        return self._check(data, self.lines_before + 1)

    def more_lines(self) -> Iterator[str]:
        """Yield further lines as text; lines that are not consumed remain in the stream."""
        while True:
            end = self._buffer.find(b"\n")
            while end < 0 and self._fill():
                end = self._buffer.find(b"\n")
            data = self._buffer[: end + 1] if end >= 0 else self._buffer
            if not data:
                return
            line = split_lines(self._check(data, self.n_lines + 1).decode())[0]
            self._buffer = self._buffer[len(line.encode()) :]
            yield line


@contextmanager
def open_lines(source: Source, track: bool = False) -> Iterator[Iterator[str]]:
    """Open a text file, which may be compressed; error messages state the line number.

    If `track` is True, the attribute `fraction_read` of the source is updated during reading.
    """
    with TextStream(source, track) as stream:
        yield _lines(stream)


def _lines(stream: TextStream) -> Iterator[str]:
    n_lines = _FIRST_LINES_PER_READ  # often only the first lines are needed
    while data := stream.read_lines(n_lines):
        yield from split_lines(data.decode())
        n_lines = min(2 * n_lines, _LINES_PER_READ)
