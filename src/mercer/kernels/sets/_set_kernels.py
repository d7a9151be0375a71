"""Kernels for sets and bags (multisets): functions of the sizes of two sets and of their overlap.

    a = |A n B|,  s = |A|,  t = |B|        k(A, B) = a function of a, s and t

The points are Python sets, whose elements are numbers, strings or tuples of them, or the rows of a
matrix of zeros and ones, dense or CSR.  The elements of a row are the indices of its nonzero
columns: the row (1, 0, 1) is the set {0, 2}.  All values of a in a tile are computed by one matrix
product of indicator rows: sparse if at most 1/16 of the entries are nonzero, otherwise dense.

Proofs that these functions are Mercer kernels: a = <1_A, 1_B> is an inner product of indicators.
1/(s + t) is a kernel, because it is the integral of e^(-us) e^(-ut) over u > 0, and so is its
product with a, which is half of Dice.  Jaccard is sum_(m >= 1) (a/(s + t))^m.  In Braun-Blanquet,
1/max(s, t) = min(1/s, 1/t), and the minimum of two positive numbers is a kernel.  For bags,
sum_c min(x_c, z_c) replaces a (Gower 1971; Ralaivola et al. 2005; Ioffe 2010).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp

from ..._core import Points
from .._base import Kernel, node, parameter
from .._evaluation import ParameterGradients, Prepared
from .._parameter_checks import positive
from .._properties import FEATURES, NORMALISED, SERIES, Domain, Properties
from .._sparse_features import Explicit, FeatureTerms, hash_codes
from ..vectors._histogram import HistogramIntersection
from ..vectors._vector_kernel import inner_products
from ._set_encoding import SetEncoding

_MAX_SPARSE_DENSITY = 1 / 16  # fraction of nonzero entries above which a dense product is faster


@node
class SetKernel(Kernel):
    """Base class of kernels for sets and bags.

    k(A, B) = profile(a, s, t)   with a = |A n B|, s = |A| and t = |B|
    """

    _of_bags: ClassVar[bool] = False  # whether the points are bags (with counts) instead of sets
    _normalised: ClassVar[bool] = True  # whether k(A, A) = 1, also for the empty set

    _rule: ClassVar[str] = ""  # the reason why this is a Mercer kernel, shown in proofs

    @abstractmethod
    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return the kernel values, given the sizes of two sets and of their intersection.

        Parameters
        ----------
        a : ndarray of shape (n, m)
            The sizes |A n B| of the intersections, which may be overwritten.
        s : ndarray of shape (n, 1)
            The sizes |A|.  They are never 0: for empty sets, the size 1 is passed.
        t : ndarray of shape (m,)
            The sizes |B|, also never 0.

        Returns
        -------
        ndarray of shape (n, m)
            The kernel values, possibly in the memory of a.
        """

    def _encode(self, X: Points) -> SetEncoding:
        """Return the points as a matrix of counts, one column per element."""
        return SetEncoding(X, type(self).__name__, self._of_bags)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        elements = self._encode(X)
        columns, width = (elements.columns, elements.width) if like is None else like.frame
        if like is not None and elements.width is not None and width not in (None, elements.width):
            raise ValueError(
                f"{type(self).__name__} cannot compare sets with {width} columns and sets with "
                f"{elements.width} columns; both must have the same columns"
            )
        phi = elements.at(columns)
        return Prepared((self._rows(phi), elements.sizes), frame=(columns, width))

    def _rows(self, phi: Points) -> Points:
        """Return the rows as a sparse or dense matrix, whichever is faster in products."""
        if not sp.issparse(phi) and np.count_nonzero(phi) <= _MAX_SPARSE_DENSITY * phi.size:
            phi = sp.csr_array(phi)
        elif sp.issparse(phi) and phi.nnz > _MAX_SPARSE_DENSITY * np.prod(phi.shape):
            phi = phi.toarray()
        # float32 is exact for counts up to 2^24.
        return phi.astype(float) if sp.issparse(phi) else phi.astype(np.float32)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._overlap(P.arrays[0], Q.arrays[0], out)
        self._apply_profile(out, P.arrays[1], Q.arrays[1])

    def _overlap(self, X: Points, Z: Points, out: np.ndarray) -> None:
        """Write the sizes a of the intersections to `out`."""
        inner_products(X, Z, out)

    def _apply_profile(self, out: np.ndarray, s: np.ndarray, t: np.ndarray) -> None:
        """Replace the overlaps a in `out` by k = profile(a, s, t)."""
        s_empty, t_empty = s == 0, t == 0
        s, t = np.where(s_empty, 1.0, s)[:, None], np.where(t_empty, 1.0, t)
        result = self.profile(out, s, t)
        if result is not out:
            out[...] = result
        if self._normalised and s_empty.any() and t_empty.any():
            out[np.ix_(s_empty, t_empty)] = 1.0

    def _diag(self, X: Points) -> np.ndarray:
        s = self._encode(X).sizes
        if self._normalised:
            return np.ones_like(s)
        return np.asarray(self.profile(s.copy(), s, s))

    def _properties(self, *inner: Properties) -> Properties:
        order = 0 if self._rule else None
        return Properties(self._rule, order, nonnegative=True, unit_diagonal=self._normalised)

    def _domain(self, *inner: Domain) -> Domain:
        return Domain("bags" if self._of_bags else "sets", discrete=not self._of_bags)


