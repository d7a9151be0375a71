"""Encode a fitted model as JSON and arrays.

None, booleans, strings, integers and finite floats are encoded as themselves.  Any other value is
a JSON object, one key of which is its kind: {"tuple": [...]}, {"array": "X_fit_", "shape": [5, 2]}.
A value that occurs several times is written only once, with an "id"; later occurrences are written
as {"ref": id}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._core import KernelSyntaxError, is_table
from ..kernels import Kernel, parse_kernel, unwrap
from ..solvers import Status
from ._class_registry import MAX_KERNEL_CHARACTERS, StoredClass, by_class, with_user_classes
from ._dataframe_codec import table_to_columns
from ._safetensors_file import TENSORS, Json, JsonObject
from ._schema_checks import check_fields

_MAX_INLINE_STRINGS = 16  # longer lists of strings are stored in a tensor, not in the header
_SPARSE_CLASSES = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
_NATIVE_DTYPES = set(TENSORS.values())


class Encoder:
    """Encode one model: `encode` returns its JSON, which refers to `arrays` by name.

    Attributes
    ----------
    arrays : dict of array
        The arrays of the encoded values, by name.
    classes : dict of int
        The format versions of the classes that occur in the model, by name.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.classes: dict[str, int] = {}
        self._encoded: dict[int, tuple[object, JsonObject | None]] = {}
        self._blocks: dict[tuple[int, int, str], str] = {}
        self._n_ids = 0

    def encode(self, value: object, where: str = "") -> Json:
        """Return a value as JSON; `where` is its path in the model, such as "kernel_.scale"."""
        if value is None or value is True or value is False or type(value) in (str, int):
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": repr(value)}
        previous = self._encoded.get(id(value))
        if previous is not None:
            return self._reference(previous[1], where)
        self._encoded[id(value)] = (value, None)  # keeping the value prevents reuse of its id
        node = self._encode_value(value, where)
        self._encoded[id(value)] = (value, node)
        return node

    def _reference(self, node: JsonObject | None, where: str) -> Json:
        """Return a reference to a node; the node is None if the value contains itself."""
        if node is None:
            raise TypeError(f"{where} contains itself, which cannot be stored")
        if "id" not in node:
            node["id"] = self._n_ids
            self._n_ids += 1
        return {"ref": node["id"]}

    def _encode_value(self, value: Any, where: str) -> JsonObject:
        """Return the JSON object for a value that is not a JSON scalar."""
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in (list, tuple):
            return {type(value).__name__: self._items(value, where)}
        if type(value) is dict:
            keys, values = self._items(list(value), where), list(value.values())
            return {"dict": keys, "values": self._items(values, where)}
        if type(value) in (set, frozenset):
            return {type(value).__name__: self._encode_set(value, where)}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if type(value) is complex:
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if type(value) is slice:
            return {"slice": self._items((value.start, value.stop, value.step), where)}
        if isinstance(value, np.dtype) and value.kind not in "OV":
            return {"dtype": value.str}
        if isinstance(value, Status):
            return {"status": value.name}
        if sp.issparse(value) and type(value) in _SPARSE_CLASSES:
            return self._sparse(value, where)
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return self._random_state(value, where)
        if is_table(value):
            parts = table_to_columns(value, where)
            return {"table": parts.pop("table"), "parts": self.encode(parts, where)}
        if isinstance(value, Kernel):
            return self._kernel(value, where)
        return self._object(value, where)

    # ------------------------------------------------------------------ collections

    def _items(self, values: Sequence[Any], where: str) -> Json:
        """Return the JSON of a sequence; a long list of strings is stored in two tensors."""
        if len(values) > _MAX_INLINE_STRINGS and all(type(v) is str for v in values):
            parts = [v.encode("utf-8", "surrogatepass") for v in values]
            block = np.frombuffer(b"".join(parts), dtype=np.uint8)
            ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
            return {
                "texts": self._add_array(f"{where}.texts", block),
                "ends": self._add_array(where, ends),
            }
        return [self.encode(v, f"{where}.{i}") for i, v in enumerate(values)]

    def _encode_set(self, values: Iterable[Any], where: str) -> Json:
        """Return the JSON of a set, in an order that does not depend on hashes."""
        values = list(values)
        if all(type(v) is str for v in values):
            return self._items(sorted(values), where)
        encoder = Encoder()
        return self._items(
            sorted(values, key=lambda v: json.dumps(encoder.encode(v, where))), where
        )

    # ------------------------------------------------------------------ arrays

    def _array(self, value: np.ndarray, where: str) -> JsonObject:
        if type(value) not in (np.ndarray, np.memmap) or value.dtype.kind not in "biufcOUSMm":
            raise TypeError(
                f"{where} is a {type(value).__name__} of {value.dtype}, which cannot be stored; "
                f"use a plain array of numbers, strings or dates"
            )
        axes = _axes(value)
        inner = value.transpose(axes)
        order = {} if axes == tuple(range(value.ndim)) else {"axes": list(axes)}
        frozen = {} if value.flags.writeable else {"frozen": True}
        if value.dtype == object:
            items = self._items(inner.ravel().tolist(), where)
            return {"objects": items, "shape": list(inner.shape), **order, **frozen}
        block = np.ascontiguousarray(inner)
        is_native = block.dtype in _NATIVE_DTYPES
        key = (value.__array_interface__["data"][0], block.nbytes, block.dtype.str)
        is_uncopied = inner.flags.c_contiguous and block.nbytes
        # The same memory may already be stored, as another view.
        name = self._blocks.get(key) if is_uncopied else None
        if name is None:
            name = self._add_array(where, block if is_native else block.reshape(-1).view(np.uint8))
            if is_uncopied:
                self._blocks[key] = name
        kind = {} if is_native else {"type": block.dtype.str}
        return {"array": name, "shape": list(inner.shape), **kind, **order, **frozen}

    def _add_array(self, where: str, block: np.ndarray) -> str:
        """Store an array under a unique name, and return the name."""
        name = where or "value"
        while name in self.arrays:
            name += "_"
        self.arrays[name] = np.ascontiguousarray(block)
        return name

    def _scalar(self, value: np.generic, where: str) -> JsonObject:
        kind = value.dtype.kind
        if kind in "OV":
            raise TypeError(f"{where} is a {type(value).__name__}, which cannot be stored")
        if kind in "biuU" or (kind == "f" and value.dtype.itemsize <= 8):
            return {"scalar": value.dtype.str, "value": self.encode(value.item(), where)}
        return {"scalar": value.dtype.str, "value": value.tobytes().hex()}

    def _sparse(self, value: Any, where: str) -> JsonObject:
        if value.ndim != 2:
            raise TypeError(f"{where} is a one-dimensional sparse array; use a matrix with one row")
        parts = {n: self.encode(getattr(value, n), f"{where}.{n}") for n in _SPARSE_PARTS}
        return {"sparse": type(value).__name__, "shape": [int(m) for m in value.shape], **parts}

    def _random_state(self, value: Any, where: str) -> JsonObject:
        if isinstance(value, np.random.RandomState):
            return {"random": "RandomState", "state": self.encode(value.get_state(), where)}
        state = value.bit_generator.state
        return {"random": state["bit_generator"], "state": self.encode(state, where)}

    # ------------------------------------------------------------------ objects

    def _kernel(self, value: Kernel, where: str) -> JsonObject:
        """Store a kernel as an expression if that restores it exactly, otherwise by its fields."""
        value = unwrap(value) if value.domain.costly else value
        text = repr(value)
        if len(text) <= MAX_KERNEL_CHARACTERS:
            try:
                if _is_identical(parse_kernel(text), value):
                    return {"kernel": text}
            except KernelSyntaxError:
                pass
        return self._object(value, where)

    def _object(self, value: object, where: str) -> JsonObject:
        stored = by_class().get(type(value))
        if stored is None and isinstance(value, Kernel):  # the kernel is of a user-defined class
            stored = with_user_classes([type(value)])[type(value).__name__]
        if stored is None:
            raise TypeError(_refusal_message(value, where))
        self.classes[stored.name] = stored.format
        if stored.estimator:
            fitted = {n: v for n, v in vars(value).items() if n not in stored.parameters}
            _refuse_unknown(fitted, stored, where)
            parameters = {n: getattr(value, n) for n in stored.parameters}
            # detect errors now and not only in `load`
            check_fields(stored, {**parameters, **fitted})
            return {
                "class": stored.name,
                "parameters": self._fields(parameters, where),
                "fitted": self._fields(dict(sorted(fitted.items())), where),
            }
        fields = _state(value, stored, where)
        check_fields(stored, fields)
        return {"class": stored.name, "fields": self._fields(fields, where)}

    def _fields(self, values: dict[str, object], where: str) -> JsonObject:
        return {n: self.encode(v, f"{where}.{n}".lstrip(".")) for n, v in values.items()}


