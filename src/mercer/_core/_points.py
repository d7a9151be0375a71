"""Functions for collections of points, which may be vectors, table rows, strings, sets or graphs.

Vectors are the rows of a 2-D array or of a CSR matrix.  A table is a pandas or polars data frame,
or one column of it; its rows may mix numbers with other values.  Strings, sets and graphs are given
as sequences.  The rest of mercer accesses points only through the functions of this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from ._arguments import Points


class PointCollection(ABC):
    """Base class of sequences that store all their points together in a few arrays.

    `X[i]` is one point.  `X[rows]` with a slice, an index array or a boolean mask is a new
    collection.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any: ...

    @abstractmethod
    def joined(self, others: Points) -> Self:
        """Return these points followed by `others`, a collection or a list of points."""


def length(X: Points) -> int:
    """Return the number of points in X."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        if len(shape) == 0:
            raise TypeError(f"expected a collection of points, got the scalar {X!r}")
        return int(shape[0])
    if not hasattr(X, "__len__"):
        raise TypeError(
            f"expected a collection of points, got a single object of type {type(X).__name__}; "
            f"for one point, pass a list [x], or a slice of the collection, X[:1] instead of X[0]"
        )
    return len(X)


def is_table(X: Points) -> bool:
    """Return True if X is a pandas or polars data frame, or a column of one.

    An `xarray.DataArray` is not a table: it has some methods with the same names, but neither
    `columns` nor `to_list`.
    """
    has_methods = all(hasattr(X, name) for name in ("to_numpy", "equals", "shape"))
    return has_methods and (hasattr(X, "columns") or hasattr(X, "to_list"))


def as_numpy(X: Points) -> Points:
    """Convert arrays of other libraries (xarray, PyTorch, PyArrow) to NumPy arrays.

    Other collections of points are returned unchanged.
    """
    is_supported = isinstance(X, (np.ndarray, PointCollection)) or sp.issparse(X) or is_table(X)
    return np.asarray(X) if hasattr(X, "__array__") and not is_supported else X


def get_column(X: Points, position: int) -> Points:
    """Return the column of a data frame at an integer position."""
    return X.iloc[:, position] if hasattr(X, "iloc") else X.to_series(position)


def single_column(X: Points, owner: str, *, matrix: bool = False) -> Points:
    """Return the single column of a table or of a 2-D array of objects, whose values are points.

    A table with several columns raises a TypeError.  If `matrix` is True, rows of numbers are also
    valid points, and a table of numbers is returned unchanged.
    """
    X = as_numpy(X)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or not (is_table(X) or X.dtype.kind in "OUST"):
        return X
    if shape[1] == 1:
        one = get_column(X, 0) if is_table(X) else X[:, 0]
        numeric = np.asarray(one[:0]).dtype.kind in "biuf"
        return X if numeric and matrix else one
    if is_table(X) and not matrix:
        raise TypeError(
            f"{owner}: X is a table with {shape[1]} columns, but each point must be one value; "
            f"select the column with the points: Select({owner}(...), {next(iter(X.columns))!r})"
        )
    return X


def take(X: Points, rows: Any) -> Points:
    """Return the points X[rows]; `rows` is a slice, an index array or a boolean mask."""
    if isinstance(X, (np.ndarray, PointCollection)) or sp.issparse(X):
        return X[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(rows, slice):
        return X[rows]
    rows = np.asarray(rows)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    return X[rows.astype(np.intp)] if is_table(X) else [X[i] for i in rows]


def concatenate(X: Points, Z: Points) -> Points:
    """Return the points of X followed by those of Z."""
    if isinstance(X, PointCollection):
        return X.joined(Z)
    if isinstance(Z, PointCollection):
        return Z[:0].joined(X).joined(Z)
    if hasattr(X, "iloc") and hasattr(Z, "iloc"):
        import pandas as pd  # certainly installed, because X and Z are pandas objects

        return pd.concat([X, Z], ignore_index=True)
    if is_table(X) and is_table(Z):
        import polars as pl  # certainly installed, because X and Z are polars objects

        return pl.concat([X, Z])
    if sp.issparse(X) or sp.issparse(Z):
        return sp.vstack([sp.csr_array(X), sp.csr_array(Z)], format="csr")
    if isinstance(X, np.ndarray) or isinstance(Z, np.ndarray):
        return np.concatenate([np.asarray(X), np.asarray(Z)])
    return [*X, *Z]


def same_points(X: Points, Z: Points) -> bool:
    """Return True if X and Z contain the same points in the same order."""
    if X is Z:
        return True
    if length(X) != length(Z):
        return False
    if isinstance(X, PointCollection) and isinstance(Z, PointCollection):
        return bool(X == Z)
    if sp.issparse(X) and sp.issparse(Z):
        return bool(X.shape == Z.shape and (X != Z).nnz == 0)
    if sp.issparse(X) or sp.issparse(Z):
        return False
    if is_table(X) or is_table(Z):
        return type(X) is type(Z) and bool(X.equals(Z))
    if isinstance(X, np.ndarray) or isinstance(Z, np.ndarray):
        a, b = np.asarray(X), np.asarray(Z)
        if a.dtype == object and a.shape == b.shape:  # may contain NaN, for a missing category
            X, Z = a.ravel().tolist(), b.ravel().tolist()
            return all(x is z or _equal(x, z) for x, z in zip(X, Z, strict=True))
        floats = a.dtype.kind == b.dtype.kind == "f"  # in rankings, NaN marks an unranked item
        return np.array_equal(a, b, equal_nan=floats)
    return all(x is z or _equal(x, z) for x, z in zip(X, Z, strict=True))


def _equal(x: Any, z: Any) -> bool:
    """Return True if two points are equal; NaN equals NaN."""
    if isinstance(x, float) and isinstance(z, float):
        return x == z or (x != x and z != z)
    same = x == z
    return bool(same) if np.ndim(same) == 0 else bool(np.shape(x) == np.shape(z) and np.all(same))


_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def as_vectors(X: Points, owner: str) -> Points:
    """Check that X contains finite vectors and return it as a floating-point array or CSR matrix.

    float32 and float64 are kept, in the byte order of the processor; integers, booleans and float16
    become float64.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype in _FLOATS and 0 not in X.shape:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(X)):  # all entries are finite, and no conversion is needed
                return X
    reject_structured(X, owner)
    _reject_one_dimension(X, owner)
    return check_array(
        in_native_order(X),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_min_samples=0,
        estimator=owner,
        input_name="X",
    )


