"""String kernels that count common words: with mismatches, exactly, and at equal positions.

A *word* is a substring of fixed length (a k-mer).  Its hash code depends only on its symbols, not
on the alphabet or on the other strings.  No vocabulary is learned from the training strings, and no
word of a new string is ignored.

`Gapped` and `Mismatch` are weighted sums of the *profile* of two strings: for each d, the number of
pairs of words, one of each string, that differ in d positions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..._core import Points, jit
from .._base import Kernel, node, option
from .._evaluation import Prepared
from .._pairwise_kernels import PairwiseKernel, pairs_from_tiles
from .._parameter_checks import boolean, count
from .._parameter_tree import data_dependent
from .._properties import Domain
from .._sparse_features import Explicit, FeatureTerms, splitmix64
from ._sequences import (
    SequenceEncoding,
    StringKernel,
    as_string_list,
    combine_codes,
    decay_factor,
    encode_alphabet,
    encode_sequences,
    iter_words,
)

# Up to this many features per word, a product of sparse matrices is faster than comparing all pairs
# of words.
_MAX_SPARSE_FEATURES = 100


class _EncodedStrings(NamedTuple):
    """The symbols of all strings of a collection, and the positions of words to ignore.

    `blocked` has one entry per symbol: 128 if the word that starts there contains a symbol outside
    the alphabet, else 0.
    """

    symbols: np.ndarray
    blocked: np.ndarray
    kind: str


@node
class HammingProfile(PairwiseKernel, StringKernel, Explicit):
    """Base class of the kernels that compare words by their Hamming distance.

        k(s, t) = sum_d w_d N_d(s, t)

    N_d(s, t) is the number of pairs of a word of s and a word of t that differ in d positions.  A
    subclass defines the length of the words, the weights w_d and the explicit features.  If a word
    has few features, the kernel matrix is a product of sparse matrices.  Otherwise N_d is counted
    for each pair of strings, in |s| |t| steps for any alphabet and any number of features.
    """

    @abstractmethod
    def _weights(self) -> np.ndarray:
        """Return the weights w_d of d = 0, ..., D differences; w_d is 0 for d > D."""

    @abstractmethod
    def _features_per_word(self) -> int:
        """Return the number of features of a word."""

    @abstractmethod
    def _word_features(
        self, letters: np.ndarray, S: SequenceEncoding
    ) -> Iterator[tuple[np.ndarray | np.bool_, np.ndarray]]:
        """Yield the features of all words, at most one feature per word in each step.

        `letters` has shape (n_words, length) and contains the codes of the letters.  Each step
        yields a mask of the words that have a feature, and the codes of the features of these
        words.
        """

    def _blocked(self, S: SequenceEncoding) -> np.ndarray:
        """Return 128 where a word with a symbol outside the alphabet begins, 0 elsewhere."""
        g = self._min_length()[1]
        outside = np.append(~self._in_alphabet(S), np.zeros(g, dtype=bool))
        has_outside = np.any(sliding_window_view(outside, g)[: len(S.symbols)], axis=1)
        return np.where(has_outside, 128, 0).astype(np.uint8)

    def _terms(self, X: Points) -> FeatureTerms:
        S = encode_sequences(X, type(self).__name__)
        g = self._min_length()[1]
        *_, w = iter_words(S, g)
        included = self._blocked(S)[w.start] == 0
        owner, start, code = w.owner[included], w.start[included], w.code[included]
        _, first, word = np.unique(code, return_index=True, return_inverse=True)
        letters = splitmix64(S.symbols.view(np.uint64))[start[first][:, None] + np.arange(g)]
        parts = []
        for has, codes in self._word_features(letters, S):
            word_codes = np.zeros(len(first), dtype=np.uint64)
            word_codes[has] = codes
            chosen = np.broadcast_to(has, len(first))[word]
            parts.append(
                FeatureTerms.counted(len(S), owner[chosen], word_codes[word[chosen]], S.kind)
            )
        return FeatureTerms.joined(*parts)

    @property
    def _uses_sparse_features(self) -> bool:
        """Whether K is computed as a product of sparse matrices of features."""
        return self._features_per_word() <= _MAX_SPARSE_FEATURES

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        if self._uses_sparse_features:
            return Explicit._prepare(self, X, like)
        S = encode_sequences(X, type(self).__name__, like.frame.kind if like is not None else "")
        small = S.kind != "sequences" and S.symbols.max(initial=0) < 256
        symbols = S.symbols.astype(np.uint8) if small else S.symbols
        spans = np.column_stack([S.starts, S.lengths])
        return Prepared((spans,), frame=_EncodedStrings(symbols, self._blocked(S), S.kind))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        (Explicit if self._uses_sparse_features else PairwiseKernel)._tile(self, P, Q, out)

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if self._uses_sparse_features:
            return pairs_from_tiles(self, P, Q, i, j)
        x, z = P.frame.symbols, Q.frame.symbols
        if x.dtype != z.dtype:
            x, z = x.astype(np.int64), z.astype(np.int64)
        values: np.ndarray = _weighted_profiles(
            self._min_length()[1],
            self._weights(),
            x,
            P.frame.blocked,
            P.arrays[0][i],
            z,
            Q.frame.blocked,
            Q.arrays[0][j],
        )
        return values

    def _diag(self, X: Points) -> np.ndarray:
        return (Explicit if self._uses_sparse_features else PairwiseKernel)._diag(self, X)

    def _domain(self, *inner: Domain) -> Domain:
        return replace(super()._domain(*inner), costly=not self._uses_sparse_features)


@node
class Gapped(HammingProfile):
    """Gapped k-mer kernel, which compares words of length g in k of their positions.

        k(s, t) = sum_d C(g - d, k) N_d(s, t)

    N_d is the number of pairs of words of length g, one of s and one of t, that differ in d
    positions.  A feature is a word of length g with g - k wildcards, and the kernel is the inner
    product of the feature counts.

    Parameters
    ----------
    g : int, default=6
        The length of the words, at most 127.  6 to 11 is usual for DNA.
    k : int, default=4
        The number of positions that are compared, at most g.  A smaller k tolerates more
        differences.

    See Also
    --------
    Mismatch : Tolerates mismatches over a known alphabet.
    Spectrum : Exact words; faster.
    Subsequence : Gaps of any length.

    Notes
    -----
    A word has C(g, k) features.  Up to 100 features, the kernel matrix is a product of sparse
    matrices; otherwise each pair of strings takes |s| |t| steps.  The alphabet need not be known.
    The library FastSK uses the parameter m = g - k instead of k.  Use `Normalized(Gapped(...))` for
    strings of different lengths.

    References
    ----------
    Ghandi, Lee, Mohammad-Noori and Beer, "Enhanced regulatory sequence prediction using gapped
    k-mer features", PLoS Computational Biology 10, 2014.

    Examples
    --------
    >>> from mercer.kernels import Gapped
    >>> Gapped(3, 2)(["CAT"], ["CAT", "CUT", "DOG"])  # C(3, 2), C(2, 2), 0
    array([[3., 1., 0.]])
    """

    g: int = option(6, count())
    k: int = option(4, count())

    def _check(self) -> None:
        if self.k > self.g or self.g > 127:
            raise ValueError(f"Gapped requires k <= g <= 127, got g={self.g!r} and k={self.k!r}")

    def _min_length(self) -> tuple[str, int]:
        return "g", self.g

    def _weights(self) -> np.ndarray:
        return np.array([comb(self.g - d, self.k) for d in range(self.g - self.k + 1)], dtype=float)

    def _features_per_word(self) -> int:
        return comb(self.g, self.k)

    def _word_features(
        self, letters: np.ndarray, S: SequenceEncoding
    ) -> Iterator[tuple[np.ndarray | np.bool_, np.ndarray]]:
        for salt, positions in enumerate(combinations(range(self.g), self.k)):
            yield np.True_, combine_codes(letters[:, positions], salt)


@node
class Mismatch(HammingProfile):
    """Mismatch kernel, which counts common words of length k with up to m mismatches.

        k(s, t) = sum_u phi_u(s) phi_u(t)

    u runs over all words of length k over the alphabet, and phi_u(s) is the number of words of s
    that differ from u in at most m positions.

    Parameters
    ----------
    k : int, default=3
        The length of the words, at most 127.  5 or 6 is usual for proteins.
    m : int, default=1
        The number of mismatches allowed, less than k.  1 is usual.
    alphabet : str, bytes or tuple of symbols, optional
        The letters of the words u.  Their number affects the value of the kernel.  None means all
        symbols of the training strings, determined by `resolve` or `fit`.  A word of s with a
        symbol outside the alphabet (such as N in DNA, or a symbol that is not in the training
        strings) is ignored.

    See Also
    --------
    Gapped : Does not depend on the alphabet, and is faster for long words.
    Spectrum : m = 0; faster.
    LocalAlignment : Insertions, deletions and scores of symbols.

    Notes
    -----
    Equivalently, k(s, t) = sum_d w_d N_d(s, t).  N_d is the number of pairs of words that differ in
    d positions, and w_d is the number of words u within m mismatches of both words of such a pair.
    A word has sum_(j <= m) C(k, j) (|alphabet| - 1)^j features.  Up to 100 features, the kernel
    matrix is a product of sparse matrices; otherwise each pair of strings takes |s| |t| steps.

    References
    ----------
    Leslie, Eskin, Cohen, Weston and Noble, "Mismatch string kernels for discriminative protein
    classification", Bioinformatics 20, 2004.

    Examples
    --------
    >>> from mercer.kernels import Mismatch
    >>> Mismatch(3, 1, "ACGT")(["AAA"], ["AAA", "AAC", "ACC", "CCC"])
    array([[10.,  4.,  2.,  0.]])
    >>> Mismatch(5, 1).resolve(["GATTACA"])
    Mismatch(k=5, m=1, alphabet='ACGT')
    """

    k: int = option(3, count())
    m: int = option(1, count(least=0))
    alphabet: Any = data_dependent(None, is_rule=lambda alphabet: alphabet is None)

    def _check(self) -> None:
        if self.m >= self.k or self.k > 127:
            raise ValueError(f"Mismatch requires m < k <= 127, got k={self.k!r} and m={self.m!r}")
        if self.alphabet is None:
            return
        if isinstance(self.alphabet, list):
            object.__setattr__(self, "alphabet", tuple(self.alphabet))
        if not isinstance(self.alphabet, (str, bytes, tuple)) or not self.alphabet:
            raise TypeError(
                f"Mismatch: alphabet must be a string or tuple of symbols, such as 'ACGT', got "
                f"{self.alphabet!r}"
            )
        if len(set(self.alphabet)) < len(self.alphabet):
            raise ValueError(f"Mismatch: alphabet {self.alphabet!r} contains a letter twice")

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        super()._resolve(X, weights, targets)  # checks the strings
        return self if self.alphabet is not None else replace(self, alphabet=_symbols_of(X))

    def _min_length(self) -> tuple[str, int]:
        return "k", self.k

    def _weights(self) -> np.ndarray:
        k, m, letters = self.k, self.m, len(self.alphabet)
        w = np.zeros(min(2 * m, k) + 1)
        for d in range(len(w)):
            for a, b, c in product(range(d + 1), range(d + 1), range(k - d + 1)):
                # Among the d positions where the two words differ, u equals the first word in a
                # positions, the second word in b positions, and neither in the others.  Among the
                # positions where the words agree, u differs from both in c positions.
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

    def _features_per_word(self) -> int:
        others = len(self.alphabet) - 1 if self.alphabet is not None else 0
        return sum(comb(self.k, j) * others**j for j in range(self.m + 1))

    def _in_alphabet(self, S: SequenceEncoding) -> np.ndarray:
        if self.alphabet is None:  # None means all symbols of the training strings
            return super()._in_alphabet(S)
        return np.isin(S.symbols, encode_alphabet(self.alphabet, S.kind))

    def _word_features(
        self, letters: np.ndarray, S: SequenceEncoding
    ) -> Iterator[tuple[np.ndarray | np.bool_, np.ndarray]]:
        alphabet = splitmix64(encode_alphabet(self.alphabet, S.kind).view(np.uint64))
        for j in range(self.m + 1):
            for positions in combinations(range(self.k), j):
                for replacement in product(alphabet, repeat=j):
                    changed = letters.copy()
                    changed[:, positions] = replacement
                    has = np.all(changed[:, positions] != letters[:, positions], axis=1)
                    yield has, combine_codes(changed[has])


def _symbols_of(X: Points) -> str | bytes | tuple[Any, ...]:
    """Return all different symbols of the strings X, as an alphabet."""
    S = encode_sequences(X, "Mismatch")
    symbols, first = np.unique(S.symbols, return_index=True)
    if S.kind == "str":
        return "".join(map(chr, symbols.tolist()))
    if S.kind == "bytes":
        return bytes(symbols.tolist())
    owner = np.searchsorted(S.starts + S.lengths, first, side="right")
    points = as_string_list(X, "Mismatch")
    letters = [points[i][j] for i, j in zip(owner, first - S.starts[owner], strict=True)]
    return tuple(v.item() if isinstance(v, np.generic) else v for v in letters)


@jit()
def _weighted_profiles(
    g: int,
    weights: np.ndarray,
    x: np.ndarray,
    x_blocked: np.ndarray,
    x_spans: np.ndarray,
    z: np.ndarray,
    z_blocked: np.ndarray,
    z_spans: np.ndarray,
) -> np.ndarray:
    """Return sum_d w_d N_d for each pair of strings.

    N_d is the number of pairs of words of length g at Hamming distance d.  If both words move one
    position to the right, their distance changes only by the first pair of symbols, which leaves
    the window, and the last pair, which enters it.  Distances are stored by diagonal, so that they
    can be updated in place.  Distances and counts are bytes, because a vector register has room for
    many of them.  The counts are added to the total before they overflow.
    """
    values = np.zeros(len(x_spans))
    for pair in range(len(values)):
        s_words, t_words = x_spans[pair, 1] - g + 1, z_spans[pair, 1] - g + 1
        if s_words < 1 or t_words < 1:
            continue
        s = x[x_spans[pair, 0] : x_spans[pair, 0] + x_spans[pair, 1]]
        t = z[z_spans[pair, 0] : z_spans[pair, 0] + z_spans[pair, 1]]
        s_blocked = x_blocked[x_spans[pair, 0] : x_spans[pair, 0] + s_words]
        t_blocked = z_blocked[z_spans[pair, 0] : z_spans[pair, 0] + t_words]
        t_shifted = t[g:]
        diagonals = np.empty(s_words + t_words - 1, np.uint8)
        counts = np.zeros((len(weights), t_words), np.uint8)
        for i in range(s_words):
            row = diagonals[s_words - 1 - i : s_words - 1 - i + t_words]
            for j in range(1 if i else t_words):
                distance = 0
                for offset in range(g):
                    distance += s[i + offset] != t[j + offset]
                row[j] = distance
            if i:
                new, old, updated = s[i + g - 1], s[i - 1], row[1:]
                for j in range(t_words - 1):
                    updated[j] = np.uint8(
                        updated[j] + np.uint8(t_shifted[j] != new) - np.uint8(t[j] != old)
                    )
            if s_blocked[i] == 0:
                for d in range(len(weights)):
                    target, count = np.uint8(d), counts[d]
                    for j in range(t_words):
                        count[j] += np.uint8(np.uint8(row[j] | t_blocked[j]) == target)
            if i % 255 == 254 or i == s_words - 1:
                for d in range(len(weights)):
                    total = np.int64(0)  # a sum of bytes would overflow in NumPy
                    for j in range(t_words):
                        total += counts[d, j]
                    values[pair] += weights[d] * total
                counts[:] = 0
    return values


# ---------------------------------------------------------------------- exact words


@node
class Spectrum(StringKernel, Explicit):
    """Spectrum kernel: compares strings by the number of occurrences of each p-gram.

        k(s, t) = sum over words u of decay^(2 |u|) #(u in s) #(u in t)

    The sum is over the words u of length p or, if `blended`, of all lengths 1, ..., p, and
    #(u in s) is the number of occurrences of u in s.

    Parameters
    ----------
    p : int, default=3
        The length of the words (contiguous p-grams).  If p is too large, different strings have no
        words in common; if it is too small, all strings are similar.  Usual values for DNA,
        proteins and text are 3 to 6.
    blended : bool, default=False
        Whether to count the words of all lengths 1, ..., p.
    decay : float, default=1.0
        The decay per symbol, in (0, 1]: a word of length q has the weight decay^(2q).  It matters
        only if `blended` is True; otherwise it only scales the kernel.

    See Also
    --------
    Mismatch : Tolerates mismatches in a word.
    Gapped : Words with wildcards.
    WeightedDegree : Compares words at equal positions only.
    BagOfNgrams : With tf-idf weights, for texts.

    Notes
    -----
    Features are computed in linear time, and the kernel matrix is a product of sparse matrices.
    Values grow with the length of the strings; use `Normalized(Spectrum(...))` to avoid this.

    References
    ----------
    Leslie, Eskin and Noble, "The spectrum kernel: a string kernel for SVM protein classification",
    PSB 2002.  Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", 2004, section
    11.2 (blended).

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(2)(["ABAB"], ["BABA", "ABAB"])
    array([[4., 5.]])
    >>> Spectrum(2).features(["ABAB", "BABA", "BB"]).shape  # AB, BA and BB
    (3, 3)
    """

    p: int = option(3, count())
    blended: bool = option(False, boolean)
    decay: float = option(1.0, decay_factor)

    def _min_length(self) -> tuple[str, int]:
        return "p", 1 if self.blended else self.p

    def _terms(self, X: Points) -> FeatureTerms:
        S = encode_sequences(X, "Spectrum")
        parts = []
        for q, w in enumerate(iter_words(S, self.p), start=1):
            if self.blended or q == self.p:
                value = np.full(len(w.code), float(self.decay) ** q)
                parts.append(FeatureTerms(len(S), w.owner, splitmix64(w.code, q), value, S.kind))
        return FeatureTerms.joined(*parts)


@node
class WeightedDegree(StringKernel, Explicit):
    """Weighted degree kernel: counts equal words at equal positions of two strings.

        k(s, t) = sum_(q <= degree) beta_q #(positions where s and t have the same word of length q)

    The weights are beta_q = 2 (degree - q + 1) / (degree (degree + 1)), and their sum is 1.  All
    strings must have the same length, because position i of one is compared with position i of the
    other.

    Parameters
    ----------
    degree : int, default=3
        The length of the longest words that are compared.  Up to 20 or more is usual for DNA,
        because long words have small weights.

    See Also
    --------
    Spectrum : Words at any position, for strings of different lengths.
    LocalAlignment : Finds the alignment itself.

    Notes
    -----
    Use this kernel for strings that are aligned at a known position, such as a splice site.  An
    inserted symbol shifts all symbols after it, so that they no longer match.  A string of length
    l has about degree * l features.

    References
    ----------
    Raetsch and Sonnenburg, "Accurate splice site prediction for Caenorhabditis elegans", in Kernel
    Methods in Computational Biology, 2004.

    Examples
    --------
    >>> from mercer.kernels import WeightedDegree
    >>> WeightedDegree(3)(["GATTA"], ["GATTA", "GATCA"]).round(4)  # 13/3, 2 + 2/3 + 1/6
    array([[4.3333, 2.8333]])
    """

    degree: int = option(3, count())

    def _terms(self, X: Points) -> FeatureTerms:
        S = encode_sequences(X, "WeightedDegree")
        if len(S) and np.any(S.lengths != S.lengths[0]):
            other = int(np.argmax(S.lengths != S.lengths[0]))
            raise ValueError(
                f"WeightedDegree compares strings position by position, but point {other} has "
                f"{S.lengths[other]} symbols and point 0 has {S.lengths[0]}; cut the strings to "
                f"the same length, or use Spectrum, which accepts different lengths"
            )
        kind = f"{S.kind} of {S.longest} symbols" if len(S) else ""
        d, parts = self.degree, []
        for q, w in enumerate(iter_words(S, d), start=1):
            beta = 2.0 * (d - q + 1) / (d * (d + 1))
            position = splitmix64((w.start - S.starts[w.owner]).view(np.uint64), q)
            value = np.full(len(w.code), np.sqrt(beta))
            parts.append(FeatureTerms(len(S), w.owner, splitmix64(w.code ^ position), value, kind))
        return FeatureTerms.joined(*parts)
