"""Kernels of sets and bags, from the size of what two of them share and from their own sizes.

    a = |A n B|,  s = |A|,  t = |B|        k(A, B) = a function of a, s and t

The points are Python sets, of any elements that have a code (numbers, strings, tuples of them), or
the rows of a matrix of zeros and ones, dense or CSR, whose elements are the numbers of its columns:
the row (1, 0, 1) is the set {0, 2}.  All a of a tile are one product of sparse rows.  Rows that are
filled to more than a sixteenth are multiplied as dense ones.

Why these are kernels: a = <1_A, 1_B>.  1/(s + t) is the integral of e^(-us) e^(-ut), hence one, and
so is the product a/(s + t) of Dice; Tanimoto is the sum of the powers of a/(s + t), from the first.
1/max(s, t) = min(1/s, 1/t), and the minimum of two positive numbers is one.  For bags sum_c
min(x_c, z_c) takes the place of a (Gower 1971; Ralaivola et al. 2005; Ioffe 2010).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp

from ._base import Kernel, node, parameter
from ._claims import FEATURES, NORMALISED, SERIES, Claims
from ._elements import Elements
from ._elementwise import HistogramIntersection
from ._explicit import Explicit, Terms, codes_of
from ._prepared import Prepared
from ._vectors import check_positive, inner_products

__all__ = [
    "BraunBlanquet",
    "Dice",
    "Intersection",
    "Jaccard",
    "MinMax",
    "Ochiai",
    "Overlap",
    "SetKernel",
    "Subsets",
]

_FILLED = 1 / 16  # the part of a matrix from which on a dense product is the faster one


@node
class SetKernel(Kernel):
    """k(A, B) = profile(a, s, t) of a = |A n B|, s = |A| and t = |B|."""

    _of_bags: ClassVar[bool] = False
    _normalised: ClassVar[bool] = True  # k(A, A) = 1, also for the empty set

    _rule: ClassVar[str] = ""  # what proves that this is a kernel

    @abstractmethod
    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return the kernel; `a` may be overwritten, and s and t are at least 1, or positive."""

    def _read(self, X: Any) -> Elements:
        return Elements(X, type(self).__name__, self._of_bags)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        elements = self._read(X)
        columns, width = (elements.columns, elements.width) if like is None else like.frame
        if like is not None and elements.width is not None and width not in (None, elements.width):
            raise ValueError(
                f"{type(self).__name__} compares sets from {width} and from {elements.width} "
                f"columns; both sides need the same elements"
            )
        phi = elements.at(columns)
        return Prepared((self._rows(phi), elements.sizes), frame=(columns, width))

    def _rows(self, phi: Any) -> Any:
        """Return the rows in the form in which products are the fastest."""
        if not sp.issparse(phi) and np.count_nonzero(phi) <= _FILLED * phi.size:
            phi = sp.csr_array(phi)
        elif sp.issparse(phi) and phi.nnz > _FILLED * np.prod(phi.shape):
            phi = phi.toarray()
        # counts are exact in single precision, up to 2^24
        return phi.astype(float) if sp.issparse(phi) else phi.astype(np.float32)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._shared(P.arrays[0], Q.arrays[0], out)
        self._finish(out, P.arrays[1], Q.arrays[1])

    def _shared(self, X: Any, Z: Any, out: np.ndarray) -> None:
        inner_products(X, Z, out)

    def _finish(self, out: np.ndarray, s: np.ndarray, t: np.ndarray) -> None:
        """Replace a by k(a, s, t)."""
        nothing, neither = s == 0, t == 0
        s, t = np.where(nothing, 1.0, s)[:, None], np.where(neither, 1.0, t)
        result = self.profile(out, s, t)
        if result is not out:
            out[...] = result
        if self._normalised and nothing.any() and neither.any():
            out[np.ix_(nothing, neither)] = 1.0

    def _diag(self, X: Any) -> np.ndarray:
        s = self._read(X).sizes
        if self._normalised:
            return np.ones_like(s)
        return np.asarray(self.profile(s.copy(), s, s))

    def _claims(self, *inner: Claims) -> Claims:
        order = 0 if self._rule else None
        return Claims(self._rule, order, nonnegative=True, unit_diagonal=self._normalised)

    @property
    def domain(self) -> str:
        """Sets or bags."""
        return "bags" if self._of_bags else "sets"

    @property
    def discrete(self) -> bool:
        return not self._of_bags

    @property
    def diagonal_bound(self) -> float:
        return 1.0 if self._normalised else np.inf


