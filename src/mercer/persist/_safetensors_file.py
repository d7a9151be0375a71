"""Read and write safetensors files, which consist of a JSON header and the bytes of arrays.

    8 bytes   N, the length of the header, little endian
    N bytes   {"__metadata__": {name: text}, tensor: {"dtype", "shape", "data_offsets"}, ...}
    the rest  the tensors, one after the other, without gaps

Every tensor begins at a multiple of 64 bytes, so that memory-mapped arrays are aligned.
Tensors named padding.0, padding.1, ... fill the space between them.  The metadata contains a
fingerprint: the SHA-256 of the whole file, computed with 64 zeros in place of the fingerprint.
"""

# The library safetensors (0.8) is not used, because it is less strict: it accepts headers with
# repeated names and with unknown keys.  It also sorts tensors, which prevents their alignment.

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import secrets
from contextlib import suppress
from typing import Any, BinaryIO, NoReturn, TypeAlias

import numpy as np

from .._core import ModelFileError

Json: TypeAlias = Any  # a value that was read from JSON text, and is checked before it is used
JsonObject: TypeAlias = dict[str, Json]
FilePath: TypeAlias = str | os.PathLike[str]

TENSORS = {  # the element types of the safetensors format
    "BOOL": np.dtype("?"),
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_DTYPE_NAMES = {dtype: name for name, dtype in TENSORS.items()}
_ALIGNMENT = 64  # every tensor begins at a multiple of this number of bytes
_MAX_HEADER_BYTES = 100_000_000  # the limit of the safetensors format
_EMPTY_FINGERPRINT = "0" * 64  # placeholder while the fingerprint is computed
_PADDING = "padding."  # prefix of the names of padding tensors


class Tensor:
    """One array of a file: its element type, its shape, its position and its bytes."""

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...], begin: int, end: int) -> None:
        self.dtype, self.shape, self.begin, self.end = dtype, shape, begin, end
        self.block = np.empty(0, dtype=np.uint8)  # the bytes, which `read` sets


# ---------------------------------------------------------------------- writing


