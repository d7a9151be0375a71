"""Restore a model from the JSON and the arrays of a file: the inverse of `Encoder`.

A file may come from an untrusted source, so the kind, names, sizes and types of every node are
checked before a value is created from it.  No value is larger than the file.  A value that occurs
several times is restored once and shared.  References can only point to earlier values, so that
there are no cycles.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import ModelFileError, PointCollection
from ..kernels import parse_kernel
from ..solvers import Status
from ._class_registry import FORMER_FIELDS, MAX_KERNEL_CHARACTERS, StoredClass
from ._dataframe_codec import table_from_columns
from ._safetensors_file import Json, JsonObject, Tensor
from ._schema_checks import check_consistent, check_fields, is_valid_csr

_MAX_DEPTH = 150  # maximum nesting depth, so that Python's recursion limit is not exceeded
# Values may refer to values that contain references, so a small file could describe an
# exponentially large structure.  Its size, with each reference counted as a copy, is limited to
# this multiple of the number of values in the file.  A model of many classes refers to the training
# points three times per class.
_MAX_REPEATS = 100
# this many repeated values are always allowed; they take about a second
_MAX_FREE_REPEATS = 100_000
_SPARSE_CLASSES = {
    c.__name__: c for c in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
}
_BIT_GENERATORS = {
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
    """Decode one model from the tensors of a file.

    Parameters
    ----------
    tensors : dict of Tensor
        The arrays of the file.
    classes : dict of StoredClass
        The classes that the file may contain, by name.
    """

    def __init__(self, tensors: dict[str, Tensor], classes: dict[str, StoredClass]) -> None:
        self.tensors, self.classes = tensors, classes
        self.used: set[str] = set()
        self._by_id: dict[int, tuple[object, int]] = {}
        self._count = self._repeated = self._depth = 0

    def decode(self, node: Json, where: str = "") -> Any:
        """Return the value of a JSON node; `where` is its path in the model, for messages."""
        self._count += 1
        if node is None or type(node) in (bool, int, float, str):
            return node
        if type(node) is not dict or not node:
            raise self._error(where, "a list where a JSON object was expected")
        kinds = node.keys() & _KINDS.keys()
        if len(kinds) != 1:
            raise self._error(where, f"a value of an unknown kind: {str(list(node))[:80]}")
        (kind,) = kinds
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(where, f"more than {_MAX_DEPTH} nested values")
        before = self._count
        allowed, required = _KINDS[kind]
        if not required <= node.keys() <= allowed:
            raise self._error(where, f"a {kind} with missing or unknown keys")
        try:
            value = getattr(self, f"_{kind}")(node, where)
        except ModelFileError:
            raise
        except Exception as error:  # a class has rejected its fields
            text = str(error) or type(error).__name__
            raise self._error(where, f"an invalid {kind}: {text[:300]}") from error
        self._depth -= 1
        if "id" in node:
            if type(node["id"]) is not int or node["id"] in self._by_id:
                raise self._error(where, "an id that is not an integer or not unique")
            self._by_id[node["id"]] = value, self._count - before
        return value

    def _error(self, where: str, problem: str) -> ModelFileError:
        """Return the error for a problem at a path in the model."""
        return ModelFileError(f"at {where[-200:] or 'the top level'} there is {problem}")

    def _ref(self, node: JsonObject, where: str) -> object:
        """Return an earlier value, and limit how many values are repeated in total."""
        if type(node["ref"]) is not int or node["ref"] not in self._by_id:
            raise self._error(where, "a reference to a value that was not defined before")
        value, size = self._by_id[node["ref"]]
        if isinstance(value, PointCollection):
            size = 1  # points refer to the collection, but do not repeat its values
        self._count += size
        self._repeated += size
        if self._repeated > _MAX_FREE_REPEATS + _MAX_REPEATS * (self._count - self._repeated):
            raise self._error(
                where, "a reference that repeats too many values for a file of this size"
            )
        return value

    # ------------------------------------------------------------------ plain values

    def _float(self, node: JsonObject, where: str) -> float:
        if node["float"] not in ("nan", "inf", "-inf"):
            raise self._error(where, "an invalid float")
        return float(node["float"])

    def _complex(self, node: JsonObject, where: str) -> complex:
        real, imaginary = (self.decode(part, where) for part in node["complex"])
        return complex(float(real), float(imaginary))

    def _bytes(self, node: JsonObject, where: str) -> bytes:
        return bytes.fromhex(node["bytes"])

    def _slice(self, node: JsonObject, where: str) -> slice:
        ends = [self.decode(end, where) for end in node["slice"]]
        if len(ends) != 3 or not all(type(end) in (int, str, type(None)) for end in ends):
            raise self._error(where, "an invalid slice")
        return slice(*ends)

    def _dtype(self, node: JsonObject, where: str) -> np.dtype:
        return self._element(node["dtype"], where)

    def _status(self, node: JsonObject, where: str) -> Status:
        return Status.__members__[node["status"]]

    def _list(self, node: JsonObject, where: str) -> list[object]:
        return self._items(node["list"], where)

    def _tuple(self, node: JsonObject, where: str) -> tuple[object, ...]:
        return tuple(self._items(node["tuple"], where))

    def _set(self, node: JsonObject, where: str) -> set[object]:
        return set(self._hashable(node["set"], where))

    def _frozenset(self, node: JsonObject, where: str) -> frozenset[object]:
        return frozenset(self._hashable(node["frozenset"], where))

    def _dict(self, node: JsonObject, where: str) -> dict[object, object]:
        keys = self._hashable(node["dict"], where)
        result = dict(zip(keys, self._items(node["values"], where), strict=True))
        if len(result) < len(keys):
            raise self._error(where, "a dictionary that contains a key twice")
        return result

    def _hashable(self, nodes: Json, where: str) -> list[object]:
        """Return the elements of a set, or the keys of a dictionary."""
        values = self._items(nodes, where)
        if not all(isinstance(value, _HASHABLE) for value in values):
            raise self._error(where, "a set or dictionary with a key that is not hashable")
        return values

    def _items(self, nodes: Json, where: str) -> list[object]:
        """Return the values of a collection: a list of nodes, or strings stored in tensors."""
        if type(nodes) is list:
            return [self.decode(one, f"{where}.{i}") for i, one in enumerate(nodes)]
        if type(nodes) is not dict or nodes.keys() != {"texts", "ends"}:
            raise self._error(where, "a collection without values")
        block, ends = self._block(nodes["texts"], where), self._tensor(nodes["ends"], where)
        if ends.dtype != np.int64 or ends.ndim != 1:
            raise self._error(where, "strings without valid end positions")
        if np.any(np.diff(ends, prepend=0) < 0) or (ends[-1:] != len(block)).any():
            raise self._error(where, "strings with inconsistent end positions")
        data, bounds = block.tobytes(), [0, *ends.tolist()]
        self._count += len(ends)
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]

    # ------------------------------------------------------------------ arrays

    def _block(self, name: Json, where: str) -> np.ndarray:
        """Return the bytes of a tensor by name."""
        if not isinstance(name, str) or name not in self.tensors:
            raise self._error(
                where, f"the name of a tensor that does not exist: {str(name)[:80]!r}"
            )
        self.used.add(name)
        return self.tensors[name].block

    def _tensor(self, name: Json, where: str) -> np.ndarray:
        """Return a tensor by name, as an array of its element type and shape."""
        block = self._block(name, where)
        return block.view(self.tensors[name].dtype).reshape(self.tensors[name].shape)

    def _element(self, text: Json, where: str) -> np.dtype:
        """Parse an element type such as <U5 or >f8."""
        is_simple = isinstance(text, str) and 2 < len(text) < 30 and text[1] in "biufcUSMm"
        dtype = np.dtype(text) if is_simple and "," not in text and "(" not in text else None
        if dtype is None or dtype.kind not in "biufcUSMm" or dtype.str != text:
            raise self._error(where, f"an array with an unknown element type: {str(text)[:40]!r}")
        return dtype

    def _array(self, node: JsonObject, where: str) -> np.ndarray:
        block = self._block(node["array"], where)
        dtype = self.tensors[node["array"]].dtype
        if "type" in node:
            if dtype != np.uint8:
                raise self._error(where, "an array with two different element types")
            dtype = self._element(node["type"], where)
        shape = self._shape(node, where)
        if math.prod(shape) * dtype.itemsize != len(block):
            raise self._error(
                where, f"an array of shape {shape} and type {dtype} that has {len(block)} bytes"
            )
        if dtype.kind == "b" and block.max(initial=0) > 1:
            raise self._error(where, "a boolean array with values other than 0 and 1")
        if dtype.kind == "U" and block.view(f"{dtype.str[0]}u4").max(initial=0) > 0x10FFFF:
            raise self._error(where, "a string with an invalid character")
        value = block.view(dtype) if dtype.itemsize else np.empty(0, dtype)
        return self._ordered(value.reshape(shape), node, where)

    def _objects(self, node: JsonObject, where: str) -> np.ndarray:
        items, shape = self._items(node["objects"], where), self._shape(node, where)
        value = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            value[i] = item
        return self._ordered(value.reshape(shape), node, where)

    def _shape(self, node: JsonObject, where: str) -> tuple[int, ...]:
        """Return the shape of an array or sparse matrix."""
        shape = node["shape"]
        if type(shape) is not list or len(shape) > 32:
            raise self._error(where, "an array without a shape")
        if not all(type(m) is int and 0 <= m < 2**62 for m in shape):
            raise self._error(where, "an array whose shape is not a list of sizes")
        return tuple(shape)

    def _ordered(self, value: np.ndarray, node: JsonObject, where: str) -> np.ndarray:
        """Restore the order of the axes and the write protection of an array."""
        axes = node.get("axes", list(range(value.ndim)))
        if type(axes) is not list or sorted(axes) != list(range(value.ndim)):
            raise self._error(where, "an array with an invalid order of axes")
        value = value.transpose(np.argsort(axes))
        if node.get("frozen", False):
            value.setflags(write=False)
        return value

    def _scalar(self, node: JsonObject, where: str) -> object:
        dtype, value = self._element(node["scalar"], where), self.decode(node["value"], where)
        is_json_number = dtype.kind in "biuU" or (dtype.kind == "f" and dtype.itemsize <= 8)
        if is_json_number:
            array = np.array(value, dtype=dtype)
            restored = array[()]
            if restored.item() != value and value == value:
                raise self._error(where, f"a number that cannot be represented as {dtype}")
        else:
            array = np.frombuffer(bytes.fromhex(value), dtype=dtype).reshape(())
        return array[()]

    def _sparse(self, node: JsonObject, where: str) -> object:
        kind, shape = node["sparse"], self._shape(node, where)
        cls = _SPARSE_CLASSES[kind]
        names = ("data", "indices", "indptr")
        data, indices, indptr = (self.decode(node[n], f"{where}.{n}") for n in names)
        rows_first = shape if "csr" in kind else shape[::-1]
        if len(shape) != 2 or not is_valid_csr(data, indices, indptr, rows_first):
            raise self._error(where, f"a sparse matrix of shape {shape} with invalid arrays")
        matrix = cls((1, 1), dtype=data.dtype)
        matrix._shape = shape  # the constructor might change the index type
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _random(self, node: JsonObject, where: str) -> object:
        state = self.decode(node["state"], where)
        if node["random"] == "RandomState":
            generator = np.random.RandomState()
            generator.set_state(state)
            return generator
        bit_generator = _BIT_GENERATORS[node["random"]]()
        bit_generator.state = state
        return np.random.Generator(bit_generator)

    def _table(self, node: JsonObject, where: str) -> object:
        return table_from_columns(str(node["table"]), self.decode(node["parts"], where))

    # ------------------------------------------------------------------ objects

    def _kernel(self, node: JsonObject, where: str) -> object:
        if len(node["kernel"]) > MAX_KERNEL_CHARACTERS:
            raise self._error(where, f"a kernel of more than {MAX_KERNEL_CHARACTERS} characters")
        return parse_kernel(node["kernel"])

    def _class(self, node: JsonObject, where: str) -> object:
        stored = self.classes.get(node["class"]) if isinstance(node["class"], str) else None
        if stored is None:
            raise self._error(
                where,
                f"an object of the class {str(node['class'])[:80]!r}, which is unknown to "
                f"mercer; if it is your own kernel, pass it to load(..., classes=[...])",
            )
        groups = ("parameters", "fitted") if stored.estimator else ("fields",)
        if node.keys() - {"id"} != {"class", *groups}:
            raise self._error(where, f"a {stored.name} without its {' and '.join(groups)}")
        fields: dict[str, object] = {}
        for group in groups:
            allowed = stored.parameters if group == "parameters" else stored.attributes
            values = node[group]
            former = FORMER_FIELDS.get(stored.name, {})
            known = {*allowed, *former}
            if type(values) is not dict or not values.keys() <= known:
                unknown = sorted(values.keys() - known) if type(values) is dict else values
                raise self._error(
                    where, f"a {stored.name} with unknown attributes: {str(unknown)[:80]}"
                )
            for name, value in values.items():
                decoded = self.decode(value, f"{where}.{name}".lstrip("."))
                if (present := former.get(name, name)) is not None:
                    fields[present] = decoded
        check_fields(stored, fields)
        return check_consistent(_create(stored, fields))


# The kinds of nodes, with their allowed keys and their required keys.  The first required key is
# the kind itself, and the method `Decoder._<kind>` decodes the node.
_KINDS: dict[str, tuple[set[str], set[str]]] = {}
for _keys in (
    *("ref", "float", "complex", "bytes", "slice", "dtype", "status", "kernel"),
    *("list", "tuple", "set", "frozenset", "dict values", "objects shape", "array shape"),
    *("scalar value", "sparse shape data indices indptr", "random state", "table parts", "class"),
):
    _required = set(_keys.split())
    _optional = {"array": {"type", "axes", "frozen"}, "objects": {"axes", "frozen"}}
    _optional["class"] = {"parameters", "fitted", "fields"}
    _first = _keys.split()[0]
    _KINDS[_first] = (_required | _optional.get(_first, set()) | {"id"}, _required)


def _create(stored: StoredClass, fields: dict[str, object]) -> object:
    """Create an object with these attributes.

    Kernels and similar values are created by their constructor, which checks its arguments.  For
    other objects, the attributes are set directly.
    """
    cls: Any = stored.cls
    if issubclass(cls, tuple):
        return cls(**fields)
    if stored.value:
        obj = cls(**fields)
        for name, value in fields.items():
            copy = getattr(obj, name, None)
            if type(value) is type(copy) is np.ndarray and _same_layout(value, copy):
                value.setflags(write=copy.flags.writeable and value.flags.writeable)
                # The constructor has copied the array.  Restore the original, which may be a memory
                # map or shared with other objects.
                object.__setattr__(obj, name, value)
        return obj
    obj = cls.__new__(cls)
    obj.__dict__.update(fields)
    return obj


def _same_layout(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same element type, shape and strides."""
    return a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
