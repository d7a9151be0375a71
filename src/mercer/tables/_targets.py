"""The target column of a table as labels or numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .._core import take
from ._cell_notation import TEXT, is_number
from ._column_contents import inspect_texts, truncated
from ._column_encoders import stripped
from ._table import Table, as_texts, kind_of


def target_values(
    table: Table, name: str, rows: np.ndarray, *, labels: bool, text: bool
) -> np.ndarray:
    """Return the values of the target column in the given rows.

    Parameters
    ----------
    table : Table
        The table.
    name : str
        The target column.
    rows : array of int
        The rows, in which the target is not missing.
    labels : bool
        Whether to return class labels rather than numbers.
    text : bool
        Whether the target was text when the recipe was fitted.

    Returns
    -------
    array
        The values.
    """
    column = table.column(name)
    kind = kind_of(column)
    if kind not in ("numbers", "text", "nothing"):
        raise table.error(
            f"the target contains {kind}, but a model predicts numbers or labels - choose "
            f"another column with --target",
            name,
        )
    column = take(column, rows)
    content = None
    if kind_of(column) == TEXT:
        content = inspect_texts(Counter(cell for cell in column if cell is not None))
    has_fractions = content is not None and labels and content.is_mostly_numbers
    has_fractions = has_fractions and any(is_number(cell) and "." in cell for cell in column)
    if content is not None and (
        (content.is_number and not (labels and content.is_identifier))
        or (content.is_mostly_numbers and (not labels or has_fractions))
    ):
        row = column.tolist().index(content.example)
        raise table.error(
            f"the target contains {content.what}; the first is {truncated(content.example)} "
            f"on {table.where(rows[row])} - {content.remedy}",
            name,
        )
    if labels:
        if text or name in table.booleans:
            return label_values(take(table.texts(name), rows))
        result = label_values(column)
        if result.dtype.kind == "f":
            row = int(np.flatnonzero(column != np.round(column))[0])
            raise table.error(
                f"the target contains numbers such as {column[row]:g} on "
                f"{table.where(rows[row])}, but a classifier predicts labels - try a "
                f"regression: mercer fit ridge, gp or svr",
                name,
            )
        return result
    if kind_of(column) == TEXT:
        raise table.error(
            f"the target contains text ({truncated(column[0])} on {table.where(rows[0])}), but "
            f"a regression predicts numbers - try a classifier: mercer fit svc, logistic or "
            f"fisher",
            name,
        )
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        raise table.error(
            "the target is infinite - usually a division by zero or a placeholder for a "
            "missing value - fix it",
            name,
            int(rows[infinite[0]]),
        )
    return column


def label_values(column: np.ndarray) -> np.ndarray:
    """Return class labels: text without surrounding spaces, or integers for whole numbers.

    Missing text becomes the label "missing".  Numbers with fractions are returned as floats.
    """
    if column.dtype == object:
        return np.array(["missing" if v is None else v for v in stripped(column)], dtype=str)
    if column.dtype.kind == "M":
        return np.array(["missing" if v is None else v for v in as_texts(column)], dtype=str)
    is_integer = bool(np.all(np.abs(column) < 2**63)) and bool(np.all(column == np.round(column)))
    return column.astype(np.int64) if is_integer else column
