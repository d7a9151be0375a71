"""From values to JSON and arrays: one walk over what a fitted model is made of.

None, booleans, strings, integers and finite floats are themselves.  Anything else is an object
one key of which says what it is: {"tuple": [...]}, {"array": "X_fit_", "shape": [5, 2]}.  What
occurs in several places is written once, with an "id", and then as {"ref": id}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._errors import KernelSyntaxError
from .._points import is_table
from ..kernels import Kernel, parse_kernel, unwrap
from ..solvers import Status
from ._checks import check_fields
from ._container import TENSORS
from ._registry import TEXT, Stored, by_class, extended
from ._tables import columns_of

__all__ = ["Encoder"]

_FEW = 16  # strings in a list that stand in the header; more of them are bytes of a tensor
_SPARSE = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
_NATIVE = set(TENSORS.values())


class Encoder:
    """Writes one model: `state` are its values, `arrays` what they refer to by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.classes: dict[str, int] = {}
        self._met: dict[int, tuple[Any, dict[str, Any] | None]] = {}
        self._blocks: dict[tuple[int, int, str], str] = {}
        self._shared = 0

    def encode(self, value: Any, where: str = "") -> Any:
        """Return a value for JSON; `where` is its path in the model."""
        if value is None or value is True or value is False or type(value) in (str, int):
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": repr(value)}
        known = self._met.get(id(value))
        if known is not None:
            return self._again(known[1], where)
        self._met[id(value)] = (value, None)  # which also keeps its identity its own
        node = self._node(value, where)
        self._met[id(value)] = (value, node)
        return node

    def _again(self, node: dict[str, Any] | None, where: str) -> Any:
        if node is None:
            raise TypeError(f"{where} contains itself, which a file cannot hold")
        if "id" not in node:
            node["id"] = self._shared
            self._shared += 1
        return {"ref": node["id"]}

    def _node(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in (list, tuple):
            return {type(value).__name__: self._items(value, where)}
        if type(value) is dict:
            keys, values = self._items(list(value), where), list(value.values())
            return {"dict": keys, "values": self._items(values, where)}
        if type(value) in (set, frozenset):
            return {type(value).__name__: self._members(value, where)}
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
        if sp.issparse(value) and type(value) in _SPARSE:
            return self._sparse(value, where)
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return self._seed(value, where)
        if is_table(value):
            parts = columns_of(value, where)
            return {"table": parts.pop("table"), "parts": self.encode(parts, where)}
        if isinstance(value, Kernel):
            return self._kernel(value, where)
        return self._object(value, where)

    # ------------------------------------------------------------------ collections

    def _items(self, values: Any, where: str) -> Any:
        if len(values) > _FEW and all(type(v) is str for v in values):
            parts = [v.encode("utf-8", "surrogatepass") for v in values]
            block = np.frombuffer(b"".join(parts), dtype=np.uint8)
            ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
            return {"texts": self._named(f"{where}.texts", block), "ends": self._named(where, ends)}
        return [self.encode(v, f"{where}.{i}") for i, v in enumerate(values)]

    def _members(self, values: Iterable[Any], where: str) -> Any:
        """Return the elements of a set in an order that does not depend on their hashes."""
        values = list(values)
        if all(type(v) is str for v in values):
            return self._items(sorted(values), where)
        inside = Encoder()
        return self._items(sorted(values, key=lambda v: json.dumps(inside.encode(v))), where)

    # ------------------------------------------------------------------ arrays

    def _array(self, value: np.ndarray, where: str) -> dict[str, Any]:
        if type(value) not in (np.ndarray, np.memmap) or value.dtype.kind not in "biufcOUSMm":
            raise TypeError(
                f"{where} is a {type(value).__name__} of {value.dtype}, which a file cannot hold; "
                f"give a plain array of numbers, strings or dates"
            )
        axes = _axes(value)
        inner = value.transpose(axes)
        order = {} if axes == tuple(range(value.ndim)) else {"axes": list(axes)}
        frozen = {} if value.flags.writeable else {"frozen": True}
        if value.dtype == object:
            items = self._items(inner.ravel().tolist(), where)
            return {"objects": items, "shape": list(inner.shape), **order, **frozen}
        block = np.ascontiguousarray(inner)
        native = block.dtype in _NATIVE
        key = (value.__array_interface__["data"][0], block.nbytes, block.dtype.str)
        whole = inner.flags.c_contiguous and block.nbytes
        name = self._blocks.get(key) if whole else None  # another view of the same memory
        if name is None:
            name = self._named(where, block if native else block.reshape(-1).view(np.uint8))
            if whole:
                self._blocks[key] = name
        kind = {} if native else {"type": block.dtype.str}
        return {"array": name, "shape": list(inner.shape), **kind, **order, **frozen}

    def _named(self, where: str, block: np.ndarray) -> str:
        name = where or "value"
        while name in self.arrays:
            name += "_"
        self.arrays[name] = np.ascontiguousarray(block)
        return name

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        kind = value.dtype.kind
        if kind in "OV":
            raise TypeError(f"{where} is a {type(value).__name__}, which a file cannot hold")
        if kind in "biuU" or (kind == "f" and value.dtype.itemsize <= 8):
            return {"scalar": value.dtype.str, "value": self.encode(value.item(), where)}
        return {"scalar": value.dtype.str, "value": value.tobytes().hex()}

    def _sparse(self, value: Any, where: str) -> dict[str, Any]:
        if value.ndim != 2:
            raise TypeError(f"{where} is a sparse array of one axis; give a matrix of one row")
        parts = {n: self.encode(getattr(value, n), f"{where}.{n}") for n in _SPARSE_PARTS}
        return {"sparse": type(value).__name__, "shape": [int(m) for m in value.shape], **parts}

    def _seed(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, np.random.RandomState):
            return {"random": "RandomState", "state": self.encode(value.get_state(), where)}
        state = value.bit_generator.state
        return {"random": state["bit_generator"], "state": self.encode(state, where)}

    # ------------------------------------------------------------------ objects

    def _kernel(self, value: Kernel, where: str) -> dict[str, Any]:
        """Return the text of a kernel if that says all of it, to the last bit; else its fields."""
        value = unwrap(value) if value.costly else value
        text = repr(value)
        if len(text) <= TEXT:
            try:
                if _alike(parse_kernel(text), value):
                    return {"kernel": text}
            except KernelSyntaxError:
                pass
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        stored = by_class().get(type(value))
        if stored is None and isinstance(value, Kernel):  # a class of the user's
            stored = extended([type(value)])[type(value).__name__]
        if stored is None:
            raise TypeError(_refusal(value, where))
        self.classes[stored.name] = stored.format
        if stored.estimator:
            fitted = {n: v for n, v in vars(value).items() if n not in stored.parameters}
            _refuse_others(fitted, stored, where)
            settings = {n: getattr(value, n) for n in stored.parameters}
            check_fields(stored, {**settings, **fitted})  # what `load` would refuse
            return {
                "class": stored.name,
                "parameters": self._fields(settings, where),
                "fitted": self._fields(dict(sorted(fitted.items())), where),
            }
        fields = _state(value, stored, where)
        check_fields(stored, fields)
        return {"class": stored.name, "fields": self._fields(fields, where)}

    def _fields(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        return {n: self.encode(v, f"{where}.{n}".lstrip(".")) for n, v in values.items()}


_SPARSE_PARTS = ("data", "indices", "indptr")


def _axes(value: np.ndarray) -> tuple[int, ...]:
    """Return the order of axes in which an array lies in memory, C's if it lies in none."""
    if value.flags.c_contiguous or value.ndim < 2:
        return tuple(range(value.ndim))
    axes = tuple(int(a) for a in np.argsort([-abs(s) for s in value.strides], kind="stable"))
    return axes if value.transpose(axes).flags.c_contiguous else tuple(range(value.ndim))


def _state(value: Any, stored: Stored, where: str) -> dict[str, Any]:
    """Return the attributes of an object, without what it computes from them and keeps at hand."""
    if isinstance(value, tuple) or not hasattr(value, "__dict__"):
        return {name: getattr(value, name) for name in stored.attributes}
    if stored.name.startswith("sklearn."):
        return {name: getattr(value, name, None) for name in stored.attributes}
    # a class with a __setstate__ has another form for others
    held = vars(value) if hasattr(value, "__setstate__") else value.__getstate__() or {}
    others = {
        name: v
        for name, v in held.items()
        if not isinstance(getattr(stored.cls, name, None), cached_property)
    }
    _refuse_others(others, stored, where)
    return {name: held[name] for name in stored.attributes if name in held}


def _refuse_others(values: dict[str, Any], stored: Stored, where: str) -> None:
    others = sorted(values.keys() - set(stored.attributes))
    if others:
        place = f" ({where})" if where else ""
        raise TypeError(
            f"this {stored.name}{place} has the attributes {', '.join(others)}, which are no part "
            f"of its state, and would be lost; delete them, or keep them in a file of your own"
        )


def _alike(a: Any, b: Any) -> bool:
    """Tell whether two fields are the same in type and value; arrays are not for texts."""
    if type(a) is not type(b) or isinstance(a, np.ndarray):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(_alike(i, j) for i, j in pairs)
    if a is None or isinstance(a, (bool, int, str, bytes, slice)):
        return bool(a == b)
    if isinstance(a, float):
        return repr(a) == repr(b)
    if not hasattr(a, "_items"):
        return False
    return all(_alike(x, y) for (_, x), (_, y) in zip(a._items(), b._items(), strict=True))


def _refusal(value: Any, where: str) -> str:
    """Return why something cannot be stored, and what to do."""
    what = f"{where or 'this model'} is {_brief(value)}"
    if callable(value) and not isinstance(value, (type, BaseEstimator)):
        return (
            f"{what}, a function, and a file holds no code. Write a kernel of your own as a "
            f"subclass of mercer.kernels.Kernel and give it to load(..., classes=[...]); or say it "
            f"in the language of kernels; or evaluate it, kernel='precomputed'"
        )
    if hasattr(value, "nodes") and hasattr(value, "edges"):
        return f"{what}, a graph of networkx; fit to Graphs.from_networkx(...) to store the model"
    if sp.issparse(value):
        return f"{what}, a sparse matrix of another kind; use .tocsr()"
    if isinstance(value, BaseEstimator) and not where:
        return f"{what}, no model of mercer's; save its steps that are, or all of it with skops.io"
    if isinstance(value, (Enum, Real, str, bytes, list, tuple, dict)):
        return f"{what} of the class {type(value).__name__}; give the plain value to store it"
    return (
        f"{what}, of the class {type(value).__module__}.{type(value).__qualname__}, which a file "
        f"cannot hold: it holds numbers, texts, arrays, tables, Graphs and what mercer makes of "
        f"them"
    )


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
