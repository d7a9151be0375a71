"""The binary format of messages to the view, and the HTML pages that contain or receive them.

A message is JSON, followed by the bytes of all arrays:

    size of the JSON (4 bytes) | 4 zero bytes | JSON, padded to a multiple of 8 | arrays

In the JSON an array is ``{"$": [type, offset, count]}``; each array starts at a multiple of 8
bytes.  The same format is used over the websocket, in a notebook, and in a saved page.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
import struct
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..._core import page_palette, report_step, slices
from ...tables import array_column, column_from_texts

_MAX_DECIMALS = 9  # numbers with more decimal places are not stored as scaled integers
_COMPRESSED_BLOCK = 2**21  # a saved page is compressed in blocks of this many bytes
_PROBE_SIZE = 1000  # a scale is tested on this many numbers first, to save time
# Packed integers are smaller, because this is the code of missing values.
_MAX_PACKED_INTEGER = 2**31 - 1
_DATE_STEPS = (86_400_000_000, 60_000_000, 1_000_000, 1_000, 1)  # day, minute, ... in microseconds


Message = dict[str, Any]  # values that `pack` accepts, by name


def pack(value: object) -> bytes:
    r"""Return the bytes of a value made of dicts, lists, strings, numbers and arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.app.explorer._serialize import pack
    >>> pack({"x": np.array([1, 2], dtype="u1")})[8:].rstrip(bytes(1))
    b'{"x":{"$":["u1",0,2]}}  \x01\x02'
    """
    parts: list[bytes] = []
    size = 0

    def to_json(item: object) -> object:
        nonlocal size
        if isinstance(item, np.ndarray):
            array = np.ascontiguousarray(item, dtype=item.dtype.newbyteorder("<"))
            offset, bytes_ = size, array.tobytes()
            padded = bytes_ + bytes(-len(bytes_) % 8)
            parts.append(padded)
            size += len(padded)
            return {"$": [array.dtype.str[1:], offset, array.size]}
        if isinstance(item, dict):
            return {str(key): to_json(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [to_json(inner) for inner in item]
        if isinstance(item, np.generic):
            item = item.item()
        return None if isinstance(item, float) and not math.isfinite(item) else item

    text = json.dumps(to_json(value), allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<II", len(text), 0), text, *parts])


def point_text(point: Any) -> str:
    """Return a short text for a point of any type.

    Examples
    --------
    >>> from mercer.app.explorer._serialize import point_text
    >>> point_text({"b", "a"})
    '{a, b}'
    """
    if isinstance(point, str):
        return point
    if isinstance(point, (set, frozenset)):
        return f"{{{', '.join(sorted(map(str, point)))}}}"
    if isinstance(point, (tuple, list)):
        return " ".join(map(str, point))
    if hasattr(point, "number_of_nodes"):  # a networkx graph
        return f"{point.number_of_nodes()} nodes, {point.number_of_edges()} edges"
    text = repr(point)
    return text.removeprefix("<Graph: ").removesuffix(">") if text.startswith("<Graph: ") else text


def column_message(
    name: str, values: Any, *, derived: bool = False, boolean: bool = False
) -> Message:
    """Return a column as a compact message for `pack`, without loss of precision.

    Strings are sent as integer codes.  Integers that float64, the number type of the browser,
    cannot represent are sent as strings.  Numbers with few decimals are sent as integers with a
    power of ten, by which the browser divides to get the same float64 values.  Dates are sent as
    integers and the number of microseconds by which the browser multiplies them.  If `boolean` is
    True, the numbers 0 and 1 are sent as the strings "false" and "true".
    """
    message: Message = {"name": name, "derived": derived}
    # Objects such as graphs and sets are represented by a text.
    is_array = isinstance(values, np.ndarray)
    if is_array and values.dtype.kind == "M":
        return message | _date_message(values)
    column = array_column(values) if is_array else column_from_texts(map(point_text, values))
    if boolean and column.dtype != object:
        column = column_from_texts(None if v != v else str(v != 0).lower() for v in column.tolist())
    if column.dtype == object:
        cells = column.tolist()
        texts = ["" if cell is None else str(cell) for cell in cells]
        unique, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
        absent = np.array([cell is None for cell in cells])
        data, missing = _pack_integers(codes.astype(np.int64), absent)
        return message | {
            "type": "text",
            "values": unique.tolist(),
            "data": data,
            "missing": missing,
        }
    absent = np.isnan(column)
    for decimals in range(_MAX_DECIMALS + 1):
        divisor = 10.0**decimals
        if not _scale_to_integers(column[:_PROBE_SIZE], divisor)[1]:
            continue
        integers, exact = _scale_to_integers(column, divisor)
        if exact:
            data, missing = _pack_integers(integers.astype(np.int64), absent)
            numeric = {"type": "numbers", "data": data, "divisor": divisor, "missing": missing}
            return message | numeric
    with np.errstate(over="ignore"):
        single = column.astype(np.float32)
    data = single if np.array_equal(single, column, equal_nan=True) else column
    return message | {"type": "numbers", "data": data}


def _date_message(dates: np.ndarray) -> Message:
    """Return dates as multiples of the longest step that divides all of them.

    They are 32-bit integers if possible, and otherwise float64 with NaN for missing values.
    """
    absent = np.isnat(dates)
    instants = np.where(absent, 0, dates.astype("datetime64[us]").astype(np.int64))
    step = next(step for step in _DATE_STEPS if not np.any(instants % step))
    counts, missing = instants // step, None
    if np.abs(counts).max(initial=0) < _MAX_PACKED_INTEGER:
        data, missing = _pack_integers(counts, absent)
    else:
        data = np.where(absent, np.nan, counts.astype(np.float64))
    return {"type": "dates", "data": data, "missing": missing, "step": step}


def _scale_to_integers(numbers: np.ndarray, divisor: float) -> tuple[np.ndarray, bool]:
    """Return numbers * divisor, rounded, and whether division by it restores them exactly."""
    absent = np.isnan(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        integers = np.rint(np.where(absent, 0.0, numbers) * divisor)
        fits = np.abs(integers).max(initial=0) < _MAX_PACKED_INTEGER
        return integers, bool(fits and np.all(absent | (integers / divisor == numbers)))


def _pack_integers(values: np.ndarray, absent: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Return integers in the smallest type, and the code for missing values, or None.

    The absolute values are less than `_MAX_PACKED_INTEGER`.
    """
    low, high = int(values.min(initial=0)), int(values.max(initial=0)) + bool(absent.any())
    types = [np.iinfo(kind) for kind in ("u1", "i1", "u2", "i2", "i4")]
    limits = next(type_ for type_ in types if type_.min <= low and high <= type_.max)
    packed = values.astype(limits.dtype)
    if not absent.any():
        return packed, None
    packed[absent] = limits.max
    return packed, int(limits.max)


