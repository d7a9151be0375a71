"""Tables of pandas and polars, and columns of them, as plain values: names, kinds and entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import ModelFileError

__all__ = ["columns_of", "table_of"]

_TEXTS = ("str", "string")  # how pandas calls its columns of strings
_NUMBERS = {"Boolean", "Float32", "Float64"}  # of polars
_NUMBERS |= {f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)}


def columns_of(table: Any, where: str) -> dict[str, Any]:
    """Return a table as a dictionary of plain values."""
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
    raise TypeError(f"{where} is a table of {kind}; give one of pandas or polars, or an array")


def _index(table: Any, where: str) -> Any:
    index = table.index
    if type(index).__name__ == "RangeIndex":
        return slice(index.start, index.stop, index.step)
    if index.nlevels > 1:
        raise TypeError(f"{where} has an index of {index.nlevels} levels; use .reset_index()")
    return _values(index.to_series(), where)


def _pandas_column(column: Any, where: str) -> Any:
    if str(column.dtype) == "category":
        codes, names = column.cat.codes.to_numpy(), column.cat.categories.to_series()
        return ("category", codes, _values(names, where), bool(column.cat.ordered))
    return _values(column, where)


def _values(column: Any, where: str) -> Any:
    name = str(column.dtype)
    if name in _TEXTS:
        return (name, [None if v is None or v != v else str(v) for v in column.tolist()])
    if not isinstance(column.dtype, np.dtype):
        raise TypeError(
            f"{where} has the column {column.name!r} of {name}; turn it into numbers, strings or "
            f"categories with .astype"
        )
    return column.to_numpy()


def _polars_column(column: Any, where: str) -> Any:
    name = str(column.dtype)
    if name == "String":
        return (name, column.to_list())
    if name in _NUMBERS:
        return (name, column.fill_null(0).to_numpy(), column.is_null().to_numpy())
    raise TypeError(
        f"{where} has the column {column.name!r} of {name}; cast it to numbers or strings"
    )


# ---------------------------------------------------------------------- and back


def table_of(kind: str, parts: Any) -> Any:
    """Return the table that `columns_of` has taken apart."""
    library, _, shape = kind.partition(".")
    wanted = {"names", "columns"} | ({"index"} if library == "pandas" else set())
    if library not in ("pandas", "polars") or shape not in ("DataFrame", "Series"):
        raise ModelFileError(f"it has a table of {kind[:40]!r}, which is of neither library")
    if not isinstance(parts, dict) or parts.keys() != wanted:
        raise ModelFileError(f"its table has not the parts {', '.join(sorted(wanted))}")
    names, columns = parts["names"], parts["columns"]
    if not isinstance(names, list) or not isinstance(columns, list) or len(names) != len(columns):
        raise ModelFileError("its table has not one name for each column")
    if shape == "Series" and len(names) != 1:
        raise ModelFileError("its column of a table has not one name")
    try:
        made = _pandas if library == "pandas" else _polars
        return made(shape, names, columns, parts.get("index"))
    except ImportError:
        raise ModelFileError(f"it has points in a table of {library}: install {library}") from None


def _pandas(shape: str, names: list[Any], columns: list[Any], index: Any) -> Any:
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


def _pandas_values(pd: Any, column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return column
    match column:
        case ("category", np.ndarray() as codes, names, bool() as ordered):
            categories = pd.Index(_pandas_values(pd, names))
            return pd.Categorical.from_codes(codes, categories, ordered=ordered)
        case (("str" | "string") as kind, list() as texts):
            return pd.array(texts, dtype=kind)
    raise ModelFileError("its table has a column of an unknown kind")


def _polars(shape: str, names: list[Any], columns: list[Any], index: Any) -> Any:
    import polars as pl

    series = []
    for name, column in zip(names, columns, strict=True):
        match column:
            case ("String", list() as texts):
                series.append(pl.Series(name, texts, dtype=pl.String))
            case (str() as kind, np.ndarray() as values, np.ndarray() as missing):
                if kind not in _NUMBERS or values.shape != missing.shape or missing.dtype != bool:
                    raise ModelFileError("its table has a column whose parts do not fit")
                one = pl.Series(name, values, dtype=getattr(pl, kind))
                series.append(one.set(pl.Series(missing), None) if missing.any() else one)
            case _:
                raise ModelFileError("its table has a column of an unknown kind")
    return series[0] if shape == "Series" else pl.DataFrame(series)
