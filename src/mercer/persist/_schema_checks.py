"""Check that attributes read from a file have the annotated types and consistent array sizes.

Without these checks, invalid values would cause errors later, for example in predictions, and
compiled loops could read beyond the end of an array.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache, singledispatch
from numbers import Complex, Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._core import ModelFileError, length
from ..estimators.features import CountSketchMap, FlippedMap
from ..expansion import Expansion, Primal
from ..gram import NystroemMap
from ..kernels import Graph, Graphs
from ..solvers import Moments, OnlineLearner
from ._class_registry import StoredClass, stored_types

T = typing.TypeVar("T")
_NUMBER_TYPES = {int: Integral, float: Real, complex: Complex}


def check_fields(stored: StoredClass, fields: dict[str, object]) -> None:
    """Raise a ModelFileError if a required attribute is missing or has the wrong type.

    Fields that are missing in the file, but have a default, are added to `fields`.
    """
    needed = stored.parameters if stored.estimator else stored.attributes
    missing = [name for name in needed if name not in fields and name not in _defaults(stored.cls)]
    if missing:
        raise ModelFileError(f"the {stored.name} in the file has no {', '.join(missing)}")
    hints = stored_types(stored.cls) if stored.estimator else _hints(stored.cls)
    for name in needed:
        # The file may have been written before a field was added to the class.  The default of such
        # a field means the old behaviour.
        if name not in fields:
            fields[name] = _defaults(stored.cls)[name]()
    for name, value in fields.items():
        if name not in stored.parameters and not has_type(value, hints.get(name, Any)):
            raise ModelFileError(
                f"the {name} of {stored.name} in the file has the wrong type {type(value).__name__}"
            )


@cache
def _defaults(cls: Any) -> dict[str, Any]:
    """Return functions that create the defaults of a dataclass, for each field with a default."""
    if not dataclasses.is_dataclass(cls):
        return {}
    defaults: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = lambda value=field.default: value
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory
    return defaults


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the annotated types of a class, or {} if they cannot be resolved at run time."""
    try:
        return typing.get_type_hints(cls)
    except NameError:
        return {}


def has_type(value: object, hint: Any) -> bool:
    """Return True if a value has the type of an annotation.

    Parameters
    ----------
    value : object
        The value to check.
    hint : type annotation
        A class, a union, a literal or a generic list, set or tuple; anything else is accepted.

    Returns
    -------
    bool
        Whether the value, and the values in a collection, have the annotated types.

    Examples
    --------
    >>> from mercer.persist._schema_checks import has_type
    >>> has_type(3, float | None), has_type("3", float | None), has_type([1, "a"], list[int])
    (True, False, False)
    """
    if hint is Any or isinstance(hint, (typing.TypeVar, str)):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(has_type(value, one) for one in arguments)
    if origin is typing.Annotated:  # a checked type that is wider than that of type checkers
        return has_type(value, hint.__metadata__[0])
    if origin is typing.Literal:
        return value in arguments
    if origin in (list, set, frozenset) or (origin is tuple and arguments[-1:] == (...,)):
        return isinstance(value, origin) and all(has_type(one, arguments[0]) for one in value)
    if origin is tuple:
        if not isinstance(value, tuple) or len(value) != len(arguments):
            return False
        return all(map(has_type, value, arguments))
    if origin is not None:
        hint = origin
    if not isinstance(hint, type):
        return True
    if hint in _NUMBER_TYPES:
        return isinstance(value, _NUMBER_TYPES[hint])
    return isinstance(value, hint) or (hint is bool and isinstance(value, np.bool_))


# ---------------------------------------------------------------------- consistent sizes


def check_consistent(value: T) -> T:
    """Return the object itself; raise a ModelFileError if its array sizes are inconsistent."""
    if not _is_consistent(value):
        raise ModelFileError(
            f"the {type(value).__name__} in the file has arrays of inconsistent sizes"
        )
    return value


@singledispatch
def _is_consistent(value: object) -> bool:
    """Whether the parameters of an estimator are valid and its arrays have consistent sizes."""
    if not isinstance(value, BaseEstimator):
        return True
    value._validate_params()
    state = vars(value)
    if "_learner" in state:  # the arrays of a learner have one row for each retained point
        return "_kept" in state and length(state["_kept"]) == len(state["_learner"].support)
    return True


@_is_consistent.register
def _(value: Expansion) -> bool:
    A: Any = value.__dict__.get("coefficients", value.__dict__.get("dual"))
    has_rows = type(A) is np.ndarray and A.ndim == 2 and len(A) == length(value.points)
    return bool(has_rows and A.dtype in (np.float32, np.float64))


