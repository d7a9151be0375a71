"""The file: a safetensors container, which is a header in JSON and the bytes of arrays.

    8 bytes   N, the length of the header, little endian
    N bytes   {"__metadata__": {name: text}, tensor: {"dtype", "shape", "data_offsets"}, ...}
    the rest  the tensors, one after the other, without holes

Every tensor begins at a multiple of 64 bytes of the file, so that a map of it is aligned; tensors
called padding.0, padding.1, ... fill the gaps.  The metadata has a fingerprint: the SHA-256 of the
whole file with 64 zeros in its place.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import secrets
from contextlib import suppress
from typing import Any

import numpy as np

from .._errors import ModelFileError

__all__ = ["TENSORS", "Tensor", "read", "strict_json", "write"]

TENSORS = {  # the element types of the format
    "BOOL": np.dtype("?"),
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_NAMES = {dtype: name for name, dtype in TENSORS.items()}
_ALIGNED = 64
_HEADER = 100_000_000  # bytes, the limit of the format
_UNSIGNED = "0" * 64
_PADDING = "padding."


class Tensor:
    """The bytes of one array in a file: its element type, its shape, and where it lies."""

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...], begin: int, end: int) -> None:
        self.dtype, self.shape, self.begin, self.end = dtype, shape, begin, end
        self.block = np.empty(0, dtype=np.uint8)  # what is read


# ---------------------------------------------------------------------- writing


def write(path: Any, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> None:
    """Write arrays, C-contiguous and of the types of the format, in place of what is there.

    The file appears under its name when it is complete and on the disk: who interrupts this finds
    the old one.
    """
    header, blocks = _laid_out(metadata, arrays)
    whole = hashlib.sha256(header)
    for block in blocks:
        whole.update(block)
    header = header.replace(_UNSIGNED.encode(), whole.hexdigest().encode(), 1)
    path = os.path.realpath(path)
    new = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(new, "xb") as file:
            file.write(header)
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the name is on the disk, too
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _laid_out(
    metadata: dict[str, str], arrays: dict[str, np.ndarray]
) -> tuple[bytes, list[memoryview]]:
    """Return the first bytes of the file, not yet signed, and the blocks that follow."""
    entries: dict[str, Any] = {"__metadata__": {"fingerprint": _UNSIGNED, **metadata}}
    blocks, place = [], 0
    for name, array in arrays.items():
        gap = -place % _ALIGNED
        if gap:
            filler = np.zeros(gap, dtype=np.uint8)
            entries[f"{_PADDING}{len(entries)}"] = _entry(filler, place)
            blocks.append(_bytes(filler))
            place += gap
        entries[name] = _entry(array, place)
        blocks.append(_bytes(array))
        place += array.nbytes
    text = json.dumps(entries, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)
    if len(text) > _HEADER:
        raise ValueError(
            f"the header would have {len(text)} bytes, and the format allows {_HEADER}: too many "
            f"points are Python objects. Compress the model to fewer points (`mercer.compress`), "
            f"or give arrays, strings or Graphs"
        )
    return len(text).to_bytes(8, "little") + text, blocks


def _bytes(array: np.ndarray) -> memoryview:
    """Return the memory of a contiguous array."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def _entry(array: np.ndarray, place: int) -> dict[str, Any]:
    return {
        "dtype": _NAMES[array.dtype],
        "shape": list(array.shape),
        "data_offsets": [place, place + array.nbytes],
    }


# ---------------------------------------------------------------------- reading


def read(path: Any, *, mapped: bool) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the metadata and the tensors, their bytes read, or mapped and not yet looked at.

    The header is checked before anything else is read.  What is read is compared with the
    fingerprint; what is mapped is not, because that would read all of it.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise ModelFileError(f"it has {size} bytes, and a header needs 8")
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if length > min(size - 8, _HEADER):
            raise ModelFileError(
                f"its header would have {length} bytes, but the file has {size} and the format "
                f"allows {_HEADER}; it is cut off, or no file of mercer.save"
            )
        header = file.read(length)
        metadata, tensors = _checked(header, size - 8 - length)
        if mapped:
            _map(file, tensors, 8 + length)
            return metadata, _without_padding(tensors)
        given = metadata["fingerprint"]
        whole = hashlib.sha256(first + header.replace(given.encode(), _UNSIGNED.encode(), 1))
        for tensor in tensors.values():  # in the order of the file
            tensor.block = np.empty(tensor.end - tensor.begin, dtype=np.uint8)
            if file.readinto(_bytes(tensor.block)) != len(tensor.block):
                raise ModelFileError("it became shorter while it was read")
            whole.update(_bytes(tensor.block))
    if whole.hexdigest() != given:
        raise ModelFileError(
            "its contents do not have its fingerprint: some bytes were changed since it was written"
        )
    return metadata, _without_padding(tensors)


def _map(file: Any, tensors: dict[str, Tensor], start: int) -> None:
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    everything = np.frombuffer(pages, dtype=np.uint8)
    for tensor in tensors.values():
        tensor.block = everything[start + tensor.begin : start + tensor.end]


def _without_padding(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: one for name, one in tensors.items() if not name.startswith(_PADDING)}


def _checked(header: bytes, size: int) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return what the header says, if it describes exactly the `size` bytes that follow."""
    entries = strict_json(header, "its header")
    metadata = entries.pop("__metadata__", None) if isinstance(entries, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelFileError("its header has no __metadata__ of texts")
    fingerprint = metadata.get("fingerprint", "")
    if len(fingerprint) != 64 or not set(fingerprint) <= set("0123456789abcdef"):
        raise ModelFileError(
            "its metadata has no fingerprint of mercer.save; other safetensors files hold arrays, "
            "and no model"
        )
    tensors: dict[str, Tensor] = {}
    place = 0
    for name, entry in entries.items():
        tensor = _tensor(name, entry)
        if tensor.begin != place:
            raise ModelFileError(
                f"tensor {name[:80]!r} begins at byte {tensor.begin} of the data, but the one "
                f"before ends at {place}; tensors follow each other without holes"
            )
        place, tensors[name] = tensor.end, tensor
    if place != size:
        raise ModelFileError(
            f"its tensors have {place} bytes, but {size} follow the header; it is cut off, or "
            f"something was appended"
        )
    return metadata, tensors


def _tensor(name: str, entry: Any) -> Tensor:
    problem = f"tensor {name[:80]!r} has no dtype, shape and data_offsets that fit"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(problem)
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in TENSORS:
        raise ModelFileError(f"tensor {name[:80]!r} has an unknown dtype")
    if not (_counts(shape) and _counts(offsets) and len(offsets) == 2 and len(shape) <= 32):
        raise ModelFileError(problem)
    (begin, end), dtype = offsets, TENSORS[kind]
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ModelFileError(problem)
    return Tensor(dtype, tuple(shape), begin, end)


def _counts(values: Any) -> bool:
    """Tell whether these are sizes: integers, not negative, that a machine can count to."""
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)


def strict_json(text: bytes | str, what: str) -> Any:
    """Return what a text in JSON says: every key once, no NaN, no number that overflows."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ModelFileError(f"{what} has a key twice")
        return found

    def constant(name: str) -> Any:
        raise ModelFileError(f"{what} has {name}, which is not JSON")

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            raise ModelFileError(f"{what} has a number that overflows")
        return value

    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(
            text, object_pairs_hook=unique, parse_constant=constant, parse_float=number
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:  # bad UTF-8 is a ValueError, too
        raise ModelFileError(f"{what} is not JSON: {str(error)[:200]}") from None
