"""From JSON and arrays back to values: the walk of `Encoder` in the other direction.

A file may come from anywhere.  Every node is checked before anything is made of it: kinds, names,
sizes and types.  Nothing is larger than the file; what is shared is shared again, and refers to
what came before it, so that there are no cycles.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._errors import ModelFileError
from .._points import Collection
from ..kernels import parse_kernel
from ..solvers import Status
from ._checks import check_fields, check_made, csr_fits
from ._container import Tensor
from ._registry import TEXT, Stored
from ._tables import table_of

__all__ = ["Decoder"]

_DEPTH = 150  # of values inside each other
# Values may refer to values that contain references, so that a small file could describe an
# exponentially large structure.  Its size without sharing is limited to this multiple of the number
# of values in the file: models of many classes refer to the training points three times per class.
_MAX_REPEATS = 100
_ALWAYS_REPEATED = 100_000  # values that may always be repeated: walking over them takes a second
_SPARSE = {c.__name__: c for c in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)}
_GENERATORS = {
    one.__name__: one
    for one in (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
}
_HASHABLE = (str, bytes, int, float, complex, bool, tuple, frozenset, np.generic, type(None))


class Decoder:
    """Reads one model from the tensors of a file, with the classes that it may name."""

    def __init__(self, tensors: dict[str, Tensor], classes: dict[str, Stored]) -> None:
        self.tensors, self.classes = tensors, classes
        self.used: set[str] = set()
        self._known: dict[int, tuple[Any, int]] = {}
        self._count = self._repeated = self._depth = 0

    def decode(self, node: Any, where: str = "") -> Any:
        """Return the value that a node stands for."""
        self._count += 1
        if node is None or type(node) in (bool, int, float, str):
            return node
        if type(node) is not dict or not node:
            raise self._error(where, "a list, where an object with the kind of a value must stand")
        kinds = node.keys() & _KINDS.keys()
        if len(kinds) != 1:
            raise self._error(where, f"a value of an unknown kind, {str(list(node))[:80]}")
        (kind,) = kinds
        self._depth += 1
        if self._depth > _DEPTH:
            raise self._error(where, f"more than {_DEPTH} values inside each other")
        before = self._count
        allowed, needed = _KINDS[kind]
        if not needed <= node.keys() <= allowed:
            raise self._error(where, f"a {kind} without what belongs to it")
        try:
            value = getattr(self, f"_{kind}")(node, where)
        except ModelFileError:
            raise
        except Exception as error:  # what a class has to say against its fields
            text = str(error) or type(error).__name__
            raise self._error(where, f"a {kind} that is none: {text[:300]}") from error
        self._depth -= 1
        if "id" in node:
            if type(node["id"]) is not int or node["id"] in self._known:
                raise self._error(where, "an id that another value has")
            self._known[node["id"]] = value, self._count - before
        return value

    def _error(self, where: str, problem: str) -> ModelFileError:
        return ModelFileError(f"at {where[-200:] or 'the top'} it has {problem}")

    def _ref(self, node: Any, where: str) -> Any:
        if type(node["ref"]) is not int or node["ref"] not in self._known:
            raise self._error(where, "a reference to nothing that came before")
        value, size = self._known[node["ref"]]
        if isinstance(value, Collection):
            size = 1  # its points refer to it, but a walk over points does not enter it again
        self._count += size
        self._repeated += size
        if self._repeated > _ALWAYS_REPEATED + _MAX_REPEATS * (self._count - self._repeated):
            raise self._error(where, "references that repeat more than the file holds")
        return value

    # ------------------------------------------------------------------ plain values

    def _float(self, node: Any, where: str) -> float:
        if node["float"] not in ("nan", "inf", "-inf"):
            raise self._error(where, "a float that is none")
        return float(node["float"])

    def _complex(self, node: Any, where: str) -> complex:
        real, imaginary = (self.decode(part, where) for part in node["complex"])
        return complex(float(real), float(imaginary))

    def _bytes(self, node: Any, where: str) -> bytes:
        return bytes.fromhex(node["bytes"])

    def _slice(self, node: Any, where: str) -> slice:
        ends = [self.decode(end, where) for end in node["slice"]]
        if len(ends) != 3 or not all(type(end) in (int, str, type(None)) for end in ends):
            raise self._error(where, "a slice that is none")
        return slice(*ends)

    def _dtype(self, node: Any, where: str) -> np.dtype:
        return self._element(node["dtype"], where)

    def _status(self, node: Any, where: str) -> Status:
        return Status.__members__[node["status"]]

    def _list(self, node: Any, where: str) -> list[Any]:
        return self._items(node["list"], where)

    def _tuple(self, node: Any, where: str) -> tuple[Any, ...]:
        return tuple(self._items(node["tuple"], where))

    def _set(self, node: Any, where: str) -> set[Any]:
        return set(self._hashable(node["set"], where))

    def _frozenset(self, node: Any, where: str) -> frozenset[Any]:
        return frozenset(self._hashable(node["frozenset"], where))

    def _dict(self, node: Any, where: str) -> dict[Any, Any]:
        keys = self._hashable(node["dict"], where)
        found = dict(zip(keys, self._items(node["values"], where), strict=True))
        if len(found) < len(keys):
            raise self._error(where, "a dictionary with a key twice")
        return found

    def _hashable(self, nodes: Any, where: str) -> list[Any]:
        values = self._items(nodes, where)
        if not all(isinstance(value, _HASHABLE) for value in values):
            raise self._error(where, "a set or dictionary of what cannot be in one")
        return values

    def _items(self, nodes: Any, where: str) -> list[Any]:
        if type(nodes) is list:
            return [self.decode(one, f"{where}.{i}") for i, one in enumerate(nodes)]
        if type(nodes) is not dict or nodes.keys() != {"texts", "ends"}:
            raise self._error(where, "a collection without its values")
        block, ends = self._block(nodes["texts"], where), self._tensor(nodes["ends"], where)
        if ends.dtype != np.int64 or ends.ndim != 1:
            raise self._error(where, "texts without the places where they end")
        if np.any(np.diff(ends, prepend=0) < 0) or (ends[-1:] != len(block)).any():
            raise self._error(where, "texts that end before they begin")
        whole, places = block.tobytes(), [0, *ends.tolist()]
        self._count += len(ends)
        return [whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]

    # ------------------------------------------------------------------ arrays

    def _block(self, name: Any, where: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self.tensors:
            raise self._error(where, f"the name of a tensor that is not there, {str(name)[:80]!r}")
        self.used.add(name)
        return self.tensors[name].block

    def _tensor(self, name: Any, where: str) -> np.ndarray:
        block = self._block(name, where)
        return block.view(self.tensors[name].dtype).reshape(self.tensors[name].shape)

    def _element(self, text: Any, where: str) -> np.dtype:
        """Return the type of elements that is written like <U5 or >f8."""
        plain = isinstance(text, str) and 2 < len(text) < 30 and text[1] in "biufcUSMm"
        dtype = np.dtype(text) if plain and "," not in text and "(" not in text else None
        if dtype is None or dtype.kind not in "biufcUSMm" or dtype.str != text:
            raise self._error(where, f"elements of an unknown type, {str(text)[:40]!r}")
        return dtype

    def _array(self, node: Any, where: str) -> np.ndarray:
        block = self._block(node["array"], where)
        dtype = self.tensors[node["array"]].dtype
        if "type" in node:
            if dtype != np.uint8:
                raise self._error(where, "elements of two types")
            dtype = self._element(node["type"], where)
        shape = self._shape(node, where)
        if math.prod(shape) * dtype.itemsize != len(block):
            raise self._error(
                where, f"an array of shape {shape} and type {dtype} in {len(block)} bytes"
            )
        if dtype.kind == "b" and block.max(initial=0) > 1:
            raise self._error(where, "a boolean that is neither true nor false")
        if dtype.kind == "U" and block.view(f"{dtype.str[0]}u4").max(initial=0) > 0x10FFFF:
            raise self._error(where, "a string with a character that there is not")
        value = block.view(dtype) if dtype.itemsize else np.empty(0, dtype)
        return self._ordered(value.reshape(shape), node, where)

    def _objects(self, node: Any, where: str) -> np.ndarray:
        items, shape = self._items(node["objects"], where), self._shape(node, where)
        value = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            value[i] = item
        return self._ordered(value.reshape(shape), node, where)

    def _shape(self, node: Any, where: str) -> tuple[int, ...]:
        shape = node["shape"]
        if type(shape) is not list or len(shape) > 32:
            raise self._error(where, "an array without a shape")
        if not all(type(m) is int and 0 <= m < 2**62 for m in shape):
            raise self._error(where, "an array with a shape of what are no sizes")
        return tuple(shape)

    def _ordered(self, value: np.ndarray, node: Any, where: str) -> np.ndarray:
        axes = node.get("axes", list(range(value.ndim)))
        if type(axes) is not list or sorted(axes) != list(range(value.ndim)):
            raise self._error(where, "an order of axes that is none")
        value = value.transpose(np.argsort(axes))
        if node.get("frozen", False):
            value.setflags(write=False)
        return value

    def _scalar(self, node: Any, where: str) -> Any:
        dtype, value = self._element(node["scalar"], where), self.decode(node["value"], where)
        plain = dtype.kind in "biuU" or (dtype.kind == "f" and dtype.itemsize <= 8)
        if plain:
            made = np.array(value, dtype=dtype)
            back = made[()]
            if back.item() != value and value == value:
                raise self._error(where, f"a number that is no {dtype}")
        else:
            made = np.frombuffer(bytes.fromhex(value), dtype=dtype).reshape(())
        return made[()]

    def _sparse(self, node: Any, where: str) -> Any:
        kind, shape = node["sparse"], self._shape(node, where)
        cls = _SPARSE[kind]
        names = ("data", "indices", "indptr")
        data, indices, indptr = (self.decode(node[n], f"{where}.{n}") for n in names)
        rows_first = shape if "csr" in kind else shape[::-1]
        if len(shape) != 2 or not csr_fits(data, indices, indptr, rows_first):
            raise self._error(where, f"a sparse matrix of shape {shape} whose arrays do not fit it")
        matrix = cls((1, 1), dtype=data.dtype)
        matrix._shape = shape  # not by the constructor, which would choose another type of indices
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _random(self, node: Any, where: str) -> Any:
        state = self.decode(node["state"], where)
        if node["random"] == "RandomState":
            seed = np.random.RandomState()
            seed.set_state(state)
            return seed
        made = _GENERATORS[node["random"]]()
        made.state = state
        return np.random.Generator(made)

    def _table(self, node: Any, where: str) -> Any:
        return table_of(str(node["table"]), self.decode(node["parts"], where))

    # ------------------------------------------------------------------ objects

    def _kernel(self, node: Any, where: str) -> Any:
        if len(node["kernel"]) > TEXT:
            raise self._error(where, f"a kernel of more than {TEXT} characters")
        return parse_kernel(node["kernel"])

    def _class(self, node: Any, where: str) -> Any:
        stored = self.classes.get(node["class"]) if isinstance(node["class"], str) else None
        if stored is None:
            raise self._error(
                where,
                f"an object of the class {str(node['class'])[:80]!r}, which is none of "
                f"mercer's; if it is a kernel of your own, pass load(..., classes=[...])",
            )
        groups = ("parameters", "fitted") if stored.estimator else ("fields",)
        if node.keys() - {"id"} != {"class", *groups}:
            raise self._error(where, f"a {stored.name} without its {' and '.join(groups)}")
        fields: dict[str, Any] = {}
        for group in groups:
            known = stored.parameters if group == "parameters" else stored.attributes
            values = node[group]
            if type(values) is not dict or not values.keys() <= set(known):
                others = sorted(values.keys() - set(known)) if type(values) is dict else values
                raise self._error(where, f"a {stored.name} with the strange {str(others)[:80]}")
            for name, value in values.items():
                fields[name] = self.decode(value, f"{where}.{name}".lstrip("."))
        check_fields(stored, fields)
        return check_made(_made(stored, fields))


_KINDS: dict[str, tuple[set[str], set[str]]] = {}  # what belongs to a node, and what it must have
for _needed in (
    *("ref", "float", "complex", "bytes", "slice", "dtype", "status", "kernel"),
    *("list", "tuple", "set", "frozenset", "dict values", "objects shape", "array shape"),
    *("scalar value", "sparse shape data indices indptr", "random state", "table parts", "class"),
):
    _must = set(_needed.split())
    _may = {"array": {"type", "axes", "frozen"}, "objects": {"axes", "frozen"}}
    _may["class"] = {"parameters", "fitted", "fields"}
    _first = _needed.split()[0]
    _KINDS[_first] = (_must | _may.get(_first, set()) | {"id"}, _must)


def _made(stored: Stored, fields: dict[str, Any]) -> Any:
    """Return an object with these attributes: a value by its constructor, others as they were."""
    cls: Any = stored.cls
    if issubclass(cls, tuple):
        return cls(**fields)
    if stored.value:
        made = cls(**fields)
        for name, value in fields.items():
            copied = getattr(made, name, None)
            if type(value) is type(copied) is np.ndarray and _same_layout(value, copied):
                value.setflags(write=copied.flags.writeable and value.flags.writeable)
                object.__setattr__(made, name, value)  # a map stays one, and what is shared, too
        return made
    made = cls.__new__(cls)
    made.__dict__.update(fields)
    return made


def _same_layout(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