@_is_consistent.register
def _(value: Primal) -> bool:
    return value.weights.ndim == 2 and value.weights.dtype == np.float64


@_is_consistent.register
def _(value: NystroemMap) -> bool:
    m = length(value.points)
    return _is_float_array(value.factor, m, m) and _is_index_array(value.kept, m, None)


@_is_consistent.register
def _(value: FlippedMap) -> bool:
    m = length(value.points)
    return _is_float_array(value.normalization, m, m)


@_is_consistent.register
def _(value: Moments) -> bool:
    m = len(value.mean) if value.mean.ndim else -1
    return _is_float_array(value.mean, m) and _is_float_array(value.comoment, m, m)


@_is_consistent.register
def _(value: CountSketchMap) -> bool:
    buckets, signs = value.buckets, value.signs
    in_range = _is_index_array(buckets.reshape(-1), buckets.size, value.n_features)
    return buckets.ndim == 2 and buckets.shape == signs.shape and in_range


@_is_consistent.register
def _(value: OnlineLearner) -> bool:
    """Check the arrays that compiled loops read and write."""
    m, q = len(value.support), value.n_functions
    if not (
        q > 0 and _is_index_array(value.support, m, None) and value.support.min(initial=0) >= 0
    ):
        return False
    sizes = {"A": (m, q), "b": (q,), "seen": (q,), "U": (m, q), "ub": (q,), "z": (m, q)}
    sizes |= dict.fromkeys(("L", "R", "K"), (m, m))
    return all(
        _is_float_array(getattr(value, n), *s) for n, s in sizes.items() if hasattr(value, n)
    )


@_is_consistent.register
def _(value: Graphs) -> bool:
    nodes = value.offsets[-1:].sum() if type(value.offsets) is np.ndarray else -1
    has_offsets = _are_offsets(value.offsets, int(nodes)) and len(value.offsets) > 0
    if not (has_offsets and type(value.indices) is np.ndarray):
        return False
    entries = len(value.indices)
    if not (_are_offsets(value.indptr, entries) and len(value.indptr) == nodes + 1):
        return False
    if not _is_index_array(value.indices, entries, int(nodes)) or type(value.directed) is not bool:
        return False
    if np.any(value.owner[value.source] != value.owner[value.indices]):
        return False  # an edge must not connect two graphs
    for names, count in ((("labels", "attributes"), nodes), (("edge_labels", "weights"), entries)):
        for array in (getattr(value, name) for name in names):
            if array is not None and not (type(array) is np.ndarray and len(array) == count):
                return False
    A = value.attributes
    is_matrix = A is None or (A.ndim == 2 and A.dtype == np.float64 and bool(np.isfinite(A).all()))
    # Remove cached properties, which the checks above have computed.
    for name in ("owner", "source", "sizes", "degrees"):
        value.__dict__.pop(name, None)
    return is_matrix


@_is_consistent.register
def _(value: Graph) -> bool:
    return 0 <= value.index < len(value.collection)


def is_valid_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, ...]) -> bool:
    """Whether three arrays form a valid CSR matrix; SciPy would not detect decreasing offsets."""
    are_vectors = all(type(A) is np.ndarray and A.ndim == 1 for A in (data, indices, indptr))
    if not are_vectors or data.dtype.kind not in "biufc" or len(data) != len(indices):
        return False
    index_types = (np.int32, np.int64)
    if (
        len(indptr) != shape[0] + 1
        or indices.dtype not in index_types
        or indptr.dtype not in index_types
    ):
        return False
    offsets = indptr.astype(np.int64, copy=False)
    return bool(_are_offsets(offsets, int(offsets[-1]))) and bool(
        offsets[-1] <= len(indices) and _is_index_array(indices, len(indices), shape[1])
    )


def _is_float_array(A: object, *shape: int) -> bool:
    """Whether A is a float64 array of this shape."""
    return type(A) is np.ndarray and A.shape == shape and A.dtype == np.float64


def _is_index_array(A: Any, count: int, below: int | None) -> bool:
    """Whether A is an array of `count` integers, from 0 to `below` - 1 if `below` is not None."""
    is_integer = type(A) is np.ndarray and A.shape == (count,) and A.dtype.kind in "iu"
    return is_integer and (below is None or not A.size or (A.min() >= 0 and A.max() < below))


def _are_offsets(A: object, last: int) -> bool:
    """Whether A contains valid row offsets: from 0 to `last`, and not decreasing."""
    if type(A) is not np.ndarray or A.ndim != 1 or A.dtype != np.int64 or not len(A):
        return False
    return bool(A[0] == 0 and A[-1] == last and np.all(np.diff(A) >= 0))