_SPARSE_PARTS = ("data", "indices", "indptr")


def _axes(value: np.ndarray) -> tuple[int, ...]:
    """Return the order of axes in which an array is contiguous, or C order if there is none."""
    if value.flags.c_contiguous or value.ndim < 2:
        return tuple(range(value.ndim))
    axes = tuple(int(a) for a in np.argsort([-abs(s) for s in value.strides], kind="stable"))
    return axes if value.transpose(axes).flags.c_contiguous else tuple(range(value.ndim))


def _state(value: Any, stored: StoredClass, where: str) -> dict[str, object]:
    """Return the attributes of an object that are stored, without cached properties."""
    if isinstance(value, tuple) or not hasattr(value, "__dict__"):
        return {name: getattr(value, name) for name in stored.attributes}
    if stored.name.startswith("sklearn."):
        return {name: getattr(value, name, None) for name in stored.attributes}
    # If a class defines __setstate__, its state for pickle has another form and is not used here.
    state = vars(value) if hasattr(value, "__setstate__") else value.__getstate__() or {}
    not_cached = {
        name: v
        for name, v in state.items()
        if not isinstance(getattr(stored.cls, name, None), cached_property)
    }
    _refuse_unknown(not_cached, stored, where)
    return {name: state[name] for name in stored.attributes if name in state}