@node
class _Ratio(SetKernel):
    """k(A, B) = a / size(s, t): linear in the elements of B, once their number t is known."""

    @abstractmethod
    def _size(self, s: np.ndarray, t: Any) -> np.ndarray: ...

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        a /= self._size(s, t)
        return a

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        """Maximise f(z) over the sets z of elements that occur: for each size the best elements.

        If z has t elements, f(z) is a sum over them: the t of the greatest weights win.  |phi(z)|
        is 1, so that the nearest z has the greatest f(z).  A size t allows at most
        sum_i |C_i| s_i / size(s_i, t), which falls with t, and ends the search where it is too
        little.
        """
        elements = self._read(X)
        phi, s = sp.csr_array(elements.phi).astype(float), elements.sizes
        filled = np.where(s == 0, 1.0, s)
        best = C[s == 0].sum(axis=0)  # of the empty set
        chosen = np.zeros((C.shape[1], phi.shape[1]), dtype=bool)
        for t in range(1, phi.shape[1] + 1):
            rates = 1.0 / self._size(filled, float(t))
            undecided = np.flatnonzero((s * rates) @ np.abs(C) > best)
            if not undecided.size:
                break
            weights = np.asarray(phi.T @ (C[:, undecided] * rates[:, None])).T
            top = np.argsort(-weights, axis=1, kind="stable")[:, :t]
            values = np.take_along_axis(weights, top, axis=1).sum(axis=1)
            better = values > best[undecided]
            rows = undecided[better]
            best[rows], chosen[rows] = values[better], False
            chosen[rows[:, None], top[better]] = True
        return elements.like(chosen)


@node
class Intersection(SetKernel, Explicit):
    """k(A, B) = |A n B|, the number of elements that two sets share.

    Points are sets, or rows of zeros and ones.  `features` are the indicators of the elements.
    Cost: one sparse product.  The catch: large sets look similar to everything; `Jaccard` and
    `Ochiai` take their sizes out.  The pre-image of sum_i c_i k(A_i, .) is exact: the elements
    whose sum of c_i exceeds 1/2, for a mean those in more than half of the sets.

    Examples
    --------
    >>> from mercer.kernels import Intersection
    >>> Intersection()([{1, 2, 3}], [{2, 3, 4}, {"x"}, set()])
    array([[2., 0., 0.]])
    """

    _latex: ClassVar[str] = r"|x \cap z|"

    _normalised: ClassVar[bool] = False
    _rule: ClassVar[str] = f"{FEATURES}: indicators of the elements"

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return a

    def _terms(self, X: Any) -> Terms:
        return self._read(X).terms()

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        elements = self._read(X)
        # |z|^2 - 2 f(z) is a sum over the elements of z, of 1 - 2 (the sum of the C_i that have it)
        return elements.like(np.asarray(sp.csr_array(elements.phi).T @ C).T > 0.5)


