"""Kernels that are evaluated pair by pair: their base class, and kernels defined by a function.

A single value of such a kernel is expensive (dynamic programming, a Python function).  Its values
are therefore stored during a fit, so that no pair is evaluated twice (`_memoised_kernel.py`).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import Points, is_count, length, take
from ._base import Kernel, node, option
from ._dataclass import callable_name
from ._evaluation import Prepared
from ._parameter_checks import one_of, optional_dict, require
from ._properties import Domain, Properties


@node
class PairwiseKernel(Kernel):
    """Base class of kernels whose values are computed for a list of pairs of points.

    A subclass implements `_pairs(P, Q, i, j)`, which returns the values k(p_i, q_j) for two index
    arrays of equal length; tiles and the diagonal are computed from it.  Use this class if a value
    is expensive and no matrix product computes many of them at once, as for alignments.

    See Also
    --------
    Callable : Kernel of a Python function, without a new class.
    Explicit : Base class for kernels with sparse explicit features, which is faster.
    Prepared : The form in which `_pairs` receives the points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import PairwiseKernel, Prepared, node
    >>> @node
    ... class CommonLetters(PairwiseKernel):
    ...     def _prepare(self, X, like):
    ...         return Prepared(([set(x) for x in X],))
    ...     def _pairs(self, P, Q, i, j):
    ...         (p,), (q,) = P.arrays, Q.arrays
    ...         return np.array([len(p[a] & q[b]) for a, b in zip(i, j)], dtype=float)
    >>> CommonLetters()(["abc", "bcd"])
    array([[3., 2.],
           [2., 3.]])
    """

    @abstractmethod
    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return k(p_i, q_j) for index arrays i and j."""

    def _domain(self, *inner: Domain) -> Domain:
        return replace(super()._domain(*inner), costly=True)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if P.source is Q.source and np.array_equal(P.index, Q.index):
            i, j = np.triu_indices(len(P))
            out[i, j] = out[j, i] = self._pairs(P, Q, i, j)
        else:
            i, j = np.indices(out.shape).reshape(2, -1)
            out[...] = self._pairs(P, Q, i, j).reshape(out.shape)

    def _diag(self, X: Points) -> np.ndarray:
        P = self._prepare(X, None)
        i = np.arange(len(P))
        return self._pairs(P, P, i, i)


