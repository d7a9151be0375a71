"""The q (q - 1) / 2 functions of q classes, one for each pair, and LIBSVM's layout of them.

A support vector of class a has q - 1 coefficients, one for each other class b: in row b - 1 of
`dual_coef_` if b > a, else in row b.  So k(x, x_i) is evaluated once and summed q - 1 times, not
q (q - 1) / 2 times.  A machine of one function is the case q = 2, whatever its points are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ..._points import length, take
from ...expansion import Expansion
from ...gram import gram
from ...kernels import Kernel

__all__ = [
    "FEW_ENTRIES",
    "Pair",
    "PairExpansion",
    "Pairs",
    "couples",
    "expansion_of_pairs",
    "values_of_pairs",
    "votes_of_pairs",
]

FEW_ENTRIES = 2**18  # a k(X, support vectors) that small is held, and not evaluated by class

_ONE_ROW = 2**10  # a K of about one row: a product for each class would be mostly calls

Pair = tuple[int, int]


@lru_cache(maxsize=64)
def couples(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second class of each pair."""
    return np.triu_indices(q, 1)


@lru_cache(maxsize=64)
def _both(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the two parts of each f stand among all that q classes add, (q - 1, q)."""
    a, b = couples(q)
    return (b - 1) * q + a, a * q + b


@dataclass(frozen=True, eq=False)
class Pairs:
    """Points of q classes, 0, ... q - 1, by pairs of classes in LIBSVM's order.

    Points of more than two classes are sorted by class.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.svm._pairs import Pairs
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
        """Return the places of the points of both classes."""
        if self.q == 2:
            return np.arange(len(self.labels))
        a, b = (np.arange(*np.searchsorted(self.labels, [c, c + 1])) for c in pair)
        return np.concatenate([a, b])

    @cached_property
    def everybody(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points of all pairs, one pair after the other, their columns, and their signs.

        A column of the transpose of `dual_coef_` is where the coefficient of the point stands; the
        sign is +1 for the class whose f is positive: the second of two, else the first.
        """
        n, q = len(self.labels), self.q
        if q == 2:
            signs = np.where(self.labels == 1, 1.0, -1.0)
            return np.arange(n), np.zeros(n, dtype=np.intp), signs
        ends = np.searchsorted(self.labels, np.arange(q + 1))
        a, b = couples(q)
        classes = np.stack([a, b], axis=1).ravel()
        sizes = np.diff(ends)[classes]
        after = np.cumsum(sizes)
        members = np.repeat(ends[classes] - after + sizes, sizes) + np.arange(after[-1])
        columns = np.repeat(np.stack([b - 1, a], axis=1).ravel(), sizes)
        return members, columns, np.repeat(np.tile([1.0, -1.0], len(a)), sizes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many points each pair has."""
        if self.q == 2:
            return np.array([len(self.labels)])
        counts = np.bincount(self.labels, minlength=self.q)
        a, b = couples(self.q)
        return counts[a] + counts[b]

    def signs(self, pair: Pair) -> np.ndarray:
        """Return +1 for the class whose f is positive: the second of two, else the first."""
        positive = 1 if self.q == 2 else pair[0]
        return np.where(self.labels[self.members(pair)] == positive, 1.0, -1.0)

    def parts(self) -> list[slice]:
        """Return the points of each class, if they are sorted by class."""
        ends = np.searchsorted(self.labels, np.arange(self.q + 1))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def functions(self, D: np.ndarray) -> np.ndarray:
        """Return the coefficients of each f, (n, pairs), from the transpose of `dual_coef_`."""
        (a, b), numbers = couples(self.q), np.empty((self.q, self.q - 1), dtype=int)
        numbers[a, b - 1] = numbers[b, a] = np.arange(len(self))
        A = np.zeros((len(D), len(self)))
        np.put_along_axis(A, numbers[self.labels], D, axis=1)
        return A


class PairExpansion(Expansion):
    """The functions of all pairs, evaluated class by class: most coefficients are 0."""

    pairs: Pairs
    dual: np.ndarray  # (n, q - 1), the transpose of `dual_coef_`

    def __init__(self, kernel: Kernel, points: Any, dual: np.ndarray, pairs: Pairs) -> None:
        # A prediction for a few points must not wait for the coefficients of all pairs.
        self.__dict__.update(kernel=kernel, points=points, dual=dual, pairs=pairs)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """The coefficients of each f, (n, pairs)."""
        return self.pairs.functions(self.dual)

    def __call__(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        K: Any = None
        if length(X) * length(self.points) <= FEW_ENTRIES:
            K = gram(self.kernel, X, self.points, n_threads=n_threads).to_array()

        def part(own: slice) -> np.ndarray:
            if own.start == own.stop:
                return np.zeros((length(X), self.pairs.q - 1))
            rows: Any = None if K is None else K[:, own]
            if K is None:
                rows = gram(self.kernel, X, take(self.points, own), n_threads=n_threads)
            return np.asarray(rows @ self.dual[own])

        return _joined(np.stack(list(map(part, self.pairs.parts())), axis=2))


def expansion_of_pairs(
    kernel: Kernel, points: Any, dual_coef: np.ndarray, n_support: np.ndarray
) -> Expansion:
    """Return the functions of all pairs, on support vectors that are sorted by class."""
    if len(dual_coef) == 1:
        return Expansion(kernel, points, dual_coef.T)
    q = len(n_support)
    pairs = Pairs(np.repeat(np.arange(q), n_support), q)
    return PairExpansion(kernel, points, dual_coef.T, pairs)


def values_of_pairs(K: np.ndarray, dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return each f from K = k(X, support vectors); all f at once, for a few X and vectors."""
    if len(dual_coef) == 1:
        return K @ dual_coef.T
    ends = np.cumsum(n_support)
    if K.size <= _ONE_ROW and n_support.all():
        return _joined(np.add.reduceat(K[:, None] * dual_coef, ends - n_support, axis=2))
    own = [slice(e - s, e) for s, e in zip(n_support.tolist(), ends.tolist(), strict=True)]
    return _joined(np.stack([K[:, part] @ dual_coef[:, part].T for part in own], axis=2))


def _joined(G: np.ndarray) -> np.ndarray:
    """Return each f, (n, pairs), from what each class adds to those it is in, (n, q - 1, q)."""
    first, second = _both(G.shape[2])
    G = G.reshape(len(G), -1)
    return G.take(first, axis=1) + G.take(second, axis=1)


def votes_of_pairs(values: np.ndarray, q: int) -> np.ndarray:
    """Return how many functions are for each class, (n, q): f > 0 for the first, else the second.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.svm._pairs import votes_of_pairs
    >>> votes_of_pairs(np.array([[1.0, -1.0, 0.0]]), 3)  # 0 beats 1, 2 beats 0, 2 beats 1
    array([[1., 0., 2.]])
    """
    first, second = couples(q)
    rows = q * np.arange(len(values))[:, None]
    winners = np.where(values > 0, first, second) + rows
    return np.bincount(winners.ravel(), minlength=q * len(values)).reshape(-1, q).astype(float)
