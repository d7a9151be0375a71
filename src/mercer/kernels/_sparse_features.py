"""Kernels with sparse explicit features, k(x, z) = sum_c phi_c(x) phi_c(z).

A feature is identified by its code, a 64-bit hash of what it counts (a word, a subtree, an
element).  The same feature has the same code in all collections of points.  Therefore no vocabulary
has to be learned from the training points, and K is a product of two sparse matrices.  Among m
different features, the probability that two have the same code is about m^2 / 2^65, which is 3e-8
for a million features.
"""

from __future__ import annotations

import hashlib
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._core import Points
from ._base import Kernel, node
from ._evaluation import Prepared
from ._properties import FEATURES, Properties
from .vectors._dot_product import squared_norms
from .vectors._vector_kernel import inner_products


class FeatureTerms(NamedTuple):
    """The features of n points as a list of terms, similar to a sparse matrix in COO format.

    Term t means: point owner[t] has the feature with code code[t], with value value[t].  Several
    terms for the same point and feature are added.
    """

    n: int
    owner: np.ndarray
    code: np.ndarray
    value: np.ndarray
    kind: str = ""  # the kind of points, or "" if all kinds can be compared

    @classmethod
    def counted(cls, n: int, owner: np.ndarray, code: np.ndarray, kind: str = "") -> FeatureTerms:
        """Return terms that all have the value 1, so that the features are counts."""
        return cls(n, owner, code, np.ones(len(code)), kind)

    @classmethod
    def joined(cls, *parts: FeatureTerms) -> FeatureTerms:
        """Return the concatenation of several groups of features of the same points.

        Different groups must not have codes in common.
        """
        n, owner, code, value, kind = zip(*parts, strict=True)
        return cls(
            n[0], np.concatenate(owner), np.concatenate(code), np.concatenate(value), kind[0]
        )

    def matrix(self, columns: np.ndarray | None = None) -> tuple[sp.csr_array, np.ndarray]:
        """Return the feature matrix phi in CSR format, and the codes of its columns.

        If `columns`, a sorted array of codes, is given, all other features are omitted.
        """
        if columns is None:
            columns, index = np.unique(self.code, return_inverse=True)
            selected: Any = slice(None)
        else:
            index = np.searchsorted(columns, self.code)
            index[index == len(columns)] = 0
            selected = (
                columns[index] == self.code if len(columns) else np.zeros(len(index), dtype=bool)
            )
        phi = sp.coo_array(
            (self.value[selected], (self.owner[selected], index[selected])),
            shape=(self.n, len(columns)),
        )
        return phi.tocsr(), columns  # tocsr() adds terms of the same point and feature


@node
class Explicit(Kernel):
    """Base class of kernels with sparse explicit features.

        k(x, z) = sum_c phi_c(x) phi_c(z)

    A subclass implements `_terms(X)`, which returns the features of the points.  The kernel matrix
    is then a product of sparse matrices, and a linear model of `features(X)` is an alternative to a
    kernel method if there are many points.

    See Also
    --------
    Features : Kernel of dense features that a function computes.
    PairwiseKernel : Base class for kernels without explicit features.
    finite_features : Features of any kernel that has finitely many.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> k = Spectrum(1)  # counts letters
    >>> k.features(["abba", "bb"]).toarray() @ [1.0, 1.0]
    array([4., 2.])
    >>> k.features(["xb"], like=["abba", "bb"]).shape
    (1, 2)
    """

    @abstractmethod
    def _terms(self, X: Points) -> FeatureTerms:
        """Return the terms of the features phi(X)."""

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(FEATURES, 0)

    def features(self, X: Points, like: Points = None) -> sp.csr_array:
        """Return the features phi(X) as a sparse matrix, one row per point.

        A linear model of these features is equivalent to a model with this kernel.

        Parameters
        ----------
        X : collection of n points
            The points, such as a list of strings.
        like : collection of points, optional
            The columns are the features that occur in these points, sorted by their hash codes;
            by default those that occur in X.  Use `features(test, like=train)` to get the columns
            of `features(train)`.

        Returns
        -------
        csr_array of shape (n, n_features)
            The features, one row per point.  Features that do not occur in `like` are omitted.
        """
        self._require_resolved()
        if like is None:
            return self._terms(X).matrix()[0]
        others = self._terms(like)
        return self._terms_like(X, others.kind).matrix(np.unique(others.code))[0]

    def _terms_like(self, X: Points, kind: str) -> FeatureTerms:
        """Return the terms of phi(X); raise TypeError if its points are not of this kind."""
        terms = self._terms(X)
        if terms.kind and kind and terms.kind != kind:
            raise TypeError(
                f"{type(self).__name__} cannot compare points that are {terms.kind} with points "
                f"that are {kind}, because they have no features in common; convert one of them"
            )
        return terms

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        columns, kind = like.frame if like is not None else (None, "")
        terms = self._terms_like(X, kind)
        phi, columns = terms.matrix(columns)
        return Prepared((phi,), frame=(columns, terms.kind or kind))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        inner_products(P.arrays[0], Q.arrays[0], out)

    def _diag(self, X: Points) -> np.ndarray:
        return squared_norms(self._terms(X).matrix()[0])  # uses all features that occur in X


