"""Kernels of words that differ a little: functionals of one profile of Hamming distances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import combinations, product
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._runtime import jit
from ._base import node
from ._explicit import Explicit, Terms, mix
from ._prepared import Prepared
from ._sequences import (
    OnStrings,
    Sequences,
    chained,
    check_count,
    sequences,
    strings_of,
    symbols_of,
    words,
)

__all__ = ["Gapped", "HammingProfile", "Mismatch"]

_FEW = 100  # features of a word up to which sparse products are quicker than comparing all pairs


class _Windows(NamedTuple):
    """The symbols of a collection, and 128 where a word begins that does not count."""

    symbols: np.ndarray
    blocked: np.ndarray
    kind: str


@node
class HammingProfile(OnStrings, Explicit):
    """k(s, t) = sum_d w_d N_d(s, t), N_d = #(pairs of words of s and t that differ in d places).

    A node gives the length of the words, `_weights`, and its features.  If a word has few of them,
    K is their sparse product; otherwise N is counted pair by pair, in |s| |t| steps, whatever the
    alphabet and the number of features.
    """

    @abstractmethod
    def _weights(self) -> np.ndarray:
        """Return w_0, ..., w_D; further ones are 0."""

    @abstractmethod
    def _spread(self) -> int:
        """Return how many features a word has."""

    @abstractmethod
    def _features_of_words(
        self, letters: np.ndarray, S: Sequences
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield features of words, given by the codes of their letters, shape (words, length).

        Each is a mask of the words that have it, and their codes.
        """

    def _blocked(self, S: Sequences) -> np.ndarray:
        """Return 128 for every place where a word begins that does not count, 0 elsewhere."""
        g = self._shortest()[1]
        outside = np.append(~self._reads(S), np.zeros(g, dtype=bool))
        holds_one = np.any(sliding_window_view(outside, g)[: len(S.symbols)], axis=1)
        return np.where(holds_one, 128, 0).astype(np.uint8)

    def _terms(self, X: Any) -> Terms:
        S = sequences(X, type(self).__name__)
        g = self._shortest()[1]
        *_, w = words(S, g)
        kept = self._blocked(S)[w.place] == 0
        owner, place, code = w.owner[kept], w.place[kept], w.code[kept]
        _, first, word = np.unique(code, return_index=True, return_inverse=True)
        letters = mix(S.symbols.view(np.uint64))[place[first][:, None] + np.arange(g)]
        parts = []
        for has, codes in self._features_of_words(letters, S):
            of_word = np.zeros(len(first), dtype=np.uint64)
            of_word[has] = codes
            mine = np.broadcast_to(has, len(first))[word]
            parts.append(Terms.counted(len(S), owner[mine], of_word[word[mine]], S.kind))
        return Terms.joined(*parts)

    @property
    def _by_features(self) -> bool:
        return self._spread() <= _FEW

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        if self._by_features:
            return super()._prepare(X, like)
        S = sequences(X, type(self).__name__, like.frame.kind if like is not None else "")
        small = S.kind != "sequences" and S.symbols.max(initial=0) < 256
        symbols = S.symbols.astype(np.uint8) if small else S.symbols
        spans = np.column_stack([S.starts, S.lengths])
        return Prepared((spans,), frame=_Windows(symbols, self._blocked(S), S.kind))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if self._by_features:
            super()._tile(P, Q, out)
        else:
            self._tile_by_pairs(P, Q, out)

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if self._by_features:
            return super()._pairs(P, Q, i, j)
        x, z = P.frame.symbols, Q.frame.symbols
        if x.dtype != z.dtype:
            x, z = x.astype(np.int64), z.astype(np.int64)
        return _profiles(
            self._shortest()[1],
            self._weights(),
            x,
            P.frame.blocked,
            P.arrays[0][i],
            z,
            Q.frame.blocked,
            Q.arrays[0][j],
        )

    def _diag(self, X: Any) -> np.ndarray:
        if self._by_features:
            return super()._diag(X)
        return self._diag_prepared(self._prepare(X, None))

    @property
    def costly(self) -> bool:
        return not self._by_features