@node
class Callable(PairwiseKernel):
    """Kernel defined by a Python function, for points of any kind.

        k(x, z) = function(x, z, ...)

    Parameters
    ----------
    function : callable
        A symmetric function.  For a Mercer kernel it must also be positive semidefinite.  This
        cannot be proved automatically, but `validity` searches for a counterexample.
    contract : {"auto", "matrix", "pair"}, default="auto"
        How to call the function.  "matrix": function(X, Z) takes two collections of points and
        returns an array of shape (n, m).  "pair": function(x, z) takes two points and returns a
        number.  "auto" calls the function with a few points, and selects "matrix" if it returns
        arrays of the right shapes.  Choose "matrix" if the function supports it, because one call
        for many pairs is much faster.
    params : dict, optional
        Additional keyword arguments of the function.
    order : int, optional
        What is known about the function: 0 if it is positive semidefinite, m if it is conditionally
        positive definite of order m.  `validity` relies on this without checking it.  None, the
        default, means that nothing is known.

    See Also
    --------
    PairwiseKernel : Base class, for a new kernel class with parameters.
    Precomputed : If the matrix of all kernel values is already available.
    Features : If the function is an inner product of known features; it is then a Mercer kernel.
    Map : If the function is a known kernel of transformed points.

    Examples
    --------
    >>> from mercer.kernels import Callable
    >>> Callable(lambda s, t: len(set(s) & set(t)))(["cat", "dog"], ["cart", "god"])
    array([[3., 0.],
           [0., 3.]])
    """

    function: Any = None
    contract: str = option("auto", one_of("auto", "matrix", "pair"))
    params: dict[str, Any] | None = option(None, optional_dict)
    order: int | None = option(
        None,
        require(
            lambda order: order is None or is_count(order, 0),
            "a non-negative integer, or None if nothing is known",
        ),
    )

    def _check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"Callable needs a function, got {self.function!r}")
        if self.params is not None:
            object.__setattr__(self, "params", dict(self.params))

    def _properties(self, *inner: Properties) -> Properties:
        return Properties("" if self.order is None else "declared by the user", self.order)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        contract = like.frame if like is not None else None
        if contract is None and length(X):  # "auto" needs at least one point
            contract = self._decide(X) if self.contract == "auto" else self.contract
        return Prepared((X,), frame=contract)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if not out.size:
            return
        self._fill(P, Q, out)
        if not np.all(np.isfinite(out)):
            i, j = np.argwhere(~np.isfinite(out))[0]
            raise ValueError(
                f"Callable: {callable_name(self.function)} returned "
                f"{np.sum(~np.isfinite(out))} NaN or "
                f"infinite values; the first one is for points {P.index[i]} and {Q.index[j]}"
            )

    def _fill(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Write k(P, Q) to `out`, without checking that the values are finite."""
        if Q.frame == "matrix":
            out[...] = self._block(P.arrays[0], Q.arrays[0])
        else:
            super()._tile(P, Q, out)

    def _diag(self, X: Points) -> np.ndarray:
        return Kernel._diag(self, X)  # tiles are checked, and may be much faster than pairs

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if Q.frame == "matrix":
            return pairs_from_tiles(self, P, Q, i, j)
        X, Z = P.arrays[0], Q.arrays[0]
        pairs = zip(i.tolist(), j.tolist(), strict=True)
        return np.array(
            [self._value(get_point(X, a), get_point(Z, b)) for a, b in pairs], dtype=float
        )

    def _domain(self, *inner: Domain) -> Domain:
        return Domain(costly=self.contract != "matrix")

    def _decide(self, X: Points) -> str:
        """Return the contract, "matrix" or "pair", that works for the first few points."""
        # Call the function with 2 and 3 points: an elementwise function of rows cannot return shape
        # (2, 3).  A function of two points, such as `x @ z`, can do so if there are three columns.
        # Therefore also call it with 1 and 1 points; such a function cannot return shape (1, 1).
        two, three = (np.arange(m) % length(X) for m in (2, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Warning)  # a call with the wrong contract may warn
            try:
                self._block(take(X, two), take(X, three))
                self._block(take(X, [0]), take(X, [0]))
                return "matrix"
            except Exception as error:  # a function may raise anything for unexpected input
                as_matrix = error
            try:
                self._value(get_point(X, 0), get_point(X, 0))
                return "pair"
            except Exception as error:
                as_pair = error
        raise ValueError(
            f"Callable: {callable_name(self.function)} accepts neither two collections of points "
            f"nor two points. Called with two collections of points: {_describe(as_matrix)}. "
            f"Called with two points: {_describe(as_pair)}. Pass contract='matrix' or "
            f"contract='pair' to see the full traceback"
        )

    def _block(self, X: Points, Z: Points) -> np.ndarray:
        """Call the function with two collections of points and check the shape of the result."""
        block = self.function(X, Z, **(self.params or {}))
        block = np.asarray(block.toarray() if sp.issparse(block) else block)
        n, m = length(X), length(Z)
        if block.shape != (n, m):
            raise ValueError(
                f"Callable: {callable_name(self.function)} returned shape {block.shape} "
                f"for {n} and {m} "
                f"points, expected {(n, m)}; if it takes two points and returns a number, use "
                f"contract='pair'"
            )
        return block.astype(float, copy=False)

    def _value(self, x: Any, z: Any) -> float:
        """Call the function with two points and check that it returns one number."""
        value = np.asarray(self.function(x, z, **(self.params or {})))
        if value.size != 1:
            raise ValueError(
                f"Callable: {callable_name(self.function)} returned shape {value.shape} "
                f"for two points, "
                f"expected a number; if it takes two collections of points, use contract='matrix'"
            )
        return float(value.item())


def pairs_from_tiles(
    kernel: Kernel, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return k(p_i, q_j) for index arrays i and j, computed from one tile per point p_i."""
    values = np.empty(len(i), dtype=P.dtype)
    for point in np.unique(i):
        of_point = i == point
        row = np.empty((1, int(of_point.sum())), dtype=P.dtype)
        kernel._tile(P[[point]], Q[j[of_point]], row)
        values[of_point] = row[0]
    return values


def get_point(X: Points, i: int) -> Any:
    """Return point i of a collection.

    This is a row of an array or table (a dictionary for polars), an entry of a list, or a matrix
    of shape (1, d) if X is sparse.
    """
    if sp.issparse(X):
        return X[[i]]
    if hasattr(X, "row"):
        return X.row(i, named=True)
    return X.iloc[i] if hasattr(X, "iloc") else X[i]


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
