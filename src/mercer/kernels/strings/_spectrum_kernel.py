"""String kernels that count common words, computed from sparse explicit features.

A *word* is a substring of fixed length.  Its hash code depends only on its symbols, not on the
alphabet or on the other strings.  No vocabulary is learned from the training strings, and no word
of a new string is ignored.
"""

from __future__ import annotations

import numpy as np

from ..._core import Points
from .._base import node, option
from .._parameter_checks import boolean, count
from .._sparse_features import Explicit, FeatureTerms, splitmix64
from ._sequences import StringKernel, decay_factor, encode_sequences, iter_words


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
        The decay per symbol, in (0, 1]: a word of length q has the weight decay^(2q).

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
        The length of the longest words that are compared.

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
