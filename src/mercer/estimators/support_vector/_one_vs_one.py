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

from ..._core import length, take
from ...expansion import Expansion
from ...gram import gram
from ...kernels import Kernel

__all__ = [
    "MAX_STORED_ENTRIES",
    "Pair",
    "PairExpansion",
    "Pairs",
    "class_pairs",
    "expansion_of_pairs",
    "values_of_pairs",
    "votes_of_pairs",
]

# Up to this many entries (2 MB), k(X, support vectors) is evaluated as one array; a larger matrix
# is evaluated class by class, in tiles.
MAX_STORED_ENTRIES = 2**18

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
        The class 0, ..., q - 1 of each point; sorted if q > 2.
    q : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.support_vector._one_vs_one import Pairs
    >>> pairs = Pairs(np.array([0, 1, 2]), 3)
    >>> list(pairs)
    [(0, 1), (0, 2), (1, 2)]
    >>> pairs.members((0, 2)), pairs.signs((0, 2))
    (array([0, 2]), array([ 1., -1.]))
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
        a, b = (np.arange(*np.searchsorted(self.labels, [c, c + 1])) for c in pair)
        return np.concatenate([a, b])

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
        ends = np.searchsorted(self.labels, np.arange(q + 1))
        a, b = class_pairs(q)
        classes = np.stack([a, b], axis=1).ravel()
        sizes = np.diff(ends)[classes]
        stops = np.cumsum(sizes)
        members = np.repeat(ends[classes] - stops + sizes, sizes) + np.arange(stops[-1])
        columns = np.repeat(np.stack([b - 1, a], axis=1).ravel(), sizes)
        return members, columns, np.repeat(np.tile([1.0, -1.0], len(a)), sizes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of points of each pair."""
        if self.q == 2:
            return np.array([len(self.labels)])
        counts = np.bincount(self.labels, minlength=self.q)
        a, b = class_pairs(self.q)
        return counts[a] + counts[b]

    def signs(self, pair: Pair) -> np.ndarray:
        """Return the signs y_i of the points of a pair.

        They are +1 for the class for which f is positive: the second class if there are only two,
        otherwise the first of the pair.
        """
        positive = 1 if self.q == 2 else pair[0]
        return np.where(self.labels[self.members(pair)] == positive, 1.0, -1.0)

    def class_slices(self) -> list[slice]:
        """Return the slice of the points of each class; the points must be sorted by class."""
        ends = np.searchsorted(self.labels, np.arange(self.q + 1))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

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
    """The functions of all pairs of classes, evaluated by class as most coefficients are 0."""

    pairs: Pairs
    dual: np.ndarray  # transpose of `dual_coef_`, of shape (n, q - 1)

    def __init__(self, kernel: Kernel, points: Any, dual: np.ndarray, pairs: Pairs) -> None:
        # `coefficients` is computed on demand only, because predictions do not need it.
        self.__dict__.update(kernel=kernel, points=points, dual=dual, pairs=pairs)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the function of each pair of classes, shape (n, n_pairs)."""
        return self.pairs.functions(self.dual)

    def __call__(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        K: Any = None
        if length(X) * length(self.points) <= MAX_STORED_ENTRIES:
            K = gram(self.kernel, X, self.points, n_threads=n_threads).to_array()

        def contribution(class_slice: slice) -> np.ndarray:
            if class_slice.start == class_slice.stop:
                return np.zeros((length(X), self.pairs.q - 1))
            rows: Any = None if K is None else K[:, class_slice]
            if K is None:
                rows = gram(self.kernel, X, take(self.points, class_slice), n_threads=n_threads)
            return np.asarray(rows @ self.dual[class_slice])

        return _sum_contributions(
            np.stack(list(map(contribution, self.pairs.class_slices())), axis=2)
        )


def expansion_of_pairs(
    kernel: Kernel, points: Any, dual_coef: np.ndarray, n_support: np.ndarray
) -> Expansion:
    """Return the functions of all pairs of classes; support vectors are sorted by class.

    Parameters
    ----------
    kernel : Kernel
        The resolved kernel.
    points : points
        The support vectors.
    dual_coef : ndarray of shape (q - 1, n_support_vectors)
        Coefficients in the layout of LIBSVM.
    n_support : ndarray of shape (q,)
        Number of support vectors of each class.
    """
    if len(dual_coef) == 1:
        return Expansion(kernel, points, dual_coef.T)
    q = len(n_support)
    pairs = Pairs(np.repeat(np.arange(q), n_support), q)
    return PairExpansion(kernel, points, dual_coef.T, pairs)


def values_of_pairs(K: np.ndarray, dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return the values of the functions of all pairs of classes, shape (n, n_pairs).

    K is the kernel matrix between the points and the support vectors.
    """
    if len(dual_coef) == 1:
        return K @ dual_coef.T
    ends = np.cumsum(n_support)
    if K.size <= _MAX_ENTRIES_REDUCEAT and n_support.all():
        return _sum_contributions(np.add.reduceat(K[:, None] * dual_coef, ends - n_support, axis=2))
    class_slices = [slice(e - s, e) for s, e in zip(n_support.tolist(), ends.tolist(), strict=True)]
    return _sum_contributions(
        np.stack([K[:, part] @ dual_coef[:, part].T for part in class_slices], axis=2)
    )


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