def in_native_order(X: Points) -> Points:
    """Return an array or a sparse matrix in the byte order of the processor."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative and hasattr(X, "astype"):
        return X.astype(dtype.newbyteorder("="))
    return X


def _reject_one_dimension(X: Points, owner: str) -> None:
    """Raise a ValueError with advice if X is a sequence of numbers instead of a matrix."""
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, (list, tuple)) and all(np.isscalar(x) for x in X):
        shape = (len(X),)
    if shape is None or len(shape) != 1 or shape[0] == 0:
        return
    raise ValueError(
        f"{owner}: Expected 2D array, got 1D array instead, with {shape[0]} values. "
        f"If it is one point with {shape[0]} columns, pass X.reshape(1, -1), for instance "
        f"k([x], [z])[0, 0]; if these are {shape[0]} points with one column, pass "
        f"X.reshape(-1, 1)"
    )


_STRUCTURED = {  # for each type of points that are not vectors: its name, and suitable kernels
    (str, bytes): ("strings", "Equal (categories), Spectrum, Subsequence, BagOfWords, ..."),
    (set, frozenset): ("sets", "Intersection, Jaccard, MinMax, ..."),
}
# An array-like object has at least one of these attributes.
_ARRAY_LIKE = ("__len__", "__array__", "shape")
_GRAPHS = ("graphs", "WeisfeilerLehman, ShortestPath, RandomWalk, ...")


def reject_structured(X: Points, owner: str) -> None:
    """Raise an error that suggests other kernels if X contains strings, sets or graphs."""
    reject_masked(X, "X")
    if isinstance(X, Mapping) or not any(hasattr(X, name) for name in _ARRAY_LIKE):
        raise TypeError(
            f"{owner} requires an array of shape (n, d), but X is an object of type "
            f"{type(X).__qualname__}, which cannot be converted to an array. Pass an array, a list "
            f"of rows, a sparse matrix, or a pandas or polars data frame; for an xarray.Dataset, "
            f"pass X.to_dataframe()"
        )
    if hasattr(X, "shape") and len(X.shape) != 1:
        _refuse_columns(X, owner)
        return
    try:
        first = _first_value(X) if is_table(X) else X[0]
    except (TypeError, IndexError, KeyError):
        return  # X is not a sequence, or is empty
    if is_table(X) and (isinstance(first, (list, tuple, np.ndarray)) or is_table(first)):
        raise ValueError(
            f"{owner} requires an array of shape (n, d), but X is one column whose entries are "
            f"sequences (the first has length {len(first)}). Stack them: np.stack(X.to_list())"
        )
    matches = [others for kinds, others in _STRUCTURED.items() if isinstance(first, kinds)]
    if hasattr(first, "adjacency"):  # graphs of mercer and networkx
        matches.append(_GRAPHS)
    for what, kernels in matches:
        raise ValueError(
            f"{owner} requires vectors, but X contains {what} (the first is {first!r}); kernels "
            f"for {what} are {kernels} (see docs/structured.md)"
        )


def reject_masked(values: object, name: str) -> None:
    """Raise a ValueError for an array with masked values, which NumPy would treat as valid."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        count = np.count_nonzero(np.ma.getmaskarray(values))
        raise ValueError(
            f"{name} is a masked array, and {count} of its {values.size} values are masked. The "
            f"usual cause is missing data. Replace these values with {name}.filled(...), or "
            f"remove their rows"
        )


