"""Sets and bags read as sparse rows: how often each of them holds each element."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import is_table, only_column
from ._explicit import Terms, codes_of, mix

__all__ = ["Elements"]


class Elements:
    """Sets or bags as rows: how often each point holds each element, in the order of their codes.

    Parameters
    ----------
    X : points
        Sets, bags (dictionaries of counts), or the rows of a matrix.
    owner : str
        The kernel, for messages.
    bags : bool
        Whether an element may be held more than once, or by a part.
    """

    def __init__(self, X: Any, owner: str, bags: bool = False) -> None:
        self.owner, self.bags = owner, bags
        self.phi: Any
        self.width: int | None = None  # columns of the matrix, if X is one
        X = only_column(X, owner, matrix=True)
        matrix = _matrix_of(X)
        if matrix is None:
            self.points = list(X)
            self.phi, self.columns = self._from_sets(self.points)
        else:
            self._check_entries(matrix)
            self.width = matrix.shape[1]
            codes = mix(np.arange(self.width))
            self.order = np.argsort(codes)
            self.columns = codes[self.order]
            self.phi = matrix[:, self.order]
        self.sizes = np.asarray(self.phi.sum(axis=1), dtype=float).ravel()

    def _from_sets(self, points: list) -> tuple[sp.csr_array, np.ndarray]:
        wanted: Any = (AbstractSet, Mapping) if self.bags else AbstractSet
        for place, point in enumerate(points):
            if not isinstance(point, wanted):
                what = "a set or a dictionary of counts" if self.bags else "a set"
                hint = "MinMax takes bags" if isinstance(point, Mapping) else "write set(...)"
                raise TypeError(
                    f"{self.owner}: point {place} is {point!r}, not {what}; {hint}, or give the "
                    f"rows of a matrix"
                )
        owner = np.repeat(np.arange(len(points)), [len(point) for point in points])
        code = self._codes(points)
        value = np.ones(len(code))
        if any(isinstance(point, Mapping) for point in points):
            counts = (p.values() if isinstance(p, Mapping) else (1,) * len(p) for p in points)
            try:
                value = np.array(list(chain.from_iterable(counts)), dtype=float)
            except (TypeError, ValueError):
                raise TypeError(
                    f"{self.owner}: the counts of a bag must be numbers, but not all are"
                ) from None
            bad = ~(np.isfinite(value) & (value >= 0))
            if bad.any():
                first = int(np.argmax(bad))
                raise ValueError(
                    f"{self.owner}: point {owner[first]} has an element {value[first]:g} times; "
                    f"counts are finite and not negative"
                )
        return Terms(len(points), owner, code, value).matrix()

    def _codes(self, points: list) -> np.ndarray:
        try:
            return codes_of(list(chain.from_iterable(points)), self.owner, "elements")
        except TypeError:  # again, to say whose element it is
            for place, point in enumerate(points):
                codes_of(list(point), self.owner, f"the elements of point {place}")
            raise

    def _check_entries(self, matrix: Any) -> None:
        entries = matrix.data if sp.issparse(matrix) else matrix
        fine = np.isfinite(entries) & (entries >= 0)
        if not self.bags:
            fine &= (entries == 0) | (entries == 1)
        if np.all(fine):
            return
        matrix = matrix.tocoo() if sp.issparse(matrix) else matrix
        if sp.issparse(matrix):
            at = int(np.argmin(fine))
            row, column, entry = matrix.row[at], matrix.col[at], matrix.data[at]
        else:
            row, column = np.argwhere(~fine)[0]
            entry = matrix[row, column]
        wanted = (
            "counts of a bag are finite and not negative"
            if self.bags
            else "sets have entries 0 and 1; pass X > 0, or take MinMax for counts"
        )
        raise ValueError(
            f"{self.owner}: point {row} has the entry {entry:g} in column {column}, but {wanted}"
        )

    def at(self, columns: np.ndarray) -> Any:
        """Return the rows at given elements; others are left out."""
        if columns is self.columns or np.array_equal(columns, self.columns):
            return self.phi
        return self.terms().matrix(columns)[0]

    def terms(self) -> Terms:
        """Return the rows term by term."""
        phi = sp.coo_array(self.phi)
        return Terms(phi.shape[0], phi.row, self.columns[phi.col], phi.data.astype(float))

    def like(self, chosen: np.ndarray) -> Any:
        """Return the sets whose elements are chosen, (q, number of elements), in X's form."""
        if self.width is None:
            flat = list(chain.from_iterable(self.points))
            names = dict(zip(codes_of(flat, self.owner, "elements").tolist(), flat, strict=True))
            return [{names[code] for code in self.columns[row].tolist()} for row in chosen]
        out = np.empty_like(chosen)
        out[:, self.order] = chosen
        return sp.csr_array(out.astype(float)) if sp.issparse(self.phi) else out.astype(float)


def _matrix_of(X: Any) -> Any:
    """Return X as CSR or as an array of numbers, None if it is no matrix."""
    if sp.issparse(X):
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X.astype(float, copy=False)
    if is_table(X) and len(X.shape) == 2:
        X = X.to_numpy()
    elif isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple, np.ndarray)):
        try:
            X = np.array(X)
        except ValueError:  # rows of different lengths
            return None
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X if X.dtype.kind in "biuf" else X.astype(float)
    return None
