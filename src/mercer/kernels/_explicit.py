"""Kernels of sparse explicit features, k(x, z) = sum_c phi_c(x) phi_c(z).

A feature c is known by its code: 64 bits made from what it is (a word, a subtree, an element), and
not from the collection in which it was met.  So points that are prepared apart agree on their
features, nothing has to be learned from the training points, and the matrix K is a product of two
sparse matrices.  Among m different features two share a code with probability about m^2 / 2^65:
3e-8 for a million.
"""

from __future__ import annotations

import hashlib
import numbers
from abc import abstractmethod
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ._base import Kernel, node
from ._claims import FEATURES, Claims
from ._dot import squared_norms
from ._prepared import Prepared
from ._vectors import inner_products

__all__ = ["Explicit", "Terms", "codes_of", "mix"]


class Terms(NamedTuple):
    """phi of n points, term by term: point owner[t] has value[t] more of the feature code[t]."""

    n: int
    owner: np.ndarray
    code: np.ndarray
    value: np.ndarray
    kind: str = ""  # of the points, where those of different kinds must not meet

    @classmethod
    def counted(cls, n: int, owner: np.ndarray, code: np.ndarray, kind: str = "") -> Terms:
        """Return the terms of value 1."""
        return cls(n, owner, code, np.ones(len(code)), kind)

    @classmethod
    def joined(cls, *parts: Terms) -> Terms:
        """Return the terms of several parts of phi; features of different parts must differ."""
        n, owner, code, value, kind = zip(*parts, strict=True)
        return cls(
            n[0], np.concatenate(owner), np.concatenate(code), np.concatenate(value), kind[0]
        )

    def matrix(self, columns: np.ndarray | None = None) -> tuple[sp.csr_array, np.ndarray]:
        """Return phi as CSR, and the codes of its columns; those given leave out other features."""
        if columns is None:
            columns, place = np.unique(self.code, return_inverse=True)
            kept: Any = slice(None)
        else:
            place = np.searchsorted(columns, self.code)
            place[place == len(columns)] = 0
            kept = columns[place] == self.code if len(columns) else np.zeros(len(place), dtype=bool)
        phi = sp.coo_array(
            (self.value[kept], (self.owner[kept], place[kept])), shape=(self.n, len(columns))
        )
        return phi.tocsr(), columns  # sums what belongs to one feature


@node
class Explicit(Kernel):
    """k(x, z) = sum_c phi_c(x) phi_c(z); a node adds `_terms(X)`, the terms of phi.

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
    def _terms(self, X: Any) -> Terms:
        """Return phi(X)."""

    def _claims(self, *inner: Claims) -> Claims:
        return Claims(FEATURES, 0)

    def features(self, X: Any, like: Any = None) -> sp.csr_array:
        """Return phi(X), one row per point.

        Columns are the features that occur in the points `like`, X itself by default, in the order
        of their codes: `features(test, like=train)` fits a model in the primal of
        `features(train)`.
        """
        self._require_resolved()
        if like is None:
            return self._terms(X).matrix()[0]
        others = self._terms(like)
        return self._terms_like(X, others.kind).matrix(np.unique(others.code))[0]

    def _terms_like(self, X: Any, kind: str) -> Terms:
        """Return phi(X), if X and points of this kind can have features in common."""
        terms = self._terms(X)
        if terms.kind and kind and terms.kind != kind:
            raise TypeError(
                f"{type(self).__name__} compares points that are {terms.kind} with points that are "
                f"{kind}, which have no features in common; convert one of them"
            )
        return terms

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        columns, kind = like.frame if like is not None else (None, "")
        terms = self._terms_like(X, kind)
        phi, columns = terms.matrix(columns)
        return Prepared((phi,), frame=(columns, terms.kind or kind))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        inner_products(P.arrays[0], Q.arrays[0], out)

    def _diag(self, X: Any) -> np.ndarray:
        return squared_norms(self._terms(X).matrix()[0])  # features of X alone count as well


# ---------------------------------------------------------------------- codes

_STEP = 0x9E3779B97F4A7C15


def mix(x: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return 64 bits that look independent of x, one to one: the finaliser of SplitMix64.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    x = np.asarray(x, dtype=np.uint64) + np.uint64(_STEP * (salt + 1) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def codes_of(values: Any, owner: str, what: str, *, reals: bool = True) -> np.ndarray:
    """Return one code for each value: equal values have equal codes, in every process.

    Values are numbers, strings, bytes, None, and tuples or frozensets of them; `owner` and `what`
    are named in the error for any other.  As in Python, 1, 1.0 and True are one value, and so are a
    named tuple and a tuple.  With `reals=False`, numbers that are not integers are refused.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "bi":
        return mix(values.astype(np.int64).view(np.uint64))
    known: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.uint64)
    for place, value in enumerate(values.tolist() if isinstance(values, np.ndarray) else values):
        try:
            code = known.get(value)
        except TypeError:
            code = None  # not hashable: `_code` returns None
        if code is None:
            code = _code(value)
            if code is None:
                raise TypeError(
                    f"{owner}: {what} must be numbers, strings or tuples of them, but number "
                    f"{place} is {value!r}"
                )
            if not reals and _is_number(value) and not isinstance(_plain_number(value), int):
                raise TypeError(
                    f"{owner}: {what} are compared by equality, but number {place} is {value!r}, "
                    f"a {type(value).__name__}, and measured numbers are hardly ever equal. The "
                    f"usual cause is vectors given to a kernel of strings: use a kernel of "
                    f"vectors, such as RBF(), or round the numbers to integers"
                )
            known[value] = code
        codes[place] = code
    return codes


def _code(value: Any) -> int | None:
    """Return the code of one value, or None for a value of another class.

    Values that Python calls equal are reduced to one form first, whatever their classes.
    """
    if isinstance(value, np.generic) and not isinstance(value, (str, bytes, np.longdouble)):
        value = value.item()
    if _is_number(value):
        value = _plain_number(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return int(mix(np.array([value], dtype=np.int64).view(np.uint64))[0])
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
    """Return True for real numbers, and for complex ones without an imaginary part."""
    if isinstance(value, (numbers.Real, Decimal)):
        return True
    return isinstance(value, numbers.Complex) and value.imag == 0


def _plain_number(value: Any) -> Any:
    """Return a real number as int, else as float, else as Fraction: equal numbers in one form."""
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
