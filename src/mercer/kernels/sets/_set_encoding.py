"""Encoding of sets and bags as rows of counts: how often each point contains each element."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import Points, is_table, single_column
from .._sparse_features import FeatureTerms, hash_codes, hash_elements, splitmix64


class SetEncoding:
    """Sets or bags encoded as a matrix of counts, one row per point and one column per element.

    Columns are in the order of the hash codes of the elements, so that collections that are encoded
    separately can be compared.

    Parameters
    ----------
    X : points
        Sets, bags (dictionaries of counts), or the rows of a matrix.
    owner : str
        The name of the kernel, for error messages.
    bags : bool, default=False
        Whether counts other than 0 and 1, including fractions, are allowed.
    """

    def __init__(self, X: Points, owner: str, bags: bool = False) -> None:
        self.owner, self.bags = owner, bags
        self.phi: Points
        self.width: int | None = None  # number of columns of X if X is a matrix
        X = single_column(X, owner, matrix=True)
        matrix = _matrix_of(X)
        if matrix is None:
            self.points = list(X)
            self.phi, self.columns = self._from_sets(self.points)
        else:
            self._check_entries(matrix)
            self.width = matrix.shape[1]
            codes = splitmix64(np.arange(self.width))
            self.order = np.argsort(codes)
            self.columns = codes[self.order]
            self.phi = matrix[:, self.order]
        self.sizes = np.asarray(self.phi.sum(axis=1), dtype=float).ravel()

    def _from_sets(self, points: list[Any]) -> tuple[sp.csr_array, np.ndarray]:
        """Return the matrix of counts of a list of sets or bags, and the codes of its columns."""
        allowed: Any = (AbstractSet, Mapping) if self.bags else AbstractSet
        for i, point in enumerate(points):
            if not isinstance(point, allowed):
                what = "a set or a dictionary of counts" if self.bags else "a set"
                hint = "use MinMax for bags" if isinstance(point, Mapping) else "use set(...)"
                raise TypeError(
                    f"{self.owner}: point {i} is {point!r}, not {what}; {hint}, or pass the "
                    f"rows of a matrix"
                )
        owner = np.repeat(np.arange(len(points)), [len(point) for point in points])
        code = hash_elements(points, self.owner, "elements")
        value = np.ones(len(code))
        if any(isinstance(point, Mapping) for point in points):
            counts = (p.values() if isinstance(p, Mapping) else (1,) * len(p) for p in points)
            try:
                value = np.array(list(chain.from_iterable(counts)), dtype=float)
            except (TypeError, ValueError):
                raise TypeError(
                    f"{self.owner}: a bag contains a count that is not a number"
                ) from None
            invalid = ~(np.isfinite(value) & (value >= 0))
            if invalid.any():
                first = int(np.argmax(invalid))
                raise ValueError(
                    f"{self.owner}: point {owner[first]} contains an element {value[first]:g} "
                    f"times; counts must be finite and not negative"
                )
        return FeatureTerms(len(points), owner, code, value).matrix()

    def _check_entries(self, matrix: Points) -> None:
        """Raise a ValueError unless all entries are 0 or 1, or for bags finite and >= 0."""
        entries = matrix.data if sp.issparse(matrix) else matrix
        valid = np.isfinite(entries) & (entries >= 0)
        if not self.bags:
            valid &= (entries == 0) | (entries == 1)
        if np.all(valid):
            return
        matrix = matrix.tocoo() if sp.issparse(matrix) else matrix
        if sp.issparse(matrix):
            first = int(np.argmin(valid))
            row, column, entry = matrix.row[first], matrix.col[first], matrix.data[first]
        else:
            row, column = np.argwhere(~valid)[0]
            entry = matrix[row, column]
        requirement = "sets must have entries 0 and 1; pass X > 0, or use MinMax for counts"
        if self.bags:
            requirement = "the counts of a bag must be finite and not negative"
        raise ValueError(
            f"{self.owner}: point {row} has the entry {entry:g} in column {column}, but "
            f"{requirement}"
        )

    def at(self, columns: np.ndarray) -> Points:
        """Return the counts of the elements that have these codes, one column per code."""
        if columns is self.columns or np.array_equal(columns, self.columns):
            return self.phi
        return self.terms().matrix(columns)[0]

    def terms(self) -> FeatureTerms:
        """Return the nonzero counts as a list of terms (point, code of the element, count)."""
        phi = sp.coo_array(self.phi)
        return FeatureTerms(phi.shape[0], phi.row, self.columns[phi.col], phi.data.astype(float))

    def like(self, chosen: np.ndarray) -> Points:
        """Return q sets in the format of X, given a boolean array of shape (q, number of elements).

        Row i of `chosen` marks the elements of set i.  The result is a list of sets, or a matrix if
        X is a matrix.
        """
        if self.width is None:
            elements = list(chain.from_iterable(self.points))
            codes = hash_codes(elements, self.owner, "elements").tolist()
            by_code = dict(zip(codes, elements, strict=True))
            return [{by_code[code] for code in self.columns[row].tolist()} for row in chosen]
        out = np.empty_like(chosen)
        out[:, self.order] = chosen
        return sp.csr_array(out.astype(float)) if sp.issparse(self.phi) else out.astype(float)


def _matrix_of(X: Points) -> Points:
    """Return X as a CSR matrix or a numeric array, or None if it is not a matrix."""
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
        except ValueError:  # the rows have different lengths
            return None
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X if X.dtype.kind in "biuf" else X.astype(float)
    return None