@node
class Subsets(SetKernel):
    """k(A, B) = (1 + weight)^|A n B|, the number of common subsets, 2^|A n B| for weight 1.

    A common subset of m elements counts weight^m, the empty one 1.

    Parameters
    ----------
    weight : float, default=1.0
        Of an element of a subset, > 0.  Smaller ones tame large sets, whose k(A, A) = 2^|A| makes
        them similar to nothing but themselves.

    Notes
    -----
    Cost: one sparse product.  The catch: beyond 1000 shared elements 2^a overflows, which is
    refused.  References: Shawe-Taylor and Cristianini (2004), section 9.1.

    Examples
    --------
    >>> from mercer.kernels import Subsets
    >>> Subsets()([{1, 2, 3}], [{2, 3, 4}, set()])
    array([[4., 1.]])
    """

    weight: float = parameter(1.0)

    _normalised: ClassVar[bool] = False

    def _check(self) -> None:
        check_positive("Subsets", "weight", self.weight)

    def _claims(self, *inner: Claims) -> Claims:
        rule = f"exp, a {SERIES}, of a multiple of |A n B|"
        return Claims(rule, 0, nonnegative=True, infinitely_divisible=True)

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.power(1.0 + self.weight, a, out=a)

    def _read(self, X: Any) -> Elements:
        elements = super()._read(X)
        most = 1023 * np.log(2.0) / np.log1p(self.weight)
        if elements.sizes.max(initial=0.0) > most:
            place = int(np.argmax(elements.sizes))
            raise ValueError(
                f"Subsets: point {place} has {elements.sizes[place]:.0f} elements, and "
                f"{1 + self.weight:g} to that power overflows; take weight="
                f"{1 / elements.sizes[place]:.1g}, or Intersection"
            )
        return elements

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        shared = Intersection()(X, Z)
        return {
            "weight": np.sum(W * self(X, Z) * shared) * self.weight / (1.0 + self.weight),
        }


@node
class Jaccard(SetKernel):
    """k(A, B) = |A n B| / |A u B|, also called Tanimoto; two empty sets have 1.

    The usual kernel of binary fingerprints of molecules.  Cost: one sparse product, a few
    nanoseconds per pair for fingerprints of 50 bits.  The catch: a small set inside a large one is
    far from it.  References: Jaccard (1901), Gower (1971), Ralaivola et al. (2005).

    Examples
    --------
    >>> from mercer.kernels import Jaccard
    >>> Jaccard()([{1, 2, 3}, set()], [{2, 3, 4}, set()])
    array([[0.5, 0. ],
           [0. , 1. ]])
    >>> Jaccard()([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.3333]])
    """

    _latex: ClassVar[str] = r"\frac{|x \cap z|}{|x \cup z|}"
    _rule: ClassVar[str] = f"geometric series, a {SERIES}, of |A n B| / (|A| + |B|)"

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return _tanimoto(a, s, t)


@node
class Dice(_Ratio):
    """k(A, B) = 2 |A n B| / (|A| + |B|); two empty sets have 1.

    A monotone function of Jaccard, J -> 2J/(1 + J), with larger values.  Cost: one sparse product.
    The pre-image is exact.  References: Dice (1945); Gower (1971).

    Examples
    --------
    >>> from mercer.kernels import Dice
    >>> Dice()([{1, 2, 3}], [{2, 3, 4}]).round(4)
    array([[0.6667]])
    """

    _rule: ClassVar[str] = "product of |A n B| and 1/(s + t), the integral of e^(-us) e^(-ut)"

    def _size(self, s: np.ndarray, t: Any) -> np.ndarray:
        return 0.5 * (s + t)


@node
class Ochiai(_Ratio, Explicit):
    """k(A, B) = |A n B| / sqrt(|A| |B|), the cosine of indicators; two empty sets have 1.

    `features` are indicators divided by sqrt|A|, and one more feature for the empty set.  Cost: one
    sparse product.  The pre-image is exact.  Reference: Ochiai (1957).

    Examples
    --------
    >>> from mercer.kernels import Ochiai
    >>> Ochiai()([{1, 2}], [{1, 2, 3, 4, 5, 6, 7, 8}])
    array([[0.5]])
    """

    _rule: ClassVar[str] = f"{NORMALISED}, of |A n B|"

    def _size(self, s: np.ndarray, t: Any) -> np.ndarray:
        return np.sqrt(s * t)

    def _terms(self, X: Any) -> Terms:
        elements = self._read(X)
        terms, empty = elements.terms(), np.flatnonzero(elements.sizes == 0)
        nothing = Terms.counted(terms.n, empty, np.repeat(codes_of([()], "", ""), len(empty)))
        shares = terms.value / np.sqrt(elements.sizes[terms.owner])
        return Terms.joined(terms._replace(value=shares), nothing)