def write(path: FilePath, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> None:
    """Write a file, and replace an existing one.

    The data are written to a temporary file, which is renamed when it is complete and on disk.  If
    writing is interrupted, an existing file stays unchanged.

    Parameters
    ----------
    path : str or path
        The file.
    metadata : dict of str
        Strings for the header, by name.
    arrays : dict of array
        C-contiguous arrays with element types of `TENSORS`.
    """
    header, blocks = _layout(metadata, arrays)
    digest = hashlib.sha256(header)
    for block in blocks:
        digest.update(block)
    header = header.replace(_EMPTY_FINGERPRINT.encode(), digest.hexdigest().encode(), 1)
    path = os.path.realpath(path)
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(header)
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    # Write the new directory entry to disk, too; Windows cannot open a folder.
    if hasattr(os, "O_DIRECTORY"):  # pragma: no branch
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _layout(
    metadata: dict[str, str], arrays: dict[str, np.ndarray]
) -> tuple[bytes, list[memoryview]]:
    """Return the header without its fingerprint, and the blocks of bytes that follow it."""
    entries: JsonObject = {"__metadata__": {"fingerprint": _EMPTY_FINGERPRINT, **metadata}}
    blocks, offset = [], 0
    for name, array in arrays.items():
        gap = -offset % _ALIGNMENT
        if gap:
            padding = np.zeros(gap, dtype=np.uint8)
            entries[f"{_PADDING}{len(entries)}"] = _entry(padding, offset)
            blocks.append(_bytes(padding))
            offset += gap
        entries[name] = _entry(array, offset)
        blocks.append(_bytes(array))
        offset += array.nbytes
    text = json.dumps(entries, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    if len(text) > _MAX_HEADER_BYTES:
        raise ValueError(
            f"the header would have {len(text)} bytes, but the format allows {_MAX_HEADER_BYTES}; "
            f"the usual cause is too many points that are Python objects. Compress the model to "
            f"fewer points (`mercer.compress`), or use arrays, strings or Graphs as points"
        )
    return len(text).to_bytes(8, "little") + text, blocks


def _bytes(array: np.ndarray) -> memoryview:
    """Return the bytes of a contiguous array without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _entry(array: np.ndarray, offset: int) -> JsonObject:
    """Return the header entry of a tensor whose data begin at `offset`."""
    return {
        "dtype": _DTYPE_NAMES[array.dtype],
        "shape": list(array.shape),
        "data_offsets": [offset, offset + array.nbytes],
    }


# ---------------------------------------------------------------------- reading


def read(path: FilePath, *, mapped: bool) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read a file, and return its metadata and tensors.

    The header is checked before anything else is read.  The fingerprint is checked only if
    `mapped` is False, because that requires reading the whole file.

    Parameters
    ----------
    path : str or path
        The file.
    mapped : bool
        Whether to memory-map the tensors instead of reading them.

    Returns
    -------
    metadata : dict of str
        The strings of the header, by name.
    tensors : dict of Tensor
        The arrays by name.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise ModelFileError(f"the file has {size} bytes, but the header needs at least 8")
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if length > min(size - 8, _MAX_HEADER_BYTES):
            raise ModelFileError(
                f"this is not a model file, or it is truncated: the header should have {length} "
                f"bytes, but the file has {size} bytes and the format allows "
                f"{_MAX_HEADER_BYTES}; usually the arguments are in the wrong order, or the file "
                f"was not written by mercer.save or `mercer fit`"
            )
        header = file.read(length)
        metadata, tensors = _parse_header(header, size - 8 - length)
        if mapped:
            _map_tensors(file, tensors, 8 + length)
            return metadata, _without_padding(tensors)
        fingerprint = metadata["fingerprint"]
        digest = hashlib.sha256(
            first + header.replace(fingerprint.encode(), _EMPTY_FINGERPRINT.encode(), 1)
        )
        for tensor in tensors.values():  # the tensors are in the order of the file
            tensor.block = np.empty(tensor.end - tensor.begin, dtype=np.uint8)
            if file.readinto(_bytes(tensor.block)) != len(tensor.block):
                raise ModelFileError("the file became shorter while it was read")
            digest.update(_bytes(tensor.block))
    if digest.hexdigest() != fingerprint:
        raise ModelFileError(
            "the content does not match the fingerprint: the file was changed after it was saved"
        )
    return metadata, _without_padding(tensors)


def _map_tensors(file: BinaryIO, tensors: dict[str, Tensor], start: int) -> None:
    """Memory-map the data of all tensors, which begin at byte `start` of the file."""
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data = np.frombuffer(pages, dtype=np.uint8)
    for tensor in tensors.values():
        tensor.block = data[start + tensor.begin : start + tensor.end]


def _without_padding(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors without those that only fill the space between others."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(_PADDING)}


def _parse_header(header: bytes, size: int) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Parse the header, and check that it describes exactly the `size` bytes that follow."""
    entries = strict_json(header, "the header")
    metadata = entries.pop("__metadata__", None) if isinstance(entries, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelFileError("the header has no __metadata__ with string values")
    fingerprint = metadata.get("fingerprint", "")
    if len(fingerprint) != 64 or not set(fingerprint) <= set("0123456789abcdef"):
        raise ModelFileError(
            "the metadata has no fingerprint of mercer.save; the usual cause is a safetensors file "
            "of another program, which contains arrays, but no model"
        )
    tensors: dict[str, Tensor] = {}
    offset = 0
    for name, entry in entries.items():
        tensor = _parse_tensor(name, entry)
        if tensor.begin != offset:
            raise ModelFileError(
                f"tensor {name[:80]!r} begins at byte {tensor.begin} of the data, but the one "
                f"before ends at {offset}; there must not be gaps between tensors"
            )
        offset, tensors[name] = tensor.end, tensor
    if offset != size:
        raise ModelFileError(
            f"the tensors have {offset} bytes, but {size} bytes follow the header; the file is "
            f"truncated, or data were appended"
        )
    return metadata, tensors


def _parse_tensor(name: str, entry: Json) -> Tensor:
    """Parse the header entry of a tensor; raise a ModelFileError if it is not valid."""
    problem = f"tensor {name[:80]!r} has missing or inconsistent dtype, shape and data_offsets"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(problem)
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in TENSORS:
        raise ModelFileError(f"tensor {name[:80]!r} has an unknown dtype")
    if not (_are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2 and len(shape) <= 32):
        raise ModelFileError(problem)
    (begin, end), dtype = offsets, TENSORS[kind]
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ModelFileError(problem)
    return Tensor(dtype, tuple(shape), begin, end)


def _are_sizes(values: Json) -> bool:
    """Whether the values are a list of integers from 0 to 2^62 - 1."""
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)


def strict_json(text: bytes | str, what: str) -> Json:
    """Parse JSON; reject repeated keys, NaN, infinities and numbers that overflow.

    Parameters
    ----------
    text : bytes or str
        The JSON text.
    what : str
        The name of the text in error messages.

    Returns
    -------
    object
        The parsed value.
    """

    def check_unique(pairs: list[tuple[str, Json]]) -> JsonObject:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ModelFileError(f"{what} contains a key twice")
        return values

    def reject_constant(name: str) -> NoReturn:
        raise ModelFileError(f"{what} contains {name}, which is not valid JSON")

    def parse_number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            raise ModelFileError(f"{what} contains a number that overflows")
        return value

    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(
            text,
            object_pairs_hook=check_unique,
            parse_constant=reject_constant,
            parse_float=parse_number,
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:  # invalid UTF-8 also raises a ValueError
        raise ModelFileError(f"{what} is not valid JSON: {str(error)[:200]}") from None