def _refuse_columns(X: Points, owner: str) -> None:
    """Raise a ValueError if a column of a table contains strings or objects."""
    if not (is_table(X) and len(X.shape) == 2 and X.shape[0]):
        return
    for position, name in enumerate(X.columns):
        first = _first_value(get_column(X, position))
        if isinstance(first, (set, frozenset, tuple, list, dict)) or _is_text(first):
            raise ValueError(
                f"{owner} requires vectors, but the column {name!r} contains {first!r}; convert "
                f"categories to numbers with mercer.tables.Recipe or scikit-learn's OneHotEncoder, "
                f"for instance in make_pipeline(Recipe(), ...), or use a separate kernel per "
                f"column: Select(RBF(), [...]) * Select(Equal(), {name!r}) for categories, "
                f"Select(Spectrum(3), {name!r}) for texts (see docs/structured.md)"
            )


def _first_value(column: Any) -> Any:
    """Return the first value of a column that is not missing, or None."""
    known = column.drop_nulls() if hasattr(column, "drop_nulls") else column.dropna()
    return next(iter(known), None)


def _is_text(value: object) -> bool:
    """Return True for a string that is not a number; scikit-learn converts strings of numbers."""
    if not isinstance(value, (str, bytes)):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def snapshot(X: Points, *, arrays: bool = True) -> Points:
    """Return a copy of the points that is not affected if the objects in X are modified.

    Sets, lists, dictionaries, arrays and networkx graphs are copied.  Objects of unknown classes
    are not copied, because a kernel function may compare them by identity.  If `arrays` is False,
    numeric arrays and sparse matrices are not copied either.

    Examples
    --------
    >>> from mercer._core._points import snapshot
    >>> X = [{1, 2}, {3}]
    >>> Z = snapshot(X)
    >>> X[0].add(7)
    >>> Z
    [{1, 2}, {3}]
    """
    if isinstance(X, PointCollection):
        return deepcopy(X) if arrays else X
    if hasattr(X, "iloc"):
        return _snapshot_table(X)
    if is_table(X):
        return X  # polars tables are immutable
    if (isinstance(X, np.ndarray) and X.dtype == object) or not hasattr(X, "shape"):
        return _copy_point(X)
    return in_native_order(X.copy() if arrays else X)


def _snapshot_table(X: Points) -> Points:
    """Return a copy of a pandas object, including the Python objects in its columns."""
    if X.ndim == 1:
        if not _holds_objects(X.dtype):
            return X.copy()
        return type(X)(_copy_point(X.to_numpy()), index=X.index, name=X.name, dtype=object)
    table = X.copy()
    for position, dtype in enumerate(X.dtypes):
        if _holds_objects(dtype):
            table.isetitem(position, _snapshot_table(X.iloc[:, position]))
    return table


def _holds_objects(dtype: object) -> bool:
    """Return True for NumPy's object dtype; pandas string dtypes have the same `kind`."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _copy_point(x: Any) -> Any:
    """Return a copy of a point of a known mutable class; other points are returned unchanged."""
    kind = type(x)
    if kind is list or kind is tuple:
        return kind([_copy_point(v) for v in x])
    if kind is dict:
        return {name: _copy_point(value) for name, value in x.items()}
    if isinstance(x, np.ndarray) and x.dtype == object:
        out = np.empty(x.shape, dtype=object)  # in C order, so that ravel() is not a copy
        out.ravel()[:] = np.fromiter(
            (_copy_point(v) for v in x.ravel()), dtype=object, count=x.size
        )
        return out
    is_mutable = isinstance(x, (set, dict, list, bytearray, np.ndarray)) or sp.issparse(x)
    is_networkx = hasattr(x, "adjacency") and hasattr(x, "nodes")
    return x.copy() if is_mutable or is_networkx else x


def as_csr(X: Points) -> Points:
    """Convert a sparse matrix to CSR, which supports row indexing; return others unchanged."""
    return X.tocsr() if hasattr(X, "tocsr") else X


def as_float64(X: Points) -> Points:
    """Convert float32 points to float64, because factorisations of K need this precision.

    Other points are returned unchanged.
    """
    if hasattr(X, "iloc"):
        kinds = {} if X.ndim == 1 else {c: np.float64 for c in X if X[c].dtype == np.float32}
        return X.astype(kinds) if kinds else X
    if is_table(X):
        import polars as pl  # certainly installed, because X is a polars object

        return X.cast({pl.Float32: pl.Float64}) if len(X.shape) == 2 else X
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X