# ---------------------------------------------------------------------- hash codes

_GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # the increment of SplitMix64: 2^64 / golden ratio, odd


def splitmix64(x: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return a 64-bit hash of each integer in x, by the bijective mixing function of SplitMix64.

    Different values of `salt` give different hash functions.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    x = np.asarray(x, dtype=np.uint64) + np.uint64(_GOLDEN_GAMMA * (salt + 1) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed


def hash_codes(values: Any, owner: str, what: str, *, reals: bool = True) -> np.ndarray:
    """Return a 64-bit code for each value; equal values have equal codes, in every process.

    Values may be numbers, strings, bytes, None, and tuples or frozensets of these.  Other values
    raise TypeError; `owner` names the kernel and `what` the values in its message.  As in Python,
    1, 1.0 and True are equal, and so are a named tuple and a tuple.  With `reals=False`, numbers
    that are not integers also raise TypeError.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "bi":
        return splitmix64(values.astype(np.int64).view(np.uint64))
    known: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.uint64)
    for i, value in enumerate(values.tolist() if isinstance(values, np.ndarray) else values):
        try:
            code = known.get(value)
        except TypeError:
            code = None  # `value` is not hashable; `_code` will return None
        if code is None:
            code = _code(value)
            if code is None:
                raise TypeError(
                    f"{owner}: {what} must be numbers, strings or tuples of them, but the one at "
                    f"index {i} is {value!r}"
                )
            if not reals and _is_number(value) and not isinstance(_plain_number(value), int):
                raise TypeError(
                    f"{owner}: {what} are compared by equality, but the one at index {i} is "
                    f"{value!r}, a {type(value).__name__}, and measured numbers are hardly ever "
                    f"equal. The usual cause is that vectors are passed to a kernel on strings: "
                    f"use a kernel on vectors, such as RBF(), or round the numbers to integers"
                )
            known[value] = code
        codes[i] = code
    return codes


def hash_elements(
    points: Sequence[Any], owner: str, what: str, *, reals: bool = True
) -> np.ndarray:
    """Return the concatenated codes of the elements of all points; see `hash_codes`.

    An error message names the point, and the index of the element in it.
    """
    try:
        return hash_codes(list(chain.from_iterable(points)), owner, what, reals=reals)
    except TypeError:  # encode the points one by one, so that the error names the point
        codes = [
            hash_codes(list(point), owner, f"the {what} of point {i}", reals=reals)
            for i, point in enumerate(points)
        ]
        return np.concatenate(codes)


def _code(value: Any) -> int | None:
    """Return the code of one value, or None if its type is not supported.

    Values that are equal in Python, such as 1 and 1.0, have the same code.
    """
    if isinstance(value, np.generic) and not isinstance(value, (str, bytes, np.longdouble)):
        value = value.item()
    if _is_number(value):
        value = _plain_number(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return int(splitmix64(np.array([value], dtype=np.int64).view(np.uint64))[0])
    if isinstance(value, (tuple, frozenset)):
        inner = [_code(v) for v in value]
        if None in inner:
            return None
        parts = [str(code) for code in inner]
        text = repr(("tuple", parts) if isinstance(value, tuple) else ("frozenset", sorted(parts)))
    elif isinstance(value, str):
        text = repr(str.__str__(value))
    elif isinstance(value, bytes):
        text = repr(bytes(value))
    elif value is None or isinstance(value, (int, float, Fraction)):
        text = repr(value)
    else:
        return None
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _is_number(value: Any) -> bool:
    """Return True for real numbers, and for complex numbers with imaginary part 0."""
    if isinstance(value, (numbers.Real, Decimal)):
        return True
    return isinstance(value, numbers.Complex) and value.imag == 0


def _plain_number(value: Any) -> Any:
    """Return a number as int if possible, else as float, else as Fraction.

    Equal numbers of different types, such as 1 and 1.0, give the same result.
    """
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Complex):
        value = value.real
    try:
        exact = Fraction(*value.as_integer_ratio())
    except (OverflowError, ValueError):  # infinite, or not a number
        try:
            return float(value)
        except ValueError:  # a signalling NaN
            return value
    if exact.denominator == 1:
        return exact.numerator
    try:
        return float(exact) if float(exact) == exact else exact
    except OverflowError:
        return exact