@node
class BraunBlanquet(_Ratio):
    """k(A, B) = |A n B| / max(|A|, |B|); two empty sets have 1.

    The smaller of the two shares that A and B have in common; the larger, the overlap coefficient,
    is no kernel (`Overlap`).  Cost: one sparse product.  The pre-image is exact.  Reference:
    Braun-Blanquet (1932).

    Examples
    --------
    >>> from mercer.kernels import BraunBlanquet
    >>> BraunBlanquet()([{1, 2, 3}], [{2, 3, 4, 5}])
    array([[0.5]])
    """

    _rule: ClassVar[str] = "product of |A n B| and min(1/s, 1/t)"

    def _size(self, s: np.ndarray, t: Any) -> np.ndarray:
        return np.maximum(s, t)


@node
class MinMax(SetKernel):
    """k(x, z) = sum_c min(x_c, z_c) / sum_c max(x_c, z_c), for bags x, z >= 0.

    Two empty bags have 1.  Points are dictionaries of counts (`collections.Counter`), or rows of
    numbers >= 0, dense or CSR.  For sets it is `Jaccard`.  Its numerator alone is
    `HistogramIntersection`.  Cost: for sparse rows one addition for each pair of entries in the
    same column, else d per pair.  The catch: scale matters, 2x is not x.
    References: Ralaivola et al. (2005); Ioffe (2010).

    Examples
    --------
    >>> from collections import Counter
    >>> from mercer.kernels import MinMax
    >>> MinMax()([[1, 2, 0]], [[2, 1, 1]])
    array([[0.4]])
    >>> MinMax()([Counter("abb")], [Counter("aabc")])
    array([[0.4]])
    """

    _of_bags: ClassVar[bool] = True
    _nonnegative: ClassVar[bool] = True
    _rule: ClassVar[str] = f"geometric series, a {SERIES}, of sum min(x, z) / (|x| + |z|)"

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return _tanimoto(a, s, t)

    def _rows(self, phi: Any) -> Any:
        return phi.astype(float)

    def _shared(self, X: Any, Z: Any, out: np.ndarray) -> None:
        HistogramIntersection()._statistic(Prepared((X,)), Prepared((Z,)), out)

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        x, z = self._read(X), self._read(X if Z is None else Z)
        if x.width is None:
            return super()._input_gradient(X, Z, W)
        # k = m/u with u = s + t - m, so that dk = (1/u + m/u^2) dm - m/u^2 ds, and ds/dx_c = 1
        m = HistogramIntersection()(X, Z)
        u = x.sizes[:, None] + z.sizes - m
        u[u == 0] = np.inf
        fall = W * m / u**2
        rise = HistogramIntersection().input_gradient(X, Z, W / u + fall)
        return rise - fall.sum(axis=1, keepdims=True)


def Overlap(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse |A n B| / min(|A|, |B|), the overlap coefficient: it is not positive semidefinite.

    For {1}, {2} and {1, 2} its matrix is [[1, 0, 1], [0, 1, 1], [1, 1, 1]], whose smallest
    eigenvalue is 1 - sqrt 2 = -0.414.  `BraunBlanquet`, with max in place of min, is a kernel.

    Examples
    --------
    >>> from mercer.kernels import Overlap
    >>> Overlap()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: the overlap coefficient |A n B| / min(|A|, |B|) is no Mercer kernel: ...
    """
    raise ValueError(
        "the overlap coefficient |A n B| / min(|A|, |B|) is no Mercer kernel: for the sets {1}, "
        "{2} and {1, 2} its matrix has the eigenvalue 1 - sqrt(2) = -0.414; use BraunBlanquet "
        "(max in place of min), Jaccard or Dice"
    )


def _tanimoto(a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    union = s + t
    union -= a
    a /= union
    return a
