"""What a class demands of its attributes: types as they are annotated, and sizes that fit.

What is read from a file and does not pass would fail later, in the middle of a prediction; a
compiled loop might even read beyond an array.
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

from .._errors import ModelFileError
from .._points import length
from ..expansion import Expansion, Primal
from ..gram import CountSketchMap, FlippedMap, NystroemMap
from ..kernels import Graph, Graphs
from ..solvers import Moments, OnlineLearner
from ._registry import Stored
from ._state import TYPES

__all__ = ["check_fields", "check_made", "csr_fits", "fits"]

_NUMBERS = {int: Integral, float: Real, complex: Complex}


def check_fields(stored: Stored, fields: dict[str, Any]) -> None:
    """Refuse attributes that are not there, or not of the type that the class declares."""
    needed = stored.parameters if stored.estimator else stored.attributes
    missing = [name for name in needed if name not in fields and name not in _defaults(stored.cls)]
    if missing:
        raise ModelFileError(f"a {stored.name} in it has no {', '.join(missing)}")
    hints = TYPES if stored.estimator else _hints(stored.cls)
    for name in needed:
        if name not in fields:  # new in this version: the default says what was before
            fields[name] = _defaults(stored.cls)[name]()
    for name, value in fields.items():
        if name not in stored.parameters and not fits(value, hints.get(name, Any)):
            raise ModelFileError(
                f"a {stored.name} in it has {name} of the type {type(value).__name__}"
            )


@cache
def _defaults(cls: Any) -> dict[str, Any]:
    """Return functions that make the defaults of fields."""
    if not dataclasses.is_dataclass(cls):
        return {}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            found[field.name] = lambda value=field.default: value
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory
    return found


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the annotated types; none where an annotation names what only a type checker sees."""
    try:
        return typing.get_type_hints(cls)
    except NameError:
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Tell whether a value has the type of an annotation.

    Examples
    --------
    >>> from mercer.persist._checks import fits
    >>> fits(3, float | None), fits("3", float | None), fits([1, "a"], list[int])
    (True, False, False)
    """
    if hint is Any or isinstance(hint, (typing.TypeVar, str)):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is typing.ClassVar:
        return True
    if origin is typing.Literal:
        return value in inside
    if origin in (list, set, frozenset) or (origin is tuple and inside[-1:] == (...,)):
        return isinstance(value, origin) and all(fits(one, inside[0]) for one in value)
    if origin is tuple:
        whole = isinstance(value, tuple) and len(value) == len(inside)
        return whole and all(map(fits, value, inside))
    if origin is not None:
        hint = origin
    if not isinstance(hint, type):
        return True
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint])
    return isinstance(value, hint) or (hint is bool and isinstance(value, np.bool_))


# ---------------------------------------------------------------------- sizes that fit


def check_made(value: Any) -> Any:
    """Return an object whose parts fit each other; others are refused."""
    if not _fits_together(value):
        raise ModelFileError(f"a {type(value).__name__} in it has parts whose sizes do not fit")
    return value


@singledispatch
def _fits_together(value: Any) -> bool:
    if not isinstance(value, BaseEstimator):
        return True
    value._validate_params()
    held: dict[str, Any] = vars(value)
    if "_learner" in held:  # its arrays have one row for each point that it retains
        return "_kept" in held and length(held["_kept"]) == len(held["_learner"].support)
    return True


@_fits_together.register
def _(value: Expansion) -> bool:
    A: Any = value.__dict__.get("coefficients", value.__dict__.get("dual"))
    rows = type(A) is np.ndarray and A.ndim == 2 and len(A) == length(value.points)
    return bool(rows and A.dtype in (np.float32, np.float64))


@_fits_together.register
def _(value: Primal) -> bool:
    return value.weights.ndim == 2 and value.weights.dtype == np.float64


@_fits_together.register
def _(value: NystroemMap) -> bool:
    m = length(value.points)
    return _floats(value.factor, m, m) and _indices(value.kept, m, None)


@_fits_together.register
def _(value: FlippedMap) -> bool:
    m = length(value.points)
    return _floats(value.normalization, m, m)


@_fits_together.register
def _(value: Moments) -> bool:
    m = len(value.mean) if value.mean.ndim else -1
    return _floats(value.mean, m) and _floats(value.comoment, m, m)


@_fits_together.register
def _(value: CountSketchMap) -> bool:
    buckets, signs = value.buckets, value.signs
    inside = _indices(buckets.reshape(-1), buckets.size, value.n_features)
    return buckets.ndim == 2 and buckets.shape == signs.shape and inside


@_fits_together.register
def _(value: OnlineLearner) -> bool:
    """Compiled loops read and write these."""
    m, q = len(value.support), value.n_functions
    if not (q > 0 and _indices(value.support, m, None) and value.support.min(initial=0) >= 0):
        return False
    sizes = {"A": (m, q), "b": (q,), "seen": (q,), "U": (m, q), "ub": (q,), "z": (m, q)}
    sizes |= dict.fromkeys(("L", "R", "K"), (m, m))
    return all(_floats(getattr(value, n), *s) for n, s in sizes.items() if hasattr(value, n))


@_fits_together.register
def _(value: Graphs) -> bool:
    nodes = value.offsets[-1:].sum() if type(value.offsets) is np.ndarray else -1
    starts = _starts(value.offsets, int(nodes)) and len(value.offsets) > 0
    if not (starts and type(value.indices) is np.ndarray):
        return False
    entries = len(value.indices)
    if not (_starts(value.indptr, entries) and len(value.indptr) == nodes + 1):
        return False
    if not _indices(value.indices, entries, int(nodes)) or type(value.directed) is not bool:
        return False
    if np.any(value.owner[value.source] != value.owner[value.indices]):
        return False  # an edge between two graphs
    for names, count in ((("labels", "attributes"), nodes), (("edge_labels", "weights"), entries)):
        for one in (getattr(value, name) for name in names):
            if one is not None and not (type(one) is np.ndarray and len(one) == count):
                return False
    A = value.attributes
    flat = A is None or (A.ndim == 2 and A.dtype == np.float64 and bool(np.isfinite(A).all()))
    for name in ("owner", "source", "sizes", "degrees"):  # computed above
        value.__dict__.pop(name, None)
    return flat


@_fits_together.register
def _(value: Graph) -> bool:
    return 0 <= value.index < len(value.collection)


def csr_fits(data: Any, indices: Any, indptr: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether three arrays are a CSR matrix; SciPy's own check misses negative row ends."""
    whole = all(type(A) is np.ndarray and A.ndim == 1 for A in (data, indices, indptr))
    if not whole or data.dtype.kind not in "biufc" or len(data) != len(indices):
        return False
    wide = (np.int32, np.int64)
    if len(indptr) != shape[0] + 1 or indices.dtype not in wide or indptr.dtype not in wide:
        return False
    starts = indptr.astype(np.int64, copy=False)
    return bool(_starts(starts, int(starts[-1]))) and bool(
        starts[-1] <= len(indices) and _indices(indices, len(indices), shape[1])
    )


def _floats(A: Any, *shape: int) -> bool:
    return type(A) is np.ndarray and A.shape == shape and A.dtype == np.float64


def _indices(A: Any, count: int, below: int | None) -> bool:
    whole = type(A) is np.ndarray and A.shape == (count,) and A.dtype.kind in "iu"
    return whole and (below is None or not A.size or (A.min() >= 0 and A.max() < below))


def _starts(A: Any, last: int) -> bool:
    """Tell whether these are the first entries of rows, and the end of the last one."""
    if type(A) is not np.ndarray or A.ndim != 1 or A.dtype != np.int64 or not len(A):
        return False
    return bool(A[0] == 0 and A[-1] == last and np.all(np.diff(A) >= 0))