# A saved page may neither load anything nor connect to a server.
_SAVED_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">\n"
)
_SAVED_START = """\
const data = document.getElementById("data").textContent.split("\\n");
const [scene, more] = await Promise.all(data.map(async text => unpack(await decompress(text))));
if (more) addComponents(scene, more);
mount(document.getElementById("explorer"), scene);"""
_SCRIPT_FILES = (
    "dom",
    "wire",
    "query",
    "suggest",
    "colours",
    "raster",
    "geometry",
    "history",
    "filters",
    "transition",
    "pane",
    "overlays",
    "tabs",
    "layout",
    "focus",
    "scale",
    "menu",
    "pictures",
    "python",
    "legend",
    "histogram",
    "columns",
    "drawings",
    "point",
    "table",
    "contrast",
    "selection",
    "spectrum",
    "components",
    "models",
    "session",
    "named",
    "view",
    "controls",
    "jobs",
)

# A saved page contains the components that are not shown only if they enlarge it by at most this
# fraction.
_MAX_COMPONENTS_FRACTION = 0.2


@cache
def asset(name: str) -> str:
    """Return the text of a file of the view: JavaScript, a style sheet or a template of a page."""
    return files(__package__).joinpath("assets", name).read_text("utf-8")


@cache
def script() -> str:
    """Return the JavaScript code of the view, a module without dependencies.

    Comments that fill whole lines and indentation are removed, because every saved page contains
    the code.  No string of the code extends over several lines.
    """
    palette = f"const PALETTE = {json.dumps(page_palette(), separators=(',', ':'))};"
    code = "\n".join([palette, *(asset(f"{part}.js") for part in _SCRIPT_FILES)])
    return re.sub(r"(?m)^\s*(?://.*|/\*\*(?s:.*?)\*/)\n|^[ \t]+", "", code)


def page(message: Message) -> str:
    """Return a self-contained HTML page for a scene, given as the result of `Scene.to_message`.

    The data are compressed with gzip and encoded as base64, so that no text in the data can close
    the HTML element that contains them.
    """
    components = message.get("components", [])
    data, more = _compress(message | {"components": None}), _compress({"panes": components})
    is_small = len(more) <= _MAX_COMPONENTS_FRACTION * (len(data) + len(script()))
    if is_small and any(components):
        data += f"\n{more}"
    element = f'<script type="application/octet-stream" id="data">{data}</script>\n'
    return _fill_template(message["title"], policy=_SAVED_POLICY, data=element, start=_SAVED_START)


def _compress(message: Message) -> str:
    """Compress a message with gzip, and report the progress; equal messages give equal texts."""
    data = pack(message)
    compressor = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)  # with a gzip header
    parts, total = [], len(data)
    for block in slices(total, _COMPRESSED_BLOCK):
        parts.append(compressor.compress(data[block]))
        text = f"{min(block.stop, total) / 1e6:.0f} of {total / 1e6:.0f} MB"
        report_step(text, block.stop, total)
    return base64.b64encode(b"".join([*parts, compressor.flush()])).decode()


def served_page(title: str, nonce: str) -> str:
    """Return the HTML page that the server sends, which connects to the server.

    Parameters
    ----------
    title : str
        Title of the page.
    nonce : str
        Random string that marks the script and the style for the Content-Security-Policy.
    """
    return _fill_template(title, nonce=f' nonce="{nonce}"', start=asset("served.js"))


def _fill_template(title: str, **fields: str) -> str:
    """Replace {{field}} in the template of a page; fields that are not given are empty."""
    fields |= {"title": html.escape(title), "style": asset("view.css"), "script": script()}
    return re.sub(r"\{\{(\w+)\}\}", lambda m: fields.get(m[1], ""), asset("page.html"))


def missing_package(name: str) -> ImportError:
    """Return the error for a missing package that the extra `explore` installs."""
    return ImportError(
        f"the explorer needs {name}, which is not installed; install it with: "
        f"pip install 'mercer[explore]'. Without it, explorer.save(path) can still "
        f"write a self-contained page"
    )