@node
class SetRatio(SetKernel):
    """Base class of the kernels k(A, B) = |A n B| / size(|A|, |B|).

    For a given size of B, k is a sum over the elements of B.
    """

    @abstractmethod
    def _size(self, s: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        """Return the denominator size(s, t) for sets of s and t elements."""

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        a /= self._size(s, t)
        return a


@node
class Intersection(SetKernel, Explicit):
    """Intersection kernel: the number of elements that two sets have in common.

        k(A, B) = |A n B|

    Points are sets, or rows of zeros and ones.  The kernel has no parameters.

    See Also
    --------
    Jaccard : Relative to the size of the union; prefer it if sizes vary.
    Ochiai : Normalised, with explicit features.
    HistogramIntersection : The same for histograms.
    MinMax : For bags (sets with counts).

    Notes
    -----
    The kernel matrix is a product of sparse matrices.  `features` returns the indicators of the
    elements.  Values grow with the size of the sets; `Jaccard` and `Ochiai` divide by the sizes.
    The pre-image of sum_i c_i k(A_i, .) is exact: it contains an element if the coefficients c_i of
    the sets that contain it sum to more than 1/2.  The pre-image of a mean of sets thus contains
    the elements that occur in more than half of the sets.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, chapter 9.

    Examples
    --------
    >>> from mercer.kernels import Intersection
    >>> Intersection()([{1, 2, 3}], [{2, 3, 4}, {"x"}, set()])
    array([[2., 0., 0.]])
    """

    _normalised: ClassVar[bool] = False
    _rule: ClassVar[str] = f"{FEATURES}: indicators of the elements"

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return a

    def _terms(self, X: Points) -> FeatureTerms:
        return self._encode(X).terms()


@node
class Subsets(SetKernel):
    """Subsets kernel: the weighted number of subsets that two sets have in common.

        k(A, B) = (1 + weight)^|A n B|

    A common subset of m elements contributes weight^m, and the empty subset contributes 1.  With
    weight 1, this is the number of common subsets, 2^|A n B|.

    Parameters
    ----------
    weight : float, default=1.0
        The weight of each element of a subset, > 0.  Tunable.  For large sets and weight 1,
        k(A, A) = 2^|A| is so much larger than k(A, B) that a set is similar only to itself; choose
        a smaller weight then.

    See Also
    --------
    Intersection : Counts common elements instead of common subsets.
    Jaccard : Has no parameter, and k(A, A) = 1.

    Notes
    -----
    The kernel matrix is computed from a product of sparse matrices.  With weight 1, sets of more
    than 1023 elements raise an error, because 2^|A| overflows.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, chapter 9.

    Examples
    --------
    >>> from mercer.kernels import Subsets
    >>> Subsets()([{1, 2, 3}], [{2, 3, 4}, set()])
    array([[4., 1.]])
    """

    weight: float = parameter(1.0, positive)

    _normalised: ClassVar[bool] = False

    def _properties(self, *inner: Properties) -> Properties:
        rule = f"exp, a {SERIES}, of a multiple of |A n B|"
        return Properties(rule, 0, nonnegative=True, infinitely_divisible=True)

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        values: np.ndarray = np.power(1.0 + self.weight, a, out=a)
        return values

    def _encode(self, X: Points) -> SetEncoding:
        elements = super()._encode(X)
        max_size = 1023 * np.log(2.0) / np.log1p(self.weight)
        if elements.sizes.max(initial=0.0) > max_size:
            i = int(np.argmax(elements.sizes))
            raise ValueError(
                f"Subsets: point {i} has {elements.sizes[i]:.0f} elements, and "
                f"{1 + self.weight:g} to that power overflows; use a smaller weight, such as "
                f"{1 / elements.sizes[i]:.1g}, or Intersection"
            )
        return elements

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        overlap = Intersection()(X, Z)
        return {"weight": np.sum(W * self(X, Z) * overlap) * self.weight / (1.0 + self.weight)}


@node
class Jaccard(SetKernel):
    """Jaccard or Tanimoto kernel: the size of the intersection relative to that of the union.

        k(A, B) = |A n B| / |A u B|

    The value for two empty sets is 1.  The kernel has no parameters.  It is the usual kernel for
    binary fingerprints of molecules.

    See Also
    --------
    Dice : The same order of similarity, with larger values for small overlaps.
    MinMax : The same for counts.
    Ochiai : With explicit features, for linear models with many points.
    BraunBlanquet : Relative to the larger set.

    Notes
    -----
    The kernel matrix is computed from a product of sparse matrices, which takes a few nanoseconds
    per pair for fingerprints with 50 bits set.  The value for a small set that is contained in a
    large set is small.

    References
    ----------
    Jaccard, "Étude comparative de la distribution florale dans une portion des Alpes et des Jura",
    Bulletin de la Société Vaudoise des Sciences Naturelles 37, 1901. Gower, "A general coefficient
    of similarity and some of its properties", Biometrics 27, 1971 (positive semidefiniteness).
    Ralaivola, Swamidass, Saigo and Baldi, "Graph kernels for chemical informatics", Neural Networks
    18, 2005.

    Examples
    --------
    >>> from mercer.kernels import Jaccard
    >>> Jaccard()([{1, 2, 3}, set()], [{2, 3, 4}, set()])
    array([[0.5, 0. ],
           [0. , 1. ]])
    >>> Jaccard()([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.3333]])
    """

    _rule: ClassVar[str] = f"geometric series, a {SERIES}, of |A n B| / (|A| + |B|)"

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return _tanimoto(a, s, t)


@node
class Dice(SetRatio):
    """Dice kernel: the size of the intersection relative to the mean size of the two sets.

        k(A, B) = 2 |A n B| / (|A| + |B|)

    The value for two empty sets is 1.  The kernel has no parameters.

    See Also
    --------
    Jaccard : Relative to the union; the usual choice for fingerprints.
    Ochiai : The geometric instead of the arithmetic mean of the sizes.
    BraunBlanquet : The larger of the sizes.

    Notes
    -----
    If J is the Jaccard kernel, this is 2J / (1 + J) >= J, an increasing function of J.  The kernel
    matrix is computed from a product of sparse matrices.  Pre-images are exact.

    References
    ----------
    Dice, "Measures of the amount of ecologic association between species", Ecology 26, 1945. Gower,
    "A general coefficient of similarity and some of its properties", Biometrics 27, 1971 (positive
    semidefiniteness).

    Examples
    --------
    >>> from mercer.kernels import Dice
    >>> Dice()([{1, 2, 3}], [{2, 3, 4}]).round(4)
    array([[0.6667]])
    """

    _rule: ClassVar[str] = (
        "product of |A n B| and 1/(|A| + |B|), an integral of e^(-u|A|) e^(-u|B|)"
    )

    def _size(self, s: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        return 0.5 * (s + t)


@node
class Ochiai(SetRatio, Explicit):
    """Ochiai kernel: the cosine of the angle between the indicator vectors of two sets.

        k(A, B) = |A n B| / sqrt(|A| |B|)

    The value for two empty sets is 1.  The kernel has no parameters.

    See Also
    --------
    Cosine : The same for vectors.
    Dice : The arithmetic instead of the geometric mean of the sizes.
    Jaccard : Relative to the union.

    Notes
    -----
    `features` returns the indicators divided by sqrt(|A|), and one more feature for the empty set.
    The kernel matrix is a product of sparse matrices.  Pre-images are exact.

    References
    ----------
    Ochiai, "Zoogeographical studies on the soleoid fishes found in Japan and its neighbouring
    regions", Bulletin of the Japanese Society of Scientific Fisheries 22, 1957.

    Examples
    --------
    >>> from mercer.kernels import Ochiai
    >>> Ochiai()([{1, 2}], [{1, 2, 3, 4, 5, 6, 7, 8}])
    array([[0.5]])
    """

    _rule: ClassVar[str] = f"{NORMALISED}, of |A n B|"

    def _size(self, s: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        return np.sqrt(s * t)

    def _terms(self, X: Points) -> FeatureTerms:
        elements = self._encode(X)
        terms, empty = elements.terms(), np.flatnonzero(elements.sizes == 0)
        empty_terms = FeatureTerms.counted(
            terms.n, empty, np.repeat(hash_codes([()], "", ""), len(empty))
        )
        values = terms.value / np.sqrt(elements.sizes[terms.owner])
        return FeatureTerms.joined(terms._replace(value=values), empty_terms)


@node
class BraunBlanquet(SetRatio):
    """Braun-Blanquet kernel: the size of the intersection relative to that of the larger set.

        k(A, B) = |A n B| / max(|A|, |B|)

    The value for two empty sets is 1.  The kernel has no parameters.

    See Also
    --------
    Jaccard : Relative to the union.
    Dice : Relative to the mean of the sizes.
    Overlap : Relative to the smaller set; not a kernel.

    Notes
    -----
    With min in place of max this is the overlap coefficient, which is not a Mercer kernel (see
    `Overlap`).  The kernel matrix is computed from a product of sparse matrices.  Pre-images are
    exact.

    References
    ----------
    Braun-Blanquet, "Plant sociology: the study of plant communities", McGraw-Hill, 1932.

    Examples
    --------
    >>> from mercer.kernels import BraunBlanquet
    >>> BraunBlanquet()([{1, 2, 3}], [{2, 3, 4, 5}])
    array([[0.5]])
    """

    _rule: ClassVar[str] = "product of |A n B| and min(1/|A|, 1/|B|)"

    def _size(self, s: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        larger: np.ndarray = np.maximum(s, t)
        return larger


@node
class MinMax(SetKernel):
    """Min-max kernel for bags: the Jaccard kernel for counts or other non-negative values.

        k(x, z) = sum_c min(x_c, z_c) / sum_c max(x_c, z_c)

    Points are dictionaries of counts (`collections.Counter`), or rows of numbers >= 0, dense or
    CSR.  The value for two empty bags is 1.  The kernel has no parameters.

    See Also
    --------
    Jaccard : For sets; faster.
    HistogramIntersection : The numerator alone.
    Chi2 : For histograms, with a width that can be tuned.

    Notes
    -----
    For sets it equals `Jaccard`; its numerator is `HistogramIntersection`.  A pair of sparse rows
    takes one addition for each column in which both have an entry; a pair of dense rows takes one
    per column.  The value depends on the scale: k(x, 2x) = 1/2.  If only proportions matter,
    normalise the counts.

    References
    ----------
    Ralaivola, Swamidass, Saigo and Baldi, "Graph kernels for chemical informatics", Neural Networks
    18, 2005. Ioffe, "Improved consistent sampling, weighted minhash and L1 sketching", ICDM 2010.

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
    _rule: ClassVar[str] = f"geometric series, a {SERIES}, of sum min(x, z) / (|x| + |z|)"

    def profile(self, a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return _tanimoto(a, s, t)

    def _rows(self, phi: Points) -> Points:
        return phi.astype(float)

    def _overlap(self, X: Points, Z: Points, out: np.ndarray) -> None:
        HistogramIntersection()._statistic(Prepared((X,)), Prepared((Z,)), out)

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        x, z = self._encode(X), self._encode(X if Z is None else Z)
        if x.width is None:
            return super()._input_gradient(X, Z, W)
        # k = m/u with u = s + t - m, so that dk = (1/u + m/u^2) dm - m/u^2 ds with ds/dx_c = 1,
        # where m is the overlap and s and t are the sums of the counts of x and z.
        m = HistogramIntersection()(X, Z)
        u = x.sizes[:, None] + z.sizes - m
        u[u == 0] = np.inf
        size_weights = W * m / u**2
        gradient = HistogramIntersection().input_gradient(X, Z, W / u + size_weights)
        gradient_of_rows: np.ndarray = gradient - size_weights.sum(axis=1, keepdims=True)
        return gradient_of_rows


def Overlap(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise an error, because the overlap coefficient is not positive semidefinite.

        |A n B| / min(|A|, |B|)

    For the sets {1}, {2} and {1, 2} its matrix is [[1, 0, 1], [0, 1, 1], [1, 1, 1]], whose smallest
    eigenvalue is 1 - sqrt(2) = -0.414.  `BraunBlanquet`, with max in place of min, is a kernel.

    Parameters
    ----------
    *args : object
        Ignored.
    **kwargs : object
        Ignored.

    Raises
    ------
    ValueError
        Always.  The message names kernels to use instead.

    See Also
    --------
    BraunBlanquet : Relative to the larger set.
    Jaccard : Relative to the union.
    Dice : Relative to the mean of the sizes.

    References
    ----------
    Simpson, "Mammals and the nature of continents", American Journal of Science 241, 1943.

    Examples
    --------
    >>> from mercer.kernels import Overlap
    >>> Overlap()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: the overlap coefficient |A n B| / min(|A|, |B|) is not a Mercer kernel: ...
    """
    raise ValueError(
        "the overlap coefficient |A n B| / min(|A|, |B|) is not a Mercer kernel: for the sets {1}, "
        "{2} and {1, 2} its matrix has the eigenvalue 1 - sqrt(2) = -0.414; use BraunBlanquet "
        "(max in place of min), Jaccard or Dice"
    )


def _tanimoto(a: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return a / (s + t - a), the overlap relative to the size of the union, overwriting a."""
    union = s + t
    union -= a
    a /= union
    return a