def _refuse_unknown(values: dict[str, object], stored: StoredClass, where: str) -> None:
    """Raise a TypeError if an object has attributes that would not be stored."""
    unknown = sorted(values.keys() - set(stored.attributes))
    if unknown:
        location = f" ({where})" if where else ""
        raise TypeError(
            f"this {stored.name}{location} has the attributes {', '.join(unknown)}, which are not "
            f"part of the file format and would be lost; delete them, or store them separately"
        )


def _is_identical(a: Any, b: Any) -> bool:
    """Whether two values have the same type and value; arrays are never treated as identical."""
    if type(a) is not type(b) or isinstance(a, np.ndarray):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_is_identical, a, b))
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(_is_identical(i, j) for i, j in pairs)
    if a is None or isinstance(a, (bool, int, str, bytes, slice)):
        return bool(a == b)
    if isinstance(a, float):
        return repr(a) == repr(b)
    # Both are kernels or parts of kernels.
    return all(_is_identical(x, y) for (_, x), (_, y) in zip(a._items(), b._items(), strict=True))


def _refusal_message(value: object, where: str) -> str:
    """Return an error message for a value that cannot be stored, and what to do instead."""
    what = f"{where} is {_brief(value)}"
    if callable(value) and not isinstance(value, (type, BaseEstimator)):
        return (
            f"{what}, a function, but a file cannot contain code. Write your own kernel as a "
            f"subclass of mercer.kernels.Kernel and pass it to load(..., classes=[...]); or write "
            f"it as an expression of mercer kernels; or pass its values with kernel='precomputed'"
        )
    if hasattr(value, "nodes") and hasattr(value, "edges"):
        return f"{what}, a networkx graph; fit the model to Graphs.from_networkx(...) to store it"
    if sp.issparse(value):
        return f"{what}, a sparse matrix in a format that cannot be stored; use .tocsr()"
    if isinstance(value, (Enum, Real, str, bytes, list, tuple, dict)):
        return f"{what} of the class {type(value).__name__}; use a value of a built-in type instead"
    return (
        f"{what}, of the class {type(value).__module__}.{type(value).__qualname__}, which cannot "
        f"be stored; a file can contain numbers, strings, arrays, tables, Graphs, and objects of "
        f"mercer that consist of these"
    )


def _brief(value: object) -> str:
    """Return the representation of a value in one line, truncated if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