@node
class Gapped(HammingProfile):
    """k(s, t) = sum_d C(g - d, k) N_d(s, t), N_d = #(pairs of g-words that differ in d places).

    The same is the sum over all choices of k of g places of the number of pairs of g-words that
    agree there: a feature is a word of length g with g - k holes.

    Parameters
    ----------
    g : int
        The length of the words, up to 127.
    k : int
        How many of their places are read, up to g.

    Notes
    -----
    Ghandi, Lee, Mohammad-Noori and Beer, "Enhanced regulatory sequence prediction using gapped
    k-mer features", PLoS Computational Biology 2014; FastSK writes m = g - k.  A word has C(g, k)
    features: up to 100 of them K is a sparse product, otherwise pairs take |s| |t| steps each.
    Any alphabet, and no need to know it.  Use it as `Normalized(Gapped(...))`.

    Examples
    --------
    >>> from mercer.kernels import Gapped
    >>> Gapped(3, 2)(["CAT"], ["CAT", "CUT", "DOG"])  # C(3, 2), C(2, 2), 0
    array([[3., 1., 0.]])
    """

    g: int = 6
    k: int = 4

    def _check(self) -> None:
        check_count("Gapped", "g", self.g)
        check_count("Gapped", "k", self.k)
        if self.k > self.g or self.g > 127:
            raise ValueError(
                f"Gapped reads k of g <= 127 places, got g={self.g!r} and k={self.k!r}"
            )

    def _shortest(self) -> tuple[str, int]:
        return "g", self.g

    def _weights(self) -> np.ndarray:
        return np.array([comb(self.g - d, self.k) for d in range(self.g - self.k + 1)], dtype=float)

    def _spread(self) -> int:
        return comb(self.g, self.k)

    def _features_of_words(
        self, letters: np.ndarray, S: Sequences
    ) -> Iterator[tuple[Any, np.ndarray]]:
        for salt, places in enumerate(combinations(range(self.g), self.k)):
            yield np.True_, chained(letters[:, places], salt)


@node
class Mismatch(HammingProfile):
    """k(s, t) = sum over k-words u over the alphabet of phi_u(s) phi_u(t).

    phi_u(s) = #(words of s that differ from u in at most m places).  With N_d the number of pairs
    of k-words that differ in d places, k(s, t) = sum_d w_d N_d(s, t), where w_d is how many words u
    are within m places of both of two words that differ in d.

    Parameters
    ----------
    k : int
        The length of the words, up to 127.
    m : int
        How many places may differ, less than k.
    alphabet : str, bytes or tuple of symbols, optional
        The letters of which words u are made: their number is part of the kernel.  None: those of
        the training strings (`resolve`).  A word of s with a symbol outside of it, such as N in
        DNA, or one that training never saw, counts for no u.

    Notes
    -----
    Leslie, Eskin, Cohen, Weston and Noble, "Mismatch string kernels for discriminative protein
    classification", Bioinformatics 2004.  A word has sum_(j <= m) C(k, j) (|alphabet| - 1)^j
    features: up to 100 of them K is a sparse product, otherwise pairs take |s| |t| steps each.

    Examples
    --------
    >>> from mercer.kernels import Mismatch
    >>> Mismatch(3, 1, "ACGT")(["AAA"], ["AAA", "AAC", "ACC", "CCC"])
    array([[10.,  4.,  2.,  0.]])
    >>> Mismatch(5, 1).resolve(["GATTACA"])
    Mismatch(k=5, m=1, alphabet='ACGT')
    """

    k: int = 3
    m: int = 1
    alphabet: Any = None

    def _check(self) -> None:
        check_count("Mismatch", "k", self.k)
        check_count("Mismatch", "m", self.m, least=0)
        if self.m >= self.k or self.k > 127:
            raise ValueError(
                f"Mismatch lets m < k of k <= 127 places differ, got k={self.k!r} and m={self.m!r}"
            )
        if self.alphabet is None:
            return
        if isinstance(self.alphabet, list):
            object.__setattr__(self, "alphabet", tuple(self.alphabet))
        if not isinstance(self.alphabet, (str, bytes, tuple)) or not self.alphabet:
            raise TypeError(
                f"Mismatch: alphabet must be the letters, such as 'ACGT', got {self.alphabet!r}"
            )
        if len(set(self.alphabet)) < len(self.alphabet):
            raise ValueError(f"Mismatch: alphabet {self.alphabet!r} names a letter twice")

    def _rules(self) -> list[str]:
        return ["alphabet"] if self.alphabet is None else []

    def _resolve_own(self, X: Any, weights: np.ndarray | None) -> dict[str, Any]:
        if self.alphabet is not None:
            return {}
        S = sequences(X, "Mismatch")
        symbols, first = np.unique(S.symbols, return_index=True)
        if S.kind == "str":
            return {"alphabet": "".join(map(chr, symbols.tolist()))}
        if S.kind == "bytes":
            return {"alphabet": bytes(symbols.tolist())}
        owner = np.searchsorted(S.starts + S.lengths, first, side="right")
        points = strings_of(X, "Mismatch")
        letters = [points[i][j] for i, j in zip(owner, first - S.starts[owner], strict=True)]
        return {"alphabet": tuple(v.item() if isinstance(v, np.generic) else v for v in letters)}

    def _shortest(self) -> tuple[str, int]:
        return "k", self.k

    def _weights(self) -> np.ndarray:
        k, m, letters = self.k, self.m, len(self.alphabet)
        w = np.zeros(min(2 * m, k) + 1)
        for d in range(len(w)):
            for a, b, c in product(range(d + 1), range(d + 1), range(k - d + 1)):
                # u is the first word at a of the d places, the second at b, neither at the others,
                # and differs from both at c of the places where they agree
                others = d - a - b
                if others >= 0 and d - min(a, b) + c <= m:
                    w[d] += (
                        comb(d, a)
                        * comb(d - a, b)
                        * max(letters - 2, 0) ** others
                        * comb(k - d, c)
                        * (letters - 1) ** c
                    )
        return w

    def _spread(self) -> int:
        others = len(self.alphabet) - 1 if self.alphabet is not None else 0
        return sum(comb(self.k, j) * others**j for j in range(self.m + 1))

    def _reads(self, S: Sequences) -> np.ndarray:
        if self.alphabet is None:  # it will be that of the strings
            return super()._reads(S)
        return np.isin(S.symbols, symbols_of(self.alphabet, S.kind))

    def _features_of_words(
        self, letters: np.ndarray, S: Sequences
    ) -> Iterator[tuple[Any, np.ndarray]]:
        alphabet = mix(symbols_of(self.alphabet, S.kind).view(np.uint64))
        for j in range(self.m + 1):
            for places in combinations(range(self.k), j):
                for new in product(alphabet, repeat=j):
                    changed = letters.copy()
                    changed[:, places] = new
                    has = np.all(changed[:, places] != letters[:, places], axis=1)
                    yield has, chained(changed[has])


