"""One-vs-one classification: a function for each pair of classes, in the layout of LIBSVM.

With q classes there are q (q - 1) / 2 functions.  A support vector of class a has q - 1
coefficients, one for each other class b: in row b - 1 of `dual_coef_` if b > a, otherwise in row b.
So each k(x, x_i) is evaluated once and used in q - 1 sums, not in q (q - 1) / 2.  Estimators with a
single function (regression, one-class) are the case q = 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ..._core import Points, length, take
from ...expansion import Expansion, cross_kernel_cached
from ...gram import gram
from ...kernels import Kernel, Linear

# Up to this many entries (2 MB), k(X, support vectors) is evaluated as one array; a larger matrix
# is evaluated class by class, in tiles.
_MAX_STORED_ENTRIES = 2**18

# Up to this many entries of K (about one row), one reduction over all classes is faster than a
# matrix product for each class, because the overhead of the calls dominates.
_MAX_ENTRIES_REDUCEAT = 2**10

Pair = tuple[int, int]


@lru_cache(maxsize=64)
def class_pairs(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second class of each pair of q classes, as two index arrays."""
    return np.triu_indices(q, 1)


@lru_cache(maxsize=64)
def _contribution_indices(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each pair of classes, the flat indices of its two terms in a (q - 1, q) array.

    The decision function of a pair is the sum of two terms, one from the points of each class.
    Column c of the array contains the terms of class c, one for each pair that includes c.
    """
    a, b = class_pairs(q)
    return (b - 1) * q + a, a * q + b


@dataclass(frozen=True, eq=False)
class Pairs:
    """The training points of each pair of classes, in the order of LIBSVM.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        The class 0, ..., q - 1 of each point.
    q : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.support_vector._one_vs_one import Pairs
    >>> pairs = Pairs(np.array([0, 1, 2]), 3)
    >>> list(pairs)
    [(0, 1), (0, 2), (1, 2)]
    >>> pairs.members((0, 2))
    array([0, 2])
    >>> pairs.functions(np.array([[1.0, 4.0], [-2.0, 5.0], [-3.0, -6.0]]))
    array([[ 1.,  4.,  0.],
           [-2.,  0.,  5.],
           [ 0., -3., -6.]])
    """

    labels: np.ndarray
    q: int

    def __iter__(self) -> Iterator[Pair]:
        return combinations(range(self.q), 2)

    def __len__(self) -> int:
        return self.q * (self.q - 1) // 2

    def members(self, pair: Pair) -> np.ndarray:
        """Return the indices of the points of both classes of a pair."""
        if self.q == 2:
            return np.arange(len(self.labels))
        return np.concatenate([self._order[self._ends[c] : self._ends[c + 1]] for c in pair])

    @cached_property
    def _order(self) -> np.ndarray:
        """The indices of the points, sorted by class."""
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def _ends(self) -> np.ndarray:
        """The number of points of all classes before each class, followed by that of all points."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.labels, minlength=self.q))])

    @cached_property
    def all_members(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The indices, columns and signs of the points of all pairs, concatenated.

        The column is where the coefficient is stored in the transpose of `dual_coef_`.  The sign is
        +1 for the class for which f is positive: the second class if there are only two, otherwise
        the first of the pair.
        """
        n, q = len(self.labels), self.q
        if q == 2:
            signs = np.where(self.labels == 1, 1.0, -1.0)
            return np.arange(n), np.zeros(n, dtype=np.intp), signs
        ends, (a, b) = self._ends, class_pairs(q)
        classes = np.stack([a, b], axis=1).ravel()
        sizes = np.diff(ends)[classes]
        stops = np.cumsum(sizes)
        positions = np.repeat(ends[classes] - stops + sizes, sizes) + np.arange(stops[-1])
        members = self._order[positions]
        columns = np.repeat(np.stack([b - 1, a], axis=1).ravel(), sizes)
        return members, columns, np.repeat(np.tile([1.0, -1.0], len(a)), sizes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of points of each pair."""
        if self.q == 2:
            return np.array([len(self.labels)])
        counts, (a, b) = np.diff(self._ends), class_pairs(self.q)
        return counts[a] + counts[b]

    def functions(self, D: np.ndarray) -> np.ndarray:
        """Return the coefficients of the function of each pair, shape (n, n_pairs).

        D is the transpose of `dual_coef_`.
        """
        (a, b), pair_index = class_pairs(self.q), np.empty((self.q, self.q - 1), dtype=int)
        pair_index[a, b - 1] = pair_index[b, a] = np.arange(len(self))
        A = np.zeros((len(D), len(self)))
        np.put_along_axis(A, pair_index[self.labels], D, axis=1)
        return A


class PairExpansion(Expansion):
    """The functions of all pairs of classes, on support vectors that are sorted by class.

    They are evaluated class by class, because most coefficients are 0.

    Parameters
    ----------
    kernel : Kernel
        The resolved kernel.
    points : points
        The support vectors.
    dual : ndarray of shape (n, q - 1)
        The transpose of `dual_coef_`, which has the layout of LIBSVM.
    n_support : ndarray of int
        Number of support vectors of each class; a single number for a single function.
    owner : object, optional
        The model to which the support vectors belong.  It is the key of the cache of prepared
        points, so that an expansion can be created for each prediction.
    """

    dual: np.ndarray
    owner: object = None

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        dual: np.ndarray,
        n_support: np.ndarray,
        owner: object = None,
    ) -> None:
        # Other attributes are computed on demand only, because predictions do not need them.
        self.__dict__.update(
            kernel=kernel, points=points, dual=dual, n_support=n_support, owner=owner
        )

    def __getstate__(self) -> dict[str, Any]:
        # `n_support` is computed from `pairs`, which is part of the file format.
        return {
            "kernel": self.kernel,
            "points": self.points,
            "dual": self.dual,
            "pairs": self.pairs,
        }

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of classes of the support vectors."""
        q = len(self.n_support)
        return Pairs(np.repeat(np.arange(q), self.n_support), max(q, 2))

    @cached_property
    def n_support(self) -> np.ndarray:
        """The number of support vectors of each class."""
        return np.bincount(self.pairs.labels, minlength=self.pairs.q)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the function of each pair of classes, shape (n, n_pairs)."""
        return self.dual if self.dual.shape[1] == 1 else self.pairs.functions(self.dual)

    def __call__(self, X: Points, *, n_threads: int | None = None) -> np.ndarray:
        kernel, points, dual = self.kernel, self.points, self.dual
        if isinstance(kernel, Linear):
            return np.asarray(X @ (points.T @ self.coefficients))
        if length(X) * len(dual) <= _MAX_STORED_ENTRIES:
            dense = isinstance(X, np.ndarray) and isinstance(points, np.ndarray) and len(dual)
            if dense and kernel.domain.on_vectors:
                owner = self if self.owner is None else self.owner
                K = cross_kernel_cached(owner, kernel, X, points)
            else:
                K = gram(kernel, X, points, n_threads=n_threads).to_array()
            return values_of_pairs(K, dual.T, self.n_support)
        if dual.shape[1] == 1:
            return np.asarray(gram(kernel, X, points, n_threads=n_threads) @ dual)
        terms = np.zeros((length(X), dual.shape[1], len(self.n_support)))
        for c, part in enumerate(_class_slices(self.n_support)):
            if part.stop > part.start:
                own = gram(kernel, X, take(points, part), n_threads=n_threads)
                terms[:, :, c] = own @ dual[part]
        return _sum_contributions(terms)


def _class_slices(n_support: np.ndarray) -> list[slice]:
    """Return the slice of the support vectors of each class."""
    return [slice(a, b) for a, b in pairwise([0, *np.cumsum(n_support).tolist()])]


def values_of_pairs(K: np.ndarray, dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return the values of the functions of all pairs of classes, shape (n, n_pairs).

    K is the kernel matrix between the points and the support vectors.
    """
    if len(dual_coef) == 1:
        return K @ dual_coef.T
    if K.size <= _MAX_ENTRIES_REDUCEAT and n_support.all():
        starts = np.cumsum(n_support) - n_support
        return _sum_contributions(np.add.reduceat(K[:, None] * dual_coef, starts, axis=2))
    terms = [K[:, part] @ dual_coef[:, part].T for part in _class_slices(n_support)]
    return _sum_contributions(np.stack(terms, axis=2))


def _sum_contributions(G: np.ndarray) -> np.ndarray:
    """Return the values of the functions of all pairs of classes, shape (n, n_pairs).

    G has shape (n, q - 1, q) for q classes; G[:, :, c] are the contributions of class c to its
    q - 1 functions.
    """
    first, second = _contribution_indices(G.shape[2])
    G = G.reshape(len(G), -1)
    return G.take(first, axis=1) + G.take(second, axis=1)


def votes_of_pairs(values: np.ndarray, q: int) -> np.ndarray:
    """Return the number of votes for each class, shape (n, q).

    The function of a pair votes for the first class if its value is positive, otherwise for the
    second.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.support_vector._one_vs_one import votes_of_pairs
    >>> votes_of_pairs(np.array([[1.0, -1.0, 0.0]]), 3)  # 0 beats 1, 2 beats 0, 2 beats 1
    array([[1., 0., 2.]])
    """
    first, second = class_pairs(q)
    rows = q * np.arange(len(values))[:, None]
    winners = np.where(values > 0, first, second) + rows
    return np.bincount(winners.ravel(), minlength=q * len(values)).reshape(-1, q).astype(float)
