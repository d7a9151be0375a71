"""Convert pandas and polars DataFrames and Series to plain values, and back."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from .._core import ModelFileError

Frame: TypeAlias = Any  # a DataFrame, Series or Index of pandas or polars
Column: TypeAlias = Any  # the stored values of a column: an array, or a tuple of its parts

_PANDAS_STRINGS = ("str", "string")  # names of dtypes that contain strings
_POLARS_NUMBERS = {"Boolean", "Float32", "Float64"}
_POLARS_NUMBERS |= {f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)}


def table_to_columns(table: Frame, where: str) -> dict[str, Any]:
    """Return a table as a dictionary of plain values: its type, names, columns and index."""
    kind = f"{type(table).__module__.split('.')[0]}.{type(table).__name__}"
    if kind == "pandas.DataFrame":
        parts = [_pandas_column(table.iloc[:, i], where) for i in range(table.shape[1])]
        names = table.columns.tolist()
        return {"table": kind, "names": names, "columns": parts, "index": _index(table, where)}
    if kind == "pandas.Series":
        parts = [_pandas_column(table, where)]
        return {
            "table": kind,
            "names": [table.name],
            "columns": parts,
            "index": _index(table, where),
        }
    if kind == "polars.DataFrame":
        parts = [_polars_column(table.to_series(i), where) for i in range(table.shape[1])]
        return {"table": kind, "names": list(table.columns), "columns": parts}
    if kind == "polars.Series":
        return {"table": kind, "names": [table.name], "columns": [_polars_column(table, where)]}
    raise TypeError(f"{where} is a {kind}; use a pandas or polars table, or an array")


def _index(table: Frame, where: str) -> Column:
    """Return the index of a pandas table: a slice for a RangeIndex, otherwise its values."""
    index = table.index
    if type(index).__name__ == "RangeIndex":
        return slice(index.start, index.stop, index.step)
    if index.nlevels > 1:
        raise TypeError(f"{where} has an index of {index.nlevels} levels; use .reset_index() first")
    return _values(index.to_series(), where)


def _pandas_column(column: Frame, where: str) -> Column:
    """Return a pandas column as an array, or as a tuple of its dtype and its parts."""
    if str(column.dtype) == "category":
        codes, names = column.cat.codes.to_numpy(), column.cat.categories.to_series()
        return ("category", codes, _values(names, where), bool(column.cat.ordered))
    return _values(column, where)


def _values(column: Frame, where: str) -> Column:
    """Return the values of a pandas column that is not categorical."""
    name = str(column.dtype)
    if name in _PANDAS_STRINGS:
        return (name, [None if v is None or v != v else str(v) for v in column.tolist()])
    if not isinstance(column.dtype, np.dtype):
        raise TypeError(
            f"{where} has the column {column.name!r} of type {name}; convert it to numbers, "
            f"strings or categories with .astype"
        )
    return column.to_numpy()


def _polars_column(column: Frame, where: str) -> Column:
    """Return (dtype, values) of a string column, or (dtype, values, is_null) of a numeric one."""
    name = str(column.dtype)
    if name == "String" or name.startswith(("Categorical", "Enum")):
        return ("String", column.to_list())  # categories are loaded as strings
    if name in _POLARS_NUMBERS:
        filled = column.fill_null(False if name == "Boolean" else 0)
        return (name, filled.to_numpy(), column.is_null().to_numpy())
    raise TypeError(
        f"{where} has the column {column.name!r} of type {name}; cast it to numbers or strings"
    )


# ---------------------------------------------------------------------- decoding


def table_from_columns(kind: str, parts: object) -> Frame:
    """Restore a table from the values that `table_to_columns` returned."""
    library, _, shape = kind.partition(".")
    required = {"names", "columns"} | ({"index"} if library == "pandas" else set())
    if library not in ("pandas", "polars") or shape not in ("DataFrame", "Series"):
        raise ModelFileError(
            f"the file has a table of type {kind[:40]!r}, which is not from pandas or polars"
        )
    if not isinstance(parts, dict) or parts.keys() != required:
        raise ModelFileError(
            f"a table in the file must have the keys {', '.join(sorted(required))}"
        )
    names, columns = parts["names"], parts["columns"]
    if not isinstance(names, list) or not isinstance(columns, list) or len(names) != len(columns):
        raise ModelFileError("a table in the file must have one name per column")
    if shape == "Series" and len(names) != 1:
        raise ModelFileError("a Series in the file must have exactly one name")
    try:
        create = _to_pandas if library == "pandas" else _to_polars
        return create(shape, names, columns, parts.get("index"))
    except ImportError:
        raise ModelFileError(f"the model contains a {library} table; install {library}") from None


def _to_pandas(shape: str, names: list[str], columns: list[Column], index: Column) -> Frame:
    """Create a pandas DataFrame or Series."""
    import pandas as pd

    if isinstance(index, slice):
        index = pd.RangeIndex(index.start, index.stop, index.step)
    else:
        index = pd.Index(_pandas_values(pd, index))
    series = [pd.Series(_pandas_values(pd, c), index=index, copy=False) for c in columns]
    if shape == "Series":
        return series[0].rename(names[0])
    table = pd.DataFrame(dict(enumerate(series)), index=index, copy=False)
    table.columns = pd.Index(names)
    return table


def _pandas_values(pd: Any, column: Column) -> Frame:
    """Return the values of a column for pandas, from the result of `_pandas_column`."""
    if isinstance(column, np.ndarray):
        return column
    match column:
        case ("category", np.ndarray() as codes, names, bool() as ordered):
            categories = pd.Index(_pandas_values(pd, names))
            return pd.Categorical.from_codes(codes, categories, ordered=ordered)
        case (("str" | "string") as kind, list() as texts):
            return pd.array(texts, dtype=kind)
    raise ModelFileError("a table in the file has a column of an unknown kind")


def _to_polars(shape: str, names: list[str], columns: list[Column], index: Column) -> Frame:
    """Create a polars DataFrame or Series; polars has no index."""
    import polars as pl

    series = []
    for name, column in zip(names, columns, strict=True):
        match column:
            case ("String", list() as texts):
                series.append(pl.Series(name, texts, dtype=pl.String))
            case (str() as kind, np.ndarray() as values, np.ndarray() as missing):
                if (
                    kind not in _POLARS_NUMBERS
                    or values.shape != missing.shape
                    or missing.dtype != bool
                ):
                    raise ModelFileError("a table in the file has a column with inconsistent parts")
                full = pl.Series(name, values, dtype=getattr(pl, kind))
                series.append(full.set(pl.Series(missing), None) if missing.any() else full)
            case _:
                raise ModelFileError("a table in the file has a column of an unknown kind")
    return series[0] if shape == "Series" else pl.DataFrame(series)