@jit()
def _profiles(
    g: int,
    weights: np.ndarray,
    x: np.ndarray,
    x_blocked: np.ndarray,
    x_spans: np.ndarray,
    z: np.ndarray,
    z_blocked: np.ndarray,
    z_spans: np.ndarray,
) -> np.ndarray:
    """Return sum_d w_d N_d for each pair.

    The distance of two words and that of the two one place further differ by the first and the
    last comparison.  Distances are kept along diagonals, where that is an update in place; in bytes
    there are many to a vector register, and so are the counts, which are emptied in time.
    """
    values = np.zeros(len(x_spans))
    for pair in range(len(values)):
        n, m = x_spans[pair, 1] - g + 1, z_spans[pair, 1] - g + 1
        if n < 1 or m < 1:
            continue
        s = x[x_spans[pair, 0] : x_spans[pair, 0] + x_spans[pair, 1]]
        t = z[z_spans[pair, 0] : z_spans[pair, 0] + z_spans[pair, 1]]
        s_blocked = x_blocked[x_spans[pair, 0] : x_spans[pair, 0] + n]
        t_blocked = z_blocked[z_spans[pair, 0] : z_spans[pair, 0] + m]
        late = t[g:]
        diagonals = np.empty(n + m - 1, np.uint8)
        counts = np.zeros((len(weights), m), np.uint8)
        for i in range(n):
            row = diagonals[n - 1 - i : n - 1 - i + m]
            for j in range(1 if i else m):
                distance = 0
                for place in range(g):
                    distance += s[i + place] != t[j + place]
                row[j] = distance
            if i:
                new, old, rest = s[i + g - 1], s[i - 1], row[1:]
                for j in range(m - 1):
                    rest[j] = np.uint8(rest[j] + np.uint8(late[j] != new) - np.uint8(t[j] != old))
            if s_blocked[i] == 0:
                for d in range(len(weights)):
                    wanted, count = np.uint8(d), counts[d]
                    for j in range(m):
                        count[j] += np.uint8(np.uint8(row[j] | t_blocked[j]) == wanted)
            if i % 255 == 254 or i == n - 1:
                for d in range(len(weights)):
                    total = 0
                    for j in range(m):
                        total += counts[d, j]
                    values[pair] += weights[d] * total
                counts[:] = 0
    return values
